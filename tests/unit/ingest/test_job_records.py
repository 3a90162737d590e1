"""``scontrol show job``: recorded text of two releases, made-up records, and names that try to be fields."""

from __future__ import annotations

import tarfile
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ingest_support import DATA, Read, capture, fixture, read, sacct_text, utc

from queuecast.collect.ingest import ingest_captures, ingest_folder
from queuecast.store.lake import Lake

VERSIONS = ("22.05", "24.11")
LATER = utc("2026-12-31T00:00:00")


@cache
def recorded(version: str, name: str) -> bytes:
    with tarfile.open(DATA / f"reasons-{version}.tar.xz") as tar:
        member = next(m for m in tar.getmembers() if m.name.rsplit("/", 1)[-1] == name)
        file = tar.extractfile(member)
        assert file is not None
        return file.read()


SHOWN = {
    "JobId": "100", "JobName": "train", "UserId": "alice(1001)", "GroupId": "alice(1001)", "MCS_label": "N/A", "Priority": "5000",
    "Nice": "0", "Account": "vision", "QOS": "normal", "JobState": "RUNNING", "Reason": "None", "Dependency": "(null)", "Requeue": "1",
    "Restarts": "0", "BatchFlag": "1", "Reboot": "0", "ExitCode": "0:0", "DerivedExitCode": "0:0", "RunTime": "00:10:00",
    "TimeLimit": "01:00:00", "TimeMin": "N/A", "SubmitTime": "2026-06-01T08:00:00", "EligibleTime": "2026-06-01T08:00:00",
    "AccrueTime": "2026-06-01T08:00:00", "StartTime": "2026-06-01T09:00:00", "EndTime": "2026-06-01T10:00:00", "Deadline": "N/A",
    "SuspendTime": "None", "SecsPreSuspend": "0", "LastSchedEval": "2026-06-01T09:00:00", "Scheduler": "Backfill", "Partition": "gpu",
    "AllocNode:Sid": "login1:1464", "ReqNodeList": "(null)", "ExcNodeList": "(null)", "NodeList": "a100-01", "BatchHost": "a100-01",
    "NumNodes": "1", "NumCPUs": "4", "NumTasks": "2", "CPUs/Task": "2", "ReqB:S:C:T": "0:0:*:*",
    "ReqTRES": "cpu=4,mem=16G,node=1,billing=4", "AllocTRES": "cpu=4,mem=16G,node=1,billing=4", "Socks/Node": "*", "MinCPUsNode": "1",
    "MinMemoryNode": "16G", "MinTmpDiskNode": "0", "Features": "(null)", "DelayBoot": "00:00:00", "OverSubscribe": "OK",
    "Contiguous": "0", "Licenses": "(null)", "Network": "(null)", "Command": "/home/alice/run.sh", "WorkDir": "/home/alice",
    "StdErr": "/home/alice/e", "StdIn": "/dev/null", "StdOut": "/home/alice/o",
}
ON_ONE_LINE = frozenset((
    "JobName", "ArrayJobId", "ArrayTaskId", "ArrayTaskThrottle", "HetJobId", "HetJobOffset", "HetJobIdSet", "GroupId", "MCS_label", "Nice",
    "EndTime", "NumCPUs", "NumTasks", "CPU_IDs", "Mem", "GRES"))
PENDING = {"JobState": "PENDING", "RunTime": "00:00:00", "StartTime": "Unknown", "EndTime": "Unknown", "NodeList": "", "NumNodes": "1-1",
           "Reason": "Priority"}


def record(one_line: bool = True, after: dict[str, dict[str, str]] | None = None, without: tuple[str, ...] = (), **fields: str) -> str:
    """A record of a running job; ``after`` adds fields behind others."""
    shown: dict[str, str] = {}
    for key, value in (SHOWN | fields).items():
        if key not in without:
            shown[key] = value
        shown |= (after or {}).get(key, {})
    out = ""
    for key, value in shown.items():
        text = f"{value} " if key in ("Comment", "AdminComment") else value
        out += (" " if one_line or key in ON_ONE_LINE else "\n   ") * bool(out) + f"{key}={text}"
    return f"{out} \n" if one_line else f"{out}\n   \n\n"


def shown(text: str, **more: Any) -> Read:
    found = read("jobs_detail", text, **more)
    assert found.all_lines_told()
    return found


def job(one_line: bool = True, **more: Any) -> dict[str, Any]:
    told = {k: more.pop(k) for k in ("tracked",) if k in more}
    found = shown(record(one_line, **more), **told)
    assert found.causes == []
    return found.one("jobs")


# ---------------------------------------------------------------- recorded


@pytest.mark.parametrize("version", VERSIONS)
def test_recorded_jobs_are_those_of_accounting(version: str) -> None:
    """Several lines for each job, an hour of samples on one line each: times, requests and allocations are accounting's."""
    last = shown(recorded(version, "scontrol-show-job-d.txt").decode("utf-8", "replace"), taken_at=LATER)
    assert last.causes == []
    assert last.tables["jobs"].num_rows > 180
    jobs = {(r["job_id"], r["submit"]): r for r in last.rows("jobs")}
    known = {(r["job_id"], r["submit"]): r for r in read("sacct", recorded(version, "sacct-delim-1f.txt"), taken_at=LATER).rows("jobs")}
    both = jobs.keys() & known.keys()
    assert len(both) > 160
    same = ("job_id_text", "array_job_id", "array_task", "array_tasks", "het_job_id", "het_offset", "user", "uid", "account", "partition",
            "qos", "eligible", "start", "limit_s", "limit_kind", "nodes_alloc", "cpus_alloc", "gpus_req", "gpu_type_req", "gpus_alloc",
            "gpu_type_alloc", "mem_alloc_bytes", "node_list", "constraints", "reservation", "work_dir", "comment")
    for key in both:
        ours, theirs = jobs[key], known[key]
        assert {k: ours[k] for k in same} == {k: theirs[k] for k in same}, key
        assert ours["completeness"] == 0 < theirs["completeness"]
        if ours["state"] == theirs["state"]:
            assert ours["end"] == theirs["end"], key
        if "?" not in theirs["name"] and ours["name"] is not None:  # the database keeps no quotes, and 255 characters
            assert ours["name"].replace('"', "`").replace("'", "`")[:255] == theirs["name"].replace("'", "`")
        if version == "24.11" or ours["start"] is None:
            assert {k: ours[k] for k in ("nodes_req", "cpus_req", "mem_req_bytes")} == {k: theirs[k] for k in ("nodes_req", "cpus_req",
                "mem_req_bytes")}, key


@pytest.mark.parametrize("version", VERSIONS)
def test_recorded_samples_tell_what_squeue_told(version: str) -> None:
    found = read("jobs_detail", recorded(version, "scontrol-show-job.txt"), sampled=True)
    assert found.causes == []
    assert found.all_lines_told()
    assert found.tables["jobs"].num_rows > 1200
    queue = {(r["job_id"], r["submit"], r["state"], r["reason"], int(r["observed_at"].timestamp()) // 10): r
             for r in read("squeue", recorded(version, "squeue-o.txt"), sampled=True).rows("queue")}
    compared = 0
    for row in found.rows("jobs"):
        other = queue.get((row["job_id"], row["submit"], row["state"], row["reason"], int(row["observed_at"].timestamp()) // 10))
        if other is not None:
            compared += 1
            same = ("user", "account", "partition", "qos", "start", "limit_s", "limit_kind", "reason_text", "constraints", "reservation")
            assert {k: row[k] for k in same} == {k: other[k] for k in same}
    assert compared > 300
    names = {r["name"] for r in found.rows("jobs")}
    assert {"a|b|c", "two\nlines", "训练-模型 v2", "tab\there", "comma, semi; colon: eq=1", "[x]"} <= names
    assert any(n and n.startswith("x" * 256) for n in names)
    assert " leading and trailing " in names or " leading and trailing" in names


def test_recorded_campus() -> None:
    rows = shown(fixture("scontrol-jobs-final.txt.gz").decode()).rows("jobs")
    assert len(rows) == 396
    assert rows[0] | {"job_id": 12, "state": "PENDING", "user": "dave", "uid": 1004, "gpus_req": 1, "gpu_type_req": "v100", "start": None,
                      "mem_req_bytes": 4000 << 20, "limit_s": 54_240, "reason": "QOSMaxWallDurationPerJobLimit"} == rows[0]


# ---------------------------------------------------------------- values


BOTH = pytest.mark.parametrize("one_line", [True, False], ids=["one line", "several lines"])


@BOTH
@pytest.mark.parametrize(("fields", "expected"), [
    pytest.param({}, {"start": utc("2026-06-01T09:00:00"), "end": None, "elapsed_s": 600, "exit_code": None, "gpus_alloc": None,
                      "name": "train", "user": "alice", "uid": 1001, "limit_s": 3600, "work_dir": "/home/alice", "scheduled_by": "backfill",
                      "completeness": 0, "source": "scontrol"}, id="EndTime of a running job is a forecast"),
    pytest.param(PENDING | {"StartTime": "2026-06-01T15:00:00", "EndTime": "2026-06-01T16:00:00", "NumNodes": "2-4", "Reason": "Resources"},
                 {"start": None, "end": None, "nodes_alloc": None, "reason": "Resources", "node_list": None, "elapsed_s": None,
                  "scheduled_by": None}, id="StartTime of a waiting job is an estimate"),
    pytest.param({"JobState": "FAILED", "ExitCode": "3:0", "DerivedExitCode": "1:9"},
                 {"end": utc("2026-06-01T10:00:00"), "exit_code": 3, "exit_signal": 0, "derived_exit_code": 1, "derived_exit_signal": 9},
                 id="ended"),
    pytest.param({"JobState": "CANCELLED", "StartTime": "2026-06-01T10:00:00", "NodeList": "", "RunTime": "00:00:00"},
                 {"start": None, "end": utc("2026-06-01T10:00:00"), "nodes_alloc": None, "state": "CANCELLED", "exit_code": None},
                 id="D02 never started"),
    pytest.param(PENDING | {"EligibleTime": "2026-07-01T08:00:00", "Reason": "BeginTime"}, {"eligible": None}, id="not eligible yet"),
    pytest.param(PENDING | {"EligibleTime": "Unknown", "Priority": "0", "Reason": "JobHeldUser"}, {"eligible": None, "priority": 0},
                 id="held"),
    pytest.param({"TimeLimit": "UNLIMITED"}, {"limit_s": None, "limit_kind": "unlimited"}, id="unlimited"),
    pytest.param(PENDING | {"Reason": "ReqNodeNotAvail,_UnavailableNodes:a100-04"},
                 {"reason": "ReqNodeNotAvail", "reason_text": "ReqNodeNotAvail, UnavailableNodes:a100-04"}, id="blanks of a reason"),
    pytest.param({"Account": "(null)", "Licenses": "matlab:2", "Features": "a100&nvlink"},
                 {"account": None, "licenses": "matlab:2", "constraints": "a100&nvlink"}, id="G10 null"),
])
def test_values(fields: dict[str, str], expected: dict[str, Any], one_line: bool) -> None:
    row = job(one_line, **fields)
    assert {k: row[k] for k in expected} == expected


@BOTH
@pytest.mark.parametrize(("ids", "expected"), [
    pytest.param({"ArrayJobId": "100", "ArrayTaskId": "0-3%1", "ArrayTaskThrottle": "1"},
                 {"job_id": 100, "job_id_text": "100_[0-3%1]", "array_job_id": 100, "array_task": None, "array_tasks": 4,
                  "array_throttle": 1}, id="waiting tasks"),
    pytest.param({"ArrayJobId": "100", "ArrayTaskId": "1-3,7", "ArrayTaskThrottle": "2"},
                 {"job_id_text": "100_[1-3,7%2]", "array_tasks": 4, "array_throttle": 2, "array_tasks_exact": True}, id="throttle apart"),
    pytest.param({"ArrayJobId": "90", "ArrayTaskId": "7"},
                 {"job_id": 100, "job_id_text": "90_7", "array_job_id": 90, "array_task": 7, "array_tasks": 1, "array_throttle": None},
                 id="task"),
    pytest.param({"ArrayJobId": "100", "ArrayTaskId": "1-3,17,19,2..."}, {"array_tasks": 6, "array_tasks_exact": False}, id="cut list"),
    pytest.param({"HetJobId": "99", "HetJobOffset": "1"},
                 {"job_id": 100, "job_id_text": "99+1", "het_job_id": 99, "het_offset": 1, "array_job_id": None, "name": "train"},
                 id="het"),
])
def test_ids(ids: dict[str, str], expected: dict[str, Any], one_line: bool) -> None:
    row = job(one_line, after={"JobId": ids, "JobName": {"HetJobIdSet": "99-100"} if "HetJobId" in ids else {}})
    assert {k: row[k] for k in expected} == expected


@BOTH
@pytest.mark.parametrize(("memory", "tres", "expected"), [
    pytest.param({"MinMemoryCPU": "512M"}, "", 4 * 512 << 20, id="B28 for each CPU"),
    pytest.param({"MinMemoryNode": "4G"}, "", 2 * 4 << 30, id="B28 for each node"),
    pytest.param({"MinMemoryTRES": "0"}, "", 8 * 4096 << 20, id="B28 for each GPU, amount elsewhere"),
    pytest.param({"MinMemoryTRES": "4G"}, "", 8 * 4 << 30, id="B28 for each GPU"),
    pytest.param({"MinMemoryNode": "0"}, "", None, id="B28 none or all of the node"),
    pytest.param({}, "", 8 * 4096 << 20, id="B28 no minimum"),
    pytest.param({"MinMemoryNode": "4G"}, ",mem=20G", 20 << 30, id="B28 ReqTRES goes first"),
])
def test_memory(memory: dict[str, str], tres: str, expected: int | None, one_line: bool) -> None:
    more = {"MemPerTres": "gres/gpu:4096"} if "MinMemoryTRES" in memory or not memory else {}
    row = job(one_line, without=("MinMemoryNode",), after={"MinCPUsNode": memory, "StdOut": more},
              **PENDING | {"ReqTRES": f"cpu=4{tres},node=2,billing=4,gres/gpu=8", "NumNodes": "2-2"})
    assert row["mem_req_bytes"] == expected


@BOTH
@pytest.mark.parametrize(("fields", "detail", "asked", "expected"), [
    pytest.param({}, {"JOB_GRES": "gpu:h100:4", "Nodes": "n1", "GRES": "gpu:h100:4(IDX:0-3)"}, {"TresPerJob": "gres/gpu:4"},
                 (4, "h100", 4, None), id="B05 running"),
    pytest.param({}, {"Nodes": "n[1-2]", "GRES": "gpu:h100:2(IDX:0-1)"}, {}, (4, "h100", 4, "h100"), id="B05 by the indices alone"),
    pytest.param({"JobState": "COMPLETED"}, {"Nodes": "n1", "GRES": ""}, {"TresPerJob": "gres/gpu:4"}, (None, None, 4, None),
                 id="B05 after the end only the request is left"),
    pytest.param(PENDING | {"NumNodes": "3-3", "ReqTRES": "cpu=4,node=3"}, {}, {"TresPerNode": "gres:gpu:a100:2"}, (None, None, 6, "a100"),
                 id="B05 waiting"),
    pytest.param({}, {}, {"TresPerTask": "cpu=2,gres/gpu=1"}, (None, None, 2, None), id="B05 for each task"),
    pytest.param({"ReqTRES": "cpu=4,node=1,gres/gpu=2", "AllocTRES": "cpu=4,node=1,gres/gpu=2,gres/gpu:v100=2"},
                 {"JOB_GRES": "gpu:v100:2", "Nodes": "n1", "GRES": "gpu:v100:2(IDX:0-1)"}, {"TresPerTask": "gres/gpu=1"},
                 (2, "v100", 2, None), id="TRES tell, never twice"),
    pytest.param({}, {}, {}, (None, None, None, None), id="B05 not tracked, not told"),
])
def test_gpus(fields: dict[str, str], detail: dict[str, str], asked: dict[str, str], expected: tuple[Any, ...], one_line: bool) -> None:
    row = job(one_line, after={"Socks/Node": detail, "StdOut": asked}, **fields)
    assert (row["gpus_alloc"], row["gpu_type_alloc"], row["gpus_req"], row["gpu_type_req"]) == expected


def test_old_tres_is_the_request_until_the_start() -> None:
    old = {"NumNodes": "2", "without": ("ReqTRES", "AllocTRES")}
    tres = {"NumTasks": {"TRES": "cpu=8,mem=32G,node=2,billing=8,gres/gpu=2,gres/gpu:a100=2"}}
    waits = job(after=tres, **PENDING | old)
    assert (waits["cpus_req"], waits["cpus_alloc"], waits["gpus_req"], waits["gpus_alloc"], waits["tres_alloc"]) == (8, None, 2, None, None)
    runs = job(after=tres, **old)
    assert (runs["cpus_req"], runs["cpus_alloc"], runs["nodes_alloc"], runs["gpus_alloc"], runs["tres_req"]) == (None, 8, 2, 2, None)
    assert (runs["gpus_req"], runs["mem_alloc_bytes"], runs["mem_req_bytes"]) == (2, 32 << 30, 32 << 30)


def test_no_gpu_is_zero_where_they_are_tracked() -> None:
    row = job(tracked=True)
    assert (row["gpus_req"], row["gpus_alloc"]) == (0, 0)


# ---------------------------------------------------------------- hostile text


HOSTILE = ("x StartTime=2020-01-01T00:00:00", "x UserId=root(0) GroupId=root(0)", "a  b\tc", " blanks ", "JobName=x", "=", "Command=rm",
           "a\nJobId=7 JobName=other", "a\n   UserId=root(0)", "x HetJobIdSet=1-2", "TRES=gres/gpu=9", "\n", "NodeList= NumNodes=9",
           "x StdErr=/e TresPerNode=gres/gpu:9")


@BOTH
@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("key", ["JobName", "Command", "WorkDir", "Comment", "AdminComment"])
def test_a_users_text_is_no_field(key: str, text: str, one_line: bool) -> None:
    plain = job(one_line, after={"WorkDir": {"AdminComment": "-", "Comment": "-"}})
    row = job(one_line, after={"WorkDir": {"AdminComment": "-", "Comment": "-"} | ({key: text} if "Comment" in key else {})},
              **{} if "Comment" in key else {key: text})
    column = {"JobName": "name", "WorkDir": "work_dir", "Comment": "comment", "AdminComment": "admin_comment"}.get(key, "")
    assert {k: v for k, v in row.items() if k != column} == {k: v for k, v in plain.items() if k != column}
    if column:
        assert row[column] == (text if text.strip() else None)


@given(name=st.lists(st.sampled_from([*"ab =\n()", "UserId=", "JobState=", "Command=", "SubmitTime=", "JobId=7 "]), max_size=12)
       .map("".join), one_line=st.booleans())
def test_any_name_leaves_the_other_fields_alone(name: str, one_line: bool) -> None:
    found = read("jobs_detail", record(one_line, JobName=name) + record(one_line, JobId="101"), taken_at=LATER)
    plain = read("jobs_detail", record(one_line) + record(one_line, JobId="101"), taken_at=LATER)
    assert [{k: v for k, v in r.items() if k != "name"} for r in found.rows("jobs")] \
        == [{k: v for k, v in r.items() if k != "name"} for r in plain.rows("jobs")]


def test_a_name_with_all_fields_is_not_believed() -> None:
    forged = record(UserId="root(0)", JobState="COMPLETED").partition("JobName=")[2].strip()
    found = shown(record(JobName=forged) + record(JobId="101"))
    assert [r["job_id"] for r in found.rows("jobs")] == [101]
    assert found.causes == ["fields of the job are told twice"]


@pytest.mark.parametrize(("text", "cause"), [
    ("JobId=1\n", "not a record of scontrol show job"),
    ("JobId=1 JobName=x UserId=alice(1) JobState=RUNNING\n", "job without its fields"),
    ("hello\n", "not a record of scontrol show job"),
    (record(SubmitTime="Unknown"), "no submit time"),
    (record(JobState="DREAMING"), "unknown job state"),
])
def test_what_is_no_job_is_a_reject(text: str, cause: str) -> None:
    found = shown(text)
    assert found.causes == [cause]


def test_odd_values_are_null_and_told() -> None:
    found = shown(record(Priority="much", TimeLimit="soon", UserId="alice"))
    row = found.one("jobs")
    assert (row["priority"], row["limit_s"], row["user"]) == (None, None, None)
    assert len(found.causes) == 3


def test_no_jobs() -> None:
    assert shown("No jobs in the system\n").tables == {}


# ---------------------------------------------------------------- beside other sources


def test_accounting_stays_and_squeue_is_not_undone(tmp_path: Any) -> None:
    """scontrol's rows are of the lowest rank; at one moment squeue's stand."""
    squeue = ("JOBID|NAME|USER|STATE|SUBMIT_TIME|TIME_LIMIT\n200_[1-40]|train|alice|PENDING|2026-06-01T08:00:00|1:00:00\n")
    cut = record(after={"JobId": {"ArrayJobId": "200", "ArrayTaskId": "1-9,11..."}}, **PENDING | {"JobId": "200"})
    (tmp_path / "scontrol-show-job.txt").write_text(record() + cut)
    (tmp_path / "squeue.txt").write_text(squeue)
    (tmp_path / "taken-at.txt").write_text("2026-06-13T09:24:11Z")
    lake = Lake.open(tmp_path / "lake", create=True)
    ingest_captures([capture("sacct", sacct_text({}))], lake)
    ingest_folder(tmp_path, lake, cluster="campus")
    rows = {r["job_id"]: r for r in lake.refresh().read("jobs").to_pylist()}
    assert (rows[100]["source"], rows[100]["state"], rows[100]["end"]) == ("sacct", "COMPLETED", utc("2026-06-01T10:00:00"))
    assert (rows[200]["source"], rows[200]["array_tasks"], rows[200]["array_tasks_exact"]) == ("squeue", 40, True)
