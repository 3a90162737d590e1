"""Answers of the trained model: in place of like jobs where it may be used, with what moved them and how such held."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from tests.unit.synthetic import NOW, job_rows, queue_rows, table

from queuecast.answers.forecast import Forecaster
from queuecast.models import stacked
from queuecast.models.saving import Model, load_model, save_model
from queuecast.models.training import train
from queuecast.policy.request import Request
from queuecast.render.factors import factor_part, factor_text
from queuecast.store.lake import Lake

REQUEST = Request(partitions=("gpu",), gpus=4, gpu_type="a100", cpus=8, limit_s=14400, account="vision", user="alice", qos="normal")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    store = Lake.open(tmp_path_factory.mktemp("learned") / "lake", create=True)
    rows = job_rows(900)
    with store.transaction("toy") as tx:
        tx.append("jobs", table("jobs", rows))
        tx.append("queue", table("queue", queue_rows(rows, NOW)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stacked.fit, "__kwdefaults__", {**stacked.fit.__kwdefaults__, "rounds": 6, "bins": 8})
        save_model(store.path / "models", train(store, NOW))
    return store


def test_the_trained_model_answers_and_says_how_such_answers_held(lake: Lake) -> None:
    answer = Forecaster(lake).when(REQUEST, NOW)
    assert answer.status == "estimate"
    assert answer.honesty is not None
    assert answer.honesty.days == 30
    assert answer.honesty.counted >= 20
    ends = [answer.interval(share) for share in (0.5, 0.8, 0.95)]
    assert [e.high_s for e in ends if e] == sorted(e.high_s for e in ends if e)
    assert [p for _, p in answer.within] == sorted(p for _, p in answer.within)
    assert all(factor_text(f) and factor_part(f)[0] in "+−" for f in answer.factors)
    assert [abs(f.seconds) for f in answer.factors] == sorted((abs(f.seconds) for f in answer.factors), reverse=True)


def test_quick_and_slow_partitions_are_told_apart(lake: Lake) -> None:
    forecaster = Forecaster(lake)
    cpu = Request(partitions=("cpu",), cpus=8, limit_s=14400, account="nlp", user="bob", qos="normal")
    slow, quick = forecaster.when(REQUEST, NOW).median_s, forecaster.when(cpu, NOW).median_s
    assert slow is not None
    assert quick is not None
    assert quick < slow / 3


def test_a_model_that_knows_later_things_is_not_asked(lake: Lake) -> None:
    before = Forecaster(lake).when(REQUEST, NOW - timedelta(days=2))
    assert before.honesty is not None
    assert before.honesty.days is None
    assert before.factors == ()


def test_all_pending_jobs_at_once_are_what_each_alone_is(lake: Lake) -> None:
    forecaster = Forecaster(lake)
    learned = forecaster._learned_for(NOW)
    assert learned is not None
    history = forecaster.history(NOW)
    rows, waits = learned.pending(history, NOW)
    assert len(rows) == np.count_nonzero((history.eligible <= NOW.timestamp()) & np.isinf(history.start) & np.isinf(history.end))
    alone, _ = learned.predict(history, REQUEST, NOW, int(rows[0]), 0.0, None)
    assert alone.waits.cdf[0] == pytest.approx(waits.cdf[0])


def test_saved_and_loaded_it_is_the_same(lake: Lake, tmp_path: Path) -> None:
    model = load_model(lake.path / "models")
    assert isinstance(model, Model)
    save_model(tmp_path, model)
    again = load_model(tmp_path)
    assert again is not None
    assert len(again.records["toy"]) == len(model.records["toy"])
    one, other = Forecaster(lake), Forecaster(lake)
    other.model = again
    assert one.when(REQUEST, NOW).intervals == other.when(REQUEST, NOW).intervals
