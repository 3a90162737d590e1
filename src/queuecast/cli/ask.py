"""``queuecast when``, ``why`` and ``queue``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from queuecast.cli.requestflags import (
    AccountOption,
    ArrayOption,
    CpusOption,
    GpusOption,
    GpusPerNodeOption,
    GpusPerTaskOption,
    GresOption,
    MemOption,
    MemPerCpuOption,
    NodesOption,
    PartitionOption,
    QosOption,
    TasksOption,
    TimeOption,
    request_flags,
)
from queuecast.errors import StoreError, UsageError
from queuecast.i18n import _

if TYPE_CHECKING:
    from queuecast.answers.alternatives_answer import Alternatives
    from queuecast.answers.wait import WaitAnswer
    from queuecast.store.lake import Lake

_S = typer.Option


def when(
    target: Annotated[
        str | None, typer.Argument(metavar="[SCRIPT|JOBID]", help="A batch script (its #SBATCH lines are read) or a job id.")
    ] = None,
    partition: PartitionOption = None,
    account: AccountOption = None,
    qos: QosOption = None,
    time: TimeOption = None,
    gres: GresOption = None,
    gpus: GpusOption = None,
    gpus_per_node: GpusPerNodeOption = None,
    gpus_per_task: GpusPerTaskOption = None,
    nodes: NodesOption = None,
    ntasks: TasksOption = None,
    cpus_per_task: CpusOption = None,
    mem: MemOption = None,
    mem_per_cpu: MemPerCpuOption = None,
    array: ArrayOption = None,
    user: UserOption = None,
    at: AtOption = None,
    as_json: JsonOption = False,
    parsable: ParsableOption = False,
    alternatives: Annotated[bool, _S("--alternatives", help="Also what would start sooner (plays futures: slower).")] = False,
    no_log: Annotated[bool, _S("--no-log", help="Do not keep this answer for the track record.")] = False,
    cluster: ClusterOption = None,
    lake: LakeOption = None,
) -> None:
    """How long will this wait? For a request, a batch script, or a job in the queue."""
    flags = request_flags(locals())
    from queuecast.answers.forecast import Forecaster
    from queuecast.policy.request import from_options

    ctx = context(lake, cluster)
    forecaster = Forecaster(ctx.lake(), ctx.cluster)
    moment = ctx.at(at, forecaster.lake, forecaster.cluster)
    viewer = ctx.viewer(user)
    if target is not None and is_job(target):
        if flags:
            raise UsageError(
                _("a job id and a request cannot be asked about together"),
                _("leave {flags} out").format(flags=", ".join(f"--{f}" for f in flags)),
            )
        answer = forecaster.when_job(target, moment, viewer)
    else:
        options = script_options(target) if target is not None else {}
        if not options and not flags:
            raise UsageError(
                _("nothing is asked for"),
                _("for example: queuecast when -p gpu --gres gpu:a100:4 -t 12:00:00, or: queuecast when job.sh, or when JOBID"),
            )
        answer = forecaster.when(from_options({**options, **flags}, viewer.user), moment, viewer)
    if at is None and not no_log:  # the outcome of a replayed moment is known: it proves nothing
        _keep(forecaster.lake, answer)
    others = None
    if alternatives and answer.status not in ("started", "ended"):
        from queuecast.cli.alternatives import ask

        others = ask(forecaster, target, flags, moment, viewer)
    if as_json:
        print_json(answer.as_json() if others is None else {**answer.as_json(), "alternatives": others.as_json()})
    elif parsable:
        from queuecast.render.wait import parsable as row

        print(row(answer))
    else:
        from queuecast.render.wait import wait_lines

        print_lines([*wait_lines(answer, ctx.zone, width()), *_sooner(answer, others, target, flags, ctx.zone)])


def _sooner(answer: WaitAnswer, others: Alternatives | None, target: str | None, flags: dict[str, str], zone: str) -> list[str]:
    """What would start sooner; without ``--alternatives`` where to ask."""
    if others is not None:
        from queuecast.render.alternatives import sooner_lines

        return ["", *sooner_lines(others, zone, width())]
    if answer.status not in ("estimate", "beyond_history") or (answer.median_s is not None and answer.median_s < 60):
        return []
    import shlex

    from queuecast.render.words import safe

    words = [*([target] if target else []), *(f"--{k}={v}" for k, v in flags.items())]
    return [f"{_('sooner'):<9}queuecast alternatives {safe(shlex.join(words))}"]


def _keep(lake: Lake, answer: WaitAnswer) -> None:
    """Log the answer. A log that cannot be written is no reason to withhold the answer."""
    from queuecast.answers.scoring import keep_answer, predictions_of

    try:
        keep_answer(predictions_of(lake), answer)
    except StoreError as error:
        typer.echo(f"queuecast: {error.message}", err=True)


def is_job(target: str) -> bool:
    """Whether a job id is meant and not a file."""
    return target[:1].isdigit() and not Path(target).exists()


def script_options(target: str) -> dict[str, str]:
    """The #SBATCH lines of a script; what cannot be read is told on stderr. Raises ``UsageError``."""
    from queuecast.slurmtext.script import parse_script

    path = Path(target)
    try:
        if path.stat().st_size > 16 * 2**20:
            raise UsageError(_("{path} is too large for a batch script").format(path=target), _("Slurm itself takes 4 MiB"))
        text = path.read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise UsageError(
            _("{path} cannot be read: {why}").format(path=target, why=error.strerror), _("give a batch script or a job id")
        ) from error
    parsed = parse_script(text)
    for problem in parsed.problems:
        typer.echo(f"{target}: {problem}", err=True)
    return parsed.options


def why(
    job_id: Annotated[str, typer.Argument(metavar="JOBID")],
    no_changes: Annotated[bool, typer.Option("--no-changes", help="Do not look for changes of the request that would matter.")] = False,
    futures: Annotated[
        int, typer.Option("--futures", metavar="N", help="Play so many drawn futures for the changes told (slow).", min=0, max=2000)
    ] = 0,
    user: UserOption = None,
    at: AtOption = None,
    as_json: JsonOption = False,
    cluster: ClusterOption = None,
    lake: LakeOption = None,
) -> None:
    """Why does this job wait, what can be done, and which small change of it would matter?"""
    from queuecast.answers.explaining.explain import one_cluster, with_changes
    from queuecast.answers.explaining.explain import why as explain
    from queuecast.render.why import why_lines

    ctx = context(lake, cluster)
    opened = ctx.lake()
    name = one_cluster(opened, ctx.cluster)  # a trained model is not needed for the reasons themselves
    viewer = ctx.viewer(user)
    answer = explain(opened, name, job_id, ctx.at(at, opened, name), viewer)
    if not no_changes:
        answer = with_changes(answer, opened, viewer, futures=futures)
    if as_json:
        print_json(answer.as_json())
    else:
        print_lines(why_lines(answer, ctx.zone, width()))


def queue(
    user: UserOption = None,
    at: AtOption = None,
    show_all: Annotated[bool, typer.Option("--all", help="Every pending job, not the first 30.")] = False,
    as_json: JsonOption = False,
    cluster: ClusterOption = None,
    lake: LakeOption = None,
) -> None:
    """The queue now: what waits and why, and which GPUs are idle."""
    from queuecast.answers.forecast import Forecaster
    from queuecast.answers.queue import queue_now
    from queuecast.render.why import queue_lines

    ctx = context(lake, cluster)
    forecaster = Forecaster(ctx.lake(), ctx.cluster)
    answer = queue_now(forecaster.lake, forecaster.cluster, ctx.at(at, forecaster.lake, forecaster.cluster), ctx.viewer(user))
    if as_json:
        print_json(answer.as_json())
    else:
        print_lines(queue_lines(answer, ctx.zone, width(), most=10**9 if show_all else 30))
