"""Kinds of measures: a mean, a median, a skill, a calibration error, an area under the ROC curve.

Each holds per-case numbers and gives its value over all cases, or over many resamples of whole days at once. Nan in a
per-case array means "this case does not count here" (the job did not start, the label is unknown); a measure without
any case is nan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from queuecast.features.history import Floats, Ints

BINS = 15


class Statistic(Protocol):
    """A measure that can be computed again on resampled days."""

    def value(self) -> float:
        """Over all cases, each counted once."""
        ...

    def resampled(self, days: Ints, counts: Floats) -> Floats:
        """Shape (draws,): one value per row of ``counts`` (draws, number of days), where a case of day ``days[i]``
        (codes from 0) counts ``counts[draw, days[i]]`` times."""
        ...


@dataclass(frozen=True)
class Mean:
    """Mean of ``values`` (n,) over the cases that count."""

    values: Floats

    def value(self) -> float:
        """The mean; nan without cases."""
        return _once(self)

    def resampled(self, days: Ints, counts: Floats) -> Floats:
        """From sums by day: no pass over the cases per draw."""
        known = ~np.isnan(self.values)
        return _ratio(counts @ _by_day(days, self.values, known, counts), counts @ _by_day(days, None, known, counts))


@dataclass(frozen=True)
class Skill:
    """1 - (mean of ``values``) / (mean of ``reference``): the part of the reference's error that is saved."""

    values: Floats
    reference: Floats

    def value(self) -> float:
        """1 is perfect, 0 as good as the reference; nan without cases or where the reference makes no error."""
        return _once(self)

    def resampled(self, days: Ints, counts: Floats) -> Floats:
        """From sums by day."""
        known = ~np.isnan(self.values) & ~np.isnan(self.reference)
        own, other = _by_day(days, self.values, known, counts), _by_day(days, self.reference, known, counts)
        return 1.0 - _ratio(counts @ own, counts @ other)


@dataclass(frozen=True)
class Median:
    """Median of ``values`` (n,) over the cases that count; the mean of the two middle ones if their number is even."""

    values: Floats

    def value(self) -> float:
        """The median; nan without cases."""
        known = self.values[~np.isnan(self.values)]
        return float(np.median(known)) if len(known) else float("nan")

    def resampled(self, days: Ints, counts: Floats) -> Floats:
        """Sorted once; each draw counts its way to the middle."""
        rows = np.flatnonzero(~np.isnan(self.values))
        if not len(rows):
            return np.full(len(counts), np.nan)
        rows = rows[np.argsort(self.values[rows], kind="stable")]
        values, days = self.values[rows], days[rows]
        found = np.full(len(counts), np.nan)
        for draw, weights in enumerate(counts):
            so_far = np.cumsum(weights[days])
            if so_far[-1] > 0:
                half = so_far[-1] / 2
                low, high = np.searchsorted(so_far, half, side="left"), np.searchsorted(so_far, half, side="right")
                found[draw] = (values[low] + values[min(high, len(values) - 1)]) / 2
        return found


@dataclass(frozen=True)
class CalibrationError:
    """Expected calibration error of probabilities ``told`` (n,) for events ``came`` (n,; 1, 0 or nan): the mean over bins
    of equal mass of |mean told - share that came|, weighted by cases (Naeini, Cooper and Hauskrecht 2015).

    Resamples keep the bins of the whole sample, so that their sums by day suffice.
    """

    told: Floats
    came: Floats

    def value(self) -> float:
        """Between 0 and 1; nan without cases."""
        return _once(self)

    def resampled(self, days: Ints, counts: Floats) -> Floats:
        """From sums by day and bin."""
        known = ~np.isnan(self.came)
        if not known.any():
            return np.full(len(counts), np.nan)
        told, came = self.told[known], self.came[known]
        bins = equal_mass(told)
        size = int(bins.max()) + 1
        cells = days[known] * size + bins
        shape = (counts.shape[1], size)
        gap = np.bincount(cells, told - came, minlength=shape[0] * size).reshape(shape)
        jobs = np.bincount(cells, minlength=shape[0] * size).reshape(shape)
        return _ratio(np.abs(counts @ gap).sum(axis=1), (counts @ jobs).sum(axis=1))


@dataclass(frozen=True)
class Auroc:
    """Area under the ROC curve: the chance that a case where the event came was told a higher probability than one where
    it did not, ties counting half (Mann and Whitney 1947)."""

    told: Floats
    came: Floats

    def value(self) -> float:
        """Between 0 and 1; nan unless both outcomes occur."""
        return _once(self)

    def resampled(self, days: Ints, counts: Floats) -> Floats:
        """Sorted once; each draw needs one cumulated sum."""
        rows = np.flatnonzero(~np.isnan(self.came))
        rows = rows[np.argsort(self.told[rows], kind="stable")]
        told, came, days = self.told[rows], self.came[rows] > 0.5, days[rows]
        positive = told[came]
        below, upto = np.searchsorted(told, positive, side="left"), np.searchsorted(told, positive, side="right")
        area, pairs = np.zeros(len(counts)), np.zeros(len(counts))
        for draw, weights in enumerate(counts):
            each = weights[days]
            negatives = np.r_[0.0, np.cumsum(np.where(came, 0.0, each))]
            area[draw] = np.dot(each[came], negatives[below] + negatives[upto]) / 2
            pairs[draw] = each[came].sum() * negatives[-1]
        return _ratio(area, pairs)


def equal_mass(told: Floats, bins: int = BINS) -> Ints:
    """Bin (n,) of each probability, from 0: bins hold the same number of cases, but equal probabilities are never
    parted, so with many ties there are fewer bins."""
    if not len(told):
        return np.array([], np.int64)
    edges = np.unique(np.quantile(told, np.arange(1, bins) / bins, method="inverted_cdf"))
    # An edge that is the highest value would leave the bin above it empty.
    return np.searchsorted(edges[edges < told.max()], told, side="left").astype(np.int64)


def _once(statistic: Statistic) -> float:
    """Everything on one day that is drawn once."""
    first = next(v for v in vars(statistic).values() if isinstance(v, np.ndarray))
    return float(statistic.resampled(np.zeros(len(first), np.int64), np.ones((1, 1)))[0])


def _by_day(days: Ints, values: Floats | None, known: np.ndarray[tuple[int], np.dtype[np.bool_]], counts: Floats) -> Floats:
    """Sum of the known values of each day; without values their number."""
    weights = None if values is None else values[known]
    return np.bincount(days[known], weights, minlength=counts.shape[1]).astype(np.float64)


def _ratio(total: Floats, count: Floats) -> Floats:
    found: Floats = np.divide(total, count, out=np.full(np.shape(total), np.nan), where=count > 0)
    return found
