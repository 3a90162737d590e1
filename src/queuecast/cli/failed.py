"""``queuecast failed``."""

from __future__ import annotations

from typing import Annotated

import typer

from queuecast.cli.common import (
    AtOption,
    ClusterOption,
    JsonOption,
    LakeOption,
    ParsableOption,
    UserOption,
    context,
    print_json,
    print_lines,
    width,
)
from queuecast.errors import UsageError
from queuecast.i18n import _


def failed(
    job_id: Annotated[str | None, typer.Argument(metavar="[JOBID]", help="A job that failed; without one, those of --since.")] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="All failed jobs since then: 7d (days back), 12h, 2026-06-01.")
    ] = None,
    log: Annotated[
        list[str] | None, typer.Option("--log", metavar="FILE", help="Look into this log instead of the job's own; may be repeated.")
    ] = None,
    no_logs: Annotated[bool, typer.Option("--no-logs", help="Open no logs.")] = False,
    only: Annotated[str | None, typer.Option("--of", metavar="USER", help="With --since: only this user's jobs.")] = None,
    show_all: Annotated[bool, typer.Option("--all", help="With --since: every failed job, not the latest 30.")] = False,
    user: UserOption = None,
    at: AtOption = None,
    as_json: JsonOption = False,
    parsable: ParsableOption = False,
    cluster: ClusterOption = None,
    lake: LakeOption = None,
) -> None:
    """Why did this job fail, whose turn is it, and what can be done? Or: which jobs failed since then, and which nodes."""
    if (job_id is None) == (since is None):
        raise UsageError(_("give a job id or --since"), _("for example: queuecast failed 1234, or: queuecast failed --since 7d"))
    if no_logs and log:
        raise UsageError(_("--log and --no-logs contradict each other"), _("leave one of them out"))
    if since is not None and log:
        raise UsageError(_("--log goes with one job"), _("for example: queuecast failed 1234 --log train.err"))
    from queuecast.answers.explaining.explain import one_cluster

    ctx = context(lake, cluster)
    opened = ctx.lake()
    name = one_cluster(opened, ctx.cluster)
    moment, viewer = ctx.at(at, opened, name), ctx.viewer(user)
    if job_id is not None:
        from queuecast.answers.failures.failure import failure
        from queuecast.render.failure import failure_lines
        from queuecast.render.failure import parsable as row

        answer = failure(opened, name, job_id, moment, viewer, logs=not no_logs, files=tuple(log or ()))
        if as_json:
            print_json(answer.as_json())
        elif parsable:
            print(row(answer))
        else:
            print_lines(failure_lines(answer, ctx.zone, width()))
        return
    from queuecast.answers.failures.table import failed_jobs, since_text
    from queuecast.render.failure import parsable_table, table_lines

    begin = since_text(since or "", moment, ctx.zone)
    if begin > moment:
        raise UsageError(_("--since lies after the moment asked about"), _("for example: --since 7d"))
    table = failed_jobs(opened, name, begin, moment, viewer, user=only)
    if as_json:
        print_json(table.as_json())
    elif parsable:
        print(parsable_table(table))
    else:
        print_lines(table_lines(table, ctx.zone, width(), most=10**9 if show_all else 30))
