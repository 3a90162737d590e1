"""Who stands ahead of a job by priority: in the cluster, in its partition, among those that want its type of GPU.

Slurm considers jobs by priority, then by time of submission, then by id (slurmctld's ``sort_job_queue2``). Not looked at
here: the tier of the partition, preemption, reservations. Priorities change with age and usage, so each snapshot has an
order of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from queuecast.features.history import Floats, Ints
from queuecast.features.snapshots_attempts import Attempts
from queuecast.features.snapshots_queue import Pending
from queuecast.features.snapshots_readings import NEVER, QUEUE_AGE_S, distinct, pick, pick_whole

AMOUNTS = ("jobs", "cpus", "gpus", "core_s", "gpu_s", "open_jobs", "open_core_s", "open_gpu_s")
"""What is summed over the records ahead: tasks, CPUs, GPUs, and these times the limit; the last three over records that
compete for nodes only."""

PLAIN = 5
"""So many of them are not of competing records; the others are kept for partitions alone."""

DAY_S = 86400.0


@dataclass(frozen=True)
class Scope:
    """Records by (group, place in their snapshot's order), with running sums of their amounts.

    A group is a snapshot and a code, such as a partition. Sums are exact: whole numbers.
    """

    keys: Ints
    sums: Ints
    width: int

    @classmethod
    def of(cls, group: Ints, place: Ints, amounts: Ints, width: int) -> Scope:
        """``amounts`` has the shape (k, n)."""
        keys = group * width + place
        order = np.argsort(keys, kind="stable")
        sums = np.zeros((len(amounts), len(keys) + 1), np.int64)
        for amount, total in zip(amounts, sums, strict=True):
            np.cumsum(amount[order], out=total[1:])
        return cls(keys[order], sums, width)

    def ahead(self, group: Ints, place: Ints) -> tuple[Floats, Floats]:
        """(amounts ahead of ``place`` in each group, shape (m, k); tasks in the whole group)."""
        first = np.searchsorted(self.keys, group * self.width)
        upto = np.searchsorted(self.keys, group * self.width + place)
        last = np.searchsorted(self.keys, (group + 1) * self.width)
        ahead = np.column_stack([total[upto] - total[first] for total in self.sums]).astype(np.float64)
        return ahead, (self.sums[0][last] - self.sums[0][first]).astype(np.float64)


class Ranks:
    """Orders of all snapshots. Records without a priority are left out; sums count what is told (an unlimited job has no
    core-hours), so they are lower bounds."""

    def __init__(self, pending: Pending, partitions: int, gpu_types: int) -> None:
        self._pending = pending
        self._partitions, self._gpu_types = partitions, gpu_types + 1
        known = ~np.isnan(pending.priority)
        self._top = int(pending.priority[known].max()) if known.any() else 0
        order = np.lexsort((pending.job_id, np.nan_to_num(pending.submit), -np.nan_to_num(pending.priority), pending.reading))
        order = order[known[order]]
        reading = pending.reading[order]
        self._begin = np.searchsorted(reading, np.arange(len(pending.readings.times) + 1))
        self.place = np.full(len(pending), -1)
        self.place[order] = np.arange(len(order)) - self._begin[reading]
        self._width = int(np.diff(self._begin).max(initial=0)) + 1
        self._descending = reading * (self._top + 2) + (self._top - pending.priority[order].astype(np.int64))
        self._entries = np.sort(order)

    def place_of(self, reading: Ints, priority: Floats) -> Ints:
        """Place that a new job with this priority would take in a snapshot: after all that have as much. -1 for nan."""
        known = ~np.isnan(priority) & (reading >= 0)
        below = np.floor(self._top - np.where(known, priority, 0.0)).astype(np.int64)
        at = np.where(known, reading, 0)
        behind = np.searchsorted(self._descending, at * (self._top + 2) + np.clip(below, -1, self._top), "right")
        return np.where(known, behind - self._begin[at], -1)

    @cached_property
    def _amounts(self) -> Ints:
        p = self._pending
        cpus, gpus = np.nan_to_num(p.cpus) * p.tasks, np.nan_to_num(p.gpus) * p.tasks
        limit, is_open = np.nan_to_num(p.limit_s), p.is_open()
        columns = (p.tasks, cpus, gpus, cpus * limit, gpus * limit, p.tasks * is_open, cpus * limit * is_open, gpus * limit * is_open)
        return np.array([column.astype(np.int64) for column in columns])

    def _scope(self, entry: Ints, code: Ints, codes: int, amounts: int = PLAIN) -> Scope:
        group = self._pending.reading[entry] * codes + code
        return Scope.of(group, self.place[entry], self._amounts[:amounts, entry], self._width)

    @cached_property
    def _cluster(self) -> Scope:
        return self._scope(self._entries, np.zeros(len(self._entries), np.int64), 1)

    @cached_property
    def _in_partition(self) -> Scope:
        entry, partition = self._pending.in_partitions()
        known = self.place[entry] >= 0
        return self._scope(entry[known], partition[known], max(1, self._partitions), len(AMOUNTS))

    @cached_property
    def _of_gpu_type(self) -> Scope:
        """By type, and once more all that want GPUs of any kind."""
        entry = self._entries[np.nan_to_num(self._pending.gpus[self._entries]) > 0]
        kind = self._pending.gpu_type[entry]
        named = kind >= 0
        twice = np.concatenate([entry, entry[named]])
        return self._scope(twice, np.concatenate([np.full(len(entry), self._gpu_types - 1), kind[named]]), self._gpu_types)

    def ahead(self, reading: Ints, place: Ints, partition: Ints, gpu_type: Ints, gpus: Floats) -> dict[str, tuple[Floats, Floats]]:
        """Amounts ahead and tasks in all, by scope; nan where ``place`` or the scope is unknown. A request for GPUs of no
        named type stands in line with all that want GPUs; one without GPUs has no such line."""
        kind = np.where(gpu_type == -1, self._gpu_types - 1, gpu_type)
        asked = (reading >= 0) & (place >= 0)
        wants = asked & (np.nan_to_num(gpus) > 0)
        return {
            "cluster": _at(lambda: self._cluster, asked, reading, place),
            "partition": _at(
                lambda: self._in_partition, asked & (partition != -1), reading * max(1, self._partitions) + partition, place, partition
            ),
            "gpu_type": _at(lambda: self._of_gpu_type, wants, reading * self._gpu_types + kind, place, kind),
        }

    def typical_new(self, reading: Ints, account: Ints) -> Floats:
        """Middle of the priorities with which an account's pending jobs were first seen (within the day before the
        snapshot): about what a new job of that account gets. nan if none is pending."""
        keys, first, accounts = self._new_by_account
        return _group_medians(keys, first, reading * accounts + account, (reading >= 0) & (account >= 0) & (account < accounts))

    @cached_property
    def _new_by_account(self) -> tuple[Ints, Floats, int]:
        """(snapshot and account of each record, sorted; priority when its job was new; number of accounts)."""
        p, first = self._pending, self._first_priority
        accounts = int(p.account.max(initial=0)) + 1
        usable = np.flatnonzero(~np.isnan(first) & (p.account >= 0))
        keys = p.reading[usable] * accounts + p.account[usable]
        order = np.argsort(keys, kind="stable")
        return keys[order], first[usable][order], accounts

    @cached_property
    def _first_priority(self) -> Floats:
        """Priority of each record's job when it was first seen, in the day before."""
        p = self._pending
        times, count = p.readings.times, max(1, len(p.readings.times))
        place = np.searchsorted(p.readings.ids, p.job_id)
        order = np.lexsort((p.reading, place))
        since = np.searchsorted(times, times - DAY_S)[p.reading]
        first = np.searchsorted(place[order] * count + p.reading[order], place * count + since)
        return p.priority[order[first]]


def _at(scope: Callable[[], Scope], where: np.ndarray, group: Ints, place: Ints, code: Ints | None = None) -> tuple[Floats, Floats]:
    """Amounts ahead (shape (m, len(AMOUNTS))) for the cases ``where`` holds, nan for the others; none ahead where the word
    never occurs."""
    amounts, tasks = np.full((len(where), len(AMOUNTS)), np.nan), np.full(len(where), np.nan)
    never = where if code is None else where & (code == NEVER)
    if code is not None:
        amounts[never], tasks[never] = 0.0, 0.0
        where = where & ~never
    rows = np.flatnonzero(where)
    if len(rows):
        found, tasks[rows] = scope().ahead(group[rows], place[rows])
        amounts[rows, : found.shape[1]] = found
    return amounts, tasks


def _group_medians(keys: Ints, values: Floats, wanted: Ints, where: np.ndarray) -> Floats:
    """Median of the values under each wanted key; nan where there is none or ``where`` does not hold. ``keys`` ascend."""
    out = np.full(len(wanted), np.nan)
    rows = np.flatnonzero(where)
    if not len(rows):
        return out
    groups, which = np.unique(wanted[rows], return_inverse=True)
    first, last = np.searchsorted(keys, groups), np.searchsorted(keys, groups, "right")
    medians = [float(np.median(values[a:b])) if b > a else np.nan for a, b in zip(first.tolist(), last.tolist(), strict=True)]
    out[rows] = np.array(medians, np.float64)[which]
    return out


class Started:
    """Priorities of jobs that started, each as last seen in a snapshot of the two hours before its start."""

    def __init__(self, pending: Pending, attempts: Attempts) -> None:
        readings = pending.readings
        begun = np.flatnonzero(~np.isnan(attempts.start) & (attempts.partition >= 0))
        start = attempts.start[begun]
        # A snapshot of the very second of the start may be from before or after it: the job is pending in it, so before.
        entry = readings.find_job(readings.last(start, QUEUE_AGE_S), attempts.job_id[begun], attempts.array_job_id[begun])
        seen = readings.time(pick_whole(pending.reading, entry))
        priority = pick(pending.priority, entry)
        keep = ~np.isnan(priority) & (seen >= attempts.submit[begun])
        partition, start, priority = attempts.partition[begun][keep], start[keep], priority[keep]
        order = np.lexsort((start, partition))
        self._partition, self._start, self._priority = partition[order], start[order], priority[order]

    def median(self, moment: Floats, partition: Ints) -> Floats:
        """Middle priority of the jobs that started in ``partition`` in the day up to ``moment``; nan if none did."""
        out = np.full(len(moment), np.nan)
        rows = np.flatnonzero(~np.isnan(moment) & (partition >= 0))
        if not len(rows):
            return out
        moments, number = np.unique(moment[rows], return_inverse=True)
        row, which = distinct(number, partition[rows])
        found = np.full(len(row), np.nan)
        for i, (m, p) in enumerate(zip(moments[number[row]].tolist(), partition[rows][row].tolist(), strict=True)):
            a, b = np.searchsorted(self._partition, [p, p + 1])
            first, last = a + np.searchsorted(self._start[a:b], [m - DAY_S, m], "right")
            if last > first:
                found[i] = np.median(self._priority[first:last])
        out[rows] = found[which]
        return out
