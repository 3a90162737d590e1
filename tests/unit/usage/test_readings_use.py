"""Readings of GPUs: whose they are, what they say of the whole run, and which jobs sit idle now."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from usage_support import GIB, START, SUBMIT, TAKEN, job, lake_of, put, sample, uses

from queuecast.store.lake import Lake
from queuecast.usage.idle import idle_now
from queuecast.usage.readings import _only_one

GPUS = {"AllocTRES": "cpu=4,gres/gpu:a100=2,gres/gpu=2,mem=16G,node=1"}


def hour(gpu: str, util: float | None, **more: Any) -> list[dict[str, Any]]:
    return [sample(m, gpu, util, **more) for m in range(0, 60, 5)]


def gpu_lake(path: Path, readings: list[dict[str, Any]], *rows: dict[str, str]) -> Lake:
    lake = lake_of(path, *(rows or (job(**GPUS),)))
    put(lake, "gpu_samples", readings)
    return lake


def test_the_only_gpu_job_on_the_node_gets_its_readings(tmp_path: Path) -> None:
    (found,) = uses(gpu_lake(tmp_path, hour("0", 0.9, mem_used_bytes=9 * GIB, mem_total_bytes=80 * GIB) + hour("1", 0.0)))
    assert (found["gpus_seen"], found["gpus_used"], found["gpu_basis"]) == (2.0, 1.0, "samples")
    assert found["gpu_util_mean"] == pytest.approx(0.45)
    assert (found["gpu_util_peak"], found["gpu_mem_peak_bytes"], found["gpu_mem_total_bytes"]) == (0.9, 9 * GIB, 80 * GIB)


def test_two_gpu_jobs_on_the_node_get_none(tmp_path: Path) -> None:
    lake = gpu_lake(tmp_path, hour("0", 0.9), job(**GPUS), job(JobIDRaw="101", JobID="101", **GPUS))
    assert [r["gpu_basis"] for r in uses(lake)] == [None, None]


def test_jobs_without_gpus_do_not_stand_in_the_way(tmp_path: Path) -> None:
    lake = gpu_lake(
        tmp_path, hour("0", 0.9) + hour("1", 0.9), job(**GPUS), job(JobIDRaw="101", JobID="101", AllocTRES="cpu=1,mem=1G,node=1")
    )
    assert [r["gpu_basis"] for r in uses(lake)] == ["samples", None]


def test_a_job_id_decides_on_a_shared_node(tmp_path: Path) -> None:
    lake = gpu_lake(
        tmp_path, hour("0", 0.9, job_id=100) + hour("1", 0.2, job_id=101), job(**GPUS), job(JobIDRaw="101", JobID="101", **GPUS)
    )
    assert [r["gpu_util_mean"] for r in uses(lake)] == pytest.approx([0.9, 0.2])


def test_a_viewer_sees_only_his_own_readings(tmp_path: Path) -> None:
    """Another's job on the node stays in view for telling whose a reading is, though its row does not show."""
    other = job(JobIDRaw="101", JobID="101", User="bob", **GPUS)
    assert [r["gpu_basis"] for r in uses(gpu_lake(tmp_path / "a", hour("0", 0.9), job(**GPUS), other), viewer_user="Alice")] == [None]
    assert uses(gpu_lake(tmp_path / "b", hour("0", 0.9), job(**GPUS), other), viewer_user="nobody") == []


def test_gpus_of_the_node_that_the_job_has_not_are_left_out(tmp_path: Path) -> None:
    (found,) = uses(gpu_lake(tmp_path, [r for g in "0123" for r in hour(g, 0.8 if g in "13" else 0.0)]))
    assert (found["gpus_seen"], found["gpus_used"]) == (2.0, 2.0)
    assert found["gpu_util_mean"] == pytest.approx(0.8)


def test_the_first_minutes_are_not_the_run(tmp_path: Path) -> None:
    """No mean, and nothing said to be unused, but what was seen was seen."""
    (found,) = uses(gpu_lake(tmp_path, [sample(m, g, 0.0 if g == "1" else 0.7) for m in (0, 5, 10) for g in "01"]))
    assert (found["gpu_util_mean"], found["gpus_used"]) == (None, None)
    assert found["gpu_util_peak"] == 0.7


def test_a_reading_without_use_is_no_zero(tmp_path: Path) -> None:
    (found,) = uses(gpu_lake(tmp_path, hour("0", None, mem_used_bytes=GIB) + hour("1", None, mem_used_bytes=GIB)))
    assert (found["gpu_util_mean"], found["gpu_util_peak"], found["gpus_used"]) == (None, None, None)
    assert found["gpu_mem_peak_bytes"] == GIB


def test_nothing_after_the_moment_is_used(tmp_path: Path) -> None:
    lake = gpu_lake(tmp_path, [*hour("0", 0.2), sample(45, "1", 1.0)])
    (found,) = uses(lake, START + timedelta(minutes=30))
    assert (found["state"], found["gpu_util_peak"], found["gpus_seen"]) == ("RUNNING", 0.2, 1.0)


def test_what_a_script_made_up_comes_last_and_is_marked(tmp_path: Path) -> None:
    made = {"generated": True, "source": "generated"}
    lake = gpu_lake(tmp_path / "a", hour("0", 0.9, **made) + hour("1", 0.9, **made))
    (found,) = uses(lake)
    assert (found["generated"], found["gpu_basis"]) == (True, "samples")
    put(lake, "job_use", [use_row(gpu_util_mean=0.3, gpus_seen=2, gpus_used=2)])
    (found,) = uses(lake)
    assert (found["generated"], found["gpu_basis"], found["gpu_util_mean"]) == (False, "csv", 0.3)


def use_row(**more: Any) -> dict[str, Any]:
    return {"job_id": 100, "job_submit": SUBMIT, "source": "csv", "generated": False} | more


def test_a_sum_by_job_stands_before_slurms_own(tmp_path: Path) -> None:
    """It was sampled for the whole job, so that a kill takes nothing from it."""
    lake = lake_of(tmp_path, job(State="TIMEOUT", TotalCPU="00:01:00"))
    put(lake, "job_use", [use_row(cpu_s=7200.0, mem_peak_bytes=3 * GIB)])
    (found,) = uses(lake)
    assert (found["cpu_s"], found["cpu_share"], found["cpu_quality"]) == (7200.0, 0.5, "ok")
    assert (found["mem_peak_bytes"], found["mem_basis"], found["mem_at_least"]) == (3 * GIB, "sampled", False)


def test_sums_of_a_job_that_still_ran_are_not_known_then(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, job())
    put(lake, "job_use", [use_row(cpu_s=7200.0)])
    (found,) = uses(lake, START + timedelta(minutes=30))
    assert (found["cpu_s"], found["cpu_quality"]) == (None, "running")


def test_a_requeued_job_keeps_its_attempts_apart(tmp_path: Path) -> None:
    again = job(Submit="2026-06-01T10:05:00", Eligible="2026-06-01T10:05:00", Start="2026-06-01T11:00:00", End="2026-06-01T12:00:00")
    lake = lake_of(tmp_path, job(State="PREEMPTED"), again)
    put(lake, "job_use", [use_row(cpu_s=10.0), use_row(cpu_s=20.0, job_submit=SUBMIT + timedelta(minutes=125))])
    assert [r["cpu_s"] for r in uses(lake)] == [10.0, 20.0]


def test_a_table_without_submit_times_is_of_the_latest_attempt(tmp_path: Path) -> None:
    again = job(Submit="2026-06-01T10:05:00", Eligible="2026-06-01T10:05:00", Start="2026-06-01T11:00:00", End="2026-06-01T12:00:00")
    lake = lake_of(tmp_path, job(State="PREEMPTED"), again)
    put(lake, "job_use", [use_row(cpu_s=20.0, job_submit=TAKEN)])
    assert [r["cpu_s"] for r in uses(lake)] == [None, 20.0]


def running(**more: str) -> dict[str, str]:
    times = {"Start": "2026-06-13T02:00:00", "Submit": "2026-06-13T01:00:00", "Eligible": "2026-06-13T01:00:00", "End": "Unknown"}
    return job(**{"State": "RUNNING"} | times | GPUS | more)


def lately(gpu: str, util: float | None, hours: float = 8.0, step: float = 15.0, until: float = 0.0) -> list[dict[str, Any]]:
    """Readings of the hours before ``until`` hours before the recording was taken."""
    count = int(hours * 60 / step)
    moments = [TAKEN - timedelta(hours=until) - timedelta(minutes=step * i) for i in range(count)]
    return [sample(0, gpu, util) | {"observed_at": m} for m in moments]


def test_a_job_whose_gpus_are_all_idle_is_found(tmp_path: Path) -> None:
    lake = gpu_lake(tmp_path, lately("0", 0.0) + lately("1", 0.0), running())
    (found,) = idle_now(lake, "toy", TAKEN, 4)
    assert (found.job_id_text, found.user, found.gpus, found.gpu_type, found.samples) == ("100", "alice", 2, "a100", 64)
    assert found.idle_s == pytest.approx(7.75 * 3600)
    assert found.gpu_hours == pytest.approx(15.5)
    assert found.as_json()["idle_since"] == "2026-06-13T04:15:00+00:00"


@pytest.mark.parametrize(
    "readings",
    [
        pytest.param(lately("0", 0.0) + lately("1", 0.4), id="one works"),
        pytest.param(lately("0", 0.0) + lately("1", 0.0, 2.0), id="one was read for half of the time only"),
        pytest.param(lately("0", 0.0), id="one was not read"),
        pytest.param(lately("0", None) + lately("1", None), id="use is not told"),
        pytest.param(lately("0", 0.0, until=2.0) + lately("1", 0.0, until=2.0), id="read last two hours ago"),
        pytest.param(lately("0", 0.0, step=150) + lately("1", 0.0, step=150), id="read twice"),
        pytest.param([], id="nothing read"),
    ],
)
def test_a_job_that_may_work_is_not_called_idle(tmp_path: Path, readings: list[dict[str, Any]]) -> None:
    assert idle_now(gpu_lake(tmp_path, readings, running()), "toy", TAKEN, 4) == []


def test_a_job_that_just_began_or_has_ended_is_not_idle(tmp_path: Path) -> None:
    young = gpu_lake(tmp_path / "a", lately("0", 0.0) + lately("1", 0.0), running(Start="2026-06-13T10:00:00"))
    assert idle_now(young, "toy", TAKEN, 4) == []
    over = gpu_lake(tmp_path / "b", lately("0", 0.0) + lately("1", 0.0), running(State="COMPLETED", End="2026-06-13T11:59:00"))
    assert idle_now(over, "toy", TAKEN, 4) == []


spans = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 10)), max_size=12)
questions = st.lists(st.tuples(st.integers(-1, 2), st.integers(-2, 45)), min_size=1, max_size=8)


@given(spans, questions)
@settings(deadline=None)
def test_the_only_one_is_found_as_by_looking_at_each(held: list[tuple[int, int, int]], asked: list[tuple[int, int]]) -> None:
    columns = [np.array(c, float) for c in zip(*held, strict=True)] or [np.zeros(0)] * 3
    place, start = columns[0].astype(np.int64), columns[1]
    end = start + columns[2]
    where, when = (np.array(c) for c in zip(*asked, strict=True))
    found = _only_one(place, start, end, np.arange(len(place)), where, when.astype(float))
    for answer, spot, moment in zip(found.tolist(), where.tolist(), when.tolist(), strict=True):
        there = [i for i in range(len(place)) if place[i] == spot and start[i] <= moment < end[i]]
        assert answer == (there[0] if len(there) == 1 else -1)
