"""Users' ways through failure and success, as events with a group each: plain arithmetic over attempts."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from queuecast.answers.experiences.rows import Attempts
from queuecast.features.history import Flags, Floats, Ints

HIT, MISS, OPEN, NONE = 1, 0, -1, -2
EARLY_S = 120.0


@dataclass(frozen=True)
class Events:
    """``row``: the attempt whose group each event belongs to. ``value``: seconds, nan where there are none. ``mark``: HIT, MISS (or
    censored), OPEN (not known), NONE (nothing was tried)."""

    row: Ints
    value: Floats
    mark: Ints

    def of(self, which: Flags) -> Events:
        """Those chosen."""
        return Events(self.row[which], self.value[which], self.mark[which])


def _events(found: Iterable[tuple[int, float, int]]) -> Events:
    listed = list(found)
    return Events(
        np.array([r for r, _v, _m in listed], np.int64),
        np.array([v for _r, v, _m in listed], float),
        np.array([m for _r, _v, m in listed], np.int64),
    )


def by_work(attempts: Attempts) -> Iterator[Ints]:
    """Rows of each work of a known user, in the order of submission."""
    order = np.argsort(attempts.work, kind="stable")
    order = order[attempts.work[order] >= 0]
    if len(order):
        yield from np.split(order, np.flatnonzero(np.diff(attempts.work[order])) + 1)


def first_successes(attempts: Attempts, since: float, horizon: float, sure_from: float) -> Events:
    """Works begun since ``since``: seconds to the end of the first success, censored at ``horizon``. Works that begin before
    ``sure_from`` may have begun before anything is known: OPEN."""

    def found() -> Iterator[tuple[int, float, int]]:
        for rows in by_work(attempts):
            begun = attempts.submit[rows[0]]
            if begun < since:
                continue
            ends = attempts.end[rows[attempts.ok[rows]]]
            if begun < sure_from:
                yield int(rows[0]), np.nan, OPEN
            elif len(ends):
                yield int(rows[0]), float(ends.min() - begun), HIT
            else:
                yield int(rows[0]), float(horizon - begun), MISS

    return _events(found())


def early_failures(attempts: Attempts, since: float, horizon: float) -> Events:
    """Attempts started since ``since``: HIT failed within two minutes; OPEN: not known yet."""
    rows = np.flatnonzero(attempts.start >= since)  # nan is not
    ran = np.where(attempts.ended[rows], attempts.end[rows], horizon) - attempts.start[rows]
    open_ = attempts.untold[rows] | (~attempts.ended[rows] & (ran <= EARLY_S))
    mark = np.where(open_, OPEN, np.where(attempts.failed[rows] & (ran <= EARLY_S), HIT, MISS))
    return Events(rows, np.full(len(rows), np.nan), mark.astype(np.int64))


def recoveries(attempts: Attempts, since: float, horizon: float) -> Events:
    """Spells of failure begun since ``since``: from the end of the first failure of a work to the end of the next success that was
    submitted after it, censored at ``horizon``. Failures before that success ends belong to the same spell."""

    def found() -> Iterator[tuple[int, float, int]]:
        for rows in by_work(attempts):
            failed = rows[attempts.failed[rows]]
            failed = failed[np.argsort(attempts.end[failed], kind="stable")]
            good = rows[attempts.ok[rows]]  # by submit
            submits = attempts.submit[good]
            soonest = np.minimum.accumulate(attempts.end[good][::-1])[::-1]
            until = -np.inf
            for row in failed.tolist():
                begun = float(attempts.end[row])
                if begun <= until:
                    continue
                place = int(np.searchsorted(submits, begun))
                until = float(soonest[place]) if place < len(good) else np.inf
                if begun >= since:
                    yield row, min(until, horizon) - begun, HIT if np.isfinite(until) else MISS

    return _events(found())


def retries(attempts: Attempts, which: Flags, since: float, *, same: bool) -> Events:
    """What became of the next attempt of the same work after the attempts ``which`` that ended since ``since``; one for each
    submission and sign. HIT: it ended well, or with ``same`` with the same sign; OPEN: it has not ended; NONE: there is none."""

    def found() -> Iterator[tuple[int, float, int]]:
        for rows in by_work(attempts):
            submits = attempts.submit[rows].tolist()
            done: set[tuple[int, int]] = set()
            for row in rows[which[rows]].tolist():
                key = int(attempts.submission[row]), int(attempts.sign[row])
                if attempts.end[row] < since or key in done:
                    continue
                done.add(key)
                place = bisect_left(submits, float(attempts.end[row]))
                # An attempt of no length ends when it was submitted.
                while place < len(rows) and rows[place] <= row:
                    place += 1
                if place == len(rows):
                    yield row, np.nan, NONE
                    continue
                then = int(rows[place])
                if not attempts.ended[then]:
                    yield row, np.nan, OPEN
                else:
                    good = attempts.sign[then] == attempts.sign[row] if same else attempts.ok[then]
                    yield row, np.nan, HIT if good else MISS

    return _events(found())


def time_quantile(times: Floats, seen: Flags, share: float) -> float | None:
    """The time by which ``share`` had the event: the smallest at which the Kaplan-Meier estimate of those without it is at most
    ``1 - share``. None if it never is. Source: Kaplan and Meier, JASA 53 (1958)."""
    order = np.lexsort((~seen, times))  # censored ones after events of the same time
    left = 1.0
    for place, index in enumerate(order):
        if seen[index]:
            at_risk = len(order) - place
            left *= 1.0 - 1.0 / at_risk
            if left <= 1.0 - share + 1e-12:
                return float(times[index])
    return None
