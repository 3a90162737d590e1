"""Every measure of predicted wait distributions against what came, under fixed names.

A job that never started, or not before the record ends, is censored: it waited at least so long. Such a job takes part
where its outcome is known (a probability of starting within an hour it outwaited, an interval it has already left) and
nowhere else. Measures over started jobs alone look better than the queue is, since those are the quick ones; read them
beside ``censored`` and the ``_strict`` and ``_open_counted`` forms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from queuecast.features.history import Flags, Floats
from queuecast.models.measures_distribution import distribution, quantiles, within
from queuecast.models.measures_intervals import SHARES, bounds, held, intervals, intervals_open_counted
from queuecast.models.measures_points import points
from queuecast.models.measures_probabilities import probabilities
from queuecast.models.measures_statistic import Mean, Statistic
from queuecast.models.waits import Waits

DAY_S = 86400.0


def measure_all(
    waits: Waits, wait: Floats, started: Flags, asked: Floats, climatology: Mapping[int, Floats] | None = None
) -> dict[str, float]:
    """All measures by name; nan where there is no case to tell.

    ``wait`` (n,) is in seconds from ``asked`` (epoch seconds, UTC): until the start, or, where ``started`` (n,) is False,
    the time it is known to have waited at least. A nan wait is no outcome at all: the case is left out. ``climatology``
    gives per hour (1, 4, 24) the probabilities (n,) that Brier skill is measured against. Beside the measures of
    ``points``, ``distribution``, ``intervals``, ``bounds`` and ``probabilities``: ``cases``, ``days`` (UTC days with a case)
    and ``censored`` (share). Raises ValueError for predictions or outcomes that are none (nan, falling cdf, negative).
    """
    cases = Outcomes.of(waits, wait, started, asked, climatology)
    return {**cases.counts(), **{name: statistic.value() for name, statistic in cases.statistics()}}


@dataclass(frozen=True)
class Outcomes:
    """Predictions with their outcomes, checked; fields as for ``measure_all``, all of one length, no wait nan."""

    waits: Waits
    wait: Floats
    started: Flags
    asked: Floats
    climatology: Mapping[int, Floats] | None

    @classmethod
    def of(cls, waits: Waits, wait: Floats, started: Flags, asked: Floats, climatology: Mapping[int, Floats] | None = None) -> Outcomes:
        """Check and drop the cases without an outcome. Raises ValueError."""
        count = len(waits)
        if not {len(wait), len(started), len(asked), *map(len, (climatology or {}).values())} <= {count}:
            raise ValueError("predictions, waits, flags, moments and climatology must have the same length")
        _check(waits)
        known = ~np.isnan(wait)
        if not known.all():
            waits = Waits(waits.cdf[known], waits.knots_s)
            wait, started, asked = wait[known], started[known], asked[known]
            climatology = None if climatology is None else {hours: p[known] for hours, p in climatology.items()}
        if len(wait) and not (wait.min() >= 0 and np.isfinite(wait).all()):
            raise ValueError("waits must be finite and not negative")
        return cls(waits, np.asarray(wait, np.float64), np.asarray(started, bool), asked, climatology)

    def counts(self) -> dict[str, float]:
        """Cases, days and the censored share."""
        return {
            "cases": float(len(self.wait)),
            "days": float(len(np.unique(self.asked // DAY_S))),
            "censored": Mean((~self.started).astype(np.float64)).value(),
        }

    def statistics(self) -> Iterator[tuple[str, Statistic]]:
        """Measures by name, one at a time: each holds arrays of all cases."""
        told = quantiles(self.waits)
        yield from points(told, self.wait, self.started)
        yield from distribution(self.waits, told, self.wait, self.started)
        yield from intervals(told, self.wait, self.started)
        yield from intervals_open_counted(told, within(self.waits, self.wait), self.wait, self.started)
        yield from bounds(told, self.wait, self.started)
        yield from probabilities(self.waits, self.wait, self.started, self.climatology)


def _check(waits: Waits) -> None:
    knots = waits.knots_s
    if waits.cdf.ndim != 2 or waits.cdf.shape[1] != len(knots) or len(knots) < 2:
        raise ValueError("a cdf needs one value per knot, and two knots at least")
    if knots[0] != 0 or not (np.diff(knots) > 0).all():
        raise ValueError("knots must rise from 0 s")
    # A nan fails these comparisons too: a model must not gain by leaving cases out.
    for begin in range(0, len(waits), 8192):
        part = waits.cdf[begin : begin + 8192]
        if not (part[:, 0].min() >= -1e-9 and part[:, -1].max() <= 1 + 1e-9 and np.diff(part, axis=1).min() >= -1e-9):
            raise ValueError("a cdf must rise from at least 0 to at most 1, and hold no nan")


@dataclass(frozen=True)
class Cell:
    """How intervals held in one cell: its value in each group, the started jobs in it, {claimed share: share that held}."""

    key: dict[str, str | int]
    jobs: int
    coverage: dict[float, float]


def coverage_by(
    waits: Waits, wait: Floats, started: Flags, groups: Mapping[str, npt.NDArray[np.generic]], *, minimum: int = 100
) -> list[Cell]:
    """Coverage of the central intervals in each cell, for cells with at least ``minimum`` started jobs, sorted by key.

    ``groups`` give codes or texts (n,); the cells are their combinations as they occur. Other arguments as for
    ``measure_all``. Without groups there is one cell with an empty key.
    """
    told = quantiles(waits)
    counted = np.flatnonzero(started & ~np.isnan(wait))
    inside = {share: held(told, share, wait, started)[counted] for share in SHARES}
    place = np.zeros(len(counted), np.int64)
    for values in groups.values():
        codes = np.unique(values[counted], return_inverse=True)[1].reshape(-1)
        # Numbered anew after each group, so that many groups cannot overflow.
        place = np.unique(place * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1].reshape(-1)
    jobs = np.bincount(place)
    hits = {share: np.bincount(place, flags) for share, flags in inside.items()}
    first = np.full(len(jobs), -1)
    first[place[::-1]] = counted[::-1]
    return [
        Cell(
            {name: values[first[cell]].item() for name, values in groups.items()},
            int(count),
            {share: float(found[cell] / count) for share, found in hits.items()},
        )
        for cell, count in enumerate(jobs)
        if count >= max(minimum, 1)
    ]
