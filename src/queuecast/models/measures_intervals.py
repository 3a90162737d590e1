"""Whether intervals and bounds hold as often as they claim, and how wide they have to be for it.

Ends count as inside, with half a second of slack, since Slurm tells whole seconds. An upper end that the distribution
does not reach counts as the last knot.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from queuecast.features.history import Flags, Floats
from queuecast.models.measures_distribution import Quantiles
from queuecast.models.measures_statistic import Mean, Median, Statistic
from queuecast.models.openjobs import inside_chances
from queuecast.models.waits import two_ends

SHARES = (0.5, 0.8, 0.9, 0.95)
BOUNDS = (0.5, 0.95)
SLACK_S = 0.5


def ends(told: Quantiles, share: float) -> tuple[Floats, Floats]:
    """Lower and upper end (n,) in seconds of the interval that claims ``share`` (``models.waits.two_ends``)."""
    return two_ends(told.at(round((1 - share) / 2, 3)), told.at(round(share, 3)), told.at(round((1 + share) / 2, 3)))


def held(told: Quantiles, share: float, wait: Floats, started: Flags) -> Floats:
    """1 where the interval held, 0 where it did not, nan where the job did not start. Shape (n,)."""
    low, high = ends(told, share)
    inside = (wait >= low - SLACK_S) & (wait <= high + SLACK_S)
    return np.where(started, inside, np.nan)


def intervals(told: Quantiles, wait: Floats, started: Flags) -> Iterator[tuple[str, Statistic]]:
    """Measures of central intervals at 50, 80, 90 and 95 %.

    ``coverage_80``: share of started jobs inside. ``coverage_80_strict``: censored jobs that have already waited longer
    than the upper end count as misses too, other censored ones not at all; as it can add misses only, it errs on the
    low side. ``width_80_s``, ``width_80_median_s``: mean and median width in seconds over all cases, as asked, whatever
    came. ``open_80``: share of cases whose upper end is not reached. ``winkler_80_log1p``: width plus 2 / (1 - share) times
    the distance of a miss, in log(1 + seconds), over started jobs, lower is better (Winkler 1972; Gneiting and Raftery
    2007, section 6.2). ``winkler_80_s``: the same in seconds, where the longest waits decide.
    """
    y = np.log1p(wait)
    for share in SHARES:
        name = f"{round(100 * share)}"
        low, high = ends(told, share)
        inside = held(told, share, wait, started)
        yield f"coverage_{name}", Mean(inside)
        yield f"coverage_{name}_strict", Mean(_strict(inside, wait, high, started))
        yield f"width_{name}_s", Mean(high - low)
        yield f"width_{name}_median_s", Median(high - low)
        yield f"open_{name}", Mean((~told.reached(round((1 + share) / 2, 3))).astype(np.float64))
        a, b = np.log1p(low), np.log1p(high)
        missed = np.maximum(a - y, 0.0) + np.maximum(y - b, 0.0)
        yield f"winkler_{name}_log1p", Mean(np.where(started, b - a + 2.0 / (1.0 - share) * missed, np.nan))
        missed = np.maximum(low - wait, 0.0) + np.maximum(wait - high, 0.0)
        yield f"winkler_{name}_s", Mean(np.where(started, high - low + 2.0 / (1.0 - share) * missed, np.nan))


def intervals_open_counted(told: Quantiles, level: Floats, wait: Floats, started: Flags) -> Iterator[tuple[str, Statistic]]:
    """``coverage_80_open_counted`` and the like: open jobs count with the chance that they will lie inside
    (``models.openjobs``). ``level``: probability of a wait of at most ``wait``, shape (n,)."""
    for share in SHARES:
        low, high = ends(told, share)
        inside = (wait >= low - SLACK_S) & (wait <= high + SLACK_S)
        bottom, top = (np.where(low <= 0, one, two) for one, two in ((0.0, (1 - share) / 2), (share, (1 + share) / 2)))
        yield f"coverage_{round(100 * share)}_open_counted", Mean(inside_chances(bottom, level, top, inside, started))


def bounds(told: Quantiles, wait: Floats, started: Flags) -> Iterator[tuple[str, Statistic]]:
    """Measures of the quantiles at 0.5 and 0.95 as upper bounds, over started jobs.

    ``bound_95_held``: share of waits not above it. ``bound_95_held_strict``: with censored jobs already above it as misses.
    ``bound_95_tightness``, ``bound_95_tightness_median``: mean and median of wait / bound (seconds not below one, at
    most 1) over jobs where it held: how much of the bound was needed (Brevik, Nurmi and Wolski, "Predicting bounds on
    queuing delay for batch-scheduled parallel machines", PPoPP 2006, where it judges their method BMBP).
    """
    for level in BOUNDS:
        name = f"bound_{round(100 * level)}"
        bound = told.at(level)
        kept = np.where(started, wait <= bound + SLACK_S, np.nan)
        yield f"{name}_held", Mean(kept)
        yield f"{name}_held_strict", Mean(_strict(kept, wait, bound, started))
        used = np.minimum(np.maximum(wait, 1.0) / np.maximum(bound, 1.0), 1.0)
        used = np.where(kept == 1.0, used, np.nan)
        yield f"{name}_tightness", Mean(used)
        yield f"{name}_tightness_median", Median(used)


def _strict(hits: Floats, wait: Floats, high: Floats, started: Flags) -> Floats:
    """Hits of started jobs; a censored job past the upper end is a miss."""
    return np.where(~started & (wait > high + SLACK_S), 0.0, hits)
