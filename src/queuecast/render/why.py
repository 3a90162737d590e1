"""Why a job waits, and the queue, as text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from queuecast.answers.explaining.explain import WhyAnswer
from queuecast.answers.explaining.limits import shown, what_of
from queuecast.answers.queue import QueueNow
from queuecast.i18n import _, ngettext
from queuecast.policy.amounts import amount
from queuecast.render.wait import LABEL, describe, for_job
from queuecast.render.whychanges import changes_lines
from queuecast.render.words import moment, percent, safe, span, wrapped

if TYPE_CHECKING:
    from queuecast.answers.explaining.binding import Binding
    from queuecast.answers.explaining.history import Event
    from queuecast.answers.explaining.priority import Priority
    from queuecast.answers.explaining.release import Release


def why_lines(answer: WhyAnswer, zone: str, width: int = 100) -> list[str]:
    """Lines of text; times in ``zone``."""
    job = answer.job
    lines = [
        f"{_('job {job}').format(job=safe(job.text))}: {describe(job.request)}",
        f"{job.state.lower()} · {_('submitted')} {moment(job.submit, answer.at, zone)} · "
        f"{_('eligible')} {moment(job.eligible, answer.at, zone)}",
    ]
    if job.start is not None:
        lines[-1] += f" · {_('started')} {moment(job.start, answer.at, zone)}"
    lines += [""]
    if answer.binding is not None and answer.binding.constraints:
        lines += _binding(answer, answer.binding, zone, width)
    else:
        lines += _slurm(answer, width)
    for text in answer.unknown:
        lines += _block(_("unknown"), text, width)
    if answer.changes is not None:
        lines += ["", *changes_lines(answer.changes, width)]
    if answer.priority is not None:
        lines += ["", *_priority(answer, answer.priority, zone, width)]
    if answer.events:
        lines += ["", *wrapped(_legend(answer.events), width, 0)]
        estimates = [e for e in answer.events if e.kind == "estimate"]
        recent = [e for e in answer.events if e.kind != "estimate" or e in estimates[-MOST_ESTIMATES:]][-MOST_EVENTS:]
        hidden = len(answer.events) - len(recent)
        if hidden > 0:
            lines.append("  " + _("... {n} earlier ones or estimates left out: --json").format(n=hidden))
        for event in recent:
            first, *rest = wrapped(_told(event, answer, zone) + _until(event, answer, zone), width - 25, 0)
            mark = " " if event.exact else "~"
            lines += [f"  {mark}{moment(event.at, answer.at, zone):<22}{first}", *(" " * 25 + line for line in rest)]
    return lines


MOST_EVENTS = 24
MOST_ESTIMATES = 5


def _legend(events: tuple[Event, ...]) -> str:
    """How exact the times are."""
    gaps = [(e.at - e.after).total_seconds() for e in events if not e.exact and e.after is not None]
    if not any(not e.exact for e in events):
        return _("history")
    if not gaps:
        return _("history (~: first seen in a snapshot then, it may have happened before)")
    return _("history (~: first seen in a snapshot then; it happened up to {gap} earlier)").format(gap=span(max(gaps)))


def _told(event: Event, answer: WhyAnswer, zone: str) -> str:
    if event.kind != "estimate" or event.value is None:
        return safe(event.text)
    return _("Slurm expects the start {time}").format(time=moment(event.value, answer.at, zone))


def _until(event: Event, answer: WhyAnswer, zone: str) -> str:
    if event.until is None or event.until == event.at:
        return ""
    return ", " + _("seen until {time}").format(time=moment(event.until, answer.at, zone))


def _slurm(answer: WhyAnswer, width: int) -> list[str]:
    info = answer.reason
    lines = _block(_("why") if answer.pending else _("was"), f"{info.title} ({info.code})", width)
    lines += _block("", info.meaning, width)
    if answer.reason_text and answer.reason_text != info.code:
        lines += _block(_("Slurm"), safe(answer.reason_text), width)
    if answer.pending:
        for i, step in enumerate(info.steps):
            lines += _block(_("to do") if i == 0 else "", for_job(step, answer.job.text), width)
        if info.ends_by:
            lines += _block(_("ends"), info.ends_by, width)
    return lines


def standing_words(standing: str) -> str:
    """How a constraint stands."""
    return {"never": _("never starts as it is"), "held": _("held until released"), "unchecked": _("not checked: Slurm's word")}.get(
        standing, _("waits")
    )


def release_words(free: Release, when: Callable[[datetime | None], str]) -> str:
    """When what is missing comes free; ``when`` writes a time."""
    if free.tres == "time":
        return _("It can go on from {time}.").format(time=when(free.earliest))
    if free.jobs == 0:  # a budget that only fades
        text = _("Not before {time}, if nothing that counts there runs until then: past use fades.")
        return text.format(time=when(free.earliest))
    n = int(free.amount)
    if free.gradual:
        told = _("Room for {amount} {what} more: they fall as the jobs there run, if none starts, and are low enough").format(
            amount=shown(free.tres, free.amount), what=safe(what_of(free.tres))
        )
    else:
        told = f"{_freed(free, n)} {_when_end(free)}"
    if free.latest is None:
        return told + "; " + _("a time limit is missing, so when is not known.")
    between = _("expected {first} to {last}").format(first=when(free.earliest), last=when(free.latest))
    told += (" " if free.gradual else ", ") + between
    if free.like:
        return told + " " + _("(8 in 10 of {n} like jobs; by the limit: {limit}).").format(n=free.like, limit=when(free.by_limit))
    return told + " " + _("(by time limits alone: too few like jobs have ended).")


def _freed(free: Release, n: int) -> str:
    if free.tres == "jobs":
        return ngettext("room for {n} more job", "room for {n} more jobs", n).format(n=n)
    if free.tres == "gres/gpu":
        return ngettext("{n} GPU comes free", "{n} GPUs come free", n).format(n=n)
    if free.tres.startswith("gres/gpu:"):
        kind = safe(free.tres.partition(":")[2])
        return ngettext("{n} {kind} GPU comes free", "{n} {kind} GPUs come free", n).format(n=n, kind=kind)
    text = _("{amount} of {what} come free") if free.tres == "mem" else _("{amount} {what} come free")
    return text.format(amount=amount(free.tres, free.amount), what=safe(what_of(free.tres)))


def _when_end(free: Release) -> str:
    if free.jobs == 1:
        return _("when {job} ends").format(job=_one_job(free.job, free.kin))
    return ngettext("when {n} job ends", "when {n} jobs end", free.jobs).format(n=free.jobs)


def _one_job(job: str | None, kin: str) -> str:
    if job is not None:
        return _("job {job}").format(job=safe(job))
    kinds = {"own": _("a job of the same user"), "group": _("a job of your group"), "qos": _("a job with that QOS")}
    return kinds.get(kin, _("a job"))


def ending_words(free: Release, when: Callable[[datetime | None], str]) -> list[str]:
    """The jobs that end next, one by one, where more than one is needed."""
    if free.jobs < 2:
        return []
    out = []
    for entry in free.next:
        holds = _freed(replace(free, tres=free.tres.removesuffix("_mins"), amount=entry.amount), int(entry.amount))
        job = _one_job(entry.job, free.kin)
        if entry.latest is None:
            out.append(_("{job}: {holds}; it has no time limit").format(job=job, holds=holds))
        else:
            out.append(
                _("{job}: {holds}, expected {first} to {last}").format(
                    job=job, holds=holds, first=when(entry.earliest), last=when(entry.latest)
                )
            )
    if free.jobs > len(free.next) and out:
        out.append(_("and {n} more").format(n=free.jobs - len(free.next)))
    return out


def _binding(answer: WhyAnswer, found: Binding, zone: str, width: int) -> list[str]:
    first, *others = found.constraints
    lines = _block(_("why"), f"{first.title} ({first.code}): {standing_words(first.standing)}", width)
    lines += _block("", safe(first.text), width)
    if first.release is not None:
        lines += _block(_("free"), release_words(first.release, lambda t: moment(t, answer.at, zone)), width)
        for i, line in enumerate(ending_words(first.release, lambda t: moment(t, answer.at, zone))):
            lines += _block(_("next") if i == 0 else "", line, width)
    lines += _block(_("to do"), for_job(safe(first.fix), answer.job.text), width)
    for other in others:
        lines += _block(_("also"), f"{other.title} ({other.code}): {safe(other.text)}", width)
    if found.explained:
        lines += _block(_("Slurm"), found.explained, width)
    elif answer.reason_text and answer.reason_text != answer.reason.code:
        lines += _block(_("Slurm"), safe(answer.reason_text), width)
    ahead = found.ahead
    if ahead is None:
        return lines
    if ahead.shared:
        total = ahead.total
        lines += ["", _("ahead, for the same nodes")]
        lines.append(f"  {_('account'):<20}{_('jobs'):>7}{_('tasks'):>8}{'GPU':>7}{_('GPU-hours'):>11}")
        rows = [*ahead.shared, total] if len(ahead.shared) > 1 else list(ahead.shared)
        for row in rows:
            name = safe(row.account) if row.account else _("all") if row is total or len(rows) == 1 else "–"
            hours = "–" if row.gpu_hours is None else f"{row.gpu_hours:,.0f}"
            lines.append(f"  {name[:19]:<20}{row.jobs:>7}{row.tasks:>8}{_n(row.gpus):>7}{hours:>11}")
    else:
        lines += _block(_("ahead"), _("Nobody stands above it for the same nodes."), width)
    if ahead.limited or ahead.elsewhere:
        text = _("{limited} more stand above it but are held by limits; {elsewhere} are for other nodes.")
        lines += ["  " + t for t in wrapped(text.format(limited=ahead.limited, elsewhere=ahead.elsewhere), width - 2, 0)]
    return lines


def _priority(answer: WhyAnswer, found: Priority, zone: str, width: int) -> list[str]:
    seen = moment(found.seen_at, answer.at, zone)
    lines = [_("priority {total} (sprio, {time})").format(total=_n(found.total), time=seen)]
    for part in found.parts:
        share = percent(part.points / found.total) if found.total else ""
        most = _("of {most}").format(most=part.most) if part.most else ""
        lines.append(f"  {part.title:<22}{part.points:>8}  {most:<12}{share:>6}")
    for text in found.outlook:
        lines += ["  " + line for line in wrapped(text, width - 2, 0)]
    return lines


def _block(label: str, text: str, width: int) -> list[str]:
    first, *rest = wrapped(text, width - LABEL, 0)
    return [f"{label:<{LABEL}}{first}", *(" " * LABEL + line for line in rest)]


def queue_lines(answer: QueueNow, zone: str, width: int = 100, most: int = 30) -> list[str]:
    """What waits, why, and which GPUs are idle."""
    if answer.snapshot_at is None and answer.nodes_at is None:
        return [_("No snapshot of the queue in the three days before. Take one: queuecast collect")]
    tasks = sum(p.tasks for p in answer.pending)
    lines = [
        f"{safe(answer.cluster)} · {_('snapshot of')} {moment(answer.snapshot_at, answer.at, zone)} · "
        + _("{r} running, {p} pending ({t} tasks)").format(r=answer.running, p=len(answer.pending), t=tasks),
        "",
    ]
    if answer.gpus:
        lines.append(
            f"{_('GPU type'):<24}{_('total'):>7}{_('in use'):>8}{_('blocked'):>9}{_('idle'):>6}{_('largest block'):>15}{_('asked for'):>11}"
        )
        lines += [
            f"{safe(g.gpu_type):<24}{g.total:>7}{_n(g.in_use):>8}{g.blocked:>9}{_n(g.idle):>6}{_n(g.largest_block):>15}{g.asked_for:>11}"
            for g in answer.gpus
        ]
        lines.append("")
    if answer.reasons:
        lines.append(f"{_('why they wait'):<58}{_('jobs'):>7}{_('tasks'):>8}{'GPU':>7}")
        lines += [f"{(r.title + ' (' + r.reason + ')')[:57]:<58}{r.jobs:>7}{r.tasks:>8}{_n(r.gpus):>7}" for r in answer.reasons]
        lines.append("")
    if answer.pending:
        lines.append(f"{_('job'):<18}{_('user'):<12}{_('partition'):<12}{'GPU':>8}{_('waited'):>14}  {_('why')}")
        lines += [
            f"{safe(p.job_id)[:17]:<18}{safe(p.user)[:11]:<12}{safe(p.partition)[:11]:<12}{_gpu(p.gpus, p.gpu_type):>8}"
            f"{span(p.waited_s):>14}  {p.reason_title}"
            for p in answer.pending[:most]
        ]
        if len(answer.pending) > most:
            lines.append(_("... and {n} more: --all, or --json").format(n=len(answer.pending) - most))
    return lines


def _n(value: int | None) -> str:
    return "–" if value is None else str(value)


def _gpu(gpus: int | None, kind: str | None) -> str:
    return "–" if gpus is None else (f"{gpus} {safe(kind)}" if gpus and kind else str(gpus))
