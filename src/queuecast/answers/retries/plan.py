"""What a changed copy is decided from, and what is decided: flags, notes, or that something has to be mended first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from queuecast.policy.request import Request
from queuecast.policy.shapes import fitting_nodes
from queuecast.policy.verdicts import verdicts

if TYPE_CHECKING:
    from queuecast.models.sizing_bound import SizeBound
    from queuecast.policy.tables import PartitionRule, Policy, QosRule


@dataclass(frozen=True)
class Change:
    """An ``#SBATCH`` option that differs in the copy. None: the option is not there. ``why`` is a sentence."""

    option: str
    before: str | None
    after: str | None
    why: str

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


@dataclass
class Plan:
    """``blocked``: why the job would fail again as it is; None: ready. ``mend``: what to look at first, as sentences."""

    changes: list[Change] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    mend: list[str] = field(default_factory=list)
    blocked: str | None = None

    def change(self, option: str, before: str | None, after: str | None, why: str) -> None:
        """Add a change, unless it changes nothing."""
        if before != after:
            self.changes = [*(c for c in self.changes if c.option != option), Change(option, before, after, why)]


@dataclass(frozen=True)
class Case:
    """A job that failed. ``options``: effective ones, script and command line together. ``request``: as accounting knows it,
    with one partition. ``bounds``: what jobs of the kind use, by resource, where known. ``peak_bytes``: highest memory seen
    of one node, a lower bound. ``nodes_at_fault``: named by the classification; empty where it names none."""

    cluster: str
    at: datetime
    row: Mapping[str, Any]
    options: Mapping[str, str]
    request: Request
    policy: Policy
    steps: Sequence[Mapping[str, Any]] = ()
    bounds: Mapping[str, SizeBound] = field(default_factory=dict)
    nodes_at_fault: tuple[str, ...] = ()
    resumes: bool = False

    @property
    def rule(self) -> PartitionRule | None:
        """The partition that it was in."""
        return self.policy.partition(self.request.partitions[0]) if self.request.partitions else None

    def allowed(self, request: Request) -> bool:
        """Whether Slurm would take and some day start the request, as far as its rules are known; what already stood
        against the job as it was does not count."""
        before = {(v.code, v.scope) for v in verdicts(self.policy, self.request)}
        return not any(v.kind in ("refused", "never") and (v.code, v.scope) not in before for v in verdicts(self.policy, request))

    def granted_qos(self) -> list[QosRule]:
        """QOS that the association grants besides the job's own, by priority, least first."""
        granted = [a.qos for a in self.policy.associations_of(self.request.user, self.request.account) if a.qos is not None]
        names = frozenset[str]().union(*granted) - {(self.request.qos or "").casefold()}
        found = [rule for name in names if (rule := self.policy.qos_rule(name)) is not None]
        return sorted(found, key=lambda q: (q.priority or 0, q.name))

    def other_qos(self, request: Request) -> list[QosRule]:
        """Of these, the ones with which the request would be taken."""
        return [q for q in self.granted_qos() if self.allowed(replace(request, qos=q.name))]

    def others(self, request: Request) -> list[tuple[PartitionRule, Request]]:
        """Other partitions that the job may use and that have nodes for it, with the request put there."""
        out = []
        for rule in self.policy.partitions.values():
            if rule is self.rule or (rule.state or "UP").upper() != "UP":
                continue
            there = replace(request, partitions=(rule.name,))
            broken = [v for v in verdicts(self.policy, there) if v.kind in ("refused", "never")]
            if not broken and len(fitting_nodes(self.policy, there, rule.name)) >= max(1, request.nodes):
                out.append((rule, there))
        return out


def request_of(row: Mapping[str, Any], options: Mapping[str, str]) -> Request:
    """The request as accounting knows it; what only the script tells (features, nodes, licences) is taken from there."""
    names = tuple(p for p in (row["partition"] or options.get("partition") or "").split(",") if p)
    memory = row["mem_req_bytes"] or row["mem_alloc_bytes"]
    return Request(
        partitions=names[:1],
        gpus=row["gpus_req"] or 0,
        gpu_type=row["gpu_type_req"] or None,
        nodes=row["nodes_req"] or row["nodes_alloc"] or 1,
        cpus=row["cpus_req"] or row["cpus_alloc"] or 1,
        mem_bytes=memory,
        limit_s=row["limit_s"],
        unlimited=row["limit_kind"] == "unlimited",
        account=row["account"],
        qos=row["qos"],
        user=row["user"],
        constraint=options.get("constraint") or row["constraints"] or None,
        nodelist=options.get("nodelist") or None,
        exclude=options.get("exclude") or None,
        reservation=options.get("reservation") or None,
        licenses=options.get("licenses") or None,
    )
