"""The share of like jobs: the better of two models is found apart for GPU jobs, and only from enough outcomes."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.models.made_cases import logistic

from queuecast.features.history import Flags, Floats, Ints
from queuecast.models.blend import FEWEST, UNTRIED, mix, share_of_like
from queuecast.models.waits import KNOTS_S, Waits


def drawn(count: int, seed: int = 1) -> tuple[Floats, Floats, Floats, Ints]:
    """A true and a biased model of the same waits, the waits, GPUs or not."""
    rng = np.random.default_rng(seed)
    middle = rng.uniform(6, 10, count)
    wait_s = np.expm1(np.maximum(0.0, middle + 0.5 * rng.logistic(size=count)))
    return logistic(middle, 0.5, count).cdf, logistic(middle + 2, 0.5, count).cdf, wait_s, rng.integers(0, 2, count)


def shares(model: Floats, like: Floats, wait_s: Floats, gpu: Ints, started: Flags | None = None) -> list[float]:
    found = share_of_like(model, like, KNOTS_S, wait_s, np.ones(len(gpu), bool) if started is None else started, gpu)
    return [float(share) for share in found]


def test_the_better_model_is_taken_apart_for_gpu_jobs() -> None:
    good, bad, wait_s, gpu = drawn(1000)
    assert shares(good, bad, wait_s, gpu) == [0.0, 0.0]
    assert shares(bad, good, wait_s, gpu) == [1.0, 1.0]
    swap = (gpu == 1)[:, None]
    assert shares(np.where(swap, bad, good), np.where(swap, good, bad), wait_s, gpu) == [0.0, 1.0]


def test_two_that_err_in_opposite_directions_are_mixed() -> None:
    rng = np.random.default_rng(2)
    middle = np.where(rng.random(2000) < 0.5, 6.0, 9.0)
    wait_s = np.expm1(middle + 0.3 * rng.logistic(size=2000))
    found = shares(logistic(6.0, 0.3, 2000).cdf, logistic(9.0, 0.3, 2000).cdf, wait_s, np.zeros(2000, np.int64))
    assert found[0] == pytest.approx(0.5, abs=0.01)


def test_with_few_outcomes_nothing_is_decided() -> None:
    good, bad, wait_s, gpu = drawn(FEWEST - 1)
    assert shares(bad, good, wait_s, gpu) == [UNTRIED, UNTRIED]
    good, bad, wait_s, gpu = drawn(1000)
    few = np.arange(1000) < FEWEST - 1
    assert shares(bad, good, wait_s, gpu, few) == [UNTRIED, UNTRIED]
    unknown = np.where(few[:, None], good, np.nan)
    assert shares(bad, unknown, wait_s, gpu) == [UNTRIED, UNTRIED]
    # Few of one kind: the share of all.
    rare = (np.arange(1000) < 50).astype(np.int64)
    swap = (rare == 1)[:, None]
    assert shares(np.where(swap, good, bad), np.where(swap, bad, good), wait_s, rare) == [1.0, 1.0]


def test_jobs_without_a_start_and_older_outcomes_do_not_count() -> None:
    good, bad, wait_s, gpu = drawn(1000)
    started = np.arange(1000) >= 500
    assert shares(np.where(started[:, None], bad, good), np.where(started[:, None], good, bad), wait_s, gpu, started) == [1.0, 1.0]
    early, late = drawn(5000, 3), drawn(4000, 4)
    none = np.zeros(9000, np.int64)
    assert shares(np.r_[early[0], late[1]], np.r_[early[1], late[0]], np.r_[early[2], late[2]], none)[0] == 1.0


def test_a_mixture_lies_between_and_unknown_like_jobs_leave_the_model() -> None:
    good, bad, _, _ = drawn(4)
    like = bad.copy()
    like[2] = np.nan
    like[3, 50:] = np.nan
    found = mix(Waits(good, KNOTS_S), Waits(like, KNOTS_S), np.array([0.25, 1.0]), np.array([0, 1, 1, 0])).cdf
    assert np.allclose(found[0], 0.75 * good[0] + 0.25 * bad[0])
    assert (found[1] == bad[1]).all()
    assert (found[2:] == good[2:]).all()


def test_jobs_asked_about_lately_do_not_make_short_answers_look_good() -> None:
    """Asked about over the last hours, watched until now: half have started, the quick ones. Judged by those alone the model that
    is too short would win; with all that is known the true one does."""
    rng = np.random.default_rng(5)
    count = 4000
    true, short = logistic(9.0, 0.8, count).cdf, logistic(8.0, 0.8, count).cdf
    wait_s = np.expm1(9.0 + 0.8 * rng.logistic(size=count))
    followed_s = np.linspace(9 * 3600.0, 0.0, count)
    started = wait_s <= followed_s
    assert 0.2 < started.mean() < 0.8
    seen = np.minimum(wait_s, followed_s)
    none = np.zeros(count, np.int64)
    quick = np.flatnonzero(started)
    assert share_of_like(true[quick], short[quick], KNOTS_S, wait_s[quick], started[quick], none[quick])[0] > 0.5
    assert share_of_like(true, short, KNOTS_S, seen, started, none, followed_s)[0] == 0.0
    assert share_of_like(short, true, KNOTS_S, seen, started, none, followed_s)[0] == 1.0
