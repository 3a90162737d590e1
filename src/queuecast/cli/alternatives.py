"""``queuecast alternatives``: what would start or end sooner?"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from queuecast.cli.ask import is_job, script_options
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
from queuecast.errors import UsageError
from queuecast.i18n import _

if TYPE_CHECKING:
    from datetime import datetime

    from queuecast.answers.alternatives_answer import Alternatives
    from queuecast.answers.forecast import Forecaster
    from queuecast.answers.viewer import Viewer

_S = typer.Option
FUTURES = 40
"""Futures played unless told: seconds on a small cluster, a minute or two with hundreds of jobs in the queue."""


def alternatives(
    target: Annotated[
        str | None, typer.Argument(metavar="[SCRIPT|JOBID]", help="A batch script (its #SBATCH lines are read) or a pending job's id.")
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
    gpu_memory: Annotated[float | None, _S("--gpu-memory", metavar="GIB", help="Memory that the task needs on each GPU.")] = None,
    hours: Annotated[float | None, _S("--hours", metavar="H", help="Run time as asked, if you know it (else that of like jobs).")] = None,
    futures: Annotated[int, _S("--futures", metavar="N", help="Drawn futures: more are slower and steadier.", min=4, max=2000)] = FUTURES,
    show_all: Annotated[bool, _S("--all", help="Every option, and what is refused.")] = False,
    user: UserOption = None,
    at: AtOption = None,
    as_json: JsonOption = False,
    parsable: ParsableOption = False,
    cluster: ClusterOption = None,
    lake: LakeOption = None,
) -> None:
    """What would start or end sooner: fewer or other GPUs, a shorter limit, another partition or QOS?"""
    flags = request_flags(locals())
    from queuecast.answers.forecast import Forecaster

    for name, value in (("--gpu-memory", gpu_memory), ("--hours", hours)):
        if value is not None and not (0 < value < 1e5 and math.isfinite(value)):
            raise UsageError(_("{name} {value:g} is out of range").format(name=name, value=value), _("give a number above zero"))
    ctx = context(lake, cluster)
    forecaster = Forecaster(ctx.lake(), ctx.cluster)
    moment = ctx.at(at, forecaster.lake, forecaster.cluster)
    answer = ask(
        forecaster,
        target,
        flags,
        moment,
        ctx.viewer(user),
        futures=futures,
        gpu_memory_gib=gpu_memory,
        run_s=None if hours is None else hours * 3600.0,
    )
    if as_json:
        print_json(answer.as_json())
    elif parsable:
        from queuecast.render.alternatives import parsable as rows

        print(rows(answer))
    else:
        from queuecast.render.alternatives import alternatives_lines

        print_lines(alternatives_lines(answer, ctx.zone, max(110, width()), show_all=show_all))


def ask(
    forecaster: Forecaster,
    target: str | None,
    flags: dict[str, str],
    moment: datetime,
    viewer: Viewer,
    *,
    futures: int = FUTURES,
    gpu_memory_gib: float | None = None,
    run_s: float | None = None,
) -> Alternatives:
    """The answer for a job id, a script or flags, with a progress bar on stderr.

    Raises ``UsageError``, ``NoDataError``, ``NotPermitted``.
    """
    from queuecast.answers.alternatives import alternatives as answer_to
    from queuecast.answers.lookup import find_job
    from queuecast.policy.request import from_options

    job = None
    if target is not None and is_job(target):
        if flags:
            raise UsageError(
                _("a job id and a request cannot be asked about together"),
                _("leave {flags} out").format(flags=", ".join(f"--{f}" for f in flags)),
            )
        job = find_job(forecaster.lake, forecaster.cluster, target, moment)
        viewer.check(job.user, target)
        request = job.request
    else:
        options = script_options(target) if target is not None else {}
        if not options and not flags:
            raise UsageError(
                _("nothing is asked for"),
                _(
                    "for example: queuecast alternatives -p gpu --gres gpu:a100:4 -t 12:00:00, "
                    "or: queuecast alternatives job.sh, or alternatives JOBID"
                ),
            )
        request = from_options({**options, **flags}, viewer.user)
    with _Bar() as bar:
        return answer_to(
            forecaster, request, moment, viewer, job=job, futures=futures, gpu_memory_gib=gpu_memory_gib, run_s=run_s, progress=bar.update
        )


class _Bar:
    """A progress bar on stderr, if that is a terminal."""

    def __enter__(self) -> _Bar:
        self.update: Callable[[int, int], None] | None = None
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress

            from queuecast.twin import ready

            self._progress = Progress(console=Console(stderr=True), transient=True)
            words = _("playing futures")
            task = self._progress.add_task(
                words if ready() else _("compiling the replay, the first time only: about two minutes"), total=None
            )
            self._progress.start()
            self.update = lambda done, total: self._progress.update(task, completed=done, total=total, description=words)
        return self

    def __exit__(self, *_unused: object) -> None:
        if self.update is not None:
            self._progress.stop()
