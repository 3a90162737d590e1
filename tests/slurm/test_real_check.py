"""Verdicts, ``queuecast check`` and the templates against a real Slurm: what it refuses, never starts, and lets run."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from queuecast.clock import now
from queuecast.policy.request import from_options
from queuecast.policy.tables import policy_at
from queuecast.policy.usage import usage_at
from queuecast.policy.verdicts import Verdict, verdicts
from queuecast.slurmtext.reasons import parse_reason
from queuecast.slurmtext.script import parse_options

from .cluster import Cluster
from .configuration import CLUSTER
from .machine import wait
from .queue_cli import Queuecast
from .workload import ACCOUNT, ANN, BEN, CID

pytestmark = pytest.mark.slurm

WORK = """\
import pathlib, signal, sys, time
place = pathlib.Path(sys.argv[sys.argv.index("--checkpoint") + 1])
stop = []
signal.signal(signal.SIGUSR1, lambda *_: stop.append(1))
import os
first = os.environ.get("RANK", "0") == "0"
if place.exists():
    print("went on from", place.read_text(), "in", os.environ.get("WORLD_SIZE", "1"), flush=True)
    sys.exit(0)
print("began", flush=True)
for step in range(3000):
    if stop:
        if first:
            place.write_text(str(step))
        sys.exit(0)
    time.sleep(0.1)
"""
SERVER = """\
import os, signal, sys, time
print("serving at", sys.argv[1], flush=True)
if os.environ.get("SLURM_RESTART_COUNT", "0") != "0":
    sys.exit(0)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
time.sleep(300)
"""


@pytest.fixture(scope="module")
def asked(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queuecast]:
    """A lake with the configuration of the cluster; every job of this module is gone at the end."""
    made = Queuecast(cluster, tmp_path_factory.mktemp("checked") / "lake")
    made.collect()
    yield made
    for user in (ANN, BEN, CID):
        cluster.run("scancel", "-u", user)


@dataclass(frozen=True)
class Told:
    """What Slurm said: its error, or the reason and state of the job."""

    error: str
    state: str
    reason: str


def submit(cluster: Cluster, user: str, *args: str) -> tuple[int | None, str]:
    given = args if "-A" in args else ("-A", ACCOUNT[user], *args)
    done = cluster.run("sbatch", "--parsable", "-o", "/dev/null", *given, "--wrap", "sleep 600", user=user, check=False)
    return (None, done.stderr.decode()) if done.returncode else (int(done.stdout.split(b";")[0]), "")


def said(cluster: Cluster, job: int) -> tuple[str, str]:
    state, _, reason = cluster.text("squeue", "-h", "-j", str(job), "-o", "%T|%r").strip().partition("|")
    return state, reason


def slurm(cluster: Cluster, user: str, *args: str) -> Told:
    """Submit, and wait until Slurm has looked at the job: at first it says PartitionConfig for all that a partition forbids."""
    job, error = submit(cluster, user, *args)
    if job is None:
        return Told(error, "", "")
    state = reason = ""
    for _ in wait(40, f"a reason for {args}"):
        state, reason = said(cluster, job)
        if state != "PENDING" or reason not in ("None", "Priority", "Resources", "PartitionConfig", ""):
            break
    parsed = parse_reason(reason)
    return Told("", state, parsed.code if parsed else "")


def ours(asked: Queuecast, user: str, *args: str) -> tuple[Verdict, ...]:
    given = args if "-A" in args else ("-A", ACCOUNT[user], *args)
    request = from_options({"qos": "normal", **parse_options(given).options}, user)
    policy, usage = policy_at(asked.lake, CLUSTER, now()), usage_at(asked.lake, CLUSTER, now())
    assert set(policy.missing) <= {"reservations"}  # there are none
    return verdicts(policy, request, usage)


REFUSED = [
    (ANN, ("-p", "gpu", "--gres=gpu:a100:8", "-t", "5"), "BadConstraints"),
    (ANN, ("-p", "cpu", "-n1", "-c", "64", "-t", "5"), "BadConstraints"),
    (ANN, ("-p", "cpu", "-n1", "--mem=100G", "-t", "5"), "BadConstraints"),
    (ANN, ("-p", "cpu", "-C", "nvlink", "-t", "5"), "BadConstraints"),
    (ANN, ("-p", "nope", "-t", "5"), "InvalidPartition"),
    (ANN, ("-p", "cpu", "-q", "nope", "-t", "5"), "InvalidQOS"),
    (BEN, ("-p", "cpu", "-q", "spent", "-t", "5"), "InvalidQOS"),
    (CID, ("-A", "vision", "-p", "cpu", "-t", "5"), "InvalidAccount"),
    (ANN, ("-A", "nope", "-p", "cpu", "-t", "5"), "InvalidAccount"),
]
NEVER = [
    (ANN, ("-p", "debug", "-n1", "--mem=10", "-t", "60"), "PartitionTimeLimit"),
    (ANN, ("-p", "debug", "-N2", "--mem=10", "-t", "5"), "PartitionNodeLimit"),
    (ANN, ("-p", "debug", "-n1", "--mem=9000", "-t", "5"), "MaxMemPerLimit"),
    (BEN, ("-p", "long", "-n1", "--mem=10", "-t", "5"), "AccountNotAllowed"),
    (CID, ("-p", "cpu", "-n1", "--mem=10", "-t", "300"), "AssocMaxWallDurationPerJobLimit"),
    (CID, ("-p", "gpu", "-n1", "--mem=10", "--gres=gpu:2", "-t", "5"), "AssocGrpGRES"),
    (CID, ("-p", "cpu", "-n9", "--mem=10", "-t", "5"), "AssocGrpCpuLimit"),
]


@pytest.mark.parametrize(("user", "args", "code"), REFUSED)
def test_what_slurm_refuses(cluster: Cluster, asked: Queuecast, user: str, args: tuple[str, ...], code: str) -> None:
    told = slurm(cluster, user, *args)
    assert told.error, told
    found = ours(asked, user, *args)
    assert (found[0].code, found[0].kind) == (code, "refused"), (found, told)


@pytest.mark.parametrize(("user", "args", "code"), NEVER)
def test_what_slurm_takes_and_never_starts(cluster: Cluster, asked: Queuecast, user: str, args: tuple[str, ...], code: str) -> None:
    found = ours(asked, user, *args)
    told = slurm(cluster, user, *args)
    assert (told.state, told.reason) == ("PENDING", code)
    assert (found[0].code, found[0].kind) == (code, "never"), found


def test_what_runs_has_no_verdict_and_what_waits_for_a_limit_has_its_own(cluster: Cluster, asked: Queuecast) -> None:
    small = ("-p", "cpu", "-n8", "--mem=10", "-t", "60")
    assert ours(asked, CID, *small) == ()
    assert slurm(cluster, CID, *small).state == "RUNNING"
    asked.collect()
    more = ("-p", "cpu", "-n1", "--mem=10", "-t", "5")
    found = ours(asked, CID, *more)
    told = slurm(cluster, CID, *more)
    assert (told.state, told.reason) == ("PENDING", "AssocGrpCpuLimit")
    assert (found[0].code, found[0].kind, found[0].used, found[0].limit) == ("AssocGrpCpuLimit", "waits", 8, 8)
    down = ("-p", "down", "-n1", "--mem=10", "-t", "5")
    assert (ours(asked, ANN, *down)[0].code, slurm(cluster, ANN, *down).reason) == ("PartitionDown", "PartitionDown")


def test_memory_twice_is_an_error_to_slurm_too(cluster: Cluster, asked: Queuecast) -> None:
    told = slurm(cluster, ANN, "-p", "cpu", "--mem=1G", "--mem-per-cpu=1G", "-t", "5")
    assert "mutually exclusive" in told.error


def check(asked: Queuecast, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    code = "from queuecast.cli.main import main; main()"
    argv = [sys.executable, "-c", code, "check", "--lake", str(asked.path), "-u", ANN, *words]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def folder(cluster: Cluster, asked: Queuecast) -> Path:
    """A user's folder with the templates as printed and programs that save and go on."""
    place = cluster.home / "work" / "templates"
    place.mkdir()
    (place / "train.py").write_text(WORK)
    (place / "server.py").write_text(SERVER)
    for kind in ("single", "multi", "inference"):
        printed = asked.run("template", kind, "-A", "vision", "--mem", "2G", *(["--gres", "gpu:a100:4"] if kind == "multi" else []))
        (place / f"{kind}.sh").write_text(printed.stdout)
    cluster.run("chown", "-R", ANN, str(place))
    return place


def test_a_template_is_signalled_requeued_and_finishes(cluster: Cluster, asked: Queuecast, folder: Path) -> None:
    """All three at once, with a limit so short that the signal comes within seconds."""
    jobs: dict[str, int] = {}
    for kind, words in (("single", []), ("multi", []), ("inference", ["python3", "server.py", "{port}"])):
        looked = check(asked, folder, "--json", "--", f"{kind}.sh", *words)
        answer = json.loads(looked.stdout)
        assert (looked.returncode, answer["errors"], answer["warnings"]) == (0, 0, 0), answer
        # the signal comes with up to a minute of play before the time told
        done = cluster.run(
            "sbatch", "--parsable", "-t", "3", "--signal=B:USR1@150", f"{kind}.sh", *words, user=ANN, cwd=folder, check=False
        )
        assert not done.returncode, done.stderr
        jobs[kind] = int(done.stdout.split(b";")[0])

    def outputs() -> dict[str, str]:
        return {k: p.read_text() for k, j in jobs.items() for p in folder.glob(f"*-{j}.out")}

    def state(job: int) -> str:
        return cluster.text("sacct", "-n", "-X", "-P", "-j", str(job), "-o", "State").strip()

    for _ in wait(400, "the templates to finish"):
        if all(state(j).startswith(("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT")) for j in jobs.values()):
            break
    told = outputs()
    for kind, job in jobs.items():
        assert state(job) == "COMPLETED", (kind, state(job), told)
        assert "start number 1 " in told[kind], told
        assert "the time limit is near" in told[kind], told
        assert "start number 2 " in told[kind], told
    assert told["single"].count("began") == 1
    assert "went on from" in told["single"]
    assert told["multi"].count("began") == 8
    assert told["multi"].count("in 8") == 8
    assert told["inference"].count("serving at") == 2
    assert not (folder / "endpoint-serve").exists()
