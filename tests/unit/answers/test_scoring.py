"""Answers are kept and scored by what came."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.unit.synthetic import NOW, T0, job_rows, known_at, make_lake, table

from queuecast.answers.forecast import Forecaster
from queuecast.answers.scoring import keep_answer, predictions_of, score_open, summary
from queuecast.errors import StoreError
from queuecast.policy.request import Request
from queuecast.store.predictions import Predictions


def test_answers_about_jobs_are_scored_when_they_start(tmp_path: Path) -> None:
    rows, at = job_rows(), T0 + timedelta(days=15)
    lake = make_lake(tmp_path / "lake", known_at(rows, at), at)
    log, forecaster = predictions_of(lake), Forecaster(lake)
    waiting = [r for r in known_at(rows, at) if r["state"] == "PENDING"][:40]
    for row in waiting:
        keep_answer(log, forecaster.when_job(str(row["job_id"]), at))
    assert score_open(lake, log, "toy") == 0
    with lake.transaction("later") as tx:
        tx.append("jobs", table("jobs", rows))
    ids = {r["job_id"] for r in waiting}
    started = {r["job_id"]: (r["start"] - at).total_seconds() for r in rows if r["job_id"] in ids and r["start"]}
    gone = [r for r in rows if r["job_id"] in ids and r["end"] and not r["start"]]
    assert score_open(lake, log, "toy") == len(started) + len(gone)
    assert score_open(lake, log, "toy") == 0
    scored = log.scored("toy")
    assert {p.job_id: p.wait_s for p in scored if p.outcome == "started"} == started
    assert sum(p.outcome == "cancelled" for p in scored) == len(gone)
    told = summary(log, "toy")
    assert (told.given, told.scored) == (len(waiting), len(started))
    assert told.held_50 is not None
    assert told.held_95 is not None
    assert told.held_50 <= told.held_95


def test_a_question_before_submitting_meets_the_job_that_followed(tmp_path: Path) -> None:
    rows = job_rows()
    job = next(r for r in rows if r["user"] == "alice" and r["start"] and r["submit"] > T0 + timedelta(days=12))
    at = job["submit"] - timedelta(minutes=5)
    lake = make_lake(tmp_path / "lake", rows)
    log = predictions_of(lake)
    ask = Request(partitions=("gpu",), gpus=4, gpu_type="a100", cpus=8, limit_s=job["limit_s"], account="vision", qos="normal")
    for user in ("alice", "nobody-here"):
        keep_answer(log, Forecaster(lake).when(replace(ask, user=user), at))
    assert score_open(lake, log, "toy") == 2
    mine, lost = log.scored("toy")
    assert mine.outcome == "started"
    assert mine.wait_s == pytest.approx((job["start"] - at).total_seconds())
    assert lost.outcome == "unmatched"


def test_a_lake_of_others_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert Predictions.beside(tmp_path / "lake").path == tmp_path / "state" / "queuecast" / "predictions.sqlite"


def test_a_broken_log_is_told(tmp_path: Path) -> None:
    (tmp_path / "predictions.sqlite").write_bytes(b"not a database" * 1000)
    with pytest.raises(StoreError, match="move it aside"):
        Predictions(tmp_path / "predictions.sqlite").add(at=NOW, cluster="c", job_id=1, job_submit=None, user=None, model=None, answer={})
