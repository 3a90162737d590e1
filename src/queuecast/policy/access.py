"""Whether the user, account and QOS exist, belong together, and are let into the partition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from queuecast.i18n import _
from queuecast.policy.verdicts import Kind, Verdict

if TYPE_CHECKING:
    from queuecast.policy.request import Request
    from queuecast.policy.tables import PartitionRule, Policy


def access_verdicts(policy: Policy, request: Request, partition: str | None, *, queued: bool = False) -> Iterator[Verdict]:
    """In the order of Slurm's checks at submission; ``queued``: of a job that has passed those and waits."""
    rule = policy.partition(partition)
    if partition is not None and policy.partitions and rule is None:
        known = ", ".join(sorted(p.name for p in policy.partitions.values()))
        yield _plain(
            "InvalidPartition",
            "refused",
            _("partition {name}").format(name=partition),
            _("There is no partition {name}.").format(name=partition),
            _("Choose one of: {names}.").format(names=known),
        )
    yield from _account(policy, request, partition)
    yield from _qos(policy, request)
    if rule is not None:
        yield from _let_in(policy, request, rule, queued)


def strictness(policy: Policy) -> Kind:
    """What breaking a partition's rule leads to: EnforcePartLimits ALL or ANY refuses, NO (the default) lets the job wait."""
    return "refused" if policy.settings.get("enforcepartlimits", "").strip().upper() in ("ALL", "ANY", "YES") else "never"


def _account(policy: Policy, request: Request, partition: str | None) -> Iterator[Verdict]:
    if not request.account or not policy.associations:
        return
    known = {a.account.casefold() for a in policy.associations}
    scope = _("account {name}").format(name=request.account)
    if request.account.casefold() not in known:
        yield _plain(
            "InvalidAccount",
            "refused",
            scope,
            _("There is no account {name}.").format(name=request.account),
            _("Choose one of: {names}.").format(names=", ".join(sorted(known))),
        )
    elif request.user and (policy.enforced is None or "associations" in policy.enforced):
        own = policy.associations_of(request.user, request.account)
        usable = [a for a in own if not a.partition or not partition or a.partition.casefold() == partition.casefold()]
        mine = sorted({a.account for a in policy.associations_of(request.user)})
        if not usable and mine:  # a user without any is not known here, rather than barred
            yield _plain(
                "InvalidAccount",
                "refused",
                scope,
                _("{user} does not belong to account {name}.").format(user=request.user, name=request.account),
                _("Use -A with one of: {names}.").format(names=", ".join(mine)),
            )


def _qos(policy: Policy, request: Request) -> Iterator[Verdict]:
    if not request.qos or not policy.qos:
        return
    scope = _("QOS {name}").format(name=request.qos)
    if policy.qos_rule(request.qos) is None:
        yield _plain(
            "InvalidQOS",
            "refused",
            scope,
            _("There is no QOS {name}.").format(name=request.qos),
            _("Choose one of: {names}.").format(names=", ".join(sorted(q.name for q in policy.qos.values()))),
        )
        return
    if policy.enforced is not None and "qos" not in policy.enforced:
        return
    own = policy.associations_of(request.user, request.account)
    granted = [a.qos for a in own if a.qos is not None]
    if granted and not any(request.qos.casefold() in names for names in granted):
        yield _plain(
            "InvalidQOS",
            "refused",
            scope,
            _("{user} may not use QOS {name} with this account.").format(user=request.user, name=request.qos),
            _("Use -q with one of: {names}.").format(names=", ".join(sorted(frozenset[str]().union(*granted)))),
        )


def _let_in(policy: Policy, request: Request, rule: PartitionRule, queued: bool) -> Iterator[Verdict]:
    scope = _("partition {name}").format(name=rule.name)
    state = (rule.state or "UP").upper()
    wait = _("Wait until it is open again, or choose another partition.")
    if state == "DRAIN" and not queued:
        yield _plain("PartitionDrain", "refused", scope, _("Partition {name} takes no new jobs.").format(name=rule.name), wait)
    elif state == "INACTIVE":
        yield _plain(
            "PartitionInactive", "waits" if queued else "refused", scope, _("Partition {name} is closed.").format(name=rule.name), wait
        )
    elif state == "DOWN":
        yield _plain("PartitionDown", "waits", scope, _("Partition {name} starts no jobs at the moment.").format(name=rule.name), wait)
    kind = strictness(policy)
    if request.account and not rule.allows_account(request.account):
        yield _plain(
            "AccountNotAllowed",
            kind,
            scope,
            _("Partition {name} is not open to account {account}.").format(name=rule.name, account=request.account),
            _others(policy, request, rule) or _("Choose another partition or account."),
        )
    if request.qos and not rule.allows_qos(request.qos):
        allowed = ", ".join(sorted(rule.allow_qos or ()))
        yield _plain(
            "QOSNotAllowed",
            kind,
            scope,
            _("Partition {name} is not open to QOS {qos}.").format(name=rule.name, qos=request.qos),
            _("Use -q with one of: {names}.").format(names=allowed) if allowed else _("Choose another QOS."),
        )


def _others(policy: Policy, request: Request, rule: PartitionRule) -> str:
    open_to = [
        p.name for p in policy.partitions.values() if p is not rule and p.allows_account(request.account) and p.state in (None, "UP")
    ]
    return _("Partitions open to it: {names}.").format(names=", ".join(sorted(open_to))) if open_to else ""


def _plain(code: str, kind: Kind, scope: str, text: str, fix: str) -> Verdict:
    return Verdict(code, kind, scope, None, None, None, None, text, fix)
