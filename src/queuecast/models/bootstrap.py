"""How certain a measure is: intervals from resampling whole days.

Jobs of one day share the state of the queue, so cases are not independent; whole UTC days of the moment asked are
drawn with replacement (block bootstrap: Kuensch 1989; percentile interval: Efron and Tibshirani 1993, chapter 13).
Congestion that lasts for days makes neighbouring days alike too; pass weeks instead of days for wider, safer intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from queuecast.features.history import Flags, Floats, Ints
from queuecast.models.measures import DAY_S, Outcomes
from queuecast.models.measures_statistic import Auroc, CalibrationError, Mean, Median
from queuecast.models.waits import Waits

DRAWS = 200
SEED = 20260101
SLOW = (Median, Auroc)
"""Measures that need a pass over all cases per draw; they get half the draws."""


class Figure(NamedTuple):
    """A measure with its 95 % interval; nan where unknown."""

    value: float
    low: float
    high: float


def days_of(asked: Floats) -> Ints:
    """UTC day (n,) of moments in epoch seconds, counted from 1970-01-01."""
    return np.floor(asked / DAY_S).astype(np.int64)


def interval(values: Floats | Callable[[Floats], float], days: Ints, draws: int = DRAWS, seed: int = SEED) -> tuple[float, float]:
    """95 % interval (low, high) of a measure, by drawing days with replacement.

    ``values``: the mean of these per-case scores (n,) is the measure, nan leaving a case out; for the difference of two
    models pass the difference of their scores. Or a function of row weights (n,), how often each case counts, that
    returns the measure. ``days`` (n,) name the block of each case. With fewer than two days nothing can be told: nan.
    """
    codes, counts = drawn_days(days, draws, seed)
    if not len(counts):
        return float("nan"), float("nan")
    if callable(values):
        return _ends(np.array([values(weights[codes]) for weights in counts], np.float64))
    return _ends(Mean(values).resampled(codes, counts))


def measure_all_with_intervals(
    waits: Waits,
    wait: Floats,
    started: Flags,
    asked: Floats,
    climatology: Mapping[int, Floats] | None = None,
    *,
    draws: int = DRAWS,
    seed: int = SEED,
) -> dict[str, Figure]:
    """``measure_all`` with a 95 % interval for each measure (counts have none). The same days are drawn for every
    measure, so that two calls for the same cases with two models can be compared draw by draw."""
    cases = Outcomes.of(waits, wait, started, asked, climatology)
    codes, counts = drawn_days(days_of(cases.asked), draws, seed)
    nothing = float("nan")
    found = {name: Figure(value, nothing, nothing) for name, value in cases.counts().items()}
    for name, statistic in cases.statistics():
        value, low, high = statistic.value(), nothing, nothing
        if len(counts):
            used = counts[: (draws + 1) // 2] if isinstance(statistic, SLOW) else counts
            drawn = statistic.resampled(codes, used)
            if isinstance(statistic, CalibrationError):
                # A gap is taken without its sign, so the noise of drawing can only add to it: that excess is taken off.
                drawn = np.maximum(drawn - (np.nanmean(drawn) - value), 0.0) if not np.isnan(drawn).all() else drawn
            low, high = _ends(drawn)
        found[name] = Figure(value, low, high)
    return found


def drawn_days(days: Ints, draws: int = DRAWS, seed: int = SEED) -> tuple[Ints, Floats]:
    """Day codes (n,) from 0, and how often each day is drawn: (draws, days), or (0, 0) with fewer than two days."""
    names, codes = np.unique(days, return_inverse=True)
    size = len(names)
    if size < 2:
        return codes.reshape(-1), np.zeros((0, 0))
    return codes.reshape(-1), np.random.default_rng(seed).multinomial(size, np.full(size, 1 / size), draws).astype(np.float64)


def _ends(found: Floats) -> tuple[float, float]:
    """Percentiles 2.5 and 97.5 of the draws that had a case."""
    known = found[~np.isnan(found)]
    if not len(known):
        return float("nan"), float("nan")
    low, high = np.percentile(known, [2.5, 97.5])
    return float(low), float(high)
