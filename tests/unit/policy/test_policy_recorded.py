"""Verdicts against Slurm's own: recordings of the real Slurm 22.05 and 24.11 in which jobs wait for every kind of limit."""

from __future__ import annotations

import tarfile
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from queuecast.collect.ingest import ingest_folder
from queuecast.policy.request import Request
from queuecast.policy.tables import Policy, policy_at
from queuecast.policy.usage import Usage, usage_at
from queuecast.policy.verdicts import verdicts
from queuecast.store.lake import Lake

DATA = Path(__file__).parents[2] / "data"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LIMITS = ("Assoc", "QOS", "Partition", "PerAccount", "MaxMem", "AccountNot", "BadConstraints")
STALE = {"QOSGrpGRES", "QOSGrpJobsLimit", "AssocGrpCpuLimit", "AssocGrpGRES"}
"""Slurm keeps such a reason after its cause is gone until it looks at the job again; the recording shows both."""
CHANGED = {"InvalidQOS", "BadConstraints", "PartitionConfig"}
"""Jobs that were let in and then lost their right (the QOS, the feature); the configuration was read once, at the end.
PartitionConfig is what Slurm says first of all that a partition forbids, until it has looked again."""


@pytest.fixture(scope="module", params=["22.05", "24.11"])
def lake(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    root = tmp_path_factory.mktemp("reasons")
    with tarfile.open(DATA / f"reasons-{request.param}.tar.xz") as packed:
        packed.extractall(root, filter="data")
    made = Lake.open(root / "lake", create=True)
    folder = next(p.parent for p in root.rglob("squeue*") if p.parent.name != "samples")
    ingest_folder(folder, made)
    return made


def as_request(row: dict[str, Any]) -> Request:
    nodes = row["nodes"] or 1
    return Request(
        partitions=tuple((row["partition"] or "").split(",")),
        gpus=row["gpus"] or 0,
        gpu_type=None if row["gpu_type"] == "mixed" else row["gpu_type"],
        nodes=nodes,
        cpus=row["cpus"] or 1,
        mem_bytes=row["mem_req_bytes"] * nodes if row["mem_req_bytes"] else None,
        limit_s=row["limit_s"],
        unlimited=row["limit_kind"] == "unlimited",
        account=row["account"],
        qos=row["qos"],
        user=row["user"],
        constraint=row["constraints"],
        reservation=row["reservation"],
    )


def cluster(lake: Lake) -> str:
    return next(c for c in lake.clusters if c.startswith("virt"))


def snapshots(lake: Lake) -> Iterator[tuple[Policy, Usage, list[dict[str, Any]]]]:
    queue = lake.read("queue", cluster=cluster(lake))
    micros = queue["observed_at"].cast(pa.int64())
    for moment in sorted(set(micros.to_pylist())):
        rows = queue.filter(pc.equal(micros, moment)).drop_columns(["observed_at"]).to_pylist()
        if any(r["account"] for r in rows):  # a bare squeue prints neither account nor QOS
            at = EPOCH + timedelta(microseconds=moment)
            yield policy_at(lake, cluster(lake), at), usage_at(lake, cluster(lake), at), [r for r in rows if r["account"]]


def test_every_limit_that_slurm_names_is_found(lake: Lake) -> None:
    shown: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for policy, usage, rows in snapshots(lake):
        for row in rows:
            reason = row["reason"] or ""
            if row["state"] == "PENDING" and any(word in reason for word in LIMITS):
                shown[reason] += 1
                codes = [v.code for v in verdicts(policy, as_request(row), usage, without=row["job_id"])]
                found[reason] += reason in codes
    assert len(shown) > 22
    for reason, count in shown.items():
        if reason not in STALE | CHANGED:
            assert found[reason] == count, reason
    for reason in STALE:
        assert found[reason] >= 0.6 * shown[reason], reason
    assert sum(found.values()) >= 0.9 * sum(shown.values())


def test_what_runs_breaks_no_rule_by_itself(lake: Lake) -> None:
    ran = 0
    for policy, _usage, rows in snapshots(lake):
        for row in rows:
            if row["state"] == "RUNNING":
                ran += 1
                assert not [v for v in verdicts(policy, as_request(row), without=row["job_id"]) if v.kind != "waits"], row
    assert ran > 400


def test_a_verdict_says_whose_limit_how_much_and_what_to_do(lake: Lake) -> None:
    at = datetime(2026, 12, 1, tzinfo=UTC)
    policy, usage = policy_at(lake, cluster(lake), at), usage_at(lake, cluster(lake), at)
    ask = Request(partitions=("debug",), gpus=3, gpu_type="v100", cpus=1, limit_s=7200, account="vision", qos="normal", user="alice")
    found = {v.code: v for v in verdicts(policy, ask, usage)}
    assert {"PartitionTimeLimit", "QOSMaxWallDurationPerJobLimit", "QOSMaxGRESPerUser"} <= set(found)
    gpus = found["QOSMaxGRESPerUser"]
    assert (gpus.scope, gpus.tres, gpus.limit, gpus.asked, gpus.kind) == ("QOS debug", "gres/gpu", 2, 3, "never")
    assert "2" in gpus.fix
    assert all(v.text and v.fix and v.partition == "debug" for v in found.values())


def test_nodes_and_what_is_in_use(lake: Lake) -> None:
    at = datetime(2026, 12, 1, tzinfo=UTC)
    policy = policy_at(lake, cluster(lake), at)
    node = next(n for n in policy.nodes if n.name == "a100-01")
    assert (node.cpus, node.gpus, node.gpu_count) == (64, {"a100": 4}, 4)
    assert node.available
    assert node.gpus_alloc is not None
    assert node.idle_gpus("a100") == 4 - node.gpus_alloc.get("a100", 0)
    assert policy.missing == ()
