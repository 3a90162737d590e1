"""Means over many jobs hold what is known, and say how much is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from usage_support import SINCE, TAKEN, job, lake_of, step

from queuecast.usage.counting import Counted, counted
from queuecast.usage.measure import uses_of

MEM = {"AllocTRES": "cpu=4,mem=2G,node=1", "ReqMem": "2G"}


def numbered(number: int, **fields: str) -> dict[str, str]:
    return job(**{"JobIDRaw": str(number), "JobID": str(number)} | fields)


def test_a_job_without_a_figure_is_not_a_zero(tmp_path: Path) -> None:
    """One of two used 1.5 of 2 GiB, of the other nothing is known: 75 % over one job, and one unknown."""
    lake = lake_of(tmp_path, job(**MEM), step("batch", MaxRSS="1536M", **MEM), numbered(101, **MEM))
    rows = uses_of(lake, "toy", since=SINCE, at=TAKEN).rows
    assert counted(rows, "memory") == Counted(0.75, 1, 1, 0, 0, 0)


def test_doubtful_and_running_jobs_are_counted_apart(tmp_path: Path) -> None:
    lake = lake_of(
        tmp_path,
        numbered(1, TotalCPU="02:00:00"),
        numbered(2, TotalCPU="00:01:00", State="TIMEOUT"),
        numbered(3, TotalCPU="9-00:00:00"),
        numbered(4, TotalCPU="00:01:00", State="RUNNING", End="Unknown"),
        numbered(5),
    )
    assert counted(uses_of(lake, "toy", since=SINCE, at=TAKEN).rows, "cpus") == Counted(pytest.approx(0.5), 1, 1, 2, 1, 0)


def test_nothing_known_is_none(tmp_path: Path) -> None:
    rows = uses_of(lake_of(tmp_path, job()), "toy", since=SINCE, at=TAKEN).rows
    assert counted(rows, "gpus") == Counted(None, 0, 0, 0, 0, 0)
    assert counted(rows, "memory").share is None
    assert counted(rows.slice(0, 0), "cpus").as_json()["n"] == 0
