"""One main pass and what it needs: the order of the queue, starts, preemption. Source: docs/twin.md, job_scheduler.c."""

from __future__ import annotations

import numpy as np

from queuecast.twin.arrays import DONE, PENDING, RUNNING, Clock, Flags, Floats, Ints, Jobs, Machine, Rules, Sim, njit
from queuecast.twin.placing import choose, count_limits, give, need_of, open_nodes, take, within_limits

MAIN, BACKFILL = 1, 2


@njit
def records_of(sim: Sim, jobs: Jobs, machine: Machine, rules: Rules, queue: Ints, size: int) -> tuple[Ints, Ints]:
    """Records of the pending jobs in Slurm's order: preemptable QOS last, tier, priority, submission."""
    count = 0
    for i in range(size):
        count += jobs.record_from[queue[i] + 1] - jobs.record_from[queue[i]]
    owner, record, keys = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count)
    n = 0
    for i in range(size):
        j = queue[i]
        if sim.status[j] != PENDING:
            continue
        victim = 0.0
        for q in range(rules.preempts.shape[0]):
            if rules.preempts[q, jobs.qos[j]]:
                victim = 1.0
        for r in range(jobs.record_from[j], jobs.record_from[j + 1]):
            if machine.part_up[jobs.record_part[r]]:
                owner[n], record[n] = j, r
                keys[n] = victim * 1e16 - machine.tier[jobs.record_part[r]] * 4294967296.0 - sim.prio[r]
                n += 1
    order = np.argsort(keys[:n], kind="mergesort")
    return owner[order], record[order]


@njit
def begin(sim: Sim, jobs: Jobs, rules: Rules, j: int, part: int, nodes: Ints, at: float, how: int, room: Floats) -> None:
    """Start a job."""
    take(sim, jobs, j, nodes)
    sim.status[j] = RUNNING
    sim.start[j] = at
    sim.end[j] = min(at + jobs.run[j], max(at, jobs.cancel[j]))
    if np.isinf(sim.first[j]):
        sim.first[j] = at
    sim.started_in[j] = part
    sim.how[j] = how
    count_limits(sim, jobs, rules, j, 1.0, room)


@njit
def finish(sim: Sim, jobs: Jobs, rules: Rules, j: int, now: float, completing: float, room: Floats) -> None:
    """Take a running job off its nodes; they are closed while it completes."""
    count_limits(sim, jobs, rules, j, -1.0, room)
    give(sim.free, sim.slot_node, sim.slot_gpu, jobs.slot[j], need_of(jobs, j), 1.0)
    for i in range(jobs.nodes[j]):
        n = sim.slot_node[jobs.slot[j] + i]
        sim.busy_until[n] = max(sim.busy_until[n], now + completing)
    sim.status[j] = DONE
    sim.end[j] = now


@njit
def victims(sim: Sim, machine: Machine, jobs: Jobs, rules: Rules, running: Ints, j: int, usable: Flags, nodes: Ints, out: Ints) -> int:
    """Jobs to preempt so that job j fits, youngest first, into ``out``; 0 if it would not fit even so.

    The last one needed moves to the front and the choice is made again, as Slurm does (reorder_count 1).
    """
    row = rules.variant[jobs.qos[j]]
    if row == 0:
        return 0
    count = 0
    for i in range(len(running)):
        k = running[i]
        if sim.status[k] == RUNNING and rules.variants[row, jobs.qos[k]]:
            count += 1
    if count == 0:
        return 0
    order, ages = np.empty(count, np.int64), np.empty(count)
    n = 0
    for i in range(len(running)):
        k = running[i]
        if sim.status[k] == RUNNING and rules.variants[row, jobs.qos[k]]:
            order[n], ages[n] = k, -sim.start[k]
            n += 1
    order = order[np.argsort(ages, kind="mergesort")]
    need = need_of(jobs, j)
    for turn in range(2):
        free = sim.free.copy()
        last = -1
        for i in range(count):
            give(free, sim.slot_node, sim.slot_gpu, jobs.slot[order[i]], need_of(jobs, order[i]), 1.0)
            if choose(free, usable, machine.weight, need, nodes):
                last = i
                break
        if last < 0:
            return 0
        if turn == 0 and last > 0:
            k = order[last]
            order[1 : last + 1] = order[:last].copy()
            order[0] = k
        elif turn == 0:
            break
    found = 0
    for i in range(last + 1):
        touches = False
        for m in range(jobs.nodes[order[i]]):
            for w in range(jobs.nodes[j]):
                touches = touches or sim.slot_node[jobs.slot[order[i]] + m] == nodes[w]
        if touches:
            out[found] = order[i]
            found += 1
    return found


@njit
def preempt(sim: Sim, jobs: Jobs, out: Ints, count: int, now: float, wait: float) -> None:
    """Let jobs end for preemption; the loop puts them back into the queue."""
    for i in range(count):
        sim.end[out[i]] = min(sim.end[out[i]], now + wait)
        sim.requeues[out[i]] = -abs(sim.requeues[out[i]]) - 1  # negative: to be requeued when it ends


@njit
def main_pass(
    sim: Sim,
    machine: Machine,
    jobs: Jobs,
    rules: Rules,
    clock: Clock,
    owner: Ints,
    record: Ints,
    running: Ints,
    now: float,
    full: bool,
    room: Floats,
    started: Ints,
) -> int:
    """Slurm's main scheduling pass: in order, until a partition's first job does not fit. Fills ``started``, returns how many.

    Victims of preemption are in ``sim.requeues`` (negative).
    """
    parts, count = machine.member.shape
    failed, depth = np.zeros(parts, np.bool_), np.zeros(parts, np.int64)
    closed, usable = np.zeros(count, np.bool_), np.empty(count, np.bool_)
    nodes, out = np.empty(count, np.int64), np.empty(len(running), np.int64)
    for n in range(count):
        closed[n] = sim.busy_until[n] > now
    tested, done, left = 0, 0, parts
    turned_away, turned_away_in = -1, -1  # an array whose task did not start: its other tasks are not tried
    for i in range(len(owner)):
        j, part = owner[i], jobs.record_part[record[i]]
        if sim.status[j] != PENDING or failed[part] or sim.seen[j] > now:
            continue
        if jobs.after[j] >= 0 and sim.status[jobs.after[j]] != DONE:
            continue
        array = jobs.array[j]
        if array >= 0:
            if array == turned_away and part == turned_away_in:
                continue
            turned_away, turned_away_in = array, part  # until it is known that this task starts
        if clock.part_depth > 0:
            depth[part] += 1
            if depth[part] > clock.part_depth:
                continue
        if not full and tested > clock.queue_depth:
            break
        tested += 1
        if array >= 0 and sim.array_used[array] >= rules.throttle[array]:
            continue
        need = need_of(jobs, j)
        if not within_limits(sim.used, rules.lim_from, rules.lim_group, rules.lim_max, jobs.limits[j], need, room):
            continue
        open_nodes(machine, sim, jobs, j, part, now, jobs.limit[j], usable)
        for n in range(count):
            usable[n] = usable[n] and not closed[n]
        if choose(sim.free, usable, machine.weight, need, nodes):
            begin(sim, jobs, rules, j, part, nodes, now, np.int64(MAIN), room)
            started[done] = j
            done += 1
            turned_away = -1
            continue
        hit = victims(sim, machine, jobs, rules, running, j, usable, nodes, out)
        if hit:
            preempt(sim, jobs, out, hit, now, clock.kill_wait)
        if jobs.resv[j] >= 0:
            continue
        failed[part] = True
        left -= 1
        for n in range(count):
            closed[n] = closed[n] or machine.member[part, n]
        if left == 0:
            break
    return done
