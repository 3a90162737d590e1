"""Where a job fits and what it takes there: select/cons_tres in counts (whole nodes' CPUs, memory and GPUs by type)."""

from __future__ import annotations

import numpy as np

from queuecast.twin.arrays import (
    CPU,
    GPU,
    L_CPU,
    L_GPU,
    L_JOBS,
    L_MEM,
    L_NODE,
    MEM,
    Flags,
    Floats,
    Ints,
    Jobs,
    Machine,
    Need,
    Rules,
    Sim,
    njit,
)


@njit
def need_of(jobs: Jobs, j: int) -> Need:
    """A job's request on each node."""
    return Need(jobs.nodes[j], jobs.cpu[j], jobs.mem[j], jobs.gpu[j], jobs.gtype[j])


@njit
def fits(free: Floats, node: int, need: Need) -> bool:
    """Whether one node's part of the job fits into ``free[node]``."""
    if free[node, CPU] < need.cpu or free[node, MEM] < need.mem:
        return False
    if need.gpu <= 0:
        return True
    if need.gtype >= 0:
        return bool(free[node, GPU + need.gtype] >= need.gpu)
    have = 0.0
    for k in range(GPU, free.shape[1]):
        have += free[node, k]
    return bool(have >= need.gpu)


@njit
def enough(free: Floats, usable: Flags, need: Need) -> bool:
    """Whether the job fits on the usable nodes."""
    found = 0
    for n in range(len(usable)):
        if usable[n] and fits(free, n, need):
            found += 1
            if found >= need.nodes:
                return True
    return False


@njit
def choose(free: Floats, usable: Flags, weight: Floats, need: Need, out: Ints) -> bool:
    """Nodes for the job, into ``out``: lowest weight first, then the fewest free CPUs, then the order of the table."""
    want = need.nodes
    if want == 1:
        best = -1
        for n in range(len(usable)):
            better = best < 0 or weight[n] < weight[best] or (weight[n] == weight[best] and free[n, CPU] < free[best, CPU])
            if usable[n] and better and fits(free, n, need):
                best = n
        if best < 0:
            return False
        out[0] = best
        return True
    count = 0
    found = np.empty(len(usable), np.int64)
    for n in range(len(usable)):
        if usable[n] and fits(free, n, need):
            found[count] = n
            count += 1
    if count < want:
        return False
    keys = np.empty(count)
    for i in range(count):
        keys[i] = weight[found[i]] * 1e9 + free[found[i], CPU]
    order = np.argsort(keys, kind="mergesort")
    for i in range(want):
        out[i] = found[order[i]]
    return True


@njit
def take(sim: Sim, jobs: Jobs, j: int, nodes: Ints) -> None:
    """Allocate: resources of the nodes, and the job's places. GPUs: of its type, else of the first types that have some."""
    for i in range(jobs.nodes[j]):
        n, place = nodes[i], jobs.slot[j] + i
        left = jobs.gpu[j]
        sim.slot_gpu[place] = 0.0
        if jobs.gtype[j] >= 0:
            sim.slot_gpu[place, jobs.gtype[j]] = left
        else:
            for k in range(sim.slot_gpu.shape[1]):
                sim.slot_gpu[place, k] = max(0.0, min(left, sim.free[n, GPU + k]))
                left -= sim.slot_gpu[place, k]
        sim.slot_node[place] = n
    give(sim.free, sim.slot_node, sim.slot_gpu, jobs.slot[j], need_of(jobs, j), -1.0)


@njit
def give(free: Floats, slot_node: Ints, slot_gpu: Floats, first: int, need: Need, sign: float) -> None:
    """Add (or with -1 take away) what the job with places from ``first`` on holds."""
    for place in range(first, first + need.nodes):
        n = slot_node[place]
        free[n, CPU] += sign * need.cpu
        free[n, MEM] += sign * need.mem
        for k in range(slot_gpu.shape[1]):
            free[n, GPU + k] += sign * slot_gpu[place, k]


@njit
def asked(need: Need, out: Floats) -> None:
    """The job's request in the terms of limits. GPUs of a type count only where the type was asked for."""
    n = need.nodes
    out[:] = 0.0
    out[L_JOBS], out[L_CPU], out[L_MEM], out[L_NODE], out[L_GPU] = 1.0, n * need.cpu, n * need.mem, n, n * need.gpu
    if need.gtype >= 0:
        out[L_GPU + 1 + need.gtype] = n * need.gpu


@njit
def within_limits(used: Floats, lim_from: Ints, lim_group: Ints, lim_max: Floats, row: int, need: Need, room: Floats) -> bool:
    """Whether the limits of QOS and associations leave room for the job (class ``row``)."""
    if lim_from[row] == lim_from[row + 1]:
        return True
    asked(need, room)
    for e in range(lim_from[row], lim_from[row + 1]):
        g = lim_group[e]
        for d in range(len(room)):
            if room[d] > 0 and used[g, d] + room[d] > lim_max[e, d] + 1e-9:
                return False
    return True


@njit
def count_limits(sim: Sim, jobs: Jobs, rules: Rules, j: int, sign: float, room: Floats) -> None:
    """Count a started (or with -1 an ended) job: GPUs by the types it holds."""
    if jobs.array[j] >= 0:
        sim.array_used[jobs.array[j]] += sign
    asked(need_of(jobs, j), room)
    for k in range(sim.slot_gpu.shape[1]):
        held = 0.0
        for place in range(jobs.slot[j], jobs.slot[j] + jobs.nodes[j]):
            held += sim.slot_gpu[place, k]
        room[L_GPU + 1 + k] = held
    row = jobs.limits[j]
    for e in range(rules.lim_from[row], rules.lim_from[row + 1]):
        for d in range(len(room)):
            sim.used[rules.lim_group[e], d] += sign * room[d]


@njit
def open_nodes(machine: Machine, sim: Sim, jobs: Jobs, j: int, part: int, at: float, length: float, out: Flags) -> int:
    """Nodes of the partition that are up, have the features and are not kept by a reservation in [at, at + length)."""
    count = 0
    for n in range(len(out)):
        ok = machine.member[part, n] and sim.up[n] and machine.masks[jobs.mask[j], n]
        if ok:
            for r in range(len(machine.resv_start)):
                if machine.resv_node[r, n] and r != jobs.resv[j] and machine.resv_start[r] < at + length and machine.resv_end[r] > at:
                    ok = False
                    break
        if ok and jobs.resv[j] >= 0:
            r = jobs.resv[j]
            ok = machine.resv_node[r, n] and machine.resv_start[r] <= at < machine.resv_end[r]
        out[n] = ok
        count += ok
    return count
