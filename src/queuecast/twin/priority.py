"""Priority in the course of time: usage, its decay, fair share, age. Source: Slurm's priority/multifactor (src/plugins/priority)."""

from __future__ import annotations

import numpy as np

from queuecast.twin.arrays import PENDING, RUNNING, Floats, Ints, Jobs, Rules, Sim, njit


@njit
def add_usage(sim: Sim, jobs: Jobs, rules: Rules, now: float, since: float) -> None:
    """Charge the associations of the running jobs and their ancestors for the time since then or since their start.

    By billable TRES, cut to a whole number (TRESBillingWeights; CPUs where there are none).
    """
    for j in range(len(sim.status)):
        a, seconds = jobs.assoc[j], now - max(since, sim.start[j])
        if sim.status[j] != RUNNING or a < 0 or seconds <= 0:
            continue
        n, part = jobs.nodes[j], sim.started_in[j]
        total = rules.billing[part, 0] * n * jobs.cpu[j] + rules.billing[part, 1] * n * jobs.mem[j] / 1024.0
        total += rules.billing[part, 2] * n * jobs.gpu[j]
        for k in range(sim.slot_gpu.shape[1]):
            held = 0.0
            for place in range(jobs.slot[j], jobs.slot[j] + n):
                held += sim.slot_gpu[place, k]
            total += rules.billing[part, 3 + k] * held
        amount = seconds * rules.decay**seconds * np.floor(total) * rules.usage_factor[jobs.qos[j]]
        while a >= 0:
            sim.usage[a] += amount
            a = rules.parent[a]


@njit
def fair_tree(parent: Ints, shares: Floats, is_user: Ints, usage: Floats, out: Floats) -> None:
    """Fair Tree: rank of each user association in the depth-first order of LevelFS, divided by their number.

    ``shares`` nan means Fairshare=parent: infinite LevelFS for a user; an account's children stand at the level above.
    """
    count = len(parent)
    users = 0
    level = np.zeros(count)
    for a in range(count):
        users += is_user[a]
    up = parent.copy()  # the level an association competes at
    for a in range(count):
        while up[a] >= 0 and np.isnan(shares[up[a]]) and parent[up[a]] >= 0:
            up[a] = parent[up[a]]
    skipped = np.zeros(count, np.bool_)
    total_shares, total_usage = np.zeros(count), np.zeros(count)
    for a in range(count):
        if parent[a] < 0:
            continue
        if np.isnan(shares[a]):
            skipped[a] = not is_user[a]
        else:
            total_shares[up[a]] += shares[a]
        if not skipped[a]:
            total_usage[up[a]] += usage[a]
    for a in range(count):
        if parent[a] < 0 or skipped[a]:
            continue
        if np.isnan(shares[a]) or usage[a] <= 0:
            level[a] = np.inf
            if not np.isnan(shares[a]) and shares[a] <= 0:
                level[a] = 0.0
        elif shares[a] <= 0:
            level[a] = 0.0
        else:
            level[a] = (shares[a] / total_shares[up[a]]) / (usage[a] / max(total_usage[up[a]], usage[a]))
    stack = np.empty(count + 1, np.int64)
    depth = 0
    for a in range(count):
        if parent[a] < 0:
            stack[depth] = a
            depth += 1
    rank = users
    last_rank, last_level, last_parent = users, -1.0, -2
    seen = 0
    family = np.empty(count, np.int64)
    while depth > 0:
        depth -= 1
        a = stack[depth]
        if is_user[a]:
            seen += 1
            if not (up[a] == last_parent and level[a] == last_level):
                last_rank = rank
            last_parent, last_level = up[a], level[a]
            out[a] = last_rank / users
            rank -= 1
            continue
        size = 0
        for c in range(count):
            if parent[c] >= 0 and up[c] == a and not skipped[c]:
                family[size] = c
                size += 1
        for i in range(1, size):  # insertion sort, worst first, so that the best is on top of the stack
            c, k = family[i], i
            while k > 0 and worse(level, is_user, c, family[k - 1]):
                family[k] = family[k - 1]
                k -= 1
            family[k] = c
        for i in range(size):
            stack[depth] = family[i]
            depth += 1


@njit
def worse(level: Floats, is_user: Ints, a: int, b: int) -> bool:
    """Whether a comes after b: lower LevelFS; on a tie accounts after users."""
    if level[a] != level[b]:
        return bool(level[a] < level[b])
    return bool(is_user[b] and not is_user[a])


@njit
def classic(parent: Ints, shares: Floats, usage: Floats, damping: float, out: Floats) -> None:
    """The formula before Fair Tree: 2 ** (-(effective usage / normalised shares) / damping). Parents stand before children."""
    count = len(parent)
    level = np.zeros(count)
    for a in range(count):
        if parent[a] >= 0 and not np.isnan(shares[a]):
            level[parent[a]] += shares[a]
    norm, effective = np.ones(count), np.ones(count)
    top = 0.0
    for a in range(count):
        if parent[a] < 0:
            top = max(top, usage[a])
    for a in range(count):
        p = parent[a]
        if p < 0:
            continue
        if np.isnan(shares[a]):
            norm[a], effective[a] = norm[p], effective[p]
        else:
            part = shares[a] / level[p] if level[p] > 0 else 0.0
            own = usage[a] / top if top > 0 else 0.0
            norm[a] = norm[p] * part
            effective[a] = own if parent[p] < 0 else own + (effective[p] - own) * part
        out[a] = 2.0 ** (-(effective[a] / norm[a]) / damping) if norm[a] > 0 else 0.0


@njit
def recompute(sim: Sim, jobs: Jobs, rules: Rules, queue: Ints, size: int, now: float, since: float) -> None:
    """One run of the decay thread: decay, charge running jobs, fair share, priorities of the queue."""
    if rules.fair_moves and now > since:
        factor = rules.decay ** (now - since)
        for a in range(len(sim.usage)):
            sim.usage[a] *= factor
        add_usage(sim, jobs, rules, now, since)
        if rules.tree:
            fair_tree(rules.parent, rules.shares, rules.is_user, sim.usage, sim.fair)
        else:
            classic(rules.parent, rules.shares, sim.usage, rules.damping, sim.fair)
    rank(sim, jobs, rules, queue, size, now)


@njit
def rank(sim: Sim, jobs: Jobs, rules: Rules, queue: Ints, size: int, now: float) -> None:
    """The priority of each record of the first ``size`` jobs of ``queue``, cut to a whole number, at least 1."""
    for i in range(size):
        j = queue[i]
        if sim.status[j] != PENDING:
            continue
        age = min(1.0, max(0.0, now - sim.age_from[j]) / rules.max_age) * rules.w_age
        fair = sim.fair[jobs.assoc[j]] * rules.w_fair if jobs.assoc[j] >= 0 else 0.0
        for r in range(jobs.record_from[j], jobs.record_from[j + 1]):
            sim.prio[r] = max(1.0, np.floor(jobs.record_prio[r] + age + fair))
