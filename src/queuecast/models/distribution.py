"""A distribution of waits from observed and censored waits: the Kaplan-Meier estimate, made continuous.

Source: Kaplan and Meier, "Nonparametric estimation from incomplete observations", JASA 53 (1958). Between the
observed waits the distribution is interpolated linearly in log(1 + seconds), since waits spread over decades; what
lies beyond the longest observed wait stays unknown instead of being guessed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class WaitDistribution:
    """``cdf`` at ``z = log1p(seconds)`` knots, increasing; the last value is below 1: the rest is unknown.

    ``offset`` is the time already waited: the distribution is then that of the remaining wait.
    """

    z: Floats
    p: Floats
    offset: float = 0.0

    def cdf(self, seconds: float | Floats) -> Floats:
        """P(wait <= seconds). Zero for negative waits; constant beyond what was observed."""
        total = np.log1p(np.maximum(0.0, np.asarray(seconds, float) + self.offset))
        base = float(np.interp(np.log1p(self.offset), self.z, self.p)) if self.offset > 0 else 0.0
        value = np.interp(total, self.z, self.p, left=0.0)
        return np.clip((value - base) / (1.0 - base), 0.0, 1.0)

    def quantile(self, probability: float | Floats) -> Floats:
        """Smallest wait in seconds with cdf >= probability; infinite where the data do not reach."""
        base = float(np.interp(np.log1p(self.offset), self.z, self.p)) if self.offset > 0 else 0.0
        wanted = base + np.asarray(probability, float) * (1.0 - base)
        z = np.interp(wanted, self.p, self.z)
        seconds = np.maximum(0.0, np.expm1(z) - self.offset)
        return np.where(wanted > self.p[-1], np.inf, seconds)

    def after(self, waited_s: float) -> WaitDistribution:
        """The distribution of the remaining wait of a job that has waited ``waited_s`` already."""
        return WaitDistribution(self.z, self.p, max(0.0, waited_s))

    def reach(self) -> float:
        """Largest probability the data speak about."""
        return float(self.cdf(np.inf))


def kaplan_meier(waits: Floats, started: Flags, weights: Floats | None = None) -> WaitDistribution:
    """Estimate from waits in seconds, shape (n,); ``started`` False marks a wait known only to exceed its value.

    ``weights`` (n,) count each job; None counts each as one. Waits are told apart down to a millisecond.
    """
    w = np.ones(len(waits)) if weights is None else weights
    # Censored after started at the same time: the usual convention.
    t = np.round(waits, 3)
    order = np.lexsort((~started, t))
    t, d, w = t[order], started[order], w[order]
    at_risk = np.cumsum(w[::-1])[::-1]
    factors = np.where(d, 1.0 - w / np.maximum(at_risk, w), 1.0)
    survival = np.cumprod(factors)
    # The next job may exceed all n seen: (n + 1) in the denominator, as for order statistics.
    total = float(w.sum())
    step = (1.0 - survival) * total / (total + 1.0)
    times, first, count = np.unique(t[d], return_index=True, return_counts=True)
    if not len(times):
        return WaitDistribution(np.array([0.0, 1.0]), np.array([0.0, 0.0]))
    upper = step[d][np.r_[first[1:] - 1, d.sum() - 1]]
    lower = np.r_[0.0, upper[:-1]]
    # A single job's step is passed at its middle. Many jobs with the same wait (all that start at once) are a real
    # step: all but half a job on either side stays at that wait and is not smeared towards the next one.
    half = (upper - lower) / count / 2
    z = np.repeat(np.log1p(times), 2)
    z[1::2] += 1e-9
    p = np.empty(2 * len(times))
    p[0::2], p[1::2] = lower + half, upper - half
    z, p = np.maximum.accumulate(np.r_[z, z[-1] + 1e-9]), np.r_[p, upper[-1]]
    if times[0] > 0:
        z, p = np.r_[0.0, z], np.r_[0.0, p]
    return WaitDistribution(z, p)
