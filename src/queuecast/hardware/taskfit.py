"""How a task is laid out on a number of like GPUs so that it fits: sharding, checkpointing, sequences at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from queuecast.hardware.gpufacts import GpuFact
from queuecast.hardware.taskmemory import GIB, USABLE, Memory, Sharding, Task, memory

Choice = Literal["auto", "none", "zero2", "zero3", "tp"]
Again = Literal["auto", "on", "off"]

TIGHT = 0.05
"""Share of the memory; with less free than that, a layout is called tight."""


@dataclass(frozen=True)
class Layout:
    """A way that fits. ``micro_batch``: sequences at once per data-parallel rank; ``accumulation``: such steps per batch.
    ``usable_bytes``: what is counted on of the GPU; ``headroom_bytes``: what of it stays free."""

    gpus: int
    sharding: Sharding
    checkpointing: bool
    micro_batch: int
    accumulation: int
    memory: Memory
    usable_bytes: float

    @property
    def tight(self) -> bool:
        """So little stays free that the estimate's own error may be larger."""
        return self.headroom_bytes < TIGHT * self.usable_bytes

    @property
    def headroom_bytes(self) -> float:
        """Free on each GPU."""
        return self.usable_bytes - self.memory.total


def usable_bytes(fact: GpuFact) -> float:
    """What is counted on of a GPU's memory."""
    return fact.memory_gib * GIB * USABLE


def lay_out(
    task: Task, batch: int, fact: GpuFact, gpus: int, *, one_node: bool = True, sharding: Choice = "auto", again: Again = "auto"
) -> Layout | None:
    """The first way that fits on ``gpus``; None if there is none.

    ``batch``: sequences per optimiser step, over all GPUs; for inference, those served at once. Tried in this order: no sharding,
    ZeRO-2, ZeRO-3 with all activations kept; the same with checkpointing (a third more computing); tensor parallelism, which needs code
    made for it (one node and a divisor of the heads only). The largest number of sequences at once that fits is taken. A way that leaves
    less than ``TIGHT`` of the memory is taken only if none leaves more.
    """
    if fact.slice and gpus > 1:
        return None
    usable = usable_bytes(fact)
    tight: Layout | None = None
    for way, checkpointing in _ways(task, gpus, one_node, sharding, again):
        for micro, steps in _micro_batches(task, batch, gpus, way):
            need = memory(task.with_(micro_batch=micro, checkpointing=checkpointing), gpus, way)
            if need.total > usable:
                continue
            found = Layout(gpus, way, checkpointing, micro, steps, need, usable)
            if not found.tight:
                return found
            tight = tight or found
    return tight


def _ways(task: Task, gpus: int, one_node: bool, sharding: Choice, again: Again) -> Iterator[tuple[Sharding, bool]]:
    if task.mode == "inference":
        recompute: tuple[bool, ...] = (False,)
        data_parallel: tuple[Sharding, ...] = ("none",) if gpus == 1 else ()
    else:
        recompute = {"auto": (False, True), "on": (True,), "off": (False,)}[again]
        data_parallel = ("none",) if gpus == 1 else ("none", "zero2", "zero3")
    tensor: tuple[Sharding, ...] = ("tp",) if gpus > 1 and one_node and task.shape.heads % gpus == 0 else ()
    for ways in (data_parallel, tensor):
        for checkpointing in recompute:
            for way in ways:
                if gpus == 1 or sharding in ("auto", way):
                    yield way, checkpointing


def _micro_batches(task: Task, batch: int, gpus: int, way: Sharding) -> Iterator[tuple[int, int]]:
    """(sequences at once, steps), largest first. Ranks of unequal work are not considered."""
    if task.mode == "inference":
        yield batch, 1
        return
    ranks = 1 if way == "tp" else gpus
    if batch % ranks:
        return
    each = batch // ranks
    divisors = {d for k in range(1, int(each**0.5) + 1) if each % k == 0 for d in (k, each // k)}
    for micro in sorted(divisors, reverse=True):
        yield micro, each // micro
