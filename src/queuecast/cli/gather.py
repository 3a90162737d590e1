"""``queuecast collect``, ``backfill``, ``ingest``, ``rebuild`` and ``doctor``: from Slurm into the lake."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from queuecast import clock
from queuecast.cli.common import ClusterOption, Context, JsonOption, LakeOption, WaitOption, context, print_json, print_lines
from queuecast.errors import NoDataError
from queuecast.i18n import _
from queuecast.render.words import safe

if TYPE_CHECKING:
    from rich.progress import Progress

    from queuecast.collect.ingest import IngestSummary
    from queuecast.collect.live import LiveSource
    from queuecast.store.lake import Lake

SshOption = Annotated[str | None, typer.Option("--ssh", metavar="HOST", help="Run Slurm's commands there, through ssh.")]
BinOption = Annotated[str | None, typer.Option("--slurm-bin", metavar="DIR", help="Folder of Slurm's commands, if not in PATH.")]
QuietOption = Annotated[bool, typer.Option("-q", "--quiet", help="Say nothing unless something is wrong (for cron).")]


def collect(
    ssh: SshOption = None,
    slurm_bin: BinOption = None,
    wait: WaitOption = 0.0,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    cluster: ClusterOption = None,
    lake: LakeOption = None,
) -> None:
    """One snapshot of a live cluster: accounting since the last one, the queue, estimates, nodes, priorities, shares, limits."""
    from queuecast.collect.cycle import collect_once

    ctx = context(lake, cluster)
    store = ctx.lake(create=True)
    with _counting(_("asking Slurm"), quiet or as_json) as progress:
        summary = collect_once(_source(ctx, ssh, slurm_bin), store, progress=progress, wait_s=wait)
    _score(store)
    _renew(store)
    _report(summary, quiet, as_json)


def backfill(
    since: Annotated[str, typer.Option("--since", "-S", metavar="DATE", help="From this day on, e.g. 2024-01-01.")],
    until: Annotated[str | None, typer.Option("--until", "-E", metavar="DATE")] = None,
    window_days: Annotated[float, typer.Option("--window", metavar="DAYS", help="Days asked for in one call of sacct.")] = 7.0,
    pause: Annotated[float, typer.Option("--pause", metavar="SECONDS", help="Pause between calls, for slurmdbd's sake.")] = 1.0,
    again: Annotated[bool, typer.Option("--again", help="Read windows again that were read before.")] = False,
    ssh: SshOption = None,
    slurm_bin: BinOption = None,
    wait: WaitOption = 0.0,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    cluster: ClusterOption = None,
    lake: LakeOption = None,
) -> None:
    """Walk through older accounting, window by window. Interrupted, it goes on where it stopped."""
    from queuecast.collect.cycle import backfill as walk

    ctx = context(lake, cluster)
    start = clock.parse_instant(since, "UTC")
    end = clock.parse_instant(until, "UTC") if until else clock.now()
    with _progress(quiet or as_json) as bar:
        task = bar.add_task(_("accounting"), total=(end - start).total_seconds()) if bar else None

        def progress(name: str, done: datetime, jobs: int) -> None:
            if bar and task is not None:
                bar.update(
                    task,
                    completed=(done - start).total_seconds(),
                    description=_("{name} until {day}: {n} jobs").format(name=safe(name), day=f"{done:%Y-%m-%d}", n=jobs),
                )

        summary = walk(
            _source(ctx, ssh, slurm_bin),
            ctx.lake(create=True),
            start,
            end,
            window=timedelta(days=window_days),
            pause_s=pause,
            again=again,
            progress=progress,
            wait_s=wait,
        )
    _report(summary, quiet, as_json)


def ingest(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Captured output of Slurm's commands: a folder or one file.")],
    tz: Annotated[str | None, typer.Option("--tz", metavar="ZONE", help="Zone of the times in it, e.g. Asia/Shanghai.")] = None,
    demo: Annotated[bool, typer.Option("--demo", hidden=True)] = False,
    wait: WaitOption = 0.0,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    cluster: ClusterOption = None,
    lake: LakeOption = None,
) -> None:
    """Read captured output into the lake. Reading it twice adds nothing twice."""
    from queuecast.collect.ingest import ingest_folder

    ctx = context(lake, None)
    store = ctx.lake(create=True)
    with _counting(_("reading"), quiet or as_json) as progress:
        summary = ingest_folder(folder, store, zone=tz, cluster=cluster, progress=progress, wait_s=wait)
    _score(store)
    if demo:
        with store.transaction("mark as demo") as tx:
            tx.state["demo"] = True
    _report(summary, quiet, as_json)


def rebuild(wait: WaitOption = 0.0, quiet: QuietOption = False, as_json: JsonOption = False, lake: LakeOption = None) -> None:
    """Read the whole archive of Slurm's output again, as after an update that understands more of it."""
    from queuecast.collect.ingest import rebuild as again

    ctx = context(lake, None)
    with _counting(_("reading the archive"), quiet or as_json) as progress:
        summary = again(ctx.lake(), progress=progress, wait_s=wait)
    _report(summary, quiet, as_json)


def doctor(
    ssh: SshOption = None, slurm_bin: BinOption = None, as_json: JsonOption = False, cluster: ClusterOption = None, lake: LakeOption = None
) -> None:
    """What can and can't be seen on this cluster, and why it matters."""
    from queuecast.collect.doctor import examine
    from queuecast.errors import StoreError
    from queuecast.models.training import data_until

    ctx = context(lake, cluster)
    newest = None
    try:
        store = ctx.lake()
        newest = max((t for c in store.clusters if (t := data_until(store, c))), default=None)
    except StoreError:
        pass  # no lake yet is one of the findings
    findings = examine(_source(ctx, ssh, slurm_bin), newest=newest, lake=ctx.lake_path)
    if as_json:
        print_json([asdict(f) for f in findings])
    else:
        marks = {"ok": "ok  ", "warn": "WARN", "fail": "FAIL"}
        lines = []
        for f in findings:
            lines.append(f"{marks[f.level]}  {safe(f.what)}")
            lines += [f"      {safe(t)}" for t in (f.why_it_matters, f.todo) if t]
        print_lines(lines)
    if any(f.level == "fail" for f in findings):
        raise typer.Exit(1)


def _score(store: Lake) -> None:
    """Score the answers whose jobs have started by now."""
    from queuecast.answers.scoring import predictions_of, score_open

    for name in store.refresh().clusters:
        score_open(store, predictions_of(store), name)


def _renew(store: Lake) -> None:
    """Let intervals follow what came since the model was trained, where that is due and cheap."""
    if (store.path / "models" / "current").exists():
        from queuecast.models.renewing import renew_if_due

        renew_if_due(store, clock.now())


def _source(ctx: Context, ssh: str | None, slurm_bin: str | None) -> LiveSource:
    from pathlib import Path

    from queuecast.collect.live import LiveSource
    from queuecast.collect.run import Runner

    runner = Runner(ssh=ssh or ctx.settings.ssh, directory=slurm_bin or ctx.settings.slurm_bin)
    names = tuple(ctx.cluster.split(",")) if ctx.cluster else ()
    return LiveSource(runner, clusters=names, memory=Path(ctx.lake_path).expanduser() / "fields.json")


@contextmanager
def _progress(hidden: bool) -> Iterator[Progress | None]:
    """A progress bar on stderr where a person looks at it."""
    if hidden or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        yield bar


@contextmanager
def _counting(label: str, hidden: bool) -> Iterator[Callable[[str, int], None]]:
    """A bar that tells what is being read and how many rows came of it."""
    with _progress(hidden) as bar:
        task = bar.add_task(label, total=None) if bar else None

        def progress(name: str, rows: int) -> None:
            if bar and task is not None:
                bar.update(task, description=_("read {name}: {rows} rows").format(name=safe(name), rows=rows))

        yield progress


def _report(summary: IngestSummary, quiet: bool, as_json: bool) -> None:
    """Counts, what was rejected and why, what failed. Exit 1 if nothing at all came in and something failed."""
    if as_json:
        print_json(
            {
                "rows": dict(summary.rows),
                "rejected": summary.rejected,
                "values_set_to_null": summary.nulled,
                "causes": dict(summary.causes),
                "kept_not_read": summary.kept,
                "notes": summary.notes,
                "failures": [
                    {"kind": f.kind, "cluster": f.cluster, "error": f.error.message, "hint": f.error.hint} for f in summary.failures
                ],
                "duration_s": round(summary.duration_s, 2),
            }
        )
    elif not quiet:
        lines = [
            _("read in {span}: ").format(span=f"{summary.duration_s:.1f} s")
            + (", ".join(f"{n} {t}" for t, n in summary.rows.items() if t != "rejects") or _("nothing new"))
        ]
        if summary.rejected or summary.nulled:
            lines.append(
                _("{r} records could not be read and {v} values were set to null; all are kept in the table rejects:").format(
                    r=summary.rejected, v=summary.nulled
                )
            )
            lines += [f"  {n:>7}  {safe(cause)}" for cause, n in summary.causes.most_common(8)]
        if summary.kept:
            lines.append(
                _("kept in the archive, not read into a table yet: {names}").format(
                    names=", ".join(sorted({safe(f) for f, _k in summary.kept}))
                )
            )
        lines += [safe(n) for n in summary.notes]
        print_lines(lines)
    for failure in summary.failures:
        print(f"queuecast: {failure.kind}: {safe(failure.error.message)}", file=sys.stderr)
        if failure.error.hint:
            print(f"  {safe(failure.error.hint)}", file=sys.stderr)
    if summary.failures and not sum(summary.rows.values()):
        raise NoDataError(_("Slurm gave nothing this time; the lake is as it was"), _("queuecast doctor looks for the cause"))
