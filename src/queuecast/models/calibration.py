"""Intervals that cover what they claim: the model's levels are corrected by how they held lately.

For past jobs the probability that the model gave to "started by the time it did start" is kept (the probability
integral transform). Were the model right, these values would be uniform. Their own distribution, estimated with
censoring as the waits are, maps the model's levels to honest ones (Dawid 1984; Kuleshov, Fenner and Ermon 2018 call it
recalibration; with exchangeable jobs the levels hold as in conformal prediction, Vovk et al. 2019). With few past
answers the map is drawn towards no change.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from queuecast.features.history import Flags, Floats
from queuecast.models.distribution import WaitDistribution
from queuecast.models.waits import two_ends

GRID = np.linspace(0.0, 1.0, 201)
FULL_TRUST = 150.0
"""So many past answers count as much as the assumption that nothing needs correcting."""


@dataclass(frozen=True)
class Calibration:
    """``honest[i]`` is the share of past waits whose model probability was at most ``GRID[i]``; ``count`` answers
    stand behind it."""

    honest: Floats
    count: int

    @classmethod
    def none(cls) -> Calibration:
        return cls(GRID.copy(), 0)

    @classmethod
    def fit(
        cls,
        levels: Floats,
        started: Flags,
        weights: Floats | None = None,
        prior: Calibration | None = None,
        effective: float | None = None,
        full_trust: float = FULL_TRUST,
    ) -> Calibration:
        """From model probabilities at the time of start (or, censored, at the last moment still pending). With few of
        them the map is drawn towards ``prior`` (none: no change); ``effective`` is how many independent ones they are
        worth (none: all)."""
        before = GRID if prior is None else prior.honest
        count = len(levels)
        if not count:
            return cls(before.copy(), 0)
        w = np.ones(count) if weights is None else weights
        order = np.lexsort((~started, levels))
        u, d, w = levels[order], started[order], w[order]
        at_risk = np.cumsum(w[::-1])[::-1]
        survival = np.cumprod(np.where(d, 1.0 - w / np.maximum(at_risk, w), 1.0))
        upper = 1.0 - survival
        middle = (np.r_[0.0, upper[:-1]] + upper) / 2
        knots = np.r_[0.0, u[d], 1.0]
        values = np.r_[0.0, middle[d], max(float(upper[-1]), 1e-9)]
        # Several equal levels: the last of them holds the whole step.
        keep = np.r_[knots[1:] > knots[:-1], True]
        raw = np.interp(GRID, knots[keep], values[keep])
        raw[-1] = 1.0
        worth = count if effective is None else effective
        trust = worth / (worth + full_trust)
        return cls(np.maximum.accumulate(trust * raw + (1 - trust) * before), count)

    def probability(self, model: Floats | float) -> Floats:
        """Honest probability of what the model gives this probability."""
        return np.asarray(np.interp(model, GRID, self.honest), np.float64)

    def level(self, probability: Floats | float) -> Floats:
        """The model level to ask for so that ``probability`` holds."""
        # A flat stretch has no unique inverse; its right end is the safe one for upper bounds.
        steps = self.honest + np.arange(len(GRID)) * 1e-12
        return np.asarray(np.interp(probability, steps, GRID), np.float64)


@dataclass(frozen=True)
class CalibratedWait:
    """A wait distribution whose levels were corrected."""

    model: WaitDistribution
    calibration: Calibration

    def quantile(self, probability: Floats | float) -> Floats:
        """Seconds; infinite where the history does not reach."""
        return self.model.quantile(self.calibration.level(probability))

    def interval(self, share: float) -> tuple[float, float]:
        """Ends in seconds of the interval that claims ``share`` (``waits.two_ends``)."""
        low, high = two_ends(*(self.quantile(p) for p in ((1 - share) / 2, share, (1 + share) / 2)))
        return float(low), float(high)

    def within(self, seconds: Floats | float) -> Floats:
        """P(start within ``seconds``): rises with ``seconds``."""
        return self.calibration.probability(self.model.cdf(seconds))
