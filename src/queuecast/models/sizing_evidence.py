"""What is told beside a bound: when the level of use changed, whether a job needs more, and whether trying with less first pays."""

from __future__ import annotations

import numpy as np

from queuecast.features.history import Flags, Floats
from queuecast.models.sizing_past import SHARES

SIDE = 8
"""So many jobs on each side of a change."""

FACTOR = 1.5
"""A change of the level of use is by at least that factor, with no overlap: by chance about once in ten thousand."""

RECENT = 5
"""Jobs that tell whether more is needed now."""

MORE = 2.0
"""Killed at its limit and never seen to end with more: asked is that many times the limit. Doubling reaches any need with at most
twice what it is."""

HEADROOM = 1.1
"""Seen to end with more than the limit: asked is that many times the largest use."""


def changed(uses: Floats) -> int:
    """Place of the first job of the present level; 0 where the level never changed. ``uses`` in the order they ended. The level has
    changed where the next ``SIDE`` jobs all lie above, or all below, the ``SIDE`` before them, by ``FACTOR``."""
    n = len(uses)
    if n < 2 * SIDE:
        return 0
    windows = np.lib.stride_tricks.sliding_window_view(uses, SIDE)
    low, high = windows.min(axis=1), windows.max(axis=1)
    before, after = slice(0, n - 2 * SIDE + 1), slice(SIDE, None)
    split = (low[after] > FACTOR * high[before]) | (FACTOR * high[after] < low[before])
    places = np.flatnonzero(split)
    return int(places[-1]) + SIDE if len(places) else 0


def killed_lately(killed: Flags, asked: Floats, asking: float) -> bool:
    """Whether the latest job, or two of the latest ``RECENT``, were killed with no less than what is asked now."""
    short = killed[-RECENT:] & (asked[-RECENT:] >= asking * (1 - 1e-9))
    return bool(len(short) and (short[-1] or short.sum() >= 2))


def more_than(uses: Floats, killed: Flags, asked: Floats, asking: float) -> float:
    """What to ask for where the latest jobs were killed: above the largest use that ended well, if that is above all limits that
    killed lately, else ``MORE`` times the largest of these limits."""
    limit = max(asking, float(np.max(asked[-RECENT:][killed[-RECENT:]], initial=asking)))
    well = float(np.max(uses[~killed], initial=0.0))
    return well * HEADROOM if well > limit else MORE * limit


def floor_of(uses: Floats, killed: Flags, asked: Floats, risk: float) -> float:
    """Below that no bound lies: the least value that at most ``risk`` of these jobs exceeded, and no limit that killed one."""
    allowed = int(np.floor(risk * len(uses) + 1e-9))
    ordered = np.sort(uses)
    seen = float(ordered[len(ordered) - 1 - allowed]) if allowed < len(ordered) else 0.0
    return max(seen, float(np.max(asked[killed], initial=0.0)))


def retry_of(uses: Floats, hours: Floats, value: float, asked: float) -> tuple[float, float, float] | None:
    """(first value, expected waste with it, with ``value``) per job in units x ``hours`` (for time these are 1: seconds), where
    asking less and running the killed jobs again with ``value`` costs less; None where it does not. A killed attempt is charged
    whole, as if it had run to its end."""
    if len(uses) < SIDE:
        return None

    def waste(first: float) -> float:
        enough = uses <= first
        again = np.where(enough, 0.0, first + np.maximum(value - uses, 0.0))
        return float(np.mean(hours * np.where(enough, first - uses, again)))

    tries = [s * asked for s in SHARES if s * asked < value]
    if not tries:
        return None
    costs = [waste(t) for t in tries]
    best = int(np.argmin(costs))
    whole = waste(value)
    return (float(tries[best]), costs[best], whole) if costs[best] < whole else None


def used_of(uses: Floats) -> tuple[float, float, float]:
    """Quantiles .5, .95 and 1, each a use that was seen."""
    half, most, all_ = np.quantile(uses, [0.5, 0.95, 1.0], method="inverted_cdf")
    return float(half), float(most), float(all_)
