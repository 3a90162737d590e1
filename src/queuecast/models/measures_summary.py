"""What the plots of an evaluation need, small enough to keep: curves, histograms and tables instead of cases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from queuecast.features.history import Flags, Floats
from queuecast.models.bootstrap import days_of, drawn_days
from queuecast.models.measures import DAY_S, Cell, Outcomes, coverage_by
from queuecast.models.measures_distribution import PINBALL_LEVELS, Quantiles, pinball_log1p, pit_histogram, quantiles, within
from queuecast.models.measures_intervals import SHARES, ends, held
from queuecast.models.measures_probabilities import HOURS, Reliability, labels, reliability
from queuecast.models.measures_statistic import equal_mass
from queuecast.models.waits import Waits

PAIRS = 20_000
"""So many pairs of predicted and actual wait are kept, drawn at random."""
PERIODS_D = (1, 7, 28)
MOST_PERIODS = 60
WIDTH_AT = (0.1, 0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True)
class Curve:
    """Reliability at one horizon; ``low`` and ``high`` (bins,) are the 95 % interval of the share that came, by drawing
    days (nan with fewer than two)."""

    line: Reliability
    low: Floats
    high: Floats


@dataclass(frozen=True)
class Period:
    """Started jobs asked about in [``begin``, ``begin`` + ``days``): epoch seconds, UTC."""

    begin: float
    days: int
    jobs: int
    coverage_80: float
    medae_s: float
    pinball_log1p: float


@dataclass(frozen=True)
class Shown:
    """One model on one slice of one trace. ``told_s`` and ``came_s`` are predicted medians and waits of up to 20,000
    started jobs; ``widths`` has per claimed share the widths in seconds at 10, 25, 50, 75 and 90 % of cases; ``first`` and
    ``last`` are epoch seconds (UTC), nan without cases; ``cells`` are by group: partition, size, month."""

    trace: str
    slice: str
    model: str
    cases: int
    started: int
    first: float
    last: float
    reliability: dict[int, Curve]
    pit: Floats
    told_s: Floats
    came_s: Floats
    cells: dict[str, list[Cell]]
    periods: list[Period]
    widths: dict[float, Floats]


@dataclass(frozen=True)
class ReportData:
    """What a report tells beside its figures. ``facts`` are pairs of what and how much (training window, origins...)."""

    title: str
    facts: list[tuple[str, str]] = field(default_factory=list)
    shown: list[Shown] = field(default_factory=list)


def summarise(
    waits: Waits,
    wait: Floats,
    started: Flags,
    asked: Floats,
    groups: Mapping[str, npt.NDArray[np.generic]],
    *,
    trace: str,
    slice: str,
    model: str,
    minimum: int = 100,
) -> Shown:
    """Condense predictions and outcomes (as for ``measure_all``). ``groups`` are texts or codes (n,) to tell coverage by,
    each on its own; the month of the moment asked (UTC) is added. ``minimum``: started jobs that a cell or a period needs.
    Raises ValueError as ``measure_all`` does."""
    known = ~np.isnan(wait)
    cases = Outcomes.of(waits, wait, started, asked)
    waits, wait, started, asked = cases.waits, cases.wait, cases.started, cases.asked
    names = {name: values[known] for name, values in groups.items()}
    names["month"] = asked.astype("datetime64[s]").astype("datetime64[M]").astype(str)
    told = quantiles(waits)
    rows = np.flatnonzero(started)
    if len(rows) > PAIRS:
        rows = np.sort(np.random.default_rng(1).choice(rows, PAIRS, replace=False))
    widths = {share: high - low for share in SHARES for low, high in [ends(told, share)]}
    return Shown(
        trace=trace,
        slice=slice,
        model=model,
        cases=len(wait),
        started=int(started.sum()),
        first=float(asked.min()) if len(asked) else float("nan"),
        last=float(asked.max()) if len(asked) else float("nan"),
        reliability={h: _curve(within(waits, 3600.0 * h), labels(wait, started, 3600.0 * h), asked) for h in HOURS},
        pit=pit_histogram(waits, wait, started),
        told_s=told.at(0.5)[rows],
        came_s=wait[rows],
        cells={name: coverage_by(waits, wait, started, {name: values}, minimum=minimum) for name, values in names.items()},
        periods=_periods(asked, started, held(told, 0.8, wait, started), np.abs(told.at(0.5) - wait), _pinball(told, wait), minimum),
        widths={share: np.quantile(width, WIDTH_AT) if len(width) else np.full(len(WIDTH_AT), np.nan) for share, width in widths.items()},
    )


def _curve(told: Floats, came: Floats, asked: Floats) -> Curve:
    """The curve, with intervals from sums by day and bin."""
    known = ~np.isnan(came)
    told, came = told[known], came[known]
    line = reliability(told, came)
    codes, counts = drawn_days(days_of(asked[known]))
    size = len(line.cases)
    if not len(counts):
        return Curve(line, np.full(size, np.nan), np.full(size, np.nan))
    cells = codes * size + equal_mass(told)
    shape = (counts.shape[1], size)
    hits = counts @ np.bincount(cells, came, minlength=shape[0] * size).reshape(shape)
    jobs = counts @ np.bincount(cells, minlength=shape[0] * size).reshape(shape)
    # A draw without the days of a bin says nothing of it; it is taken as the curve's own value.
    drawn = np.where(jobs > 0, hits / np.maximum(jobs, 1.0), line.came)
    low, high = np.percentile(drawn, [2.5, 97.5], axis=0)
    return Curve(line, low, high)


def _pinball(told: Quantiles, wait: Floats) -> Floats:
    """Mean pinball loss (n,) over the usual levels."""
    total = np.zeros(len(wait))
    for level in PINBALL_LEVELS:
        total += pinball_log1p(told, wait, level)
    return total / len(PINBALL_LEVELS)


def _periods(asked: Floats, started: Flags, inside: Floats, error: Floats, loss: Floats, minimum: int) -> list[Period]:
    """By days, weeks or four weeks from the first UTC day on: the shortest that makes at most sixty. Periods with fewer
    than ``minimum`` started jobs are left out."""
    if not started.any():
        return []
    begin = float(asked.min() // DAY_S * DAY_S)
    span = (asked.max() - begin) / DAY_S
    days = next((d for d in PERIODS_D if span <= d * MOST_PERIODS), PERIODS_D[-1])
    place = ((asked - begin) // (days * DAY_S)).astype(np.int64)
    found = []
    for number in np.unique(place[started]):
        rows = np.flatnonzero(started & (place == number))
        if len(rows) >= max(minimum, 1):
            found.append(
                Period(
                    begin + float(number) * days * DAY_S,
                    days,
                    len(rows),
                    float(inside[rows].mean()),
                    float(np.median(error[rows])),
                    float(loss[rows].mean()),
                )
            )
    return found
