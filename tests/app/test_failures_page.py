"""The page that shows what failed, on which nodes, and how users fare."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from app.ui import experienceview, failcharts, failpage
from madelake import FORMULA, HOSTILE, NEWEST
from madeuse import CRASHED, DEAD, MALLORY, build_use_lake, charts_rows
from streamlit.testing.v1 import AppTest
from test_wait_page import texts

from queuecast.answers.experiences.answer import Part, TimeTo
from queuecast.answers.experiences.experience import experience
from queuecast.store.lake import Lake

Opener = Callable[..., AppTest]


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with failures of several classes, some of a node."""
    return build_use_lake(tmp_path_factory.mktemp("failing")).path


def failed(app: AppTest) -> pd.DataFrame:
    return next(d.value for d in app.dataframe if "sure" in d.value.columns)


def test_what_failed_and_whose_turn(open_app: Opener, failing: Path) -> None:
    app = open_app(failing, "failures")
    shown = {m.label: m.value for m in app.metric}
    table = failed(app)
    assert shown["did not end well"] == str(len(table))
    assert int(shown["the site's turn"]) >= len(DEAD)
    counts = next(d.value for d in app.dataframe if "whose turn" in d.value.columns).set_index("class")["attempts"]
    assert counts["A node failed"] == len(DEAD)
    assert counts["Out of main memory"] == 1
    assert counts["Ran into its time limit"] == 1
    assert counts.sum() == len(table)
    assert table["job"].iloc[0].startswith("job?job=")
    assert table["end"].is_monotonic_decreasing
    drawn_counts = [r["count"] for r in charts_rows(app)[0]]
    assert sum(drawn_counts) == len(table)


def test_failures_of_a_node_stand_together(open_app: Opener, failing: Path) -> None:
    app = open_app(failing, "failures")
    title = next(e.label for e in app.expander if e.label.startswith("g3"))
    assert "6 of 6 jobs died" in title
    assert any("Slurm says so itself" in t.value and "3 users" in t.value for t in app.text)
    links = next(m.value for m in app.markdown if "job?job=24000" in m.value)
    assert links.count("job?job=") == len(DEAD)
    rows = charts_rows(app)[1]
    assert {r["node"] for r in rows} == {"g3"}


def test_filters_are_kept_in_the_link(open_app: Opener, failing: Path) -> None:
    app = open_app(failing, "failures", days="7", turn="site")
    assert set(failed(app)["class"]) == {"A node failed"}
    app.segmented_control(key="fail_turn").set_value("").run()
    app.selectbox(key="fail_class").set_value("Out of main memory").run()
    assert failed(app)["user"].tolist() == ["tomas"]
    link = {k: v[0] if isinstance(v, list) else v for k, v in dict(app.query_params).items()}
    assert link == {"days": "7", "class": "Out of main memory"}
    app.selectbox(key="fail_account").set_value("lab").run()
    assert "Nothing that failed fits the filters" in texts(app)
    odd = open_app(failing, "failures", days="-1", turn="<b>", partition="no")
    assert not dict(odd.query_params)


def test_hostile_names_are_cells_not_markup(open_app: Opener, failing: Path) -> None:
    """F: names of jobs, users and reasons of nodes are shown, never run, and are no formulas."""
    app = open_app(failing, "failures")
    assert {HOSTILE, FORMULA} <= set(failed(app)["name"])
    assert MALLORY in set(failed(app)["user"])
    assert not any(m.allow_html for m in app.markdown)
    assert not [m.value for m in app.markdown if "<script" in m.value.replace("\\<script", "")]
    found = failpage.Failures(NEWEST, NEWEST, 1, (), ())
    assert not found.failed
    row = failpage.Failed("1]<b>", MALLORY, None, "gpu", FORMULA, "FAILED", NEWEST, None, None, None, 9, "user_code", 0.5)
    cells = next(csv.DictReader(io.StringIO(failpage.failed_csv([row]).decode("utf-8-sig"))))
    assert cells["name"] == "'" + FORMULA
    assert cells["elapsed_s"] == ""
    frame = SimpleNamespace(zone=NEWEST.tzinfo)
    shown = failpage.failed_table(frame, [row])  # type: ignore[arg-type]  # only the zone is used
    assert shown["job"].tolist() == ["job?job=1%5D%3Cb%3E"]
    assert shown["exit"].tolist() == ["signal 9"]


def test_a_viewer_sees_their_own_failures(open_app: Opener, failing: Path) -> None:
    """F: others' jobs are not named; that a node failed is told to everybody."""
    app = open_app(failing, "failures", sees="own", user="ines")
    assert set(failed(app)["user"]) == {"ines"}
    everything = texts(app) + " ".join(e.label for e in app.expander) + str(charts_rows(app))
    for other in (MALLORY, "tomas", "amara", "Not responding"):
        assert other not in everything
    links = next(m.value for m in app.markdown if "job?job=" in m.value)
    assert links.count("job?job=") == 2
    assert not [d for d in app.dataframe if "early" in d.value.columns]


def test_a_viewer_who_is_not_known(open_app: Opener, failing: Path) -> None:
    app = open_app(failing, "failures", sees="own")
    assert "Who you are is not known" in texts(app)
    assert "6 of 6 jobs died" in " ".join(e.label for e in app.expander)
    assert not app.metric
    assert "24000" not in texts(app)


def test_how_users_fare(open_app: Opener, failing: Path) -> None:
    app = open_app(failing, "failures")
    shown = {m.label: m.value for m in app.metric}
    assert {"first success", "fail within 2 min", "back after a failure", "resumed well", "same failure again"} <= set(shown)
    cells = next(d.value for d in app.dataframe if "early" in d.value.columns)
    assert cells["attempts"].sum() > 1000
    app.segmented_control(key="fail_by").set_value("gpus").run()
    cells = next(d.value for d in app.dataframe if "early" in d.value.columns)
    assert {"0", "1", "2-4", "5-8"} <= set(cells["name"])
    assert dict(app.query_params)["by"] in ("gpus", ["gpus"])
    found = experience(Lake.open(failing), "campus", since=NEWEST - timedelta(days=30), at=NEWEST)
    rows = list(csv.DictReader(io.StringIO(experienceview.experience_csv(found.cells).decode("utf-8-sig"))))
    assert len(rows) == len(found.cells)
    assert {r["form"] for r in rows} >= {"all", "batch"}


def test_few_and_censored_are_said_to_be_so() -> None:
    assert experienceview.time_words(TimeTo(4, 4, 1.0, 2.0, 3.0, 0)) == "unknown"
    assert experienceview.time_words(TimeTo(9, 2, None, None, None, 0)) == "half not yet"
    assert experienceview.time_words(TimeTo(9, 9, 60.0, 7200.0, 8000.0, 0)) == "2 h"
    assert "2 more began" in experienceview.time_help(TimeTo(9, 9, 60.0, 7200.0, 8000.0, 2))
    assert experienceview.share_words(Part(3, 3, 1.0, 0.4, 1.0, 0)) == "unknown"
    assert "4 were not tried again" in experienceview.share_help(Part(10, 5, 0.5, 0.2, 0.8, 1, 4))


def test_nothing_failed_and_nothing_ended(open_app: Opener, failing: Path, tmp_path: Path) -> None:
    old = open_app(failing, "failures", at=f"{NEWEST - timedelta(days=200):%Y-%m-%d}")
    assert "No job ended in this time" in texts(old)
    assert not old.metric
    well = open_app(failing, "failures", at=f"{NEWEST - timedelta(days=29, hours=20):%Y-%m-%dT%H:%MZ}", days="1")
    assert "No node stands out" in texts(well)
    assert "There is no data folder yet" in texts(open_app(None, "failures"))
    empty = tmp_path / "empty"
    with Lake.open(empty, create=True).transaction("test"):
        pass
    assert "The lake is empty" in texts(open_app(empty, "failures"))


def test_old_data_are_said_to_be_old(open_app: Opener, failing: Path) -> None:
    app = open_app(failing, "failures", at=f"{NEWEST + timedelta(hours=5):%Y-%m-%dT%H:%MZ}")
    assert any("The data are old" in w.value for w in app.warning)


def test_every_class_has_a_colour_of_its_own_or_is_among_the_rest() -> None:
    assert len(set(failcharts.COLORS.values())) == len(failcharts.COLORS)
    assert failcharts.SHORT.keys() == failcharts.COLORS.keys()
    assert failcharts.part_of("dependency") == failcharts.part_of("unknown") == "cancelled, other"


def test_a_chart_of_a_day_without_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamlit.context", SimpleNamespace(theme=SimpleNamespace(type="dark")))
    spec = failcharts.classes_chart([], NEWEST - timedelta(days=3), NEWEST).to_dict()
    assert spec["layer"]
    rows = failcharts.classes_chart([(NEWEST, "node"), (NEWEST, "node")], NEWEST - timedelta(days=3), NEWEST).to_dict()["datasets"]
    assert [r["count"] for rows_ in rows.values() for r in rows_] == [2]
    assert CRASHED
