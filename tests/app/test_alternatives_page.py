"""The section that looks for what would start sooner, and its pictures."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from app.ui import alternativesask
from app.ui.alternativecharts import GIB, Point, apart, memory_bar, pareto_chart
from app.ui.alternativesview import agreement_words, command, shown_first, sooner_words, waits
from hypothesis import given, settings
from hypothesis import strategies as st
from madealternatives import made_alternatives, spread, stand_in
from madelake import HELD, HOSTILE, NEWEST, PENDING
from streamlit.testing.v1 import AppTest
from test_charts import numbers_are_finite, rows
from test_wait_page import REQUEST, texts

from queuecast.answers.alternatives_answer import Alternatives
from queuecast.errors import UsageError
from queuecast.policy.request import Request

Opener = Callable[..., AppTest]
ASKED = Request(partitions=("gpu",), gpus=4, gpu_type="a100", cpus=32, limit_s=86400)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The calculation's stand-in; lists its calls."""
    calls: list[Any] = []

    def noted(*given: Any, **more: Any) -> Alternatives:
        calls.append((given, more))
        return stand_in(*given, **more)

    monkeypatch.setattr(alternativesask, "alternatives", noted)
    return calls


def keys(app: AppTest) -> set[str]:
    return {str(b.key) for b in app.button}


def test_it_is_looked_for_on_a_press_only_and_once(open_app: Opener, campus: Path, quick: list[Any]) -> None:
    app = open_app(campus, **REQUEST)
    assert "What would start sooner" in "\n".join(s.value for s in app.subheader)
    assert quick == []
    app.button(key="look").click().run()
    assert [more["futures"] for _, more in quick] == [5, 60], "a few first, to see how long one takes"
    assert quick[0][0][1].gpus == 4
    assert "look" not in keys(app)
    said = texts(app)
    assert "partition debug: likely sooner" in said
    assert "In 85 % of 60 played futures it starts sooner, half of the time **4 h 30 min sooner** or better" in said
    assert "if the task fits 2 GPUs" in said
    assert "They do not agree" in said
    assert any(c.value == "sbatch -p debug" for c in app.code)
    app.run()
    assert len(quick) == 2, "a redrawing plays nothing anew"
    assert not app.warning


def test_the_link_brings_it_along_and_another_question_does_not(open_app: Opener, campus: Path, quick: list[Any]) -> None:
    app = open_app(campus, **REQUEST, alternatives="1")
    assert len(quick) == 2
    app.number_input(key="gpus").set_value(1)
    app.button(key="ask").click().run()
    assert "alternatives" not in dict(app.query_params)
    assert len(quick) == 2
    assert "look" in keys(app)


def test_use_this_request_asks_for_the_change(open_app: Opener, campus: Path, quick: list[Any]) -> None:
    app = open_app(campus, **REQUEST, alternatives="1")
    assert {k for k in keys(app) if k.startswith("change")} == {"change_use0", "change_use1"}, "the form knows no arrays"
    app.button(key="change_use1").click().run()
    assert not app.exception
    link = {k: v[0] if isinstance(v, list) else v for k, v in dict(app.query_params).items()}
    assert link == {**REQUEST, "gpus": "2", "time": "2-00:00:00"}
    assert app.number_input(key="gpus").value == 2


def test_a_pending_job_is_changed_in_place(open_app: Opener, campus: Path, quick: list[Any]) -> None:
    app = open_app(campus, job=str(PENDING), alternatives="1")
    assert quick[0][1]["job"].job_id == PENDING
    assert any(c.value == f"scontrol update JobId={PENDING} -p debug" for c in app.code)
    assert "keeps the age" in texts(app)


def test_a_held_job_has_no_such_section(open_app: Opener, campus: Path, quick: list[Any]) -> None:
    app = open_app(campus, job=str(HELD), alternatives="1")
    assert not app.subheader
    assert quick == []


def test_on_a_long_queue_fewer_futures_are_played_and_it_is_said(
    open_app: Opener, campus: Path, quick: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alternativesask, "BUDGET_S", 0.0)
    app = open_app(campus, **REQUEST, alternatives="1")
    assert [more["futures"] for _, more in quick] == [5]
    assert any("only 5 futures" in w.value for w in app.warning)


def test_a_mistake_is_told(open_app: Opener, campus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: Any, **more: Any) -> Alternatives:
        raise UsageError("the queue is <b>unknown</b>", "run queuecast collect")

    monkeypatch.setattr(alternativesask, "alternatives", refuse)
    said = texts(open_app(campus, **REQUEST, alternatives="1"))
    assert "8 in 10 like this start" in said, "the answer itself stays"
    assert "What to do: run queuecast collect" in said


def test_hostile_text_is_never_markdown(open_app: Opener, campus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hostile(*given: Any, **more: Any) -> Alternatives:
        found = stand_in(*given, **more)
        return replace(found, options=tuple(replace(o, label=HOSTILE, pareto=True) for o in found.options))

    monkeypatch.setattr(alternativesask, "alternatives", hostile)
    app = open_app(campus, **REQUEST, alternatives="1")
    marked = "\n".join(str(e.value) for kind in (app.markdown, app.caption) for e in kind)
    assert r"\<script\>" in marked, "it is shown"
    assert "<script" not in marked.replace(r"\<", "")
    assert "](javascript" not in marked
    assert not any(m.allow_html for m in app.markdown)


def test_words(campus: Path) -> None:
    found = made_alternatives(ASKED, NEWEST)
    best, fewer, hostile, array, late = found.options
    assert [sooner_words(o) for o in found.options] == ["4 h 30 min sooner", "5 h sooner", "3 h later", "5 h sooner", "40 h later"]
    assert sooner_words(replace(best, sooner=None)) == "not known"
    assert sooner_words(replace(best, sooner=spread(0, 0, 0))) == "about the same"
    assert waits(found, math.inf) == "over 3 d"
    assert command(late, None).startswith("sbatch ")
    assert command(replace(best, keeps_place=True, flags=("JobId=7", "Partition=x")), "7") == "scontrol update JobId=7 Partition=x"
    assert shown_first(found) == [0, 1, 3], "what is later and beaten is in the table only"
    assert shown_first(replace(found, options=(hostile, late))) == []
    assert shown_first(replace(found, options=(replace(late, pareto=True),))) == [], "cheap, but it does not start"
    assert array.request.array_tasks == 4
    alone = replace(found, agreement=replace(found.agreement, twin=None, agree=None))
    assert "Only the model" in agreement_words(alone)
    assert "Neither" in agreement_words(replace(alone, agreement=replace(alone.agreement, model=None)))
    assert (fewer.pareto, hostile.pareto) == (True, False)


def point(name: str, wait: float, finish: float, **more: Any) -> Point:
    return Point(name, (wait / 2, wait, wait * 2), (finish / 2, finish, finish * 2), 5.0, "5 GPU-hours", True, **more)


def test_the_picture_names_the_best_and_what_was_asked() -> None:
    points = [point("a", 60, 4000), replace(point("b", 7200, 90000), best=False), point("asked", 3600, 20000, asked=True)]
    chart = pareto_chart(points)
    assert chart is not None
    assert {r["text"] for r in rows(chart) if "text" in r} == {"a", "asked"}
    assert numbers_are_finite(chart)
    marks = [layer["mark"] for layer in chart.to_dict()["layer"] if layer["mark"]["type"] == "point"]
    assert {(m["shape"], m["filled"]) for m in marks} == {("circle", True), ("circle", False), ("diamond", True)}


def test_a_picture_needs_two_that_can_be_drawn() -> None:
    assert pareto_chart([point("a", 60, 4000), point("b", math.inf, math.inf)]) is None
    assert pareto_chart([]) is None


seconds = st.floats(0, 1e7) | st.just(math.inf)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(seconds, seconds, st.none() | st.floats(0, 1e9), st.booleans()), max_size=8))
def test_any_choices_are_drawn_with_finite_numbers(made: list[tuple[float, float, float | None, bool]]) -> None:
    points = [Point("x", (w * 0.5, w, math.inf), (f * 0.5, f, f * 2), n, "", b) for w, f, n, b in made]
    chart = pareto_chart(points)
    assert (chart is None) == (sum(p.drawable for p in points) < 2)
    assert chart is None or numbers_are_finite(chart)


@given(st.lists(st.floats(0, 280), max_size=8).map(sorted))
def test_names_are_apart_and_inside_where_there_is_room(places: list[float]) -> None:
    moved = apart(places, 15.0, 280.0)
    assert len(moved) == len(places)
    assert all(b - a >= 15 - 1e-6 for a, b in pairwise(moved))
    assert all(-1e-6 <= m <= 280 + 1e-6 for m in moved)


def test_the_bar_of_memory_adds_up() -> None:
    parts = {"weights": 10.0 * GIB, "activations": 5.0 * GIB, "logits": 0.0, "overhead": 1.5 * GIB}
    chart = memory_bar(parts, {"weights": "weights"}, 37.6 * GIB, 40.0 * GIB)
    found = [r for r in rows(chart) if "to" in r]
    assert max(r["to"] for r in found) == 40.0
    bars = {r["name"]: r["size"] for r in found}
    assert bars["weights"] == "10.0 GiB"
    assert bars["free"] == "21.1 GiB"
    assert "logits" not in bars
    assert "NaN" not in json.dumps(chart.to_dict())
