"""Jobs that accounting still takes for running although the controller no longer knows them.

Slurm calls them runaway (``sacctmgr show runawayjobs``). They would count as busy GPUs for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from queuecast.store.files import instant

if TYPE_CHECKING:
    from queuecast.store.lake import Lake

BACK = timedelta(days=60)
"""Snapshots of so many days are looked at."""

GRACE = timedelta(hours=1)
"""A job may outlive its limit a little: kill wait, OverTimeLimit, accounting that lags."""


@dataclass(frozen=True)
class Runaway:
    """``last_seen`` is the last snapshot of the queue that showed it, None if none did."""

    job_id: str
    user: str | None
    start: datetime
    limit_s: int | None
    last_seen: datetime | None


def runaway_jobs(lake: Lake, cluster: str, at: datetime) -> list[Runaway]:
    """Jobs RUNNING in accounting that are past start + limit + grace and absent from the last snapshot at or before ``at``.

    A job without a limit is suspected by its absence alone. Without a snapshot nothing is suspected.
    """
    queue = lake.read("queue", ["job_id", "observed_at", "state"], cluster=cluster, since=at - BACK, until=at + timedelta(microseconds=1))
    queue = queue.filter(pc.less_equal(queue["observed_at"], instant(at)))
    if not queue.num_rows:
        return []
    newest = pc.max(queue["observed_at"])
    present = queue.filter(pc.equal(queue["observed_at"], newest))["job_id"].combine_chunks()
    columns = ["job_id", "job_id_text", "user", "state", "start", "end", "limit_s", "source"]
    jobs = lake.read("jobs", columns, cluster=cluster, until=at)
    running = pc.and_(pc.is_in(jobs["state"], value_set=pa.array(["RUNNING", "SUSPENDED"])), pc.is_null(jobs["end"]))
    gone = pc.invert(pc.is_in(jobs["job_id"], value_set=present))
    suspects = jobs.filter(pc.and_(pc.and_(running, gone), pc.and_(pc.equal(jobs["source"], "sacct"), pc.is_valid(jobs["start"]))))
    snapshot = newest.as_py()
    out = []
    for job in suspects.to_pylist():
        if job["start"] + timedelta(seconds=job["limit_s"] or 0) + GRACE < snapshot:
            seen = queue.filter(pc.equal(queue["job_id"], job["job_id"]))["observed_at"]
            last = pc.max(seen).as_py() if len(seen) else None
            out.append(Runaway(job["job_id_text"], job["user"], job["start"], job["limit_s"], last))
    return sorted(out, key=lambda r: r.start)
