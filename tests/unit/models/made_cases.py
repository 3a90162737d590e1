"""Invented cases for the models: waits that grow with one feature, some jobs that start at once, some cancelled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from queuecast.features.cases import Cases
from queuecast.features.declare import Feature
from queuecast.features.history import Flags, Floats
from queuecast.models.waits import KNOTS_S, Waits

T0 = 1_780_000_000.0
HOUR, DAY = 3600.0, 86400.0
QUICK: dict[str, Any] = {"rounds": 5, "bins": 6, "threads": 1}
"""Settings with which learning takes no time."""

NAMES = ("load", "sparse", "noise")
LOAD, SPARSE = 0, 1


def made(count: int = 600, *, days: float = 20.0, seed: int = 1, at_once: float = 0.3, middle: float = 8.0, drift: float = 0.0) -> Cases:
    """Jobs asked about when they became eligible, evenly over some days from ``T0``.

    The log wait is ``middle`` and twice the load (0 to 1), plus noise (logistic, scale 0.6), plus ``drift`` times a wave
    of ten days; jobs with a load below ``at_once`` start at once. ``sparse`` is the load too, but mostly unknown.
    """
    rng = np.random.default_rng(seed)
    asked = T0 + np.arange(count) * days * DAY / count
    load = rng.uniform(size=count)
    z = middle + 2 * load + 0.6 * rng.logistic(size=count) + drift * np.sin(2 * np.pi * (asked - T0) / (10 * DAY))
    start = asked + np.where(load < at_once, 0.0, np.expm1(np.clip(z, 0.1, 15.0)))
    values = np.stack([load, np.where(rng.random(count) < 0.7, np.nan, load), rng.uniform(size=count)], axis=1)
    user = rng.integers(0, 40, count)
    groups = {
        "partition": user % 2,
        "account": user // 4,
        "user": user,
        "size": rng.integers(0, 2, count),
        "gpu": (rng.random(count) < 0.5).astype(np.int64),
    }
    features = tuple(Feature(n, "1", "asked", "made", n) for n in NAMES)
    return Cases(asked, asked.copy(), start, start.copy(), features, values.astype(np.float32), groups)


def altered_after(cases: Cases, at: float, seed: int = 0) -> Cases:
    """The same up to ``at``; all that came later came otherwise: other starts, or none and a cancellation."""
    rng = np.random.default_rng(seed)
    later = (cases.start > at) & (cases.last_pending > at)
    other = np.maximum(at, cases.asked) + 1 + rng.exponential(2 * DAY, len(cases))
    start = np.where(later, np.where(rng.random(len(cases)) < 0.2, np.inf, other), cases.start)
    return replace(cases, start=start, last_pending=np.where(later, other, cases.last_pending))


def logistic(middle: float | Floats, scale: float | Floats, count: int) -> Waits:
    """Distributions of log1p(wait) that are logistic, with no chance to start at once."""
    m, s = (np.broadcast_to(np.asarray(v, np.float64), (count,))[:, None] for v in (middle, scale))
    cdf = 1 / (1 + np.exp(-(np.log1p(KNOTS_S)[None, :] - m) / s))
    cdf[:, 0] = 0.0
    return Waits(cdf, KNOTS_S)


def held(waits: Waits, wait_s: Floats, rows: Flags | slice = slice(None)) -> float:
    """Share of the central 80 % intervals that held."""
    return float(np.mean(((wait_s >= waits.quantile(0.1)) & (wait_s <= waits.quantile(0.9)))[rows]))
