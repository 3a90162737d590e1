"""Past answers and what came of them: each made with what was known at its moment, by a model that had not seen it."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from queuecast.features.history import Flags, Floats
from queuecast.models.openjobs import inside_share

MOST = 20_000
"""At most so many answers are kept with a model: the latest."""


@dataclass(frozen=True)
class TrackRecord:
    """One entry per answer, sorted by ``asked`` (epoch seconds, UTC); arrays of shape (n,). Seconds count from ``asked``.

    ``pending``: asked while the job waited, else at the moment it became eligible. ``wait_s`` is the remaining wait
    that came, or (``started`` False) how long the job was known to wait without a start. ``pit`` is the probability
    that the answer gave to a wait of at most ``wait_s``. ``low_50_s`` to ``high_95_s`` are the ends of the intervals,
    infinite where the answer did not reach. ``p_1h`` to ``p_24h``: P(start within). ``slurm_s`` is Slurm's own
    estimate at that moment, nan without one. Texts are codes into ``partitions``.
    """

    asked: Floats
    pending: Flags
    partition: np.ndarray[tuple[int], np.dtype[np.int64]]
    gpus: Floats
    wait_s: Floats
    started: Flags
    pit: Floats
    median_s: Floats
    low_50_s: Floats
    high_50_s: Floats
    low_80_s: Floats
    high_80_s: Floats
    low_95_s: Floats
    high_95_s: Floats
    p_1h: Floats
    p_4h: Floats
    p_24h: Floats
    slurm_s: Floats
    partitions: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.asked)

    def take(self, rows: Flags) -> TrackRecord:
        """Some of the answers."""
        kept = {f.name: getattr(self, f.name) for f in fields(self)}
        return TrackRecord(**{n: v if n == "partitions" else v[rows] for n, v in kept.items()})

    def where(self, *, partition: str | None = None, gpu: bool | None = None, pending: bool | None = None) -> TrackRecord:
        """Answers of one kind; a partition is compared case-folded."""
        keep = np.ones(len(self), bool)
        if partition is not None:
            keep &= np.isin(self.partition, [i for i, name in enumerate(self.partitions) if name.casefold() == partition.casefold()])
        if gpu is not None:
            keep &= (np.nan_to_num(self.gpus) > 0) == gpu
        if pending is not None:
            keep &= self.pending == pending
        return self.take(keep)

    def held(self, share: float) -> tuple[float, int]:
        """Share of the intervals claiming ``share`` (0.5, 0.8, 0.95) that held, and how many answers were
        counted: those whose job started, and those already longer than the interval. nan with none. Near the end of the record
        it flatters: those that have started are the ones that waited little."""
        inside, counted = self._inside(share)
        count = int(np.count_nonzero(counted))
        return (float(np.count_nonzero(inside & self.started)) / count if count else float("nan")), count

    def held_open_counted(self, share: float) -> tuple[float, int]:
        """The same share with open jobs counted as ``openjobs`` does; the number is that of ``held``: answers whose outcome
        is known. nan with none."""
        inside, counted = self._inside(share)
        count = int(np.count_nonzero(counted))
        if not count:
            return float("nan"), 0
        # Both kinds of interval lie at known levels of the answer: from now to ``share``, or central.
        one_sided = getattr(self, f"low_{round(share * 100)}_s") <= 0
        bottom = np.where(one_sided, 0.0, (1 - share) / 2)
        return inside_share(bottom, self.pit, np.where(one_sided, share, (1 + share) / 2), inside, self.started), count

    def _inside(self, share: float) -> tuple[Flags, Flags]:
        """Waits between the ends, and answers whose outcome is known."""
        low, high = (getattr(self, f"{end}_{round(share * 100)}_s") for end in ("low", "high"))
        return (self.wait_s >= low - 0.5) & (self.wait_s <= high + 0.5), self.started | (self.wait_s > high)
