"""The clock of the replay: submissions, ends, cancellations, nodes that come and go, passes of the scheduler."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np

from queuecast.twin.arrays import DONE, PENDING, RUNNING, WAITING, Clock, Ints, Jobs, Machine, Rules, Sim, njit
from queuecast.twin.backfill import backfill_pass
from queuecast.twin.passes import finish, main_pass, records_of
from queuecast.twin.placing import count_limits, give, need_of
from queuecast.twin.priority import rank, recompute


@njit
def fresh(machine: Machine, jobs: Jobs, rules: Rules) -> Sim:
    """The state at the beginning, with the running jobs in their places."""
    count, types = len(jobs.submit), machine.total.shape[1] - 2
    sim = Sim(
        machine.total.copy(),
        machine.up.copy(),
        np.full(len(machine.up), -np.inf),
        jobs.status.copy(),
        jobs.began.copy(),
        jobs.began.copy(),
        np.full(count, np.inf),
        jobs.age_from.copy(),
        jobs.submit.copy(),
        np.zeros((rules.groups, 5 + types)),
        rules.array_used.copy(),
        rules.usage.copy(),
        rules.fair.copy(),
        np.zeros(len(jobs.record_part)),
        np.zeros(count, np.int64),
        jobs.slot_node.copy(),
        jobs.slot_gpu.copy(),
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
    )
    room = np.empty(5 + types)
    sim.array_used[:] = 0.0
    for j in range(count):
        sim.started_in[j] = jobs.record_part[jobs.record_from[j]]
        if sim.status[j] == RUNNING:
            sim.end[j] = min(sim.start[j] + jobs.run[j], max(sim.start[j], jobs.cancel[j]))
            give(sim.free, sim.slot_node, sim.slot_gpu, jobs.slot[j], need_of(jobs, j), -1.0)
            count_limits(sim, jobs, rules, j, 1.0, room)
    return sim


@njit
def run(machine: Machine, jobs: Jobs, rules: Rules, clock: Clock) -> Sim:
    """Play from ``clock.begin`` to ``clock.stop``. The first start of each job is in ``first``, the last in ``start``."""
    sim: Sim = fresh(machine, jobs, rules)
    count = len(jobs.submit)
    room = np.empty(sim.used.shape[1])
    queue, started = np.empty(count + 1, np.int64), np.empty(count + 1, np.int64)
    plan = np.full(count, np.inf)
    ends = [(np.inf, -1)]
    quits = [(np.inf, -1)]
    comes = [(np.inf, -1)]
    active = [-1]
    active.pop()
    size = int(np.int64(0))  # a plain 0 makes numba compile what it is handed to twice, for 0 and for any number
    for j in range(count):
        if sim.status[j] == RUNNING:
            ends.append((max(sim.end[j], clock.begin), j))
            active.append(j)
        elif sim.status[j] == PENDING:
            queue[size] = j
            size += 1
        elif sim.status[j] == WAITING:
            comes.append((jobs.submit[j], j))
        if jobs.cancel[j] < np.inf and sim.status[j] != DONE:
            quits.append((jobs.cancel[j], j))
    heapify(ends)
    heapify(quits)
    heapify(comes)
    now, computed = clock.begin, clock.begin
    tick_main, tick_back, change = 0, 0, 0
    rank(sim, jobs, rules, queue, size, now)
    one = np.empty(1, np.int64)
    owner, record, sorted_ = queue[:0], queue[:0], False  # the order of the queue changes with arrivals and new priorities only
    event, moved, resv_edge, full_at = True, True, clock.begin, -np.inf
    while True:
        t_main = clock.main_at[tick_main] if tick_main < len(clock.main_at) else np.inf
        t_back = clock.backfill_at[tick_back] if tick_back < len(clock.backfill_at) else np.inf
        t_node = machine.change_at[change] if change < len(machine.change_at) else np.inf
        now = min(ends[0][0], quits[0][0], comes[0][0], t_main, t_back, t_node)
        if now > clock.stop:
            break
        if now == ends[0][0]:
            when, j = heappop(ends)
            if sim.status[j] != RUNNING or sim.end[j] > when:
                continue  # put off or over already
            finish(sim, jobs, rules, j, now, clock.completing, room)
            active.remove(j)
            event, moved = True, True
            if sim.requeues[j] < 0:
                sim.requeues[j] = -sim.requeues[j]
                sim.status[j] = PENDING
                sim.seen[j] = now + clock.requeue_delay
                sim.age_from[j] = sim.seen[j]
                size = _insert(queue, size, j)
                one[0], sorted_ = j, False
                rank(sim, jobs, rules, one, len(one), now)
            continue
        if now == t_node:
            n = machine.change_node[change]
            sim.up[n] = machine.change_up[change]
            change += 1
            event, moved = True, True
            continue
        if now == comes[0][0]:
            when, j = heappop(comes)
            if sim.status[j] == WAITING:
                sim.status[j] = PENDING
                size = _insert(queue, size, j)
                one[0], sorted_ = j, False
                rank(sim, jobs, rules, one, len(one), now)
                event, moved = True, True
            continue
        if now == quits[0][0]:
            when, j = heappop(quits)
            if sim.status[j] == PENDING or sim.status[j] == WAITING:
                sim.status[j] = DONE
                moved = True
            continue
        main = now == t_main
        if main:
            tick_main += 1
        else:
            tick_back += 1
        for r in range(len(machine.resv_start)):
            for edge in (machine.resv_start[r], machine.resv_end[r]):
                if resv_edge < edge <= now:
                    event, moved = True, True
        resv_edge = now
        full = main and now - full_at >= clock.full_interval
        if size == 0 or not (event or full if main else moved):
            continue
        if full:
            full_at = now
        kept = 0
        for i in range(size):  # those that started or left since
            if sim.status[queue[i]] == PENDING:
                queue[kept] = queue[i]
                kept += 1
        size = kept
        if now - computed >= clock.calc_period:
            recompute(sim, jobs, rules, queue, size, now, computed)
            computed, sorted_ = now, False
        if not sorted_:
            owner, record = records_of(sim, jobs, machine, rules, queue, size)
            sorted_ = True
        running = np.empty(len(active), np.int64)
        for i in range(len(active)):
            running[i] = active[i]
        if main:
            done = main_pass(sim, machine, jobs, rules, clock, owner, record, running, now, full, room, started)
            event = done > 0
        else:
            plan[:] = np.inf
            done = backfill_pass(sim, machine, jobs, rules, clock, owner, record, running, now, room, started, plan)
            moved = done > 0
        for n in range(len(sim.busy_until)):  # nodes that are closed now open again without another event
            if sim.busy_until[n] > now:
                event, moved = True, True
        for i in range(size):
            if sim.seen[queue[i]] > now:
                event, moved = True, True
        moved = moved or done > 0
        for i in range(done):
            heappush(ends, (sim.end[started[i]], started[i]))
            active.append(started[i])
        for i in range(len(running)):
            j = running[i]
            if sim.requeues[j] < 0 and sim.status[j] == RUNNING:
                heappush(ends, (sim.end[j], j))
        if clock.stop_job >= 0 and not np.isinf(sim.first[clock.stop_job]):
            break
    return sim


@njit
def _insert(queue: Ints, size: int, j: int) -> int:
    """Keep the queue in the order of job numbers (submission): ties of priority go to the first."""
    i = size
    while i > 0 and queue[i - 1] > j:
        queue[i] = queue[i - 1]
        i -= 1
    if i > 0 and queue[i - 1] == j:  # still there from before
        for k in range(i, size):
            queue[k] = queue[k + 1]
        return size
    queue[i] = j
    return size + 1
