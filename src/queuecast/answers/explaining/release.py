"""When what a limit or a full cluster holds comes free: from the limits of running jobs and how much of theirs like jobs used."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from queuecast.answers.viewer import Viewer
from queuecast.answers.why_queue import LEAST_LIKE

Shares = list[tuple[str | None, str | None, float]]


@dataclass(frozen=True)
class Release:
    """``amount`` (in ``tres``) comes free when ``jobs`` running jobs end: between ``earliest`` and ``latest`` in 8 of 10 cases (UTC).

    None: no bound is known. ``by_limit``: at the latest, by their time limits. ``job`` is named only if one job is enough
    and the viewer may see it. ``like``: ended jobs of the same user, else partition, that the times rest on; 0: on limits alone.
    """

    tres: str
    amount: float
    jobs: int
    job: str | None
    earliest: datetime | None
    latest: datetime | None
    by_limit: datetime | None
    like: int


def release(
    rows: Iterable[dict[str, Any]], amounts: Callable[[dict[str, Any]], float], tres: str, need: float, moment: datetime,
    shares: Shares, viewer: Viewer,
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
    return Release(
        tres, got, len(chosen), named, _reached(ends, 2, need), _reached(ends, 3, need), _reached(ends, 4, need),
        min(e[5] for e in chosen),
    )  # fmt: skip


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
