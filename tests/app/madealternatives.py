"""Made-up answers to "what would start sooner?", so that pages are tested without playing futures."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

from madelake import HOSTILE

from queuecast.answers.alternatives_answer import Agreement, Alternatives, Option, Spread
from queuecast.answers.suggest_cluster import Cost
from queuecast.answers.wait import Freshness
from queuecast.policy.request import Request

H = 3600.0


def spread(low: float, median: float, high: float) -> Spread:
    """In hours."""
    return Spread(low * H, median * H, high * H)


def made_option(label: str, request: Request, wait: Spread, hours: float, gain: Spread | None, **more: Any) -> Option:
    """Runs about ``hours``, and uses its GPUs for as long."""
    option = Option(
        label=label,
        kinds=("fewer_gpus",),
        request=request,
        flags=("-t", "2-00:00:00", f"--gres=gpu:a100:{request.gpus}"),
        keeps_place=False,
        wait=wait,
        within=((1.0, 0.3), (4.0, 0.6), (24.0, 0.95)),
        sooner=gain,
        p_sooner=None if gain is None else 0.85 if gain.median_s > 0 else 0.2,
        run=spread(0.8 * hours, hours, 1.2 * hours),
        finish=Spread(wait.low_s + 0.8 * hours * H, wait.median_s + hours * H, wait.high_s + 1.2 * hours * H),
        gpu_hours=request.gpus * hours,
        cost=Cost(None, None, None, ""),
        pareto=True,
    )
    return replace(option, **more)


def made_alternatives(request: Request, at: datetime, job_id: str | None = None, futures: int = 60) -> Alternatives:
    """Another partition (sooner, ends first), fewer GPUs and an array (sooner), a hostile name (later), one beyond the futures."""
    short = replace(request, gpus=2, limit_s=172800, limit_defaulted=False)
    return Alternatives(
        cluster="campus",
        at=at,
        job_id=job_id,
        as_asked=made_option("as asked", request, spread(0.5, 6, 20), 8, None, flags=(), pareto=False),
        options=(
            made_option(
                "partition debug",
                replace(request, partitions=("debug",)),
                spread(0.1, 1, 4),
                8,
                spread(0.2, 4.5, 15),
                kinds=("partition",),
                flags=("-p", "debug"),
                keeps_place=job_id is not None,
            ),
            made_option("2 GPUs", short, spread(0.0, 0.5, 3), 14, spread(-0.5, 5, 16), conditions=("if the task fits 2 GPUs",)),
            made_option(HOSTILE, short, spread(1, 9, 30), 15, spread(-9, -3, 1), pareto=False, conditions=(HOSTILE,)),
            made_option("array of 4 tasks", replace(request, array_tasks=4), spread(0, 0.4, 2), 40, spread(1, 5, 16), kinds=("array",)),
            made_option(
                "begin 12 h later", request, Spread(12 * H, math.inf, math.inf), 8, spread(-60, -40, -12), pareto=False, delay_s=12 * H
            ),
        ),
        agreement=Agreement(spread(0.2, 3, 10), spread(1, 9, 30), 0.5, False, None, None, 0),
        source="both",
        futures=futures,
        horizon_s=72 * H,
        freshness=Freshness(at, 0.0, None),
        basis=("Run times: what 40 like jobs used of their limits.",),
        refused=(f"partition {HOSTILE} is not open to you",),
        notes=(),
    )


def stand_in(
    forecaster: Any,
    request: Request,
    at: datetime,
    viewer: Any = None,
    *,
    job: Any = None,
    futures: int = 200,
    progress: Callable[[int, int], None] | None = None,
) -> Alternatives:
    """Takes the place of the calculation."""
    for done in range(1, futures + 1):
        if progress is not None:
            progress(done, futures)
    return made_alternatives(request, at, None if job is None else job.text, futures)
