"""What an answer to "what would start or end sooner?" is made of. The command line, the app and JSON render this."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from queuecast.answers.suggest_cluster import Cost
from queuecast.answers.wait import JSON_VERSION, Freshness, iso
from queuecast.policy.request import Request

Kind = Literal["asked", "fewer_gpus", "gpu_type", "limit", "partition", "qos", "array", "later", "preemptible"]
Source = Literal["twin", "model", "both", "none"]
"""Where the wait as asked comes from: the replay, the wait model, both blended, or neither."""


@dataclass(frozen=True)
class Spread:
    """The 10, 50 and 90 % points, in seconds. ``inf``: beyond what was looked at."""

    low_s: float
    median_s: float
    high_s: float

    def as_json(self) -> dict[str, int | None]:
        """Whole seconds; null where infinite."""
        return {"low_s": whole(self.low_s), "median_s": whole(self.median_s), "high_s": whole(self.high_s)}


@dataclass(frozen=True)
class Option:
    """One request that could be made.

    ``flags``: what to paste, only what changes: after ``sbatch``, or after ``scontrol update`` where ``keeps_place`` (the pending job is
    changed and keeps its age). ``wait``: from ``at`` to the start; None: not known. ``within``: (hours, P(start within)). ``sooner``:
    start as asked minus this start in the same futures (negative: later), ``p_sooner`` the share of futures in which it starts sooner;
    None without futures. ``run``: of those like it, with the range of the scaling assumption. ``finish``: from ``at`` to the end;
    infinite where the limit would end it first. ``cut``: share of like runs that the limit would cut. ``pareto``: no other is better in
    wait, finish and cost at once. ``conditions``: what must hold, or what is traded, as sentences.
    """

    label: str
    kinds: tuple[Kind, ...]
    request: Request
    flags: tuple[str, ...]
    keeps_place: bool
    wait: Spread | None
    within: tuple[tuple[float, float], ...]
    sooner: Spread | None
    p_sooner: float | None
    run: Spread | None
    finish: Spread | None
    gpu_hours: float | None
    cost: Cost
    cut: float | None = None
    delay_s: float = 0.0
    pareto: bool = False
    conditions: tuple[str, ...] = ()

    @property
    def price(self) -> tuple[float, str] | None:
        """What it costs in the best unit known, and which: ``price``, ``charged`` or ``gpu_hours``."""
        if self.cost.price is not None:
            return self.cost.price, "price"
        if self.cost.charged is not None:
            return self.cost.charged, "charged"
        return None if self.gpu_hours is None else (self.gpu_hours, "gpu_hours")

    def as_json(self) -> dict[str, Any]:
        """Plain values with units in their names."""
        return {
            "label": self.label,
            "kinds": list(self.kinds),
            "partitions": list(self.request.partitions),
            "gpus": self.request.gpus,
            "gpu_type": self.request.gpu_type,
            "nodes": self.request.nodes,
            "cpus": self.request.cpus,
            "mem_bytes": self.request.mem_bytes,
            "limit_s": self.request.limit_s,
            "qos": self.request.qos,
            "account": self.request.account,
            "array_tasks": self.request.array_tasks,
            "begin_delay_s": whole(self.delay_s),
            "flags": list(self.flags),
            "keeps_place": self.keeps_place,
            "wait": None if self.wait is None else self.wait.as_json(),
            "p_start_within": [{"hours": h, "p": round(p, 4)} for h, p in self.within],
            "sooner": None if self.sooner is None else self.sooner.as_json(),
            "p_sooner": None if self.p_sooner is None else round(self.p_sooner, 4),
            "run": None if self.run is None else self.run.as_json(),
            "finish": None if self.finish is None else self.finish.as_json(),
            "share_cut_by_limit": None if self.cut is None else round(self.cut, 4),
            "gpu_hours": _two(self.gpu_hours),
            "billing_hours": _two(self.cost.billing_hours),
            "charged": _two(self.cost.charged),
            "price": _two(self.cost.price),
            "currency": self.cost.currency or None,
            "pareto": self.pareto,
            "conditions": list(self.conditions),
        }


@dataclass(frozen=True)
class Agreement:
    """The wait as asked by the model and by the replay, how they were blended, and whether they agree.

    ``twin_weight``: the replay's share. ``model_crps``, ``twin_crps``: mean error (CRPS of log(1 + seconds)) of both for the
    same ``counted`` jobs; None: not measured here, both count half. ``agree`` None: only one of them answers.
    """

    model: Spread | None
    twin: Spread | None
    twin_weight: float
    agree: bool | None
    model_crps: float | None
    twin_crps: float | None
    counted: int

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "model": None if self.model is None else self.model.as_json(),
            "twin": None if self.twin is None else self.twin.as_json(),
            "twin_weight": round(self.twin_weight, 3),
            "agree": self.agree,
            "model_crps_log1p": _three(self.model_crps),
            "twin_crps_log1p": _three(self.twin_crps),
            "counted": self.counted,
        }


@dataclass(frozen=True)
class Alternatives:
    """The answer: the request as asked, and what else could be asked for, by the expected end. Seconds count from ``at`` (UTC).

    ``basis``: which futures were played (``futures`` 0: none), the state's age and what of it is not known.
    """

    cluster: str
    at: datetime
    job_id: str | None
    as_asked: Option
    options: tuple[Option, ...]
    agreement: Agreement
    source: Source
    futures: int
    horizon_s: float
    freshness: Freshness
    basis: tuple[str, ...]
    refused: tuple[str, ...] = field(default=())
    """What was tried and is not allowed here, as sentences."""
    same: tuple[str, ...] = field(default=())
    """Labels of allowed requests that start and end as the one as asked."""
    notes: tuple[str, ...] = field(default=())

    def moment(self, seconds: float | None) -> datetime | None:
        """``at`` plus seconds; None if unknown or infinite."""
        return None if seconds is None or not math.isfinite(seconds) else self.at + timedelta(seconds=seconds)

    def best(self, most: int = 3) -> tuple[Option, ...]:
        """Those that likely start sooner than as asked, in their order."""
        return tuple(o for o in self.options if o.p_sooner is not None and o.p_sooner > 0.5)[:most]

    @property
    def recommended(self) -> Option | None:
        """The first that starts sooner in most futures, ends no later and cuts no more runs; None: stay with the request."""
        asked = self.as_asked
        for option in self.best(len(self.options)):
            if option.finish is None or (option.cut or 0.0) > max(0.05, asked.cut or 0.0):
                continue
            if asked.finish is None or option.finish.median_s <= asked.finish.median_s:
                return option
        return None

    def as_json(self) -> dict[str, Any]:
        """Plain values: docs/json.md."""
        recommended = self.recommended
        return {
            "queuecast_json": JSON_VERSION,
            "cluster": self.cluster,
            "at": iso(self.at),
            "job_id": self.job_id,
            "as_asked": self.as_asked.as_json(),
            "options": [o.as_json() for o in self.options],
            "recommended": None if recommended is None else self.options.index(recommended),
            "agreement": self.agreement.as_json(),
            "source": self.source,
            "futures": self.futures,
            "horizon_s": whole(self.horizon_s),
            "data_at": iso(self.freshness.data_at),
            "data_age_s": whole(self.freshness.age_s),
            "model": self.freshness.model,
            "basis": list(self.basis),
            "refused": list(self.refused),
            "same": list(self.same),
            "notes": list(self.notes),
        }


def whole(value: float | None) -> int | None:
    """Whole seconds; None where unknown or infinite."""
    return None if value is None or not math.isfinite(value) else round(value)


def _two(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, 2)


def _three(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, 3)


def mark_pareto(options: tuple[Option, ...]) -> tuple[bool, ...]:
    """For each whether no other is at least as good in wait, finish and cost and better in one. Unknown is
    worst; what starts in less than half of the futures is never chosen for being cheap."""
    units = {o.price[1] for o in options if o.price is not None}
    same = len(units) == 1

    def key(o: Option) -> tuple[float, float, float]:
        paid = o.price[0] if same and o.price is not None else o.gpu_hours
        return (
            math.inf if o.wait is None else o.wait.median_s,
            math.inf if o.finish is None else o.finish.median_s,
            math.inf if paid is None else paid,
        )

    keys = [key(o) for o in options]
    return tuple(
        math.isfinite(mine[0]) and not any(all(a <= b for a, b in zip(other, mine, strict=True)) and other != mine for other in keys)
        for mine in keys
    )
