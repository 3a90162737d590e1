"""The report of an evaluation as HTML and as Markdown: what was asked, how models compare, and whether answers held."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from queuecast.i18n import _
from queuecast.models.evaluation import BESIDE_SLURM, SLURM
from queuecast.models.measures_summary import ReportData, Shown
from queuecast.render import report_plots
from queuecast.render.report_blocks import Block, Heading, Plot, Table, Text, Value, as_html, as_markdown
from queuecast.render.report_tables import (
    BOUNDS,
    CHANCES,
    HEADLINE,
    INTERVALS,
    Figures,
    cell_name,
    comparison,
    coverage_table,
    group_name,
    meanings,
    slice_name,
    value,
)
from queuecast.render.words import span

__all__ = ["FORMATS", "ReportData", "write_report"]

FORMATS = ("html", "md")
PLOTS = "report_plots"
MOST_ROWS = 60
"""So many cells a table of coverage shows."""


def write_report(
    figures: Iterable[Mapping[str, Any]], plots: ReportData, folder: str | Path, formats: Sequence[str] = FORMATS
) -> list[Path]:
    """Write ``report.html`` (pictures inside) and ``report.md`` (pictures in ``report_plots`` beside it) into ``folder``,
    which is made if missing; returns the paths of the reports.

    ``figures`` are mappings with trace, slice (all, gpu, submit, pending or another name), model, measure (a name of
    ``measure_all``), value and, where known, low and high: its 95 % interval; None and nan are unknown. Texts are in the
    language of ``queuecast.i18n``. Without matplotlib the report has no pictures and says so. Raises ValueError for an
    unknown format or a figure without its fields, OSError if the folder cannot be written.
    """
    unknown = sorted(set(formats) - set(FORMATS))
    if unknown:
        raise ValueError(f"unknown report formats: {', '.join(unknown)}; known are {', '.join(FORMATS)}")
    blocks = _blocks(Figures(figures), plots)
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    written = []
    if "html" in formats:
        written.append(_write(target / "report.html", as_html(blocks).encode()))
    if "md" in formats:
        for block in blocks:
            if isinstance(block, Plot):
                (target / PLOTS).mkdir(exist_ok=True)
                _write(target / PLOTS / block.name, block.png)
        written.append(_write(target / "report.md", as_markdown(blocks, PLOTS).encode()))
    return written


def _write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def _blocks(figures: Figures, plots: ReportData) -> list[Block]:
    blocks: list[Block] = [Heading(1, plots.title or _("How well waits were predicted")), *_method(plots)]
    blocks.append(Heading(2, _("Models compared")))
    if not figures:
        blocks.append(
            Text(_("There are no figures yet. Evaluate on a stretch of time with started jobs, then write the report again."), hint=True)
        )
    else:
        blocks += [*_by_trace(figures, HEADLINE), *_beside_slurm(figures), Heading(3, _("How to read the columns")), meanings(HEADLINE)]
        blocks.append(Heading(2, _("Chances: are they what they claim, and better than the partition's past?")))
        blocks += [*_by_trace(figures, CHANCES), meanings(CHANCES)]
        blocks.append(Heading(2, _("Intervals: do they hold, and how wide are they?")))
        blocks += [
            Text(
                _(
                    "An interval that claims 80 % should hold for 80 % of jobs: below, it promises too much; above, it is wider than it "
                    "need be. The Winkler score weighs width against misses; less is better."
                )
            ),
            *_by_trace(figures, INTERVALS),
        ]
        blocks.append(Heading(2, _("Upper bounds")))
        blocks += [
            Text(_('Used as "it starts by then at the latest": how often the bound held, and how much of it was needed.')),
            *_by_trace(figures, BOUNDS),
            meanings([*BOUNDS, "coverage_80_strict", "winkler_80_log1p", "winkler_80_s", "unanswered"]),
        ]
    if not plots.shown:
        blocks.append(Heading(2, _("In pictures")))
        blocks.append(
            Text(_("No predictions were kept to draw. Summarise those of one model at least and write the report again."), hint=True)
        )
    elif not report_plots.available():
        blocks.append(Text(_("Pictures need matplotlib: pip install 'queuecast[plot]', then write the report again."), hint=True))
    for number, shown in enumerate(plots.shown, 1):
        blocks += _shown(shown, f"{number:02d}")
    return blocks


def _method(plots: ReportData) -> list[Block]:
    blocks: list[Block] = [
        Heading(2, _("What was asked, and how it was measured")),
        Text(
            _(
                "Each case is one question at one moment of the past: how much longer will this job wait? The answer is a "
                "distribution, made from what was known at that moment alone. The origin rolls forward: a model learns from the jobs "
                "before the origin, with their outcomes as known then (a job that had not started yet counts as having waited at "
                "least so long), answers the questions of the stretch that follows, and the origin moves on. Nothing is measured on "
                "jobs whose outcome a model could have seen."
            )
        ),
        Text(
            _(
                "Errors, coverage and losses are over jobs that started. Jobs that were cancelled first, or were still pending at the "
                "end, are censored: they count where the time they waited settles the matter, and in the strict shares. Small figures "
                "are 95 % intervals from drawing whole days again, since jobs of one day share one queue; bold is the best of a slice."
            )
        ),
    ]
    if plots.facts:
        blocks.append(Table([_("setting"), _("here")], [list(fact) for fact in plots.facts]))
    return blocks


def _by_trace(figures: Figures, measures: Sequence[str]) -> list[Block]:
    blocks: list[Block] = []
    for trace in figures.traces:
        blocks += [Heading(3, trace), comparison(figures, trace, measures)]
    return blocks


def _beside_slurm(figures: Figures) -> list[Block]:
    """One sentence per trace with Slurm's estimates: both on the answers where there was one."""
    blocks: list[Block] = []
    for trace in figures.traces:
        models = figures.models(trace, "all")
        ours, slurm = models.get(BESIDE_SLURM, {}), models.get(SLURM, {})
        numbers = [ours.get("cases"), ours.get("medae_s"), slurm.get("medae_s"), ours.get("closer_than_slurm")]
        if any(n is None or not math.isfinite(n[0]) for n in numbers):
            continue
        said = [value(m, n) for m, n in zip(("cases", "medae_s", "medae_s", "within"), numbers, strict=True)]
        around = f" ({said[3].range})" if said[3].range else ""
        blocks.append(
            Text(
                _(
                    "{trace}: on the {n} answers where Slurm gave an estimate, queuecast was off by {ours} (median), Slurm by {slurm}; "
                    "queuecast was closer for {closer} of the jobs that started."
                ).format(
                    trace=trace,
                    n=f"{numbers[0][0]:,.0f}" if numbers[0] else "",
                    ours=said[1].text,
                    slurm=said[2].text,
                    closer=said[3].text + around,
                )
            )
        )
    return blocks


def _shown(shown: Shown, number: str) -> list[Block]:
    """The pictures of one model on one slice."""
    blocks: list[Block] = [Heading(2, f"{shown.trace}: {shown.model}, {slice_name(shown.slice)}")]
    if not shown.started:
        blocks.append(
            Text(
                _("None of the {n} cases has a known start, so there is nothing to draw. Evaluate a later stretch.").format(n=shown.cases),
                hint=True,
            )
        )
        return blocks
    blocks.append(
        Text(
            _("{n} cases asked about from {first} to {last} (UTC); {started} of them started.").format(
                n=f"{shown.cases:,}", first=_day(shown.first), last=_day(shown.last), started=f"{shown.started:,}"
            )
        )
    )
    draw = _Drawer(number)
    blocks.append(Heading(3, _("Chances to start within 1, 4 and 24 hours")))
    blocks += draw.plot(
        "reliability",
        _("Share of jobs that started against the probability told, per horizon. On the diagonal, chances are what they claim to be."),
        lambda: report_plots.reliability({h: c for h, c in shown.reliability.items() if len(c.line.cases)}),
    )
    blocks.append(Heading(3, _("Where waits fell in their distributions")))
    blocks += draw.plot(
        "pit",
        _("Histogram of the probability integral transform. Flat is calibrated, a hump too wide, a bowl too narrow."),
        lambda: report_plots.pit(shown.pit),
    )
    blocks.append(Heading(3, _("Predicted median and the wait that came")))
    blocks += draw.plot(
        "medians",
        _("Wait that came against predicted median, both on log axes; waits under one second are shown as one."),
        lambda: report_plots.told_and_came(shown.told_s, shown.came_s),
    )
    blocks.append(Heading(3, _("How wide the intervals are")))
    blocks += draw.plot("widths", _("Width of the intervals by claimed share."), lambda: report_plots.widths(shown.widths))
    blocks.append(_width_table(shown))
    blocks.append(Heading(3, _("Over time")))
    if shown.periods:
        blocks += draw.plot(
            "time",
            _("Share of 80 % intervals that held, and median absolute error, by periods of {n} days.").format(n=shown.periods[0].days),
            lambda: report_plots.over_time(shown.periods),
        )
    else:
        blocks.append(_too_few())
    for place, (group, cells) in enumerate(shown.cells.items()):
        blocks.append(Heading(3, _("What held, by {group}").format(group=group_name(group))))
        if not cells:
            blocks.append(_too_few())
            continue
        names = [cell_name(cell, group) for cell in cells]
        blocks += draw.plot(
            f"coverage-{place + 1}",
            _("Share of intervals that held, by {group}; lines are the claims.").format(group=group_name(group)),
            lambda cells=cells, names=names: report_plots.coverage(cells, names),  # type: ignore[misc]  # bound now, not at the end
        )
        blocks.append(coverage_table(cells, group, MOST_ROWS))
    return blocks


class _Drawer:
    """Draws and names the pictures of one part; draws none where matplotlib is missing. File names hold no text of users."""

    def __init__(self, number: str) -> None:
        self._number = number
        self._can = report_plots.available()

    def plot(self, name: str, alt: str, draw: Callable[[], bytes]) -> list[Block]:
        if not self._can:
            return []
        return [Text(alt), Plot(f"{self._number}-{name}.png", alt, draw())]


def _width_table(shown: Shown) -> Table:
    rows: list[list[str | Value]] = [
        [f"{round(100 * share)} %", *(Value(span(float(w))) for w in found)] for share, found in sorted(shown.widths.items())
    ]
    head = [_("claimed share"), *(_("{share} of cases below").format(share=f"{s} %") for s in (10, 25, 50, 75, 90))]
    return Table(head, rows)


def _too_few() -> Text:
    return Text(_("Too few started jobs to tell. Evaluate a longer stretch, or ask for fewer jobs per line."), hint=True)


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d") if math.isfinite(at) else "–"
