"""What an answer to "how long will this wait?" is made of. The command line, the app, JSON and notebooks render this.

``as_json`` is the documented form (docs/json.md): units are in the names, times are ISO 8601 UTC, null is unknown.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from queuecast.models.slurmrecord import SlurmRecord
from queuecast.policy.request import Request
from queuecast.reasons import ReasonInfo

JSON_VERSION = 1

Status = Literal["estimate", "not_eligible", "held", "never", "started", "ended", "no_history", "beyond_history"]
"""estimate: the distribution below. not_eligible: the wait counts from the moment that it becomes eligible.
held, never: no prediction, see the reason. started, ended: nothing to predict. no_history: no like job.
beyond_history: it has waited longer than any like job that started, so nothing is known of the rest."""

LEVELS = (0.5, 0.8, 0.95)
HOURS = (1, 4, 24)


@dataclass(frozen=True)
class Interval:
    """Central interval of the remaining wait, in seconds from ``at``. ``high_s`` is infinite where history ends."""

    share: float
    low_s: float
    high_s: float


@dataclass(frozen=True)
class Basis:
    """The like jobs an answer rests on.

    ``same`` names what was equal. ``waits_s`` are the waits of the latest of those that started (at most 60, in the
    order in which they became eligible); quartiles are of all that started. ``waiting`` are known only to have waited
    so long and not to have started: pending, or cancelled while pending.
    """

    count: int
    started: int
    waiting: int
    same: tuple[str, ...]
    waits_s: tuple[float, ...]
    quartiles_s: tuple[float, float, float] | None
    span_days: float


@dataclass(frozen=True)
class Honesty:
    """How such intervals held lately: of ``counted`` answers, the share inside the interval that claims ``claimed``.
    ``corrected_by`` past answers stand behind the correction of the levels; ``days`` back reach those counted (None:
    not told)."""

    claimed: float
    held: float | None
    counted: int
    corrected_by: int
    days: int | None = None


@dataclass(frozen=True)
class Factor:
    """One topic's part in an answer: with what is usual in the partition instead, the median wait would be shorter by
    ``seconds`` (negative: longer). ``feature`` stands for the topic with this job's value and the usual one in
    ``unit``; empty where no number says much, None where it is not known."""

    topic: str
    seconds: float
    feature: str
    value: float | None
    usual: float | None
    unit: str


@dataclass(frozen=True)
class SlurmSays:
    """Slurm's own estimate of the start. ``start`` None means N/A: not tested by backfill, not "never"."""

    start: datetime | None
    seen_at: datetime | None
    clamped: bool
    record: SlurmRecord | None


@dataclass(frozen=True)
class Freshness:
    """``data_at``: when Slurm was last read. ``age_s``: how long before ``at`` that was; None without data."""

    data_at: datetime | None
    age_s: float | None
    model: str | None


@dataclass(frozen=True)
class WaitAnswer:
    """The answer. Seconds count from ``at`` (UTC). ``waited_s`` is the time from eligible to ``at``, or to the start
    or end if that came before; None if it has not become eligible, or nobody asked about a job."""

    status: Status
    cluster: str
    at: datetime
    request: Request
    job_id: str | None
    waited_s: float | None
    median_s: float | None
    intervals: tuple[Interval, ...]
    within: tuple[tuple[float, float], ...]
    basis: Basis | None
    honesty: Honesty | None
    slurm: SlurmSays | None
    reason: ReasonInfo | None
    reason_text: str | None
    freshness: Freshness
    notes: tuple[str, ...]
    raw_job_id: int | None = None
    submitted_at: datetime | None = None
    eligible_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    factors: tuple[Factor, ...] = ()

    def interval(self, share: float) -> Interval | None:
        """The interval that claims ``share``."""
        return next((i for i in self.intervals if i.share == share), None)

    def moment(self, seconds: float) -> datetime | None:
        """``at`` plus seconds; None beyond what history reaches."""
        return None if math.isinf(seconds) else self.at + timedelta(seconds=seconds)

    def as_json(self) -> dict[str, Any]:
        """Plain values with units in their names."""
        return {
            "queuecast_json": JSON_VERSION,
            "status": self.status,
            "cluster": self.cluster,
            "at": iso(self.at),
            "job_id": self.job_id,
            "raw_job_id": self.raw_job_id,
            "request": _request(self.request),
            "waited_s": _round(self.waited_s),
            "median_wait_s": _round(self.median_s),
            "median_start": iso(self.moment(self.median_s)) if self.median_s is not None else None,
            "intervals": [
                {
                    "share": i.share,
                    "low_s": _round(i.low_s),
                    "high_s": _round(i.high_s),
                    "start_low": iso(self.moment(i.low_s)),
                    "start_high": iso(self.moment(i.high_s)),
                }
                for i in self.intervals
            ],
            "p_start_within": [{"hours": h, "p": round(p, 4)} for h, p in self.within],
            "like_jobs": None if self.basis is None else _basis(self.basis),
            "calibration": None if self.honesty is None else asdict(self.honesty),
            "factors": [{**asdict(f), "seconds": round(f.seconds)} for f in self.factors],
            "slurm_estimate": None
            if self.slurm is None
            else {
                "start": iso(self.slurm.start),
                "seen_at": iso(self.slurm.seen_at),
                "clamped": self.slurm.clamped,
                "record_14d": None if self.slurm.record is None else asdict(self.slurm.record),
            },
            "reason": None if self.reason is None else {**self.reason.as_dict(), "slurm_text": self.reason_text},
            "submitted_at": iso(self.submitted_at),
            "eligible_at": iso(self.eligible_at),
            "started_at": iso(self.started_at),
            "ended_at": iso(self.ended_at),
            "data_at": iso(self.freshness.data_at),
            "data_age_s": _round(self.freshness.age_s),
            "model": self.freshness.model,
            "notes": list(self.notes),
        }


def _basis(basis: Basis) -> dict[str, Any]:
    return {
        "count": basis.count,
        "started": basis.started,
        "still_waiting_or_cancelled": basis.waiting,
        "same": list(basis.same),
        "span_days": round(basis.span_days, 1),
        "wait_quartiles_s": None if basis.quartiles_s is None else [_round(q) for q in basis.quartiles_s],
        "latest_waits_s": [_round(w) for w in basis.waits_s],
    }


def _request(request: Request) -> dict[str, Any]:
    return {
        "partitions": list(request.partitions),
        "gpus": request.gpus,
        "gpu_type": request.gpu_type,
        "nodes": request.nodes,
        "cpus": request.cpus,
        "mem_bytes": request.mem_bytes,
        "limit_s": request.limit_s,
        "unlimited": request.unlimited,
        "account": request.account,
        "qos": request.qos,
        "user": request.user,
        "array_tasks": request.array_tasks,
    }


def iso(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat().replace("+00:00", "Z")


def plain(value: Any) -> Any:
    """For JSON: times as ``iso`` writes them, tuples as lists, in dicts and lists of any depth."""
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, list | tuple) else value


def _round(value: float | None) -> int | None:
    return None if value is None or math.isinf(value) or math.isnan(value) else round(value)
