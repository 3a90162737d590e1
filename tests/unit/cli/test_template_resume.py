"""The templates as a job would run them, with stand-ins for srun and scontrol: what they save is found, and gone on from."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from importlib.resources import files
from pathlib import Path

import pytest

from queuecast.answers.retries.checkpoints import find_checkpoint

PROGRAM = """\
import pathlib, signal, sys, time
place = pathlib.Path(sys.argv[sys.argv.index("--checkpoint") + 1])
stop = []
signal.signal(signal.SIGUSR1, lambda *_: stop.append(1))
pathlib.Path("began").touch()
if place.exists():
    print("went on from", place.read_text())
    sys.exit(0)
while not stop:
    time.sleep(0.01)
place.write_text("step 5")
"""
STANDINS = {"srun": 'while [ "${1#-}" != "$1" ]; do shift; done\nexec "$@"\n', "scontrol": 'echo "$@" >>asked\n'}


def start(kind: str, folder: Path, number: int, **more: str) -> subprocess.Popen[str]:
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(PROGRAM)
    (folder / "bin").mkdir(exist_ok=True)
    for name, body in STANDINS.items():
        (folder / "bin" / name).write_text(f"#!/bin/bash\n{body}")
        (folder / "bin" / name).chmod(0o755)
    text = (files("queuecast") / "templates" / f"{kind}.sh").read_text()
    (folder / "job.sh").write_text(text.replace('parts=""', 'parts="model data_position"'))
    slurm = {"SLURM_JOB_ID": str(number), "SLURM_JOB_NODELIST": "n1", "SLURM_CPUS_PER_TASK": "1", "SLURM_NTASKS": "1", "SLURM_PROCID": "0"}
    env = {**os.environ, **slurm, "SLURM_LOCALID": "0", **more, "PATH": f"{folder}/bin:{os.environ['PATH']}"}
    return subprocess.Popen(["bash", "job.sh"], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.parametrize("kind", ["single", "multi"])
def test_what_is_saved_has_a_manifest_and_is_gone_on_from(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "work dir"
    job = start(kind, folder, 7)
    deadline = time.monotonic() + 60
    while not (folder / "began").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    job.send_signal(signal.SIGUSR1)
    out, _ = job.communicate(timeout=60)
    assert job.returncode == 0, out
    assert "requeue 7" in (folder / "asked").read_text()
    found = find_checkpoint(folder, jobs={"7"}).found
    assert found is not None, out
    assert (found.resume, found.job, found.unhashed) == (str(folder / "checkpoint-7"), "7", 0)
    assert dict(found.parts) == {"model": True, "optimizer": False, "random_state": False, "data_position": True}

    again = start(kind, folder, 8, QUEUECAST_RESUME=found.resume)
    out, _ = again.communicate(timeout=60)
    assert again.returncode == 0, out
    assert "went on from step 5" in out
    assert (folder / "checkpoint-7").read_text() == (folder / "checkpoint-8").read_text()

    lost = start(kind, folder, 9, QUEUECAST_RESUME=str(folder / "none"))
    out, _ = lost.communicate(timeout=60)
    assert lost.returncode == 1, out
