"""Where and when the copy runs: not on a node that failed, not where it is preempted, without a dependency that cannot be met."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from queuecast.answers.retries.plan import Case, Plan
from queuecast.errors import ParseError
from queuecast.i18n import _
from queuecast.policy.shapes import fitting_nodes, hosts
from queuecast.policy.tables import QosRule
from queuecast.slurmtext.hostlist import expand_hostlist, fold_hosts

MOST_EXCLUDED: Final = 16
_ITEM = re.compile(r"(after\w*):(.+)\Z")
_JOB = re.compile(r"(\d+)(?:_(?:\d+|\*))?(?:\+\d+)?\Z")

Lookup = Callable[[str], tuple[str | None, str | None]]
"""Id of a job to its state (None: not known) and the id of the job that replaces it (None: none known)."""


def away_from_nodes(case: Case, plan: Plan) -> None:
    """``--exclude`` of the node at fault, beside those excluded already; a bounded list that leaves enough nodes."""
    names = case.nodes_at_fault
    allocated = _hosts(case.row["node_list"])
    if not names and len(allocated) == 1:
        names = allocated
    if not names:
        plan.notes.append(_("Which of its {n} nodes failed is not known: none is excluded.").format(n=len(allocated)))
        return
    earlier = [n for n in _hosts(case.options.get("exclude")) if n not in names]
    if len(earlier) + len(names) > MOST_EXCLUDED:
        plan.notes.append(_("More than {n} nodes would be excluded: the oldest of the list are let in again.").format(n=MOST_EXCLUDED))
    kept = [*earlier, *names][-MOST_EXCLUDED:]
    text = fold_hosts(kept)
    if case.policy.nodes and case.request.partitions:
        fitting = fitting_nodes(case.policy, replace(case.request, exclude=text), case.request.partitions[0])
        if len(fitting) < max(1, case.request.nodes):
            plan.notes.append(_("Without {names} too few nodes would be left: it is not excluded.").format(names=fold_hosts(names)))
            return
    if set(_hosts(case.options.get("nodelist"))) & set(names):
        plan.change("nodelist", case.options.get("nodelist"), None, _("it names the node that failed"))
    plan.change("exclude", case.options.get("exclude"), text, _("the node failed under the job ({names})").format(names=fold_hosts(names)))


def against_preemption(case: Case, plan: Plan) -> None:
    """``--requeue``, so that Slurm puts it back by itself; where it had that, a QOS that is not preempted."""
    site = case.policy.settings.get("jobrequeue", "").strip()
    by_default = site == "1" and "no-requeue" not in case.options
    qos = case.policy.qos_rule(case.request.qos)
    rule = case.rule
    mode = (
        (qos.preempt_mode if qos else None) or (rule.preempt_mode if rule else None) or case.policy.settings.get("preemptmode", "")
    ).upper()
    cancels = "CANCEL" in mode and "REQUEUE" not in mode
    if cancels or "requeue" in case.options or by_default:
        safe = _not_preempted(case)
        if safe is not None:
            plan.change("qos", case.options.get("qos"), safe.name, _("jobs with QOS {name} are not preempted").format(name=safe.name))
            return
        plan.notes.append(_("No QOS that it may use is spared from preemption: it may happen again. Let it save often."))
        if cancels:
            return
    if "no-requeue" in case.options:
        plan.change("no-requeue", "", None, _("a preempted job is only put back if it may be requeued"))
    plan.change("requeue", case.options.get("requeue"), "", _("Slurm then puts a preempted job back into the queue by itself"))


def _not_preempted(case: Case) -> QosRule | None:
    """The QOS of least priority that no other QOS may preempt and that the job may use; None where preemption is not by QOS."""
    if "qos" not in case.policy.settings.get("preempttype", "").lower():
        return None
    preempted = {name for q in case.policy.qos.values() for name in q.preempt}
    return next((q for q in case.other_qos(case.request) if q.name.casefold() not in preempted), None)


def dependency(case: Case, plan: Plan, lookup: Lookup) -> None:
    """Of ``--dependency`` keep what can still be met: jobs that failed are replaced by the ones that followed them."""
    text = case.options.get("dependency")
    started = case.row["start"] is not None
    if not text:
        if case.row["reason"] and str(case.row["reason"]).startswith("Dependency"):
            plan.notes.append(_("It waited for other jobs; for which is not in the script or the command line."))
        return
    if started:
        plan.change("dependency", text, None, _("it was met: the job had started"))
        return
    mark = "?" if "?" in text else ","
    kept: list[str] = []
    lost: list[str] = []
    for item in re.split("[,?]", text):
        parts = _ITEM.match(item.strip())
        if parts is None:  # singleton, or something newer: it depends on no job that could have failed
            kept.append(item.strip())
            continue
        ids, gone = _still(parts[1], parts[2].split(":"), lookup)
        kept += [f"{parts[1]}:{':'.join(ids)}"] if ids else []
        lost += gone
    if lost:
        plan.blocked = _("It needs jobs that did not end as asked: {ids}. Without them it would run on nothing.").format(
            ids=", ".join(lost)
        )
        plan.mend.append(
            _("Retry those first, submit them, and give their new ids here: --dependency={kind}:ID").format(
                kind=text.partition(":")[0] or "afterok"
            )
        )
    new = mark.join(k for k in kept if k) or None
    plan.change("dependency", text, new, _("only what can still be met is kept") if new else _("what it waited for is over"))


def _still(kind: str, ids: Iterable[str], lookup: Lookup) -> tuple[list[str], list[str]]:
    """Ids to keep (or their successors), and those that cannot be met any more."""
    kept: list[str] = []
    lost: list[str] = []
    for word in ids:
        job, plus, delay = word.partition("+")
        if not _JOB.match(job):
            kept.append(word)
            continue
        state, successor = lookup(job)
        over = state is not None and state not in ("PENDING", "RUNNING", "SUSPENDED")
        if state is None or not over:
            kept.append(word)  # not known, or it may still end well
        elif kind in ("afterok", "aftercorr") and state != "COMPLETED":
            if successor is not None:
                kept.append(f"{successor}{plus}{delay}")
            else:
                lost.append(job)
        elif kind == "afternotok" and state == "COMPLETED":
            lost.append(job)
    return kept, lost


def failed_tasks(case: Case, plan: Plan, tasks: Iterable[Mapping[str, Any]], script: str) -> None:
    """``--array`` with the given tasks only; a limit on how many run at once is kept."""
    numbers = sorted({t["array_task"] for t in tasks if t["array_task"] is not None})
    if not numbers:
        return
    before = case.options.get("array")
    throttle = (before or "").partition("%")[2]
    if not throttle and case.row["array_throttle"]:
        throttle = str(case.row["array_throttle"])
    text = _ranges(numbers) + (f"%{throttle}" if throttle.isdigit() else "")
    plan.change("array", before, text, _("only the tasks that failed"))
    used = [v for v in ("SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_MAX") if v in script]
    if used:
        plan.notes.append(_("The script uses {names}, which differ in the copy: look whether that matters.").format(names=", ".join(used)))


def _ranges(numbers: list[int]) -> str:
    out: list[str] = []
    start = last = numbers[0]
    for n in [*numbers[1:], None]:
        if n is not None and n == last + 1:
            last = n
            continue
        out += [str(start)] if start == last else [str(start), str(last)] if last == start + 1 else [f"{start}-{last}"]
        start = last = n if n is not None else last
    return ",".join(out)


def _hosts(text: str | None) -> tuple[str, ...]:
    try:
        return tuple(dict.fromkeys(expand_hostlist(text or "") or ()))
    except ParseError:
        return tuple(sorted(hosts(text)))
