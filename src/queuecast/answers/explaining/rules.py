"""Limits, budgets and licences that keep a job now, in words, with when they have room again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from queuecast.answers.explaining.budget import WALL, Overdrawn, first_day, overdrawn
from queuecast.answers.explaining.constraint import Case, Constraint, Standing
from queuecast.answers.explaining.licences import Licence, asked_licences, held_licences
from queuecast.answers.explaining.limits import counted, held, level_of, limit_words, shown, submit_limit, what_of
from queuecast.answers.explaining.release import Release, minutes_release, release
from queuecast.i18n import _
from queuecast.policy.amounts import asked_tres
from queuecast.policy.codes import tres_code
from queuecast.policy.counted import Level, limit_verdicts
from queuecast.policy.usage import RUNNING
from queuecast.policy.verdicts import Verdict, verdicts
from queuecast.reasons import explain_reason


def rules(case: Case) -> Iterator[Constraint]:
    """What the rules of partition, QOS and association say, in Slurm's order."""
    for v in verdicts(case.policy, case.request, case.usage, without=case.row["job_id"]):
        standing: Standing = "waits" if v.kind == "waits" else "never"
        free = _limit_release(case, v) if standing == "waits" and v.used is not None and v.limit is not None else None
        words = limit_words(case.policy, case.request, case.usage, v, case.viewer)
        yield Constraint(v.code, standing, words or v.text, v.fix, v.scope, v.tres, v.limit, v.asked, v.used, free)


def _limit_release(case: Case, v: Verdict) -> Release | None:
    level = level_of(case.policy, case.request, v)
    if level is None or v.tres is None or v.limit is None or v.used is None:
        return None
    scope, kin = counted(case.request, v.code, level)
    tres = v.tres
    jobs = {j.job_id: j for j in case.usage.jobs if j.running and scope.holds(j)}
    rows = [r for r in case.snapshot.rows if r["job_id"] in jobs and r["state"] in RUNNING]
    need = v.used + (v.asked or 0) - v.limit
    if tres.endswith("_mins"):
        plain = tres.removesuffix("_mins")
        return minutes_release(
            rows, lambda r: held(jobs[r["job_id"]], plain), tres, need, case.moment, case.shares(), case.viewer, kin
        )  # fmt: skip
    return release(rows, lambda r: held(jobs[r["job_id"]], tres), tres, need, case.moment, case.shares(), case.viewer, kin)


def together(case: Case) -> Iterator[Constraint]:
    """All components of a heterogeneous job start at once: their sum is held against what many may hold together."""
    leader, plus, _number = case.row["job_id_text"].partition("+")
    parts = [r for r in case.snapshot.rows if plus and r["job_id_text"].partition("+")[:2] == (leader, plus)]
    if len(parts) < 2:
        return
    kinds = {r["gpu_type"] for r in parts if r["gpus"]}
    whole = replace(
        case.request, gpus=sum(r["gpus"] or 0 for r in parts), cpus=sum(r["cpus"] or 1 for r in parts),
        nodes=sum(r["nodes"] or 1 for r in parts), gpu_type=kinds.pop() if len(kinds) == 1 else None, mem_bytes=None,
        limit_s=None, limit_defaulted=True,
    )  # fmt: skip
    alone = {v.code: v.kind for v in verdicts(case.policy, case.request, case.usage, without=case.row["job_id"])}
    for v in limit_verdicts(case.policy, whole, None, case.usage, case.row["job_id"]):
        if alone.get(v.code, "") in ("never", "refused", v.kind) or not (
            "Grp" in v.code or v.code.endswith(("PerUser", "PerUserLimit", "PerAccount"))
        ):
            continue
        words = limit_words(case.policy, whole, case.usage, v, case.viewer) or v.text
        text = _("The {n} components of this heterogeneous job start together: {text}").format(n=len(parts), text=words)
        yield Constraint(v.code, "waits" if v.kind == "waits" else "never", text, v.fix, v.scope, v.tres, v.limit, v.asked, v.used)


def budgets(case: Case) -> Iterator[Constraint]:
    """Used minutes (GrpTRESMins), by sshare or by accounting."""
    rule = case.policy.partition(case.request.partitions[0]) if case.request.partitions else None

    def running(level: Level, tres: str) -> float:
        return case.usage.running(level.group, case.row["job_id"]).run_mins.get(tres, 0.0)

    asked = asked_tres(case.policy, case.request, rule)
    for found in overdrawn(case.policy, case.request, rule, asked, running, case.spent):
        yield _overdrawn(found)


def _overdrawn(found: Overdrawn) -> Constraint:
    unit = f"{found.tres}_mins"
    words = {"used": shown(unit, found.use.minutes), "limit": shown(unit, found.limit), "what": what_of(unit), "scope": found.level.scope}
    text = _("{used} of the {limit} {what} of {scope} are used").format(**words)
    if found.use.since is not None:
        text = _("At least {used} of the {limit} {what} of {scope} are used (since {date}; before that it is not known)").format(
            **words, date=first_day(found.use)
        )
    if found.need or found.running:
        text += _("; jobs that run may use {running} more, and this one {asked} by its time limit").format(
            running=shown(unit, found.running), asked=shown(unit, found.need)
        )
    if found.use.half_life_s:
        text += ". " + _("Half of what was used is forgotten in {days} days.").format(days=round(found.use.half_life_s / 86400, 1))
    else:
        text += ". " + _("What was used is not forgotten by itself here.")
    free = None
    if found.free_at is not None:
        over = found.use.minutes + found.need - found.limit
        free = Release(f"{found.tres}_mins", max(0.0, over), 0, None, found.free_at, None, None, 0, "group", (), gradual=True)
    fix = _("Use another account or QOS, a shorter time limit or less; or ask whoever manages the budget.")
    walls = {"qos": "QOSGrpWallLimit", "assoc": "AssocGrpWallLimit"}
    code = walls[found.level.owner] if found.tres == WALL else tres_code(found.level.owner, "grp_tres_mins", found.tres)
    return Constraint(
        code, "waits", text, fix, found.level.scope, f"{found.tres}_mins", found.limit, found.need, found.use.minutes, free
    )  # fmt: skip


def licences(case: Case) -> Iterator[Constraint]:
    """Licences of the cluster itself that are all in use; more than there are is never."""
    for one in asked_licences(case.policy, case.snapshot, case.row):
        if one.short is not True or one.total is None or one.used is None:
            continue
        words = {"name": one.name, "total": one.total, "used": one.used, "asked": one.asked}
        if one.asked > one.total:
            text = _("It asks for {asked} licences of {name}; the cluster has {total}.").format(**words)
            yield Constraint("Licenses", "never", text, _("Ask for at most {total} (-L).").format(**words), None, *_counts_of(one))
            continue
        text = _("{used} of the {total} licences of {name} are in use; this job asks for {asked}.").format(**words)
        name = one.name
        free = release(
            [r for r in case.snapshot.rows if r["state"] in RUNNING], lambda r, n=name: float(held_licences(r).get(n, 0)),  # type: ignore[misc]
            f"license/{name}", one.used + one.asked - one.total, case.moment, case.shares(), case.viewer,
        )  # fmt: skip
        yield Constraint("Licenses", "waits", text, explain_reason("Licenses").todo, None, *_counts_of(one), free)


def _counts_of(one: Licence) -> tuple[str, float | None, float | None, float | None]:
    return f"license/{one.name}", one.total, one.asked, one.used


def submitted(case: Case) -> Iterator[Constraint]:
    """A limit on jobs in the queue, only where Slurm names it: a job in the queue has passed it once."""
    slurm = case.row["reason"] or ""
    found = submit_limit(case.policy, case.request, case.usage, slurm) if "Submit" in slurm else None
    if found is not None:
        text = _("{scope} allows {limit} jobs in the queue, and {used} are there; tasks of an array wait until they count no more.")
        info = explain_reason(slurm)
        yield Constraint(
            slurm, "waits", text.format(**{k: found[k] for k in ("scope", "limit", "used")}), info.todo, found["scope"], "submit",
            found["limit"], None, found["used"],
        )  # fmt: skip
