"""Noon snapshots of pending jobs: only what was known at noon is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.benchmarks.drac import FEATURES, NEEDED, QUEUE, SHARE, read_drac

from queuecast.errors import UsageError

FUTURE = [
    *("elapsed_time", "run_time_sec", "submit_wait_sec", "eligible_wait_sec", "poll_wait_sec", "q_core_run_hours", "q_p_a_gpu_run_hours"),
    *("alloc_nodes", "job_unique_id", "job_summary_id", "job_augment_id", "pending_id", "running_id", "sshare_id"),
    *("priority_x", "partition_id_x"),
]


def rows(count: int = 40, seed: int = 3) -> pd.DataFrame:
    """A table of the layout, with columns of the future that must not matter."""
    rng = np.random.default_rng(seed)
    poll = pd.Timestamp("2021-05-01 12:00:00") + pd.to_timedelta(rng.integers(0, 5, count), unit="D")
    submit = poll - pd.to_timedelta(rng.integers(0, 40_000, count), unit="s")
    table: dict[str, Any] = {f.name: rng.integers(0, 1000, count) for f in (*QUEUE, *SHARE)}
    table |= {
        "poll_time": poll.astype(str),
        "submit_time": submit.astype(str),
        "eligible_time": submit.astype(str),
        "start_time": (poll + pd.to_timedelta(rng.integers(1, 90_000, count), unit="s")).astype(str),
        "partition_id_y": rng.integers(8, 12, count),
        "account_id": rng.integers(20, 24, count),
        "req_tres": rng.choice(["billing=4,cpu=8,gres/gpu=4,mem=8G,node=2", "cpu=1,mem=256M,node=1", ""], count),
        "req_cpus": rng.integers(1, 64, count),
        "req_mem_total": rng.integers(256, 9000, count),
        "req_mem_per_cpu": rng.random(count),
        "time_limit_sec": rng.integers(60, 90_000, count),
        **{name: rng.integers(0, 10**6, count) for name in FUTURE},
    }
    return pd.DataFrame(table)


def read(table: pd.DataFrame, tmp_path: Path) -> tuple[pd.DataFrame, Any]:
    table.to_parquet(tmp_path / "t.parquet")
    return read_drac(tmp_path / "t.parquet")


def test_times_groups_and_order(tmp_path: Path) -> None:
    table = rows()
    table["start_time"] = table["start_time"].mask(table.index == 7)
    frame, cases = read(table, tmp_path)
    assert (np.diff(cases.asked) >= 0).all()
    assert cases.values.shape == (40, len(FEATURES)) == (40, len(frame.columns) - 3)
    order = np.argsort(pd.to_datetime(table["poll_time"]).to_numpy(), kind="stable")
    assert (cases.asked % 86400 == 43200).all()
    told = [np.inf if pd.isna(t) else pd.Timestamp(t, tz="UTC").timestamp() for t in table["start_time"].iloc[order]]
    assert cases.start.tolist() == told
    assert np.isinf(told).sum() == 1
    gpus = [0.0 if "256M" in t else 4.0 if t else np.nan for t in table["req_tres"].iloc[order]]
    assert np.array_equal(frame["req_gpus"].to_numpy(), gpus, equal_nan=True)
    assert cases.groups["gpu"].tolist() == [int(g > 0) for g in gpus]
    assert np.array_equal(cases.groups["user"], cases.groups["account"])


def test_nothing_of_the_future_is_read(tmp_path: Path) -> None:
    """Whatever the columns of the future hold, and whenever the job started, features are the same."""
    table = rows()
    frame, cases = read(table, tmp_path)
    for name in FUTURE:
        assert name not in frame.columns
        table[name] = -table[name]
    table["start_time"] = (pd.to_datetime(table["poll_time"]) + pd.to_timedelta(77, unit="D")).astype(str)
    again, other = read(table, tmp_path)
    assert frame.equals(again)
    assert np.array_equal(cases.values, other.values, equal_nan=True)
    assert np.array_equal(cases.eligible, other.eligible)


def test_when_it_would_be_eligible_is_not_known(tmp_path: Path) -> None:
    table = rows()
    later = pd.to_datetime(table["poll_time"]) + pd.to_timedelta(1 + table.index, unit="s")
    table["eligible_time"] = later.astype(str)
    frame, cases = read(table, tmp_path)
    assert np.isnan(cases.eligible).all()
    assert frame["age_s"].isna().all()
    assert (frame["not_eligible"] == 1).all()
    assert (frame["since_submit_s"] >= 0).all()


def test_infinite_is_unknown_and_rows_that_were_not_pending_are_counted(tmp_path: Path) -> None:
    table = rows()
    table["level_fs_poll"] = np.where(table.index % 2, np.inf, 1.5)
    table.loc[3, "start_time"] = table.loc[3, "poll_time"]
    table.loc[4, "submit_time"] = "2022-01-01 00:00:00"
    frame, cases = read(table, tmp_path)
    assert set(frame["level_fs_poll"].dropna()) == {1.5}
    assert frame["level_fs_poll"].isna().sum() == 19
    assert frame.attrs["left_out"] == {"started by the snapshot": 1, "submitted after the snapshot": 1}
    assert len(cases) == 38


@pytest.mark.parametrize("name", ["poll_time", "q_p_a_gpu_hours_above", "partition_id_y", "req_tres", "level_fs_poll"])
def test_another_table_is_refused(name: str, tmp_path: Path) -> None:
    assert name in NEEDED
    with pytest.raises(UsageError, match=f"lacks 1 of the columns.*{name}"):
        read(rows().drop(columns=name), tmp_path)


def test_columns_of_another_kind_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="time_limit_sec does not hold numbers"):
        read(rows().assign(time_limit_sec="0 days 00:01:00"), tmp_path)
    with pytest.raises(UsageError, match="submit_time does not hold times"):
        read(rows().assign(submit_time="noon"), tmp_path)
    with pytest.raises(UsageError, match="must be there"):
        read(rows().assign(poll_time=None), tmp_path)
