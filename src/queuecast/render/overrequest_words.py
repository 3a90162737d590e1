"""Amounts of a proposal in a person's words, for the terminal and for messages."""

from __future__ import annotations

import math

from queuecast.answers.rightsizing.answer import Change, Proposal
from queuecast.i18n import _
from queuecast.render.words import safe
from queuecast.slurmtext.durations import format_limit

GIB = 1 << 30
LONG_NAME = 60


def amount(value: float | str, unit: str) -> str:
    """``53 GiB``, ``4.5 GiB``, ``08:00:00``, ``12``; names cleaned for a terminal."""
    if isinstance(value, str):
        return safe(value)
    if unit == "bytes":
        gib = value / GIB
        return _("{n:,.0f} GiB").format(n=gib) if gib >= 10 or gib == int(gib) else _("{n:.2g} GiB").format(n=gib)
    if unit == "s":
        return format_limit(math.ceil(value))
    return f"{value:,.0f}" if value == int(value) or value >= 10 else f"{value:.1f}"


def short(name: str | None, most: int = LONG_NAME) -> str:
    """A name of users, cleaned and cut."""
    text = safe(name) if name else "–"
    return text if len(text) <= most else text[: most - 1] + "…"


def most_used(change: Change) -> str:
    """The highest that was used; a dash where it is no amount."""
    return _used(change, 2)


def usual_used(change: Change) -> str:
    """What 19 of 20 did not exceed."""
    return _used(change, 1)


def held(change: Change) -> bool:
    """Whether none that was seen used more than is proposed."""
    return change.evidence.used is None or isinstance(change.proposed, str) or change.evidence.used[2] <= change.proposed


def _used(change: Change, place: int) -> str:
    if change.evidence.used is None:
        return "–"
    unit = {"gpu_type": "bytes", "mig": "bytes", "no_gpu": "GPUs"}.get(change.what, change.unit)
    return amount(change.evidence.used[place], unit)


def asked_of(change: Change) -> str:
    """What is asked for now."""
    return amount(change.asked, change.unit)


def proposed_of(change: Change) -> str:
    """What is proposed."""
    return amount(change.proposed, change.unit)


def share(value: float) -> str:
    """A small share: ``1 %``, ``0.5 %``."""
    return f"{100 * value:.2g} %"


def risk_of(proposal: Proposal) -> float:
    """The highest risk among the changes."""
    return max(c.evidence.risk for c in proposal.changes)
