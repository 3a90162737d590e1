"""What keeps a waiting job now, found from the configuration and the last snapshots, not from Slurm's word alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from queuecast.answers.viewer import Viewer
from queuecast.answers.why_queue import Ahead, Snapshot, ahead_of, dependencies
from queuecast.answers.why_release import Release, Shares, release
from queuecast.i18n import _, ngettext
from queuecast.policy.counted import Level, levels_of
from queuecast.policy.shapes import fitting_nodes
from queuecast.policy.usage import RUNNING, Scope, Usage
from queuecast.policy.verdicts import Verdict, verdicts
from queuecast.reasons import explain_reason, never_starts

if TYPE_CHECKING:
    from collections.abc import Callable

    from queuecast.policy.request import Request
    from queuecast.policy.tables import NodeShape, Policy

Standing = Literal["never", "held", "waits", "unchecked"]
Agreement = Literal["same", "kind", "differs", "unchecked"]

_HELD = ("JobHeldUser", "JobHeldAdmin", "RequeueHold", "SpecialExit")


@dataclass(frozen=True)
class Constraint:
    """One thing that keeps the job. ``standing``: ``never`` starts unless something changes; ``held`` until released;
    ``waits`` until it goes by itself; ``unchecked``: only Slurm says so, the data here cannot tell.

    ``code`` is Slurm's reason. ``limit``, ``asked`` and ``used`` in the unit of ``tres`` as in ``Verdict``; None: not known.
    """

    code: str
    standing: Standing
    text: str
    fix: str
    scope: str | None = None
    tres: str | None = None
    limit: float | None = None
    asked: float | None = None
    used: float | None = None
    release: Release | None = None

    @property
    def title(self) -> str:
        """A few words."""
        own = {"NextPass": _("Nothing found that keeps it"), "BadConstraints": _("No node can ever hold it")}
        return own.get(self.code) or explain_reason(self.code).title


@dataclass(frozen=True)
class Binding:
    """``constraints``: the binding one first; the others come to light when it is gone. ``agreement`` with Slurm's reason:
    the ``same`` code, of the same ``kind`` of wait, or it ``differs`` (``explained`` says why that can be)."""

    constraints: tuple[Constraint, ...]
    ahead: Ahead | None
    agreement: Agreement
    explained: str


@dataclass(frozen=True)
class _Case:
    policy: Policy
    usage: Usage
    snapshot: Snapshot
    row: dict[str, Any]
    request: Request
    moment: datetime
    shares: Callable[[], Shares]
    viewer: Viewer


def binding(
    policy: Policy, usage: Usage, snapshot: Snapshot, row: dict[str, Any], request: Request, shares: Callable[[], Shares], viewer: Viewer
) -> Binding:
    """Of a pending record of the snapshot. ``shares`` is called only where a release time is worked out."""
    moment = snapshot.moment or policy.at
    full = request.merged(
        constraint=row["constraints"], reservation=row["reservation"], licenses=row["licenses"], user=row["user"], account=row["account"]
    )
    case = _Case(policy, usage, snapshot, row, full, moment, shares, viewer)
    ahead = ahead_of(snapshot, policy, row, viewer)
    found = [*_own(case), *_rules(case)]
    if not any(c.standing in ("never", "held") for c in found) and not any(c.code in ("Dependency", "BeginTime") for c in found):
        told = {c.code for c in found}  # with no usable node the rules have said so already
        found += [c for c in _place(case, ahead, bool(found)) if c.standing != "unchecked" or c.code not in told]
    found = sorted(found, key=lambda c: {"never": 0, "held": 0}.get(c.standing, 1))
    slurm = row["reason"] or "None"
    lost = slurm in ("ReqNodeNotAvail", "Reservation") and [c.code for c in found] == ["NextPass"]  # a reservation not known here
    if slurm != "None" and not any(c.code == slurm for c in found) and (lost or _beyond(slurm)):
        found = [_word_only(slurm), *(c for c in found if not lost)]
    if slurm != "None" and found and found[0].standing == "unchecked" and not any(c.code == slurm for c in found):
        found.insert(0, _word_only(slurm))  # nothing here could be checked: Slurm's word is the better one
    agreement, explained = compare(slurm, tuple(found))
    return Binding(tuple(found), ahead, agreement, explained)


def _own(case: _Case) -> Iterator[Constraint]:
    """What lies in the job itself: holds, dependencies, begin time, array throttle."""
    row, slurm = case.row, case.row["reason"] or ""
    if row["priority"] == 0 or slurm in _HELD:
        info = explain_reason(slurm if slurm in _HELD or never_starts(slurm) else "JobHeldAdmin")
        yield Constraint(info.code, "held", info.meaning, info.todo)
    if row["dependency"] and row["dependency"] != "(null)":
        if slurm == "DependencyNeverSatisfied":
            info = explain_reason(slurm)
            yield Constraint(slurm, "never", info.meaning, info.todo)
        else:
            runs, waits, gone = dependencies(case.snapshot, row["dependency"])
            text = _("It waits for other jobs: {runs} run, {waits} wait, {gone} are not in the queue.").format(
                runs=runs, waits=waits, gone=gone
            )
            yield Constraint("Dependency", "waits", text, _("It becomes eligible when they end as the dependency asks."))
    elif row["eligible"] is not None and row["eligible"] > case.moment:
        yield Constraint("BeginTime", "waits", _("It asks not to begin before its begin time."), explain_reason("BeginTime").todo)
    if row["array_job_id"] and (row["array_throttle"] or slurm == "JobArrayTaskLimit"):
        yield from _throttle(case)


def _throttle(case: _Case) -> Iterator[Constraint]:
    """The array's own limit (--array=...%N). Tasks that are parted from their array no longer show it: then Slurm's word counts."""
    row = case.row
    tasks = [r for r in case.snapshot.rows if r["array_job_id"] == row["array_job_id"]]
    running = [r for r in tasks if r["state"] in RUNNING]
    limit = row["array_throttle"] or max((r["array_throttle"] or 0 for r in tasks), default=0) or None
    if limit is not None and len(running) < limit:
        return
    if limit is None:
        text = ngettext("{n} task of the array runs.", "{n} tasks of the array run.", len(running)).format(n=len(running))
        text += " " + _("Slurm says that it allows no more at a time (the % in --array); the number is not shown for single tasks.")
    else:
        text = ngettext("{n} task of the array runs", "{n} tasks of the array run", len(running)).format(n=len(running))
        text += ", " + _("and the array allows {limit} at a time (the % in --array).").format(limit=limit)
    fix = _("Raise it: scontrol update JobId={job} ArrayTaskThrottle=N").format(job=row["array_job_id"])
    free = release(running, lambda r: 1.0, "jobs", 1, case.moment, case.shares(), case.viewer)
    standing: Standing = "waits" if limit is not None else "unchecked"
    yield Constraint("JobArrayTaskLimit", standing, text, fix, _("the array"), "jobs", limit, 1, len(running), free)


def _rules(case: _Case) -> Iterator[Constraint]:
    for v in verdicts(case.policy, case.request, case.usage, without=case.row["job_id"]):
        standing: Standing = "waits" if v.kind == "waits" else "never"
        free = _limit_release(case, v) if standing == "waits" and v.used is not None and v.limit is not None else None
        yield Constraint(v.code, standing, v.text, v.fix, v.scope, v.tres, v.limit, v.asked, v.used, free)


def _limit_release(case: _Case, v: Verdict) -> Release | None:
    if v.tres is None or v.limit is None or v.used is None or v.tres.endswith("_mins"):
        return None
    rule = case.policy.partition(v.partition)
    level = next((x for x in levels_of(case.policy, case.request, rule) if x.scope == v.scope), None)
    if level is None:
        return None
    scope, tres = _counted(case, v, level), v.tres
    held = {j.job_id: (1.0 if tres == "jobs" else float(j.tres.get(tres, 0))) for j in case.usage.jobs if j.running and scope.holds(j)}
    rows = [r for r in case.snapshot.rows if r["job_id"] in held and r["state"] in RUNNING]
    need = v.used + (v.asked or 0) - v.limit
    return release(rows, lambda r: held[r["job_id"]], tres, need, case.moment, case.shares(), case.viewer)


def _counted(case: _Case, v: Verdict, level: Level) -> Scope:
    """Whose jobs count against the limit that was broken."""
    if level.owner == "qos" and "PerUser" in v.code:
        return Scope(user=case.request.user, qos=level.group.qos)
    if level.owner == "qos" and v.code.endswith("PerAccount"):
        return Scope(accounts=frozenset({(case.request.account or "").casefold()}), qos=level.group.qos)
    return level.group


def _place(case: _Case, ahead: Ahead | None, limited: bool) -> list[Constraint]:
    """Jobs before it, and whether what it asks for is free together."""
    out = []
    room, text, free = _room(case)
    if ahead is not None and ahead.shared:
        total = ahead.total
        told = ngettext(
            "{n} waiting record stands above it for the same nodes.", "{n} waiting records stand above it for the same nodes.", total.jobs
        ).format(n=total.jobs)
        if room is True:
            told += " " + _("What it asks for is free right now, but may be kept for them; a shorter time limit can slip in before.")
        out.append(Constraint("Priority", "waits", told, explain_reason("Priority").todo))
    if room is False:
        out.append(Constraint("Resources", "waits", text, explain_reason("Resources").todo, release=free))
    elif room is None and not out:
        out.append(Constraint("Resources", "unchecked", text, _("Let queuecast collect read the nodes (scontrol show node).")))
    elif not out and not limited and ahead is not None:
        told = _("By the data here nothing keeps it: it is first in line and fits on free nodes. It may start at Slurm's next pass.")
        out.append(Constraint("NextPass", "waits", told, _("Look again in a few minutes.")))
    if case.row["reason"] in ("Resources", "ReqNodeNotAvail"):  # Slurm has tried to place it: of the two, room is what fails first
        out.reverse()
    return out


def _room(case: _Case) -> tuple[bool | None, str, Release | None]:
    """Whether enough nodes have it free together (None: not told), in words, and when the node count is reached."""
    request, most_text = case.request, ""
    each = max(1, request.nodes)
    per = {"gpu": math.ceil(request.gpus / each), "cpu": math.ceil(request.cpus / each), "mem": (request.mem_bytes or 0) / each}
    kind = request.gpu_type
    free_all: list[NodeShape] = []
    seen: dict[str, NodeShape] = {}
    for name in request.partitions:
        seen |= {n.name: n for n in fitting_nodes(case.policy, request, name) if n.available}
    if not seen:
        return None, _("Which nodes could hold it is not known: no reading of nodes, or none of them is usable."), None
    until = case.moment + timedelta(seconds=max(1, request.limit_s or 0))
    others = [r for r in case.policy.reservations if r.covers(case.moment, until) and r.name != request.reservation]
    kept = {n for r in others for n in r.nodes}
    usable = [n for n in seen.values() if n.name not in kept]
    if per["gpu"] and any(n.idle_gpus(kind) is None for n in usable):
        return None, _("How many GPUs are in use is not told by the nodes' readings."), None
    largest = max((n.idle_gpus(kind) or 0 for n in usable), default=0)
    free_all = [n for n in usable if _holds(n, per, kind)]
    if len(free_all) >= each:
        return True, "", None
    if per["gpu"] and largest < per["gpu"]:
        most_text = _("No node has {asked} {kind} free together (largest block {most}).").format(
            asked=per["gpu"], kind=f"{kind} GPU" if kind else "GPU", most=largest
        )
    else:
        most_text = _("{free} of {asked} nodes have free what it asks for.").format(free=len(free_all), asked=each)
    free = None
    if each == 1 and per["gpu"]:
        free = _node_release(case, usable, int(per["gpu"]))
    return False, most_text, free


def _holds(node: NodeShape, per: dict[str, float], kind: str | None) -> bool:
    def idle(total: int | None, used: int | None) -> float:
        return math.inf if total is None or used is None else total - used

    return (
        (not per["gpu"] or (node.idle_gpus(kind) or 0) >= per["gpu"])
        and idle(node.cpus, node.cpus_alloc) >= per["cpu"]
        and idle(node.mem_bytes, node.mem_alloc_bytes) >= per["mem"]
    )


def _node_release(case: _Case, nodes: list[NodeShape], need: int) -> Release | None:
    """The node on which the GPUs are soonest free together, by the median-like late bound of the jobs on it."""
    best: Release | None = None
    jobs = {j.job_id: j for j in case.usage.jobs if j.running}
    rows = [r for r in case.snapshot.rows if r["job_id"] in jobs and r["state"] in RUNNING]
    for node in nodes:
        here = [r for r in rows if node.name in jobs[r["job_id"]].nodes]

        def gpus(row: dict[str, Any]) -> float:
            job = jobs[row["job_id"]]
            return job.tres.get("gres/gpu", 0) / max(1, len(job.nodes))

        idle = node.idle_gpus(case.request.gpu_type) or 0
        found = release(here, gpus, "gres/gpu", need - idle, case.moment, case.shares(), case.viewer)
        if found is not None and found.latest is not None and (best is None or best.latest is None or found.latest < best.latest):
            best = found
    return None if best is None else replace(best, tres="gres/gpu")


def _beyond(slurm: str) -> bool:
    """Reasons that rest on what no table here holds: licences, burst buffers, Slurm's own state, accrued budgets."""
    kind = explain_reason(slurm).wait_class
    return slurm == "Licenses" or kind in ("system", "ended") or "Minutes" in slurm


def _word_only(slurm: str) -> Constraint:
    info = explain_reason(slurm)
    standing: Standing = "never" if info.permanence == "yes" else "unchecked"
    return Constraint(slurm, standing, info.meaning, info.todo)


def compare(slurm: str, found: tuple[Constraint, ...]) -> tuple[Agreement, str]:
    """How what was found stands to Slurm's reason (``None``: it shows none), and why that can be, in words."""
    if slurm == "None":
        return "unchecked", _("Slurm shows no reason: it has not looked at the job yet.")
    if not found:
        return "unchecked", _("The data here show nothing that keeps it; Slurm shows {reason}.").format(reason=slurm)
    first = found[0]
    if first.code == slurm:
        return ("unchecked" if first.standing == "unchecked" else "same"), ""
    theirs, ours = explain_reason(slurm).wait_class, explain_reason(first.code).wait_class
    told = _("Slurm shows {reason} ({title}).").format(reason=slurm, title=explain_reason(slurm).title)
    if any(c.code == slurm for c in found):
        return "kind", told + " " + _("That holds too; Slurm shows one reason at a time.")
    if {theirs, ours} <= {"priority", "resources", "none"}:
        more = _("Both mean that it waits for its turn: Slurm calls the first job in line Resources and those behind it Priority.")
        return "kind", f"{told} {more}"
    if theirs == ours:
        return "kind", told + " " + _("It is a limit of the same kind; which one is named depends on the order of Slurm's checks.")
    if ours == "limit" and theirs in ("priority", "resources"):
        more = _("A job behind others is not tested against limits, so the limit shows only later.")
        return "differs", f"{told} {more}"
    if "Submit" in slurm:
        more = _("That limit is on submissions; it is not checked here for a job that is in the queue already.")
        return "differs", f"{told} {more}"
    if theirs == "limit" and slurm not in ("JobArrayTaskLimit",):
        more = _(
            "By the last snapshots that limit has room. Slurm keeps such a reason on a job that others stand before, until it looks again."
        )
        return "differs", f"{told} {more}"
    more = _("Slurm's reason is of its last test of the job and may be stale; or the state changed between the readings.")
    return "differs", f"{told} {more}"
