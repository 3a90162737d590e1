"""Plain Python versions of the kernels, written apart from them and slowly: the tests hold both against each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any


def easy(
    submit: Sequence[float], run: Sequence[float], limit: Sequence[float], procs: Sequence[float], prio: Sequence[float], total: float
) -> list[float]:
    """Start times by EASY backfill; see ``queuecast.twin.easy.easy``."""
    start = [math.inf] * len(submit)
    running: set[int] = set()
    waiting: list[int] = []
    moments = sorted(set(submit))
    while moments:
        now = moments.pop(0)
        running -= {j for j in running if start[j] + min(run[j], limit[j]) <= now}
        waiting += [j for j in range(len(submit)) if submit[j] == now and procs[j] <= total]
        waiting.sort(key=lambda j: (-prio[j], j))
        head: int | None = None
        shadow, extra = math.inf, 0.0
        for j in list(waiting):
            free = total - sum(procs[k] for k in running)
            fits = procs[j] <= free
            if head is not None:
                late = now + limit[j] > shadow
                fits = fits and (not late or procs[j] <= extra)
                if fits and late:
                    extra -= procs[j]
            if fits:
                start[j] = now
                running.add(j)
                waiting.remove(j)
                moments = sorted({*moments, now + min(run[j], limit[j])})
            elif head is None:
                head = j
                for end in sorted({start[k] + limit[k] for k in running}):
                    there = free + sum(procs[k] for k in running if start[k] + limit[k] <= end)
                    if there >= procs[j]:
                        shadow, extra = end, there - procs[j]
                        break
    return start


def fair_tree(parent: Sequence[int], shares: Sequence[float], is_user: Sequence[bool], usage: Sequence[float]) -> dict[int, float]:
    """Fair Tree factors of user associations by place; see ``queuecast.twin.priority.fair_tree``. No Fairshare=parent accounts."""
    users = sum(is_user)
    out: dict[int, float] = {}
    state: dict[str, Any] = {"rank": users, "last": users, "key": (-2, math.nan)}

    def level(a: int, family: list[int]) -> float:
        if math.isnan(shares[a]):
            return math.inf
        if usage[a] <= 0:
            return math.inf if shares[a] > 0 else 0.0
        total, used = sum(shares[c] for c in family if not math.isnan(shares[c])), sum(usage[c] for c in family)
        return (shares[a] / total) / (usage[a] / max(used, usage[a])) if shares[a] > 0 else 0.0

    def walk(a: int) -> None:
        family = [c for c in range(len(parent)) if parent[c] == a]
        ranked = sorted(family, key=lambda c: (-level(c, family), not is_user[c]))
        for c in ranked:
            if not is_user[c]:
                walk(c)
                continue
            key = (a, level(c, family))
            if key != state["key"]:
                state["last"] = state["rank"]
            state["key"] = key
            out[c] = state["last"] / users
            state["rank"] -= 1

    for root in (a for a in range(len(parent)) if parent[a] < 0):
        walk(root)
    return out


def will_run(
    running: Sequence[tuple[float, str, int]], gpus: dict[str, int], names: Sequence[str], shared: Sequence[str], need: int, old: bool
) -> tuple[float, str] | None:
    """When and where a job of one node with ``need`` GPUs fits, by the ends of running jobs; see ``queuecast.twin.backfill.will_run``.

    ``running``: (end, node, GPUs) in the order of the ends, all in the future; ``gpus``: of each node; ``names``: nodes that the job may
    use. None: never, or at once.
    """
    free = {n: gpus[n] - sum(g for _, m, g in running if m == n) for n in gpus}
    if any(free[n] >= need for n in names):
        return None
    left = list(running)
    gone: list[tuple[float, str, int]] = []
    bound, window = math.nan, 30.0
    while any(n in shared for _, n, _ in left):
        while left:
            end, n, g = left.pop(0)
            gone.append((end, n, g))
            if n not in shared:
                continue
            if math.isnan(bound):
                bound = (end // 30 + 1) * 30
            free[n] += g
            last = end
            if left and left[0][0] > bound + window:
                break
        window *= 2
        while left and left[0][0] > bound + window:
            window *= 2
        fitting = [n for n in names if free[n] >= need]
        if fitting:
            return (last if old else max(e for e, n, _ in gone if n == fitting[0])), fitting[0]
    return None
