"""What keeps a waiting job now, found from the configuration and the last snapshots, not from Slurm's word alone."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from queuecast.answers.explaining.constraint import Case, Constraint, Standing
from queuecast.answers.explaining.licences import asked_licences
from queuecast.answers.explaining.queue import Ahead, Snapshot, ahead_of, dependencies
from queuecast.answers.explaining.release import Release, Shares, release
from queuecast.answers.explaining.rules import budgets, licences, rules, submitted, together
from queuecast.answers.viewer import Viewer
from queuecast.errors import ParseError
from queuecast.i18n import _, ngettext
from queuecast.policy.codes import COUNT_CODES, TRES_CODES
from queuecast.policy.shapes import fitting_nodes
from queuecast.policy.usage import RUNNING, Usage
from queuecast.reasons import explain_reason, never_starts
from queuecast.slurmtext.hostlist import expand_hostlist

if TYPE_CHECKING:
    from collections.abc import Callable

    from queuecast.answers.explaining.budget import Spent
    from queuecast.policy.request import Request
    from queuecast.policy.tables import NodeShape, Policy

__all__ = ["Agreement", "Binding", "Constraint", "Standing", "binding", "compare"]

Agreement = Literal["same", "kind", "differs", "unchecked"]

_UNAVAILABLE = re.compile(r"UnavailableNodes:\s*([^\s()]+)")
_HELD_AGAINST = frozenset({*TRES_CODES.values(), *COUNT_CODES.values(), "JobArrayTaskLimit"})
"""Limits that are looked at here; of any other, that it has room cannot be said."""
_HELD = ("JobHeldUser", "JobHeldAdmin", "RequeueHold", "SpecialExit")


@dataclass(frozen=True)
class Binding:
    """``constraints``: the binding one first; the others come to light when it is gone. ``agreement`` with Slurm's reason:
    the ``same`` code, of the same ``kind`` of wait, or it ``differs`` (``explained`` says why that can be)."""

    constraints: tuple[Constraint, ...]
    ahead: Ahead | None
    agreement: Agreement
    explained: str


def binding(
    policy: Policy, usage: Usage, snapshot: Snapshot, row: dict[str, Any], request: Request, shares: Callable[[], Shares], viewer: Viewer,
    spent: Spent | None = None,
) -> Binding:  # fmt: skip
    """Of a pending record of the snapshot. ``shares`` is called only where a release time is worked out, ``spent`` only where a
    budget of used minutes holds (None: use is not known)."""
    moment = snapshot.moment or policy.at
    full = request.merged(
        constraint=row["constraints"], reservation=row["reservation"], licenses=row["licenses"], user=row["user"], account=row["account"]
    )
    case = Case(policy, usage, snapshot, row, full, moment, shares, viewer, spent or (lambda _level, _tres: None))
    ahead = ahead_of(snapshot, policy, row, viewer)
    found = [*_own(case), *rules(case), *together(case), *budgets(case), *licences(case), *submitted(case)]
    if not any(c.standing in ("never", "held") for c in found) and not any(
        c.code in ("Dependency", "BeginTime", "Reservation") for c in found
    ):
        told = {c.code for c in found}  # with no usable node the rules have said so already
        found += [c for c in _place(case, ahead, bool(found)) if c.standing != "unchecked" or c.code not in told]
    gone = _gone_nodes(case)
    if gone is not None and all(c.code != gone.code for c in found):
        found = [gone, *(c for c in found if c.code != "NextPass")]
    found = sorted(found, key=lambda c: {"never": 0, "held": 0}.get(c.standing, 1))
    slurm = row["reason"] or "None"
    lost = slurm in ("ReqNodeNotAvail", "Reservation") and [c.code for c in found] == ["NextPass"]  # a reservation not known here
    if slurm != "None" and not any(c.code == slurm for c in found) and (lost or _beyond(case, slurm)):
        found = [_word_only(slurm), *(c for c in found if not lost)]
    if slurm != "None" and found and found[0].standing == "unchecked" and not any(c.code == slurm for c in found):
        found.insert(0, _word_only(slurm))  # nothing here could be checked: Slurm's word is the better one
    agreement, explained = compare(slurm, tuple(found))
    return Binding(tuple(found), ahead, agreement, explained)


def _own(case: Case) -> Iterator[Constraint]:
    """What lies in the job itself: holds, dependencies, begin time, array throttle."""
    row, slurm = case.row, case.row["reason"] or ""
    if row["priority"] == 0 or slurm in _HELD:
        info = explain_reason(slurm if slurm in _HELD or never_starts(slurm) else "JobHeldAdmin")
        yield Constraint(info.code, "held", info.meaning, info.todo)
    if row["dependency"] and row["dependency"] != "(null)":
        if slurm == "DependencyNeverSatisfied" or never_met(row["dependency"]):
            info = explain_reason("DependencyNeverSatisfied")
            yield Constraint(info.code, "never", info.meaning, info.todo)
        else:
            runs, waits, gone = dependencies(case.snapshot, row["dependency"])
            text = _("It waits for other jobs: {runs} run, {waits} wait, {gone} are not in the queue.").format(
                runs=runs, waits=waits, gone=gone
            )
            yield Constraint("Dependency", "waits", text, _("It becomes eligible when they end as the dependency asks."))
    elif row["eligible"] is not None and row["eligible"] > case.moment:
        text = _("It asks not to begin before its begin time.")
        yield Constraint("BeginTime", "waits", text, explain_reason("BeginTime").todo, release=_then(row["eligible"]))
    yield from _reserved(case)
    if row["array_job_id"] and (row["array_throttle"] or slurm == "JobArrayTaskLimit"):
        yield from _throttle(case)


def never_met(dependency: str) -> bool:
    """Whether a dependency as squeue prints it (``afterok:7(failed)``) can never be met: one of those that must all hold has failed,
    or all of those of which one would do (``?``)."""
    if "?" in dependency:
        return all("(failed)" in part for part in dependency.split("?"))
    return any("(failed)" in part for part in dependency.split(","))


def _then(moment: datetime | None) -> Release | None:
    """A moment at which it goes by itself."""
    return None if moment is None else Release("time", 0, 0, None, moment, moment, moment, 0)


def _reserved(case: Case) -> Iterator[Constraint]:
    """The reservation that the job itself asks for."""
    own = case.own_reservation
    if own is None:
        return
    if not own.admits(case.request.user, case.request.account):
        text = _("Reservation {name} does not admit this user or account.").format(name=own.name)
        yield Constraint("Reservation", "never", text, _("Ask to be added to it, or submit without --reservation."))
    elif own.start is not None and own.start > case.moment:
        text = _("It asks to run in reservation {name}, which has not begun.").format(name=own.name)
        fix = _("It can start when the reservation begins; without --reservation it may start elsewhere before.")
        yield Constraint("Reservation", "waits", text, fix, _("reservation {name}").format(name=own.name), release=_then(own.start))


def _gone_nodes(case: Case) -> Constraint | None:
    """The nodes that Slurm says are not available, where the nodes' own states agree."""
    found = _UNAVAILABLE.search(case.row["reason_text"] or "")
    if case.row["reason"] != "ReqNodeNotAvail" or found is None:
        return None
    try:
        named = frozenset(expand_hostlist(found[1].strip(" ()")) or ())
    except ParseError:
        return None
    nodes = [n for n in case.policy.nodes if n.name in named]
    if not nodes or any(n.available for n in nodes):
        return None
    told = ", ".join(f"{n.name} ({' '.join([n.state, *sorted(n.flags)]).lower()})" for n in nodes[:4]) + (" ..." if len(nodes) > 4 else "")
    text = _("It may only run on nodes of which these take no jobs now: {nodes}.").format(nodes=told)
    return Constraint("ReqNodeNotAvail", "waits", text, explain_reason("ReqNodeNotAvail").todo)


def _throttle(case: Case) -> Iterator[Constraint]:
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
    free = release(running, lambda r: 1.0, "jobs", 1, case.moment, case.shares(), case.viewer, "array")
    standing: Standing = "waits" if limit is not None else "unchecked"
    yield Constraint("JobArrayTaskLimit", standing, text, fix, _("the array"), "jobs", limit, 1, len(running), free)


def _place(case: Case, ahead: Ahead | None, limited: bool) -> list[Constraint]:
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


def _room(case: Case) -> tuple[bool | None, str, Release | None]:
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
    own = case.own_reservation
    usable = [n for n in seen.values() if n.name not in kept and (own is None or not own.nodes or n.name in own.nodes)]
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
    free = _node_release(case, usable, per) if each == 1 else None
    return False, most_text, free


def _holds(node: NodeShape, per: dict[str, float], kind: str | None) -> bool:
    def idle(total: int | None, used: int | None) -> float:
        return math.inf if total is None or used is None else total - used

    return (
        (not per["gpu"] or (node.idle_gpus(kind) or 0) >= per["gpu"])
        and idle(node.cpus, node.cpus_alloc) >= per["cpu"]
        and idle(node.mem_bytes, node.mem_alloc_bytes) >= per["mem"]
    )


def _node_release(case: Case, nodes: list[NodeShape], per: dict[str, float]) -> Release | None:
    """The node on which what is missing is soonest free together (GPUs, else CPUs), by the late bound of the jobs on it."""
    best: Release | None = None
    tres = "gres/gpu" if per["gpu"] else "cpu"
    jobs = {j.job_id: j for j in case.usage.jobs if j.running}
    rows = [r for r in case.snapshot.rows if r["job_id"] in jobs and r["state"] in RUNNING]
    for node in nodes:
        here = [r for r in rows if node.name in jobs[r["job_id"]].nodes]

        def share(row: dict[str, Any]) -> float:
            job = jobs[row["job_id"]]
            return job.tres.get(tres, 0) / max(1, len(job.nodes))

        idle = node.idle_gpus(case.request.gpu_type) or 0 if per["gpu"] else (node.cpus or 0) - (node.cpus_alloc or 0)
        need = (per["gpu"] or per["cpu"]) - idle
        found = release(here, share, tres, need, case.moment, case.shares(), case.viewer)
        if found is not None and found.latest is not None and (best is None or best.latest is None or found.latest < best.latest):
            best = found
    return best


def _beyond(case: Case, slurm: str) -> bool:
    """Reasons that rest on what the data here do not hold: licences of a server, burst buffers, Slurm's own state, budgets whose use is
    not known (or not from their beginning)."""
    kind = explain_reason(slurm).wait_class
    if slurm == "Licenses":
        asked = asked_licences(case.policy, case.snapshot, case.row)
        return not asked or any(one.short is None for one in asked)
    if kind == "limit" and slurm not in _HELD_AGAINST:
        return True
    return kind in ("system", "ended") or ("Minutes" in slurm and "Run" not in slurm)


def _word_only(slurm: str) -> Constraint:
    info = explain_reason(slurm)
    standing: Standing = "never" if info.permanence == "yes" else "unchecked"
    text = info.meaning
    if slurm == "Licenses":
        text += " " + _("How many there are is not known here: only licences of slurm.conf are counted (scontrol show license tells).")
    return Constraint(slurm, standing, text, info.todo)


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
