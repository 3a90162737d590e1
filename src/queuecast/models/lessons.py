"""What can be learned from at a moment: cases with the wait that came of them, censored ones spread over what may come.

What a censored job has waited is known; the rest is spread over the longer waits of others in the proportions that
the Kaplan-Meier estimate gives them (Efron 1967, "redistribute to the right").
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from queuecast.features.cases import Cases
from queuecast.features.history import Flags, Floats, Ints
from queuecast.models.distribution import kaplan_meier

MOST_CASES = 80_000
"""Cases to learn from at most: the latest weigh most, so the oldest are thinned first."""

COPIES = 3
"""A censored case stands in as so many equally likely outcomes."""

HALF_LIFE_S = 40 * 86400.0
"""A case that much older weighs half."""


@dataclass(frozen=True)
class Lessons:
    """``rows`` numbers the case of each lesson, ``z`` is log1p of its wait in seconds, ``weight`` what it counts, at most 1."""

    rows: Ints
    z: Floats
    weight: Floats

    @classmethod
    def of(cls, cases: Cases, at: float, half_life_s: float = HALF_LIFE_S) -> Lessons:
        """From the outcomes known at ``at`` (epoch seconds, UTC). Raises ``ValueError`` if none of the cases has started."""
        rows = _chosen(cases, at)
        some = cases.take(rows)
        waits, started = some.outcomes(at)
        if not started.any():
            raise ValueError("no case has started")
        index, z = _outcomes(waits, started)
        weight = np.exp2(-(at - some.asked) / half_life_s)[index] * np.where(started, 1.0, 1.0 / COPIES)[index]
        return cls(rows[index], z, weight / weight.max())


def _chosen(cases: Cases, at: float) -> Ints:
    """Cases asked before ``at``, the oldest thinned: of each earlier stretch of time only every second, fourth, ..."""
    rows = np.flatnonzero(cases.asked < at)
    if len(rows) <= MOST_CASES:
        return rows
    # Half of the places go to the latest cases, the rest evenly to all that came before.
    late = rows[-MOST_CASES // 2 :]
    early = rows[: len(rows) - len(late)]
    return np.concatenate([early[np.linspace(0, len(early) - 1, MOST_CASES - len(late)).astype(np.int64)], late])


def _outcomes(waits: Floats, started: Flags) -> tuple[Ints, Floats]:
    """Rows and log1p waits; a censored row comes ``COPIES`` times with outcomes beyond what it waited."""
    known, unknown = np.flatnonzero(started), np.flatnonzero(~started)
    z = np.log1p(waits)
    if not len(unknown):
        return known, z[known]
    whole = kaplan_meier(waits, started)
    base = np.interp(z[unknown], whole.z, whole.p)
    top = float(np.log1p(max(waits.max(), 1.0))) + 0.7
    level = base[:, None] + (1 - base[:, None]) * (np.arange(COPIES) + 0.5) / COPIES
    beyond = np.where(level > whole.p[-1], top, np.interp(level, whole.p, whole.z))
    beyond = np.maximum(beyond, z[unknown][:, None] + 1e-6)
    return np.concatenate([known, np.repeat(unknown, COPIES)]), np.concatenate([z[known], beyond.ravel()])
