"""``queuecast failed`` against a real Slurm: jobs that fail in known ways, their logs where Slurm wrote them, told as what they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from queuecast.answers.failures.failure import FailureAnswer, failure
from queuecast.answers.failures.groups import platform_groups
from queuecast.answers.viewer import Viewer
from queuecast.clock import now
from queuecast.errors import NotPermitted

from .cluster import Cluster
from .configuration import CLUSTER
from .machine import wait
from .queue_cli import Queuecast
from .workload import ANN, BEN

pytestmark = pytest.mark.slurm

SCRIPTS = {
    "module": "echo begin\npython3 -c 'import no_such_module_here'",
    "command": "no-such-command-here --x",
    "segv": "python3 -c 'import os; os.kill(os.getpid(), 11)'",
    "own": "python3 -c 'raise ValueError(3)'",
    "quota": "echo 'cp: error writing x: Disk quota exceeded' >&2\nexit 1",
    "step": "srun -n1 sh -c 'kill -6 $$'\nexit 4",
    "limit": "sleep 600",
    "mine": "sleep 600",
    "theirs": "sleep 600",
    "lost": "sleep 600",
    "good": "echo done",
}
LIMIT_S = 150
LOST = "cpu-3"


@pytest.fixture(scope="module")
def place(cluster: Cluster) -> Path:
    folder = cluster.home / "work" / "failed"
    folder.mkdir()
    cluster.run("chown", ANN, str(folder))
    for name, body in SCRIPTS.items():
        (folder / f"{name}.sh").write_text(f"#!/bin/bash\n#SBATCH -p cpu --mem=50M -t 1 --no-requeue -o %x-%j.log\n{body}\n")
    return folder


@pytest.fixture(scope="module")
def jobs(cluster: Cluster, place: Path) -> Iterator[dict[str, int]]:
    """All of them ended, but for what they wait for."""

    def submit(*words: str) -> int:
        done = cluster.run("sbatch", "--parsable", "-A", "vision", *words, user=ANN, cwd=place)
        return int(done.stdout.split(b";")[0])

    def states(number: int) -> list[str]:
        return cluster.text("sacct", "-n", "-X", "-P", "-j", str(number), "-o", "State").split("\n")[:-1]

    # The node that is taken away must not take the others along.
    made = {name: submit("-J", name, *(("-w", LOST) if name == "lost" else ("-x", LOST)), f"{name}.sh") for name in SCRIPTS}
    made["output"] = submit("-x", LOST, "-o", "no/such/folder/x.log", "good.sh")
    for _ in wait(90, "jobs to run", every=1.0):
        if all(states(made[n])[-1:] == ["RUNNING"] for n in ("limit", "mine", "theirs", "lost")):
            break
    cluster.run("scancel", str(made["mine"]), user=ANN)
    cluster.run("scancel", str(made["theirs"]))
    cluster.run("scontrol", "update", f"nodename={LOST}", "state=down", "reason=taken away by a test")
    for _ in wait(60, f"{LOST} to come back", every=1.0):  # by itself, once it registers again, or when told to
        cluster.run("scontrol", "update", f"nodename={LOST}", "state=resume", check=False)
        if not cluster.text("sinfo", "-h", "-N", "-n", LOST, "-o", "%T").startswith("down"):
            break
    for _ in wait(LIMIT_S, f"jobs {made} to end", every=2.0):
        found = {n: states(j)[-1:] for n, j in made.items()}
        if all(s and not s[0].startswith(("RUNNING", "PENDING")) for s in found.values()):
            break
    yield made
    cluster.run("scancel", "-u", ANN)


@pytest.fixture(scope="module")
def asked(cluster: Cluster, jobs: dict[str, int], tmp_path_factory: pytest.TempPathFactory) -> Queuecast:
    made = Queuecast(cluster, tmp_path_factory.mktemp("failed") / "lake")
    made.run("collect", "--json")
    shown = made.path.parent / "scontrol-show-job.txt"  # before 24.05 only scontrol tells where logs lie
    shown.write_text(cluster.text("scontrol", "-d", "-o", "show", "job"))
    made.run("ingest", str(shown), "--cluster", CLUSTER, "--tz", "UTC", "-q")
    return made


def answer(asked: Queuecast, number: int, viewer: Viewer | None = None) -> FailureAnswer:
    return failure(asked.lake, CLUSTER, str(number), now(), viewer or Viewer())


def test_each_is_told_as_what_it_is(asked: Queuecast, jobs: dict[str, int]) -> None:
    wanted = {
        "module": "environment", "command": "environment", "segv": "user_code", "own": "user_code", "quota": "environment",
        "step": "user_code",
        "limit": "time_limit", "mine": "user_cancel", "theirs": "scheduler_cancel", "lost": "node", "output": "environment",
        "good": None,
    }  # fmt: skip
    assert {name: answer(asked, number).failure_class for name, number in jobs.items()} == wanted


def test_the_log_is_found_where_slurm_wrote_it(asked: Queuecast, jobs: dict[str, int], place: Path) -> None:
    told = answer(asked, jobs["module"])
    assert told.logs is not None
    assert [r["std_out"] for r in asked.rows("job_files") if r["job_id"] == jobs["module"]], asked.rows("job_files")
    assert told.logs.missing == ()
    assert [(f.path, f.status) for f in told.logs.files] == [(str(place / f"module-{jobs['module']}.log"), "read")]
    (line,) = [e for e in told.evidence if e.source == "log" and "no_such_module_here" in (e.line or "")]
    assert line.speaks_for == "environment"
    assert line.number is not None


def test_the_signal_is_read_through_what_this_version_prints(asked: Queuecast, jobs: dict[str, int]) -> None:
    told = answer(asked, jobs["segv"])
    assert (told.job.exit_code, told.job.exit_signal) in ((11, 0), (139, 0))
    assert any("signal 11" in e.text for e in told.evidence if e.source == "exit")


def test_the_node_that_was_lost_is_named_with_its_event(asked: Queuecast, jobs: dict[str, int]) -> None:
    told = answer(asked, jobs["lost"])
    assert (told.turn, told.job.state) == ("site", "NODE_FAIL")
    groups = platform_groups(asked.lake, CLUSTER, told.job.submit or now(), now(), Viewer())
    assert str(jobs["lost"]) in [j for g in groups for j in g.jobs]
    assert told.group is not None
    assert told.group.nodes == (told.job.node_list,)


def test_others_are_refused_and_the_command_says_the_same(asked: Queuecast, jobs: dict[str, int]) -> None:
    with pytest.raises(NotPermitted):
        answer(asked, jobs["own"], Viewer(BEN, sees_all=False))
    assert answer(asked, jobs["own"], Viewer(ANN, sees_all=False)).failure_class == "user_code"
