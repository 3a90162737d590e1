"""The kernels against plain Python, and what must hold whatever the workload."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecast.twin import reference
from queuecast.twin.easy import easy
from queuecast.twin.priority import classic, fair_tree

JOB = st.tuples(st.integers(0, 60), st.integers(1, 40), st.integers(1, 40), st.integers(1, 9), st.integers(0, 3))


def columns(rows: list[tuple[int, int, int, int, int]]) -> list[np.ndarray]:
    rows = sorted(rows, key=lambda r: r[0])
    return [np.array(c, np.float64) for c in zip(*rows, strict=True)]


@given(st.lists(JOB, min_size=1, max_size=40))
@settings(max_examples=150, deadline=None)
def test_easy_equals_plain_python(rows: list[tuple[int, int, int, int, int]]) -> None:
    args = columns(rows)
    assert easy(*args, 8.0).tolist() == reference.easy(*(a.tolist() for a in args), 8.0)


@pytest.mark.parametrize("seed", range(3))
def test_easy_equals_plain_python_on_long_workloads(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 250
    args = [
        np.sort(rng.integers(0, 3000, n)),
        rng.integers(1, 200, n),
        rng.integers(1, 200, n),
        rng.integers(1, 17, n),
        rng.integers(0, 5, n),
    ]
    args = [a.astype(np.float64) for a in args]
    assert easy(*args, 16.0).tolist() == reference.easy(*(a.tolist() for a in args), 16.0)


@given(st.lists(JOB, min_size=1, max_size=40))
@settings(max_examples=60, deadline=None)
def test_easy_never_uses_more_than_there_is(rows: list[tuple[int, int, int, int, int]]) -> None:
    submit, run, limit, procs, prio = columns(rows)
    start = easy(submit, run, limit, procs, prio, 8.0)
    assert np.isinf(start[procs > 8]).all()
    assert (start >= submit).all()
    end = start + np.minimum(run, limit)
    for t in start[np.isfinite(start)]:
        assert procs[(start <= t) & (end > t)].sum() <= 8


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[int], list[float], list[bool], list[float]]:
    """Root, accounts below it or each other, users at the accounts; an account's usage is the sum below it."""
    accounts = draw(st.integers(1, 4))
    parent, user = [-1], [False]
    for _ in range(accounts):
        parent.append(draw(st.integers(0, len(parent) - 1)))
        user.append(False)
    for _ in range(draw(st.integers(1, 6))):
        parent.append(draw(st.integers(1, accounts)))
        user.append(True)
    shares = [float(draw(st.integers(0, 5))) for _ in parent]
    usage = [float(draw(st.integers(0, 100))) if u else 0.0 for u in user]
    for a in range(len(parent) - 1, 0, -1):
        usage[parent[a]] += usage[a]
    return parent, shares, user, usage


@given(trees())
@settings(max_examples=150, deadline=None)
def test_fair_tree_equals_plain_python(tree: tuple[list[int], list[float], list[bool], list[float]]) -> None:
    parent, shares, user, usage = tree
    out = np.zeros(len(parent))
    fair_tree(np.array(parent), np.array(shares), np.array(user), np.array(usage), out)
    want = reference.fair_tree(parent, shares, user, usage)
    levels = sorted(round(out[a], 9) for a in want)
    # which of two accounts with the same LevelFS comes first is not said: the same factors are given out
    assert levels == sorted(round(v, 9) for v in want.values()) or len(set(usage)) < len(usage)
    assert all(0 < out[a] <= 1 for a in want)


def test_fair_tree_of_a_small_site() -> None:
    # root > (a: 70, b: 30); a > (ann 1, bob 1), b > (cat 1). a has used less of its share than b.
    parent = np.array([-1, 0, 0, 1, 1, 2])
    shares = np.array([np.nan, 70.0, 30.0, 1.0, 1.0, 1.0])
    usage = np.array([100.0, 50.0, 50.0, 40.0, 10.0, 50.0])
    out = np.zeros(6)
    fair_tree(parent, shares, np.array([False, False, False, True, True, True]), usage, out)
    assert out[[4, 3, 5]].tolist() == pytest.approx([1.0, 2 / 3, 1 / 3])


def test_classic_fair_share_halves_with_twice_the_share_used() -> None:
    out = np.zeros(3)
    classic(np.array([-1, 0, 0]), np.array([np.nan, 1.0, 1.0]), np.array([100.0, 50.0, 50.0]), 1.0, out)
    assert out[1:].tolist() == pytest.approx([0.5, 0.5])
    assert not math.isnan(out[0])
