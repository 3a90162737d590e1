"""Numbers, lengths of time and instants as people read them, in the current language."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from datetime import datetime, tzinfo

from queuecast.i18n import N_, _
from queuecast.render.words import safe

WEEKDAYS = (N_("Mon"), N_("Tue"), N_("Wed"), N_("Thu"), N_("Fri"), N_("Sat"), N_("Sun"))
MONTHS = (
    N_("Jan"),
    N_("Feb"),
    N_("Mar"),
    N_("Apr"),
    N_("May"),
    N_("Jun"),
    N_("Jul"),
    N_("Aug"),
    N_("Sep"),
    N_("Oct"),
    N_("Nov"),
    N_("Dec"),
)

SAME = {
    "partition": N_("partition"),
    "qos": N_("QOS"),
    "account": N_("account"),
    "gpu_type": N_("GPU type"),
    "size": N_("size class"),
    "limit": N_("time-limit class"),
    "gpu": N_("with or without GPUs"),
}
"""The dimensions of ``Basis.same``."""

WHO = {"user": N_("you"), "admin": N_("an administrator")}
"""Who can act on a reason."""

_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
_JOINER = "\u2060"


def span(seconds: float | None) -> str:
    """A length of time with two units at most; "unknown" for None, "beyond what history reaches" for infinity."""
    if seconds is None or math.isnan(seconds):
        return _("unknown")
    if math.isinf(seconds):
        return _("longer than history reaches")
    if seconds < 60:
        return _("under 1 min")
    minutes = round(seconds / 60)
    if minutes < 60:
        return _("{n} min").format(n=minutes)
    if minutes < 48 * 60:
        hours, rest = divmod(minutes, 60)
        if hours < 10 and rest:
            return _("{h} h {m} min").format(h=hours, m=rest)
        return _("{n} h").format(n=round(minutes / 60))
    days, hours = divmod(round(minutes / 60), 24)
    if days < 10 and hours:
        return _("{d} d {h} h").format(d=days, h=hours)
    return _("{n} d").format(n=round(minutes / 1440))


def percent(share: float | None) -> str:
    """A share; never quite 0 or 100 %, because that is not known."""
    if share is None or math.isnan(share):
        return _("unknown")
    if share < 0.01:
        return "< 1 %"
    if share > 0.99:
        return "> 99 %"
    return f"{share * 100:.0f} %"


def clock_time(value: datetime, zone: tzinfo, now: datetime) -> str:
    """An instant in the reader's zone: the time of day, with the day unless it is near ``now``."""
    local = value.astimezone(zone)
    return _("{day} {time}").format(day=day_name(local, now.astimezone(zone)), time=f"{local:%H:%M}")


def day_name(local: datetime, today: datetime) -> str:
    """``today``, ``tomorrow``, ``yesterday`` or ``Wed 10 Jun``, with the year if it is another; both in the reader's zone."""
    near = {0: _("today"), 1: _("tomorrow"), -1: _("yesterday")}.get((local.date() - today.date()).days)
    if near is not None:
        return near
    day = short_day(local)
    return day if local.year == today.year else _("{day} {year}").format(day=day, year=local.year)


def short_day(local: datetime) -> str:
    """``Wed 10 Jun``."""
    weekday, month = _(WEEKDAYS[local.weekday()]), _(MONTHS[local.month - 1])
    return _("{weekday} {day} {month}").format(weekday=weekday, day=local.day, month=month)


def day_month(local: datetime) -> str:
    """``10 Jun``."""
    return _("{day} {month}").format(day=local.day, month=_(MONTHS[local.month - 1]))


def between(low: datetime, high: datetime, zone: tzinfo, now: datetime) -> str:
    """Two instants; the day is said once if it is the same."""
    first, last, today = low.astimezone(zone), high.astimezone(zone), now.astimezone(zone)
    if first.date() == last.date():
        return _("between {low} and {high} {day}").format(low=f"{first:%H:%M}", high=f"{last:%H:%M}", day=day_name(first, today))
    return _("between {low} and {high}").format(low=clock_time(low, zone, now), high=clock_time(high, zone, now))


def listed(words: Iterable[str]) -> str:
    """``a, b and c``."""
    items = list(words)
    if len(items) < 2:
        return "".join(items)
    return _("{first} and {last}").format(first=_(", ").join(items[:-1]), last=items[-1])


def same_words(dims: Iterable[str]) -> str:
    """What the like jobs have in common; "" if nothing but the cluster."""
    return listed(_(SAME.get(d, d)) for d in dims)


def who_words(who: Sequence[str]) -> str:
    """Who can act."""
    named = [_(WHO[w]) for w in who if w in WHO]
    if "wait" not in who:
        return _(" or ").join(named) or _("nobody: the wait is over")
    return _("{who}, or just wait").format(who=_(" or ").join(named)) if named else _("nobody has to; just wait")


def as_markdown(text: str) -> str:
    """Text that Markdown shows as it stands: no emphasis, links, HTML, mathematics, icons or colours."""
    # Icons (:name:) and bare addresses are found after escapes are gone, so their marks are parted from what follows.
    parted = re.sub(r"([:@](?=[^\d\s])|www\.(?=\S))", rf"\1{_JOINER}", cell(text), flags=re.IGNORECASE)
    return _PUNCTUATION.sub(r"\\\1", parted)


def cell(text: str) -> str:
    """Text of users for a cell, a picture or a list: one line, what is not seen (control and direction marks) written out."""
    return safe(" ".join(text.split()))
