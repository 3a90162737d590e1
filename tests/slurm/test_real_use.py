"""What a real Slurm accounts, read as what was used: known amounts of CPU time and memory come out again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from queuecast.clock import now
from queuecast.usage.counting import counted
from queuecast.usage.measure import uses_of

from .cluster import Cluster
from .configuration import CLUSTER
from .machine import wait
from .queue_cli import Queuecast
from .workload import ANN

pytestmark = pytest.mark.slurm

MIB = 1 << 20
TASK = """\
import sys, time
held = bytearray(int(sys.argv[1]) << 20)
for i in range(0, len(held), 4096): held[i] = 1
while time.process_time() < float(sys.argv[2]): pass
time.sleep(6)
"""
JOB = """\
#!/bin/bash
#SBATCH -p cpu -t 5 -o used-%j.out
srun -n 2 -c 1 python3 task.py 150 4
srun -n 1 -c 1 python3 task.py 60 1
"""


@pytest.fixture(scope="module")
def found(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Two jobs that do the same, one of which names its memory, and the lake after they ended."""
    folder = cluster.home / "work" / "used"
    folder.mkdir()
    (folder / "task.py").write_text(TASK)
    (folder / "job.sh").write_text(JOB)
    cluster.run("chown", "-R", ANN, str(folder))

    def submit(*words: str) -> int:
        return int(cluster.run("sbatch", "--parsable", "-A", "vision", "-n", "2", *words, user=ANN, cwd=folder).stdout.split(b";")[0])

    jobs = {"default": submit("job.sh"), "user": submit("--mem=1200M", "job.sh")}
    told = Queuecast(cluster, tmp_path_factory.mktemp("used") / "lake")
    told.collect()
    for _ in wait(240, f"jobs {jobs} to end", every=2.0):
        states = [cluster.text("sacct", "-n", "-X", "-P", "-j", str(job), "-o", "State").strip() for job in jobs.values()]
        if all(s not in ("PENDING", "RUNNING", "COMPLETING", "") for s in states):
            assert states == ["COMPLETED"] * 2
            break
    told.collect()
    shown = tmp_path_factory.mktemp("shown") / "scontrol-show-job.txt"
    shown.write_text(cluster.text("scontrol", "-d", "-o", "show", "job"))
    told.run("ingest", str(shown), "--cluster", CLUSTER, "--tz", "UTC", "-q")
    at = now()
    rows = uses_of(told.lake, CLUSTER, since=at - timedelta(hours=2), at=at).rows
    return {"jobs": jobs, "lake": told.lake, "rows": {r["job_id"]: r for r in rows.to_pylist()}, "table": rows}


@pytest.mark.parametrize("which", ["default", "user"])
def test_known_work_comes_out(found: dict[str, Any], which: str) -> None:
    """Two tasks with 150 MiB and 4 s of CPU each, then one with 60 MiB and 1 s: 300 MiB and the interpreters, and 9 s."""
    row = found["rows"][found["jobs"][which]]
    assert row["final"]
    assert not row["interrupted"]
    assert 9.0 <= row["cpu_s"] <= 16.0, row
    assert row["cpu_share"] == pytest.approx(row["cpu_s"] / (row["elapsed_s"] * row["cpus_alloc"]))
    assert row["cpu_quality"] == "ok"
    assert row["mem_basis"] == "tasks"
    assert 300 * MIB <= row["mem_peak_bytes"] <= 400 * MIB, row["mem_peak_bytes"] / MIB
    assert row["mem_asked_by"] == which
    assert row["limit_s"] == 300
    assert [row[c] for c in ("gpu_util_mean", "gpu_util_peak", "energy_joules", "gpu_basis")] == [None] * 4
    assert not row["generated"]


def test_others_without_figures_are_counted(found: dict[str, Any]) -> None:
    memory = counted(found["table"], "memory")
    assert memory.n >= 2
    assert memory.share is not None


def test_where_script_and_logs_lie(found: dict[str, Any]) -> None:
    files = {r["job_id"]: r for r in found["lake"].read("job_files").to_pylist()}
    for job in found["jobs"].values():
        assert files[job]["command"].endswith("/used/job.sh")
        assert files[job]["std_out"] == f"{files[job]['work_dir']}/used-{job}.out"
