"""queuecast on a real Slurm, from the command line to the lake, against what Slurm itself says: again, and when something is away."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from .cluster import Cluster
from .machine import wait
from .queue_cli import Queuecast
from .seen import Seen, one
from .workload import Workload

pytestmark = pytest.mark.slurm


def test_second_collection_adds_nothing_twice(seen: Seen, queuecast: Queuecast) -> None:
    before = {(r["job_id"], r["submit"]): r for r in queuecast.rows("jobs")}
    steps = Counter((r["job_id"], r["job_submit"], r["step"]) for r in queuecast.rows("steps"))
    setup = {t: len(queuecast.rows(t)) for t in ("partitions", "qos", "associations")}
    queuecast.collect()
    after = Counter((r["job_id"], r["submit"]) for r in queuecast.rows("jobs"))
    assert set(after) >= set(before)
    assert max(after.values()) == 1
    changing = ("observed_at",)
    for row in queuecast.rows("jobs"):
        old = before.get((row["job_id"], row["submit"]))
        if old and old["completeness"] == 3:
            assert {k: v for k, v in row.items() if k not in changing} == {k: v for k, v in old.items() if k not in changing}
    again = Counter((r["job_id"], r["job_submit"], r["step"]) for r in queuecast.rows("steps"))
    assert max(again.values()) == 1
    assert set(again) >= set(steps)
    assert setup == {t: len(queuecast.rows(t)) for t in setup}


def test_rebuild_from_the_archive_gives_the_same(seen: Seen, queuecast: Queuecast) -> None:
    """Every byte was kept, so the tables can be made again."""
    tables = ("jobs", "steps", "queue", "estimates", "nodes", "priorities", "shares", "qos", "associations", "partitions", "events")
    before = {t: sorted(map(repr, queuecast.rows(t))) for t in tables}
    queuecast.run("rebuild", "--quiet")
    assert {t: sorted(map(repr, queuecast.rows(t))) for t in tables} == before


WHY = {
    "held-user": "JobHeldUser",
    "begin": "BeginTime",
    "depends": "Dependency",
    "qos-group": "QOSGrpGRES",
    "wait-first": "Resources",
    "drained": "ReqNodeNotAvail",
    "down": "PartitionDown",
    "debug-second": "QOSMaxJobsPerUserLimit",
    "licence": "Licenses",
}


@pytest.mark.parametrize("key", WHY)
def test_why(seen: Seen, queuecast: Queuecast, workload: Workload, key: str) -> None:
    answer = queuecast.answer("why", str(workload.ids[key]))
    assert WHY[key] in json.dumps(answer)


@pytest.mark.parametrize("key", ["wait-first", "wait-behind", "run-a100"])
def test_when(seen: Seen, queuecast: Queuecast, workload: Workload, key: str) -> None:
    """A young lake has little to learn from; an answer or a plain refusal, never a traceback."""
    done = queuecast.run("when", str(workload.ids[key]), "--json", check=False)
    if done.returncode == 0:
        assert str(workload.ids[key]) in done.stdout
    else:
        assert done.stderr.startswith("queuecast: ")


def test_timed_out_job_is_over_its_limit(seen: Seen, queuecast: Queuecast, workload: Workload, cluster: Cluster) -> None:
    """A running row is replaced by the ended one."""
    for _ in wait(150, "no timeout yet", 1.0):
        if "TIMEOUT" in cluster.text("sacct", "-X", "-n", "-P", "-j", str(workload.ids["timeout"]), "-o", "State"):
            break
    queuecast.collect()
    job = one(queuecast.rows("jobs"), job_id=workload.ids["timeout"])
    assert (job["state"], job["limit_s"]) == ("TIMEOUT", 60)
    assert job["elapsed_s"] >= 60
    assert job["end"] - job["start"] == timedelta(seconds=job["elapsed_s"])


def test_database_away_keeps_what_is_there(seen: Seen, queuecast: Queuecast, cluster: Cluster) -> None:
    """slurmdbd stopped: the message names it, the queue still comes in, and no job is lost or ended by it."""
    jobs = {(r["job_id"], r["submit"]): r["state"] for r in queuecast.rows("jobs")}
    snapshots = {r["observed_at"] for r in queuecast.rows("queue")}
    cluster.stop("slurmdbd")
    try:
        done = queuecast.run("collect", check=False)
        assert "slurmdbd does not answer" in done.stderr
        assert "Traceback" not in done.stderr
        assert len({r["observed_at"] for r in queuecast.rows("queue")}) == len(snapshots) + 1
        assert {(r["job_id"], r["submit"]): r["state"] for r in queuecast.rows("jobs")}.items() >= jobs.items()
    finally:
        cluster.start_slurmdbd()
    for _ in wait(30, "accounting does not come back"):
        if queuecast.run("collect", check=False).stderr == "":
            break
    assert {(r["job_id"], r["submit"]) for r in queuecast.rows("jobs")} >= set(jobs)


def test_clock_and_zone(seen: Seen, queuecast: Queuecast) -> None:
    for table in ("queue", "nodes", "jobs"):
        newest = max(r["observed_at"] for r in queuecast.rows(table))
        assert abs(newest - datetime.now(UTC)) < timedelta(minutes=5)


def test_backfill_finds_the_same_jobs_and_then_nothing_more(seen: Seen, queuecast: Queuecast, tmp_path: Path) -> None:
    """Older history, window by window, into a lake of its own."""
    other = Queuecast(queuecast.cluster, tmp_path / "lake")
    other.run("backfill", "--since", "1d", "--window", "0.4", "--pause", "0", "--json")
    found = {(r["job_id"], r["submit"]) for r in other.rows("jobs")}
    collected = {(r["job_id"], r["submit"]): r for r in queuecast.rows("jobs") if r["source"] == "sacct"}
    assert found >= {k for k, r in collected.items() if r["completeness"] == 3}
    assert other.rows("rejects") == []
    rows = len(other.rows("jobs"))
    told = json.loads(other.run("backfill", "--since", "1d", "--window", "0.4", "--pause", "0", "--json").stdout)
    assert len(other.rows("jobs")) >= rows
    assert told["failures"] == []
