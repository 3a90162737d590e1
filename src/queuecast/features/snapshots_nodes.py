"""What nodes had free when they were last read: idle GPUs, the largest block on one node, nodes that fit a request.

sinfo does not tell the GPUs in use on every Slurm; ``scontrol show node`` does and may be read less often. So the state of
nodes comes from the last reading, and what is idle from the last one that tells it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from queuecast.features.declare import Feature
from queuecast.features.history import Flags, Floats, Ints
from queuecast.features.snapshots_readings import SLOW_AGE_S, Readings, Words, distinct, distinct_words, pick_whole, seconds
from queuecast.slurmtext.states import UNUSABLE_FLAGS
from queuecast.store.files import floats

COLUMNS = ("observed_at", "node", "partitions", "state", "state_flags", "cpus", "cpus_alloc", "gpus", "gpus_alloc", "gpu_type")

UNUSABLE_STATES = frozenset({"DOWN", "ERROR", "FUTURE", "UNKNOWN"})
TELLING = 0.9
"""A reading tells what is in use if it does so for that share of the usable nodes (with GPUs)."""


def _feature(name: str, unit: str, meaning: str, topic: str = "nodes") -> Feature:
    return Feature(name, unit, "snapshot", topic, meaning)


FEATURES = (
    _feature("node_age_s", "s", "age of the last reading of nodes"),
    _feature("node_use_age_s", "s", "age of the last reading that tells the GPUs in use (without GPUs: the CPUs)"),
    _feature("node_idle_gpus_type", "GPUs", "idle GPUs of the type asked for, on nodes free for all"),
    _feature("node_idle_gpus_partition", "GPUs", "idle GPUs in the partition, on nodes free for all"),
    _feature("node_idle_cpus_partition", "CPUs", "idle CPUs in the partition, on nodes free for all"),
    _feature("node_largest_block", "GPUs", "most idle GPUs of the type on one node of the partition that is free for all"),
    _feature("node_fitting", "nodes", "nodes of the partition with enough idle for one node's part of the request"),
    _feature("node_fits_now", "0 or 1", "1 if as many nodes fit as the request needs"),
    _feature("node_able", "nodes", "usable nodes of the partition that are large enough, idle or not"),
    _feature("node_down_share", "share", "share of the partition's nodes that are down, drained or in maintenance"),
    _feature("node_total_gpus_type", "GPUs", "GPUs of the type in the cluster"),
    _feature("partition_gpus", "GPUs", "GPUs of the partition", "partition"),
    _feature("partition_nodes", "nodes", "nodes of the partition", "partition"),
    _feature("partition_cpus", "CPUs", "CPUs of the partition", "partition"),
)
"""Nodes under a reservation count as usable, but not as free for all. "Of the type" means any type where none is asked
for; a node with several types counts for none of them. Memory and node features are not looked at."""


@dataclass(frozen=True)
class Nodes:
    """Rows by (reading, node). ``idle_gpus`` and ``idle_cpus`` are nan where not told. ``members[t, p]``: nodes with the
    partition text t belong to partition p."""

    readings: Readings
    begin: Ints
    node: Ints
    partition_text: Ints
    members: Flags
    usable: Flags
    free: Flags
    cpus: Floats
    gpus: Floats
    idle_cpus: Floats
    idle_gpus: Floats
    gpu_type: Ints
    gpus_told: Ints
    cpus_told: Ints

    @classmethod
    def of(cls, rows: pa.Table, names: Words, partitions: Words, gpu_types: Words) -> Nodes:
        readings, order, begin = Readings.of(seconds(rows["observed_at"]), names.encode(rows["node"]))
        row = order[begin]
        texts, words = distinct_words(rows["partitions"])
        lists = [[partitions.add(p) for p in (w or "").split(",") if p] for w in words]
        members = np.zeros((len(words), len(partitions) + 1), bool)  # the last column: no partition at all
        for text, codes in enumerate(lists):
            members[text, codes] = True
        state, flags = _sets(rows, row)
        usable = np.array([not (s[0] in UNUSABLE_STATES or s[1] & UNUSABLE_FLAGS) for s in state], bool)[flags]
        reserved = np.array(["RESERVED" in s[1] for s in state], bool)[flags]
        base = np.array([s[0] for s in state], object)[flags]
        cpus, gpus = floats(rows["cpus"])[row], floats(rows["gpus"])[row]
        idle_cpus = _idle(cpus, floats(rows["cpus_alloc"])[row], base == "IDLE")
        idle_cpus = np.where(np.isnan(idle_cpus) & (base == "ALLOCATED"), 0.0, idle_cpus)
        idle_gpus = _idle(gpus, floats(rows["gpus_alloc"])[row], base == "IDLE")
        count, reading = len(readings.times), readings.reading
        with_gpus = usable & (np.nan_to_num(gpus) > 0)
        return cls(
            readings,
            np.searchsorted(reading, np.arange(count + 1)),
            readings.ids[readings.keys % max(1, len(readings.ids))],
            texts[row],
            members,
            usable,
            usable & ~reserved,
            cpus,
            gpus,
            idle_cpus,
            idle_gpus,
            gpu_types.encode(rows["gpu_type"])[row],
            _last_telling(reading, with_gpus, with_gpus & ~np.isnan(idle_gpus), count),
            _last_telling(reading, usable, usable & ~np.isnan(idle_cpus), count),
        )

    def last(self, asked: Floats) -> Ints:
        """The last reading of the day before, -1 for none."""
        return self.readings.last(asked, SLOW_AGE_S)

    def column(self, partition: Ints) -> Ints:
        """Columns of ``members``; the last one for partitions that no node is in."""
        none = self.members.shape[1] - 1
        return np.where((partition >= 0) & (partition < none), partition, none)

    def rows(self, reading: int) -> slice:
        """Rows of one reading."""
        return slice(int(self.begin[reading]), int(self.begin[reading + 1]))

    def features(self, asked: Floats, partition: Ints, gpu_type: Ints, gpus: Floats, cpus: Floats, nodes: Floats) -> list[Floats]:
        """Columns of ``FEATURES``. The request is for the whole job; an unknown number of nodes is taken as one, of CPUs as
        one per node, of GPUs as none."""
        now = self.last(asked)
        count = np.where(np.nan_to_num(nodes) >= 1, np.nan_to_num(nodes), 1.0)
        need_gpus = np.ceil(np.nan_to_num(gpus) / count).astype(np.int64)
        need_cpus = np.maximum(1, np.ceil(np.nan_to_num(cpus) / count)).astype(np.int64)
        by_gpus, by_cpus = self._told(self.gpus_told, now, asked), self._told(self.cpus_told, now, asked)
        place = self.column(partition)
        first, which = distinct(need_cpus, need_gpus, gpu_type, place, by_cpus, by_gpus, now)
        found = np.full((len(first), len(FEATURES) - 2), np.nan)
        same, group = distinct(by_cpus[first], by_gpus[first], now[first])
        order = np.argsort(group, kind="stable")
        for cases in np.split(order, np.searchsorted(group[order], np.arange(1, len(same)))) if len(same) else []:
            row = first[cases]
            told = (int(now[row[0]]), int(by_gpus[row[0]]), int(by_cpus[row[0]]))
            found[cases] = self._states(told, place[row], gpu_type[row], need_gpus[row], need_cpus[row])
        columns = found[which]
        columns[:, 5] = np.where(np.isnan(columns[:, 4]), np.nan, columns[:, 4] >= count)
        use = np.where(need_gpus > 0, by_gpus, by_cpus)
        return [asked - self.readings.time(now), asked - self.readings.time(use), *columns.T]

    def _told(self, last: Ints, now: Ints, asked: Floats) -> Ints:
        reading = pick_whole(last, now)
        return np.where(asked - self.readings.time(reading) <= SLOW_AGE_S, reading, -1)

    def _states(self, readings: tuple[int, int, int], place: Ints, kind: Ints, need_gpus: Ints, need_cpus: Ints) -> Floats:
        """All but the ages, for requests that see the same readings: (last, last that tells GPUs, last that tells CPUs)."""
        out = np.full((len(place), len(FEATURES) - 2), np.nan)
        now, by_gpus, by_cpus = readings
        if by_gpus >= 0:
            s, inside, of_type = self._masks(by_gpus, place, kind)
            idle, free = np.nan_to_num(self.idle_gpus[s]), self.free[s]
            out[:, 0] = (of_type & free) @ idle
            out[:, 1] = (inside & free) @ idle
            block = inside & of_type & free
            out[:, 3] = np.where(block, idle, 0.0).max(axis=1, initial=0.0)
            spare = np.where(np.isnan(self.idle_cpus[s]), np.inf, self.idle_cpus[s])  # CPUs that are not told hinder nobody
            fits = (block & (idle >= need_gpus[:, None]) & (spare >= need_cpus[:, None])).sum(axis=1)
            out[:, 4] = np.where(need_gpus > 0, fits, np.nan)
            out[~inside.any(axis=1), 1:5] = np.nan
        if by_cpus >= 0:
            s, inside, _ = self._masks(by_cpus, place, kind)
            idle, free = np.nan_to_num(self.idle_cpus[s]), self.free[s]
            known = inside.any(axis=1)
            out[:, 2] = np.where(known, (inside & free) @ idle, np.nan)
            fits = (inside & free & (idle >= need_cpus[:, None])).sum(axis=1)
            out[:, 4] = np.where(need_gpus > 0, out[:, 4], np.where(known, fits, np.nan))
        if now >= 0:
            s, inside, of_type = self._masks(now, place, kind)
            usable, cpus, gpus = self.usable[s], np.nan_to_num(self.cpus[s]), np.nan_to_num(self.gpus[s])
            of_kind = of_type | (need_gpus == 0)[:, None]
            large = (gpus >= need_gpus[:, None]) & (cpus >= need_cpus[:, None])
            members = inside.sum(axis=1)
            out[:, 6] = (inside & of_kind & usable & large).sum(axis=1)
            out[:, 7] = (inside & ~usable).sum(axis=1) / np.maximum(1, members)
            out[:, 8] = of_type @ gpus
            out[:, 9] = inside @ gpus
            out[:, 10] = members
            out[:, 11] = inside @ cpus
            out[np.ix_(members == 0, [6, 7, 9, 10, 11])] = np.nan
        return out

    def _masks(self, reading: int, place: Ints, kind: Ints) -> tuple[slice, Flags, Flags]:
        """Rows of a reading; which of them are in each request's partition, and of its GPU type (shape (requests, rows))."""
        s = self.rows(reading)
        any_gpu = np.nan_to_num(self.gpus[s]) > 0
        of_type = np.where((kind == -1)[:, None], any_gpu, any_gpu & (self.gpu_type[s] == kind[:, None]))
        return s, self.members[self.partition_text[s]][:, place].T, of_type


def _sets(rows: pa.Table, row: Ints) -> tuple[list[tuple[str | None, frozenset[str]]], Ints]:
    """Distinct (state, flags), and which one each row has."""
    states, state_words = distinct_words(rows["state"])
    flags, flag_words = distinct_words(rows["state_flags"])
    pairs, which = np.unique(states[row] * len(flag_words) + flags[row], return_inverse=True)
    found = [(state_words[p // len(flag_words)], flag_words[p % len(flag_words)]) for p in pairs.tolist()]
    return [(state, frozenset((text or "").split(",")) - {""}) for state, text in found], which


def _idle(size: Floats, used: Floats, nothing_runs: Flags) -> Floats:
    """Size minus use, at least 0; a node in state IDLE has nothing in use. nan where not told."""
    return np.maximum(0.0, size - np.where(np.isnan(used) & nothing_runs, 0.0, used))


def _last_telling(reading: Ints, counted: Flags, told: Flags, count: int) -> Ints:
    """For each reading the last one up to it that tells enough, -1 for none."""
    enough = np.bincount(reading, told, count) >= TELLING * np.bincount(reading, counted, count)
    return np.maximum.accumulate(np.where(enough, np.arange(count), -1)) if count else np.array([], np.int64)
