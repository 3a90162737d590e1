"""``queuecast retry`` and ``lineage`` against a real Slurm: jobs that die of memory, of time and of a bad exit come back right.

Memory is enforced by JobAcctGatherParams=OverMemoryKill, which samples: the cluster has no cgroups.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from queuecast.answers.retries.retry import retry
from queuecast.answers.viewer import Viewer
from queuecast.clock import now
from queuecast.collect.run import Runner
from queuecast.slurmtext.script import parse_script

from .cluster import Cluster
from .configuration import CLUSTER
from .machine import wait
from .queue_cli import Queuecast
from .workload import ANN

pytestmark = pytest.mark.slurm

ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_ME", "NODE_FAIL", "PREEMPTED")
HUNGRY = """\
#!/bin/bash
#SBATCH -p cpu --mem=2G
#SBATCH -t 5
python3 -c "
import sys, time
held = bytearray(int(sys.argv[1]) << 20)
for i in range(0, len(held), 4096): held[i] = 1
time.sleep(7)
" "$1"
"""
SLOW = """\
#!/bin/bash
#SBATCH -p cpu --mem=100M
#SBATCH -t 1
sleep "$1"
"""
SAVING = """\
#!/bin/bash
#SBATCH -p cpu --mem=200M -t 1
# queuecast: checkpoint=saved
if [ -n "$QUEUECAST_RESUME" ]; then
    echo "went on from $(cat "$QUEUECAST_RESUME")"
    exit 0
fi
mkdir -p saved
echo "step 40" >saved/step40
python3 - <<'EOF'
import hashlib, json, pathlib
data = pathlib.Path("saved/step40").read_bytes()
parts = dict.fromkeys(("model", "optimizer", "random_state", "data_position"), True)
file = {"path": "step40", "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
told = {"queuecast_checkpoint": 1, "step": 40, "files": [file], "parts": parts}
pathlib.Path("saved/step40.manifest.json").write_text(json.dumps(told))
later = pathlib.Path("saved/step50.manifest.json")  # of a save that the limit cut short
later.write_text(json.dumps({**told, "step": 50, "files": [{**file, "path": "step50"}]}))
EOF
sleep 600
"""
ARRAY = """\
#!/bin/bash
#SBATCH -p cpu --mem=50M -t 5
#SBATCH --array=0-3%2 --job-name="four 'tasks'"
[ $((SLURM_ARRAY_TASK_ID % 2)) = 0 ] || [ -e input ] || exit 3
"""


@pytest.fixture(scope="module")
def asked(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queuecast]:
    made = Queuecast(cluster, tmp_path_factory.mktemp("retried") / "lake")
    made.run("collect", "--json")
    yield made
    cluster.run("scancel", "-u", ANN)


@pytest.fixture(scope="module")
def place(cluster: Cluster) -> Path:
    folder = cluster.home / "work" / "retried"
    folder.mkdir()
    for name, text in {"hungry": HUNGRY, "slow": SLOW, "saving": SAVING, "array": ARRAY}.items():
        (folder / f"{name}.sh").write_text(text)
    cluster.run("chown", "-R", ANN, str(folder))
    return folder


def submit(cluster: Cluster, place: Path, *words: str) -> int:
    done = cluster.run("sbatch", "--parsable", "-A", "vision", *words, user=ANN, cwd=place)
    return int(done.stdout.split(b";")[0])


def states(cluster: Cluster, job: int) -> list[str]:
    return cluster.text("sacct", "-n", "-X", "-P", "-j", str(job), "-o", "State").split("\n")[:-1]


def ended(cluster: Cluster, jobs: list[int], seconds: float) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for _ in wait(seconds, f"jobs {jobs} to end", every=1.0):
        found = {j: states(cluster, j) for j in jobs}
        if all(s and all(x.startswith(ENDED) for x in s) for s in found.values()):
            break
    return found


def copy_of(asked: Queuecast, place: Path, job: int, *words: str) -> tuple[Path, subprocess.CompletedProcess[str]]:
    done = asked.run("retry", str(job), "-u", ANN, *words)
    path = place / f"retry-{job}.sh"
    path.write_text(done.stdout)
    return path, done


def test_jobs_come_back_right_and_the_tree_tells(cluster: Cluster, asked: Queuecast, place: Path) -> None:
    """All at once, since a time limit takes a minute at least."""
    before = {p.name: p.read_bytes() for p in place.iterdir()}
    hungry = submit(cluster, place, "--mem=100M", "--comment=my run", "hungry.sh", "120")
    slow = submit(cluster, place, "slow.sh", "80")
    saving = submit(cluster, place, "saving.sh")
    array = submit(cluster, place, "array.sh")
    wrapped = submit(cluster, place, "-p", "cpu", "--mem=50M", "-t", "5", "--wrap", "test -e input || exit 4")
    (place / "array.sh").rename(place / "moved.sh")  # the controller still has it
    first = ended(cluster, [hungry, slow, saving, array, wrapped], 240)
    assert first[slow] == first[saving] == ["TIMEOUT"], first
    assert sorted(first[array]) == ["COMPLETED", "COMPLETED", "FAILED", "FAILED"]
    assert first[wrapped] == ["FAILED"]
    assert first[hungry] != ["COMPLETED"], "memory is not enforced here"
    asked.run("collect", "--json")

    # of memory: the command line's value counts, argument and comment are kept
    told = asked.answer("retry", str(hungry), "-u", ANN)
    assert told["failure_class"] == "oom_host", (first[hungry], told)
    path, done = copy_of(asked, place, hungry)
    options = parse_script(done.stdout).options
    assert 150 <= int(options["mem"].removesuffix("M")) <= 512, options
    assert options["account"] == "vision"
    assert options["comment"] == f"my run;queuecast:parent={CLUSTER}/{hungry}"
    assert "set -- 120" in done.stdout
    again = {hungry: submit(cluster, place, path.name)}

    # of time: longer, or the same limit and on from the checkpoint
    path, done = copy_of(asked, place, slow)
    assert parse_script(done.stdout).options["time"] == "00:02:00"
    again[slow] = submit(cluster, place, path.name)
    path, done = copy_of(asked, place, saving)
    assert parse_script(done.stdout).options["time"] == "1"
    assert f"QUEUECAST_RESUME={place}/saved/step40" in done.stdout
    assert "step50.manifest.json is not whole" in done.stderr.replace("\n    ", " ")
    again[saving] = submit(cluster, place, path.name)

    # of a bad exit: not without a word; then the failed tasks alone
    refused = asked.run("retry", str(array), "-u", ANN, check=False)
    assert (refused.returncode, refused.stdout) == (3, "")
    assert "--force" in refused.stderr
    (place / "input").touch()
    path, done = copy_of(asked, place, array, "--force")
    options = parse_script(done.stdout).options
    assert (options["array"], options["job-name"]) == ("1,3%2", "four 'tasks'")
    assert done.stdout.endswith(ARRAY.split("\n", 3)[3])
    again[array] = submit(cluster, place, path.name)
    path, done = copy_of(asked, place, wrapped, "--force")
    assert "test -e input || exit 4\n" in done.stdout
    again[wrapped] = submit(cluster, place, path.name)

    second = ended(cluster, list(again.values()), 240)
    assert {s for of in second.values() for s in of} == {"COMPLETED"}, second
    assert len(second[again[array]]) == 2
    assert (place / f"slurm-{again[saving]}.out").read_text() == "went on from step 40\n"
    (place / "moved.sh").rename(place / "array.sh")
    assert {n: (place / n).read_bytes() for n in before} == before

    # accounting itself knows the parents
    asked.run("collect", "--json")
    for parent, child in again.items():
        tree = asked.answer("lineage", str(child), "-u", ANN)
        assert [(a["job"], a["parent"], a["link"]) for a in tree["attempts"]] == [
            (str(parent), None, "root"),
            (str(child), 0, "comment"),
        ], tree
        assert set(tree["attempts"][1]["states"]) == {"COMPLETED"}
    tree = asked.answer("lineage", str(hungry), "-u", ANN)
    assert [c["option"] for c in tree["attempts"][1]["changed"]] == ["memory"]
    shown = asked.run("lineage", str(hungry), "-u", ANN).stdout
    assert f"└─ [retry]  {again[hungry]}" in shown


def test_a_script_that_only_accounting_still_has(cluster: Cluster, asked: Queuecast, place: Path) -> None:
    text = '#!/bin/bash\n#SBATCH -p cpu --mem=50M -t 5\n# ü, "quotes", $x\nexit 7\n'
    (place / "gone.sh").write_text(text)
    job = submit(cluster, place, "gone.sh")
    (place / "gone.sh").unlink()
    ended(cluster, [job], 60)
    asked.run("collect", "--json")
    viewer = Viewer(ANN)
    from_controller = retry(asked.lake, CLUSTER, str(job), now(), viewer, runner=Runner(), force=True)
    stored = retry(asked.lake, CLUSTER, str(job), now(), viewer, runner=Runner(paths={"scontrol": "/bin/false"}), force=True)
    assert (from_controller.origin, stored.origin) == ("controller", "accounting")
    assert from_controller.script is not None
    assert stored.script is not None
    assert from_controller.script.endswith(text.split("\n", 2)[2])
    assert stored.script.endswith(text.split("\n", 2)[2])
    done = asked.run("retry", str(job), "-u", ANN, "--no-slurm", check=False)
    assert done.returncode == 2
    assert "--script" in done.stderr


def test_a_requeue_is_an_attempt_of_the_same_line(cluster: Cluster, asked: Queuecast, place: Path) -> None:
    marker = place / "ran"
    job = submit(cluster, place, "-p", "cpu", "--mem=50M", "-t", "5", "--wrap", f"[ -e {marker} ] && exit 0; touch {marker}; exit 98")
    for _ in wait(120, "the requeued job to end", every=1.0):
        rows = cluster.text("sacct", "-n", "-X", "-D", "-P", "-j", str(job), "-o", "State").split()
        if rows and rows[-1] == "COMPLETED":
            break
    asked.run("collect", "--json")
    tree = json.loads(asked.run("lineage", str(job), "-u", ANN, "--json").stdout)
    assert [(a["job"], a["link"]) for a in tree["attempts"]] == [(str(job), "root"), (str(job), "requeue")], tree
