"""How much the boosted model is drawn towards what like jobs waited: by how both did lately, apart for GPU jobs.

On one public cluster like jobs alone were better for GPU jobs, on others the mixture only costs: so it is measured.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from queuecast.features.history import Flags, Floats, Ints
from queuecast.models.waits import Waits

Cdfs = npt.NDArray[np.float64] | npt.NDArray[np.float32]

SHARES = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
"""Shares of the like jobs that are tried."""

UNTRIED = 0.2
"""The share before anything is known."""

FEWEST = 200
MOST = 4000
FEWEST_WATCHED = 30
"""A knot that fewer jobs were watched up to tells nothing."""


def share_of_like(
    model: Cdfs, like: Cdfs, knots_s: Floats, wait_s: Floats, started: Flags, gpu: Ints, followed_s: Floats | None = None
) -> Floats:
    """The share with the least CRPS of log1p(wait) over the latest answers; shape (2,): without and with GPUs. ``model`` and
    ``like`` are cdfs of shape (n, K), in the order in which they were asked; for the outcomes see ``best_share``."""

    def best(rows: Ints, otherwise: float) -> float:
        return best_share(model, like, knots_s, wait_s, started, rows, SHARES, otherwise, followed_s)

    overall = best(np.arange(len(wait_s)), UNTRIED)
    return np.array([best(np.flatnonzero(gpu == g), overall) for g in (0, 1)])


def mix(model: Waits, like: Waits, shares: Floats, gpu: Ints) -> Waits:
    """The mixture; a row whose like jobs say nothing (nan) keeps the model's distribution."""
    share = np.where(np.isfinite(like.cdf).all(axis=1), shares[np.clip(gpu, 0, 1)], 0.0)[:, None]
    return Waits((1 - share) * model.cdf + np.where(share > 0, share * np.nan_to_num(like.cdf), 0.0), model.knots_s)


def best_share(
    model: Cdfs,
    other: Cdfs,
    knots_s: Floats,
    wait_s: Floats,
    started: Flags,
    rows: Ints,
    shares: tuple[float, ...],
    otherwise: float,
    followed_s: Floats | None = None,
    slack: float = 0.0,
) -> float:
    """The share of ``other`` in the mixture with the least CRPS of log1p(wait) over the latest ``rows``; ``otherwise``
    with too few of them started. With ``slack`` the largest share that costs at most so much more (0.01 is 1 %).

    ``wait_s`` is the wait, or, where not ``started``, what has been waited so far. ``followed_s``: for how long after its
    question each job has been watched (None: those that started for ever). At each knot only jobs watched as long
    count, whatever became of them: of those asked about lately only the quick ones have started, and judged by them alone
    answers that are too short look good.
    """
    rows = rows[np.isfinite(other[rows]).all(axis=1)] if len(rows) else rows
    rows = rows[-MOST:]
    if np.count_nonzero(started[rows]) < FEWEST:
        return otherwise
    came = started[rows, None] & (knots_s[None, :] >= wait_s[rows, None])
    watched = np.where(started, np.inf, wait_s) if followed_s is None else followed_s
    counts = watched[rows, None] >= knots_s[None, :]
    known = counts.sum(axis=0)
    weight = np.where(known >= FEWEST_WATCHED, np.gradient(np.log1p(knots_s)) / np.maximum(known, 1), 0.0)
    a, b = model[rows].astype(np.float64), other[rows].astype(np.float64)
    loss = [float((np.square((1 - s) * a + s * b - came) * counts).sum(axis=0) @ weight) for s in shares]
    if slack:
        return max(s for s, value in zip(shares, loss, strict=True) if value <= min(loss) * (1 + slack))
    return shares[int(np.argmin(loss))]
