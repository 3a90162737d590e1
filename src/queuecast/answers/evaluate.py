"""How well do answers hold on this lake? Past answers made again, beside baselines and Slurm's own estimates."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from queuecast.errors import NoDataError
from queuecast.features.cases import Cases
from queuecast.features.lakecases import FEATURES, lake_cases
from queuecast.i18n import _
from queuecast.models.evaluation import SLURM, Evaluation, evaluate
from queuecast.models.learning import BEFORE, FEWEST_STARTS, REFITS, SPAN, TRIED, like_waits, plan
from queuecast.models.measures_slices import earlier_jobs
from queuecast.models.training import data_until
from queuecast.models.waits import KNOTS_S, Waits

if TYPE_CHECKING:
    from queuecast.store.lake import Lake


def evaluate_lake(
    lake: Lake,
    cluster: str,
    now: datetime,
    *,
    days: float | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    refits: int = REFITS,
    draws: int = 100,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Measure over the last ``days`` (None: the last third of the history, at most 30 days) before the newest data, or
    from ``since`` (aware; excludes ``days``) on. With ``until`` (aware) everything is as if it were then: nothing that
    came later is used, not even as an outcome.

    Raises ``NoDataError`` with fewer started jobs than a model needs, or with none before those days.
    """
    at_last = min(t for t in (now, data_until(lake, cluster), until) if t is not None)
    if days is not None:
        since = at_last - timedelta(days=days)
    # A model that answers early questions has a past to learn from too.
    begin = at_last - SPAN if since is None else min(at_last - SPAN, since - (SPAN - TRIED))
    cases, history, rows = lake_cases(lake, cluster, begin, at_last, before=BEFORE)
    at = at_last.timestamp()
    first, every = plan(cases, at) if len(cases) else (at, 3600.0)
    if since is not None:
        first = since.timestamp()
        every = max((at - first) / refits, 3600.0)
    elif refits != REFITS:
        every = max((at - first) / refits, 3600.0)
    started = cases.start <= at
    if np.count_nonzero(started) < FEWEST_STARTS or np.count_nonzero(cases.start < first - every) < FEWEST_STARTS / 3:
        raise NoDataError(
            _("{cluster} has too few started jobs before the days to measure").format(cluster=cluster),
            _("read more history first (queuecast backfill --since 2026-01-01), or measure fewer days (--days, --since)"),
        )
    return evaluate(
        cases,
        first,
        trace=cluster,
        every_s=every,
        warm_up_s=every,
        at=at,
        extra={SLURM: slurm_waits(cases)},
        partitions=history.words["partition"],
        earlier=earlier_jobs(history, rows, cases.asked),
        gpus=history.gpus[rows],
        draws=draws,
        like=like_waits(cases),
        progress=progress,
    )


def slurm_waits(cases: Cases) -> Waits:
    """Slurm's estimate as a distribution that is sure of it; nan where it gave none."""
    column = [f.name for f in FEATURES].index("estimate_remaining_s")
    estimate = np.maximum(cases.values[:, column].astype(np.float64), 0.0)[:, None]
    return Waits(np.where(np.isnan(estimate), np.nan, (KNOTS_S[None, :] >= estimate).astype(np.float64)), KNOTS_S)
