"""Hours asked for, used and reclaimable, as stacked bars.

Colours are those of Okabe and Ito, told apart by every kind of colour vision; parts keep their order, and those with room carry
their share. Days are UTC.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC
from typing import Any

import altair as alt
import pandas as pd

from app.ui.charts import BLUES, ink
from app.ui.words import cell, day_month, percent
from queuecast.answers.rightsizing.overrequest_answer import Amounts, Group, Hours, Period
from queuecast.i18n import N_, _, ngettext

RESOURCES = {"gpu": N_("GPU-hours"), "core": N_("Core-hours"), "memory": N_("Memory, GiB-hours")}
BARS = {"gpu": N_("GPUs"), "core": N_("CPUs"), "memory": N_("Memory")}
PARTS = {
    "used": (N_("used"), BLUES[0.5], "#FFFFFF"),
    "reclaimable": (N_("could be freed"), "#E69F00", "#1B2733"),
    "by_default": (N_("set by the site's default"), "#CC79A7", "#1B2733"),
    "unused": (N_("unused, nothing proposed"), BLUES[0.95], "#1B2733"),
    "unknown": (N_("not measured"), "#8A96A3", "#1B2733"),
}
"""Name, colour, colour of the text on it."""
LEAST_ROOM = 0.09


def segments(hours: Hours) -> dict[str, float]:
    """What the hours asked for fall into; they add up to ``asked``."""
    rest = hours.measured - hours.used - hours.reclaimable - hours.by_default
    return {
        "used": hours.used,
        "reclaimable": hours.reclaimable,
        "by_default": hours.by_default,
        "unused": max(0.0, rest),
        "unknown": max(0.0, hours.asked - hours.measured),
    }


def hours_words(hours: float | None) -> str:
    """``12,300``, ``4.2`` or ``unknown``."""
    if hours is None:
        return _("unknown")
    return f"{hours:,.0f}" if hours >= 100 else f"{hours:.1f}" if hours >= 0.05 or hours == 0 else "< 0.1"


def group_name(group: Group) -> str:
    """As shown: hostile text, for cells and pictures only."""
    if group.rest:
        return ngettext("{n} other", "{n} others", group.rest).format(n=group.rest)
    return cell(group.name) if group.name else _("unknown")


def whole_chart(total: Amounts) -> alt.LayerChart:
    """One bar per resource, each as shares of what was asked for."""
    strong = ink()[1]
    rows = [
        row
        for name, hours in total.items()
        if name in RESOURCES and hours.asked > 0
        for row in _rows(_(BARS[name]), hours, hours.asked, share=True)
    ]
    x = alt.X(
        "from:Q",
        title=_("share of what was asked for"),
        scale=alt.Scale(domain=[0, 1], nice=False),
        axis=alt.Axis(values=[0, 0.25, 0.5, 0.75, 1], labelExpr="round(100 * datum.value) + ' %'", titleColor=strong, labelColor=strong),
    )
    return _stacked(rows, [_(v) for v in BARS.values()], x, _("resource"))


def groups_chart(groups: Sequence[Group], resource: str) -> alt.LayerChart:
    """One bar per group in hours, in the order given."""
    faint = ink()[1]
    of = [(group_name(g), dict(g.amounts.items())[resource]) for g in groups]
    most = max((h.asked for _n, h in of), default=0.0)
    rows = [row for name, hours in of for row in _rows(name, hours, most, share=False)]
    x = alt.X(
        "from:Q",
        title=_(RESOURCES[resource]),
        scale=alt.Scale(domain=[0, max(most, 1e-6) * 1.02], nice=False),
        axis=alt.Axis(tickCount=5, format="~s", titleColor=faint, labelColor=faint),
    )
    return _stacked(rows, [n for n, _h in of], x, _("whose"))


def _rows(name: str, hours: Hours, whole: float, *, share: bool) -> list[dict[str, Any]]:
    rows, done = [], 0.0
    scale = whole if share else 1.0
    for part, value in segments(hours).items():
        if value > 0:
            of_asked = value / hours.asked if hours.asked > 0 else 0.0
            rows.append(
                {
                    "name": name,
                    "part": _(PARTS[part][0]),
                    "ink": PARTS[part][2],
                    "from": done / scale,
                    "to": (done + value) / scale,
                    "middle": (done + value / 2) / scale,
                    "hours": hours_words(value),
                    "share": part_words(of_asked),
                    "label": part_words(of_asked) if value / whole >= LEAST_ROOM else "",
                    "jobs": hours.jobs,
                }
            )
        done += value
    return rows


def part_words(share: float) -> str:
    """A share of what was counted; all of it is all of it."""
    return "100 %" if share >= 1 else percent(share)


def _stacked(rows: list[dict[str, Any]], order: Sequence[str], x: alt.X, what: str) -> alt.LayerChart:
    strong = ink()[0]
    data = pd.DataFrame(rows, columns=["name", "part", "ink", "from", "to", "middle", "hours", "share", "label", "jobs"])
    y = alt.Y(
        "name:N",
        sort=list(order),
        title=None,
        axis=alt.Axis(labelFontSize=13, labelColor=strong, labelLimit=130, ticks=False, domain=False),
    )
    tips = [
        alt.Tooltip("name:N", title=what),
        alt.Tooltip("part:N", title=_("part")),
        alt.Tooltip("hours:N", title=_("hours")),
        alt.Tooltip("share:N", title=_("of what was asked for")),
        alt.Tooltip("jobs:Q", title=_("jobs")),
    ]
    base = alt.Chart(data)
    bars = base.mark_bar(height=26).encode(x=x, x2="to:Q", y=y, color=_color(data), tooltip=tips)
    numbers = (
        base.transform_filter("datum.label != ''")
        .mark_text(fontSize=12, fontWeight=600)
        .encode(x=alt.X("middle:Q"), y=y, text="label:N", color=alt.Color("ink:N", scale=None))
    )
    return alt.layer(bars, numbers).resolve_scale(color="independent").properties(height=alt.Step(42)).configure_view(strokeWidth=0)


def _color(data: pd.DataFrame) -> alt.Color:
    strong = ink()[0]
    there = set(data["part"])
    shown = [(_(name), color) for name, color, _ink in PARTS.values() if _(name) in there]
    return alt.Color(
        "part:N",
        sort=[n for n, _c in shown],
        scale=alt.Scale(domain=[n for n, _c in shown], range=[c for _n, c in shown]),
        legend=alt.Legend(title=None, orient="top", labelFontSize=12.5, labelColor=strong, symbolType="square", columns=2, labelLimit=200),
    )


def trend_chart(periods: Sequence[Period], step: str, resource: str) -> alt.LayerChart:
    """Hours by day or week, stacked, from the first with any."""
    faint = ink()[1]
    begun = next((i for i, p in enumerate(periods) if any(h.asked > 0 for _n, h in p.amounts.items())), 0)
    periods = periods[begun:]
    rows = []
    for number, period in enumerate(periods):
        hours = dict(period.amounts.items())[resource]
        done = 0.0
        for part, value in segments(hours).items():
            if value > 0:
                rows.append(
                    {
                        "low": number - 0.42,
                        "high": number + 0.42,
                        "from": done,
                        "to": done + value,
                        "part": _(PARTS[part][0]),
                        "hours": hours_words(value),
                        "when": day_month(period.begin.astimezone(UTC)),
                        "asked": hours_words(hours.asked),
                    }
                )
            done += value
    every = max(1, -(-len(periods) // 6))
    values = list(range(0, len(periods), every))
    words = json.dumps({str(v): day_month(periods[v].begin.astimezone(UTC)) for v in values})
    title = _("day (UTC)") if step == "day" else _("week from (UTC)")
    x = alt.X(
        "low:Q",
        title=title,
        scale=alt.Scale(domain=[-0.6, len(periods) - 0.4], nice=False),
        axis=alt.Axis(
            values=values, labelExpr=f"{words}[datum.value]", labelOverlap="greedy", grid=False, titleColor=faint, labelColor=faint
        ),
    )
    y = alt.Y("from:Q", title=_(RESOURCES[resource]), axis=alt.Axis(tickCount=5, format="~s", titleColor=faint, labelColor=faint))
    data = pd.DataFrame(rows, columns=["low", "high", "from", "to", "part", "hours", "when", "asked"])
    tips = [
        alt.Tooltip("when:N", title=title),
        alt.Tooltip("part:N", title=_("part")),
        alt.Tooltip("hours:N", title=_("hours")),
        alt.Tooltip("asked:N", title=_("asked for in all")),
    ]
    bars = alt.Chart(data).mark_bar().encode(x=x, x2="high:Q", y=y, y2="to:Q", color=_color(data), tooltip=tips)
    return alt.layer(bars).properties(height=300).configure_view(strokeWidth=0)
