"""What else could be asked for: each change of a request that the site's rules allow, with how the run is taken to change."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from queuecast.answers.alternatives_answer import Kind
from queuecast.answers.suggest_cluster import preemptible
from queuecast.config import Hardware
from queuecast.features.history import Floats
from queuecast.hardware.gpufacts import GpuFact, gpu_fact
from queuecast.hardware.scaling import Set, carry_over
from queuecast.hardware.taskfit import usable_bytes
from queuecast.hardware.taskmemory import GIB
from queuecast.i18n import _, ngettext
from queuecast.policy.request import Request
from queuecast.policy.shapes import fitting_nodes, partition_nodes
from queuecast.policy.tables import PartitionRule, Policy
from queuecast.policy.usage import Usage
from queuecast.policy.verdicts import Verdict, verdicts
from queuecast.slurmtext.durations import format_limit

KEPT = (0.7, 0.85, 1.0)
"""Speed kept at each doubling of the number of GPUs: poor, likely, perfect (as in hardware/scaling.py between nodes)."""
SAME = (1.0, 1.0, 1.0)
LATER_S = 12 * 3600.0
LONGER = 0.05
"""A shorter limit is offered if at most that share of like jobs ran longer."""
ENOUGH_RUNS = 20
STEPS = (900, 3600)


@dataclass(frozen=True)
class Offer:
    """A request to try. ``factors``: its run time over the one as asked: (low, likely, high). ``change``: in place on a pending job."""

    label: str
    kinds: tuple[Kind, ...]
    request: Request
    factors: tuple[float, float, float] = SAME
    conditions: tuple[str, ...] = ()
    delay_s: float = 0.0
    in_place: bool = False
    whole_finish: bool = True
    """False: the replay tells the start of the first part only, so the end is not known."""


@dataclass(frozen=True)
class Told:
    """What stands behind the offers. ``shares``: run time / limit of ended like jobs, sorted; ``need_bytes``: GPU memory needed per GPU."""

    policy: Policy
    usage: Usage
    request: Request
    job_id: int | None
    shares: Floats
    hardware: Hardware
    need_bytes: float | None


def offers(told: Told) -> tuple[list[Offer], list[str]]:
    """Allowed ones, and what is not allowed as sentences. None breaks a rule of the site as far as it is known."""
    found: list[Offer] = []
    refused: list[str] = []
    seen = {_essence(told.request, 0.0)}
    makers: tuple[Callable[[Told], Iterator[Offer]], ...] = (_fewer, _types, _limits, _partitions, _qos, _array, _later)
    for maker in makers:
        for offer in maker(told):
            essence = _essence(offer.request, offer.delay_s)
            if essence in seen:
                continue
            seen.add(essence)
            checked = _checked(told, offer)
            if isinstance(checked, Offer):
                found.append(checked)
            else:
                refused.append(_("{label}: {why}").format(label=offer.label, why=checked.text))
    return found, refused


def _essence(request: Request, delay: float) -> tuple[object, ...]:
    return (*(getattr(request, f) for f in "partitions gpus gpu_type nodes cpus mem_bytes limit_s qos account array_tasks".split()), delay)


def _checked(told: Told, offer: Offer) -> Offer | Verdict:
    """The offer with what makes it wait and whether it may be preempted; the verdict that speaks against it."""
    said = verdicts(told.policy, offer.request, told.usage, without=told.job_id if offer.in_place else None)
    for verdict in said:
        if verdict.kind != "waits":
            return verdict
    kinds, conditions = offer.kinds, offer.conditions + tuple(dict.fromkeys(v.text for v in said))
    here = offer.request.partitions[0] if offer.request.partitions else ""
    before = told.request.partitions[0] if told.request.partitions else ""
    if preemptible(told.policy, offer.request, here):
        conditions += (_("other jobs may preempt it: save checkpoints"),)
        if not preemptible(told.policy, told.request, before):
            kinds = (*kinds, "preemptible")
    return replace(offer, kinds=kinds, conditions=conditions)


def _fewer(told: Told) -> Iterator[Offer]:
    """Half and a quarter of the GPUs, with CPUs and memory in proportion, and a limit that leaves the same room."""
    asked = told.request
    for parts in (2, 4):
        if asked.gpus < parts or asked.gpus % parts:
            continue
        nodes = asked.nodes // parts if asked.nodes % parts == 0 else 1 if asked.gpus // parts <= asked.gpus // asked.nodes else asked.nodes
        steps = math.log2(parts)
        factors = tuple(parts * k**steps for k in KEPT)
        smaller = replace(
            asked,
            gpus=asked.gpus // parts,
            nodes=nodes,
            cpus=max(nodes, asked.cpus // parts),
            tasks=None if asked.tasks is None else max(nodes, asked.tasks // parts),
            mem_bytes=None if asked.mem_bytes is None else asked.mem_bytes // parts,
        )
        smaller, why = _with_limit(told, smaller, parts)
        label = ngettext("{n} GPU", "{n} GPUs", smaller.gpus).format(n=smaller.gpus)
        conditions = (
            _("the run takes {low:.1f} to {high:.0f} times as long (poor to perfect scaling; likely {likely:.1f})").format(
                low=factors[0], high=factors[2], likely=factors[1]
            ),
            *why,
        )
        if told.need_bytes is None:
            conditions += (_("if the task fits the memory of {n} GPUs").format(n=smaller.gpus),)
        yield Offer(label, ("fewer_gpus",), smaller, (factors[0], factors[1], factors[2]), conditions)


def _with_limit(told: Told, request: Request, times: float) -> tuple[Request, tuple[str, ...]]:
    """The limit with the same room for a run that takes so much longer, cut to what the partition allows."""
    if request.limit_s is None:
        return request, ()
    wanted = _up(request.limit_s * times)
    most = [r.max_time_s for p in request.partitions if (r := told.policy.partition(p)) is not None and r.max_time_s is not None]
    limit = min([wanted, *most])
    why = () if limit == wanted else (_("the limit cannot be longer than {most} here").format(most=format_limit(limit)),)
    return replace(request, limit_s=limit, limit_defaulted=False), why


def _up(seconds: float) -> int:
    """Up to the next quarter of an hour, above half a day to the next hour."""
    step = STEPS[0] if seconds <= 43200 else STEPS[1]
    return math.ceil(seconds / step - 1e-9) * step


def _places(policy: Policy, kind: str | None) -> list[str]:
    """Partitions with such GPUs (None: any)."""
    return [p.name for p in policy.partitions.values() if any(n.gpus_of(kind) for n in partition_nodes(policy, p.name))]


def _types(told: Told) -> Iterator[Offer]:
    """Other types, in the partition as asked if it has them, else in each that has."""
    asked = told.request
    if not asked.gpus:
        return
    mine = {p.casefold() for p in asked.partitions}
    types = sorted({t for n in told.policy.nodes for t, count in n.gpus.items() if count})
    here = gpu_fact(asked.gpu_type, told.hardware.gpus) if asked.gpu_type else None
    for kind in types:
        if asked.gpu_type and kind.casefold() == asked.gpu_type.casefold():
            continue
        if asked.gpu_type is None and any(p.casefold() in mine for p in _places(told.policy, kind)):
            continue  # any type of the partition may be given as it is
        fact = gpu_fact(kind, told.hardware.gpus)
        fits = _memory(told, here, fact, kind)
        if fits is None:
            continue
        factors, basis = _speed(asked, here, fact)
        names = _places(told.policy, kind)
        near = [n for n in names if n.casefold() in mine]
        for name in near or names:
            request, why = _with_limit(told, replace(asked, gpu_type=kind, partitions=(name,)), factors[2] if factors[2] > 1.05 else 1.0)
            label = ngettext("{n} {type}", "{n} x {type}", asked.gpus).format(n=asked.gpus, type=kind)
            kinds: tuple[Kind, ...] = ("gpu_type",)
            if not near:
                label, kinds = _("{label} in {partition}").format(label=label, partition=name), ("gpu_type", "partition")
            yield Offer(label, kinds, request, factors, (*fits, basis, *why))


def _memory(told: Told, here: GpuFact | None, fact: GpuFact | None, kind: str) -> tuple[str, ...] | None:
    """Conditions about memory; None: it is known not to fit, or nothing is known of it though it matters."""
    if fact is None:
        return None if told.need_bytes is not None else (_("memory and speed of {type} are not known").format(type=kind),)
    there = usable_bytes(fact)
    if told.need_bytes is not None:
        return () if there >= told.need_bytes else None
    if here is not None and there >= usable_bytes(here):
        return ()
    return (_("if {gib:.0f} GiB per GPU are enough (--gpu-memory checks it)").format(gib=there / GIB),)


def _speed(asked: Request, here: GpuFact | None, fact: GpuFact | None) -> tuple[tuple[float, float, float], str]:
    """Run time over the one on the type as asked, by the types' public peaks (``hardware.scaling.carry_over``)."""
    if here is None or fact is None:
        return SAME, _("its speed against the type asked for is not known: the same run time is taken")
    precision = "bf16" if here.has_bf16 and fact.has_bf16 else "fp16"
    sets = [Set(f, asked.gpus, asked.nodes, f.link) for f in (here, fact)]
    run = carry_over(1.0, sets[0], sets[1], "full", precision)
    if run is None:
        return SAME, _("its speed against the type asked for is not known: the same run time is taken")
    factors = (run.low_s / 3600, run.likely_s / 3600, run.high_s / 3600)
    return factors, _("the run takes {low:.2g} to {high:.2g} times as long by the types' public peaks in {precision}").format(
        low=factors[0], high=factors[2], precision=precision
    )


def _limits(told: Told) -> Iterator[Offer]:
    """Limits that hardly a like job went beyond: the longest of them and a tenth, and that of 95 in 100."""
    asked, shares = told.request, told.shares
    if asked.limit_s is None or len(shares) < ENOUGH_RUNS:
        return
    for share in (1.0, 1.0 - LONGER):
        need = float(np_quantile(shares, share)) * asked.limit_s
        limit = _up(need * 1.1)
        longer = float((shares * asked.limit_s > limit).mean())
        if limit <= 0.9 * asked.limit_s and longer <= LONGER:
            told_share = (
                _("none of {n} like jobs ran longer").format(n=len(shares))
                if not longer
                else _("{share:.0f} % of {n} like jobs ran longer, and would be cut").format(share=100 * longer, n=len(shares))
            )
            yield Offer(
                _("limit {limit}").format(limit=format_limit(limit)),
                ("limit",),
                replace(asked, limit_s=limit, limit_defaulted=False),
                conditions=(told_share,),
                in_place=True,
            )


def np_quantile(shares: Floats, level: float) -> float:
    """The smallest value that so many do not exceed (``shares`` sorted)."""
    return float(shares[min(len(shares) - 1, max(0, math.ceil(level * len(shares)) - 1))])


def _partitions(told: Told) -> Iterator[Offer]:
    """Other partitions with nodes for it, alone; and beside the one as asked, which Slurm then chooses from."""
    asked = told.request
    mine = {p.casefold() for p in asked.partitions}
    for rule in told.policy.partitions.values():
        if rule.name.casefold() in mine:
            continue
        if asked.gpus and not any(n.gpus_of(asked.gpu_type) for n in partition_nodes(told.policy, rule.name)):
            continue
        limit = asked.limit_s
        conditions: tuple[str, ...] = ()
        if limit is not None and rule.max_time_s is not None and limit > rule.max_time_s:
            conditions = (_("the limit must be shorter there: {most}").format(most=format_limit(rule.max_time_s)),)
            limit = rule.max_time_s
        if _no_better(told, rule):
            continue
        there = replace(asked, partitions=(rule.name,), limit_s=limit, limit_defaulted=False if conditions else asked.limit_defaulted)
        yield Offer(_("partition {name}").format(name=rule.name), ("partition",), there, conditions=conditions, in_place=True)
        if asked.partitions and not conditions and not any(v.kind != "waits" for v in verdicts(told.policy, there, told.usage)):
            both = replace(asked, partitions=(*asked.partitions, rule.name))
            label = _("partition {names}").format(names=",".join(both.partitions))
            yield Offer(label, ("partition",), both, conditions=(_("whichever has room first"),), in_place=True)


def _blocked(told: Told) -> bool:
    """Whether the request itself stands against a limit, or is not allowed."""
    return bool(verdicts(told.policy, told.request, told.usage, without=told.job_id))


def _no_better(told: Told, rule: PartitionRule) -> bool:
    """Whether the partition has no other node that fits and no higher tier, so that nothing can start sooner there."""
    if _blocked(told):
        return False
    mine = [told.policy.partition(p) for p in told.request.partitions]
    if not mine or any(m is None for m in mine):
        return False
    have = {n.name for p in told.request.partitions for n in fitting_nodes(told.policy, told.request, p)}
    there = {n.name for n in fitting_nodes(told.policy, told.request, rule.name)}
    tiers = [m.priority_tier or 0 for m in mine if m is not None]
    factors = [m.priority_job_factor or 0 for m in mine if m is not None]
    return there <= have and (rule.priority_tier or 0) <= max(tiers) and (rule.priority_job_factor or 0) <= max(factors)


def _qos(told: Told) -> Iterator[Offer]:
    """Other QOS that the association lists."""
    asked = told.request
    own = next((a.qos for a in told.policy.associations_of(asked.user, asked.account) if a.qos), None)
    for rule in told.policy.qos.values():
        name = rule.name.casefold()
        if own is None or name not in own or name == (asked.qos or "").casefold():
            continue
        limit, conditions = asked.limit_s, []
        most = rule.limits.max_wall_s
        if limit is not None and most is not None and limit > most:
            conditions.append(_("the limit must be shorter there: {most}").format(most=format_limit(most)))
            limit = most
        if rule.usage_factor is not None and rule.usage_factor != 1:
            conditions.append(_("its use counts {factor:g} times").format(factor=rule.usage_factor))
        now = told.policy.qos_rule(asked.qos)
        counts = 1.0 if now is None or now.usage_factor is None else now.usage_factor
        cheaper = rule.usage_factor is not None and rule.usage_factor < counts
        if not cheaper and not _blocked(told) and now is not None and (rule.priority or 0) < (now.priority or 0):
            continue
        there = replace(asked, qos=rule.name, limit_s=limit, limit_defaulted=False)
        yield Offer(_("QOS {name}").format(name=rule.name), ("qos",), there, conditions=tuple(conditions), in_place=True)


def _array(told: Told) -> Iterator[Offer]:
    """One task per GPU: for work that falls apart into independent parts."""
    asked = told.request
    if asked.gpus < 2 or asked.array_tasks > 1 or asked.cpus < asked.gpus:
        return
    n = asked.gpus
    task = replace(
        asked,
        gpus=1,
        nodes=1,
        cpus=max(1, asked.cpus // n),
        tasks=1,
        mem_bytes=None if asked.mem_bytes is None else asked.mem_bytes // n,
        array_tasks=n,
    )
    why = (
        _("only if the work falls apart into {n} independent parts, each on one GPU").format(n=n),
        _("the wait is that of the first task; the end of the last is not told"),
    )
    yield Offer(_("array of {n} x 1 GPU").format(n=n), ("array",), task, conditions=why, whole_finish=False)


def _later(told: Told) -> Iterator[Offer]:
    yield Offer(
        _("begin {hours:.0f} h later").format(hours=LATER_S / 3600),
        ("later",),
        told.request,
        conditions=(_("it does not age in the queue before"),),
        delay_s=LATER_S,
    )
