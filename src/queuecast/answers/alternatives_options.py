"""One offer made into an option: its wait, gain, run, end, cost and flags."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from queuecast.answers import alternatives_blend as blending
from queuecast.answers.alternatives_answer import Option, Spread
from queuecast.answers.alternatives_flags import changed
from queuecast.answers.alternatives_offers import Offer, Told
from queuecast.answers.alternatives_play import Played
from queuecast.answers.lookup import KnownJob
from queuecast.answers.suggest_cluster import cost
from queuecast.answers.wait import HOURS, WaitAnswer
from queuecast.features.history import Floats
from queuecast.hardware.scaling import Run
from queuecast.i18n import _

if TYPE_CHECKING:
    from queuecast.answers.forecast import Forecaster

SOONER_S = 60.0
"""A start that much sooner counts as sooner: the replay's passes are no finer."""


@dataclass(frozen=True)
class Asked:
    """What every option is made with. ``base``: run times as asked where no future was played."""

    told: Told
    model: WaitAnswer
    job: KnownJob | None
    forecaster: Forecaster
    at: datetime
    horizon_s: float
    base: Floats


def option_of(asked: Asked, offer: Offer, played: Played | None) -> Option:
    """Its figures from the futures; without any, from the wait model, and then no gain is known."""
    request, other, job = offer.request, "asked" not in offer.kinds, asked.job
    limit = math.inf if request.limit_s is None else float(request.limit_s)
    base = asked.base if played is None else played.base
    low, likely, high = (base * f for f in offer.factors)
    cut = float((likely > limit * (1 + 1e-9)).mean())
    figures = _waits(asked, offer) if played is None else _played(asked, offer, played, limit)
    run = Spread(*(min(x, limit) for x in (blending.spread(low).low_s, blending.spread(likely).median_s, blending.spread(high).high_s)))
    conditions = offer.conditions
    if other and cut > 0.05 and "limit" not in offer.kinds:
        conditions += (_("{share:.0f} % of such runs would be cut by the limit").format(share=100 * cut),)
    keeps = job is not None and offer.in_place
    partition = request.partitions[0] if request.partitions else ""
    return Option(
        label=offer.label,
        kinds=offer.kinds,
        request=request,
        flags=changed(asked.told.request, offer, keeps, None if job is None else job.text) if other else (),
        keeps_place=keeps,
        wait=figures.wait,
        within=figures.within,
        sooner=figures.sooner,
        p_sooner=figures.p_sooner,
        run=run,
        finish=figures.finish,
        gpu_hours=request.gpus * request.array_tasks * run.median_s / 3600 if request.gpus else None,
        cost=cost(asked.told.policy, request, partition, Run(run.low_s, run.median_s, run.high_s), asked.told.hardware),
        cut=cut,
        delay_s=offer.delay_s,
        conditions=conditions,
    )


@dataclass(frozen=True)
class _Figures:
    wait: Spread | None = None
    within: tuple[tuple[float, float], ...] = ()
    sooner: Spread | None = None
    p_sooner: float | None = None
    finish: Spread | None = None


def _played(asked: Asked, offer: Offer, played: Played, limit: float) -> _Figures:
    starts, sooner, p_sooner = played.blended, None, None
    if "asked" not in offer.kinds:
        starts = blending.moved(played.asked, played.blended, played.starts, offer.delay_s, asked.horizon_s)
        gain = np.minimum(played.blended, asked.horizon_s) - np.minimum(starts, asked.horizon_s)
        sooner, p_sooner = blending.spread(gain), float((gain > SOONER_S).mean())
    finish = None
    if offer.whole_finish:
        runs = (played.base * f for f in offer.factors)
        ends = [blending.spread(np.where(r > limit * (1 + 1e-9), np.inf, starts + r)) for r in runs]
        finish = Spread(ends[0].low_s, ends[1].median_s, ends[2].high_s)
    within = tuple((float(h), float((starts <= h * 3600.0).mean())) for h in HOURS)
    return _Figures(blending.spread(starts), within, sooner, p_sooner, finish)


def _waits(asked: Asked, offer: Offer) -> _Figures:
    if offer.delay_s:
        return _Figures()
    answer = asked.model if "asked" in offer.kinds else asked.forecaster.when(offer.request, asked.at)
    points = blending.model_quantiles(answer, np.array([0.1, 0.5, 0.9]))
    if points is None:
        return _Figures()
    wait = Spread(*(float(p) for p in points))
    finish = None
    if offer.whole_finish:
        ends = [blending.spread(asked.base * f) for f in offer.factors]
        finish = Spread(wait.low_s + ends[0].low_s, wait.median_s + ends[1].median_s, wait.high_s + ends[2].high_s)
    return _Figures(wait, answer.within, finish=finish)
