"""Page: what failed, of which class, on which nodes, and how users fare."""

from __future__ import annotations

from datetime import datetime, timedelta

import streamlit as st
from app.ui import failcharts as charts
from app.ui import failpage as view
from app.ui.experienceview import show_experience
from app.ui.shell import Frame, friendly, open_frame, show_freshness

from queuecast.i18n import _


def show_nothing(found: view.Failures) -> None:
    """Nothing failed, or nothing ended."""
    with st.container(border=True, key="empty"):
        if found.ended:
            st.markdown("#### :material/check_circle: " + _("Nothing failed in this time"))
            st.text(_("{n} attempts ended, all of them well.").format(n=f"{found.ended:,}"))
        else:
            st.markdown("#### :material/inbox: " + _("No job ended in this time"))
            st.text(_("Choose more days. History is read by:"))
            st.code("queuecast backfill --since 2026-01-01", language="bash")


def show_classes(found: view.Failures, shown: tuple[view.Failed, ...]) -> None:
    """Over time, and in all."""
    left, right = st.columns([1.5, 1], gap="large")
    with left:
        st.markdown("**" + _("By class over time") + "**")
        drawn = charts.classes_chart([(f.end, f.failure_class) for f in shown], found.since, found.at)
        st.altair_chart(drawn, width="stretch", key="classes", alt=_("Failed attempts by day and class"))
    with right:
        st.markdown("**" + _("By class") + "**")
        st.dataframe(
            view.classes_table(shown),
            column_config={_("class"): st.column_config.TextColumn(width=190)},
            hide_index=True,
            width="stretch",
            key="class_table",
        )
        st.caption(_("By accounting alone, without logs: the page of a job looks closer."))


def show_nodes(frame: Frame, found: view.Failures) -> None:
    """What the platform failed."""
    st.subheader(_("Nodes on which jobs died"), anchor=False)
    if not found.groups:
        st.text(
            _("No node stands out: where jobs failed, like ones failed elsewhere too.") if found.ended else _("Not known: no job ended.")
        )
        return
    drawn = charts.nodes_chart(frame, found.groups, found.since, found.at)
    st.altair_chart(drawn, width="stretch", key="nodes", alt=_("Groups of failures by node and time"))
    view.show_groups(frame, found.groups)


def show_jobs(frame: Frame, shown: tuple[view.Failed, ...]) -> None:
    """The table, each with a way to its page."""
    st.subheader(_("What did not end well"), anchor=False)
    st.dataframe(
        view.failed_table(frame, shown),
        column_config=view.failed_columns(),
        hide_index=True,
        width="stretch",
        key="failed",
        height=min(420, 38 + 35 * len(shown)),
        placeholder="–",
    )
    with st.container(horizontal=True, vertical_alignment="center", key="foot"):
        st.download_button(
            _("Download CSV"), view.failed_csv(shown), "failures.csv", "text/csv", key="csv", icon=":material/download:", on_click="ignore"
        )
        if len(shown) > view.MOST_ROWS:
            st.caption(_("The latest {n} of {all}; the download has them all.").format(n=view.MOST_ROWS, all=f"{len(shown):,}"))


def show(frame: Frame, since: datetime, at: datetime, found: view.Failures, shown: tuple[view.Failed, ...]) -> None:
    """The page below its filters."""
    if frame.newest is not None and at - frame.newest > timedelta(hours=1):
        show_freshness(frame, at, frame.newest)
    if not frame.viewer.sees_all and frame.viewer.user is None:
        with st.container(border=True, key="nobody"):
            st.markdown("#### :material/person_off: " + _("Who you are is not known"))
            st.text(_("Here people see their own jobs only. Whoever runs the app names its user with QUEUECAST_USER."))
        show_nodes(frame, found)
        return
    if not frame.viewer.sees_all:
        st.caption(_("Your own jobs; groups of failures by node are of all, without names."))
    if not found.failed:
        show_nothing(found)
    elif not shown:
        st.text(_("Nothing that failed fits the filters."))
    else:
        view.show_figures(found, shown)
        show_classes(found, shown)
    show_nodes(frame, found)
    if shown:
        show_jobs(frame, shown)
    if found.ended:
        st.subheader(_("How users fare"), anchor=False)
        show_experience(frame, since, at)


st.header(_("Failures"), anchor=False)
page_frame = open_frame()
with friendly():
    with st.container(horizontal=True, vertical_alignment="bottom", key="filters"):
        page_since, page_at = view.ask_days(page_frame)
        with st.spinner(_("Looking at what failed …")):
            page_found = view.failures(page_frame, page_since, page_at)
        page_shown = view.ask_filters(page_found)
    show(page_frame, page_since, page_at, page_found, page_shown)
