"""The pictures, for answers at the edge of what history tells."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from app.ui.charts import interval_chart, like_chart
from app.ui.words import as_markdown, between, clock_time, percent, span
from hypothesis import given
from hypothesis import strategies as st
from madelake import NEWEST, PENDING

from queuecast.answers.forecast import open_forecaster
from queuecast.answers.wait import LEVELS, Interval, WaitAnswer

BERLIN = ZoneInfo("Europe/Berlin")
INF = float("inf")


@pytest.fixture(scope="module")
def answer(campus: Path) -> WaitAnswer:
    return open_forecaster(campus).when_job(str(PENDING), NEWEST)


def rows(chart: Any) -> list[dict[str, Any]]:
    return [row for data in chart.to_dict()["datasets"].values() for row in data]


def numbers_are_finite(chart: Any) -> bool:
    return "Infinity" not in json.dumps(chart.to_dict()) and "NaN" not in json.dumps(chart.to_dict())


def test_the_axis_is_the_readers_clock(answer: WaitAnswer) -> None:
    chart = interval_chart(answer, BERLIN, NEWEST).to_dict()
    bar = chart["layer"][0]["encoding"]["x"]
    start = datetime(2026, 6, 10, 14, 0, tzinfo=ZoneInfo("UTC")).timestamp()  # 12:00 UTC is 14:00 in Berlin
    assert bar["scale"]["domain"][0] == start
    labels = json.loads(bar["axis"]["labelExpr"].removesuffix("[datum.value]"))
    first = min(labels, key=int)  # a round time; how round depends on how far the axis reaches
    assert int(first) - start < 12 * 3600
    assert labels[first] == [f"{datetime.fromtimestamp(int(first), ZoneInfo('UTC')):%H:%M}", "Wed 10 Jun"]
    assert "Europe/Berlin" in bar["axis"]["title"]


@pytest.mark.parametrize(
    "ends", [(600.0, INF, INF), (INF, INF, INF), (0.0, 0.0, 0.0), (60.0, 90.0, 9e6)], ids=["open", "beyond", "at once", "far"]
)
def test_intervals_without_an_end(answer: WaitAnswer, ends: tuple[float, float, float]) -> None:
    lows = (INF, INF, INF) if ends[0] == INF else (0.0, 0.0, 0.0)
    edge = replace(
        answer,
        median_s=ends[0],
        intervals=tuple(Interval(s, a, b) for s, a, b in zip(LEVELS, lows, ends, strict=True)),
    )
    wait, like = interval_chart(edge, BERLIN, NEWEST) if ends[0] < INF else None, like_chart(edge)
    assert wait is None or numbers_are_finite(wait)
    assert like is not None
    assert numbers_are_finite(like)


def test_each_like_job_is_a_dot(answer: WaitAnswer) -> None:
    assert answer.basis is not None
    chart = like_chart(answer)
    assert sum("wait" in row for row in rows(chart)) == len(answer.basis.waits_s)
    assert any(row.get("text") == "this job so far" and row["x"] == 9000 for row in rows(chart))
    assert like_chart(replace(answer, basis=None)) is None


def test_words_of_time() -> None:
    assert [span(s) for s in (0, 59, 60, 3599, 3600, 5400, 86400, 172800, 180000, 10**6, INF, None)] == [
        "under 1 min", "under 1 min", "1 min", "1 h", "1 h", "1 h 30 min", "24 h", "2 d", "2 d 2 h", "12 d",
        "longer than history reaches", "unknown",
    ]  # fmt: skip
    assert [percent(p) for p in (0.0, 0.009, 0.01, 0.5, 0.99, 0.995, 1.0, None)] == [
        "< 1 %", "< 1 %", "1 %", "50 %", "99 %", "> 99 %", "> 99 %", "unknown",
    ]  # fmt: skip
    late = NEWEST.replace(hour=22, minute=30)
    assert clock_time(late, BERLIN, NEWEST) == "tomorrow 00:30"
    assert between(NEWEST, late, BERLIN, NEWEST) == "between today 14:00 and tomorrow 00:30"
    assert between(NEWEST, NEWEST.replace(hour=13), BERLIN, NEWEST) == "between 14:00 and 15:00 today"


@given(st.floats(0, 1e8))
def test_lengths_never_show_sixty(seconds: float) -> None:
    assert "60 min" not in span(seconds)
    assert " 24 h" not in span(seconds).split("d")[-1] or "d" not in span(seconds)


@given(st.text(max_size=60))
def test_no_text_is_markdown(text: str) -> None:
    """Every ASCII mark is escaped, and what is found after escapes is parted."""
    shown = as_markdown(text)
    for before, mark in itertools.pairwise(" " + shown):
        assert (
            before == "\\"
            or mark == "\\"
            or not (mark.isascii() and not mark.isalnum() and mark != " ")
            or not mark.isprintable()
        )
    assert ":material/" not in shown.replace("\\", "")
