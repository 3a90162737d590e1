"""The state of the queue at one moment, for any number of requests: the way a live answer goes.

Built once, it has a table of sums per group for what does not depend on the request, and the pending jobs in order of
arrival for what does. Gives what ``situation.batch`` gives.
"""

from __future__ import annotations

import numpy as np

from queuecast.features import situation_tables as tables
from queuecast.features.asking import Asking
from queuecast.features.history import Floats, History, Ints
from queuecast.features.intervals import HOUR, ratio
from queuecast.features.situation_arrivals import Arrivals, Queue, Who
from queuecast.features.situation_groups import DIMS, Groups, milliseconds
from queuecast.features.situation_names import COLUMN, FEATURES, NARROW, WIDE
from queuecast.features.situation_request import request
from queuecast.features.situation_runs import Runs
from queuecast.features.situation_view import MEMORY, Matrix

BURSTS = {"user_burst_10min": 600_000, "user_burst_1h": HOUR}


class Instant:
    """The queue at ``at`` (epoch seconds, UTC), as known from ``history``."""

    def __init__(self, history: History, at: float) -> None:
        self.at = at
        times = self._times = tables.Times(history, at)
        self._low, self._high = (int(np.searchsorted(times.eligible, times.at, side=s)) for s in ("left", "right"))
        groups = self._groups = {dim: Groups(dim, history, most=1 << 20) for dim in DIMS if dim != "twin"}
        users = groups["user"]
        self._runs = Runs(times.start, times.end, history.limit_s, users.codes, users.size)
        pending, running = (
            times.part(rows, self._runs.predict(users.codes[rows], times.eligible[rows], history.limit_s[rows]))
            for rows in (times.pending, times.running)
        )
        self._pending = pending
        self._queues = {dim: Queue(dim, g, pending, g.codes[pending.rows], len(history)) for dim, g in groups.items()}
        twin = Groups("twin", history, pending.rows, most=0)
        self._queues["twin"] = Queue("twin", twin, pending, twin.codes, len(history))
        self._tables = self._make_tables(running)
        self._bursts = {name: self._burst(ms) for name, ms in BURSTS.items()}
        self._limits = self._usual_limits()

    def _make_tables(self, now: tables.Part) -> dict[str, tuple[list[int], Floats]]:
        times, groups = self._times, self._groups
        past, uses = tables.Past(times, groups), tables.Uses(times, groups)
        day = times.part(np.flatnonzero((times.start < times.at) & (times.start >= times.at - 24 * HOUR)))
        out, everything = {}, (np.zeros(1), np.zeros(1))
        for dim in groups:
            table = tables.Table(dim, groups[dim])
            found = tables.running(table, now, times.at) if dim in (*WIDE, *NARROW) else {}
            for name in ("cpus", "gpus"):
                if table.wants(f"capacity_{name}"):
                    most = np.maximum(found[name], uses.most(dim, name))
                    table.put(f"capacity_{name}", most)
                    table.put(f"idle_{name}", most - found[name])
            tables.started(table, day, times.at)
            past.waits(table)
            if dim == "cluster":
                everything = past.usage(table, now)
            elif dim in NARROW:
                for name, mine, whole in zip(("core", "gpu"), past.usage(table, now), everything, strict=True):
                    table.put(f"used_{name}_share", ratio(mine, np.full(len(mine), whole[0])))
            out[dim] = table.done()
        return out

    def _burst(self, ms: int) -> Arrivals:
        times, users = self._times, self._groups["user"]
        rows = np.arange(int(np.searchsorted(times.eligible, times.at - ms)), self._high)
        tasks = np.rint(times.history.tasks[rows]).astype(np.int64)
        return Arrivals(users, rows, users.codes[rows], tasks[:, None], len(times.eligible))

    def _usual_limits(self) -> Arrivals:
        """Sum and number of the known limits by partition: of the jobs before the moment at once, of those of that very
        moment in order of arrival."""
        times, groups = self._times, self._groups["partition"]
        before = slice(int(np.searchsorted(times.eligible, times.at - MEMORY)), self._low)
        base = np.column_stack([groups.sums(w, before) for w in self._limit_of(before)])
        rows = np.arange(self._low, self._high)
        weights = np.column_stack(self._limit_of(rows)).astype(np.int64)
        return Arrivals(groups, rows, groups.codes[rows], weights, len(times.eligible), base)

    def _limit_of(self, rows: Ints | slice) -> tuple[Floats, Floats]:
        limit = self._times.history.limit_s[rows]
        known = limit > 0
        return np.where(known, np.floor(limit), 0.0), known.astype(np.float64)

    def features(self, asking: Asking) -> Matrix:
        """Features (m, F) of requests asked at ``at``, in the order of ``FEATURES``; nan is unknown.

        Raises ValueError for a request asked at another moment, or for a job that has left the queue.
        """
        times, row = self._times, asking.row
        if (np.asarray(asking.asked) != self.at).any():
            raise ValueError("asked at another moment than the one prepared")
        own = np.maximum(row, 0)
        if len(times.eligible) and ((row >= 0) & (times.leave[own] < times.at)).any():
            raise ValueError("a job is asked about after it started or was cancelled")
        eligible = milliseconds(np.asarray(asking.eligible), times.base)
        place = np.where(row >= 0, row, np.searchsorted(times.eligible, eligible, side="right"))
        who = Who(row, place, self._low, self._high, self._pending)
        out: Matrix = np.empty((len(asking), len(FEATURES)), np.float32)
        codes = {dim: queue.groups.of_requests(asking) for dim, queue in self._queues.items()}
        for dim, (columns, values) in self._tables.items():
            out[:, columns] = values[codes[dim]]
        for dim, queue in self._queues.items():
            queue.fill(codes[dim], times.at, who, out)
        since = np.where(who.waiting, times.at - times.eligible[own], MEMORY + 1) if who.waiting.any() else np.full(len(row), MEMORY + 1)
        for name, ms in BURSTS.items():
            mine = np.where(since <= ms, times.history.tasks[own], 0) if who.waiting.any() else 0
            out[:, COLUMN[name]] = self._bursts[name].sums(codes["user"], who.arrived)[:, 0] - mine
        limits = self._limits.sums(codes["partition"], who.arrived)
        if who.waiting.any():
            limits = limits - np.column_stack(self._limit_of(own)) * (since <= MEMORY)[:, None]
        predicted = self._runs.predict(codes["user"], np.minimum(eligible, times.at), asking.limit_s)
        request(asking, predicted / 1000, ratio(limits[:, 0], limits[:, 1]), out)
        return out
