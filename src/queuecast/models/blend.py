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


def share_of_like(model: Cdfs, like: Cdfs, knots_s: Floats, wait_s: Floats, started: Flags, gpu: Ints) -> Floats:
    """The share with the least CRPS of log1p(wait) over the latest answers whose job has started; shape (2,): without
    and with GPUs. ``model`` and ``like`` are cdfs of shape (n, K), in the order in which they were asked."""
    overall = best_share(model, like, knots_s, wait_s, np.flatnonzero(started), SHARES, UNTRIED)
    return np.array([best_share(model, like, knots_s, wait_s, np.flatnonzero(started & (gpu == g)), SHARES, overall) for g in (0, 1)])


def mix(model: Waits, like: Waits, shares: Floats, gpu: Ints) -> Waits:
    """The mixture; a row whose like jobs say nothing (nan) keeps the model's distribution."""
    share = np.where(np.isfinite(like.cdf).all(axis=1), shares[np.clip(gpu, 0, 1)], 0.0)[:, None]
    return Waits((1 - share) * model.cdf + np.where(share > 0, share * np.nan_to_num(like.cdf), 0.0), model.knots_s)


def best_share(
    model: Cdfs, other: Cdfs, knots_s: Floats, wait_s: Floats, rows: Ints, shares: tuple[float, ...], otherwise: float, slack: float = 0.0
) -> float:
    """The share of ``other`` in the mixture with the least CRPS of log1p(wait) over the latest ``rows``; ``otherwise``
    with too few of them. With ``slack`` the largest share that costs at most so much more (0.01 is 1 %)."""
    rows = rows[np.isfinite(other[rows]).all(axis=1)] if len(rows) else rows
    if len(rows) < FEWEST:
        return otherwise
    rows = rows[-MOST:]
    width = np.gradient(np.log1p(knots_s))
    came = knots_s[None, :] >= wait_s[rows, None]
    a, b = model[rows].astype(np.float64), other[rows].astype(np.float64)
    loss = [float((np.square((1 - s) * a + s * b - came) * width).sum(axis=1).mean()) for s in shares]
    if slack:
        return max(s for s, value in zip(shares, loss, strict=True) if value <= min(loss) * (1 + slack))
    return shares[int(np.argmin(loss))]
