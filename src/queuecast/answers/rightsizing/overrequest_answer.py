"""What a review of over-requests is made of: hours asked, used and reclaimable, whose, when, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from queuecast.answers.rightsizing.answer import Proposals, rounded
from queuecast.answers.rightsizing.overrequest_effect_answer import Effect
from queuecast.answers.wait import JSON_VERSION, iso
from queuecast.usage.idle import IdleGpu

By = Literal["user", "account", "partition", "kind"]
DIMENSIONS: tuple[By, ...] = ("user", "account", "partition", "kind")
Status = Literal["ok", "no_jobs", "nothing_measured"]


@dataclass(frozen=True)
class Hours:
    """Of one resource: GPU-hours, core-hours, GiB-hours, or hours of limits.

    ``asked``: allocated. ``measured``: of that, with use known. ``used``: of that, used. ``reclaimable``: had the proposals been asked for;
    ``by_default``: the same where the site's default set what was asked for, so that no user is to blame. ``jobs`` asked for
    any; of ``without`` of them the use is not known, running ones among them.
    ``used + reclaimable + by_default <= measured <= asked``.
    """

    asked: float = 0.0
    measured: float = 0.0
    used: float = 0.0
    reclaimable: float = 0.0
    by_default: float = 0.0
    jobs: int = 0
    without: int = 0

    def __add__(self, other: Hours) -> Hours:
        return Hours(
            self.asked + other.asked,
            self.measured + other.measured,
            self.used + other.used,
            self.reclaimable + other.reclaimable,
            self.by_default + other.by_default,
            self.jobs + other.jobs,
            self.without + other.without,
        )

    @property
    def used_share(self) -> float | None:
        """Of what was measured; None where nothing was."""
        return self.used / self.measured if self.measured > 0 else None

    def as_json(self) -> dict[str, Any]:
        """Hours with two decimals."""
        return {
            "asked": rounded(self.asked),
            "asked_measured": rounded(self.measured),
            "used": rounded(self.used) if self.measured > 0 else None,
            "reclaimable": rounded(self.reclaimable) if self.measured > 0 else None,
            "reclaimable_site_default": rounded(self.by_default) if self.measured > 0 else None,
            "jobs": self.jobs,
            "jobs_without_data": self.without,
        }


NONE = Hours()


@dataclass(frozen=True)
class Amounts:
    """Of all four resources. ``limit``: time limits against run times; it is planned with, not used up."""

    gpu: Hours = NONE
    core: Hours = NONE
    memory: Hours = NONE
    limit: Hours = NONE

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(self.gpu + other.gpu, self.core + other.core, self.memory + other.memory, self.limit + other.limit)

    def items(self) -> tuple[tuple[str, Hours], ...]:
        """By the resource's name."""
        return (("gpu", self.gpu), ("core", self.core), ("memory", self.memory), ("limit", self.limit))

    def as_json(self) -> dict[str, Any]:
        """By hours' name."""
        names = {"gpu": "gpu_hours", "core": "core_hours", "memory": "memory_gib_hours", "limit": "limit_hours"}
        return {names[name]: hours.as_json() for name, hours in self.items()}


@dataclass(frozen=True)
class Group:
    """One user, account, partition or kind (``user/name``). ``name`` None: not known, or hidden. ``rest``: so many others together."""

    name: str | None
    amounts: Amounts
    jobs: int
    user: str | None = None
    rest: int = 0

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"name": self.name, "user": self.user, "others": self.rest or None, "jobs": self.jobs} | self.amounts.as_json()


@dataclass(frozen=True)
class Period:
    """A day or week (UTC); a job counts in each in proportion to its time there."""

    begin: datetime
    end: datetime
    amounts: Amounts

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"begin": iso(self.begin), "end": iso(self.end)} | self.amounts.as_json()


@dataclass(frozen=True)
class OverRequests:
    """Jobs that ran between ``since`` and ``at`` (UTC), as known at ``at``.

    ``groups``: by dimension, those with most reclaimable first, the rest in one row, so that each adds up to ``total``. ``idle`` None: GPU
    samples were never read, or it was not asked for. ``effect`` None: not asked for. ``generated``: some figures were made by a script.
    ``filters``: what was asked for (user, account, partition). ``top``: so many proposals are shown, and told in JSON.
    """

    cluster: str
    since: datetime
    at: datetime
    risk: float
    status: Status
    total: Amounts
    jobs: int
    groups: Mapping[By, tuple[Group, ...]]
    trend: tuple[Period, ...]
    trend_step: Literal["day", "week"]
    proposals: Proposals
    idle_hours: float
    idle: tuple[IdleGpu, ...] | None
    idle_hidden: int
    generated: bool
    top: int = 10
    filters: Mapping[str, str] = field(default_factory=dict)
    effect: Effect | None = None
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Plain values: docs/json.md."""
        return {
            "queuecast_json": JSON_VERSION,
            "cluster": self.cluster,
            "since": iso(self.since),
            "at": iso(self.at),
            "filters": dict(self.filters),
            "risk": self.risk,
            "status": self.status,
            "jobs": self.jobs,
            "total": self.total.as_json(),
            "groups": {by: [g.as_json() for g in groups] for by, groups in self.groups.items()},
            "trend": {"step": self.trend_step, "periods": [p.as_json() for p in self.trend]},
            "proposals": {
                k: v for k, v in self.proposals.as_json().items() if k not in ("queuecast_json", "cluster", "since", "at", "risk")
            },
            "idle": None if self.idle is None else [i.as_json() for i in self.idle],
            "idle_hours": self.idle_hours,
            "idle_hidden": self.idle_hidden,
            "effect": None if self.effect is None else self.effect.as_json(),
            "generated": self.generated,
            "notes": list(self.notes),
        }
