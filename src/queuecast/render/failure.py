"""Why a job failed, and the failed jobs of a time, as text."""

from __future__ import annotations

import math
from datetime import datetime
from typing import TYPE_CHECKING

from queuecast.answers.failures.words import length
from queuecast.i18n import _, ngettext
from queuecast.reasons.failureclasses import TEXTS, TURNS
from queuecast.render.wait import LABEL
from queuecast.render.words import moment, percent, safe, span, wrapped
from queuecast.slurmtext.hostlist import fold_hosts

if TYPE_CHECKING:
    from queuecast.answers.failures.failure import FailureAnswer
    from queuecast.answers.failures.groups import FailureGroup
    from queuecast.answers.failures.joblogs import JobLogs
    from queuecast.answers.failures.table import FailureTable

MOST_JOBS = 30
LAST_LINES = 8


def failure_lines(answer: FailureAnswer, zone: str, width: int = 100) -> list[str]:
    """Lines of text; times in ``zone``."""
    job = answer.job
    shown = [_("job {job}").format(job=safe(job.text)), safe(job.name) if job.name else "", safe(job.partition) if job.partition else ""]
    lines = [" · ".join(s for s in shown if s), " · ".join(_story(answer, zone))]
    if answer.status in ("running", "pending"):
        return [*lines, "", _("It has not ended: nothing failed so far.")]
    if answer.status == "completed":
        lines += ["", _("It completed: nothing that is recorded failed.")]
        if job.earlier:
            lines.append(_("Attempts before it ended as: {states}").format(states=", ".join(s.lower() for s in job.earlier)))
        return lines
    failed = answer.failure_class
    if failed is None:  # pragma: no cover - the other statuses are answered above
        return lines
    lines += ["", *_block(_("why"), f"{answer.title} ({failed}), {_('confidence')} {percent(answer.confidence)}", width)]
    lines += _block("", answer.meaning, width)
    others = [(n, w) for n, w in sorted(answer.weights.items(), key=lambda p: -p[1]) if n != failed and w >= 0.1]
    if others:
        told = ", ".join(f"{TEXTS[name].title.lower()} {percent(weight)}" for name, weight in others)
        lines += _block("", _("else: {others}").format(others=told), width)
    if answer.turn is not None:
        lines += _block(_("turn"), _("the next step is {whose}").format(whose=_(TURNS[answer.turn])), width)
    if answer.failed_tasks is not None:
        text = _("{failed} of {ended} ended tasks of the array failed; this is about the first of them.")
        lines += _block(_("array"), text.format(failed=answer.failed_tasks, ended=answer.ended_tasks), width)
    lines += ["", *_evidence(answer, width)]
    if answer.group is not None:
        lines += ["", *_block(_("node"), group_text(answer.group, answer.at, zone), width)]
    lines.append("")
    for number, step in enumerate(answer.steps, 1):
        lines += _block(_("to do") if number == 1 else "", f"{number}. {safe(step)}", width)
    if answer.logs is not None:
        lines += _logs(answer.logs, answer.at, zone, width)
    for text in answer.unknown:
        lines += _block(_("unknown"), text, width)
    return lines


def _story(answer: FailureAnswer, zone: str) -> list[str]:
    job = answer.job
    out = [job.state.lower()]
    if job.exit_code is not None:
        out.append(_("exit {code}:{signal}").format(code=job.exit_code, signal="?" if job.exit_signal is None else job.exit_signal))
    if job.start is not None:
        out.append(_("started {time}").format(time=moment(job.start, answer.at, zone)))
    if job.end is not None:
        out.append(_("ended {time}").format(time=moment(job.end, answer.at, zone)))
    if job.elapsed_s is not None:
        out.append(_("ran {ran} of {limit}").format(ran=length(job.elapsed_s), limit=length(job.limit_s)))
    if job.node_list:
        out.append(safe(job.node_list)[:40])
    if answer.again:
        out.append(_("queued again since"))
    return out


def _evidence(answer: FailureAnswer, width: int) -> list[str]:
    lines = []
    for i, one in enumerate(answer.evidence):
        if one.source == "log":
            where = f"{safe(one.path)}:{one.number if one.number is not None else '…'}"
            lines += _block(_("evidence") if i == 0 else "", f"{one.text}: {where}", width)
            lines += [" " * LABEL + "  " + (safe(one.line) or "")[: max(20, width - LABEL - 2)]]
        else:
            lines += _block(_("evidence") if i == 0 else "", safe(one.text), width)
    return lines


def _logs(logs: JobLogs, at: datetime, zone: str, width: int) -> list[str]:
    lines: list[str] = [""]
    for file in logs.files:
        if file.problem is not None:
            lines += _block(_("log"), f"{safe(file.path)}: {file.problem}", width)
        else:
            written = moment(file.modified, at, zone)
            text = _("{path}, last written {time}").format(path=safe(file.path), time=written)
            if file.gap_bytes:
                text += " " + _("(beginning and end read, {n} bytes between left out)").format(n=file.gap_bytes)
            lines += _block(_("log"), text, width)
    for name in logs.missing:
        lines += _block(_("log"), _("{path}: not there").format(path=safe(name)), width)
    if logs.more:
        lines += _block("", ngettext("{n} more file was left out", "{n} more files were left out", logs.more).format(n=logs.more), width)
    for note in logs.notes:
        lines += _block("", safe(note), width)
    merged = logs.merged
    if merged is not None and merged.lines:
        lines += ["", _("last lines") if merged.files == 1 else _("last lines of {n} files, by time").format(n=merged.files)]
        for line in merged.lines[-LAST_LINES:]:
            who = "" if merged.files == 1 else f"{safe(line.node or line.path.rpartition('/')[2])[-20:]} "
            lines.append("  " + (who + (safe(line.text) or ""))[: max(20, width - 2)])
    return lines if len(lines) > 1 else []


def group_text(group: FailureGroup, now: datetime, zone: str) -> str:
    """``gpu07: 9 of 11 jobs died within 2 min, ...`` in a sentence."""
    nodes = safe(fold_hosts(group.nodes))
    text = ngettext("{nodes}: {failed} of {n} job died", "{nodes}: {failed} of {n} jobs died", group.ended).format(
        nodes=nodes, failed=group.failed, n=group.ended
    )
    if group.within_s is not None:
        text += " " + _("within {time}").format(time=span(60.0 * max(1, math.ceil(group.within_s / 60))))
    text += ", " + _("{start} to {end}").format(start=moment(group.start, now, zone), end=moment(group.end, now, zone))
    text += "; " + ngettext("{n} user", "{n} users", group.users).format(n=group.users)
    if group.expected is not None:
        text += "; " + _("{n} expected by the same kinds of jobs elsewhere").format(n=f"{group.expected:.1f}")
    if group.p_value is not None:
        text += " " + _("(chance {p})").format(p=f"{group.p_value:.1g}")
    if group.basis == "slurm":
        text += "; " + _("Slurm itself blames the node")
    for event in group.events[:3]:
        text += (
            "; "
            + f"{safe(event.node)} {safe(event.state)} {moment(event.start, now, zone)}"
            + (f": {safe(event.reason)}" if event.reason else "")
        )
    return text


def table_lines(table: FailureTable, zone: str, width: int = 100, most: int = MOST_JOBS) -> list[str]:
    """Classes, failures of nodes, the latest failed jobs."""
    whose = _("your jobs") if table.own else _("all jobs")
    lines = [
        f"{safe(table.cluster)} · {whose} · {moment(table.since, table.at, zone)} – {moment(table.at, table.at, zone)}",
        ngettext(
            "{n} of {ended} ended attempts did not complete", "{n} of {ended} ended attempts did not complete", len(table.jobs)
        ).format(n=len(table.jobs), ended=table.ended),
    ]
    if not table.ended:
        return [*lines, _("No attempt ended in that time: widen it with --since, or run queuecast collect.")]
    if not table.jobs:
        return lines
    lines += [
        "",
        f"{_('class'):<42}{_('jobs'):>6}{_('share'):>8}{_('users'):>7}{_('<2 min'):>8}{_('GPU-h'):>9}{_('core-h'):>10}  {_('turn')}",
    ]
    for c in table.classes:
        title = TEXTS[c.failure_class].title
        lines.append(
            f"{title[:41]:<42}{c.jobs:>6}{percent(c.jobs / len(table.jobs)):>8}{c.users:>7}{c.quick:>8}{_hours(c.gpu_hours):>9}"
            f"{_hours(c.core_hours):>10}  {_(TURNS[c.turn])}"
        )
    if table.groups:
        lines += ["", _("failures of nodes")]
        for group in table.groups:
            first, *rest = wrapped(group_text(group, table.at, zone), width - 2, 2)
            lines += ["  " + first, *("  " + r for r in rest)]
    lines += ["", f"{_('job'):<16}{_('user'):<10}{_('ended'):<20}{_('state'):<14}{_('exit'):>7}{_('ran'):>13}  {_('class')}"]
    for j in table.jobs[:most]:
        code = "–" if j.exit_code is None else f"{j.exit_code}:{j.exit_signal if j.exit_signal is not None else '?'}"
        ran, ended = span(j.elapsed_s), moment(j.end, table.at, zone)[:19]
        lines.append(
            f"{safe(j.job_id)[:15]:<16}{safe(j.user)[:9]:<10}{ended:<20}{safe(j.state.lower())[:13]:<14}{code:>7}"
            f"{ran:>13}  {TEXTS[j.failure_class].title} {percent(j.confidence)}"
        )
    if len(table.jobs) > most:
        lines.append(_("... and {n} more: --all, or --json").format(n=len(table.jobs) - most))
    return lines


def parsable(answer: FailureAnswer) -> str:
    """Header and one row, | between fields; fields hold no | and no line end."""
    job = answer.job
    fields = {
        "job": job.text,
        "status": answer.status,
        "class": answer.failure_class or "",
        "confidence": "" if answer.confidence is None else f"{answer.confidence:.3f}",
        "turn": answer.turn or "",
        "state": job.state,
        "exit_code": _plain(job.exit_code),
        "exit_signal": _plain(job.exit_signal),
        "elapsed_s": _plain(job.elapsed_s),
        "nodes": job.node_list or "",
    }
    return "|".join(fields) + "\n" + "|".join(_field(v) for v in fields.values())


def parsable_table(table: FailureTable) -> str:
    """Header and one row per failed attempt, latest first."""
    names = ("job", "user", "partition", "state", "exit_code", "exit_signal", "end", "elapsed_s", "nodes", "class", "confidence")
    rows = [
        (j.job_id, j.user, j.partition, j.state, j.exit_code, j.exit_signal, f"{j.end:%Y-%m-%dT%H:%M:%SZ}", j.elapsed_s, j.node_list,
         j.failure_class, f"{j.confidence:.3f}")
        for j in table.jobs
    ]  # fmt: skip
    return "\n".join(["|".join(names), *("|".join(_field(_plain(v)) for v in row) for row in rows)])


def _field(text: str) -> str:
    return (safe(text) or "").replace("|", "/")


def _plain(value: object) -> str:
    return "" if value is None else str(value)


def _hours(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def _block(label: str, text: str, width: int) -> list[str]:
    first, *rest = wrapped(text, width - LABEL, 0)
    return [f"{label:<{LABEL}}{first}", *(" " * LABEL + line for line in rest)]
