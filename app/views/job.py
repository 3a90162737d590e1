"""Page: one job. While it waits: why, who is ahead, its priority. Once it ended: why it failed, the copy, its use. And its story."""

from __future__ import annotations

from datetime import datetime

import streamlit as st
from app.ui import jobview as view
from app.ui.failview import show_failure
from app.ui.jobchanges import show_changes
from app.ui.linked import link_choice
from app.ui.question import asked_at
from app.ui.retryview import show_copy, show_lineage
from app.ui.shell import Frame, friendly, open_frame, show_error, show_freshness
from app.ui.useview import show_use

from queuecast.answers.explaining.explain import WhyAnswer, why
from queuecast.errors import QueuecastError
from queuecast.i18n import N_, _

SECTIONS = {"why": N_("Why it failed"), "copy": N_("Copy"), "attempts": N_("Attempts"), "use": N_("Usage")}
ENDED_WELL = {"use": SECTIONS["use"], "attempts": SECTIONS["attempts"], "why": N_("How it ended")}


def show_ended(frame: Frame, at: datetime, job: str, answer: WhyAnswer) -> None:
    """One section at a time: each costs a look into the lake."""
    well = answer.job.state == "COMPLETED"
    sections = ENDED_WELL if well else SECTIONS
    chosen = link_choice("job_well" if well else "job", _("About it"), "about", sections, next(iter(sections)))
    owner = answer.job.user
    try:
        with frame.shared.lock:
            if chosen == "copy":
                show_copy(frame, job, at, owner)
            elif chosen == "attempts":
                show_lineage(frame, job, at)
            elif chosen == "use":
                show_use(frame, answer.job, at)
            else:
                show_failure(frame, job, at, owner)
    except QueuecastError as error:  # its story still stands
        show_error(error)


def show_waiting(frame: Frame, at: datetime, answer: WhyAnswer) -> None:
    """What would change that, who is ahead, and its priority."""
    show_changes(frame, answer)
    left, right = st.columns(2, gap="large")
    with left:
        view.show_ahead(answer)
    with right:
        view.show_priority(frame, answer)


def show_wait(frame: Frame, at: datetime, job: str) -> None:
    """The forecast: the only part that needs the model."""
    with st.expander(_("How long will it wait?"), icon=":material/hourglass_top:", expanded=True):
        try:
            with frame.shared.lock:
                forecast = frame.shared.forecaster.when_job(job, at, frame.viewer)
        except QueuecastError as error:  # without history, or with a model of another format, the rest of the page still stands
            st.text(error.message)
            if error.hint:
                st.text(_("What to do: {hint}").format(hint=error.hint))
        else:
            view.show_forecast(frame, forecast)


st.header(_("Job"), anchor=False)
page_frame = open_frame()
if "which" not in st.session_state:
    st.session_state["which"] = st.query_params.get("job", "")[:60]
typed = st.text_input(_("Job id"), key="which", placeholder="1234, 1234_5, 1234+1", max_chars=60, width=260, icon=":material/tag:")
page_job = typed.strip()
if page_job:
    st.query_params["job"] = page_job
else:
    st.query_params.pop("job", None)
    with st.container(border=True, key="invite"):
        st.markdown("#### :material/arrow_upward: " + _("Name a job"))
        st.text(
            _(
                "While it waits, you get what keeps it, who is ahead and what makes up its priority; once it ended, why it failed, "
                "what to do, a corrected copy of its script, and what it used."
            )
        )
    st.stop()
with friendly():
    page_at = asked_at(page_frame)
    with page_frame.shared.lock, st.spinner(_("Looking at the queue …")):
        page_answer = why(page_frame.lake, page_frame.cluster, page_job, page_at, page_frame.viewer)
    if page_answer.pending:
        show_freshness(page_frame, page_at, page_answer.snapshot_at)
    view.show_head(page_frame, page_answer)
    ended = page_answer.job.end is not None
    if ended:
        show_ended(page_frame, page_at, page_job, page_answer)
    else:
        view.show_why(page_frame, page_answer)
    if page_answer.pending:
        show_waiting(page_frame, page_at, page_answer)
        if any(e.kind == "requeued" for e in page_answer.events):
            with st.expander(_("Why an earlier attempt ended"), icon=":material/history:"):
                show_failure(page_frame, page_job, page_at, page_answer.job.user)
    view.show_story(page_frame, page_answer)
    if page_answer.pending:
        show_wait(page_frame, page_at, page_job)
