"""What became of the jobs that a job waited for, and which job took the place of one that failed."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from queuecast.answers.retries.lineage_mark import parent_of, same_cluster
from queuecast.slurmtext.states import ENDED_STATES
from queuecast.store.files import instant

if TYPE_CHECKING:
    from queuecast.answers.retries.placing import Lookup
    from queuecast.store.lake import Lake

BACK = timedelta(days=62)


def successor_lookup(lake: Lake, cluster: str, at: datetime) -> Lookup:
    """Asks the lake at the first call only: most jobs wait for nothing."""
    jobs: list[dict[str, object]] = []

    def lookup(job: str) -> tuple[str | None, str | None]:
        if not jobs:
            rows = lake.read(
                "jobs",
                ["job_id", "array_job_id", "state", "submit", "end", "comment"],
                cluster=cluster,
                since=at - BACK,
                until=at + timedelta(microseconds=1),
            )
            jobs.extend(rows.filter(pc.less_equal(rows["submit"], instant(at))).to_pylist() if rows.num_rows else [])
        base = int(job.split("_")[0].split("+")[0])
        mine = [r for r in jobs if r["job_id"] == base or r["array_job_id"] == base]
        if not mine:
            return None, None
        states = [_state(r, at) for r in mine]
        state = next((s for s in states if s not in ENDED_STATES), None) or next((s for s in states if s != "COMPLETED"), "COMPLETED")
        followers = [r for r in jobs if _is_copy(r, cluster, base) and _state(r, at) in ("PENDING", "RUNNING", "COMPLETED")]
        last = max(followers, key=lambda r: str(r["submit"]), default=None)
        return state, None if last is None else str(last["array_job_id"] or last["job_id"])

    return lookup


def _state(row: dict[str, object], at: datetime) -> str:
    end = row["end"]
    return str(row["state"]) if isinstance(end, datetime) and end <= at else "PENDING"


def _is_copy(row: dict[str, object], cluster: str, base: int) -> bool:
    comment = row["comment"]
    parent = parent_of(comment) if isinstance(comment, str) else None
    return parent is not None and same_cluster(parent[0], cluster) and parent[1].split("_")[0] == str(base)
