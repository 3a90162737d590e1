"""What a proposal of a size rests on: an upper bound for what the next job of a kind will use, at a stated risk."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Resource = Literal["memory", "time", "cpus", "gpu_memory"]
Unit = Literal["bytes", "s", "CPUs"]


@dataclass(frozen=True)
class SizeBound:
    """``value`` is what to ask for (``unit``: bytes of the whole job, seconds, CPUs; bytes of one GPU), never below any use
    seen in ``n`` jobs that the risk does not allow.

    ``risk``: share of next jobs that may need more, as asked for. ``risk_seen``: share that did need more when the same rule
    was applied in the past to this kind (None: too few to tell). ``kind``: the rung of the ladder that the jobs were found on,
    most specific first ("user and name", "user", "account", "partition", "all"). ``used``: quantiles .5, .95, 1 of what was used.
    ``changed_at``: when the level of use last changed so much that earlier jobs were dropped. ``needs_more``: the latest jobs of the
    kind were killed for it (OUT_OF_MEMORY, TIMEOUT): the value is then above what was asked, and never a saving.
    ``retry``: (first value, expected waste with it, with ``value``: units x hours, for time seconds) where asking less and trying again
    costs less.
    """

    resource: Resource
    value: float
    unit: Unit
    risk: float
    n: int
    kind: str
    used: tuple[float, float, float]
    risk_seen: float | None = None
    changed_at: datetime | None = None
    needs_more: bool = False
    retry: tuple[float, float, float] | None = None
