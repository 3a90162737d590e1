"""Pictures of a wait: the intervals on a time axis, and what like jobs really waited.

Colours are of one hue and differ in lightness, bands differ in thickness and carry their names, so nothing rests on
colour alone. Times are drawn in the reader's zone.
"""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta, tzinfo

import altair as alt
import pandas as pd
import streamlit as st

from app.ui.words import clock_time, short_day, span
from queuecast.answers.wait import Interval, WaitAnswer
from queuecast.i18n import _

BLUES = {0.5: "#0B66A8", 0.8: "#5FA3D3", 0.95: "#A9CDE8"}
THICK = {0.5: 26, 0.8: 20, 0.95: 14}
ACCENT = "#D55E00"
"""Vermilion: told apart from blue by every kind of colour vision."""

TICKS = (
    60,
    300,
    900,
    3600,
    3 * 3600,
    6 * 3600,
    12 * 3600,
    86400,
    2 * 86400,
    4 * 86400,
    7 * 86400,
    14 * 86400,
    30 * 86400,
    60 * 86400,
)
STEPS = (300, 900, 1800, 3600, 2 * 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86400, 2 * 86400, 7 * 86400, 14 * 86400, 30 * 86400)
FLOOR_S = 30.0
"""Where waits of nothing are drawn on a log axis."""

BINS = 34


def ink() -> tuple[str, str]:
    """Colours of text and of faint text on the reader's background."""
    dark = st.context.theme.type == "dark"
    return ("#F2F5F8", "#A8B4BF") if dark else ("#1B2733", "#5B6B7A")


def dot_color() -> str:
    """The hue of the bands, bright enough for the reader's background."""
    return "#7CC0F0" if st.context.theme.type == "dark" else BLUES[0.5]


def band_name(share: float) -> str:
    """How a band is called everywhere."""
    return {0.5: _("half"), 0.8: _("8 in 10"), 0.95: _("19 in 20")}.get(share, f"{share:.0%}")


def interval_chart(answer: WaitAnswer, zone: tzinfo, now: datetime) -> alt.LayerChart:
    """When it starts: a bar per interval, the median across, Slurm's estimate as a diamond."""
    strong, faint = ink()
    end_s = _reach(answer)
    slurm = answer.slurm.start if answer.slurm else None
    if slurm is not None and slurm > answer.at:
        end_s = max(end_s, min((slurm - answer.at).total_seconds() * 1.1, 3 * end_s))
    names = [band_name(i.share) for i in answer.intervals]
    rows = []
    drawn = [i for i in answer.intervals if i.low_s < end_s]
    for i in drawn:
        high = min(i.high_s, end_s)
        rows.append(
            {
                "band": band_name(i.share),
                "share": i.share,
                "low": _local(answer, i.low_s, zone),
                "high": _local(answer, high, zone),
                "cut": i.high_s > end_s,
                "from": _say(answer, i.low_s, zone, now),
                "to": _say(answer, i.high_s, zone, now),
            }
        )
    data = pd.DataFrame(rows)
    values, words = _time_ticks(answer.at, end_s, zone)
    axis = alt.Axis(
        title=_("start ({zone})").format(zone=zone),
        values=values,
        labelExpr=f"{words}[datum.value]",
        labelOverlap="greedy",
        grid=True,
        titleColor=faint,
        labelColor=faint,
    )
    scale = alt.Scale(domain=[_local(answer, 0, zone), _local(answer, end_s, zone)], nice=False)
    x = alt.X("low:Q", scale=scale, axis=axis)
    y = alt.Y("band:N", sort=names, title=None, axis=alt.Axis(labelFontSize=13, labelColor=strong, ticks=False, domain=False))
    layers: list[alt.Chart] = []
    for i in drawn:
        part = data[data["share"] == i.share]
        layers.append(
            alt.Chart(part)
            .mark_bar(height=THICK.get(i.share, 16), cornerRadius=3, color=BLUES.get(i.share, BLUES[0.8]))
            .encode(
                x=x,
                x2="high:Q",
                y=y,
                tooltip=[
                    alt.Tooltip("band:N", title=_("of such jobs")),
                    alt.Tooltip("from:N", title=_("from")),
                    alt.Tooltip("to:N", title=_("to")),
                ],
            )
        )
    cut = data[data["cut"]]
    if len(cut):
        layers.append(alt.Chart(cut).mark_text(text="▶", dx=-9, fontSize=13, color="#1B2733").encode(x=alt.X("high:Q"), y=y))
    layers += _median(answer, end_s, zone, now, strong)
    if slurm is not None and answer.at <= slurm <= answer.at + timedelta(seconds=end_s):
        layers += _slurm(slurm, zone, now, names)
    return alt.layer(*layers).properties(height=190).configure_view(strokeWidth=0)


def _median(answer: WaitAnswer, end_s: float, zone: tzinfo, now: datetime, color: str) -> list[alt.Chart]:
    median = answer.median_s
    if median is None or median > end_s:
        return []
    left = median < 0.6 * end_s
    row = pd.DataFrame(
        [{"x": _local(answer, median, zone), "text": _("half before {time}").format(time=_say(answer, median, zone, now))}]
    )
    return [
        alt.Chart(row).mark_rule(color=color, strokeWidth=2).encode(x="x:Q"),
        alt.Chart(row)
        .mark_text(align="left" if left else "right", dx=6 if left else -6, y=-9, fontSize=13, fontWeight=600, color=color)
        .encode(x="x:Q", text="text:N"),
    ]


def _slurm(start: datetime, zone: tzinfo, now: datetime, names: list[str]) -> list[alt.Chart]:
    row = pd.DataFrame([{"x": _wall(start, zone), "band": names[-1], "when": clock_time(start, zone, now)}])
    base = alt.Chart(row).encode(
        x="x:Q", y=alt.Y("band:N", sort=names), tooltip=[alt.Tooltip("when:N", title=_("Slurm's own estimate"))]
    )
    return [
        base.mark_point(shape="diamond", size=170, filled=True, color=ACCENT, stroke="white", strokeWidth=1.5, opacity=1),
        base.mark_text(text=_("Slurm"), dy=20, fontSize=12, color=ACCENT, fontWeight=600),
    ]


def _reach(answer: WaitAnswer) -> float:
    """Where the axis ends: the widest interval, unless it would squeeze the others."""
    highs = {i.share: i.high_s for i in answer.intervals if not math.isinf(i.high_s)}
    others = [v for v in (*(i.low_s for i in answer.intervals), answer.median_s or 0.0) if not math.isinf(v)]
    middle = highs.get(0.8) or highs.get(0.5) or 1.5 * max((*highs.values(), *others), default=0.0)
    widest = highs.get(0.95, 1.4 * middle)
    return max(600.0, min(widest, 3.0 * max(middle, 200.0)) * 1.04)


def _wall(value: datetime, zone: tzinfo) -> float:
    """The reader's wall clock as seconds: a plain number, because browsers and libraries shift times without a zone."""
    return value.astimezone(zone).replace(tzinfo=UTC).timestamp()


def _local(answer: WaitAnswer, seconds: float, zone: tzinfo) -> float:
    return _wall(answer.at + timedelta(seconds=seconds), zone)


def _time_ticks(at: datetime, end_s: float, zone: tzinfo) -> tuple[list[int], str]:
    """Round times of day on the reader's clock, and their names (as JSON): the day at midnight and at the start."""
    step = next((s for s in STEPS if end_s / s <= 8), STEPS[-1])
    first, last = _wall(at, zone), _wall(at + timedelta(seconds=end_s), zone)
    values = [math.ceil(first / step) * step + k * step for k in range(int(end_s / step) + 1)]
    values = [v for v in values if v <= last]
    words: dict[str, list[str]] = {}
    for n, value in enumerate(values):
        local = datetime.fromtimestamp(value, UTC)
        names_day = not n or local.hour == local.minute == 0
        words[str(value)] = [f"{local:%H:%M}", *([short_day(local)] if names_day else [])]
    return values, json.dumps(words)


def _say(answer: WaitAnswer, seconds: float, zone: tzinfo, now: datetime) -> str:
    moment = answer.moment(seconds)
    return _("later than history reaches") if moment is None else clock_time(moment, zone, now)


def like_chart(answer: WaitAnswer) -> alt.LayerChart | None:
    """Each like job's actual wait as a dot on a log axis, over the interval that eight in ten are expected in."""
    if answer.basis is None or not answer.basis.waits_s:
        return None
    strong, faint = ink()
    waits = [max(FLOOR_S, w) for w in answer.basis.waits_s]
    waited = answer.waited_s or 0.0
    band = _whole_wait(answer.interval(0.8), waited)
    shown = [*waits, *(b for b in band or () if not math.isinf(b)), *([waited] if waited >= 60 else [])]
    first, last = math.log10(min(*shown, 1800.0) * 0.8), math.log10(max(*shown, 3600.0) * 1.3)
    dots = _stacked(waits, first, last)
    top = max(7.0, max(dots["y"]) + (4 if waited >= 60 else 2))
    ticks = [t for t in TICKS if first <= math.log10(t) <= last]
    words = json.dumps({str(t): span(t) for t in ticks})
    look = {"titleColor": faint, "labelColor": faint, "grid": False}
    x = alt.X(
        "x:Q",
        title=_("wait from eligible to start, log scale"),
        scale=alt.Scale(type="log", domain=[10**first, 10**last], nice=False),
        axis=alt.Axis(values=ticks, labelExpr=f"{words}[datum.value]", labelOverlap="greedy", **look),
    )
    y = alt.Y(
        "y:Q",
        title=_("jobs"),
        scale=alt.Scale(domain=[0, top], nice=False),
        axis=alt.Axis(tickMinStep=1, format="d", tickCount=4, **look),
    )
    layers: list[alt.Chart] = []
    if band is not None:
        low, high = band[0], min(band[1], 10**last)
        middle = (math.log10(low) + math.log10(high)) / 2
        right = middle > first + 0.72 * (last - first)
        zone = pd.DataFrame([{"x": low, "x2": high, "y": 0, "y2": top}])
        text = pd.DataFrame([{"x": high if right else low, "y": top * 0.96, "text": _("8 in 10 expected here")}])
        layers += [
            alt.Chart(zone).mark_rect(color=BLUES[0.95], opacity=0.35).encode(x=x, x2="x2:Q", y=y, y2="y2:Q"),
            alt.Chart(text)
            .mark_text(fontSize=12, color=strong, align="right" if right else "left", dx=-5 if right else 5)
            .encode(x=x, y=y, text="text:N"),
        ]
    layers.append(
        alt.Chart(dots)
        .mark_circle(size=58, color=dot_color(), opacity=0.95)
        .encode(x=x, y=y, tooltip=[alt.Tooltip("wait:N", title=_("waited"))])
    )
    if waited >= 60:
        left = math.log10(waited) < (first + last) / 2
        mark = pd.DataFrame([{"x": waited, "y": top * 0.8, "zero": 0, "text": _("this job so far")}])
        layers += [
            alt.Chart(mark).mark_rule(color=ACCENT, strokeWidth=2, strokeDash=[5, 3]).encode(x=x, y=y, y2="zero:Q"),
            alt.Chart(mark)
            .mark_text(color=ACCENT, align="left" if left else "right", dx=5 if left else -5, dy=2, fontSize=12, fontWeight=600)
            .encode(x=x, y=y, text="text:N"),
        ]
    return alt.layer(*layers).properties(height=210).configure_view(strokeWidth=0)


def _whole_wait(interval: Interval | None, waited: float) -> tuple[float, float] | None:
    """An interval of the further wait as one of the whole wait, wide enough to be seen; None if history ends before it."""
    if interval is None or math.isinf(interval.low_s):
        return None
    low = max(FLOOR_S, waited + interval.low_s)
    return low, max(low * 1.03, waited + interval.high_s)


def _stacked(waits: list[float], first: float, last: float) -> pd.DataFrame:
    """Dots above each other where waits are alike: columns of equal width on the log axis."""
    width = (last - first) / BINS
    height: dict[int, int] = {}
    dots = []
    for wait in waits:
        k = int((math.log10(wait) - first) / width)
        height[k] = height.get(k, 0) + 1
        dots.append(
            {"x": 10 ** (first + (k + 0.5) * width), "y": height[k] - 0.5, "wait": span(0.0 if wait <= FLOOR_S else wait)}
        )
    return pd.DataFrame(dots)
