"""Corrections between trainings: they follow what came since, a past moment has those known then, and no writer harms another."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.synthetic import NOW, job_rows, queue_rows, table

from queuecast.answers.forecast import Forecaster
from queuecast.errors import LakeLocked
from queuecast.models import renewing, saving, stacked, training
from queuecast.models.learning import FULL_EVERY, Learned, learn
from queuecast.models.renewing import as_known_at, renew, renew_if_due, renew_lake
from queuecast.models.saving import Model, ModelDamaged, load_kept, load_model, lock_models
from queuecast.models.training import train_lake
from queuecast.policy.request import Request
from queuecast.store.lake import Lake

EARLY = NOW - timedelta(days=3)
MIDDLE = NOW - timedelta(days=1)
REQUEST = Request(partitions=("gpu",), gpus=4, gpu_type="a100", cpus=8, limit_s=14400, account="vision", user="alice", qos="normal")


@pytest.fixture(scope="module", autouse=True)
def quick() -> Any:
    """Models that take no time to learn."""
    with pytest.MonkeyPatch.context() as patch:
        settings = {**stacked.fit.__kwdefaults__, "rounds": 6, "bins": 8, "location_rounds": 8}
        patch.setattr(stacked.fit, "__kwdefaults__", settings)
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Jobs as read at ``NOW``, with a model trained three days before that."""
    store = Lake.open(tmp_path_factory.mktemp("renewed") / "lake", create=True)
    rows = job_rows(900)
    with store.transaction("toy") as tx:
        tx.append("jobs", table("jobs", rows))
        tx.append("queue", table("queue", queue_rows(rows, NOW)))
    train_lake(store.refresh(), EARLY)
    return store


@pytest.fixture
def lake(made: Lake, tmp_path: Path) -> Lake:
    shutil.copytree(made.path, tmp_path / "lake")
    return Lake.open(tmp_path / "lake")


def current(lake: Lake) -> Model:
    model = load_model(lake.path / "models", kept=True)
    assert model is not None
    return model


def learned(lake: Lake) -> Learned:
    found = training.learned_of(current(lake), "toy")
    assert found is not None
    return found


def same_corrections(one: Any, two: Any, atol: float = 0.0) -> bool:
    return one.maps.keys() == two.maps.keys() and all(np.allclose(one.maps[k].honest, two.maps[k].honest, atol=atol) for k in one.maps)


def test_corrections_follow_and_the_trees_stay(lake: Lake) -> None:
    before = current(lake)
    after = renew_lake(lake, NOW)
    assert after is not None
    saved = current(lake)
    assert saved.name == after.name != before.name
    assert saved.data_until == saved.standings["toy"].corrected_until == NOW
    assert saved.standings["toy"].learned_until == before.standings["toy"].learned_until == EARLY
    assert saved.standings["toy"].renewal_s is not None
    trees = [m.waits["toy"].stacked.bins.trees.score for m in (before, saved)]
    assert np.array_equal(*trees)
    assert not same_corrections(before.waits["toy"].maps, saved.waits["toy"].maps)
    assert saved.waits["toy"].maps.maps[0, ()].count > before.waits["toy"].maps.maps[0, ()].count
    kept = saved.kept["toy"]
    assert (kept.asked >= EARLY.timestamp()).sum() > 50
    assert (np.diff(kept.asked) >= 0).all()
    assert len(saved.records["toy"]) > len(before.records["toy"])
    # What was open at the training has an outcome now.
    old = before.kept["toy"]
    open_then = np.flatnonzero(old.start > EARLY.timestamp())
    assert len(open_then)
    assert renew_lake(lake, NOW) is None


def test_outcomes_after_the_moment_change_nothing(lake: Lake) -> None:
    """Renewed as of the day before, from a lake that knows more or from one cut there."""
    cut = Lake.open(lake.path.parent / "cut", create=True)
    rows = [r for r in job_rows(900) if r["submit"] < MIDDLE]
    for row in rows:
        for name in ("start", "end"):
            row[name] = None if row[name] is not None and row[name] > MIDDLE else row[name]
        row["observed_at"] = MIDDLE
    with cut.transaction("toy") as tx:
        tx.append("jobs", table("jobs", rows))
    one, two = (renew(store, "toy", learned(lake), MIDDLE) for store in (without_snapshots(lake), cut.refresh()))
    assert same_corrections(one.model.maps, two.model.maps, atol=1e-9)
    assert np.array_equal(one.model.shares, two.model.shares)
    assert np.array_equal(one.record.wait_s[one.record.started], two.record.wait_s[two.record.started])


def without_snapshots(lake: Lake) -> Lake:
    with lake.transaction("only jobs") as tx:
        tx.clear()
        tx.append("jobs", table("jobs", job_rows(900)))
    return lake.refresh()


def test_in_steps_or_at_once_the_same_answers_count(lake: Lake) -> None:
    begun = learned(lake)
    steps = renew(lake, "toy", renew(lake, "toy", begun, MIDDLE), NOW)
    once = renew(lake, "toy", begun, NOW)
    assert steps.model.maps.maps[0, ()].count == pytest.approx(once.model.maps.maps[0, ()].count, rel=0.2)
    assert same_corrections(steps.model.maps.softened(1.0), once.model.maps.softened(1.0), atol=0.1)
    assert renew(lake, "toy", once, NOW) is once


def test_a_past_moment_has_the_corrections_known_then(lake: Lake) -> None:
    begun = learned(lake)
    then = renew(lake, "toy", begun, MIDDLE)
    renew_lake(lake, NOW)
    folder, model = lake.path / "models", current(lake)
    found = as_known_at(folder, model, "toy", MIDDLE)
    assert found is not None
    wait_model, record = found
    assert (record.asked < MIDDLE.timestamp()).all()
    assert (record.wait_s[record.started] <= MIDDLE.timestamp() - record.asked[record.started]).all()
    assert same_corrections(wait_model.maps, then.model.maps, atol=0.05)
    assert as_known_at(folder, model, "toy", EARLY - timedelta(seconds=1)) is None
    assert as_known_at(folder, model, "toy", NOW + timedelta(seconds=1)) is None
    forecaster = Forecaster(lake)
    answer = forecaster.when(REQUEST, MIDDLE)
    assert answer.honesty is not None
    assert answer.honesty.days == 30
    assert answer.freshness.model == model.name
    before = forecaster.when(REQUEST, EARLY - timedelta(hours=1))
    assert before.honesty is not None
    assert before.honesty.days is None
    assert before.freshness.model is None


def test_after_collecting_only_what_is_due_and_cheap(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    assert renew_if_due(lake, EARLY + timedelta(hours=5)) is None
    assert renew_if_due(lake, EARLY + timedelta(hours=7)) is not None
    monkeypatch.setattr(renewing, "PART", 1e-9)
    assert renew_if_due(lake, NOW) is None
    monkeypatch.setattr(renewing, "PART", 1.0)
    with lock_models(lake.path / "models", "trains"):
        assert renew_if_due(lake, NOW) is None
        with pytest.raises(LakeLocked, match="trains"):
            renew_lake(lake, NOW)
        with pytest.raises(LakeLocked):
            train_lake(lake, NOW)
    (lake.path / "models" / "current").write_text("../elsewhere")
    assert renew_if_due(lake, NOW) is None
    with pytest.raises(ModelDamaged):
        renew_lake(lake, NOW)
    shutil.rmtree(lake.path / "models")
    assert renew_lake(lake, NOW) is None


def test_a_training_goes_on_from_the_last_one(lake: Lake) -> None:
    renew_lake(lake, MIDDLE)
    before = current(lake)
    model = train_lake(lake, NOW)
    standing = model.standings["toy"]
    assert (standing.learned_until, standing.corrected_until, standing.full_until) == (NOW, NOW, EARLY)
    assert model.kept["toy"].asked[0] == before.kept["toy"].asked[0]
    whole = train_lake(lake, NOW, full=True)
    assert whole.standings["toy"].full_until == NOW
    # What it learned is the same to the last bit: only the past answers that correct it differ.
    assert np.array_equal(whole.waits["toy"].stacked.bins.trees.score, model.waits["toy"].stacked.bins.trees.score)
    assert not same_corrections(whole.waits["toy"].maps, model.waits["toy"].maps)


def test_a_training_begins_anew_after_a_week_or_with_more_past(lake: Lake) -> None:
    begun = learned(lake)
    old = replace(begun, standing=replace(begun.standing, full_until=NOW - FULL_EVERY - timedelta(hours=1)))
    later = learn(lake, "toy", NOW, old=old)
    assert later is not None
    assert later.standing.full_until == NOW
    fewer = replace(begun, standing=replace(begun.standing, jobs=begun.standing.jobs * 9 // 10))
    more = learn(lake, "toy", NOW, old=fewer)
    assert more is not None
    assert more.standing.full_until == NOW


def test_a_damaged_model_is_trained_anew(lake: Lake) -> None:
    path = lake.path / "models" / current(lake).name / "kept0.npz"
    path.write_bytes(path.read_bytes()[:-1])
    assert load_model(lake.path / "models") is not None  # answers do not need it
    with pytest.raises(ModelDamaged, match="not what was saved"):
        load_kept(path.parent)
    with pytest.raises(ModelDamaged):
        renew_lake(lake, NOW)
    assert train_lake(lake, NOW).standings["toy"].full_until == NOW


@pytest.mark.parametrize("step", ["write", "rename", "pointer"])
def test_interrupted_at_any_point_the_old_model_stays(lake: Lake, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    before = current(lake)
    answer = Forecaster(lake).when(REQUEST, NOW)

    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if step == "write":
            patch.setattr(os, "fsync", stop)
        elif step == "rename":
            patch.setattr(Path, "rename", stop)
        else:
            patch.setattr(saving.os, "replace", stop)
        with pytest.raises(KeyboardInterrupt):
            renew_lake(lake, NOW)
        with pytest.raises(KeyboardInterrupt):
            train_lake(lake, NOW)
    assert current(lake).name == before.name
    assert Forecaster(lake).when(REQUEST, NOW).intervals == answer.intervals
    assert renew_lake(lake, NOW) is not None
    assert current(lake).name != before.name
    assert not [p for p in (lake.path / "models").iterdir() if p.is_dir() and p.name.startswith(".")]
