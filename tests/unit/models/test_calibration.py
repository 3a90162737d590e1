"""Levels corrected by how answers held: too narrow a model becomes honest, a good one stays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecast.models.calibration import GRID, CalibratedWait, Calibration
from queuecast.models.distribution import kaplan_meier


def test_a_good_model_is_left_alone() -> None:
    rng = np.random.default_rng(1)
    found = Calibration.fit(rng.uniform(size=2000), np.ones(2000, bool))
    assert np.abs(found.honest - GRID).max() < 0.05


def test_an_overconfident_model_is_widened_until_it_holds() -> None:
    """Waits spread twice as far (in log) as the model says: its 80 % interval holds 48 %, the corrected one 80 %."""
    rng = np.random.default_rng(2)
    model = kaplan_meier(np.exp(8 + rng.standard_normal(500)), np.ones(500, bool))
    past, later = np.exp(8 + 2 * rng.standard_normal(3000)), np.exp(8 + 2 * rng.standard_normal(4000))
    honest = CalibratedWait(model, Calibration.fit(model.cdf(past), np.ones(3000, bool)))
    plain = CalibratedWait(model, Calibration.none())

    def held(wait: CalibratedWait) -> float:
        return float(np.mean((later >= wait.quantile(0.1)) & (later <= wait.quantile(0.9))))

    assert held(plain) < 0.55
    assert held(honest) == pytest.approx(0.8, abs=0.08)


def test_censored_answers_count() -> None:
    rng = np.random.default_rng(3)
    level = rng.uniform(size=3000)
    cut = rng.uniform(size=3000)
    found = Calibration.fit(np.minimum(level, cut), level <= cut)
    assert np.abs(found.honest - GRID)[20:180].max() < 0.08


def test_few_answers_change_little() -> None:
    assert np.abs(Calibration.fit(np.full(3, 0.9), np.ones(3, bool)).honest - GRID).max() < 0.06
    assert (Calibration.fit(np.array([]), np.array([], bool)).honest == GRID).all()


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=60))
def test_levels_never_cross(trials: list[tuple[float, bool]]) -> None:
    level, started = np.array([t[0] for t in trials]), np.array([t[1] for t in trials], bool)
    found = Calibration.fit(level, started)
    assert (np.diff(found.honest) >= -1e-12).all()
    assert found.honest[0] >= 0
    assert found.honest[-1] <= 1 + 1e-12
    wanted = np.linspace(0, 1, 41)
    assert (np.diff(found.level(wanted)) >= 0).all()
