"""The past answered again: what would have been proposed for each job when it was submitted, and what would have come of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from queuecast.features.history import Flags, Floats
from queuecast.models.sizing_chance import Trees, by_counts, together
from queuecast.models.sizing_past import FEWEST, SHARES, Jobs, Seen
from queuecast.models.sizing_price import WINDOWS, pick, price_now, scores

TICK = 200
"""The price is renewed every so many jobs."""


@dataclass(frozen=True)
class Replay:
    """By job in order of submission: the share proposed (1 before the first), whether it would have been killed though its request
    was enough; and the logarithm of the price at the end."""

    share: Floats
    killed: Flags
    price: float


def chances(
    jobs: Jobs, seen: Seen, first: int, *, refits: int, trees: bool = True, progress: Callable[[int], None] | None = None
) -> Floats:
    """Chances (n, shares) as told when each job was submitted; those before ``first`` by counts alone. ``jobs`` must be
    sorted by submission, with what was ``seen`` then. Trees are learned at ``refits`` moments, each from jobs that had ended by then."""
    told = by_counts(seen)
    if not trees:
        return told
    bounds = np.linspace(first, len(jobs), refits + 1).astype(int).tolist()
    for number, (low, high) in enumerate(pairwise(bounds)):
        if progress is not None:
            progress(number)
        if low == high:
            continue
        known = np.flatnonzero((jobs.end < jobs.submit[low]) & np.isfinite(jobs.use))
        told[low:high] = together(Trees.learn(jobs.take(known), seen.take(known)), seen.take(np.arange(low, high)))
    return told


def floors(seen: Seen) -> Floats:
    """Shares (m,) below which nothing is proposed: the largest of the latest uses of the finest kind that has ``FEWEST`` jobs, a
    job killed at its limit counting as more than that; 1 (as asked) where no kind has."""
    enough = seen.count >= FEWEST
    rung = np.argmax(enough, axis=1)
    most = np.take_along_axis(seen.most, rung[:, None], axis=1)[:, 0]
    return np.where(enough.any(axis=1), np.minimum(most, 1.0), 1.0)


def replay(jobs: Jobs, chance: Floats, floor: Floats, first: int, risk: float) -> Replay:
    """Propose for each job from ``first`` on with the price that jobs ended by then (``first`` and later ones) tell. ``floor``:
    shares below which nothing is proposed."""
    n = len(jobs)
    cost = jobs.weight * jobs.asked
    score = scores(chance, cost, jobs.use / jobs.asked, jobs.sufficed, floor)
    counted = np.flatnonzero(np.isfinite(jobs.use) & (np.arange(n) >= first) & np.isfinite(jobs.end))
    order = counted[np.argsort(jobs.end[counted], kind="stable")]
    ends = jobs.end[order]
    share = np.ones(n)
    for low in range(first, n, TICK):
        here = np.arange(low, min(n, low + TICK))
        ended = int(np.searchsorted(ends, jobs.submit[low]))
        price = price_now(score[order[max(0, ended - WINDOWS[-1]) : ended]], risk)
        share[here] = np.maximum(SHARES[pick(chance[here], cost[here], price)], floor[here])
    killed = jobs.sufficed & (jobs.use > share * jobs.asked * (1 + 1e-9))
    return Replay(share, killed, price_now(score[order], risk))
