"""A small made-up lake with every state that the pages show, and with hostile names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from queuecast.schema import arrow_schema
from queuecast.store.lake import Lake

NEWEST = datetime(2026, 6, 10, 12, 0, tzinfo=UTC)
HOSTILE = "<script>alert(1)</script> **bold** [x](javascript:alert(2)) :red[y] $z$"
FORMULA = '=HYPERLINK("http://evil.example/","free GPUs")'

HELD, NEVER, NOT_ELIGIBLE, STARTED, ENDED, PENDING, HOSTILE_JOB, FORGOTTEN = 9001, 9002, 9003, 9004, 9005, 9006, 9007, 9012

_USERS = ("ines", "tomas", "wei", "amara")


def build_lake(path: Path, *, newest: datetime = NEWEST, annex: bool = False, demo: bool = False, snapshot: bool = True) -> Lake:
    """Cluster ``campus``: a month of jobs, one snapshot at ``newest``. ``annex``: a second cluster without any start."""
    lake = Lake.open(path, create=True)
    with lake.transaction("test") as tx:
        tx.append("jobs", _table("jobs", _history(newest)))
        _settings(tx, "campus", newest)
        if snapshot:
            queue = _queue("campus", newest)
            tx.append("queue", _table("queue", queue))
            tx.append("estimates", _table("estimates", _estimates(queue, newest)))
            tx.append("nodes", _table("nodes", _nodes("campus", newest)))
        if annex:
            tx.append("queue", _table("queue", [_row("annex", newest, 77, "new", "Priority", 1)]))
        seen = {"campus": {"sacct": newest.isoformat()}}
        if annex:
            seen["annex"] = {"squeue": newest.isoformat()}
        tx.state["seen"] = seen
        if demo:
            tx.state["demo"] = True
    return lake.refresh()


def _table(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=arrow_schema(name))


def _history(newest: datetime) -> list[dict[str, Any]]:
    """Jobs whose waits are log-normal: longer on gpu with more GPUs, short on cpu."""
    rng = np.random.default_rng(7)
    rows = []
    for i in range(1500):
        gpu = bool(rng.random() < 0.6)
        gpus = int(rng.choice([1, 1, 2, 4, 8])) if gpu else 0
        kind = str(rng.choice(["a100", "a100", "v100"])) if gpu else None
        eligible = (newest - timedelta(days=30) + timedelta(minutes=28.0 * i)).replace(microsecond=0)
        middle = 3600 * (0.6 + 0.5 * gpus) if kind == "a100" else 700 + 300 * gpus
        wait = float(np.exp(rng.normal(np.log(middle), 1.0)))
        if rng.random() < 0.08:
            wait = 0.0
        start = eligible + timedelta(seconds=round(wait))
        ran = timedelta(seconds=int(rng.integers(300, 30000)))
        cancelled = bool(rng.random() < 0.03)
        started = not cancelled and start < newest
        ended = started and start + ran < newest
        rows.append(
            _job("campus", newest, 1000 + i, f"train-{i % 40}", _USERS[i % 4])
            | {
                "partition": "gpu" if gpu else "cpu",
                "gpus_req": gpus,
                "gpu_type_req": kind,
                "cpus_req": max(4, 8 * gpus),
                "submit": eligible,
                "eligible": eligible,
                "start": start if started else None,
                "end": min(start, newest) if cancelled else start + ran if ended else None,
                "state": "CANCELLED" if cancelled else "COMPLETED" if ended else "RUNNING" if started else "PENDING",
                "limit_s": int(rng.choice([3600, 14400, 86400])),
                "completeness": 3 if ended or cancelled else 2 if started else 1,
            }
        )
    first = newest - timedelta(hours=5)
    rows.append(
        _job("campus", newest, STARTED, "runs", "ines")
        | {
            "submit": first,
            "eligible": first,
            "start": first + timedelta(hours=1),
            "state": "RUNNING",
            "gpus_req": 2,
            "gpu_type_req": "a100",
        }
    )
    rows.append(
        _job("campus", newest, ENDED, "done", "ines")
        | {
            "submit": first,
            "eligible": first,
            "start": first + timedelta(minutes=20),
            "end": first + timedelta(hours=2),
            "state": "FAILED",
            "gpus_req": 2,
            "gpu_type_req": "a100",
            "completeness": 3,
        }
    )
    return rows


def _job(cluster: str, seen: datetime, number: int, name: str, user: str) -> dict[str, Any]:
    return {
        "cluster": cluster,
        "job_id": number,
        "job_id_text": str(number),
        "array_tasks": 1,
        "array_tasks_exact": True,
        "name": name,
        "user": user,
        "account": "lab" if user in ("ines", "wei") else "course",
        "partition": "gpu",
        "qos": "normal",
        "nodes_req": 1,
        "cpus_req": 8,
        "limit_s": 86400,
        "limit_kind": "limit",
        "source": "sacct",
        "completeness": 2,
        "observed_at": seen,
    }


def _row(cluster: str, at: datetime, number: int, name: str, reason: str | None, hours: float, **more: Any) -> dict[str, Any]:
    submit = at - timedelta(hours=hours)
    return {
        "cluster": cluster,
        "observed_at": at,
        "job_id": number,
        "job_id_text": str(number),
        "array_tasks": 1,
        "array_tasks_exact": True,
        "name": name,
        "user": "wei",
        "account": "lab",
        "partition": "gpu",
        "qos": "normal",
        "state": "PENDING",
        "reason": reason,
        "submit": submit,
        "eligible": submit,
        "limit_s": 86400,
        "limit_kind": "limit",
        "nodes": 1,
        "cpus": 32,
        "gpus": 4,
        "gpu_type": "a100",
        "priority": 10000 - number,
    } | more


def _queue(cluster: str, at: datetime) -> list[dict[str, Any]]:
    rows = [
        _row(cluster, at, HELD, "wait for data", "JobHeldUser", 30),
        _row(cluster, at, NEVER, "too long", "PartitionTimeLimit", 50),
        _row(cluster, at, NOT_ELIGIBLE, "second stage", "Dependency", 8, eligible=None, dependency="afterok:9004"),
        _row(cluster, at, PENDING, "llm-finetune", "Resources", 2.5, start_estimate=at + timedelta(hours=6)),
        _row(cluster, at, HOSTILE_JOB, HOSTILE, "Priority", 1, user="<b>mallory</b>"),
        _row(cluster, at, 9008, FORMULA, "Priority", 4, user="@cmd", gpus=8),
        _row(
            cluster,
            at,
            9010,
            "sweep",
            "QOSMaxGRESPerUser",
            12,
            job_id_text="9010_[1-20]",
            array_job_id=9010,
            array_tasks=20,
            gpus=1,
            cpus=8,
        ),
        _row(cluster, at, FORGOTTEN, "forgotten", "Priority", 24 * 25),
        _row(cluster, at, 9011, "unknown need", "Priority", 0.3, gpus=None, gpu_type=None, limit_s=None, limit_kind="unlimited"),
        _row(cluster, at, STARTED, "runs", None, 5, state="RUNNING", start=at - timedelta(hours=4), gpus=2, node_list="g1"),
    ]
    rows += [
        _row(
            cluster,
            at,
            9100 + i,
            f"train-{i}",
            "Priority" if i % 3 else "Resources",
            0.4 * i + 0.2,
            user=_USERS[i % 4],
            gpus=(1, 2, 4)[i % 3],
            gpu_type=("a100", "a100", "v100")[i % 3],
        )
        for i in range(24)
    ]
    return rows


def _estimates(queue: list[dict[str, Any]], at: datetime) -> list[dict[str, Any]]:
    """The pending jobs' estimates, and earlier ones of jobs that have started since, all three hours late."""
    rows = [
        {
            "cluster": j["cluster"],
            "observed_at": at,
            "job_id": j["job_id"],
            "job_id_text": j["job_id_text"],
            "array_tasks": 1,
            "partition": j["partition"],
            "state": "PENDING",
            "start_estimate": j.get("start_estimate"),
            "clamped": False,
        }
        for j in queue
        if j["state"] == "PENDING"
    ]
    for job in _history(at):
        if (
            job["start"] is not None
            and at - timedelta(days=10) < job["submit"]
            and job["start"] > job["submit"] + timedelta(minutes=10)
        ):
            rows.append(
                {
                    "cluster": "campus",
                    "observed_at": job["submit"] + timedelta(minutes=5),
                    "job_id": job["job_id"],
                    "job_id_text": job["job_id_text"],
                    "array_tasks": 1,
                    "partition": job["partition"],
                    "state": "PENDING",
                    "start_estimate": job["start"] + timedelta(hours=3),
                    "clamped": False,
                }
            )
    return rows


def _nodes(cluster: str, at: datetime) -> list[dict[str, Any]]:
    def node(name: str, kind: str, used: int, state: str, flags: str | None = None) -> dict[str, Any]:
        return {
            "cluster": cluster,
            "observed_at": at,
            "node": name,
            "partitions": "gpu",
            "state": state,
            "state_flags": flags,
            "cpus": 64,
            "gpus": 8,
            "gpus_alloc": used,
            "gpu_type": kind,
            "gres": f"gpu:{kind}:8",
            "detail": 1,
        }

    return [
        node("g1", "a100", 8, "ALLOCATED"),
        node("g2", "a100", 5, "MIXED"),
        node("g3", "a100", 8, "ALLOCATED"),
        node("g4", "a100", 2, "MIXED", "DRAIN"),
        node("v1", "v100", 1, "MIXED"),
        node("v2", "v100", 0, "IDLE"),
        node("v3", "v100", 0, "DOWN"),
    ]


def _settings(tx: Any, cluster: str, newest: datetime) -> None:
    seen = newest - timedelta(days=30)
    parts = [
        {
            "cluster": cluster,
            "observed_at": seen,
            "partition": name,
            "is_default": name == "gpu",
            "state": "UP",
            "max_time_s": limit,
            "default_time_s": 3600,
        }
        for name, limit in (("gpu", 2 * 86400), ("cpu", 7 * 86400), ("debug", 3600))
    ]
    tx.append("partitions", _table("partitions", parts))
    tx.append(
        "qos",
        _table(
            "qos", [{"cluster": cluster, "observed_at": seen, "qos": q, "priority": p} for q, p in (("normal", 0), ("high", 50))]
        ),
    )
    tx.append(
        "associations",
        _table(
            "associations",
            [
                {"cluster": cluster, "observed_at": seen, "account": a, "user": u, "shares": "1"}
                for u, a in (("ines", "lab"), ("wei", "lab"), ("tomas", "course"), ("amara", "course"))
            ],
        ),
    )
