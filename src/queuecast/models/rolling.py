"""Answers of the past made again as they would have been made then: rolling origin, past only.

At each origin the model is fitted to the outcomes known by then; between origins its levels are corrected from time
to time by answers of earlier origins whose outcome has become known since. Every answer therefore comes from a model
that had not seen its outcome, and outcomes of jobs still pending at a moment are censored there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from queuecast.features.cases import Cases
from queuecast.features.history import Floats, Ints
from queuecast.models.blend import MOST, UNTRIED, share_of_like
from queuecast.models.kept import Kept, blank, mixed
from queuecast.models.levelmaps import LevelMaps, kinds, luck, pits, share_of_correction
from queuecast.models.stacked import Stacked, fit
from queuecast.models.waits import KNOTS_S, Waits

TICK_S = 6 * 3600.0
"""Corrections are renewed that often."""

LOOK_BACK = 40_000
"""Corrections look at so many of the latest answers."""


@dataclass(frozen=True)
class Rolled:
    """``rows`` of the cases that were answered, the answers, the same before their levels were corrected, and what
    corrects the next ones: ``maps`` and the share of like jobs (without, with GPUs) as of the end. ``kept``: the latest
    answers, and those given before, from which corrections can be made at other moments."""

    rows: Ints
    waits: Waits
    uncorrected: Waits
    maps: LevelMaps
    shares: Floats
    kept: Kept


def roll(
    cases: Cases,
    first: float,
    *,
    every_s: float,
    warm_up_s: float = 0.0,
    like: Waits | None = None,
    learn: Callable[[Cases, float], Stacked] = fit,
    progress: Callable[[int, int], None] | None = None,
    before: Kept | None = None,
    about: dict[str, Floats] | None = None,
    partitions: tuple[str, ...] = (),
    at: float | None = None,
    shares: Floats | None = None,
) -> Rolled:
    """Answer all cases asked from ``first`` on (epoch seconds, UTC), refitting every ``every_s``. Answers of the
    ``warm_up_s`` before are made too, to correct the first ones by; they are not returned. ``like`` holds for every
    case what like jobs waited, as known at its moment. ``before``: earlier answers, to correct the first ones by, asked
    before all of these. ``about`` and ``partitions`` (of the codes in ``cases``) are kept with the answers.

    The last corrections are those known at ``at`` (None: when the last was asked); ``shares`` of like jobs hold where no
    case is answered. Raises ``ValueError`` where nothing had started at an origin."""
    begin = first - warm_up_s
    rows = np.flatnonzero(cases.asked >= begin)
    some = cases.take(rows)
    codes = {n: c[rows] for n, c in kinds(cases).items()}
    also = {n: a[rows] for n, a in (about or {}).items()}
    new = blank(some, codes, luck(len(rows)), None if like is None else like.cdf[rows].astype(np.float32), also, partitions)
    new.shown[:] = new.asked >= first
    run = _Run(new if before is None else Kept.joined(before, new), like is not None, shares)
    done = len(run.kept) - len(rows)
    end = float(new.asked[-1]) if len(rows) else begin
    origins = np.arange(begin, end + 1, every_s)
    for number, origin in enumerate(origins):
        if progress is not None:
            progress(number, len(origins))
        low, high = (int(i) for i in np.searchsorted(new.asked, [origin, origin + every_s]))
        if low == high:
            continue
        model = learn(cases, float(origin))
        run.answer(model.predict(some.values[low:high]), done + low, done + high, float(origin))
        for tick, here in _ticks(new.asked, low, high):
            run.correct(*run.maps(done + int(here[0]), tick), done + here)
    wanted = np.flatnonzero(new.asked >= first)
    maps, share = run.maps(len(run.kept), end if at is None else at)
    told = run.kept.take(done + wanted)
    return Rolled(
        rows[wanted], told.told(), told.mixture(), maps.softened(share), run.shares, run.kept.take(np.arange(len(run.kept))[-LOOK_BACK:])
    )


def corrections(kept: Kept, at: float) -> tuple[LevelMaps, float]:
    """From answers, all asked before ``at`` (epoch seconds, UTC), by the outcomes known then; and how far to follow them."""
    waits, started = kept.outcomes(at)
    level = kept.level.copy()
    open_ = np.flatnonzero(~started)
    if len(open_):
        level[open_] = kept.take(open_).mixture().within(waits[open_])
    maps = LevelMaps.fit(level, started, kept.asked, kept.codes, at)
    late = kept.take(np.flatnonzero(np.isfinite(kept.corrected[:, 0]))[-MOST:])
    waits, started = late.outcomes(at)
    mixture = late.mixture().cdf.astype(np.float32)
    return maps, share_of_correction(mixture, late.corrected, KNOTS_S, waits, started, late.followed(at))


class _Run:
    """Answers given before, and those that are being made; the arrays of ``kept`` are filled in place."""

    def __init__(self, kept: Kept, liken: bool, shares: Floats | None) -> None:
        self.kept, self.liken = kept, liken
        self.shares = np.array([UNTRIED, UNTRIED]) if shares is None else shares

    def answer(self, told: Waits, low: int, high: int, origin: float) -> None:
        """Uncorrected answers."""
        kept, new = self.kept, self.kept.take(slice(low, high))
        new.model[:] = told.cdf
        if self.liken:
            known = kept.take(slice(max(0, low - LOOK_BACK), low))
            waits, started = known.outcomes(origin)
            gpu = known.codes["gpu"]
            self.shares = share_of_like(known.model, known.like, KNOTS_S, waits, started, gpu, known.followed(origin))
            told, new.like_share[:] = mixed(told, new.like, self.shares, new.codes["gpu"])
        came = np.isfinite(new.start)
        new.level[:] = np.where(came, pits(told, np.where(came, np.maximum(0.0, new.start - new.asked), 1e12), came, new.luck), np.nan)

    def maps(self, until: int, at: float) -> tuple[LevelMaps, float]:
        """Corrections from the answers before number ``until``, by what was known at ``at``, and how far they are followed."""
        return corrections(self.kept.take(slice(max(0, until - LOOK_BACK), until)), at)

    def correct(self, maps: LevelMaps, share: float, here: Ints) -> None:
        some = self.kept.take(here)
        self.kept.corrected[here] = maps.correct(some.mixture(), some.codes).cdf
        self.kept.follow[here] = share


def _ticks(asked: Floats, low: int, high: int) -> list[tuple[float, Ints]]:
    """Moments of renewal and the answers that follow each; nothing later than the first of them is used."""
    slot = np.floor(asked[low:high] / TICK_S)
    starts = np.flatnonzero(np.r_[True, slot[1:] != slot[:-1]])
    stops = np.r_[starts[1:], high - low]
    return [(float(asked[low + a]), np.arange(low + a, low + b)) for a, b in zip(starts, stops, strict=True)]
