"""Page: how long will it wait?"""

from __future__ import annotations

import streamlit as st
from app.ui.answer import show_answer
from app.ui.question import ask, asked, asked_at, to_request
from app.ui.shell import friendly, keep, open_frame

from queuecast.i18n import _

st.header(_("How long will it wait?"), anchor=False)
frame = open_frame()
left, right = st.columns([1, 2.3], gap="large")
with left, friendly():
    ask(frame)
question = asked()
with right, friendly():
    if question:
        at = asked_at(frame)
        with frame.shared.lock:
            forecaster = frame.shared.forecaster
            if "job" in question:
                answer = forecaster.when_job(question["job"], at, frame.viewer)
            else:
                answer = forecaster.when(to_request(question, frame.viewer.user), at, frame.viewer)
        keep(frame, answer)
        show_answer(frame, answer)
    else:
        with st.container(border=True, key="invite"):
            st.markdown("#### :material/arrow_back: " + _("Say what you would ask for, or name a job that waits"))
            st.markdown(
                _(
                    "You get the range in which 8 in 10 like jobs start, the chance to start within 1, 4 and 24 hours, what like "
                    "jobs really waited, and how far to trust it. The link keeps your question: send it to a colleague."
                )
            )
