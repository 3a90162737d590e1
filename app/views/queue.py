"""Page: the queue now, or at any moment that a snapshot shows."""

from __future__ import annotations

from datetime import datetime, timedelta

import streamlit as st
from app.ui import queueview as view
from app.ui.question import asked_at, iso_utc
from app.ui.shell import Frame, friendly, open_frame, show_freshness
from app.ui.words import span

from queuecast.answers.queue import QueueNow, queue_now
from queuecast.i18n import _, ngettext


def travel(frame: Frame, at: datetime) -> None:
    """Choose another moment; it is kept in the link."""

    def go(to: datetime | None) -> None:
        if to is None:
            st.query_params.pop("at", None)
        else:
            st.query_params["at"] = iso_utc(to)

    def typed() -> None:
        value = st.session_state["moment"]
        go(None if value is None else value.replace(tzinfo=frame.zone))

    st.session_state["moment"] = at.astimezone(frame.zone).replace(tzinfo=None, second=0, microsecond=0)
    with st.container(horizontal=True, vertical_alignment="bottom", key="travel"):
        st.datetime_input(
            _("As of ({zone})").format(zone=frame.zone), key="moment", on_change=typed, format="YYYY-MM-DD", step=300, width=270
        )
        st.button(_("−1 day"), on_click=go, args=(at - timedelta(days=1),), key="day_back")
        st.button(_("−1 h"), on_click=go, args=(at - timedelta(hours=1),), key="hour_back")
        st.button(_("+1 h"), on_click=go, args=(at + timedelta(hours=1),), key="hour_on", disabled=at >= frame.default_at)
        st.button(
            _("Newest"),
            on_click=go,
            args=(None,),
            key="newest",
            icon=":material/last_page:",
            disabled="at" not in st.query_params,
        )


def show(frame: Frame, at: datetime, queue: QueueNow) -> None:
    """The page below its controls."""
    if queue.snapshot_at is None and queue.nodes_at is None:
        with st.container(border=True, key="empty"):
            st.markdown("#### :material/photo_camera: " + _("No snapshot of the queue near that moment"))
            st.text(_("None was taken in the three days before. Choose another moment, or let this run every few minutes:"))
            st.code("queuecast collect", language="bash")
        return
    show_freshness(frame, at, queue.snapshot_at or queue.nodes_at)
    view.show_counts(queue)
    if queue.snapshot_at is not None:
        age = (at - queue.snapshot_at).total_seconds()
        taken = _("Snapshot of {time}").format(time=frame.time(queue.snapshot_at))
        st.caption(taken if age < 60 else _("{taken}, {span} before the moment asked about").format(taken=taken, span=span(age)))
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader(_("Why jobs wait"), anchor=False)
        if queue.reasons:
            st.altair_chart(view.reasons_chart(queue.reasons), width="stretch", key="reasons", alt=_("Waiting tasks by reason"))
            st.caption(_("One reason is all Slurm keeps for a job: when it is gone, another may appear."))
            st.markdown("**" + _("What keeps them") + "**")
            st.dataframe(view.holds_table(queue.holds), hide_index=True, width="stretch", key="holds", placeholder=_("unknown"))
            st.caption(view.holds_words(queue))
        else:
            st.text(_("Nothing waits."))
    with right:
        st.subheader(_("GPUs by type"), anchor=False)
        if queue.gpus:
            st.altair_chart(
                view.gpu_chart(queue.gpus), width="stretch", key="gpus", alt=_("GPUs in use, idle and blocked by type")
            )
            st.dataframe(view.gpu_table(queue.gpus), hide_index=True, width="stretch", key="stock", placeholder=_("unknown"))
            st.caption(
                _("Blocked: on nodes that are down, drained or in maintenance. Largest free block: most idle on one usable node.")
            )
        else:
            st.text(_("No node with GPUs was seen. Nodes are read by: queuecast collect."))
    jobs_table(frame, queue)


def jobs_table(frame: Frame, queue: QueueNow) -> None:
    """What waits: searchable, downloadable, with a way to the forecast."""
    st.subheader(_("What waits"), anchor=False)
    if not queue.pending:
        st.text(_("No job waits in this snapshot."))
        return
    titles = {r.reason: r.title for r in queue.reasons}
    if "search" not in st.session_state:
        st.session_state["search"] = st.query_params.get("q", "")[:100]
        wanted = st.query_params.get("reason", "")
        st.session_state["only"] = wanted if wanted in titles else None
    elif st.session_state["only"] not in titles:
        st.session_state["only"] = None
    with st.container(horizontal=True, vertical_alignment="bottom", key="filters"):
        st.text_input(
            _("Search"),
            key="search",
            placeholder=_("job, name, user, account …"),
            max_chars=100,
            width=260,
            icon=":material/search:",
        )
        st.selectbox(
            _("Why"),
            list(titles),
            format_func=lambda code: titles.get(code, code),
            index=None,
            key="only",
            placeholder=_("any reason"),
            width=260,
        )
        jobs = view.found(queue.pending, st.session_state["search"], st.session_state["only"])
        st.download_button(
            _("Download CSV"),
            view.jobs_csv(jobs),
            "queue.csv",
            "text/csv",
            key="csv",
            icon=":material/download:",
            on_click="ignore",
        )
    for name, value in (("q", st.session_state["search"]), ("reason", st.session_state["only"])):
        if value:
            st.query_params[name] = value
        else:
            st.query_params.pop(name, None)
    if not jobs:
        st.text(_("No waiting job fits the search."))
        return
    chosen = st.dataframe(
        view.jobs_table(frame, jobs),
        column_config=view.columns(),
        hide_index=True,
        width="stretch",
        key="jobs",
        on_select="rerun",
        selection_mode="single-row",
        height=min(460, 38 + 35 * len(jobs)),
        placeholder="–",
    )
    rows = chosen["selection"]["rows"]
    if rows and rows[0] < len(jobs):
        job = jobs[rows[0]].job_id.split("_[")[0]
        link = {"job": job, **({"at": st.query_params["at"]} if "at" in st.query_params else {})}
        with st.container(horizontal=True, key="chosen"):
            if st.button(_("How long will the chosen job wait?"), type="primary", key="forecast"):
                st.switch_page("views/wait.py", query_params=link)
            if st.button(_("Why does it wait?"), key="explain"):
                st.switch_page("views/job.py", query_params={**link, "job": jobs[rows[0]].job_id})
    else:
        st.caption(
            ngettext(
                "{n} record. Choose a row to ask how long it will wait.",
                "{n} records. Choose a row to ask how long it will wait.",
                len(jobs),
            ).format(n=len(jobs))
        )


st.header(_("Queue now"), anchor=False)
page_frame = open_frame()
with friendly():
    page_at = asked_at(page_frame)
    travel(page_frame, page_at)
    with page_frame.shared.lock:
        page_queue = queue_now(page_frame.lake, page_frame.cluster, page_at, page_frame.viewer)
    show(page_frame, page_at, page_queue)
