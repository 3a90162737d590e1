"""What any wait predictor must beat: climatology, the last similar job, recent like jobs.

One protocol for all: ``predict(history, cases)`` gives each case a distribution of its remaining wait, made only from
rows of ``history`` that had started before the case was asked (``start < asked``), so ``history`` may hold the cases
themselves and what came after them. Rows not started by then are not used: ignored, not counted as censored. To keep
that from favouring short waits, recency goes by when a row *started*: in a steady queue the jobs that started lately
are a fair sample, while those submitted lately and started already are the quick ones. When waits grow, all of
these lag behind.

A distribution is the empirical one of the finest group with enough started rows, drawn a little towards that of the next
coarser one; of the whole cluster's, one row's weight stays unknown, since the next job may exceed all n seen. Where
nothing has started yet it is 0 everywhere: nothing is known. None of them looks at how long a case has been waiting
already: rows of the history and cases should be asked about at the same kind of moment (at submission, at noon).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from queuecast.features.cases import Cases
from queuecast.features.history import Flags, Floats, Ints
from queuecast.models import likejobs
from queuecast.models.waits import KNOTS_S, Waits

Level = tuple[tuple[str, ...], int]
"""Groups that must be equal, and how many started rows that takes."""

CLIMATE: tuple[Level, ...] = ((("partition", "gpu"), 20), ((), 1))
OWN: tuple[Level, ...] = ((("partition", "user", "size", "limit"), 5), (("partition", "user", "size"), 5))
SIMILAR: tuple[tuple[str, ...], ...] = (("account", "user", "partition", "size"), ("partition",), ())
"""What the last similar job must have equal, finest first."""

LEAN = 4.0
"""Each level's rows are joined by that many rows' weight of the next coarser level. Of 1, 2, 4 and 8 it
was best or within 1 % of the best in pinball loss on the middle two fifths of each of three public traces."""

DAY_S = 86400.0
HOUR_S = 3600.0

_Z = np.log1p(KNOTS_S)
_STEP = 0.1
_HALF = 170
"""Errors of the last-similar rule are counted in steps of 0.1 of log(1 + seconds), as far as +-17: 90 days is 15.9."""


def climatology(history: Cases, cases: Cases) -> Waits:
    """All waits so far in the same partition (with or without GPU), else on the whole cluster; renewed every day (UTC).

    Its ``within`` is the reference of the Brier skill of P(start within 1, 4, 24 h)."""
    return _empirical(history, cases, CLIMATE, DAY_S, np.inf, np.inf)


def like_jobs(history: Cases, cases: Cases) -> Waits:
    """Recent jobs alike, renewed every hour: half-life, window and levels of :mod:`queuecast.models.likejobs`, and before
    those the user's own jobs.

    Differs from ``find_like`` so as to be fast and hard to beat: rows not started are ignored, age goes by the start,
    there is no limit of 800 jobs, and a level leans on the next coarser one. The user's levels were added since they
    lower the pinball loss of log(1 + seconds) on the middle two fifths of three public traces by 2 to 7 %.
    """
    return _empirical(history, cases, like_levels(history), HOUR_S, likejobs.HALF_LIFE_S, likejobs.WINDOW_S)


def like_levels(history: Cases) -> tuple[Level, ...]:
    """The user's levels, then those of ``likejobs``, without the groups that the cases lack; of equal ones the first
    stays."""
    levels: dict[tuple[str, ...], int] = {}
    for dims, need in (*OWN, *likejobs.LEVELS):
        levels.setdefault(tuple(d for d in dims if d in history.groups), need)
    return tuple(levels.items())


def last_wait(history: Cases, cases: Cases) -> tuple[Floats, Ints]:
    """Wait in seconds of the last similar row that had started, nan if none had; and its level in ``SIMILAR``, -1."""
    order = in_order_of_start(history)
    waits = _waits(history)
    found, level = np.full(len(cases), np.nan), np.full(len(cases), -1, np.int64)
    if not len(order):
        return found, level
    before = np.searchsorted(history.start[order], cases.asked)  # so many had started, in that order
    for number, dims in enumerate(SIMILAR):
        of_history, of_cases, _ = joint_codes(history, cases, dims)
        # Rows by (group, place in the order of starts): the one before (group, before) is the last similar.
        place = of_history[order] * (len(order) + 1) + np.arange(len(order))
        sorted_rows = np.argsort(place)
        at = np.searchsorted(place[sorted_rows], of_cases * (len(order) + 1) + before) - 1
        last = order[sorted_rows[np.maximum(at, 0)]]
        fits = (level < 0) & (at >= 0) & (of_history[last] == of_cases)
        found[fits], level[fits] = waits[last[fits]], number
    return found, level


def last_similar(history: Cases, cases: Cases) -> Waits:
    """The wait of the last started job of the same account, user, partition and size (else of the partition, else of
    all), spread by how far that rule was off before.

    Errors are taken in log(1 + seconds), apart for each level and for last waits up to a minute, an hour, a day and
    longer, and renewed every day (UTC).
    """
    past, past_level = last_wait(history, history)
    told, told_level = last_wait(history, cases)
    order = in_order_of_start(history)
    order = order[past_level[order] >= 0]
    error = np.log1p(_waits(history)[order]) - np.log1p(past[order])
    bins = np.clip(np.ceil(error / _STEP - 1e-9).astype(np.int64) + _HALF, 0, 2 * _HALF)
    kinds, kinds_told = _kind(past[order], past_level[order]), _kind(told, told_level)
    counts = np.zeros((4 * len(SIMILAR), 2 * _HALF + 1))
    cdf, done = np.zeros((len(cases), len(KNOTS_S))), 0
    for rows, tick in _ticks(cases.asked, DAY_S):
        upto = int(np.searchsorted(history.start[order], tick))
        np.add.at(counts, (kinds[done:upto], bins[done:upto]), 1.0)
        done = upto
        rows = rows[told_level[rows] >= 0]
        every = np.cumsum(counts.sum(axis=0))
        each = np.cumsum(counts, axis=1)
        shape = (each + every / (every[-1] + 1)) / (each[:, -1:] + 1)
        # Where on the grid of errors each knot lies; the grid is even, so it is read off without a search.
        place = np.clip((_Z - np.log1p(told[rows])[:, None]) / _STEP + _HALF, 0, 2 * _HALF)
        low = np.minimum(np.floor(place + 1e-9).astype(np.int64), 2 * _HALF - 1)
        of = kinds_told[rows][:, None]
        cdf[rows] = shape[of, low] + np.maximum(place - low, 0.0) * (shape[of, low + 1] - shape[of, low])
    return Waits(cdf, KNOTS_S)


def _kind(last: Floats, level: Ints) -> Ints:
    """Which errors apply: level and class of the last wait."""
    return np.maximum(level, 0) * 4 + np.digitize(np.nan_to_num(last), (60.0, HOUR_S, DAY_S), right=True)


def joint_codes(history: Cases, cases: Cases, dims: Sequence[str]) -> tuple[Ints, Ints, int]:
    """One code from 0 for each combination of ``dims`` in either; and how many there are."""
    joint = np.zeros(len(history) + len(cases), np.int64)
    count = 1
    for name in dims:
        both = np.r_[history.groups[name], cases.groups[name]]
        words, codes = np.unique(both, return_inverse=True)
        seen, joint = np.unique(joint * max(len(words), 1) + codes, return_inverse=True)
        count = len(seen)
    return joint[: len(history)], joint[len(history) :], count


def _waits(history: Cases) -> Floats:
    return np.maximum(0.0, history.start - history.asked)


def in_order_of_start(history: Cases) -> Ints:
    """Rows that ever started, in the order in which their waits became known."""
    order = np.argsort(history.start, kind="stable")
    return order[: int(np.searchsorted(history.start[order], np.inf))]


def _ticks(asked: Floats, every_s: float) -> Iterator[tuple[Ints, float]]:
    """Cases by the last round moment before they were asked: (row numbers, that moment), in order of time."""
    tick = np.floor(asked / every_s)
    order = np.argsort(tick, kind="stable")
    cuts = np.flatnonzero(np.diff(tick[order])) + 1
    for rows in np.split(order, cuts):
        if len(rows):
            yield rows, float(tick[rows[0]] * every_s)


@dataclass
class _Counts:
    """Histograms of waits on the knots, one per group of a level; groups that can never have enough rows are left out."""

    need: int
    of_history: Ints
    of_cases: Ints
    weights: Floats
    started: Ints

    @classmethod
    def make(cls, history: Cases, order: Ints, cases: Cases, level: Level) -> _Counts:
        """``order``: the rows of ``history`` to be counted, as ``of_history`` is to have them."""
        dims, need = level
        of_history, of_cases, count = joint_codes(history, cases, dims)
        # A group below ``need`` in all of the data is so at any time: only space is saved.
        large = np.bincount(of_history, minlength=count) >= max(need, 1)
        place = np.where(large, np.cumsum(large) - 1, large.sum())
        shape = int(large.sum()) + 1
        return cls(need, place[of_history[order]], place[of_cases], np.zeros((shape, len(KNOTS_S) + 1)), np.zeros(shape, np.int64))

    def enough(self, rows: Ints) -> Flags:
        """Cases whose group has enough rows; the last place holds the groups left out."""
        of = self.of_cases[rows]
        return (of < len(self.started) - 1) & (self.started[of] >= self.need)


def _empirical(history: Cases, cases: Cases, levels: Sequence[Level], every_s: float, half_life_s: float, window_s: float) -> Waits:
    """Empirical distribution in the finest level with enough rows started within ``window_s``, weighed by age. The last
    level is the whole cluster."""
    order = in_order_of_start(history)
    start, bins = history.start[order], np.searchsorted(KNOTS_S, _waits(history)[order])
    tables = [_Counts.make(history, order, cases, level) for level in levels]
    cdf = np.zeros((len(cases), len(KNOTS_S)))
    reference = float(start[0]) if len(start) else 0.0
    done = gone = 0
    for rows, tick in _ticks(cases.asked, every_s):
        upto, out = int(np.searchsorted(start, tick)), int(np.searchsorted(start, tick - window_s))
        if tick - reference > 500 * half_life_s:  # weights grow instead of the old ones shrinking: keep them in range
            for table in tables:
                table.weights *= np.exp2(-(tick - reference) / half_life_s)
            reference = tick
        weight = np.exp2((start[done:upto] - reference) / half_life_s)
        for table in tables:
            of = table.of_history
            np.add.at(table.weights, (of[done:upto], bins[done:upto]), weight)
            np.add.at(table.started, of[done:upto], 1)
            np.subtract.at(table.started, of[gone:out], 1)
        done, gone = upto, out
        scale = float(np.exp2((reference - tick) / half_life_s))
        everyone = tables[-1].weights[0] * scale
        top = np.cumsum(everyone[:-1]) / (everyone.sum() + 1)
        told = np.broadcast_to(top, (len(rows), len(top))).copy()
        for table in reversed(tables[:-1]):
            now = table.enough(rows)
            if now.any():
                known = table.weights[table.of_cases[rows[now]]] * scale
                told[now] = (np.cumsum(known[:, :-1], axis=1) + LEAN * told[now]) / (known.sum(axis=1)[:, None] + LEAN)
        cdf[rows] = told
    return Waits(cdf, KNOTS_S)
