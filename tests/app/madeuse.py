"""A small made-up lake whose jobs ask for more than they use, fail in several ways, and hold idle GPUs."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from madelake import FORMULA, HOSTILE, NEWEST, build_lake

from queuecast.models.sizing_bound import Resource, SizeBound
from queuecast.schema import arrow_schema
from queuecast.store.lake import Lake
from queuecast.usage.uses import Uses

GIB = 1 << 30
MALLORY = "<b>mallory</b>"
IDLE, OOM, TIMED_OUT, WELL, CRASHED = 20_000, 21_000, 21_001, 22_000, 23_000
DEAD = range(24_000, 24_006)
"""Six jobs of three users that died with the node g3."""


class StandIn:
    """A tenth above the most that the user's jobs used: quick, and the same on every machine."""

    def __init__(self, uses: Uses, risk: float) -> None:
        self.risk = risk
        self.used: dict[tuple[str | None, str], list[float]] = {}
        for row in uses.rows.to_pylist():
            if not row["final"]:
                continue
            cpus = None if row["cpu_share"] is None else row["cpu_share"] * row["cpus_alloc"]
            amounts = (
                ("memory", row["mem_peak_bytes"]),
                ("time", row["elapsed_s"]),
                ("cpus", cpus),
                ("gpu_memory", row["gpu_mem_peak_bytes"]),
            )
            for resource, value in amounts:
                if value is not None:
                    self.used.setdefault((row["user"], resource), []).append(float(value))

    def bound(self, resource: Resource, *, user: str | None, **_kind: Any) -> SizeBound | None:
        """None below five jobs."""
        values = self.used.get((user, resource), [])
        if len(values) < 5:
            return None
        used = tuple(float(q) for q in np.quantile(values, [0.5, 0.95, 1.0]))
        unit = {"time": "s", "cpus": "CPUs"}.get(resource, "bytes")
        return SizeBound(resource, 1.1 * used[2], unit, self.risk, len(values), "user", used, 0.002)  # type: ignore[arg-type]


def build_use_lake(path: Path, *, generated: bool = False, samples: bool = True) -> Lake:
    """``generated``: the figures of use are marked as made by a script. ``samples``: GPUs were read."""
    lake = build_lake(path, demo=generated)
    jobs, uses = [], []
    for i in range(30):
        end = NEWEST - timedelta(hours=6 * i + 7)
        jobs.append(_ended(WELL + i, f"train-{i}", "ines", "lab", end, 5.0, gpus=4, gpu_type="a100", mem=64))
        uses.append(_use(jobs[-1], generated, mem=10 * GIB, cpu=0.2, gpus_used=1, gpu_mem=9 * GIB))
        jobs.append(_ended(CRASHED + i, HOSTILE if i % 2 else FORMULA, MALLORY, "course", end, 2.0, gpus=1, mem=32, state="FAILED", code=1))
        uses.append(_use(jobs[-1], generated, mem=3 * GIB, cpu=0.5, gpus_used=1, gpu_mem=4 * GIB))
    last = NEWEST - timedelta(hours=3)
    jobs.append(_ended(OOM, "grow", "tomas", "course", last, 1.0, mem=8, state="OUT_OF_MEMORY", code=0, signal=125))
    jobs.append(_ended(TIMED_OUT, "long", "tomas", "course", last, 24.0, mem=8, state="TIMEOUT", code=0, signal=15, wrap="python fit.py"))
    for k, number in enumerate(DEAD):
        user = ("ines", "wei", "amara")[k % 3]
        end = last + timedelta(minutes=k / 4)
        jobs.append(_ended(number, f"run-{k}", user, "lab", end, 4.0, gpus=2, mem=16, state="NODE_FAIL", node="g3"))
    start = NEWEST - timedelta(hours=10)
    running = _ended(IDLE, "forgot to stop", MALLORY, "course", NEWEST, 1.0, gpus=2, gpu_type="a100", mem=32, node="g1")
    jobs.append(
        running
        | {"submit": start, "eligible": start, "start": start, "end": None, "state": "RUNNING", "completeness": 2, "elapsed_s": None}
    )
    with lake.transaction("test") as tx:
        tx.append("jobs", _table("jobs", jobs))
        tx.append("job_use", _table("job_use", uses))
        if samples:
            tx.append("gpu_samples", _table("gpu_samples", _samples(start, generated)))
        tx.append("events", _table("events", [_event(last)]))
        tx.note_read("campus", "sacct", NEWEST)
    return lake.refresh()


def _table(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=arrow_schema(name))


def _ended(
    number: int,
    name: str,
    user: str,
    account: str,
    end: datetime,
    hours: float,
    *,
    mem: int,
    gpus: int = 0,
    gpu_type: str | None = None,
    state: str = "COMPLETED",
    code: int = 0,
    signal: int = 0,
    node: str = "g2",
    wrap: str | None = None,
) -> dict[str, Any]:
    start = end - timedelta(hours=hours)
    submit = start - timedelta(hours=1)
    line = f"sbatch -p gpu -t 1-00:00:00 --mem={mem}G -J job --gres=gpu:{gpus}" + (f" --wrap {wrap}" if wrap else " job.sh")
    return {
        "cluster": "campus",
        "job_id": number,
        "job_id_text": str(number),
        "array_tasks": 1,
        "array_tasks_exact": True,
        "name": name,
        "user": user,
        "uid": 1000 + len(user),
        "account": account,
        "partition": "gpu",
        "qos": "normal",
        "state": state,
        "exit_code": code,
        "exit_signal": signal,
        "derived_exit_code": code,
        "derived_exit_signal": 0,
        "submit": submit,
        "eligible": submit,
        "start": start,
        "end": end,
        "elapsed_s": int(hours * 3600),
        "limit_s": 86400,
        "limit_kind": "limit",
        "nodes_req": 1,
        "nodes_alloc": 1,
        "cpus_req": 16,
        "cpus_alloc": 16,
        "mem_req_bytes": mem * GIB,
        "mem_alloc_bytes": mem * GIB,
        "gpus_req": gpus,
        "gpus_alloc": gpus,
        "gpu_type_req": gpu_type,
        "gpu_type_alloc": gpu_type or ("v100" if gpus else None),
        "node_list": node,
        "submit_line": line,
        "source": "sacct",
        "completeness": 3,
        "observed_at": NEWEST,
    }


def _use(job: dict[str, Any], generated: bool, *, mem: int, cpu: float, gpus_used: int, gpu_mem: int) -> dict[str, Any]:
    return {
        "cluster": "campus",
        "job_id": job["job_id"],
        "job_submit": job["submit"],
        "source": "generated" if generated else "csv",
        "cpu_s": cpu * job["elapsed_s"] * job["cpus_alloc"],
        "mem_peak_bytes": mem,
        "gpus_seen": job["gpus_alloc"],
        "gpus_used": gpus_used,
        "gpu_util_mean": 0.6 * gpus_used / job["gpus_alloc"],
        "gpu_util_peak": 1.0,
        "gpu_mem_peak_bytes": gpu_mem,
        "gpu_mem_total_bytes": 80 * GIB,
        "generated": generated,
        "observed_at": NEWEST,
    }


def _samples(start: datetime, generated: bool) -> list[dict[str, Any]]:
    return [
        {
            "cluster": "campus",
            "observed_at": start + timedelta(minutes=15 * k),
            "node": "g1",
            "gpu": str(gpu),
            "job_id": IDLE,
            "util": 0.0,
            "mem_used_bytes": GIB,
            "mem_total_bytes": 80 * GIB,
            "source": "generated" if generated else "nvidia-smi",
            "generated": generated,
        }
        for k in range(1, 41)
        for gpu in (0, 1)
    ]


def _event(moment: datetime) -> dict[str, Any]:
    return {
        "cluster": "campus",
        "node": "g3",
        "start": moment,
        "end": None,
        "state": "DOWN",
        "reason": "Not responding " + HOSTILE,
        "user": "slurm",
        "observed_at": NEWEST,
    }


def charts_rows(app: Any) -> list[list[dict[str, Any]]]:
    """What each chart of a page shows: Streamlit sends the data beside the chart, as Arrow."""
    out = []
    for chart in app.get("vega_lite_chart"):
        sent = [d.data.data for d in chart.proto.datasets] or [chart.proto.data.data]
        out.append([row for raw in sent if raw for row in pa.ipc.open_stream(raw).read_all().to_pylist()])
    return out
