"""Quantile, CRPS and PIT measures against numeric integration, scikit-learn and cases with a known answer."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from sklearn.metrics import mean_pinball_loss

from queuecast.features.history import Floats
from queuecast.models.measures_distribution import Scale, crps, pinball_log1p, pit_histogram, quantiles, within
from queuecast.models.waits import KNOTS_S, Waits

FEW_S = np.array([0.0, 0.4, 1.0, 7.0, 60.0, 3600.0, 1e6])


@st.composite
def cases(draw: st.DrawFn) -> tuple[Waits, Floats]:
    """A few distributions, some with steps at zero, flat stretches or a part that never starts; waits also beyond the
    last knot."""
    count = draw(st.integers(1, 4))
    steps = draw(st.lists(st.lists(st.sampled_from([0.0, 0.0, 0.1, 0.5, 1.0]), min_size=8, max_size=8), min_size=count, max_size=count))
    parts = np.array(steps) + np.r_[np.zeros(7), 1e-3]  # the last part is what lies beyond the knots
    cdf = np.cumsum(parts[:, :7], axis=1) / parts.sum(axis=1, keepdims=True)
    wait = draw(st.lists(st.one_of(st.sampled_from([0.0, 0.4, 1.0, 60.0, 1e6, 3e6]), st.floats(0, 5000)), min_size=count, max_size=count))
    return Waits(cdf, FEW_S), np.array(wait)


def integrated(waits: Waits, wait: float, scale: Scale) -> float:
    """CRPS of the first distribution by adaptive quadrature over x itself."""

    def seconds(x: float) -> float:
        return x if scale == "seconds" else 10.0**x

    def place(s: float) -> float:
        return s if scale == "seconds" else float(np.log10(max(s, 1.0)))

    def square(x: float) -> float:
        s = seconds(x)
        told = float(waits.within(s)[0]) if s < waits.knots_s[-1] else 1.0
        return (told - (x >= place(wait))) ** 2

    stops = np.unique([place(s) for s in (*waits.knots_s, wait)])
    return float(sum(quad(square, a, b, epsabs=1e-10, epsrel=1e-10)[0] for a, b in pairwise(stops)))


@pytest.mark.parametrize("scale", ["seconds", "log10"])
@settings(max_examples=25, deadline=None)
@given(case=cases())
def test_crps_is_the_integral(scale: Scale, case: tuple[Waits, Floats]) -> None:
    waits, wait = case
    found = crps(waits, wait, scale)
    for i in range(len(wait)):
        assert found[i] == pytest.approx(integrated(Waits(waits.cdf[i : i + 1], FEW_S), wait[i], scale), rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("scale", ["seconds", "log10"])
def test_crps_on_the_usual_knots_is_the_integral(scale: Scale) -> None:
    rng = np.random.default_rng(3)
    cdf = np.sort(rng.uniform(size=(2, len(KNOTS_S))), axis=1)
    wait = np.array([777.7, 2e6])
    found = crps(Waits(cdf, KNOTS_S), wait, scale)
    for i in range(2):
        assert found[i] == pytest.approx(integrated(Waits(cdf[i : i + 1], KNOTS_S), wait[i], scale), rel=1e-8)


@pytest.mark.parametrize("scale", ["seconds", "log10"])
@settings(max_examples=25, deadline=None)
@given(case=cases())
def test_crps_is_twice_the_pinball_loss_over_all_levels(scale: Scale, case: tuple[Waits, Floats]) -> None:
    waits, wait = case
    levels = (np.arange(500) + 0.5) / 500
    told = np.minimum(np.stack([waits.quantile(p) for p in levels], axis=1), FEW_S[-1])
    y = wait
    if scale == "log10":
        told, y = np.log10(np.maximum(told, 1.0)), np.log10(np.maximum(wait, 1.0))
    gap = y[:, None] - told
    loss = np.maximum(levels * gap, (levels - 1) * gap).mean(axis=1)
    span = 6.5 if scale == "log10" else 3e6
    np.testing.assert_allclose(crps(waits, wait, scale), 2 * loss, rtol=8e-3, atol=span * 5e-4)


def test_crps_of_a_sure_prediction_is_its_distance() -> None:
    sure, never = Waits(np.ones((4, 7)), FEW_S), Waits(np.zeros((4, 7)), FEW_S)
    wait = np.array([0.0, 1.0, 100.0, 3e6])
    np.testing.assert_allclose(crps(sure, wait, "seconds"), wait, atol=1e-9)
    np.testing.assert_allclose(crps(sure, wait, "log10"), np.log10(np.maximum(wait, 1)), atol=1e-9)
    np.testing.assert_allclose(crps(never, wait, "seconds"), np.abs(1e6 - wait), rtol=1e-9)
    np.testing.assert_allclose(crps(never, wait, "log10"), np.abs(6 - np.log10(np.maximum(wait, 1))), rtol=1e-9)


def test_below_one_second_makes_no_difference_on_the_log_scale() -> None:
    early = np.array([[0.9, 0.9, 0.9, 1, 1, 1, 1], [0.0, 0.3, 0.9, 1, 1, 1, 1]])
    found = crps(Waits(np.repeat(early, 2, axis=0), FEW_S), np.array([0.0, 0.7, 0.0, 0.7]), "log10")
    np.testing.assert_allclose(found, found[0], rtol=1e-12)


@settings(max_examples=40, deadline=None)
@given(case=cases(), level=st.sampled_from([0.05, 0.5, 0.85]))
def test_pinball_is_that_of_scikit_learn(case: tuple[Waits, Floats], level: float) -> None:
    waits, wait = case
    told = quantiles(waits)
    expected = mean_pinball_loss(np.log1p(wait), np.log1p(told.at(level)), alpha=level)
    assert float(np.mean(pinball_log1p(told, wait, level))) == pytest.approx(expected, abs=1e-12)


def test_chunks_change_nothing() -> None:
    """More cases than one chunk, each distribution of its own."""
    rng = np.random.default_rng(5)
    waits = Waits(np.sort(rng.uniform(size=(5000, 12)), axis=1), np.expm1(np.linspace(0, 14, 12)))
    wait = rng.uniform(0, 1e6, 5000)
    np.testing.assert_array_equal(within(waits, wait), waits.within(wait))
    np.testing.assert_array_equal(quantiles(waits, (0.3,)).seconds[:, 0], waits.quantile(0.3))
    last = Waits(waits.cdf[4990:], waits.knots_s)
    np.testing.assert_allclose(crps(waits, wait, "seconds")[4990:], crps(last, wait[4990:], "seconds"), rtol=1e-12)


def test_a_quantile_out_of_reach_is_the_last_knot() -> None:
    told = quantiles(Waits(np.array([[0.0, 0.6], [0.0, 0.2]]), np.array([0.0, 100.0])), (0.5,))
    assert told.reached(0.5).tolist() == [True, False]
    assert told.at(0.5)[1] == 100.0
    with pytest.raises(ValueError, match="not in tuple"):
        told.at(0.4)


def test_pit_of_true_distributions_is_flat() -> None:
    """Waits drawn from what was predicted, a third of it at zero."""
    rng = np.random.default_rng(6)
    z = np.log1p(KNOTS_S)
    cdf = np.tile(1 / 3 + 2 / 3 * (z / z[-1]), (20_000, 1))
    level = rng.uniform(size=20_000)
    wait = np.where(level < 1 / 3, 0.0, np.expm1(np.maximum(0, (level - 1 / 3) * 1.5) * z[-1]))
    found = pit_histogram(Waits(cdf, KNOTS_S), wait, np.ones(20_000, bool))
    assert np.abs(found - 0.05).max() < 0.006
    narrow = pit_histogram(Waits(np.clip(cdf * 1.4, 0, 1), KNOTS_S), wait, np.ones(20_000, bool))
    assert np.abs(narrow - 0.05).max() > 0.02


def test_pit_spreads_steps_evenly() -> None:
    waits = Waits(np.array([[0.5, 0.8], [0.5, 0.8], [0.5, 0.8]]), np.array([0.0, 100.0]))
    started = np.ones(3, bool)
    np.testing.assert_allclose(pit_histogram(waits, np.zeros(3), started), np.r_[np.full(10, 0.1), np.zeros(10)])
    np.testing.assert_allclose(pit_histogram(waits, np.full(3, 101.0), started), np.r_[np.zeros(16), np.full(4, 0.25)])
    np.testing.assert_allclose(pit_histogram(waits, np.full(3, 100.0), started)[15], 1.0)


@settings(max_examples=60, deadline=None)
@given(case=cases())
def test_pit_shares_add_up(case: tuple[Waits, Floats]) -> None:
    waits, wait = case
    started = np.arange(len(wait)) != 1
    found = pit_histogram(waits, wait, started)
    assert found.sum() == pytest.approx(1.0)
    assert (found >= 0).all()
    assert np.isnan(pit_histogram(waits, wait, np.zeros(len(wait), bool))).all()
