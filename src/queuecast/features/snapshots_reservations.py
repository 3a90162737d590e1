"""Reservations that had been announced: when the next one takes nodes of a partition, and how many."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from queuecast.errors import ParseError
from queuecast.features.declare import Feature
from queuecast.features.history import Floats, Ints
from queuecast.features.snapshots_nodes import Nodes
from queuecast.features.snapshots_readings import Readings, Words, distinct, distinct_words, pick, seconds
from queuecast.slurmtext.hostlist import expand_hostlist
from queuecast.store.files import floats

COLUMNS = ("observed_at", "reservation", "start", "end", "state", "node_list", "nodes", "partition")
PARTITION_COLUMNS = ("observed_at", "partition", "node_list", "total_nodes", "total_cpus")

FAR_H = 720.0
"""Hours that stand for "none announced": further ahead nothing is told apart."""


def _feature(name: str, unit: str, meaning: str) -> Feature:
    return Feature(name, unit, "snapshot", "reservations", meaning)


FEATURES = (
    _feature("reservation_next_h", "h", "hours until the next announced reservation takes nodes of the partition; 720 if none does"),
    _feature("reservation_next_nodes", "nodes", "nodes of the partition that it takes; 0 if there is none"),
    _feature("reservation_now_nodes", "nodes", "nodes of the partition that reservations hold at that moment"),
    _feature("reservation_crossed", "0 or 1", "1 if one starts within the time limit, counted from the moment asked about"),
)
"""nan where reservations were not read by then, or it is not known which nodes the partition has."""


@dataclass(frozen=True)
class Partitions:
    """Readings of partitions; each holds until the next, as only changes are stored. ``hosts``: node codes."""

    readings: Readings
    nodes: Floats
    cpus: Floats
    hosts: tuple[frozenset[int], ...]

    @classmethod
    def of(cls, rows: pa.Table, names: Words, partitions: Words) -> Partitions:
        readings, order, begin = Readings.of(seconds(rows["observed_at"]), partitions.encode(rows["partition"]))
        row = order[begin]
        lists = rows["node_list"].to_pylist()
        return cls(
            readings,
            floats(rows["total_nodes"])[row],
            floats(rows["total_cpus"])[row],
            tuple(hosts_of(lists[r], names) for r in row.tolist()),
        )

    def entry(self, asked: Floats, partition: Ints) -> Ints:
        """Row of each partition in the last reading, -1 if not told by then."""
        reading = np.where(partition >= 0, self.readings.last(asked, np.inf), -1)
        return self.readings.find(reading, partition)

    def totals(self, asked: Floats, partition: Ints) -> tuple[Floats, Floats]:
        """(nodes, CPUs), nan where not told by then."""
        entry = self.entry(asked, partition)
        return pick(self.nodes, entry), pick(self.cpus, entry)


@dataclass(frozen=True)
class _Reservation:
    start: float
    end: float
    hosts: frozenset[int]
    count: int
    """Nodes it takes where they are not named, of ``partition`` or, if that is -1, of any."""
    partition: int


@dataclass
class Reservations:
    """Readings of ``scontrol show reservation``; each holds until the next. Past ones (sacctmgr) are left out: that list
    does not tell what was known when."""

    times: Floats
    _of_reading: list[list[_Reservation]]
    _partitions: Partitions
    _nodes: Nodes
    _sets: dict[tuple[int, int, int], frozenset[int] | None] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: pa.Table, names: Words, partition_words: Words, partitions: Partitions, nodes: Nodes) -> Reservations:
        numbers, states = distinct_words(rows["state"])
        observed, start, end = (seconds(rows[c]) for c in ("observed_at", "start", "end"))
        keep = (
            np.flatnonzero(np.array([s is not None for s in states], bool)[numbers] & ~np.isnan(start) & ~np.isnan(end))
            if len(observed)
            else np.array([], np.int64)
        )
        times = np.unique(observed[keep])
        found: list[list[_Reservation]] = [[] for _ in times]
        lists, count, where = rows["node_list"].to_pylist(), floats(rows["nodes"]), partition_words.encode(rows["partition"])
        for row in keep.tolist():
            hosts = hosts_of(lists[row], names)
            found[int(np.searchsorted(times, observed[row]))].append(
                _Reservation(float(start[row]), float(end[row]), hosts, int(np.nan_to_num(count[row])), int(where[row]))
            )
        return cls(times, found, partitions, nodes)

    def features(self, asked: Floats, partition: Ints, limit_s: Floats) -> list[Floats]:
        """Columns of ``FEATURES``."""
        out = np.full((len(asked), len(FEATURES)), np.nan)
        reading = np.searchsorted(self.times, asked, "right") - 1
        told = self._partitions.entry(asked, partition)
        seen = np.where(told < 0, self._nodes.last(asked), -1)
        rows = np.flatnonzero((reading >= 0) & (partition >= 0) & ((told >= 0) | (seen >= 0)))
        if len(rows):
            first, which = distinct(partition[rows], told[rows], seen[rows], reading[rows])
            for group, row in enumerate(rows[first].tolist()):
                hosts = self._hosts(int(told[row]), int(seen[row]), int(partition[row]))
                if hosts is not None:
                    cases = rows[which == group]
                    out[cases] = _ahead(self._of_reading[int(reading[row])], hosts, int(partition[row]), asked[cases], limit_s[cases])
        return list(out.T)

    def _hosts(self, told: int, seen: int, partition: int) -> frozenset[int] | None:
        """Nodes of a partition: as scontrol tells them, else by the last reading of nodes; None if it has none there."""
        key = (told, seen, partition)
        if key not in self._sets:
            if told >= 0:
                found = self._partitions.hosts[told]
            else:
                rows = self._nodes.rows(seen)
                inside = self._nodes.members[self._nodes.partition_text[rows], self._nodes.column(np.array([partition]))[0]]
                found = frozenset(self._nodes.node[rows][inside].tolist())
            self._sets[key] = found or None
        return self._sets[key]


def _ahead(reservations: list[_Reservation], hosts: frozenset[int], partition: int, asked: Floats, limit_s: Floats) -> Floats:
    """Columns of ``FEATURES`` for cases that see the same reservations of the same partition."""
    taking = [(r, _taken(r, hosts, partition)) for r in reservations]
    taking = sorted(((r, n) for r, n in taking if n > 0), key=lambda pair: pair[0].start)
    starts = np.array([r.start for r, _ in taking] + [np.inf])
    taken = np.array([float(n) for _, n in taking] + [0.0])
    following = np.searchsorted(starts, asked, "right")
    ahead = starts[following] - asked
    now = np.zeros(len(asked))
    for reservation, count in taking:
        now += np.where((reservation.start <= asked) & (asked < reservation.end), count, 0)
    crossed = np.where(np.isnan(limit_s), np.nan, ahead < limit_s)
    return np.column_stack([np.minimum(ahead / 3600.0, FAR_H), taken[following], now, crossed])


def _taken(reservation: _Reservation, hosts: frozenset[int], partition: int) -> int:
    if reservation.hosts:
        return len(reservation.hosts & hosts)
    return min(reservation.count, len(hosts)) if reservation.partition in (-1, partition) else 0


def hosts_of(text: str | None, names: Words) -> frozenset[int]:
    """Codes of the nodes in a host list; none for no list, or one that is not understood."""
    try:
        return frozenset(names.add(host) for host in expand_hostlist(text or "") or ())
    except ParseError:
        return frozenset()
