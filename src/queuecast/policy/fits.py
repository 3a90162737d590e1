"""Whether a request is within the partition's own limits and fits its nodes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from queuecast.i18n import _, ngettext
from queuecast.policy.access import strictness
from queuecast.policy.amounts import amount
from queuecast.policy.shapes import fitting_nodes, hosts, partition_nodes, why_not
from queuecast.policy.verdicts import Verdict
from queuecast.slurmtext.durations import format_limit

if TYPE_CHECKING:
    from queuecast.policy.nodes import NodeShape
    from queuecast.policy.request import Request
    from queuecast.policy.tables import PartitionRule, Policy


def partition_verdicts(policy: Policy, request: Request, partition: str) -> Iterator[Verdict]:
    """The partition's limits, then its nodes."""
    rule = policy.partition(partition)
    if rule is not None:
        yield from _limits(policy, request, rule)
    if request.nodelist:
        unknown = hosts(request.nodelist) - {n.name for n in policy.nodes}
        if policy.nodes and unknown:
            yield Verdict(
                "BadConstraints",
                "refused",
                _("partition {name}").format(name=partition),
                "node",
                None,
                None,
                None,
                _("There is no node {names}.").format(names=", ".join(sorted(unknown))),
                _("Correct -w, or leave it out."),
            )
            return
    members = partition_nodes(policy, partition)
    if members:
        yield from _shapes(policy, request, partition, members)


def _flags(policy: Policy, request: Request, rule: PartitionRule) -> frozenset[str]:
    rules = (policy.qos_rule(rule.qos), policy.qos_rule(request.qos))
    return frozenset[str]().union(*(q.flags for q in rules if q is not None))


def _limits(policy: Policy, request: Request, rule: PartitionRule) -> Iterator[Verdict]:
    kind = strictness(policy)
    scope = _("partition {name}").format(name=rule.name)
    flags = _flags(policy, request, rule)
    nodes = max(1, request.nodes)
    longest = rule.max_time_s
    if longest is not None and "partitiontimelimit" not in flags and (request.unlimited or (request.limit_s or 0) > longest):
        asked = _("no limit") if request.unlimited else format_limit(request.limit_s or 0)
        yield Verdict(
            "PartitionTimeLimit",
            kind,
            scope,
            "wall",
            longest,
            None if request.unlimited else request.limit_s,
            None,
            _("The time limit ({asked}) is above the partition's {limit}.").format(asked=asked, limit=format_limit(longest)),
            _("Use -t {limit} or less.").format(limit=format_limit(longest)),
        )
    total = rule.total_nodes or len(rule.nodes) or None
    most = min((n for n in (None if "partitionmaxnodes" in flags else rule.max_nodes, total) if n is not None), default=None)
    if most is not None and nodes > most:
        yield Verdict(
            "PartitionNodeLimit",
            kind,
            scope,
            "node",
            most,
            nodes,
            None,
            ngettext(
                "{asked} nodes are asked for; the partition allows {limit} node.",
                "{asked} nodes are asked for; the partition allows {limit} nodes.",
                most,
            ).format(asked=nodes, limit=most),
            _("Use -N {limit} or less.").format(limit=most),
        )
    if rule.min_nodes and nodes < rule.min_nodes and "partitionminnodes" not in flags:
        yield Verdict(
            "PartitionNodeLimit",
            kind,
            scope,
            "node",
            rule.min_nodes,
            nodes,
            None,
            _("The partition is for jobs of at least {limit} nodes.").format(limit=rule.min_nodes),
            _("Use -N {limit} or more.").format(limit=rule.min_nodes),
        )
    share = None if request.mem_bytes is None else request.mem_bytes // nodes
    if share is not None and rule.max_mem_per_node_bytes is not None and share > rule.max_mem_per_node_bytes:
        yield Verdict(
            "MaxMemPerLimit",
            kind,
            scope,
            "mem",
            rule.max_mem_per_node_bytes,
            share,
            None,
            _("{asked} per node are asked for; the partition allows {limit}.").format(
                asked=amount("mem", share), limit=amount("mem", rule.max_mem_per_node_bytes)
            ),
            _("Ask for less memory per node."),
        )


def _shapes(policy: Policy, request: Request, partition: str, members: tuple[NodeShape, ...]) -> Iterator[Verdict]:
    scope = _("partition {name}").format(name=partition)
    nodes = max(1, request.nodes)
    fitting = fitting_nodes(policy, request, partition)
    if len(fitting) < min(nodes, len(members)) or not fitting:
        # more nodes than the partition has is told by its node limit
        yield _no_fit(policy, request, partition, members, len(fitting))
        return
    up = [n for n in fitting if n.available]
    if len(up) < nodes <= len(fitting):
        yield Verdict(
            "ReqNodeNotAvail" if request.nodelist else "Resources",
            "waits",
            scope,
            "node",
            len(up),
            nodes,
            None,
            _("Of {all} nodes that fit, {up} can run jobs now; the others are down or drained.").format(all=len(fitting), up=len(up)),
            _("Wait until they are back, or ask for what other nodes hold."),
        )
        return
    yield from _reserved(policy, request, scope, up)


def _reserved(policy: Policy, request: Request, scope: str, up: list[NodeShape]) -> Iterator[Verdict]:
    """Reservations that keep the nodes from now until the job could end."""
    until = policy.at + (timedelta(days=3650) if request.unlimited else timedelta(seconds=request.limit_s or 1))
    kept: Counter[str] = Counter()
    taken: set[str] = set()
    for reservation in policy.reservations:
        if request.reservation and reservation.name.casefold() == request.reservation.casefold():
            continue
        if reservation.nodes and reservation.covers(policy.at, until):
            hit = reservation.nodes & {n.name for n in up}
            taken |= hit
            kept[reservation.name] = len(hit)
    if len(up) - len(taken) >= max(1, request.nodes) or not taken:
        return
    name = kept.most_common(1)[0][0]
    first = next(r for r in policy.reservations if r.name == name)
    later = first.start is not None and first.start > policy.at
    room = int((first.start - policy.at).total_seconds()) if first.start is not None and later else None
    yield Verdict(
        "ReqNodeNotAvail",
        "waits",
        _("reservation {name}").format(name=name),
        "node",
        len(up) - len(taken),
        max(1, request.nodes),
        None,
        _("Reservation {name} holds nodes before this job could end.").format(name=name),
        _("A limit below {limit} could start before it begins.").format(limit=format_limit(room))
        if room is not None and room > 300
        else _("It can start when the reservation ends."),
    )


def _no_fit(policy: Policy, request: Request, partition: str, members: tuple[NodeShape, ...], fit: int) -> Verdict:
    nodes = max(1, request.nodes)
    rule = policy.partition(partition)
    causes = Counter(why_not(n, request, rule) for n in members)
    order = [c for c in ("node", "features", "gpus", "cpus", "mem") if causes[c]]
    worst = order[-1] if order else "node"
    scope = _("partition {name}").format(name=partition)
    able = [n for n in members if why_not(n, request, rule) in (None, worst)]
    tres, limit, asked = _share(request, worst, able)
    if worst in ("node", "features"):
        text = (
            _("No node of the partition has the features {constraint}.").format(constraint=request.constraint)
            if worst == "features"
            else _("The nodes that are named or left over do not fit.")
        )
        fix = _("Correct -C; sinfo -o '%P %f' lists the features.") if worst == "features" else _("Correct -w and -x.")
    else:
        what = {
            "gpus": _("GPUs of type {type}").format(type=request.gpu_type) if request.gpu_type else _("GPUs"),
            "cpus": _("CPUs"),
            "mem": _("of memory"),
        }[worst]
        text = _("{asked} {what} per node are asked for; {fit} of {nodes} nodes needed could hold it, the largest has {limit}.").format(
            asked=amount(tres, asked), what=what, fit=fit, nodes=nodes, limit=amount(tres, limit or 0)
        )
        fix = _elsewhere(policy, request, partition) or _("Ask for less per node, or spread it over more nodes (-N).")
    return Verdict("BadConstraints", "refused", scope, tres, limit, asked, None, text, fix)


def _share(request: Request, worst: str, able: list[NodeShape]) -> tuple[str, float | None, float]:
    nodes = max(1, request.nodes)
    if worst == "gpus":
        name = f"gres/gpu:{request.gpu_type}" if request.gpu_type else "gres/gpu"
        return name, max((n.gpus_of(request.gpu_type) for n in able), default=0), math.ceil(request.gpus / nodes)
    if worst == "cpus":
        return "cpu", max((n.cpus or 0 for n in able), default=0), math.ceil(request.cpus / nodes)
    if worst == "mem":
        return "mem", max((n.mem_bytes or 0 for n in able), default=0), (request.mem_bytes or 0) // nodes
    return "node", None, nodes


def _elsewhere(policy: Policy, request: Request, partition: str) -> str:
    others = [
        p.name
        for p in policy.partitions.values()
        if p.name.casefold() != partition.casefold()
        and p.state in (None, "UP")
        and p.allows_account(request.account)
        and p.allows_qos(request.qos)
        and len(fitting_nodes(policy, request, p.name)) >= max(1, request.nodes)
    ]
    return _("It fits in partition {names}.").format(names=", ".join(sorted(others))) if others else ""
