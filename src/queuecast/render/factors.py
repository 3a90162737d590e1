"""What moved an answer, in plain words with units."""

from __future__ import annotations

from queuecast.answers.wait import Factor
from queuecast.i18n import N_, _
from queuecast.render.words import span

TOPICS = {
    "queue": N_("work waiting here"),
    "ahead": N_("work ahead of it"),
    "running": N_("work running here"),
    "freed": N_("what time limits free within 4 h"),
    "capacity": N_("what stands idle"),
    "starts": N_("starts in the last 24 h"),
    "waits": N_("what jobs waited here lately"),
    "usage": N_("the account's use of late"),
    "burst": N_("jobs sent at once"),
    "request": N_("size and time limit"),
    "time": N_("hour and weekday"),
    "waited": N_("how long it has waited"),
    "reason": N_("the reason that Slurm gives"),
    "priority": N_("its priority"),
    "estimate": N_("Slurm's own estimate"),
    "fairshare": N_("fairshare"),
    "nodes": N_("free nodes"),
    "partition": N_("the partition's size"),
    "reservations": N_("reservations ahead"),
}


def factor_text(factor: Factor) -> str:
    """The topic, this job's value and the usual one."""
    topic = _(TOPICS.get(factor.topic, factor.topic))
    if factor.value is None:
        return topic
    value = _amount(factor.value, factor.unit)
    if factor.usual is None:
        return _("{topic}: {value}").format(topic=topic, value=value)
    return _("{topic}: {value}, usually {usual}").format(topic=topic, value=value, usual=_amount(factor.usual, factor.unit))


def factor_part(factor: Factor) -> str:
    """Its part in the median wait, with a sign."""
    return ("+" if factor.seconds > 0 else "−") + span(abs(factor.seconds))


def _amount(value: float, unit: str) -> str:
    if unit == "s":
        return span(value)
    units = {
        "core-hours": _("core-hours"),
        "GPU-hours": _("GPU-hours"),
        "CPUs": _("CPUs"),
        "GPUs": _("GPUs"),
        "jobs": _("jobs"),
        "nodes": _("nodes"),
        "h": _("h"),
    }
    number = f"{value:,.2f}" if 0 < abs(value) < 1 else f"{value:,.0f}"
    return f"{number} {units[unit]}" if unit in units else number
