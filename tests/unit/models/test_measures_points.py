"""Errors of the median: cases counted by hand, and the definitions written out one case at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecast.models.measures_distribution import Quantiles
from queuecast.models.measures_points import points

LAST_S = 1e6


def measured(median: list[float], wait: list[float], started: list[bool] | None = None) -> dict[str, float]:
    told = Quantiles((0.5,), np.array(median)[:, None], LAST_S)
    flags = np.ones(len(wait), bool) if started is None else np.array(started)
    return {name: s.value() for name, s in points(told, np.array(wait), flags)}


def test_counted_by_hand() -> None:
    found = measured([60.0, 1000.0, 10.0, 7200.0], [120.0, 500.0, 0.0, 3600.0])
    assert found["medae_s"] == (60 + 500) / 2
    assert found["mae_s"] == (60 + 500 + 10 + 3600) / 4
    assert (found["within_1min"], found["within_10min"], found["within_1h"]) == (0.5, 0.75, 1.0)
    assert (found["within_2x"], found["within_3x"]) == (0.75, 0.75)
    assert found["mape_over_10min"] == 1.0
    assert found["mse_log10"] == pytest.approx((3 * math.log10(2) ** 2 + 1) / 4)
    assert found["unanswered"] == 0


def test_no_median_is_wrong_even_where_the_last_knot_is_right() -> None:
    found = measured([math.inf, 50.0], [LAST_S, 50.0])
    assert found["unanswered"] == 0.5
    assert found["mae_s"] == 0.0
    for name in ("within_1min", "within_10min", "within_1h", "within_2x", "within_3x"):
        assert found[name] == 0.5


def test_censored_jobs_have_no_error() -> None:
    found = measured([10.0, math.inf], [10.0, 1e5], [True, False])
    assert (found["mae_s"], found["within_1min"], found["unanswered"]) == (0.0, 1.0, 0.5)


def test_nothing_started_is_unknown() -> None:
    found = measured([10.0], [10.0], [False])
    assert found.pop("unanswered") == 0
    assert all(math.isnan(v) for v in found.values())
    assert math.isnan(measured([10.0], [600.0])["mape_over_10min"]), "600 s is not over ten minutes"


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 9e5) | st.just(math.inf), st.floats(0, 9e5)), min_size=1, max_size=20))
def test_one_case_at_a_time(pairs: list[tuple[float, float]]) -> None:
    found = measured([p[0] for p in pairs], [p[1] for p in pairs])
    point = [min(p[0], LAST_S) for p in pairs]
    count = len(pairs)
    assert found["mae_s"] == pytest.approx(sum(abs(m - w) for m, (_, w) in zip(point, pairs, strict=True)) / count)
    near = sum(m < math.inf and abs(m - w) <= 600 for m, w in pairs)
    assert found["within_10min"] == near / count
    for times in (2, 3):
        ratios = [max(m, 1) / max(w, 1) for m, w in pairs]
        assert found[f"within_{times}x"] == sum(1 / times <= r <= times for r in ratios) / count
