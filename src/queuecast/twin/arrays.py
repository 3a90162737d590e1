"""What the scheduler's kernels work on: plain arrays in named tuples, so that numba and Python read the same thing.

Resources are a vector (CPUs, memory in MiB, GPUs of each type); limits a vector (jobs, CPUs, memory in MiB, nodes,
GPUs, GPUs of each type). Times are seconds since 1970 UTC, ``inf`` is never. Counts are per node where not said otherwise.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]

CPU, MEM, GPU = 0, 1, 2
"""Places in a vector of resources; the GPU types follow from ``GPU`` on."""
L_JOBS, L_CPU, L_MEM, L_NODE, L_GPU = 0, 1, 2, 3, 4
"""Places in a vector of limits; the GPU types follow after ``L_GPU``."""

WAITING, PENDING, RUNNING, DONE = 0, 1, 2, 3
"""Status of a job: not submitted yet, in the queue, running, over."""


class Machine(NamedTuple):
    """Nodes and partitions. ``resv_*`` are reservations, ``change_*`` nodes that go down or come back."""

    total: Floats  # [node, resource]
    up: Flags  # [node] at the beginning
    weight: Floats  # [node] lower is filled first
    member: Flags  # [partition, node]
    tier: Floats  # [partition]
    part_up: Flags  # [partition] jobs may start
    resv_start: Floats
    resv_end: Floats
    resv_node: Flags  # [reservation, node]
    change_at: Floats
    change_node: Ints
    change_up: Flags
    masks: Flags  # [mask, node] nodes that have the features asked for; row 0 is all


class Jobs(NamedTuple):
    """Jobs in the order (submit, id). ``record_*`` holds one record per partition of a job (CSR by ``record_from``)."""

    submit: Floats  # eligible: from then on it is in the queue
    age_from: Floats  # since when the age factor grows
    run: Floats
    limit: Floats
    record_from: Ints  # [job + 1]
    record_part: Ints
    record_prio: Floats  # the part of the priority that does not change
    nodes: Ints
    cpu: Floats
    mem: Floats
    gpu: Floats
    gtype: Ints  # -1 any
    limits: Ints  # row of Rules.lim_from
    assoc: Ints
    qos: Ints
    array: Ints  # -1: none
    cancel: Floats
    resv: Ints  # reservation asked for, -1 none
    mask: Ints
    after: Ints  # job that has to end first, -1 none
    slot: Ints  # [job + 1] first place in slot_node
    status: Ints
    began: Floats  # start of the jobs that run at the beginning
    slot_node: Ints  # nodes of the jobs that run at the beginning
    slot_gpu: Floats  # [slot, type]


class Need(NamedTuple):
    """What one job asks for on each of its nodes: numbers only, cheap to hand on (each array handed on is counted)."""

    nodes: int
    cpu: float
    mem: float
    gpu: float
    gtype: int


class Rules(NamedTuple):
    """Limits, preemption, priority."""

    lim_from: Ints  # [class + 1]
    lim_group: Ints
    lim_max: Floats  # [entry, limit]
    groups: int
    throttle: Floats  # [array]
    array_used: Floats  # [array] tasks that run at the beginning
    preempts: Flags  # [qos, qos]
    variant: Ints  # [qos] row of variants
    variants: Flags  # [variant, qos] QOS that may be preempted; row 0 none
    usage_factor: Floats  # [qos]
    billing: Floats  # [partition, 3 + types]: CPU, GiB, GPU of any type, GPU of a type
    w_age: float
    max_age: float
    w_fair: float
    fair: Floats  # [assoc] the factor at the beginning
    fair_moves: bool  # recompute from usage
    tree: bool  # Fair Tree, else the classic formula
    parent: Ints  # [assoc], -1 root
    shares: Floats  # nan: parent's
    is_user: Flags
    usage: Floats
    decay: float  # per second
    damping: float


class Clock(NamedTuple):
    """When the scheduler acts, and its settings."""

    begin: float
    stop: float
    main_at: Floats
    backfill_at: Floats
    full_interval: float  # a main pass without depth limit and without an event
    calc_period: float
    kill_wait: float
    requeue_delay: float
    completing: float
    queue_depth: int
    part_depth: int
    bf_window: float
    bf_resolution: float
    bf_tests: int
    bf_array: int
    bf_slots: int
    bf_reserve: int  # reservations per partition and cycle
    bf_test_s: float
    old_group_end: bool  # up to 24.11 a plan starts when the last job of the group ends
    stop_job: int  # stop when that job has started, -1 none


class Sim(NamedTuple):
    """What changes while the kernels run."""

    free: Floats
    up: Flags
    busy_until: Floats
    status: Ints
    start: Floats
    first: Floats
    end: Floats
    age_from: Floats
    seen: Floats  # eligible again after a requeue
    used: Floats  # [group, limit]
    array_used: Floats
    usage: Floats
    fair: Floats
    prio: Floats  # [record]
    started_in: Ints  # partition
    slot_node: Ints
    slot_gpu: Floats
    how: Ints  # 0 not started, 1 main, 2 backfill
    requeues: Ints


def njit(function: Any = None, **options: Any) -> Any:
    """numba's ``njit`` with a cache on disk; where numba cannot be imported the function itself."""
    if function is None:
        return lambda f: njit(f, **options)
    try:
        from numba import njit as compiled
    except ImportError:  # the same code, slowly
        return function
    return compiled(cache=True, nogil=True, error_model="numpy", **options)(function)
