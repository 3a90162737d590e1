"""What is kept for plots agrees with the measures of the cases it was made from."""

from __future__ import annotations

import math

import numpy as np
import pytest

from queuecast.features.history import Flags, Floats
from queuecast.models.measures import measure_all
from queuecast.models.measures_summary import PAIRS, Shown, summarise
from queuecast.models.waits import KNOTS_S, Waits

BEGIN = 1_704_067_200.0  # 2024-01-01 UTC
DAY = 86400.0


def sample(count: int, days: float, seed: int = 1) -> tuple[Waits, Floats, Flags, Floats]:
    rng = np.random.default_rng(seed)
    middle = rng.normal(8, 2, count)
    cdf = 1 / (1 + np.exp(-(np.log1p(KNOTS_S) - middle[:, None]) / 0.7))
    wait = np.minimum(np.expm1(np.maximum(0, middle + 0.7 * rng.logistic(size=count))), 7e6)
    return Waits(cdf, KNOTS_S), wait, rng.uniform(size=count) > 0.1, BEGIN + rng.uniform(0, days * DAY, count)


def condensed(cases: tuple[Waits, Floats, Flags, Floats], minimum: int = 100) -> Shown:
    groups = {"partition": np.where(np.arange(len(cases[1])) % 3 == 0, "gpu", "cpu")}
    return summarise(*cases, groups, trace="t", slice="all", model="m", minimum=minimum)


def test_curves_and_tables_are_those_of_the_measures() -> None:
    cases = sample(3000, 50)
    shown, measures = condensed(cases), measure_all(*cases)
    assert (shown.cases, shown.started) == (3000, int(cases[2].sum()))
    assert (shown.first, shown.last) == (cases[3].min(), cases[3].max())
    for hours in (1, 4, 24):
        line = shown.reliability[hours].line
        assert np.sum(line.cases * np.abs(line.told - line.came)) / line.cases.sum() == pytest.approx(measures[f"ece_{hours}h"])
        assert (shown.reliability[hours].low <= line.came + 1e-12).all()
        assert (shown.reliability[hours].high >= line.came - 1e-12).all()
    assert shown.pit.sum() == pytest.approx(1)
    assert shown.widths[0.8][2] == pytest.approx(measures["width_80_median_s"])
    assert float(np.median(np.abs(shown.told_s - shown.came_s))) == pytest.approx(measures["medae_s"])
    for name, keys in {"partition": ["cpu", "gpu"], "month": ["2024-01", "2024-02"]}.items():
        cells = shown.cells[name]
        assert [c.key[name] for c in cells] == keys
        total = sum(c.jobs * c.coverage[0.8] for c in cells) / sum(c.jobs for c in cells)
        assert total == pytest.approx(measures["coverage_80"])


@pytest.mark.parametrize(("days", "length", "periods"), [(50, 1, 50), (70, 7, 10), (500, 28, 18)])
def test_periods_are_the_shortest_that_stay_few(days: float, length: int, periods: int) -> None:
    cases = sample(5000, days)
    shown, measures = condensed(cases, minimum=1), measure_all(*cases)
    assert len(shown.periods) == periods
    assert {p.days for p in shown.periods} == {length}
    assert shown.periods[0].begin == BEGIN
    jobs = sum(p.jobs for p in shown.periods)
    assert jobs == shown.started
    assert sum(p.jobs * p.coverage_80 for p in shown.periods) / jobs == pytest.approx(measures["coverage_80"])
    assert sum(p.jobs * p.pinball_log1p for p in shown.periods) / jobs == pytest.approx(measures["pinball_log1p"])


def test_what_has_too_few_jobs_is_left_out() -> None:
    shown = condensed(sample(300, 10), minimum=150)
    assert shown.periods == []
    assert [c.key["partition"] for c in shown.cells["partition"]] == ["cpu"]


def test_pairs_are_few_enough_to_keep() -> None:
    waits, wait, started, asked = sample(200, 3)
    many = 150
    waits = Waits(np.tile(waits.cdf, (many, 1)), KNOTS_S)
    shown = condensed((waits, np.tile(wait, many), np.tile(started, many), np.tile(asked, many)))
    assert len(shown.told_s) == len(shown.came_s) == PAIRS


def test_nothing_to_show_is_no_error() -> None:
    waits, wait, _, asked = sample(50, 3)
    shown = condensed((waits, wait, np.zeros(50, bool), asked))
    assert (shown.cases, shown.started, shown.periods) == (50, 0, [])
    assert np.isnan(shown.pit).all()
    none = condensed((Waits(np.zeros((0, 96)), KNOTS_S), np.array([]), np.array([], bool), np.array([])))
    assert none.cases == 0
    assert math.isnan(none.first)
    unknown = condensed((waits, np.full(50, np.nan), np.zeros(50, bool), asked))
    assert unknown.cases == 0


def test_one_day_has_no_intervals() -> None:
    curve = condensed(sample(300, 0.9)).reliability[4]
    assert len(curve.low) == len(curve.line.came)
    assert np.isnan(curve.low).all()
