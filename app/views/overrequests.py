"""Page: what is asked for and not used, whose it is, and what to ask for instead."""

from __future__ import annotations

from datetime import timedelta

import streamlit as st
from app.ui import overcharts as charts
from app.ui import overidle as idle
from app.ui import overview as view
from app.ui.linked import link_choice
from app.ui.overask import BY, Asked, ask_review, replay_effect, review, with_idle
from app.ui.shell import Frame, friendly, open_frame, show_freshness

from queuecast.answers.rightsizing.overrequest_answer import OverRequests
from queuecast.i18n import _
from queuecast.render.overrequest_table import groups_csv, proposals_csv

IDLE = {"1": "1", "2": "2", "6": "6", "24": "24"}


def show_groups(answer: OverRequests, asked: Asked) -> None:
    """Whose hours, and when."""
    there = view.resources_there(answer.total)
    chosen = link_choice("over", _("Resource"), "resource", {r: charts.BARS[r] for r in there}, there[0])
    groups = answer.groups[asked.by]
    left, right = st.columns([1.15, 1], gap="large")
    with left:
        st.markdown("**" + _("By {dimension}").format(dimension=_(BY[asked.by]).lower()) + "**")
        drawn = charts.groups_chart(groups, chosen)
        st.altair_chart(drawn, width="stretch", key="groups", alt=_("Hours asked for by group: used, to be freed, unused, not measured"))
    with right:
        st.markdown("**" + (_("By day") if answer.trend_step == "day" else _("By week")) + "**")
        trend = charts.trend_chart(answer.trend, answer.trend_step, chosen)
        st.altair_chart(trend, width="stretch", key="trend", alt=_("Hours asked for over time: used, to be freed, unused, not measured"))
    with st.expander(_("The numbers"), icon=":material/table:"):
        st.dataframe(
            view.groups_table(groups),
            column_config=view.groups_columns(_(BY[asked.by])),
            hide_index=True,
            width="stretch",
            key="numbers",
            placeholder="–",
        )
    st.download_button(
        _("Download CSV"),
        groups_csv(answer),
        "over-requests.csv",
        "text/csv",
        key="groups_csv",
        icon=":material/download:",
        on_click="ignore",
    )


def show_proposals(answer: OverRequests) -> None:
    """What to ask for instead."""
    st.subheader(_("What would be enough"), anchor=False)
    view.show_proposals(answer)
    if answer.proposals.items:
        st.download_button(
            _("Download proposals as CSV"),
            proposals_csv(answer),
            "proposals.csv",
            "text/csv",
            key="proposals_csv",
            icon=":material/download:",
            on_click="ignore",
        )


def show_idle(frame: Frame, asked: Asked, answer: OverRequests) -> OverRequests:
    """GPUs that do nothing now. The answer with them."""
    st.subheader(_("Idle GPUs now"), anchor=False)
    hours = link_choice("over", _("Idle for at least (hours)"), "idle", IDLE, "2")
    answer = with_idle(frame, asked, answer, float(hours))
    idle.show_idle(frame, answer)
    return answer


def show_admin(frame: Frame, answer: OverRequests, asked: Asked) -> None:
    """For those who may see everybody's jobs: messages, and the effect on the queue."""
    st.subheader(_("A message for each user"), anchor=False)
    if st.toggle(_("Write them"), key="write"):
        idle.show_messages(frame, answer)
    st.subheader(_("What it would do to the queue"), anchor=False)
    question = (frame.cluster, frame.lake.manifest.version, asked.since, asked.at)
    kept = st.session_state.get("effect_of")
    if kept is not None and kept[0] == question:
        idle.show_effect(kept[1])
        return
    st.text(_("The recorded jobs are replayed twice: as they were, and with the ten weightiest proposals (of all users) made true."))
    if st.button(_("Replay the queue"), key="replay", icon=":material/play_arrow:"):
        bar = st.progress(0.0, _("This takes a minute, longer on a large cluster …"))
        found = replay_effect(frame, asked, lambda done, of: bar.progress(done / of, _("Replay {n} of {all}").format(n=done, all=of)))
        bar.empty()
        st.session_state["effect_of"] = (question, found)
        st.rerun()


def show(frame: Frame, asked: Asked) -> None:
    """The page below its filters."""
    with st.spinner(_("Comparing what was asked for with what was used: the first time this takes a minute …"), show_time=True):
        answer = review(frame, asked)
    if answer.generated:
        view.show_generated()
    if frame.newest is not None and asked.at - frame.newest > timedelta(hours=1):
        show_freshness(frame, asked.at, frame.newest)
    if answer.status != "ok" and not view.resources_there(answer.total):
        view.show_nothing(answer)
        return
    if answer.status == "nothing_measured":
        view.show_nothing(answer)
    view.show_figures(answer)
    show_groups(answer, asked)
    show_proposals(answer)
    answer = show_idle(frame, asked, answer)
    if frame.viewer.sees_all:
        show_admin(frame, answer, asked)


st.header(_("Over-requests"), anchor=False)
page_frame = open_frame()
with friendly():
    show(page_frame, ask_review(page_frame))
