"""The tables of an evaluation report: figures by trace, slice and model in a person's units."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from queuecast.i18n import N_, _
from queuecast.models.measures import Cell
from queuecast.models.measures_slices import CPUS, GPUS
from queuecast.render.report_blocks import Table, Value
from queuecast.render.words import span

SLICES = ("all", "gpu", "submit", "pending")
"""Order of slices; others follow by name. The GPU line is always there."""

SLICE_NAMES = {"all": N_("all jobs"), "gpu": N_("GPU jobs"), "submit": N_("asked at submission"), "pending": N_("asked while pending")}


@dataclass(frozen=True)
class Measure:
    """A measure in tables: heading, meaning in plain words, and what is better (-1 less, 1 more, 0 its claim)."""

    title: str
    meaning: str
    better: int


MEASURES = {
    "medae_s": Measure(N_("median error"), N_("half of the predicted medians were closer to the wait than this"), -1),
    "within_2x": Measure(N_("within 2x"), N_("share of jobs whose predicted median was at most twice or at least half the wait"), 1),
    "mse_log10": Measure(N_("MSE log10"), N_("mean squared error of log10(seconds): 1 is wrong by a factor of ten"), -1),
    "pinball_log1p": Measure(N_("pinball loss"), N_("mean loss of the quantiles at 5 to 95 % of log(1 + seconds)"), -1),
    "crps_log10": Measure(
        N_("CRPS log10"),
        N_("how far the whole distribution of log10(seconds) was from the wait; for a sure prediction the absolute error"),
        -1,
    ),
    "coverage_80": Measure(N_("80 % held"), N_("share of waits inside the interval that claims 80 %; best at 80 %, not above"), 0),
    "width_80_median_s": Measure(N_("80 % width"), N_("median width of that interval; narrow is good only where it holds"), 0),
    "brier_4h": Measure(N_("Brier 4 h"), N_("mean squared error of the probability to start within 4 hours"), -1),
    "brier_skill_1h": Measure(N_("skill 1 h"), N_("as skill 4 h, of the probability to start within 1 hour"), 1),
    "brier_skill_4h": Measure(
        N_("skill 4 h"),
        N_("part of the squared error of the partition's past (climatology) that the probability to start within 4 hours saves"),
        1,
    ),
    "brier_skill_24h": Measure(N_("skill 24 h"), N_("as skill 4 h, of the probability to start within 24 hours"), 1),
    "ece_1h": Measure(N_("ECE 1 h"), N_("mean gap between the probability to start within 1 hour and the share that did start"), -1),
    "ece_4h": Measure(N_("ECE 4 h"), N_("the same for 4 hours"), -1),
    "ece_24h": Measure(N_("ECE 24 h"), N_("the same for 24 hours"), -1),
    "auroc_4h": Measure(
        N_("AUROC 4 h"), N_("chance that a job that started within 4 hours was told a higher probability than one that did not"), 1
    ),
    "coverage_50": Measure(N_("50 % held"), "", 0),
    "coverage_90": Measure(N_("90 % held"), "", 0),
    "coverage_95": Measure(N_("95 % held"), "", 0),
    "coverage_80_strict": Measure(
        N_("80 % held, strict"), N_("as 80 % held, but censored jobs that waited longer than the upper end count as misses"), 0
    ),
    "width_95_median_s": Measure(N_("95 % width"), "", 0),
    "winkler_80_log1p": Measure(
        N_("Winkler 80 %"), N_("width of the 80 % interval in log(1 + seconds) plus ten times the distance of each miss"), -1
    ),
    "winkler_95_log1p": Measure(N_("Winkler 95 %"), "", -1),
    "winkler_80_s": Measure(N_("Winkler 80 %, time"), N_("the same score on the clock: the longest waits decide"), -1),
    "unanswered": Measure(N_("unanswered"), N_("share of cases whose distribution does not reach one half; counted as wrong"), -1),
    "bound_50_held": Measure(N_("50 % bound held"), "", 0),
    "bound_95_held": Measure(N_("95 % bound held"), N_("share of waits not above the predicted 95 % quantile"), 0),
    "bound_95_held_strict": Measure(N_("95 % held, strict"), "", 0),
    "bound_50_tightness": Measure(N_("50 % tightness"), "", 1),
    "bound_95_tightness": Measure(
        N_("95 % tightness"), N_("mean of wait / bound where the bound held: 1 is a bound that was needed in full"), 1
    ),
    "bound_95_tightness_median": Measure(N_("median tightness"), "", 1),
}

HEADLINE = ("medae_s", "within_2x", "mse_log10", "pinball_log1p", "crps_log10", "coverage_80", "width_80_median_s", "brier_4h", "auroc_4h")
CHANCES = ("ece_1h", "ece_4h", "ece_24h", "brier_skill_1h", "brier_skill_4h", "brier_skill_24h")
INTERVALS = (
    "coverage_50",
    "coverage_80",
    "coverage_90",
    "coverage_95",
    "coverage_80_strict",
    "width_80_median_s",
    "width_95_median_s",
    "winkler_80_log1p",
    "winkler_95_log1p",
    "winkler_80_s",
    "unanswered",
)
BOUNDS = ("bound_50_held", "bound_50_tightness", "bound_95_held", "bound_95_held_strict", "bound_95_tightness", "bound_95_tightness_median")

COVERAGE_ONLY = frozenset({"cases", "coverage_50", "coverage_80", "coverage_90", "coverage_95"})

Number = tuple[float, float, float]
"""Value and its 95 % interval; nan where unknown."""


class Figures:
    """Figures by (trace, slice, model, measure). Raises ValueError if one lacks a field or holds no number."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._found: dict[tuple[str, str, str], dict[str, Number]] = {}
        for row in rows:
            try:
                key = str(row["trace"]), str(row["slice"]), str(row["model"])
                number = _number(row["value"]), _number(row.get("low")), _number(row.get("high"))
                self._found.setdefault(key, {})[str(row["measure"])] = number
            except (KeyError, TypeError) as wrong:
                raise ValueError(f"a figure needs trace, slice, model, measure and a number as value: {row!r}") from wrong

    def __bool__(self) -> bool:
        return bool(self._found)

    @property
    def traces(self) -> list[str]:
        """In the order they came."""
        return list(dict.fromkeys(trace for trace, _slice, _model in self._found))

    def slices(self, trace: str) -> list[str]:
        """Those of a trace in the order of ``SLICES``, GPU jobs always among them; not those of coverage alone
        (``hour=09``), which have a table of their own."""
        here = {part for (name, part, _model), found in self._found.items() if name == trace and not COVERAGE_ONLY.issuperset(found)} | {
            "gpu"
        }
        return [s for s in SLICES if s in here] + sorted(here - set(SLICES))

    def models(self, trace: str, part: str) -> dict[str, dict[str, Number]]:
        """Measures by model, in the order they came."""
        return {model: found for (name, s, model), found in self._found.items() if (name, s) == (trace, part)}


def comparison(figures: Figures, trace: str, measures: Sequence[str], *, mark: bool = True) -> Table:
    """Models below their slice; ``mark`` the best of a slice where less or more is better."""
    rows: list[list[str | Value]] = []
    for part in figures.slices(trace):
        models = figures.models(trace, part)
        if not models:
            rows.append([_("{slice}: none among the cases of this trace").format(slice=slice_name(part))])
            continue
        rows.append([slice_name(part)])
        best = {m: _best(m, [found.get(m) for found in models.values()]) for m in measures} if mark else {}
        for model, found in models.items():
            row: list[str | Value] = [model, Value(_count(found.get("cases")))]
            for measure in measures:
                number = found.get(measure)
                is_best = number is not None and len(models) > 1 and number[0] == best.get(measure)
                row.append(value(measure, number, is_best))
            rows.append(row)
    return Table([_("model"), _("cases"), *(_(MEASURES[m].title) for m in measures)], rows)


def meanings(measures: Sequence[str]) -> Table:
    """How to read the columns."""
    words = {-1: _("less"), 1: _("more"), 0: _("the claim")}
    rows = [[_(MEASURES[m].title), _(MEASURES[m].meaning), words[MEASURES[m].better]] for m in measures if MEASURES[m].meaning]
    for row, measure in zip(rows, [m for m in measures if MEASURES[m].meaning], strict=True):
        if measure.startswith("width"):
            row[2] = _("less, if it holds")
    return Table([_("measure"), _("what it is"), _("better")], rows)


def coverage_table(cells: Sequence[Cell], group: str, most: int) -> Table:
    """The largest ``most`` cells, in their order."""
    size = {id(c) for c in sorted(cells, key=lambda c: -c.jobs)[:most]}
    shares = list(cells[0].coverage) if cells else []
    rows: list[list[str | Value]] = [
        [cell_name(cell, group), Value(f"{cell.jobs:,}"), *(Value(share_text(cell.coverage[s])) for s in shares)]
        for cell in cells
        if id(cell) in size
    ]
    claims = [_("claims {share}").format(share=f"{round(100 * s)} %") for s in shares]
    caption = "" if len(cells) <= most else _("the {n} largest of {m}").format(n=most, m=len(cells))
    return Table([group_name(group), _("started jobs"), *claims], rows, caption)


def slice_name(part: str) -> str:
    """A slice in words; one that is not known is shown as it is."""
    return _(SLICE_NAMES[part]) if part in SLICE_NAMES else part


def group_name(group: str) -> str:
    """Heading of a group."""
    names = {
        "partition": _("partition"),
        "size": _("size"),
        "month": _("month"),
        "account": _("account"),
        "user": _("user"),
        "gpus": _("GPUs asked for"),
        "user_jobs": _("earlier jobs of the user"),
        "hour": _("hour of the day (UTC)"),
    }
    return names.get(group, group)


def cell_name(cell: Cell, group: str) -> str:
    """A cell in words: size classes (``features.history.size_class``) get theirs, an empty text a word."""
    key = cell.key.get(group, "")
    if group == "size" and isinstance(key, int):
        if key in GPUS:
            return _("GPUs: {n}").format(n=GPUS[key])
        if key in CPUS:
            return _("CPUs: {n}").format(n=CPUS[key])
    return str(key) or _("(none)")


def value(measure: str, number: Number | None, best: bool = False) -> Value:
    """A figure in its unit, with its interval where there is one."""
    if number is None or not math.isfinite(number[0]):
        return Value("–")
    middle, low, high = number
    around = ""
    if math.isfinite(low) and math.isfinite(high):
        first, last = _text(measure, low), _text(measure, high)
        around = f"{first.removesuffix(' %') if last.endswith(' %') else first} – {last}"
    return Value(_text(measure, middle), around, best)


def share_text(share: float) -> str:
    """A measured share: unlike a probability it may well be 0 or 100 %."""
    return f"{100 * share:.1f} %" if math.isfinite(share) else "–"


def _text(measure: str, number: float) -> str:
    if measure.endswith("_s"):
        return _("{n} s").format(n=f"{number:.0f}") if number < 120 else span(number)
    if measure.startswith(("coverage", "within", "unanswered", "open")) or "held" in measure:
        return share_text(number)
    if abs(number) >= 1000:
        return f"{number:,.0f}"
    return f"{number:#.3g}".rstrip(".") if abs(number) >= 1 else f"{number:.3f}"


def _best(measure: str, numbers: Sequence[Number | None]) -> float | None:
    known = [n[0] for n in numbers if n is not None and math.isfinite(n[0])]
    better = MEASURES[measure].better
    if not known or not better:
        return None
    return max(known) if better > 0 else min(known)


def _count(number: Number | None) -> str:
    return "–" if number is None or not math.isfinite(number[0]) else f"{number[0]:,.0f}"


def _number(raw: Any) -> float:
    """None is unknown. Raises TypeError for what is no number."""
    if raw is None:
        return float("nan")
    if isinstance(raw, (str, bytes)):
        raise TypeError("not a number")
    return float(raw)
