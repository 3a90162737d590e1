"""One job as pictures and tables: what keeps it, who is ahead, its priority, its story."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app.ui.answer import request_words, show_answer
from app.ui.jobcharts import ahead_chart, priority_chart, story_chart
from app.ui.shell import Frame
from app.ui.words import as_markdown
from queuecast.answers.explaining.explain import WhyAnswer
from queuecast.answers.explaining.history import Event
from queuecast.answers.explaining.queue import Ahead
from queuecast.answers.wait import WaitAnswer
from queuecast.i18n import _
from queuecast.render.why import release_words, standing_words


def show_head(frame: Frame, answer: WhyAnswer) -> None:
    """What the job is and how it stands."""
    job = answer.job
    st.subheader(as_markdown(_("Job {job}").format(job=job.text)), anchor=False)
    words = [request_words(job.request), job.state.lower()]
    for name, value in ((_("submitted"), job.submit), (_("eligible"), job.eligible), (_("started"), job.start), (_("ended"), job.end)):
        if value is not None:
            words.append(f"{name} {frame.time(value)}")
    st.text(" · ".join(words))


def show_why(frame: Frame, answer: WhyAnswer) -> None:
    """What binds first, then what else stands, then what is not known."""
    found = answer.binding
    with st.container(border=True, key="binding"):
        if found is not None and found.constraints:
            first, *others = found.constraints
            icon = {"never": "block", "held": "pause_circle", "unchecked": "help"}.get(first.standing, "hourglass_top")
            st.markdown(f"#### :material/{icon}: " + as_markdown(first.title))
            st.caption(as_markdown(f"{first.code} · {standing_words(first.standing)}"))
            st.text(first.text)
            if first.release is not None:
                st.text(release_words(first.release, lambda t: "–" if t is None else frame.time(t)))
            st.text(_("What to do: {fix}").format(fix=first.fix.replace("<jobid>", answer.job.text)))
            for other in others:
                st.text(_("Also: {title} ({code}). {text}").format(title=other.title, code=other.code, text=other.text))
            if found.explained:
                st.text(found.explained)
        else:
            info = answer.reason
            st.markdown("#### :material/info: " + as_markdown(info.title))
            st.text(info.meaning)
            if answer.pending:
                st.text(_("What to do: {fix}").format(fix=info.todo.replace("<jobid>", answer.job.text)))
        for text in answer.unknown:
            st.text(_("Not known: {text}").format(text=text))


def show_forecast(frame: Frame, answer: WaitAnswer) -> None:
    """The same answer as on the first page."""
    show_answer(frame, answer)


def show_ahead(answer: WhyAnswer) -> None:
    """Waiting work before the job, by account; nobody is named."""
    st.subheader(_("Who is ahead"), anchor=False)
    ahead = answer.binding.ahead if answer.binding is not None else None
    if ahead is None:
        st.text(_("Not known: the job has no priority in the last snapshot (held, or not shown)."))
        return
    if ahead.shared:
        st.altair_chart(ahead_chart(ahead), width="stretch", key="ahead", alt=_("Waiting GPU-hours ahead, by account"))
        st.dataframe(ahead_table(ahead), hide_index=True, width="stretch", key="accounts", placeholder=_("unknown"))
    else:
        st.text(_("Nobody stands above it for the same nodes."))
    st.caption(
        _("{limited} more stand above it but are held by limits; {elsewhere} are for other nodes.").format(
            limited=ahead.limited, elsewhere=ahead.elsewhere
        )
    )


def ahead_table(ahead: Ahead) -> pd.DataFrame:
    """One row per account, and their sum."""
    rows = [*ahead.shared, ahead.total] if len(ahead.shared) > 1 else list(ahead.shared)
    names = [a.account or "–" for a in ahead.shared] + ([_("all")] if len(rows) > len(ahead.shared) else [])
    return pd.DataFrame(
        {
            _("account"): names,
            _("jobs"): [r.jobs for r in rows],
            _("tasks"): [r.tasks for r in rows],
            _("GPUs"): pd.array([r.gpus for r in rows], "Int64"),
            _("GPU-hours"): [None if r.gpu_hours is None else round(r.gpu_hours, 1) for r in rows],
        }
    )


def show_priority(frame: Frame, answer: WhyAnswer) -> None:
    """What the priority is made of, and what will move it."""
    st.subheader(_("Its priority"), anchor=False)
    found = answer.priority
    if found is None:
        st.text(_("Not told: Slurm lists no parts for it (sprio). Held jobs and jobs not yet eligible have none."))
        return
    total = "–" if found.total is None else str(found.total)
    st.text(_("{total} points, as of {time}").format(total=total, time=frame.time(found.seen_at)))
    st.altair_chart(priority_chart(found), width="stretch", key="priority", alt=_("Parts of the priority"))
    for text in found.outlook:
        st.text(text)


def show_story(frame: Frame, answer: WhyAnswer) -> None:
    """The timeline, and the same as a table."""
    st.subheader(_("What happened so far"), anchor=False)
    if not answer.events:
        st.text(_("Nothing is known of it yet."))
        return
    st.altair_chart(story_chart(frame, answer), width="stretch", key="story", alt=_("Events of the job over time"))
    st.dataframe(story_table(frame, answer.events), hide_index=True, width="stretch", key="events", placeholder="")
    st.caption(_("Accounting tells exact times. What only snapshots show happened between two of them."))


def story_table(frame: Frame, events: tuple[Event, ...]) -> pd.DataFrame:
    """Newest first."""

    def when(e: Event) -> str:
        if e.exact:
            return frame.time(e.at)
        if e.after is None:
            return _("by {time}").format(time=frame.time(e.at))
        return _("{first} to {last}").format(first=frame.time(e.after), last=frame.time(e.at))

    def what(e: Event) -> str:
        if e.kind == "estimate" and e.value is not None:  # in the zone of the page
            return _("Slurm expects the start {time}").format(time=frame.time(e.value))
        return e.text

    shown = list(reversed(events))
    return pd.DataFrame(
        {
            _("when"): [when(e) for e in shown],
            _("what"): [what(e) for e in shown],
            _("seen until"): [frame.time(e.until) if e.until else None for e in shown],
        }
    )
