"""Corrections of a model's levels per kind of case: pending or not, partition, size; each drawn towards the coarser one.

A correction for all cases alone can hold overall and fail in the smallest group (Mondrian conformal prediction, Vovk et
al. 2003). It is renewed as outcomes become known, newer ones weighing more, so that it follows the queue.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from queuecast.features.build import mixed_bits
from queuecast.features.cases import Cases
from queuecast.features.history import Flags, Floats, Ints
from queuecast.models.blend import Cdfs, best_share
from queuecast.models.calibration import GRID, Calibration
from queuecast.models.waits import Waits

LEVELS: tuple[tuple[str, ...], ...] = ((), ("pending",), ("pending", "partition"), ("pending", "partition", "size"))
"""What tells the kinds apart, coarse to fine."""

HALF_LIFE_S = 5 * 86400.0

FULL_TRUST = 40.0
"""So many independent outcomes count as much as the coarser correction (chosen on the middle of the public traces)."""
MOST = 4000
"""A kind's correction rests on at most so many of its latest outcomes."""

BURST_S = 6 * 3600.0
"""Jobs of one user asked about within that time share their fate: together they are worth one outcome."""

FOLLOWED = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Shares of the correction that are tried."""

WORTH_IT = 0.01
"""Levels that hold are worth so much of the CRPS."""

Key = tuple[int, ...]


def kinds(cases: Cases) -> dict[str, Ints]:
    """The codes that ``LEVELS`` name, and ``burst``. A case asked more than a minute after its job became eligible is a
    pending one."""
    pending = (cases.asked - cases.eligible > 60).astype(np.int64)
    burst = np.zeros(len(cases), np.uint64)
    for part in (np.floor(cases.asked / BURST_S), cases.groups["account"], cases.groups["user"]):
        # Well mixed bits, so that one number tells a burst from all others, whatever other cases there are.
        burst = mixed_bits(burst ^ mixed_bits(np.asarray(part, np.int64).view(np.uint64)))
    return {"pending": pending, "partition": cases.groups["partition"], "size": cases.groups["size"], "burst": burst.view(np.int64)}


@dataclass(frozen=True)
class LevelMaps:
    """Corrections by (level, codes)."""

    maps: dict[tuple[int, Key], Calibration] = field(default_factory=dict)

    @classmethod
    def fit(cls, pit: Floats, started: Flags, asked: Floats, codes: dict[str, Ints], at: float, *, fewest: int = 30) -> LevelMaps:
        """From past answers in the order of ``asked``: ``pit``, the probability given to a wait of at most what came,
        or (``started`` False) of what has been waited so far."""
        maps: dict[tuple[int, Key], Calibration] = {}
        for number, dims in enumerate(LEVELS):
            columns = [codes[d] for d in dims]
            for key, rows in _split(columns, len(pit)):
                if len(rows) < fewest and dims:
                    continue
                rows = rows[-MOST:]
                weight = np.exp2(-(at - asked[rows]) / HALF_LIFE_S)
                prior = _coarser(maps, number, key)
                worth = _worth(codes["burst"][rows], weight)
                maps[number, key] = Calibration.fit(pit[rows], started[rows], weight, prior, worth, FULL_TRUST)
        return cls(maps)

    def softened(self, share: float) -> LevelMaps:
        """Followed only so far: 0 leaves every level as it is, 1 corrects it whole."""
        return LevelMaps({key: Calibration((1 - share) * GRID + share * c.honest, c.count) for key, c in self.maps.items()})

    def of(self, codes: dict[str, int]) -> Calibration:
        """The finest correction that there is for one kind."""
        key = tuple(codes[d] for d in LEVELS[-1])
        return self.maps.get((len(LEVELS) - 1, key)) or _coarser(self.maps, len(LEVELS) - 1, key) or Calibration.none()

    def correct(self, waits: Waits, codes: dict[str, Ints]) -> Waits:
        """Corrected distributions, row by row."""
        cdf = np.empty_like(waits.cdf)
        for key, rows in _split([codes[d] for d in LEVELS[-1]], len(waits)):
            found = self.of(dict(zip(LEVELS[-1], key, strict=True)))
            cdf[rows] = np.interp(waits.cdf[rows], GRID, found.honest)
        return Waits(cdf, waits.knots_s)


def share_of_correction(
    raw: Cdfs, corrected: Cdfs, knots_s: Floats, wait_s: Floats, started: Flags | None = None, followed_s: Floats | None = None
) -> float:
    """How far corrections are followed: as far as they cost next to no CRPS of log1p(wait) over past answers, which the
    corrections of then had not seen. Where they only followed noise, that is less, or not at all. Rows not corrected
    yet (nan) do not count. For the outcomes (None: all started) see ``blend.best_share``."""
    came = np.ones(len(raw), bool) if started is None else started
    return best_share(raw, corrected, knots_s, wait_s, came, np.arange(len(raw)), FOLLOWED, 1.0, followed_s, WORTH_IT)


def pits(waits: Waits, wait_s: Floats, started: Flags, luck: Floats) -> Floats:
    """Probability integral transform. A wait of zero is a step of the distribution: its value is drawn evenly below
    the step by ``luck`` (in 0 to 1, one per case), as it must be for discrete outcomes (Czado et al. 2009)."""
    level = waits.within(wait_s)
    return np.where(started & (wait_s <= 0), waits.cdf[:, 0] * luck, level)


def luck(count: int) -> Floats:
    """Numbers in 0 to 1, evenly spread and the same every time (the golden-ratio sequence)."""
    return np.asarray((np.arange(1, count + 1) * 0.6180339887498949) % 1.0)


def _worth(burst: Ints, weight: Floats) -> float:
    """So many independent outcomes are these worth (Kish 1965, with bursts as clusters)."""
    if not len(burst):
        return 0.0
    total = np.bincount(np.unique(burst, return_inverse=True)[1], weight)
    return float(total.sum() ** 2 / np.square(total).sum())


def _coarser(maps: dict[tuple[int, Key], Calibration], number: int, key: Key) -> Calibration | None:
    for level in range(number - 1, -1, -1):
        found = maps.get((level, key[: len(LEVELS[level])]))
        if found is not None:
            return found
    return None


def _split(columns: list[Ints], count: int) -> list[tuple[Key, Ints]]:
    """Row numbers by key, in order."""
    if not columns:
        return [((), np.arange(count))]
    order = np.lexsort(columns[::-1])
    sorted_ = [c[order] for c in columns]
    new = np.zeros(count, bool)
    for c in sorted_:
        new[1:] |= c[1:] != c[:-1]
    return [
        (tuple(int(columns[i][rows[0]]) for i in range(len(columns))), np.sort(rows))
        for rows in np.split(order, np.flatnonzero(new))
        if len(rows)
    ]
