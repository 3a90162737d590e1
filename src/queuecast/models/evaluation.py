"""Measuring on a past: our model and the baselines, on the same answers, each made with what was known at its moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from queuecast.features.cases import Cases
from queuecast.features.history import Flags, Floats, Ints
from queuecast.models.baselines import climatology, last_similar, like_jobs
from queuecast.models.bootstrap import measure_all_with_intervals
from queuecast.models.measures_summary import Shown, summarise
from queuecast.models.qbets import qbets
from queuecast.models.rolling import roll
from queuecast.models.waits import KNOTS_S, Waits

OURS = "queuecast"
HOURS = (1, 4, 24)
FEWEST = 50
"""A slice with fewer cases is not measured."""


@dataclass(frozen=True)
class Evaluation:
    """``figures`` are {trace, slice, model, measure, value, low, high}; ``low`` and ``high`` end the 95 % interval by a
    bootstrap over days (nan with one day). ``shown`` is what the report draws."""

    figures: list[dict[str, object]]
    shown: list[Shown]


def evaluate(
    cases: Cases,
    first: float,
    *,
    trace: str,
    every_s: float,
    warm_up_s: float,
    at: float = float(np.finfo(np.float64).max),
    extra: Mapping[str, Waits] | None = None,
    partitions: list[str] | None = None,
    draws: int = 100,
    like: Waits | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Answer all cases asked from ``first`` on and measure. Outcomes are those known at ``at``; ``extra`` are further
    forecasts by name for all cases, nan where there is none (Slurm's). ``like``: what like jobs waited, per case."""
    if like is None:
        like = like_jobs(cases, cases)
    rolled = roll(cases, first, every_s=every_s, warm_up_s=warm_up_s, like=like, progress=progress)
    asked = cases.take(rolled.rows)
    waits, started = asked.outcomes(at)
    usual = climatology(cases, asked)
    models = {
        OURS: rolled.waits,
        "queuecast, levels not corrected": rolled.uncorrected,
        "partition climatology": usual,
        "like jobs": Waits(like.cdf[rolled.rows], KNOTS_S),
        "last similar job": last_similar(cases, asked),
        "qbets": qbets(cases, asked),
        **{name: Waits(w.cdf[rolled.rows], KNOTS_S) for name, w in (extra or {}).items()},
    }
    figures: list[dict[str, object]] = []
    shown = []
    for name, chosen in _slices(asked):
        if np.count_nonzero(chosen) < FEWEST:
            continue
        for model, told in models.items():
            rows = chosen & np.isfinite(told.cdf).all(axis=1)
            if not rows.any():
                continue
            part = Waits(told.cdf[rows], KNOTS_S)
            reference = {h: usual.within(h * 3600.0)[rows] for h in HOURS}
            found = measure_all_with_intervals(part, waits[rows], started[rows], asked.asked[rows], reference, draws=draws)
            figures += [
                {"trace": trace, "slice": name, "model": model, "measure": m, "value": f.value, "low": f.low, "high": f.high}
                for m, f in found.items()
            ]
            if model in (OURS, "partition climatology", "like jobs") and name in ("all", "gpu"):
                shown.append(
                    summarise(
                        part,
                        waits[rows],
                        started[rows],
                        asked.asked[rows],
                        _groups(asked, rows, partitions),
                        trace=trace,
                        slice=name,
                        model=model,
                    )
                )
            if model == OURS and name == "all":
                figures += _cells(part, waits[rows], started[rows], asked, rows, trace)
    return Evaluation(figures, shown)


def _slices(cases: Cases) -> list[tuple[str, Flags]]:
    """All, GPU jobs always on their own line, at submission and pending where there are both."""
    pending = cases.asked - cases.eligible > 60
    gpu = cases.groups["gpu"] == 1
    found = [("all", np.ones(len(cases), bool)), ("gpu", gpu), ("no gpu", ~gpu)]
    if pending.any() and not pending.all():
        found += [("at submit", ~pending), ("pending", pending), ("pending, gpu", pending & gpu), ("at submit, gpu", ~pending & gpu)]
    return [f for f in found if not (f[0] == "no gpu" and f[1].all())]


def _groups(cases: Cases, rows: Flags, partitions: list[str] | None) -> dict[str, np.ndarray[tuple[int], np.dtype[np.generic]]]:
    names = np.array(partitions if partitions is not None else [f"p{i}" for i in range(int(cases.groups["partition"].max()) + 1)], np.str_)
    return {"partition": names[cases.groups["partition"][rows]], "size": cases.groups["size"][rows]}


def _cells(told: Waits, wait: Floats, started: Flags, cases: Cases, rows: Flags, trace: str) -> list[dict[str, object]]:
    """How many cells of partition x size x month with at least 500 jobs hold their 80 and 90 % within 5 points."""
    month = cases.asked[rows].astype("datetime64[s]").astype("datetime64[M]").astype(np.int64)
    key = np.stack([cases.groups["partition"][rows], cases.groups["size"][rows], month])
    cell: Ints = np.ravel(np.unique(key, axis=1, return_inverse=True)[1])
    out = []
    for share in (0.8, 0.9):
        low, high = told.interval(share)
        inside = (low - 0.5 <= wait) & (wait <= high + 0.5)
        counts = np.bincount(cell[started])
        held = np.bincount(cell[started], inside[started])[counts >= 500] / counts[counts >= 500]
        for measure, value in (
            (f"cells_{round(share * 100)}", float(len(held))),
            (f"cells_{round(share * 100)}_within_5", float(np.mean(np.abs(held - share) <= 0.05)) if len(held) else float("nan")),
            (f"cells_{round(share * 100)}_worst", float(np.max(np.abs(held - share))) if len(held) else float("nan")),
        ):
            out.append(
                {
                    "trace": trace,
                    "slice": "all",
                    "model": OURS,
                    "measure": measure,
                    "value": value,
                    "low": float("nan"),
                    "high": float("nan"),
                }
            )
    return out
