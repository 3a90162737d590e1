"""Durations: what Slurm prints (``1-02:03:04``), and the other grammar that users type (``-t 30``).

The two directions differ: printed text without a dash is anchored on seconds, typed text without a dash on
minutes. Hence one parser for each. All results are seconds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from queuecast.errors import ParseError

LimitKind = Literal["limit", "unlimited", "partition", "unknown"]

DAY: Final = 86_400
_NO_VAL: Final = 4_294_967_294  # Slurm's "not set" of 32 bits
_INFINITE: Final = 4_294_967_295

_HMS = re.compile(r"([0-9]{1,9}):([0-5][0-9]):([0-5][0-9])")
_PRINTED = re.compile(r"(?:([0-9]{1,9})-)?(?:([0-9]{1,9}):)?([0-9]{1,2}):([0-9]{2})(?:\.([0-9]{1,9}))?")
_SECONDS = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?")
_TYPED = re.compile(r"(?:([0-9]{1,9})-([0-9]{1,9})(?::([0-9]{1,9})(?::([0-9]{1,9}))?)?"
                    r"|([0-9]{1,9})(?::([0-9]{1,9})(?::([0-9]{1,9}))?)?)")
_DIGITS = re.compile(r"[0-9]{1,15}")

_NO_DURATION = frozenset({"", "n/a", "invalid", "unknown", "none", "(null)", "not_set", "unlimited"})
_LIMIT_WORDS: Final[dict[str, LimitKind]] = {
    "unlimited": "unlimited", "infinite": "unlimited", "-1": "unlimited",
    "partition_limit": "partition",
    "": "unknown", "n/a": "unknown", "not_set": "unknown", "none": "unknown", "invalid": "unknown",
    "unknown": "unknown", "(null)": "unknown",
}


@dataclass(frozen=True, slots=True)
class Limit:
    """A time limit. ``seconds`` is set only where ``kind`` is ``limit``.

    ``unlimited``: no limit. ``partition``: the partition's maximum would have held, how long is not told
    (jobs that ended before they were looked at). ``unknown``: nothing printed.
    """

    kind: LimitKind
    seconds: int | None = None


UNLIMITED: Final = Limit("unlimited")
UNKNOWN: Final = Limit("unknown")


def _printed(text: str) -> float | None:
    """Seconds of ``[D-][HH:]MM:SS[.mmm]``; None if the text has another shape or a field is out of range."""
    m = _PRINTED.fullmatch(text)
    if m is None:
        return None
    days, hours, minutes, seconds, fraction = m.groups()
    if int(minutes) > 59 or int(seconds) > 59:
        return None
    if days is not None and (hours is None or int(hours) > 23):
        return None
    total: float = int(days or 0) * DAY + int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds)
    if fraction:
        total += int(fraction) / 10 ** len(fraction)
    return total


def parse_elapsed(text: str) -> float | None:
    """Seconds of a printed duration: Elapsed, Suspended, TotalCPU, squeue's TIME.

    Shapes: ``MM:SS``, ``MM:SS.mmm`` (a fraction appears only below one hour), ``H:MM:SS``, ``D-HH:MM:SS`` with
    any number of days, or a bare number of seconds (the raw fields). None: nothing known (blank, ``N/A``,
    ``INVALID``, ``Unknown``). Raises ParseError for anything else.
    """
    m = _HMS.fullmatch(text)
    if m is not None:
        return float(int(m[1]) * 3600 + int(m[2]) * 60 + int(m[3]))
    text = text.strip()
    if text.lower() in _NO_DURATION:
        return None
    value = _printed(text)
    if value is not None:
        return float(value)
    if _SECONDS.fullmatch(text):
        return float(text)
    raise ParseError("not a duration", text)


def parse_limit(text: str) -> Limit:
    """A printed limit: sacct Timelimit, squeue ``%l`` and ``%L``, sinfo ``%l``, scontrol TimeLimit, sacctmgr MaxWall.

    Raises ParseError for a bare number, since printed limits never are one and its unit would be a guess.
    """
    m = _HMS.fullmatch(text)
    if m is not None:
        return Limit("limit", int(m[1]) * 3600 + int(m[2]) * 60 + int(m[3]))
    text = text.strip()
    kind = _LIMIT_WORDS.get(text.lower())
    if kind is not None:
        return Limit(kind)
    value = _printed(text)
    if value is None:
        raise ParseError("not a time limit", text)
    return Limit("limit", int(value))


def parse_limit_minutes(text: str) -> Limit:
    """TimelimitRaw: whole minutes, or the same words as the printed limit. Raises ParseError otherwise."""
    text = text.strip()
    if _DIGITS.fullmatch(text):
        minutes = int(text)
        if minutes == _INFINITE:
            return UNLIMITED
        return UNKNOWN if minutes == _NO_VAL else Limit("limit", minutes * 60)
    kind = _LIMIT_WORDS.get(text.lower())
    if kind is None:
        raise ParseError("not a limit in minutes", text)
    return Limit(kind)


def parse_typed_seconds(text: str) -> int | None:
    """Seconds of what a user types after ``-t``, before rounding; None is unlimited.

    Without a dash: ``minutes``, ``minutes:seconds``, ``hours:minutes:seconds``. With a dash the next field is
    hours: ``days-hours[:minutes[:seconds]]``. Words: ``INFINITE``, ``UNLIMITED``, ``-1``. Fields are not bounded
    (``90:00`` is an hour and a half). Source: sbatch(1) ``--time``. Raises ParseError otherwise.
    """
    text = text.strip()
    if text.lower() in ("infinite", "unlimited", "-1"):
        return None
    m = _TYPED.fullmatch(text)
    if m is None:
        raise ParseError("not a time limit as -t takes it", text)
    days, hours, minutes, seconds, first, second, third = m.groups()
    if days is not None:
        return int(days) * DAY + int(hours) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
    if third is not None:
        return int(first) * 3600 + int(second) * 60 + int(third)
    return int(first) * 60 + int(second or 0)


def parse_typed_limit(text: str) -> Limit:
    """The limit that Slurm makes of what a user types: rounded up to whole minutes; 0 asks for no limit.

    Raises ParseError for text that sbatch would refuse.
    """
    seconds = parse_typed_seconds(text)
    if not seconds:
        return UNLIMITED
    return Limit("limit", -(-seconds // 60) * 60)


def format_limit(seconds: int) -> str:
    """``HH:MM:SS``, or ``D-HH:MM:SS`` from one day on, as sacct prints limits. Raises ValueError below zero."""
    if seconds < 0:
        raise ValueError("a limit cannot be negative")
    days, rest = divmod(seconds, DAY)
    clock = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"{days}-{clock}" if days else clock


def format_elapsed(seconds: float) -> str:
    """As sacct prints a duration: ``MM:SS.mmm`` if below one hour with milliseconds, else as :func:`format_limit`."""
    millis = round(seconds * 1000)
    whole, fraction = divmod(millis, 1000)
    if fraction and whole < 3600:
        return f"{whole // 60:02d}:{whole % 60:02d}.{fraction:03d}"
    return format_limit(whole)
