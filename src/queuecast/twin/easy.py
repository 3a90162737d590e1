"""Priority order and EASY backfill on a machine of equal processors: what public workload logs tell of.

EASY: jobs start in the order of the queue while they fit; the first that does not gets a reservation at the earliest
time by the others' limits; later ones start if they do not delay it. Source: Lifka, JSSPP 1995.
"""

from __future__ import annotations

import numpy as np

from queuecast.twin.arrays import Floats, njit


@njit
def easy(submit: Floats, run: Floats, limit: Floats, procs: Floats, prio: Floats, total: float) -> Floats:
    """Start times of jobs that are sorted by ``submit``; higher ``prio`` first, then in the order given. Seconds.

    A job larger than the machine never starts (inf). A run longer than its limit ends at the limit.
    """
    count = len(submit)
    start = np.full(count, np.inf)
    queue = np.empty(count + 1, np.int64)
    held = np.empty(count, np.int64)  # running jobs by planned end, and their ends
    size, busy, free, nxt = 0, 0, total, 0
    heap, ends, heaped = np.empty(count + 1, np.int64), np.empty(count), 0
    while nxt < count or heaped > 0:
        t_end = ends[heap[0]] if heaped > 0 else np.inf
        now = min(t_end, submit[nxt] if nxt < count else np.inf)
        while heaped > 0 and ends[heap[0]] <= now:
            j = heap[0]
            heaped = _sink(heap, ends, heaped)
            free += procs[j]
            for k in range(busy):
                if held[k] == j:
                    held[k : busy - 1] = held[k + 1 : busy].copy()
                    busy -= 1
                    break
        while nxt < count and submit[nxt] <= now:
            if procs[nxt] <= total:
                k = size
                while k > 0 and prio[queue[k - 1]] < prio[nxt]:
                    queue[k] = queue[k - 1]
                    k -= 1
                queue[k] = nxt
                size += 1
            nxt += 1
        shadow, extra, kept, blocked = np.inf, 0.0, 0, False
        for i in range(size):
            j = queue[i]
            need = procs[j]
            if need <= free and (not blocked or now + limit[j] <= shadow or need <= extra):
                if blocked and now + limit[j] > shadow:
                    extra -= need
                start[j] = now
                free -= need
                ends[j] = now + min(run[j], limit[j])
                heaped = _swim(heap, ends, heaped, j)
                k = busy
                while k > 0 and start[held[k - 1]] + limit[held[k - 1]] > now + limit[j]:
                    held[k] = held[k - 1]
                    k -= 1
                held[k] = j
                busy += 1
                continue
            if not blocked:
                blocked = True
                have = free
                for k in range(busy):
                    have += procs[held[k]]
                    if have >= need:
                        shadow = start[held[k]] + limit[held[k]]
                        # others that are planned to end at the same moment are free then too
                        m = k + 1
                        while m < busy and start[held[m]] + limit[held[m]] <= shadow:
                            have += procs[held[m]]
                            m += 1
                        extra = have - need
                        break
            queue[kept] = j
            kept += 1
            if free <= 0:
                for m in range(i + 1, size):
                    queue[kept] = queue[m]
                    kept += 1
                break
        size = kept
    return start


@njit
def _swim(heap: Floats, ends: Floats, size: int, j: int) -> int:
    i = size
    heap[i] = j
    while i > 0 and ends[heap[(i - 1) // 2]] > ends[heap[i]]:
        heap[i], heap[(i - 1) // 2] = heap[(i - 1) // 2], heap[i]
        i = (i - 1) // 2
    return size + 1


@njit
def _sink(heap: Floats, ends: Floats, size: int) -> int:
    size -= 1
    heap[0] = heap[size]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            return size
        if child + 1 < size and ends[heap[child + 1]] < ends[heap[child]]:
            child += 1
        if ends[heap[i]] <= ends[heap[child]]:
            return size
        heap[i], heap[child] = heap[child], heap[i]
        i = child
