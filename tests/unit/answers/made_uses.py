"""Invented tables of uses, bounds and a small cluster, for the tests of rightsizing and of the review."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
from tests.unit.policy.test_policy_limits import policy

from queuecast.config import Hardware
from queuecast.models.sizing_bound import Resource, SizeBound
from queuecast.policy.nodes import NodeShape
from queuecast.policy.tables import PartitionRule, Policy
from queuecast.usage.uses import SCHEMA, Uses

GIB = 1 << 30
SINCE = datetime(2026, 6, 1, tzinfo=UTC)
AT = SINCE + timedelta(days=10)
PLAIN = Hardware({}, {})


def use(number: int = 1, hours: float = 2.0, **given: Any) -> dict[str, Any]:
    """A job of alice that ran ``hours``, began that many hours after ``SINCE``, and was measured; ``given`` columns replace."""
    start = SINCE + timedelta(hours=float(given.pop("after", 3 * (number % 60))))
    row: dict[str, Any] = {
        "job_id": number, "job_id_text": str(number), "submit": start - timedelta(hours=1), "start": start,
        "end": start + timedelta(hours=hours), "user": "alice", "account": "vision", "partition": "gpu", "qos": "normal",
        "name": f"train-{number}", "state": "COMPLETED", "node_list": "g1", "nodes": 1, "submit_line": "sbatch train.sh", "work_dir": "/w",
        "elapsed_s": hours * 3600, "limit_s": 86400.0, "final": True, "interrupted": False, "cpus_alloc": 16.0,
        "cpu_s": hours * 3600 * 4, "cpu_share": 0.25, "cpu_quality": "ok", "mem_alloc_bytes": 64.0 * GIB, "mem_peak_bytes": 8.0 * GIB,
        "mem_basis": "sampled", "mem_at_least": False, "mem_asked_by": "user", "gpus_alloc": 4.0, "gpu_type": "a100", "gpus_seen": 4.0,
        "gpus_used": 4.0, "gpu_util_mean": 0.9, "gpu_util_peak": 1.0, "gpu_mem_peak_bytes": 30.0 * GIB, "gpu_mem_total_bytes": 40.0 * GIB,
        "gpu_basis": "samples", "energy_joules": None, "generated": False,
    }  # fmt: skip
    return row | given


def uses(rows: list[dict[str, Any]], since: datetime = SINCE, at: datetime = AT) -> Uses:
    """As ``usage.measure.uses_of`` would give them."""
    columns = {f.name: pa.array([r.get(f.name) for r in rows], f.type) for f in SCHEMA}
    return Uses("toy", since, at, pa.table(columns, schema=SCHEMA))


@dataclass
class FakeSizes:
    """The highest use of the table by user, with what is told by ``bounds`` instead; ``needs_more`` for some resources."""

    found: Uses
    risk: float = 0.01
    bounds: dict[str, float | None] = field(default_factory=dict)
    needs_more: tuple[str, ...] = ()

    def bound(
        self,
        resource: Resource,
        *,
        user: str | None,
        name: str | None,
        account: str | None,
        partition: str | None,
        asked: float | None,
        gpu_type: str | None = None,
        submit_line: str | None = None,
    ) -> SizeBound | None:
        rows = [r for r in self.found.rows.to_pylist() if r["user"] == user and r["final"]]
        pick = {
            "memory": lambda r: r["mem_peak_bytes"],
            "time": lambda r: r["elapsed_s"],
            "cpus": lambda r: None if r["cpu_s"] is None or not r["elapsed_s"] else r["cpu_s"] / r["elapsed_s"],
            "gpu_memory": lambda r: r["gpu_mem_peak_bytes"],
        }[resource]
        values = np.array([v for r in rows if (v := pick(r)) is not None], float)
        if resource in self.bounds:
            told = self.bounds[resource]
            if told is None:
                return None
            values = np.array([told])
        if not len(values):
            return None
        value = float(np.quantile(values, 1 - self.risk, method="higher"))
        unit: Any = {"memory": "bytes", "time": "s", "cpus": "CPUs", "gpu_memory": "bytes"}[resource]
        used = (float(np.median(values)), value, float(values.max()))
        return SizeBound(resource, value, unit, self.risk, len(values), "user and name", used, needs_more=resource in self.needs_more)


def shape(name: str, partition: str, kind: str = "", gpus: int = 0, cpus: int = 64) -> NodeShape:
    """A node of one partition."""
    return NodeShape(
        name, cpus, 512 * GIB, {kind: gpus} if gpus else {}, frozenset(), frozenset({partition}), "IDLE", frozenset(), True, 0, 0, None, 1,
        None,
    )  # fmt: skip


def rule(name: str, *nodes: str, max_time_s: int | None = 7 * 86400) -> PartitionRule:
    """A partition of these nodes."""
    values: dict[str, Any] = dict.fromkeys(PartitionRule.__dataclass_fields__)
    given = {"name": name, "state": "UP", "nodes": nodes, "is_default": False, "billing_weights": {}, "max_time_s": max_time_s}
    return PartitionRule(**(values | given))


def cluster(*more: tuple[str, str, int]) -> Policy:
    """Partitions gpu (a100), h100 (h100), small (t4) and cpu; ``more``: further partitions of one node: (name, GPU type, GPUs)."""
    nodes = [shape("g1", "gpu", "a100", 4), shape("h1", "h100", "h100", 8), shape("t1", "small", "t4", 4), shape("c1", "cpu")]
    nodes += [shape(f"x{i}", name, kind, count) for i, (name, kind, count) in enumerate(more)]
    rules = [rule("gpu", "g1"), rule("h100", "h1"), rule("small", "t1"), rule("cpu", "c1")]
    rules += [rule(name, f"x{i}") for i, (name, _kind, _count) in enumerate(more)]
    return policy(partitions={r.name: r for r in rules}, nodes=tuple(nodes), settings={})
