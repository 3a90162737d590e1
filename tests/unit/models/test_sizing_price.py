"""The price of a killed job, and what is told beside a bound."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecast.models.sizing_evidence import changed, floor_of, killed_lately, more_than, retry_of, used_of
from queuecast.models.sizing_past import SHARES
from queuecast.models.sizing_price import FREE, NEVER, pick, price_for, scores


def falling(count: int, seed: int) -> np.ndarray:
    chance = np.sort(np.random.default_rng(seed).random((count, len(SHARES))), axis=1)
    chance[:, 0] = 0.0
    return chance


@settings(max_examples=50)
@given(seed=st.integers(0, 10_000), low=st.floats(-20, 20), more=st.floats(0, 20))
def test_a_higher_price_takes_no_smaller_share(seed: int, low: float, more: float) -> None:
    chance, cost = falling(20, seed), np.exp(np.random.default_rng(seed).normal(size=20))
    assert (SHARES[pick(chance, cost, low + more)] >= SHARES[pick(chance, cost, low)]).all()


@settings(max_examples=50)
@given(seed=st.integers(0, 10_000))
def test_the_score_is_where_a_job_begins_to_survive(seed: int) -> None:
    draws = np.random.default_rng(seed)
    chance, cost, used = falling(20, seed), np.exp(draws.normal(size=20)), draws.random(20)
    found = scores(chance, cost, used, np.ones(20, np.bool_))
    for place in (-1e-6, 1e-6):
        enough = SHARES[pick(chance, cost, found + place)] >= used
        assert (enough | (found == FREE) if place < 0 else enough).sum() >= (0 if place < 0 else 20)
    inner = (found > FREE) & (found < NEVER - 1)
    assert not (SHARES[pick(chance, cost, found - 1e-6)] >= used)[inner].any()


def test_jobs_whose_request_was_too_small_cost_nothing() -> None:
    assert scores(falling(3, 1), np.ones(3), np.array([2.0, 2.0, 2.0]), np.zeros(3, np.bool_)).tolist() == [FREE] * 3
    assert scores(falling(1, 1), np.ones(1), np.array([0.4]), np.ones(1, np.bool_), floor=0.4).tolist() == [FREE]


def test_at_most_the_risk_lies_above_the_price_on_average() -> None:
    draws = np.random.default_rng(3)
    above = [draws.random() > price_for(draws.random(199), 0.05) for _ in range(4000)]
    assert np.mean(above) == pytest.approx(0.05, abs=0.012)


def test_too_few_jobs_for_the_risk() -> None:
    assert price_for(np.zeros(98), 0.01) == NEVER
    assert price_for(np.zeros(99), 0.01) == 0.0
    assert price_for(np.zeros(500), 0.0) == NEVER
    assert price_for(np.zeros(0), 0.5) == NEVER


@given(st.lists(st.floats(-5, 5), max_size=50), st.floats(0, 0.5), st.floats(0, 0.5))
def test_less_risk_costs_no_less(values: list[float], one: float, other: float) -> None:
    found = np.array(values)
    assert price_for(found, min(one, other)) >= price_for(found, max(one, other))


def test_the_level_changes_once_all_of_the_latest_lie_apart() -> None:
    before, after = [10.0, 11.0, 12.0, 9.0] * 5, [2.0, 3.0, 2.5, 2.2] * 3
    assert changed(np.array(before + after)) == len(before)
    assert changed(np.array(after + before)) == len(after)
    assert changed(np.array(before + before)) == 0
    assert changed(np.array(before + after[:7])) == 0  # too few to tell
    assert changed(np.array([])) == 0


@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=64), st.floats(0, 0.5), st.floats(0, 0.5))
def test_the_floor(values: list[float], one: float, other: float) -> None:
    uses, none = np.array(values), np.zeros(len(values), np.bool_)
    low, high = min(one, other), max(one, other)
    assert floor_of(uses, none, uses, low) >= floor_of(uses, none, uses, high)
    assert (uses > floor_of(uses, none, uses, high)).sum() <= high * len(uses) + 1e-6
    assert floor_of(uses, none, uses, 0.0) == max(values)


def test_no_bound_below_a_limit_that_killed() -> None:
    uses = np.array([1.0] * 99 + [5.0])
    assert floor_of(uses, uses > 4, np.full(100, 5.0), 0.1) == 5.0


def test_more_is_needed_where_the_latest_were_killed() -> None:
    asked = np.full(6, 4.0)
    last, two, old = np.zeros((3, 6), np.bool_)
    last[5], two[2:4], old[0] = True, True, True
    assert killed_lately(last, asked, 4.0)
    assert killed_lately(two, asked, 4.0)
    assert not killed_lately(old, asked, 4.0)
    assert not killed_lately(last, asked, 8.0)  # more is asked for already
    assert not killed_lately(old[:0], asked[:0], 4.0)
    assert more_than(np.full(6, 4.0), last, asked, 4.0) == 8.0
    assert more_than(np.array([9.0, 1, 1, 1, 1, 4]), last, asked, 4.0) == pytest.approx(9.9)


def test_trying_with_less_pays_where_few_need_much() -> None:
    uses = np.array([1.0] * 95 + [60.0] * 5)
    found = retry_of(uses, np.ones(100), 64.0, 64.0)
    assert found is not None
    first, with_first, whole = found
    assert 1.0 <= first < 60.0
    assert with_first < whole == pytest.approx(64 - uses.mean())
    assert retry_of(np.full(100, 60.0), np.ones(100), 64.0, 64.0) is None
    assert retry_of(uses[:3], np.ones(3), 64.0, 64.0) is None


def test_quantiles_are_uses_that_were_seen() -> None:
    assert used_of(np.array([1.0, 2.0, 9.0])) == (2.0, 9.0, 9.0)
