"""Learning one cluster's wait model: past answers made again for the correction of levels, then all that is known.

Answers once made are kept. A later training answers only what was asked since, by the model as it was, and learns anew
from all that is known: features are read in seconds, and what takes minutes is answering the past again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from queuecast.features.asking import Asking
from queuecast.features.cases import Cases
from queuecast.features.history import Floats, History, Ints
from queuecast.features.lakecases import lake_cases
from queuecast.features.situation import FEATURES as STATE
from queuecast.features.snapshots import FEATURES as SEEN
from queuecast.models.baselines import like_jobs
from queuecast.models.kept import Kept, steady_numbers
from queuecast.models.localtime import UTC, with_local_time
from queuecast.models.record import MOST, TrackRecord
from queuecast.models.rolling import Rolled, roll
from queuecast.models.saving import Standing
from queuecast.models.stacked import fit
from queuecast.models.waitmodel import WORDS, WaitModel, usual_values
from queuecast.models.waits import Waits

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

FULL_EVERY = timedelta(days=7)
"""Past answers are all made again that often: what was read in between may tell otherwise of the days before."""

MORE_PAST = 0.05
"""They are as well when so many more jobs are known of the days learned from: older accounting was read since."""

DAY_S = 86400.0
ESTIMATE = len(STATE) + [f.name for f in SEEN].index("estimate_remaining_s")


@dataclass(frozen=True)
class Learned:
    """A cluster's model with what came of its answers."""

    model: WaitModel
    record: TrackRecord
    kept: Kept
    standing: Standing


def learn(
    lake: Lake,
    cluster: str,
    until: datetime,
    progress: Callable[[str, int, int], None] | None = None,
    old: Learned | None = None,
    zone: str = UTC,
) -> Learned | None:
    """Learn from all that was known at ``until`` (aware), going on from ``old`` where that will do. ``zone``: IANA name of
    the zone whose hours people there keep. None with too few started jobs."""
    cases, history, rows = lake_cases(lake, cluster, until - SPAN, until, before=BEFORE)
    at = until.timestamp()
    if np.count_nonzero(np.isfinite(cases.start) & (cases.asked == cases.eligible)) < FEWEST_STARTS:
        return None
    if old is not None and not _will_do(old.standing, until, history):
        old = None
    total = REFITS + 2 if old is None else 2

    def tell(done: int, _of: int = 0) -> None:
        if progress is not None:
            progress(cluster, done, total)

    words = tuple(history.words["partition"])
    about = about_cases(cases, history, rows)
    like = like_waits(cases)
    local = replace(cases, values=with_local_time(cases.values, cases.asked, zone))
    if old is None:
        first, every = plan(cases, at)
        named = with_steady_groups(local, history)
        rolled = roll(named, first, every_s=every, warm_up_s=every, like=like, progress=tell, about=about, partitions=words)
    else:
        rolled = answered(old, cases, history, rows, until, like, words)
    tell(total - 1)
    final = fit(local, at)
    model = WaitModel(
        final.alone(),
        rolled.maps,
        rolled.shares,
        {text: list(history.words[text]) for text in WORDS},
        usual_values(local, history.words["partition"]),
        len(cases),
        zone,
    )
    tell(total)
    full = until if old is None else old.standing.full_until
    standing = Standing(until, until, full, jobs_before(history, until, until), None if old is None else old.standing.renewal_s)
    return Learned(model, record_of(rolled.kept, at), rolled.kept, standing)


def _will_do(standing: Standing, until: datetime, history: History) -> bool:
    """Whether the answers made before can be gone on from."""
    if not standing.full_until <= standing.corrected_until <= until <= standing.full_until + FULL_EVERY:
        return False
    return jobs_before(history, standing.learned_until, until) <= standing.jobs * (1 + MORE_PAST)


def jobs_before(history: History, moment: datetime, until: datetime) -> int:
    """Jobs that became eligible in the span learned from at ``moment``, as far as a history read at ``until`` goes back."""
    begin = max(moment - SPAN, until - SPAN - BEFORE)
    return int(np.count_nonzero((history.eligible >= begin.timestamp()) & (history.eligible < moment.timestamp())))


def answered(old: Learned, cases: Cases, history: History, rows: Ints, until: datetime, like: Waits, words: Sequence[str]) -> Rolled:
    """The answers kept, their outcomes as ``history`` tells, and those that the model as it was gives to what was asked since.
    Corrections are those known at ``until``; partitions are numbered as in ``words``."""
    since = old.standing.corrected_until.timestamp()
    new = np.flatnonzero(cases.asked >= since)
    some, of = cases.take(new), rows[new]
    asking = Asking.of_rows(history, of, some.asked)
    places = {w: i for i, w in enumerate(words)}
    table = np.array([places.get(w, -1) for w in history.words["partition"]], np.int64)
    groups = {**some.groups, "partition": table[some.groups["partition"]]}
    named = with_steady_groups(replace(some, values=old.model.recoded(some.values, asking, history), groups=groups), history)
    return roll(
        named,
        since,
        every_s=DAY_S,  # the shares of like jobs are measured again that often
        like=Waits(like.cdf[new], like.knots_s),
        learn=lambda _cases, _at: old.model.stacked,
        before=old.kept.known(history).numbered(words),
        about=about_cases(some, history, of),
        partitions=tuple(words),
        at=until.timestamp(),
        shares=old.model.shares,
    )


def plan(cases: Cases, at: float) -> tuple[float, float]:
    """From when on answers are made again, and how often the model is refitted for them (seconds)."""
    begin = max(at - TRIED.total_seconds(), at - (at - float(cases.asked[0])) / 3)
    return begin, max((at - begin) / REFITS, 3600.0)


def like_waits(cases: Cases, submits: Cases | None = None) -> Waits:
    """For every case what like jobs waited as known at its moment, less what it has waited already. ``submits``: questions at
    submission to learn that from; None takes those among the cases."""
    if submits is None:
        submits = cases.take(cases.asked == cases.eligible)
    return like_jobs(submits, cases).after(cases.asked - cases.eligible)


def with_steady_groups(cases: Cases, history: History) -> Cases:
    """Accounts and users by numbers that stay the same, so that bursts can be told apart later too."""
    steady = {text: steady_numbers(history.words[text])[cases.groups[text]] for text in ("account", "user")}
    return replace(cases, groups={**cases.groups, **steady})


def about_cases(cases: Cases, history: History, rows: Ints) -> dict[str, Floats]:
    """What is kept with each answer beside it."""
    return {
        "job_id": history.job_id[rows].astype(np.float64),
        "gpus": history.gpus[rows],
        "slurm_s": np.maximum(0.0, cases.values[:, ESTIMATE].astype(np.float64)),
    }


def record_of(kept: Kept, at: float) -> TrackRecord:
    """The answers made again, with what came of them by ``at``."""
    some = kept.take(np.flatnonzero(kept.shown)[-MOST:])
    waits = some.told()
    remaining, started = some.outcomes(at)
    (low50, high50), (low80, high80), (low95, high95) = (waits.interval(share) for share in (0.5, 0.8, 0.95))
    return TrackRecord(
        asked=some.asked,
        pending=some.asked - some.eligible > 60,
        partition=some.codes["partition"],
        gpus=some.gpus,
        wait_s=remaining,
        started=started,
        pit=waits.within(remaining),
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
        slurm_s=some.slurm_s,
        partitions=some.partitions,
    )
