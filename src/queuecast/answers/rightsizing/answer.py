"""What a proposal is made of: the kind of jobs, each change with its evidence, what it saves, what to paste."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

import numpy as np

from queuecast.answers.rightsizing.kinds import Kind
from queuecast.answers.wait import JSON_VERSION, iso
from queuecast.features.history import Floats, Ints
from queuecast.policy.request import Request

What = Literal["memory", "cpus", "time", "gpus", "gpu_type", "mig", "no_gpu"]
"""What is changed. ``no_gpu``: the GPU was never used; ``mig``: a slice of a GPU is enough."""
How = Literal["model", "futures"]


@dataclass(frozen=True)
class Evidence:
    """``n`` jobs with data stand behind it, ``without`` jobs of the kind in the window tell nothing.

    ``rung``: where the ``n`` jobs were found ("kind", or as in ``SizeBound.kind``). ``used``: the middle, the 95 % point and the
    highest of what they used, in the change's unit; None: it is no amount. ``risk``: share of next jobs that may need more; above the
    one asked for where ``n`` is too small to promise it. ``risk_seen``: share that did need more when the rule was applied to the past.
    ``changed_at``: when use last changed, so that earlier jobs do not count. ``retry``: (first value, expected waste with it, with the
    proposed value) where asking less and trying again wastes less.
    """

    n: int
    without: int
    rung: str
    used: tuple[float, float, float] | None
    risk: float
    risk_seen: float | None = None
    changed_at: datetime | None = None
    retry: tuple[float, float, float] | None = None

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        used = None if self.used is None else dict(zip(("p50", "p95", "max"), map(rounded, self.used), strict=True))
        retry = None if self.retry is None else dict(zip(("first", "waste_first", "waste_proposed"), map(rounded, self.retry), strict=True))
        return {
            "jobs_with_data": self.n,
            "jobs_without_data": self.without,
            "found_on": self.rung,
            "used": used,
            "risk": rounded(self.risk, 4),
            "risk_seen": rounded(self.risk_seen, 4),
            "changed_at": iso(self.changed_at),
            "retry": retry,
        }


@dataclass(frozen=True)
class Change:
    """``asked`` and ``proposed`` in ``unit`` (bytes of the whole job, CPUs, seconds, GPUs) or as a GPU type or partition.

    ``more``: jobs of the kind were killed for too little, so more is proposed; it saves nothing. ``site_default``: the site's default
    set what is asked for, not the user. ``conditions``: what must hold, as sentences.
    """

    what: What
    asked: float | str
    proposed: float | str
    unit: str
    evidence: Evidence
    more: bool = False
    site_default: bool = False
    conditions: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "what": self.what,
            "asked": self.asked,
            "proposed": self.proposed,
            "unit": self.unit,
            "more_needed": self.more,
            "site_default": self.site_default,
            "evidence": self.evidence.as_json(),
            "conditions": list(self.conditions),
        }


@dataclass(frozen=True)
class Saved:
    """Had the kind's jobs with data in the window asked for the proposal. Hours of GPUs, CPUs and GiB; ``limit_hours``: of planned time,
    which others can be planned into; ``smaller_gpu_hours``: on a smaller GPU instead. ``billing_hours`` by the partition's
    weights, ``price`` by the price list in ``currency``; None where nothing is configured."""

    gpu_hours: float = 0.0
    core_hours: float = 0.0
    memory_gib_hours: float = 0.0
    limit_hours: float = 0.0
    smaller_gpu_hours: float = 0.0
    billing_hours: float | None = None
    price: float | None = None
    currency: str = ""

    def __add__(self, other: Saved) -> Saved:
        return Saved(
            self.gpu_hours + other.gpu_hours,
            self.core_hours + other.core_hours,
            self.memory_gib_hours + other.memory_gib_hours,
            self.limit_hours + other.limit_hours,
            self.smaller_gpu_hours + other.smaller_gpu_hours,
            None if self.billing_hours is None or other.billing_hours is None else self.billing_hours + other.billing_hours,
            None if self.price is None or other.price is None else self.price + other.price,
            self.currency,
        )

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        names = ("gpu_hours", "core_hours", "memory_gib_hours", "limit_hours", "smaller_gpu_hours", "billing_hours", "price")
        return {n: rounded(getattr(self, n)) for n in names} | {"currency": self.currency or None}


@dataclass(frozen=True)
class WaitChange:
    """The median wait in seconds as asked and as proposed. ``how``: ``model`` is the difference of the wait model's two medians;
    ``futures``: both played in the same drawn futures, then ``sooner`` is the gain's 10, 50 and 90 % point. None: not known."""

    how: How
    before_s: float | None
    after_s: float | None
    sooner_s: tuple[float, float, float] | None = None

    def as_json(self) -> dict[str, Any]:
        """Whole seconds; null where unknown or infinite."""
        sooner = None if self.sooner_s is None else dict(zip(("p10", "p50", "p90"), map(_second, self.sooner_s), strict=True))
        return {"how": self.how, "median_before_s": _second(self.before_s), "median_after_s": _second(self.after_s), "sooner_s": sooner}


@dataclass(frozen=True)
class Proposal:
    """For one kind. ``jobs``: attempts of it in the window. ``weight``: the largest share that what it saves has of the cluster's hours
    of any resource. ``flags``: what to paste after ``sbatch``. ``generated``: a figure behind it was made by a script.
    ``saves``: hours saved by row (``rows``), by resource."""

    kind: Kind
    jobs: int
    changes: tuple[Change, ...]
    request: Request
    flags: tuple[str, ...]
    saved: Saved
    weight: float
    generated: bool
    wait: WaitChange | None = None
    rows: Ints = field(default_factory=lambda: np.zeros(0, np.int64), repr=False, compare=False)
    saves: Mapping[str, Floats] = field(default_factory=dict, repr=False, compare=False)

    @property
    def more(self) -> bool:
        """Whether something is too small now."""
        return any(c.more for c in self.changes)

    def as_json(self) -> dict[str, Any]:
        """Plain values: docs/json.md."""
        r = self.request
        return {
            "kind": self.kind.as_json(),
            "jobs": self.jobs,
            "changes": [c.as_json() for c in self.changes],
            "proposed": {
                "partitions": list(r.partitions),
                "nodes": r.nodes,
                "cpus": r.cpus,
                "mem_bytes": r.mem_bytes,
                "gpus": r.gpus,
                "gpu_type": r.gpu_type,
                "limit_s": r.limit_s,
            },
            "flags": list(self.flags),
            "saved": self.saved.as_json(),
            "share_of_cluster": rounded(self.weight, 4),
            "wait": None if self.wait is None else self.wait.as_json(),
            "generated": self.generated,
        }


@dataclass(frozen=True)
class Proposals:
    """For attempts that ran between ``since`` and ``at`` (UTC), the weightiest first, then those that need more.

    ``kinds``: looked at; ``kinds_left``: not looked at, since what they left unused is little. ``unmeasured_gpu_jobs``: ended GPU
    jobs of which not every GPU was measured: for them nothing is proposed about GPUs. ``hidden``: so many more for others, whom the
    viewer may not see.
    """

    cluster: str
    since: datetime
    at: datetime
    risk: float
    items: tuple[Proposal, ...]
    kinds: int
    kinds_left: int
    gpu_jobs: int
    unmeasured_gpu_jobs: int
    generated: bool
    hidden: int = 0
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Plain values: docs/json.md."""
        return {
            "queuecast_json": JSON_VERSION,
            "cluster": self.cluster,
            "since": iso(self.since),
            "at": iso(self.at),
            "risk": self.risk,
            "proposals": [p.as_json() for p in self.items],
            "kinds": self.kinds,
            "kinds_not_looked_at": self.kinds_left,
            "gpu_jobs": self.gpu_jobs,
            "gpu_jobs_unmeasured": self.unmeasured_gpu_jobs,
            "proposals_hidden": self.hidden,
            "generated": self.generated,
            "notes": list(self.notes),
        }


def rounded(value: float | None, digits: int = 2) -> float | None:
    """For JSON; None where unknown or infinite."""
    return None if value is None or not math.isfinite(value) else round(float(value), digits)


def _second(value: float | None) -> int | None:
    return None if value is None or not math.isfinite(value) else round(value)
