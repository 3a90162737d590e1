"""Answers of the past made again as they would have been made then: rolling origin, past only.

At each origin the model is fitted to the outcomes known by then; between origins its levels are corrected from time
to time by answers of earlier origins whose outcome has become known since. Every answer therefore comes from a model
that had not seen its outcome, and outcomes of jobs still pending at a moment are censored there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from queuecast.features.cases import Cases
from queuecast.features.history import Floats, Ints
from queuecast.models.blend import MOST, UNTRIED, mix, share_of_like
from queuecast.models.levelmaps import LevelMaps, kinds, luck, pits, share_of_correction
from queuecast.models.stacked import Stacked, fit
from queuecast.models.waits import KNOTS_S, Waits

TICK_S = 6 * 3600.0
"""Corrections are renewed that often."""

LOOK_BACK = 40_000
"""Corrections look at so many of the latest answers."""

Cdfs = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Rolled:
    """``rows`` of the cases that were answered, the answers, the same before their levels were corrected, and what
    corrects the next ones: ``maps`` and the share of like jobs (without, with GPUs) as of the end."""

    rows: Ints
    waits: Waits
    uncorrected: Waits
    maps: LevelMaps
    shares: Floats


def roll(
    cases: Cases,
    first: float,
    *,
    every_s: float,
    warm_up_s: float = 0.0,
    like: Waits | None = None,
    learn: Callable[[Cases, float], Stacked] = fit,
    progress: Callable[[int, int], None] | None = None,
) -> Rolled:
    """Answer all cases asked from ``first`` on (epoch seconds, UTC), refitting every ``every_s``. Answers of the
    ``warm_up_s`` before are made too, to correct the first ones by; they are not returned. ``like`` holds for every
    case what like jobs waited, as known at its moment. Raises ``ValueError`` where nothing had started at an origin."""
    begin = first - warm_up_s
    rows = np.flatnonzero(cases.asked >= begin)
    run = _Run(cases, rows, None if like is None else like.cdf[rows].astype(np.float32))
    end = float(run.asked[-1]) if len(rows) else begin
    origins = np.arange(begin, end + 1, every_s)
    for number, origin in enumerate(origins):
        if progress is not None:
            progress(number, len(origins))
        low, high = (int(i) for i in np.searchsorted(run.asked, [origin, origin + every_s]))
        if low == high:
            continue
        model = learn(cases, float(origin))
        run.answer(model, low, high, float(origin))
        for tick, here in _ticks(run.asked, low, high):
            run.correct(*run.maps(int(here[0]), tick), here)
    wanted = np.flatnonzero(run.asked >= first)
    maps, share = run.maps(len(rows), end)
    return Rolled(rows[wanted], run.told(wanted), Waits(run.raw[wanted].astype(np.float64), KNOTS_S), maps.softened(share), run.shares)


class _Run:
    """What was answered so far."""

    def __init__(self, cases: Cases, rows: Ints, like: Cdfs | None) -> None:
        self.cases, self.rows, self.like = cases, rows, like
        self.asked = cases.asked[rows]
        self.gpu = cases.groups["gpu"][rows]
        self.codes = {n: c[rows] for n, c in kinds(cases).items()}
        self.luck = luck(len(rows))
        shape = (len(rows), len(KNOTS_S))
        self.model, self.raw, self.corrected, self.final = (np.full(shape, np.nan, np.float32) for _ in range(4))
        self.levels = np.zeros(len(rows))  # of the jobs that started
        self.shares = np.array([UNTRIED, UNTRIED])

    def told(self, which: Ints) -> Waits:
        return Waits(self.final[which].astype(np.float64), KNOTS_S)

    def answer(self, model: Stacked, low: int, high: int, origin: float) -> None:
        """Uncorrected answers."""
        told = model.predict(self.cases.values[self.rows[low:high]])
        self.model[low:high] = told.cdf
        if self.like is not None:
            known = slice(max(0, low - LOOK_BACK), low)
            part = self.rows[known]
            waits = self.cases.start[part] - self.cases.asked[part]
            started = self.cases.start[part] <= origin
            self.shares = share_of_like(self.model[known], self.like[known], KNOTS_S, waits, started, self.gpu[known])
            told = mix(told, Waits(self.like[low:high].astype(np.float64), KNOTS_S), self.shares, self.gpu[low:high])
        self.raw[low:high] = told.cdf
        truth = np.maximum(0.0, self.cases.start[self.rows[low:high]] - self.asked[low:high])
        came = np.isfinite(truth)
        self.levels[low:high] = pits(told, np.where(came, truth, 1e12), came, self.luck[low:high])

    def maps(self, until: int, at: float) -> tuple[LevelMaps, float]:
        """Corrections from the answers before number ``until``, by what was known at ``at``, and how far they are followed."""
        low = max(0, until - LOOK_BACK)
        part = self.rows[low:until]
        waits = np.maximum(0.0, np.minimum(self.cases.last_pending[part], at) - self.cases.asked[part])
        started = self.cases.start[part] <= at
        level = self.levels[low:until].copy()
        open_ = np.flatnonzero(~started)
        if len(open_):
            level[open_] = Waits(self.raw[low:until][open_].astype(np.float64), KNOTS_S).within(waits[open_])
        maps = LevelMaps.fit(level, started, self.asked[low:until], {n: c[low:until] for n, c in self.codes.items()}, at)
        late = low + np.flatnonzero(started)[-MOST:]
        return maps, share_of_correction(
            self.raw[late], self.corrected[late], KNOTS_S, self.cases.start[self.rows[late]] - self.asked[late]
        )

    def correct(self, maps: LevelMaps, share: float, here: Ints) -> None:
        told = Waits(self.raw[here].astype(np.float64), KNOTS_S)
        self.corrected[here] = maps.correct(told, {n: c[here] for n, c in self.codes.items()}).cdf
        self.final[here] = (1 - share) * self.raw[here] + share * self.corrected[here]


def _ticks(asked: Floats, low: int, high: int) -> list[tuple[float, Ints]]:
    """Moments of renewal and the answers that follow each; nothing later than the first of them is used."""
    slot = np.floor(asked[low:high] / TICK_S)
    starts = np.flatnonzero(np.r_[True, slot[1:] != slot[:-1]])
    stops = np.r_[starts[1:], high - low]
    return [(float(asked[low + a]), np.arange(low + a, low + b)) for a, b in zip(starts, stops, strict=True)]
