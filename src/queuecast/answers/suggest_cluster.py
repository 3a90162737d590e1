"""What a cluster has for a task: nodes with their GPUs by type and partition, and what a request costs there."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from queuecast.config import Hardware
from queuecast.hardware.scaling import Run
from queuecast.policy.amounts import asked_tres, billing
from queuecast.policy.nodes import NodeShape
from queuecast.policy.request import Request
from queuecast.policy.shapes import partition_nodes
from queuecast.policy.tables import Policy

UNTYPED = ""
"""Type of GPUs that Slurm names no type of."""


@dataclass(frozen=True)
class NodeGroup:
    """Like nodes of one partition. ``gpus``: of this type on each; ``mem_bytes`` 0: not known; ``nvlink``: their features say so."""

    partition: str
    gpu_type: str
    gpus: int
    cpus: int
    mem_bytes: int
    nodes: int
    nvlink: bool


@dataclass(frozen=True)
class Cost:
    """``billing_hours``: Slurm's billing of the request times its hours; ``charged``: times the QOS's UsageFactor.
    ``price``: by the price list, in ``currency``. None where nothing is configured, or the run time is not known."""

    billing_hours: float | None
    charged: float | None
    price: float | None
    currency: str


def node_groups(policy: Policy) -> tuple[NodeGroup, ...]:
    """GPUs by type and partition. Where nodes of a partition differ in their number, those with the most are described."""
    by: dict[tuple[str, str], list[NodeShape]] = defaultdict(list)
    listed = [p.name for p in policy.partitions.values()] or sorted({p for n in policy.nodes for p in n.partitions})
    for partition in listed:
        for node in partition_nodes(policy, partition):
            for kind, count in node.gpus.items():
                if count:
                    by[kind, partition].append(node)
    return tuple(_largest(kind, partition, members) for (kind, partition), members in sorted(by.items()))


def _largest(kind: str, partition: str, members: list[NodeShape]) -> NodeGroup:
    """The nodes with the most GPUs of the type; the least CPUs and memory among these are there on each."""
    most = max(n.gpus[kind] for n in members)
    like = [n for n in members if n.gpus[kind] == most]
    cpus = min((n.cpus for n in like if n.cpus), default=most)
    mem = min((n.mem_bytes for n in like if n.mem_bytes), default=0)
    nvlink = all(any("nvlink" in word for word in n.features) for n in like)
    return NodeGroup(partition, kind, most, cpus, mem, len(like), nvlink)


def cost(policy: Policy, request: Request, partition: str, run: Run | None, hardware: Hardware) -> Cost:
    """By the partition's TRESBillingWeights and the price list, for the likely run. Slurm's default (CPUs count) is no cost."""
    if run is None:
        return Cost(None, None, None, hardware.currency)
    hours = run.likely_s / 3600
    rule = policy.partition(partition)
    billed = billing(policy, asked_tres(policy, request, rule), rule) * hours if rule is not None and rule.billing_weights else None
    qos = policy.qos_rule(request.qos)
    factor = 1.0 if qos is None or qos.usage_factor is None else qos.usage_factor
    price = hardware.prices.get(request.gpu_type or UNTYPED)
    return Cost(
        billed, None if billed is None else billed * factor, None if price is None else price * request.gpus * hours, hardware.currency
    )


def preemptible(policy: Policy, request: Request, partition: str) -> bool:
    """Whether other jobs may take this one's GPUs, by PreemptType. Source: slurm.conf(5), PreemptType; qos.shtml."""
    kind = policy.settings.get("preempttype", "").casefold()
    if "qos" in kind:
        return bool(request.qos) and any((request.qos or "").casefold() in {p.casefold() for p in q.preempt} for q in policy.qos.values())
    rule = policy.partition(partition)
    if "partition" not in kind or rule is None or (rule.preempt_mode or "").upper() in ("", "OFF"):
        return False
    mine = {n.name for n in partition_nodes(policy, partition)}
    higher = [p for p in policy.partitions.values() if (p.priority_tier or 0) > (rule.priority_tier or 0)]
    return any(mine & {n.name for n in partition_nodes(policy, p.name)} for p in higher)
