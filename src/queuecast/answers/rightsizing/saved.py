"""What a kind's jobs would have saved with the proposal, row by row: only where use is known and the proposal would have held."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from queuecast.answers.rightsizing.answer import Change, Saved
from queuecast.answers.rightsizing.gpus import measured_in_full
from queuecast.answers.rightsizing.kinds import Kind
from queuecast.answers.rightsizing.rows import GIB, LEAST_S, RESOURCES, Rows, amounts
from queuecast.answers.suggest_cluster import cost
from queuecast.config import Hardware
from queuecast.features.history import Floats, Ints
from queuecast.hardware.scaling import Run
from queuecast.policy.request import Request
from queuecast.policy.tables import Policy

PLANNED = 0.25
"""A limit that is too long blocks nothing for good, it only spoils the plan: its hours weigh so much of what was held."""
_CHANGED = {"gpus": "gpu", "no_gpu": "gpu", "cpus": "core", "memory": "memory", "time": "limit"}


class Sums:
    """Amounts of all rows, made once: asked, used and known by resource.

    ``room``: hours that the nodes of ``policy`` have of each resource from the first job in the window on; where they are not known, all
    that was asked for. ``part``: of each row, the largest share of the cluster's GPUs or CPUs that it held.
    """

    def __init__(self, rows: Rows, policy: Policy) -> None:
        self.rows = rows
        self.asked: dict[str, Floats] = {}
        self.used: dict[str, Floats] = {}
        for resource in RESOURCES:
            self.asked[resource], self.used[resource] = amounts(rows, resource)
        self.total = {r: float(np.nansum(self.asked[r] * rows.hours)) for r in RESOURCES}
        self.full = measured_in_full(rows)
        first = max(rows.since, float(rows.num["start"].min())) if len(rows) else rows.since
        self.span = max(1.0, (rows.at - first) / 3600.0)
        nodes = policy.nodes
        has = {
            "gpu": float(sum(n.gpu_count for n in nodes)),
            "core": float(sum(n.cpus or 0 for n in nodes)),
            "memory": sum(n.mem_bytes or 0 for n in nodes) / GIB,
        }
        self.room = {r: has[r] * self.span if has[r] > 0 else self.total[r] for r in has}
        with np.errstate(invalid="ignore", divide="ignore"):
            held = [self.asked[r] * self.span / self.room[r] if self.room[r] > 0 else np.zeros(len(rows)) for r in ("gpu", "core")]
        self.part = np.nan_to_num(np.fmax(*held))

    def unused(self, resource: str) -> Floats:
        """Hours by row that were measured and not used; 0 where use is not known."""
        asked = self.asked[resource]
        if resource == "gpu":
            asked = np.fmin(asked, self.rows.num["gpus_seen"])
        return np.nan_to_num((asked - self.used[resource]) * self.rows.hours)

    def weight(self, hours: Mapping[str, float], planned: float = 0.0) -> float:
        """The largest share that the hours have of the cluster's. ``planned``: hours of limits, each times its job's ``part``."""
        shares = (v / self.room[r] for r, v in hours.items() if self.room.get(r, 0.0) > 0)
        return max(max(shares, default=0.0), PLANNED * planned / self.span)


def saves(sums: Sums, index: Ints, changes: Sequence[Change], request: Request) -> dict[str, Floats]:
    """Hours saved by row of ``index``, by resource. A row that used more than is proposed saves nothing."""
    out: dict[str, Floats] = {}
    rows = sums.rows
    for change in changes:
        resource = _CHANGED.get(change.what)
        if resource is None or change.more:
            continue
        asked, used = sums.asked[resource][index], sums.used[resource][index]
        if resource == "gpu":
            proposed: Floats | float = float(request.gpus)
            with np.errstate(invalid="ignore"):
                held = sums.full[index] & (rows.num["gpus_used"][index] <= proposed)
        elif resource == "limit":
            with np.errstate(invalid="ignore", divide="ignore"):
                proposed = float(request.limit_s or 0) / np.maximum(rows.num["elapsed_s"][index], LEAST_S)
            held = used <= proposed
        else:
            proposed = float(request.cpus) if resource == "core" else float(request.mem_bytes or 0) / GIB
            held = used <= proposed
        room = np.minimum(asked - proposed, asked - used)
        out[resource] = np.where(held, np.clip(np.nan_to_num(room), 0.0, None), 0.0) * rows.hours[index]
    return out


def saved_of(
    sums: Sums,
    kind: Kind,
    index: Ints,
    request: Request,
    changes: Sequence[Change],
    by_row: Mapping[str, Floats],
    policy: Policy,
    hardware: Hardware,
) -> Saved:
    """Sums, with billing and price of all ended jobs of the kind."""
    rows = sums.rows
    hours = {r: float(v.sum()) for r, v in by_row.items()}
    seconds = float(rows.hours[index][rows.settled[index]].sum() * 3600)
    run = Run(seconds, seconds, seconds)
    before = cost(policy, kind.request, kind.partition, run, hardware)
    after = cost(policy, request, request.partitions[0] if request.partitions else "", run, hardware)
    smaller = 0.0
    if any(c.what in ("gpu_type", "mig") for c in changes):
        told = index[sums.full[index]]
        smaller = float(request.gpus * rows.hours[told].sum())
    return Saved(
        gpu_hours=hours.get("gpu", 0.0),
        core_hours=hours.get("core", 0.0),
        memory_gib_hours=hours.get("memory", 0.0),
        limit_hours=hours.get("limit", 0.0),
        smaller_gpu_hours=smaller,
        billing_hours=_less(before.billing_hours, after.billing_hours),
        price=_less(before.price, 0.0 if not request.gpus else after.price),
        currency=before.currency,
    )


def _less(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else before - after
