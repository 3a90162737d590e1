"""Why a job waits, and the queue, as text."""

from __future__ import annotations

from queuecast.answers.explain import WhyAnswer
from queuecast.answers.queue import QueueNow
from queuecast.i18n import _
from queuecast.render.wait import LABEL, describe, for_job
from queuecast.render.words import moment, safe, span, wrapped


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
    info = answer.reason
    lines += ["", *_block(_("why") if answer.pending else _("was"), f"{info.title} ({info.code})", width)]
    lines += _block("", info.meaning, width)
    if answer.reason_text and answer.reason_text != info.code:
        lines += _block(_("Slurm"), safe(answer.reason_text), width)
    if answer.pending:
        for i, step in enumerate(info.steps):
            lines += _block(_("to do") if i == 0 else "", for_job(step, job.text), width)
        if info.ends_by:
            lines += _block(_("ends"), info.ends_by, width)
    if answer.history:
        lines += ["", _("history of reasons, as the snapshots saw them")]
        lines += [
            f"  {moment(s.first, answer.at, zone):<22}{span((s.last - s.first).total_seconds()):>12}  {s.title} ({s.reason})"
            for s in answer.history
        ]
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
