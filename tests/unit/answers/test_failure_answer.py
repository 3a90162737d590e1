"""The whole answer from a made lake: the attempt meant, evidence, whose turn, steps, logs, privacy, and the table of many."""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.unit.synthetic import NOW, make_lake, table

from queuecast.answers.failures.classes import failure_classes
from queuecast.answers.failures.failure import FailureAnswer, classify_row, failure
from queuecast.answers.failures.table import failed_jobs, since_text
from queuecast.answers.viewer import Viewer
from queuecast.errors import NoDataError, NotPermitted, UsageError
from queuecast.reasons.failureclasses import CLASSES
from queuecast.render.failure import failure_lines, parsable, parsable_table, table_lines
from queuecast.store.lake import Lake

H = timedelta(hours=1)
SUBMIT = NOW - 10 * H
HOSTILE = "\x1b[31mname\u202e|\n=1+1"
ALICE = Viewer("alice", sees_all=False)


def job(number: int, **more: Any) -> dict[str, Any]:
    base = {
        "cluster": "toy", "job_id": number, "job_id_text": str(number), "array_tasks": 1, "array_tasks_exact": True, "name": HOSTILE,
        "user": "alice", "uid": os.getuid(), "account": "vision", "partition": "gpu", "qos": "normal", "state": "FAILED", "submit": SUBMIT,
        "eligible": SUBMIT, "start": SUBMIT + H, "end": SUBMIT + 2 * H, "elapsed_s": 3600, "limit_s": 7200, "limit_kind": "limit",
        "nodes_req": 1, "nodes_alloc": 1, "cpus_req": 8, "cpus_alloc": 8, "gpus_req": 1, "gpus_alloc": 1,
        "gpu_type_req": None, "mem_alloc_bytes": 16 * 2**30,
        "exit_code": 1, "exit_signal": 0, "node_list": "g1", "completeness": 3, "source": "sacct", "observed_at": NOW,
    }  # fmt: skip
    return base | more


def step(number: int, name: str, **more: Any) -> dict[str, Any]:
    base = {
        "cluster": "toy", "job_id": number, "job_id_text": f"{number}.{name}", "job_submit": SUBMIT, "step": name, "state": "FAILED",
        "exit_code": 1, "exit_signal": 0, "start": SUBMIT + H, "end": SUBMIT + 2 * H, "tasks": 1, "nodes": 1, "completeness": 3,
        "observed_at": NOW,
    }  # fmt: skip
    return base | more


def lake_of(path: Path, jobs: list[dict[str, Any]], **tables: list[dict[str, Any]]) -> Lake:
    lake = make_lake(path / "lake", jobs)
    with lake.transaction("more") as tx:
        for name, rows in tables.items():
            tx.append(name, table(name, rows))
    return lake.refresh()


def told(answer: FailureAnswer, source: str) -> list[str]:
    return [e.text for e in answer.evidence if e.source == source]


def files_row(number: int, folder: Path, out: str = "o-%j.log") -> dict[str, Any]:
    return {
        "cluster": "toy", "job_id": number, "job_submit": SUBMIT, "work_dir": str(folder), "std_out": str(folder / out), "observed_at": NOW,
    }  # fmt: skip


def written(path: Path, text: str, at: datetime) -> Path:
    path.write_text(text)
    os.utime(path, (at.timestamp(), at.timestamp()))
    return path


def test_the_log_that_the_jobs_row_names_is_read(tmp_path: Path) -> None:
    log = written(
        tmp_path / "o-5.log", "start\nTraceback (most recent call last):\nModuleNotFoundError: No module named 'x'\n", SUBMIT + 2 * H
    )
    lake = lake_of(tmp_path, [job(5)], job_files=[files_row(5, tmp_path)])
    answer = failure(lake, "toy", "5", NOW, ALICE)
    assert (answer.status, answer.failure_class, answer.turn) == ("failed", "environment", "user")
    (line,) = [e for e in answer.evidence if e.source == "log" and e.speaks_for == "environment"]
    assert (line.path, line.number, line.line) == (str(log), 3, "ModuleNotFoundError: No module named 'x'")
    assert any("pip install" in s for s in answer.steps)
    assert any("queuecast retry 5 > retry.sh" in s for s in answer.steps)
    without = failure(lake, "toy", "5", NOW, ALICE, logs=False)
    assert without.logs is None
    assert without.unknown[0].startswith("Logs were not")


def test_a_job_that_ends_in_the_second_of_its_submission_has_a_log_too(tmp_path: Path) -> None:
    written(tmp_path / "o-5.log", "bash: line 1: nope: command not found\n", SUBMIT)
    lake = lake_of(tmp_path, [job(5, start=SUBMIT, end=SUBMIT, elapsed_s=0)], job_files=[files_row(5, tmp_path)])
    answer = failure(lake, "toy", "5", NOW)
    assert answer.logs is not None
    assert [f.status for f in answer.logs.files] == ["read"]


def test_a_log_of_somebody_else_is_not_opened_even_if_the_row_names_it(tmp_path: Path) -> None:
    written(tmp_path / "o-5.log", "CUDA out of memory\n", SUBMIT + 2 * H)
    lake = lake_of(tmp_path, [job(5, uid=os.getuid() + 1)], job_files=[files_row(5, tmp_path)])
    answer = failure(lake, "toy", "5", NOW)
    assert answer.logs is not None
    assert [f.status for f in answer.logs.files] == ["not_owned"]
    assert answer.failure_class != "oom_gpu"
    named = failure(lake, "toy", "5", NOW, files=(str(tmp_path / "o-5.log"),))
    assert named.failure_class == "oom_gpu"


def test_others_jobs_are_not_told_and_their_logs_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = lake_of(tmp_path, [job(5, user="bob")], job_files=[files_row(5, tmp_path)])
    monkeypatch.setattr("queuecast.answers.failures.failure.read_job_logs", lambda *_: pytest.fail("a log was opened"))
    with pytest.raises(NotPermitted):
        failure(lake, "toy", "5", NOW, ALICE)
    with pytest.raises(NotPermitted):
        failure(lake, "toy", "5", NOW, Viewer(None, sees_all=False))


def test_jobs_not_known_and_bad_ids(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, [job(5)])
    with pytest.raises(NoDataError):
        failure(lake, "toy", "99", NOW)
    with pytest.raises(UsageError):
        failure(lake, "toy", "x", NOW)


def test_nothing_later_than_the_moment(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, [job(5)])
    assert failure(lake, "toy", "5", SUBMIT + 0.5 * H, logs=False).status == "pending"
    running = failure(lake, "toy", "5", SUBMIT + 1.5 * H, logs=False)
    assert (running.status, running.job.end, running.job.exit_code, running.job.state) == ("running", None, None, "RUNNING")
    assert failure(lake, "toy", "5", SUBMIT + 2 * H, logs=False).status == "failed"


def test_a_requeued_job_tells_of_the_attempt_before(tmp_path: Path) -> None:
    rows = [job(5, state="PREEMPTED", exit_code=0), job(5, submit=SUBMIT + 2 * H, state="PENDING", start=None, end=None, completeness=1)]
    answer = failure(lake_of(tmp_path, rows), "toy", "5", NOW, logs=False)
    assert (answer.failure_class, answer.turn, answer.again) == ("preempted", "nobody", True)
    assert answer.steps == ("Nothing: it is in the queue again. See when it starts: queuecast when 5",)
    done = [rows[0], job(5, submit=SUBMIT + 2 * H, state="COMPLETED", exit_code=0, start=SUBMIT + 3 * H, end=SUBMIT + 4 * H)]
    after = failure(lake_of(tmp_path / "b", done), "toy", "5", NOW, logs=False)
    assert (after.status, after.failure_class, after.job.earlier) == ("completed", None, ("PREEMPTED",))


def test_of_an_array_the_first_failed_task_is_told_of(tmp_path: Path) -> None:
    tasks = [
        job(
            50 + i, job_id_text=f"60_{i}", array_job_id=60, array_task=i, state=s, exit_code=int(s != "COMPLETED"), end=SUBMIT + (2 + i) * H
        )
        for i, s in enumerate(("COMPLETED", "FAILED", "COMPLETED", "TIMEOUT"))
    ]
    lake = lake_of(tmp_path, tasks)
    whole = failure(lake, "toy", "60", NOW, logs=False)
    assert (whole.job.text, whole.failed_tasks, whole.ended_tasks) == ("60_1", 2, 4)
    assert failure(lake, "toy", "60_3", NOW, logs=False).failure_class == "time_limit"
    assert failure(lake, "toy", "60_0", NOW, logs=False).status == "completed"


def test_a_completed_job_with_a_step_out_of_memory_is_partly_failed(tmp_path: Path) -> None:
    rows = [job(5, state="COMPLETED", exit_code=0), job(6, state="COMPLETED", exit_code=0)]
    steps = [step(5, "0", state="OUT_OF_MEMORY", exit_code=0, exit_signal=125), step(6, "0", state="COMPLETED", exit_code=0)]
    lake = lake_of(tmp_path, rows, steps=steps)
    answer = failure(lake, "toy", "5", NOW, logs=False)
    assert (answer.status, answer.failure_class) == ("partly", "oom_host")
    assert failure(lake, "toy", "6", NOW, logs=False).status == "completed"
    assert failure_classes(lake, "toy", SUBMIT, NOW)["job_id"].to_pylist() == [5]


def test_node_events_of_its_nodes_speak_and_others_do_not(tmp_path: Path) -> None:
    event = {
        "cluster": "toy",
        "node": "g1",
        "start": SUBMIT + 2 * H,
        "state": "DOWN*",
        "reason": "Not responding\x1b[2J",
        "observed_at": NOW,
    }
    near = failure(lake_of(tmp_path, [job(5, exit_code=0, exit_signal=9)], events=[event]), "toy", "5", NOW, logs=False)
    assert (near.failure_class, near.turn) == ("node", "site")
    assert any("--exclude=g1" in s for s in near.steps)
    other = lake_of(tmp_path / "b", [job(5, exit_code=0, exit_signal=9)], events=[event | {"node": "g2"}])
    assert failure(other, "toy", "5", NOW, logs=False).failure_class != "node"
    snapshot = {
        "cluster": "toy", "observed_at": SUBMIT + 2 * H, "node": "g1", "state": "DOWN", "state_flags": "NOT_RESPONDING", "detail": 1,
    }  # fmt: skip
    seen = lake_of(tmp_path / "c", [job(5, exit_code=0, exit_signal=9)], nodes=[snapshot])
    assert failure(seen, "toy", "5", NOW, logs=False).failure_class == "node"


def test_the_version_decides_how_an_exit_code_is_read(tmp_path: Path) -> None:
    def version(text: str) -> list[dict[str, Any]]:
        return [{"cluster": "toy", "observed_at": SUBMIT, "section": "config", "key": "SLURM_VERSION", "value": text}]

    old = lake_of(tmp_path, [job(5, exit_code=11)], settings=version("24.11.5"))
    new = lake_of(tmp_path / "b", [job(5, exit_code=11)], settings=version("25.11.1"))
    assert any("139" in t for t in told(failure(old, "toy", "5", NOW, logs=False), "exit"))
    assert not any("139" in t for t in told(failure(new, "toy", "5", NOW, logs=False), "exit"))


def test_json_is_plain_and_text_is_harmless(tmp_path: Path) -> None:
    written(tmp_path / "o-5.log", "\x1b[2J\x07Permission denied \u202e\n", SUBMIT + 2 * H)
    event = {"cluster": "toy", "node": "g1", "start": SUBMIT + 2 * H, "state": "DRAIN", "reason": "bad\x1b[2J", "observed_at": NOW}
    lake = lake_of(tmp_path, [job(5)], job_files=[files_row(5, tmp_path)], events=[event])
    answer = failure(lake, "toy", "5", NOW)
    plain = json.loads(json.dumps(answer.as_json()))
    assert plain["class"] == answer.failure_class
    assert set(plain["weights"]) == set(CLASSES)
    for width in (40, 100):
        text = "\n".join(failure_lines(answer, "UTC", width))
        assert not set(text) & set("\x1b\x07\u202e"), text
    assert parsable(answer).count("\n") == 1
    header, row = parsable(answer).split("\n")
    assert len(header.split("|")) == len(row.split("|"))


def many() -> list[dict[str, Any]]:
    return [
        job(1),
        job(2, state="TIMEOUT", exit_code=0, elapsed_s=7200, user="bob"),
        job(3, state="COMPLETED", exit_code=0),
        job(4, exit_code=127, elapsed_s=5, gpus_alloc=None),
        job(5, state="CANCELLED", exit_code=0, cancelled_by=os.getuid()),
        job(6, end=SUBMIT - 30 * H, start=SUBMIT - 31 * H, submit=SUBMIT - 32 * H),
        job(7, state="NODE_FAIL", user="bob", exit_code=1),
    ]


def test_the_table_counts_classes_and_respects_the_viewer(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, many())
    whole = failed_jobs(lake, "toy", SUBMIT - H, NOW, Viewer())
    assert {c.failure_class: c.jobs for c in whole.classes} == {
        "user_code": 1,
        "time_limit": 1,
        "environment": 1,
        "user_cancel": 1,
        "node": 1,
    }
    assert (whole.ended, len(whole.jobs), whole.own, len(whole.groups)) == (6, 5, False, 1)
    environment = next(c for c in whole.classes if c.failure_class == "environment")
    assert (environment.quick, environment.gpu_hours, environment.unknown_hours) == (1, None, 1)
    own = failed_jobs(lake, "toy", SUBMIT - H, NOW, ALICE)
    assert (own.own, own.ended, {j.job_id for j in own.jobs}, own.groups) == (True, 4, {"1", "4", "5"}, ())
    assert "bob" not in json.dumps(own.as_json())
    with pytest.raises(NotPermitted):
        failed_jobs(lake, "toy", SUBMIT - H, NOW, ALICE, user="bob")
    nobody = failed_jobs(lake, "toy", SUBMIT - H, NOW, Viewer(None, sees_all=False))
    assert (nobody.ended, nobody.jobs) == (0, ())
    text = "\n".join([*table_lines(whole, "UTC"), parsable_table(whole)])
    assert not set(text) & set("\x1b\u202e")


def test_table_and_single_answer_agree_without_logs(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, many(), steps=[step(1, "batch"), step(4, "batch", exit_code=127)])
    rows = failure_classes(lake, "toy", SUBMIT - H, NOW)
    for number, name, sure in zip(*(rows[c].to_pylist() for c in ("job_id", "class", "confidence")), strict=True):
        answer = failure(lake, "toy", str(number), NOW, logs=False)
        assert answer.failure_class == name
        assert answer.confidence == pytest.approx(sure)


def test_an_empty_table(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, [job(3, state="COMPLETED", exit_code=0)])
    assert failure_classes(lake, "toy", NOW - H, NOW).num_rows == 0
    assert failed_jobs(lake, "toy", NOW - H, NOW).jobs == ()


def test_one_row_alone_is_enough_for_a_class() -> None:
    assert classify_row(job(1, exit_code=127)).failure_class == "environment"
    assert classify_row({"state": None}).failure_class in CLASSES
    assert classify_row({}).failure_class in CLASSES


def test_since_counts_back_from_the_moment() -> None:
    assert since_text("7d", NOW, "UTC") == NOW - timedelta(days=7)
    assert since_text("2026-05-01", NOW, "UTC").isoformat() == "2026-05-01T00:00:00+00:00"
    with pytest.raises(UsageError):
        since_text("lately", NOW, "UTC")
