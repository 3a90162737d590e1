"""The chance that a job uses more than a share of what it asks for, for each share of the grid.

Two ways: a rule that mixes the counts of the kinds from coarse to fine, and boosted trees that read the same counts. Both
know of history only what ``sizing_past`` tells, so neither looks ahead and neither minds the unit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from queuecast.features.history import Floats, Ints
from queuecast.models.sizing_past import LATEST, NEAR, SHARES, Jobs, Seen

if TYPE_CHECKING:
    import lightgbm

PRIOR = 8.0
"""A kind's own counts weigh as much as those of the coarser kind once it has so many jobs."""

FEWEST = 5_000
"""Trees are learned from so many jobs on; with fewer, counts alone removed more (``docs/rightsizing.md``)."""

MOST = 60_000
"""Trees are learned from so many of the latest jobs."""

DRAWN = 3
"""Shares drawn per job when trees learn."""

ROUNDS = 120
PARAMETERS: dict[str, object] = {
    "objective": "binary", "learning_rate": 0.08, "num_leaves": 31, "min_data_in_leaf": 100, "feature_fraction": 0.5,
    "bagging_fraction": 0.8, "bagging_freq": 1, "num_threads": 1, "verbose": -1, "seed": 7, "deterministic": True,
}  # fmt: skip
_AT_ONCE = 4_000
_HOUR = 3600.0
Values = npt.NDArray[np.float32]


class Chance(Protocol):
    """Chances (m, shares), not falling as shares get smaller; 0 for the first share, as asked."""

    def __call__(self, seen: Seen) -> Floats: ...


def by_counts(seen: Seen) -> Floats:
    """Counts of the finest kind drawn to those of the next coarser one with a weight of ``PRIOR`` (the coarsest to one half):
    the posterior mean of a beta prior, level by level. The coarsest counts uses as shares of what those jobs asked themselves,
    the others in the resource's unit."""
    chance = np.full(seen.above.shape[::2], 0.5)
    coarsest = seen.count.shape[1] - 1
    for rung in range(coarsest, -1, -1):
        above, among = (seen.above_own, LATEST) if rung == coarsest else (seen.above, NEAR)
        chance = (above[:, rung] + PRIOR * chance) / (np.minimum(seen.count[:, rung, None], among) + PRIOR)
    return _ordered(chance)


def together(model: Chance | None, seen: Seen) -> Floats:
    """The mean of what the trees and the counts tell; counts alone where there are no trees."""
    counts = by_counts(seen)
    return counts if model is None else (counts + model(seen)) / 2


class Trees:
    """Boosted trees for "uses more than this share"; one model for all shares, as the share is among what it reads."""

    def __init__(self, model: lightgbm.Booster) -> None:
        self.model = model

    @classmethod
    def learn(cls, jobs: Jobs, seen: Seen, *, seed: int = 7) -> Trees | None:
        """From ended jobs and what was known of each when it was submitted; None where they are too few or all alike."""
        rows = np.flatnonzero(np.isfinite(jobs.use))[-MOST:]
        if len(rows) < FEWEST:
            return None
        draws = np.random.default_rng(seed)
        rows = np.repeat(rows, DRAWN)
        places = draws.integers(1, len(SHARES), len(rows))
        share = np.where(jobs.killed, np.inf, jobs.use)[rows] / jobs.asked[rows]
        over = share > SHARES[places]
        if over.all() or not over.any():
            return None
        import lightgbm

        data = lightgbm.Dataset(features(seen, rows, places), over.astype(np.float64), free_raw_data=True)
        return cls(lightgbm.train(PARAMETERS, data, ROUNDS))

    def __call__(self, seen: Seen) -> Floats:
        m, width = len(seen.count), len(SHARES)
        chance = np.zeros((m, width))
        for low in range(0, m, _AT_ONCE):
            rows = np.repeat(np.arange(low, min(m, low + _AT_ONCE)), width - 1)
            places = np.tile(np.arange(1, width), len(rows) // (width - 1))
            told = self.model.predict(features(seen, rows, places), num_threads=1)
            chance[low : low + _AT_ONCE, 1:] = np.asarray(told).reshape(-1, width - 1)
        return _ordered(chance)


def features(seen: Seen, rows: Ints, places: Ints) -> Values:
    """What the trees read, (len(rows), F): the share, and by rung the number of jobs, the shares of them that used more, and how
    far the last and the largest uses lie from the share (as logarithms). Nothing has a unit."""
    share = SHARES[places]
    columns = [np.log(share)]
    with np.errstate(divide="ignore", invalid="ignore"):
        for rung in range(seen.count.shape[1]):
            columns.append(np.log1p(seen.count[rows, rung]))
            columns.append(np.log1p(seen.age[rows, rung] / _HOUR))
            for figure in (seen.last, seen.most_5, seen.most):
                columns.append(np.log((figure[rows, rung] + 1e-6) / share))
            for counts, among in ((seen.above, NEAR), (seen.above_own, LATEST)):
                columns.append((counts[rows, rung, places] + 0.5) / (np.minimum(seen.count[rows, rung], among) + 1))
    return np.stack(columns, 1).astype(np.float32)


def _ordered(chance: Floats) -> Floats:
    chance = np.maximum.accumulate(np.clip(chance, 0.0, 1.0), axis=1)
    chance[:, 0] = 0.0
    return chance
