"""The pictures of an evaluation as PNG: matplotlib without a display, colours that the colour-blind can tell apart.

Names of partitions are other people's texts: mathematical markup is off, unprintable characters are shown as escapes.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from queuecast.i18n import _
from queuecast.models.measures import Cell
from queuecast.models.measures_summary import Curve, Period
from queuecast.render.words import safe, span

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from queuecast.features.history import Floats

BLUE, ORANGE, GREEN = "#0B66A8", "#D55E00", "#00795C"
INK, GREY, PALE = "#1B2733", "#5B6B7A", "#C9D2DA"
LEVEL_COLOURS = {0.5: "#0B66A8", 0.8: "#D55E00", 0.95: "#00795C"}
LEVEL_MARKS = {0.5: "o", 0.8: "s", 0.95: "D"}
TICKS_S = (1.0, 10.0, 60.0, 600.0, 3600.0, 6 * 3600.0, 86400.0, 7 * 86400.0, 30 * 86400.0)
DENSE_TICKS_S = (
    1.0,
    2.0,
    5.0,
    10.0,
    20.0,
    30.0,
    *(m * 60.0 for m in (1, 2, 5, 10, 20, 30)),
    *(h * 3600.0 for h in (1, 2, 3, 6, 12, 24, 48, 96)),
)
SPARSE_TICKS_S = (1.0, 60.0, 600.0, 3600.0, 86400.0, 7 * 86400.0, 30 * 86400.0)
MOST_CELLS = 24
LONGEST_NAME = 28

# Fonts with the letters of the languages that texts are translated to, as far as they are installed.
FONTS = ("DejaVu Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "Source Han Sans SC", "WenQuanYi Micro Hei", "PingFang SC")

STYLE: dict[str, Any] = {
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.labelsize": 10,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "figure.dpi": 120,
    "font.size": 10,
    "legend.frameon": False,
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": GREY,
    "ytick.color": GREY,
}


def available() -> bool:
    """Whether matplotlib is installed (the extra ``plot``)."""
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None


@contextmanager
def _drawing(width: float, height: float) -> Iterator[tuple[Figure, io.BytesIO]]:
    """A figure of this size in inches in the report's style; its PNG is in the buffer afterwards."""
    import matplotlib
    from matplotlib import font_manager
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    installed = {font.name for font in font_manager.fontManager.ttflist}
    style: Any = {**STYLE, "font.family": [name for name in FONTS if name in installed] or ["sans-serif"]}
    buffer = io.BytesIO()
    with matplotlib.rc_context(style), warnings.catch_warnings():
        # A letter no font has is drawn as a box; that must not stop a report.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        # Without pyplot: no global state, so several people can be served at once.
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        yield figure, buffer
        figure.savefig(buffer, format="png", metadata={"Software": None})


def reliability(curves: dict[int, Curve]) -> bytes:
    """One panel per horizon: the share that came against the probability told, with 95 % intervals."""
    with _drawing(3.6 * max(len(curves), 1), 3.7) as (figure, png):
        for i, (hours, curve) in enumerate(sorted(curves.items())):
            axes = figure.add_subplot(1, len(curves), i + 1)
            axes.plot([0, 1], [0, 1], color=PALE, linewidth=1.5, zorder=1)
            line = curve.line
            known = ~np.isnan(curve.low)
            axes.vlines(line.told[known], curve.low[known], curve.high[known], color=BLUE, alpha=0.45, linewidth=2, zorder=2)
            axes.plot(line.told, line.came, color=BLUE, linewidth=1.2, marker="o", markersize=5, zorder=3)
            axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
            axes.set_title(_("within {n} h").format(n=hours))
            axes.set_xlabel(_("probability told"))
            if i == 0:
                axes.set_ylabel(_("share that started"))
            axes.set(xticks=np.linspace(0, 1, 5), yticks=np.linspace(0, 1, 5))
            _percent_axes(axes.xaxis, axes.yaxis)
            _label(axes, 0.04, 0.94, _("started more often than told"), GREY)
            _label(axes, 0.96, 0.06, _("less often than told"), GREY, right=True)
    return png.getvalue()


def pit(shares: Floats) -> bytes:
    """Histogram of where waits fell in their distributions."""
    with _drawing(7.0, 3.0) as (figure, png):
        axes = figure.add_subplot()
        count = len(shares)
        axes.bar((np.arange(count) + 0.5) / count, shares, width=0.94 / count, color=BLUE)
        axes.axhline(1 / count, color=ORANGE, linewidth=1.5)
        axes.set(xlim=(0, 1), ylim=(0, max(2.0 / count, 1.1 * float(np.max(shares)))))
        axes.annotate(
            _("calibrated: {share} each").format(share=f"{100 / count:g} %"),
            (1.0, 1 / count),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            color=ORANGE,
            annotation_clip=False,
        )
        axes.set_xlabel(
            _("predicted probability of at most the wait that came") + "\n" + _("left: shorter than told; right: longer than told")
        )
        axes.set_ylabel(_("share of jobs"))
        _percent_axes(axes.xaxis, axes.yaxis)
    return png.getvalue()


def told_and_came(told_s: Floats, came_s: Floats) -> bytes:
    """Predicted median against the wait that came, both from one second on, on log axes."""
    from matplotlib.colors import LinearSegmentedColormap, LogNorm
    from matplotlib.patheffects import withStroke

    with _drawing(6.9, 5.4) as (figure, png):
        axes = figure.add_subplot()
        x, y = np.maximum(told_s, 1.0), np.maximum(came_s, 1.0)
        low, top = -0.15, float(np.log10(max(x.max(), y.max(), 600.0))) + 0.15
        ends = np.array([10**low, 10**top])
        shades = LinearSegmentedColormap.from_list("waits", ["#CFE0EE", BLUE, "#06233B"])
        axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
        axes.set_box_aspect(1)
        bins = axes.hexbin(
            x,
            y,
            gridsize=42,
            xscale="log",
            yscale="log",
            extent=(low, top, low, top),
            norm=LogNorm(),
            cmap=shades,
            mincnt=1,
            linewidths=0.1,
        )
        axes.plot(ends, ends, color=ORANGE, linewidth=1.5)
        for factor in (1 / 3, 3):
            axes.plot(ends, ends * factor, color=ORANGE, linewidth=0.9, linestyle=(0, (4, 3)))
        # Along the lines, where jobs are few as a rule; the axes are alike, so lines rise at 45 degrees.
        middle = 10 ** (low + 0.2 * (top - low))
        for factor, text, side, off in ((3, _("{n} x longer"), "bottom", -2), (1 / 3, _("{n} x shorter"), "top", 2)):
            note = axes.annotate(
                text.format(n=3),
                (middle, middle * factor),
                xytext=(off, -off),
                textcoords="offset points",
                rotation=45,
                rotation_mode="anchor",
                ha="center",
                va=side,
                color=ORANGE,
                fontsize=9,
            )
            note.set_path_effects([withStroke(linewidth=3, foreground="white")])
        axes.set_xlabel(_("predicted median wait"))
        axes.set_ylabel(_("wait that came"))
        _time_axis(axes.xaxis, 10**low, 10**top, sparse=True)
        _time_axis(axes.yaxis, 10**low, 10**top, sparse=True)
        bar = figure.colorbar(bins, ax=axes, shrink=0.5, aspect=24, format="{x:,.0f}")
        bar.minorticks_off()
        bar.outline.set_visible(False)
        bar.set_label(_("jobs"))
    return png.getvalue()


def coverage(cells: list[Cell], names: list[str]) -> bytes:
    """Per cell the shares that held of the 50, 80 and 95 % intervals; the claims are lines. The largest cells only, in
    the order given."""
    size = {id(c) for c in sorted(cells, key=lambda c: -c.jobs)[:MOST_CELLS]}
    kept = [(c, name) for c, name in zip(cells, names, strict=True) if id(c) in size]
    with _drawing(8.0, 0.9 + 0.32 * max(len(kept), 3)) as (figure, png):
        axes = figure.add_subplot()
        rows = np.arange(len(kept))
        for place, (share, colour) in enumerate(LEVEL_COLOURS.items()):
            own = rows + 0.2 * (place - 1)  # one above the other, so that no bar hides another
            axes.axvline(share, color=colour, linewidth=1.2, alpha=0.6, zorder=1)
            held = [c.coverage[share] for c, _name in kept]
            axes.hlines(own, np.minimum(held, share), np.maximum(held, share), color=colour, alpha=0.35, linewidth=2, zorder=2)
            axes.plot(held, own, linestyle="none", marker=LEVEL_MARKS[share], markersize=5, color=colour, zorder=3)
            axes.annotate(
                f"{round(100 * share)} %",
                (share, 1.0),
                xycoords=axes.get_xaxis_transform(),
                xytext=(0, 4),
                textcoords="offset points",
                ha="center",
                color=colour,
                fontsize=9,
            )
        axes.set_yticks(rows, [f"{_short(name)}  ({c.jobs:,})" for c, name in kept], color=INK)
        lowest = min(0.5, *(c.coverage[s] for c, _name in kept for s in LEVEL_COLOURS))
        left = max(0.0, np.floor(10 * lowest) / 10 - 0.1)
        axes.set(xlim=(left, 1.01), ylim=(len(kept) - 0.5, -0.5))
        axes.annotate(_("claim:"), (0, 1.0), xycoords="axes fraction", xytext=(0, 4), textcoords="offset points", color=GREY, fontsize=9)
        axes.set_xlabel(_("share of intervals that held (number of started jobs in brackets)"))
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        _percent_axes(axes.xaxis)
    return png.getvalue()


def over_time(periods: list[Period]) -> bytes:
    """Coverage of the 80 % interval and the median absolute error by period, one above the other."""
    from matplotlib import dates

    calendar: Any = dates  # untyped
    with _drawing(9.0, 4.6) as (figure, png):
        upper, lower = figure.subplots(2, 1, sharex=True)
        at = np.array([np.datetime64(datetime.fromtimestamp(p.begin + p.days * 43200.0, UTC).replace(tzinfo=None)) for p in periods])
        held = np.array([p.coverage_80 for p in periods])
        error = np.maximum(np.array([p.medae_s for p in periods]), 1.0)
        # Neighbours are joined; a period without enough jobs leaves a gap.
        gaps = np.flatnonzero(np.diff([p.begin for p in periods]) > periods[0].days * 86400.0 * 1.5) + 1
        for axes, values, colour in ((upper, held, BLUE), (lower, error, GREEN)):
            for part in np.split(np.arange(len(periods)), gaps):
                axes.plot(at[part], values[part], color=colour, linewidth=1.2, marker="o", markersize=3.5)
        upper.axhline(0.8, color=ORANGE, linewidth=1.5, zorder=1)
        upper.annotate(
            _("claim"), (1.0, 0.8), xycoords=("axes fraction", "data"), xytext=(4, 0), textcoords="offset points", color=ORANGE, va="center"
        )
        upper.set_ylim(min(0.4, float(held.min()) - 0.05), 1.02)
        upper.set_title(_("share of 80 % intervals that held"))
        lower.set_title(_("median absolute error of the predicted median"))
        lower.set_yscale("log")
        low, high = float(error.min()), float(error.max())
        lower.set_ylim(low / 2, high * 2)
        _percent_axes(upper.yaxis)
        _time_axis(lower.yaxis, low / 2, high * 2)
        locator = calendar.AutoDateLocator()
        lower.xaxis.set_major_locator(locator)
        lower.xaxis.set_major_formatter(calendar.ConciseDateFormatter(locator))
    return png.getvalue()


def widths(by_share: dict[float, Floats]) -> bytes:
    """Per claimed share the widths of intervals: middle half thick, 80 % of cases thin, the median marked and told."""
    with _drawing(8.0, 0.9 + 0.5 * max(len(by_share), 1)) as (figure, png):
        axes = figure.add_subplot()
        shares = sorted(by_share)
        for row, share in enumerate(shares):
            low, first, middle, third, high = np.maximum(by_share[share], 1.0)
            axes.hlines(row, low, high, color=BLUE, linewidth=1.5)
            axes.hlines(row, first, third, color=BLUE, linewidth=7)
            axes.plot(middle, row, marker="o", markersize=8, color="white", markeredgecolor=BLUE, markeredgewidth=2)
            axes.annotate(span(float(middle)), (middle, row), xytext=(0, 9), textcoords="offset points", ha="center", fontsize=9)
        axes.set_yticks(range(len(shares)), [_("{share} interval").format(share=f"{round(100 * s)} %") for s in shares], color=INK)
        axes.set(xscale="log", ylim=(len(shares) - 0.4, -0.75))
        low, high = (float(f(np.maximum(np.concatenate(list(by_share.values())), 1.0))) for f in (np.min, np.max))
        axes.set_xlim(low / 1.5, high * 1.5)
        axes.set_xlabel(_("width: median (circle), middle half (thick) and middle 80 % (thin) of cases"))
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        _time_axis(axes.xaxis, low / 1.5, high * 1.5)
    return png.getvalue()


def _short(name: str) -> str:
    text = safe(name)
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 1] + "…"


def _label(axes: Axes, x: float, y: float, text: str, colour: str, right: bool = False) -> None:
    axes.text(x, y, text, transform=axes.transAxes, color=colour, fontsize=9, ha="right" if right else "left", va="center")


def _percent_axes(*all_axes: Any) -> None:
    from matplotlib.ticker import FuncFormatter

    for axis in all_axes:
        axis.set_major_formatter(FuncFormatter(lambda value, _place: f"{100 * value:g} %"))


def _time_axis(axis: Any, low: float, top: float, sparse: bool = False) -> None:
    """Ticks where people count: seconds, minutes, hours, days; ``sparse`` for short axes, more where the range is small."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    choices = [SPARSE_TICKS_S] if sparse else [TICKS_S, DENSE_TICKS_S]
    inside = [[t for t in ticks if low <= t <= top] for ticks in choices]
    axis.set_major_locator(FixedLocator(next((ticks for ticks in inside if len(ticks) >= 3), inside[-1])))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _place: _tick(value)))


def _tick(seconds: float) -> str:
    if seconds < 60:
        return _("{n} s").format(n=round(seconds))
    if seconds < 3600:
        return _("{n} min").format(n=round(seconds / 60))
    return _("{n} h").format(n=round(seconds / 3600)) if seconds < 86400 else _("{n} d").format(n=round(seconds / 86400))
