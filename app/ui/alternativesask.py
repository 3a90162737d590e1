"""The section below an answer that looks for what would start sooner: on a press, or because the link says so."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

import streamlit as st

from app.ui.alternativesview import show_alternatives
from app.ui.question import MORE
from app.ui.shell import Frame
from queuecast.answers.alternatives import alternatives
from queuecast.answers.alternatives_answer import Alternatives
from queuecast.answers.lookup import find_job
from queuecast.answers.wait import WaitAnswer
from queuecast.i18n import _
from queuecast.twin import ready

OVER = ("started", "ended", "held")
"""Where another request would not start sooner, or releasing it is the only step."""

FUTURES = 60
"""Enough for the ends of an 80 % range; twice as many take twice as long."""

FIRST = 5
"""Played first, to see how long one takes on this queue and machine."""

BUDGET_S = 60.0
"""A reader does not wait longer: on a long queue fewer futures are played, and that is said."""

ENOUGH = 20
"""With fewer the ends of ranges are called rough."""


def _make_turns(path: str) -> threading.Lock:
    """Futures are played for one reader at a time, and outside the forecaster's own lock: short questions are answered meanwhile."""
    return threading.Lock()


_turns: Callable[[str], threading.Lock] = st.cache_resource(_make_turns, max_entries=4, show_spinner=False)


def offer_alternatives(frame: Frame, answer: WaitAnswer, question: Mapping[str, str]) -> None:
    """The section, whichever state it is in."""
    if answer.status in OVER:
        return
    asked = (frame.cluster, frame.lake.manifest.version, st.query_params.get("at", ""), tuple(sorted(question.items())))
    with st.container(key="sooner"):
        st.subheader(_("What would start sooner"), anchor=False)
        kept = st.session_state.get(MORE)
        if kept is not None and kept[0] == asked:
            _show(frame, kept[1], question)
            return
        place = st.empty()
        if not st.query_params.get(MORE):
            with place.container():
                st.markdown(
                    _(
                        "Fewer GPUs, another type, partition or QOS, a shorter limit, an array, a later start: each that you may ask "
                        "for is played in the same futures of the queue as your request."
                    )
                )
                st.button(_("Look for it"), icon=":material/fast_forward:", key="look", on_click=_look, help=_("Takes some seconds."))
            return
        with place.container():
            found = _found(frame, answer, question)
        place.empty()
        st.session_state[MORE] = (asked, found)
        _show(frame, found, question)


def _show(frame: Frame, found: Alternatives, question: Mapping[str, str]) -> None:
    if 0 < found.futures < ENOUGH:
        st.warning(
            _("This queue is long: only {n} futures could be played here, so the ranges are rough. The command line plays more:").format(
                n=found.futures
            )
            + " `queuecast alternatives`",
            icon=":material/hourglass_bottom:",
        )
    show_alternatives(frame, found, question)


def _look() -> None:
    st.query_params[MORE] = "1"


def _found(frame: Frame, answer: WaitAnswer, question: Mapping[str, str]) -> Alternatives:
    bar = st.progress(
        0.0, _("Reading the queue as it was") if ready() else _("Compiling the replay, the first time only: about two minutes")
    )

    def play(futures: int, words: str) -> Alternatives:
        def show(done: int, most: int) -> None:
            bar.progress(min(1.0, done / max(1, most)), words.format(share=f"{100 * done / max(1, most):.0f} %"))

        return alternatives(frame.shared.forecaster, answer.request, answer.at, frame.viewer, job=job, futures=futures, progress=show)

    with _turns(str(frame.lake.path)):
        job = find_job(frame.lake, frame.cluster, question["job"], answer.at) if "job" in question else None
        began = time.monotonic()
        found = play(FIRST, _("Playing a few futures of the queue: {share}"))
        each = (time.monotonic() - began) / FIRST
        futures = FUTURES if each * FUTURES <= BUDGET_S else int(BUDGET_S / each)
        if not found.futures or futures < 2 * FIRST:
            return found
        return play(futures, _("Playing futures of the queue, the same for each change: {share}"))
