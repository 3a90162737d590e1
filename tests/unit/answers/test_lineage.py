"""The tree of attempts: requeues, parents by comment and by log, guesses that are marked and careful; nothing later than the moment."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.answers.retry_lake import GIB, SUBMIT, Row, job, make
from tests.unit.answers.test_retry import SCRIPT
from tests.unit.synthetic import NOW

from queuecast.answers.retries.lineage import Lineage, lineage
from queuecast.answers.retries.lineage_log import NAME, append, entries
from queuecast.answers.retries.lineage_mark import mark, marked, parent_of, same_cluster
from queuecast.answers.retries.retry import retry
from queuecast.answers.viewer import Viewer
from queuecast.errors import NotPermitted
from queuecast.render.lineage import lineage_lines
from queuecast.slurmtext.rewrite import option_words
from queuecast.slurmtext.script import parse_script

ALICE = Viewer("alice", sees_all=False)


def later(hours: float, number: int, state: str = "COMPLETED", **more: object) -> Row:
    at = SUBMIT + timedelta(hours=hours)
    return job(number, state, **{"submit": at, "start": at, "end": at + timedelta(minutes=10), "elapsed_s": 600, **more})


def tree(told: Lineage) -> list[tuple[str, int | None, str]]:
    return [(a.job, a.parent, a.link) for a in told.attempts]


def test_requeues_and_copies(tmp_path: Path) -> None:
    rows = [
        job(7, "PREEMPTED"), later(2.5, 7, "OUT_OF_MEMORY"),
        later(3, 9, "TIMEOUT", comment="x;queuecast:parent=toy/7", mem_req_bytes=6 * GIB),
        later(4, 10, comment="queuecast:parent=toy/9", limit_s=14400, gpus_alloc=2), later(4.1, 11, comment="queuecast:parent=toy/7"),
        later(4.2, 12, comment="queuecast:parent=other/7", name="else"),
    ]  # fmt: skip
    lake = make(tmp_path / "lake", rows)
    expected = [("7", None, "root"), ("7", 0, "requeue"), ("9", 1, "comment"), ("10", 2, "comment"), ("11", 1, "comment")]
    for asked in ("7", "9", "10", "11"):
        told = lineage(lake, "toy", asked, NOW, ALICE)
        assert tree(told) == expected
        assert told.asked == asked
    assert told.attempts[2].changed == (("memory", "4G", "6G"),)
    assert [a.failure_class for a in told.attempts] == ["preempted", "oom_host", "time_limit", None, None]
    assert told.attempts[3].gpu_hours == pytest.approx(2 * 600 / 3600)
    assert tree(lineage(lake, "toy", "12", NOW, ALICE)) == [("12", None, "root")]
    assert json.loads(json.dumps(told.as_json()))["attempts"][2]["changed"] == [{"option": "memory", "before": "4G", "after": "6G"}]
    lines = "\n".join(lineage_lines(told, 100, "UTC"))
    assert "└─ [requeued]  7" in lines
    assert "changed: memory 4G → 6G" in lines
    # as of a moment before, nothing later is known
    before = lineage(lake, "toy", "7", SUBMIT + timedelta(hours=2.6), ALICE)
    assert tree(before) == [("7", None, "root"), ("7", 0, "requeue")]
    assert before.attempts[1].states == {"RUNNING": 1}


def test_an_array_is_one_attempt(tmp_path: Path) -> None:
    tasks = [job(100 + n, "FAILED" if n < 2 else "COMPLETED", array_job_id=100, array_task=n, job_id_text=f"100_{n}") for n in range(5)]
    copy = [later(3, 200 + n, array_job_id=200, array_task=n, job_id_text=f"200_{n}", comment="queuecast:parent=toy/100") for n in range(2)]
    told = lineage(make(tmp_path / "lake", [*tasks, *copy]), "toy", "200_1", NOW, ALICE)
    assert tree(told) == [("100", None, "root"), ("200", 0, "comment")]
    assert (told.attempts[0].states, told.attempts[0].tasks) == ({"FAILED": 2, "COMPLETED": 3}, 5)
    assert told.attempts[0].core_hours == pytest.approx(5 * 4 * 2)


def test_guesses_are_careful(tmp_path: Path) -> None:
    rows = [
        job(7), later(3, 8),  # the same name and folder, after a failure: a guess
        later(3.5, 9),  # after one that completed: none
        later(3.6, 10, name="wrap"), later(3.7, 11, work_dir="/else"), later(3.8, 12, user="bob"),
        later(1, 13, end=SUBMIT + timedelta(hours=1.2)),  # while the first still ran
    ]  # fmt: skip
    lake = make(tmp_path / "lake", rows)
    told = lineage(lake, "toy", "8", NOW, ALICE)
    assert tree(told) == [("8", None, "root")] or tree(told) == [("7", None, "root"), ("8", 0, "guess")]
    only = lineage(make(tmp_path / "b", [r for r in rows if r["job_id"] != 13]), "toy", "7", NOW, ALICE)
    assert tree(only) == [("7", None, "root"), ("8", 0, "guess")]
    assert any("may be wrong" in n for n in only.notes)
    long_ago = job(7, submit=SUBMIT - timedelta(days=9), end=SUBMIT - timedelta(days=8))
    late = lineage(make(tmp_path / "c", [long_ago, later(1, 8)]), "toy", "8", NOW, ALICE)
    assert tree(late) == [("8", None, "root")]


def test_without_comments_the_log_tells(tmp_path: Path) -> None:
    lake = make(tmp_path / "lake", [job(7, "OUT_OF_MEMORY")], settings={"AccountingStoreFlags": "(null)"})
    answer = retry(lake, "toy", "7", NOW, ALICE, script_text=SCRIPT)
    assert answer.stored is False
    assert append(lake.path, answer, SUBMIT + timedelta(hours=3), "/home/alice/again.sh")
    rows = [job(7, "OUT_OF_MEMORY"), later(3.1, 8, name="else", submit_line="sbatch again.sh"), later(3.2, 9, name="unrelated")]
    other = make(tmp_path / "b", rows, settings={"AccountingStoreFlags": "(null)"})
    (other.path / NAME).write_bytes((lake.path / NAME).read_bytes())
    told = lineage(other, "toy", "8", NOW, ALICE)
    assert tree(told) == [("7", None, "root"), ("8", 0, "log")]
    assert any("AccountingStoreFlags" in n for n in told.notes)
    assert tree(lineage(other, "toy", "8", SUBMIT + timedelta(hours=3.15), ALICE))[1:] == [("8", 0, "log")]


def test_where_comments_are_kept_the_log_is_not_asked(tmp_path: Path) -> None:
    first = [job(7, "OUT_OF_MEMORY")]
    answer = retry(make(tmp_path / "lake", first), "toy", "7", NOW, ALICE, script_text=SCRIPT)
    child = later(3.1, 8, comment="queuecast:parent=toy/7", submit_line="sbatch retry.sh")
    rows = [*first, child, later(3.2, 9, "COMPLETED", submit_line="sbatch retry.sh")]
    for name, flags in (("kept", "job_comment"), ("unknown", None)):
        lake = make(tmp_path / name, rows, settings={"AccountingStoreFlags": flags})
        assert append(lake.path, answer, SUBMIT + timedelta(hours=3), "retry.sh")
        assert tree(lineage(lake, "toy", "7", NOW, ALICE)) == [("7", None, "root"), ("8", 0, "comment")]


def test_the_log_is_appended_to_line_by_line(tmp_path: Path) -> None:
    lake = make(tmp_path / "lake", [job(7, "OUT_OF_MEMORY", name="n" * 3000 + "\n\x1b")])
    answer = retry(lake, "toy", "7", NOW, ALICE, script_text=SCRIPT)
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda i: append(lake.path, replace(answer, job=str(i + 1)), NOW, None), range(64)))
    with (lake.path / NAME).open("ab") as file:
        file.write(b'{"half": \n[1]\n\xff\xfe\n{"at": "x"}\n{"at": "2026-05-01T00:00:00", "cluster": "toy", "parent": "1"}\n')
    found = entries(lake.path, "toy", NOW)
    assert sorted(int(e.parent) for e in found) == list(range(1, 65))
    assert entries(lake.path, "toy", NOW - timedelta(seconds=1)) == []
    assert entries(lake.path, "other", NOW) == []
    assert not append(tmp_path / "nowhere", answer, NOW, None)


def test_others_may_not_look(tmp_path: Path) -> None:
    lake = make(tmp_path / "lake", [job(7, user="bob"), job(8)])
    with pytest.raises(NotPermitted):
        lineage(lake, "toy", "7", NOW, ALICE)
    assert lineage(lake, "toy", "7", NOW, Viewer("alice", sees_all=True)).attempts


@given(st.text(), st.text(min_size=1, max_size=80), st.integers(1, 10**9), st.integers(0, 10**6) | st.none())
def test_a_marked_comment_names_its_parent_and_stands_in_one_line(comment: str, cluster: str, number: int, task: int | None) -> None:
    name = str(number) if task is None else f"{number}_{task}"
    made = marked(comment, cluster, name)
    found = parent_of(made)
    assert found is not None
    assert found[1] == name
    assert same_cluster(found[0], cluster)
    assert len(made) <= 1024
    assert marked(made, cluster, name) == made
    assert made.count("queuecast:parent=") <= comment.count("queuecast:parent=") + 1
    assert parse_script(f"#!/bin/sh\n#SBATCH {option_words('comment', made)}\n").options == {"comment": made}


@given(st.text())
def test_any_comment_is_read(comment: str) -> None:
    found = parent_of(comment)
    assert found is None or mark(*found) in comment
