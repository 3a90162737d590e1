"""Chances of bins."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.models.made_cases import DAY, QUICK, T0, made

from queuecast.features.cases import Cases
from queuecast.models.boosted import Boosted
from queuecast.models.boosted import fit as fit_lessons
from queuecast.models.lessons import Lessons

AT = T0 + 15 * DAY


def fit(cases: Cases, at: float) -> Boosted:
    lessons = Lessons.of(cases, at)
    return fit_lessons(cases.values[lessons.rows], cases.features, lessons, **QUICK)


def test_a_wait_of_zero_has_a_bin_of_its_own() -> None:
    cases = made()
    model = fit(cases, AT)
    assert model.low[0] == model.high[0] == 0
    assert model.low[1] > 0
    assert (model.high[1:] > model.low[1:]).all()
    told = model.predict(cases.values).cdf[:, 0]
    assert told.mean() == pytest.approx(0.3, abs=0.06)
    at_once = cases.start == cases.asked
    assert told[at_once].mean() > told[~at_once].mean() + 0.05
    never = made(300, at_once=0.0)
    assert (fit(never, AT).predict(never.values).cdf[:, 0] == 0).all()


def test_jobs_that_all_waited_the_same_can_be_learned_from() -> None:
    some = made(120)
    for wait, before, after in ((0.0, -1.0, 0.0), (600.0, 400.0, 900.0)):
        start = some.asked + wait
        told = fit(replace(some, start=start, last_pending=start), AT).predict(some.values[:5])
        assert (told.within(after) > 0.95).all()
        assert (told.within(before) < 0.05).all()
