"""A cluster's configuration in the terms of the kernels: nodes, partitions, limits, preemption, weights of priority."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from queuecast.policy.tables import Policy, QosRule
from queuecast.slurmtext.durations import parse_typed_seconds
from queuecast.twin.arrays import L_CPU, L_GPU, L_JOBS, L_MEM, L_NODE, Flags, Floats

MIB = 1 << 20
BILLING_UNITS = {"cpu": 0, "mem": 1, "gres/gpu": 2}


def setting(policy: Policy, key: str, default: float) -> float:
    """A number of scontrol show config; the default if it is not told or not a number."""
    text = policy.settings.get(key.casefold(), "")
    try:
        return float(text.split()[0]) if text else default
    except ValueError:
        return default


def seconds(policy: Policy, key: str, default: float) -> float:
    """A time span of scontrol show config such as ``7-00:00:00`` or ``5 sec``."""
    text = policy.settings.get(key.casefold(), "")
    words = text.split()
    if len(words) == 2 and words[0].isdigit():
        return float(words[0]) * (60 if words[1].startswith("min") else 1)
    try:
        days, _, clock = text.rpartition("-")
        parts = [float(p) for p in clock.split(":")]
    except ValueError:
        return default
    if len(parts) != 3:
        return default
    return float(days or 0) * 86400 + parts[0] * 3600 + parts[1] * 60 + parts[2]


def parameters(policy: Policy) -> dict[str, str]:
    """SchedulerParameters by name, lower case; flags have the value ``1``."""
    out = {}
    for part in policy.settings.get("schedulerparameters", "").split(","):
        name, eq, value = part.strip().partition("=")
        if name and name != "(null)":
            out[name.casefold()] = value if eq else "1"
    return out


def number(found: Mapping[str, str], name: str, default: float) -> float:
    """A number of SchedulerParameters."""
    try:
        return float(found[name])
    except (KeyError, ValueError):
        span = parse_typed_seconds(found[name]) if name in found and ":" in found[name] else None
        return default if span is None else float(span)


@dataclass
class LimitTable:
    """Limits by class of job (user, account, QOS, partition). Groups are what usage is counted for."""

    policy: Policy
    types: tuple[str, ...]
    classes: dict[tuple[str, ...], int] = field(default_factory=dict)
    entries: list[list[tuple[int, Floats]]] = field(default_factory=list)
    groups: dict[tuple[str, ...], int] = field(default_factory=dict)
    ignored: set[str] = field(default_factory=set)

    def row(self, user: str | None, account: str | None, qos: str | None, partition: str, impossible: bool) -> int:
        """The class of a job; ``impossible`` ones may never start."""
        key = (user or "", account or "", qos or "", partition, "x" if impossible else "")
        if key not in self.classes:
            self.classes[key] = len(self.entries)
            self.entries.append(self._build(user, account, qos, partition, impossible))
        return self.classes[key]

    def vector(self, amounts: Mapping[str, int], jobs: int | None = None) -> Floats:
        """Limits as a vector, inf where there is none. What the replay does not count is kept in ``ignored``."""
        out = np.full(5 + len(self.types), np.inf)
        places = {"cpu": L_CPU, "node": L_NODE, "gres/gpu": L_GPU} | {f"gres/gpu:{t}": L_GPU + 1 + i for i, t in enumerate(self.types)}
        for name, amount in amounts.items():
            if name == "mem":
                out[L_MEM] = amount / MIB
            elif name in places:
                out[places[name]] = amount
            else:
                self.ignored.add(name)
        if jobs is not None:
            out[L_JOBS] = jobs
        return out

    def _group(self, *key: str) -> int:
        return self.groups.setdefault(key, len(self.groups))

    def _build(self, user: str | None, account: str | None, qos: str | None, partition: str, impossible: bool) -> list[tuple[int, Floats]]:
        width = 5 + len(self.types)
        out: list[tuple[int, Floats]] = []
        if impossible:
            out.append((self._group("never"), np.zeros(width)))
        enforced = self.policy.enforced
        if enforced is not None and "limits" not in enforced:
            return out
        defined = {kind: np.zeros(width, bool) for kind in ("grp", "user", "account")}
        for rule in qos_in_order(self.policy, qos, partition):
            limits, name = rule.limits, rule.name
            for kind, vector, key in (
                ("grp", self.vector(limits.grp_tres, limits.grp_jobs), ("qos", name)),
                ("user", self.vector(limits.max_tres_per_user, limits.max_jobs_per_user), ("qos-user", name, user or "")),
                ("account", self.vector(limits.max_tres_per_account, limits.max_jobs_per_account), ("qos-account", name, account or "")),
            ):
                self._add(out, defined[kind], vector, key)
        chain = self.policy.chain(user, account, partition)
        grp = defined["grp"].copy()
        for link in chain:
            self._add(out, grp.copy(), self.vector(link.limits.grp_tres, link.limits.grp_jobs), ("assoc", link.account, link.user or ""))
        most = next((a.limits.max_jobs for a in chain if a.limits.max_jobs is not None), None)
        if most is not None and chain and not (defined["user"][L_JOBS] or defined["account"][L_JOBS]):
            out.append((self._group("assoc", chain[0].account, chain[0].user or ""), self.vector({}, most)))
        return out

    def _add(self, out: list[tuple[int, Floats]], defined: Flags, vector: Floats, key: tuple[str, ...]) -> None:
        told = np.isfinite(vector)
        fresh = np.where(told & ~defined, vector, np.inf)
        if told.any():
            out.append((self._group(*key), fresh))
            defined |= told


def qos_in_order(policy: Policy, qos: str | None, partition: str) -> Iterable[QosRule]:
    """The partition's QOS and the job's, in the order in which their limits hold."""
    rule = policy.partition(partition)
    found = [policy.qos_rule(rule.qos) if rule else None, policy.qos_rule(qos)]
    if found[1] is not None and "overpartqos" in found[1].flags:
        found.reverse()
    seen: list[QosRule] = []
    for q in found:
        if q is not None and q not in seen:
            seen.append(q)
    return seen


def per_job_reason(
    policy: Policy,
    table: LimitTable,
    user: str | None,
    account: str | None,
    qos: str | None,
    partition: str,
    request: Floats,
    per_node: Floats,
    limit_s: float,
) -> bool:
    """Whether a limit for a single job (size, wall time, partition's rules) keeps it from ever starting."""
    rule = policy.partition(partition)
    if rule is not None:
        if rule.max_time_s is not None and limit_s > rule.max_time_s + 1e-6 and np.isfinite(limit_s):
            return True
        if rule.max_nodes is not None and request[L_NODE] > rule.max_nodes:
            return True
        if rule.max_mem_per_node_bytes is not None and per_node[L_MEM] * MIB > rule.max_mem_per_node_bytes:
            return True
        if not (rule.allows_account(account) and rule.allows_qos(qos)):
            return True
    wall: float | None = None
    enforced = policy.enforced
    if enforced is not None and "limits" not in enforced:
        return False
    done = np.zeros(len(request), bool)
    done_node = np.zeros(len(request), bool)
    sources = [q.limits for q in qos_in_order(policy, qos, partition)]
    sources += [a.limits for a in policy.chain(user, account, partition)]
    for limits in sources:
        if wall is None and limits.max_wall_s is not None:
            wall = float(limits.max_wall_s)
        vector, by_node = table.vector(limits.max_tres_per_job), table.vector(limits.max_tres_per_node)
        least = table.vector(limits.min_tres_per_job)
        if ((request > vector) & ~done & np.isfinite(vector)).any() or ((per_node > by_node) & ~done_node & np.isfinite(by_node)).any():
            return True
        if (np.isfinite(least) & (request < least)).any():
            return True
        done |= np.isfinite(vector)
        done_node |= np.isfinite(by_node)
    return wall is not None and np.isfinite(limit_s) and limit_s > wall
