"""How good whole predicted distributions are: quantiles, pinball loss, continuous ranked probability score, PIT.

A distribution that does not reach one keeps its remaining mass at the last knot: a quantile that is not reached counts
as the last knot. With that one rule CRPS = 2 x the pinball loss integrated over all levels, on any scale (Gneiting and
Raftery, "Strictly proper scoring rules, prediction, and estimation", JASA 102 (2007); Laio and Tamea 2007).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from queuecast.features.history import Flags, Floats, Ints
from queuecast.models.measures_statistic import Mean, Statistic
from queuecast.models.waits import Waits

PINBALL_LEVELS = tuple(round(0.05 * i, 2) for i in range(1, 20))
LEVELS = tuple(sorted({*PINBALL_LEVELS, 0.025, 0.975}))
PIT_BINS = 20
PIT_LINES = 10
"""Bins of the histogram among the measures; the picture has more."""

ROWS = 2048
"""So many cases at a time: their knots fit the processor's cache."""

Scale = Literal["seconds", "log10"]


@dataclass(frozen=True)
class Quantiles:
    """``seconds[i, l]`` is the quantile of case i at ``levels[l]``, infinite where not reached; ``last_s`` the last knot."""

    levels: tuple[float, ...]
    seconds: Floats
    last_s: float

    def at(self, level: float) -> Floats:
        """Seconds (n,); the last knot where the distribution does not reach. Raises ValueError for a level not held."""
        return np.minimum(self.seconds[:, self.levels.index(level)], self.last_s)

    def reached(self, level: float) -> Flags:
        """Whether the distribution reaches the level, shape (n,)."""
        return np.isfinite(self.seconds[:, self.levels.index(level)])


def quantiles(waits: Waits, levels: tuple[float, ...] = LEVELS) -> Quantiles:
    """Quantiles at each level, chunk by chunk."""
    found = np.empty((len(waits), len(levels)))
    for rows in _chunks(len(waits)):
        part = Waits(waits.cdf[rows], waits.knots_s)
        for i, level in enumerate(levels):
            found[rows, i] = part.quantile(level)
    return Quantiles(levels, found, float(waits.knots_s[-1]))


def within(waits: Waits, seconds: float | Floats) -> Floats:
    """P(wait <= seconds), shape (n,), for one number of seconds or one per case."""
    wanted = np.broadcast_to(np.asarray(seconds, np.float64), (len(waits),))
    return np.concatenate([np.zeros(0), *(Waits(waits.cdf[r], waits.knots_s).within(wanted[r]) for r in _chunks(len(waits)))])


def pinball_log1p(told: Quantiles, wait: Floats, level: float) -> Floats:
    """Pinball loss (n,) of log(1 + seconds) at one level (Koenker and Bassett 1978)."""
    gap = np.log1p(wait) - np.log1p(told.at(level))
    return np.maximum(level * gap, (level - 1.0) * gap)


def distribution(waits: Waits, told: Quantiles, wait: Floats, started: Flags) -> Iterator[tuple[str, Statistic]]:
    """Measures of whole distributions over started jobs; lower is better.

    ``pinball_log1p_05`` .. ``pinball_log1p_95`` per level in per cent and ``pinball_log1p``, their mean; ``crps_log10``
    of log10(max(seconds, 1)); ``crps_s`` in seconds. ``pit_01`` .. ``pit_10``: shares of the PIT histogram, 0.1 each if
    calibrated.
    """
    total = np.zeros(len(wait))
    for level in PINBALL_LEVELS:
        loss = np.where(started, pinball_log1p(told, wait, level), np.nan)
        total += loss
        yield f"pinball_log1p_{round(100 * level):02d}", Mean(loss)
    yield "pinball_log1p", Mean(total / len(PINBALL_LEVELS))
    yield "crps_log10", Mean(np.where(started, crps(waits, wait, "log10"), np.nan))
    yield "crps_s", Mean(np.where(started, crps(waits, wait, "seconds"), np.nan))
    masses = np.full((len(wait), PIT_LINES), np.nan)
    masses[started] = pit_masses(waits, wait, started, PIT_LINES)
    for number in range(PIT_LINES):
        yield f"pit_{number + 1:02d}", Mean(masses[:, number])


def crps(waits: Waits, wait: Floats, scale: Scale) -> Floats:
    """Continuous ranked probability score (n,), the integral of (cdf(x) - [x >= wait])^2 over x, where x is in seconds or
    is log10(max(seconds, 1)), which puts all mass below one second at zero (Matheson and Winkler 1976).

    Between two knots the cdf is linear in z = log(1 + seconds), so the integral is a quadratic form in the two cdf values
    with coefficients that depend on the knots alone. These, and the two parts of the segment that holds the wait, are
    integrated by Gauss and Legendre with an error near machine precision.
    """
    z = np.log1p(waits.knots_s)
    low = float(np.log(2.0)) if scale == "log10" else 0.0  # z of the least value that counts
    width = np.diff(z)
    # The integrands are smooth; only knots much further apart than usual need more nodes.
    nodes = np.polynomial.legendre.leggauss(12 if width.max() < 0.8 else 64)
    begin, end = np.maximum(z[:-1], low), np.maximum(z[1:], low)
    x, w = _spread(nodes, begin, end, scale)
    share = (x - z[:-1, None]) / width[:, None]
    moments = np.stack([(w * share**power).sum(axis=1) for power in range(3)])
    found = np.empty(len(waits))
    for rows in _chunks(len(waits)):
        cdf, actual = waits.cdf[rows], np.log1p(wait[rows])
        y = np.clip(actual, low, z[-1])
        place = np.clip(np.searchsorted(z, y, side="right") - 1, 0, len(z) - 2)
        found[rows] = _whole_segments(cdf, place, moments) + _split_segment(cdf, place, y, z, nodes, scale, low)
        # A wait beyond the last knot: all mass lies below it.
        beyond = actual > z[-1]
        found[rows] += np.where(beyond, _value(np.maximum(actual, z[-1]), scale) - _value(z[-1:], scale), 0.0)
    return np.maximum(found, 0.0)  # differences of large sums may end a hair below


def _whole_segments(cdf: Floats, place: Ints, moments: Floats) -> Floats:
    """Integral over all segments but the one at ``place``: of cdf^2 before it and of (1 - cdf)^2 after it.

    As (1 - cdf)^2 = cdf^2 + (1 - 2 cdf), that is cdf^2 over all but one segment plus 1 - 2 cdf after it.
    """
    full, linear, square = moments
    rows, last = np.arange(len(cdf)), len(full)
    first, second = cdf[:, :-1], cdf[:, 1:]
    a, b, c = full - 2.0 * linear + square, 2.0 * (linear - square), square
    total: Floats = cdf**2 @ (np.r_[a, 0.0] + np.r_[0.0, c]) + (first * second) @ b
    p, q = cdf[rows, place], cdf[rows, place + 1]
    total -= a[place] * p * p + b[place] * p * q + c[place] * q * q
    # Cumulated from the right; what lies after the last segment is nothing.
    rest = np.zeros((len(cdf), last + 1))
    rest[:, :last] = full - 2.0 * ((full - linear) * first + linear * second)
    rest = np.cumsum(rest[:, ::-1], axis=1)[:, ::-1]
    return total + rest[rows, place + 1]


def _split_segment(cdf: Floats, place: Ints, y: Floats, z: Floats, nodes: tuple[Floats, Floats], scale: Scale, low: float) -> Floats:
    """Integral over the segment that holds the wait (at ``y`` on the z axis): cdf^2 up to it, (1 - cdf)^2 from it on."""
    rows = np.arange(len(cdf))
    before, after = z[place], z[place + 1]
    first, rise = cdf[rows, place], cdf[rows, place + 1] - cdf[rows, place]
    slope = (rise / (after - before))[:, None]
    total = np.zeros(len(cdf))
    for begin, end, upper in ((np.minimum(np.maximum(before, low), y), y, False), (y, np.maximum(after, y), True)):
        x, w = _spread(nodes, begin, end, scale)
        height = first[:, None] + slope * (x - before[:, None])
        total += (w * (1.0 - height if upper else height) ** 2).sum(axis=1)
    return total


def _spread(nodes: tuple[Floats, Floats], begin: Floats, end: Floats, scale: Scale) -> tuple[Floats, Floats]:
    """Nodes between ``begin`` and ``end`` (m,) on the z axis, and their weights dx; both of shape (m, nodes)."""
    half = (end - begin)[:, None] / 2
    x = (begin + end)[:, None] / 2 + half * nodes[0]
    density = np.exp(x) if scale == "seconds" else 1.0 / (-np.expm1(-x) * np.log(10.0))
    return x, half * nodes[1] * density


def _value(z: Floats, scale: Scale) -> Floats:
    seconds = np.expm1(z)
    return seconds if scale == "seconds" else np.log10(np.maximum(seconds, 1.0))


def pit_histogram(waits: Waits, wait: Floats, started: Flags, bins: int = PIT_BINS) -> Floats:
    """Shares (bins,) of started jobs by the probability that their distribution gave to "no longer than it did take".
    Equal shares mean calibrated; a hump too wide, a bowl too narrow. Nan without started jobs.

    Where the distribution has a step (at a wait of zero, and beyond the last knot) the mass is spread evenly over the
    step instead of drawing a random number: the nonrandomised PIT of Czado, Gneiting and Held, "Predictive model
    assessment for count data", Biometrics 65 (2009).
    """
    masses = pit_masses(waits, wait, started, bins)
    return np.asarray(masses.mean(axis=0), np.float64) if len(masses) else np.full(bins, np.nan)


def pit_masses(waits: Waits, wait: Floats, started: Flags, bins: int) -> Floats:
    """How much of each started job lies in each bin of ``pit_histogram``: shape (started jobs, bins), rows add up to 1."""
    rows = np.flatnonzero(started)
    beyond = wait > waits.knots_s[-1]
    upper = np.where(beyond, 1.0, within(waits, wait))[rows]
    lower = np.where(beyond, waits.cdf[:, -1], np.where(wait == 0, 0.0, np.inf))[rows]
    lower = np.minimum(lower, upper)
    edges = np.linspace(0.0, 1.0, bins + 1)
    reached = np.empty((len(rows), bins + 1))
    for part in _chunks(len(rows)):
        step = (upper[part] - lower[part])[:, None]
        gone = edges - lower[part, None]
        passed = (edges >= upper[part, None] - 1e-12).astype(np.float64)
        reached[part] = np.clip(np.divide(gone, step, out=passed, where=step > 1e-12), 0.0, 1.0)
    reached[:, 0], reached[:, -1] = 0.0, 1.0
    return np.diff(reached, axis=1)


def _chunks(count: int) -> list[slice]:
    return [slice(i, i + ROWS) for i in range(0, count, ROWS)]
