"""A job as it was known at an instant: from the last snapshot before, and from accounting cut at that instant."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from queuecast.errors import NoDataError, ParseError, UsageError
from queuecast.i18n import _
from queuecast.policy.request import Request
from queuecast.slurmtext.jobids import JobId, parse_job_id
from queuecast.store.files import instant

if TYPE_CHECKING:
    from queuecast.store.lake import Lake

_BOTH = (
    "job_id job_id_text array_job_id array_task array_tasks user account partition qos state reason reason_text submit eligible start "
    "limit_s limit_kind mem_req_bytes observed_at name"
).split()
JOB_COLUMNS = [*_BOTH, "het_job_id", "het_offset", "end", "nodes_req", "cpus_req", "gpus_req", "gpu_type_req"]
QUEUE_COLUMNS = [*_BOTH, "nodes", "cpus", "gpus", "gpu_type"]
BACK = timedelta(days=62)
"""So much of accounting is read at a time, from the newest on, until the job is found."""


@dataclass(frozen=True)
class KnownJob:
    """One attempt of a job at instant ``at``. Times are UTC; None is unknown or not yet."""

    job_id: int
    text: str
    user: str | None
    name: str | None
    request: Request
    state: str
    reason: str | None
    reason_text: str | None
    reason_seen_at: datetime | None
    submit: datetime | None
    eligible: datetime | None
    start: datetime | None
    end: datetime | None
    seen_at: datetime
    array_tasks: int


def parse_id(text: str) -> JobId:
    """Job id as typed. Raises ``UsageError``."""
    try:
        job = parse_job_id(text)
    except ParseError as error:
        raise UsageError(_("{text} is not a job id").format(text=text), _("write it as squeue prints it: 1234, 1234_5, 1234+1")) from error
    return replace(job, step=None)


def find_job(lake: Lake, cluster: str, text: str, at: datetime) -> KnownJob:
    """The latest attempt submitted by ``at``. Raises ``NoDataError`` if none is known, ``UsageError`` for a bad id."""
    wanted = parse_id(text)
    accounting = _latest(_own(_jobs(lake, cluster, wanted, at), wanted), "submit")
    snapshot = _latest(_own(_queue(lake, cluster, wanted, at), wanted), "observed_at")
    if accounting is None and snapshot is None:
        raise NoDataError(
            _("job {job} is not known on {cluster} at that time").format(job=text, cluster=cluster),
            _("it may be newer than the data: run queuecast collect, or look at queuecast status"),
        )
    # A requeue makes a new attempt: the snapshot may already show it, or still show the one before.
    if accounting is not None and snapshot is not None and snapshot["submit"] and accounting["submit"] > snapshot["submit"]:
        snapshot = None
    if accounting is not None and snapshot is not None and snapshot["submit"] and accounting["submit"] < snapshot["submit"]:
        accounting = None
    own = snapshot is not None and wanted.array_task is not None and snapshot["array_task"] == wanted.array_task
    return _known(accounting, snapshot, at, snapshot if own else None)


def _jobs(lake: Lake, cluster: str, wanted: JobId, at: datetime) -> pa.Table:
    """Back through the months until it is found. Of an array the older record and its tasks have one time of submission."""
    first = min((datetime.fromisoformat(f.low) for f in lake.manifest.of("jobs", cluster) if f.low), default=at)
    until = at + timedelta(microseconds=1)
    while True:
        rows = lake.read("jobs", JOB_COLUMNS, cluster=cluster, since=until - BACK, until=until)
        rows = rows.filter(pc.and_(_same(rows, wanted), pc.less_equal(rows["submit"], instant(at))))
        until -= BACK
        if rows.num_rows or until <= first:
            return rows


def _queue(lake: Lake, cluster: str, wanted: JobId, at: datetime) -> pa.Table:
    rows = lake.read("queue", QUEUE_COLUMNS, cluster=cluster, since=at - timedelta(days=2), until=at + timedelta(microseconds=1))
    seen = rows["observed_at"]
    return rows.filter(pc.and_(_same(rows, wanted), pc.less_equal(seen, instant(at))))


def _same(rows: pa.Table, wanted: JobId) -> pa.ChunkedArray:
    """Rows of that job: by raw id, by array and task, or the record of an array's pending tasks."""
    if wanted.het_offset is not None:
        return pc.fill_null(pc.equal(rows["job_id_text"], f"{wanted.base}+{wanted.het_offset}"), False)
    if wanted.array_task is None:
        return pc.or_(pc.equal(rows["job_id"], wanted.base), pc.fill_null(pc.equal(rows["array_job_id"], wanted.base), False))
    of_array = pc.fill_null(pc.equal(rows["array_job_id"], wanted.base), False)
    task = pc.fill_null(pc.equal(rows["array_task"], wanted.array_task), pc.greater(rows["array_tasks"], 1))
    return pc.and_(of_array, pc.fill_null(task, False))


def _own(rows: pa.Table, wanted: JobId) -> pa.Table:
    """Of an array's task its own rows, where it has any: the record of the others' no longer speaks of it."""
    if wanted.array_task is None or not rows.num_rows:
        return rows
    exact = rows.filter(pc.fill_null(pc.equal(rows["array_task"], wanted.array_task), False))
    return exact if exact.num_rows else rows


def _latest(rows: pa.Table, column: str) -> dict[str, Any] | None:
    if not rows.num_rows:
        return None
    rows = rows.filter(pc.equal(rows[column], pc.max(rows[column])))
    # Of an array, a task that still waits answers the question; of a job, its own row.
    waiting = rows.filter(pc.equal(rows["state"], "PENDING"))
    found: dict[str, Any] = (waiting if waiting.num_rows else rows).slice(0, 1).to_pylist()[0]
    return found


def _known(job: dict[str, Any] | None, snap: dict[str, Any] | None, at: datetime, own: dict[str, Any] | None = None) -> KnownJob:
    """Both views of one attempt, cut at ``at``: what accounting learned later is not told. ``own``: the row that is of the task itself,
    where accounting may have its array's only."""
    base = job or snap or {}
    start = job["start"] if job and job["start"] and job["start"] <= at else (snap or {}).get("start")
    end = job["end"] if job and job["end"] and job["end"] <= at else None
    eligible = base.get("eligible") or (snap or {}).get("eligible")
    if eligible is not None and eligible > at:
        eligible = None
    named = base if own is None or (job is not None and job["array_task"] == own["array_task"]) else own
    if named is own and own is not None:
        state = own["state"]
    elif job is not None and job["observed_at"] <= at:
        state = job["state"]
    else:
        state = "RUNNING" if start is not None and end is None else (job["state"] if job and end else "PENDING")
    reason, text, seen = (
        (snap["reason"], snap["reason_text"], snap["observed_at"])
        if snap and snap["state"] == "PENDING"
        else ((job["reason"], job["reason_text"], job["observed_at"]) if job and job["observed_at"] <= at else (None, None, None))
    )
    request = Request(
        partitions=tuple(p for p in ((snap or base).get("partition") or "").split(",") if p),
        gpus=(job["gpus_req"] if job else snap["gpus"] if snap else 0) or 0,
        gpu_type=job["gpu_type_req"] if job else snap["gpu_type"] if snap else None,
        nodes=(job["nodes_req"] if job else snap["nodes"] if snap else 1) or 1,
        cpus=(job["cpus_req"] if job else snap["cpus"] if snap else 1) or 1,
        mem_bytes=base.get("mem_req_bytes"),
        limit_s=base.get("limit_s"),
        unlimited=base.get("limit_kind") == "unlimited",
        account=base.get("account"),
        qos=base.get("qos"),
        user=base.get("user"),
        array_tasks=named.get("array_tasks") or 1,
    )
    return KnownJob(
        named["job_id"],
        named["job_id_text"],
        base.get("user"),
        base.get("name"),
        request,
        state,
        reason,
        text,
        seen,
        base.get("submit"),
        eligible,
        start,
        end,
        max(x["observed_at"] for x in (job, snap) if x is not None),
        named.get("array_tasks") or 1,
    )
