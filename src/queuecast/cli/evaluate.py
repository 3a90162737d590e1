"""``queuecast evaluate``: how well answers hold on one's own lake."""

from __future__ import annotations

import json
import math
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from queuecast import clock
from queuecast.cli.common import ClusterOption, JsonOption, LakeOption, ParsableOption, context, print_lines
from queuecast.cli.gather import QuietOption, _progress
from queuecast.errors import UsageError
from queuecast.i18n import _
from queuecast.render.words import percent, safe, span

if TYPE_CHECKING:
    from collections.abc import Callable

    from queuecast.models.evaluation import Evaluation

FIELDS = ("trace", "slice", "model", "measure", "value", "low", "high")
HOURS = (1, 4, 24)
BESIDE_SLURM = "queuecast, where Slurm gave an estimate"
MODELS = ("queuecast", "like jobs", "last similar job", "partition climatology", "qbets", "slurm", BESIDE_SLURM)


def evaluate(
    days: Annotated[float | None, typer.Option("--days", metavar="N", help="Measure the last N days (default: the last third).")] = None,
    since: Annotated[
        str | None, typer.Option("--since", "-S", metavar="TIME", help="Measure from this moment on: 2026-06-10, 14d (ago).")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", "-E", metavar="TIME", help="As if it were then: nothing that came later is used.")
    ] = None,
    refits: Annotated[int, typer.Option("--refits", metavar="N", help="Refit the model so often over these days.")] = 4,
    report: Annotated[Path | None, typer.Option("--report", metavar="DIR", help="Write a report with plots there.")] = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    parsable: ParsableOption = False,
    cluster: ClusterOption = None,
    lake: LakeOption = None,
) -> None:
    """Make past answers again with what was known then, and measure them beside baselines and Slurm's estimates."""
    from queuecast.answers.evaluate import evaluate_lake
    from queuecast.answers.forecast import Forecaster

    if refits < 1 or (days is not None and not days > 0):
        raise UsageError(_("--days and --refits must be above zero"), _("for example: queuecast evaluate --days 7 --refits 4"))
    here = context(lake, None)
    store = here.lake()
    name = Forecaster(store, cluster).cluster
    now = clock.now()
    begin, end = (clock.parse_instant(text, here.zone) if text else None for text in (since, until))
    _check_times(days, begin, end, now)
    with _progress(quiet or as_json or parsable) as bar:
        task = bar.add_task(safe(name), total=None) if bar else None

        def progress(done: int, total: int) -> None:
            if bar and task is not None:
                bar.update(task, completed=done, total=total)

        found = evaluate_lake(store, name, now, days=days, since=begin, until=end, refits=refits, progress=progress)
    if as_json:
        for figure in found.figures:
            print(json.dumps({k: _finite(figure[k]) for k in FIELDS}))
    elif parsable:
        print_lines(["|".join(FIELDS), *("|".join(_cell(figure[k]) for k in FIELDS) for figure in found.figures)])
    elif not quiet:
        print_lines(_table(found, name))
    if report is not None:
        from queuecast.render.report import ReportData, write_report

        title = _("How answers held on {cluster}").format(cluster=name)
        for path in write_report(found.figures, ReportData(title=title, facts=[], shown=found.shown), report):
            if not (as_json or parsable):
                print_lines([str(path)])


def _check_times(days: float | None, begin: datetime | None, end: datetime | None, now: datetime) -> None:
    """Raises ``UsageError`` for times that exclude each other."""
    if days is not None and begin is not None:
        raise UsageError(_("--days and --since say the same twice"), _("give one of them: --since 2026-06-01 or --days 14"))
    if begin is not None and begin >= min(now, end or now):
        raise UsageError(
            _("--since must be before --until, and before now"), _("for example: --since 2026-06-01 --until 2026-06-15, or --since 14d")
        )


def _finite(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _cell(value: object) -> str:
    value = _finite(value)
    return "" if value is None else safe(str(value)).replace("|", "\\x7c")


def _table(found: Evaluation, cluster: str) -> list[str]:
    value = {(f["slice"], f["model"], f["measure"]): f["value"] for f in found.figures}

    def number(slice_: str, model: str, measure: str) -> float:
        known = value.get((slice_, model, measure))
        return float(known) if isinstance(known, int | float) else math.nan

    def share(x: float) -> str:
        return "–" if math.isnan(x) else percent(x)

    def decimals(x: float) -> str:
        return "–" if math.isnan(x) else f"{x:.3f}"

    words = {"all": _("all"), "gpu": _("GPU jobs"), "at submit": _("at submit"), "pending": _("pending")}
    told = {BESIDE_SLURM: _("… where Slurm told one")}
    lines = [
        _("{cluster}: of {n} answers made again, {held} of the 80 % intervals held").format(
            cluster=safe(cluster), n=f"{number('all', 'queuecast', 'cases'):,.0f}", held=share(number("all", "queuecast", "coverage_80"))
        ),
        *_beside_slurm(number),
        "",
        f"{_('asked'):<12}{_('model'):<24}{_('answers'):>9}{_('within 2x'):>11}{_('off by'):>12}{_('pinball'):>9}{_('80 % held'):>11}"
        f"{_('95 % bound'):>12}"
        + "".join(f"{_('ECE {n} h').format(n=h):>10}" for h in HOURS)
        # Skill of a probability: how much of the squared error of the partition's past is saved.
        + "".join(f"{_('skill {n} h').format(n=h):>12}" for h in HOURS),
    ]
    for slice_ in words:
        for model in MODELS:
            cases = number(slice_, model, "cases")
            if math.isnan(cases):
                continue
            off = number(slice_, model, "medae_s")
            sure = model == "slurm"  # one moment, no interval
            lines.append(
                f"{words[slice_]:<12}{told.get(model, model):<24}{cases:>9,.0f}{share(number(slice_, model, 'within_2x')):>11}"
                f"{'–' if math.isnan(off) else span(off):>12}{number(slice_, model, 'pinball_log1p'):>9.3f}"
                f"{'–' if sure else share(number(slice_, model, 'coverage_80')):>11}"
                f"{'–' if sure else share(number(slice_, model, 'bound_95_held')):>12}"
                + "".join(f"{decimals(number(slice_, model, f'ece_{h}h')):>10}" for h in HOURS)
                + "".join(f"{decimals(number(slice_, model, f'brier_skill_{h}h')):>12}" for h in HOURS)
            )
    return lines


def _beside_slurm(number: Callable[[str, str, str], float]) -> list[str]:
    """Both on the same answers: Slurm's estimates are there for some jobs alone, and those are not like the others."""
    cases = number("all", BESIDE_SLURM, "cases")
    ours, slurm, closer = (
        number("all", model, measure)
        for model, measure in ((BESIDE_SLURM, "medae_s"), ("slurm", "medae_s"), (BESIDE_SLURM, "closer_than_slurm"))
    )
    if any(math.isnan(x) for x in (cases, ours, slurm, closer)):
        return []
    return [
        _(
            "On the {n} answers where Slurm gave an estimate, queuecast was off by {ours} (median), Slurm by {slurm}; queuecast was "
            "closer for {closer} of the jobs that started."
        ).format(n=f"{cases:,.0f}", ours=span(ours), slurm=span(slurm), closer=percent(closer))
    ]
