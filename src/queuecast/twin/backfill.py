"""One backfill cycle: a map of whole nodes in time, running jobs taken away in growing groups. Source: docs/twin.md, backfill.c."""

from __future__ import annotations

import numpy as np

from queuecast.twin.arrays import DONE, PENDING, RUNNING, Clock, Flags, Floats, Ints, Jobs, Machine, Need, Rules, Sim, Words, njit
from queuecast.twin.passes import BACKFILL, begin, preempt, victims
from queuecast.twin.placing import choose, enough, fits, give, need_of, within_limits

ONE = np.uint64(1)
GROUPS = 24
"""Windows double from 30 s: that many reach beyond a year."""


@njit
def ahead(sim: Sim, jobs: Jobs, rules: Rules, running: Ints, now: float, free: Floats, at: Floats) -> None:
    """What is free after each group of ends, for each set of preemptable QOS: ``free[variant, group]`` and ``at[variant, group]``.

    Group 0 is now. With preemption the preemptable jobs are gone from group 0 on. The first group ends 30 s after the
    first end, and the window doubles with each group.
    """
    variants = rules.variants.shape[0]
    ends = np.empty(len(running))
    for i in range(len(running)):
        due = sim.start[running[i]] + jobs.limit[running[i]]
        ends[i] = due if due > now else now + 30.0  # overdue ones soon
    order = np.argsort(ends, kind="mergesort")
    for v in range(variants):
        free[v, 0] = sim.free
        at[v, :] = np.inf
        at[v, 0] = now
        for i in range(len(running)):
            if sim.status[running[i]] == RUNNING and rules.variants[v, jobs.qos[running[i]]]:
                give(free[v, 0], sim.slot_node, sim.slot_gpu, jobs.slot[running[i]], need_of(jobs, running[i]), 1.0)
        group, i, window = 0, 0, 30.0
        while i < len(order) and group < GROUPS - 1:
            j = running[order[i]]
            if sim.status[j] != RUNNING or rules.variants[v, jobs.qos[j]]:
                i += 1
                continue
            group += 1
            free[v, group] = free[v, group - 1]
            limit = np.ceil((ends[order[i]] + window) / 30.0) * 30.0
            window *= 2.0
            last = ends[order[i]]
            while i < len(order) and (ends[order[i]] <= limit or group == GROUPS - 1):
                k = running[order[i]]
                if sim.status[k] == RUNNING and not rules.variants[v, jobs.qos[k]]:
                    give(free[v, group], sim.slot_node, sim.slot_gpu, jobs.slot[k], need_of(jobs, k), 1.0)
                    last = ends[order[i]]
                i += 1
            at[v, group] = last


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
    free: Floats,
    at: Floats,
) -> int:
    """One cycle. Fills ``started`` and ``plan`` (planned start of each pending job, inf if not reached); returns how many started."""
    parts, count = machine.member.shape
    ahead(sim, jobs, rules, running, now, free, at)
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
            if of_array[array] >= clock.bf_array or sim.array_used[array] + of_array[array] >= rules.throttle[array]:
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
            usable[n] = member[n] and sim.up[n] and feature[n] and fits(machine.total, n, need)
        pack(usable, able)
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
            words[:] = able
            kept_away(machine.resv_start, machine.resv_end, resv, resv_of, start, start + length, words)
            later = slots_meet(slots, space, filled, start, start + length, words)
            same = ready != -2.0
            for w in range(width):
                same = same and words[w] == before[w]
            if not same or (start <= now and ready <= now):
                before[:] = words
                ready = (
                    will_run(sim.free, machine.weight, need, usable, busy, free[v], at[v], v > 0, now, start <= now, here, nodes)
                    if unpack(words, usable) >= need.nodes
                    else np.inf
                )
            when = max(start, ready)
            if np.isinf(when) or (when > now and when > later):
                if np.isinf(later) or only_now:
                    break
                start = later
                continue
            if when <= now:
                if choose_now(sim.free, machine.weight, need, usable, busy, here, nodes):
                    begin(sim, jobs, rules, j, part, nodes, now + tested * clock.bf_test_s, np.int64(BACKFILL), room)
                    occupied(sim, jobs, rules, j, free, at)
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
            filled = keep(slots, space, filled, first, max(first + step, np.ceil((when + length) / step) * step), nodes, jobs.nodes[j])
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
    free_now: Floats, weight: Floats, need: Need, usable: Flags, busy: Flags, free: Floats, at: Floats, preempts: bool, now: float,
    at_once: bool, here: Flags, nodes: Ints,
) -> float:  # fmt: skip
    """When the job fits on the usable nodes by the groups of ends; inf if never. What is free only grows from group to group."""
    if at_once and choose_now(free_now, weight, need, usable, busy, here, nodes):
        return now
    high = 0
    while high + 1 < GROUPS and not np.isinf(at[high + 1]):
        high += 1
    if not enough(free[high], usable, need):
        return float(np.inf)
    low = 0
    while low < high:
        middle = (low + high) // 2
        if enough(free[middle], usable, need):
            high = middle
        else:
            low = middle + 1
    choose(free[low], usable, weight, need, nodes)
    if low:
        return float(at[low])
    return now if preempts and at_once else now + 1.0


@njit
def choose_now(free: Floats, weight: Floats, need: Need, usable: Flags, busy: Flags, here: Flags, nodes: Ints) -> bool:
    """Nodes that are free for the job at once; nodes with a completing job are not."""
    for n in range(len(usable)):
        here[n] = usable[n] and not busy[n]
    return bool(choose(free, here, weight, need, nodes))


@njit
def occupied(sim: Sim, jobs: Jobs, rules: Rules, j: int, free: Floats, at: Floats) -> None:
    """A job started in this cycle: take it out of what is free in the groups up to its end."""
    need = need_of(jobs, j)
    for v in range(free.shape[0]):
        if rules.variants[v, jobs.qos[j]]:
            continue
        for g in range(GROUPS):
            if np.isinf(at[v, g]) or (g and at[v, g] >= sim.start[j] + jobs.limit[j]):
                break
            give(free[v, g], sim.slot_node, sim.slot_gpu, jobs.slot[j], need, -1.0)
