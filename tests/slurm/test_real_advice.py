"""The same queue twice on a real Slurm: once with the job as asked, once as advised. The advised one starts sooner."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from .cluster import Cluster
from .machine import wait
from .queue_cli import Queuecast
from .workload import ACCOUNT, ANN, BEN

pytestmark = pytest.mark.slurm

ASKED = ("-p", "gpu", "--gres=gpu:a100:2", "-c", "2", "--mem=1000", "-t", "5")


@pytest.fixture(scope="module")
def asked(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queuecast]:
    yield Queuecast(cluster, tmp_path_factory.mktemp("advised") / "lake")
    empty(cluster)


def empty(cluster: Cluster) -> None:
    for user in (ANN, BEN):
        cluster.run("scancel", "-u", user)
    for _ in wait(60, "jobs did not end"):
        if not cluster.text("squeue", "-h", "-u", f"{ANN},{BEN}").strip():
            return


def submit(cluster: Cluster, user: str, *args: str, sleep: int) -> int:
    given = ("sbatch", "--parsable", "-o", "/dev/null", "-A", ACCOUNT[user], *args, "--wrap", f"sleep {sleep}")
    return int(cluster.text(*given, user=user).strip())


def fill(cluster: Cluster) -> None:
    """Three of four A100 of each node are taken for the next three quarters of a minute."""
    jobs = [submit(cluster, BEN, "-p", "gpu", "--gres=gpu:a100:3", "-n1", "-t", "20", sleep=45) for _n in range(2)]
    for _ in wait(30, "the queue was not filled"):
        states = cluster.text("squeue", "-h", "-j", ",".join(map(str, jobs)), "-o", "%T").split()
        if states == ["RUNNING", "RUNNING"]:
            return


def started_after(cluster: Cluster, job: int) -> float:
    begin = time.monotonic()
    for _ in wait(120, f"job {job} did not start"):
        if cluster.text("squeue", "-h", "-j", str(job), "-o", "%T").strip() == "RUNNING":
            break
    return time.monotonic() - begin


def test_the_advised_job_starts_sooner(asked: Queuecast, cluster: Cluster) -> None:
    empty(cluster)
    fill(cluster)
    asked.collect()
    told = asked.answer("alternatives", *ASKED, "-A", ACCOUNT[ANN], "-u", ANN, "--hours", "0.01", "--futures", "12")
    assert told["futures"] == 12, told["basis"]
    shown = [(o["label"], o["wait"], o["finish"], o["p_sooner"]) for o in (told["as_asked"], *told["options"])]
    assert told["recommended"] is not None, (shown, told["agreement"], told["basis"], told["same"])
    best = told["options"][told["recommended"]]
    assert best["p_sooner"] > 0.5
    advised = started_after(cluster, submit(cluster, ANN, *ASKED, *best["flags"], sleep=120))
    empty(cluster)
    fill(cluster)
    as_asked = started_after(cluster, submit(cluster, ANN, *ASKED, sleep=120))
    assert advised + 5 < as_asked, (advised, as_asked, best)


def test_sbatch_takes_every_option(asked: Queuecast, cluster: Cluster) -> None:
    """As pasted behind the flags as asked."""
    told = asked.answer("alternatives", *ASKED, "-A", ACCOUNT[ANN], "-u", ANN, "--hours", "0.05", "--futures", "4")
    for option in told["options"]:
        args = [*ASKED, *option["flags"]]
        done = cluster.run("sbatch", "--test-only", "-A", ACCOUNT[ANN], *args, "--wrap", "true", user=ANN, check=False)
        assert done.returncode == 0, (option["label"], args, done.stderr)
