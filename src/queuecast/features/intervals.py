"""Sums over all jobs that were in some state at a moment, per group of jobs, for very many moments at once.

A job is in a state over a time interval: pending from its arrival until it leaves the queue, running from its start
until its end. The sum of weights over the jobs in the state at t is the sum over those that entered it before t less
the sum over those that left it before t. Each of the two is a running total along the events of one kind in time
order, one group after another, read where t falls. With integer weights this is exact: even where a running total
wraps around 2**63 the difference of two totals is right.

Sorting and searching make it n log n in the number of events and moments together.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from queuecast.features.history import Flags, Floats, Ints

NEVER = 1 << 42
"""Milliseconds, 139 years after the first job: later than anything that happens."""

HOUR = 3_600_000
"""Milliseconds."""

MOST_HALVINGS = 400
"""So many half-lives of growing weights are added up before they are scaled anew: 2**400 is far from overflow."""


def sorted_with(keys: Ints) -> tuple[Ints, Ints, int]:
    """Sort keys (not negative), equal ones kept in their order: where each came from, keys and places packed into one
    number each, and how many bits the place takes. Sorting plain numbers is several times faster than an argsort."""
    bits = len(keys).bit_length()
    if len(keys) and int(keys.max()).bit_length() + bits > 63:
        raise OverflowError("too many jobs over too long a time")
    packed = (keys << bits) | np.arange(len(keys))
    packed.sort()
    return packed & ((1 << bits) - 1), packed, bits


class Moments:
    """When one kind of event happened to which jobs, in time order; of equal times the lower row comes first.

    ``rows`` are the jobs' row numbers, ``when`` the times (ms). Events that never happen are not among them.
    """

    def __init__(self, when: Ints, only: Flags | None = None) -> None:
        happened = when < NEVER
        if only is not None:
            happened &= only
        rows = np.flatnonzero(happened)
        times = when[rows]
        by, packed, bits = sorted_with(times)
        self.rows: Ints = rows[by]
        self.when: Ints = packed >> bits

    def before(self, at: Ints) -> Ints:
        """How many happened before each of ``at`` (ms); quickest if ``at`` rises."""
        return np.searchsorted(self.when, at, side="left")


class Lanes:
    """Events in time order, one group ("lane") after another.

    ``rows`` are row numbers in that order, ``first[g]`` is where lane g begins (and lane g - 1 ends).
    """

    def __init__(self, rows: Ints, codes: Ints, size: int) -> None:
        """``rows``: events in time order; ``codes``: group numbers of all jobs, below ``size``."""
        mine = codes[rows]
        self.first: Ints = np.r_[0, np.cumsum(np.bincount(mine, minlength=size))]
        self._keys: Ints | None = None
        if self.first[1] < len(rows):
            by, self._keys, self._bits = sorted_with(mine)
            rows = rows[by]
        self.rows: Ints = rows

    def only(self, keep: Flags) -> tuple[Ints, Ints, Ints]:
        """Of some of the events (flags per job): ``rows``, ``first``, and how many come before each place in these."""
        kept = keep[self.rows]
        before = np.r_[0, np.cumsum(kept)]
        return self.rows[kept], before[self.first], before

    def place(self, codes: Ints, ranks: Ints) -> Ints:
        """Where in this order the first ``ranks`` events (in time order over all lanes) of lane ``codes`` end: the
        lane's events from ``first[codes]`` up to there are those. Quickest if (code, rank) rises."""
        if self._keys is None:  # all in the first lane
            return np.where(codes == 0, ranks, len(self.rows))
        return np.searchsorted(self._keys, (codes << self._bits) | ranks, side="left")


class Fading:
    """Sums whose terms halve with every ``half_life`` of age, along lanes.

    2**(s / half_life) is added up over events at s, and what is read at t is scaled by 2**(-t / half_life). Weights
    grow with s, so the newest count most in the rounding too; totals start anew with every lane and after so many
    half-lives that the powers would not fit.
    """

    def __init__(self, first: Ints, when: Ints, weights: list[Floats], half_life_ms: float) -> None:
        """``first``: where each lane begins, and the end; ``when``: ms of each event; ``weights``: k arrays (events,)."""
        self._half_life = half_life_ms
        count = len(when)
        starts = first[:-1][np.diff(first) > 0]
        lanes = starts
        if count and when.max() - when.min() > MOST_HALVINGS * half_life_ms:
            stretch = when // int(half_life_ms * MOST_HALVINGS)
            starts = np.union1d(starts, 1 + np.flatnonzero(np.diff(stretch)))
        lengths = np.diff(np.append(starts, count))
        continues = ~np.isin(starts, lanes)
        # The place before the first event stands for "none": nothing is summed up there.
        self._base: Ints = np.zeros(count + 1, np.int64)
        self._base[1:] = np.repeat(when[starts], lengths)
        self._sums = np.zeros((len(weights), count + 1))
        grown = np.exp2((when - self._base[1:]) / half_life_ms)
        for sums, weight in zip(self._sums, weights, strict=True):
            np.multiply(weight, grown, out=sums[1:])
        for begin, length, more in zip(starts.tolist(), lengths.tolist(), continues.tolist(), strict=True):
            part = self._sums[:, begin + 1 : begin + 1 + length]
            if more:
                part[:, 0] += self._sums[:, begin] * np.exp2((self._base[begin] - when[begin]) / half_life_ms)
            np.cumsum(part, axis=1, out=part)

    def read(self, first: Ints, place: Ints, at: Ints) -> tuple[Floats, Floats]:
        """Sums (k, m) over the events ``first`` to ``place`` - 1, up to a common scale, and that scale: the true sums
        at ``at`` (ms) are sums times scale. Where there is no event the sums are 0."""
        last = np.where(place > first, place, 0)
        age = np.maximum(at - self._base[last], 0)
        return np.take(self._sums, last, axis=1), np.exp2(age / -self._half_life)


class Oldest:
    """The job of a lane that arrived first among those that have not left, at any moment.

    Jobs only ever leave, so the first one still there moves forward in time: it is the first whose arrival order's
    running maximum of leaving times has not passed. The second is found likewise with the second largest.
    """

    def __init__(self, lanes: Lanes, leave: Ints) -> None:
        """``lanes``: arrivals; ``leave``: ms per job (by row number), ``NEVER`` at most."""
        left = leave[lanes.rows]
        lane = np.repeat(np.arange(len(lanes.first) - 1), np.diff(lanes.first)) * (2 * NEVER)
        top = np.maximum.accumulate(left + lane)
        before = np.r_[-1, top[:-1]] if len(top) else top
        before = np.where(before < lane, lane - 1, before)  # of another lane: nobody before
        self._tops = (top, np.maximum.accumulate(np.minimum(left + lane, before)))

    def place(self, codes: Ints, at: Ints, which: int) -> Ints:
        """Where the first (0) or second (1) job still there at ``at`` stands in the order of the lanes; past the end of
        the lane, or of the arrivals that count, if there is none."""
        return np.searchsorted(self._tops[which], codes * (2 * NEVER) + at, side="left")


def ratio(over: npt.NDArray[np.generic], under: npt.NDArray[np.generic]) -> Floats:
    """over / under, nan where ``under`` is 0."""
    out = np.full(len(under), np.nan)
    np.divide(over, under, out=out, where=under != 0)
    return out
