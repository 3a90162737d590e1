"""Sensible amounts, and what to paste: only what changes, in the terms that the job was submitted with."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping

from queuecast.answers.rightsizing.kinds import Kind
from queuecast.policy.request import Request
from queuecast.slurmtext.durations import format_limit

MIB = 1 << 20
STEP_MIB = 256
"""Memory below ``WHOLE_GIB`` GiB (and for each CPU) is asked for in such steps, above in whole GiB."""
WHOLE_GIB = 4
DAY = 86400


def round_memory(value: float) -> int:
    """Bytes up to 256 MiB steps below 4 GiB, else to whole GiB."""
    step = STEP_MIB * MIB if value <= WHOLE_GIB * 1024 * MIB else 1024 * MIB
    return max(1, math.ceil(value / step)) * step


def round_time(value: float) -> int:
    """Seconds up to whole minutes to half an hour, to 5 minutes up to 6 h, else to whole hours."""
    step = 60 if value <= 1800 else 300 if value <= 6 * 3600 else 3600
    return max(1, math.ceil(value / step)) * step


def per_cpu_memory(kind: Kind) -> bool:
    """Whether memory follows the number of CPUs: asked for so, or the site's default (which most sites set per CPU)."""
    return "mem-per-cpu" in kind.options or kind.mem_default


def memory_of(kind: Kind, value: float, nodes: int, cpus: int) -> int:
    """Bytes of the whole job that the flags for ``value`` bytes give: rounded on each node, or for each CPU where so asked."""
    parts = cpus if "mem-per-cpu" in kind.options else nodes
    each = value / max(1, parts)
    if "mem-per-cpu" in kind.options:
        return max(1, math.ceil(each / (STEP_MIB * MIB))) * STEP_MIB * MIB * max(1, parts)
    return round_memory(each) * max(1, parts)


def cpus_of(kind: Kind, value: float, nodes: int) -> int:
    """CPUs of the whole job: a multiple of its tasks, or of its nodes."""
    parts = tasks_of(kind.options, nodes) or nodes
    return max(1, math.ceil(value / parts - 1e-9)) * parts


def tasks_of(options: Mapping[str, str], nodes: int) -> int | None:
    """Tasks as the command line says; None if it does not."""
    for name, times in (("ntasks", 1), ("ntasks-per-node", nodes)):
        text = options.get(name, "")
        if text.isdigit() and 0 < int(text) < 10**6:
            return int(text) * times
    return None


def flags(kind: Kind, new: Request) -> tuple[str, ...]:
    """For ``sbatch``; words are quoted for the shell. Flags win over the script's lines."""
    old, out = kind.request, []
    if new.partitions != old.partitions:
        out += ["-p", ",".join(new.partitions)]
    if new.nodes != old.nodes:
        out += ["-N", str(new.nodes)]
    if (new.gpus, new.gpu_type, new.nodes) != (old.gpus, old.gpu_type, old.nodes):
        out.append(_gpus(kind, new))
    cpus = kind.cpus is not None and new.cpus != old.cpus
    if cpus:
        tasks = tasks_of(kind.options, new.nodes)
        out += ["-c", str(max(1, math.ceil(new.cpus / (tasks or new.nodes))))]
    if new.mem_bytes is not None and (new.mem_bytes != old.mem_bytes or (cpus and per_cpu_memory(kind)) or _by_gpu(kind, new)):
        out.append(_memory(kind, new))
    if new.limit_s != old.limit_s and new.limit_s is not None:
        out += ["-t", format_limit(new.limit_s)]
    return tuple(shlex.quote(w) for w in out)


def _by_gpu(kind: Kind, new: Request) -> bool:
    return "mem-per-gpu" in kind.options and new.gpus != (kind.gpus or 0)


def _gpus(kind: Kind, new: Request) -> str:
    if not new.gpus:
        return "--gres=none"
    for name in ("gpus", "gpus-per-node"):
        if name in kind.options:
            count = new.gpus if name == "gpus" else math.ceil(new.gpus / new.nodes)
            return f"--{name}={new.gpu_type}:{count}" if new.gpu_type else f"--{name}={count}"
    each = math.ceil(new.gpus / max(1, new.nodes))
    return f"--gres=gpu:{new.gpu_type}:{each}" if new.gpu_type else f"--gres=gpu:{each}"


def _memory(kind: Kind, new: Request) -> str:
    assert new.mem_bytes is not None
    if "mem-per-cpu" in kind.options:
        return f"--mem-per-cpu={math.ceil(new.mem_bytes / max(1, new.cpus) / MIB)}M"
    each = math.ceil(new.mem_bytes / max(1, new.nodes) / MIB)
    return f"--mem={each // 1024}G" if each % 1024 == 0 else f"--mem={each}M"
