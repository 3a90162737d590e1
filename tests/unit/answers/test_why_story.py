"""The whole answer from a made lake: the story over attempts and snapshots, priority, what cannot be known, privacy."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.unit.synthetic import NOW, make_lake, table

from queuecast.answers.explaining.explain import WhyAnswer, one_cluster, why
from queuecast.answers.explaining.queue import ahead_of, snapshot_at, with_throttle
from queuecast.answers.lookup import find_job
from queuecast.answers.viewer import Viewer
from queuecast.errors import NoDataError, NotPermitted, UsageError
from queuecast.policy.tables import policy_at
from queuecast.store.lake import Lake

H = timedelta(hours=1)
SUBMIT = NOW - 10 * H
MINE = 71


def job(number: int, **more: Any) -> dict[str, Any]:
    base = {
        "cluster": "toy", "job_id": number, "job_id_text": str(number), "array_tasks": 1, "array_tasks_exact": True, "name": "train",
        "user": "alice", "account": "vision", "partition": "gpu", "qos": "normal", "state": "PENDING", "submit": SUBMIT, "eligible": SUBMIT,
        "limit_s": 3600, "limit_kind": "limit", "nodes_req": 1, "cpus_req": 8, "gpus_req": 4, "gpu_type_req": "a100", "completeness": 1,
        "source": "sacct", "observed_at": NOW, "start": None, "end": None,
    }  # fmt: skip
    return base | more


def waits(number: int, at: datetime, reason: str = "Priority", **more: Any) -> dict[str, Any]:
    base = {
        "cluster": "toy", "observed_at": at, "job_id": number, "job_id_text": str(number), "array_tasks": 1, "array_tasks_exact": True,
        "user": "alice", "account": "vision", "partition": "gpu", "qos": "normal", "state": "PENDING", "reason": reason,
        "reason_text": reason, "submit": SUBMIT, "eligible": SUBMIT, "limit_s": 3600, "nodes": 1, "cpus": 8, "gpus": 4, "gpu_type": "a100",
        "priority": 100,
    }  # fmt: skip
    return base | more


def estimate(number: int, at: datetime, start: datetime, text: str = "", tasks: int = 1) -> dict[str, Any]:
    return {
        "cluster": "toy", "observed_at": at, "job_id": number, "job_id_text": text or str(number), "array_tasks": tasks,
        "partition": "gpu", "state": "PENDING", "start_estimate": start,
    }  # fmt: skip


def lake_with(path: Path, jobs: list[dict[str, Any]], queue: list[dict[str, Any]], **tables: list[dict[str, Any]]) -> Lake:
    lake = make_lake(path / "lake", [*jobs, job(1, state="COMPLETED", start=SUBMIT, end=SUBMIT + H, completeness=3)])
    with lake.transaction("more") as tx:
        for name, rows in {"queue": queue, **tables}.items():
            if rows:
                tx.append(name, table(name, rows))
    return lake.refresh()


def story(answer: WhyAnswer) -> list[tuple[str, float, bool]]:
    return [(e.kind, (e.at - SUBMIT) / H, e.exact) for e in answer.events]


def test_a_change_between_two_snapshots_lies_between_two_times(tmp_path: Path) -> None:
    seen = [("Priority", 1.0), ("Priority", 2.0), ("Resources", 3.0)]
    lake = lake_with(tmp_path, [job(MINE)], [waits(MINE, SUBMIT + h * H, r) for r, h in seen])
    answer = why(lake, "toy", str(MINE), SUBMIT + 3 * H)
    assert story(answer) == [("submitted", 0, True), ("eligible", 0, True), ("reason", 1, False), ("reason", 3, False)]
    first, second = (e for e in answer.events if e.kind == "reason")
    assert (first.after, first.until) == (None, SUBMIT + 2 * H)
    assert (second.after, second.until) == (SUBMIT + 2 * H, SUBMIT + 3 * H)
    assert [(s.reason, s.snapshots) for s in answer.history] == [("Priority", 2), ("Resources", 1)]


def test_nothing_later_than_the_moment_is_told(tmp_path: Path) -> None:
    rows = [waits(MINE, SUBMIT + h * H, r) for h, r in ((1.0, "Priority"), (4.0, "Resources"))]
    lake = lake_with(tmp_path, [job(MINE, start=SUBMIT + 5 * H, state="RUNNING", completeness=2)], rows,
                     estimates=[estimate(MINE, SUBMIT + 4 * H, SUBMIT + 6 * H)])  # fmt: skip
    answer = why(lake, "toy", str(MINE), SUBMIT + 2 * H)
    assert answer.pending
    assert all(e.at <= SUBMIT + 2 * H for e in answer.events)
    assert answer.snapshot_at == SUBMIT + H
    assert not [e for e in answer.events if e.kind in ("started", "estimate")]


def test_a_requeue_is_told_with_its_cause(tmp_path: Path) -> None:
    first = job(MINE, start=SUBMIT + H, end=SUBMIT + 2 * H, state="PREEMPTED", completeness=3)
    second = job(MINE, submit=SUBMIT + 2 * H, eligible=SUBMIT + 2.5 * H)
    lake = lake_with(tmp_path, [first, second], [waits(MINE, SUBMIT + 3 * H, submit=SUBMIT + 2 * H)])
    answer = why(lake, "toy", str(MINE), SUBMIT + 3 * H)
    kinds = [k for k, _at, _exact in story(answer)]
    assert kinds == ["submitted", "eligible", "started", "requeued", "submitted", "eligible", "reason"]
    assert "preempted" in next(e for e in answer.events if e.kind == "requeued").text
    assert len(answer.history) == 1  # of this attempt alone


def test_only_estimates_that_moved_are_told_and_they_carry_the_time(tmp_path: Path) -> None:
    told = [(1, 5.0), (2, 5.05), (3, 8.0)]
    lake = lake_with(tmp_path, [job(MINE)], [waits(MINE, SUBMIT + 3 * H)],
                     estimates=[estimate(MINE, SUBMIT + a * H, SUBMIT + b * H) for a, b in told])  # fmt: skip
    found = [e for e in why(lake, "toy", str(MINE), SUBMIT + 3 * H).events if e.kind == "estimate"]
    assert [(e.at, e.after, e.value) for e in found] == [
        (SUBMIT + H, None, SUBMIT + 5 * H),
        (SUBMIT + 3 * H, SUBMIT + 2 * H, SUBMIT + 8 * H),
    ]


def test_waiting_tasks_of_an_array_are_found_by_their_text(tmp_path: Path) -> None:
    """squeue shows waiting tasks under the array's number; accounting gives each one of its own when it starts."""
    task = job(90, job_id_text="80_2", array_job_id=80, array_task=2, start=SUBMIT + 5 * H, state="RUNNING", completeness=2)
    other = job(89, job_id_text="80_1", array_job_id=80, array_task=1, start=SUBMIT + 1.5 * H, state="RUNNING", completeness=2)
    many = {"array_job_id": 80, "user": "alice"}
    queue = [
        waits(80, SUBMIT + H, "Priority", job_id_text="80_1", array_task=1, **many),
        waits(80, SUBMIT + H, "Priority", job_id_text="80_2", array_task=2, **many),
        waits(80, SUBMIT + 2 * H, "JobArrayTaskLimit", job_id_text="80_2", array_task=2, **many),
        waits(89, SUBMIT + 2 * H, "None", job_id_text="80_1", array_task=1, **many)
        | {"state": "RUNNING", "start": SUBMIT + 1.5 * H, "node_list": "g1", "elapsed_s": 1800},
    ]
    estimates = [estimate(80, SUBMIT + 1.9 * H, SUBMIT + 4 * H, "80_[2-3%1]", 2)]
    lake = lake_with(tmp_path, [task, other], queue, estimates=estimates)
    answer = why(lake, "toy", "80_2", SUBMIT + 2 * H)
    assert answer.binding is not None
    first = answer.binding.constraints[0]
    assert (first.code, first.limit, first.used, answer.binding.agreement) == ("JobArrayTaskLimit", 1, 1, "same")
    assert [k for k, _at, _exact in story(answer) if k != "eligible"] == ["submitted", "reason", "estimate", "reason"]
    started = why(lake, "toy", "80_1", SUBMIT + 2 * H)
    assert not started.pending
    assert not [e for e in started.events if e.kind == "estimate"]  # of the tasks that still wait, not of this one


@pytest.mark.parametrize(
    ("line", "limit"), [("sbatch --array=0-9%3 job.sh", 3), ("sbatch -a 1,4,7%2 x", 2), ("sbatch --array=0-9 x", None)]
)
def test_the_throttle_is_read_off_the_command_line_if_need_be(tmp_path: Path, line: str, limit: int | None) -> None:
    row = waits(80, SUBMIT + H, job_id_text="80_2", array_job_id=80, array_task=2)
    lake = lake_with(tmp_path, [job(80, job_id_text="80_[0-9]", array_job_id=80, array_tasks=10, submit_line=line)], [row])
    found = with_throttle(lake, "toy", snapshot_at(lake, "toy", SUBMIT + H).rows[0], SUBMIT + H)
    assert found["array_throttle"] == limit


def _settings(at: datetime, **values: str) -> list[dict[str, Any]]:
    return [{"cluster": "toy", "observed_at": at, "section": "config", "key": k, "value": v} for k, v in values.items()]


def test_priority_says_what_moves_it(tmp_path: Path) -> None:
    at = SUBMIT + H
    parts = {"cluster": "toy", "observed_at": at, "job_id": MINE, "partition": "gpu", "priority": 3500, "age": 100, "fairshare": 3400}
    weights = {"PriorityWeightAge": "1000", "PriorityWeightFairShare": "10000", "PriorityMaxAge": "1-00:00:00"}
    settings = _settings(at, PriorityDecayHalfLife="7-00:00:00", **weights)
    lake = lake_with(tmp_path, [job(MINE)], [waits(MINE, at)], priorities=[parts], settings=settings)
    found = why(lake, "toy", str(MINE), at).priority
    assert found is not None
    assert [(p.name, p.points, p.most) for p in found.parts] == [("fairshare", 3400, 10000), ("age", 100, 1000)]
    assert "Age adds 250 in 6 h" in found.outlook[0]  # 1000 points over 24 h
    assert "7 days" in found.outlook[1]
    assert "sshare" in found.outlook[2]  # the share itself is not known, and that is said
    assert why(lake, "toy", str(MINE), at + 4 * H).priority is None  # too old to speak of now


def test_what_cannot_be_known_is_said(tmp_path: Path) -> None:
    lake = lake_with(tmp_path, [job(MINE)], [])
    answer = why(lake, "toy", str(MINE), SUBMIT + H)
    assert answer.binding is None
    assert any("queuecast collect" in text for text in answer.unknown)
    assert any("after the moment asked about" in text for text in answer.unknown)
    later = lake_with(tmp_path / "b", [job(MINE)], [waits(MINE, SUBMIT + H)])
    assert any("4 h old" in text for text in why(later, "toy", str(MINE), SUBMIT + 5 * H).unknown)


@pytest.mark.parametrize(("users", "hidden"), [(("alice",), True), (("alice", "bob"), False)])
def test_jobs_hidden_by_private_data_make_all_sums_too_small(tmp_path: Path, users: tuple[str, ...], hidden: bool) -> None:
    at = SUBMIT + H
    queue = [waits(MINE + i, at, user=user) for i, user in enumerate(users)]
    lake = lake_with(tmp_path, [job(MINE)], queue, settings=_settings(at, PrivateData="jobs,usage"))
    assert any("operator" in text for text in why(lake, "toy", str(MINE), at).unknown) == hidden


def test_accounts_are_named_only_to_those_who_see_all(tmp_path: Path) -> None:
    at = SUBMIT + H
    queue = [
        waits(MINE, at),
        waits(5, at, user="carol", account="bio", priority=900),
        waits(6, at, user="bob", account="nlp", priority=800),
    ]
    lake = lake_with(tmp_path, [job(MINE)], queue)
    everyone = why(lake, "toy", str(MINE), at).binding
    own = why(lake, "toy", str(MINE), at, Viewer("alice", sees_all=False))
    assert everyone is not None
    assert everyone.ahead is not None
    assert own.binding is not None
    assert own.binding.ahead is not None
    assert {a.account for a in everyone.ahead.shared} == {"bio", "nlp"}
    assert [(a.account, a.jobs, a.gpus, a.gpu_hours) for a in own.binding.ahead.shared] == [(None, 2, 8, 8.0)]
    plain = json.dumps(own.as_json())
    assert not [word for word in ("bio", "nlp", "carol", "bob") if word in plain]
    with pytest.raises(NotPermitted):
        why(lake, "toy", str(MINE), at, Viewer("bob", sees_all=False))


def test_jobs_that_could_only_take_other_nodes_are_not_ahead(tmp_path: Path) -> None:
    at = SUBMIT + H
    queue = [waits(MINE, at), waits(5, at, priority=900, gpu_type="v100"), waits(6, at, priority=800, gpu_type=None)]
    lake = lake_with(tmp_path, [job(MINE)], queue)
    found = why(lake, "toy", str(MINE), at).binding
    assert found is not None
    assert found.ahead is not None
    assert (found.ahead.total.jobs, found.ahead.elsewhere) == (1, 1)


def test_json_is_plain_and_keeps_its_keys(tmp_path: Path) -> None:
    lake = lake_with(tmp_path, [job(MINE)], [waits(MINE, SUBMIT + H)])
    plain = json.loads(json.dumps(why(lake, "toy", str(MINE), SUBMIT + H).as_json()))
    assert {"job_id", "state", "pending", "reason", "history", "events", "binding", "priority", "unknown", "snapshot_at"} <= set(plain)
    assert plain["binding"]["constraints"][0]["title"]
    assert set(plain["history"][0]) == {"reason", "title", "first_seen", "last_seen", "snapshots"}


def test_a_job_that_ended_has_a_story_but_nothing_that_keeps_it(tmp_path: Path) -> None:
    lake = lake_with(tmp_path, [job(MINE, start=SUBMIT + H, end=SUBMIT + 2 * H, state="FAILED", completeness=3)], [])
    answer = why(lake, "toy", str(MINE), NOW)
    assert (answer.pending, answer.binding, answer.unknown) == (False, None, ())
    assert [k for k, _at, _exact in story(answer)] == ["submitted", "eligible", "started", "ended"]


def test_the_cluster_meant(tmp_path: Path) -> None:
    lake = lake_with(tmp_path, [job(MINE)], [])
    assert one_cluster(lake, None) == one_cluster(lake, "TOY") == "toy"
    with pytest.raises(UsageError, match="not in this lake"):
        one_cluster(lake, "other")
    with pytest.raises(UsageError, match="empty"):
        one_cluster(Lake.open(tmp_path / "new", create=True), None)


def test_of_tasks_of_one_array_the_lower_number_is_ahead(tmp_path: Path) -> None:
    at = SUBMIT + H
    queue = [waits(80, at, job_id_text=f"80_{n}", array_job_id=80, array_task=n) for n in (1, 2, 3)]
    lake = lake_with(tmp_path, [job(80, job_id_text="80_[1-3]", array_job_id=80, array_tasks=3)], queue)
    snapshot, policy = snapshot_at(lake, "toy", at), policy_at(lake, "toy", at)
    found = [ahead_of(snapshot, policy, r) for r in sorted(snapshot.rows, key=lambda r: r["array_task"])]
    assert [a.total.jobs for a in found if a is not None] == [0, 1, 2]


def test_a_task_is_itself_and_not_its_array(tmp_path: Path) -> None:
    """Accounting keeps the waiting tasks' record beside those of the tasks that have begun, all submitted at one time."""
    many: dict[str, Any] = {"array_job_id": 80, "user": "alice"}
    jobs = [
        job(80, job_id_text="80_[3-9]", array_tasks=7, **many),
        job(81, job_id_text="80_1", array_task=1, start=SUBMIT + H, end=SUBMIT + 2 * H, state="COMPLETED", completeness=3, **many),
        job(82, job_id_text="80_2", array_task=2, start=SUBMIT + 2 * H, state="RUNNING", completeness=2, **many),
    ]
    queue = [
        waits(80, SUBMIT + 3 * H, job_id_text="80_[3-9]", array_tasks=7, **many),
        waits(82, SUBMIT + 3 * H, job_id_text="80_2", array_task=2, **many) | {"state": "RUNNING", "start": SUBMIT + 2 * H},
    ]
    lake = lake_with(tmp_path, jobs, queue)
    at = SUBMIT + 4 * H
    told = {t: find_job(lake, "toy", t, at) for t in ("80_1", "80_2", "80_5", "80")}
    assert {t: j.text for t, j in told.items()} == {"80_1": "80_1", "80_2": "80_2", "80_5": "80_[3-9]", "80": "80_[3-9]"}
    assert (told["80_2"].state, told["80_2"].array_tasks, told["80_2"].end) == ("RUNNING", 1, None)
    assert told["80_1"].end == SUBMIT + 2 * H
    early = find_job(lake, "toy", "80_2", SUBMIT + 1.5 * H)  # then it still waited
    assert (early.text, early.start) == ("80_2", None)
    assert snapshot_at(lake, "toy", at).row(90, "80_4") is not None  # under the record of its array


def test_only_the_time_of_the_job_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a job that ended months ago not all that came after."""
    ended = job(MINE, start=SUBMIT + H, end=SUBMIT + 2 * H, state="COMPLETED", completeness=3)
    queue = [waits(MINE, SUBMIT + 0.5 * H), *(waits(5, SUBMIT + d * 24 * H) for d in range(1, 200, 20))]
    lake = lake_with(tmp_path, [ended], queue)
    seen: list[tuple[str, Any, Any]] = []
    plain = Lake.read

    def read(self: Lake, name: str, columns: Any = None, **more: Any) -> Any:
        seen.append((name, more.get("since"), more.get("until")))
        return plain(self, name, columns, **more)

    monkeypatch.setattr(Lake, "read", read)
    at = SUBMIT + 210 * 24 * H
    answer = why(lake, "toy", str(MINE), at)
    assert [k for k, _at, _exact in story(answer)] == ["submitted", "eligible", "reason", "started", "ended"]
    spans = {n: (s, u) for n, s, u in seen if n in ("queue", "estimates") and s is not None and s <= SUBMIT}
    assert spans["queue"][1] <= SUBMIT + 4 * H
    assert spans["estimates"][1] <= SUBMIT + 4 * H
    assert all(s is not None for n, s, _u in seen if n == "jobs")
    assert max((u - s).days for n, s, u in seen if n == "jobs") <= 62


def test_an_old_job_is_found_in_older_months(tmp_path: Path) -> None:
    lake = lake_with(tmp_path, [job(MINE, start=SUBMIT + H, end=SUBMIT + 2 * H, state="COMPLETED", completeness=3)], [])
    assert find_job(lake, "toy", str(MINE), SUBMIT + timedelta(days=400)).submit == SUBMIT
    with pytest.raises(NoDataError):
        find_job(lake, "toy", "999999", SUBMIT + timedelta(days=400))


def test_a_task_that_only_the_queue_lists_by_itself(tmp_path: Path) -> None:
    """Accounting has one record for all waiting tasks; squeue lists those that were parted from it."""
    many: dict[str, Any] = {"array_job_id": 80, "user": "alice"}
    at = SUBMIT + H
    queue = [waits(80, at, job_id_text=f"80_{n}", array_task=n, **many) for n in (2, 3)]
    lake = lake_with(tmp_path, [job(80, job_id_text="80_[2-3]", array_tasks=2, **many)], queue)
    found = find_job(lake, "toy", "80_3", at)
    assert (found.text, found.array_tasks, found.request.array_tasks, found.request.gpus) == ("80_3", 1, 1, 4)
    for text in ("80_3", "80"):
        answer = why(lake, "toy", text, at)
        assert answer.binding is not None, text
        assert answer.unknown == why(lake, "toy", "80_2", at).unknown
    assert [k for k, _at, _exact in story(why(lake, "toy", "80_3", at))] == ["submitted", "eligible", "reason"]
    queue[1] |= {"observed_at": at + H, "state": "RUNNING", "job_id": 83, "start": at}
    lake = lake_with(tmp_path / "b", [job(80, job_id_text="80_[2-3]", array_tasks=2, observed_at=SUBMIT, **many)], queue)
    began = find_job(lake, "toy", "80_3", at + H)
    assert (began.job_id, began.state, began.start) == (83, "RUNNING", at)
