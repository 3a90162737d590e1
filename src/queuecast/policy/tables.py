"""What the site's configuration allows, as last read at a moment: partitions, QOS, associations, settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any

from queuecast.errors import ParseError
from queuecast.policy.nodes import NodeShape, nodes_at
from queuecast.policy.parents import parents_of
from queuecast.policy.readings import latest_reading
from queuecast.policy.reservations import Reservation, reservations_at
from queuecast.slurmtext.hostlist import expand_hostlist
from queuecast.slurmtext.tres import parse_tres

if TYPE_CHECKING:
    from queuecast.store.lake import Lake

__all__ = ["Association", "Limits", "NodeShape", "PartitionRule", "Policy", "QosRule", "Reservation", "names", "policy_at", "tres_amounts"]

TABLES = ("partitions", "qos", "associations", "nodes", "reservations", "settings")


@dataclass(frozen=True)
class PartitionRule:
    """A partition. Times in seconds, sizes in bytes; None is "no limit" or, for the flags and priorities, not told.

    The four sets are case-folded. ``allow_*`` None: all may; ``deny_*`` None: nobody is kept out.
    """

    name: str
    state: str | None
    nodes: tuple[str, ...]
    max_time_s: int | None
    default_time_s: int | None
    min_nodes: int | None
    max_nodes: int | None
    max_cpus_per_node: int | None
    def_mem_per_cpu_bytes: int | None
    def_mem_per_node_bytes: int | None
    max_mem_per_cpu_bytes: int | None
    max_mem_per_node_bytes: int | None
    priority_tier: int | None
    priority_job_factor: int | None
    qos: str | None
    allow_accounts: frozenset[str] | None
    deny_accounts: frozenset[str] | None
    allow_qos: frozenset[str] | None
    deny_qos: frozenset[str] | None
    allow_groups: frozenset[str] | None
    is_default: bool
    preempt_mode: str | None
    total_nodes: int | None
    total_cpus: int | None
    billing_weights: dict[str, float]

    def allows_account(self, account: str | None) -> bool:
        """Whether jobs of the account are let in (AllowAccounts, and DenyAccounts where the former is not set)."""
        return _allowed(account, self.allow_accounts, self.deny_accounts)

    def allows_qos(self, qos: str | None) -> bool:
        """Whether jobs with the QOS are let in (AllowQos, DenyQos)."""
        return _allowed(qos, self.allow_qos, self.deny_qos)


@dataclass(frozen=True)
class Limits:
    """Limits that a QOS or an association sets. None, or a TRES that is absent: not set here.

    TRES names are lower case (``cpu``, ``mem`` in bytes, ``node``, ``gres/gpu``, ``gres/gpu:a100``); ``*_mins`` in
    amount times minutes. ``max_jobs`` and ``max_submit`` are an association's own; the ``_per_user`` and
    ``_per_account`` ones a QOS's.
    """

    max_wall_s: int | None
    grp_wall_s: int | None
    grp_jobs: int | None
    grp_submit: int | None
    max_jobs: int | None
    max_submit: int | None
    max_jobs_per_user: int | None
    max_submit_per_user: int | None
    max_jobs_per_account: int | None
    max_submit_per_account: int | None
    grp_tres: dict[str, int]
    grp_tres_mins: dict[str, int]
    grp_tres_run_mins: dict[str, int]
    max_tres_per_job: dict[str, int]
    max_tres_per_node: dict[str, int]
    max_tres_mins_per_job: dict[str, int]
    max_tres_per_user: dict[str, int]
    max_tres_per_account: dict[str, int]
    min_tres_per_job: dict[str, int]

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Limits:
        """From a row of the tables ``qos`` or ``associations``; a limit that cannot be read is left out."""
        values: dict[str, Any] = {f.name: tres_amounts(row.get(f.name)) if "tres" in f.name else row.get(f.name) for f in fields(cls)}
        return cls(**values)


@dataclass(frozen=True)
class QosRule:
    """A QOS. ``preempt`` (names of the QOS it may preempt) and ``flags`` are case-folded."""

    name: str
    priority: int | None
    preempt: frozenset[str]
    preempt_mode: str | None
    flags: frozenset[str]
    usage_factor: float | None
    grace_time_s: int | None
    limits: Limits


@dataclass(frozen=True)
class Association:
    """An account (``user`` None) or a user in one. ``qos`` (case-folded) None: not told. ``parent`` None: root, or not told."""

    account: str
    user: str | None
    partition: str | None
    parent: str | None
    qos: frozenset[str] | None
    default_qos: str | None
    limits: Limits


@dataclass(frozen=True)
class Policy:
    """All of it. ``partitions`` and ``qos`` by case-folded name, ``settings`` by parameter (case-folded), without the weights.

    ``missing``: tables of which nothing was ever stored, so that answers can say what cannot be known (of reservations
    this may also mean that there never was one).
    """

    cluster: str
    at: datetime
    partitions: dict[str, PartitionRule]
    qos: dict[str, QosRule]
    associations: tuple[Association, ...]
    nodes: tuple[NodeShape, ...]
    reservations: tuple[Reservation, ...]
    settings: dict[str, str]
    missing: tuple[str, ...] = ()

    def partition(self, name: str | None) -> PartitionRule | None:
        """None if there is no such partition, or partitions are not known."""
        return self.partitions.get(name.casefold()) if name else None

    def qos_rule(self, name: str | None) -> QosRule | None:
        """None if there is no such QOS, or QOS are not known."""
        return self.qos.get(name.casefold()) if name else None

    @property
    def default_partition(self) -> PartitionRule | None:
        """The partition of a job that names none."""
        return next((p for p in self.partitions.values() if p.is_default), None)

    @property
    def enforced(self) -> frozenset[str] | None:
        """Words of AccountingStorageEnforce, lower case, with what they imply; None if the setting is not known.

        ``limits``, ``safe`` and ``qos`` switch on ``associations``, ``safe`` also ``limits``. Source: slurm.conf(5).
        """
        text = self.settings.get("accountingstorageenforce")
        if text is None:
            return None
        words = {w.strip().lower() for w in text.split(",")} - {"", "none", "0", "(null)"}
        if "all" in words:
            words |= {"associations", "limits", "qos", "safe"}
        if "safe" in words:
            words.add("limits")
        if words & {"limits", "qos", "wckeys"}:
            words.add("associations")
        return frozenset(words)

    def associations_of(self, user: str | None, account: str | None = None) -> tuple[Association, ...]:
        """The user's own associations, in the account if one is named."""
        if not user:
            return ()
        return tuple(
            a
            for a in self.associations
            if a.user and a.user.casefold() == user.casefold() and (not account or a.account.casefold() == account.casefold())
        )

    def chain(self, user: str | None, account: str | None, partition: str | None = None) -> tuple[Association, ...]:
        """The associations whose limits hold, from the user's own to the root's; empty if there is none.

        An association for this very partition goes before the one for any. Without a user it begins at the account.
        """
        if not account:
            return ()
        own = self.associations_of(user, account)
        named = [a for a in own if a.partition and partition and a.partition.casefold() == partition.casefold()]
        found = (named or [a for a in own if not a.partition])[:1]
        by_name = {a.account.casefold(): a for a in self.associations if a.user is None}
        name: str | None = account.casefold()
        seen: set[str] = set()
        while name and name not in seen:
            seen.add(name)
            above = by_name.get(name)
            if above is None:
                break
            found.append(above)
            name = above.parent.casefold() if above.parent else ("root" if name != "root" else None)
        return tuple(found)

    def accounts_under(self, account: str) -> frozenset[str]:
        """The account and all below it, case-folded."""
        out = {account.casefold()}
        below: dict[str, set[str]] = {}
        for a in self.associations:
            if a.user is None and a.account.casefold() != "root":
                below.setdefault((a.parent or "root").casefold(), set()).add(a.account.casefold())
        todo = [account.casefold()]
        while todo:
            for child in below.get(todo.pop(), set()) - out:
                out.add(child)
                todo.append(child)
        return frozenset(out)


def policy_at(lake: Lake, cluster: str, at: datetime) -> Policy:
    """The configuration as last read at ``at`` (the first reading if none is that old). Raises ``LakeDamaged``."""
    settings = _rows(lake, "settings", cluster, at)
    nodes = nodes_at(lake, cluster, at)
    rows = {name: _rows(lake, name, cluster, at) for name in ("partitions", "qos", "associations")}
    reservations = reservations_at(lake, cluster, at)
    read = {f.table for f in lake.manifest.files if f.cluster == cluster} | set(lake.manifest.state.get("seen", {}).get(cluster, {}))
    partitions = [_partition(r) for r in rows["partitions"]]
    return Policy(
        cluster,
        at,
        {p.name.casefold(): p for p in partitions},
        {r["qos"].casefold(): _qos(r) for r in rows["qos"]},
        _associations(lake, cluster, at, rows["associations"]),
        nodes,
        reservations,
        {r["key"].casefold(): r["value"] or "" for r in settings if r["section"] == "config"},
        tuple(t for t in TABLES if t not in read),
    )


def names(text: str | None) -> frozenset[str] | None:
    """A comma list as a case-folded set; None where it names nobody in particular (null, ``ALL``)."""
    words = {w.strip().casefold() for w in (text or "").split(",")} - {""}
    return None if not words or words & {"all", "(null)", "n/a"} else frozenset(words)


def tres_amounts(text: str | None) -> dict[str, int]:
    """TRES text as amounts by lower-case name; what cannot be read is left out. Null is an empty dict."""
    out: dict[str, int] = {}
    for part in (text or "").split(","):
        try:
            out |= {k.lower(): v for k, v in parse_tres(part).items() if v is not None}
        except ParseError:
            continue
    return out


def _allowed(name: str | None, allow: frozenset[str] | None, deny: frozenset[str] | None) -> bool:
    if name is None:
        return True
    if allow is not None:
        return name.casefold() in allow
    return deny is None or name.casefold() not in deny


def _rows(lake: Lake, table: str, cluster: str, at: datetime) -> list[dict[str, Any]]:
    return latest_reading(lake, table, cluster, at).to_pylist()  # type: ignore[no-any-return]  # dicts by column


def _partition(row: Mapping[str, Any]) -> PartitionRule:
    try:
        nodes = expand_hostlist(row["node_list"] or "") or ()
    except ParseError:
        nodes = ()
    values = {f.name: row.get(f.name) for f in fields(PartitionRule) if f.name not in ("name", "nodes", "billing_weights", "is_default")}
    for key in ("allow_accounts", "deny_accounts", "allow_qos", "deny_qos", "allow_groups"):
        values[key] = names(row[key])
    return PartitionRule(
        name=row["partition"], nodes=nodes, billing_weights=_weights(row["billing_weights"]), is_default=bool(row["is_default"]), **values
    )


def _weights(text: str | None) -> dict[str, float]:
    """``CPU=1.0,Mem=0.25G`` as weight per CPU, per byte of memory, per GRES. Source: slurm.conf(5), TRESBillingWeights."""
    out: dict[str, float] = {}
    for part in (text or "").split(","):
        key, _, value = part.partition("=")
        unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}.get(value[-1:].upper())
        try:
            number = float(value[:-1] if unit else value)
        except ValueError:
            continue
        name = key.strip().lower()
        out[name] = number / (unit or (1 << 20)) if name == "mem" else number
    return out


def _qos(row: Mapping[str, Any]) -> QosRule:
    return QosRule(
        row["qos"],
        row["priority"],
        names(row["preempt"]) or frozenset(),
        row["preempt_mode"],
        names(row["flags"]) or frozenset(),
        row["usage_factor"],
        row["grace_time_s"],
        Limits.of(row),
    )


def _associations(lake: Lake, cluster: str, at: datetime, rows: list[dict[str, Any]]) -> tuple[Association, ...]:
    told = any(r["parent"] for r in rows)
    parents = {} if told else parents_of(lake, cluster, at)
    return tuple(
        Association(
            r["account"],
            r["user"],
            r["partition"],
            r["parent"] if told else parents.get(r["account"].casefold()) if r["user"] is None else None,
            names(r["qos"]),
            r["default_qos"],
            Limits.of(r),
        )
        for r in rows
    )
