"""Counting a day k times is the same as having its cases k times."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecast.models.measures_statistic import Auroc, CalibrationError, Mean, Median, Skill, Statistic

NAN = float("nan")
rows = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([NAN, 0.0, 0.25, 0.5, 0.5, 1.0]), st.sampled_from([NAN, 0.0, 1.0])),
    min_size=1,
    max_size=30,
)


@settings(max_examples=150, deadline=None)
@given(rows, st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=1, max_size=3))
def test_resampling_repeats_cases(table: list[tuple[int, float, float]], drawn: list[list[int]]) -> None:
    days = np.array([r[0] for r in table], np.int64)
    values, came = np.array([r[1] for r in table]), np.array([r[2] for r in table])
    told = np.nan_to_num(values)
    kinds = {
        "mean": lambda at: Mean(values[at]),
        "median": lambda at: Median(values[at]),
        "skill": lambda at: Skill(values[at], came[at]),
        "auroc": lambda at: Auroc(told[at], came[at]),
    }
    counts = np.array(drawn, np.float64)
    for name, kind in kinds.items():
        every = kind(np.arange(len(table)))
        found = every.resampled(days, counts)
        assert found.shape == (len(counts),)
        for draw, times in enumerate(drawn):
            repeated: Statistic = kind(np.repeat(np.arange(len(table)), [times[d] for d in days]))
            assert found[draw] == pytest.approx(repeated.value(), nan_ok=True), name
        assert every.resampled(days, np.ones((1, 4)))[0] == pytest.approx(every.value(), nan_ok=True), name


def test_calibration_error_of_resamples_keeps_the_bins() -> None:
    """Two bins, two days: a day drawn alone shows its own gaps."""
    told, came = np.array([0.2, 0.8, 0.2, 0.8]), np.array([0.0, 1.0, 1.0, 1.0])
    found = CalibrationError(told, came).resampled(np.array([0, 0, 1, 1]), np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]]))
    np.testing.assert_allclose(found, [0.2, (0.8 + 0.2) / 2, (0.3 + 0.2) / 2, NAN])


def test_no_case_is_unknown() -> None:
    none = np.array([NAN, NAN])
    for statistic in (Mean(none), Median(none), Skill(none, none), Auroc(np.zeros(2), none), CalibrationError(np.zeros(2), none)):
        assert np.isnan(statistic.value())
        assert np.isnan(statistic.resampled(np.zeros(2, np.int64), np.ones((3, 1)))).all()
    assert np.isnan(Mean(np.array([])).value())
