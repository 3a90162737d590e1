"""Small changes of a pending job's request that would matter: looked for when asked, since each is put to the wait model."""

from __future__ import annotations

import streamlit as st

from app.ui.shell import Frame
from app.ui.words import as_markdown
from queuecast.answers.explaining.changes_answer import Change, Changes
from queuecast.answers.explaining.explain import WhyAnswer, with_changes
from queuecast.answers.forecast import Forecaster
from queuecast.errors import QueuecastError
from queuecast.i18n import _
from queuecast.render.whychanges import before_words, effect_words, gain_words, wait_words


def show_changes(frame: Frame, answer: WhyAnswer) -> None:
    """A button, and below it what was found for this job at this moment."""
    if not answer.pending or answer.binding is None:
        return
    key = (answer.cluster, answer.job.text, answer.at, frame.lake.manifest.version, frame.viewer)
    kept: tuple[object, Changes, tuple[str, ...]] | None = st.session_state.get("job_changes")
    st.subheader(_("What would change that"), anchor=False)
    if kept is None or kept[0] != key:
        st.text(_("Fewer or other GPUs, a shorter limit, another partition or QOS, less memory: only what is allowed here."))
        if not st.button(_("Look for changes that matter"), key="look_changes", icon=":material/tune:"):
            return
        with frame.shared.lock, st.spinner(_("Trying allowed changes …")):
            found = with_changes(answer, frame.lake, frame.viewer, forecaster=_forecaster(frame))
        if found.changes is None:
            return
        kept = (key, found.changes, found.unknown[len(answer.unknown) :])
        st.session_state["job_changes"] = kept
    _show(kept[1], kept[2])


def _forecaster(frame: Frame) -> Forecaster | None:
    try:
        return frame.shared.forecaster
    except QueuecastError:  # then the changes are told without waits, and why
        return None


def _show(found: Changes, unknown: tuple[str, ...]) -> None:
    for text in (*found.notes, *unknown, before_words(found)):
        if text:
            st.text(text)
    if not found.changes:
        if found.tried:
            st.text(_("Of {n} allowed changes of the request none would matter much by what is known here.").format(n=found.tried))
        return
    for i, change in enumerate(found.changes):
        with st.container(border=True, key=f"change{i}"):
            _one(change, found)


def _one(change: Change, found: Changes) -> None:
    st.markdown("**" + as_markdown(change.label) + "** · " + as_markdown(effect_words(change)))
    told = [wait_words(change, found), gain_words(change, found.futures), *change.conditions]
    for text in (t for t in told if t):
        st.text("• " + text)
    if change.flags:
        command = "scontrol update" if change.keeps_place else "sbatch"
        st.code(f"{command} {' '.join(change.flags)}", language="bash", wrap_lines=True)
