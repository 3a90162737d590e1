"""How far the middle of a predicted distribution is from the wait that came: errors and shares of near hits.

The median is the point. Where a distribution does not reach one half, the model has not answered: the last knot
stands in for the median in errors, and no such case is a hit.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from queuecast.features.history import Flags, Floats
from queuecast.models.measures_distribution import Quantiles
from queuecast.models.measures_statistic import Mean, Median, Statistic

NEAR_S = {"1min": 60.0, "10min": 600.0, "1h": 3600.0}
LONG_S = 600.0
ROUNDING = 1e-9
"""Quantiles pass through a logarithm and back; a hit on the edge must not be lost to that."""


def points(told: Quantiles, wait: Floats, started: Flags) -> Iterator[tuple[str, Statistic]]:
    """Measures of the median, over started jobs (``unanswered`` over all). Waits in seconds.

    ``medae_s``, ``mae_s``: median and mean absolute error. ``within_1min``, ``within_10min``, ``within_1h``: shares with
    at most that error. ``within_2x``, ``within_3x``: shares whose ratio, of seconds not below one, is at most that
    either way. ``mse_log10``: mean squared error of log10(max(seconds, 1)). ``mape_over_10min``: mean of error / wait of
    jobs that waited over ten minutes (1 is 100 %). ``unanswered``: share without a median.
    """
    median, answered = told.at(0.5), told.reached(0.5)

    def counted(values: Floats | Flags) -> Mean:
        return Mean(np.where(started, values, np.nan))

    error = np.abs(median - wait)
    yield "medae_s", Median(np.where(started, error, np.nan))
    yield "mae_s", counted(error)
    for name, limit in NEAR_S.items():
        yield f"within_{name}", counted(answered & (error <= limit * (1 + ROUNDING)))
    apart = np.abs(np.log10(np.maximum(median, 1.0)) - np.log10(np.maximum(wait, 1.0)))
    for times in (2, 3):
        yield f"within_{times}x", counted(answered & (apart <= np.log10(times) + ROUNDING))
    yield "mse_log10", counted(apart**2)
    relative = np.divide(error, wait, out=np.full(len(wait), np.nan), where=wait > LONG_S)
    yield "mape_over_10min", counted(relative)
    yield "unanswered", Mean((~answered).astype(np.float64))
