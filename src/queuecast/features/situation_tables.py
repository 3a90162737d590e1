"""Sums over the jobs of every group at one moment, as tables that requests are looked up in.

What of the queue's state does not depend on who asks (all but the place in the queue), for one dimension.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from queuecast.features.history import Floats, History, Ints
from queuecast.features.intervals import HOUR, NEVER, ratio, sorted_with
from queuecast.features.situation_groups import Groups, base_of, counted_cpus, counted_gpus, counted_limit, milliseconds
from queuecast.features.situation_names import COLUMN, HALF_LIFE_DAYS, HOURS, NARROW, USAGE_HALF_LIFE_DAYS
from queuecast.features.situation_past import DAY, LAST
from queuecast.features.situation_use import marks
from queuecast.features.situation_view import MEMORY

BLOCK = 1 << 16


@dataclass
class Part:
    """Some of the jobs: row numbers, rising, and their numbers as ``situation_jobs.Jobs`` has them (ms)."""

    rows: Ints
    eligible: Ints
    start: Ints
    end: Ints
    tasks: Ints
    cpus: Ints
    gpus: Ints
    limit: Ints
    predicted: Ints


class Times:
    """Times of all jobs (ms) and which of them are in which state at ``at``: row numbers."""

    def __init__(self, history: History, at: float) -> None:
        self.history = history
        self.base = base_of(history)
        self.at = int(milliseconds(np.array([at]), self.base)[0])
        self.eligible = milliseconds(history.eligible, self.base)
        self.start = np.maximum(milliseconds(history.start, self.base), self.eligible)
        over = np.maximum(milliseconds(history.end, self.base), self.eligible)
        self.leave = np.where(self.start < NEVER, self.start, over)
        self.end = np.where(self.start < NEVER, np.maximum(over, self.start), NEVER)
        self.cpus, self.gpus = counted_cpus(history.cpus) * history.tasks, counted_gpus(history.gpus) * history.tasks
        self.pending: Ints = np.flatnonzero((self.eligible <= self.at) & (self.leave >= self.at))
        self.running: Ints = np.flatnonzero((self.start < self.at) & (self.end >= self.at))

    def part(self, rows: Ints, predicted: Ints | None = None) -> Part:
        """Numbers of some of the jobs."""
        h = self.history
        tasks = np.rint(h.tasks[rows]).astype(np.int64)
        cpus, gpus = self.cpus[rows].astype(np.int64), self.gpus[rows].astype(np.int64)
        limit = (counted_limit(h.limit_s[rows]) * 1000).astype(np.int64)
        guess = limit if predicted is None else predicted
        return Part(rows, self.eligible[rows], self.start[rows], self.end[rows], tasks, cpus, gpus, limit, guess)


class Table:
    """Columns of one dimension, a row per group and a last one for groups never seen."""

    def __init__(self, dim: str, groups: Groups) -> None:
        self.dim, self.groups = dim, groups
        self._columns: list[int] = []
        self._values: list[Floats] = []

    def wants(self, quantity: str) -> bool:
        """Whether the quantity is declared in this dimension."""
        return f"{self.dim}_{quantity}" in COLUMN

    def sums(self, codes: Ints, weights: Ints | Floats) -> Floats:
        """Sum of weights per group."""
        return np.asarray(np.bincount(codes, weights, minlength=self.groups.size + 1), np.float64)

    def put(self, quantity: str, values: Floats) -> None:
        """Add a column if it is declared."""
        if self.wants(quantity):
            self._columns.append(COLUMN[f"{self.dim}_{quantity}"])
            self._values.append(values)

    def done(self) -> tuple[list[int], Floats]:
        """Column numbers and values (groups + 1, columns)."""
        return self._columns, np.column_stack(self._values) if self._values else np.zeros((self.groups.size + 1, 0))


def running(table: Table, part: Part, at: int) -> dict[str, Floats]:
    """Columns of the jobs running at ``at``. Returns CPUs and GPUs in use."""
    codes, found = table.groups.codes[part.rows], {}
    for name, weights in (("jobs", part.tasks), ("cpus", part.cpus), ("gpus", part.gpus)):
        found[name] = table.sums(codes, weights)
        table.put(f"running_{name}", found[name])
    left = np.maximum(0, part.start + part.limit - at)
    table.put("left_core_h", table.sums(codes, part.cpus * left) / HOUR)
    for by, length in (("limit", part.limit), ("predicted", part.predicted)):
        for hours in HOURS:
            soon = part.start + length <= at + hours * HOUR
            for name, weights in (("cpus", part.cpus), ("gpus", part.gpus)):
                if table.wants(f"freed_{hours}h_{name}_{by}"):
                    table.put(f"freed_{hours}h_{name}_{by}", table.sums(codes[soon], weights[soon]))
    return found


def started(table: Table, part: Part, at: int) -> None:
    """Columns of the jobs started within the last day."""
    if not table.wants("started_1h_jobs"):
        return
    codes = table.groups.codes[part.rows]
    for hours in HOURS:
        lately = part.start >= at - hours * HOUR
        table.put(f"started_{hours}h_jobs", table.sums(codes[lately], part.tasks[lately]))
        table.put(f"started_{hours}h_core_h", table.sums(codes[lately], (part.cpus * part.limit)[lately]) / HOUR)


class Uses:
    """CPUs and GPUs in use at the whole hours of the last 30 days."""

    def __init__(self, times: Times, groups: dict[str, Groups]) -> None:
        hours = MEMORY // HOUR
        first = int(marks(times.base, np.array([times.at]))[0]) - hours + 1
        offset = times.base % 3600 * 1000 - (first - 1) * HOUR  # seen from the next whole hour on
        weights = {("partition", "cpus"): times.cpus, ("partition", "gpus"): times.gpus, ("gpu", "gpus"): times.gpus}
        change = {key: np.zeros(groups[key[0]].size * (hours + 1)) for key in weights}
        for block in blocks(len(times.start)):
            for sign, when in ((1, times.start), (-1, times.end)):
                hour = np.clip(np.floor((when[block] + offset) / HOUR), 0, hours).astype(np.int64)
                for key, weight in weights.items():
                    cells = groups[key[0]].codes[block] * (hours + 1) + hour
                    change[key] += sign * np.bincount(cells, weight[block], len(change[key]))
        self._use: dict[tuple[str, str], Floats] = {
            key: np.cumsum(each.reshape(-1, hours + 1)[:, :-1], axis=1) for key, each in change.items()
        }

    def most(self, dim: str, what: str) -> Floats:
        """Most CPUs or GPUs in use, (groups + 1,)."""
        use = self._use["partition", what].sum(axis=0, keepdims=True) if dim == "cluster" else self._use[dim, what]
        return np.append(use.max(axis=1, initial=0.0), 0.0)


class Past:
    """Waits and runs of all jobs so far, weighted by age."""

    def __init__(self, times: Times, groups: dict[str, Groups]) -> None:
        self._times = times
        self._waits = {dim: np.zeros((3, groups[dim].size + 1)) for dim in HALF_LIFE_DAYS}
        self._used = {dim: np.zeros((2, groups[dim].size + 1)) for dim in ("cluster", *NARROW)}
        lately = [np.array([], np.int64)]
        for block in blocks(len(times.start)):
            start, end = times.start[block], times.end[block]
            began, ended = start < times.at, end < times.at
            age = np.where(began, times.at - start, np.inf)
            z = log_wait(times.eligible[block], np.where(began, start, times.eligible[block]))
            for days in set(HALF_LIFE_DAYS.values()):
                weights = [np.exp2(age / (-days * DAY))]
                weights += [weights[0] * z, weights[0] * z * z]
                for dim in (d for d, half_life in HALF_LIFE_DAYS.items() if half_life == days):
                    for i, weight in enumerate(weights[: 3 if f"{dim}_wait_sd_log" in COLUMN else 2]):
                        self._waits[dim][i] += groups[dim].sums(weight, block)
            fade = np.exp2(np.where(ended, times.at - end, np.inf) / (-DAY * USAGE_HALF_LIFE_DAYS))
            run = np.where(ended, end - start, 0) / HOUR * fade
            for i, weight in enumerate((times.cpus[block] * run, times.gpus[block] * run)):
                for dim, used in self._used.items():
                    used[i] += groups[dim].sums(weight, block)
            lately.append(np.flatnonzero(began & (start >= times.at - MEMORY)) + block.start)
        rows = np.concatenate(lately)
        self._lately: Ints = rows[sorted_with(times.start[rows])[0]]

    def waits(self, table: Table) -> None:
        """Columns of recent waits."""
        if table.dim not in HALF_LIFE_DAYS:
            return
        rows, count = last_of(table.groups.codes, self._lately, table.groups.size + 1, LAST)
        some = count > 0
        weight, total, squares = self._waits[table.dim]
        mean = np.where(some, ratio(total, weight), np.nan)
        table.put("wait_mean_log", mean)
        table.put("wait_count", weight)
        table.put("wait_sd_log", np.sqrt(np.maximum(0.0, ratio(squares, weight) - mean * mean)))
        there = np.arange(LAST) < count[:, None]
        start, eligible = np.zeros(rows.shape, np.int64), np.zeros(rows.shape, np.int64)
        start[there], eligible[there] = self._times.start[rows[there]], self._times.eligible[rows[there]]
        z = log_wait(eligible, start)
        table.put("since_start_s", np.where(some, self._times.at - start[:, 0], np.nan) / 1000)
        table.put("last_wait_s", np.where(some, np.expm1(z[:, 0]), np.nan))
        table.put("last5_wait_log", ratio(z.sum(axis=1), count))

    def usage(self, table: Table, now: Part) -> tuple[Floats, Floats]:
        """Core-hours and GPU-hours used by each group; ``now``: the running jobs."""
        found = []
        for name, past, weights in zip(("core", "gpu"), self._used[table.dim], (now.cpus, now.gpus), strict=True):
            found.append(past + table.sums(table.groups.codes[now.rows], weights * (self._times.at - now.start)) / HOUR)
            table.put(f"used_{name}_h", found[-1])
        return found[0], found[1]


def blocks(count: int) -> Iterator[slice]:
    """Stretches of rows: what is computed for a stretch stays in the processor's cache."""
    return (slice(begin, min(begin + BLOCK, count)) for begin in range(0, count, BLOCK))


def log_wait(eligible: Ints, start: Ints) -> Floats:
    """log(1 + s) of waits given by times in ms."""
    return np.log1p((start - eligible) / 1000)


def last_of(codes: Ints, rows: Ints, size: int, most: int) -> tuple[Ints, Ints]:
    """The last ``most`` of ``rows`` in each group, newest first: row numbers (size, most), how many there are (size,).
    ``codes`` are of all jobs. The newest rows are looked through first; the others only for groups still short."""
    out, count = np.zeros((size, most), np.int64), np.zeros(size, np.int64)
    newest = rows[::-1]
    begin, width = 0, 1 << 15
    while begin < len(newest):
        some = newest[begin : begin + width]
        mine = codes[some]
        short = count[mine] < most
        some, mine = some[short], mine[short]
        by = sorted_with(mine)[0]
        some, mine = some[by], mine[by]
        first = np.searchsorted(mine, np.arange(size))
        rank = np.arange(len(mine)) - first[mine] + count[mine]
        fits = rank < most
        out[mine[fits], rank[fits]] = some[fits]
        count += np.bincount(mine[fits], minlength=size)
        begin, width = begin + width, width * 4
    return out, count
