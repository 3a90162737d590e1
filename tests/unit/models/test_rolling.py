"""Past answers made again: nothing later than its moment moves an answer, and intervals hold while the queue drifts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.models.made_cases import DAY, HOUR, QUICK, T0, altered_after, held, logistic, made

from queuecast.features.cases import Cases
from queuecast.features.history import Flags, Floats, Ints
from queuecast.models import blend, rolling
from queuecast.models.levelmaps import LevelMaps
from queuecast.models.rolling import Rolled, roll
from queuecast.models.stacked import fit
from queuecast.models.waits import Waits

FIRST = T0 + 6 * DAY


@dataclass
class Narrow:
    """Everybody waits as the latest 300 did, with too small a spread."""

    middle: float

    def predict(self, values: Any) -> Waits:
        return logistic(self.middle, 0.5, len(values))


def narrow(cases: Cases, at: float) -> Any:
    """Learn from what was known at ``at``."""
    waits, started = cases.outcomes(at)
    known = np.log1p(waits[started])[-300:]
    return Narrow(float(np.median(known)) if len(known) else 8.0)


def nervous(model: Floats, like: Floats, knots_s: Floats, wait_s: Floats, started: Flags, gpu: Ints, followed_s: Floats) -> Floats:
    """A share that every outcome counted moves, as the real one, chosen among a few, would not."""
    return np.full(2, np.sum(np.sqrt(wait_s[started])) % 1.0)


def like_of(cases: Cases, seed: int = 5) -> Waits:
    """Some distributions that differ from case to case; for every tenth nothing is known."""
    like = logistic(7.0 + np.random.default_rng(seed).uniform(0, 3, len(cases)), 0.8, len(cases))
    like.cdf[::10] = np.nan
    return like


def same_until(one: Rolled, two: Rolled, cases: Cases, at: float) -> bool:
    early = cases.asked[one.rows] <= at
    same = [np.array_equal(getattr(one, n).cdf[early], getattr(two, n).cdf[early]) for n in ("waits", "uncorrected")]
    return np.array_equal(one.rows, two.rows) and all(same)


CASES = made(500, days=16.0, drift=1.0)
AGAIN = partial(roll, first=FIRST, every_s=1.3 * DAY, warm_up_s=2 * DAY, like=like_of(CASES), learn=narrow)


@pytest.fixture(scope="module")
def before() -> Rolled:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rolling, "share_of_like", nervous)
        return AGAIN(CASES)


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 499), st.integers(0, 10_000))
def test_what_came_later_moves_no_answer(before: Rolled, number: int, seed: int) -> None:
    """All outcomes after one question are made up anew: that answer and all earlier ones stay, to the last bit."""
    at = float(CASES.asked[number])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rolling, "share_of_like", nervous)
        assert same_until(before, AGAIN(altered_after(CASES, at, seed)), CASES, at)


def test_what_came_earlier_moves_answers(before: Rolled) -> None:
    """The test above could fail: outcomes that were known do move the model, the corrections and the mixture."""
    middle = FIRST + 3 * DAY
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rolling, "share_of_like", nervous)
        other = AGAIN(altered_after(CASES, middle))
    late = CASES.asked[before.rows] > middle + 2 * DAY
    assert not same_until(before, other, CASES, middle + 2 * DAY)
    assert (before.uncorrected.cdf[late] != other.uncorrected.cdf[late]).any(axis=1).mean() > 0.9
    assert not np.array_equal(before.shares, other.shares)


def test_the_share_of_like_jobs_is_measured_by_what_was_known() -> None:
    """Like jobs are right, the model is not: as soon as there are outcomes enough, they alone answer."""
    like = logistic(np.log1p(np.maximum(1.0, CASES.start - CASES.asked)), 0.05, len(CASES))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blend, "FEWEST", 30)
        found = roll(CASES, FIRST, every_s=DAY, like=like, learn=narrow)
    assert found.shares.tolist() == [1.0, 1.0]
    late, early = CASES.asked[found.rows] > FIRST + 4 * DAY, CASES.asked[found.rows] < FIRST + DAY
    assert np.allclose(found.uncorrected.cdf[late], like.cdf[found.rows][late], atol=1e-6)
    waits = narrow(CASES, FIRST).predict(like.cdf[found.rows][early]).cdf
    mixed = (1 - blend.UNTRIED) * waits + blend.UNTRIED * like.cdf[found.rows][early]
    assert np.allclose(found.uncorrected.cdf[early], mixed, atol=1e-6)


def test_what_came_later_moves_no_answer_of_the_real_model() -> None:
    cases = made(300, days=10.0)
    again = partial(roll, first=FIRST, every_s=2 * DAY, warm_up_s=2 * DAY, learn=partial(fit, **QUICK))
    one = again(cases)
    assert np.isfinite(one.waits.cdf).all()
    for at in (FIRST + 1.5 * DAY, FIRST + 2 * DAY + 60):
        two = again(altered_after(cases, at))
        assert same_until(one, two, cases, at)
        assert not same_until(one, two, cases, np.inf)


@pytest.mark.parametrize(("every_s", "warm_up_s"), [(DAY, 0.0), (DAY / 7, 1.5 * DAY), (100 * DAY, 3 * HOUR), (4321.7, 0.1)])
def test_all_from_the_first_on_are_answered(every_s: float, warm_up_s: float) -> None:
    cases = made(300, days=10.0)
    first = float(cases.asked[150])
    told: list[tuple[int, int]] = []
    found = roll(cases, first, every_s=every_s, warm_up_s=warm_up_s, learn=narrow, progress=lambda *at: told.append(at))
    assert found.rows.tolist() == list(range(150, 300))
    assert np.isfinite(found.waits.cdf).all()
    assert np.isfinite(found.uncorrected.cdf).all()
    assert (np.diff(found.waits.cdf, axis=1) >= 0).all()
    assert [t[0] for t in told] == list(range(told[0][1]))


def test_a_question_at_the_very_moment_of_a_refit_is_answered() -> None:
    """Origins are sums of numbers that are no whole seconds: no question may fall between two of them."""
    every = 7 * HOUR / 3 + 0.1
    cases = made(80, days=3.0)
    origins = np.arange(T0, T0 + 3 * DAY, every)
    asked = np.sort(np.r_[origins, T0 + np.arange(1, len(origins)) * every, origins[:-1] + every])
    some = cases.take(np.arange(len(asked)) % 80)
    found = roll(replace(some, asked=asked, eligible=asked, start=asked + 60, last_pending=asked + 60), T0, every_s=every, learn=narrow)
    assert len(found.rows) == len(asked)
    assert np.isfinite(found.waits.cdf).all()


def test_nothing_to_answer() -> None:
    cases = made(50, days=5.0)
    found = roll(cases, T0 + 50 * DAY, every_s=DAY, learn=narrow)
    assert len(found.rows) == len(found.waits) == 0
    told, codes = logistic(8.0, 1.0, 2), {n: np.zeros(2, np.int64) for n in ("pending", "partition", "size")}
    assert np.allclose(found.maps.correct(told, codes).cdf, told.cdf)


def test_each_refit_knows_its_moment_only() -> None:
    moments: list[float] = []

    def learn(cases: Cases, at: float) -> Any:
        moments.append(at)
        return narrow(cases, at)

    cases = made(300, days=10.0)
    roll(cases, T0 + 5 * DAY, every_s=2 * DAY, warm_up_s=DAY, learn=learn)
    assert moments == [T0 + 4 * DAY, T0 + 6 * DAY, T0 + 8 * DAY]


def test_intervals_hold_while_the_queue_drifts() -> None:
    """Too narrow a model, a queue whose waits swing by a factor of seven: 80 % within 4 points."""
    # Not narrower still: levels are corrected on a grid of 0.005, and the ends must not lie beyond its last step.
    cases = made(2500, days=40.0, at_once=0.0, middle=7.0, drift=1.0, seed=4)
    found = roll(cases, T0 + 8 * DAY, every_s=DAY, warm_up_s=4 * DAY, learn=narrow)
    wait_s = (cases.start - cases.asked)[found.rows]
    assert held(found.uncorrected, wait_s) < 0.6
    assert held(found.waits, wait_s) == pytest.approx(0.8, abs=0.04)
    for partition in (0, 1):
        assert held(found.waits, wait_s, cases.groups["partition"][found.rows] == partition) == pytest.approx(0.8, abs=0.06)


def test_the_maps_of_the_end_are_those_of_all_that_was_known_then() -> None:
    cases = made(600, days=12.0, at_once=0.0)
    found = roll(cases, T0 + 4 * DAY, every_s=DAY, learn=narrow)
    assert isinstance(found.maps, LevelMaps)
    assert found.maps.maps[0, ()].count == len(found.rows)
    other = roll(altered_after(cases, float(cases.asked[-1])), T0 + 4 * DAY, every_s=DAY, learn=narrow)
    assert all((found.maps.maps[k].honest == other.maps.maps[k].honest).all() for k in found.maps.maps)
    # Without like jobs nothing is mixed in.
    assert (found.shares == blend.UNTRIED).all()
