"""What is learned from: censored jobs stand for what may still come, the latest cases are kept."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.models.made_cases import DAY, T0, made

from queuecast.features.cases import Cases
from queuecast.models import lessons
from queuecast.models.lessons import Lessons

AT = T0 + 15 * DAY


@pytest.fixture(scope="module")
def cases() -> Cases:
    return made()


@pytest.mark.parametrize("waited", [0.0, 30.0, 4000.0, 1e9])
def test_what_a_censored_job_may_still_wait_is_longer_than_what_it_waited(waited: float) -> None:
    waits, started = np.r_[np.linspace(10, 9000, 50), waited], np.r_[np.ones(50, bool), False]
    index, z = lessons._outcomes(waits, started)
    assert (np.bincount(index) == np.r_[np.ones(50), lessons.COPIES]).all()
    assert (z[index == 50] > np.log1p(waited)).all()
    assert np.allclose(z[index < 50], np.log1p(waits[:50]))


def test_of_too_many_cases_the_latest_are_kept_and_the_older_thinned(cases: Cases, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lessons, "MOST_CASES", 100)
    rows = lessons._chosen(cases, AT)
    before = np.flatnonzero(cases.asked < AT)
    assert len(rows) == len(np.unique(rows)) == 100
    assert (np.diff(rows) > 0).all()
    assert (rows[-50:] == before[-50:]).all()
    assert rows[0] == 0
    assert np.diff(rows[:50]).max() <= 1 + len(before) // 49
    assert (lessons._chosen(cases, cases.asked[80]) == np.arange(80)).all()


def test_newer_cases_weigh_more_and_copies_share_one_weight(cases: Cases) -> None:
    some = Lessons.of(cases, AT, half_life_s=DAY)
    rows, first = np.unique(some.rows, return_index=True)
    total = np.bincount(some.rows, some.weight)[rows]
    told = np.exp2(-(AT - cases.asked[rows]) / DAY)
    assert np.allclose(total / total[-1], told / told[-1])
    assert some.weight.max() == 1
    assert len(first) < len(some.rows)
