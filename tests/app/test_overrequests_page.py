"""The page that shows what is asked for and not used."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from app.ui import overask, overcharts, overidle
from hypothesis import given, settings
from hypothesis import strategies as st
from madelake import FORMULA, NEWEST, build_lake
from madeuse import IDLE, MALLORY, StandIn, build_use_lake, charts_rows
from streamlit.testing.v1 import AppTest
from test_wait_page import texts

from queuecast.answers.rightsizing.overrequest_answer import Amounts, Group, Hours, Period
from queuecast.answers.rightsizing.overrequest_effect_answer import Effect, Moved
from queuecast.errors import UsageError
from queuecast.render.overrequest_table import groups_csv, proposals_csv
from queuecast.store.lake import Lake

Opener = Callable[..., AppTest]


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with measured use."""
    return build_use_lake(tmp_path_factory.mktemp("used")).path


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds that take no learning."""
    monkeypatch.setattr(overask, "sizes_at", StandIn)


def numbers(app: AppTest) -> pd.DataFrame:
    return next(d.value for d in app.dataframe if "gpu_asked" in d.value.columns)


def titles(app: AppTest) -> list[str]:
    return [e.label for e in app.expander]


def test_what_is_asked_for_and_what_could_be_freed(open_app: Opener, used: Path) -> None:
    app = open_app(used, "overrequests")
    shown = {m.label: m for m in app.metric}
    assert shown["GPU-hours asked for"].value == "728"
    assert shown["GPU-hours asked for"].delta == "450 could be freed"
    assert "Of 7 jobs it is not known" in shown["GPU-hours asked for"].help
    assert len(charts_rows(app)) == 3
    table = numbers(app).set_index("name")
    assert table.loc["ines", "gpu_asked"] == 616
    assert table.loc["ines", "gpu_freed"] == 450
    assert pd.isna(table.loc["wei", "gpu_used"]), "not measured is no zero"
    assert titles(app)[1].startswith("ines\\/train")
    assert any("--gres=gpu:v100:1" in c.value and "--mem=11G" in c.value for c in app.code)
    assert "generated, not measured" not in texts(app)


def test_idle_gpus_with_whom_to_contact(open_app: Opener, used: Path) -> None:
    app = open_app(used, "overrequests")
    rows = next(d.value for d in app.dataframe if "idle since" in d.value.columns)
    assert rows["job"].tolist() == [str(IDLE)]
    assert f"{MALLORY}: jobs {IDLE} (19.5 GPU-hours)" in [c.value for c in app.code]
    app = open_app(used, "overrequests", idle="24")
    assert "No running job left its GPUs idle for the last 24 h" in texts(app)


def test_choices_are_kept_in_the_link(open_app: Opener, used: Path) -> None:
    app = open_app(used, "overrequests", by="account", resource="memory", days="14", account="course")
    assert numbers(app)["name"].tolist() == ["course"]
    assert app.segmented_control(key="over_resource").value == "memory"
    app.segmented_control(key="over_by").set_value("kind").run()
    app.selectbox(key="over_account").set_value(None).run()
    link = {k: v[0] if isinstance(v, list) else v for k, v in dict(app.query_params).items()}
    assert link == {"by": "kind", "resource": "memory", "days": "14"}
    assert "ines/train" in numbers(app)["name"].tolist()
    odd = open_app(used, "overrequests", by="<b>", resource="x", days="999", user="nobody", idle="-1")
    assert not dict(odd.query_params)


def test_hostile_names_are_cells_not_markup(open_app: Opener, used: Path) -> None:
    """F: names of users and jobs are shown, never run."""
    app = open_app(used, "overrequests", by="kind")
    assert any(MALLORY in name for name in numbers(app)["name"])
    assert not any(m.allow_html for m in app.markdown)
    assert "<script" not in texts(app).replace("\\<script", "").replace("-<script", "")
    for title in titles(app):
        assert "<" not in title.replace("\\<", "")
        assert "[" not in title.replace("\\[", "")


def test_generated_figures_carry_a_badge(open_app: Opener, tmp_path: Path) -> None:
    app = open_app(build_use_lake(tmp_path / "lake", generated=True).path, "overrequests")
    assert texts(app).count("generated, not measured") >= 3


def test_a_viewer_sees_their_own_and_sums(open_app: Opener, used: Path) -> None:
    """F: neither names nor jobs of others."""
    app = open_app(used, "overrequests", by="user", sees="own", user="ines")
    assert numbers(app)["name"].tolist() == ["ines", "4 others"]
    everything = texts(app) + str(charts_rows(app)) + " ".join(titles(app))
    for other in (MALLORY, "amara", "tomas"):
        assert other not in everything
    assert app.selectbox(key="over_user").options == ["ines"]
    assert "1 more is of others" in texts(app)
    assert not [b for b in app.button if b.key == "replay"]
    assert not app.toggle


def test_messages_in_both_languages(open_app: Opener, used: Path) -> None:
    app = open_app(used, "overrequests")
    app.toggle(key="write").set_value(True).run()
    assert app.selectbox(key="message_user").value == "ines"
    assert any("--mem=11G" in c.value and "Dear ines" in c.value for c in app.code)
    app.segmented_control(key="message_language").set_value("zh").run()
    assert any("您好" in c.value or "你好" in c.value for c in app.code)


def test_the_effect_is_replayed_on_a_press(open_app: Opener, used: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    every = Moved("all jobs", 80, 7200.0, 3600.0, 1800.0, -60.0, 2400.0, 0)
    told = Effect(
        NEWEST - timedelta(days=3), NEWEST, 3, 40, (every,), 0.8, 0.7, 0.3, 0.5, 3, 7000.0, 7200.0, 0.4, doubtful=True, notes=("a *note*",)
    )
    calls = []

    def played(*_args: object, progress: Callable[[int, int], None], **_more: object) -> Effect:
        calls.append(1)
        progress(1, 2)
        return told

    monkeypatch.setattr(overask, "effect", played)
    app = open_app(used, "overrequests")
    assert not calls
    app.button(key="replay").click().run()
    assert not app.exception
    shown = {m.label: m.value for m in app.metric}
    assert shown["median wait"] == "2 h → 1 h"
    assert shown["GPUs allocated"] == "80 % → 70 %"
    assert any("take the direction" in w.value for w in app.warning)
    assert "a \\*note\\*" in texts(app)
    app.segmented_control(key="over_resource").set_value("core").run()
    assert len(calls) == 1, "kept until the question changes"


def test_nothing_measured_and_nothing_ran(open_app: Opener, campus: Path, tmp_path: Path) -> None:
    bare = open_app(campus, "overrequests")
    assert "Nothing tells what the jobs used" in texts(bare)
    old = open_app(campus, "overrequests", at=f"{NEWEST - timedelta(days=200):%Y-%m-%d}")
    assert "No job ran in that time" in texts(old)
    assert "There is no data folder yet" in texts(open_app(None, "overrequests"))
    empty = tmp_path / "empty"
    with Lake.open(empty, create=True).transaction("test"):
        pass
    assert "The lake is empty" in texts(open_app(empty, "overrequests"))


def test_without_readings_of_gpus(open_app: Opener, tmp_path: Path) -> None:
    app = open_app(build_use_lake(tmp_path / "lake", samples=False).path, "overrequests")
    assert "readings of GPUs were never taken" in texts(app)


def test_a_model_that_cannot_be_read_keeps_nobody_out(open_app: Opener, tmp_path: Path) -> None:
    """F: these pages need no model; only the forecast says that it is of another format."""
    lake = build_use_lake(tmp_path / "lake")
    folder = lake.path / "models"
    (folder / "old").mkdir(parents=True)
    (folder / "current").write_text("old")
    for page in ("overrequests", "failures", "queue"):
        app = open_app(lake.path, page)
        assert "No answer from here" not in texts(app)
    job = open_app(lake.path, "job", job="9006")
    assert "What happened so far" in [s.value for s in job.subheader]
    assert "queuecast train" in texts(job)
    assert "No answer from here" in texts(open_app(lake.path, "wait", partition="gpu", gpus="1", time="1:00:00"))


def test_a_mistake_is_said(open_app: Opener, used: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "cannot be asked about" in texts(open_app(used, "overrequests", at="2199-01-01"))

    def broken(*_args: object) -> StandIn:
        raise UsageError("no *sizes*", "try again")

    monkeypatch.setattr(overask, "sizes_at", broken)
    app = open_app(build_lake(used.parent / "other").path, "overrequests")
    assert "No *sizes*" in [t.value for t in app.text]


def test_downloads_hold_no_formula(used: Path) -> None:
    """F: a job name must not be computed by a spreadsheet."""
    lake = Lake.open(used)
    uses = overask.uses_at(lake, "campus", NEWEST - timedelta(days=30), NEWEST)
    answer = overask.overrequest(
        lake, "campus", since=uses.since, at=NEWEST, by=("user", "kind"), uses=uses, sizes=StandIn(uses, 0.01), idle_hours=2
    )
    for made in (groups_csv(answer), proposals_csv(answer), overidle.idle_csv(answer.idle or ())):
        rows = list(csv.reader(io.StringIO(made.decode("utf-8-sig"))))
        assert len(rows) > 1
        assert not [c for r in rows[1:] for c in r if c[:1] in ("=", "+", "@", "\t") or (c[:1] == "-" and not c[1:2].isdigit())]
    assert FORMULA[1:10].lower() in proposals_csv(answer).decode().lower()


amounts = st.floats(0, 1e6, allow_nan=False)


@settings(deadline=None)
@given(*[amounts] * 5)
def test_the_parts_add_up(used_h: float, freed: float, default: float, unused: float, unknown: float) -> None:
    measured = used_h + freed + default + unused
    hours = Hours(measured + unknown, measured, used_h, freed, default, 3, 1)
    parts = overcharts.segments(hours)
    assert sum(parts.values()) == pytest.approx(hours.asked, abs=1e-6)
    assert min(parts.values()) >= 0


def test_charts_of_nothing_and_of_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamlit.context", SimpleNamespace(theme=SimpleNamespace(type="light")))
    nothing = Period(NEWEST, NEWEST + timedelta(days=1), Amounts())
    much = Period(NEWEST, NEWEST + timedelta(days=1), Amounts(gpu=Hours(10, 8, 5, 2, 1, 4)))
    for periods in ((), (nothing,), (nothing, nothing, much)):
        spec = overcharts.trend_chart(periods, "day", "gpu").to_dict()
        assert sum(len(rows) for rows in spec.get("datasets", {}).values()) in (0, 4)
    groups = (Group(None, Amounts(), 0, rest=3), Group("a", Amounts(gpu=Hours(10, 8, 5, 2, 1, 4)), 4))
    rows = [r for d in overcharts.groups_chart(groups, "gpu").to_dict()["datasets"].values() for r in d]
    assert {r["part"] for r in rows} == {"used", "could be freed", "set by the site's default", "not measured"}
    assert overcharts.group_name(groups[0]) == "3 others"
    assert overcharts.hours_words(None) == "unknown"
    assert [overcharts.hours_words(v) for v in (0, 0.01, 3.14, 12345.6)] == ["0.0", "< 0.1", "3.1", "12,346"]
