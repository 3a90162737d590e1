"""On which nodes one node's share of a request fits."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from queuecast.errors import ParseError
from queuecast.slurmtext.hostlist import expand_hostlist

if TYPE_CHECKING:
    from queuecast.policy.nodes import NodeShape
    from queuecast.policy.request import Request
    from queuecast.policy.tables import PartitionRule, Policy

_PLAIN = re.compile(r"[\w.+-]+(?:[&|,][\w.+-]+)*")


def fitting_nodes(policy: Policy, request: Request, partition: str) -> tuple[NodeShape, ...]:
    """Nodes of the partition on which one node's share of the request fits when the node is empty, down or not.

    The share is the whole divided by the nodes asked for, rounded up. A size that is not known does not exclude.
    Of a constraint only plain lists of features (``a&b``, ``a|b``) are looked at.
    """
    rule = policy.partition(partition)
    return tuple(n for n in partition_nodes(policy, partition) if _fits(n, request, rule))


def partition_nodes(policy: Policy, partition: str) -> tuple[NodeShape, ...]:
    """The nodes of a partition, by the partition's own list, or by what the nodes say."""
    rule = policy.partition(partition)
    named = frozenset(rule.nodes) if rule is not None else frozenset[str]()
    return tuple(n for n in policy.nodes if (n.name in named if named else partition.casefold() in n.partitions))


def hosts(text: str | None) -> frozenset[str]:
    """Names of a host list as typed after ``-w`` or ``-x``; empty for none, or text that is no host list."""
    try:
        return frozenset(expand_hostlist(text or "") or ())
    except ParseError:
        return frozenset()


def why_not(node: NodeShape, request: Request, rule: PartitionRule | None) -> str | None:
    """The first thing that does not fit: ``node``, ``features``, ``gpus``, ``cpus`` or ``mem``; None if it fits."""
    nodes = max(1, request.nodes)
    if node.name in hosts(request.exclude):
        return "node"
    if request.nodelist and nodes == 1 and node.name not in hosts(request.nodelist):
        return "node"
    if not has_features(node, request.constraint):
        return "features"
    if node.gpus_of(request.gpu_type) < math.ceil(request.gpus / nodes):
        return "gpus"
    cpus = node.cpus
    if cpus is not None and rule is not None and rule.max_cpus_per_node is not None:
        cpus = min(cpus, rule.max_cpus_per_node)
    if cpus is not None and cpus < math.ceil(request.cpus / nodes):
        return "cpus"
    if request.mem_bytes is not None and node.mem_bytes is not None and node.mem_bytes < request.mem_bytes // nodes:
        return "mem"
    return None


def has_features(node: NodeShape, constraint: str | None) -> bool:
    """Whether a node satisfies a plain constraint; any other notation is taken to be satisfied."""
    if not constraint or not _PLAIN.fullmatch(constraint):
        return True
    groups = [part.split("|") for part in re.split("[&,]", constraint)]
    return all(any(word.casefold() in node.features for word in group) for group in groups)


def _fits(node: NodeShape, request: Request, rule: PartitionRule | None) -> bool:
    return why_not(node, request, rule) is None
