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
from queuecast.models.evaluation import Evaluation, evaluate
from queuecast.models.learning import BEFORE, FEWEST_STARTS, REFITS, SPAN, like_waits, plan
from queuecast.models.training import data_until
from queuecast.models.waits import KNOTS_S, Waits

if TYPE_CHECKING:
    from queuecast.store.lake import Lake

SLURM = "slurm"


def evaluate_lake(
    lake: Lake,
    cluster: str,
    now: datetime,
    *,
    days: float | None = None,
    refits: int = REFITS,
    draws: int = 100,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Measure over the last ``days`` (None: the last third of the history, at most 30 days) before the newest data.

    Raises ``NoDataError`` with fewer started jobs than a model needs, or with none before those days.
    """
    until = min(now, data_until(lake, cluster) or now)
    cases, history, _rows = lake_cases(lake, cluster, until - SPAN, until, before=BEFORE)
    at = until.timestamp()
    first, every = plan(cases, at) if len(cases) else (at, 3600.0)
    if days is not None:
        first = at - timedelta(days=days).total_seconds()
        every = max(timedelta(days=days).total_seconds() / refits, 3600.0)
    elif refits != REFITS:
        every = max((at - first) / refits, 3600.0)
    started = np.isfinite(cases.start)
    if np.count_nonzero(started) < FEWEST_STARTS or np.count_nonzero(cases.start < first - every) < FEWEST_STARTS / 3:
        raise NoDataError(
            _("{cluster} has too few started jobs before the days to measure").format(cluster=cluster),
            _("read more history first (queuecast backfill --since 2026-01-01), or measure fewer days with --days"),
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
        draws=draws,
        like=like_waits(cases),
        progress=progress,
    )


def slurm_waits(cases: Cases) -> Waits:
    """Slurm's estimate as a distribution that is sure of it; nan where it gave none."""
    column = [f.name for f in FEATURES].index("estimate_remaining_s")
    estimate = np.maximum(cases.values[:, column].astype(np.float64), 0.0)[:, None]
    return Waits(np.where(np.isnan(estimate), np.nan, (KNOTS_S[None, :] >= estimate).astype(np.float64)), KNOTS_S)
