"""What a queue's past looked like to someone standing at an instant: waits of earlier jobs, censored where unknown.

A wait is start minus eligible (Slurm's ``Planned``). At instant ``at`` a job that has not started is right-censored:
at its end if it was cancelled before, else at the last moment it was known to be pending. Nothing later than ``at``
is used, so any past moment can be replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from queuecast.reasons import never_starts
from queuecast.store.files import floats

if TYPE_CHECKING:
    from queuecast.store.lake import Lake

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

COLUMNS = (
    "job_id",
    "het_offset",
    "array_tasks",
    "user",
    "account",
    "partition",
    "qos",
    "submit",
    "eligible",
    "start",
    "end",
    "limit_s",
    "nodes_req",
    "cpus_req",
    "mem_req_bytes",
    "gpus_req",
    "gpu_type_req",
    "array_throttle",
    "reason",
    "anomalies",
    "observed_at",
)

NOT_WAITS = ("resized", "revoked", "incomplete", "future")
"""Rows whose start minus eligible is not a wait in the queue: a resized job's later segment, a federated sibling, a
half-written record, a record dated after it was read."""

TEXTS = ("partition", "qos", "account", "user", "gpu_type")
TEXT_COLUMNS = ("partition", "qos", "account", "user", "gpu_type_req")

GPU_EDGES = (1, 2, 3, 5, 9, 17, 33)
CPU_EDGES = (2, 5, 17, 65, 257)
LIMIT_EDGES = (601, 3601, 4 * 3600 + 1, 12 * 3600 + 1, 86401, 2 * 86400 + 1)


def size_class(gpus: Floats, cpus: Floats) -> Ints:
    """Size of a request: by GPUs (1, 2, 3-4, 5-8, 9-16, 17-32, more) or, without GPUs, by CPUs (1, 2-4, 5-16, 17-64,
    65-256, more). Unknown counts are taken as the smallest."""
    return np.where(gpus > 0, 10 + _reached(gpus, GPU_EDGES), _reached(cpus, CPU_EDGES))


def limit_class(limit_s: Floats) -> Ints:
    """Time limit: up to 10 min, 1 h, 4 h, 12 h, 1 d, 2 d, longer or unlimited (nan)."""
    count = np.full(len(limit_s), len(LIMIT_EDGES), np.int8)
    for edge in LIMIT_EDGES:
        count -= limit_s < edge
    return count.astype(np.int64)


def _reached(values: Floats, edges: Sequence[float]) -> Ints:
    """How many of the edges each value has reached; nan none. For a few edges this is quicker than a search."""
    count = np.zeros(len(values), np.int8)
    for edge in edges:
        count += values >= edge
    return count.astype(np.int64)


@dataclass
class History:
    """Past jobs of one cluster, one entry per attempt, sorted by ``eligible``.

    Times are epoch seconds (UTC), nan where unknown; ``start`` and ``end`` are infinite where they have not
    happened. ``seen`` is when the row was last read. Texts are codes into ``words`` (case-folded, "" for null).
    ``tasks`` is how many jobs a row stands for: an array that waits is one row until its tasks start. ``mem`` is bytes.
    """

    cluster: str
    job_id: Ints
    codes: dict[str, Ints]
    words: dict[str, list[str]]
    gpus: Floats
    cpus: Floats
    limit_s: Floats
    eligible: Floats
    start: Floats
    end: Floats
    seen: Floats
    submit: Floats
    tasks: Floats
    nodes: Floats
    mem: Floats
    _groups: dict[tuple[str, ...], _Groups] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.eligible)

    def outcomes(self, rows: Ints, at: float) -> tuple[Floats, Flags]:
        """Waits in seconds as known at ``at`` (shape of ``rows``), and whether each ended in a start; the others are
        censored: they waited at least that long."""
        started = self.start[rows] <= at
        stop = np.where(self.end[rows] <= at, self.end[rows], np.minimum(at, self.seen[rows]))
        until = np.where(started, self.start[rows], stop)
        return np.maximum(0.0, until - self.eligible[rows]), started

    def code(self, text: str, value: str | None) -> int:
        """Code of a word, -1 if it never occurred."""
        try:
            return self.words[text].index((value or "").casefold())
        except ValueError:
            return -1

    def column(self, name: str) -> Ints:
        """Codes of one dimension that jobs are likened by."""
        if name == "size":
            return size_class(self.gpus, self.cpus)
        if name == "limit":
            return limit_class(self.limit_s)
        if name == "gpu":
            return (np.nan_to_num(self.gpus) > 0).astype(np.int64)
        return self.codes[name]

    def like(self, dims: tuple[str, ...], key: Sequence[int], since: float, before: float, most: int) -> Ints:
        """The last ``most`` rows that became eligible in [since, before) and equal ``key`` in ``dims``."""
        if dims not in self._groups:
            self._groups[dims] = _Groups([self.column(d) for d in dims], len(self))
        rows = self._groups[dims].rows(key)
        first, stop = (int(i) for i in np.searchsorted(self.eligible[rows], [since, before]))
        return rows[max(first, stop - most) : stop]


class _Groups:
    """Row numbers by key, so that looking like jobs up costs no scan."""

    def __init__(self, columns: list[Ints], count: int) -> None:
        combined = np.zeros(count, np.int64)
        self._spans = []
        for column in columns:
            low, high = (int(column.min()), int(column.max())) if count else (0, 0)
            self._spans.append((low, high))
            combined = combined * (high - low + 1) + (column - low)
        self._order = np.argsort(combined, kind="stable")
        self._sorted = combined[self._order]

    def rows(self, key: Sequence[int]) -> Ints:
        wanted = 0
        for value, (low, high) in zip(key, self._spans, strict=True):
            if not low <= value <= high:
                return self._order[:0]
            wanted = wanted * (high - low + 1) + (value - low)
        first, last = np.searchsorted(self._sorted, [wanted, wanted + 1])
        return self._order[first:last]


def load_history(lake: Lake, cluster: str, *, since: datetime, until: datetime) -> History:
    """Jobs of ``cluster`` that became eligible in [since, until). Not among them: later components of heterogeneous
    jobs, throttled array tasks (their wait is their own doing), and jobs that could never start as asked."""
    # Files go by month of submit; a job may become eligible later than that (dependency, --begin).
    rows = lake.read("jobs", COLUMNS, cluster=cluster, since=since - timedelta(days=7), until=until, dictionary=True)
    return from_rows(rows, cluster, since, until)


def from_rows(rows: pa.Table, cluster: str, since: datetime, until: datetime) -> History:
    """History of rows of the ``jobs`` table; texts may be plain or dictionary-encoded."""
    coded = {
        name: _encode(rows[column]) for name, column in (*zip(TEXTS, TEXT_COLUMNS, strict=True), *((n, n) for n in ("reason", "anomalies")))
    }
    eligible, start = _seconds(rows["eligible"]), _seconds(rows["start"])
    keep = (eligible >= since.timestamp()) & (eligible < until.timestamp())
    keep &= ~(floats(rows["het_offset"]) > 0)
    keep &= ~_where(coded["anomalies"], lambda word: any(w in word for w in NOT_WAITS))
    keep &= ~(np.isnan(start) & _where(coded["reason"], lambda word: bool(word) and never_starts(word)))
    keep &= np.isnan(floats(rows["array_throttle"])) & ~_where(coded["reason"], lambda word: word == "JobArrayTaskLimit")
    order = np.flatnonzero(keep)
    order = order[np.argsort(eligible[order], kind="stable")]
    codes, words = {}, {}
    for name in TEXTS:
        numbers, texts = coded[name]
        folded = [t.casefold() for t in texts]
        words[name] = list(dict.fromkeys(folded))
        places = {w: i for i, w in enumerate(words[name])}
        codes[name] = np.array([places[f] for f in folded], np.int64)[numbers[order]] if len(order) else np.array([], np.int64)

    def column(name: str) -> Floats:
        return floats(rows[name])[order]

    def time(values: Floats) -> Floats:
        return np.where(np.isnan(values), np.inf, values)[order]

    return History(
        cluster,
        column("job_id").astype(np.int64),
        codes,
        words,
        column("gpus_req"),
        column("cpus_req"),
        column("limit_s"),
        eligible[order],
        time(start),
        time(_seconds(rows["end"])),
        _seconds(rows["observed_at"])[order],
        _seconds(rows["submit"])[order],
        np.fmax(column("array_tasks"), 1.0),
        column("nodes_req"),
        column("mem_req_bytes"),
    )


def _encode(column: pa.ChunkedArray) -> tuple[Ints, list[str]]:
    """Codes and their words; null is the word ""."""
    if not len(column):  # combining nothing would import pandas
        return np.array([], np.int64), [""]
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    joined = column.unify_dictionaries().combine_chunks()
    words = [w or "" for w in joined.dictionary.to_pylist()]
    numbers = floats(pa.chunked_array([joined.indices]))
    return np.where(np.isnan(numbers), len(words), numbers).astype(np.int64), [*words, ""]


def _where(coded: tuple[Ints, list[str]], test: Callable[[str], bool]) -> Flags:
    """Rows whose word passes; each word is tested once."""
    numbers, words = coded
    return np.array([test(w) for w in words], bool)[numbers]


def _seconds(column: pa.ChunkedArray) -> Floats:
    return floats(column) / 1e6
