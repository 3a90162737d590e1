"""Baselines: nothing of what was not known yet, and the distributions that simple queues must give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecast.features.cases import Cases
from queuecast.models.baselines import SIMILAR, climatology, joint_codes, last_similar, last_wait, like_jobs, like_levels
from queuecast.models.qbets import qbets
from queuecast.models.waits import Waits

Baseline = Callable[[Cases, Cases], Waits]
ALL: list[Baseline] = [climatology, last_similar, like_jobs, qbets]
DAY = 86400.0


def queue(count: int, seed: int, *, days: float = 30.0, middle: float = 3600.0, spread: float = 1.0) -> Cases:
    """Jobs of two partitions (the second one ten times slower) with drawn waits, one in ten at once, some never."""
    rng = np.random.default_rng(seed)
    asked = np.sort(np.round(rng.random(count) * days * DAY)) + 1.7e9
    partition = rng.integers(0, 2, count)
    wait = np.round(middle * 10.0**partition * np.exp(spread * rng.standard_normal(count)))
    wait[rng.random(count) < 0.1] = 0
    wait[rng.random(count) < 0.05] = np.inf
    groups = {name: rng.integers(0, 3, count) for name in ("account", "user", "size")}
    return cases(asked, wait, partition=partition, gpu=partition, **groups)


def cases(asked: np.ndarray, wait: np.ndarray, **groups: np.ndarray) -> Cases:
    zeros = np.zeros(len(asked), np.int64)
    start = np.asarray(asked + wait, np.float64)
    groups = {name: groups.get(name, zeros) for name in ("partition", "account", "user", "size", "gpu")}
    last = np.where(np.isfinite(start), start, asked + 5 * DAY)
    return Cases(asked, asked, start, last, (), np.zeros((len(asked), 0), np.float32), groups)


@pytest.mark.parametrize("predict", ALL)
@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.0, 1.1), st.booleans())
def test_what_is_not_known_yet_changes_nothing(predict: Baseline, seed: int, share: float, at_a_case: bool) -> None:
    """Every outcome from a moment on is drawn anew, and jobs asked later are other jobs: predictions until then stand."""
    history = queue(260, seed)
    moment = history.asked[0] + share * 30 * DAY
    if at_a_case:
        moment = float(history.asked[min(int(share * 200), 259)])
    rng = np.random.default_rng(seed + 1)
    open_ = history.start >= moment
    after = np.where(rng.random(260) < 0.2, np.inf, np.maximum(moment, history.asked) + np.round(rng.exponential(DAY, 260)))
    after[rng.random(260) < 0.1] = moment  # that very second is not before it
    other = replace(history, start=np.where(open_, np.maximum(after, history.asked), history.start))
    early = history.take(history.asked <= moment)
    a, b = predict(history, early), predict(other, early)
    assert np.array_equal(a.cdf, b.cdf)
    cut = other.take((history.start < moment) | (np.arange(260) % 3 == 0))
    assert np.array_equal(predict(history, early).quantile(0.5), predict(cut, early).quantile(0.5))


@pytest.mark.parametrize("predict", ALL)
@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 120))
def test_distributions_are_distributions(predict: Baseline, seed: int, count: int) -> None:
    history = queue(count, seed)
    found = predict(history, queue(40, seed + 1, days=40))
    assert np.isfinite(found.cdf).all()
    assert (found.cdf >= 0).all()
    assert (found.cdf <= 1 + 1e-9).all()
    assert (np.diff(found.cdf, axis=1) >= -1e-9).all()


@pytest.mark.parametrize("predict", ALL)
def test_order_of_rows_does_not_matter(predict: Baseline) -> None:
    history, asking = queue(300, 5), queue(80, 6, days=35)
    mixed = np.random.default_rng(0).permutation(80)
    assert np.allclose(predict(history, asking).cdf[mixed], predict(history, asking.take(mixed)).cdf)
    # Waits differ, so no two rows become known at once and their order cannot matter.
    assert np.allclose(predict(history, asking).cdf, predict(history.take(np.random.default_rng(1).permutation(300)), asking).cdf)


@pytest.mark.parametrize("predict", ALL)
def test_nothing_known_is_told_as_nothing(predict: Baseline) -> None:
    empty = queue(50, 1).take(np.zeros(50, bool))
    assert (predict(empty, queue(9, 2)).cdf == 0).all()
    assert len(predict(queue(50, 1), empty)) == 0


def test_climatology_is_the_share_of_its_partition() -> None:
    history = queue(4000, 8, days=60)
    asking = cases(np.full(2, history.asked[-1] + 3 * DAY), np.zeros(2), partition=np.array([0, 1]), gpu=np.array([0, 1]))
    found = climatology(history, asking)
    for row in (0, 1):
        known = (history.groups["partition"] == row) & (history.start < np.floor(asking.asked[0] / DAY) * DAY)
        waits = (history.start - history.asked)[known]
        for hours in (1, 4, 24):
            # A knot lies within 17 % of any wait, and the rest of the cluster has the weight of one job.
            assert abs(found.within(3600.0 * hours)[row] - np.mean(waits <= 3600 * hours)) < 0.03
        assert found.within(0.0)[row] == pytest.approx(np.mean(waits == 0), abs=0.002)


def test_few_rows_lean_on_the_cluster() -> None:
    history = queue(500, 3)
    asking = cases(history.asked[-1:] + 5 * DAY, np.zeros(1), partition=np.array([77]))
    everyone = cases(history.asked, history.start - history.asked)
    assert np.allclose(climatology(history, asking).cdf, climatology(everyone, cases(asking.asked, np.zeros(1))).cdf, atol=0.01)


def test_like_jobs_follow_a_change_that_climatology_does_not() -> None:
    asked = 1.7e9 + np.arange(3000) * 1200.0
    rng = np.random.default_rng(2)
    wait = np.where(np.arange(3000) < 2400, 600.0, 20000.0) * np.exp(0.3 * rng.standard_normal(3000))
    asking = cases(asked[-1:] + DAY, np.zeros(1))
    assert 15000 < like_jobs(cases(asked, wait), asking).quantile(0.5)[0] < 25000
    assert climatology(cases(asked, wait), asking).quantile(0.5)[0] < 1000


def test_levels_hold_only_what_the_cases_have() -> None:
    history = queue(10, 1)
    dims = [level for level, _ in like_levels(history)]
    assert dims[0] == ("partition", "user", "size")
    assert dims[-1] == ()
    assert len(dims) == len(set(dims))
    assert all(set(level) <= set(history.groups) for level in dims)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 60))
def test_last_wait_is_the_one_found_by_looking_at_each(seed: int, count: int) -> None:
    history, asking = queue(count, seed, days=5), queue(25, seed + 1, days=8)
    found, level = last_wait(history, asking)
    for case in range(25):
        expected = (np.nan, -1)
        for number, dims in enumerate(SIMILAR):
            fits = history.start < asking.asked[case]
            for name in dims:
                fits &= history.groups[name] == asking.groups[name][case]
            if fits.any():
                rows = np.flatnonzero(fits)
                latest = history.start[rows].max()
                last = rows[history.start[rows] == latest][-1]
                expected = (float((history.start - history.asked)[last]), number)
                break
        assert level[case] == expected[1]
        assert found[case] == expected[0] or (np.isnan(found[case]) and np.isnan(expected[0]))


def test_the_last_wait_is_spread_by_earlier_errors() -> None:
    """Waits that alternate around a slow change: intervals hold as often as they say; equal waits give one step."""
    rng = np.random.default_rng(4)
    asked = 1.7e9 + np.arange(4000) * 900.0
    wait = np.exp(8 + np.sin(np.arange(4000) / 300) + 0.4 * rng.standard_normal(4000))
    history = cases(asked, wait)
    late = history.take(np.arange(1500, 4000))
    found = last_similar(history, late)
    inside = (wait[1500:] >= found.quantile(0.1)) & (wait[1500:] <= found.quantile(0.9))
    assert 0.75 < inside.mean() < 0.85
    still = last_similar(cases(asked, np.zeros(4000)), late)
    assert (still.within(0.0) > 0.99).all()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_joint_codes_are_equal_where_all_groups_are(seed: int) -> None:
    a, b = queue(30, seed), queue(20, seed + 1)
    of_a, of_b, count = joint_codes(a, b, ("account", "user", "partition"))
    keys = [tuple(int(c.groups[n][i]) for n in ("account", "user", "partition")) for c in (a, b) for i in range(len(c))]
    codes = [*of_a.tolist(), *of_b.tolist()]
    assert len(set(codes)) == len(set(keys)) == count == len(set(zip(codes, keys, strict=True)))
    assert (min(codes), max(codes)) == (0, count - 1)
