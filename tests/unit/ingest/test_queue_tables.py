"""squeue in all its forms, start estimates, nodes, priorities, shares: recorded text and made-up lines."""

from __future__ import annotations

from typing import Any

import pytest
from ingest_support import fixture, job, read, utc

VERSIONS = ("22.05", "24.11")


def queue_text(*rows: dict[str, str], **more: str) -> str:
    base = {"JOBID": "100", "NAME": "train", "USER": "alice", "ACCOUNT": "vision", "PARTITION": "gpu", "QOS": "normal",
            "STATE": "RUNNING",
            "REASON": "None", "NODES": "1", "CPUS": "4", "MIN_MEMORY": "4G", "TRES_PER_NODE": "N/A", "TIME_LIMIT": "1:00:00",
            "TIME": "10:00",
            "SUBMIT_TIME": "2026-06-01T08:00:00", "START_TIME": "2026-06-01T09:00:00", "END_TIME": "2026-06-01T10:00:00",
            "PRIORITY": "12",
            "NODELIST": "a100-01", "SCHEDNODES": "(null)"} | more
    names = list(dict.fromkeys([*base, *(k for r in rows for k in r)]))
    return "\n".join(["|".join(names), *("|".join((base | r).get(n, "") for n in names) for r in rows or ({},))]) + "\n"


def queue(*rows: dict[str, str], **more: Any) -> dict[str, Any]:
    return read("squeue", queue_text(*rows), **more).one("queue")


PENDING = {"STATE": "PENDING", "NODELIST": "", "REASON": "Priority", "START_TIME": "N/A", "END_TIME": "N/A", "TIME": "0:00"}


@pytest.mark.parametrize(("fields", "expected"), [
    pytest.param({}, {"start": utc("2026-06-01T09:00:00"), "start_estimate": None, "end_expected": utc("2026-06-01T10:00:00")},
                 id="A19 forecast"),
    pytest.param({"END_TIME": "NONE", "TIME_LIMIT": "UNLIMITED"}, {"end_expected": None, "limit_kind": "unlimited",
        "limit_s": None}, id="A05 NONE"),
    pytest.param(PENDING, {"start": None, "start_estimate": None, "elapsed_s": 0, "node_list": None}, id="F01 not tested"),
    pytest.param(PENDING | {"START_TIME": "2026-06-01T15:00:00", "SCHEDNODES": "h100-01"},
                 {"start": None, "start_estimate": utc("2026-06-01T15:00:00"), "sched_nodes": "h100-01",
                  "end_expected": None}, id="F13 estimate"),
    pytest.param({"TRES_PER_NODE": "N/A"}, {"gpus": None}, id="B07 N/A tells nothing"),
    pytest.param({"TRES_PER_NODE": "N/A", "TRES_ALLOC": "cpu=4,mem=32G,node=1,gres/gpu=1"}, {"gpus": 1},
                 id="B07 tres-alloc is the whole job"),
    pytest.param({"TRES_PER_NODE": "gres:gpu:a100:2", "NODES": "3"}, {"gpus": 6, "gpu_type": "a100"},
                 id="B07 per node times nodes"),
    pytest.param({"TRES_PER_NODE": "gres:gpu:2", "NODES": "3", "TRES_ALLOC": "cpu=4,node=3,gres/gpu=6"}, {"gpus": 6},
                 id="B07 never twice"),
    pytest.param(PENDING | {"TRES_PER_JOB": "gpu:12", "TRES_PER_NODE": "N/A"}, {"gpus": 12, "nodes": 1}, id="B29 gpus per job"),
    pytest.param({"TRES_PER_NODE": "gpu:titanrtx:0"}, {"gpus": 0}, id="B32 zero"),
    pytest.param({"STATE": "CANCELLED", "NODELIST": "", "START_TIME": "2026-06-01T09:30:00", "END_TIME": "2026-06-01T09:30:00"},
                 {"start": None, "state": "CANCELLED"}, id="D02 never started"),
    pytest.param({"PARTITION": "cpu,gpu"}, {"partition": "cpu,gpu"}, id="H01 two partitions"),
    pytest.param({"REASON": "(ReqNodeNotAvail, UnavailableNodes:gpu[01-03],cpu7)"}, {"reason": "ReqNodeNotAvail"},
                 id="D10 nodes"),
    pytest.param({"ACCOUNT": "(null)"}, {"account": None}, id="G10 null"),
    pytest.param({"JOBID": "100_[5-100%4]", "STATE": "PENDING"}, {"array_tasks": 96, "array_throttle": 4, "array_job_id": 100},
                 id="C01 array"),
    pytest.param({"CPUS": "4K"}, {"cpus": 4096}, id="large counts are shortened"),
])
def test_values(fields: dict[str, str], expected: dict[str, Any]) -> None:
    row = queue(fields)
    assert {k: row[k] for k in expected} == expected


def test_duplicate_headers_are_told_apart() -> None:
    text = "JOBID|JOBID|PRIORITY|PRIORITY|STATE|ST\n65_1|152|372|0.00000008661300|PENDING|PD\n70|70|5|0.1|RUNNING|R\n"
    turned = "\n".join("|".join(line.split("|")[i] for i in (1, 0, 3, 2, 4, 5)) for line in text.strip().split("\n")) + "\n"
    for form in (text, turned):
        rows = read("squeue", form).rows("queue")
        assert [(r["job_id"], r["job_id_text"], r["priority"]) for r in rows] == [(152, "65_1", 372), (70, "70", 5)]


def test_D19_nodes_and_reason_in_one_column() -> None:
    text = "JOBID|PARTITION|ST|NODELIST(REASON)\n1|gpu|R|gpu[01-02]\n2|gpu|PD|(Priority)\n"
    rows = read("squeue", text).rows("queue")
    assert [(r["node_list"], r["reason"]) for r in rows] == [("gpu[01-02]", None), (None, "Priority")]


def test_C13_cluster_sections() -> None:
    part = "JOBID|STATE\n1|RUNNING\n"
    rows = read("squeue", f"CLUSTER: a\n{part}\nCLUSTER: b\n{part}").rows("queue")
    assert [r["cluster"] for r in rows] == ["a", "b"]


def test_samples_have_their_own_times() -> None:
    part = "JOBID|STATE\n1|RUNNING\n"
    empty = "JOBID|STATE\n"
    text = (f"### 1780278567 2026-06-01T01:49:27 squeue -o %i|%T\n{part}"
            f"### 1780280372 2026-06-01T02:19:32 squeue -o %i|%T\n{empty}"
            f"### 1780282172 2026-06-01T02:49:32 squeue -o %i|%T\n{part}")
    found = read("squeue", text, sampled=True)
    assert [r["observed_at"] for r in found.rows("queue")] == [utc("2026-06-01T01:49:27"), utc("2026-06-01T02:49:32")]
    assert found.all_lines_told()


def test_a_sample_with_other_columns() -> None:
    text = ("### 1780278567 2026-06-01T01:49:27 squeue\nJOBID|STATE\n1|RUNNING\n"
            "### 1780280372 2026-06-01T02:19:32 squeue\nSTATE|USER|JOBID\nPENDING|bob|2\n")
    rows = read("squeue", text, sampled=True).rows("queue")
    assert [(r["job_id"], r["state"], r["user"]) for r in rows] == [(1, "RUNNING", None), (2, "PENDING", "bob")]


def test_jobs_from_squeue_fold_the_tasks_of_a_pending_array() -> None:
    rows = [PENDING | {"JOBID": f"63_{i}"} for i in (1, 2, 3, 7)]
    text = "\n".join(line if i else f"{line}|JOBID" for i, line in enumerate(queue_text(*rows).strip().split("\n")))
    text = "\n".join(line if not i else f"{line}|63" for i, line in enumerate(text.split("\n"))) + "\n"
    found = read("squeue", text)
    assert found.tables["queue"].num_rows == 4
    row = found.one("jobs")
    assert (row["job_id"], row["job_id_text"], row["array_tasks"], row["array_task"]) == (63, "63_[1-3,7]", 4, None)
    assert (row["completeness"], row["source"]) == (0, "squeue")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("form", ["squeue-o.txt", "squeue-all.txt", "squeue-O-all.txt", "squeue-final.txt", "squeue-default.txt"])
def test_recorded_forms(version: str, form: str) -> None:
    raw = fixture(f"slurm-{version}/{form}")
    found = read("squeue", raw, sampled=raw.startswith(b"###"))
    assert found.tables["queue"].num_rows > 10
    assert found.report.rejected == found.report.nulled == 0
    assert found.all_lines_told()
    for row in found.rows("queue"):
        assert row["state"] in {"PENDING", "RUNNING", "COMPLETED", "CANCELLED", "FAILED", "COMPLETING", "CONFIGURING",
                                "SUSPENDED", "TIMEOUT",
                                "PREEMPTED", "NODE_FAIL", "OUT_OF_MEMORY", "DEADLINE", "REQUEUED", "REQUEUE_HOLD",
                                "RESV_DEL_HOLD", "SPECIAL_EXIT", "STOPPED"}
        assert row["user"] in {"alice", "bob", "carol", "dave", "erin", "frank"}
        assert row["reason_text"] is None or "|" not in row["reason_text"]


def test_default_width_keeps_blanks_in_names() -> None:
    text = ("             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n"
            "              65_1       cpu  my runs    carol PD       0:00      1 (Dependency)\n"
            "                35       cpu two\nlin    alice  R       0:05      1 cpu-01\n")
    rows = read("squeue", text).rows("queue")
    assert [(r["job_id_text"], r["name"], r["user"], r["state"]) for r in rows] \
        == [("65_1", "my runs", "carol", "PENDING"), ("35", "two\nlin", "alice", "RUNNING")]


@pytest.mark.parametrize("version", VERSIONS)
def test_recorded_estimates(version: str) -> None:
    found = read("squeue_start", fixture(f"slurm-{version}/squeue-start.txt"), sampled=True)
    rows = found.rows("estimates")
    assert len(rows) > 20
    assert found.report.rejected == 0
    assert {r["state"] for r in rows} == {"PENDING"}
    assert any(r["start_estimate"] for r in rows)
    assert all((r["clamped"] is None) == (r["start_estimate"] is None) for r in rows)


def test_F02_clamped_and_F05_arrays() -> None:
    text = ("### 1780315200 2026-06-01T12:00:00 squeue --start\n"
            "JOBID|PARTITION|USER|STATE|START_TIME|NODES|SCHEDNODES|NODELIST(REASON)\n"
            "1|gpu|bob|PENDING|2026-06-01T12:00:00|1|a100-01|(Priority)\n"
            "500_[0-999]|gpu,long|bob|PENDING|2026-06-01T13:00:00|1|(null)|(Resources)\n"
            "3|gpu|bob|PENDING|N/A|1|(null)|(QOSMaxGRESPerUser)\n")
    rows = read("squeue_start", text, sampled=True).rows("estimates")
    assert [r["clamped"] for r in rows] == [True, False, None]
    assert (rows[1]["array_tasks"], rows[1]["job_id"], rows[1]["partition"]) == (1000, 500, "gpu,long")
    assert rows[2]["reason"] == "QOSMaxGRESPerUser"


@pytest.mark.parametrize("version", VERSIONS)
def test_nodes_of_scontrol(version: str) -> None:
    one = read("nodes", fixture(f"slurm-{version}/scontrol-show-node.txt"), sampled=True)
    assert one.tables["nodes"].num_rows == 24
    a100 = next(r for r in one.rows("nodes") if r["node"] == "a100-01")
    assert (a100["gpus"], a100["gpu_type"], a100["cpus"], a100["mem_bytes"]) == (4, "a100", 64, 512000 << 20)
    assert a100["gpus_alloc"] == (0 if version == "22.05" else 4)
    many = read("nodes", fixture(f"slurm-{version}/scontrol-show-node-d.txt"))
    assert many.tables["nodes"].num_rows == 4
    assert many.all_lines_told()
    assert all(r["gpus_alloc"] is not None for r in many.rows("nodes"))


@pytest.mark.parametrize(("text", "expected"), [
    pytest.param("Gres=gpu:8(S:0-3) GresUsed=gpu:a100:3(IDX:0-1,3)", {"gpus": 8, "gpus_alloc": 3}, id="B10 suffixes"),
    pytest.param("Gres=gpu:a100:2,shard:a100:8 GresUsed=gpu:a100:2(IDX:0,3),shard:a100:0(IDX:N/A)", {"gpus": 2, "gpus_alloc": 2},
                 id="B11 commas"),
    pytest.param("Gres=gpu:h100:8 CfgTRES=cpu=64,mem=1T AllocTRES=cpu=4", {"gpus": 8, "gpus_alloc": None}, id="H19 not tracked"),
    pytest.param("Gres=(null) CfgTRES=cpu=64,mem=1T AllocTRES=cpu=4", {"gpus": 0, "gpus_alloc": 0}, id="no GPUs"),
    pytest.param("Gres=gpu:4 CfgTRES=cpu=64,gres/gpu=4 AllocTRES=", {"gpus_alloc": 0}, id="idle"),
])
def test_gpus_of_nodes(text: str, expected: dict[str, Any]) -> None:
    line = f"NodeName=n1 Arch=x86_64 CPUAlloc=4 CPUTot=64 State=MIXED+PLANNED {text} OS=Linux 6.1 #1 SMP Reason=bad = worse\n"
    row = read("nodes", line).one("nodes")
    assert {k: row[k] for k in expected} == expected
    assert (row["state"], row["state_flags"], row["reason"]) == ("MIXED", "PLANNED", "bad = worse")


def test_G11_star_of_the_default_partition_and_G01_pipe_in_reasons() -> None:
    text = ('NODELIST|PARTITION|STATE|GRES|REASON\na100-04|gpu*|drained|gpu:a100:4|bad DIMM | slot 3, "see #42\n'
            'a100-04|scav|drained|gpu:a100:4|bad DIMM | slot 3, "see #42\n')
    row = read("sinfo", text).one("nodes")
    assert (row["partitions"], row["reason"], row["state"], row["state_flags"]) == ("gpu,scav", 'bad DIMM | slot 3, "see #42',
        "IDLE", "DRAIN")


def test_sinfo_line_for_several_nodes_tells_no_counts() -> None:
    rows = read("sinfo",
                "PARTITION|NODES|STATE|NODELIST|GRES|CPUS(A/I/O/T)\ngpu|2|mix|n[1-2]|gpu:a100:4|18/110/0/128\n").rows("nodes")
    assert [(r["node"], r["gpus"], r["cpus"], r["cpus_alloc"]) for r in rows] == [("n1", 4, None, None), ("n2", 4, None, None)]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("form", ["sinfo-N.txt", "sinfo-O-all.txt", "sinfo-all.txt", "sinfo.txt"])
def test_recorded_sinfo(version: str, form: str) -> None:
    raw = fixture(f"slurm-{version}/{form}")
    found = read("sinfo", raw, sampled=raw.startswith(b"###"))
    assert found.report.rejected == found.report.nulled == 0
    assert found.all_lines_told()
    keys = [(r["observed_at"], r["node"]) for r in found.rows("nodes")]
    assert len(keys) == len(set(keys)) >= 4


@pytest.mark.parametrize("version", VERSIONS)
def test_priorities(version: str) -> None:
    found = read("sprio", fixture(f"slurm-{version}/sprio-l.txt"), sampled=True)
    rows = found.rows("priorities")
    assert len(rows) > 20
    assert found.report.rejected == 0
    for r in rows:
        parts = sum(r[n] or 0 for n in ("site", "age", "assoc", "fairshare", "job_size", "partition_factor",
                                        "qos_factor")) - (r["nice"] or 0)
        assert 0 <= r["priority"] - parts <= 1500  # the rest is the TRES factors
        assert r["partition"] in {"gpu", "cpu", "debug", "scav", "long", "h100", "maint"}
        assert (r["qos"] is not None) == (version == "24.11")


def test_H16_one_row_per_partition() -> None:
    text = ("JOBID|PARTITION|PRIORITY|SITE|AGE|FAIRSHARE|JOBSIZE|PARTITION|USER\n"
            "222|cpu|1500|0|1|1|1|1000|bob\n222|gpu|900|0|1|1|1|400|bob\n")
    assert [(r["job_id"], r["partition"], r["priority"], r["partition_factor"]) for r in read("sprio", text).rows("priorities")] \
        == [(222, "cpu", 1500, 1000), (222, "gpu", 900, 400)]


@pytest.mark.parametrize("version", VERSIONS)
def test_shares(version: str) -> None:
    wide = read("sshare", fixture(f"slurm-{version}/sshare.txt"), sampled=True).rows("shares")
    fixed = read("sshare", fixture(f"slurm-{version}/sshare-long.txt")).rows("shares")
    assert {r["depth"] for r in wide} >= {0, 1, 2}
    assert [r["account"] for r in fixed][:2] == ["root", "root"]
    assert [r["depth"] for r in fixed][:3] == [0, 1, 1]
    assert wide[1]["level_fs"] == float("inf")
    assert wide[0]["raw_shares"] is None


@pytest.mark.parametrize("version", VERSIONS)
def test_the_rest(version: str) -> None:
    part = {r["partition"]: r for r in read("partitions",
                                            fixture(f"slurm-{version}/scontrol-show-partition.txt")).rows("partitions")}
    assert part["gpu"]["is_default"] is True
    assert part["debug"]["max_time_s"] == 1800
    assert part["debug"]["max_mem_per_node_bytes"] == 64000 << 20
    resv = read("reservations", fixture(f"slurm-{version}/scontrol-show-reservation.txt")).rows("reservations")
    assert {r["reservation"] for r in resv} == {"course101", "workshop", "maintenance"}
    assert next(r for r in resv if r["reservation"] == "course101")["users"] == "dave,carol"
    events = read("events", fixture(f"slurm-{version}/sacctmgr-events.txt")).rows("events")
    assert any(r["reason"] and "|" in r["reason"] for r in events) or version == "24.11"
    qos = {r["qos"]: r for r in read("qos", fixture(f"slurm-{version}/sacctmgr-qos.txt")).rows("qos")}
    assert (qos["debug"]["max_wall_s"], qos["debug"]["max_tres_per_user"], qos["normal"]["preempt"]) == (1800, "gres/gpu=2",
        "scavenger")
    assoc = read("assoc", fixture(f"slurm-{version}/sacctmgr-assoc.txt")).rows("associations")
    assert {r["account"] for r in assoc} >= {"root", "research"}
    settings = {r["key"]: r["value"] for r in read("config",
                                                   fixture(f"slurm-{version}/scontrol-show-config.txt")).rows("settings")}
    assert settings["AccountingStorageBackupHost"] is None
    weights = {r["key"]: r["value"] for r in read("sprio_weights",
                                                  fixture(f"slurm-{version}/sprio-weights.txt")).rows("settings")}
    assert (weights["AGE"], weights["FAIRSHARE"], weights["PARTITION"]) == ("1000", "10000", "1000")


def test_long_partition_records() -> None:
    rows = read("partitions", fixture("slurm-24.11/scontrol-show-partition-long.txt")).rows("partitions")
    assert [r["partition"] for r in rows] == ["gpu", "h100"][: len(rows)]


def test_queue_and_accounting_agree_on_keys() -> None:
    text = queue_text({"JOBID": "100"})
    assert read("squeue", text).one("jobs")["job_id"] == job()["job_id"]
    assert read("squeue", text).one("jobs")["submit"] == job()["submit"]
