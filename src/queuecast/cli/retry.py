"""``queuecast retry`` and ``queuecast lineage``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from queuecast.cli.common import (
    AtOption,
    ClusterOption,
    Context,
    JsonOption,
    LakeOption,
    UserOption,
    context,
    print_json,
    print_lines,
    width,
)
from queuecast.errors import UsageError
from queuecast.i18n import _

if TYPE_CHECKING:
    from queuecast.answers.retries.answer import RetryAnswer
    from queuecast.collect.run import Runner
    from queuecast.store.lake import Lake

NOT_READY = 3


def retry(
    job: Annotated[str, typer.Argument(metavar="JOBID", help="A job that ended: 1234, 1234_5 (one task), 1234 (the failed tasks).")],
    script: Annotated[Path | None, typer.Option("--script", metavar="FILE", help="The script, if it is not found by itself.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the copy there; it must not exist.")] = None,
    checkpoint: Annotated[Path | None, typer.Option("--checkpoint", metavar="DIR", help="Folder with manifests to go on from.")] = None,
    cause: Annotated[str | None, typer.Option("--cause", metavar="CLASS", help="Take this cause: oom_host, time_limit, node, ...")] = None,
    force: Annotated[bool, typer.Option("--force", help="Make the copy even if it would fail in the same way.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Tell what would be changed, and print no script.")] = False,
    no_slurm: Annotated[bool, typer.Option("--no-slurm", help="Do not ask Slurm for the script.")] = False,
    user: UserOption = None,
    at: AtOption = None,
    as_json: JsonOption = False,
    cluster: ClusterOption = None,
    lake: LakeOption = None,
) -> None:
    """Print a corrected copy of a failed job's script: queuecast retry 1234 > retry.sh. The old file is never changed.

    Exit status: 0 printed; 3 the copy would fail again (mend what is listed, or --force).
    """
    from queuecast.answers.retries.retry import retry as answer_retry
    from queuecast.answers.retries.script import read_script_file
    from queuecast.render.lineage import retry_lines, retry_notes

    ctx, opened, name = _opened(lake, cluster)
    text = None
    if script is not None:
        text = read_script_file(script)
        if text is None:
            raise UsageError(_("{path} is no batch script").format(path=script), _("give a text file that begins with #!"))
    if output is not None and (os.path.lexists(output) or (script is not None and output.absolute() == script.absolute())):
        raise UsageError(_("{path} exists already").format(path=output), _("a copy never replaces a file: choose another name"))
    moment = ctx.at(at, opened, name)
    answer = answer_retry(
        opened,
        name,
        job,
        moment,
        ctx.viewer(user),
        script_text=text,
        script_path=script,
        checkpoint=checkpoint.absolute() if checkpoint is not None else None,
        cause=cause,
        force=force,
        runner=None if no_slurm or at is not None else _runner(ctx, opened, name),
        local=ctx.settings.ssh is None,
    )
    if as_json:
        print_json(answer.as_json())
        raise typer.Exit(0 if answer.script is not None else NOT_READY)
    if explain:
        print_lines(retry_lines(answer, width(), ctx.zone))
        raise typer.Exit(0 if answer.script is not None else NOT_READY)
    if answer.script is None:
        print("\n".join(retry_lines(answer, width(), ctx.zone)), file=sys.stderr)
        print(_("No copy was made. --force makes it all the same."), file=sys.stderr)
        raise typer.Exit(NOT_READY)
    written = _write(answer, output)
    for line in retry_notes(answer, width()):
        print(line, file=sys.stderr)
    from queuecast.answers.retries.lineage_log import append
    from queuecast.clock import now

    if at is None and not append(opened.path, answer, now(), written) and answer.stored is False:
        print(_("note: the lake cannot be written to: the parent of the copy is told by its comment alone"), file=sys.stderr)


def lineage(
    job: Annotated[str, typer.Argument(metavar="JOBID", help="Any attempt of the line: 1234.")],
    user: UserOption = None,
    at: AtOption = None,
    as_json: JsonOption = False,
    cluster: ClusterOption = None,
    lake: LakeOption = None,
) -> None:
    """Show all attempts that belong together: requeues, corrected copies, and (marked) guesses, with what changed and what came of it."""
    from queuecast.answers.retries.lineage import lineage as answer_lineage
    from queuecast.render.lineage import lineage_lines

    ctx, opened, name = _opened(lake, cluster)
    answer = answer_lineage(opened, name, job, ctx.at(at, opened, name), ctx.viewer(user))
    if as_json:
        print_json(answer.as_json())
    else:
        print_lines(lineage_lines(answer, width(), ctx.zone))


def _opened(lake: str | None, cluster: str | None) -> tuple[Context, Lake, str]:
    ctx = context(lake, cluster)
    opened = ctx.lake()
    name = ctx.cluster or (opened.clusters[0] if len(opened.clusters) == 1 else None)
    if name is None:
        if not opened.clusters:
            raise UsageError(_("the lake is empty"), _("fill it: queuecast collect"))
        raise UsageError(_("the lake holds several clusters"), _("name one: -M {names}").format(names=" | ".join(opened.clusters)))
    return ctx, opened, name


def _runner(ctx: Context, lake: Lake, cluster: str) -> Runner | None:
    from queuecast.collect.run import Runner

    return Runner(ssh=ctx.settings.ssh, directory=ctx.settings.slurm_bin)


def _write(answer: RetryAnswer, output: Path | None) -> str | None:
    """To the file, which must not exist, or to standard output; bytes of the old script that are no UTF-8 stay as they were."""
    raw = (answer.script or "").encode("utf-8", "surrogateescape")
    if output is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(raw)
        sys.stdout.buffer.flush()
        return None
    try:
        with output.open("xb") as file:
            file.write(raw)
    except FileExistsError as error:
        raise UsageError(_("{path} exists already").format(path=output), _("choose another name")) from error
    except OSError as error:
        raise UsageError(_("cannot write {path}: {why}").format(path=output, why=error.strerror), _("choose another folder")) from error
    return str(output.absolute())
