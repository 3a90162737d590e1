"""Distributions on knots: there and back, rising, and what is left after a time already waited."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecast.models.waits import KNOTS_S, Waits

LAST = len(KNOTS_S) - 1


@st.composite
def distributions(draw: st.DrawFn) -> Waits:
    """One to four distributions with steps, flat stretches, a chance to start at once and a part that is unknown."""
    count, seed = draw(st.integers(1, 4)), draw(st.integers(0, 10_000))
    rng = np.random.default_rng(seed)
    steps = rng.exponential(size=(count, LAST + 2)) * (rng.random((count, LAST + 2)) < draw(st.sampled_from([0.05, 0.5, 1.0])))
    steps[:, 0] += 0.01
    steps[:, -1] += draw(st.sampled_from([0.001, 5.0]))
    return Waits(np.cumsum(steps, axis=1)[:, :-1] / steps.sum(axis=1)[:, None], KNOTS_S)


@given(distributions(), st.floats(0.001, 0.999))
def test_the_chance_of_a_quantile_is_its_level(waits: Waits, level: float) -> None:
    seconds = waits.quantile(level)
    known = np.isfinite(seconds)
    assert (known == (waits.cdf[:, -1] >= level - 1e-12)).all()
    # The chance to start at once is a step: levels below it all mean zero seconds.
    told = waits.within(np.where(known, seconds, 0.0))
    assert np.allclose(told[known], np.maximum(level, waits.cdf[:, 0])[known], atol=1e-9)


@given(distributions(), st.floats(0, 1))
def test_the_quantile_of_a_chance_is_the_same_time_or_an_earlier_one_as_likely(waits: Waits, place: float) -> None:
    seconds = np.full(len(waits), float(np.expm1(place * np.log1p(KNOTS_S[-1]))))
    level = waits.within(seconds)
    back = waits.quantile(level)
    assert (back <= seconds * (1 + 1e-6) + 1e-6).all()
    assert np.allclose(waits.within(back), level, atol=1e-9)
    steep = (waits.within(seconds * 1.02 + 0.02) > level + 1e-6) & (waits.within(seconds * 0.98 - 0.02) < level - 1e-6)
    assert np.allclose(back[steep], seconds[steep], rtol=1e-3, atol=1e-3)


@given(distributions())
def test_both_rise(waits: Waits) -> None:
    times = np.r_[-5.0, 0.0, np.expm1(np.linspace(0, 17, 60))]
    chance = np.stack([waits.within(t) for t in times])
    assert (np.diff(chance, axis=0) >= -1e-12).all()
    assert (chance[0] == 0).all()
    assert (chance[1] == waits.cdf[:, 0]).all()
    assert np.allclose(chance[-1], waits.cdf[:, -1], rtol=0, atol=1e-12)
    quantiles = np.stack([waits.quantile(p) for p in np.linspace(0, 1, 41)])
    assert (quantiles[1:] >= quantiles[:-1]).all()


@given(distributions(), st.sampled_from([0.5, 0.8, 0.95]))
def test_an_interval_holds_what_it_claims_also_where_many_start_at_once(waits: Waits, share: float) -> None:
    low, high = waits.interval(share)
    assert (low <= high).all()
    known = np.isfinite(low) & np.isfinite(high)
    at_once = waits.quantile((1 - share) / 2) == 0
    below = np.where(at_once, 0.0, waits.within(np.where(known, low, 0.0)))
    holds = waits.within(np.where(known, high, 0.0)) - below
    clear = known & (at_once | (low > 3600))
    assert np.allclose(holds[clear], np.where(at_once, np.maximum(share, waits.cdf[:, 0]), share)[clear], atol=1e-9)


def test_one_level_or_one_time_per_case() -> None:
    rng = np.random.default_rng(1)
    waits = Waits(np.sort(rng.uniform(size=(3, LAST + 1)), axis=1), KNOTS_S)
    levels, times = np.array([0.2, 0.5, 0.8]), np.array([5.0, 500.0, 50_000.0])
    for i in range(3):
        assert waits.quantile(levels)[i] == waits.quantile(float(levels[i]))[i]
        assert waits.within(times)[i] == waits.within(float(times[i]))[i]
    assert np.isnan(waits.within(np.nan)).all()


@pytest.mark.parametrize("waited", [1.0, 600.0, 7200.0, 86400.0])
def test_what_is_left_is_what_is_left_of_those_who_waited_as_long(waited: float) -> None:
    """Against counting: of a million drawn waits those longer than ``waited`` are kept and their remainders counted."""
    rng = np.random.default_rng(2)
    cdf = np.cumsum(rng.exponential(size=LAST + 1))
    waits = Waits((0.05 + 0.9 * cdf / cdf[-1])[None, :], KNOTS_S)
    drawn = np.full(1_000_000, np.inf)
    level = rng.uniform(size=len(drawn))
    reached = level <= waits.cdf[0, -1]
    drawn[reached] = np.where(level[reached] <= waits.cdf[0, 0], 0.0, np.expm1(np.interp(level[reached], waits.cdf[0], np.log1p(KNOTS_S))))
    left = drawn[drawn > waited] - waited
    found = waits.after(np.array([waited]))
    counted = np.searchsorted(np.sort(left), KNOTS_S, side="right") / len(left)
    # Beyond the last knot nothing is known, so nothing more is counted there.
    assert np.allclose(found.cdf[0], counted, atol=0.01)
    assert found.cdf[0, 0] == 0.0


def test_nothing_waited_changes_nothing_and_nobody_waited_as_long_is_unknown() -> None:
    cdf = np.clip(np.log1p(KNOTS_S) / np.log1p(3600.0), 0.0, 1.0)
    waits = Waits(np.tile(cdf, (3, 1)), KNOTS_S)
    left = waits.after(np.array([0.0, 60.0, 7200.0]))
    assert (left.cdf[0] == cdf).all()
    assert np.isfinite(left.cdf[1]).all()
    assert np.isnan(left.cdf[2]).all()
    assert np.isnan(left.quantile(0.5)[2])
    assert np.isnan(left.within(60.0)[2])


@given(distributions(), st.floats(0.001, 0.999))
def test_what_is_unknown_has_no_quantile_and_changes_no_other(waits: Waits, level: float) -> None:
    """Infinite means that the distribution does not reach; an unknown one says not even that."""
    mixed = Waits(np.concatenate([np.full((1, LAST + 1), np.nan), waits.cdf]), KNOTS_S)
    told = mixed.quantile(level)
    assert np.isnan(told[0])
    assert (told[1:] == waits.quantile(level)).all()
    assert np.isnan(np.array(mixed.interval(0.8))[:, 0]).all()
    assert np.isnan(waits.quantile(np.nan)).all()
