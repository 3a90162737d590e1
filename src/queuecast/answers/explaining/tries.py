"""Small changes of a request that could matter for what keeps it now: room in the limit, free blocks, gaps before a reservation or a
planned start, memory and nodes. Beside these, the offers of ``alternatives``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from queuecast.answers.alternatives_offers import Offer, Told, offers
from queuecast.answers.explaining.changes_answer import ChangeKind
from queuecast.errors import ParseError
from queuecast.i18n import _, ngettext
from queuecast.policy.request import Request
from queuecast.policy.shapes import fitting_nodes
from queuecast.policy.verdicts import verdicts
from queuecast.slurmtext.durations import format_limit
from queuecast.slurmtext.hostlist import expand_hostlist
from queuecast.slurmtext.sizes import format_size

if TYPE_CHECKING:
    from queuecast.answers.explaining.binding import Binding
    from queuecast.policy.nodes import NodeShape

GIB = 1 << 30
STEP_S, LEAST_S = 300, 900
"""Limits that fit a gap are cut to five minutes, and are no shorter than a quarter of an hour."""
LIKELY_CUT = 0.5
"""A limit that more than half of like jobs would overrun is not worth telling."""
_LEFT_OUT = {"array", "later"}


@dataclass(frozen=True)
class Try:
    """A request to look at. ``offer``: its label, flags' basis and conditions; ``kinds``: more exact than the offer's."""

    offer: Offer
    kinds: tuple[ChangeKind, ...]


def tries(told: Told, found: Binding, row: dict[str, Any], ahead: list[dict[str, Any]], moment: datetime) -> list[Try]:
    """Allowed changes, each once. ``ahead``: waiting rows that stand before it; ``moment``: of the snapshot (UTC)."""
    out: list[Try] = []
    seen = {told.request}
    own = [*_within(told, found), *_room(told, found), *_blocks(told), *_gaps(told, row, ahead, moment), *_memory(told), *_nodes(told)]
    listed = [Try(o, o.kinds) for o in offers(told)[0] if not set(o.kinds) & _LEFT_OUT]
    for one in [*own, *listed]:
        plain = replace(one.offer.request, limit_defaulted=False, assumed=())
        if plain in seen or any(v.kind != "waits" for v in _said(told, one.offer)):
            continue
        seen.add(plain)
        out.append(one)
    return out


def _said(told: Told, offer: Offer) -> tuple[Any, ...]:
    return verdicts(told.policy, offer.request, told.usage, without=told.job_id)


def smaller(asked: Request, gpus: int) -> Request:
    """With fewer GPUs on one node, CPUs and memory in proportion (nodes stay where each still gets one share)."""
    share = gpus / asked.gpus
    nodes = asked.nodes if gpus % max(1, asked.nodes) == 0 else 1
    cpus = max(nodes, round(asked.cpus * share))
    return replace(
        asked,
        gpus=gpus,
        nodes=nodes,
        cpus=cpus,
        tasks=None if asked.tasks is None else max(nodes, round(asked.tasks * share)),
        mem_bytes=None if asked.mem_bytes is None else int(asked.mem_bytes * share),
    )


def _gpu_label(gpus: int, kind: str | None) -> str:
    if kind:
        return ngettext("{n} {type}", "{n} x {type}", gpus).format(n=gpus, type=kind)
    return ngettext("{n} GPU", "{n} GPUs", gpus).format(n=gpus)


def _fewer(told: Told, gpus: int, why: str) -> Try | None:
    if not 0 < gpus < told.request.gpus:
        return None
    request = smaller(told.request, gpus)
    slower = _("the run takes up to {times:.3g} times as long; raise -t if it may").format(times=told.request.gpus / gpus)
    return Try(Offer(_gpu_label(gpus, request.gpu_type), ("fewer_gpus",), request, conditions=(why, slower)), ("fewer_gpus",))


def _within(told: Told, found: Binding) -> Iterator[Try]:
    """Exactly what a broken limit allows: time, CPUs, memory, nodes."""
    asked = told.request
    for c in found.constraints:
        if c.limit is None or c.tres is None:
            continue
        left = math.floor(c.limit - (c.used or 0))
        why = (_("the most that is allowed now") if c.used else _("the most that is allowed"),)
        if c.tres == "wall":
            yield from _shorter(told, int(c.limit), why[0], always=True)
        elif c.tres == "cpu" and 0 < left < asked.cpus:
            label = ngettext("{n} CPU", "{n} CPUs", left).format(n=left)
            request = replace(asked, cpus=left, tasks=None if asked.tasks is None else min(asked.tasks, left))
            yield Try(Offer(label, ("limit",), request, conditions=why), ("cpus",))
        elif c.tres == "mem" and left > 0:
            whole = left * max(1, asked.nodes) if c.code.endswith(("MaxMemPerLimit", "PerNode")) else left
            if asked.mem_bytes is not None and whole < asked.mem_bytes:
                label = _("{size} of memory").format(size=format_size(whole))
                yield Try(Offer(label, ("limit",), replace(asked, mem_bytes=whole), conditions=why, in_place=True), ("memory",))
        elif c.tres == "node" and 0 < left < asked.nodes and asked.gpus % left == 0:
            label = ngettext("{n} node", "{n} nodes", left).format(n=left)
            yield Try(Offer(label, ("fewer_gpus",), replace(asked, nodes=left), conditions=why), ("nodes",))


def _room(told: Told, found: Binding) -> Iterator[Try]:
    """As many GPUs as the limits that hold have room for."""
    rooms = [
        math.floor(c.limit - (c.used or 0))
        for c in found.constraints
        if c.limit is not None and c.tres is not None and c.tres.startswith("gres/gpu") and not c.tres.endswith("_mins")
    ]
    if rooms and told.request.gpus:
        one = _fewer(told, min(rooms), _("the most that the limit has room for now"))
        if one is not None:
            yield one
    minutes = [c for c in found.constraints if c.limit is not None and (c.tres or "").endswith("_mins") and c.asked]
    for c in minutes:
        left, asked = (c.limit or 0) - (c.used or 0), c.asked or 0
        limit = told.request.limit_s
        if limit is None or not 0 < left < asked:
            continue
        cut = int(limit * left / asked / STEP_S) * STEP_S
        if cut >= LEAST_S:
            yield from _shorter(told, cut, _("the longest that the limit on minutes has room for now"))


def _blocks(told: Told) -> Iterator[Try]:
    """The largest number of GPUs that one usable node has free now."""
    asked = told.request
    if asked.gpus < 2 or asked.nodes > 1:
        return
    idle = [n.idle_gpus(asked.gpu_type) for n in _usable(told)]
    largest = max((i for i in idle if i is not None), default=0)
    one = _fewer(told, largest, _("the largest block that is free on one node now"))
    if one is not None:
        yield one


def _usable(told: Told) -> list[NodeShape]:
    """Nodes in the partitions as asked that take jobs and have such GPUs at all."""
    loose = replace(told.request, gpus=min(told.request.gpus, 1), cpus=1, mem_bytes=None, nodes=1)
    found = {n.name: n for p in told.request.partitions for n in fitting_nodes(told.policy, loose, p) if n.available}
    return list(found.values())


def _gaps(told: Told, row: dict[str, Any], ahead: list[dict[str, Any]], moment: datetime) -> Iterator[Try]:
    """A limit that ends before the next reservation on its nodes, or before the planned start of a job ahead of it."""
    limit = told.request.limit_s
    if limit is None:
        return
    until = moment + timedelta(seconds=limit)
    nodes = {n.name for n in _usable(told)}
    starts = [
        r.start for r in told.policy.reservations
        if r.name != told.request.reservation and r.nodes & nodes and r.start is not None and moment < r.start < until
    ]  # fmt: skip
    for start in sorted(starts)[:1]:
        cut = int(((start - moment).total_seconds() - 60) / STEP_S) * STEP_S
        yield from _shorter(told, cut, _("it ends before the next reservation of these nodes begins"))
    planned = [
        r["start_estimate"] for r in ahead
        if r.get("start_estimate") is not None and moment < r["start_estimate"] < until and _overlap(r.get("sched_nodes"), nodes)
    ]  # fmt: skip
    for start in sorted(planned)[:1]:
        cut = int(((start - moment).total_seconds() - 60) / STEP_S) * STEP_S
        yield from _shorter(told, cut, _("it ends before the next planned start of a job ahead, so backfill can put it in the gap"))


def _overlap(text: str | None, nodes: set[str]) -> bool:
    """Whether planned nodes are among these; not told counts as yes."""
    try:
        named = set(expand_hostlist(text or "") or ())
    except ParseError:
        return True
    return not named or bool(named & nodes)


def _shorter(told: Told, cut: int, why: str, *, always: bool = False) -> Iterator[Try]:
    limit, shares = told.request.limit_s, told.shares
    if limit is None or not (1 if always else LEAST_S) <= cut < limit:
        return
    conditions: tuple[str, ...] = (why,)
    if len(shares):
        longer = float((shares * limit > cut).mean())
        if longer > LIKELY_CUT and not always:
            return
        conditions += (_("{share:.0f} % of {n} like jobs ran longer, and would be cut").format(share=100 * longer, n=len(shares)),)
    request = replace(told.request, limit_s=cut, limit_defaulted=False)
    yield Try(
        Offer(_("limit {limit}").format(limit=format_limit(cut)), ("limit",), request, conditions=conditions, in_place=True), ("limit",)
    )


def _memory(told: Told) -> Iterator[Try]:
    """The memory that is free on a node which has GPUs and CPUs for it, where memory is what it lacks."""
    asked = told.request
    if asked.mem_bytes is None or asked.nodes > 1:
        return
    free = []
    for node in _usable(told):
        if node.mem_bytes is None or node.mem_alloc_bytes is None or node.cpus is None or node.cpus_alloc is None:
            continue
        if (node.idle_gpus(asked.gpu_type) or 0) >= asked.gpus and node.cpus - node.cpus_alloc >= asked.cpus:
            free.append(node.mem_bytes - node.mem_alloc_bytes)
    most = max(free, default=0)
    cut = most // GIB * GIB
    if not free or most >= asked.mem_bytes or cut < max(GIB, asked.mem_bytes // 8):
        return
    label = _("{size} of memory").format(size=format_size(cut))
    why = (_("the most that a node with room for the rest has free; only if the job needs no more"),)
    yield Try(Offer(label, ("limit",), replace(asked, mem_bytes=cut), conditions=why, in_place=True), ("memory",))


def _nodes(told: Told) -> Iterator[Try]:
    """The same GPUs, CPUs and memory on half as many nodes, down to one."""
    asked = told.request
    nodes = asked.nodes
    while nodes > 1:
        nodes //= 2
        if asked.gpus % nodes:
            continue
        label = ngettext("{n} node", "{n} nodes", nodes).format(n=nodes)
        why = (_("with as many GPUs and CPUs in all: fewer nodes with more on each"),)
        tasks = None if asked.tasks is None else max(nodes, asked.tasks)
        yield Try(Offer(label, ("fewer_gpus",), replace(asked, nodes=nodes, tasks=tasks), conditions=why), ("nodes",))
