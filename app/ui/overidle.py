"""What stands idle now, whom to write to, and what the queue would have been."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from app.ui.csvsafe import to_csv
from app.ui.overcharts import hours_words
from app.ui.overview import show_generated
from app.ui.shell import Frame
from app.ui.words import as_markdown, cell, percent, span
from queuecast.answers.rightsizing.overrequest_answer import OverRequests
from queuecast.answers.rightsizing.overrequest_effect_answer import Effect, Moved
from queuecast.i18n import N_, _, ngettext
from queuecast.render.overrequest_messages import messages
from queuecast.usage.idle import IdleGpu

LANGUAGES = {"en": N_("English"), "zh": N_("Chinese")}


def show_idle(frame: Frame, answer: OverRequests) -> None:
    """Running jobs whose GPUs do nothing."""
    hours = f"{answer.idle_hours:g}"
    if answer.idle is None:
        st.text(_("Not known: readings of GPUs were never taken. They come from nvidia-smi or DCGM as CSV:"))
        st.code("queuecast ingest FOLDER", language="bash")
        return
    hidden = ngettext("{n} more is of others.", "{n} more are of others.", answer.idle_hidden).format(n=answer.idle_hidden)
    if not answer.idle:
        st.text(_("No running job left its GPUs idle for the last {hours} h.").format(hours=hours))
        if answer.idle_hidden:
            st.caption(hidden)
        return
    if any(job.generated for job in answer.idle):
        show_generated()
    lost = sum(job.gpu_hours for job in answer.idle)
    st.text(
        ngettext(
            "{n} running job did nothing on its GPUs for {hours} h or longer: {lost} GPU-hours so far.",
            "{n} running jobs did nothing on their GPUs for {hours} h or longer: {lost} GPU-hours so far.",
            len(answer.idle),
        ).format(n=len(answer.idle), hours=hours, lost=hours_words(lost))
    )
    chosen = st.dataframe(
        idle_table(frame, answer.idle),
        hide_index=True,
        width="stretch",
        key="idle",
        placeholder="–",
        on_select="rerun",
        selection_mode="single-row",
        height=min(360, 38 + 35 * len(answer.idle)),
    )
    rows = chosen["selection"]["rows"]
    with st.container(horizontal=True, vertical_alignment="center", key="idle_foot"):
        st.download_button(
            _("Download CSV"), idle_csv(answer.idle), "idle.csv", "text/csv", key="idle_csv", icon=":material/download:", on_click="ignore"
        )
        if rows and rows[0] < len(answer.idle) and st.button(_("Open the chosen job"), key="idle_open", type="primary"):
            st.switch_page("views/job.py", query_params={"job": answer.idle[rows[0]].job_id_text})
    if answer.idle_hidden:
        st.caption(hidden)
    st.markdown("**" + _("Whom to contact") + "**")
    st.code(contact_list(answer.idle), language=None, wrap_lines=True)


def contact_list(found: Sequence[IdleGpu]) -> str:
    """One line per user, the most GPU-hours first. Plain text."""
    lost: dict[str, float] = {}
    jobs: dict[str, list[str]] = {}
    for job in found:
        name = cell(job.user or _("unknown"))
        lost[name] = lost.get(name, 0.0) + job.gpu_hours
        jobs.setdefault(name, []).append(" ".join(job.job_id_text.split()))
    ordered = sorted(lost, key=lambda name: -lost[name])
    return "\n".join(
        _("{user}: jobs {jobs} ({hours} GPU-hours)").format(user=name, jobs=", ".join(jobs[name]), hours=hours_words(lost[name]))
        for name in ordered
    )


def idle_table(frame: Frame, found: Sequence[IdleGpu]) -> pd.DataFrame:
    """The longest first, as they come."""
    return pd.DataFrame(
        {
            _("job"): [j.job_id_text for j in found],
            _("user"): [None if j.user is None else cell(j.user) for j in found],
            _("idle since"): [frame.time(j.idle_since) for j in found],
            _("GPUs"): [j.gpus for j in found],
            _("GPU type"): [j.gpu_type for j in found],
            _("GPU-hours"): [round(j.gpu_hours, 1) for j in found],
            _("node"): [j.node_list for j in found],
            _("name"): [None if j.name is None else cell(j.name) for j in found],
            _("account"): [j.account for j in found],
            _("partition"): [j.partition for j in found],
            _("readings"): [j.samples for j in found],
        }
    )


def idle_csv(found: Sequence[IdleGpu]) -> bytes:
    """For a spreadsheet."""
    header = (
        "job_id",
        "user",
        "account",
        "partition",
        "name",
        "nodes",
        "gpus",
        "gpu_type",
        "idle_since_utc",
        "gpu_hours",
        "readings",
        "generated",
    )
    return to_csv(
        header,
        (
            [j.job_id_text, j.user, j.account, j.partition, j.name, j.node_list, j.gpus, j.gpu_type,
             f"{j.idle_since:%Y-%m-%dT%H:%M:%SZ}", round(j.gpu_hours, 2), j.samples, "yes" if j.generated else "no"]
            for j in found
        ),
    )  # fmt: skip


def show_messages(frame: Frame, answer: OverRequests) -> None:
    """A ready message for each user, to copy."""
    language = st.segmented_control(
        _("Language"), list(LANGUAGES), format_func=lambda code: _(LANGUAGES[code]), key="message_language", default="en", required=True
    )
    found = messages(answer, language or "en", str(frame.zone))
    if not found:
        st.text(_("There is nothing to write to anybody about."))
        return
    names = [m.user for m in found]
    user = st.selectbox(_("To"), names, key="message_user", width=260)
    message = found[names.index(user)] if user in names else found[0]
    st.text(_("Subject: {subject}").format(subject=message.subject))
    st.code(message.text, language=None, wrap_lines=True)
    whole = "\n\n".join(f"To: {m.user}\nSubject: {m.subject}\n\n{m.text}" for m in found)
    st.download_button(
        ngettext("Download {n} message", "Download {n} messages", len(found)).format(n=len(found)),
        whole.encode(),
        "messages.txt",
        "text/plain",
        key="messages_file",
        icon=":material/download:",
        on_click="ignore",
    )
    st.caption(_("Nothing is sent: copy it into a mail."))


def show_effect(found: Effect) -> None:
    """Before and after, with how far to trust it."""
    if not found.moved:
        for note in found.notes:
            st.text(note)
        return
    if found.doubtful:
        st.warning(_("The replay is far from what was recorded: take the direction, not the amount."), icon=":material/warning:")
    every = found.moved[0]
    with st.container(horizontal=True, key="effect"):
        _before_after(_("median wait"), span(every.before_s), span(every.after_s))
        _before_after(_("GPUs allocated"), percent(found.occupied_before), percent(found.occupied_after))
        if found.busy_before is not None:
            _before_after(_("allocated GPU time that computes"), percent(found.busy_before), percent(found.busy_after))
    st.dataframe(effect_table(found.moved), hide_index=True, width="stretch", key="moved", placeholder="–")
    st.caption(
        _("{kinds} kinds changed, {jobs} jobs. Replayed {n} times in pairs; the range is that of the pairs.").format(
            kinds=found.kinds, jobs=f"{found.fixed:,}", n=found.replays
        )
    )
    if found.real_median_s is not None:
        st.caption(
            _("Recorded median wait {real}, replayed {twin}; {near} of the starts within 10 min.").format(
                real=span(found.real_median_s), twin=span(found.twin_median_s), near=percent(found.within_10min)
            )
        )
    for note in found.notes:
        st.caption(as_markdown(note))


def _before_after(label: str, before: str, after: str) -> None:
    st.metric(label, f"{before} → {after}", border=True, width="stretch")


def effect_table(moved: Sequence[Moved]) -> pd.DataFrame:
    """Waits of sets of jobs, in minutes as words."""
    return pd.DataFrame(
        {
            _("jobs of"): [m.name for m in moved],
            _("jobs"): [m.jobs for m in moved],
            _("median wait before"): [span(m.before_s) for m in moved],
            _("after"): [span(m.after_s) for m in moved],
            _("sooner, on average"): [signed(m.mean_sooner_s) for m in moved],
            _("range"): [
                None if m.low_s is None or m.high_s is None else _("{low} to {high}").format(low=signed(m.low_s), high=signed(m.high_s))
                for m in moved
            ],
        }
    )


def signed(seconds: float | None) -> str | None:
    """A gain, or a loss with a minus sign."""
    if seconds is None:
        return None
    return span(seconds) if seconds >= 0 else f"−{span(-seconds)}"
