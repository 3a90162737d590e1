"""How a run time told for one set of GPUs carries over to another: a stated assumption, given as a range."""

from __future__ import annotations

import math
from dataclasses import dataclass

from queuecast.hardware.gpufacts import GpuFact
from queuecast.hardware.gputable import Link

CHECKPOINTING = 4 / 3
"""Computing with full checkpointing against without: one more forward pass, which is a third of a step (Korthikanti et al. 2022)."""

EXPONENTS = (1.0, 0.85, 0.7)
"""Share (in the exponent) of the ratio of two types' public peaks that a run gets: all, likely, little. Software often does not
reach a newer type's peak as well as an older one's."""

_FAST, _SLOW = (1.0, 0.95, 0.85), (1.0, 0.85, 0.7)
"""Speed kept at each doubling of the number of GPUs: ideal, likely, poor; with a fast interconnect in one node, else."""


@dataclass(frozen=True)
class Set:
    """GPUs that work together. ``recompute``: with checkpointing."""

    fact: GpuFact
    gpus: int
    nodes: int
    link: Link
    recompute: bool = False


@dataclass(frozen=True)
class Run:
    """Run time in seconds: if all goes ideally, likely, if it scales poorly; ``low_s`` <= ``likely_s`` <= ``high_s``."""

    low_s: float
    likely_s: float
    high_s: float


def rate(fact: GpuFact, mode: str, precision: str) -> float | None:
    """What a run's speed is taken to go with: peak throughput in training, memory bandwidth in inference (each new token reads all
    weights: Pope et al. 2022). None if not known."""
    return fact.bandwidth_gbs if mode == "inference" else fact.tflops(precision)


def carry_over(hours: float, reference: Set, target: Set, mode: str, precision: str) -> Run | None:
    """The run time on ``target`` of what takes ``hours`` on ``reference``; the same set gives exactly these. None: a rate is unknown."""
    there, here = rate(reference.fact, mode, precision), rate(target.fact, mode, precision)
    if not there or not here:
        return None
    work = (CHECKPOINTING if target.recompute else 1.0) / (CHECKPOINTING if reference.recompute else 1.0)
    runs = []
    for case, exponent in enumerate(EXPONENTS):
        speed = (here / there) ** exponent * _together(target, case) / _together(reference, case)
        runs.append(hours * 3600.0 * work / speed)
    return Run(min(runs), sorted(runs)[1], max(runs))


def _together(group: Set, case: int) -> float:
    """Speed of the set in GPUs: each doubling keeps a share."""
    inside = group.gpus / group.nodes
    fast = group.link in ("nvlink", "fabric")
    return float(group.gpus * (_FAST if fast else _SLOW)[case] ** math.log2(inside) * _SLOW[case] ** math.log2(group.nodes))
