"""Cases that are about what is left alone: clocks of nodes, payloads in comments, one estimate for several partitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ingest_support import capture, job, read, sacct_text, step, utc

from queuecast.collect.ingest import ingest_captures
from queuecast.store.lake import Lake
from queuecast.store.query import connect


@pytest.mark.parametrize("hours", [-4, 8], ids=["node behind", "node ahead"])
def test_A20_the_clock_of_a_node_moves_no_job(hours: int, tmp_path: Path) -> None:
    """Steps carry times of their node. Start, end and wait of a job are slurmctld's."""
    off = {"Start": f"2026-06-01T{9 + hours:02d}:00:01", "End": f"2026-06-01T{10 + hours:02d}:00:01"}
    text = sacct_text({}, step("batch", **off), step("0", **off))
    row = read("sacct", text).one("jobs")
    assert (row["start"], row["end"], row["elapsed_s"]) == (utc("2026-06-01T09:00:00"), utc("2026-06-01T10:00:00"), 3600)
    assert row["anomalies"] is None
    lake = Lake.open(tmp_path / "lake", create=True)
    ingest_captures([capture("sacct", text)], lake)
    with connect(lake) as db:
        assert db.execute("SELECT wait_s, submit_to_start_s FROM waits").fetchall() == [(3600, 3600)]
        assert {s for (s,) in db.execute("SELECT DISTINCT start FROM steps").fetchall()} != {row["start"]}


PAYLOADS = ("JS1:H4sIAAAAAAAC/4WPQQrCMBBF", "JS1:Short", "JS1:None", "JS1:", '{"arrayTaskId":4294967294,"arrayJobId":0', "abort", "{}",
            '{"a": "\\"}', "null", "=", "JS1:" + "A" * 100_000)


@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda p: p[:20])
@pytest.mark.parametrize(("field", "column"), [("AdminComment", "admin_comment"), ("Comment", "comment")])
def test_E23_what_cannot_be_unpacked_stays_as_text(field: str, column: str, payload: str) -> None:
    found = read("sacct", sacct_text({field: payload}))
    row = found.one("jobs")
    assert row[column] == payload
    assert found.causes == []
    assert {k: v for k, v in row.items() if k != column} == {k: v for k, v in job().items() if k != column}


def test_F08_one_estimate_for_all_partitions_of_a_job() -> None:
    """Slurm tells the earliest start over the partitions and not which of them it is: it is kept once, with the list."""
    text = ("JOBID|PARTITION|USER|STATE|START_TIME|NODES|SCHEDNODES|NODELIST(REASON)\n"
            "7|gpu,gpu-long|bob|PENDING|2026-06-13T13:00:00|1|long-03|(Resources)\n")
    row = read("squeue_start", text).one("estimates")
    assert (row["partition"], row["start_estimate"], row["sched_nodes"]) == ("gpu,gpu-long", utc("2026-06-13T13:00:00"), "long-03")


NAMES = ('say "hi"', "back\\slash", '{"n": "%j"}', "it's", '"', "\\", '","', "\\x1f", "\\n")


@pytest.mark.parametrize("name", NAMES)
def test_G07_quotes_and_backslashes_in_names_are_text(name: str) -> None:
    """Nothing is unescaped, because Slurm escapes nothing."""
    assert job({"JobName": name})["name"] == name
    assert job({"JobName": name}, delimiter="|")["name"] == name
    lines: list[list[Any]] = [["JOBID", "STATE", "SUBMIT_TIME", "NAME"], ["1", "PENDING", "2026-06-01T08:00:00", name]]
    assert read("squeue", "".join("\x1f".join([*line, ""]) + "\n" for line in lines)).one("queue")["name"] == name
