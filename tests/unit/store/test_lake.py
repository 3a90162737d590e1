"""The lake: keys, transactions, crashes, locks, damage, migration."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from queuecast.errors import LakeDamaged, LakeLocked, LakeTooNew, StoreError
from queuecast.policy.readings import latest_reading
from queuecast.policy.tables import policy_at
from queuecast.schema import SCHEMA_VERSION
from queuecast.store import migrate
from queuecast.store.lake import Lake
from queuecast.store.manifest import NAME

T0 = datetime(2026, 5, 30, tzinfo=UTC)


def jobs(numbers: range, completeness: int, state: str = "RUNNING", seen: datetime = T0, cluster: str = "c") -> pa.Table:
    n = len(numbers)
    return pa.table(
        {
            "cluster": [cluster] * n,
            "job_id": list(numbers),
            "submit": [T0 + timedelta(hours=i) for i in numbers],
            "state": [state] * n,
            "completeness": [completeness] * n,
            "observed_at": [seen] * n,
        }
    )


def states(lake: Lake) -> dict[int, str]:
    rows = lake.refresh().read("jobs", ["job_id", "state"])
    out = dict(zip(rows["job_id"].to_pylist(), rows["state"].to_pylist(), strict=True))
    assert len(out) == rows.num_rows, "a key stands twice"
    return out


def partition(name: str, hour: int, max_time: int | None = None) -> pa.Table:
    return pa.table(
        {"cluster": ["c"], "observed_at": [T0 + timedelta(hours=hour)], "partition": [name], "max_time_s": pa.array([max_time], pa.int64())}
    )


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.open(tmp_path / "lake", create=True)


def test_reading_twice_adds_nothing_and_an_ended_job_replaces_its_running_row(lake: Lake) -> None:
    for _ in range(2):
        with lake.transaction("t") as tx:
            tx.append("jobs", jobs(range(100), 2))
    assert len(states(lake)) == 100
    with lake.transaction("t") as tx:
        tx.append("jobs", jobs(range(10, 20), 3, "COMPLETED"))
    with lake.transaction("t") as tx:  # a late running row does not bring the job back to life
        tx.append("jobs", jobs(range(10, 20), 2, "RUNNING", seen=T0 + timedelta(days=9)))
    found = states(lake)
    assert [found[i] for i in (9, 10, 19, 20)] == ["RUNNING", "COMPLETED", "COMPLETED", "RUNNING"]


def test_the_same_key_twice_in_one_reading_is_one_row(lake: Lake) -> None:
    with lake.transaction("t") as tx:
        tx.append("jobs", jobs(range(5), 2))
        tx.append("jobs", jobs(range(5), 3, "FAILED"))
    assert set(states(lake).values()) == {"FAILED"}


def test_of_equal_rank_the_later_reading_stays(lake: Lake) -> None:
    with lake.transaction("t") as tx:
        tx.append("jobs", jobs(range(3), 2, "SUSPENDED", seen=T0 + timedelta(days=2)))
    with lake.transaction("t") as tx:
        tx.append("jobs", jobs(range(3), 2, "RUNNING", seen=T0))
    assert set(states(lake).values()) == {"SUSPENDED"}


def test_same_job_id_after_a_reset_and_on_another_cluster_are_other_jobs(lake: Lake) -> None:
    later = pa.table(
        {
            "cluster": ["c"],
            "job_id": [1],
            "submit": [T0 + timedelta(days=400)],
            "state": ["FAILED"],
            "completeness": [3],
            "observed_at": [T0],
        }
    )
    with lake.transaction("t") as tx:
        tx.append("jobs", jobs(range(1, 2), 3, "COMPLETED"))
        tx.append("jobs", later)
        tx.append("jobs", jobs(range(1, 2), 3, "TIMEOUT", cluster="other"))
    assert sorted(lake.refresh().read("jobs", ["state"])["state"].to_pylist()) == ["COMPLETED", "FAILED", "TIMEOUT"]
    assert lake.clusters == ["c", "other"]


def test_time_bounds_prune_files_and_row_groups_but_lose_nothing(lake: Lake) -> None:
    with lake.transaction("t") as tx:
        tx.append("jobs", jobs(range(24 * 90), 3))
    since, until = T0 + timedelta(days=40), T0 + timedelta(days=50)
    rows = lake.read("jobs", ["submit"], since=since, until=until)["submit"].to_pylist()
    inside = [t for t in rows if since <= t < until]
    assert len(inside) == 240
    assert len(rows) < 24 * 90


def test_an_exception_leaves_the_lake_as_it_was(lake: Lake) -> None:
    with lake.transaction("t") as tx:
        tx.append("jobs", jobs(range(5), 2))
    before = (lake.path / NAME).read_bytes()

    def fails() -> None:
        with lake.transaction("t") as tx:
            tx.append("jobs", jobs(range(100), 3))
            tx.state["x"] = 1
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert (lake.path / NAME).read_bytes() == before
    assert not list((lake.path / "staging").iterdir())


def test_steady_tables_keep_only_changes_and_still_tell_when_they_were_read(lake: Lake) -> None:
    for hour, limit in ((0, 60), (1, 60), (2, 60), (3, 90), (4, 90), (5, 60)):
        with lake.transaction("t") as tx:
            tx.append("partitions", partition("gpu", hour, limit))
    rows = lake.read("partitions", ["observed_at", "max_time_s"]).sort_by("observed_at").to_pylist()
    assert [(int((r["observed_at"] - T0).total_seconds() // 3600), r["max_time_s"]) for r in rows] == [(0, 60), (3, 90), (5, 60)]
    assert lake.manifest.state["seen"]["c"]["partitions"].startswith("2026-05-30T05:00")


def test_parts_of_a_steady_table_are_read_and_repeated_each_for_itself(lake: Lake) -> None:
    def section(name: str, minutes: int, value: str) -> pa.Table:
        at = T0 + timedelta(minutes=minutes)
        return pa.table({"cluster": ["c"], "observed_at": [at], "section": [name], "key": ["K"], "value": [value]})

    for hour, value in ((0, "a"), (1, "a"), (2, "b"), (3, "b")):
        with lake.transaction("t") as tx:  # the weights are printed by another command, a minute later
            tx.append("settings", section("config", 60 * hour, value))
            tx.append("settings", section("priority_weights", 60 * hour + 1, "w"))
    assert lake.read("settings").num_rows == 3
    at = T0 + timedelta(hours=3, minutes=30)
    last = {r["section"]: r["value"] for r in latest_reading(lake, "settings", "c", at).to_pylist()}
    assert last == {"config": "b", "priority_weights": "w"}
    assert policy_at(lake, "c", at).settings == {"k": "b"}
    assert policy_at(lake, "c", T0 + timedelta(minutes=90)).settings == {"k": "a"}
    assert policy_at(lake, "c", T0 - timedelta(days=1)).settings == {"k": "a"}


def test_many_small_readings_are_merged(lake: Lake) -> None:
    for i in range(40):
        with lake.transaction("t") as tx:
            tx.append(
                "queue",
                pa.table(
                    {
                        "cluster": ["c"],
                        "observed_at": [datetime(2026, 6, 1, tzinfo=UTC) + timedelta(minutes=i)],
                        "job_id": [1],
                        "job_id_text": ["1"],
                        "state": ["PENDING"],
                    }
                ),
            )
    assert lake.read("queue").num_rows == 40
    assert len(lake.manifest.of("queue")) < 20


def test_large_files_are_left_alone_by_small_readings(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queuecast.store.lake.SMALL", 10)

    def snapshot(minute: int, jobs: int) -> pa.Table:
        at = datetime(2026, 6, 1, tzinfo=UTC) + timedelta(minutes=minute)
        return pa.table(
            {"cluster": ["c"] * jobs, "observed_at": [at] * jobs, "job_id": list(range(jobs)), "job_id_text": list(map(str, range(jobs)))}
        )

    with lake.transaction("large") as tx:
        tx.append("queue", snapshot(0, 5000))
    large = lake.manifest.of("queue")[0]
    for minute in range(1, 60):
        with lake.transaction("small") as tx:
            tx.append("queue", snapshot(minute, 3))
    assert large in lake.manifest.of("queue")
    assert len(lake.manifest.of("queue")) < 30
    assert lake.read("queue").num_rows == 5000 + 59 * 3


def test_unknown_columns_and_missing_lakes_are_told(lake: Lake, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no column"), lake.transaction("t") as tx:
        tx.append("jobs", pa.table({"cluster": ["c"], "bogus": [1]}))
    with pytest.raises(StoreError, match="no lake at"):
        Lake.open(tmp_path / "nowhere")


def test_two_writers_do_not_meet(lake: Lake) -> None:
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"""
import time
from queuecast.store.lake import Lake
with Lake.open({str(lake.path)!r}, create=True).transaction("collect"):
    print("held", flush=True); time.sleep(30)
""",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline().strip() == "held"
        with pytest.raises(LakeLocked, match=f"collect, process {holder.pid} on ") as told, lake.transaction("other"):
            pass
        assert "--wait" in str(told.value)
        holder.kill()
        holder.wait()
        with lake.transaction("other", wait_s=5) as tx:  # the kernel lets go of a dead holder's lock
            tx.append("jobs", jobs(range(3), 2))
    finally:
        holder.kill()
        holder.wait()
        assert holder.stdout is not None
        holder.stdout.close()
    assert len(states(lake)) == 3


WRITER = """
import sys
from datetime import UTC, datetime, timedelta
import pyarrow as pa
from queuecast.store.lake import Lake
T0 = datetime(2026, 5, 30, tzinfo=UTC)
lake = Lake.open(sys.argv[1], create=True)
for start in range(0, 100000, 50):
    n = range(start, start + 50)
    if start == 50:
        print("go", flush=True)
    with lake.transaction("w") as tx:
        tx.append("jobs", pa.table({"cluster": ["c"] * 50, "job_id": list(n), "submit": [T0 + timedelta(hours=i % 2000) for i in n],
                                    "state": ["RUNNING"] * 50, "completeness": [2] * 50, "observed_at": [T0] * 50}))
        at = T0 + timedelta(minutes=start)
        tx.append("queue", pa.table({"cluster": ["c"], "observed_at": [at], "job_id": [1], "job_id_text": ["1"]}))
        tx.state["until"] = start + 50
"""


def test_killed_at_any_instant_the_lake_is_whole_and_the_next_run_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "lake"
    chance = random.Random(5)
    reached = 0
    for _ in range(8):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(chance.uniform(0.02, 0.6))
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        lake = Lake.open(path, create=True)
        until = lake.manifest.state.get("until", 0)
        rows = lake.read("jobs", ["job_id"])["job_id"].to_pylist()
        assert sorted(rows) == sorted(set(rows)), "a key stands twice"
        assert set(range(until)) <= set(rows), "committed rows are missing"
        assert len(rows) % 50 == 0, "half a transaction is visible"
        reached = max(reached, until)
    assert reached > 0
    with lake.transaction("next") as tx:
        tx.append("jobs", jobs(range(200000, 200001), 2))
    live = {f.path for f in lake.manifest.files} | set(lake.manifest.retired)
    on_disk = {p.relative_to(path).as_posix() for p in (path / "data").rglob("*.parquet")}
    assert on_disk <= live, "left-over files were not removed"


def test_damage_is_noticed(lake: Lake) -> None:
    with lake.transaction("t") as tx:
        tx.append("jobs", jobs(range(5), 2))
    file = lake.path / lake.manifest.files[0].path
    whole = file.read_bytes()
    file.write_bytes(whole[:-10])
    with pytest.raises(LakeDamaged, match="not what was written"):
        lake.read("jobs")
    file.unlink()
    with pytest.raises(LakeDamaged, match="missing"):
        lake.read("jobs")
    (lake.path / NAME).write_text("{")
    with pytest.raises(LakeDamaged, match="not a manifest"):
        Lake.open(lake.path)


def test_a_later_schema_is_refused(lake: Lake) -> None:
    with lake.transaction("t") as tx:
        tx.append("jobs", jobs(range(5), 2))
    raw = json.loads((lake.path / NAME).read_text())
    raw["schema_version"] = SCHEMA_VERSION + 1
    (lake.path / NAME).write_text(json.dumps(raw))
    with pytest.raises(LakeTooNew, match="update queuecast"):
        Lake.open(lake.path)


def test_an_older_lake_is_migrated_on_the_next_write(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a lake of version 0 would have been: a column with another name, one column fewer."""
    import pyarrow.parquet as pq

    with lake.transaction("t") as tx:
        tx.append("jobs", jobs(range(5), 2, "PENDING"))
    raw = json.loads((lake.path / NAME).read_text())
    file = lake.path / raw["files"][0]["path"]
    old = pq.read_table(file).rename_columns({"state": "job_state"}).drop_columns(["sluid"])
    pq.write_table(old, file)
    raw["files"][0]["bytes"], raw["schema_version"] = file.stat().st_size, SCHEMA_VERSION - 1
    (lake.path / NAME).write_text(json.dumps(raw))
    with pytest.raises(StoreError, match="no way is known"), Lake.open(lake.path).transaction("t"):
        pass
    monkeypatch.setattr(migrate, "STEPS", [migrate.Step(SCHEMA_VERSION - 1, {"jobs": {"job_state": "state"}})])
    fresh = Lake.open(lake.path)
    with fresh.transaction("t") as tx:
        tx.append("jobs", jobs(range(5, 6), 2))
    assert states(fresh) == {**dict.fromkeys(range(5), "PENDING"), 5: "RUNNING"}
    assert fresh.manifest.schema_version == SCHEMA_VERSION


def test_clear_replaces_everything(lake: Lake) -> None:
    with lake.transaction("t") as tx:
        tx.append("jobs", jobs(range(50), 2))
    with lake.transaction("rebuild") as tx:
        tx.clear()
        tx.append("jobs", jobs(range(3), 3, "COMPLETED"))
    assert states(lake) == dict.fromkeys(range(3), "COMPLETED")


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot make a lake"):
        Lake.open(tmp_path / "file" / "lake", create=True)
