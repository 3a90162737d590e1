"""The expected wait and what came of cases told alike: out of fold, distributions, nothing of one's own outcome."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.unit.models.made_cases import DAY, HOUR, LOAD, T0, made

from queuecast.features.cases import Cases
from queuecast.models.lessons import Lessons
from queuecast.models.located import FOLDS, _folds, fit

AT = T0 + 40 * DAY


@pytest.fixture(scope="module")
def cases() -> Cases:
    return made(1500, at_once=0.0)


def test_the_number_is_the_mean_of_log1p_wait(cases: Cases) -> None:
    model, number = fit(cases, Lessons.of(cases, AT), rounds=40)
    z = np.log1p(cases.start - cases.asked)
    assert np.isfinite(number).all()
    assert np.corrcoef(model.location(cases.values), 8 + 2 * cases.values[:, LOAD])[0, 1] > 0.85
    assert number.mean() == pytest.approx(z.mean(), abs=0.1)


def test_cases_are_told_by_models_that_had_not_seen_them() -> None:
    """With outcomes that nothing tells, the number of a case must not follow its own outcome."""
    noise = made(800, at_once=0.0)
    z = np.random.default_rng(5).uniform(3, 12, len(noise))
    start = noise.asked + np.expm1(z)
    noise = replace(noise, start=start, last_pending=start)
    model, number = fit(noise, Lessons.of(noise, T0 + 1000 * DAY), rounds=60)
    assert abs(np.corrcoef(number, z)[0, 1]) < 0.12
    assert np.corrcoef(model.location(noise.values), z)[0, 1] > 0.4


def test_all_questions_about_one_job_lie_in_one_fold() -> None:
    base = made(400)
    asked = np.concatenate([base.asked, base.asked + 3 * DAY])
    both = Cases(
        asked,
        np.tile(base.eligible, 2),
        np.tile(base.start, 2) + 4 * DAY,
        np.tile(base.start, 2) + 4 * DAY,
        base.features,
        np.tile(base.values, (2, 1)),
        {n: np.tile(g, 2) for n, g in base.groups.items()},
    )
    fold = _folds(both, np.arange(800))
    assert (fold[:400] == fold[400:]).all()
    assert set(np.unique(fold)) == set(range(FOLDS))


def test_what_came_of_cases_alike_is_a_distribution(cases: Cases) -> None:
    model, number = fit(cases, Lessons.of(cases, AT), rounds=40)
    told = model.around(np.linspace(number.min() - 5, number.max() + 5, 50))
    assert ((told.cdf >= 0) & (told.cdf <= 1 + 1e-12)).all()
    assert (np.diff(told.cdf, axis=1) >= 0).all()
    medians = told.quantile(0.5)
    assert medians[-1] > 3 * medians[0]
    pit = model.around(number).within(cases.start - cases.asked)
    held = np.mean((pit > 0.1) & (pit < 0.9))
    assert held == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize("count", [2, 30])
def test_few_cases_of_one_moment_can_be_learned_from(count: int) -> None:
    some = made(count, at_once=0.0)
    some = replace(some, asked=np.full(len(some), T0), eligible=np.full(len(some), T0), start=T0 + HOUR * np.ones(len(some)))
    model, _ = fit(some, Lessons.of(some, T0 + DAY), rounds=3)
    assert model.around(model.location(some.values)).quantile(0.5) == pytest.approx(HOUR, rel=0.2)
