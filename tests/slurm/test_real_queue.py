"""queuecast on a real Slurm, from the command line to the lake, against what Slurm itself says: the queue, the nodes, the setup."""

from __future__ import annotations

import pytest

from . import truth
from .configuration import A100, CLUSTER, KINDS, V100
from .queue_cli import Queuecast
from .seen import Seen, one
from .workload import Workload

pytestmark = pytest.mark.slurm


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
    assert set(rows) == set(truth.squeue(queuecast.cluster))


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
