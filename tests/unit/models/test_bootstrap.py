"""Intervals from drawing days: as wide as days differ, the same every time, nothing where there is one day."""

from __future__ import annotations

import math

import numpy as np
import pytest

from queuecast.features.history import Flags, Floats
from queuecast.models.bootstrap import days_of, interval, measure_all_with_intervals
from queuecast.models.measures import measure_all
from queuecast.models.measures_statistic import Mean
from queuecast.models.waits import KNOTS_S, Waits

DAY = 86400.0


def sample(count: int, days: int, seed: int = 1) -> tuple[Waits, Floats, Flags, Floats]:
    rng = np.random.default_rng(seed)
    middle = rng.normal(8, 2, count)
    cdf = 1 / (1 + np.exp(-(np.log1p(KNOTS_S) - middle[:, None]) / 0.7))
    asked = 1.7e9 + rng.uniform(0, days * DAY, count)
    mood = rng.normal(0, 0.5, days + 2)[days_of(asked) - int(1.7e9 // DAY)]
    wait = np.minimum(np.expm1(np.maximum(0, middle + mood + 0.7 * rng.logistic(size=count))), 7e6)
    return Waits(cdf, KNOTS_S), wait, rng.uniform(size=count) > 0.1, asked


def test_days_are_utc_days() -> None:
    assert days_of(np.array([0.0, DAY - 0.1, DAY, -1.0])).tolist() == [0, 0, 1, -1]


def test_the_interval_is_that_of_the_mean_of_independent_days() -> None:
    """One case a day: the width must be close to 2 x 1.96 standard errors."""
    rng = np.random.default_rng(2)
    values = rng.normal(5, 3, 400)
    low, high = interval(values, np.arange(400), draws=2000)
    assert low < values.mean() < high
    assert high - low == pytest.approx(2 * 1.96 * values.std() / 20, rel=0.08)


def test_cases_of_one_day_are_one_piece_of_evidence() -> None:
    """Fifty equal cases a day tell no more than one."""
    rng = np.random.default_rng(3)
    values = rng.normal(0, 1, 60)
    alone = interval(values, np.arange(60))
    many = interval(np.repeat(values, 50), np.repeat(np.arange(60), 50))
    assert many == pytest.approx(alone)
    low, high = interval(np.repeat(values, 50), np.arange(3000))
    assert high - low < (alone[1] - alone[0]) / 4


def test_a_function_of_weights_is_drawn_like_a_mean() -> None:
    rng = np.random.default_rng(4)
    values, days = rng.normal(size=300), rng.integers(0, 25, 300)
    assert interval(lambda w: float(np.dot(w, values) / w.sum()), days) == pytest.approx(interval(values, days))
    holes = np.where(np.arange(300) % 3 == 0, np.nan, values)
    known = ~np.isnan(holes)
    assert interval(holes, days) == pytest.approx(interval(lambda w: float(np.dot(w[known], values[known]) / w[known].sum()), days))


def test_the_names_of_days_do_not_matter_and_the_seed_does() -> None:
    rng = np.random.default_rng(5)
    values, days = rng.normal(size=200), rng.integers(0, 20, 200)
    assert interval(values, days) == interval(values, days * 7 - 3000)
    assert interval(values, days) != interval(values, days, seed=1)


def test_one_day_or_none_tells_nothing() -> None:
    for days in (np.zeros(5, np.int64), np.array([], np.int64)):
        assert all(map(math.isnan, interval(np.ones(len(days)), days)))
        assert all(map(math.isnan, interval(lambda w: 1.0, days)))
    assert all(map(math.isnan, interval(np.full(4, np.nan), np.arange(4))))


def test_every_measure_gets_its_interval() -> None:
    waits, wait, started, asked = sample(3000, 40)
    climatology = {h: np.full(3000, 0.5) for h in (1, 4, 24)}
    plain = measure_all(waits, wait, started, asked, climatology)
    found = measure_all_with_intervals(waits, wait, started, asked, climatology)
    assert {name: figure.value for name, figure in found.items()} == plain
    for name, (value, low, high) in found.items():
        if name in ("cases", "days", "censored"):
            assert math.isnan(low)
        else:
            assert low <= value <= high, name
            assert low < high or name in ("unanswered", "open_50", "open_80", "open_90", "open_95"), name
    assert found["coverage_80"] == measure_all_with_intervals(waits, wait, started, asked)["coverage_80"]


def test_the_interval_of_a_measure_is_that_of_its_cases() -> None:
    waits, wait, started, asked = sample(800, 15)
    found = measure_all_with_intervals(waits, wait, started, asked)["mae_s"]
    error = np.where(started, np.abs(waits.quantile(0.5) - wait), np.nan)
    assert (found.low, found.high) == pytest.approx(interval(error, days_of(asked)))
    assert found.value == pytest.approx(Mean(error).value())


def test_within_one_day_values_stand_without_intervals() -> None:
    waits, wait, started, _ = sample(100, 5)
    found = measure_all_with_intervals(waits, wait, started, np.full(100, 1.7e9))
    assert math.isfinite(found["medae_s"].value)
    assert all(math.isnan(f.low) and math.isnan(f.high) for f in found.values())
