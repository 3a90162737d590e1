"""What one ended job asked for and what it used."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import altair as alt
import pandas as pd
import pyarrow.compute as pc
import streamlit as st

from app.ui.charts import BLUES, ink
from app.ui.overview import show_generated
from app.ui.shell import Frame
from app.ui.words import percent, span
from queuecast.answers.lookup import KnownJob
from queuecast.i18n import N_, _
from queuecast.render.overrequest_words import amount
from queuecast.usage.measure import uses_of

QUALITY = {
    "too_low": N_("It was killed, so its CPU time is counted too low."),
    "implausible": N_("More CPU time was counted than its CPUs can have given: do not rely on it."),
    "few_steps": N_("Some of its nodes had no step: their CPU time is not counted."),
}


@dataclass(frozen=True)
class Used:
    """``share`` of what was asked for (above 1 if more); None: not measured. ``text`` says both amounts."""

    name: str
    share: float | None
    text: str


def show_use(frame: Frame, job: KnownJob, at: datetime) -> None:
    """The block. Raises ``QueuecastError``."""
    row = use_row(frame, job, at)
    if row is None:
        st.text(_("It never started, so it used nothing."))
        return
    if row["generated"]:
        show_generated()
    found = used_of(row)
    st.altair_chart(use_chart(found), width="stretch", key="use", alt=_("What it used of what it asked for"))
    silent = [u.name for u in found if u.share is None]
    if silent:
        st.caption(_("Not measured: {names}").format(names=", ".join(silent)))
    if row["cpu_quality"] in QUALITY:
        st.caption(_(QUALITY[row["cpu_quality"]]))
    if row["mem_at_least"]:
        st.caption(_("Its memory may have been higher: the figure is a lower bound."))
    if row["mem_asked_by"] == "default":
        st.caption(_("The memory was set by the site's default, not by the user."))
    if row["energy_joules"]:
        st.caption(_("Energy: {n} kWh").format(n=f"{row['energy_joules'] / 3.6e6:,.2f}"))


def use_row(frame: Frame, job: KnownJob, at: datetime) -> dict[str, Any] | None:
    """The job's row of the table of uses; None if it never ran."""
    if job.start is None:
        return None
    until = min(at, job.end + timedelta(seconds=1)) if job.end is not None else at
    rows = uses_of(frame.lake, frame.cluster, since=max(job.start, until - timedelta(seconds=2)), at=until).rows
    found = rows.filter(pc.equal(rows["job_id"], job.job_id)).sort_by("submit").to_pylist()
    return found[-1] if found else None


def used_of(row: dict[str, Any]) -> list[Used]:
    """Each resource that the job had."""
    out = [
        _used(_("time"), row["elapsed_s"], row["limit_s"], span),
        Used(
            _("CPUs"),
            row["cpu_share"],
            _("{used} of {asked} busy").format(used=_number(row["cpu_share"], row["cpus_alloc"]), asked=_plain(row["cpus_alloc"])),
        ),
        _used(_("memory"), row["mem_peak_bytes"], row["mem_alloc_bytes"], lambda v: amount(v, "bytes")),
    ]
    if row["gpus_alloc"]:
        kind = row["gpu_type"] or _("GPU")
        out.append(
            Used(
                _("GPUs, in the mean"),
                row["gpu_util_mean"],
                _("{used} of {asked} × {kind} computing").format(
                    used=percent(row["gpu_util_mean"]), asked=_plain(row["gpus_alloc"]), kind=kind
                ),
            )
        )
        seen = row["gpus_seen"]
        used = None if row["gpus_used"] is None or not seen else row["gpus_used"] / seen
        out.append(
            Used(_("GPUs ever used"), used, _("{used} of {asked}").format(used=_plain(row["gpus_used"]), asked=_plain(row["gpus_alloc"])))
        )
        out.append(_used(_("GPU memory"), row["gpu_mem_peak_bytes"], row["gpu_mem_total_bytes"], lambda v: amount(v, "bytes")))
    return out


def _used(name: str, used: float | None, asked: float | None, words: Any) -> Used:
    text = _("{used} of {asked}").format(
        used=_("unknown") if used is None else words(used), asked=_("an unknown amount") if not asked else words(asked)
    )
    return Used(name, used / asked if used is not None and asked else None, text)


def _plain(value: float | None) -> str:
    return _("unknown") if value is None else f"{value:g}"


def _number(share: float | None, whole: float | None) -> str:
    return _("unknown") if share is None or whole is None else f"{share * whole:.1f}"


def use_chart(found: list[Used]) -> alt.LayerChart:
    """A bar of what was used in an outline of what was asked for; the amounts stand above."""
    strong, faint = ink()
    rows = pd.DataFrame(
        [
            {"name": u.name, "share": min(u.share, 1.5), "one": 1.0, "zero": 0.0, "said": percent(u.share), "text": f"{u.name}: {u.text}"}
            for u in found
            if u.share is not None
        ],
        columns=["name", "share", "one", "zero", "said", "text"],
    )
    most = max(1.0, float(rows["share"].max()) if len(rows) else 1.0)
    y = alt.Y("name:N", sort=list(rows["name"]), title=None, axis=None)
    x = alt.X(
        "one:Q",
        title=_("share of what was asked for"),
        scale=alt.Scale(domain=[0, most * 1.02], nice=False),
        axis=alt.Axis(values=[0, 0.25, 0.5, 0.75, 1], labelExpr="round(100 * datum.value) + ' %'", titleColor=faint, labelColor=faint),
    )
    tips = [alt.Tooltip("text:N", title=" "), alt.Tooltip("said:N", title=_("used"))]
    base = alt.Chart(rows).encode(y=y, tooltip=tips)
    return (
        alt.layer(
            base.mark_bar(filled=False, stroke=faint, strokeWidth=1, height=14, yOffset=6).encode(x=x, x2="zero:Q"),
            base.mark_bar(color=BLUES[0.5], height=14, yOffset=6).encode(x=alt.X("share:Q"), x2="zero:Q"),
            base.mark_text(align="left", dy=-11, fontSize=13, color=strong).encode(x=alt.X("zero:Q"), text="text:N"),
        )
        .properties(height=alt.Step(48))
        .configure_view(strokeWidth=0)
    )
