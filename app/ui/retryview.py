"""The corrected copy of a job's script, and the attempts that a job belongs to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from urllib.parse import quote

import pandas as pd
import streamlit as st

from app.ui.files import closed_words, may_open
from app.ui.shell import Frame
from app.ui.words import as_markdown, percent, span
from queuecast import clock
from queuecast.answers.retries.answer import RetryAnswer
from queuecast.answers.retries.header import title
from queuecast.answers.retries.lineage import Attempt, Lineage, lineage
from queuecast.answers.retries.lineage_log import append
from queuecast.answers.retries.retry import retry
from queuecast.errors import UsageError
from queuecast.i18n import N_, _, ngettext

LINKS = {
    "requeue": N_("queued again"), "comment": N_("corrected copy"), "log": N_("corrected copy, by the lake's log"),
    "guess": N_("a guess: same name and folder"),
}  # fmt: skip


def show_copy(frame: Frame, job: str, at: datetime, owner: str | None) -> None:
    """The block. Raises ``QueuecastError`` but for a script that is not to be had."""
    opened = may_open(frame, owner)
    try:
        with st.spinner(_("Making the copy …")):
            answer = retry(frame.lake, frame.cluster, job, at, frame.viewer, local=opened)
    except UsageError as error:
        st.text(error.message[:1].upper() + error.message[1:] + ".")
        if error.hint:
            st.text(_("What to do: {hint}").format(hint=error.hint))
        if not opened:
            st.caption(as_markdown(closed_words(f"queuecast retry {job} > retry.sh")))
        return
    _show_state(answer)
    if answer.changes:
        st.dataframe(changes_table(answer), hide_index=True, width="stretch", key="changes", placeholder="–")
    for text in (*answer.warnings, *(f.why for f in answer.findings)):
        st.markdown(":material/warning: " + as_markdown(text))
    for text in answer.notes:
        st.caption(as_markdown(text))
    if answer.diff:
        st.markdown("**" + _("Differences") + "**")
        st.code(shown("\n".join(answer.diff)), language="diff", wrap_lines=True)
    if answer.script is not None:
        _show_script(frame, answer)


def _show_state(answer: RetryAnswer) -> None:
    with st.container(border=True, key="copy"):
        if answer.ready:
            st.markdown("#### :material/content_copy: " + _("A corrected copy"))
        else:
            st.markdown("#### :material/block: " + _("It would fail again as it is"))
            st.text(answer.blocked or "")
        st.caption(
            as_markdown(
                _("Cause: {cause} ({share} sure). The old script is not touched.").format(
                    cause=title(answer.failure_class), share=percent(answer.confidence)
                )
            )
        )
        if answer.mend:
            st.text(_("Look at this first:"))
            st.markdown("\n".join(f"- {as_markdown(text)}" for text in answer.mend))
        found = answer.checkpoint.found if answer.checkpoint is not None else None
        if found is not None:
            st.text(_("It goes on from the checkpoint {path}.").format(path=found.resume))


def changes_table(answer: RetryAnswer) -> pd.DataFrame:
    """Each changed option with the reason."""
    return pd.DataFrame(
        {
            _("option"): [f"--{c.option}" for c in answer.changes],
            _("before"): [c.before for c in answer.changes],
            _("after"): [c.after for c in answer.changes],
            _("why"): [c.why for c in answer.changes],
        }
    )


def shown(text: str) -> str:
    """Bytes that are not UTF-8 as replacement characters: a browser cannot show them."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def file_name(job: str) -> str:
    """``retry-1234_5.sh``."""
    return f"retry-{re.sub(r'[^0-9A-Za-z_+-]', '_', job)[:40]}.sh"


def _show_script(frame: Frame, answer: RetryAnswer) -> None:
    name, script = file_name(answer.job), answer.script or ""

    def noted() -> None:
        """So that the lineage is known where accounting keeps no comments."""
        if not frame.is_recording:
            append(frame.lake.path, answer, clock.now(), name)

    with st.container(horizontal=True, vertical_alignment="center", key="take"):
        st.download_button(
            _("Download the copy"),
            script.encode("utf-8", "surrogateescape"),
            name,
            "text/x-shellscript",
            key="script_file",
            type="primary",
            icon=":material/download:",
            on_click=noted,
        )
        st.caption(as_markdown(_("Then: queuecast check {name}; sbatch {name}").format(name=name)))
    with st.expander(_("The whole copy"), icon=":material/terminal:"):
        st.code(shown(script), language="bash", height=420)


def show_lineage(frame: Frame, job: str, at: datetime) -> None:
    """The tree of attempts. Raises ``QueuecastError``."""
    with st.spinner(_("Looking for earlier and later attempts …")):
        answer = lineage(frame.lake, frame.cluster, job, at, frame.viewer)
    if len(answer.attempts) < 2:
        st.text(_("No other attempt is known."))
    if answer.attempts:
        st.markdown("\n".join(tree_lines(frame, answer)))
    for note in answer.notes:
        st.caption(as_markdown(note))


def tree_lines(frame: Frame, answer: Lineage) -> list[str]:
    """The tree as a nested list, in Markdown that holds nothing of its own making but links to jobs."""
    below: dict[int | None, list[int]] = {}
    for i, attempt in enumerate(answer.attempts):
        below.setdefault(attempt.parent, []).append(i)
    out: list[str] = []
    left: list[tuple[int, int]] = [(i, 0) for i in reversed(below.get(None, []))]
    while left:
        i, depth = left.pop()
        attempt = answer.attempts[i]
        lead = "    " * min(depth, 10)
        link = f"[{as_markdown(attempt.job)}](?job={quote(attempt.job, safe='')})"
        mark = " :material/arrow_left_alt:" if attempt.job == answer.asked and len(answer.attempts) > 1 else ""
        out.append(f"{lead}- **{link}**{mark} {as_markdown(attempt_words(frame, attempt))}")
        if attempt.changed:
            out.append(f"{lead}    - {as_markdown(_('changed: {text}').format(text=changed_words(attempt.changed)))}")
        left += [(child, depth + 1) for child in reversed(below.get(i, []))]
    return out


def changed_words(changed: Sequence[tuple[str, str | None, str | None]]) -> str:
    """What is asked for otherwise than before."""
    return ", ".join(f"{name} {before or '–'} → {after or '–'}" for name, before, after in changed)


def attempt_words(frame: Frame, attempt: Attempt) -> str:
    """How it follows, how it ended, what it took."""
    words = [attempt.name or ""]
    if attempt.link in LINKS:
        words.append(_(LINKS[attempt.link]))
    if attempt.tasks > 1:
        words.append(ngettext("{n} task", "{n} tasks", attempt.tasks).format(n=attempt.tasks))
    states = ", ".join(f"{n} {state.lower()}" if attempt.tasks > 1 else state.lower() for state, n in attempt.states.items())
    words.append(f"{states} ({title(attempt.failure_class)})" if attempt.failure_class else states)
    words.append(_("submitted {time}").format(time=frame.time(attempt.submit)))
    if attempt.elapsed_s is not None:
        words.append(_("ran {span}").format(span=span(attempt.elapsed_s)))
    if attempt.gpu_hours:
        words.append(_("{n} GPU-h").format(n=f"{attempt.gpu_hours:,.1f}"))
    elif attempt.core_hours:
        words.append(_("{n} core-h").format(n=f"{attempt.core_hours:,.1f}"))
    return " · ".join(w for w in words if w)
