"""Kaplan-Meier and its continuous form, against a plain reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecast.models.distribution import kaplan_meier

seconds = st.floats(0, 1e6).map(lambda x: round(x, 3))
samples = st.lists(st.tuples(seconds, st.booleans(), st.sampled_from([0.25, 1.0, 3.0])), min_size=1, max_size=40)


def reference(waits: np.ndarray, started: np.ndarray, weights: np.ndarray, at: float) -> float:  # type: ignore[type-arg]
    """P(wait <= at) by the definition: the product over event times of (1 - events / at risk)."""
    survival = 1.0
    for t in sorted(set(waits[started])):
        if t > at:
            break
        risk, events = weights[waits >= t].sum(), weights[(waits == t) & started].sum()
        survival *= 1 - events / risk
    total = weights.sum()
    return float((1 - survival) * total / (total + 1))


@given(samples)
def test_agrees_with_the_definition_at_and_beyond_the_last_start(sample: list[tuple[float, bool, float]]) -> None:
    waits, started, weights = (np.array(x) for x in zip(*sample, strict=True))
    d = kaplan_meier(waits, started, weights)
    assert d.reach() == pytest.approx(reference(waits, started, weights, np.inf), abs=1e-9)
    times = sorted(set(waits[started]))
    for before, at, after in zip([-1.0, *times], times, [*times[1:], 1e9], strict=False):
        if min(at - before, after - at) < 1e-3 * (1 + at):
            continue
        # between the steps of the definition: half a job below, half a job above
        low, high = reference(waits, started, weights, before), reference(waits, started, weights, at)
        assert low - 1e-6 <= float(d.cdf(at * (1 - 1e-6))) <= float(d.cdf(at * (1 + 1e-6) + 1e-6)) <= high + 1e-6


@given(samples, st.floats(0, 1e6), st.floats(0, 1e6))
def test_cdf_rises_and_quantiles_do_not_cross(sample: list[tuple[float, bool, float]], a: float, b: float) -> None:
    waits, started, weights = (np.array(x) for x in zip(*sample, strict=True))
    d = kaplan_meier(waits, started, weights).after(a / 10)
    low, high = min(a, b), max(a, b)
    assert 0 <= float(d.cdf(low)) <= float(d.cdf(high)) <= 1
    q = d.quantile(np.linspace(0.01, 0.99, 25))
    assert (q[1:] >= q[:-1]).all()
    assert (q >= 0).all()


@given(samples)
def test_quantile_undoes_cdf(sample: list[tuple[float, bool, float]]) -> None:
    waits, started, weights = (np.array(x) for x in zip(*sample, strict=True))
    d = kaplan_meier(waits, started, weights)
    for p in (0.1, 0.5, 0.9):
        q = float(d.quantile(p))
        if np.isfinite(q):
            assert float(d.cdf(q + 1e-3 + q * 1e-9)) >= p - 1e-3
        else:
            assert p > d.reach()


def test_without_censoring_it_is_the_share_of_jobs() -> None:
    d = kaplan_meier(np.arange(1.0, 100.0), np.ones(99, bool))
    assert float(d.cdf(50.0)) == pytest.approx(0.5, abs=0.01)
    assert float(d.quantile(0.5)) == pytest.approx(50, rel=0.03)
    assert np.isinf(float(d.quantile(0.999)))


def test_dropping_the_censored_would_be_too_optimistic() -> None:
    waits = np.r_[np.full(50, 100.0), np.full(50, 1000.0)]
    started = np.r_[np.ones(50, bool), np.zeros(50, bool)]
    assert kaplan_meier(waits, started).reach() == pytest.approx(0.5, abs=0.01)
    assert np.isinf(float(kaplan_meier(waits, started).quantile(0.9)))
    assert np.isfinite(float(kaplan_meier(waits[started], started[started]).quantile(0.9)))


def test_nobody_started_yet() -> None:
    d = kaplan_meier(np.array([5.0, 10.0]), np.array([False, False]))
    assert d.reach() == 0
    assert np.isinf(d.quantile(np.array([0.1, 0.9]))).all()


def test_waiting_moves_the_distribution() -> None:
    d = kaplan_meier(np.r_[np.full(90, 60.0), np.full(10, 36000.0)], np.ones(100, bool))
    assert float(d.quantile(0.5)) < 100
    assert 20000 < float(d.after(600).quantile(0.5)) <= 36000
