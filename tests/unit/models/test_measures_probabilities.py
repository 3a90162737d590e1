"""Chances to start within hours: against scikit-learn, and labels of censored jobs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss, roc_auc_score

from queuecast.models.measures_probabilities import labels, probabilities, reliability
from queuecast.models.measures_statistic import Auroc, CalibrationError, equal_mass
from queuecast.models.waits import KNOTS_S, Waits

told_and_came = st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.1000001, 0.5, 0.9, 1.0]), st.booleans()), min_size=1, max_size=60)


def sure(chances: list[float]) -> Waits:
    """Distributions with these chances at every horizon."""
    return Waits(np.repeat(np.array(chances)[:, None], len(KNOTS_S), axis=1), KNOTS_S)


def measured(
    chances: list[float], wait: list[float], started: list[bool], climatology: dict[int, list[float]] | None = None
) -> dict[str, float]:
    given_ = None if climatology is None else {h: np.array(p) for h, p in climatology.items()}
    return {n: s.value() for n, s in probabilities(sure(chances), np.array(wait), np.array(started), given_)}


def test_the_label_of_a_job_censored_too_early_is_unknown() -> None:
    wait, started = np.array([3600.0, 3601.0, 3600.0, 3599.0]), np.array([True, True, False, False])
    assert labels(wait, started, 3600.0).tolist()[:3] == [1.0, 0.0, 0.0]
    assert math.isnan(labels(wait, started, 3600.0)[3])


def test_counted_by_hand() -> None:
    """The third job is censored after two hours: a miss for one hour, unknown for four."""
    found = measured([0.8, 0.4, 0.5], [60.0, 90000.0, 7200.0], [True, True, False], {1: [0.5, 0.5, 0.5], 4: [0.5, 0.5, math.nan]})
    assert found["brier_1h"] == pytest.approx((0.04 + 0.16 + 0.25) / 3)
    assert found["brier_4h"] == pytest.approx((0.04 + 0.16) / 2)
    assert found["brier_skill_1h"] == pytest.approx(1 - 0.15 / 0.25)
    assert found["brier_skill_4h"] == pytest.approx(1 - 0.1 / 0.25)
    assert "brier_skill_24h" not in found
    assert found["auroc_1h"] == 1.0
    assert found["ece_1h"] == pytest.approx((0.2 + 0.4 + 0.5) / 3)


def test_a_reference_without_error_leaves_no_skill_to_measure() -> None:
    assert math.isnan(measured([0.5], [60.0], [True], {1: [1.0]})["brier_skill_1h"])


@settings(max_examples=100, deadline=None)
@given(told_and_came)
def test_brier_and_auroc_are_those_of_scikit_learn(pairs: list[tuple[float, bool]]) -> None:
    told, came = [p[0] for p in pairs], [p[1] for p in pairs]
    found = measured(told, [60.0 if c else 1e6 for c in came], [True] * len(pairs))
    for hours in (1, 4, 24):
        assert found[f"brier_{hours}h"] == pytest.approx(brier_score_loss(came, told, labels=[False, True]))
        if 0 < sum(came) < len(came):
            assert found[f"auroc_{hours}h"] == pytest.approx(roc_auc_score(came, told))
        else:
            assert math.isnan(found[f"auroc_{hours}h"])


@settings(max_examples=100, deadline=None)
@given(told_and_came)
def test_calibration_error_is_the_gap_of_the_reliability_curve(pairs: list[tuple[float, bool]]) -> None:
    told, came = np.array([p[0] for p in pairs]), np.array([float(p[1]) for p in pairs])
    curve = reliability(told, came)
    assert curve.cases.sum() == len(pairs)
    expected = float(np.sum(curve.cases * np.abs(curve.told - curve.came)) / len(pairs))
    assert CalibrationError(told, came).value() == pytest.approx(expected)
    assert (np.diff(curve.told) > 0).all()


def test_bins_hold_equal_numbers_and_do_not_part_ties() -> None:
    rng = np.random.default_rng(1)
    assert np.bincount(equal_mass(rng.uniform(size=1500))).tolist() == [100] * 15
    tied = np.r_[np.zeros(600), rng.uniform(0.1, 1, 900)]
    bins = equal_mass(tied)
    assert np.unique(bins[:600]).tolist() == [0]
    assert np.bincount(bins).tolist() == [600] + [100] * 9
    assert equal_mass(np.array([])).tolist() == []
    assert equal_mass(np.full(7, 0.3)).tolist() == [0] * 7


def test_honest_chances_have_almost_no_calibration_error() -> None:
    rng = np.random.default_rng(2)
    told = rng.uniform(size=40_000)
    came = (rng.uniform(size=40_000) < told).astype(float)
    assert CalibrationError(told, came).value() < 0.015
    assert CalibrationError(told**2, came).value() > 0.1
    unknown = np.where(np.arange(40_000) % 2, came, np.nan)
    assert Auroc(told, unknown).value() == pytest.approx(Auroc(told[1::2], came[1::2]).value())
    assert math.isnan(CalibrationError(told, np.full(40_000, np.nan)).value())


def test_no_case() -> None:
    assert reliability(np.array([0.4]), np.array([np.nan])).cases.tolist() == []
    assert all(math.isnan(v) for v in measured([0.4], [60.0], [False]).values())
