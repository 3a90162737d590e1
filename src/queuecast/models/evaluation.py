"""Measuring on a past: our model and the baselines, on the same answers, each made with what was known at its moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from queuecast.features.cases import Cases
from queuecast.features.history import Flags, Floats, Ints
from queuecast.models.baselines import climatology, last_similar, like_jobs
from queuecast.models.bootstrap import Figure, days_of, interval, measure_all_with_intervals
from queuecast.models.measures_slices import coverage_slices, groups_of
from queuecast.models.measures_summary import Shown, summarise
from queuecast.models.qbets import qbets
from queuecast.models.rolling import roll
from queuecast.models.waits import KNOTS_S, Waits

OURS = "queuecast"
UNCORRECTED = "queuecast, levels not corrected"
SLURM = "slurm"
BESIDE_SLURM = "queuecast, where Slurm gave an estimate"
HOURS = (1, 4, 24)
FEWEST = 50
"""A slice with fewer cases is not measured."""


@dataclass(frozen=True)
class Evaluation:
    """``figures`` are {trace, slice, model, measure, value, low, high}; ``low`` and ``high`` end the 95 % interval by a
    bootstrap over days (nan with one day). Slices named ``partition=gpu``, ``hour=09`` and the like tell of coverage alone
    (``measures_slices``). ``shown`` is what the report draws."""

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
    earlier: Floats | None = None,
    gpus: Floats | None = None,
    draws: int = 100,
    like: Waits | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Answer all cases asked from ``first`` on and measure. Outcomes are those known at ``at``; ``extra`` are further
    forecasts by name for all cases, nan where there is none; beside ``SLURM`` ours is told for the same cases.
    ``like``: what like jobs waited, per case. ``partitions``, ``earlier`` and ``gpus`` are for slices: see ``groups_of``."""
    if like is None:
        like = like_jobs(cases, cases)
    rolled = roll(cases, first, every_s=every_s, warm_up_s=warm_up_s, like=like, progress=progress)
    asked = cases.take(rolled.rows)
    waits, started = asked.outcomes(at)
    usual = climatology(cases, asked)
    models = {
        OURS: rolled.waits,
        UNCORRECTED: rolled.uncorrected,
        "partition climatology": usual,
        "like jobs": Waits(like.cdf[rolled.rows], KNOTS_S),
        "last similar job": last_similar(cases, asked),
        "qbets": qbets(cases, asked),
        **{name: Waits(w.cdf[rolled.rows], KNOTS_S) for name, w in (extra or {}).items()},
    }
    if SLURM in models:
        estimated: Flags = np.asarray(np.isfinite(models[SLURM].cdf).all(axis=1))
        models[BESIDE_SLURM] = Waits(np.where(estimated[:, None], rolled.waits.cdf, np.nan), KNOTS_S)
    groups = groups_of(asked, partitions, None if earlier is None else earlier[rolled.rows], None if gpus is None else gpus[rolled.rows])
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
            if model == BESIDE_SLURM:
                found["closer_than_slurm"] = _closer(
                    part, Waits(models[SLURM].cdf[rows], KNOTS_S), waits[rows], started[rows], asked.asked[rows], draws
                )
            figures += [_line(trace, name, model, m, f) for m, f in found.items()]
            if model in (OURS, "partition climatology", "like jobs") and name in ("all", "gpu"):
                outcome = (part, waits[rows], started[rows], asked.asked[rows])
                by = {g: texts[rows] for g, texts in groups.items() if g != "month"} | {"size": asked.groups["size"][rows]}
                shown.append(summarise(*outcome, by, trace=trace, slice=name, model=model))
                figures += _curves(shown[-1])
                if model == OURS and name == "all":
                    figures += _cells(part, waits[rows], started[rows], asked, rows, trace)
                    slices = coverage_slices(*outcome, {g: texts[rows] for g, texts in groups.items()}, draws=draws)
                    figures += [_line(trace, s, model, m, f) for s, m, f in slices]
    return Evaluation(figures, shown)


def _line(trace: str, part: str, model: str, measure: str, found: Figure) -> dict[str, object]:
    return {"trace": trace, "slice": part, "model": model, "measure": measure, **found._asdict()}


def _closer(ours: Waits, other: Waits, wait: Floats, started: Flags, asked: Floats, draws: int) -> Figure:
    """Share of started jobs whose wait our median was closer to than the other's; as close counts half."""
    gaps = [np.abs(np.minimum(w.quantile(0.5), KNOTS_S[-1]) - wait) for w in (ours, other)]
    won = np.where(started, (gaps[0] < gaps[1]) + 0.5 * (gaps[0] == gaps[1]), np.nan)
    if not started.any():
        return _alone(float("nan"))
    return Figure(float(np.nanmean(won)), *interval(won, days_of(asked), draws))


def _curves(shown: Shown) -> list[dict[str, object]]:
    """The reliability curve: per bin of equal mass the mean probability told, the share that came and the cases."""
    out = []
    for hours, curve in shown.reliability.items():
        for number, (told, came, cases) in enumerate(zip(curve.line.told, curve.line.came, curve.line.cases, strict=True)):
            name = f"reliability_{hours}h_{number + 1:02d}"
            for measure, found in (
                (f"{name}_told", _alone(told)),
                (f"{name}_came", Figure(float(came), float(curve.low[number]), float(curve.high[number]))),
                (f"{name}_cases", _alone(cases)),
            ):
                out.append(_line(shown.trace, shown.slice, shown.model, measure, found))
    return out


def _alone(value: float) -> Figure:
    """A figure without an interval."""
    return Figure(float(value), float("nan"), float("nan"))


def _slices(cases: Cases) -> list[tuple[str, Flags]]:
    """All, GPU jobs always on their own line, at submission and pending where there are both."""
    pending = cases.asked - cases.eligible > 60
    gpu = cases.groups["gpu"] == 1
    found = [("all", np.ones(len(cases), bool)), ("gpu", gpu), ("no gpu", ~gpu)]
    if pending.any() and not pending.all():
        found += [("at submit", ~pending), ("pending", pending), ("pending, gpu", pending & gpu), ("at submit, gpu", ~pending & gpu)]
    return [f for f in found if not (f[0] == "no gpu" and f[1].all())]


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
            out.append(_line(trace, "all", OURS, measure, _alone(value)))
    return out
