"""The limits of QOS and associations, held against a request and what already runs and waits.

Order: the partition's QOS, the job's QOS (the other way round if the latter has OverPartQOS), the user's association, its
parents up to the root. The first that sets a limit decides it, per limit and TRES; only the Grp limits of associations
hold at every level. Source: ``acct_policy.c``; resource_limits.shtml.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from queuecast.i18n import _
from queuecast.policy.amounts import amount, asked_tres
from queuecast.policy.codes import COUNT_CODES, tres_code
from queuecast.policy.usage import Scope, Used
from queuecast.policy.verdicts import Kind, Verdict

if TYPE_CHECKING:
    from queuecast.policy.request import Request
    from queuecast.policy.tables import Limits, PartitionRule, Policy, QosRule
    from queuecast.policy.usage import Usage

_Set = set[tuple[str, str]]

ORDER = ("cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages")
"""Slurm looks at TRES in this order, then GRES and licences as AccountingStorageTRES lists them."""


@dataclass(frozen=True)
class Level:
    """One place that sets limits. ``group``: whose use its Grp limits count."""

    owner: str
    scope: str
    limits: Limits
    group: Scope
    own: bool


@dataclass
class _Check:
    """A request against limits: what does not change from level to level."""

    policy: Policy
    request: Request
    asked: dict[str, float]
    minutes: float
    usage: Usage | None
    without: int | None
    strict: bool
    factor: float
    settled: _Set

    def used(self, scope: Scope) -> Used | None:
        known = self.usage is not None and self.usage.observed_at is not None
        return self.usage.running(scope, self.without) if known and self.usage is not None else None

    @property
    def alone(self) -> Kind:
        """What breaking a limit by itself leads to: DenyOnLimit refuses, else the job is taken and never starts."""
        return "refused" if self.strict else "never"


def limit_verdicts(
    policy: Policy, request: Request, partition: str | None, usage: Usage | None = None, without: int | None = None
) -> Iterator[Verdict]:
    """Every limit that is broken, in Slurm's order: submit counts (not of a job that is already in the queue: ``without``),
    then counts and wall time, then TRES."""
    if policy.enforced is not None and "limits" not in policy.enforced:
        return
    rule = policy.partition(partition)
    rules = _rules(policy, request, rule)
    levels = list(levels_of(policy, request, rule))
    strict = any("denyonlimit" in q.flags for q in rules)
    own = policy.qos_rule(request.qos)
    safe_factor = own is not None and "usagefactorsafe" in own.flags and own.usage_factor is not None
    check = _Check(
        policy,
        request,
        asked_tres(policy, request, rule),
        math.inf if request.unlimited else (request.limit_s or 0) / 60,  # a limit that is not known breaks nothing
        usage,
        without,
        strict,
        own.usage_factor if safe_factor and own is not None and own.usage_factor is not None else 1.0,
        set(),
    )
    for stage in (_submits, _counts, _tres) if without is None else (_counts, _tres):
        check.settled = set()
        for level in levels:
            yield from stage(check, level)


def levels_of(policy: Policy, request: Request, rule: PartitionRule | None) -> Iterator[Level]:
    """The places whose limits hold for the request, in the order of their precedence."""
    for qos in _rules(policy, request, rule):
        yield Level("qos", _("QOS {name}").format(name=qos.name), qos.limits, Scope(qos=qos.name), False)
    chain = policy.chain(request.user, request.account, rule.name if rule else None)
    for i, found in enumerate(chain):
        if found.user is not None:
            scope = _("user {user} in account {account}").format(user=found.user, account=found.account)
            group = Scope(user=found.user, accounts=frozenset({found.account.casefold()}))
        else:
            scope = _("account {name}").format(name=found.account)
            group = Scope() if found.account == "root" else Scope(accounts=policy.accounts_under(found.account))
        yield Level("assoc", scope, found.limits, group, own=i == 0 and found.user is not None)


def _rules(policy: Policy, request: Request, rule: PartitionRule | None) -> list[QosRule]:
    of_partition = policy.qos_rule(rule.qos) if rule is not None else None
    of_job = policy.qos_rule(request.qos)
    order = [of_partition, of_job]
    if of_job is not None and "overpartqos" in of_job.flags:
        order.reverse()
    out: list[QosRule] = []
    for q in order:
        if q is not None and q not in out:
            out.append(q)
    return out


def _user(check: _Check, level: Level) -> Scope:
    return Scope(user=check.request.user, qos=level.group.qos)


def _account(check: _Check, level: Level) -> Scope:
    name = check.request.account
    return Scope(accounts=frozenset({name.casefold()}) if name else frozenset(), qos=level.group.qos)


def _limits_of(level: Level) -> list[tuple[str, str]]:
    """(limit on jobs, its limit on submissions) in Slurm's order."""
    if level.owner == "qos":
        return [
            ("grp_jobs", "grp_submit"),
            ("max_jobs_per_account", "max_submit_per_account"),
            ("max_jobs_per_user", "max_submit_per_user"),
        ]
    return [("grp_jobs", "grp_submit"), *([("max_jobs", "max_submit")] if level.own else [])]


def _scope_of(check: _Check, level: Level, name: str) -> Scope:
    if name.endswith("_per_user"):
        return _user(check, level)
    return _account(check, level) if name.endswith("_per_account") else level.group


def _first(check: _Check, level: Level, limit: str, tres: str = "") -> bool:
    """Whether this level decides the limit; a QOS settles it for all that come after, an association for none."""
    if (limit, tres) in check.settled:
        return False
    if level.owner == "qos":
        check.settled.add((limit, tres))
        if limit in ("max_jobs_per_user", "max_jobs_per_account"):
            check.settled.add(("max_jobs", tres))
        if limit in ("max_submit_per_user", "max_submit_per_account"):
            check.settled.add(("max_submit", tres))
    return True


def _submits(check: _Check, level: Level) -> Iterator[Verdict]:
    tasks = max(1, check.request.array_tasks)
    for _jobs, name in _limits_of(level):
        limit = getattr(level.limits, name)
        if limit is None or not _first(check, level, name):
            continue
        known = check.usage if check.usage is not None and check.usage.observed_at is not None else None
        present = known.submitted(_scope_of(check, level, name), check.without) if known else None
        if tasks + (present or 0) > limit:
            yield Verdict(
                COUNT_CODES[level.owner, name],
                "refused",
                level.scope,
                "submit",
                limit,
                tasks,
                present,
                _("{scope} allows {limit} jobs in the queue; {used} are there and {asked} would be added.").format(
                    scope=level.scope, limit=limit, used=present or 0, asked=tasks
                ),
                _("Submit fewer at a time, or wait until some have ended."),
            )


def _counts(check: _Check, level: Level) -> Iterator[Verdict]:
    for name, _submit in _limits_of(level):
        limit = getattr(level.limits, name)
        if limit is None or not _first(check, level, name):
            continue
        used = check.used(_scope_of(check, level, name))
        if limit < 1 or (used is not None and used.jobs >= limit):
            yield Verdict(
                COUNT_CODES[level.owner, name],
                "waits" if limit else check.alone,
                level.scope,
                "jobs",
                limit,
                1,
                used.jobs if used else None,
                _("{scope} allows {limit} running jobs and {used} run.").format(
                    scope=level.scope, limit=limit, used=used.jobs if used else _("an unknown number")
                ),
                _("It can start when one of them ends.") if limit else _("Use another QOS or account."),
            )
    wall = level.limits.max_wall_s
    if wall is None or (level.owner == "assoc" and not level.own) or not _first(check, level, "max_wall_s"):
        return
    asked = check.request.limit_s
    if not check.request.limit_defaulted and (check.request.unlimited or (asked or 0) > wall):
        yield Verdict(
            COUNT_CODES[level.owner, "max_wall_s"],
            check.alone,
            level.scope,
            "wall",
            wall,
            asked,
            None,
            _("The time limit is above the {limit} that {scope} allows.").format(limit=amount("wall", wall), scope=level.scope),
            _("Use -t {limit} or less.").format(limit=amount("wall", wall)),
        )


def _tres(check: _Check, level: Level) -> Iterator[Verdict]:
    limits = level.limits
    qos, own = level.owner == "qos", level.own or level.owner == "qos"
    yield from _minutes(check, level, "grp_tres_mins", limits.grp_tres_mins, budget=True)
    yield from _shared(check, level, "grp_tres", limits.grp_tres, level.group)
    yield from _minutes(check, level, "grp_tres_run_mins", limits.grp_tres_run_mins, budget=False)
    if own:
        minutes = {k: v * check.minutes if v else 0.0 for k, v in check.asked.items()}
        nodes = max(1, check.request.nodes)
        per_node = {k: math.ceil(v / nodes) for k, v in check.asked.items()}
        yield from _alone(check, level, "max_tres_mins_per_job", limits.max_tres_mins_per_job, minutes, "_mins")
        yield from _alone(check, level, "max_tres_per_job", limits.max_tres_per_job, check.asked)
        yield from _alone(check, level, "max_tres_per_node", limits.max_tres_per_node, per_node)
    if qos:
        yield from _least(check, level)
        yield from _shared(check, level, "max_tres_per_account", limits.max_tres_per_account, _account(check, level))
        yield from _shared(check, level, "max_tres_per_user", limits.max_tres_per_user, _user(check, level))


def in_order(policy: Policy, limits: Mapping[str, int]) -> list[str]:
    """The TRES of a limit as Slurm goes through them."""
    tracked = [w.strip().lower() for w in policy.settings.get("accountingstoragetres", "").split(",")]
    places = {name: i for i, name in enumerate([*ORDER, *(t for t in tracked if t not in ORDER)])}
    return sorted(limits, key=lambda name: (places.get(name, len(places)), name))


def _alone(
    check: _Check, level: Level, name: str, limits: Mapping[str, int], asked: Mapping[str, float], unit: str = ""
) -> Iterator[Verdict]:
    for tres in in_order(check.policy, limits):
        if not _first(check, level, name, tres) or tres not in asked or asked[tres] <= limits[tres]:
            continue
        each = {"max_tres_per_node": _("per node"), "max_tres_mins_per_job": _("times minutes per job")}.get(name, _("per job"))
        yield Verdict(
            tres_code(level.owner, name, tres),
            check.alone,
            level.scope,
            tres + unit,
            limits[tres],
            _finite(asked[tres]),
            None,
            _("{asked} {tres} {each} are asked for; {scope} allows {limit}.").format(
                asked=_shown(tres, asked[tres]), tres=tres, each=each, scope=level.scope, limit=_shown(tres, limits[tres])
            ),
            _("Ask for less, or use a QOS that allows it."),
        )


def _least(check: _Check, level: Level) -> Iterator[Verdict]:
    for tres in in_order(check.policy, level.limits.min_tres_per_job):
        least = level.limits.min_tres_per_job[tres]
        if not _first(check, level, "min_tres_per_job", tres) or tres not in check.asked or check.asked[tres] >= least:
            continue
        yield Verdict(
            tres_code(level.owner, "min_tres_per_job", tres),
            check.alone,
            level.scope,
            tres,
            least,
            check.asked[tres],
            None,
            _("{scope} is for jobs with at least {limit} {tres}; {asked} are asked for.").format(
                scope=level.scope, limit=_shown(tres, least), tres=tres, asked=_shown(tres, check.asked[tres])
            ),
            _("Ask for more, or use another QOS."),
        )


def _shared(check: _Check, level: Level, name: str, limits: Mapping[str, int], scope: Scope) -> Iterator[Verdict]:
    if not limits:
        return
    used = check.used(scope)
    for tres in in_order(check.policy, limits):
        asked, limit = check.asked.get(tres), limits[tres]
        if not _first(check, level, name, tres) or not asked:
            continue
        present = used.tres.get(tres, 0) if used is not None else None
        if asked <= limit and (present is None or present + asked <= limit):
            continue
        yield Verdict(
            tres_code(level.owner, name, tres),
            check.alone if asked > limit else "waits",
            level.scope,
            tres,
            limit,
            asked,
            present,
            _("{asked} {tres} are asked for; {scope} allows {limit} together and {used} are in use.").format(
                asked=_shown(tres, asked),
                tres=tres,
                scope=_whose(level, name),
                limit=_shown(tres, limit),
                used=_("an unknown number") if present is None else _shown(tres, present),
            ),
            _("Ask for at most {limit}.").format(limit=_shown(tres, limit))
            if asked > limit
            else _("It can start when jobs that count there end, or with at most {room}.").format(
                room=_shown(tres, max(0, limit - (present or 0)))
            ),
        )


def _minutes(check: _Check, level: Level, name: str, limits: Mapping[str, int], *, budget: bool) -> Iterator[Verdict]:
    """GrpTRESMins (a budget: only with ``safe`` is this job's own need held against it) and GrpTRESRunMins."""
    if not limits:
        return
    safe = check.policy.enforced is not None and "safe" in check.policy.enforced
    used = None if budget else check.used(level.group)
    for tres in in_order(check.policy, limits):
        asked, limit = check.asked.get(tres), limits[tres]
        if not _first(check, level, name, tres) or (not asked and limit > 0):
            continue
        need = (asked or 0.0) * check.minutes * (check.factor if budget else 1.0) if asked else 0.0
        if budget and not safe and limit > 0:
            continue
        present = used.run_mins.get(tres, 0.0) if used is not None else None
        if need <= limit and (present is None or present + need <= limit) and limit > 0:
            continue
        yield Verdict(
            tres_code(level.owner, name, tres),
            check.alone if need > limit else "waits",
            level.scope,
            tres + "_mins",
            limit,
            _finite(need),
            present,
            _("The job needs {asked} {tres}-minutes; {scope} allows {limit}.").format(
                asked=_shown(tres, need), tres=tres, scope=level.scope, limit=_shown(tres, limit)
            ),
            _("Ask for a shorter time limit or less, or use another account or QOS."),
        )


def _whose(level: Level, name: str) -> str:
    if name == "max_tres_per_user":
        return _("{scope} (for each user)").format(scope=level.scope)
    return _("{scope} (for each account)").format(scope=level.scope) if name == "max_tres_per_account" else level.scope


def _shown(tres: str, value: float) -> str:
    return _("unlimited") if math.isinf(value) else amount(tres, value)


def _finite(value: float) -> float | None:
    return None if math.isinf(value) else value
