"""The queue now: counts, reasons, idle GPUs, and whose names are shown."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from tests.unit.synthetic import NOW, job_rows, make_lake, table

from queuecast.answers.queue import _hold, queue_now
from queuecast.answers.viewer import Viewer
from queuecast.store.lake import Lake


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return make_lake(tmp_path_factory.mktemp("toy") / "lake", job_rows())


def test_counts_agree_with_the_snapshot(lake: Lake) -> None:
    rows = job_rows()
    pending = [r for r in rows if r["state"] == "PENDING"]
    answer = queue_now(lake, "toy", NOW)
    assert len(answer.pending) == len(pending)
    assert answer.running == sum(r["state"] == "RUNNING" for r in rows)
    assert [(r.reason, r.jobs) for r in answer.reasons] == [("Priority", len(pending))]
    assert answer.reasons[0].gpus == sum(r["gpus_req"] for r in pending)


def test_drained_gpus_are_blocked_not_idle(lake: Lake) -> None:
    a100, v100 = queue_now(lake, "toy", NOW).gpus
    assert (a100.gpu_type, a100.total, a100.in_use, a100.idle, a100.blocked, a100.largest_block) == ("a100", 4, 1, 3, 0, 3)
    assert (v100.gpu_type, v100.idle, v100.blocked, v100.largest_block) == ("v100", 0, 4, 0)


def test_use_is_counted_from_jobs_where_nodes_do_not_tell(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake", job_rows(5))
    later = NOW + timedelta(minutes=5)
    node = {"cluster": "toy", "observed_at": later, "state": "MIXED", "gpu_type": "a100", "detail": 0}
    job = {"cluster": "toy", "observed_at": later, "state": "RUNNING", "array_tasks": 1, "array_tasks_exact": True}
    with lake.transaction("t") as tx:
        tx.append("nodes", table("nodes", [{**node, "node": "n1", "gpus": 4}, {**node, "node": "n2", "gpus": 4}]))
        tx.append("queue", table("queue", [{**job, "job_id": 1, "job_id_text": "1", "gpus": 5, "node_list": "n[1-2]"}]))
    stock = queue_now(lake, "toy", later).gpus[0]
    assert (stock.total, stock.in_use, stock.idle, stock.largest_block) == (8, 5, 3, 2)


def test_unknown_use_stays_unknown(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake", job_rows(5))
    later = NOW + timedelta(minutes=5)
    with lake.transaction("t") as tx:
        tx.append(
            "nodes", table("nodes", [{"cluster": "toy", "observed_at": later, "node": "n1", "state": "MIXED", "gpus": 4, "detail": 0}])
        )
        tx.append(
            "queue",
            table(
                "queue",
                [
                    {
                        "cluster": "toy",
                        "observed_at": later,
                        "job_id": 1,
                        "job_id_text": "1",
                        "state": "RUNNING",
                        "array_tasks": 1,
                        "array_tasks_exact": True,
                        "node_list": "n1",
                    }
                ],
            ),
        )
    stock = queue_now(lake, "toy", later).gpus[0]
    assert (stock.in_use, stock.idle, stock.largest_block) == (None, None, None)


def test_other_peoples_names_are_hidden(lake: Lake) -> None:
    answer = queue_now(lake, "toy", NOW, Viewer("alice", sees_all=False))
    assert {p.user for p in answer.pending} <= {"alice", None}
    assert all(p.name is None for p in answer.pending if p.user is None)


def test_no_recent_snapshot(lake: Lake) -> None:
    answer = queue_now(lake, "toy", NOW + timedelta(days=30))
    assert answer.snapshot_at is None
    assert answer.pending == ()


def test_an_empty_queue_is_told_from_no_snapshot(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake", job_rows())
    later = NOW + timedelta(minutes=5)
    with lake.transaction("empty") as tx:
        tx.note_read("toy", "queue", later)
    now = queue_now(lake, "toy", later + timedelta(minutes=1))
    assert (now.snapshot_at, now.pending, now.running) == (later, (), 0)
    assert queue_now(lake, "toy", NOW).pending


def test_every_record_is_in_one_kind_of_hold(lake: Lake) -> None:
    answer = queue_now(lake, "toy", NOW)
    assert sum(h.jobs for h in answer.holds) == len(answer.pending)
    assert sum(h.tasks for h in answer.holds) == sum(p.tasks for p in answer.pending)
    for count in answer.holds:
        assert sum(p.hold == count.hold for p in answer.pending) == count.jobs
        assert 0 <= count.checked <= count.jobs


@pytest.mark.parametrize(
    ("reason", "priority", "rule", "read", "hold"),
    [
        ("Priority", 5, None, True, ("priority", False)),
        ("Priority", 0, None, True, ("held", False)),
        ("JobHeldUser", 5, ("limit", True), True, ("held", False)),
        ("Priority", 5, ("limit", True), True, ("limit", True)),
        ("Priority", 5, ("never", True), True, ("never", True)),
        ("Dependency", 5, ("limit", True), True, ("dependency", False)),
        ("DependencyNeverSatisfied", 5, None, True, ("never", False)),
        ("BeginTime", 5, None, True, ("time", False)),
        ("Reservation", 5, None, True, ("reservation", False)),
        ("Resources", 5, None, True, ("resources", False)),
        ("QOSMaxGRESPerUser", 5, None, False, ("limit", False)),
        ("QOSMaxGRESPerUser", 5, None, True, ("priority", False)),
        ("JobArrayTaskLimit", 5, None, True, ("limit", False)),
        ("None", 5, None, True, ("other", False)),
    ],
)
def test_what_hides_what(reason: str, priority: int, rule: tuple[str, bool] | None, read: bool, hold: tuple[str, bool]) -> None:
    job = {"reason": reason, "reason_text": None, "priority": priority}
    assert _hold(job, rule, read) == hold  # type: ignore[arg-type]  # the kinds are written as texts
