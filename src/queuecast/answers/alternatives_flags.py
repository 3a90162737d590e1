"""What to paste: the flags of a request that differ from the one as asked."""

from __future__ import annotations

import math
import shlex

from queuecast.answers.alternatives_offers import Offer
from queuecast.policy.request import Request
from queuecast.slurmtext.durations import format_limit

MIB = 1 << 20


def changed(asked: Request, offer: Offer, in_place: bool, job: str | None) -> tuple[str, ...]:
    """For ``sbatch``, or for ``scontrol update`` of the pending job; words are quoted for the shell."""
    new = offer.request
    if in_place and job is not None:
        out = [f"JobId={job}"]
        if new.partitions != asked.partitions:
            out.append(f"Partition={','.join(new.partitions)}")
        if new.qos != asked.qos and new.qos:
            out.append(f"QOS={new.qos}")
        if new.limit_s != asked.limit_s and new.limit_s is not None:
            out.append(f"TimeLimit={format_limit(new.limit_s)}")
        return tuple(shlex.quote(w) for w in out)
    out = []
    if new.partitions != asked.partitions:
        out += ["-p", ",".join(new.partitions)]
    if new.qos != asked.qos and new.qos:
        out += ["-q", new.qos]
    if new.limit_s != asked.limit_s and new.limit_s is not None:
        out += ["-t", format_limit(new.limit_s)]
    if new.nodes != asked.nodes:
        out += ["-N", str(new.nodes)]
    if (new.gpus, new.gpu_type, new.nodes) != (asked.gpus, asked.gpu_type, asked.nodes):
        each = math.ceil(new.gpus / max(1, new.nodes))
        out.append(f"--gres=gpu:{new.gpu_type}:{each}" if new.gpu_type else f"--gres=gpu:{each}")
    out += _cpus(asked, new)
    if new.mem_bytes != asked.mem_bytes and new.mem_bytes:
        out.append(f"--mem={math.ceil(new.mem_bytes / max(1, new.nodes) / MIB)}M")
    if new.array_tasks != asked.array_tasks:
        out.append(f"--array=0-{new.array_tasks - 1}")
    if offer.delay_s:
        out.append(f"--begin=now+{round(offer.delay_s / 3600)}hours")
    return tuple(shlex.quote(w) for w in out)


def _cpus(asked: Request, new: Request) -> list[str]:
    tasks = new.tasks or new.nodes
    if new.cpus == asked.cpus and tasks == (asked.tasks or asked.nodes):
        return []
    return ["-n", str(tasks), "-c", str(max(1, new.cpus // tasks))]
