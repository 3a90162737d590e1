"""Pictures of choices: wait against end with their ranges, and what fills a GPU's memory.

Choices that no other beats are filled and carry their names, others are hollow: nothing rests on colour alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from app.ui.charts import ACCENT, BLUES, FLOOR_S, TICKS, dot_color, ink
from app.ui.words import span
from queuecast.i18n import _

HEIGHT = 340
PLOT = 280.0
"""About as high as the plot is without its axis: names are kept apart by it."""

LINE = 15.0
SMALL, LARGE = 90.0, 700.0


@dataclass(frozen=True)
class Point:
    """A choice. ``wait`` and ``finish``: low, middle, high in seconds from the moment asked about; infinite: history ends before.
    ``weight`` sets its size (None: the least) and is told as ``weight_words``. ``best``: no other beats it. ``asked``: what was asked."""

    name: str
    wait: tuple[float, float, float]
    finish: tuple[float, float, float]
    weight: float | None
    weight_words: str
    best: bool
    asked: bool = False
    beyond: str = ""
    """How an infinite time is told; "": as what history does not reach."""

    @property
    def drawable(self) -> bool:
        """Its middle is known."""
        return math.isfinite(self.wait[1]) and math.isfinite(self.finish[1])


def pareto_chart(points: Sequence[Point]) -> alt.LayerChart | None:
    """Wait across, end upwards, both on log scales; None if fewer than two can be drawn."""
    shown = [p for p in points if p.drawable]
    if len(shown) < 2:
        return None
    strong, faint = ink()
    x_scale, x_axis = _axis([s for p in shown for s in p.wait], _("wait, log scale"), faint)
    y_scale, y_axis = _axis([s for p in shown for s in p.finish], _("until it has ended, log scale"), faint)
    x = alt.X("wait:Q", scale=x_scale, axis=x_axis)
    y = alt.Y("finish:Q", scale=y_scale, axis=y_axis)
    (left, right), (low, high) = x_scale.domain, y_scale.domain
    rows = [_row(p, (left, right), (low, high), max((q.weight or 0.0 for q in shown), default=0.0)) for p in shown]
    data = pd.DataFrame(rows)
    told = [
        alt.Tooltip("name:N", title=_("choice")),
        alt.Tooltip("waits:N", title=_("wait, half")),
        alt.Tooltip("wait_range:N", title=_("8 in 10")),
        alt.Tooltip("ends:N", title=_("ends in, likely")),
        alt.Tooltip("finish_range:N", title=_("ends in, range")),
        alt.Tooltip("weight:N", title=_("uses")),
    ]
    bars = alt.Chart(data).encode(tooltip=told)
    layers: list[alt.Chart] = [
        bars.mark_rule(color=faint, opacity=0.55, strokeWidth=1.5).encode(x=alt.X("wait_low:Q", scale=x_scale), x2="wait_high:Q", y=y),
        bars.mark_rule(color=faint, opacity=0.55, strokeWidth=1.5).encode(y=alt.Y("finish_low:Q", scale=y_scale), y2="finish_high:Q", x=x),
    ]
    for best, asked, mark in (
        (False, False, {"shape": "circle", "filled": False, "color": BLUES[0.8], "strokeWidth": 2}),
        (True, False, {"shape": "circle", "filled": True, "color": dot_color(), "stroke": "white", "strokeWidth": 1}),
        (False, True, {"shape": "diamond", "filled": False, "color": ACCENT, "strokeWidth": 2.5}),
        (True, True, {"shape": "diamond", "filled": True, "color": ACCENT, "stroke": "white", "strokeWidth": 1}),
    ):
        part = data[(data["best"] == best) & (data["asked"] == asked)]
        if len(part):
            layers.append(alt.Chart(part).mark_point(opacity=1, **mark).encode(x=x, y=y, size=alt.Size("size:Q", scale=None), tooltip=told))
    return alt.layer(*layers, *_names(rows, (left, right), (low, high), strong)).properties(height=HEIGHT).configure_view(strokeWidth=0)


def _axis(seconds: Sequence[float], title: str, faint: str) -> tuple[alt.Scale, alt.Axis]:
    known = [max(FLOOR_S, s) for s in seconds if math.isfinite(s)]
    first, last = min(known) / 1.35, max(max(known), 2 * min(known)) * 1.6
    ticks = [t for t in TICKS if first <= t <= last] or [round(math.sqrt(first * last))]
    words = json.dumps({str(t): span(t) for t in ticks})
    axis = alt.Axis(
        title=title,
        values=ticks,
        labelExpr=f"{words}[datum.value]",
        labelOverlap="greedy",
        titleColor=faint,
        labelColor=faint,
        gridOpacity=0.4,
    )
    return alt.Scale(type="log", domain=[first, last], nice=False), axis


def _row(point: Point, across: tuple[float, float], up: tuple[float, float], most: float) -> dict[str, Any]:
    def held(value: float, ends: tuple[float, float]) -> float:
        return min(max(value, FLOOR_S, ends[0]), ends[1])

    def said(seconds: float) -> str:
        return point.beyond if point.beyond and math.isinf(seconds) else span(seconds)

    share = math.sqrt((point.weight or 0.0) / most) if most else 0.0
    return {
        "name": point.name,
        "best": point.best,
        "asked": point.asked,
        "wait": held(point.wait[1], across),
        "wait_low": held(point.wait[0], across),
        "wait_high": held(point.wait[2], across),
        "finish": held(point.finish[1], up),
        "finish_low": held(point.finish[0], up),
        "finish_high": held(point.finish[2], up),
        "size": SMALL + (LARGE - SMALL) * share * share,
        "waits": said(point.wait[1]),
        "ends": said(point.finish[1]),
        "wait_range": _("{low} to {high}").format(low=said(point.wait[0]), high=said(point.wait[2])),
        "finish_range": _("{low} to {high}").format(low=said(point.finish[0]), high=said(point.finish[2])),
        "weight": point.weight_words,
    }


def _names(rows: Sequence[Mapping[str, Any]], across: tuple[float, float], up: tuple[float, float], color: str) -> list[alt.Chart]:
    """Names of the best and of what was asked: above the lines through their marks, towards the middle, pushed apart where they would
    overlap, and with a rim of the background's colour."""
    rim = "#1A1C20" if st.context.theme.type == "dark" else "white"
    named = sorted((r for r in rows if r["best"] or r["asked"]), key=lambda r: -float(r["finish"]))
    height = [PLOT * math.log(up[1] / r["finish"]) / math.log(up[1] / up[0]) for r in named]  # pixels from the top
    above = [at - 7 - 0.4 * math.sqrt(r["size"]) for at, r in zip(height, named, strict=True)]
    layers = []
    for row, at, to in zip(named, height, apart(above, LINE, PLOT), strict=True):
        right = math.log(row["wait"] / across[0]) > 0.55 * math.log(across[1] / across[0])
        look = {
            "align": "right" if right else "left",
            "dx": -7 if right else 7,
            "dy": to - at,
            "fontSize": 12,
            "fontWeight": 600,
            "limit": 230,
        }
        base = alt.Chart(pd.DataFrame([{"wait": row["wait"], "finish": row["finish"], "text": row["name"]}])).encode(
            x="wait:Q", y="finish:Q", text="text:N"
        )
        layers += [base.mark_text(stroke=rim, strokeWidth=4, opacity=0.85, **look), base.mark_text(color=color, **look)]
    return layers


def apart(places: Sequence[float], least: float, end: float) -> list[float]:
    """Ascending places moved as little as it takes to be ``least`` apart and, if there is room, below ``end``."""
    out: list[float] = []
    for place in places:
        out.append(place if not out else max(place, out[-1] + least))
    limit = end
    for k in range(len(out) - 1, -1, -1):
        if out[k] <= limit:
            break
        out[k] = limit
        limit -= least
    return out if all(b - a >= least - 1e-9 for a, b in pairwise(out)) and (not out or out[0] >= 0) else list(places)


PARTS = {
    "weights": ("#0072B2", "white"),
    "gradients": ("#56B4E9", "#1B2733"),
    "optimiser": ("#00785A", "white"),
    "activations": ("#E69F00", "#1B2733"),
    "logits": ("#F0E442", "#1B2733"),
    "kv_cache": ("#CC79A7", "#1B2733"),
    "gathered": ("#D55E00", "white"),
    "overhead": ("#8A949E", "#1B2733"),
}
"""Colours of bar and text, told apart by every kind of colour vision; each part is also named in words below the bar."""

GIB = 2**30


def memory_bar(parts: Mapping[str, float], words: Mapping[str, str], usable: float, whole: float) -> alt.LayerChart:
    """One GPU's memory in GiB: its parts in their order, what stays free, and what is not counted on. All in bytes."""
    faint = ink()[1]
    left = 0.0
    rows = []
    for name, value in parts.items():
        if value > 0:
            color, text = PARTS.get(name, PARTS["overhead"])
            size = value / GIB
            rows.append(
                {"from": left, "to": left + size, "middle": left + size / 2, "size": f"{size:.1f} GiB", "name": words.get(name, name)}
                | {"color": color, "text": text}
            )
            left += size
    free, kept = max(0.0, usable / GIB - left), max(0.0, (whole - usable) / GIB)
    end = max(whole / GIB, left)
    data = pd.DataFrame(rows)
    empty = pd.DataFrame(
        [
            {"from": left, "to": left + free, "name": _("free"), "size": f"{free:.1f} GiB", "shade": 0.12},
            {"from": left + free, "to": end, "name": _("not counted on: driver, ECC"), "size": f"{kept:.1f} GiB", "shade": 0.4},
        ]
    )
    x = alt.X(
        "from:Q",
        scale=alt.Scale(domain=[0, end], nice=False),
        axis=alt.Axis(
            title=None, tickCount=5, labelExpr="datum.value + ' GiB'", grid=False, labelColor=faint, domain=False, labelFlush=True
        ),
    )
    told = [alt.Tooltip("name:N", title=_("part")), alt.Tooltip("size:N", title=_("size"))]
    layers: list[alt.Chart] = [
        alt.Chart(empty).mark_bar(color=faint, height=24).encode(x=x, x2="to:Q", opacity=alt.Opacity("shade:Q", scale=None), tooltip=told),
        alt.Chart(data).mark_bar(height=24).encode(x=x, x2="to:Q", color=alt.Color("color:N", scale=None), tooltip=told),
    ]
    wide = data[data["to"] - data["from"] > 0.13 * end]
    if len(wide):
        layers.append(
            alt.Chart(wide)
            .mark_text(fontSize=11, limit=90)
            .encode(x="middle:Q", text="name:N", color=alt.Color("text:N", scale=None), tooltip=told)
        )
    return alt.layer(*layers).resolve_scale(color="independent").properties(height=44).configure_view(strokeWidth=0)
