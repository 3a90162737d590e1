"""A small cluster for tests of corrected copies: nodes of several sizes, limits of partition and QOS, jobs as told."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.unit.synthetic import NOW, table

from queuecast.store.lake import Lake

GIB = 1 << 30
SEEN = {"cluster": "toy", "observed_at": NOW}
SUBMIT = NOW - timedelta(hours=5)
Row = dict[str, Any]


def job(number: int, state: str = "FAILED", **more: Any) -> Row:
    """A job of alice's that ran for two hours on n1."""
    row: Row = {
        **SEEN, "job_id": number, "job_id_text": str(number), "array_tasks": 1, "array_tasks_exact": True, "name": "train", "user": "alice",
        "uid": 1000, "account": "vision", "partition": "cpu", "qos": "normal", "state": state, "exit_code": 1 if state == "FAILED" else 0,
        "exit_signal": 0, "submit": SUBMIT, "eligible": SUBMIT,
        "start": SUBMIT + timedelta(minutes=1), "end": SUBMIT + timedelta(minutes=121),
        "elapsed_s": 7200, "limit_s": 7200, "limit_kind": "limit", "nodes_req": 1, "nodes_alloc": 1, "cpus_req": 4, "cpus_alloc": 4,
        "mem_req_bytes": 4 * GIB, "mem_alloc_bytes": 4 * GIB, "gpus_req": 0, "gpus_alloc": 0, "node_list": "n1", "completeness": 3,
        "source": "sacct", "work_dir": "/nowhere", "submit_line": "sbatch job.sh",
    }  # fmt: skip
    return {**row, **more}


def make(path: Path, jobs: list[Row], *, settings: dict[str, str | None] | None = None, files: list[Row] = [], **tables: list[Row]) -> Lake:  # noqa: B006
    """The lake. Partitions: cpu (2 h 30 min at most, 16 and 32 GiB), big (2 days, 256 GiB), gpu (v100, a100).

    A setting that is None was never read.
    """
    lake = Lake.open(path, create=True)
    told: dict[str, str | None] = {"AccountingStoreFlags": "job_comment", "PreemptMode": "REQUEUE", "JobRequeue": "0"}
    told["PreemptType"] = "preempt/qos"
    told |= settings or {}
    nodes = [
        {"node": "n1", "partitions": "cpu", "cpus": 16, "mem_bytes": 16 * GIB, "gpus": 0},
        {"node": "n2", "partitions": "cpu", "cpus": 16, "mem_bytes": 32 * GIB, "gpus": 0},
        {"node": "n3", "partitions": "cpu", "cpus": 16, "mem_bytes": 32 * GIB, "gpus": 0},
        {"node": "b1", "partitions": "big", "cpus": 64, "mem_bytes": 256 * GIB, "gpus": 0},
        {"node": "g1", "partitions": "gpu", "cpus": 64, "mem_bytes": 256 * GIB, "gpus": 4, "gpu_type": "v100", "gres": "gpu:v100:4"},
        {"node": "g2", "partitions": "gpu", "cpus": 64, "mem_bytes": 256 * GIB, "gpus": 4, "gpu_type": "a100", "gres": "gpu:a100:4"},
    ]
    rows: dict[str, list[Row]] = {
        "jobs": jobs,
        "settings": [{"section": "config", "key": k, "value": v} for k, v in told.items() if v is not None],
        "partitions": [
            {"partition": "cpu", "is_default": True, "state": "UP", "max_time_s": 9000, "default_time_s": 3600, "node_list": "n[1-3]"},
            {"partition": "big", "is_default": False, "state": "UP", "max_time_s": 172800, "node_list": "b1"},
            {"partition": "gpu", "is_default": False, "state": "UP", "max_time_s": 172800, "node_list": "g[1-2]"},
        ],
        "qos": [
            {"qos": "normal", "priority": 10, "preempt": "scav"},
            {"qos": "scav", "priority": 0},
            {"qos": "short", "priority": 5, "max_wall_s": 3600},
        ],
        "associations": [
            {"account": "root", "user": None},
            {"account": "vision", "user": None, "parent": "root"},
            {"account": "vision", "user": "alice", "qos": "normal,scav,short", "default_qos": "normal"},
        ],
        "nodes": [{**n, "state": "IDLE", "detail": 1} for n in nodes],
        **tables,
    }
    if files:
        rows["job_files"] = files
    with lake.transaction("toy") as tx:
        for name, of in rows.items():
            if of:
                tx.append(name, table(name, [{**SEEN, **r} for r in of]))
    return lake
