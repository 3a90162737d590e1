"""Sums over intervals against counting one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecast.features.intervals import HOUR, NEVER, Fading, Lanes, Moments, Oldest, ratio, sorted_with
from queuecast.features.situation_tables import last_of
from queuecast.features.situation_use import sliding_maximum

times = st.sampled_from([0, 1, 2, 3, 50, HOUR, 10 * HOUR, 24 * HOUR, NEVER])
events = st.lists(st.tuples(times, st.integers(0, 3), st.integers(-5, 100)), max_size=30)


def columns(rows: list[tuple[int, ...]], width: int) -> list[np.ndarray]:  # type: ignore[type-arg]
    return [np.array([r[i] for r in rows], np.int64) for i in range(width)]


@given(events, st.integers(0, 3), st.sampled_from([0, 1, 2, 51, 11 * HOUR, 24 * HOUR + 1]))
def test_places_in_lanes_count_what_came_before(rows: list[tuple[int, ...]], lane: int, at: int) -> None:
    when, codes, weights = columns(rows, 3)
    moments = Moments(when)
    lanes = Lanes(moments.rows, codes, 5)
    place = lanes.place(np.array([lane]), moments.before(np.array([at])))[0]
    mine = (codes == lane) & (when < at)
    assert sorted(lanes.rows[lanes.first[lane] : place]) == np.flatnonzero(mine).tolist()
    rows_, first, before = lanes.only(weights % 2 == 0)
    assert sorted(rows_[first[lane] : before[place]]) == np.flatnonzero(mine & (weights % 2 == 0)).tolist()


@given(st.lists(st.integers(0, 2**30), max_size=50))
def test_sorting_keeps_equal_keys_in_order(keys: list[int]) -> None:
    by, _, _ = sorted_with(np.array(keys, np.int64))
    assert by.tolist() == sorted(range(len(keys)), key=lambda i: keys[i])


def test_too_long_a_time_is_refused() -> None:
    with pytest.raises(OverflowError):
        sorted_with(np.full(8, 2**60))


@given(events, st.integers(0, 3), st.integers(0, 30 * HOUR), st.sampled_from([1, HOUR, 1000 * HOUR]))
def test_fading_sums(rows: list[tuple[int, ...]], lane: int, at: int, half_life: int) -> None:
    """With half-lives of a millisecond the sums are scaled anew again and again."""
    when, codes, weights = columns(rows, 3)
    moments = Moments(when)
    lanes = Lanes(moments.rows, codes, 5)
    fading = Fading(lanes.first, when[lanes.rows], [weights[lanes.rows].astype(float)], half_life)
    codes_, ats = np.array([lane]), np.array([at])
    sums, scale = fading.read(lanes.first[codes_], lanes.place(codes_, moments.before(ats)), ats)
    mine = (codes == lane) & (when < at)
    assert (sums * scale)[0, 0] == pytest.approx((weights[mine] * np.exp2(-(at - when[mine]) / half_life)).sum(), rel=1e-9, abs=1e-200)


def test_fading_sums_keep_their_mean_over_years() -> None:
    """Half-lives of a day over 20 years, with gaps: the mean is finite and that of the newest."""
    when = np.r_[np.arange(3000), 7000] * 24 * HOUR
    weights = [np.ones(3001), np.r_[np.zeros(3000), 5.0]]
    fading = Fading(np.array([0, 3001]), when, weights, 24.0 * HOUR)
    sums, scale = fading.read(np.array([0, 0]), np.array([3000, 3001]), np.array([3000, 7001]) * 24 * HOUR)
    assert sums[1] / sums[0] == pytest.approx([0.0, 5.0])
    assert sums[0] * scale == pytest.approx([1.0, 0.5])


stays = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 2)), min_size=1, max_size=30)


@given(stays, st.integers(0, 2), st.integers(0, 21))
def test_the_oldest_two_still_there(rows: list[tuple[int, ...]], lane: int, at: int) -> None:
    leave, codes = columns(rows, 2)
    lanes = Lanes(np.arange(len(rows)), codes, 4)
    oldest = Oldest(lanes, leave)
    there = np.flatnonzero((codes == lane) & (leave >= at)).tolist()
    for which in (0, 1):
        place = oldest.place(np.array([lane]), np.array([at]), which)[0]
        found = [int(lanes.rows[place])] if place < lanes.first[lane + 1] else []
        assert found == there[which : which + 1]


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=40), st.integers(1, 12))
def test_sliding_maximum(values: list[int], width: int) -> None:
    found = sliding_maximum(np.array(values, np.float64), width)
    assert found.tolist() == [max(values[max(0, i - width + 1) : i + 1]) for i in range(len(values))]


@given(st.lists(st.integers(0, 4), max_size=60), st.integers(1, 4))
def test_the_last_few_of_each_group(codes: list[int], most: int) -> None:
    rows, count = last_of(np.array(codes, np.int64), np.arange(len(codes)), 6, most)
    for group in range(6):
        mine = [i for i, c in enumerate(codes) if c == group][::-1][:most]
        assert count[group] == len(mine)
        assert rows[group, : len(mine)].tolist() == mine


def test_the_last_few_are_found_far_back() -> None:
    """A rare group lies before the stretch that is looked through first."""
    codes = np.zeros(300_000, np.int64)
    codes[[5, 7, 250_000]] = 1
    rows, count = last_of(codes, np.arange(300_000), 2, 5)
    assert rows[1, :3].tolist() == [250_000, 7, 5]
    assert count.tolist() == [5, 3]


def test_a_ratio_to_nothing_is_unknown() -> None:
    assert np.array_equal(ratio(np.array([1, 0, 6]), np.array([0, 0, 3])), [np.nan, np.nan, 2.0], equal_nan=True)
