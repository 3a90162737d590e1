"""The state of the queue at many moments, from job history alone, as features for wait prediction.

A feature at t knows what had happened before t: arrivals, starts and ends. Of what happens in the very second t only
arrivals of jobs with lower row numbers count. So the features of a job asked about when it became eligible do not show
that it, or a sibling of its array, starts in that same second. ``situation_names`` declares the columns,
``situation_groups`` says how jobs are counted, ``plain`` computes the same slowly and by the definition, ``instant``
quickly for one moment.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from queuecast.features.asking import Asking
from queuecast.features.history import Floats, History
from queuecast.features.intervals import ratio
from queuecast.features.situation_groups import DIMS, milliseconds
from queuecast.features.situation_jobs import Jobs
from queuecast.features.situation_names import FEATURES, NARROW, dims_of
from queuecast.features.situation_past import bursts, usage, usual_limit, waits
from queuecast.features.situation_queue import ahead, pending
from queuecast.features.situation_request import request
from queuecast.features.situation_use import freed, running, started
from queuecast.features.situation_view import Clock, Matrix, View

__all__ = ["FEATURES", "batch"]


def batch(history: History, asking: Asking, *, threads: int = 2) -> Matrix:
    """Features (m, F) of many requests, in the order of ``FEATURES``; nan is unknown. Columns are contiguous.

    Raises ValueError if a job is asked about after it started or was cancelled.
    """
    jobs = Jobs.of(history)
    out: Matrix = np.empty((len(FEATURES), len(asking)), np.float32).T
    clock = Clock(jobs, asking)
    codes = {dim: jobs.groups[dim].of_requests(asking)[clock.order] for dim in DIMS}
    used: list[Floats] = []
    usual = np.empty(len(asking))

    def one(dim: str) -> None:
        view = View(clock, dim, codes[dim], out)
        for fill in (pending, running, freed, started, waits, bursts):
            fill(view)
        if dim == "cluster":
            used.extend(view.clocked(values) for values in usage(view))
        elif dim in NARROW:
            for name, mine, whole in zip(("used_core_share", "used_gpu_share"), usage(view), used, strict=True):
                view.put(name, ratio(mine, whole[view.by]))
        elif dim == "partition":
            usual[clock.order] = view.clocked(usual_limit(view, history.limit_s))

    one("cluster")
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(one, DIMS[1:]))
    ahead(clock, {dim: codes[dim] for dim in dims_of("ahead_jobs")}, out)
    request(asking, _predicted(jobs, asking) / 1000, usual, out)
    return out


def _predicted(jobs: Jobs, asking: Asking) -> Floats:
    """Predicted run times (ms): as they were when each became eligible, or is asked about if that is earlier."""
    known = (asking.row >= 0) & (asking.asked >= asking.eligible)
    predicted = jobs.predicted[np.where(known, asking.row, 0)].astype(np.float64) if len(jobs) else np.zeros(len(asking))
    new = np.flatnonzero(~known)
    if len(new):
        some = asking.take(new)
        then = milliseconds(np.minimum(some.eligible, some.asked), jobs.base)
        predicted[new] = jobs.runs.predict(jobs.groups["user"].of_requests(some), then, some.limit_s)
    return predicted
