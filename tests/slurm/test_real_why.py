"""``queuecast why`` against a real Slurm: what keeps each job is found from its state, with Slurm's reason hidden and with it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cache

import pytest

from queuecast.answers.explaining.binding import Binding, binding, compare
from queuecast.answers.explaining.budget import spent_of
from queuecast.answers.explaining.queue import limit_shares, snapshot_at, with_throttle
from queuecast.answers.lookup import KnownJob, find_job
from queuecast.answers.viewer import Viewer
from queuecast.clock import now
from queuecast.policy.tables import policy_at
from queuecast.policy.usage import usage_at

from .cluster import Cluster
from .configuration import CLUSTER
from .machine import wait
from .queue_cli import Queuecast
from .workload import ANN, CID, Workload, reasons

pytestmark = pytest.mark.slurm

HOLDS = ("JobHeldUser", "JobHeldAdmin")
"""Who put a job on hold shows in Slurm's reason alone: blind, either is right."""

KEYS = (
    "wait-first", "wait-behind", "held-user", "held-admin", "begin", "depends", "never", "array-throttled", "licence", "reservation",
    "drained", "maintenance", "qos-group", "debug-second", "debug-gpus", "debug-long", "debug-nodes", "debug-memory", "small-many",
    "small-few", "small-wall", "spent", "course-cpus", "course-gpus", "course-wall", "seminar-second", "down",
)  # fmt: skip
NEVER = {
    "never", "debug-gpus", "debug-long", "debug-nodes", "debug-memory", "small-many", "small-few", "small-wall", "spent", "course-cpus",
    "course-gpus", "course-wall",
}  # fmt: skip


@dataclass(frozen=True)
class Found:
    """What was found, without and with Slurm's reason, and the reason."""

    blind: Binding
    told: Binding
    reason: str


class Judge:
    """The last collection, asked about jobs."""

    def __init__(self, queuecast: Queuecast, at: datetime) -> None:
        lake = queuecast.lake
        self.lake, self.at = lake, at
        self.policy, self.usage, self.snapshot = policy_at(lake, CLUSTER, at), usage_at(lake, CLUSTER, at), snapshot_at(lake, CLUSTER, at)
        self.spent = spent_of(lake, CLUSTER, at, self.policy)
        self.shares = cache(lambda: limit_shares(lake, CLUSTER, at))

    def job(self, number: int) -> KnownJob:
        return find_job(self.lake, CLUSTER, str(number), self.at)

    def ask(self, number: int, viewer: Viewer | None = None) -> Found:
        job = self.job(number)
        row = self.snapshot.row(job.job_id, job.text)
        assert row is not None, job
        row = with_throttle(self.lake, CLUSTER, row, self.at)
        seen = viewer or Viewer(job.user)

        def one(hidden: bool) -> Binding:
            shown = row | {"reason": None, "reason_text": None} if hidden else row
            return binding(self.policy, self.usage, self.snapshot, shown, job.request, self.shares, seen, self.spent)

        return Found(one(True), one(False), row["reason"])


@pytest.fixture(scope="module")
def judge(queuecast: Queuecast, workload: Workload, cluster: Cluster) -> Judge:
    """Collected once more when every job shows the reason that it was made for."""
    for _ in wait(60, "reasons to stand"):
        shown = reasons(cluster)
        if all(shown.get(workload.ids[k], "").startswith(workload.expect[k]) for k in KEYS):
            break
    queuecast.collect()
    return Judge(queuecast, now())


@pytest.mark.parametrize("key", KEYS)
def test_what_binds_is_found(judge: Judge, workload: Workload, key: str) -> None:
    found = judge.ask(workload.ids[key])
    wanted = workload.expect[key]
    assert found.reason == wanted
    blind, told = found.blind.constraints[0], found.told.constraints[0]
    assert (told.code, found.told.agreement) == (wanted, "same"), found.told
    assert told.standing == ("never" if key in NEVER else "held" if wanted in HOLDS else "waits"), told
    if key == "drained":  # which nodes were named with -w is not in squeue's output: only the reason tells
        assert blind.code in ("Priority", "NextPass", "Resources")
        assert "cpu-3" in told.text
    elif wanted in HOLDS:
        assert blind.code in HOLDS
    else:
        assert blind.code == wanted, found.blind
        assert compare(wanted, found.blind.constraints)[0] == "same"


def test_limits_say_who_uses_how_much_and_what_ends_next(judge: Judge, workload: Workload) -> None:
    first = judge.ask(workload.ids["qos-group"]).told.constraints[0]
    assert (first.limit, first.used, first.asked) == (2, 2, 1)
    assert "2 of 2 GPUs allowed by QOS high" in first.text
    assert first.release is not None
    assert first.release.by_limit is not None
    assert first.release.job == str(workload.ids["run-high"])
    stranger = judge.ask(workload.ids["seminar-second"], Viewer(CID, sees_all=False)).told.constraints[0]
    assert "account seminar" in stranger.text
    assert stranger.release is not None
    assert stranger.release.job == str(workload.ids["seminar-runs"])
    hidden = judge.ask(workload.ids["qos-group"], Viewer("nobody", sees_all=False)).told.constraints[0]
    assert hidden.release is not None
    assert (hidden.release.job, [e.job for e in hidden.release.next]) == (None, [None])
    licence = judge.ask(workload.ids["licence"]).told.constraints[0]
    assert (licence.limit, licence.used, licence.asked) == (4, 3, 2)


def test_an_impossible_shape_is_never(judge: Judge, queuecast: Queuecast, cluster: Cluster, workload: Workload) -> None:
    """sbatch refuses one; it becomes impossible when the last node with the feature loses it."""
    refused = cluster.run("sbatch", "-A", "vision", "-p", "gpu", "--gres=gpu:a100:8", "--wrap", "true", user=ANN, check=False)
    assert refused.returncode
    number = workload.need("impossible", ANN, "-H", "-n1", "-C", "v100", "--mem=10", "-t", "5", partition="gpu")
    try:
        cluster.run("scontrol", "update", "NodeName=v100-1", "AvailableFeatures=old", "ActiveFeatures=old")
        cluster.run("scontrol", "release", str(number))
        for _ in wait(30, "a reason"):
            if reasons(cluster).get(number, "None") not in ("None", "JobHeldUser"):
                break
        queuecast.collect()
        found = Judge(queuecast, now()).ask(number)
        assert (found.blind.constraints[0].code, found.blind.constraints[0].standing) == ("BadConstraints", "never"), found
        assert found.told.constraints[0].standing == "never", found
    finally:
        cluster.run("scancel", str(number))
        cluster.run("scontrol", "update", "NodeName=v100-1", "AvailableFeatures=v100", "ActiveFeatures=v100")


def test_the_command_says_it(judge: Judge, queuecast: Queuecast, workload: Workload) -> None:
    told = queuecast.answer("why", str(workload.ids["qos-group"]), "-u", ANN)
    first = told["binding"]["constraints"][0]
    assert (first["code"], first["limit"], first["used"]) == ("QOSGrpGRES", 2, 2)
    text = queuecast.run("why", str(workload.ids["licence"])).stdout
    assert "3 of the 4 licences of matlab" in text


def test_the_change_that_the_limit_has_room_for(judge: Judge, queuecast: Queuecast, workload: Workload) -> None:
    """Asked for a limit that is too long, the command says which one would be taken; Slurm takes it and forgets the reason."""
    number = workload.ids["small-wall"]
    told = queuecast.answer("why", str(number))["changes"]
    cut = next(c for c in told["changes"] if c["kinds"] == ["limit"])
    assert (cut["effect"], cut["keeps_place"], cut["flags"]) == ("allowed", True, [f"JobId={number}", "TimeLimit=01:00:00"])
    cluster = queuecast.cluster
    cluster.run("scontrol", "update", *cut["flags"])
    for _ in wait(40, "another reason, or a start"):
        shown = cluster.text("squeue", "-h", "-j", str(number), "-o", "%T %r", check=False)
        if "QOSMaxWallDurationPerJobLimit" not in shown:
            break
