"""The page that shows what waits and which GPUs are idle."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pandas as pd
import pytest
from app.ui.csvsafe import safe_cell, to_csv
from app.ui.queueview import found, gpu_chart, jobs_csv
from madelake import FORMULA, HOSTILE, NEWEST, build_lake
from streamlit.testing.v1 import AppTest
from test_wait_page import texts

from queuecast.answers.queue import GpuStock, queue_now
from queuecast.answers.viewer import Viewer
from queuecast.store.lake import Lake

Opener = Callable[..., AppTest]


def jobs(app: AppTest) -> pd.DataFrame:
    return next(d.value for d in app.dataframe if "job" in d.value.columns)


def test_what_waits_and_what_is_idle(open_app: Opener, campus: Path) -> None:
    app = open_app(campus, "queue")
    shown = {m.label: m.value for m in app.metric}
    assert shown == {"waiting jobs": "33", "waiting tasks": "52", "running jobs": "1", "idle GPUs": "18 of 56"}
    assert len(jobs(app)) == 33
    stock = next(d.value for d in app.dataframe if "idle" in d.value.columns)
    assert stock["largest free block"].tolist() == [3, 8]
    assert "made-up users" in texts(app)


def test_hostile_names_are_cells_not_markup(open_app: Opener, campus: Path) -> None:
    app = open_app(campus, "queue")
    assert HOSTILE in jobs(app)["name"].tolist()
    assert "mallory" not in texts(app)
    assert "<script" not in texts(app)


def test_search_and_reason_are_kept_in_the_link(open_app: Opener, campus: Path) -> None:
    app = open_app(campus, "queue", q="llm", reason="Resources")
    assert jobs(app)["job"].tolist() == ["9006"]
    assert app.text_input(key="search").value == "llm"
    app.text_input(key="search").set_value("no such job").run()
    assert "No waiting job fits" in texts(app)
    assert app.query_params["q"] in ("no such job", ["no such job"])
    app.text_input(key="search").set_value("").run()
    assert "q" not in app.query_params
    assert set(jobs(app)["why"]) == {"Not enough free right now"}


def test_travel_in_time(open_app: Opener, campus: Path) -> None:
    app = open_app(campus, "queue")
    app.button(key="hour_back").click().run()
    assert "No snapshot of the queue" in texts(app)
    app.button(key="newest").click().run()
    assert len(jobs(app)) == 33
    later = open_app(campus, "queue", at=f"{NEWEST + timedelta(hours=3):%Y-%m-%dT%H:%MZ}")
    assert any("The data are old" in w.value for w in later.warning)
    assert "3 h before the moment asked about" in texts(later)


def test_a_lake_without_snapshots(open_app: Opener, tmp_path: Path) -> None:
    app = open_app(build_lake(tmp_path / "lake", snapshot=False).path, "queue")
    assert "No snapshot of the queue" in texts(app)
    assert any("collect" in c.value for c in app.code)


def test_a_cluster_without_gpus(open_app: Opener, two_clusters: Path) -> None:
    app = open_app(two_clusters, "queue", cluster="annex")
    assert "No node with GPUs was seen" in texts(app)
    assert {m.label: m.value for m in app.metric}["idle GPUs"] == "unknown"


def test_the_download_holds_no_formula(campus: Path) -> None:
    """F: a job name must not be computed by a spreadsheet."""
    queue = queue_now(Lake.open(campus), "campus", NEWEST)
    rows = list(csv.DictReader(io.StringIO(jobs_csv(queue.pending).decode("utf-8-sig"))))
    by_job = {r["job_id"]: r for r in rows}
    assert by_job["9008"]["name"] == "'" + FORMULA
    assert by_job["9008"]["user"] == "'@cmd"
    assert by_job["9007"]["name"] == HOSTILE
    assert by_job["9011"]["gpus"] == ""
    assert by_job["9008"]["waited_s"] == "14400"
    assert by_job["9006"]["slurm_estimate_utc"] == "2026-06-10T18:00:00Z"
    assert not [v for r in rows for v in r.values() if v[:1] in tuple("=+-@\t\r")]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "  =1", "\n+1", "＝1"])
def test_texts_that_could_be_formulas(text: str) -> None:
    assert safe_cell(text) == "'" + text
    assert safe_cell("a" + text) == "a" + text


def test_numbers_and_unknown_in_csv() -> None:
    assert to_csv(("a", "b"), [(-5, None)]) == '\ufeff"a","b"\r\n-5,""\r\n'.encode()


def test_a_viewer_who_sees_only_their_own(campus: Path) -> None:
    queue = queue_now(Lake.open(campus), "campus", NEWEST, Viewer("ines", sees_all=False))
    text = jobs_csv(queue.pending).decode()
    assert "wei" not in text
    assert "ines" in text
    assert not found(queue.pending, "wei", None)


def test_gpus_of_which_the_use_is_not_told() -> None:
    chart = gpu_chart([GpuStock("a100", 8, None, 2, None, None, 0)])
    rows = next(iter(chart.to_dict()["datasets"].values()))
    assert {r["part"]: r["count"] for r in rows} == {"in use or idle: not told": 6, "blocked": 2}


def test_what_keeps_them_is_counted(open_app: Opener, campus: Path) -> None:
    app = open_app(campus, "queue")
    kept = next(d.value for d in app.dataframe if "kept by" in d.value.columns).set_index("kept by")["records"]
    assert kept.sum() == 33
    assert kept[["held", "other jobs first"]].tolist() == [1, 1]
    assert kept["never starts as it is"] == 14
    assert set(jobs(app)["hold"]) == set(kept.index)
    assert "For 13 records the limits themselves show it" in texts(app)
