"""Upper bounds on the wait by order statistics, with history cut where the queue changed: the method of BMBP and QBETS.

Sources: Brevik, Nurmi, Wolski, "Predicting bounds on queuing delay for batch-scheduled parallel machines", PPoPP 2006
(the binomial bound, rare events, trimming); Nurmi, Brevik, Wolski, "QBETS: queue bounds estimation from time series",
JSSPP 2007 (jobs clustered). Written anew after their method:

* Of n waits in order, the k-th is at least the q quantile with confidence C if BinomCDF(k - 1; n, q) >= C; the
  smallest such k is the bound. At 0.95 / 0.95 that takes 59 waits.
* Each wait that becomes known is compared with the 0.95 bound of those before it. A run of misses as improbable as
  three in a row among independent waits, given the lag-1 autocorrelation of the logarithms of the waits, means that the
  queue changed: only the last 59 waits are kept.
* Every partition and size class has a history of its own.

What differs or may differ: the table of run lengths is not the papers' own but made anew, from a Gaussian process of first
order held to the chance of three independent misses; the autocorrelation is a running one, as it stood before the run; one
trimmed history serves all quantiles, so bounds never cross; size classes are fixed and not learned, and where one
has fewer than 59 waits the partition's, then the cluster's bound is given; downtimes are not detected.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from functools import lru_cache
from math import log1p, sqrt
from statistics import NormalDist

import numpy as np

from queuecast.features.cases import Cases
from queuecast.features.history import Floats, Ints
from queuecast.models.baselines import in_order_of_start, joint_codes
from queuecast.models.waits import KNOTS_S, Waits

BOUNDS = (0.5, 0.8, 0.9, 0.95)
CURVE = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""Quantiles whose bounds make a distribution."""

CONFIDENCE = 0.95
WATCHED = 0.95
"""Misses of the bound on this quantile tell that the queue changed."""

LEVELS: tuple[tuple[str, ...], ...] = (("partition", "size"), ("partition",), ())


def order_statistic(n: int | Ints, q: float, confidence: float = CONFIDENCE) -> Ints:
    """Smallest k with BinomCDF(k - 1; n, q) >= confidence, counted from 1; n + 1 where n waits do not suffice."""
    from scipy.stats import binom

    count = np.asarray(n, np.int64)
    k = np.asarray(binom.ppf(confidence, count, q), np.float64).astype(np.int64) + 1
    # ppf rounds at the edge; the definition decides, up to the rounding of the cdf.
    enough = confidence - 1e-12
    k = np.where((k > 1) & (binom.cdf(k - 2, count, q) >= enough), k - 1, k)
    k = np.where(binom.cdf(k - 1, count, q) < enough, k + 1, k)
    return np.minimum(k, count + 1)


@lru_cache(maxsize=8)
def fewest(q: float = WATCHED, confidence: float = CONFIDENCE) -> int:
    """Waits needed for a bound on the q quantile: 59 at 0.95 / 0.95."""
    n = 1
    while 1.0 - q**n < confidence:
        n += 1
    return n


@lru_cache(maxsize=128)
def rare_run(autocorrelation: float, q: float = WATCHED) -> int:
    """Shortest run of misses of the q quantile that begins at a given wait with probability at most (1 - q)^3.

    Waits are taken as a Gaussian process of first order in their logarithms. The autocorrelation is rounded to 0.05 and
    held within 0 to 0.95. P(run of r) is carried from one wait to the next by Gauss-Legendre quadrature above the
    quantile.
    """
    rho = min(max(round(autocorrelation * 20) / 20, 0.0), 0.95)
    low = NormalDist().inv_cdf(q)
    nodes, weights = np.polynomial.legendre.leggauss(160)
    half = 3.5  # seven standard deviations above the quantile hold all that counts
    z, w = low + half * (nodes + 1.0), weights * half
    spread = sqrt(1.0 - rho * rho)
    kernel = np.exp(-0.5 * ((z[:, None] - rho * z[None, :]) / spread) ** 2) / (spread * sqrt(2 * np.pi))
    density = np.exp(-0.5 * z * z) / sqrt(2 * np.pi)
    length = 1
    while float(w @ density) > (1.0 - q) ** 3 * (1.0 + 1e-9):
        density = kernel @ (w * density)
        length += 1
    return length


def qbets_bounds(
    history: Cases, cases: Cases, quantiles: Sequence[float] = BOUNDS, *, confidence: float = CONFIDENCE, trim: bool = True
) -> Floats:
    """Upper bounds in seconds on quantiles of each case's remaining wait, shape (n, len(quantiles)); infinite where too
    few waits are known.

    Only rows of ``history`` with ``start < asked`` of a case tell it anything; those that have not started tell
    nothing. ``trim`` False never cuts a history.
    """
    bounds = np.full((len(cases), len(quantiles)), np.inf)
    order = in_order_of_start(history)
    start, waits = history.start[order], np.maximum(0.0, history.start - history.asked)[order]
    need = fewest(WATCHED, confidence)
    places = _Places(tuple(quantiles), confidence)
    left = np.arange(len(cases))
    for dims in LEVELS:
        of_history, of_cases, _ = joint_codes(history, cases, dims)
        of_history = of_history[order]
        by_group = np.argsort(of_history, kind="stable")
        by_case = left[np.lexsort((cases.asked[left], of_cases[left]))]
        coarsest = dims == LEVELS[-1]
        answered = []
        for group in np.unique(of_cases[left]):
            first, stop = np.searchsorted(of_history[by_group], [group, group + 1])
            rows = by_group[first:stop]
            first, stop = np.searchsorted(of_cases[by_case], [group, group + 1])
            asking = by_case[first:stop]
            series = _Series(places, need, trim)
            told = 0
            known = np.searchsorted(start[rows], cases.asked[asking])
            group_waits = waits[rows].tolist()
            for case, upto in zip(asking.tolist(), known.tolist(), strict=True):
                for wait in group_waits[told:upto]:
                    series.add(wait)
                told = upto
                if len(series.ordered) >= need or coarsest:
                    bounds[case] = series.bounds()
                    answered.append(case)
        left = np.setdiff1d(left, np.array(answered, np.int64))
        if not len(left):
            break
    return bounds


def qbets(history: Cases, cases: Cases) -> Waits:
    """The bounds on the quantiles of ``CURVE`` as a distribution, straight in log(1 + seconds) between them.

    It is cautious on purpose: each quantile is bounded with confidence, not estimated. Beyond the 0.95 bound it says
    nothing (the cdf stays below 1).
    """
    z, knots = np.log1p(qbets_bounds(history, cases, CURVE)), np.log1p(KNOTS_S)
    cdf = np.zeros((len(cases), len(KNOTS_S)))
    before, reached = np.zeros(len(cases)), 0.0
    for level, p in enumerate(CURVE):
        here = z[:, level]
        known = np.isfinite(here)
        width = np.where(known, here - before, 1.0)
        share = (knots[None, :] - before[:, None]) / np.maximum(width, 1e-12)[:, None]
        # Equal bounds are a step at that wait.
        rise = np.where(width[:, None] > 0, np.clip(share, 0.0, 1.0), knots[None, :] >= here[:, None])
        cdf += np.where(known[:, None], (p - reached) * rise, 0.0)
        before, reached = np.where(known, here, before), p
    return Waits(cdf, KNOTS_S)


class _Places:
    """Where in n ordered waits each bound stands; made in blocks, since the binomial quantile costs."""

    def __init__(self, quantiles: tuple[float, ...], confidence: float) -> None:
        self.quantiles = (*quantiles, WATCHED)
        self.confidence = confidence
        self.table: list[list[int]] = []

    def of(self, n: int) -> list[int]:
        """Place of each bound, counted from 0, n where there is none; the last is of the watched quantile."""
        while n >= len(self.table):
            more = np.arange(len(self.table), max(1024, 2 * len(self.table)))
            ks = [order_statistic(more, q, self.confidence) - 1 for q in self.quantiles]
            self.table += np.stack(ks, axis=1).tolist()
        return self.table[n]


class _Series:
    """Waits of one group in the order in which they became known."""

    def __init__(self, places: _Places, need: int, trim: bool) -> None:
        self.places, self.need, self.trim = places, need, trim
        self.ordered: list[float] = []
        self.recent: list[float] = []
        self.misses = 0
        self.limit = 3
        self.dependence = _Dependence()
        self.before = 0.0

    def add(self, wait: float) -> None:
        """One more wait is known: is it a miss, is the run of misses too long, then remember it."""
        n = len(self.ordered)
        if n >= self.need and wait > self.ordered[self.places.of(n)[-1]]:
            if not self.misses:
                # As it was before the run: the run itself would raise it.
                self.limit = rare_run(self.autocorrelation)
            self.misses += 1
        else:
            self.misses = 0
        self.dependence.add(log1p(wait))
        insort(self.ordered, wait)
        self.recent.append(wait)
        if len(self.recent) > 4 * self.need:
            del self.recent[: -self.need]
        if self.trim and self.misses >= self.limit:
            self.ordered = sorted(self.recent[-self.need :])
            self.misses = 0
            self.before, self.dependence = self.autocorrelation, _Dependence()

    @property
    def autocorrelation(self) -> float:
        """Of the waits since the last change; of those before it while there are too few."""
        return self.dependence.lag_one if self.dependence.n >= self.need else self.before

    def bounds(self) -> list[float]:
        """Bounds of the asked quantiles in seconds."""
        n = len(self.ordered)
        return [self.ordered[k] if k < n else np.inf for k in self.places.of(n)[:-1]]


class _Dependence:
    """Running lag-1 autocorrelation: mean, sum of squares and of products of neighbours, about the mean so far (as in
    Welford's algorithm)."""

    def __init__(self) -> None:
        self.n = 0
        self.mean = self.squares = self.products = self.last = 0.0

    def add(self, x: float) -> None:
        """One more value."""
        self.n += 1
        before = x - self.mean
        self.mean += before / self.n
        after = x - self.mean
        self.squares += before * after
        if self.n > 1:
            self.products += after * (self.last - self.mean)
        self.last = x

    @property
    def lag_one(self) -> float:
        """0 where all values were equal; to two places, so that thresholds are looked up and not computed anew."""
        return round(self.products / self.squares, 2) if self.squares > 0 else 0.0
