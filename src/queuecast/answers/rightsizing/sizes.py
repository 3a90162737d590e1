"""Memory, CPUs and time limit of a kind, from the bounds of ``models.sizing``."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from queuecast.answers.rightsizing.answer import Change, Evidence
from queuecast.answers.rightsizing.flags import cpus_of, memory_of, round_time, tasks_of
from queuecast.answers.rightsizing.kinds import Kind
from queuecast.answers.rightsizing.rows import OF, Rows
from queuecast.features.history import Ints
from queuecast.i18n import _
from queuecast.models.sizing_bound import Resource, SizeBound
from queuecast.policy.tables import Policy

WORTH = 0.1
"""A change is proposed from that share of what is asked on: below, the trouble is not worth it."""


class SizeSource(Protocol):
    """What bounds are asked of: ``models.sizing.Sizes``."""

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
        """None: too few jobs to tell."""
        ...


def bound_of(sizes: SizeSource, resource: Resource, kind: Kind, asked: float | None) -> SizeBound | None:
    """The bound for the kind; None where there is none, or no amount."""
    found = sizes.bound(
        resource,
        user=kind.user,
        name=kind.shown or None,
        account=kind.account,
        partition=kind.partition or None,
        asked=asked,
        gpu_type=kind.gpu_type,
        submit_line=kind.line,
    )
    return found if found is not None and math.isfinite(found.value) and found.value > 0 else None


def evidence_of(bound: SizeBound, rows: Rows, index: Ints) -> Evidence:
    """What the bound rests on; without: jobs of the kind in the window whose use is not known."""
    known = rows.known(OF[bound.resource])[index]
    return Evidence(
        n=bound.n,
        without=int((~known).sum()),
        rung=bound.kind,
        used=bound.used,
        risk=bound.risk,
        risk_seen=bound.risk_seen,
        changed_at=bound.changed_at,
        retry=bound.retry,
    )


def killed(rows: Rows, index: Ints, state: str) -> bool:
    """Whether a job of the kind in the window ended so."""
    return any(rows.text["state"][i] == state and rows.settled[i] for i in index)


def memory_change(kind: Kind, rows: Rows, index: Ints, sizes: SizeSource, nodes: int, cpus: int) -> Change | None:
    """Less, or more where the latest jobs ran out of memory; None: as asked, or not known."""
    asked = kind.mem_bytes
    bound = bound_of(sizes, "memory", kind, asked) if asked else None
    if asked is None or bound is None:
        return None
    proposed = memory_of(kind, bound.value, nodes, cpus)
    more = bound.needs_more
    if not _worth(asked, proposed, more) or (not more and killed(rows, index, "OUT_OF_MEMORY")):
        return None
    conditions = () if nodes == 1 else (_("if the nodes hold about equal parts of it"),)
    return Change("memory", float(asked), float(proposed), "bytes", evidence_of(bound, rows, index), more, kind.mem_default, conditions)


def cpus_change(kind: Kind, rows: Rows, index: Ints, sizes: SizeSource, nodes: int) -> Change | None:
    """Fewer CPUs, in whole numbers for each task."""
    asked = kind.cpus
    bound = bound_of(sizes, "cpus", kind, asked) if asked else None
    if asked is None or bound is None or bound.needs_more:
        return None
    proposed = cpus_of(kind, bound.value, nodes)
    if not _worth(asked, proposed, False):
        return None
    conditions: tuple[str, ...] = ()
    if tasks_of(kind.options, nodes) is None:
        conditions = (_("for one task on each node; with more tasks (-n) divide -c by their number"),)
    return Change("cpus", float(asked), float(proposed), "CPUs", evidence_of(bound, rows, index), conditions=conditions)


def time_change(kind: Kind, rows: Rows, index: Ints, sizes: SizeSource, policy: Policy) -> Change | None:
    """A shorter limit, or a longer one (up to the partition's) where the latest jobs ran into it."""
    asked = kind.limit_s
    bound = bound_of(sizes, "time", kind, asked) if asked else None
    if asked is None or bound is None:
        return None
    proposed, more = round_time(bound.value), bound.needs_more
    conditions: tuple[str, ...] = ()
    rule = policy.partition(kind.partition)
    if more and rule is not None and rule.max_time_s is not None and proposed > rule.max_time_s:
        proposed = rule.max_time_s
        conditions = (_("the partition allows no more: save checkpoints and go on in a next job"),)
    if not _worth(asked, proposed, more) or (not more and killed(rows, index, "TIMEOUT")):
        return None
    return Change("time", float(asked), float(proposed), "s", evidence_of(bound, rows, index), more, conditions=conditions)


def _worth(asked: float, proposed: float, more: bool) -> bool:
    return proposed > asked if more else proposed <= asked * (1 - WORTH)


def quantiles(values: np.ndarray) -> tuple[float, float, float]:
    """The middle, the 95 % point and the highest."""
    low, high = np.quantile(values, [0.5, 0.95], method="higher")
    return float(low), float(high), float(values.max())
