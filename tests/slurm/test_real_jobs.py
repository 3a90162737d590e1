"""queuecast on a real Slurm, from the command line to the lake, against what Slurm itself says: jobs and steps."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

import pytest

from queuecast.collect.live import LiveSource
from queuecast.collect.parse import Report, parse_capture
from queuecast.collect.source import Capture

from . import truth
from .cluster import Cluster
from .configuration import CLUSTER
from .queue_cli import SEPARATED, Queuecast
from .seen import Seen, one, same_text
from .workload import ANN, BEN, Workload

pytestmark = pytest.mark.slurm


def test_every_job_of_accounting_is_there(seen: Seen, queuecast: Queuecast, workload: Workload) -> None:
    """All attempts, and nobody else's."""
    jobs = Counter((row["job_id"], row["submit"]) for row in queuecast.rows("jobs") if row["source"] == "sacct")
    wanted = Counter((int(row["JobIDRaw"]), truth.moment(row["Submit"])) for row in truth.sacct(queuecast.cluster))
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
    for key in workload.odd:
        if key.startswith("odd-held"):
            continue
        job = one(jobs, job_id=workload.ids[key])
        name = truth.job_name(cluster, workload.ids[key])
        assert same_text(job["name"], name), key
        assert (job["state"], job["user"], job["partition"], job["exit_code"]) == ("COMPLETED", ANN, "cpu", 0), key


def test_odd_names_in_the_queue(seen: Seen, queuecast: Queuecast, workload: Workload, cluster: Cluster) -> None:
    rows = queuecast.newest("queue")
    keys = [k for k in workload.odd if k.startswith("odd-held")]
    assert len(keys) >= 5
    for key in keys:
        row = one(rows, job_id=workload.ids[key])
        assert same_text(row["name"], truth.queue_name(cluster, workload.ids[key])), key
        assert (row["state"], row["user"], row["reason"]) == ("PENDING", BEN, "JobHeldUser"), key


def test_even_the_delimiter_in_a_name_is_read(seen: Seen, queuecast: Queuecast, workload: Workload) -> None:
    """sbatch takes even 0x1f, here in name, comment and command line: the row is whole, and nothing is a reject."""
    job = one(queuecast.rows("jobs"), job_id=workload.ids["odd-unit-separator"])
    assert (job["name"], job["comment"]) == (SEPARATED, SEPARATED)
    assert SEPARATED in job["submit_line"]
    assert (job["partition"], job["state"], job["exit_code"], job["cluster"]) == ("cpu", "COMPLETED", 0, CLUSTER)
    waiting = one(queuecast.newest("queue"), job_id=workload.ids["odd-held-unit-separator"])
    assert (waiting["name"], waiting["state"], waiting["user"]) == (SEPARATED, "PENDING", BEN)
    assert queuecast.rows("rejects") == []


def test_jobs_as_the_controller_shows_them(seen: Seen, workload: Workload, cluster: Cluster) -> None:
    """scontrol show job: one row for each record of the queue, names with newlines and other fields in them too."""
    report = Report()
    rows = [row for capture in LiveSource().captures(kinds=("jobs_detail",)) if isinstance(capture, Capture)
            for name, table in parse_capture(capture, report) if name == "jobs" for row in table.to_pylist()]
    assert (report.rejected, report.nulled, report.notes) == (0, 0, [])
    found = {row["job_id_text"]: row for row in rows}
    compared = 0
    for shown, row in seen.squeue.items():
        ours = found[shown]
        if ours["state"] != row["state"]:
            continue  # it went on in the meantime
        compared += 1
        assert (ours["job_id"], ours["user"], ours["partition"], ours["submit"]) \
            == (int(row["raw"]), row["user"], row["partition"], truth.moment(row["submit"])), row
        assert ours["start"] == (None if row["state"] == "PENDING" else truth.moment(row["start"])), row
        assert (ours["completeness"], ours["source"]) == (0, "scontrol")
    assert compared > 30
    for key in workload.odd:
        if key.startswith("odd-held"):
            assert same_text(one(rows, job_id=workload.ids[key])["name"], truth.queue_name(cluster, workload.ids[key])), key
    accounted = {(int(r["JobIDRaw"]), truth.moment(r["Submit"])): r for r in seen.sacct if truth.base(r["State"]) == "COMPLETED"}
    ended = [row for row in rows if (row["job_id"], row["submit"]) in accounted]
    assert len(ended) > 10
    for row in ended:
        told = accounted[row["job_id"], row["submit"]]
        assert (row["start"], row["end"]) == (truth.moment(told["Start"]), truth.moment(told["End"])), told
        assert (row["gpus_alloc"], row["gpu_type_alloc"]) == (truth.gpus(told["AllocTRES"]), truth.gpu_type(told["AllocTRES"])), told


def test_steps_are_usage_not_jobs(seen: Seen, queuecast: Queuecast, workload: Workload) -> None:
    steps = [r for r in queuecast.rows("steps") if r["job_id"] == workload.ids["steps"]]
    assert {r["step"]: r["name"] for r in steps} == {"batch": "batch", "0": "first", "1": "second"}
    assert {r["step"]: r["exit_code"] for r in steps} == {"batch": 0, "0": 0, "1": 1}
    assert one(queuecast.rows("jobs"), job_id=workload.ids["steps"])["state"] == "COMPLETED"
