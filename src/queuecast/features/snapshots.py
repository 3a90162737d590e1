"""Features from the last snapshots at or before the moment asked about: the queue, estimates, priorities, shares, nodes.

Everything is as known at that moment: of each table the last reading at or before it, and none that is older than
``QUEUE_AGE_S`` (queue, estimates, priorities) or ``SLOW_AGE_S`` (nodes, shares). Tables of configuration are stored when
they change, so their last reading holds however old it is. A table that the cluster does not have gives nan.

A job that is not in the last snapshot yet (a new request, or one submitted since) has the reason "not seen"; it is ranked by
the priority that its account's pending jobs had when they were new, and the other features of the job itself are nan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queuecast.features import snapshots_attempts, snapshots_nodes, snapshots_queue, snapshots_reservations, snapshots_shares
from queuecast.features.declare import Feature
from queuecast.features.history import Floats, Ints
from queuecast.features.snapshots_attempts import Attempts
from queuecast.features.snapshots_nodes import Nodes
from queuecast.features.snapshots_queue import NOT_SEEN, Pending, pending_of
from queuecast.features.snapshots_rank import AMOUNTS, Ranks, Started
from queuecast.features.snapshots_readings import QUEUE_AGE_S, Texts, Words, pick, pick_whole
from queuecast.features.snapshots_reservations import Partitions, Reservations
from queuecast.features.snapshots_shares import Estimates, Factors, Shares, current
from queuecast.schema import arrow_schema
from queuecast.store.files import instant

if TYPE_CHECKING:
    from queuecast.store.lake import Lake

COLUMNS: dict[str, tuple[str, ...]] = {
    "queue": tuple(snapshots_queue.COLUMNS),
    "estimates": snapshots_shares.ESTIMATE_COLUMNS,
    "priorities": snapshots_shares.PRIORITY_COLUMNS,
    "shares": snapshots_shares.SHARE_COLUMNS,
    "nodes": snapshots_nodes.COLUMNS,
    "partitions": snapshots_reservations.PARTITION_COLUMNS,
    "reservations": snapshots_reservations.COLUMNS,
    "jobs": snapshots_attempts.COLUMNS,
}
"""Tables and columns that are read."""

BEFORE = timedelta(hours=28)
"""Snapshots are read from so long before the first moment asked about: the last snapshot may be two hours old, it looks
back a day for jobs that started, and these were last seen within two hours before their start."""

SUBMITTED_BEFORE = timedelta(days=31)
"""Jobs submitted longer before that are found by their own raw id only."""

_SCOPES = (("cluster", "the cluster"), ("partition", "the partition"), ("gpu_type", "the line for that type of GPU"))
_MEASURES = (
    ("jobs_above", "jobs", "jobs (array tasks count each) ahead by priority"),
    ("share_above", "share", "share of the pending jobs that is ahead by priority"),
    ("cpus_above", "CPUs", "CPUs that jobs ahead ask for"),
    ("gpus_above", "GPUs", "GPUs that jobs ahead ask for"),
    ("core_hours_above", "h", "CPUs times time limit of the jobs ahead"),
    ("gpu_hours_above", "h", "GPUs times time limit of the jobs ahead"),
)


def _feature(name: str, unit: str, topic: str, meaning: str) -> Feature:
    return Feature(name, unit, "snapshot", topic, meaning)


QUEUE_FEATURES = (
    _feature("queue_age_s", "s", "queue", "age of the last snapshot of the queue"),
    _feature("queue_reason", "class", "reason", "class of the reason the job waits for: a number into REASON_CLASSES"),
    _feature("queue_tasks", "tasks", "queue", "tasks that the job's record stands for"),
    _feature("queue_eligible_s", "s", "queue", "time since the job became eligible, as squeue shows it; below 0: it begins later"),
    _feature("queue_priority", "", "priority", "priority of the job"),
    _feature("queue_priority_lead", "", "priority", "priority minus the middle one of jobs started in the partition in the last day"),
    _feature("queue_rank_assumed", "0 or 1", "queue", "1 if ranked by what new jobs of the account have, 0 if by its own priority"),
    *(
        _feature(f"queue_{scope}_{name}", unit, "queue", f"{text}, in {where}")
        for scope, where in _SCOPES
        for name, unit, text in _MEASURES
    ),
    _feature("queue_partition_open_jobs_above", "jobs", "queue", "jobs ahead in the partition that no limit, hold or dependency keeps"),
    _feature("queue_partition_open_core_hours_above", "h", "queue", "CPUs times time limit of these"),
    _feature("queue_partition_open_gpu_hours_above", "h", "queue", "GPUs times time limit of these"),
)

FEATURES: tuple[Feature, ...] = (
    *QUEUE_FEATURES,
    *snapshots_shares.ESTIMATE_FEATURES,
    *snapshots_shares.PRIORITY_FEATURES,
    *snapshots_shares.SHARE_FEATURES,
    *snapshots_nodes.FEATURES,
    *snapshots_reservations.FEATURES,
)


@dataclass(frozen=True)
class PendingCases:
    """A row for each pending record and snapshot, sorted by ``asked`` (the snapshot's time, epoch seconds): all that
    ``Snapshots.features`` needs, in its words. ``reason`` is a number into ``REASON_CLASSES``, ``tasks`` how many tasks the
    record stands for, ``array_job_id`` -1 for a job that is no array's. Times are nan where squeue did not tell."""

    job_id: Ints
    array_job_id: Ints
    asked: Floats
    submit: Floats
    eligible: Floats
    partition: tuple[Ints, list[str]]
    account: tuple[Ints, list[str]]
    user: tuple[Ints, list[str]]
    gpus: Floats
    gpu_type: tuple[Ints, list[str]]
    cpus: Floats
    nodes: Floats
    limit_s: Floats
    reason: Ints
    tasks: Floats

    def __len__(self) -> int:
        return len(self.asked)

    def request(self) -> dict[str, Any]:
        """Arguments for ``Snapshots.features``."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("eligible", "reason", "tasks")}


class Snapshots:
    """All readings of one cluster in columns. ``tables`` are those of ``COLUMNS``; an absent one is as good as empty."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        def rows(name: str) -> pa.Table:
            return tables[name] if name in tables else _no_rows(name)

        self.partitions, self.accounts, self.users, self.gpu_types, names = Words(), Words(), Words(), Words(), Words()
        self.attempts = Attempts.of(rows("jobs"), self.partitions)
        self.pending: Pending = pending_of(rows("queue"), self.attempts, self.partitions, self.accounts, self.users, self.gpu_types)
        self.estimates = Estimates.of(rows("estimates"))
        self.factors = Factors.of(rows("priorities"))
        self.shares = Shares.of(rows("shares"), self.accounts, self.users, self.partitions)
        self.nodes = Nodes.of(rows("nodes"), names, self.partitions, self.gpu_types)
        self.layout = Partitions.of(rows("partitions"), names, self.partitions)
        self.reservations = Reservations.of(rows("reservations"), names, self.partitions, self.layout, self.nodes)

    @cached_property
    def ranks(self) -> Ranks:
        """Order of each snapshot, made when first asked for."""
        return Ranks(self.pending, len(self.partitions), len(self.gpu_types))

    @cached_property
    def started(self) -> Started:
        """Priorities with which jobs started."""
        return Started(self.pending, self.attempts)

    def features(
        self,
        job_id: Ints,
        array_job_id: Ints | None,
        asked: Floats,
        partition: Texts,
        account: Texts,
        user: Texts,
        gpus: Floats,
        gpu_type: Texts,
        cpus: Floats,
        nodes: Floats,
        limit_s: Floats,
        submit: Floats | None = None,
    ) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        """Features of (job, moment) pairs, float32 of shape (m, len(FEATURES)), nan where unknown.

        ``job_id`` is the raw id, -1 for a request that is not submitted. ``asked`` is in epoch seconds, in any order. Without
        ``array_job_id`` (-1: no array) and ``submit`` (nan: unknown) both are looked up among the attempts that accounting
        has. Texts are one per case, or codes and their words; of several partitions in a comma list the first one counts.
        GPUs, CPUs and nodes are of the whole job, ``limit_s`` in seconds; nan is unknown.
        """
        asked = np.asarray(asked, np.float64)
        job_id, array_job_id, submit = self._attempt(np.asarray(job_id, np.int64), array_job_id, asked, submit)
        where, whose, who = self.partitions.codes(_first_named(partition)), self.accounts.codes(account), self.users.codes(user)
        kind = self.gpu_types.codes(gpu_type)
        reading = self.pending.readings.last(asked, QUEUE_AGE_S)
        entry = self.pending.readings.find_job(current(self.pending.readings, asked, submit), job_id, array_job_id)
        seen = np.where(entry >= 0, self.pending.readings.time(reading), np.nan)
        columns = self._queue(asked, reading, entry, where, whose, kind, gpus)
        columns += self.estimates.features(asked, job_id, array_job_id, submit, pick(self.pending.estimate, entry), seen)
        columns += self.factors.features(asked, job_id, array_job_id, submit)
        columns += self.shares.features(asked, whose, who, where)
        columns += self._nodes(asked, where, kind, gpus, cpus, nodes)
        columns += self.reservations.features(asked, where, np.asarray(limit_s, np.float64))
        return np.column_stack(columns).astype(np.float32)

    def _attempt(self, job_id: Ints, array_job_id: Ints | None, asked: Floats, submit: Floats | None) -> tuple[Ints, Ints, Floats]:
        attempt = self.attempts.at(job_id, asked)
        if array_job_id is None:
            array_job_id = pick_whole(self.attempts.array_job_id, attempt)
        if submit is None:
            submit = pick(self.attempts.submit, attempt)
        return job_id, np.asarray(array_job_id, np.int64), np.asarray(submit, np.float64)

    def _queue(self, asked: Floats, reading: Ints, entry: Ints, partition: Ints, account: Ints, kind: Ints, gpus: Floats) -> list[Floats]:
        p, ranks = self.pending, self.ranks
        taken = p.readings.time(reading)
        priority = pick(p.priority, entry)
        own = pick_whole(ranks.place, entry)
        place = np.where(own >= 0, own, ranks.place_of(reading, ranks.typical_new(reading, np.where(entry < 0, account, -1))))
        reason = np.where(reading < 0, np.nan, pick_whole(p.reason, entry, NOT_SEEN))
        ahead = ranks.ahead(reading, place, partition, kind, np.asarray(gpus, np.float64))
        columns = [
            asked - taken,
            reason,
            pick(p.tasks, entry),
            asked - pick(p.eligible, entry),
            priority,
            priority - self.started.median(np.where(np.isnan(priority), np.nan, taken), partition),
            np.where(place < 0, np.nan, own < 0),
        ]
        for scope, _ in _SCOPES:
            amounts, tasks = ahead[scope]
            jobs, cpus, gpus_, core_s, gpu_s = (amounts[:, AMOUNTS.index(a)] for a in ("jobs", "cpus", "gpus", "core_s", "gpu_s"))
            columns += [jobs, jobs / np.maximum(1.0, tasks), cpus, gpus_, core_s / 3600.0, gpu_s / 3600.0]
        amounts = ahead["partition"][0]
        jobs, core_s, gpu_s = (amounts[:, AMOUNTS.index(a)] for a in ("open_jobs", "open_core_s", "open_gpu_s"))
        return [*columns, jobs, core_s / 3600.0, gpu_s / 3600.0]

    def _nodes(self, asked: Floats, partition: Ints, kind: Ints, gpus: Floats, cpus: Floats, nodes: Floats) -> list[Floats]:
        numbers = (np.asarray(n, np.float64) for n in (gpus, cpus, nodes))
        columns = self.nodes.features(asked, partition, kind, *numbers)
        for column, told in zip((-2, -1), self.layout.totals(asked, partition), strict=True):
            columns[column] = np.where(np.isnan(told), columns[column], told)
        return columns


def load_snapshots(lake: Lake, cluster: str, since: datetime, until: datetime) -> Snapshots:
    """Readings for moments asked about in [since, until), aware times. Load once for a lake's version and cluster."""
    tables = {}
    for name, columns in COLUMNS.items():
        steady = name in ("partitions", "reservations")
        start = None if steady else since - BEFORE - (SUBMITTED_BEFORE if name == "jobs" else timedelta(0))
        rows = lake.read(name, columns, cluster=cluster, since=start, until=until, dictionary=True)
        tables[name] = rows if name == "jobs" else _between(rows, start, until)
    return Snapshots(tables)


def pending_cases_of(snapshots: Snapshots, delay_s: float = 0.0) -> PendingCases:
    """Every (pending record, snapshot), asked about ``delay_s`` seconds after the snapshot: for asking about pending jobs
    at each snapshot. Tasks of an array that share a record are one row, under the array's id.

    A collection reads one command after the other: with no delay, estimates and sprio factors are those of the cycle
    before; with about a minute, of the same one. A job may have started meanwhile: such rows are for the caller to drop.
    """
    p = snapshots.pending
    return PendingCases(
        job_id=p.job_id,
        array_job_id=p.array_job_id,
        asked=p.readings.time(p.reading) + delay_s,
        submit=p.submit,
        eligible=p.eligible,
        partition=(p.partition, snapshots.partitions.words),
        account=(p.account, snapshots.accounts.words),
        user=(p.user, snapshots.users.words),
        gpus=p.gpus,
        gpu_type=(p.gpu_type, snapshots.gpu_types.words),
        cpus=p.cpus,
        nodes=p.nodes,
        limit_s=p.limit_s,
        reason=p.reason,
        tasks=p.tasks,
    )


def _first_named(partition: Texts) -> Texts:
    if isinstance(partition, tuple) and len(partition) == 2 and isinstance(partition[0], np.ndarray):
        return partition[0], [str(w).split(",")[0] for w in partition[1]]
    return [str(text).split(",")[0] if text else None for text in partition]


def _between(rows: pa.Table, since: datetime | None, until: datetime) -> pa.Table:
    """Rows observed in [since, until); what the lake gives is coarse."""
    keep = pc.less(rows["observed_at"], instant(until.astimezone(UTC)))
    if since is not None:
        keep = pc.and_(keep, pc.greater_equal(rows["observed_at"], instant(since.astimezone(UTC))))
    return rows.filter(keep)


def _no_rows(name: str) -> pa.Table:
    schema = arrow_schema(name)
    return pa.Table.from_batches([], schema=pa.schema([schema.field(c) for c in COLUMNS[name]]))
