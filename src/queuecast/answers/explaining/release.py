"""When what a limit or a full cluster holds comes free: from the limits of running jobs and how much of theirs like jobs used."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from queuecast.answers.explaining.limits import Kin
from queuecast.answers.explaining.queue import LEAST_LIKE
from queuecast.answers.viewer import Viewer

Shares = list[tuple[str | None, str | None, float]]
MOST_NEXT = 3
"""So many of the jobs that end next are told one by one."""


@dataclass(frozen=True)
class Ending:
    """A running job that holds ``amount``, and when it likely ends (8 in 10 cases between, UTC; None: no bound is known).

    ``job`` None: the viewer may not see which one it is.
    """

    job: str | None
    amount: float
    earliest: datetime | None
    latest: datetime | None
    by_limit: datetime | None


@dataclass(frozen=True)
class Release:
    """``amount`` (in ``tres``) comes free when ``jobs`` running jobs end: between ``earliest`` and ``latest`` in 8 of 10 cases (UTC).

    None: no bound is known. ``by_limit``: at the latest, by their time limits. ``job`` is named only if one job is enough
    and the viewer may see it. ``like``: ended jobs of the same user, else partition, that the times rest on; 0: on limits alone.
    ``kin``: whose jobs these are. ``next``: those among them that end first. ``gradual``: it falls while they run (minutes
    still to run, decayed use), rather than in steps.
    """

    tres: str
    amount: float
    jobs: int
    job: str | None
    earliest: datetime | None
    latest: datetime | None
    by_limit: datetime | None
    like: int
    kin: Kin = "any"
    next: tuple[Ending, ...] = ()
    gradual: bool = False


def release(
    rows: Iterable[dict[str, Any]], amounts: Callable[[dict[str, Any]], float], tres: str, need: float, moment: datetime,
    shares: Shares, viewer: Viewer, kin: Kin = "any",
) -> Release | None:  # fmt: skip
    """When ``need`` is free, of running ``rows`` that hold ``amounts`` of it. None if all of them do not hold that much.

    Each bound assumes that all jobs end at that end of their range, so the interval is wide rather than narrow.
    """
    ends = []
    for row in rows:
        amount = amounts(row)
        if amount > 0:
            ends.append((row, amount, *_ends(row, moment, shares)))
    if need <= 0 or sum(e[1] for e in ends) < need:
        return None
    ends.sort(key=lambda e: _late(e[3]))
    chosen, got = [], 0.0
    for entry in ends:
        chosen.append(entry)
        got += entry[1]
        if got >= need:
            break
    only = chosen[0][0] if len(chosen) == 1 else None
    named = only["job_id_text"] if only is not None and viewer.may_see(only["user"]) else None
    following = tuple(_ending(e, viewer) for e in chosen[:MOST_NEXT])
    return Release(
        tres, got, len(chosen), named, _reached(ends, 2, need), _reached(ends, 3, need), _reached(ends, 4, need),
        min(e[5] for e in chosen), kin, following,
    )  # fmt: skip


def minutes_release(
    rows: Iterable[dict[str, Any]], amounts: Callable[[dict[str, Any]], float], tres: str, need: float, moment: datetime,
    shares: Shares, viewer: Viewer, kin: Kin = "any",
) -> Release | None:  # fmt: skip
    """When ``need`` of the minutes still to run has gone: by the amount for each minute that a job runs, and all at its end.

    ``amounts`` is what a row holds (not times minutes). Nothing new is taken to start. None if a running job has no limit
    (its minutes do not count, so nothing is known), or all of them do not hold that much.
    """
    ends: list[tuple[dict[str, Any], float, Any, Any, Any, int]] = []
    for row in rows:
        amount = amounts(row)
        if amount <= 0:
            continue
        first, last, limit, like = _ends(row, moment, shares)
        if limit is None:
            return None
        ends.append((row, amount, first or moment, last or limit, limit, like))
    whole = sum(a * (limit - moment).total_seconds() / 60 for _r, a, _f, _l, limit, _n in ends)
    if need <= 0 or whole < need:
        return None

    def gone(seconds: float, column: Literal[2, 3, 4]) -> float:
        at = moment + timedelta(seconds=seconds)
        left = sum(e[1] * (e[4] - at).total_seconds() / 60 for e in ends if e[column] > at and e[4] > at)
        return float(whole - left)

    def reached(column: Literal[2, 3, 4]) -> datetime:
        low, high = 0.0, max((e[column] - moment).total_seconds() for e in ends) + 1.0
        while high - low > 1.0:
            middle = (low + high) / 2
            low, high = (low, middle) if gone(middle, column) >= need else (middle, high)
        return moment + timedelta(seconds=round(high))

    following = sorted(ends, key=lambda e: _late(e[3]))
    return Release(
        tres, need, len(ends), None, reached(2), reached(3), reached(4), min(e[5] for e in ends), kin,
        tuple(_ending(e, viewer) for e in following[:MOST_NEXT]), gradual=True,
    )  # fmt: skip


def _ending(entry: Any, viewer: Viewer) -> Ending:
    row, amount, first, last, limit = entry[:5]
    return Ending(row["job_id_text"] if viewer.may_see(row["user"]) else None, amount, first, last, limit)


def _late(value: datetime | None) -> float:
    return float("inf") if value is None else value.timestamp()


def _reached(ends: list[Any], column: int, need: float) -> datetime | None:
    got = 0.0
    for entry in sorted(ends, key=lambda e: _late(e[column])):
        got += entry[1]
        if got >= need:
            found: datetime | None = entry[column]
            return found
    return None


def _ends(row: dict[str, Any], moment: datetime, shares: Shares) -> tuple[datetime | None, datetime | None, datetime | None, int]:
    """(10 % bound, 90 % bound, by limit, like jobs) of one running job's end, given that it still runs."""
    limit = row["limit_s"]
    if not limit:
        return moment, None, None, 0
    ran = float(row["elapsed_s"] if row["elapsed_s"] is not None else (moment - row["start"]).total_seconds() if row["start"] else 0)
    by_limit = moment + timedelta(seconds=max(0.0, limit - ran))
    for place, name in ((0, row["user"]), (1, row["partition"])):
        like = sorted(s[2] for s in shares if name is not None and s[place] == name and s[2] * limit > ran)
        if len(like) >= LEAST_LIKE:
            low, high = like[int(0.1 * (len(like) - 1))], like[int(0.9 * (len(like) - 1) + 0.999)]
            return moment + timedelta(seconds=low * limit - ran), moment + timedelta(seconds=high * limit - ran), by_limit, len(like)
    return moment, by_limit, by_limit, 0
