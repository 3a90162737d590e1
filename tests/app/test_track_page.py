"""The page that tells how well such answers held."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from itertools import count
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
import pytest
from app.ui import trackview as view
from madelake import FORMULA, HOSTILE, NEWEST, PENDING
from streamlit.testing.v1 import AppTest
from test_wait_page import texts

from queuecast.answers.forecast import Forecaster
from queuecast.answers.scoring import keep_answer, predictions_of
from queuecast.answers.track import ENOUGH, track
from queuecast.models.record import TrackRecord
from queuecast.models.saving import Model
from queuecast.store.lake import Lake
from queuecast.store.predictions import Predictions

Opener = Callable[..., AppTest]
Measured = Callable[[TrackRecord | None], Path]
PARTITIONS = ("gpu", "cpu", HOSTILE, FORMULA, "rare")


@cache
def made_record(size: int = 2500, *, late: float = 0.0, slurm: bool = True, newest: datetime = NEWEST) -> TrackRecord:
    """Answers of 30 days with log-normal waits as they are told, times e^``late``; days differ, jobs at the end still wait."""
    rng, cdf = np.random.default_rng(11), np.vectorize(NormalDist().cdf)
    end = newest.timestamp()
    asked = np.sort(end - rng.uniform(0, 30 * 86400.0, size))
    partition = rng.choice(5, size, p=[0.55, 0.3, 0.08, 0.069, 0.001])
    partition[:2] = 4
    pending = rng.uniform(size=size) < 0.4
    middle = np.where(partition == 0, 8.6, 6.8) + rng.normal(0, 0.5, size)
    shared = rng.normal(0, 0.15, 40)[((asked - asked[0]) // 86400).astype(int)]
    came = np.exp(middle + late + shared + rng.normal(0, 1, size))
    started = (asked + came <= end) & (rng.uniform(size=size) > 0.03)
    wait = np.where(asked + came <= end, came, end - asked)
    ends = {
        f"{name}_{share}_s": np.exp(middle + sign * NormalDist().inv_cdf((1 + share / 100) / 2))
        for share in (50, 80, 95)
        for name, sign in (("low", -1), ("high", 1))
    }
    estimate = wait * np.exp(rng.normal(0.6, 0.9, size)) + 60
    return TrackRecord(
        asked=asked,
        pending=pending,
        partition=partition.astype(np.int64),
        gpus=np.where(partition == 0, 4.0, 0.0),
        wait_s=wait,
        started=started,
        pit=cdf(np.log(wait) - middle),
        median_s=np.exp(middle),
        **ends,
        **{f"p_{h}h": cdf(np.log(3600.0 * h) - middle) for h in (1, 4, 24)},
        slurm_s=np.where(pending & slurm & (rng.uniform(size=size) < 0.5), estimate, np.nan),
        partitions=PARTITIONS,
    )


@pytest.fixture
def measured(campus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measured:
    """A lake whose model keeps this record; None: a model without one. A copy each, since forecasters are kept by path."""
    numbers = count()

    def made(record: TrackRecord | None) -> Path:
        lake = tmp_path / f"lake{next(numbers)}"
        shutil.copytree(campus, lake, ignore=shutil.ignore_patterns("predictions.sqlite*"))
        model = Model(NEWEST, NEWEST)
        model.records = {} if record is None else {"campus": record}  # type: ignore[attr-defined]
        monkeypatch.setattr("queuecast.answers.forecast.load_model", lambda _folder: model)
        return lake

    return made


def table(app: AppTest) -> pd.DataFrame:
    return next(d.value for d in app.dataframe if "held" in d.value.columns)


def drawn(app: AppTest) -> list[dict[str, Any]]:
    return [json.loads(chart.proto.spec) for chart in app.get("vega_lite_chart")]


def test_the_page_says_how_answers_held(open_app: Opener, measured: Measured) -> None:
    record = made_record()
    app = open_app(measured(record), "track")
    whole = track(record, at=NEWEST).whole
    assert f"Of **{whole.held.counted:,}** answers in the last 30 days" in texts(app)
    shown = {m.label: m.value for m in app.metric}
    assert list(shown)[:3] == ["50 % intervals held", "80 % intervals held", "95 % intervals held"]
    assert shown["80 % intervals held"] == f"{100 * (whole.held.held or 0):.0f} %"
    assert f"Slurm gave an estimate beside {whole.slurm_given} of 2,500 answers" in texts(app)
    assert len(drawn(app)) == 6
    assert "The record ends" in texts(app)
    assert "made-up users" in texts(app)


def test_the_filters_are_kept_in_the_link(open_app: Opener, measured: Measured) -> None:
    record = made_record()
    lake = measured(record)
    app = open_app(lake, "track", partition="gpu", gpu="yes", asked="waiting", days="14")
    wanted = track(record, partition="gpu", gpu=True, pending=True, days=14, at=NEWEST).whole.held.counted
    assert f"Of **{wanted}** answers in the last 14 days" in texts(app)
    assert app.selectbox(key="track_partition").value == "gpu"
    assert table(app)["partition"].tolist() == ["gpu"]
    app.selectbox(key="track_partition").set_value(None).run()
    app.segmented_control(key="track_gpu").set_value("no").run()
    app.segmented_control(key="track_days").set_value("30").run()
    assert {k: v[0] if isinstance(v, list) else v for k, v in dict(app.query_params).items()} == {"gpu": "no", "asked": "waiting"}
    wanted = track(record, gpu=False, pending=True, at=NEWEST).whole.held.counted
    assert f"Of **{wanted}** answers in the last 30 days" in texts(app)
    odd = open_app(lake, "track", partition="nope", gpu="<b>", asked="1", days="9999999999")
    assert f"Of **{track(record, at=NEWEST).whole.held.counted:,}**" in texts(odd)


@pytest.mark.parametrize(
    ("spoil", "said"), [(0.0, "held as often as they claim"), (0.8, "held less often"), (-1.0, "held more often than they claim")]
)
def test_the_verdict_follows_the_numbers(open_app: Opener, measured: Measured, spoil: float, said: str) -> None:
    record = made_record(late=max(0.0, spoil))
    if spoil < 0:
        record = replace(record, low_80_s=record.low_95_s, high_80_s=record.high_95_s)
    assert said in texts(open_app(measured(record), "track", days="30"))


def test_without_a_model_or_a_record_it_says_train(open_app: Opener, measured: Measured, campus: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(campus, bare)
    for lake in (bare, measured(None), measured(made_record().take(np.zeros(2500, bool)))):
        app = open_app(lake, "track")
        assert "Nothing was measured yet" in texts(app)
        assert [c.value for c in app.code] == ["queuecast train"]
        assert not app.metric


def test_too_few_answers_are_said_to_be_too_few(open_app: Opener, measured: Measured) -> None:
    record = made_record()
    few = record.take(np.arange(2500) >= 2500 - ENOUGH + 5)
    app = open_app(measured(few), "track")
    assert "Too few answers to judge" in texts(app)
    assert any("can be counted so far; 20 are needed" in t.value for t in app.text)
    assert not app.metric
    assert not drawn(app)
    old = open_app(measured(record), "track", at=f"{NEWEST - timedelta(days=60):%Y-%m-%d}")
    assert any(t.value.startswith("0 answers") for t in old.text)


def test_hostile_names_are_cells_not_markup(open_app: Opener, measured: Measured) -> None:
    """F: a partition's name is shown, not run, and is no formula in a spreadsheet."""
    record = made_record()
    lake = measured(record)
    app = open_app(lake, "track", partition=HOSTILE)
    assert app.selectbox(key="track_partition").value == HOSTILE
    assert table(app)["partition"].tolist() == [HOSTILE]
    for one in (app, open_app(lake, "track")):
        assert "alert" not in texts(one)
        assert not any(m.allow_html for m in one.markdown)
        assert "alert" not in json.dumps(drawn(one))
    rows = list(csv.DictReader(io.StringIO(view.track_csv(track(record, at=NEWEST)).decode("utf-8-sig"))))
    assert "'" + FORMULA in [r["partition"] for r in rows]
    assert HOSTILE in [r["partition"] for r in rows]


def test_nothing_is_told_of_fewer_than_five(open_app: Opener, measured: Measured) -> None:
    """F: two answers about a rare partition might be one person's."""
    record = made_record()
    found = track(record, at=NEWEST)
    rare = next(s for s in found.by_partition if s.name == "rare")
    assert 0 < rare.answers < view.FEW
    row = table(open_app(measured(record), "track")).set_index("partition").loc["rare"]
    assert row.drop("counted").isna().all()
    line = next(r for r in csv.DictReader(io.StringIO(view.track_csv(found).decode("utf-8-sig"))) if r["partition"] == "rare")
    assert {line[k] for k in ("held_80", "median_abs_error_s", "within_2x", "slurm_median_abs_error_s")} == {""}
    sparse = track(record.take(np.arange(2500) % 60 == 0), at=NEWEST)
    assert max(s.held.counted for s in sparse.by_day) < view.FEW
    assert "No day has 5 answers" in texts(open_app(measured(record.take(np.arange(2500) % 60 == 0)), "track"))


def test_without_estimates_of_slurm(open_app: Opener, measured: Measured) -> None:
    app = open_app(measured(made_record(slurm=False)), "track")
    assert "Slurm's own estimates cannot be compared" in texts(app)
    assert table(app)["slurm"].isna().all()
    assert (table(app)["given"].dropna() == 0).all()


def test_jobs_that_still_wait_are_told(open_app: Opener, measured: Measured) -> None:
    record = made_record()
    slow = replace(record, started=record.started & (np.arange(2500) % 4 != 0), wait_s=NEWEST.timestamp() - record.asked)
    slow = replace(slow, high_80_s=np.full(2500, np.inf))
    assert "still wait inside their intervals" in texts(open_app(measured(slow), "track"))


def test_answers_really_given_are_scored_once_there_are_enough(open_app: Opener, measured: Measured) -> None:
    lake = measured(made_record())
    log = predictions_of(Lake.open(lake))
    assert "Answers really given" not in texts(open_app(lake, "track"))
    answer = Forecaster(Lake.open(lake)).when_job(str(PENDING), NEWEST)

    def give(times: int, log: Predictions) -> None:
        for _ in range(times):
            keep_answer(log, answer)
        log.score([(p.id, "started", NEWEST + timedelta(hours=1), 3600.0) for p in log.unscored("campus")])

    give(ENOUGH - 1, log)
    app = open_app(lake, "track")
    assert "19 answers were given; 19 of the jobs have started since." in texts(app)
    assert "From 20 on they are scored" in texts(app)
    assert sum(m.label == "80 % intervals held" for m in app.metric) == 1
    give(1, log)
    app = open_app(lake, "track")
    assert sum(m.label == "80 % intervals held" for m in app.metric) == 2
    (lake / "predictions.sqlite").write_bytes(b"not a database" * 1000)
    for rest in lake.glob("predictions.sqlite-*"):
        rest.unlink()
    assert "held as often" in texts(open_app(lake, "track"))


def test_no_lake_and_an_empty_lake(open_app: Opener, tmp_path: Path) -> None:
    assert "There is no data folder yet" in texts(open_app(None, "track"))
    empty = tmp_path / "empty"
    with Lake.open(empty, create=True).transaction("test"):
        pass
    assert "The lake is empty" in texts(open_app(empty, "track"))
