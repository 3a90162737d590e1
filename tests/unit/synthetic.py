"""A small invented cluster for tests: jobs of three kinds with drawn waits, a last snapshot, configuration."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from queuecast.store.lake import Lake

T0 = datetime(2026, 5, 1, tzinfo=UTC)
NOW = T0 + timedelta(days=20)
KINDS = (
    ("gpu", "vision", "alice", 4, "a100", 5000.0, 1.2),
    ("gpu", "bio", "carol", 1, "v100", 20000.0, 0.8),
    ("cpu", "nlp", "bob", 0, None, 60.0, 1.0),
)


def job_rows(count: int = 1500, seed: int = 1) -> list[dict[str, Any]]:
    """As sacct would show them at ``NOW``; some were cancelled while pending, the last ones still wait."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        partition, account, user, gpus, kind, middle, spread = KINDS[int(rng.integers(len(KINDS)))]
        submit = T0 + timedelta(seconds=float(number) / count * 20 * 86400)
        wait = float(np.exp(np.log(middle) + spread * rng.standard_normal()))
        start: datetime | None = submit + timedelta(seconds=round(wait))
        end: datetime | None = submit + timedelta(seconds=round(wait + rng.exponential(7200)))
        state = "COMPLETED"
        patience = float(rng.exponential(60000))
        if patience < wait:
            start, end, state = None, submit + timedelta(seconds=round(patience)), "CANCELLED"
        if start is not None and start > NOW:
            start, end, state = None, None, "PENDING"
        elif end is not None and end > NOW:
            end, state = None, "RUNNING" if start else "PENDING"
        rows.append(
            {
                "cluster": "toy",
                "job_id": 1000 + number,
                "job_id_text": str(1000 + number),
                "array_tasks": 1,
                "array_tasks_exact": True,
                "name": f"job {number}",
                "user": user,
                "account": account,
                "partition": partition,
                "qos": "normal",
                "state": state,
                "submit": submit,
                "eligible": submit,
                "start": start,
                "end": end,
                "limit_s": int(rng.choice([3600, 14400, 86400])),
                "limit_kind": "limit",
                "nodes_req": 1,
                "cpus_req": 8,
                "gpus_req": gpus,
                "gpu_type_req": kind,
                "completeness": 3 if end else 2 if start else 1,
                "source": "sacct",
                "observed_at": NOW,
            }
        )
    return rows


def known_at(rows: list[dict[str, Any]], at: datetime) -> list[dict[str, Any]]:
    """The same rows as they would have been read at ``at``: nothing later is in them."""
    out = []
    for row in rows:
        if row["submit"] > at:
            continue
        row = dict(row, observed_at=at)
        if row["start"] is not None and row["start"] > at:
            row["start"] = None
        if row["end"] is not None and row["end"] > at:
            row["end"] = None
        if row["end"] is None:
            row["state"] = "RUNNING" if row["start"] else "PENDING"
        row["completeness"] = 3 if row["end"] else 2 if row["start"] else 1
        out.append(row)
    return out


def table(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    """Rows as Arrow, with the schema's types."""
    from queuecast.schema import arrow_schema

    schema = arrow_schema(name)
    return pa.table({c: pa.array([r.get(c) for r in rows], schema.field(c).type) for c in schema.names}, schema=schema)


def queue_rows(rows: list[dict[str, Any]], at: datetime, reason: str = "Priority") -> list[dict[str, Any]]:
    """The snapshot of squeue that goes with ``rows``."""
    return [
        {
            "cluster": "toy",
            "observed_at": at,
            "job_id": r["job_id"],
            "job_id_text": r["job_id_text"],
            "array_tasks": 1,
            "array_tasks_exact": True,
            "name": r["name"],
            "user": r["user"],
            "account": r["account"],
            "partition": r["partition"],
            "qos": "normal",
            "state": r["state"],
            "reason": reason if r["state"] == "PENDING" else None,
            "reason_text": reason if r["state"] == "PENDING" else None,
            "submit": r["submit"],
            "start": r["start"],
            "limit_s": r["limit_s"],
            "limit_kind": "limit",
            "nodes": 1,
            "cpus": 8,
            "gpus": r["gpus_req"],
            "gpu_type": r["gpu_type_req"],
            "priority": 100,
            "node_list": "g1" if r["start"] else None,
        }
        for r in rows
        if r["state"] in ("PENDING", "RUNNING")
    ]


def make_lake(path: Path, rows: list[dict[str, Any]], at: datetime = NOW) -> Lake:
    """A lake with these jobs, one snapshot at ``at``, two partitions, two QOS, three accounts, two GPU nodes."""
    lake = Lake.open(path, create=True)
    seen = {"cluster": "toy", "observed_at": at}
    with lake.transaction("toy") as tx:
        tx.append("jobs", table("jobs", rows))
        snapshot = queue_rows(known_at(rows, at), at)
        if snapshot:
            tx.append("queue", table("queue", snapshot))
        tx.append(
            "partitions",
            table(
                "partitions",
                [
                    {**seen, "partition": "gpu", "is_default": True, "default_time_s": 3600, "max_time_s": 172800},
                    {**seen, "partition": "cpu", "is_default": False, "max_time_s": 604800},
                ],
            ),
        )
        tx.append("qos", table("qos", [{**seen, "qos": "normal"}, {**seen, "qos": "high"}]))
        tx.append(
            "associations",
            table(
                "associations",
                [
                    {**seen, "account": a, "user": u, "default_qos": "normal"}
                    for a, u in (("vision", "alice"), ("bio", "carol"), ("nlp", "bob"))
                ],
            ),
        )
        tx.append(
            "nodes",
            table(
                "nodes",
                [
                    {
                        **seen,
                        "node": "g1",
                        "partitions": "gpu",
                        "state": "MIXED",
                        "cpus": 64,
                        "gpus": 4,
                        "gpus_alloc": 1,
                        "gpu_type": "a100",
                        "gres": "gpu:a100:4",
                        "detail": 1,
                    },
                    {
                        **seen,
                        "node": "g2",
                        "partitions": "gpu",
                        "state": "IDLE",
                        "state_flags": "DRAIN",
                        "cpus": 64,
                        "gpus": 4,
                        "gpus_alloc": 0,
                        "gpu_type": "v100",
                        "gres": "gpu:v100:4",
                        "detail": 1,
                    },
                ],
            ),
        )
    return lake
