"""One job as pictures: who is ahead, the parts of its priority, its story."""

from __future__ import annotations

from datetime import datetime, timedelta

import altair as alt
import pandas as pd

from app.ui.charts import ACCENT, BLUES, ink
from app.ui.shell import Frame
from queuecast.answers.explaining.explain import WhyAnswer
from queuecast.answers.explaining.priority import Priority
from queuecast.answers.explaining.queue import Ahead
from queuecast.i18n import N_, _

KINDS = {
    "submitted": N_("submitted"), "eligible": N_("eligible"), "reason": N_("waits"), "estimate": N_("Slurm's estimate"),
    "started": N_("started"), "requeued": N_("queued again"), "ended": N_("ended"), "node": N_("its nodes"),
}  # fmt: skip


def ahead_chart(ahead: Ahead) -> alt.Chart:
    """GPU-hours asked for by account; jobs where some are unknown or none asks for GPUs."""
    strong, faint = ink()
    hours = all(a.gpu_hours is not None for a in ahead.shared) and any(a.gpu_hours for a in ahead.shared)
    rows = pd.DataFrame([{"account": a.account or "–", "value": a.gpu_hours if hours else a.jobs, "jobs": a.jobs} for a in ahead.shared])
    return (
        alt.Chart(rows)
        .mark_bar(color=BLUES[0.5], cornerRadius=2)
        .encode(
            x=alt.X("value:Q", title=_("GPU-hours asked for") if hours else _("jobs"), axis=alt.Axis(titleColor=faint, labelColor=faint)),
            y=alt.Y("account:N", sort="-x", title=None, axis=alt.Axis(labelColor=strong, labelFontSize=13, labelLimit=140)),
            tooltip=[
                alt.Tooltip("account:N", title=_("account")),
                alt.Tooltip("value:Q", title=_("ahead"), format=",.0f"),
                alt.Tooltip("jobs:Q", title=_("jobs")),
            ],
        )
        .properties(height=alt.Step(34))
    )


def priority_chart(found: Priority) -> alt.LayerChart:
    """Points of each part; behind it, in outline, what it can reach."""
    strong, faint = ink()
    rows = pd.DataFrame([{"part": p.title, "points": p.points, "most": max(p.most or 0, p.points)} for p in found.parts])
    y = alt.Y("part:N", sort=list(rows["part"]), title=None, axis=alt.Axis(labelColor=strong, labelFontSize=13, labelLimit=160))
    tips = [alt.Tooltip("part:N", title=_("part")), alt.Tooltip("points:Q", title=_("points")), alt.Tooltip("most:Q", title=_("at most"))]
    axis = alt.Axis(titleColor=faint, labelColor=faint, tickCount=5)
    base = alt.Chart(rows).encode(y=y, tooltip=tips)
    return (
        alt.layer(
            base.mark_bar(filled=False, stroke=faint, strokeWidth=1, height=16).encode(x=alt.X("most:Q", title=_("points"), axis=axis)),
            base.mark_bar(color=BLUES[0.5], height=16).encode(x=alt.X("points:Q")),
            base.mark_text(align="left", dx=6, color=strong).encode(x=alt.X("most:Q"), text="points:Q"),
        )
        .properties(height=alt.Step(32))
        .configure_view(strokeWidth=0)
    )


def _local(frame: Frame, value: datetime) -> datetime:
    return value.astimezone(frame.zone).replace(tzinfo=None)


def story_chart(frame: Frame, answer: WhyAnswer) -> alt.LayerChart:
    """Stretches as bars, moments as points, one line per kind of event."""
    strong, faint = ink()
    kinds = [k for k in KINDS if any(e.kind == k for e in answer.events)]
    last = max([e.until or e.at for e in answer.events])
    least = max((last - answer.events[0].at) / 200, timedelta(seconds=1))
    rows = pd.DataFrame(
        [
            {
                "kind": _(KINDS[e.kind]),
                "from": _local(frame, e.at).isoformat(),
                "to": _local(frame, max(e.until, e.at + least) if e.until else e.at).isoformat(),
                "text": e.text,
                "bar": e.until is not None,
            }
            for e in answer.events
        ]
    )
    y = alt.Y("kind:N", sort=[_(KINDS[k]) for k in kinds], title=None, axis=alt.Axis(labelColor=strong, labelFontSize=13, labelLimit=140))
    x = alt.X("from:T", title=None, axis=alt.Axis(labelColor=faint, tickCount=6, labelOverlap=True))
    tips = [alt.Tooltip("text:N", title=" "), alt.Tooltip("from:T", title=_("from"), format="%Y-%m-%d %H:%M")]
    base = alt.Chart(rows).encode(x=x, y=y, tooltip=tips)
    return alt.layer(
        base.transform_filter("datum.bar").mark_bar(height=12, color=BLUES[0.8], stroke="white").encode(x2="to:T"),
        base.transform_filter("!datum.bar").mark_point(filled=True, size=90, color=ACCENT, opacity=0.9),
    ).properties(height=alt.Step(36))
