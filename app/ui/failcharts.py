"""Failures over time by class, and where and when nodes failed.

Colours are of Okabe and Ito's palette, told apart by every kind of colour vision; parts keep their order. Days are UTC.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

import altair as alt
import pandas as pd

from app.ui.charts import ACCENT, BLUES, ink
from app.ui.failview import group_title
from app.ui.shell import Frame
from app.ui.words import day_month
from queuecast.answers.failures.groups import FailureGroup
from queuecast.i18n import N_, _
from queuecast.reasons.failureclasses import FailureClass

COLORS: dict[FailureClass, str] = {
    "user_code": BLUES[0.5],
    "environment": "#56B4E9",
    "oom_host": "#E69F00",
    "oom_gpu": "#F0E442",
    "time_limit": "#CC79A7",
    "node": ACCENT,
    "platform": "#7A3300",
    "preempted": "#009E73",
}
SHORT: dict[FailureClass, str] = {
    "user_code": N_("its own program"),
    "environment": N_("something missing"),
    "oom_host": N_("main memory"),
    "oom_gpu": N_("GPU memory"),
    "time_limit": N_("time limit"),
    "node": N_("node"),
    "platform": N_("platform"),
    "preempted": N_("preempted"),
}
OTHER, OTHER_COLOR = N_("cancelled, other"), "#8A96A3"
HEIGHT = 300
STEPS = (900, 3600, 3 * 3600, 6 * 3600, 86400, 2 * 86400, 5 * 86400, 14 * 86400, 30 * 86400)


def part_of(name: FailureClass) -> str:
    """The class's short name, or that of the rest."""
    return _(SHORT.get(name, OTHER))


def classes_chart(failed: Sequence[tuple[datetime, FailureClass]], since: datetime, at: datetime) -> alt.LayerChart:
    """Failed attempts by the day of their end."""
    strong, faint = ink()
    first, last = since.astimezone(UTC).date(), at.astimezone(UTC).date()
    counts = Counter((end.astimezone(UTC).date(), part_of(name)) for end, name in failed)
    begun = min((day for day, _part in counts), default=first)
    days = [max(first, begun) + timedelta(days=i) for i in range((last - max(first, begun)).days + 1)]
    order = [_(name) for name in SHORT.values()] + [_(OTHER)]
    rows = []
    for number, day in enumerate(days):
        done = 0
        for part in order:
            count = counts[(day, part)]
            if count:
                rows.append(
                    {
                        "low": number - 0.42,
                        "high": number + 0.42,
                        "from": done,
                        "to": done + count,
                        "part": part,
                        "count": count,
                        "day": _name(day),
                    }
                )
            done += count
    data = pd.DataFrame(rows, columns=["low", "high", "from", "to", "part", "count", "day"])
    there = set(data["part"])
    shown = [(part, color) for part, color in zip(order, [*COLORS.values(), OTHER_COLOR], strict=True) if part in there]
    every = max(1, -(-len(days) // 7))
    values = list(range(0, len(days), every))
    words = json.dumps({str(v): _name(days[v]) for v in values})
    x = alt.X(
        "low:Q",
        title=_("day of the end (UTC)"),
        scale=alt.Scale(domain=[-0.6, len(days) - 0.4], nice=False),
        axis=alt.Axis(
            values=values, labelExpr=f"{words}[datum.value]", labelOverlap="greedy", grid=False, titleColor=faint, labelColor=faint
        ),
    )
    y = alt.Y("from:Q", title=_("attempts"), axis=alt.Axis(tickMinStep=1, tickCount=5, format="~s", titleColor=faint, labelColor=faint))
    color = alt.Color(
        "part:N",
        sort=[p for p, _c in shown],
        scale=alt.Scale(domain=[p for p, _c in shown], range=[c for _p, c in shown]),
        legend=alt.Legend(title=None, orient="top", labelFontSize=12, labelColor=strong, symbolType="square", columns=2, labelLimit=130),
    )
    tips = [
        alt.Tooltip("day:N", title=_("day (UTC)")),
        alt.Tooltip("part:N", title=_("class")),
        alt.Tooltip("count:Q", title=_("attempts")),
    ]
    bars = alt.Chart(data).mark_bar().encode(x=x, x2="high:Q", y=y, y2="to:Q", color=color, tooltip=tips)
    return alt.layer(bars).properties(height=HEIGHT).configure_view(strokeWidth=0)


def _name(day: date) -> str:
    return day_month(datetime(day.year, day.month, day.day, tzinfo=UTC))


def nodes_chart(frame: Frame, groups: Sequence[FailureGroup], since: datetime, at: datetime) -> alt.LayerChart:
    """Each group on the line of its nodes, as wide as it lasted and marked by how many died."""
    strong, faint = ink()
    rows = []
    for group in groups:
        for node in group.nodes[:12]:
            rows.append(
                {
                    "node": node,
                    "from": _wall(frame, group.start),
                    "to": _wall(frame, group.end),
                    "failed": group.failed,
                    "said": group_title(group),
                    "when": frame.time(group.start),
                }
            )
    data = pd.DataFrame(rows)
    y = alt.Y("node:N", title=None, axis=alt.Axis(labelColor=strong, labelFontSize=13, labelLimit=140, grid=True))
    # Wall-clock seconds as plain numbers, because browsers shift times without a zone.
    low, high = _wall(frame, min([since, *(g.start for g in groups)])), _wall(frame, max([at, *(g.end for g in groups)]))
    step = next((s for s in STEPS if (high - low) / s <= 7), STEPS[-1])
    values = list(range(int(-(-low // step)) * step, int(high) + 1, step))
    words = json.dumps({str(v): _tick(v, step) for v in values})
    x = alt.X(
        "from:Q",
        title=_("time ({zone})").format(zone=frame.zone),
        scale=alt.Scale(domain=[low, high], nice=False),
        axis=alt.Axis(values=values, labelExpr=f"{words}[datum.value]", labelOverlap="greedy", titleColor=faint, labelColor=faint),
    )
    tips = [alt.Tooltip("said:N", title=" "), alt.Tooltip("when:N", title=_("from"))]
    base = alt.Chart(data).encode(x=x, y=y, tooltip=tips)
    size = alt.Size("failed:Q", scale=alt.Scale(range=[60, 400]), legend=None)
    return (
        alt.layer(
            base.mark_rule(color=ACCENT, strokeWidth=4, opacity=0.6).encode(x2="to:Q"),
            base.mark_point(filled=True, color=ACCENT, opacity=0.9, shape="diamond").encode(size=size),
        )
        .properties(height=alt.Step(34))
        .configure_view(strokeWidth=0)
    )


def _wall(frame: Frame, value: datetime) -> float:
    return value.astimezone(frame.zone).replace(tzinfo=UTC).timestamp()


def _tick(value: int, step: int) -> str:
    local = datetime.fromtimestamp(value, UTC)
    return day_month(local) if step >= 86400 or not (local.hour or local.minute) else f"{local:%H:%M}"
