"""Moments, lengths of time and hostile text in a person's words."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from queuecast.i18n import _


def span(seconds: float | None) -> str:
    """A length of time with two units at most: ``3 h 20 min``. Unknown or infinite is a dash."""
    if seconds is None or math.isinf(seconds) or math.isnan(seconds):
        return "–"
    seconds = max(0.0, seconds)
    if seconds < 60:
        return _("under 1 min")
    minutes = round(seconds / 60)
    if minutes < 60:
        return _("{n} min").format(n=minutes)
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return _("{h} h {m} min").format(h=hours, m=minutes) if minutes and hours < 10 else _("{h} h").format(h=hours + (minutes >= 30))
    days, hours = divmod(hours, 24)
    return _("{d} d {h} h").format(d=days, h=hours) if hours and days < 10 else _("{d} d").format(d=days)


def moment(value: datetime | None, now: datetime, zone: str) -> str:
    """``today 16:10``, ``tomorrow 03:20``, ``Wed 10 Jun 14:00`` in the zone; unknown is a dash."""
    if value is None:
        return "–"
    local, today = value.astimezone(ZoneInfo(zone)), now.astimezone(ZoneInfo(zone)).date()
    days = (local.date() - today).days
    clock = local.strftime("%H:%M")
    if days == 0:
        return _("today {clock}").format(clock=clock)
    if days == 1:
        return _("tomorrow {clock}").format(clock=clock)
    if days == -1:
        return _("yesterday {clock}").format(clock=clock)
    weekday = (_("Mon"), _("Tue"), _("Wed"), _("Thu"), _("Fri"), _("Sat"), _("Sun"))[local.weekday()]
    month = (_("Jan"), _("Feb"), _("Mar"), _("Apr"), _("May"), _("Jun"), _("Jul"), _("Aug"), _("Sep"), _("Oct"), _("Nov"), _("Dec"))[
        local.month - 1
    ]
    year = f" {local.year}" if abs(days) > 300 else ""
    return _("{weekday} {day} {month} {clock}").format(weekday=weekday, day=local.day, month=month, clock=clock) + year


def percent(share: float | None) -> str:
    """A probability without false precision: never 0 % or 100 %."""
    if share is None:
        return "–"
    value = round(share * 100)
    if value == 0:
        return "<1 %"
    return ">99 %" if value == 100 else f"{value} %"


def safe(text: str | None) -> str:
    """Text of users for a terminal: control characters (ESC among them) are shown as ``\\x1b``."""
    if text is None:
        return "–"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def wrapped(text: str, width: int, indent: int) -> list[str]:
    """Lines of at most ``width`` columns, all but the first indented."""
    import textwrap

    return textwrap.wrap(text, max(20, width), subsequent_indent=" " * indent) or [""]


def shift(at: datetime, seconds: float) -> datetime | None:
    """``at`` plus seconds; None if infinite."""
    return None if math.isinf(seconds) else at + timedelta(seconds=seconds)
