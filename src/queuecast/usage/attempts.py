"""Attempts that ran before a moment, as columns, and how rows of other tables find theirs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from queuecast.slurmtext.states import ENDED_STATES
from queuecast.store.files import floats

if TYPE_CHECKING:
    from queuecast.store.lake import Lake

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Keys = npt.NDArray[np.uint64]

LONGEST = timedelta(days=92)
"""Jobs submitted longer before the stretch looked at are not found: files go by the month of the submission."""

KILLED = ("TIMEOUT", "CANCELLED", "PREEMPTED", "NODE_FAIL", "OUT_OF_MEMORY", "DEADLINE", "BOOT_FAIL", "REQUEUED", "REVOKED", "SIGNALING")
"""States of jobs that did not end by themselves: what their processes had used is counted too low (sacct(1), TotalCPU)."""

COLUMNS = (
    "job_id",
    "job_id_text",
    "submit",
    "start",
    "end",
    "user",
    "account",
    "partition",
    "qos",
    "name",
    "state",
    "exit_signal",
    "node_list",
    "nodes_alloc",
    "submit_line",
    "work_dir",
    "elapsed_s",
    "suspended_s",
    "limit_s",
    "cpus_req",
    "cpus_alloc",
    "mem_req_bytes",
    "mem_alloc_bytes",
    "gpus_alloc",
    "gpu_type_alloc",
    "tres_alloc",
    "total_cpu_s",
    "max_rss_bytes",
    "admin_comment",
    "completeness",
    "observed_at",
)


@dataclass(frozen=True)
class Everybody:
    """All attempts that were read and had started, whoever's and whenever: what readings are told apart by.

    ``row`` is the place in `Attempts.rows`, -1 for not there. ``end`` is infinite while a job runs.
    """

    job_id: Floats
    start: Floats
    end: Floats
    gpus: Floats
    nodes: list[str | None]
    row: Ints


@dataclass(frozen=True)
class Attempts:
    """Attempts of one cluster that ran between ``since`` and ``at``. Times are epoch seconds; ``end`` is infinite while they run.

    ``all_keys`` are those of every attempt that was read (also of those that wait or ended before), sorted, and ``all_rows`` where
    each is in ``rows``, -1 for not: a row of another table must not slip to a neighbour because its own attempt is not looked at.
    """

    cluster: str
    at: float
    rows: pa.Table
    start: Floats
    end: Floats
    elapsed: Floats
    final: Flags
    all_keys: Keys
    all_rows: Ints
    everybody: Everybody

    def __len__(self) -> int:
        return len(self.start)

    def number(self, name: str) -> Floats:
        """A column of numbers; null is nan."""
        return floats(self.rows[name])

    def first_submit(self) -> datetime | None:
        """The earliest submission, where the files of steps and sums begin to matter; None without attempts."""
        return datetime.fromtimestamp(float(self.number("submit").min()) / 1e6, UTC) if len(self) else None

    def texts(self, name: str) -> list[str | None]:
        """A column of texts."""
        values: list[str | None] = self.rows[name].to_pylist()
        return values

    def exactly(self, job_id: Floats, submit_us: Floats) -> Ints:
        """Row of the attempt with that id and submit time, -1 if there is none."""
        wanted = key_of(job_id, submit_us)
        if not len(self.all_keys):
            return np.full(len(wanted), -1, np.int64)
        place = np.minimum(np.searchsorted(self.all_keys, wanted), len(self.all_keys) - 1)
        return np.where(self.all_keys[place] == wanted, self.all_rows[place], -1)

    def latest(self, job_id: Floats, until_us: Floats) -> Ints:
        """Row of the job's latest attempt that was submitted by then, -1 if there is none."""
        wanted = key_of(job_id, until_us)
        if not len(self.all_keys):
            return np.full(len(wanted), -1, np.int64)
        place = np.searchsorted(self.all_keys, wanted, side="right") - 1
        same = (place >= 0) & (self.all_keys[np.maximum(place, 0)] >> np.uint64(33) == wanted >> np.uint64(33))
        return np.where(same, self.all_rows[np.maximum(place, 0)], -1)


def key_of(job_id: Floats, time_us: Floats) -> Keys:
    """One number that orders by job id, then by time in whole seconds (as Slurm's are)."""
    seconds = np.floor(np.nan_to_num(time_us) / 1e6).astype(np.int64) & ((1 << 33) - 1)
    ids = np.nan_to_num(job_id).astype(np.int64) & ((1 << 31) - 1)
    return (ids.astype(np.uint64) << np.uint64(33)) | seconds.astype(np.uint64)


def attempts_of(lake: Lake, cluster: str, *, since: datetime, at: datetime) -> Attempts:
    """Attempts that ran at some time in [since, at]."""
    table = lake.read("jobs", COLUMNS, cluster=cluster, since=since - LONGEST, until=at + timedelta(microseconds=1))
    start, end = floats(table["start"]) / 1e6, floats(table["end"]) / 1e6
    now = at.timestamp()
    keep = (start <= now) & ~(end <= since.timestamp())
    rows = np.flatnonzero(keep)
    rows = rows[np.lexsort((floats(table["job_id"])[rows], start[rows]))]
    where = np.full(len(start), -1, np.int64)
    where[rows] = np.arange(len(rows))
    keys = key_of(floats(table["job_id"]), floats(table["submit"]))
    order = np.argsort(keys, kind="stable")
    everybody = _everybody(table, start, end, now, where)
    table = table.take(pa.array(rows))
    start, end = start[rows], np.where(end[rows] <= now, end[rows], np.inf)
    ended = np.isfinite(end)
    # a job that was last seen long ago is known to have run until then
    seen = np.minimum(now, np.fmax(start, floats(table["observed_at"]) / 1e6))
    pause = np.nan_to_num(floats(table["suspended_s"]))
    whole = np.where(np.isnan(floats(table["elapsed_s"])), np.maximum(0.0, end - start - pause), floats(table["elapsed_s"]))
    elapsed = np.where(ended, whole, np.maximum(0.0, seen - start))
    over = pc.is_in(table["state"], value_set=pa.array(sorted(ENDED_STATES))).to_numpy()
    final = ended & over & (floats(table["completeness"]) >= 1)  # 0: seen by squeue or scontrol only, not booked yet
    return Attempts(cluster, now, table, start, end, elapsed, final, keys[order], where[order], everybody)


def _everybody(table: pa.Table, start: Floats, end: Floats, now: float, where: Ints) -> Everybody:
    rows = np.flatnonzero(start <= now)
    node_list = table["node_list"].take(pa.array(rows)).to_pylist()
    over = np.where(end <= now, end, np.inf)
    return Everybody(floats(table["job_id"])[rows], start[rows], over[rows], floats(table["gpus_alloc"])[rows], node_list, where[rows])
