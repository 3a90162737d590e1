"""What keeps a job, who is ahead, when what it needs comes free, and its story."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecast.answers.explaining.binding import binding
from queuecast.answers.explaining.history import spells
from queuecast.answers.explaining.queue import COLUMNS, Snapshot, ahead_of, dependencies
from queuecast.answers.explaining.release import release
from queuecast.answers.viewer import Viewer
from queuecast.policy.nodes import NodeShape
from queuecast.policy.request import Request
from queuecast.policy.tables import Limits, PartitionRule, Policy, QosRule
from queuecast.policy.usage import Usage, UsedJob

NOW = datetime(2026, 6, 10, 12, tzinfo=UTC)
NO_ROW: dict[str, Any] = dict.fromkeys(COLUMNS)


def row(job: int, state: str = "PENDING", **more: Any) -> dict[str, Any]:
    base = {
        "job_id": job, "job_id_text": str(job), "array_tasks": 1, "user": "ana", "account": "lab", "partition": "gpu", "qos": "normal",
        "state": state, "reason": "Priority" if state == "PENDING" else None, "submit": NOW - timedelta(hours=2),
        "eligible": NOW - timedelta(hours=2), "limit_s": 3600, "nodes": 1, "cpus": 1, "gpus": 1, "priority": 100,
        "start": NOW - timedelta(minutes=30) if state == "RUNNING" else None, "elapsed_s": 1800 if state == "RUNNING" else None,
    }  # fmt: skip
    return NO_ROW | base | more


def used(r: dict[str, Any]) -> UsedJob:
    return UsedJob(
        r["job_id"], r["user"], r["account"], frozenset({r["qos"]}), r["state"] == "RUNNING", 1, {"cpu": 1, "gres/gpu": r["gpus"]},
        frozenset({"n1"}) if r["state"] == "RUNNING" else frozenset(), 1800.0, r["partition"], r["job_id_text"],
    )  # fmt: skip


def policy(idle: int = 8, **limits: Any) -> Policy:
    rule: Any = dict.fromkeys(PartitionRule.__dataclass_fields__)
    rule |= {"name": "gpu", "state": "UP", "nodes": ("n1",), "is_default": True, "billing_weights": {}, "total_nodes": 1}
    flat: Any = {k: ({} if "tres" in k else None) for k in Limits.__dataclass_fields__}
    node = NodeShape(
        "n1", 64, None, {"a100": 8}, frozenset(), frozenset({"gpu"}), "MIXED", frozenset(), True, 0, None, {"a100": 8 - idle}, 1, None
    )
    qos = QosRule("normal", 0, frozenset(), None, frozenset(), 1.0, None, Limits(**(flat | limits)))
    return Policy("toy", NOW, {"gpu": PartitionRule(**rule)}, {"normal": qos}, (), (node,), (), {}, ())


def ask(p: Policy, rows: list[dict[str, Any]], gpus: int = 1, viewer: Viewer | None = None) -> Any:
    request = Request(partitions=("gpu",), gpus=gpus, user=rows[0]["user"], account="lab", qos="normal", limit_s=3600)
    usage = Usage(NOW, tuple(used(r) for r in rows))
    return binding(p, usage, Snapshot(NOW, tuple(rows)), rows[0], request, list, viewer or Viewer())


def test_a_limit_binds_before_the_place_in_line_and_says_what_comes_free() -> None:
    rows = [row(1, reason="QOSMaxGRESPerUser"), row(2, "RUNNING", gpus=4), row(3, priority=500, user="eve")]
    found = ask(policy(idle=4, max_tres_per_user={"gres/gpu": 4}), rows)
    assert [c.code for c in found.constraints] == ["QOSMaxGRESPerUser", "Priority"]
    first = found.constraints[0]
    assert (first.limit, first.used, first.asked) == (4, 4, 1)
    assert (first.release.amount, first.release.job) == (4, "2")
    assert first.release.latest == first.release.by_limit == NOW + timedelta(minutes=30)
    assert found.agreement == "same"


def test_another_ones_job_is_not_named() -> None:
    rows = [row(1, reason="QOSGrpGRES"), row(2, "RUNNING", gpus=4, user="eve")]
    p = policy(idle=4, grp_tres={"gres/gpu": 4})
    assert ask(p, rows).constraints[0].release.job == "2"
    assert ask(p, rows, viewer=Viewer("ana", sees_all=False)).constraints[0].release.job is None


@pytest.mark.parametrize(
    ("idle", "above", "code", "words"),
    [
        (2, False, "Resources", "largest block 2"),
        (2, True, "Priority", "1 waiting record stands above"),
        (8, True, "Priority", "free right now"),
        (8, False, "NextPass", "nothing keeps it"),
    ],
)
def test_without_a_limit_it_is_the_line_or_the_room(idle: int, above: bool, code: str, words: str) -> None:
    rows = [row(1, gpus=4), *([row(2, priority=900)] if above else [])]
    first = ask(policy(idle=idle), rows, gpus=4).constraints[0]
    assert first.code == code
    assert words in first.text


@pytest.mark.parametrize(
    ("more", "code", "standing"),
    [
        ({"priority": 0, "reason": "JobHeldUser"}, "JobHeldUser", "held"),
        ({"priority": 0, "reason": "JobHeldAdmin"}, "JobHeldAdmin", "held"),
        ({"dependency": "afterok:7(unfulfilled)", "reason": "Dependency"}, "Dependency", "waits"),
        ({"dependency": "afterok:7(failed)", "reason": "DependencyNeverSatisfied"}, "DependencyNeverSatisfied", "never"),
        ({"eligible": NOW + timedelta(hours=1), "reason": "BeginTime"}, "BeginTime", "waits"),
        ({"licenses": "ansys:1", "reason": "Licenses"}, "Licenses", "unchecked"),
    ],
)
def test_what_lies_in_the_job_itself(more: dict[str, Any], code: str, standing: str) -> None:
    first = ask(policy(), [row(1, **more)]).constraints[0]
    assert (first.code, first.standing) == (code, standing)


def test_a_request_that_no_limit_ever_allows_is_never() -> None:
    first = ask(policy(max_tres_per_job={"gres/gpu": 2}), [row(1, gpus=4, reason="Priority")], gpus=4)
    assert first.constraints[0].standing == "never"
    assert first.agreement == "kind" or (first.agreement == "differs" and "Slurm shows Priority" in first.explained)


def test_a_throttled_array() -> None:
    mine = row(5, reason="JobArrayTaskLimit", array_job_id=5, array_throttle=1, array_tasks=3)
    found = ask(policy(), [mine, row(6, "RUNNING", array_job_id=5)])
    assert (found.constraints[0].code, found.agreement) == ("JobArrayTaskLimit", "same")


def test_ahead_counts_by_account_and_leaves_out_what_is_held_or_limited() -> None:
    mine = row(1)
    rows = (
        mine, row(2, priority=200, account="bio", gpus=4, array_tasks=3, limit_s=7200), row(3, priority=300, reason="QOSGrpGRES"),
        row(4, priority=0, reason="JobHeldUser"), row(5, priority=50), row(6, priority=400, partition="cpu"),
        row(7, priority=100, submit=NOW - timedelta(hours=9), gpus=None),
    )  # fmt: skip
    found = ahead_of(Snapshot(NOW, rows), policy(), mine)
    assert found is not None
    assert {(a.account, a.jobs, a.tasks, a.gpus, a.gpu_hours) for a in found.shared} == {("bio", 1, 3, 12, 24.0), ("lab", 1, 1, None, None)}
    assert (found.limited, found.elsewhere, found.total.gpus) == (1, 1, None)
    assert ahead_of(Snapshot(NOW, rows), policy(), row(9, priority=None)) is None


def test_dependencies_by_state() -> None:
    rows = (row(7, "RUNNING"), row(8))
    assert dependencies(Snapshot(NOW, rows), "afterok:7(unfulfilled):8,afterany:9") == (1, 1, 1)
    assert dependencies(Snapshot(NOW, rows), "singleton") == (0, 0, 0)


@given(st.lists(st.tuples(st.integers(1, 8), st.integers(60, 86400), st.floats(0, 1)), min_size=1, max_size=12), st.integers(1, 40))
def test_a_release_is_ordered_and_enough(jobs: list[tuple[int, int, float]], need: int) -> None:
    rows = [row(i, "RUNNING", gpus=g, limit_s=limit, elapsed_s=int(limit * ran)) for i, (g, limit, ran) in enumerate(jobs)]
    shares: list[tuple[str | None, str | None, float]] = [("ana", "gpu", i / 40) for i in range(41)]
    found = release(rows, lambda r: r["gpus"], "gres/gpu", need, NOW, shares, Viewer())
    assert (found is None) == (sum(g for g, _l, _r in jobs) < need)
    if found is not None:
        assert found.amount >= need
        assert found.earliest is not None
        assert found.latest is not None
        assert found.by_limit is not None
        second = timedelta(seconds=1)
        assert NOW - second <= found.earliest <= found.latest + second
        assert found.latest <= found.by_limit + second


def test_like_jobs_narrow_the_time_and_no_limit_leaves_it_open() -> None:
    shares: list[tuple[str | None, str | None, float]] = [("ana", "gpu", 0.6 + i / 1000) for i in range(40)]
    found = release([row(1, "RUNNING")], lambda r: 1, "jobs", 1, NOW, shares, Viewer())
    assert found is not None
    assert found.latest is not None
    assert found.by_limit is not None
    assert found.like == 40
    assert found.latest < found.by_limit
    endless = release([row(1, "RUNNING", limit_s=None)], lambda r: 1, "jobs", 1, NOW, shares, Viewer())
    assert endless is not None
    assert endless.latest is None


def test_spells_join_what_follows_on_and_skip_unlooked_snapshots() -> None:
    seen = ["Priority", None, "Priority", "Resources"]
    rows = [{"observed_at": NOW + timedelta(minutes=i), "reason": r, "reason_text": r} for i, r in enumerate(seen)]
    assert [(s.reason, s.snapshots) for s in spells(rows)] == [("Priority", 3), ("Resources", 1)]


def test_a_limit_with_room_is_not_taken_on_slurms_word() -> None:
    rows = [row(1, reason="QOSGrpGRES"), row(2, "RUNNING", gpus=2), row(3, priority=500)]
    found = ask(policy(idle=6, grp_tres={"gres/gpu": 4}), rows)
    assert [c.code for c in found.constraints] == ["Priority"]
    assert found.agreement == "differs"
    assert "that limit has room" in found.explained


@pytest.mark.parametrize("slurm", ["ReqNodeNotAvail", "Reservation"])
def test_a_reservation_that_is_not_known_here_is_left_to_slurms_word(slurm: str) -> None:
    found = ask(policy(), [row(1, reason=slurm)])
    assert [(c.code, c.standing) for c in found.constraints] == [(slurm, "unchecked")]
    assert found.agreement == "unchecked"


@pytest.mark.parametrize(("running", "code"), [(0, "NextPass"), (1, "NextPass"), (2, "JobArrayTaskLimit"), (3, "JobArrayTaskLimit")])
def test_a_throttle_is_counted_and_not_believed(running: int, code: str) -> None:
    mine = row(5, reason="JobArrayTaskLimit", array_job_id=5, array_throttle=2, array_task=9)
    tasks = [row(50 + i, "RUNNING", array_job_id=5) for i in range(running)]
    assert ask(policy(), [mine, *tasks]).constraints[0].code == code


@given(st.integers(0, 12), st.integers(1, 8), st.integers(1, 12))
def test_a_group_limit_binds_exactly_when_it_has_no_room(used_now: int, asked: int, limit: int) -> None:
    rows = [row(1, gpus=asked), *([row(2, "RUNNING", gpus=used_now)] if used_now else [])]
    first = ask(policy(idle=8, grp_tres={"gres/gpu": limit}), rows, gpus=asked).constraints[0]
    if asked > limit:
        assert first.standing == "never"
    else:
        assert (first.code == "QOSGrpGRES") == (used_now + asked > limit)
