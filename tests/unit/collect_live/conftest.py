"""Fake Slurm commands: small scripts in a folder of their own, which follow a plan and write down how they were called."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

SCRIPT = """#!{python} -SE
import json, os, pathlib, subprocess, sys, time
here = pathlib.Path({here!r})
name = os.path.basename(sys.argv[0])
args = sys.argv[1:]
with open(here / "log", "a") as log:
    log.write(json.dumps([name, args, dict(os.environ)]) + "\\n")
for number, rule in enumerate(json.loads((here / "plan").read_text())):
    if rule["command"] not in (name, "*") or not all(word in args for word in rule["args"]):
        continue
    if rule["times"] is not None:
        seen = here / f"seen{{number}}"
        count = int(seen.read_text()) if seen.exists() else 0
        if count >= rule["times"]:
            continue
        seen.write_text(str(count + 1))
    if rule["child"]:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        (here / "child").write_text(str(child.pid))
    sys.stdout.buffer.write(rule["stdout"].encode("utf-8", "surrogateescape"))
    sys.stdout.flush()
    sys.stderr.write(rule["stderr"])
    sys.stderr.flush()
    time.sleep(rule["sleep"])
    sys.exit(rule["exit"])
sys.stderr.write("no rule for " + name + " " + " ".join(args))
sys.exit(99)
"""

D = "\x1f"
HELPFORMAT = """\
Account AdminComment AllocCPUS AllocNodes AllocTRES AveRSS Cluster Comment Constraints ConsumedEnergyRaw DBIndex
DerivedExitCode Elapsed ElapsedRaw Eligible End ExitCode Flags JobID JobIDRaw JobName MaxRSS NCPUS NNodes NodeList
NTasks Partition Priority QOS Reason ReqCPUS ReqMem ReqNodes ReqTRES Reservation Reserved Start State Submit
SubmitLine Suspended Timelimit TimelimitRaw TotalCPU TRESUsageInAve TRESUsageInMax TRESUsageInTot UID User WorkDir
"""


@dataclass
class Fake:
    """``folder`` holds the commands; ``rule`` adds an answer, later rules are stronger than earlier ones."""

    folder: Path
    rules: list[dict[str, Any]]

    def rule(
        self,
        command: str,
        *args: str,
        stdout: str = "",
        stderr: str = "",
        exit: int = 0,
        sleep: float = 0,
        times: int | None = None,
        child: bool = False,
    ) -> None:
        self.rules.insert(
            0,
            {
                "command": command,
                "args": args,
                "stdout": stdout,
                "stderr": stderr,
                "exit": exit,
                "sleep": sleep,
                "times": times,
                "child": child,
            },
        )
        (self.folder / "plan").write_text(json.dumps(self.rules))
        if command != "*":
            self.install(command)

    def install(self, command: str) -> Path:
        path = self.folder / command
        if not path.exists():
            path.write_text(SCRIPT.format(python=sys.executable, here=str(self.folder)))
            path.chmod(0o755)
        return path

    def remove(self, command: str) -> None:
        (self.folder / command).unlink()

    @property
    def calls(self) -> list[tuple[str, list[str], dict[str, str]]]:
        log = self.folder / "log"
        return [tuple(json.loads(line)) for line in log.read_text().splitlines()] if log.exists() else []

    def names(self) -> list[str]:
        """What was asked for, without versions and help: one word or two."""
        out = []
        for name, args, _env in self.calls:
            if {"--version", "--helpformat", "+%s"} & set(args):
                continue
            second = args[args.index("show") + 1] if "show" in args else "--start" if "--start" in args else ""
            out.append(f"{name} {second}".strip())
        return out


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """No Slurm at all yet, not even one that this machine may have: PATH holds the fakes and a few plain tools."""
    folder = tmp_path / "bin"
    folder.mkdir()
    made = Fake(folder, [])
    (folder / "plan").write_text("[]")
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("date", "env", "id", "sh", "timeout", "true", "touch"):
        (tools / name).symlink_to(shutil.which(name, path="/usr/bin:/bin") or f"/nowhere/{name}")
    monkeypatch.setenv("PATH", f"{folder}:{tools}")
    for name in ("SLURM_CONF", "SLURM_CLUSTERS"):
        monkeypatch.delenv(name, raising=False)
    return made


@pytest.fixture
def slurm(fake: Fake) -> Fake:
    """A small healthy Slurm 22.05.8 of cluster campus."""
    for command in ("sinfo", "squeue", "sacct", "scontrol", "sprio", "sshare", "sacctmgr", "sdiag"):
        fake.rule(command, "--version", stdout="slurm 22.05.8\n")
    fake.rule("sacct", "-S", stdout=D.join(("JobIDRaw", "JobID", "State")) + "\n" + D.join(("1", "1", "COMPLETED")) + "\n")
    fake.rule("sacct", "-X", stdout="JobID|User\n1|ann\n2|ben\n")
    fake.rule("sacct", "--helpformat", stdout=HELPFORMAT)
    fake.rule("sshare", "-P", stdout="Account|User|Partition\nroot||\n")
    fake.rule("sshare", "--helpformat", stdout="Account User Partition RawShares RawUsage FairShare LevelFS\n")
    fake.rule("squeue", "-a", stdout=f"JOBID{D}STATE{D}\n1{D}PENDING{D}\n")
    fake.rule("squeue", "--start", stdout=f"JOBID{D}START_TIME{D}\n")
    fake.rule("sprio", "-o", stdout=f"JOBID{D}PARTITION\n")
    fake.rule("sprio", "-w", stdout="  JOBID PARTITION   PRIORITY\n  Weights                  1\n")
    fake.rule("scontrol", "config", stdout="Configuration data as of 2026-06-01T00:00:00\nClusterName             = campus\n")
    fake.rule("scontrol", "node", stdout="NodeName=n1 Gres=gpu:a100:4 State=IDLE\n")
    fake.rule("scontrol", "partition", stdout="PartitionName=gpu MaxTime=1-00:00:00 State=UP\n")
    fake.rule("scontrol", "reservation", stdout="No reservations in the system\n")
    fake.rule("scontrol", "job", stdout="No jobs in the system\n")
    fake.rule("sacctmgr", "qos", stdout="Name|Priority\nnormal|0\n")
    fake.rule("sacctmgr", "assoc", stdout="Cluster|Account|User\ncampus|root|\n")
    fake.rule("sacctmgr", "event", stdout="Cluster|NodeName|TimeStart|TimeEnd|State|User|Reason\n")
    fake.rule("sacctmgr", "user", stdout="None\n")
    fake.rule("sdiag", stdout="sdiag output at Mon Jun 01 00:00:00 2026 (1780272000)\n")
    fake.rule("sdiag", "--version", stdout="slurm 22.05.8\n")
    return fake
