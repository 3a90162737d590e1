"""Odd but real situations, each with its number: estimates of Slurm, runaways, the spelling of names."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.unit.synthetic import NOW, job_rows, make_lake, queue_rows, table

from queuecast.answers.forecast import Forecaster
from queuecast.answers.runaway import runaway_jobs
from queuecast.models.slurmrecord import slurm_record
from queuecast.policy.request import Request
from queuecast.store.lake import Lake

MINUTE = timedelta(minutes=1)


def waiting() -> dict[str, Any]:
    return next(r for r in job_rows() if r["state"] == "PENDING" and r["partition"] == "gpu")


def estimates(lake: Lake, job: dict[str, Any], *seen: tuple[datetime, datetime | None]) -> None:
    rows = [
        {
            "cluster": "toy",
            "observed_at": at,
            "job_id": job["job_id"],
            "job_id_text": str(job["job_id"]),
            "array_tasks": 1,
            "partition": "gpu",
            "state": "PENDING",
            "start_estimate": start,
            "clamped": None if start is None else start <= at,
        }
        for at, start in seen
    ]
    with lake.transaction("estimates") as tx:
        tx.append("estimates", table("estimates", rows))


def test_F04_an_estimate_that_vanishes_for_a_cycle_still_stands(tmp_path: Path) -> None:
    job, lake = waiting(), make_lake(tmp_path / "lake", job_rows())
    told = NOW + timedelta(hours=3)
    estimates(lake, job, (NOW - 2 * MINUTE, told), (NOW - MINUTE, None))
    says = Forecaster(lake).when_job(str(job["job_id"]), NOW).slurm
    assert says is not None
    assert (says.start, says.seen_at) == (told, NOW - 2 * MINUTE)


def test_F04_one_that_has_been_gone_for_long_does_not(tmp_path: Path) -> None:
    job, lake = waiting(), make_lake(tmp_path / "lake", job_rows())
    estimates(lake, job, (NOW - 30 * MINUTE, NOW + timedelta(hours=3)), (NOW - MINUTE, None))
    says = Forecaster(lake).when_job(str(job["job_id"]), NOW).slurm
    assert says is not None
    assert (says.start, says.seen_at) == (None, NOW - MINUTE)


def test_F02_an_estimate_of_the_present_is_called_overdue(tmp_path: Path) -> None:
    job, lake = waiting(), make_lake(tmp_path / "lake", job_rows())
    estimates(lake, job, (NOW - MINUTE, NOW - MINUTE))
    says = Forecaster(lake).when_job(str(job["job_id"]), NOW).slurm
    assert says is not None
    assert says.clamped


def test_F07_slurms_bias_is_on_record_and_does_not_move_our_interval(tmp_path: Path) -> None:
    """It plans with limits, so most jobs start earlier than it says: the record tells, the interval rests on waits."""
    started = [r for r in job_rows() if r["start"] and r["partition"] == "gpu" and r["start"] > NOW - timedelta(days=5)]
    lake = make_lake(tmp_path / "lake", job_rows())
    ask = Request(partitions=("gpu",), gpus=4, gpu_type="a100", cpus=8, limit_s=3600, account="vision", qos="normal")
    before = Forecaster(lake).when(ask, NOW)
    for job in started[:30]:
        estimates(lake, job, (job["submit"] + MINUTE, job["start"] + timedelta(hours=10)))
    record = slurm_record(lake, "toy", NOW)
    assert record.earlier == 1
    assert record.median_abs_error_s == 36000
    after = Forecaster(Lake.open(lake.path)).when(ask, NOW)
    assert after.intervals == before.intervals
    assert after.slurm is not None
    assert after.slurm.record == slurm_record(lake, "toy", NOW, "gpu")


def test_F08_an_estimate_for_several_partitions_is_nobodys_alone(tmp_path: Path) -> None:
    job, lake = waiting(), make_lake(tmp_path / "lake", job_rows())
    row = {
        "cluster": "toy",
        "observed_at": NOW - MINUTE,
        "job_id": job["job_id"],
        "job_id_text": str(job["job_id"]),
        "array_tasks": 1,
        "partition": "gpu,cpu",
        "state": "PENDING",
        "start_estimate": NOW + MINUTE,
        "clamped": False,
    }
    with lake.transaction("estimates") as tx:
        tx.append("estimates", table("estimates", [row]))
    assert slurm_record(lake, "toy", NOW).asked == 1
    assert slurm_record(lake, "toy", NOW, "gpu").asked == slurm_record(lake, "toy", NOW, "cpu").asked == 0


def test_H08_jobs_that_run_in_accounting_only_are_suspected(tmp_path: Path) -> None:
    rows = job_rows()
    ghost = dict(
        rows[0],
        job_id=5,
        job_id_text="5",
        submit=NOW - timedelta(days=15),
        eligible=NOW - timedelta(days=15),
        start=NOW - timedelta(days=15),
        end=None,
        state="RUNNING",
        limit_s=86400,
        completeness=2,
    )
    fresh = dict(ghost, job_id=6, job_id_text="6", start=NOW - timedelta(hours=2))  # absent, but its limit is not over
    lake = make_lake(tmp_path / "lake", rows)
    with lake.transaction("ghosts") as tx:
        tx.append("jobs", table("jobs", [ghost, fresh]))
        tx.append("queue", table("queue", queue_rows([ghost], NOW - timedelta(days=14))))
    found = runaway_jobs(lake, "toy", NOW)
    assert [(r.job_id, r.last_seen) for r in found] == [("5", NOW - timedelta(days=14))]
    assert runaway_jobs(make_lake(tmp_path / "clean", rows), "toy", NOW) == []


def test_H17_names_meet_whatever_their_case(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake", job_rows())
    lower = Request(partitions=("gpu",), gpus=4, gpu_type="a100", cpus=8, limit_s=3600, account="vision", qos="normal")
    upper = Request(partitions=("GPU",), gpus=4, gpu_type="A100", cpus=8, limit_s=3600, account="Vision", qos="Normal")
    a, b = Forecaster(lake).when(lower, NOW), Forecaster(lake).when(upper, NOW)
    assert a.intervals == b.intervals
    assert a.basis == b.basis
