"""All measures together: names, what is left out, what is refused, and coverage per cell."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecast.features.history import Flags, Floats
from queuecast.models.measures import coverage_by, measure_all
from queuecast.models.waits import KNOTS_S, Waits

NAMES = """
    medae_s mae_s within_1min within_10min within_1h within_2x within_3x mse_log10 mape_over_10min unanswered
    pinball_log1p pinball_log1p_05 pinball_log1p_50 pinball_log1p_95 crps_log10 crps_s
    coverage_50 coverage_80 coverage_90 coverage_95 coverage_80_strict width_80_s width_80_median_s winkler_80_log1p open_95
    bound_95_held bound_95_tightness bound_95_tightness_median bound_50_held bound_50_tightness
    brier_1h brier_4h brier_24h brier_skill_1h brier_skill_4h brier_skill_24h ece_1h ece_4h ece_24h auroc_1h auroc_4h auroc_24h
    cases days censored
""".split()


def sample(count: int, spread: float = 1.0, seed: int = 1) -> tuple[Waits, Floats, Flags, Floats]:
    """Log-logistic waits drawn from what is told if ``spread`` is 1; a tenth of the jobs is censored."""
    rng = np.random.default_rng(seed)
    middle = rng.normal(8, 2, count)
    cdf = 1 / (1 + np.exp(-(np.log1p(KNOTS_S) - middle[:, None]) / 0.7))
    wait = np.expm1(np.maximum(0, middle + spread * 0.7 * rng.logistic(size=count)))
    started = rng.uniform(size=count) > 0.1
    wait = np.where(started, wait, wait * rng.uniform(size=count))
    return Waits(cdf, KNOTS_S), np.minimum(wait, 7e6), started, 1.7e9 + rng.uniform(0, 20 * 86400, count)


def test_every_name_is_there_and_honest_predictions_look_honest() -> None:
    waits, wait, started, asked = sample(4000)
    found = measure_all(waits, wait, started, asked, {h: np.full(4000, 0.5) for h in (1, 4, 24)})
    assert set(NAMES) <= set(found)
    assert all(isinstance(v, float) and math.isfinite(v) for v in found.values())
    assert found["coverage_80"] == pytest.approx(0.8, abs=0.03)
    assert found["bound_95_held"] == pytest.approx(0.95, abs=0.02)
    assert found["ece_4h"] < 0.05
    assert found["auroc_4h"] > 0.8
    assert (found["cases"], found["days"], found["censored"]) == (4000, 21, pytest.approx(0.1, abs=0.02))
    worse = measure_all(*sample(4000, spread=3.0))
    assert worse["coverage_80"] < 0.6
    assert all(worse[k] > found[k] for k in ("crps_log10", "crps_s", "pinball_log1p", "winkler_80_log1p", "brier_4h"))
    assert "brier_skill_4h" not in worse


def test_a_case_without_an_outcome_is_left_out() -> None:
    waits, wait, started, asked = sample(300)
    climatology = {1: np.linspace(0, 1, 300)}
    half = np.arange(300) % 2 == 0
    found = measure_all(waits, np.where(half, wait, np.nan), started & half, asked, climatology)
    assert found == pytest.approx(
        measure_all(Waits(waits.cdf[half], KNOTS_S), wait[half], started[half], asked[half], {1: climatology[1][half]}), nan_ok=True
    )


def test_no_case_at_all() -> None:
    found = measure_all(Waits(np.zeros((0, 96)), KNOTS_S), np.array([]), np.array([], bool), np.array([]), {4: np.array([])})
    assert found.pop("cases") == 0
    assert found.pop("days") == 0
    assert all(math.isnan(v) for v in found.values())


def test_what_is_no_prediction_is_refused() -> None:
    waits, wait, started, asked = sample(50)
    for bad in (np.full_like(waits.cdf, np.nan), waits.cdf[:, ::-1], waits.cdf * 1.5, waits.cdf[:, :-1]):
        with pytest.raises(ValueError, match="cdf"):
            measure_all(Waits(bad, KNOTS_S), wait, started, asked)
    one_nan = waits.cdf.copy()
    one_nan[3, 40] = np.nan
    with pytest.raises(ValueError, match="nan"):
        measure_all(Waits(one_nan, KNOTS_S), wait, started, asked)
    with pytest.raises(ValueError, match="knots"):
        measure_all(Waits(waits.cdf, KNOTS_S + 1), wait, started, asked)
    with pytest.raises(ValueError, match="negative"):
        measure_all(waits, wait - 1e7, started, asked)
    with pytest.raises(ValueError, match="length"):
        measure_all(waits, wait, started, asked[1:])
    with pytest.raises(ValueError, match="length"):
        measure_all(waits, wait, started, asked, {1: np.ones(3)})


def test_single_precision_will_do() -> None:
    waits, wait, started, asked = sample(200)
    single = Waits(waits.cdf.astype(np.float32), KNOTS_S)
    exact, found = measure_all(waits, wait, started, asked), measure_all(single, wait, started, asked)
    assert found["crps_s"] == pytest.approx(exact["crps_s"], rel=1e-3)
    assert found["pinball_log1p"] == pytest.approx(exact["pinball_log1p"], rel=1e-3)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["gpu", "cpu", "<b>", ""]), st.integers(0, 2)), min_size=1, max_size=60), st.integers(1, 9))
def test_cells_are_counted_one_job_at_a_time(keys: list[tuple[str, int]], minimum: int) -> None:
    waits, wait, started, _ = sample(len(keys))
    cells = coverage_by(
        waits, wait, started, {"partition": np.array([k[0] for k in keys]), "size": np.array([k[1] for k in keys])}, minimum=minimum
    )
    low, high = waits.interval(0.8)
    expected: dict[tuple[str, int], list[bool]] = defaultdict(list)
    for i, key in enumerate(keys):
        if started[i]:
            expected[key].append(bool(low[i] - 0.5 <= wait[i] <= high[i] + 0.5))
    kept = {k: v for k, v in expected.items() if len(v) >= minimum}
    assert [(c.key["partition"], c.key["size"]) for c in cells] == sorted(kept)
    for cell in cells:
        inside = kept[str(cell.key["partition"]), int(cell.key["size"])]
        assert cell.jobs == len(inside)
        assert cell.coverage[0.8] == pytest.approx(np.mean(inside))
        assert list(cell.coverage) == [0.5, 0.8, 0.9, 0.95]


def test_cells_without_groups_or_jobs() -> None:
    waits, wait, started, asked = sample(500)
    (cell,) = coverage_by(waits, wait, started, {})
    assert cell.key == {}
    assert cell.coverage[0.95] == pytest.approx(measure_all(waits, wait, started, asked)["coverage_95"])
    assert coverage_by(waits, wait, np.zeros(500, bool), {"size": np.zeros(500, np.int64)}) == []
