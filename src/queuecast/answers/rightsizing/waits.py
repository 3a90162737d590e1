"""How the wait would change: by the wait model's medians, or both requests in the same drawn futures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from queuecast.answers import alternatives_blend as blending
from queuecast.answers.alternatives_play import HORIZON_S, SEED, playable, runs_of
from queuecast.answers.resolve import resolve
from queuecast.answers.rightsizing.answer import How, Proposal, WaitChange
from queuecast.errors import UsageError
from queuecast.policy.request import Request

if TYPE_CHECKING:
    from queuecast.answers.forecast import Forecaster
    from queuecast.twin.candidates import Candidate

FUTURES = 40
HALF = np.array([0.5])


def with_waits(
    forecaster: Forecaster,
    found: Sequence[Proposal],
    at: datetime,
    *,
    how: How = "model",
    futures: int = FUTURES,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Proposal, ...]:
    """The proposals with the change of the median wait of a job submitted at ``at``.

    ``how`` "model": the difference of two medians of the wait model, half a second each. "futures": paired, in ``futures`` drawn
    futures of the twin: seconds to minutes each, and only where the queue was read.
    """
    out = []
    for k, p in enumerate(found):
        wait = _by_model(forecaster, p, at) if how == "model" else _by_futures(forecaster, p, at, futures)
        out.append(replace(p, wait=wait))
        if progress is not None:
            progress(k + 1, len(found))
    return tuple(out)


def _by_model(forecaster: Forecaster, p: Proposal, at: datetime) -> WaitChange | None:
    try:
        before, after = (forecaster.when(r, at) for r in (p.kind.request, p.request))
    except UsageError:  # a partition that is gone by now
        return None
    middles = [None if (m := blending.model_quantiles(a, HALF)) is None else float(m[0]) for a in (before, after)]
    return WaitChange("model", middles[0], middles[1])


def _by_futures(forecaster: Forecaster, p: Proposal, at: datetime, futures: int) -> WaitChange | None:
    from queuecast.twin.forward import forward
    from queuecast.twin.state import state_at

    state = state_at(forecaster.lake, forecaster.cluster, at)
    try:
        asked, new = (resolve(forecaster.lake, forecaster.cluster, r, at) for r in (p.kind.request, p.request))
    except UsageError:
        return None
    if not playable(state, asked) or not playable(state, new):
        return None
    runs = runs_of(state, asked, futures, None)
    told = forward(state, [_candidate(asked), _candidate(new)], np.stack([runs, runs]), futures=futures, seed=SEED, horizon_s=HORIZON_S)
    before, after = (np.minimum(s, HORIZON_S) for s in told.starts)
    low, middle, high = (float(g) for g in np.quantile(before - after, [0.1, 0.5, 0.9]))
    first, then = (float(np.sort(s)[(len(s) - 1) // 2]) for s in told.starts)  # infinite where half do not start
    return WaitChange("futures", first, then, (low, middle, high))


def _candidate(request: Request) -> Candidate:
    from queuecast.answers.alternatives_offers import Offer
    from queuecast.answers.alternatives_play import candidate_of

    return candidate_of(Offer("", ("asked",), request), 0.0)
