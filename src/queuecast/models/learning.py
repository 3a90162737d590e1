"""Learning one cluster's wait model: past answers made again for the correction of levels, then all that is known."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from queuecast.features.cases import Cases
from queuecast.features.history import History, Ints
from queuecast.features.lakecases import lake_cases
from queuecast.features.situation import FEATURES as STATE
from queuecast.features.snapshots import FEATURES as SEEN
from queuecast.models.baselines import like_jobs
from queuecast.models.record import MOST, TrackRecord
from queuecast.models.rolling import Rolled, roll
from queuecast.models.stacked import fit
from queuecast.models.waitmodel import WORDS, WaitModel, usual_values
from queuecast.models.waits import KNOTS_S, Waits

if TYPE_CHECKING:
    from queuecast.store.lake import Lake

SPAN = timedelta(days=45)
"""Jobs that became eligible longer ago teach nothing any more."""

BEFORE = timedelta(days=30)
"""So much earlier history is read, that the first of them see a past."""

FEWEST_STARTS = 300
"""With fewer started jobs like jobs alone answer (docs/model.md, cold start)."""

TRIED = timedelta(days=30)
"""Answers of so many last days are made again, but of no more than the last third of what there is."""

REFITS = 4


def learn(
    lake: Lake, cluster: str, until: datetime, progress: Callable[[str, int, int], None] | None = None
) -> tuple[WaitModel, TrackRecord] | None:
    """Learn from all that was known at ``until`` (aware). None with too few started jobs."""
    cases, history, rows = lake_cases(lake, cluster, until - SPAN, until, before=BEFORE)
    at = until.timestamp()
    if np.count_nonzero(np.isfinite(cases.start) & (cases.asked == cases.eligible)) < FEWEST_STARTS:
        return None

    def tell(done: int, total: int) -> None:
        if progress is not None:
            progress(cluster, done, total + 2)

    first, every = plan(cases, at)
    like = like_waits(cases)
    rolled = roll(cases, first, every_s=every, warm_up_s=every, like=like, progress=tell)
    tell(REFITS + 1, REFITS + 1)
    final = fit(cases, at)
    model = WaitModel(
        final.alone(),
        rolled.maps,
        rolled.shares,
        {text: list(history.words[text]) for text in WORDS},
        usual_values(cases, history.words["partition"]),
        len(cases),
    )
    tell(REFITS + 2, REFITS + 2)
    return model, record_of(cases, history, rows, rolled, at)


def plan(cases: Cases, at: float) -> tuple[float, float]:
    """From when on answers are made again, and how often the model is refitted for them (seconds)."""
    begin = max(at - TRIED.total_seconds(), at - (at - float(cases.asked[0])) / 3)
    return begin, max((at - begin) / REFITS, 3600.0)


def like_waits(cases: Cases) -> Waits:
    """For every case what like jobs waited as known at its moment, less what it has waited already."""
    submits = cases.take(cases.asked == cases.eligible)
    return like_jobs(submits, cases).after(cases.asked - cases.eligible)


def record_of(cases: Cases, history: History, rows: Ints, rolled: Rolled, at: float) -> TrackRecord:
    """The answers made again, with what came of them by ``at``."""
    kept = rolled.rows[-MOST:]
    waits = Waits(rolled.waits.cdf[-MOST:], KNOTS_S)
    remaining, started = cases.outcomes(at)

    (low50, high50), (low80, high80), (low95, high95) = (waits.interval(share) for share in (0.5, 0.8, 0.95))
    estimate = len(STATE) + [f.name for f in SEEN].index("estimate_remaining_s")
    return TrackRecord(
        asked=cases.asked[kept],
        pending=cases.asked[kept] - cases.eligible[kept] > 60,
        partition=cases.groups["partition"][kept],
        gpus=history.gpus[rows[kept]],
        wait_s=remaining[kept],
        started=started[kept],
        pit=waits.within(remaining[kept]),
        median_s=waits.quantile(0.5),
        low_50_s=low50,
        high_50_s=high50,
        low_80_s=low80,
        high_80_s=high80,
        low_95_s=low95,
        high_95_s=high95,
        p_1h=waits.within(3600.0),
        p_4h=waits.within(4 * 3600.0),
        p_24h=waits.within(86400.0),
        slurm_s=np.maximum(0.0, cases.values[kept, estimate].astype(np.float64)),
        partitions=tuple(history.words["partition"]),
    )
