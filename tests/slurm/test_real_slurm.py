"""queuecast on a real Slurm, from the command line to the lake, against what Slurm itself says.

The truth is asked twice, before and after the collection; only what stayed the same in between is compared.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from . import truth
from .cluster import A100, CLUSTER, KINDS, V100, Cluster, wait
from .queue_cli import SEPARATED, Queuecast, Row
from .workload import ANN, BEN, Workload

pytestmark = pytest.mark.slurm


@dataclass(frozen=True)
class Seen:
    """Truth around one collection: only rows that were the same before and after it."""

    sacct: list[truth.Row]
    squeue: dict[str, truth.Row]
    start: dict[str, truth.Row]
    nodes: dict[str, truth.Row]


@pytest.fixture(scope="module")
def seen(queuecast: Queuecast, cluster: Cluster, workload: Workload) -> Seen:
    """Collects once more, with the truth asked around it. Jobs with the delimiter in their name have a test of their own."""
    apart = separated(workload)
    for _ in wait(60, "the queue does not stand still"):
        sacct, squeue, start, nodes = _ask(cluster)
        queuecast.collect()
        later = _ask(cluster)
        kept = Seen(
            [r for r in sacct if r in later[0] and r["JobIDRaw"] not in apart],
            {k: r for k, r in squeue.items() if later[1].get(k) == r and r["raw"] not in apart},
            {k: r for k, r in start.items() if later[2].get(k) == r and r["raw"] not in apart},
            {k: r for k, r in nodes.items() if later[3].get(k) == r},
        )
        if len(kept.squeue) >= 0.8 * len(squeue) and len(kept.start) >= 0.7 * len(start) and len(kept.sacct) >= 0.8 * len(sacct):
            return kept
    raise AssertionError("unreachable")


def separated(workload: Workload) -> set[str]:
    """Raw ids of the jobs whose name holds the delimiter."""
    return {str(workload.ids[key]) for key, name in workload.odd.items() if b"\x1f" in name}


def _ask(cluster: Cluster) -> tuple[list[truth.Row], dict[str, truth.Row], dict[str, truth.Row], dict[str, truth.Row]]:
    nodes = {
        row["NodeName"]: {k: row.get(k, "") for k in ("State", "Gres", "AllocTRES", "CPUAlloc", "CPUTot", "RealMemory", "AllocMem")}
        for row in truth.blocks(cluster, "show", "node")
    }
    return truth.sacct(cluster), truth.squeue(cluster), truth.squeue(cluster, "--start"), nodes


def one(rows: list[Row], **wanted: Any) -> Row:
    found = [row for row in rows if all(row[k] == v for k, v in wanted.items())]
    assert len(found) == 1, (wanted, found)
    return found[0]


# ---------------------------------------------------------------- jobs


def test_every_job_of_accounting_is_there(seen: Seen, queuecast: Queuecast, workload: Workload) -> None:
    """All attempts, and nobody else's."""
    apart = separated(workload)
    jobs = Counter(
        (row["job_id"], row["submit"]) for row in queuecast.rows("jobs") if row["source"] == "sacct" and str(row["job_id"]) not in apart
    )
    wanted = Counter(
        (int(row["JobIDRaw"]), truth.moment(row["Submit"])) for row in truth.sacct(queuecast.cluster) if row["JobIDRaw"] not in apart
    )
    assert jobs == wanted
    assert max(jobs.values()) == 1
    assert {row["cluster"] for row in queuecast.rows("jobs")} == {CLUSTER}


def test_states_and_times_to_the_second(seen: Seen, queuecast: Queuecast) -> None:
    jobs = {(row["job_id"], row["submit"]): row for row in queuecast.rows("jobs")}
    assert len(seen.sacct) > 40
    for row in seen.sacct:
        job = jobs[int(row["JobIDRaw"]), truth.moment(row["Submit"])]
        assert job["state"] == truth.base(row["State"]), row
        for column, name in (("eligible", "Eligible"), ("start", "Start"), ("end", "End")):
            assert job[column] == truth.moment(row[name]), (column, row)
        if row["Start"][:1].isdigit() and row["End"][:1].isdigit():
            assert job["elapsed_s"] == int(row["ElapsedRaw"]), row
        status, signal = map(int, row["ExitCode"].split(":"))
        if truth.base(row["State"]) not in ("PENDING", "RUNNING"):
            assert (job["exit_code"], job["exit_signal"]) == (status, signal), row
        assert (job["user"], job["account"], job["uid"]) == (row["User"], row["Account"], int(row["UID"]))
        assert job["partition"] == row["Partition"]


def test_limits(seen: Seen, queuecast: Queuecast) -> None:
    jobs = {(row["job_id"], row["submit"]): row for row in queuecast.rows("jobs")}
    for row in seen.sacct:
        job = jobs[int(row["JobIDRaw"]), truth.moment(row["Submit"])]
        if row["TimelimitRaw"].isdigit():
            assert (job["limit_kind"], job["limit_s"]) == ("limit", int(row["TimelimitRaw"]) * 60), row
        else:
            assert job["limit_s"] is None, row


def test_unlimited_is_said(seen: Seen, queuecast: Queuecast, workload: Workload) -> None:
    job = one(queuecast.rows("jobs"), job_id=workload.ids["run-unlimited"])
    assert (job["limit_kind"], job["limit_s"]) == ("unlimited", None)


def test_gpus(seen: Seen, queuecast: Queuecast) -> None:
    """This cluster tracks gres/gpu, so a job without is 0, not unknown."""
    jobs = {(row["job_id"], row["submit"]): row for row in queuecast.rows("jobs")}
    some = 0
    for row in seen.sacct:
        job = jobs[int(row["JobIDRaw"]), truth.moment(row["Submit"])]
        if row["ReqTRES"]:
            assert job["gpus_req"] == truth.gpus(row["ReqTRES"]), row
            assert job["gpu_type_req"] == truth.gpu_type(row["ReqTRES"]), row
        if row["AllocTRES"]:
            some += bool(truth.gpus(row["AllocTRES"]))
            assert job["gpus_alloc"] == truth.gpus(row["AllocTRES"]), row
            assert job["gpu_type_alloc"] == truth.gpu_type(row["AllocTRES"]), row
            assert job["cpus_alloc"] == int(row["AllocCPUS"]), row
            assert job["nodes_alloc"] == int(row["NNodes"]), row
    assert some >= 4


def test_requeued_job_has_an_attempt_each(seen: Seen, queuecast: Queuecast, workload: Workload) -> None:
    """Requeue sets Submit anew; both attempts are kept, in the order in which they were."""
    for key, last in (("to-requeue", {"PENDING", "RUNNING"}), ("requeue-once", {"COMPLETED"})):
        attempts = sorted((r for r in queuecast.rows("jobs") if r["job_id"] == workload.ids[key]), key=lambda r: r["submit"])
        wanted = sorted(
            truth.moment(r["Submit"]) or datetime.max for r in truth.sacct(queuecast.cluster) if r["JobIDRaw"] == str(workload.ids[key])
        )
        assert [a["submit"] for a in attempts] == wanted
        assert len(attempts) == 2
        assert attempts[0]["end"] <= attempts[1]["submit"] + timedelta(seconds=1)
        assert attempts[1]["state"] in last


def test_cancelled_while_waiting(seen: Seen, queuecast: Queuecast, workload: Workload, cluster: Cluster) -> None:
    """Never started: no start, no run time, and who did it. Neither dropped nor taken for a wait of zero."""
    uid = int(cluster.text("id", "-u", BEN))
    job = one(queuecast.rows("jobs"), job_id=workload.ids["cancelled-waiting"])
    assert (job["state"], job["cancelled_by"], job["start"]) == ("CANCELLED", uid, None)
    assert job["eligible"] <= job["end"]
    assert job["nodes_alloc"] in (None, 0)
    held = [r for r in queuecast.rows("jobs") if r["job_id"] == workload.ids["cancelled-held"]]
    assert all(r["start"] is None and r["eligible"] is None for r in held)


def test_cancelled_while_running(seen: Seen, queuecast: Queuecast, workload: Workload, cluster: Cluster) -> None:
    job = one(queuecast.rows("jobs"), job_id=workload.ids["to-cancel"])
    assert (job["state"], job["cancelled_by"]) == ("CANCELLED", int(cluster.text("id", "-u", BEN)))
    assert job["start"] < job["end"]


def test_array_tasks_after_the_start(seen: Seen, queuecast: Queuecast, workload: Workload) -> None:
    rows = [r for r in queuecast.rows("jobs") if r["array_job_id"] == workload.ids["array-done"]]
    assert sorted(r["array_task"] for r in rows) == [1, 2, 3, 4]
    assert {r["array_task"]: r["exit_code"] for r in rows} == {n: n % 3 for n in (1, 2, 3, 4)}
    assert {r["array_tasks"] for r in rows} == {1}
    assert {r["job_id_text"] for r in rows} == {f"{workload.ids['array-done']}_{n}" for n in (1, 2, 3, 4)}


def test_array_in_the_queue_is_one_record(seen: Seen, queuecast: Queuecast, workload: Workload) -> None:
    rows = queuecast.newest("queue")
    large = one(rows, array_job_id=workload.ids["array-large"])
    assert (large["array_tasks"], large["array_tasks_exact"], large["state"]) == (50_000, True, "PENDING")
    gaps = one(rows, array_job_id=workload.ids["array-gaps"])
    assert (gaps["array_tasks"], gaps["array_tasks_exact"]) == (38, True)
    throttled = [r for r in rows if r["array_job_id"] == workload.ids["array-throttled"]]
    waiting = one(throttled, state="PENDING")
    assert (waiting["array_tasks"], waiting["array_throttle"]) == (8, 2)
    assert sorted(r["array_task"] for r in throttled if r["state"] == "RUNNING") == [0, 1]


def test_heterogeneous_jobs(seen: Seen, queuecast: Queuecast, workload: Workload) -> None:
    leader = workload.ids["het-done"]
    rows = sorted((r for r in queuecast.rows("jobs") if r["het_job_id"] == leader), key=lambda r: r["het_offset"])
    assert [(r["job_id"], r["het_offset"], r["state"]) for r in rows] == [(leader, 0, "COMPLETED"), (leader + 1, 1, "COMPLETED")]
    texts = {r["job_id_text"] for r in queuecast.newest("queue") if r["job_id"] in (workload.ids["wait-het"], workload.ids["wait-het"] + 1)}
    assert texts == {f"{workload.ids['wait-het']}+0", f"{workload.ids['wait-het']}+1"}


def test_odd_names_survive(seen: Seen, queuecast: Queuecast, workload: Workload, cluster: Cluster) -> None:
    """Delimiters, newlines, control characters and bytes that are not UTF-8: the row is whole and the name is Slurm's."""
    jobs = queuecast.rows("jobs")
    assert len(workload.odd) >= 20
    apart = separated(workload)
    for key in workload.odd:
        if key.startswith("odd-held") or str(workload.ids[key]) in apart:
            continue
        job = one(jobs, job_id=workload.ids[key])
        name = truth.job_name(cluster, workload.ids[key])
        assert same_text(job["name"], name), key
        assert (job["state"], job["user"], job["partition"], job["exit_code"]) == ("COMPLETED", ANN, "cpu", 0), key


def test_odd_names_in_the_queue(seen: Seen, queuecast: Queuecast, workload: Workload, cluster: Cluster) -> None:
    rows = queuecast.newest("queue")
    apart = separated(workload)
    keys = [k for k in workload.odd if k.startswith("odd-held") and str(workload.ids[k]) not in apart]
    assert len(keys) >= 4
    for key in keys:
        row = one(rows, job_id=workload.ids[key])
        assert same_text(row["name"], truth.queue_name(cluster, workload.ids[key])), key
        assert (row["state"], row["user"], row["reason"]) == ("PENDING", BEN, "JobHeldUser"), key


def test_delimiter_in_a_name_loses_nothing(seen: Seen, queuecast: Queuecast, workload: Workload) -> None:
    """sbatch takes even 0x1f. Which column the rest belongs to may be told or not: the job is right, or kept as text."""
    rejects = [r["raw"] for r in queuecast.rows("rejects")]
    for table, key in (("jobs", "odd-unit-separator"), ("queue", "odd-held-unit-separator")):
        if key not in workload.odd:
            continue
        number = workload.ids[key]
        rows = [r for r in queuecast.rows(table) if r["job_id"] == number]
        if not rows:
            assert any(raw.startswith(f"{number}\x1f{number}\x1f") and SEPARATED in raw for raw in rejects)
        for row in rows:
            assert (row["partition"], row["state"]) == ("cpu", "COMPLETED" if table == "jobs" else "PENDING")
            assert row["name"].startswith("unit")


def same_text(ours: str | None, slurms: bytes) -> bool:
    """Equal where both are readable (but for line ends and blanks around); bytes that are not UTF-8 may stand as any mark, but
    must not take others with them."""
    if ours is None:
        return not slurms.strip()
    theirs = slurms.decode("utf-8", "replace").replace("\r\n", "\n").strip()
    if "\ufffd" not in theirs:
        return ours.replace("\r\n", "\n").strip() == theirs
    return all(c in ours for c in theirs if c.isascii() and c.isalnum())


def test_steps_are_usage_not_jobs(seen: Seen, queuecast: Queuecast, workload: Workload) -> None:
    steps = [r for r in queuecast.rows("steps") if r["job_id"] == workload.ids["steps"]]
    assert {r["step"]: r["name"] for r in steps} == {"batch": "batch", "0": "first", "1": "second"}
    assert {r["step"]: r["exit_code"] for r in steps} == {"batch": 0, "0": 0, "1": 1}
    assert one(queuecast.rows("jobs"), job_id=workload.ids["steps"])["state"] == "COMPLETED"


# ---------------------------------------------------------------- queue


def test_queue_row_by_row(seen: Seen, queuecast: Queuecast, workload: Workload) -> None:
    rows = {r["job_id_text"]: r for r in queuecast.newest("queue")}
    assert len(seen.squeue) > 40
    for shown, row in seen.squeue.items():
        ours = rows[shown]
        assert (ours["job_id"], ours["state"], ours["user"], ours["partition"]) == (
            int(row["raw"]),
            row["state"],
            row["user"],
            row["partition"],
        ), row
        assert (ours["nodes"], ours["cpus"], ours["priority"]) == (int(row["nodes"]), int(row["cpus"]), int(row["priority"])), row
        assert ours["submit"] == truth.moment(row["submit"]), row
        if row["state"] == "PENDING":
            assert ours["start"] is None, row
            assert ours["start_estimate"] == truth.moment(row["start"]), row
        else:
            assert ours["start"] == truth.moment(row["start"]), row
    apart = separated(workload)
    assert set(rows) - apart == set(truth.squeue(queuecast.cluster)) - apart


def test_reasons(seen: Seen, queuecast: Queuecast, workload: Workload) -> None:
    """Each job that was made to wait for something says so, by its code."""
    rows = {r["job_id"]: r for r in queuecast.newest("queue") if r["state"] == "PENDING"}
    wanted = {key: reason for key, reason in workload.expect.items() if reason}
    assert len(set(wanted.values())) >= 22
    assert {key: rows[workload.ids[key]]["reason"] for key in wanted} == wanted
    waiting = [row for row in seen.squeue.values() if row["state"] == "PENDING"]
    assert len(waiting) > 20
    for row in waiting:
        ours = rows[int(row["raw"])]
        assert (ours["reason_text"] or ours["reason"] or "None") == row["reason"], row
    assert rows[workload.ids["account"]]["reason"]


def test_gpus_in_the_queue(seen: Seen, queuecast: Queuecast, workload: Workload) -> None:
    """Of the whole job, whichever way they were asked for; waiting jobs too."""
    rows = {r["job_id"]: r for r in queuecast.newest("queue")}
    for key, count, kind in (
        ("run-a100", 4, "a100"),
        ("run-generic", 2, "a100"),
        ("run-v100", 3, "v100"),
        ("wait-first", 4, "a100"),
        ("course-gpus", 2, "v100"),
        ("licence", 0, None),
    ):
        row = rows[workload.ids[key]]
        assert row["gpus"] == count, key
        if key != "run-generic":  # allocated by count alone: Slurm may or may not tell the type
            assert row["gpu_type"] == kind, key


def test_estimates(seen: Seen, queuecast: Queuecast) -> None:
    """Slurm's own estimate of each waiting job, and none where it has none."""
    rows = {r["job_id_text"]: r for r in queuecast.newest("estimates")}
    told = 0
    for shown, row in seen.start.items():
        assert rows[shown]["start_estimate"] == truth.moment(row["start"]), row
        told += row["start"][:1].isdigit()
    assert told >= 3


def test_nodes(seen: Seen, queuecast: Queuecast) -> None:
    rows = {r["node"]: r for r in queuecast.newest("nodes")}
    assert set(rows) == {node for kind in KINDS for node in kind.nodes}
    assert len(seen.nodes) == len(rows)
    for name, row in seen.nodes.items():
        ours = rows[name]
        flags = set(filter(None, (ours["state_flags"] or "").split(",")))
        assert {ours["state"], *flags} == set(row["State"].split("+")), row
        assert (ours["cpus"], ours["cpus_alloc"]) == (int(row["CPUTot"]), int(row["CPUAlloc"]))
        assert ours["mem_bytes"] == int(row["RealMemory"]) << 20
        assert ours["mem_alloc_bytes"] == int(row["AllocMem"]) << 20
        assert ours["gpus_alloc"] == truth.gpus(row["AllocTRES"]), row
    for kind in (A100, V100):
        assert {(rows[n]["gpus"], rows[n]["gpu_type"]) for n in kind.nodes} == {(kind.gpus, kind.gpu)}
    assert rows["cpu-3"]["reason"].startswith('bad DIMM | slot "3", see ticket')


def test_setup_tables(seen: Seen, queuecast: Queuecast) -> None:
    partitions = {r["partition"]: r for r in queuecast.rows("partitions")}
    assert set(partitions) == {"gpu", "cpu", "debug", "long", "down", "hid"}
    assert (partitions["gpu"]["is_default"], partitions["gpu"]["max_time_s"], partitions["down"]["state"]) == (True, 172_800, "DOWN")
    assert partitions["cpu"]["max_time_s"] is None
    assert {r["qos"] for r in queuecast.rows("qos")} == {"normal", "debug", "high", "small", "spent"}
    assert one(queuecast.rows("qos"), qos="debug")["max_tres_per_user"] == "gres/gpu=2"
    assert one(queuecast.rows("qos"), qos="small")["max_wall_s"] == 3600
    users = {(r["account"], r["user"]) for r in queuecast.rows("associations") if r["user"]}
    assert {("vision", "qcann"), ("nlp", "qcben"), ("course", "qccid"), ("seminar", "qccid")} <= users
    assert {r["reservation"] for r in queuecast.newest("reservations")} == {"workshop", "maintenance"}
    assert {r["account"] for r in queuecast.newest("shares")} >= {"root", "lab", "vision", "nlp", "course", "seminar"}
    assert any(r["node"] == "cpu-3" and r["reason"].startswith("bad DIMM | slot") for r in queuecast.rows("events"))
    settings = {r["key"]: r["value"] for r in queuecast.rows("settings")}
    assert settings["ClusterName"] == CLUSTER


def test_priorities_add_up(seen: Seen, queuecast: Queuecast, workload: Workload) -> None:
    rows = list(queuecast.newest("priorities"))
    assert {r["partition"] for r in rows if r["job_id"] == workload.ids["wait-two-partitions"]} == {"gpu", "long"}
    for row in rows:
        parts = sum(row[k] or 0 for k in ("site", "age", "assoc", "fairshare", "job_size", "partition_factor", "qos_factor"))
        tres = sum(int(p.partition("=")[2]) for p in (row["tres"] or "").split(",") if p)
        assert abs(parts + tres - (row["nice"] or 0) - row["priority"]) <= 8, row


# ---------------------------------------------------------------- again, and when something is away


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
