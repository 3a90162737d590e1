"""Other ways to size a request, for comparison: each tells an amount per job from jobs of its kind that ended before.

All read windows of the latest jobs of a kind (``windows``); nan: nothing is told, so the request stays as asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from queuecast.features.history import Floats, Ints
from queuecast.models.sizing_past import LATEST, Jobs, Past

Places = npt.NDArray[np.int64]
_AT_ONCE = 10_000


@dataclass(frozen=True)
class Method:
    """``amount`` is a function of nothing, as it is made when needed; ``margin``: what the source multiplies it with."""

    name: str
    amount: Callable[[], Floats]
    margin: float = 1.0


class Windows:
    """The latest ``LATEST`` ended jobs of each job's kind on one rung, newest first, -1 where there is none."""

    def __init__(self, past: Past, jobs: Jobs, rung: int) -> None:
        self.jobs, self.past, self.rung = jobs, past, rung
        self.low, self.high = past.stretch(rung, jobs.codes[rung], jobs.submit)
        self.order = past._rungs[rung].order

    def parts(self) -> list[tuple[slice, Places]]:
        """Rows and their windows (m, LATEST), some at a time."""
        found = []
        for first in range(0, len(self.jobs), _AT_ONCE):
            part = slice(first, first + _AT_ONCE)
            place = self.high[part, None] - 1 - np.arange(LATEST)
            rows = self.order[np.clip(place, 0, len(self.order) - 1)]
            found.append((part, np.where(place >= self.low[part, None], rows, -1)))
        return found

    def each(self, told: Callable[[Floats, slice, Places], Floats]) -> Floats:
        """``told`` (uses (m, LATEST), rows, windows) for all jobs."""
        out = np.full(len(self.jobs), np.nan)
        for part, rows in self.parts():
            uses = np.where(rows >= 0, self.jobs.use[rows], np.nan)
            out[part] = told(uses, part, rows)
        return out

    def largest_ever(self, fewest: int) -> Floats:
        """The largest use of the kind so far, where ``fewest`` jobs had ended."""
        ever = self.jobs.use[self.order].copy()
        starts = np.unique(self.low)
        for low, high in zip(starts, [*starts[1:], len(ever)], strict=True):
            ever[low:high] = np.maximum.accumulate(ever[low:high])
        count = self.high - self.low
        return np.where(count >= fewest, ever[np.clip(self.high - 1, 0, len(ever) - 1)], np.nan)


def largest_of(windows: Windows, last: int, fewest: int) -> Floats:
    """Largest of the last so many, where ``fewest`` had ended."""
    return windows.each(lambda uses, _p, _r: _known(np.nanmax(_filled(uses[:, :last]), axis=1), uses, fewest))


def quantile_of(windows: Windows, level: float, fewest: int) -> Floats:
    """Quantile of the last ``LATEST``."""

    def told(uses: Floats, _part: slice, _rows: Places) -> Floats:
        ordered = np.sort(uses, axis=1)  # nan last
        count = np.isfinite(uses).sum(axis=1)
        place = np.clip(np.ceil(level * count).astype(int) - 1, 0, LATEST - 1)
        return _known(ordered[np.arange(len(uses)), place], uses, fewest)

    return windows.each(told)


def last_two(windows: Windows) -> Floats:
    """Mean of the last two run times (Tsafrir, Etsion and Feitelson 2007: of the same user's jobs)."""
    return windows.each(lambda uses, _p, _r: _known(uses[:, :2].mean(axis=1), uses, 2))


def sizey(windows: Windows, size: Floats, alpha: float = 0.5, beta: float = 1.0) -> Floats:
    """After Sizey (Bader et al., CLUSTER 2024): several models per kind, weighted by softmax(beta x RAQ), RAQ = alpha x efficiency
    + (1 - alpha) x accuracy, efficiency = -prediction / largest prediction, accuracy = 1 - mean relative error of the kind's past
    predictions (held at 0 to 1); plus the offset (share of the prediction) that would have wasted least in the window, of four:
    standard deviation and median of the relative errors, of all and of the too low ones.

    ``size`` stands for the input size, which traces do not tell: processors asked. Models: linear and 5 nearest neighbours, as
    there, with mean and 95 % percentile for its neural network and random forest, which were left out (training both anew after
    each of 300,000 jobs takes days); refits use the window of the last jobs only."""
    models = np.stack([windows.each(f) for f in (_linear(size), _nearest(size), _mean, _percentile)], axis=1)
    n = len(models)
    use = windows.jobs.use
    with np.errstate(divide="ignore", invalid="ignore"):
        right = 1 - np.minimum(1.0, np.abs(models - use[:, None]) / np.maximum(use[:, None], 1e-9))
    accuracy = np.full_like(models, np.nan)
    for part, rows in windows.parts():
        past = np.where(rows[:, :, None] >= 0, right[rows], np.nan)
        known = np.isfinite(past)
        accuracy[part] = np.where(known, past, 0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        raq = (1 - alpha) * accuracy - alpha * models / np.max(models, axis=1, keepdims=True)
        weight = np.exp(beta * raq)
        mixed = (weight * models).sum(axis=1) / weight.sum(axis=1)
        error = (use - mixed) / np.maximum(use, 1e-9)  # positive: too low
    out = np.full(n, np.nan)
    for part, rows in windows.parts():
        past = np.where(rows >= 0, error[rows], np.nan)
        low = np.where(past > 0, past, np.nan)
        offsets = np.stack([_std(np.abs(past)), _median(np.abs(past)), _std(low), _median(low)], axis=1)
        offsets = np.where(np.isfinite(offsets), offsets, 0.05)
        told, truth = np.where(rows >= 0, mixed[rows], np.nan), np.where(rows >= 0, use[rows], np.nan)
        waste = np.stack([_wasted(told * (1 + offsets[:, [k]]), truth) for k in range(4)], axis=1)
        best = offsets[np.arange(len(rows)), np.argmin(waste, axis=1)]
        out[part] = mixed[part] * (1 + best)
    return out


def _wasted(told: Floats, truth: Floats) -> Floats:
    """What is left over, or the whole attempt and a second one of the double where it was too little."""
    return np.nansum(np.where(told >= truth, told - truth, told + np.maximum(2 * told - truth, 0)), axis=1)


def _linear(size: Floats) -> Callable[[Floats, slice, Places], Floats]:
    def told(uses: Floats, part: slice, rows: Places) -> Floats:
        known = np.isfinite(uses)
        count = np.maximum(known.sum(axis=1), 1)
        x = np.where(known, size[rows], 0.0)
        y = np.where(known, uses, 0.0)
        middle_x, middle_y = x.sum(axis=1) / count, y.sum(axis=1) / count
        dx = np.where(known, x - middle_x[:, None], 0.0)
        spread = (dx**2).sum(axis=1)
        slope = np.where(spread > 0, (dx * y).sum(axis=1) / np.where(spread > 0, spread, 1.0), 0.0)
        return _known(np.maximum(middle_y + slope * (size[part] - middle_x), 0.0), uses, 3)

    return told


def _nearest(size: Floats) -> Callable[[Floats, slice, Places], Floats]:
    def told(uses: Floats, part: slice, rows: Places) -> Floats:
        far = np.where(np.isfinite(uses), np.abs(np.log(size[rows]) - np.log(size[part, None])), np.inf)
        near = np.argsort(far, axis=1, kind="stable")[:, :5]  # the newest of equally near ones
        chosen = np.take_along_axis(uses, near, axis=1)
        known = np.isfinite(chosen)
        return _known(np.where(known, chosen, 0).sum(axis=1) / np.maximum(known.sum(axis=1), 1), uses, 3)

    return told


def _mean(uses: Floats, _part: slice, _rows: Places) -> Floats:
    known = np.isfinite(uses)
    return _known(np.where(known, uses, 0).sum(axis=1) / np.maximum(known.sum(axis=1), 1), uses, 3)


def _percentile(uses: Floats, _part: slice, _rows: Places) -> Floats:
    count = np.isfinite(uses).sum(axis=1)
    place = np.clip(np.ceil(0.95 * count).astype(int) - 1, 0, LATEST - 1)
    return _known(np.sort(uses, axis=1)[np.arange(len(uses)), place], uses, 3)


def _std(values: Floats) -> Floats:
    known = np.isfinite(values)
    count = np.maximum(known.sum(axis=1), 1)
    middle = np.where(known, values, 0).sum(axis=1) / count
    spread = np.where(known, (values - middle[:, None]) ** 2, 0).sum(axis=1) / count
    return np.where(known.any(axis=1), np.sqrt(spread), np.nan)


def _median(values: Floats) -> Floats:
    count = np.isfinite(values).sum(axis=1)
    return np.asarray(np.sort(values, axis=1)[np.arange(len(values)), np.clip((count - 1) // 2, 0, LATEST - 1)])


def _filled(uses: Floats) -> Floats:
    return np.where(np.isfinite(uses), uses, -np.inf)


def _known(told: Floats, uses: Floats, fewest: int) -> Floats:
    return np.where(np.isfinite(uses).sum(axis=1) >= fewest, told, np.nan)


def methods(past: Past, jobs: Jobs, size: Floats, rungs: dict[str, int], margin: float) -> list[Method]:
    """All of them, each on every kind of ``rungs`` (name: number); the benchmark keeps of each family the best on the middle."""
    found: list[Method] = []
    for label, rung in rungs.items():
        w = Windows(past, jobs, rung)
        for last in (20, LATEST):
            found.append(Method(f"max of last {last} ({label})", lambda w=w, last=last: largest_of(w, last, 3)))
        found.append(Method(f"max ever, 3 runs or more ({label})", lambda w=w: w.largest_ever(3), margin))
        for level in (0.95, 0.99):
            found.append(Method(f"percentile {100 * level:.0f} of last {LATEST} ({label})", lambda w=w, q=level: quantile_of(w, q, 5), 1.1))
        found.append(Method(f"Sizey-like ({label})", lambda w=w: sizey(w, size)))
    user = Windows(past, jobs, rungs["user"])
    found.append(Method("mean of the user's last two (Tsafrir)", lambda: last_two(user)))
    return found


def family(name: str) -> str:
    """The part before numbers and kind."""
    return " ".join(word for word in name.split(" (")[0].split() if not word.isdigit())


__all__ = ["Ints", "Method", "family", "methods"]
