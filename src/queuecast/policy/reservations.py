"""Reservations that were set up at a moment, as last read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from queuecast.errors import ParseError
from queuecast.policy.readings import latest_reading
from queuecast.slurmtext.hostlist import expand_hostlist

if TYPE_CHECKING:
    from queuecast.store.lake import Lake

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Reservation:
    """Nodes kept for ``users`` or ``accounts`` (case-folded; both empty: nobody named) from ``start`` to ``end`` (UTC, None: not told)."""

    name: str
    start: datetime | None
    end: datetime | None
    flags: frozenset[str]
    nodes: frozenset[str]
    partition: str | None
    users: frozenset[str]
    accounts: frozenset[str]

    def covers(self, since: datetime, until: datetime) -> bool:
        """Whether it holds its nodes at some moment between; an unknown bound counts as open."""
        return (self.start is None or self.start < until) and (self.end is None or self.end > since)

    def admits(self, user: str | None, account: str | None) -> bool:
        """Whether a job of that user and account may ask for it."""
        if any(name.startswith("-") for name in self.users | self.accounts):
            return f"-{(user or '').casefold()}" not in self.users and f"-{(account or '').casefold()}" not in self.accounts
        by_user = not self.users or (user or "").casefold() in self.users
        by_account = not self.accounts or (account or "").casefold() in self.accounts
        return by_user and by_account


def reservations_at(lake: Lake, cluster: str, at: datetime) -> tuple[Reservation, ...]:
    """Those of the last reading that have not ended at ``at``."""
    rows = latest_reading(lake, "reservations", cluster, at)
    starts, ends = (_times(rows, name) for name in ("start", "end"))
    out = []
    for row, start, end in zip(rows.drop_columns(["start", "end"]).to_pylist(), starts, ends, strict=True):
        if end is None or end > at:
            out.append(_reservation(row, start, end))
    return tuple(out)


def _times(rows: Any, name: str) -> list[datetime | None]:
    import pyarrow as pa

    micros = rows[name].cast(pa.int64()).to_pylist()  # a time as a Python value would import pandas
    return [None if m is None else _EPOCH + timedelta(microseconds=m) for m in micros]


def _reservation(row: dict[str, Any], start: datetime | None, end: datetime | None) -> Reservation:
    try:
        nodes = expand_hostlist(row["node_list"] or "") or ()
    except ParseError:
        nodes = ()
    return Reservation(
        row["reservation"],
        start,
        end,
        _set(row["flags"], upper=True),
        frozenset(nodes),
        row["partition"],
        _set(row["users"]),
        _set(row["accounts"]),
    )


def _set(text: str | None, *, upper: bool = False) -> frozenset[str]:
    words = (w.strip() for w in (text or "").split(","))
    return frozenset((w.upper() if upper else w.casefold()) for w in words if w)
