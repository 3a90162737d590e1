"""Where the allowed risk is spent: one price of a killed job for all kinds, held so that the risk over all jobs is kept.

For each job the share with the least ``weight x share x asked + price x chance`` is taken. A high price takes larger shares, so
each job has a price from which on it would have survived: its score. The price asked for next is the conformal quantile of the
scores of the latest ended jobs (split conformal prediction, Vovk et al. 2005; conformal risk control, Angelopoulos et al. 2022).
It is the largest of several windows' quantiles: a short one sees a change soon, a long one remembers the last.
"""

from __future__ import annotations

import numpy as np

from queuecast.features.history import Flags, Floats, Ints
from queuecast.models.sizing_past import SHARES

FREE, NEVER = -40.0, 80.0
"""Logarithms of prices below and above all that occur."""

AIM = 0.9
"""Aimed at is that much of the risk, as a share held on average is exceeded half of the time."""

WINDOWS = (1_500, 5_000, 100_000)
"""So many of the latest ended jobs each hold the risk."""


_HALVINGS = 27


def pick(chance: Floats, cost: Floats, price: Floats | float) -> Ints:
    """Places (m,) in ``SHARES``. ``chance`` (m, shares), ``cost`` (m,) of what is asked, ``price`` as a logarithm. The larger
    share of equal ones, so that a higher price never takes a smaller share."""
    total = cost[:, None] * SHARES + np.exp(np.broadcast_to(price, len(cost)))[:, None] * chance
    return np.asarray(np.argmin(total, axis=1), np.int64)


def scores(chance: Floats, cost: Floats, share_used: Floats, sufficed: Flags, floor: Floats | float = 0.0) -> Floats:
    """Logarithm of the price from which on each job would have got what it used; FREE where any price does (``floor`` holds it),
    and for jobs whose request was too small anyway."""
    found = np.full(len(cost), FREE)
    at_stake = np.flatnonzero(sufficed & (share_used > np.maximum(floor, SHARES[-1])))
    chance, cost, needed = chance[at_stake], cost[at_stake], np.minimum(share_used[at_stake], 1.0)
    low, high = np.full(len(cost), FREE), np.full(len(cost), NEVER)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = SHARES[pick(chance, cost, middle)] >= needed
        high, low = np.where(enough, middle, high), np.where(enough, low, middle)
    found[at_stake] = np.where(SHARES[pick(chance, cost, FREE)] >= needed, FREE, high)
    return found


def price_for(scores_: Floats, risk: float) -> float:
    """Conformal quantile: the least price at which at most ``risk`` of the jobs, one more counted as killed, would have been
    killed; NEVER (as asked) where they are too few for that."""
    allowed = int(np.floor(risk * (len(scores_) + 1)))
    if allowed < 1:
        return NEVER
    place = len(scores_) - allowed
    return float(np.partition(scores_, place)[place])


def price_now(scores_: Floats, risk: float, windows: tuple[int, ...] = WINDOWS) -> float:
    """The largest of the windows' quantiles; ``scores_`` in the order the jobs ended."""
    return max(price_for(scores_[-w:], risk) for w in windows)
