"""Moments at which someone asks how much longer a job will wait, with what was known then and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from queuecast.features.declare import Feature
from queuecast.features.history import Flags, Floats, Ints


@dataclass(frozen=True)
class Cases:
    """One row per (job, moment), sorted by ``asked``. Times are epoch seconds (UTC).

    ``start`` is infinite where no start is known; such a job was last known to be pending (or was cancelled) at
    ``last_pending``. ``values`` is float32 of shape (n, len(features)); nan is unknown. ``groups`` are codes of shape
    (n,) for calibration and for reporting: partition, account, user, size, gpu (1 if the job asks for one) at least.
    """

    asked: Floats
    eligible: Floats
    start: Floats
    last_pending: Floats
    features: tuple[Feature, ...]
    values: np.ndarray[tuple[int, int], np.dtype[np.float32]]
    groups: dict[str, Ints]

    def __len__(self) -> int:
        return len(self.asked)

    def take(self, rows: Ints | Flags) -> Cases:
        """Some of the rows, by number or by flag."""
        return replace(
            self,
            asked=self.asked[rows],
            eligible=self.eligible[rows],
            start=self.start[rows],
            last_pending=self.last_pending[rows],
            values=self.values[rows],
            groups={name: codes[rows] for name, codes in self.groups.items()},
        )

    def outcomes(self, at: float) -> tuple[Floats, Flags]:
        """Remaining waits in seconds as known at ``at``, and which of them ended in a start by then; the others are
        censored: they waited at least that long. Rows asked after ``at`` have no outcome (nan, False)."""
        started = self.start <= at
        until = np.where(started, self.start, np.minimum(self.last_pending, at))
        remaining = np.where(self.asked <= at, np.maximum(0.0, until - self.asked), np.nan)
        return remaining, started & (self.asked <= at)
