"""Coverage, widths, the interval score and bounds; what censored jobs may say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecast.features.history import Floats
from queuecast.models.measures_distribution import LEVELS, pinball_log1p, quantiles
from queuecast.models.measures_intervals import SHARES, bounds, intervals
from queuecast.models.waits import KNOTS_S, Waits

BASE, TOP = float(np.log1p(100.0)), float(np.log1p(KNOTS_S[-1]))
LINEAR = Waits(np.interp(np.log1p(KNOTS_S), [BASE, TOP], [0.0, 1.0])[None, :], KNOTS_S)
"""Nobody starts within 100 s or so; then evenly spread in log(1 + seconds) up to the last knot."""


def at(share: float) -> float:
    """The wait that ``LINEAR`` puts at this level."""
    return float(LINEAR.quantile(share)[0])


def measured(wait: list[float], started: list[bool], waits: Waits = LINEAR) -> dict[str, float]:
    told = quantiles(Waits(np.tile(waits.cdf, (len(wait), 1)), waits.knots_s))
    arguments = told, np.array(wait), np.array(started)
    return {name: s.value() for name, s in (*intervals(*arguments), *bounds(*arguments))}


def test_ends_are_inside_with_half_a_second() -> None:
    low, high = at(0.1), at(0.9)
    found = measured([low, high, low - 0.4, high + 0.4, low - 0.7, high + 0.7], [True] * 6)
    assert found["coverage_80"] == pytest.approx(4 / 6)
    assert found["coverage_95"] == 1.0
    assert found["coverage_50"] == 0.0
    assert found["width_80_s"] == pytest.approx(high - low)
    assert found["width_80_median_s"] == pytest.approx(high - low)


def test_an_interval_that_begins_at_once_is_one_sided() -> None:
    """Half start at once: the 80 % interval is all that starts before the 80 % quantile, and holds for 80 %."""
    spread = np.interp(np.log1p(KNOTS_S), [0.0, TOP], [0.5, 1.0])
    low, high = Waits(spread[None, :], KNOTS_S).interval(0.8)
    assert low[0] == 0.0
    assert Waits(spread[None, :], KNOTS_S).within(high)[0] == pytest.approx(0.8)
    two_sided = LINEAR.interval(0.8)
    assert (float(two_sided[0][0]), float(two_sided[1][0])) == pytest.approx((at(0.1), at(0.9)))


def test_a_censored_job_counts_only_once_it_has_left_the_interval() -> None:
    """One hit, one pending below the upper end (it may still come), one pending beyond it (it cannot)."""
    found = measured([at(0.5), at(0.7), at(0.93)], [True, False, False])
    assert found["coverage_80"] == 1.0
    assert found["coverage_80_strict"] == 0.5
    assert found["coverage_90_strict"] == 1.0
    assert found["bound_50_held"] == 1.0
    assert found["bound_50_held_strict"] == pytest.approx(1 / 3)


def test_an_end_out_of_reach_is_the_last_knot_and_is_told() -> None:
    half = Waits(LINEAR.cdf * 0.93, KNOTS_S)
    found = measured([at(0.5)], [True], half)
    assert found["open_95"] == 1.0
    assert found["open_80"] == 0.0
    assert found["width_95_s"] == pytest.approx(KNOTS_S[-1] - at(0.025 / 0.93), rel=1e-6)
    assert found["coverage_95"] == 1.0


def test_bounds_and_how_much_of_them_was_needed() -> None:
    bound = at(0.95)
    found = measured([bound, bound / 4, bound * 2, bound / 10], [True] * 4)
    assert found["bound_95_held"] == 0.75
    assert found["bound_95_tightness"] == pytest.approx((1 + 0.25 + 0.1) / 3)
    assert found["bound_95_tightness_median"] == pytest.approx(0.25)
    quick = Waits(np.ones((1, len(KNOTS_S))), KNOTS_S)
    assert measured([0.0, 0.0], [True, True], quick)["bound_95_tightness"] == 1.0, "seconds below one count as one"
    short = Waits(np.array([[0.0, 0.0, *np.ones(len(KNOTS_S) - 2)]]), KNOTS_S)
    assert measured([1.8], [True], short)["bound_95_tightness"] == 1.0, "held by the slack alone: all of the bound was needed"


def test_nothing_started() -> None:
    found = measured([5.0], [False])
    assert math.isnan(found["coverage_80"])
    assert math.isnan(found["coverage_80_strict"])
    assert math.isnan(found["winkler_80_log1p"])
    assert math.isnan(found["bound_95_tightness_median"])
    assert found["width_80_s"] > 0


@st.composite
def cases(draw: st.DrawFn) -> tuple[Waits, Floats]:
    count = draw(st.integers(1, 6))
    seed = draw(st.integers(0, 1000))
    rng = np.random.default_rng(seed)
    cdf = np.sort(rng.beta(0.4, 0.4, size=(count, len(KNOTS_S))), axis=1)
    cdf[:, KNOTS_S <= 70.0] = 0.0  # a start at once would make the interval one-sided
    return Waits(cdf, KNOTS_S), np.expm1(rng.uniform(0, TOP, count))


@settings(max_examples=60, deadline=None)
@given(cases())
def test_the_interval_score_is_the_pinball_loss_of_both_ends(case: tuple[Waits, Floats]) -> None:
    """Gneiting and Raftery 2007: interval score = 2 / alpha x (loss at alpha / 2 + loss at 1 - alpha / 2)."""
    waits, wait = case
    told = quantiles(waits)
    found = {name: s.value() for name, s in intervals(told, wait, np.ones(len(wait), bool))}
    for share in SHARES:
        alpha = 1 - share
        low, high = (min(LEVELS, key=lambda level, p=p: abs(level - p)) for p in (alpha / 2, 1 - alpha / 2))
        expected = np.mean(2 / alpha * (pinball_log1p(told, wait, low) + pinball_log1p(told, wait, high)))
        assert found[f"winkler_{round(100 * share)}_log1p"] == pytest.approx(float(expected), rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(cases(), st.lists(st.booleans(), min_size=6, max_size=6))
def test_wider_claims_hold_more_often(case: tuple[Waits, Floats], flags: list[bool]) -> None:
    waits, wait = case
    started = np.array(flags[: len(wait)])
    found = {name: s.value() for name, s in intervals(quantiles(waits), wait, started)}
    for kind in ("", "_strict"):
        values = [found[f"coverage_{s}{kind}"] for s in (50, 80, 90, 95)]
        assert np.isnan(values).all() or values == sorted(values)
    for share in (50, 80, 90, 95):
        plain, strict = found[f"coverage_{share}"], found[f"coverage_{share}_strict"]
        assert math.isnan(plain) or strict <= plain
