"""Page: one job, why it waits, who is ahead, its priority and its story."""

from __future__ import annotations

import streamlit as st
from app.ui import jobview as view
from app.ui.question import asked_at
from app.ui.shell import friendly, open_frame, show_freshness

from queuecast.answers.explain import why
from queuecast.errors import QueuecastError
from queuecast.i18n import _

st.header(_("Job"), anchor=False)
frame = open_frame()
if "which" not in st.session_state:
    st.session_state["which"] = st.query_params.get("job", "")[:60]
typed = st.text_input(_("Job id"), key="which", placeholder="1234, 1234_5, 1234+1", max_chars=60, width=260, icon=":material/tag:")
job = typed.strip()
if job:
    st.query_params["job"] = job
else:
    st.query_params.pop("job", None)
    with st.container(border=True, key="invite"):
        st.markdown("#### :material/arrow_upward: " + _("Name a job"))
        st.text(_("You get what keeps it now, who is ahead, what makes up its priority, and what happened to it so far."))
    st.stop()
with friendly():
    at = asked_at(frame)
    with frame.shared.lock, st.spinner(_("Looking at the queue …")):
        answer = why(frame.lake, frame.cluster, job, at, frame.viewer)
    if answer.pending:
        show_freshness(frame, at, answer.snapshot_at)
    view.show_head(frame, answer)
    view.show_why(frame, answer)
    if answer.pending:
        left, right = st.columns(2, gap="large")
        with left:
            view.show_ahead(answer)
        with right:
            view.show_priority(frame, answer)
    view.show_story(frame, answer)
    if answer.pending:
        with st.expander(_("How long will it wait?"), icon=":material/hourglass_top:", expanded=True):
            try:
                with frame.shared.lock:
                    forecast = frame.shared.forecaster.when_job(job, at, frame.viewer)
            except QueuecastError as error:  # without history the rest of the page still stands
                st.text(error.message)
            else:
                view.show_forecast(frame, forecast)
