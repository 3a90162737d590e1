"""Slurm's estimates scored by what came."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from tests.unit.synthetic import NOW, table

from queuecast.models.slurmrecord import slurm_record
from queuecast.store.lake import Lake


def test_each_estimate_meets_the_attempt_that_was_pending(tmp_path: Path) -> None:
    h = timedelta(hours=1)
    lake = Lake.open(tmp_path / "lake", create=True)
    jobs = [
        {"cluster": "c", "job_id": 7, "submit": NOW - 10 * h, "start": NOW - 8 * h, "completeness": 3, "observed_at": NOW},
        {"cluster": "c", "job_id": 7, "submit": NOW - 6 * h, "start": NOW - 2 * h, "completeness": 3, "observed_at": NOW},
        {"cluster": "c", "job_id": 8, "submit": NOW - 6 * h, "completeness": 1, "observed_at": NOW},
    ]
    rows = [(7, -9, -7.0), (7, -5, -1.0), (7, -4, None), (8, -5, -4.0), (9, -5, -4.0)]
    estimates = [
        {
            "cluster": "c",
            "observed_at": NOW + s * h,
            "job_id": j,
            "job_id_text": str(j),
            "array_tasks": 1,
            "partition": "gpu",
            "start_estimate": None if e is None else NOW + e * h,
        }
        for j, s, e in rows
    ]
    with lake.transaction("t") as tx:
        tx.append("jobs", table("jobs", jobs))
        tx.append("estimates", table("estimates", estimates))
    record = slurm_record(lake, "c", NOW)
    assert (record.asked, record.given, record.scored) == (5, 4, 2)
    assert record.median_abs_error_s == pytest.approx(3600)
    assert record.within_1h == 1
    assert record.missing == pytest.approx(0.2)
    earlier = slurm_record(lake, "c", NOW - 3 * h)
    assert (earlier.asked, earlier.scored) == (5, 1)  # the second start had not happened yet
    assert slurm_record(lake, "c", NOW, "cpu").asked == 0
