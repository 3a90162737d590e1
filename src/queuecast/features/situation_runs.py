"""The run time predicted for a job when it became eligible.

It is the mean of its user's last two runs that had ended before, at most the job's limit: Tsafrir, Etsion, Feitelson
(2007), Backfilling using system-generated predictions rather than user runtime estimates, IEEE TPDS 18(6). For users
without such runs it is the limit times the cluster's mean share of the limit that runs took, else the limit. Only runs
that ended in the ``MEMORY_S`` before count.
"""

from __future__ import annotations

import numpy as np

from queuecast.features.history import Flags, Floats, Ints
from queuecast.features.intervals import Lanes, Moments, ratio, sorted_with
from queuecast.features.situation_groups import MEMORY_S, counted_limit

BILLION = 1e9


class Runs:
    """Runs that have ended, to predict run times from."""

    def __init__(self, start: Ints, end: Ints, limit_s: Floats, users: Ints, size: int) -> None:
        self._ended = Moments(end)
        self._lanes = Lanes(self._ended.rows, users, size + 1)
        self._length = (end - start)[self._lanes.rows]
        self._end = end[self._lanes.rows]
        bounded: Flags = (limit_s > 0)[self._ended.rows]
        rows = self._ended.rows[bounded]
        self._bounded: Ints = np.r_[0, np.cumsum(bounded)]
        shares = np.rint(np.minimum((end - start)[rows] / 1000 / limit_s[rows], 1.0) * BILLION).astype(np.int64)
        self._shares = np.r_[0, np.cumsum(shares)]

    def predict(self, users: Ints, eligible: Ints, limit_s: Floats) -> Ints:
        """Run times in ms predicted for jobs of ``users`` (group numbers) that became eligible then (ms)."""
        memory = int(MEMORY_S * 1000)
        by = np.argsort(eligible, kind="stable")
        by = by[sorted_with(users[by])[0]]
        user, at = users[by], eligible[by]
        place, first = self._lanes.place(user, self._ended.before(at)), self._lanes.first[user]
        total, count = np.zeros(len(by), np.int64), np.zeros(len(by), np.int64)
        for back in (1, 2):
            if len(self._length):
                run = np.maximum(place - back, 0)
                counts = (place - back >= first) & (self._end[run] >= at - memory)
                total += np.where(counts, self._length[run], 0)
                count += counts
        mine = np.empty(len(by))
        mine[by] = ratio(total, count)
        lately, long_ago = (self._bounded[self._ended.before(at)] for at in (eligible, eligible - memory))
        share = ratio(self._shares[lately] - self._shares[long_ago], lately - long_ago) / BILLION
        limit = counted_limit(limit_s) * 1000
        usual = np.where(np.isnan(share), limit, limit * share)
        return np.rint(np.where(np.isnan(mine), usual, np.fmin(mine, limit_s * 1000))).astype(np.int64)
