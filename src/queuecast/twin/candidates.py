"""A request that could be made, for the replay to try."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Candidate:
    """One job (or array) that could be submitted. ``gpus``, ``cpus`` and ``mem_bytes`` are of one task on all its nodes.

    ``gpu_type`` case-folded, None any. ``mem_bytes`` None: DefMemPerCPU. ``limit_s`` the time limit in seconds.
    ``delay_s``: submitted that many seconds after the state's instant. An array has started when its first task has.
    """

    partitions: tuple[str, ...]
    gpus: int = 0
    gpu_type: str | None = None
    nodes: int = 1
    cpus: int = 1
    mem_bytes: int | None = None
    limit_s: float = 3600.0
    account: str | None = None
    qos: str | None = None
    user: str | None = None
    array_tasks: int = 1
    delay_s: float = 0.0
