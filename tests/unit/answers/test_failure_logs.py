"""Logs: where they lie, what is opened and what is not, cleaning, and many files as one by time."""

from __future__ import annotations

import gzip
import os
import re
import socket
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecast.answers.failures.joblogs import read_job_logs
from queuecast.answers.failures.logs import MOST_FILES, fill_pattern, find_logs
from queuecast.answers.failures.logs_merge import level_of, merge_logs, node_of_path, stamp_of
from queuecast.answers.failures.logs_read import HEAD_BYTES, LONGEST, TAIL_BYTES, Line, LogFile, clean, read_log
from queuecast.errors import UsageError

ME = os.getuid()
JOB: dict[str, Any] = {
    "job_id": 42,
    "array_job_id": None,
    "array_task": None,
    "name": "train",
    "user": "alice",
    "nodes": ("gpu01", "gpu02"),
}
TASK = JOB | {"job_id": 45, "array_job_id": 40, "array_task": 13}


@pytest.mark.parametrize(
    ("pattern", "job", "filled"),
    [
        ("slurm-%j.out", JOB, "slurm-42.out"),
        ("slurm-%A_%a.out", TASK, "slurm-40_13.out"),
        ("%x-%u-%4j.log", JOB, "train-alice-0042.log"),
        ("%A.log", JOB, "42.log"),
        ("%b", TASK, "3"),
        ("100%%-%j", JOB, "100%-42"),
        ("%99a", TASK, "0000000013"),
        (r"\%j", JOB, "%j"),
        ("%q-%j", JOB, "%q-42"),
        ("%N.%t", JOB, "%N.%t"),
        ("%", JOB, "%"),
    ],
)
def test_patterns_are_filled_in_as_slurm_does(pattern: str, job: dict[str, Any], filled: str) -> None:
    assert fill_pattern(pattern, job) == filled


def test_files_of_nodes_and_tasks_are_found_and_others_are_not(tmp_path: Path) -> None:
    for name in ("o-42-gpu01-0.log", "o-42-gpu02-1.log", "o-42-gpu03-1.log", "o-42-gpu01-x.log", "o-420-gpu01-0.log"):
        (tmp_path / name).write_text("x")
    found = find_logs(JOB, "o-%j-%N-%t.log", None, str(tmp_path))
    assert [os.path.basename(p) for p in found.paths] == ["o-42-gpu01-0.log", "o-42-gpu02-1.log"]
    assert found.missing == ()


def test_the_default_name_serves_where_none_is_told(tmp_path: Path) -> None:
    (tmp_path / "slurm-40_13.out").write_text("x")
    assert find_logs(TASK, None, None, str(tmp_path)).paths == (str(tmp_path / "slurm-40_13.out"),)
    assert find_logs(JOB, None, None, str(tmp_path)).missing == (str(tmp_path / "slurm-42.out"),)
    assert find_logs(JOB, None, None, None).paths == ()


def test_a_folder_with_signs_of_its_own_is_taken_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "100%j [a]*"
    folder.mkdir()
    (folder / "o-0.log").write_text("x")
    assert find_logs(JOB, "o-%t.log", None, str(folder)).paths == (str(folder / "o-0.log"),)
    assert find_logs(JOB, str(folder / "o-%t.log"), None, str(folder)).paths == (str(folder / "o-0.log"),)


def test_many_files_are_bounded(tmp_path: Path) -> None:
    for i in range(MOST_FILES + 9):
        (tmp_path / f"r{i}.log").write_text("x")
    found = find_logs(JOB, "r%t.log", None, str(tmp_path))
    assert (len(found.paths), found.more) == (MOST_FILES, 9)


@given(st.text(max_size=60), st.text(max_size=20), st.text(max_size=20))
def test_any_pattern_is_looked_up_without_harm(pattern: str, name: str, folder: str) -> None:
    job = JOB | {"name": name}
    if "%" not in pattern and "\\" not in pattern:
        assert fill_pattern(pattern, job) == pattern
    found = find_logs(job, pattern, None, "/nonexistent/" + folder)
    assert len(found.paths) <= MOST_FILES
    assert all(Path(path).exists() for path in found.paths)
    if pattern and not found.paths:
        assert found.missing


# ------------------------------------------------------------------------------------------------------ what is opened


def test_only_the_owners_plain_files_are_opened(tmp_path: Path) -> None:
    log = tmp_path / "a.out"
    log.write_text("one\ntwo\n")
    assert [line.text for line in read_log(str(log), ME).lines] == ["one", "two"]
    assert read_log(str(log), ME + 1).status == "not_owned"
    link = tmp_path / "link.out"
    link.symlink_to("/etc/passwd")
    assert read_log(str(link), 12345).status == "not_owned"
    assert read_log(str(link), 12345).lines == ()


def test_what_is_no_plain_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(tmp_path / "sock"))
        loop = tmp_path / "loop"
        loop.symlink_to(loop)
        for path in (tmp_path / "pipe", tmp_path / "sock", tmp_path, loop, Path("/dev/zero"), Path("/dev/null")):
            assert read_log(str(path), None).status == "not_a_file", path
    assert read_log(str(tmp_path / "none"), None).status == "missing"
    assert read_log(str(tmp_path / "pipe" / "below"), None).status == "missing"
    assert read_log("a\0b", None).status == "not_a_file"


def test_a_large_log_is_read_at_both_ends_only(tmp_path: Path) -> None:
    log = tmp_path / "big"
    with log.open("w") as file:
        file.write("first\n")
        file.writelines(f"line {i} {'x' * 200}\n" for i in range(20_000))
        file.write("last\n")
    got = read_log(str(log), ME)
    assert got.lines[0] == Line(1, len(got.lines) - 1, "first")
    assert got.lines[-1] == Line(None, 0, "last")
    assert sum(len(line.text) for line in got.lines) <= HEAD_BYTES + TAIL_BYTES
    assert got.gap_bytes == log.stat().st_size - HEAD_BYTES - TAIL_BYTES
    assert all(re.fullmatch(r"line \d+ x{200}|first|last", line.text) for line in got.lines)  # no line that was cut in two


def test_binary_empty_and_older_files_say_so(tmp_path: Path) -> None:
    cases = {"binary": gzip.compress(os.urandom(5000)), "empty": b""}
    for status, raw in cases.items():
        (tmp_path / status).write_bytes(raw)
        assert read_log(str(tmp_path / status), ME).status == status
    log = tmp_path / "old"
    log.write_text("of another job\n")
    os.utime(log, (1e9, 1e9))
    assert read_log(str(log), ME, datetime(2026, 5, 1, tzinfo=UTC)).status == "older"
    hole = tmp_path / "hole"
    hole.write_bytes(b"\0" * 4096 + b"after a truncation\n")
    assert read_log(str(hole), ME).status == "read"


def test_of_a_progress_bar_the_last_state_is_kept(tmp_path: Path) -> None:
    (tmp_path / "bar").write_bytes(b"  1%\r 50%\r100%\r\ndone\r\n")
    assert [line.text for line in read_log(str(tmp_path / "bar"), ME).lines] == ["100%", "done"]


def harmless(text: str) -> bool:
    return all(c.isprintable() for c in text) and not set(text) & set("\u202e\u2066\u200f") and len(text) <= LONGEST


@given(st.text())
def test_cleaned_text_is_one_harmless_line(text: str) -> None:
    assert harmless(clean(text))


def test_terminal_sequences_are_dropped_and_directions_shown() -> None:
    assert clean("\x1b[31mred\x1b[0m \x1b]0;title\x07end\x9b1m\u202egnp\tx") == "red end\\x9b1m\\u202egnp x"


@given(st.binary(max_size=3000))
@settings(max_examples=150, deadline=None)
def test_any_bytes_are_read_cleaned_and_looked_through(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.log"
    path.write_bytes(raw)
    row = {"end": datetime(2026, 5, 1, tzinfo=UTC), **JOB}
    got = read_job_logs(row, None, (), [str(path)], datetime(2026, 5, 2, tzinfo=UTC))
    assert all(harmless(line.text) for file in got.files for line in file.lines)
    assert all(harmless(f.line) for f in got.found)
    assert got.as_json()["files"][0]["status"] in ("read", "binary", "empty")


def test_too_many_named_files_are_refused() -> None:
    with pytest.raises(UsageError):
        read_job_logs({"end": None}, None, (), [f"f{i}" for i in range(MOST_FILES + 1)], datetime(2026, 5, 2, tzinfo=UTC))


def test_no_file_is_opened_if_its_owner_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "slurm-42.out").write_text("secret\n")
    row = JOB | {"uid": None, "user": "no-such-user-here", "end": datetime(2026, 5, 1, tzinfo=UTC), "start": None}
    got = read_job_logs(row, {"work_dir": str(tmp_path)}, (), (), datetime(2026, 5, 2, tzinfo=UTC))
    assert [f.status for f in got.files] == ["not_owned"]
    assert "secret" not in str(got.as_json())


# ---------------------------------------------------------------------------------------------------------- as one log


@pytest.mark.parametrize(
    ("line", "at"),
    [
        ("2026-05-20T12:00:01Z x", "2026-05-20T12:00:01+00:00"),
        ("[2026-05-20 12:00:01,250] INFO x", "2026-05-20T12:00:01.250000+00:00"),
        ("2026-05-20 14:00:01.5+02:00 x", "2026-05-20T12:00:01.500000+00:00"),
        ("2026/05/20 12:00:01 x", "2026-05-20T12:00:01+00:00"),
        ("May 20 12:00:01 gpu01 kernel: x", "2026-05-20T12:00:01+00:00"),
        ("E0520 12:00:01.000007 99 a.cc:1] x", "2026-05-20T12:00:01.000007+00:00"),
        ("gpu01:4242:4300 [0] 2026-05-20 12:00:01 NCCL INFO x", "2026-05-20T12:00:01+00:00"),
        ("2026-13-40 99:00:00 x", None),
        ("loss 0.3", None),
        ("0001-01-01 00:00:00+14:00", None),
    ],
)
def test_time_stamps(line: str, at: str | None) -> None:
    assert stamp_of(line, UTC, 2026) == (None if at is None else datetime.fromisoformat(at))


def test_stamps_without_a_zone_are_of_the_zone_given() -> None:
    assert stamp_of("2026-05-20 14:00:00 x", ZoneInfo("Europe/Paris")) == datetime(2026, 5, 20, 12, tzinfo=UTC)
    assert stamp_of("2026-05-20 14:00:00Z x", timezone(timedelta(hours=5))) == datetime(2026, 5, 20, 14, tzinfo=UTC)


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("[ERROR] x", "error"),
        ("WARNING: x", "warning"),
        ("I0520 12:00:01.0 1 a:1] x", "info"),
        ("2026-05-20 INFO x", "info"),
        ("terror x", None),
    ],
)
def test_levels(line: str, level: str | None) -> None:
    assert level_of(line) == level


def log_of(path: str, *texts: str) -> LogFile:
    return LogFile(path, "read", lines=tuple(Line(i + 1, len(texts) - 1 - i, t) for i, t in enumerate(texts)))


def test_files_are_merged_by_time_and_lines_without_stay_with_theirs() -> None:
    a = log_of("/l/train-gpu01.err", "2026-05-20 12:00:00 a1", "  more of a1", "2026-05-20 12:00:04 ERROR a2")
    b = log_of("/l/train-gpu02.err", "2026-05-20 12:00:01 b1", "gpu02:1:2 [3] NCCL WARN b2", "2026-05-20 11:59:00 the clock stepped back")
    plain = log_of("/l/rank3.txt", "[rank3]: no time here")
    merged = merge_logs([a, b, plain], nodes=("gpu01", "gpu02"))
    assert [(line.text.split()[-1], line.node) for line in merged.lines] == [
        ("a1", "gpu01"), ("a1", "gpu01"), ("b1", "gpu02"), ("b2", "gpu02"), ("back", "gpu02"), ("a2", "gpu01"), ("here", None),
    ]  # fmt: skip
    assert (merged.files, merged.dated, merged.left_out, merged.levels) == (3, 2, 0, {"error": 1, "warning": 1})
    assert merged.lines[-1].rank == 3
    assert merge_logs([a, b], most=2).left_out == 4


def test_the_longest_node_name_in_a_file_name_counts() -> None:
    assert node_of_path("/x/gpu1/out-gpu1-a.log", frozenset({"gpu1", "gpu1-a"})) == "gpu1-a"
    assert node_of_path("/x/out-gpu12.log", frozenset({"gpu1"})) is None


@given(
    st.lists(
        st.lists(st.one_of(st.text(max_size=40), st.just("2026-05-20 12:00:01 x"), st.just("2026-05-20 12:00:00 y")), max_size=6),
        max_size=4,
    )
)
def test_merging_loses_nothing_and_keeps_the_order_of_each_file(files: list[list[str]]) -> None:
    logs = [log_of(f"/l/{i}", *texts) for i, texts in enumerate(files)]
    merged = merge_logs(logs, most=1000)
    for log in logs:
        assert [line.number for line in merged.lines if line.path == log.path] == [line.number for line in log.lines]
    assert merged.left_out == 0
