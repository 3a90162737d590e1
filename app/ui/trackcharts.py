"""How past answers held, as pictures. None shows a share or a middle of fewer than five answers.

Colours are those of the wait page: blue for our answers, vermilion for Slurm's. Lines carry their names, and their
points differ in shape. Days are UTC, so that all readers see the same.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from app.ui.charts import ACCENT, BLUES, FLOOR_S, TICKS, dot_color, ink
from app.ui.trackview import FEW, range_words, to_words
from app.ui.words import day_month, percent, short_day, span
from queuecast.answers.track import CLAIMED, Curve, Errors, Slice
from queuecast.i18n import _

DAYS_BETWEEN = (1, 2, 4, 7, 14, 28)
HEIGHT = 300
SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


def coverage_chart(days: Sequence[Slice]) -> alt.LayerChart | None:
    """Share of 80 % intervals that held by day with the range that chance allows, against the claim. None without a day."""
    strong, faint = ink()
    shown = [s for s in days if s.held.counted >= FEW]
    rows: list[dict[str, Any]] = [
        {
            "x": _day(s.name).toordinal(),
            "held": s.held.held,
            "low": s.held.low,
            "high": s.held.high,
            "day": short_day(_day(s.name)),
            "said": percent(s.held.held),
            "range": range_words(s.held),
            "counted": s.held.counted,
            "waiting": s.waiting,
            "settled": s.settled,
        }
        for s in shown
    ]
    if not rows:
        return None
    data = pd.DataFrame(_gaps(rows))
    first, last = _ends(rows)
    # A round share that leaves room for the note below the bars.
    bottom = max(0.0, min(0.6, math.floor(5 * min(s.held.low or 0.0 for s in shown) - 0.4) / 5))
    x = _day_axis(first, last, last + 0.7)
    scale = alt.Scale(domain=[bottom, 1], nice=False, zero=False)
    y = alt.Y("held:Q", title=_("80 % intervals that held"), scale=scale, axis=_share_axis(faint))
    told = [
        alt.Tooltip("day:N", title=_("day (UTC)")),
        alt.Tooltip("said:N", title=_("held")),
        alt.Tooltip("range:N", title=_("within chance")),
        alt.Tooltip("counted:Q", title=_("answers counted")),
        alt.Tooltip("waiting:Q", title=_("still waiting")),
    ]
    base = alt.Chart(data).encode(x=x, tooltip=told)
    claimed = alt.Chart(pd.DataFrame([{"y": CLAIMED}])).encode(y="y:Q")
    words = _("dashed: claimed {share}").format(share=percent(CLAIMED))
    note = alt.Chart(pd.DataFrame([{"x": last + 0.6, "y": bottom, "text": words}]))
    return _finished(
        base.mark_bar(color=BLUES[0.95], opacity=0.45, width=_bar(last - first), cornerRadius=2).encode(
            y=alt.Y("low:Q", scale=scale), y2="high:Q"
        ),
        claimed.mark_rule(color=strong, strokeDash=[6, 4], strokeWidth=1.5),
        base.mark_line(color=dot_color(), strokeWidth=2).encode(y=y),
        *_dots(base, y, dot_color(), "circle"),
        note.mark_text(align="right", baseline="bottom", dy=-3, fontSize=12, color=strong).encode(x="x:Q", y="y:Q", text="text:N"),
        height=HEIGHT,
    )


def error_chart(days: Sequence[Slice]) -> alt.LayerChart | None:
    """The middle error by day: ours and Slurm's on the same answers, or ours alone where Slurm told too little to compare
    on a third of the days. None without a day."""
    faint = ink()[1]
    beside = [s for s in days if s.slurm.count >= FEW]
    alone = [s for s in days if s.ours.count >= FEW]
    if 3 * len(beside) >= max(1, len(alone)):
        lines = [
            ("queuecast", dot_color(), "circle", [(s, s.ours_beside_slurm) for s in beside]),
            ("Slurm", ACCENT, "diamond", [(s, s.slurm) for s in beside]),
        ]
    else:
        lines = [("queuecast", dot_color(), "circle", [(s, s.ours) for s in alone])]
    drawn = [(name, color, shape, _error_rows(name, pairs)) for name, color, shape, pairs in lines]
    drawn = [line for line in drawn if line[3]]
    if not drawn:
        return None
    rows = [row for line in drawn for row in line[3]]
    first, last = _ends(rows)
    low, high = min(r["y"] for r in rows) / 1.5, max(r["y"] for r in rows) * 1.5
    ticks = [t for t in TICKS if low <= t <= high]
    words = json.dumps({str(t): span(t) for t in ticks})
    x = _day_axis(first, last, last + 0.7 + 0.33 * (last - first + 2))  # room for the names
    y = alt.Y(
        "y:Q",
        title=_("off by (log scale)"),
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(values=ticks, labelExpr=f"{words}[datum.value]", labelOverlap="greedy", titleColor=faint, labelColor=faint),
    )
    shift = _apart([line[3][-1]["y"] for line in drawn], math.log(high / low), HEIGHT - 90.0)
    layers: list[alt.Chart] = []
    for (name, color, shape, line), dy in zip(drawn, shift, strict=True):
        base = alt.Chart(pd.DataFrame(_gaps(line))).encode(
            x=x,
            tooltip=[
                alt.Tooltip("who:N", title=_("estimate of")),
                alt.Tooltip("day:N", title=_("day (UTC)")),
                alt.Tooltip("said:N", title=_("off by, in the middle")),
                alt.Tooltip("near:N", title=_("within a factor of 2")),
                alt.Tooltip("count:Q", title=_("answers compared")),
            ],
        )
        layers += [base.mark_line(color=color, strokeWidth=2).encode(y=y), *_dots(base, y, color, shape)]
        end = alt.Chart(pd.DataFrame([{**line[-1], "name": name}])).encode(x=x, y=y, text="name:N")
        layers.append(end.mark_text(align="left", dx=9, dy=dy, fontSize=12.5, fontWeight=600, color=color))
    return _finished(*layers, height=HEIGHT)


def reliability_chart(curve: Curve) -> alt.LayerChart:
    """The chance told against the share that came; on the dashed line both are the same."""
    strong, faint = ink()
    data = pd.DataFrame(
        [
            {
                "told": p.told,
                "came": p.came,
                "low": p.low,
                "high": p.high,
                "cases": p.cases,
                "said": percent(p.told),
                "saw": percent(p.came),
                "range": to_words(p.low, p.high),
            }
            for p in curve.points
        ]
    )
    scale = alt.Scale(domain=[-0.02, 1.02], nice=False)
    x = alt.X("told:Q", title=_("chance told"), scale=scale, axis=_share_axis(faint))
    y = alt.Y("came:Q", title=_("share that came"), scale=scale, axis=_share_axis(faint))
    ideal = alt.Chart(pd.DataFrame([{"told": v, "came": v} for v in (0.0, 1.0)]))
    base = alt.Chart(data).encode(
        x=x,
        tooltip=[
            alt.Tooltip("said:N", title=_("chance told")),
            alt.Tooltip("saw:N", title=_("share that came")),
            alt.Tooltip("range:N", title=_("within chance")),
            alt.Tooltip("cases:Q", title=_("answers")),
        ],
    )
    note = alt.Chart(pd.DataFrame([{"told": 0.03, "came": 0.97, "text": _("came more often")}]))
    other = alt.Chart(pd.DataFrame([{"told": 0.97, "came": 0.03, "text": _("came less often")}]))
    faintly = {"fontSize": 11.5, "color": faint}
    return _finished(
        ideal.mark_line(color=strong, strokeDash=[6, 4], strokeWidth=1.5).encode(x=x, y=y),
        note.mark_text(align="left", baseline="top", **faintly).encode(x=x, y=y, text="text:N"),
        other.mark_text(align="right", baseline="bottom", **faintly).encode(x=x, y=y, text="text:N"),
        base.mark_rule(color=BLUES[0.8], strokeWidth=2).encode(y=alt.Y("low:Q"), y2="high:Q"),
        base.mark_line(color=dot_color(), strokeWidth=2).encode(y=y),
        base.mark_circle(color=dot_color(), opacity=1, size=60).encode(y=y),
        height=HEIGHT,
    )


def pit_chart(pit: Sequence[float], count: int) -> alt.LayerChart:
    """Where in the told distribution the starts fell, in tenths; a tenth of them belongs in each."""
    strong, faint = ink()
    width = 1.0 / len(pit)
    data = pd.DataFrame(
        [
            {
                "from": i * width,
                "to": (i + 1) * width,
                "share": share,
                "zero": 0.0,
                "said": percent(share),
                "tenth": to_words(i * width, (i + 1) * width),
                "count": round(share * count),
            }
            for i, share in enumerate(pit)
        ]
    )
    top = max(0.2, 1.2 * max(pit))
    y = alt.Y("share:Q", title=_("share of the starts"), scale=alt.Scale(domain=[0, top], nice=False), axis=_share_axis(faint, 0.05))
    bars = alt.Chart(data).encode(
        x=alt.X("from:Q", title=_("place in the range told"), scale=alt.Scale(domain=[0, 1], nice=False), axis=_share_axis(faint)),
        tooltip=[
            alt.Tooltip("tenth:N", title=_("place in the range told")),
            alt.Tooltip("said:N", title=_("share of the starts")),
            alt.Tooltip("count:Q", title=_("starts")),
        ],
    )
    even = alt.Chart(pd.DataFrame([{"y": width}])).encode(y="y:Q")
    note = alt.Chart(pd.DataFrame([{"from": 0.99, "share": 0.98 * top, "text": _("dashed: as it should be")}]))
    return _finished(
        bars.mark_bar(color=BLUES[0.8], stroke=_page(), strokeWidth=1).encode(x2="to:Q", y=y, y2="zero:Q"),
        even.mark_rule(color=strong, strokeDash=[6, 4], strokeWidth=1.5),
        note.mark_text(align="right", baseline="top", fontSize=11.5, color=faint).encode(x="from:Q", y="share:Q", text="text:N"),
        height=HEIGHT,
    )


def _day(name: str) -> datetime:
    return datetime.fromisoformat(name)


def _ends(rows: Sequence[dict[str, Any]]) -> tuple[int, int]:
    days = [int(r["x"]) for r in rows]
    return min(days), max(days)


def _gaps(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row without a value after each day that is followed by a missing one: the line breaks there."""
    found = []
    for i, row in enumerate(rows):
        found.append(row)
        if i + 1 < len(rows) and rows[i + 1]["x"] > row["x"] + 1:
            found.append(dict.fromkeys(row) | {"x": row["x"] + 1})
    return found


def _error_rows(who: str, pairs: Iterable[tuple[Slice, Errors]]) -> list[dict[str, Any]]:
    return [
        {
            "x": _day(s.name).toordinal(),
            "y": max(FLOOR_S, e.median_abs_s),
            "who": who,
            "day": short_day(_day(s.name)),
            "said": span(e.median_abs_s),
            "near": percent(e.within_2x),
            "count": e.count,
            "settled": s.settled,
        }
        for s, e in pairs
        if e.median_abs_s is not None
    ]


def _day_axis(first: int, last: int, end: float) -> alt.X:
    """Days as plain numbers, because browsers shift dates by the reader's zone."""
    faint = ink()[1]
    step = next((s for s in DAYS_BETWEEN if (last - first) / s <= 7), DAYS_BETWEEN[-1])
    values = list(range(last, first - 1, -step))[::-1]
    words = json.dumps({str(v): day_month(datetime.fromordinal(v)) for v in values})
    return alt.X(
        "x:Q",
        title=_("day asked (UTC)"),
        scale=alt.Scale(domain=[first - 0.7, end], nice=False),
        axis=alt.Axis(
            values=values, labelExpr=f"{words}[datum.value]", labelOverlap="greedy", grid=False, titleColor=faint, labelColor=faint
        ),
    )


def _share_axis(faint: str, step: float | None = None) -> alt.Axis:
    values = SHARES if step is None else [step * i for i in range(21)]
    return alt.Axis(
        values=list(values), labelExpr="round(100 * datum.value) + ' %'", labelOverlap="greedy", titleColor=faint, labelColor=faint
    )


def _bar(days: int) -> int:
    """Width in pixels that still parts the days on a phone."""
    return 22 if days <= 8 else 13 if days <= 15 else 7


def _dots(base: alt.Chart, y: alt.Y, color: str, shape: str) -> list[alt.Chart]:
    """Filled where a day is settled, hollow where many of its jobs still wait."""
    look = {"shape": shape, "color": color, "size": 55, "opacity": 1}
    return [
        base.transform_filter("datum.settled === true").mark_point(filled=True, **look).encode(y=y),
        base.transform_filter("datum.settled === false").mark_point(filled=False, strokeWidth=1.8, **look).encode(y=y),
    ]


def _page() -> str:
    """About the colour of the reader's background."""
    return "#17181A" if st.context.theme.type == "dark" else "#FFFFFF"


def _apart(values: Sequence[float], decades: float, height: float) -> list[float]:
    """Shifts in pixels that part the names of two lines that end near each other."""
    if len(values) < 2:
        return [0.0] * len(values)
    gap = math.log(values[0] / values[1]) / decades * height
    if abs(gap) >= 16:
        return [0.0, 0.0]
    half = (16 - abs(gap)) / 2
    return [-half, half] if gap >= 0 else [half, -half]


def _finished(*layers: alt.Chart, height: int) -> alt.LayerChart:
    return alt.layer(*layers).properties(height=height).configure_view(strokeWidth=0)
