"""Bounds by order statistics: the binomial rule against brute force, coverage, and histories cut where a queue changes."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecast.features.cases import Cases
from queuecast.models.qbets import BOUNDS, CURVE, fewest, order_statistic, qbets, qbets_bounds, rare_run


def cases(asked: np.ndarray, wait: np.ndarray, partition: np.ndarray | int = 0, size: np.ndarray | int = 0) -> Cases:
    asked = np.asarray(asked, np.float64)
    start = asked + wait
    groups = {"partition": np.broadcast_to(partition, asked.shape), "size": np.broadcast_to(size, asked.shape)}
    return Cases(asked, asked, start, start, (), np.zeros((len(asked), 0), np.float32), groups)


def brute_force(n: int, q: float, confidence: float) -> int:
    total = 0.0
    for k in range(1, n + 1):
        total += comb(n, k - 1) * q ** (k - 1) * (1 - q) ** (n - k + 1)
        if total >= confidence - 1e-12:
            return k
    return n + 1


def test_the_case_of_the_papers() -> None:
    assert [int(order_statistic(n, 0.95)) for n in (58, 59, 60)] == [59, 59, 60]  # of 58 waits none will do
    assert fewest() == 59


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 300), st.sampled_from([0.05, 0.5, 0.75, 0.8, 0.9, 0.95, 0.99]), st.sampled_from([0.5, 0.8, 0.95, 0.99]))
def test_order_statistics_equal_brute_force(n: int, q: float, confidence: float) -> None:
    assert int(order_statistic(n, q, confidence)) == brute_force(n, q, confidence)


def test_order_statistics_of_many_counts_at_once() -> None:
    counts = np.arange(1, 400)
    assert order_statistic(counts, 0.9).tolist() == [brute_force(int(n), 0.9, 0.95) for n in counts]


def test_rare_runs_of_independent_waits_are_three_and_grow_with_dependence() -> None:
    runs = [rare_run(r / 20) for r in range(-2, 22)]
    assert runs[:3] == [3, 3, 3]
    assert runs == sorted(runs)
    assert runs[-1] > 20


def test_rare_runs_agree_with_a_simulated_process() -> None:
    rng = np.random.default_rng(0)
    rho, chains = 0.6, 2_000_000
    x = rng.standard_normal(chains)
    over, shares = np.ones(chains, bool), []
    for _ in range(rare_run(rho)):
        over &= x > 1.6448536
        shares.append(over.mean())
        x = rho * x + np.sqrt(1 - rho**2) * rng.standard_normal(chains)
    assert shares[-1] < 0.05**3 * 1.3
    assert shares[-2] > 0.05**3 / 1.3


def test_bounds_on_independent_waits_hold_at_least_as_often_as_promised() -> None:
    """And at the known place: with n known waits the bound is the k-th of them, whatever came after."""
    rng = np.random.default_rng(1)
    wait = np.round(np.exp(7 + 1.5 * rng.standard_normal(6000)), 3)
    jobs = cases(np.arange(6000) * 100000.0, np.minimum(wait, 99999.0))
    bounds = qbets_bounds(jobs, jobs, trim=False)
    assert np.isinf(bounds[:59, -1]).all()
    assert np.isfinite(bounds[59:]).all()
    wait = jobs.start - jobs.asked
    for n in (59, 60, 200, 900):
        ordered = np.sort(wait[:n])
        assert bounds[n].tolist() == [ordered[brute_force(n, q, 0.95) - 1] for q in BOUNDS]
    held = (wait[200:, None] <= bounds[200:]).mean(axis=0)
    assert (held >= np.array(BOUNDS) - 0.005).all()
    assert (held <= np.array(BOUNDS) + 0.04).all()
    trimmed = (wait[200:, None] <= qbets_bounds(jobs, jobs)[200:]).mean(axis=0)
    assert (trimmed >= np.array(BOUNDS) - 0.01).all()


def test_a_jump_cuts_the_history() -> None:
    """Waits grow a hundredfold: three misses in a row cut to the last 59; without that the bound is late by 100 waits."""
    rng = np.random.default_rng(2)
    wait = np.exp(0.2 * rng.standard_normal(2300)) * np.where(np.arange(2300) < 2000, 600.0, 60000.0)
    jobs = cases(np.arange(2300) * 1e6, wait)
    cut, whole = qbets_bounds(jobs, jobs), qbets_bounds(jobs, jobs, trim=False)
    assert (cut[1990:2000, 3] < 1500).all()
    # Right after the third miss the last 59 hold 3 large waits of 59: the 59th, which is the bound, is one of them.
    assert (cut[2000:2003, 3] < 1500).all()
    assert (cut[2003:, 3] > 40000).all()
    assert (whole[2003:2080, 3] < 1500).all()
    # Once 59 of the new kind are in, the median follows; the untrimmed one does not.
    assert (cut[2062:, 0] > 40000).all()
    assert (whole[2062:2300, 0] < 1500).all()


def test_waits_count_from_the_start_on() -> None:
    """A job's wait is known once it started: 100 jobs that wait a day tell nothing on the first day."""
    jobs = cases(np.arange(100.0), np.full(100, 86400.0))
    asking = cases(np.array([86400.0 + 58, 86400.0 + 59, 86400.0 + 59.5]), np.zeros(3))
    assert np.isinf(qbets_bounds(jobs, asking)[:, 3]).tolist() == [True, False, False]


def test_each_size_has_its_own_history_and_borrows_where_it_is_short() -> None:
    rng = np.random.default_rng(3)
    size = np.array([0, 1] * 500)
    wait = np.where(size == 0, 100.0, 50000.0) * np.exp(0.1 * rng.standard_normal(1000))
    history = cases(np.arange(1000) * 1e5, wait, size=size)
    asking = cases(np.full(4, 1e9), np.zeros(4), partition=np.array([0, 0, 0, 9]), size=np.array([0, 1, 5, 0]))
    bound = qbets_bounds(history, asking)[:, 3]
    assert bound[0] < 200
    assert bound[1] > 40000
    assert bound[2] == bound[3] == pytest.approx(bound[1], rel=0.1)  # of the partition; of the cluster: both hold the slow ones


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.integers(60, 400))
def test_bounds_do_not_cross_and_the_distribution_goes_through_them(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    wait = np.round(np.where(rng.random(count) < 0.4, 0.0, rng.exponential(5000, count)))
    history = cases(np.arange(count) * 600.0, wait)
    asking = cases(np.array([count * 600.0 + 1e6]), np.zeros(1))
    bounds = qbets_bounds(history, asking, CURVE)[0]
    assert (np.diff(bounds) >= 0).all()
    found = qbets(history, asking)
    assert found.cdf[0, -1] == pytest.approx(CURVE[-1])
    for p, bound in zip(CURVE, bounds, strict=True):
        if np.count_nonzero(bounds == bound) == 1 and bound > 10:
            # Knots lie 17 % apart and the curve bends at the bounds.
            assert found.within(bound * 1.2)[0] >= p - 1e-6
            assert found.within(bound / 1.2)[0] <= p + 1e-6
    assert found.within(0.0)[0] == pytest.approx(max([p for p, b in zip(CURVE, bounds, strict=True) if b == 0], default=0.0))
