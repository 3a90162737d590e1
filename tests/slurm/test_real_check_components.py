"""Heterogeneous jobs: what ``queuecast check`` says of all components, against what a real Slurm does with them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .cluster import Cluster
from .machine import wait
from .queue_cli import Queuecast
from .workload import ANN, reasons

pytestmark = pytest.mark.slurm

FIRST = "#!/bin/bash\n#SBATCH -A vision -p gpu -n1 -t 5 --mem=10 -o /dev/null"


@pytest.fixture(scope="module")
def asked(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Queuecast]:
    """A lake with the configuration; what was submitted here is gone at the end."""
    made = Queuecast(cluster, tmp_path_factory.mktemp("components") / "lake")
    made.collect()
    yield made
    cluster.run("scancel", "-u", ANN, "-n", "components")


def script(cluster: Cluster, *second: str, first: str = "") -> Path:
    path = cluster.home / "work" / "components.sh"
    lines = [f"{FIRST} -J components {first}", "#SBATCH hetjob", *(f"#SBATCH {o}" for o in second), "sleep 100", ""]
    path.write_text("\n".join(lines))
    path.chmod(0o644)
    return path


def check(asked: Queuecast, path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(asked.run("check", "--no-paths", "--json", "-u", ANN, str(path), check=False).stdout)
    return found


@pytest.mark.parametrize(
    ("second", "first", "code", "line"),
    [
        (("-p gpu --mem=10 -t 5", "--gres=gpu:a100:8"), "", "BadConstraints", 5),
        (("-p gpu --mem=10 -t 5 -q nope",), "", "InvalidQOS", 4),
        (("-p nope --mem=10 -t 5",), "", "InvalidPartition", 4),
        (("-p gpu --mem=10 -t 5",), "--array=1-2", "het-array", 2),
    ],
)
def test_what_slurm_refuses_of_a_further_component(
    cluster: Cluster, asked: Queuecast, second: tuple[str, ...], first: str, code: str, line: int
) -> None:
    path = script(cluster, *second, first=first)
    assert cluster.run("sbatch", str(path), user=ANN, check=False).returncode
    found = {f["code"]: f for f in check(asked, path)["findings"] if f["severity"] == "error"}
    assert found[code]["line"] == line


def test_components_that_only_together_are_too_many_never_start(cluster: Cluster, asked: Queuecast) -> None:
    """QOS high allows 2 GPUs together; each component asks for 2."""
    path = script(cluster, "-p gpu --mem=10 -t 5 --gres=gpu:a100:2", first="-q high --gres=gpu:a100:2")
    answer = check(asked, path)
    assert [f["code"] for f in answer["findings"] if f["severity"] == "error"] == ["QOSGrpGRES"]
    assert [c["qos"] for c in answer["components"]] == ["high"]
    done = cluster.run("sbatch", "--parsable", str(path), user=ANN)
    number = int(done.stdout.split(b";")[0])
    for _ in wait(60, "a reason"):
        if reasons(cluster).get(number + 1) == "QOSGrpGRES":
            break
    asked.collect()
    first = asked.answer("why", f"{number}+1", "--no-changes")["binding"]["constraints"][0]
    assert (first["code"], first["standing"]) == ("QOSGrpGRES", "never")


def test_good_components_are_taken(cluster: Cluster, asked: Queuecast) -> None:
    path = script(cluster, "-p cpu -n2 --mem=10 -t 7")
    answer = check(asked, path)
    assert (answer["errors"], [c["partitions"] for c in answer["components"]]) == (0, [["cpu"]])
    assert not cluster.run("sbatch", "-H", str(path), user=ANN, check=False).returncode
