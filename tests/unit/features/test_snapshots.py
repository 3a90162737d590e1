"""Features from snapshots: the same as by plain loops, nothing from later, nan where a table is absent."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.features.snapshots_invented import BEGIN, HOUR, HOURS, Row, Rows, cut_at, invented, invented_cases
from tests.unit.features.snapshots_reference import reference
from tests.unit.synthetic import table

from queuecast.features.snapshots import COLUMNS, FEATURES, Snapshots, load_snapshots, pending_cases_of
from queuecast.features.snapshots_queue import REASON_CLASSES, reason_class
from queuecast.store.lake import Lake

NAMES = [f.name for f in FEATURES]
JOB_ONLY = ["queue_tasks", "queue_eligible_s", "queue_priority", "queue_priority_lead"]
JOB_ONLY += [n for n in NAMES if n.startswith(("estimate_", "sprio_"))]


def tables_of(rows: Rows) -> dict[str, pa.Table]:
    return {name: table(name, rows[name]).select(COLUMNS[name]) for name in rows}


def arguments(cases: list[Row]) -> dict[str, Any]:
    def numbers(name: str) -> np.ndarray:
        return np.array([np.nan if c[name] is None else c[name] for c in cases], np.float64)

    out: dict[str, Any] = {name: [c[name] for c in cases] for name in ("partition", "account", "user", "gpu_type")}
    out |= {name: numbers(name) for name in ("gpus", "cpus", "nodes", "limit_s")}
    asked = np.array([c["asked"].timestamp() for c in cases])
    return out | {"job_id": np.array([c["job_id"] for c in cases], np.int64), "array_job_id": None, "asked": asked}


def ask(snapshots: Snapshots, cases: list[Row]) -> np.ndarray:
    return snapshots.features(**arguments(cases))


def column(values: np.ndarray, name: str) -> np.ndarray:
    return values[:, NAMES.index(name)]


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_the_same_as_by_loops_over_rows(seed: int) -> None:
    rows = invented(seed)
    cases = invented_cases(rows, seed, 50)
    got = ask(Snapshots(tables_of(rows)), cases)
    for case, values in zip(cases, got, strict=True):
        wanted = reference(rows, case)
        assert not set(wanted) - set(NAMES)
        expected = np.array([wanted.get(name, np.nan) for name in NAMES], np.float32)
        close = np.isclose(values, expected, rtol=1e-5, atol=1e-4, equal_nan=True)
        assert close.all(), [(n, v, e) for n, v, e, c in zip(NAMES, values, expected, close, strict=True) if not c]


def test_the_invented_cluster_shows_every_feature() -> None:
    """A feature that is never known, or always the same, would make the comparison above worth nothing."""
    rows = invented(3)
    got = ask(Snapshots(tables_of(rows)), invented_cases(rows, 3, 400))
    for name in NAMES:
        values = column(got, name)
        assert len(np.unique(values[~np.isnan(values)])) > 1, name


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10_000), hours=st.integers(2, HOURS - 1))
def test_what_was_read_later_changes_nothing(seed: int, hours: int) -> None:
    rows = invented(seed)
    moment = BEGIN + hours * HOUR
    cases = [c | {"asked": min(c["asked"], moment)} for c in invented_cases(rows, seed, 50)]
    full, cut = Snapshots(tables_of(rows)), Snapshots(tables_of(cut_at(rows, moment)))
    assert np.array_equal(ask(full, cases), ask(cut, cases), equal_nan=True)


def test_one_at_a_time_is_the_same_as_all_at_once() -> None:
    rows = invented(5)
    cases = invented_cases(rows, 5, 40)
    snapshots = Snapshots(tables_of(rows))
    together = ask(snapshots, cases)
    assert np.array_equal(together, np.concatenate([ask(snapshots, [c]) for c in cases]), equal_nan=True)
    codes = arguments(cases)
    for name in ("partition", "account", "user", "gpu_type"):
        words = sorted({c[name] for c in cases if c[name]})
        codes[name] = (np.array([words.index(c[name]) if c[name] else -1 for c in cases]), words)
    assert np.array_equal(together, snapshots.features(**codes), equal_nan=True)


@pytest.mark.parametrize(
    ("absent", "prefixes"),
    [
        ("queue", ("queue_",)),
        ("priorities", ("sprio_",)),
        ("shares", ("share_",)),
        ("nodes", ("node_", "partition_gpus")),
        ("reservations", ("reservation_",)),
    ],
)
def test_a_table_that_is_not_there_is_unknown(absent: str, prefixes: tuple[str, ...]) -> None:
    rows = invented(7)
    cases = invented_cases(rows, 7, 80)
    tables = tables_of(rows)
    whole = ask(Snapshots(tables), cases)
    del tables[absent]
    got = ask(Snapshots(tables), cases)
    hit = np.array([n.startswith(prefixes) for n in NAMES])
    assert np.isnan(got[:, hit]).all()
    assert not np.isnan(whole[:, hit]).all(axis=0).any()


def test_without_any_table_all_is_unknown() -> None:
    got = ask(Snapshots({}), invented_cases(invented(1), 1, 10))
    assert got.shape == (10, len(FEATURES))
    assert got.dtype == np.float32
    assert np.isnan(got).all()
    assert ask(Snapshots(tables_of(invented(1))), []).shape == (0, len(FEATURES))


def test_readings_that_are_too_old_are_not_used() -> None:
    rows = invented(2)
    last = max(r["observed_at"] for r in rows["queue"])
    case = case_of(-1, last)
    snapshots = Snapshots(tables_of(rows))
    fresh, late, day = (ask(snapshots, [case | {"asked": last + timedelta(minutes=m)}]) for m in (119, 122, 26 * 60))
    assert column(fresh, "queue_age_s")[0] == 119 * 60
    assert np.isnan(column(late, "queue_age_s")).all()
    assert not np.isnan(column(late, "node_age_s")).any()
    assert np.isnan(column(day, "node_age_s")).all()
    assert not np.isnan(column(day, "reservation_next_h")).any()  # configuration holds until it is read anew


def pending(job_id: int, moment: Any, priority: int, **more: Any) -> Row:
    row = {"cluster": "toy", "observed_at": moment, "job_id": job_id, "job_id_text": str(job_id), "array_tasks": 1, "state": "PENDING"}
    row |= {"account": "bio", "user": "ann", "partition": "gpu", "gpus": 2, "cpus": 4, "nodes": 1, "limit_s": 3600, "reason": "Priority"}
    return row | {"priority": priority, "submit": BEGIN, "gpu_type": "a100"} | more


def case_of(job_id: int, asked: Any, **more: Any) -> Row:
    case = {"job_id": job_id, "asked": asked, "partition": "gpu", "account": "bio", "user": "ann", "gpus": 2.0, "gpu_type": "a100"}
    return case | {"cpus": 4.0, "nodes": 1.0, "limit_s": 3600.0} | more


def test_a_task_that_started_later_is_found_in_its_arrays_record() -> None:
    moment = BEGIN + HOUR
    compact = [pending(5, moment, 100, array_job_id=5, array_tasks=3), pending(9, moment, 50)]
    lines = [pending(5, moment, 100, array_job_id=5, array_task=i) for i in (0, 1, 2)] + [pending(9, moment, 50)]
    jobs = [
        {"cluster": "toy", "job_id": 77, "array_job_id": 5, "array_task": 1, "submit": BEGIN, "start": moment + 5 * HOUR},
        {"cluster": "toy", "job_id": 9, "submit": BEGIN},
    ]
    for queue in (compact, lines):
        got = ask(Snapshots(tables_of({"queue": queue, "jobs": jobs})), [case_of(77, moment), case_of(9, moment), case_of(78, moment)])
        assert column(got, "queue_priority").tolist()[:2] == [100, 50]
        assert np.isnan(column(got, "queue_priority")[2])
        assert column(got, "queue_tasks").tolist()[:2] == [3, 1]
        assert column(got, "queue_partition_jobs_above").tolist() == [0, 3, 3]  # an unknown job: behind the typical 75
        assert column(got, "queue_partition_gpu_hours_above")[1] == 6
        assert [REASON_CLASSES[int(c)] for c in column(got, "queue_reason")] == ["priority", "priority", "not seen"]


def test_a_snapshot_from_before_a_requeue_is_of_another_attempt() -> None:
    moment = BEGIN + HOUR
    jobs = [
        {"cluster": "toy", "job_id": 5, "submit": BEGIN, "start": moment + timedelta(minutes=5)},
        {"cluster": "toy", "job_id": 5, "submit": moment + timedelta(minutes=20)},
    ]
    snapshots = Snapshots(tables_of({"queue": [pending(5, moment, 100)], "jobs": jobs}))
    got = ask(snapshots, [case_of(5, moment + timedelta(minutes=m)) for m in (1, 30)])
    assert column(got, "queue_priority")[0] == 100
    assert np.isnan(column(got, "queue_priority")[1])
    assert REASON_CLASSES[int(column(got, "queue_reason")[1])] == "not seen"


def test_equal_priorities_stand_in_order_of_submission() -> None:
    moment = BEGIN + HOUR
    queue = [pending(1, moment, 100, submit=BEGIN + HOUR / 2), pending(2, moment, 100), pending(3, moment, 100), pending(4, moment, 200)]
    got = ask(Snapshots(tables_of({"queue": queue})), [case_of(i, moment) for i in (1, 2, 3, 4, -1)])
    assert column(got, "queue_cluster_jobs_above").tolist() == [3, 1, 2, 0, 4]
    assert column(got, "queue_rank_assumed").tolist() == [0, 0, 0, 0, 1]
    assert np.isnan(got[4][[NAMES.index(n) for n in JOB_ONLY]]).all()


def test_a_limited_job_ahead_does_not_compete() -> None:
    moment = BEGIN + HOUR
    queue = [pending(1, moment, 300, reason="QOSGrpGRES"), pending(2, moment, 200), pending(3, moment, 100)]
    got = ask(Snapshots(tables_of({"queue": queue})), [case_of(3, moment)])
    assert column(got, "queue_partition_jobs_above")[0] == 2
    assert column(got, "queue_partition_open_jobs_above")[0] == 1


@pytest.mark.parametrize(
    ("code", "text", "name"),
    [
        (None, None, "not looked at yet"),
        ("Priority", None, "priority"),
        ("Resources", None, "resources"),
        ("Resources", "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions", "node not available"),
        ("ReqNodeNotAvail", "ReqNodeNotAvail, UnavailableNodes:n[1-3]", "node not available"),
        ("QOSMaxGRESPerUser", None, "QOS limit"),
        ("AssocGrpCPUMinutesLimit", None, "association limit"),
        ("MaxJobsPerAccount", None, "QOS limit"),
        ("AssociationJobLimit", None, "association limit"),
        ("JobArrayTaskLimit", None, "array throttle"),
        ("Dependency", None, "dependency"),
        ("DependencyNeverSatisfied", None, "needs a change"),
        ("JobHeldAdmin", None, "held"),
        ("Reservation", None, "reservation"),
        ("PartitionDown", None, "node not available"),
        ("BeginTime", None, "begin time"),
        ("QOSMaxWallDurationPerJobLimit", None, "needs a change"),
        ("PartitionTimeLimit", None, "needs a change"),
        ("Licenses", None, "other"),
        ("SomethingNew", None, "other"),
    ],
)
def test_reasons_by_class(code: str | None, text: str | None, name: str) -> None:
    assert REASON_CLASSES[reason_class(code, text)] == name


def test_pending_cases_are_the_records_of_each_snapshot() -> None:
    rows = invented(4)
    snapshots = Snapshots(tables_of(rows))
    cases = pending_cases_of(snapshots)
    wanted = {(r["observed_at"].timestamp(), r["job_id"]) for r in rows["queue"] if r["state"] == "PENDING"}
    assert list(zip(cases.asked.tolist(), cases.job_id.tolist(), strict=True)) == sorted(wanted)
    assert cases.tasks.sum() == sum(r["array_tasks"] for r in rows["queue"] if r["state"] == "PENDING")
    assert not (cases.gpus == 99).any()  # squeue's guess gave way to what accounting has
    got = snapshots.features(**cases.request())
    assert len(got) == len(cases) > 100
    assert (column(got, "queue_age_s") == 0).all()
    assert (column(got, "queue_reason") == cases.reason).all()
    assert (column(got, "queue_tasks") == cases.tasks).all()
    later = pending_cases_of(snapshots, delay_s=60.0)
    assert (column(snapshots.features(**later.request()), "queue_age_s") == 60).all()


def test_loading_reads_as_far_back_as_is_needed(tmp_path: Path) -> None:
    """A short span loaded from a lake gives the same as everything at once."""
    rows = invented(6)
    rows["jobs"] = [job | {"completeness": 3, "source": "sacct"} for job in rows["jobs"]]
    lake = Lake.open(tmp_path / "lake", create=True)
    with lake.transaction("toy") as tx:
        for name in rows:
            tx.append(name, table(name, rows[name]))
    since, until = BEGIN + 34 * HOUR, BEGIN + 38 * HOUR
    cases = [c for c in invented_cases(rows, 6, 400) if since <= c["asked"] < until]
    assert len(cases) > 10
    got = ask(load_snapshots(lake, "toy", since, until), cases)
    assert np.array_equal(got, ask(Snapshots(tables_of(rows)), cases), equal_nan=True)
    assert np.isnan(ask(load_snapshots(lake, "elsewhere", since, until), cases)).all()


def test_features_are_declared_once_and_come_from_snapshots() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert {f.known_at for f in FEATURES} == {"snapshot"}
    assert all(f.topic and f.meaning for f in FEATURES)


def test_nothing_heavy_is_imported() -> None:
    code = "import sys, queuecast.features.snapshots; print([m for m in ('pandas', 'scipy', 'duckdb', 'sklearn') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
