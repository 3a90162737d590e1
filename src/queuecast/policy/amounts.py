"""Amounts of a TRES: what a request asks for, and how an amount is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queuecast.slurmtext.durations import format_limit
from queuecast.slurmtext.sizes import format_size

if TYPE_CHECKING:
    from queuecast.policy.request import Request
    from queuecast.policy.tables import PartitionRule, Policy


def amount(tres: str | None, value: float) -> str:
    """``64G`` for memory, a time for ``wall``, a whole number else."""
    if tres == "mem":
        return format_size(int(value))
    if tres == "wall":
        return format_limit(int(value))
    return f"{value:,.0f}"


def asked_tres(policy: Policy, request: Request, rule: PartitionRule | None) -> dict[str, float]:
    """What one job (one task of an array) counts for, by TRES. A TRES that is not known is absent.

    Memory not asked for is the partition's default, where it has one.
    """
    out: dict[str, float] = {"cpu": request.cpus, "node": max(1, request.nodes), "gres/gpu": request.gpus}
    if request.gpu_type:
        out[f"gres/gpu:{request.gpu_type.casefold()}"] = request.gpus
    memory = request.mem_bytes
    if memory is None and rule is not None:
        if rule.def_mem_per_cpu_bytes is not None:
            memory = rule.def_mem_per_cpu_bytes * request.cpus
        elif rule.def_mem_per_node_bytes is not None:
            memory = rule.def_mem_per_node_bytes * max(1, request.nodes)
    if memory is not None:
        out["mem"] = memory
    out |= licences(request.licenses)
    if rule is not None:
        out["billing"] = int(billing(policy, out, rule))
    return out


def billing(policy: Policy, amounts: dict[str, float], rule: PartitionRule) -> float:
    """Billing of the amounts by the partition's weights; CPUs without any. The largest with PriorityFlags=MAX_TRES, else the sum.

    Source: slurm.conf(5), TRESBillingWeights.
    """
    if not rule.billing_weights:
        return amounts["cpu"]
    parts = [weight * amounts.get(name, 0.0) for name, weight in rule.billing_weights.items()]
    return max(parts) if "MAX_TRES" in policy.settings.get("priorityflags", "").upper() else sum(parts)


def licences(text: str | None) -> dict[str, float]:
    """``matlab:2,ansys`` as TRES; a part that is not understood is left out."""
    out: dict[str, float] = {}
    for part in (text or "").replace("|", ",").split(","):
        name, _colon, count = part.strip().replace("=", ":").partition(":")
        if name and (not count or count.isdigit()):
            out[f"license/{name.partition('@')[0].lower()}"] = float(count or 1)
    return out
