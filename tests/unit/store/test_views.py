"""What jobs used, as SQL sees it: unknown is not zero, doubtful is said to be."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.unit.synthetic import table

from queuecast.store.lake import Lake
from queuecast.store.query import read_only

T0 = datetime(2026, 5, 30, tzinfo=UTC)
ENDED = {"state": "COMPLETED", "end": T0 + timedelta(hours=1), "elapsed_s": 3600, "cpus_alloc": 4, "completeness": 3, "source": "sacct"}


def usage(tmp_path: Path, **job: Any) -> dict[str, Any]:
    lake = Lake.open(tmp_path / "lake", create=True)
    row = {"cluster": "c", "job_id": 1, "submit": T0, "start": T0, "observed_at": T0, **ENDED, **job}
    with lake.transaction("t") as tx:
        tx.append("jobs", table("jobs", [row]))
    found: dict[str, Any] = read_only(lake, "SELECT * FROM usage").to_pylist()[0]
    return found


@pytest.mark.parametrize(
    ("job", "efficiency", "quality"),
    [
        pytest.param({"total_cpu_s": 7200.0}, 0.5, "ok", id="half used"),
        pytest.param({"total_cpu_s": 0.0}, 0.0, "ok", id="a measured zero is zero"),
        pytest.param({"total_cpu_s": None}, None, "unknown", id="E07-missing is not zero"),
        pytest.param({"total_cpu_s": 147587.0, "elapsed_s": 1594, "cpus_alloc": 2}, 46.29, "implausible", id="E01-over 100 % by far"),
        pytest.param({"total_cpu_s": 16000.0}, 1.11, "ok", id="E01-a little over is normal"),
        pytest.param(
            {"total_cpu_s": 0.001, "elapsed_s": 0, "cpus_alloc": 8, "state": "FAILED"}, None, "unknown", id="E02-no time, no efficiency"
        ),
        pytest.param({"total_cpu_s": 10.0, "state": "TIMEOUT"}, 0.0007, "too_low", id="E16-killed steps count too little"),
        pytest.param(
            {"total_cpu_s": 10.0, "state": "RUNNING", "end": None, "completeness": 2}, None, "running", id="E22-so far is not final"
        ),
    ],
)
def test_cpu_efficiency(tmp_path: Path, job: dict[str, Any], efficiency: float | None, quality: str) -> None:
    found = usage(tmp_path, **job)
    assert found["cpu_quality"] == quality
    assert found["cpu_efficiency"] == (None if efficiency is None else pytest.approx(efficiency, rel=0.05))


def test_E20_allocated_and_used_are_two_figures(tmp_path: Path) -> None:
    found = usage(tmp_path, total_cpu_s=3600.0)
    assert (found["cpu_allocated_s"], found["total_cpu_s"]) == (14400, 3600)


@pytest.mark.parametrize(
    ("job", "efficiency"),
    [
        pytest.param(
            {"max_rss_bytes": 2**30, "mem_req_bytes": 4 * 2**30, "mem_alloc_bytes": 8 * 2**30}, 0.125, id="B34-of what was allocated"
        ),
        pytest.param({"max_rss_bytes": 2**30, "mem_req_bytes": 4 * 2**30}, 0.25, id="else of the request"),
        pytest.param({"max_rss_bytes": 12 * 2**28, "mem_alloc_bytes": 2 * 2**30}, 1.5, id="E17-over 100 % is shown, not clipped"),
        pytest.param({"max_rss_bytes": 2**30, "mem_alloc_bytes": 0}, None, id="E17-of nothing there is no share"),
        pytest.param({"mem_alloc_bytes": 2**30}, None, id="E17-not measured"),
    ],
)
def test_memory(tmp_path: Path, job: dict[str, Any], efficiency: float | None) -> None:
    assert usage(tmp_path, **job)["mem_efficiency_at_least"] == efficiency


@pytest.mark.parametrize(
    ("job", "settlement"),
    [
        ({}, "settled"),
        ({"state": "RUNNING", "end": None, "completeness": 2}, "running"),
        ({"state": "COMPLETED", "completeness": 0, "source": "squeue"}, "ended_unsettled"),
    ],
)
def test_H20_ended_but_not_booked_is_told_apart(tmp_path: Path, job: dict[str, Any], settlement: str) -> None:
    assert usage(tmp_path, **job)["settlement"] == settlement


def test_gpu_hours_of_unknown_gpus_are_unknown(tmp_path: Path) -> None:
    assert usage(tmp_path)["gpu_hours"] is None
    assert usage(tmp_path / "b", gpus_alloc=4)["gpu_hours"] == 4
