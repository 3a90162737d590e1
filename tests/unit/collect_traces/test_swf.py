"""Logs in the Standard Workload Format: what is printed is read back, what is not a job is kept as a reject."""

from __future__ import annotations

import gzip
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecast.collect.swf import COLUMNS, WHOLE, Swf, parse_swf, read_swf, swf_jobs
from queuecast.errors import ParseError, UsageError
from queuecast.features.history import from_rows
from queuecast.store.lake import Lake

EPOCH = 1_000_000_000
HEADER = f"; Version: 2.2\n; UnixStartTime: {EPOCH}\n; TimeZoneString: Europe/Paris\n"
UNKNOWN = dict.fromkeys(COLUMNS, -1)


def line(**known: float) -> str:
    """A line of the given columns, the others unknown."""
    return " ".join(str(v) for v in {**UNKNOWN, **known}.values())


def log(*lines: str, header: str = HEADER) -> Swf:
    return parse_swf((header + "\n".join(lines) + "\n").encode())


def only(swf: Swf) -> dict[str, Any]:
    (row,) = swf_jobs(swf, "c").to_pylist()
    return dict(row)


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(EPOCH + seconds, UTC)


WHOLE_NUMBER = st.integers(0, 2**53 - 1) | st.just(-1)
QUANTITY = st.integers(0, 10**9).map(float) | st.floats(0, 1e9, allow_nan=False).map(lambda x: round(x, 3)) | st.just(-1.0)
ROW = st.fixed_dictionaries({name: WHOLE_NUMBER if name in WHOLE else QUANTITY for name in COLUMNS}).map(
    lambda row: {**row, "job": abs(row["job"]), "submit": abs(row["submit"])}
)
"""Any job that has a number and a submit time."""


@settings(max_examples=60, deadline=None)
@given(st.lists(ROW, max_size=8), st.sampled_from([" ", "   ", "\t"]), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_what_is_printed_is_read_back(rows: list[dict[str, float]], space: str, end: str, packed: bool) -> None:
    text = HEADER.replace("\n", end) + end.join(line(**row).replace(" ", space) for row in rows)
    data = text.encode()
    swf = parse_swf(gzip.decompress(gzip.compress(data)) if packed else data)
    assert swf.rejects == ()
    assert swf.rows.to_pylist() == [{k: None if v == -1 else v for k, v in row.items()} for row in rows]
    assert swf.epoch == EPOCH
    assert str(swf.zone) == "Europe/Paris"


@settings(max_examples=60, deadline=None)
@given(st.lists(ROW, max_size=4), st.lists(st.binary(max_size=60), max_size=6))
def test_no_line_is_lost(rows: list[dict[str, float]], noise: list[bytes]) -> None:
    """Each line that is neither blank nor a remark gives a row or a reject, whatever bytes it holds."""
    good = [line(**row).encode() for row in rows]
    data = b"\n".join([*good, *noise])
    swf = parse_swf(data)
    lines = [x.strip() for x in data.splitlines()]
    assert swf.rows.num_rows + len(swf.rejects) == sum(1 for x in lines if x and not x.startswith(b";"))
    assert swf.rows.num_rows >= len(good)
    for reject in swf.rejects:
        assert lines[reject.line - 1]


@pytest.mark.parametrize(
    ("bad", "cause"),
    [
        ("1 2 3", "not 18 columns"),
        (line(job=1, submit=0) + " 5", "not 18 columns"),
        (line(job=1, submit=0).replace("-1", "nan", 1), "wait is not a number"),
        (line(job=1, submit=0).replace("-1", "0x10", 1), "wait is not a number"),
        (line(job=1, submit=0, run=-5), "run is negative"),
        (line(job=1, submit=0, user=1.5), "user is not a whole number"),
        (line(job=1, submit=0, cpus_asked=2**60), "cpus_asked is too large"),
        (line(job=1, submit=0, time_asked=1e300), "time_asked is too large"),
        (line(job=1, submit=0).replace("-1", "1e999", 1), "wait is too large"),
        (line(submit=0), "no job number"),
        (line(job=1, status=1), "no submit time"),
        ("\x00" * 40, "not 18 columns"),
    ],
)
def test_hostile_lines_are_rejected_with_their_number(bad: str, cause: str) -> None:
    swf = log(line(job=7, submit=1), bad, line(job=8, submit=2))
    assert [(r.line, r.cause) for r in swf.rejects] == [(5, cause)]
    assert swf.rows["job"].to_pylist() == [7, 8]


def test_gzip_is_told_by_its_bytes_and_a_cut_one_is_refused(tmp_path: Path) -> None:
    data = (HEADER + "\n".join(line(job=i, submit=i * 17) for i in range(200))).encode()
    (tmp_path / "a.swf").write_bytes(data)
    (tmp_path / "b").write_bytes(gzip.compress(data))
    assert read_swf(tmp_path / "a.swf").rows.equals(read_swf(tmp_path / "b").rows)
    (tmp_path / "c.swf.gz").write_bytes(gzip.compress(data)[:-40])
    with pytest.raises(ParseError, match="gzip"):
        read_swf(tmp_path / "c.swf.gz")


def test_header_keys_repeat_and_continuations_are_no_keys() -> None:
    swf = parse_swf(b"; Note: one\n;\tsee: http://x\n;Note:two \n; Queue: 1 a:b\n;\n")
    assert swf.header == {"Note": ("one", "two"), "Queue": ("1 a:b",)}
    assert swf.epoch is None
    with pytest.raises(UsageError, match="UnixStartTime"):
        swf_jobs(swf, "c")
    assert swf_jobs(swf, "c", epoch=0.0).num_rows == 0


@pytest.mark.parametrize(
    "header",
    [
        "; UnixStartTime: 843480031\n",
        "; TimeZoneString: Europe/Stockholm\n; StartTime: Mon Sep 23 14:00:31 CEST 1996\n",
        "; UnixStartTime: -1\n; TimeZone: 7200\n; TimeZoneString: CEST?\n; StartTime: Mon Sep 23 14:00:31 1996\n",
    ],
)
def test_the_beginning_is_told_in_three_ways(header: str) -> None:
    assert log(header=header).epoch == 843480031


def test_a_job_that_ran() -> None:
    asked = {"cpus_asked": 8, "time_asked": 3600, "mem_asked_kb": 1024, "user": 12, "group": 3, "queue": 2, "partition": 1}
    row = only(log(line(job=3, submit=10, wait=5, run=100, cpus_used=4, cpu_time=90.5, status=1, **asked)))
    assert (row["submit"], row["eligible"], row["start"], row["end"]) == (at(10), at(10), at(15), at(115))
    assert (row["user"], row["account"], row["partition"], row["qos"], row["state"]) == ("u12", "g3", "p1", "q2", "COMPLETED")
    assert (row["cpus_req"], row["cpus_alloc"], row["limit_s"], row["limit_kind"], row["elapsed_s"]) == (8, 4, 3600, "limit", 100)
    assert (row["mem_req_bytes"], row["total_cpu_s"]) == (8 << 20, 362.0)
    assert row["gpus_req"] is None
    assert row["anomalies"] is None


def test_what_is_unknown_stays_null() -> None:
    row = only(log(line(job=3, submit=10)))
    assert (row["state"], row["anomalies"]) == ("UNKNOWN", "incomplete")
    for name in ("start", "end", "user", "account", "partition", "qos", "limit_s", "limit_kind", "cpus_req", "elapsed_s", "total_cpu_s"):
        assert row[name] is None, name


def test_without_partitions_the_queue_is_the_partition() -> None:
    row = only(log(line(job=1, submit=0, queue=5)))
    assert (row["partition"], row["qos"]) == ("q5", None)


@pytest.mark.parametrize(
    ("told", "start", "end"),
    [
        ({"status": 5, "run": 0}, None, 60),
        ({"status": 5, "run": -1}, None, 60),
        ({"status": 5, "run": 0, "cpus_used": 4}, None, 60),
        ({"status": 0, "run": 0}, None, 60),
        ({"status": 0, "run": 0, "cpus_used": 4}, 60, 60),
        ({"status": 1, "run": 0}, 60, 60),
        ({"status": 5, "run": 30, "cpus_used": 4}, 60, 90),
        ({"status": 1}, 60, None),
    ],
)
def test_whether_it_started(told: dict[str, float], start: float | None, end: float | None) -> None:
    row = only(log(line(job=1, submit=10, wait=50, **told)))
    assert row["start"] == (None if start is None else at(start))
    assert row["end"] == (None if end is None else at(end))


@pytest.mark.parametrize(("last", "state", "end"), [(3, "COMPLETED", 170), (4, "FAILED", 170), (2, "RUNNING", None)])
def test_stretches_of_one_job_are_one_job(last: int, state: str, end: float | None) -> None:
    parts = [
        line(job=1, submit=10, wait=50, run=20, status=2),
        line(job=1, wait=30, run=10, status=2),
        line(job=1, wait=10, run=40, status=last),
    ]
    row = only(log(*parts))
    assert (row["start"], row["state"]) == (at(60), state)
    assert row["end"] == (None if end is None else at(end))
    assert row["elapsed_s"] == (None if end is None else 70)
    # The summary line tells it all; with it, the stretches are no jobs.
    whole = swf_jobs(log(line(job=1, submit=10, wait=50, run=70, status=1), *parts, line(job=2, submit=11)), "c")
    assert whole["job_id"].to_pylist() == [1, 2]


@settings(max_examples=60, deadline=None)
@given(st.lists(ROW, min_size=1, max_size=12))
def test_a_history_of_it_has_the_waits_of_the_log(rows: list[dict[str, float]]) -> None:
    rows = [{**r, "job": i, "submit": float(round(r["submit"])), "wait": float(round(r["wait"]))} for i, r in enumerate(rows)]
    jobs = swf_jobs(log(*(line(**r) for r in rows)), "c")
    history = from_rows(jobs, "c", datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC))
    known = {r["job"]: r for r in rows if r["wait"] >= 0 and r["status"] not in (2, 3, 4)}
    assert set(known) <= set(history.job_id.tolist())
    waits = dict(zip(history.job_id.tolist(), (history.start - history.eligible).tolist(), strict=True))
    for job, row in known.items():
        assert waits[job] in (math.inf, pytest.approx(row["wait"]))
        if row["status"] == 1:
            assert waits[job] < math.inf
    assert (np.isfinite(history.seen)).all()


def test_a_lake_takes_it(tmp_path: Path) -> None:
    swf = log(*(line(job=i, submit=i * 86400, wait=60 * i, run=600, status=1, user=i % 3, group=1, partition=1) for i in range(90)))
    lake = Lake.open(tmp_path / "lake", create=True)
    with lake.transaction("t") as tx:
        tx.append("jobs", swf_jobs(swf, "old"))
    rows = lake.read("jobs", cluster="old", since=at(0), until=at(0) + timedelta(days=90))
    assert sorted(rows["job_id"].to_pylist()) == list(range(90))
