"""Page: how long will it wait? Asked for a request, for a job, or for a task that fits several requests."""

from __future__ import annotations

import streamlit as st
from app.ui.alternativesask import offer_alternatives
from app.ui.answer import show_answer
from app.ui.question import ask, asked, asked_at, to_request
from app.ui.shell import Frame, friendly, keep, open_frame
from app.ui.suggestview import show_suggestion
from app.ui.taskform import asked_task, to_task

from queuecast.answers.suggest import suggest
from queuecast.config import load_hardware
from queuecast.i18n import _


def answer_task(frame: Frame, task: dict[str, str]) -> None:
    """What to ask for to run it."""
    question, at = to_task(task), asked_at(frame)
    with st.spinner(_("Which GPUs hold it, and when would each start?"), show_time=True), frame.shared.lock:
        suggestion = suggest(frame.shared.forecaster, question, at, frame.viewer, load_hardware())
    show_suggestion(frame, suggestion)


def answer_wait(frame: Frame, question: dict[str, str]) -> None:
    """When a request or a job starts."""
    at = asked_at(frame)
    with frame.shared.lock:
        forecaster = frame.shared.forecaster
        if "job" in question:
            answer = forecaster.when_job(question["job"], at, frame.viewer)
        else:
            answer = forecaster.when(to_request(question, frame.viewer.user), at, frame.viewer)
    keep(frame, answer)
    show_answer(frame, answer)
    offer_alternatives(frame, answer, question)


def invite() -> None:
    """Nothing was asked yet."""
    with st.container(border=True, key="invite"):
        st.markdown("#### :material/arrow_back: " + _("Say what you would ask for, what you want to run, or name a job that waits"))
        st.markdown(
            _(
                "You get the range in which 8 in 10 like jobs start, the chance to start within 1, 4 and 24 hours, what like "
                "jobs really waited, and how far to trust it. The link keeps your question: send it to a colleague."
            )
        )
        st.markdown(_("**My task** works from a model's size to the GPUs that hold it, and says when each choice would start and end."))


st.header(_("How long will it wait?"), anchor=False)
page_frame = open_frame()
left, right = st.columns([1, 2.3], gap="large")
with left, friendly():
    ask(page_frame)
with right, friendly():
    if page_task := asked_task():
        answer_task(page_frame, page_task)
    elif page_question := asked():
        answer_wait(page_frame, page_question)
    else:
        invite()
