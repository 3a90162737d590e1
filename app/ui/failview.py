"""Why one job failed: the class, what it rests on, what to do, and the end of its log."""

from __future__ import annotations

from datetime import datetime

import pandas as pd
import streamlit as st

from app.ui.files import closed_words, may_open
from app.ui.shell import Frame
from app.ui.words import as_markdown, listed, percent, span
from queuecast.answers.failures.failure import Evidence, FailureAnswer, failure
from queuecast.answers.failures.groups import FailureGroup
from queuecast.answers.failures.joblogs import JobLogs
from queuecast.answers.failures.logs_merge import MergedLine
from queuecast.i18n import N_, _, ngettext
from queuecast.reasons.failureclasses import TEXTS, TURNS, FailureClass, Turn

ICONS: dict[Turn, str] = {"user": "person", "site": "engineering", "nobody": "check"}
SHOWN_LINES = 80
SOON_S = 1800.0
POSSIBLE = 0.08
"""Classes at least that likely are named beside the first."""
BASES = {
    "slurm": N_("Slurm says so itself."),
    "event": N_("The node went out of service about then, and jobs died on it more than like ones elsewhere."),
    "peers": N_("Jobs died on it more than like ones elsewhere; no event of the node was seen."),
}


def show_failure(frame: Frame, job: str, at: datetime, owner: str | None) -> None:
    """The block. Raises ``QueuecastError``."""
    opened = may_open(frame, owner)
    with st.spinner(_("Looking for the cause …")):
        answer = failure(frame.lake, frame.cluster, job, at, frame.viewer, logs=opened)
    if answer.failure_class is None:
        words = {
            "completed": _("It ended well: nothing to mend."),
            "running": _("It runs; nothing failed so far."),
            "pending": _("It waits; nothing failed so far."),
        }
        st.text(words.get(answer.status, ""))
    else:
        show_class(answer, answer.failure_class)
        left, right = st.columns(2, gap="large")
        with left:
            show_steps(answer)
        with right:
            show_evidence(answer)
    if answer.group is not None:
        show_group(frame, answer.group)
    if opened and answer.logs is not None:
        show_logs(frame, answer.logs)
    elif answer.failure_class is not None:
        st.caption(as_markdown(closed_words(f"queuecast failed {answer.job.text}")))


def show_class(answer: FailureAnswer, chosen: FailureClass) -> None:
    """The class, how sure, whose turn."""
    turn: Turn = answer.turn or "user"
    with st.container(border=True, key="failure"):
        st.markdown(f"#### :material/{ICONS[turn]}: " + as_markdown(answer.title))
        st.caption(as_markdown(_("{share} sure · whose turn it is: {turn}").format(share=percent(answer.confidence), turn=_(TURNS[turn]))))
        if answer.status == "partly":
            st.text(_("Slurm counts it as completed, but a step of it failed."))
        st.text(answer.meaning)
        others = sorted(((w, c) for c, w in answer.weights.items() if c != chosen and w >= POSSIBLE), reverse=True)
        if others:
            named = listed(f"{TEXTS[c].title} ({percent(w)})" for w, c in others[:3])
            st.text(_("It could also be: {classes}").format(classes=named))
        if answer.failed_tasks is not None and answer.ended_tasks is not None:
            st.text(
                _("{failed} of {ended} ended tasks of this array failed; this is the first of them.").format(
                    failed=answer.failed_tasks, ended=answer.ended_tasks
                )
            )
        if answer.again:
            st.text(_("A later attempt is queued or has run."))


def show_steps(answer: FailureAnswer) -> None:
    """What to do, in order."""
    st.markdown("**" + _("What to do") + "**")
    st.markdown("\n".join(f"{i}. {as_markdown(step)}" for i, step in enumerate(answer.steps, 1)))


def show_evidence(answer: FailureAnswer) -> None:
    """What the class rests on, with lines of the log."""
    st.markdown("**" + _("What it rests on") + "**")
    if not answer.evidence:
        st.text(_("On nothing but how it ended."))
    for one in answer.evidence:
        st.markdown("- " + as_markdown(evidence_words(one, answer.failure_class)))
        if one.line is not None:
            st.code(one.line, language=None, wrap_lines=True)
    for text in answer.unknown:
        st.caption(as_markdown(_("Not known: {text}").format(text=text)))


def evidence_words(one: Evidence, chosen: FailureClass | None) -> str:
    """The sentence, with where it stands and what else it speaks for."""
    words = one.text
    if one.path is not None:
        words += " " + (f"({one.path}:{one.number})" if one.number is not None else f"({one.path})")
    if one.speaks_for is not None and one.speaks_for != chosen:
        words += " " + _("(speaks for: {title})").format(title=TEXTS[one.speaks_for].title)
    return words


def group_title(group: FailureGroup) -> str:
    """``gpu07: 9 of 11 jobs died within 2 min of their start``. Names of nodes are the cluster's: clean it before Markdown."""
    nodes = ", ".join(group.nodes[:6]) + (" …" if len(group.nodes) > 6 else "")
    words = ngettext("{nodes}: {failed} of {ended} job died", "{nodes}: {failed} of {ended} jobs died", group.ended).format(
        nodes=nodes, failed=group.failed, ended=group.ended
    )
    if group.within_s is None or group.within_s > SOON_S:
        return words
    return _("{words} within {span} of their start").format(words=words, span=span(group.within_s))


def show_group(frame: Frame, group: FailureGroup) -> None:
    """The failures of a node that this one is among."""
    with st.container(border=True, key="group"):
        st.markdown("##### :material/dns: " + as_markdown(group_title(group)))
        st.text(group_words(frame, group))


def group_words(frame: Frame, group: FailureGroup) -> str:
    """When, how many would have been expected, on what it rests."""
    words = [_("From {start} to {end}.").format(start=frame.time(group.start), end=frame.time(group.end)), _(BASES[group.basis])]
    if group.expected is not None:
        words.append(_("As elsewhere, {n} would have died.").format(n=f"{group.expected:.1f}"))
    words.append(
        ngettext("It met {n} user", "It met {n} users", group.users).format(n=group.users)
        + " "
        + ngettext("with {n} kind of job.", "with {n} kinds of jobs.", group.kinds).format(n=group.kinds)
    )
    for event in group.events[:4]:
        words.append(
            _("{node} was {state} from {time} on: {reason}").format(
                node=event.node, state=event.state, time=frame.time(event.start), reason=event.reason or _("no reason given")
            )
        )
    return " ".join(words)


def show_logs(frame: Frame, logs: JobLogs) -> None:
    """The last lines of all files by time, and where the files lie."""
    with st.expander(_("Its log"), icon=":material/article:", expanded=logs.merged is not None):
        if logs.merged is not None:
            lines = logs.merged.lines[-SHOWN_LINES:]
            st.code("\n".join(log_line(frame, line, logs.merged.files > 1) for line in lines), language=None, wrap_lines=True, height=420)
            cut = logs.merged.left_out + len(logs.merged.lines) - len(lines)
            if cut:
                st.caption(ngettext("{n} earlier line is not shown.", "{n} earlier lines are not shown.", cut).format(n=f"{cut:,}"))
            if logs.merged.levels:
                counts = ", ".join(f"{n} {level}" for level, n in logs.merged.levels.items())
                st.caption(as_markdown(_("Lines by level: {counts}").format(counts=counts)))
        for note in logs.notes:
            st.caption(as_markdown(note))
        if logs.files or logs.missing:
            st.dataframe(files_table(frame, logs), hide_index=True, width="stretch", key="log_files", placeholder="")
        if logs.more:
            st.caption(ngettext("{n} more file was not looked at.", "{n} more files were not looked at.", logs.more).format(n=logs.more))


def log_line(frame: Frame, line: MergedLine, several: bool) -> str:
    """Plain text: time and place where a merged log needs them."""
    lead = []
    if several:
        lead.append(line.node or line.path.rsplit("/", 1)[-1][:40])
        if line.at is not None:
            lead.append(f"{line.at.astimezone(frame.zone):%H:%M:%S}")
    if line.rank is not None and several:
        lead.append(f"#{line.rank}")
    return f"{' '.join(lead)} | {line.text}" if lead else line.text


def files_table(frame: Frame, logs: JobLogs) -> pd.DataFrame:
    """The raw files, and why one was not read."""
    rows = [(f.path, f.size, frame.time(f.modified) if f.modified else None, f.problem or _("read")) for f in logs.files]
    rows += [(path, None, None, _("It is not there.")) for path in logs.missing]
    return pd.DataFrame(
        {
            _("file"): [r[0] for r in rows],
            _("bytes"): pd.array([r[1] for r in rows], "Int64"),
            _("last written"): [r[2] for r in rows],
            _("state"): [r[3] for r in rows],
        }
    )
