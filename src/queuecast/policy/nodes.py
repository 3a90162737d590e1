"""Nodes as last read at a moment: what each holds, what of it is in use, and whether jobs can be put there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from queuecast.errors import ParseError
from queuecast.policy.recent import last_snapshot, standing_snapshot
from queuecast.slurmtext.gres import Gpus, gpus_of_gres
from queuecast.slurmtext.states import UNUSABLE_FLAGS
from queuecast.slurmtext.tres import gpus_of_tres

if TYPE_CHECKING:
    from queuecast.store.lake import Lake

UNUSABLE_STATES = frozenset({"DOWN", "ERROR", "FUTURE", "UNKNOWN"})

_COLUMNS = (
    "node", "partitions", "state", "state_flags", "cpus", "cpus_alloc", "mem_bytes", "mem_alloc_bytes", "gpus", "gpus_alloc",
    "gpu_type", "gres", "gres_used", "features", "weight", "reservation",
)  # fmt: skip


@dataclass(frozen=True)
class NodeShape:
    """A node. ``gpus`` and ``gpus_alloc`` by case-folded type, ``""`` for those without one; memory in bytes.

    None: not told (``gpus_alloc``: sinfo does not tell it everywhere, then it is of the last reading that does).
    ``available``: neither down nor drained, so that jobs can start there, now or when others end.
    """

    name: str
    cpus: int | None
    mem_bytes: int | None
    gpus: dict[str, int]
    features: frozenset[str]
    partitions: frozenset[str]
    state: str
    flags: frozenset[str]
    available: bool
    cpus_alloc: int | None
    mem_alloc_bytes: int | None
    gpus_alloc: dict[str, int] | None
    weight: int | None
    reservation: str | None

    @property
    def gpu_count(self) -> int:
        """GPUs of all types (a MIG device counts as one, as for Slurm)."""
        return sum(self.gpus.values())

    def gpus_of(self, gpu_type: str | None) -> int:
        """GPUs of a type; of all types without one."""
        return self.gpu_count if gpu_type is None else self.gpus.get(gpu_type.casefold(), 0)

    def idle_gpus(self, gpu_type: str | None = None) -> int | None:
        """GPUs not in use; None where that is not told. Of a type only where what is in use is told by type."""
        if self.gpus_alloc is None:
            return None
        if gpu_type is None:
            return max(0, self.gpu_count - sum(self.gpus_alloc.values()))
        kind = gpu_type.casefold()
        loose = self.gpus_alloc.get("", 0) if len(self.gpus) == 1 else 0
        return max(0, self.gpus.get(kind, 0) - self.gpus_alloc.get(kind, 0) - loose)


def nodes_at(lake: Lake, cluster: str, at: datetime) -> tuple[NodeShape, ...]:
    """All nodes of the last reading at ``at``, by name; the first reading if none is that old."""
    rows, moment = standing_snapshot(lake, "nodes", cluster, at, _COLUMNS)
    nodes = [_node(r) for r in rows.to_pylist()]
    if moment is not None and nodes and all(n.gpus_alloc is None for n in nodes if n.gpus):
        used, when = last_snapshot(lake, "nodes", cluster, at, ["node", "gres_used", "gpus_alloc"], told="gpus_alloc")
        if when is not None:
            known = {r["node"]: _used(r) for r in used.to_pylist()}
            nodes = [replace(n, gpus_alloc=known.get(n.name)) if n.gpus else n for n in nodes]
    return tuple(sorted(nodes, key=lambda n: n.name))


def _node(row: Mapping[str, Any]) -> NodeShape:
    flags = _words(row["state_flags"])
    return NodeShape(
        row["node"],
        row["cpus"],
        row["mem_bytes"],
        _gpus(row),
        frozenset(w.casefold() for w in _words(row["features"])),
        frozenset(w.casefold() for w in _words(row["partitions"])),
        row["state"],
        flags,
        row["state"] not in UNUSABLE_STATES and not flags & UNUSABLE_FLAGS,
        row["cpus_alloc"],
        row["mem_alloc_bytes"],
        _used(row),
        row["weight"],
        row["reservation"],
    )


def _words(text: str | None) -> frozenset[str]:
    return frozenset(w.strip() for w in (text or "").split(",") if w.strip() not in ("", "(null)"))


def _typed(found: Gpus, total: int | None) -> dict[str, int]:
    out = dict(found.types)
    rest = (found.total if found.total is not None else total or 0) - sum(out.values())
    if rest > 0:
        out[""] = rest
    return out


def _gpus(row: Mapping[str, Any]) -> dict[str, int]:
    try:
        found = gpus_of_gres(row["gres"] or "")
    except ParseError:
        found = Gpus(None)
    out = _typed(found, row["gpus"])
    if not out and row["gpus"]:
        out = {row["gpu_type"] if row["gpu_type"] not in (None, "mixed") else "": row["gpus"]}
    return out


def _used(row: Mapping[str, Any]) -> dict[str, int] | None:
    if row["gpus_alloc"] is None:
        return None
    text = row["gres_used"] or ""
    try:
        found = gpus_of_tres(text) if "=" in text else gpus_of_gres(text)
    except ParseError:
        found = Gpus(None)
    return _typed(Gpus(row["gpus_alloc"], found.types), None)
