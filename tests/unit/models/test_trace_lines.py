"""What the benchmark of traces tells of several files together."""

from __future__ import annotations

import math

import pytest
from tests.benchmarks.traces import over_all

from queuecast.models.evaluation import BESIDE_SLURM, OURS, UNCORRECTED


def figures(part: str, held: float, **loss: float) -> list[dict[str, object]]:
    names = {"ours": OURS, "uncorrected": UNCORRECTED, "beside": BESIDE_SLURM}
    base = {"trace": "t", "slice": part, "low": None, "high": None}
    rows = [{**base, "model": names.get(m, m), "measure": "pinball_log1p", "value": v} for m, v in loss.items()]
    return [*rows, {**base, "model": OURS, "measure": "coverage_80", "value": held}]


def test_the_best_baseline_of_each_trace_is_the_reference() -> None:
    one = figures("all", 0.7, ours=0.5, like=1.0, qbets=2.0, uncorrected=0.1, beside=0.1) + figures("gpu", 0.6, ours=1.0, like=1.0)
    two = figures("all", 0.9, ours=0.6, like=3.0, qbets=0.8, nothing=math.nan)
    found = {(f["slice"], f["measure"]): f["value"] for f in over_all([one, two])}
    assert found["all", "pinball_ratio_mean"] == pytest.approx((0.5 + 0.75) / 2)
    assert found["all", "pinball_ratio_largest"] == pytest.approx(0.75)
    assert found["all", "coverage_80_mean"] == pytest.approx(0.8)
    assert (found["all", "traces"], found["gpu", "traces"]) == (2, 1)
    assert found["gpu", "pinball_ratio_mean"] == 1.0
    assert {f["trace"] for f in over_all([one, two])} == {"all"}


def test_nothing_to_compare_is_no_line() -> None:
    assert over_all([figures("all", 0.8, ours=math.nan, like=1.0), figures("all", 0.8, ours=0.5)]) == []
