"""What Slurm itself says, asked apart from queuecast and read by code too simple to be wrong."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from .cluster import Cluster

SACCT = (
    "JobIDRaw",
    "JobID",
    "State",
    "ExitCode",
    "UID",
    "User",
    "Account",
    "Partition",
    "Submit",
    "Eligible",
    "Start",
    "End",
    "ElapsedRaw",
    "NNodes",
    "ReqCPUS",
    "AllocCPUS",
    "ReqTRES",
    "AllocTRES",
    "NodeList",
    "TimelimitRaw",
)
"""Columns in which nobody can write a ``|`` or a newline."""

Row = dict[str, str]


def sacct(cluster: Cluster) -> list[Row]:
    """Jobs without steps, all attempts, as accounting has them. The run time of those that still run is left out: it grows."""
    text = cluster.text("sacct", "-a", "-D", "-X", "-n", "-P", "-S", "now-1day", "-E", "now", "-o", ",".join(SACCT))
    rows = [dict(zip(SACCT, line.split("|"), strict=True)) for line in text.splitlines()]
    for row in rows:
        if row["End"] == "Unknown":
            row["ElapsedRaw"] = ""
        # cancelled before slurmdbd knew the job: then it prints Start=End, as old releases always did
        if row["NodeList"] == "None assigned" and row["Start"] == row["End"]:
            row["Start"] = "None"
    return rows


SQUEUE = {
    "raw": "%A",
    "shown": "%i",
    "state": "%T",
    "reason": "%r",
    "priority": "%Q",
    "nodes": "%D",
    "cpus": "%C",
    "partition": "%P",
    "user": "%u",
    "submit": "%V",
    "start": "%S",
}


def squeue(cluster: Cluster, *options: str) -> dict[str, Row]:
    """Records of the queue by the id that users see."""
    text = cluster.text("squeue", "-h", "-a", *options, "-o", "|".join(SQUEUE.values()))
    rows = (dict(zip(SQUEUE, line.split("|"), strict=True)) for line in text.splitlines())
    return {row["shown"]: row for row in rows}


def job_name(cluster: Cluster, job_id: int) -> bytes:
    """The name as accounting prints it: alone, so that nothing in it can be taken for anything else."""
    return cluster.run("sacct", "-X", "-n", "-P", "-j", str(job_id), "-o", "JobName").stdout.removesuffix(b"\n")


def queue_name(cluster: Cluster, job_id: int) -> bytes:
    """The name as squeue prints it."""
    return cluster.run("squeue", "-h", "-a", "-j", str(job_id), "-o", "%j").stdout.removesuffix(b"\n")


def blocks(cluster: Cluster, *what: str) -> list[Row]:
    """``scontrol show ... -o``: one line per thing, ``Key=value`` (values with blanks are cut at the first)."""
    return [dict(re.findall(r"(\S+?)=(\S*)", line)) for line in cluster.text("scontrol", "-a", "-o", *what).splitlines() if "=" in line]


def gpus(tres: str) -> int:
    """The generic count of ``gres/gpu`` (this cluster tracks it)."""
    found = re.search(r"(?:^|,)gres/gpu=(\d+)", tres)
    return int(found[1]) if found else 0


def gpu_type(tres: str) -> str | None:
    found = re.findall(r"gres/gpu:(\w+)=", tres)
    return found[0] if len(found) == 1 else None


def moment(text: str) -> datetime | None:
    """Slurm's time, printed in UTC; None where there is none."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC) if text[:1].isdigit() else None


def base(state: str) -> str:
    return state.split()[0].rstrip("+")
