"""One backfill cycle: a map of whole nodes in time, running jobs taken away in growing groups. Source: docs/twin.md, backfill.c."""

from __future__ import annotations

import numpy as np

from queuecast.twin.arrays import CPU, DONE, MEM, PENDING, RUNNING, Clock, Flags, Floats, Ints, Jobs, Machine, Need, Rules, Sim, Words, njit
from queuecast.twin.passes import BACKFILL, begin, preempt, victims
from queuecast.twin.placing import choose, enough, fits, give, need_of, within_limits

ONE = np.uint64(1)


@njit
def due_order(sim: Sim, jobs: Jobs, running: Ints, due: Floats, order: Ints) -> int:
    """Running jobs by the end of their limits, into ``order`` with their ends in ``due``; returns how many."""
    count = 0
    for i in range(len(running)):
        if sim.status[running[i]] == RUNNING:
            order[count], due[count] = running[i], sim.start[running[i]] + jobs.limit[running[i]]
            count += 1
    by = np.argsort(due[:count], kind="mergesort")
    order[:count], due[:count] = order[:count][by], due[:count][by]
    return count


@njit
def add_due(j: int, end: float, count: int, due: Floats, order: Ints) -> int:
    """Put a job that started in this cycle among the running ones."""
    i = count
    while i > 0 and due[i - 1] > end:
        due[i], order[i] = due[i - 1], order[i - 1]
        i -= 1
    due[i], order[i] = end, j
    return count + 1


@njit
def keep(slots: Floats, space: Words, count: int, start: float, end: float, nodes: Ints, want: int) -> int:
    """Take whole nodes out of the map from start to end; splits slots at both times. Returns the number of slots, 0 if full."""
    for edge in (start, end):
        i = int(np.searchsorted(slots[1 : count + 1], edge, side="right"))
        if i < count and slots[i] < edge:
            if count + 1 >= len(space):
                return 0
            for k in range(count, i, -1):
                slots[k + 1] = slots[k]
                space[k] = space[k - 1]
            slots[i + 1] = edge
            count += 1
    for i in range(count):
        if slots[i] < end and slots[i + 1] > start:
            for w in range(want):
                space[i, nodes[w] >> 6] &= ~(ONE << np.uint64(nodes[w] & 63))
    return count


@njit
def pack(flags: Flags, out: Words) -> None:
    """Flags of nodes as bits of words."""
    out[:] = np.uint64(0)
    for n in range(len(flags)):
        if flags[n]:
            out[n >> 6] |= ONE << np.uint64(n & 63)


@njit
def unpack(words: Words, out: Flags) -> int:
    """Bits as flags; returns how many are set."""
    count = 0
    for n in range(len(out)):
        out[n] = (words[n >> 6] >> np.uint64(n & 63)) & ONE != np.uint64(0)
        count += out[n]
    return count


@njit
def kept_away(resv_start: Floats, resv_end: Floats, resv: Words, own: int, start: float, end: float, words: Words) -> None:
    """Take the nodes of reservations that overlap [start, end) out of ``words``; a job with a reservation has only its nodes."""
    for r in range(len(resv_start)):
        if r == own:
            for w in range(len(words)):
                words[w] &= resv[r, w] if resv_start[r] <= start < resv_end[r] else np.uint64(0)
        elif resv_start[r] < end and resv_end[r] > start:
            for w in range(len(words)):
                words[w] &= ~resv[r, w]


@njit
def slots_meet(slots: Floats, space: Words, filled: int, start: float, end: float, words: Words) -> float:
    """Leave in ``words`` the nodes that every slot touching [start, end] has; returns where the first of them ends (inf: the last slot)."""
    first = np.searchsorted(slots[1 : filled + 1], start, side="right")
    later = slots[first + 1] if first + 1 < filled else np.inf
    for s in range(first, filled):
        if slots[s] > end:
            break
        some = np.uint64(0)
        for w in range(len(words)):
            words[w] &= space[s, w]
            some |= words[w]
        if some == np.uint64(0):
            break
    return later


@njit
def clashes(slots: Floats, space: Words, filled: int, start: float, end: float, nodes: Ints, want: int) -> bool:
    """Whether the map has kept one of the nodes for another job between start and end."""
    for s in range(filled):
        if slots[s] < end and slots[s + 1] > start:
            for w in range(want):
                if (space[s, nodes[w] >> 6] >> np.uint64(nodes[w] & 63)) & ONE == np.uint64(0):
                    return True
    return False


@njit
def backfill_pass(
    sim: Sim,
    machine: Machine,
    jobs: Jobs,
    rules: Rules,
    clock: Clock,
    owner: Ints,
    record: Ints,
    running: Ints,
    now: float,
    room: Floats,
    started: Ints,
    plan: Floats,
) -> int:
    """One cycle. Fills ``started`` and ``plan`` (planned start of each pending job, inf if not reached); returns how many started."""
    parts, count = machine.member.shape
    most = len(running) + len(owner)
    due, order = np.empty(most), np.empty(most, np.int64)
    ending = due_order(sim, jobs, running, due, order)
    free = np.empty_like(sim.free)
    width = (count + 63) >> 6
    space, slots = np.empty((clock.bf_slots + 2, width), np.uint64), np.empty(clock.bf_slots + 3)
    space[:] = ~np.uint64(0)
    resv = np.zeros((len(machine.resv_start), width), np.uint64)
    for r in range(len(machine.resv_start)):
        pack(machine.resv_node[r], resv[r])
    step = clock.bf_resolution
    base = np.floor(now / step) * step
    slots[0], slots[1], filled = base, base + clock.bf_window, np.int64(1)
    usable, here, nodes = np.empty(count, np.bool_), np.empty(count, np.bool_), np.empty(count, np.int64)
    shared, wide = np.empty(count, np.bool_), np.zeros(width, np.uint64)
    out = np.empty(len(running) + 1, np.int64)
    able, words, before = np.zeros(width, np.uint64), np.zeros(width, np.uint64), np.zeros(width, np.uint64)
    of_array, reserved = np.zeros(len(rules.throttle), np.int64), np.zeros(parts, np.int64)
    busy = sim.busy_until > now
    tested, done, refused = 0, 0, 0
    no_code, no_need = np.empty((min(clock.bf_tests, len(owner)), 5), np.int64), np.empty((min(clock.bf_tests, len(owner)), 4))
    turned_away, turned_away_in = -1, -1  # as in the main pass
    for i in range(len(owner)):
        j, part = owner[i], jobs.record_part[record[i]]
        if sim.status[j] != PENDING or sim.seen[j] > now:
            continue
        if jobs.after[j] >= 0 and sim.status[jobs.after[j]] != DONE:
            continue
        array = jobs.array[j]
        if array >= 0:
            if array == turned_away and part == turned_away_in:
                continue
            if of_array[array] >= clock.bf_array or sim.array_used[array] >= rules.throttle[array]:
                continue
            turned_away, turned_away_in = array, part
        if tested >= clock.bf_tests:
            break
        tested += 1
        need = need_of(jobs, j)
        if not within_limits(sim.used, rules.lim_from, rules.lim_group, rules.lim_max, jobs.limits[j], need, room):
            continue
        only_now = reserved[part] >= clock.bf_reserve
        v, length, resv_of, mask = rules.variant[jobs.qos[j]], jobs.limit[j], jobs.resv[j], jobs.mask[j]
        if only_now and clock.bf_reserve < 1000:  # less only gets free in a cycle: what asks for no less than one refused is refused
            hopeless = False
            for k in range(refused):
                if (
                    no_code[k, 0] == part
                    and no_need[k, 0] <= need.cpu
                    and no_need[k, 1] <= need.mem
                    and no_need[k, 2] <= need.gpu
                    and no_need[k, 3] <= length
                    and no_code[k, 1] <= need.nodes
                    and no_code[k, 2] == need.gtype
                    and no_code[k, 3] == resv_of
                    and no_code[k, 4] == mask
                ):
                    hopeless = True
                    break
            if hopeless:
                continue
        member, feature = machine.member[part], machine.masks[mask]
        for n in range(count):
            shared[n] = member[n] and sim.up[n] and feature[n] and machine.total[n, CPU] >= need.cpu and machine.total[n, MEM] >= need.mem
            usable[n] = shared[n] and fits(machine.total, n, need)
        pack(usable, able)
        pack(shared, wide)
        if only_now and clock.bf_reserve < 1000:  # forward runs: whether it can start at once is all that is asked
            words[:] = able
            kept_away(machine.resv_start, machine.resv_end, resv, resv_of, now, now + length, words)
            slots_meet(slots, space, filled, now, now + length, words)
            if unpack(words, usable) < need.nodes or not choose_now(sim.free, machine.weight, need, usable, busy, here, nodes):
                no_code[refused, 0], no_code[refused, 1], no_code[refused, 2] = part, need.nodes, need.gtype
                no_code[refused, 3], no_code[refused, 4] = resv_of, mask
                no_need[refused, 0], no_need[refused, 1], no_need[refused, 2], no_need[refused, 3] = need.cpu, need.mem, need.gpu, length
                refused += 1
                continue
        start, ready = now, -2.0  # ready: when the nodes of ``before`` are free by the groups; -2 not asked yet
        while True:
            words[:] = wide
            kept_away(machine.resv_start, machine.resv_end, resv, resv_of, start, start + length, words)
            later = slots_meet(slots, space, filled, start, start + length, words)
            for r in range(len(machine.resv_end)):  # Slurm looks again when a reservation ends
                if start < machine.resv_end[r] + 1.0 < min(later, base + clock.bf_window) and machine.resv_end[r] > start:
                    later = machine.resv_end[r] + 1.0
            same = ready != -2.0
            for w in range(width):
                same = same and words[w] == before[w]
            if not same or (start <= now and ready <= now):
                before[:] = words
                unpack(words, shared)
                for w in range(width):
                    words[w] &= able[w]
                ready = np.inf
                if unpack(words, usable) >= need.nodes:
                    ready = will_run(
                        sim, machine, jobs, rules, clock, v, need, usable, shared, busy, now, start <= now, due, order, ending, free, here,
                        nodes,
                    )  # fmt: skip
            when = max(start, ready)
            if np.isinf(when) or (when > now and when > later):
                if np.isinf(later) or only_now:
                    break
                start = later
                continue
            if when <= now:
                if choose_now(sim.free, machine.weight, need, usable, busy, here, nodes):
                    begin(sim, jobs, rules, j, part, nodes, now + tested * clock.bf_test_s, np.int64(BACKFILL), room)
                    ending = add_due(j, sim.start[j] + length, ending, due, order)
                    started[done] = j
                    done += 1
                    turned_away = -1
                    break
                hit = victims(sim, machine, jobs, rules, running, j, here, nodes, out)
                if hit:
                    preempt(sim, jobs, out, hit, now, clock.kill_wait)
                when = now + 1.0
            plan[j] = min(plan[j], when)
            if only_now or when > base + clock.bf_window:
                break
            if when > start and clashes(slots, space, filled, when, when + length, nodes, jobs.nodes[j]):
                start = when
                continue
            first = np.floor(when / step) * step
            filled = keep(slots, space, filled, first, max(first + step, np.floor((when + length) / step) * step), nodes, jobs.nodes[j])
            if filled == 0:
                return done
            reserved[part] += 1
            if array >= 0:
                of_array[array] += 1
                turned_away = -1
            break
    return done


@njit
def will_run(
    sim: Sim, machine: Machine, jobs: Jobs, rules: Rules, clock: Clock, v: int, need: Need, usable: Flags, shared: Flags, busy: Flags,
    now: float, at_once: bool, due: Floats, order: Ints, count: int, free: Floats, here: Flags, nodes: Ints,
) -> float:  # fmt: skip
    """When the job fits on the usable nodes, by the ends of the running jobs' limits; inf if never.

    Running jobs that hold one of the nodes ``shared`` are taken away in groups, by Slurm's rule (will_run_test of select/cons_tres): to a
    group belong all up to the first that the next one in the list of all running jobs ends later than the bound, which is the first end,
    raised to a multiple of 30 s, plus a window that doubles from 30 s on until it reaches the next end. The start is the end of the
    group's last job; from 25.05 on of its last job on the chosen nodes.
    """
    if at_once and choose_now(sim.free, machine.weight, need, usable, busy, here, nodes):
        return now
    free[:] = sim.free
    if v > 0:
        for i in range(count):
            j = order[i]
            if sim.status[j] == RUNNING and rules.variants[v, jobs.qos[j]]:
                give(free, sim.slot_node, sim.slot_gpu, jobs.slot[j], need_of(jobs, j), 1.0)
    if enough(free, usable, need):
        choose(free, usable, machine.weight, need, nodes)
        return now if v > 0 and at_once else now + 1.0
    anchor, window, i = -1.0, 30.0, 0
    while i < count:
        last, then = -1.0, np.inf
        while i < count:
            j, end = order[i], due[i]
            i += 1
            if sim.status[j] != RUNNING or rules.variants[v, jobs.qos[j]]:
                continue
            if not holds_one(sim, jobs, j, shared):
                continue
            if anchor < 0:
                anchor = (np.floor(end / 30.0) + 1.0) * 30.0
            last = end
            give(free, sim.slot_node, sim.slot_gpu, jobs.slot[j], need_of(jobs, j), 1.0)
            then = due[i] if i < count else np.inf
            if then > anchor + window:
                break
        if last < 0:
            break
        window *= 2.0
        while then < np.inf and then > anchor + window:
            window *= 2.0
        if enough(free, usable, need):
            choose(free, usable, machine.weight, need, nodes)
            if not clock.old_group_end:
                here[:] = False
                here[nodes[: need.nodes]] = True
                for k in range(i - 1, -1, -1):
                    if sim.status[order[k]] == RUNNING and holds_one(sim, jobs, order[k], here):
                        last = due[k]
                        break
            return last if last > now else max(now + 1.0, last + clock.kill_wait)
    return float(np.inf)


@njit
def holds_one(sim: Sim, jobs: Jobs, j: int, nodes: Flags) -> bool:
    """Whether a running job holds one of the nodes."""
    found = False
    for place in range(jobs.slot[j], jobs.slot[j] + jobs.nodes[j]):
        found = found or nodes[sim.slot_node[place]]
    return bool(found)


@njit
def choose_now(free: Floats, weight: Floats, need: Need, usable: Flags, busy: Flags, here: Flags, nodes: Ints) -> bool:
    """Nodes that are free for the job at once; nodes with a completing job are not."""
    for n in range(len(usable)):
        here[n] = usable[n] and not busy[n]
    return bool(choose(free, here, weight, need, nodes))
