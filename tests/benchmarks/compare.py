"""Kinds of models beside each other, on the middle of each trace (the end is left for the final figures).

    python -m tests.benchmarks.compare FILE.swf.gz... [--most N]

Three origins between half and 65 % of the jobs: each model learns from what was known there (at most N cases, the latest
first) and answers the jobs up to the next origin, uncorrected. One JSON line per trace and model: mean pinball loss of
log1p(wait), median within 2x, MSE of log10, coverage of the 80 % interval and seconds to learn and answer.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np

from queuecast.collect.swf import read_swf, swf_jobs
from queuecast.features.build import build_cases
from queuecast.features.cases import Cases
from queuecast.features.history import Floats, from_rows
from queuecast.models import boosted, lessons, located, stacked
from queuecast.models.baselines import climatology, like_jobs
from queuecast.models.calibration import GRID, Calibration
from queuecast.models.lessons import Lessons
from queuecast.models.measures import measure_all
from queuecast.models.waits import KNOTS_S, Waits

FROM, TO, ORIGINS = 0.5, 0.65, 3
QUANTILES = (0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975)
HELD_BACK = 0.2
KNOTS = np.log1p(KNOTS_S)
MEASURES = ("pinball_log1p", "within_2x", "mse_log10", "coverage_80")


def settings(**given: Any) -> dict[str, Any]:
    """The same trees for all that learn numbers."""
    return {**located.PARAMETERS, "num_threads": 1, "min_data_in_leaf": 50, **given}


def bins(past: Cases, at: float, asked: Cases) -> Waits:
    """The chance of each bin alone."""
    some = Lessons.of(past, at)
    return boosted.fit(past.values[some.rows], past.features, some).predict(asked.values)


def location(past: Cases, at: float, asked: Cases) -> Waits:
    """One number and what came of cases with such a number."""
    model, _ = located.fit(past, Lessons.of(past, at))
    return model.around(model.location(asked.values))


def both(past: Cases, at: float, asked: Cases) -> Waits:
    """What queuecast learns."""
    return stacked.fit(past, at).predict(asked.values)


def quantiles(past: Cases, at: float, asked: Cases) -> Waits:
    """One boosted model per quantile, levels mapped by the latest fifth (a conformal predictive distribution)."""
    some = Lessons.of(past, at)
    late = past.asked[some.rows] >= np.quantile(past.asked[some.rows], 1 - HELD_BACK)

    def told(use: Any, values: Any) -> Waits:
        data = lightgbm.Dataset(past.values[some.rows[use]], some.z[use], weight=some.weight[use], free_raw_data=False)
        columns = [lightgbm.train(settings(objective="quantile", alpha=q), data, 100).predict(values) for q in QUANTILES]
        z = np.sort(np.clip(np.stack(columns, axis=1), 0, KNOTS[-1]), axis=1)
        return Waits(_between(z), KNOTS_S)

    held = told(~late, past.values[some.rows[late]])
    pit = held.within(np.expm1(some.z[late]))
    honest = Calibration.fit(pit, np.ones(len(pit), bool), some.weight[late]).honest
    return Waits(np.interp(told(np.ones(len(late), bool), asked.values).cdf, GRID, honest), KNOTS_S)


def _between(z: Floats) -> Floats:
    """Cdf on the knots of quantiles in ascending order, straight in log1p between them, with tails as wide as the last step."""
    levels = np.r_[0.0, QUANTILES, 1.0]
    low, high = z[:, :1] - (z[:, 1:2] - z[:, :1]) - 0.5, z[:, -1:] + (z[:, -1:] - z[:, -2:-1]) + 0.5
    full = np.maximum.accumulate(np.concatenate([low, z, high], axis=1) + np.arange(len(levels)) * 1e-9, axis=1)
    return np.stack([np.interp(KNOTS, row, levels) for row in full])


def location_scale(past: Cases, at: float, asked: Cases) -> Waits:
    """Distributional boosting: a location, a scale learned from out-of-fold errors, and one law of the scaled errors."""
    some = Lessons.of(past, at)
    model, number = located.fit(past, some)
    error = some.z - number[some.rows]
    data = lightgbm.Dataset(past.values[some.rows], np.log(np.abs(error) + 0.05), weight=some.weight)
    scale = lightgbm.train(settings(), data, 100)
    law = np.sort(error / np.exp(scale.predict(past.values[some.rows])))
    middle, width = model.location(asked.values), np.exp(scale.predict(asked.values))
    reached = np.searchsorted(law, (KNOTS[None, :] - middle[:, None]) / width[:, None], side="right") / len(law)
    return Waits(reached.astype(np.float64), KNOTS_S)


def hazards(past: Cases, at: float, asked: Cases) -> Waits:
    """Discrete-time hazards: the chance to start in each bin, given that it has not before. Censored cases count as at
    risk in the bins that they have seen whole."""
    rows = lessons._chosen(past, at)
    waits, started = past.take(rows).outcomes(at)
    edges = np.r_[0.0, np.unique(np.quantile(np.log1p(waits[started]), np.linspace(0, 1, boosted.BINS + 1)[1:-1]))]
    edges = np.unique(edges)
    last = np.searchsorted(edges, np.log1p(waits), side="right") - 1  # the bin of the start, or the one it is still in
    counts = np.where(started, last + 1, last)
    case = np.repeat(np.arange(len(rows)), counts)
    step = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    event = started[case] & (step == last[case])
    weight = np.exp2(-(at - past.asked[rows]) / lessons.HALF_LIFE_S)[case]
    data = lightgbm.Dataset(np.column_stack([past.values[rows][case], step.astype(np.float32)]), event, weight=weight)
    model = lightgbm.train(settings(objective="binary", num_leaves=63), data, 200)
    alive = np.ones(len(asked))
    reached = np.zeros((len(asked), len(edges) + 1))
    for k in range(len(edges)):
        alive = alive * (1 - model.predict(np.column_stack([asked.values, np.full(len(asked), k, np.float32)])))
        reached[:, k + 1] = 1 - alive
    ends = np.r_[edges, max(float(np.log1p(waits.max())), edges[-1]) + 0.05]
    reached[:, -1] = 1.0
    # A start in second zero is a step, as in the bins.
    at_zero = (np.log1p(waits) == 0).any()
    cdf = np.stack([np.interp(KNOTS, ends, row) for row in reached])
    if not at_zero:
        cdf[:, 0] = 0.0
    return Waits(cdf, KNOTS_S)


MODELS: dict[str, Callable[[Cases, float, Cases], Waits]] = {
    "climatology": lambda past, at, asked: climatology(past, asked),
    "like jobs": lambda past, at, asked: like_jobs(past, asked),
    "hazards": hazards,
    "quantile boosting, conformal": quantiles,
    "location and scale": location_scale,
    "location, what came of alike": location,
    "bins": bins,
    "queuecast": both,
}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--most", type=int, default=30_000, help="cases to learn from")
    given = parser.parse_args()
    lessons.MOST_CASES = given.most
    for path in given.files:
        rows = swf_jobs(read_swf(path), "trace").sort_by("submit")
        rows = rows.slice(0, int(rows.num_rows * TO))
        cases = build_cases(from_rows(rows, "trace", datetime(1970, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)), 1e12)
        places = np.linspace(FROM / TO, 1.0, ORIGINS + 1) * len(cases)
        for name, model in MODELS.items():
            told, which, begin = [], [], time.perf_counter()
            for low, high in zip(places[:-1].astype(int), places[1:].astype(int), strict=True):
                asked = cases.take(np.arange(low, high))
                past = cases.take(np.arange(low)) if name not in ("climatology", "like jobs") else cases.take(np.arange(high))
                told.append(model(past, float(cases.asked[low]), asked).cdf)
                which.append(np.arange(low, high))
            spent = time.perf_counter() - begin
            here = cases.take(np.concatenate(which))
            wait, started = here.outcomes(1e12)
            found = measure_all(Waits(np.concatenate(told), KNOTS_S), wait, started, here.asked)
            line = {"trace": path.name.split(".")[0], "model": name, "jobs": len(here), "seconds": round(spent, 1)}
            print(json.dumps({**line, **{m: round(float(found[m]), 4) for m in MEASURES}}), flush=True)


if __name__ == "__main__":
    main()
