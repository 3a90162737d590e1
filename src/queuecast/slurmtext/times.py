"""Moments: Slurm prints the naive local time of the process that asked, or epoch seconds.

So a zone belongs to every capture. In the hour that a clock change repeats, a run time tells which of the
two instants is meant; without one the first is taken and flagged.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, Literal, NamedTuple
from zoneinfo import ZoneInfo

from queuecast.errors import ConfigError, ParseError

TimeFlag = Literal["", "ambiguous_hour", "nonexistent_hour"]

_ISO = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})")
_EPOCH = re.compile(r"[0-9]{1,12}")
_NO_TIME = frozenset({"", "unknown", "none", "n/a", "(null)", "infinite"})
_NO_EPOCH = frozenset({0, 4_294_967_294, 4_294_967_295})  # unset, NO_VAL, INFINITE
_OLDEST_EPOCH: Final = 100_000_000  # 1973: smaller numbers are counts or ids that slipped into the column
_FITS: Final = timedelta(seconds=2)  # both stamps are cut to whole seconds


class ParsedTime(NamedTuple):
    """``value`` is aware UTC, or None for no time. ``flag`` says that the local text did not name one instant."""

    value: datetime | None
    flag: TimeFlag = ""


NO_TIME: Final = ParsedTime(None)


@lru_cache(maxsize=64)
def zone_of(name: str) -> ZoneInfo:
    """The zone of an IANA name. Raises ConfigError if there is none."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ConfigError(f"unknown time zone {name[:60]!r}", "Use an IANA name such as Europe/Berlin or UTC.") from error


def parse_time(text: str, zone: str = "UTC", *, elapsed_from: datetime | None = None,
               elapsed_s: float | None = None) -> ParsedTime:
    """One printed time.

    ``text``: ``YYYY-MM-DDTHH:MM:SS`` local to ``zone``, epoch seconds, or one of the spellings of no time
    (``Unknown``, ``None``, ``N/A``, ``NONE``, blank). In the repeated hour of a clock change the instant that
    lies ``elapsed_s`` seconds after ``elapsed_from`` is taken (negative: before); if neither does, the first one
    with the flag ``ambiguous_hour``. A local time that a clock change skips is read with the offset before the
    gap and flagged ``nonexistent_hour``. Raises ParseError for other text, ConfigError for an unknown zone.
    """
    m = _ISO.fullmatch(text)
    if m is None:
        return _other(text, zone, elapsed_from, elapsed_s)
    year, month, day, hour, minute, second = map(int, m.groups())
    try:
        as_utc = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        if zone == "UTC":
            return ParsedTime(as_utc)
        return _local(as_utc.replace(tzinfo=None), zone_of(zone), elapsed_from, elapsed_s)
    except (ValueError, OverflowError):
        raise ParseError("not a time", text) from None


def _other(text: str, zone: str, elapsed_from: datetime | None, elapsed_s: float | None) -> ParsedTime:
    stripped = text.strip()
    if stripped.lower() in _NO_TIME:
        return NO_TIME
    if _EPOCH.fullmatch(stripped):
        epoch = int(stripped)
        if epoch in _NO_EPOCH:
            return NO_TIME
        if epoch < _OLDEST_EPOCH:
            raise ParseError("not a time", text)
        try:
            return ParsedTime(datetime.fromtimestamp(epoch, UTC))
        except (ValueError, OverflowError, OSError):
            raise ParseError("not a time", text) from None
    if stripped != text:
        return parse_time(stripped, zone, elapsed_from=elapsed_from, elapsed_s=elapsed_s)
    raise ParseError("not a time", text)


def _local(naive: datetime, zone: ZoneInfo, elapsed_from: datetime | None, elapsed_s: float | None) -> ParsedTime:
    """The instant of a local time. Fold 0 carries the offset before a change, fold 1 the one after it."""
    before = naive.replace(tzinfo=zone).utcoffset() or timedelta()
    after = naive.replace(tzinfo=zone, fold=1).utcoffset() or timedelta()
    first = (naive - before).replace(tzinfo=UTC)
    if before == after:
        return ParsedTime(first)
    if before < after:
        return ParsedTime(first, "nonexistent_hour")
    if elapsed_from is not None and elapsed_s is not None:
        meant = elapsed_from + timedelta(seconds=elapsed_s)
        candidates = (first, (naive - after).replace(tzinfo=UTC))
        nearest = min(candidates, key=lambda c: abs(c - meant))
        if abs(nearest - meant) <= _FITS:
            return ParsedTime(nearest)
    return ParsedTime(first, "ambiguous_hour")


def format_time(value: datetime, zone: str = "UTC") -> str:
    """Local time of ``zone`` as Slurm prints it, whole seconds. Raises ValueError for a naive datetime."""
    if value.tzinfo is None:
        raise ValueError("a time without a zone")
    return value.astimezone(zone_of(zone)).strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
