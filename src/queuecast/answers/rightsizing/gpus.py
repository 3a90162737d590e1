"""Fewer, smaller or no GPUs, from measured use only: what was not measured proposes nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from queuecast.answers.rightsizing.answer import Change, Evidence
from queuecast.answers.rightsizing.kinds import Kind
from queuecast.answers.rightsizing.rows import GIB, Rows
from queuecast.answers.rightsizing.sizes import SizeSource, bound_of, evidence_of, quantiles
from queuecast.answers.suggest_cluster import NodeGroup, node_groups
from queuecast.config import Hardware
from queuecast.features.history import Flags, Floats, Ints
from queuecast.hardware.gpufacts import GpuFact, gpu_fact
from queuecast.hardware.taskfit import usable_bytes
from queuecast.i18n import _
from queuecast.models.sizing_bound import SizeBound
from queuecast.policy.request import Request
from queuecast.policy.tables import Policy
from queuecast.policy.verdicts import verdicts

FEW = 5
"""With fewer measured jobs nothing is proposed."""
SHORT_S = 300.0
"""Jobs that ran shorter tell nothing of what the work needs."""
HEADROOM = 1.2
"""Memory of a smaller GPU over the bound of what jobs used."""
BUSY = 0.5
"""With GPUs busier than that on average, only a type about as fast is proposed."""
AS_FAST = 0.7
FULL = 0.97
"""From that share of its memory on a GPU counts as full: more may have been wanted."""


@dataclass(frozen=True)
class Site:
    """What the cluster has, made once for all kinds."""

    policy: Policy
    groups: tuple[NodeGroup, ...]
    hardware: Hardware

    def fact(self, gpu_type: str | None) -> GpuFact | None:
        """None: the type is not known."""
        return gpu_fact(gpu_type, self.hardware.gpus) if gpu_type else None


def site_of(policy: Policy, hardware: Hardware) -> Site:
    """The GPUs by type and partition."""
    return Site(policy, node_groups(policy), hardware)


def measured_in_full(rows: Rows) -> Flags:
    """Jobs of which every GPU was measured, that ended well and ran long enough to tell."""
    n = rows.num
    seen = np.isfinite(n["gpus_used"]) & (n["gpus_seen"] >= n["gpus_alloc"]) & (n["gpus_alloc"] > 0)
    return rows.ended_well & seen & (n["elapsed_s"] >= SHORT_S)


def upper(used: Floats, risk: float) -> tuple[float, float]:
    """(the bound that a next one exceeds with at most ``risk``, the risk that can be promised): the ceil((n+1)(1-risk))-th smallest of n
    exchangeable values, else the highest, which a next one exceeds with 1/(n+1). Vovk et al. 2005, Algorithmic Learning in a Random World.
    """
    rank = math.ceil((len(used) + 1) * (1 - risk) - 1e-9)
    if rank > len(used):
        return float(used.max()), 1.0 / (len(used) + 1)
    return float(np.sort(used)[max(0, rank - 1)]), risk


def gpu_changes(kind: Kind, rows: Rows, index: Ints, sizes: SizeSource, site: Site, risk: float) -> tuple[list[Change], Request]:
    """The changes and the request with them; none where too little was measured."""
    request = kind.request
    told = index[measured_in_full(rows)[index]]
    if not kind.gpus or len(told) < FEW:
        return [], request
    ended = index[rows.settled[index]]
    used = rows.num["gpus_used"][told]
    most, promised = upper(used, risk)
    evidence = Evidence(len(told), len(ended) - len(told), "kind", quantiles(used), promised)
    if most < 1:
        return _without(kind, request, evidence, site)
    changes: list[Change] = []
    count = min(kind.gpus, math.ceil(most))
    if count < kind.gpus:
        fewer = _fewer(request, count)
        if allowed(site.policy, fewer):
            request = fewer
            changes.append(Change("gpus", float(kind.gpus), float(fewer.gpus), "GPUs", evidence, conditions=_told_of(rows, told)))
    smaller = _smaller(kind, request, rows, told, sizes, site)
    if smaller is not None:
        change, request = smaller
        changes.append(change)
    return changes, request


def allowed(policy: Policy, request: Request) -> bool:
    """Whether no rule of the site, as far as it is known, speaks against it."""
    return all(v.kind == "waits" for v in verdicts(policy, request))


def _told_of(rows: Rows, told: Ints) -> tuple[str, ...]:
    """How many ran with GPUs that never computed, as a sentence."""
    idle = int((rows.num["gpus_used"][told] < rows.num["gpus_alloc"][told]).sum())
    return (_("in {idle} of {n} measured jobs some GPUs never computed").format(idle=idle, n=len(told)),)


def _fewer(request: Request, count: int) -> Request:
    """So many GPUs, on as few nodes as have them now; each node keeps its CPUs and memory."""
    each = math.ceil(request.gpus / request.nodes)
    nodes = math.ceil(count / each)
    share = request.nodes // nodes if request.nodes % nodes == 0 else request.nodes / nodes
    return replace(
        request,
        gpus=math.ceil(count / nodes) * nodes,
        nodes=nodes,
        cpus=math.ceil(request.cpus / share),
        mem_bytes=None if request.mem_bytes is None else math.ceil(request.mem_bytes / share),
    )


def _without(kind: Kind, request: Request, evidence: Evidence, site: Site) -> tuple[list[Change], Request]:
    """The GPU was never used: a partition without GPUs that lets the job in, else the same without GPUs."""
    plain = replace(request, gpus=0, gpu_type=None)
    with_gpus = {g.partition for g in site.groups}
    others = [p.name for p in site.policy.partitions.values() if p.name not in with_gpus and p.state in (None, "UP")]
    conditions = (_("if the program has no use for a GPU; if it should have used it, find out why it did not"),)
    for name in (*others, *request.partitions):
        there = replace(plain, partitions=(name,))
        if allowed(site.policy, there):
            shown = name if (name,) != request.partitions else _("no GPU")
            return [Change("no_gpu", float(kind.gpus or 0), shown, "GPUs", evidence, conditions=conditions)], there
    return [], request


def _smaller(kind: Kind, request: Request, rows: Rows, told: Ints, sizes: SizeSource, site: Site) -> tuple[Change, Request] | None:
    """The type of this cluster with the least memory in which the use fits with headroom; a MIG slice for one GPU only."""
    now = site.fact(kind.gpu_type)
    if now is None:
        return None
    bound = bound_of(sizes, "gpu_memory", kind, now.memory_gib * GIB)
    if bound is None or bound.needs_more or _was_full(rows, told):
        return None
    busy = rows.num["gpu_util_mean"][told]
    if not np.isfinite(busy).all():
        return None
    best: tuple[tuple[float, float], GpuFact, Request, float | None] | None = None
    for group in site.groups:
        fact = site.fact(group.gpu_type)
        if fact is None or group.gpu_type == kind.gpu_type or fact.memory_gib >= now.memory_gib or not _fits(fact, bound):
            continue
        speed = _speed(now, fact)
        mean = float(busy.mean())
        if fact.slice and (request.gpus != 1 or speed is None or float(np.quantile(busy, 0.95)) > 0.8 * speed):
            continue  # slices cannot work together, and what keeps more of the GPU busy does not fit a slice's computing
        if not fact.slice and mean > BUSY and (speed is None or speed < AS_FAST):
            continue
        for partition in dict.fromkeys((*request.partitions, group.partition)):
            new = replace(request, gpu_type=group.gpu_type, partitions=(partition,))
            if partition == group.partition and allowed(site.policy, new):
                price = site.hardware.prices.get(group.gpu_type, math.inf)
                rank = (fact.memory_gib, price)
                if best is None or rank < best[0]:
                    best = (rank, fact, new, speed)
                break
    if best is None:
        return None
    _rank, fact, new, speed = best
    conditions = [_("{there:.0f} GiB of memory instead of {here:.0f}").format(there=fact.memory_gib, here=now.memory_gib)]
    if speed is not None and speed < 1:
        conditions.append(_("up to {times:.1f} times as long where computing is what it waits for").format(times=1 / speed))
    elif speed is None:
        conditions.append(_("how fast it is there is not known"))
    evidence = evidence_of(bound, rows, told)
    change = Change("mig" if fact.slice else "gpu_type", kind.gpu_type or "", fact.type, "type", evidence, conditions=tuple(conditions))
    return change, new


def _fits(fact: GpuFact, bound: SizeBound) -> bool:
    return bound.value * HEADROOM <= usable_bytes(fact)


def _was_full(rows: Rows, told: Ints) -> bool:
    """Whether a GPU's memory was used up: what was wanted is not known then."""
    peak, total = rows.num["gpu_mem_peak_bytes"][told], rows.num["gpu_mem_total_bytes"][told]
    return bool((peak >= FULL * total).any())


def _speed(now: GpuFact, other: GpuFact) -> float | None:
    """Ratio of the public peaks in 16 bit."""
    here, there = now.tflops("bf16"), other.tflops("bf16")
    return there / here if here and there else None
