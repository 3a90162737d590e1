"""A cluster's model: words are read as in training, unknown ones do no harm, and what moved an answer is measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.unit.models.made_cases import DAY, LOAD, T0, logistic, made

from queuecast.answers.factors import factors
from queuecast.features.asking import Asking
from queuecast.features.cases import Cases
from queuecast.features.history import TEXTS, History
from queuecast.features.lakecases import FEATURES
from queuecast.features.situation_names import COLUMN
from queuecast.models.calibration import GRID, Calibration
from queuecast.models.levelmaps import LevelMaps
from queuecast.models.localtime import COLUMNS, with_local_time
from queuecast.models.savedparts import pack_wait_model, unpack_wait_model
from queuecast.models.stacked import fit
from queuecast.models.waitmodel import CODED, Moved, WaitModel, usual_values
from queuecast.models.waits import KNOTS_S, Waits

WORDS = {text: ["alpha", "beta", "gamma"] for text in TEXTS}
WORK = COLUMN["partition_pending_core_h"]
OTHER = COLUMN["partition_ahead_core_h"]


def wide(count: int = 600) -> Cases:
    """Two partitions; the second waits longer by far, both wait longer with more work in the queue. All else is constant."""
    base = made(count, at_once=0.0)
    partition = base.groups["partition"]
    values = np.zeros((count, len(FEATURES)), np.float32)
    values[:, WORK] = base.values[:, LOAD] * 100
    values[:, COLUMN["partition_code"]] = partition
    start = base.asked + (base.start - base.asked) * np.where(partition == 1, 20.0, 1.0)
    return replace(base, features=FEATURES, values=values, start=start, last_pending=start)


@pytest.fixture(scope="module")
def model() -> WaitModel:
    cases = wide()
    stacked = fit(cases, T0 + 40 * DAY, rounds=25, bins=6, threads=1)
    maps = LevelMaps({(0, ()): Calibration(GRID.copy(), 9), (2, (0, 1)): Calibration(GRID**2, 9)})
    return WaitModel(stacked, maps, np.zeros(2), WORDS, usual_values(cases, WORDS["partition"]), len(cases))


def history(words: dict[str, list[str]]) -> History:
    """No jobs, only words."""
    none = np.zeros(0)
    codes = {text: np.zeros(0, np.int64) for text in TEXTS}
    return History("toy", none.astype(np.int64), codes, words, *(none,) * 11)


def asking(partition: list[int], **known: Any) -> Asking:
    """New requests with these codes; every text has the same."""
    count = len(partition)
    one = np.ones(count)
    base = Asking(T0 * one, T0 * one, T0 * one, {t: np.array(partition) for t in TEXTS}, 0 * one, one, 3600 * one, -one.astype(np.int64))
    return replace(base, **known)


def values_of(model: WaitModel, partition: list[int]) -> Any:
    """Usual values, with codes as a history with other words may give them."""
    values = np.stack([model.usual[("alpha", "beta", "")[p]] for p in partition])
    for name in CODED:
        values[:, COLUMN[name]] = 99
    return values


def unknown(count: int) -> Waits:
    return Waits(np.full((count, len(KNOTS_S)), np.nan), KNOTS_S)


def test_words_in_another_order_give_the_same_answer(model: WaitModel) -> None:
    values = values_of(model, [0, 1])
    as_trained = model.predict(values, asking([0, 1]), unknown(2), history(WORDS))
    turned = {t: ["new", "beta", "gamma", "alpha"] for t in TEXTS}
    again = model.predict(values, asking([3, 1]), unknown(2), history(turned))
    assert (again.cdf == as_trained.cdf).all()
    # The partitions differ, so reading one as the other would show; and only the second has its own correction.
    swapped = model.predict(values, asking([1, 3]), unknown(2), history(turned))
    assert not np.allclose(swapped.cdf, as_trained.cdf, atol=0.05)
    assert as_trained.quantile(0.5)[1] > 5 * as_trained.quantile(0.5)[0]
    assert (values[:, COLUMN["partition_code"]] == 99).all()


def test_a_word_that_training_never_saw_has_an_answer(model: WaitModel) -> None:
    strange = history({t: ["alpha", "delta"] for t in TEXTS})
    told = model.predict(values_of(model, [2, 2]), asking([1, -1]), unknown(2), strange)
    assert np.isfinite(told.cdf).all()
    assert (told.cdf[0] == told.cdf[1]).all()
    # Corrections of partitions that it is not are not its own.
    own = replace(model, maps=LevelMaps({(2, (0, p)): Calibration(GRID**2, 9) for p in range(3)}))
    plain = model.stacked.predict(model.recoded(values_of(model, [2]), asking([-1]), strange))
    assert np.allclose(own.predict(values_of(model, [2]), asking([-1]), unknown(1), strange).cdf, plain.cdf)
    for code in (1, -1):
        moved = model.moved(values_of(model, [2]), asking([code]), strange)
        assert moved is not None
        assert np.isfinite(list(moved.seconds.values())).all()
        assert moved.usual["partition_pending_core_h"] == model.usual[""][WORK]


def test_the_correction_of_its_kind_is_used(model: WaitModel) -> None:
    values = values_of(model, [1, 1])
    pending = asking([1, 1], asked=T0 + np.array([0.0, 61.0]))
    told = model.predict(values, pending, unknown(2), history(WORDS))
    assert np.allclose(told.cdf[0], np.interp(told.cdf[1], GRID, GRID**2), atol=1e-9)


def test_like_jobs_are_mixed_in_apart_for_gpu_jobs(model: WaitModel) -> None:
    mixed = replace(model, shares=np.array([0.0, 1.0]), maps=LevelMaps())
    like = logistic(9.0, 0.5, 3)
    like.cdf[2] = np.nan
    told = mixed.predict(values_of(model, [0, 0, 0]), asking([0, 0, 0], gpus=np.array([np.nan, 2.0, 2.0])), like, history(WORDS))
    assert np.allclose(told.cdf[1], like.cdf[1], atol=1e-9)
    assert np.allclose(told.cdf[0], told.cdf[2])
    assert not np.allclose(told.cdf[0], like.cdf[0], atol=0.05)


def moved_of(model: WaitModel, values: Any, partition: int) -> Moved:
    """What moved one answer, for usual words but the partition's."""
    words = {**WORDS, "qos": ["alpha"] * 2, "gpu_type": ["alpha"] * 2}
    found = model.moved(values, asking([partition]), history(words))
    assert found is not None
    return found


@pytest.mark.parametrize("partition", [0, 1])
def test_nothing_moved_a_usual_request(model: WaitModel, partition: int) -> None:
    assert model.usual[WORDS["partition"][partition]][COLUMN["partition_code"]] == partition
    found = moved_of(model, values_of(model, [partition]), partition)
    assert set(found.seconds) == {f.topic for f in FEATURES}
    assert set(found.seconds.values()) == {0.0}
    assert found.own == found.usual
    assert factors(found, 3600.0, 0.0) == ()


def test_more_work_in_the_queue_made_the_wait_longer(model: WaitModel) -> None:
    """The part of the queue is what the median changes by when only the queue is the usual one; no other topic has a part."""
    values = values_of(model, [0])
    values[0, [WORK, OTHER]] = 95
    found = moved_of(model, values, 0)
    words = history(WORDS)
    more, usual = (model.stacked.predict(model.recoded(v, asking([0]), words)).quantile(0.5)[0] for v in (values, values_of(model, [0])))
    assert found.seconds["queue"] == more - usual > 600
    assert {t for t, s in found.seconds.items() if s != 0} == {"queue"}
    assert (found.own["partition_pending_core_h"], found.own["partition_ahead_core_h"]) == (95.0, 95.0)
    assert found.usual["partition_pending_core_h"] == model.usual["alpha"][WORK]
    (told,) = factors(found, float(more), 0.0)
    assert (told.topic, told.seconds) == ("queue", found.seconds["queue"])
    values[0, WORK] = 5
    assert moved_of(model, values, 0).seconds["queue"] < -600


def test_the_partition_is_measured_against_what_is_usual_in_it_not_elsewhere(model: WaitModel) -> None:
    """A job of the slow partition is not told that its partition is slow; only one of an unknown partition is compared with all."""
    values = values_of(model, [1])
    assert moved_of(model, values, 1).seconds["request"] == 0
    only_all = replace(model, usual={"": model.usual["alpha"]})
    assert moved_of(only_all, values, 1).seconds["request"] > 600
    assert replace(model, usual={}).moved(values, asking([1]), history(WORDS)) is None


def test_hours_are_those_of_the_zone_it_was_trained_for(model: WaitModel) -> None:
    values, there = values_of(model, [0]), replace(model, zone="Asia/Shanghai")
    told = there.recoded(values, asking([0]), history(WORDS))
    assert np.array_equal(told[:, COLUMNS], with_local_time(values, np.array([T0]), "Asia/Shanghai")[:, COLUMNS])
    assert not np.allclose(told[:, COLUMNS], model.recoded(values, asking([0]), history(WORDS))[:, COLUMNS])
    arrays = pack_wait_model(there)
    assert unpack_wait_model(arrays).zone == "Asia/Shanghai"
    with pytest.raises(ValueError, match="no time zone"):
        unpack_wait_model({**arrays, "zone": np.array("Nowhere/Town")})


def test_only_the_first_of_several_is_spoken_of(model: WaitModel) -> None:
    values = values_of(model, [0, 1])
    values[1, WORK] = 95
    two = model.moved(values, asking([0, 1]), history(WORDS))
    one = model.moved(values[:1], asking([0]), history(WORDS))
    assert two == one


def test_usual_values_are_medians_of_the_latest_cases_and_small_partitions_have_none() -> None:
    cases = wide(3000)
    cases.values[:, OTHER] = np.nan
    groups = {**cases.groups, "partition": np.where(np.arange(3000) < 49, 2, cases.groups["partition"])}
    found = usual_values(replace(cases, groups=groups), WORDS["partition"])
    assert set(found) == {"", "alpha", "beta"}
    assert found[""][WORK] == np.median(cases.values[-2000:, WORK])
    assert found["beta"][WORK] == np.median(cases.values[groups["partition"] == 1, WORK][-2000:])
    assert np.isnan(found[""][OTHER])
    assert found[""].dtype == np.float32
    assert not usual_values(cases.take(np.arange(0)), ["alpha"]).keys() - {""}
