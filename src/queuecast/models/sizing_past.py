"""What jobs of the same kind had used by the time a job was submitted.

All in numpy: jobs are sorted by kind and end once, and the history of each is a stretch of that order (O(n log n)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from queuecast.features.history import Flags, Floats, Ints

SHARES: Floats = np.array([1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.22, 0.16, 0.11, 0.075, 0.05, 0.03, 0.015, 0.007])
"""What may be proposed, as shares of what is asked. The first is "as asked"."""

LATEST = 64
"""At most so many of the latest jobs of a kind are looked at (a power of two)."""

NEAR = 32
"""Uses are compared with this job's own request for so many of them."""

FEWEST = 5
"""A kind is told of from so many jobs on."""

_AT_ONCE = 20_000
Counts = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Jobs:
    """Jobs of one resource. ``submit`` and ``end`` in epoch seconds; ``use`` and ``asked`` in the resource's unit, ``use`` nan
    where unknown; ``killed``: it reached what was asked and was killed for it, so it would have used more; ``weight``: what a
    unit of over-ask costs (1, CPUs, or hours); ``codes`` (rungs, n) number the kinds."""

    submit: Floats
    end: Floats
    use: Floats
    asked: Floats
    killed: Flags
    weight: Floats
    codes: Ints

    def __len__(self) -> int:
        return len(self.submit)

    def take(self, rows: Ints) -> Jobs:
        """Some of the rows."""
        return Jobs(
            self.submit[rows], self.end[rows], self.use[rows], self.asked[rows], self.killed[rows], self.weight[rows], self.codes[:, rows]
        )

    @property
    def sufficed(self) -> Flags:
        """Jobs for which the request was enough: only these can be killed by a smaller one."""
        return ~self.killed & (self.use <= self.asked)


@dataclass(frozen=True)
class Seen:
    """By job and rung (m, R): how many jobs of the kind had ended, seconds since the last end, and in shares of what the
    job asks for: the last use, the largest of 5 and of ``LATEST``. ``above`` (m, R, shares): how many of the latest ``NEAR`` used
    more than that share of what this job asks; ``above_own``: of ``LATEST``, of what they asked themselves. nan: nothing known."""

    count: Floats
    age: Floats
    last: Floats
    most_5: Floats
    most: Floats
    above: Counts
    above_own: Counts

    def take(self, rows: Ints) -> Seen:
        """Some of the jobs."""
        return Seen(
            self.count[rows], self.age[rows], self.last[rows], self.most_5[rows], self.most[rows], self.above[rows], self.above_own[rows]
        )


class Past:
    """Ended jobs with a known use, found by kind and time."""

    def __init__(self, jobs: Jobs) -> None:
        rows = np.flatnonzero(np.isfinite(jobs.use) & (jobs.asked > 0) & np.isfinite(jobs.end))
        self.moments = np.unique(jobs.end[rows])
        # A job killed at its limit needs more than that limit; how much more is not known.
        self.need = np.where(jobs.killed, np.maximum(jobs.use, jobs.asked) * 1.0001, jobs.use)
        self.own = _place(self.need / np.where(jobs.asked > 0, jobs.asked, np.nan))
        self.end = jobs.end
        self._stride = len(self.moments) + 1
        when = np.searchsorted(self.moments, jobs.end[rows])
        self._rungs = []
        for codes in jobs.codes:
            key = codes[rows] * self._stride + when
            order = np.argsort(key, kind="stable")
            self._rungs.append(_Rung(rows[order], key[order], self.need[rows[order]], self.own[rows[order]]))

    def stretch(self, rung: int, codes: Ints, moment: Floats) -> tuple[Ints, Ints]:
        """From where to where in the order of ``rung`` lie the jobs of these kinds that ended before each moment."""
        keys = self._rungs[rung].keys
        low = np.searchsorted(keys, codes * self._stride)
        high = np.searchsorted(keys, codes * self._stride + np.searchsorted(self.moments, moment))
        return low, np.where(codes < 0, low, high)

    def rows(self, rung: int, code: int, moment: float) -> Ints:
        """The jobs of one kind that ended before the moment, oldest first."""
        low, high = self.stretch(rung, np.array([code]), np.array([moment]))
        return self._rungs[rung].order[int(low[0]) : int(high[0])]

    def look(self, codes: Ints, moment: Floats, asked: Floats) -> Seen:
        """What was known of the kinds ``codes`` (R, m) before ``moment`` by jobs that ask for ``asked``."""
        m, rungs, width = len(moment), len(codes), len(SHARES)
        figures = np.full((4, m, rungs), np.nan)
        count = np.zeros((m, rungs))
        above, own = np.zeros((m, rungs, width), np.uint8), np.zeros((m, rungs, width), np.uint8)
        for r, rung in enumerate(self._rungs):
            for first in range(0, m, _AT_ONCE):
                part = slice(first, first + _AT_ONCE)
                low, high = self.stretch(r, codes[r, part], moment[part])
                count[part, r] = high - low
                own[part, r] = rung.above_own(low, high)
                some = np.flatnonzero(high > low)
                here = first + some
                low, high = low[some], high[some]
                above[here, r] = rung.above(low, high, asked[here])
                figures[0, here, r] = moment[here] - self.end[rung.order[high - 1]]
                for k, back in ((1, 1), (2, 5), (3, LATEST)):
                    figures[k, here, r] = rung.most(np.maximum(low, high - back), high) / asked[here]
        return Seen(count, figures[0], figures[1], figures[2], figures[3], above, own)


class _Rung:
    """Ended jobs sorted by kind and end: their rows, keys, needs (``need``) and places among ``SHARES`` of their own request."""

    def __init__(self, order: Ints, keys: Ints, need: Floats, own: Ints) -> None:
        self.order, self.keys, self.need = order, keys, need
        self.places = np.zeros((len(order) + 1, len(SHARES)), np.int32)
        np.cumsum(own[:, None] >= np.arange(len(SHARES), 0, -1), axis=0, out=self.places[1:], dtype=np.int32)
        self.tables = [need]  # largest of 1, 2, 4, ... from each place on
        for power in range(LATEST.bit_length() - 1):
            before, step = self.tables[-1], 1 << power
            self.tables.append(np.fmax(before, np.concatenate([before[step:], np.full(min(step, len(before)), -np.inf)])))

    def above_own(self, low: Ints, high: Ints) -> Counts:
        return (self.places[high] - self.places[np.maximum(low, high - LATEST)]).astype(np.uint8)

    def most(self, low: Ints, high: Ints) -> Floats:
        """The largest need from ``low`` to before ``high`` (at most LATEST places, at least one)."""
        power = np.frexp((high - low).astype(np.float64))[1] - 1
        found = np.empty(len(low))
        for p in np.unique(power):
            w = np.flatnonzero(power == p)
            found[w] = np.fmax(self.tables[p][low[w]], self.tables[p][high[w] - (1 << int(p))])
        return found

    def above(self, low: Ints, high: Ints, asked: Floats) -> Counts:
        exceeded = np.zeros((len(low), len(SHARES) + 1), np.uint8)
        for back in range(1, NEAR + 1):
            here = np.flatnonzero(high - low >= back)
            if not len(here):
                break
            exceeded[here, _place(self.need[high[here] - back] / asked[here])] += 1
        return np.cumsum(exceeded[:, ::-1], axis=1, dtype=np.uint8)[:, :-1]


def _place(share: Floats) -> Ints:
    """How many of ``SHARES`` each share exceeds. The sum from the right over places is then a count per share of the grid."""
    exceeded = np.searchsorted(SHARES[::-1], np.nan_to_num(share, nan=0.0), side="left")
    return np.asarray(exceeded, np.int64)
