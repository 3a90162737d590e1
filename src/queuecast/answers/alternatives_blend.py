"""The wait as asked by the model and by the replay, put together by measured skill, and the alternatives moved with it."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from queuecast.answers.alternatives_answer import Agreement, Spread
from queuecast.answers.wait import WaitAnswer
from queuecast.features.history import Floats
from queuecast.store.lake import Lake

FILE = "alternatives-skill.json"
ENOUGH = 30
"""Jobs measured before their errors are believed: with fewer, both count half."""
FACTOR, SLACK_S = 3.0, 900.0
"""Medians within that factor or that many seconds of each other agree, and so do overlapping 80 % intervals whose medians lie in both."""


@dataclass(frozen=True)
class Skill:
    """Mean CRPS of log(1 + wait in seconds) of both for the same jobs at the same instants. ``until``: the last of these (seconds
    since 1970 UTC): no answer about an earlier moment uses it."""

    model: float
    twin: float
    counted: int
    until: float


def load_skill(lake: Lake, cluster: str, at: float) -> Skill | None:
    """As ``tests/benchmarks/regret.py --save`` measured it; None: not measured, or later than ``at``."""
    try:
        raw: Any = json.loads((Path(lake.path) / FILE).read_text(encoding="utf-8"))
        found = Skill(**{k: float(raw[cluster][k]) for k in ("model", "twin", "counted", "until")})  # type: ignore[arg-type]  # counted as float
    except (OSError, ValueError, KeyError, TypeError):
        return None
    values = (found.model, found.twin, found.counted, found.until)
    return found if all(math.isfinite(v) and v >= 0 for v in values) and found.until <= at else None


def save_skill(lake: Lake, cluster: str, skill: Skill) -> None:
    """Beside the manifest, by a rename. Raises ``OSError`` where the lake is not writable."""
    path = Path(lake.path) / FILE
    try:
        known: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        known = {}
    known = known if isinstance(known, dict) else {}
    known[cluster] = {"model": skill.model, "twin": skill.twin, "counted": skill.counted, "until": skill.until}
    part = path.with_suffix(".part")
    part.write_text(json.dumps(known, indent=1), encoding="utf-8")
    part.replace(path)


def twin_weight(skill: Skill | None, like: int = ENOUGH) -> float:
    """The replay's share of the blend: by the inverse of the squared errors. With fewer than 30 like jobs that started (``like``) the
    model's share shrinks in proportion: a handful of jobs on an empty cluster says nothing about a full one."""
    weight = 0.5
    if skill is not None and skill.counted >= ENOUGH and skill.model + skill.twin:
        weight = skill.model**2 / (skill.model**2 + skill.twin**2)
    return 1.0 - (1.0 - weight) * min(1.0, like / ENOUGH)


def spread(values: Floats) -> Spread:
    """10, 50 and 90 % points of drawn values; infinite where so many are."""
    low, middle, high = np.quantile(values, (0.1, 0.5, 0.9), method="inverted_cdf")
    return Spread(float(low), float(middle), float(high))


def model_quantiles(answer: WaitAnswer, levels: Floats) -> Floats | None:
    """Seconds at ``levels`` of the model's answer, between its told points in log(1 + seconds); None where it tells nothing."""
    if answer.median_s is None:
        return None
    points = {0.5: answer.median_s}
    for i in answer.intervals:
        points[(1 - i.share) / 2], points[(1 + i.share) / 2] = i.low_s, i.high_s
    told = sorted((p, s) for p, s in points.items() if math.isfinite(s))
    if not told:
        return None
    seconds = np.maximum.accumulate([s for _, s in told])
    out: Floats = np.expm1(np.interp(levels, [p for p, _ in told], np.log1p(seconds)))
    return out


def blend(twin: Floats, model: Floats | None, weight: float, horizon: float) -> Floats:
    """Starts as asked, one per future: the quantiles of both averaged in log(1 + seconds), each future keeping its rank.

    ``model``: its quantiles at the ranks of ``ranks(len(twin))``. A start beyond the horizon stays beyond it.
    """
    if model is None or weight >= 1:
        return twin
    order = np.argsort(twin, kind="stable")
    capped = np.minimum(twin[order], horizon)
    mixed = np.expm1(weight * np.log1p(capped) + (1 - weight) * np.log1p(model))
    out = np.empty_like(twin)
    out[order] = np.where(np.isinf(twin[order]) & (mixed >= horizon), np.inf, mixed)
    return out


def ranks(futures: int) -> Floats:
    """Levels that the sorted futures stand for."""
    return (np.arange(futures) + 0.5) / futures


def moved(asked: Floats, blended: Floats, starts: Floats, earliest: float, horizon: float) -> Floats:
    """An alternative's starts: the blended start as asked minus what the replay says it gains in the same future.

    A gain cannot be more than the wait: nothing starts before ``earliest`` (0, or its delay). Where the alternative does not start
    within the horizon it does not here.
    """
    gain = np.minimum(asked, horizon) - np.minimum(starts, horizon)
    out: Floats = np.where(np.isinf(starts), np.inf, np.maximum(np.minimum(blended, horizon) - gain, earliest))
    return out


def agreement(twin: Floats | None, model: Spread | None, weight: float, skill: Skill | None) -> Agreement:
    """Whether they say the same."""
    said = None if twin is None else spread(twin)
    same: bool | None = None
    if said is not None and model is not None:
        a, b = said.median_s, model.median_s
        near = abs(a - b) <= SLACK_S if math.isfinite(a) and math.isfinite(b) else a == b
        ratio = math.isfinite(a) and math.isfinite(b) and max(a, b) <= FACTOR * max(60.0, min(a, b))
        inside = said.low_s <= b <= said.high_s and model.low_s <= a <= model.high_s
        same = near or ratio or inside
    if skill is None:
        return Agreement(model, said, weight, same, None, None, 0)
    return Agreement(model, said, weight, same, skill.model, skill.twin, int(skill.counted))
