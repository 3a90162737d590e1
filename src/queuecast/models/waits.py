"""Many wait distributions at once, on common knots: what every model predicts and every measure reads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from queuecast.features.history import Floats

KNOTS_S: Floats = np.r_[0.0, np.expm1(np.linspace(np.log1p(1.0), np.log1p(90 * 86400.0), 95))]
"""96 knots from 0 s and 1 s to 90 days, evenly spaced in log(1 + seconds)."""


AT_ONCE_S = 60.0
"""A start within the minute is a start at once: Slurm's own scheduling cycles are about that long."""


def two_ends(low: Floats, one_sided: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Ends of an interval that claims a share, from the quantiles at (1 - share) / 2, share and (1 + share) / 2.

    Where the lower one is a start at once, the interval begins now and ends at the quantile of the share itself: a
    central interval would hold more than it claims there, since all that start at once lie on its lower end."""
    at_once = low <= AT_ONCE_S
    return np.where(at_once, 0.0, low), np.where(at_once, one_sided, high)


@dataclass(frozen=True)
class Waits:
    """``cdf[i, k]`` = P(wait of case i <= ``knots_s[k]``), rising with k; ``cdf[i, 0]`` is the chance to start at once.

    Between knots a distribution is linear in log(1 + seconds). The last value may be below 1: what lies beyond is
    unknown.
    """

    cdf: Floats
    knots_s: Floats

    def __len__(self) -> int:
        return len(self.cdf)

    def quantile(self, probability: float | Floats) -> Floats:
        """Seconds by which the share ``probability`` has started: shape (n,) for one probability or one per case.
        Infinite where the distribution does not reach, nan where it is unknown (a cdf that ends in nan)."""
        wanted = np.broadcast_to(np.asarray(probability, np.float64), (len(self),))
        z = np.log1p(self.knots_s)
        # First knot whose cdf reaches what is wanted; the line from the knot before is followed back.
        reached = self.cdf >= wanted[:, None] - 1e-12
        after = np.argmax(reached, axis=1)
        rows = np.arange(len(self))
        before = np.maximum(after - 1, 0)
        low, high = self.cdf[rows, before], self.cdf[rows, after]
        share = np.divide(wanted - low, high - low, out=np.zeros(len(self)), where=high > low)
        seconds = np.expm1(z[before] + np.clip(share, 0.0, 1.0) * (z[after] - z[before]))
        return np.where(reached[:, -1], seconds, np.where(np.isnan(self.cdf[:, -1]) | np.isnan(wanted), np.nan, np.inf))

    def interval(self, share: float) -> tuple[Floats, Floats]:
        """Lower and upper ends in seconds, each (n,), of the interval that claims ``share``."""
        return two_ends(self.quantile((1 - share) / 2), self.quantile(share), self.quantile((1 + share) / 2))

    def within(self, seconds: float | Floats) -> Floats:
        """P(wait <= seconds), shape (n,), for one number of seconds or one per case; rises with seconds."""
        wanted = np.broadcast_to(np.asarray(seconds, np.float64), (len(self),))
        z, at = np.log1p(self.knots_s), np.log1p(np.maximum(wanted, 0.0))
        after = np.clip(np.searchsorted(z, at), 1, len(z) - 1)
        rows = np.arange(len(self))
        low, high = self.cdf[rows, after - 1], self.cdf[rows, after]
        share = np.clip((at - z[after - 1]) / (z[after] - z[after - 1]), 0.0, 1.0)
        return np.where(wanted < 0, 0.0, low + share * (high - low))

    def after(self, waited_s: Floats) -> Waits:
        """Distributions of the remaining wait, given how long each has waited (n,). nan where hardly anybody waited
        as long: nothing is known then."""
        base = self.within(waited_s)
        cdf = np.stack([self.within(waited_s + k) for k in self.knots_s], axis=1)
        left = np.where(base < 0.95, 1.0 - base, np.nan)
        return Waits(np.where((waited_s > 0)[:, None], (cdf - base[:, None]) / left[:, None], self.cdf), self.knots_s)
