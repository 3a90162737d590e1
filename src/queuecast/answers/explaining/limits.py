"""A limit in words: whose jobs use how much of it, by which rule, and how much of that is the viewer's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from queuecast.i18n import _
from queuecast.policy.amounts import amount
from queuecast.policy.codes import COUNT_CODES
from queuecast.policy.counted import Level, levels_of
from queuecast.policy.usage import Scope

if TYPE_CHECKING:
    from collections.abc import Iterator

    from queuecast.answers.viewer import Viewer
    from queuecast.policy.request import Request
    from queuecast.policy.tables import Policy
    from queuecast.policy.usage import Usage, UsedJob
    from queuecast.policy.verdicts import Verdict

Kin = Literal["own", "group", "qos", "array", "any"]
"""Whose jobs count: those of the job's user, of the account (and below), of all with the QOS, of the array, or anybody's."""


def level_of(policy: Policy, request: Request, verdict: Verdict) -> Level | None:
    """The place whose limit was broken; None where the verdict is not about a counted limit."""
    rule = policy.partition(verdict.partition)
    return next((x for x in levels_of(policy, request, rule) if x.scope == verdict.scope), None)


def counted(request: Request, code: str, level: Level) -> tuple[Scope, Kin]:
    """Whose jobs count against the limit that Slurm names by ``code``."""
    if level.owner == "qos" and "PerUser" in code:
        return Scope(user=request.user, qos=level.group.qos), "own"
    if level.owner == "qos" and code.endswith("PerAccount"):
        return Scope(accounts=frozenset({(request.account or "").casefold()}), qos=level.group.qos), "group"
    if level.owner == "qos":
        return level.group, "qos"
    return level.group, "own" if level.group.user is not None else "group" if level.group.accounts is not None else "any"


def held(job: UsedJob, tres: str) -> float:
    """What one running job holds of it; ``*_mins``: amount times the minutes left to its limit."""
    if tres == "jobs":
        return 1.0
    if tres.endswith("_mins"):
        return float(job.tres.get(tres.removesuffix("_mins"), 0)) * max(0.0, job.left_s or 0.0) / 60
    return float(job.tres.get(tres, 0))


def limit_words(policy: Policy, request: Request, usage: Usage, verdict: Verdict, viewer: Viewer) -> str | None:
    """``Your group's jobs (account lab) use 32 of 32 GPUs allowed by ...``; None where use and limit are not both known."""
    level = level_of(policy, request, verdict)
    if level is None or verdict.used is None or verdict.limit is None or verdict.tres is None:
        return None
    if verdict.kind != "waits":
        return _too_much(level, verdict)
    scope, kin = counted(request, verdict.code, level)
    whose = _whose(policy, request, level, kin, viewer)
    rule = _rule(level, verdict.code)
    if verdict.tres == "jobs":
        return _("{jobs}: {used} run, and {rule} allows {limit} to run at a time.").format(
            jobs=whose, used=shown("jobs", verdict.used), rule=rule, limit=shown("jobs", verdict.limit)
        )
    values = {
        "jobs": whose,
        "rule": rule,
        "used": shown(verdict.tres, verdict.used),
        "limit": shown(verdict.tres, verdict.limit),
        "asked": shown(verdict.tres, verdict.asked or 0),
        "what": what_of(verdict.tres),
    }
    if verdict.tres.endswith("_mins"):
        return _(
            "{jobs} that run have {used} of the {limit} {what} before them that {rule} allows (amount times time left to their limits); "
            "this job would add {asked}."
        ).format(**values)
    told = _("{jobs} use {used} of {limit} {what} allowed by {rule}; this job asks for {asked}.").format(**values)
    own = sum(held(j, verdict.tres) for j in usage.jobs if j.running and scope.holds(j) and _same(j.user, request.user))
    if kin != "own" and own and verdict.tres != "node":
        text = _("{own} of them are yours.") if _same(viewer.user, request.user) else _("{own} of them are this user's.")
        told += " " + text.format(own=shown(verdict.tres, own))
    return told


def _too_much(level: Level, verdict: Verdict) -> str | None:
    """One job asks for more than all may have together."""
    if verdict.tres in (None, "jobs") or verdict.asked is None or verdict.limit is None or verdict.asked <= verdict.limit:
        return None
    tres = verdict.tres or ""
    return _("This job asks for {asked} {what}; {rule} allows {limit} altogether, so it can never start as it is.").format(
        asked=shown(tres, verdict.asked), what=what_of(tres), rule=_rule(level, verdict.code), limit=shown(tres, verdict.limit)
    )


def _whose(policy: Policy, request: Request, level: Level, kin: Kin, viewer: Viewer) -> str:
    mine = _same(viewer.user, request.user)
    account = request.account or ""
    if kin == "own":
        return _("Your jobs") if mine else _("The jobs of {user}").format(user=request.user or _("this user"))
    if kin == "qos":
        return _("All jobs with {qos} together").format(qos=level.scope)
    if kin == "any":
        return _("All jobs of the cluster together")
    names = level.group.accounts or frozenset({account.casefold()})
    here = level.scope.rpartition(" ")[2] if level.owner == "assoc" else account
    if here.casefold() != account.casefold():
        return _("The jobs of account {account} and those below it, yours among them,").format(account=here)
    if len(names) > 1:
        return _("The jobs of account {account} and those below it").format(account=here)
    return (_("Your group's jobs (account {account})") if mine else _("The jobs of account {account}")).format(account=here)


def _rule(level: Level, code: str) -> str:
    if level.owner == "qos" and "PerUser" in code:
        return _("{scope} for each user").format(scope=level.scope)
    if level.owner == "qos" and code.endswith("PerAccount"):
        return _("{scope} for each account").format(scope=level.scope)
    return _("the limit of {scope}").format(scope=level.scope) if level.owner == "assoc" else level.scope


def what_of(tres: str) -> str:
    """The unit in words: GPUs, a100 GPUs, CPUs, memory, nodes, GPU-minutes, ..."""
    name = tres.removesuffix("_mins")
    minutes = name != tres
    plain = {"gres/gpu": "GPU", "cpu": "CPU", "node": _("node"), "mem": _("memory"), "billing": _("billing units"), "wall": _("job")}
    if name.startswith("gres/gpu:"):
        word = f"{name.partition(':')[2]} GPU"
    elif name.startswith("license/"):
        word = _("licences of {name}").format(name=name.partition("/")[2])
    else:
        word = plain.get(name, name)
    if name == "mem" and minutes:
        return _("GiB-minutes of memory")
    if minutes:
        return _("{unit}-minutes").format(unit=word)
    return {"GPU": _("GPUs"), "CPU": _("CPUs"), _("node"): _("nodes")}.get(word, f"{word}s" if word.endswith(" GPU") else word)


def shown(tres: str, value: float) -> str:
    """The number in the unit of ``what_of``: memory as ``64G``, minutes of memory in GiB-minutes, the rest as it is."""
    if tres == "mem_mins":
        return amount(None, value / (1 << 30))
    return amount("mem" if tres == "mem" else None, value)


def _same(left: str | None, right: str | None) -> bool:
    return left is not None and right is not None and left.casefold() == right.casefold()


def submit_limit(policy: Policy, request: Request, usage: Usage, code: str) -> dict[str, Any] | None:
    """``scope``, ``limit`` and ``used`` of the limit on jobs in the queue that Slurm names by ``code``; None if not found or not reached.

    A job in the queue has passed it; tasks of an array are held against it once more when they part from the array.
    """
    rule = policy.partition(request.partitions[0]) if request.partitions else None
    for level, name in _submits(policy, request, rule):
        limit = getattr(level.limits, name)
        if limit is None or COUNT_CODES[level.owner, name] != code or usage.observed_at is None:
            continue
        scope, kin = counted(request, code, level)
        used = usage.submitted(scope)
        if used >= limit:
            return {"scope": level.scope, "limit": limit, "used": used, "kin": kin, "level": level}
    return None


def _submits(policy: Policy, request: Request, rule: Any) -> Iterator[tuple[Level, str]]:
    for level in levels_of(policy, request, rule):
        if level.owner == "qos":
            for name in ("grp_submit", "max_submit_per_account", "max_submit_per_user"):
                yield level, name
        else:
            yield level, "grp_submit"
            if level.own:
                yield level, "max_submit"
