"""What an answer to "what should I ask for to run this?" is made of. The command line, the app and JSON render this."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from queuecast.answers.suggest_cluster import Cost
from queuecast.answers.wait import JSON_VERSION, Freshness, WaitAnswer, iso
from queuecast.hardware.gpufacts import GpuFact
from queuecast.hardware.gputable import Link
from queuecast.hardware.scaling import Run
from queuecast.hardware.taskfit import Again, Choice, Layout
from queuecast.hardware.taskmemory import Memory, Task
from queuecast.policy.request import Request

SHARE = 0.8
"""Of the wait interval that a finish interval is made with."""


@dataclass(frozen=True)
class Question:
    """A task and how it may be run. ``batch``: sequences per optimiser step over all GPUs; for inference, those served at once.
    ``hours``: run time on ``on`` (``a100:8``), or, without it, on the first option; None: not told. ``limit``: time limit as typed.
    ``task.micro_batch`` and ``task.checkpointing`` are chosen per option."""

    task: Task
    batch: int
    hours: float | None = None
    on: str | None = None
    sharding: Choice = "auto"
    again: Again = "auto"
    partitions: tuple[str, ...] = ()
    account: str | None = None
    qos: str | None = None
    limit: str | None = None
    user: str | None = None


@dataclass(frozen=True)
class Range:
    """Low, middle, high in seconds from ``at``; ``high`` None: not known."""

    low_s: float
    middle_s: float
    high_s: float | None


@dataclass(frozen=True)
class Option:
    """One request that holds the task. ``flags``: to paste after ``sbatch``. ``run``, ``finish`` and ``gpu_hours`` are None where the run
    time or the wait is not known. ``finish``: the ends of the wait's 80 % interval plus the ends of the run's range. ``pareto``: no other
    option is better in wait, finish and GPU-hours at once. ``notes``: what to mind, as sentences."""

    gpu_type: str
    fact: GpuFact
    partition: str
    nodes: int
    layout: Layout
    link: Link
    request: Request
    flags: tuple[str, ...]
    wait: WaitAnswer
    run: Run | None
    finish: Range | None
    gpu_hours: float | None
    cost: Cost
    pareto: bool = False
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """``8 x a100``."""
        return f"{self.layout.gpus} x {self.gpu_type}"

    def as_json(self, at: datetime) -> dict[str, Any]:
        """Plain values with units in their names."""
        eighty = self.wait.interval(SHARE)
        return {
            "gpu_type": self.gpu_type,
            "gpus": self.layout.gpus,
            "nodes": self.nodes,
            "partition": self.partition,
            "gpu": {
                "model": self.fact.model,
                "memory_gib": self.fact.memory_gib,
                "usable_bytes": round(self.layout.usable_bytes),
                "interconnect": self.link,
            },
            "sharding": self.layout.sharding,
            "activation_checkpointing": self.layout.checkpointing,
            "micro_batch": self.layout.micro_batch,
            "accumulation": self.layout.accumulation,
            "memory_per_gpu_bytes": memory_json(self.layout.memory),
            "headroom_bytes": round(self.layout.headroom_bytes),
            "tight": self.layout.tight,
            "status": self.wait.status,
            "median_wait_s": _whole(self.wait.median_s),
            "wait_80_s": None if eighty is None else [_whole(eighty.low_s), _whole(eighty.high_s)],
            "p_start_within": [{"hours": h, "p": round(p, 4)} for h, p in self.wait.within],
            "run_s": None if self.run is None else {k: _whole(v) for k, v in asdict(self.run).items()},
            "finish": None
            if self.finish is None
            else {
                "low": iso(at + timedelta(seconds=round(self.finish.low_s))),
                "middle": iso(at + timedelta(seconds=round(self.finish.middle_s))),
                "high": None if self.finish.high_s is None else iso(at + timedelta(seconds=round(self.finish.high_s))),
            },
            "gpu_hours": None if self.gpu_hours is None else round(self.gpu_hours, 1),
            "cost": {k: round(v, 2) if isinstance(v, float) else v for k, v in asdict(self.cost).items()},
            "limit_s": self.request.limit_s,
            "flags": list(self.flags),
            "pareto": self.pareto,
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Unfit:
    """GPUs that are not offered, and why; ``hint``: what would change that."""

    gpu_type: str
    partition: str | None
    why: str
    hint: str = ""


@dataclass(frozen=True)
class Suggestion:
    """The answer. ``whole``: memory on one endless GPU at one sequence at a time, ``recomputed`` the same with activation
    checkpointing. ``reference``: the GPUs that the run time was told for. ``recommended``: index of an option, None if none stands out
    or there is none; ``because`` is its reason. ``assumptions`` and ``notes`` are sentences."""

    cluster: str
    at: datetime
    question: Question
    whole: Memory
    recomputed: Memory | None
    options: tuple[Option, ...]
    unfit: tuple[Unfit, ...]
    recommended: int | None
    because: str
    reference: str | None
    assumptions: tuple[str, ...]
    notes: tuple[str, ...]
    freshness: Freshness

    def as_json(self) -> dict[str, Any]:
        """Plain values; docs/suggest.md describes them."""
        task, shape = self.question.task, self.question.task.shape
        return {
            "queuecast_json": JSON_VERSION,
            "cluster": self.cluster,
            "at": iso(self.at),
            "task": {
                "model": shape.name,
                "shape_source": shape.source,
                "params": shape.params,
                "active_params": shape.active_params,
                "layers": shape.layers,
                "hidden": shape.hidden,
                "heads": shape.heads,
                "kv_heads": shape.kv_heads,
                "ffn": shape.ffn,
                "vocab": shape.vocab,
                "mode": task.mode,
                "precision": task.precision,
                "batch": self.question.batch,
                "seq": task.seq,
                "hours": self.question.hours,
                "hours_are_for": self.reference,
            },
            "memory_unsharded_bytes": memory_json(self.whole),
            "memory_checkpointed_bytes": None if self.recomputed is None else memory_json(self.recomputed),
            "options": [o.as_json(self.at) for o in self.options],
            "not_offered": [asdict(u) for u in self.unfit],
            "recommended": self.recommended,
            "because": self.because or None,
            "assumptions": list(self.assumptions),
            "notes": list(self.notes),
            "data_at": iso(self.freshness.data_at),
            "data_age_s": _whole(self.freshness.age_s),
        }


def memory_json(memory: Memory) -> dict[str, int]:
    """Bytes by part, and their total."""
    parts = {k: round(v) for k, v in memory.parts().items()}
    return {**parts, "total": sum(parts.values())}


def _whole(value: float | None) -> int | None:
    return None if value is None or not math.isfinite(value) else round(value)
