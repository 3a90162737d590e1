"""A job's priority in its parts, and what will move it. Source: priority_multifactor.shtml, sprio(1)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from queuecast.answers.explaining.history import numbers_of
from queuecast.errors import ParseError
from queuecast.i18n import N_, _
from queuecast.policy.recent import last_snapshot
from queuecast.slurmtext.durations import parse_typed_limit

if TYPE_CHECKING:
    from queuecast.answers.lookup import KnownJob
    from queuecast.policy.tables import Policy
    from queuecast.store.lake import Lake

NAMES = {
    "age": N_("age in the queue"), "fairshare": N_("fairshare"), "job_size": N_("job size"), "partition_factor": N_("partition"),
    "qos_factor": N_("QOS"), "assoc": N_("association"), "site": N_("site"), "tres": N_("resources asked for"), "nice": N_("nice"),
}  # fmt: skip
_WEIGHTS = {
    "age": "priorityweightage", "fairshare": "priorityweightfairshare", "job_size": "priorityweightjobsize",
    "partition_factor": "priorityweightpartition", "qos_factor": "priorityweightqos", "assoc": "priorityweightassoc",
}  # fmt: skip
FRESH = timedelta(hours=3)
AHEAD = timedelta(hours=6)


@dataclass(frozen=True)
class PriorityPart:
    """``points`` (nice is negative); ``most``: the weight, what it can reach (None: no bound is told)."""

    name: str
    points: int
    most: int | None

    @property
    def title(self) -> str:
        """In words."""
        return _(NAMES[self.name])


@dataclass(frozen=True)
class Priority:
    """As sprio told it at ``seen_at`` (UTC). Parts are rounded one by one, so the sum may differ from ``total`` by a few.

    ``outlook``: what will move it and when, as sentences. ``fairshare``: sshare's factor of the user in the account, 0 to 1.
    """

    seen_at: datetime
    partition: str | None
    total: int | None
    parts: tuple[PriorityPart, ...]
    fairshare: float | None
    outlook: tuple[str, ...]


def priority_of(lake: Lake, cluster: str, at: datetime, job: KnownJob, policy: Policy) -> Priority | None:
    """None if sprio was not read in the three hours before ``at``, or does not list the job (held, or not yet eligible)."""
    columns = ["job_id", "partition", "priority", *NAMES]
    rows, moment = last_snapshot(lake, "priorities", cluster, at, columns)
    if moment is None or at - moment > FRESH:
        return None
    numbers = numbers_of(job)  # sprio shows waiting tasks of an array under its number
    found = [r for r in rows.to_pylist() if r["job_id"] in numbers]
    mine = [r for r in found if r["job_id"] == job.job_id] or found
    if not mine:
        return None
    row = max(mine, key=lambda r: r["priority"] or 0)
    parts = [PriorityPart(n, -row[n] if n == "nice" else row[n], _weight(policy, n)) for n in NAMES if n != "tres" and row[n] is not None]
    tres = row["priority"] - sum(p.points for p in parts) if row["priority"] is not None and row["tres"] else None
    if tres is not None and tres > 0:  # sprio cuts the text of the TRES terms: what is left of the total is theirs
        parts.append(PriorityPart("tres", tres, None))
    parts = [p for p in parts if p.points or p.most]
    parts.sort(key=lambda p: -abs(p.points))
    share = _share(lake, cluster, at, job)
    return Priority(moment, row["partition"], row["priority"], tuple(parts), share, _outlook(policy, parts, share, moment))


def _weight(policy: Policy, name: str) -> int | None:
    text = policy.settings.get(_WEIGHTS.get(name, ""), "")
    return int(text) if text.isdigit() else None


def period(policy: Policy, key: str) -> float | None:
    """A setting that is a time, in seconds; None where it is not told."""
    text = policy.settings.get(key.casefold(), "").strip()
    try:
        seconds = parse_typed_limit(text).seconds if text else None
    except ParseError:
        return None
    return None if seconds is None else float(seconds)


def _share(lake: Lake, cluster: str, at: datetime, job: KnownJob) -> float | None:
    rows, moment = last_snapshot(lake, "shares", cluster, at, ["account", "user", "fairshare"])
    if moment is None:
        return None
    found = [r for r in rows.to_pylist() if r["user"] == job.user and r["account"] == job.request.account]
    return found[0]["fairshare"] if found else None


def _outlook(policy: Policy, parts: list[PriorityPart], share: float | None, moment: datetime) -> tuple[str, ...]:
    by_name: dict[str, Any] = {p.name: p for p in parts}
    out = []
    age, oldest = by_name.get("age"), period(policy, "PriorityMaxAge")
    if age is not None and age.most and oldest:
        if age.points >= age.most:
            out.append(_("Age has reached its most ({most}): waiting longer adds nothing.").format(most=age.most))
        else:
            left = (1 - age.points / age.most) * oldest
            if left <= AHEAD.total_seconds():
                text = _("Age adds {points} more and is at its most ({most}) in {hours} h; jobs that wait as long gain as much.")
            else:
                text = _("Age adds {points} in 6 h, until it is at {most} in {hours} h; jobs that wait as long gain as much.")
            adds = min(age.most - age.points, round(age.most * AHEAD.total_seconds() / oldest))
            out.append(text.format(points=adds, most=age.most, hours=max(1, round(left / 3600))))
    elif age is not None and age.most is None:
        out.append(_("How much age can add is not known: the settings of the cluster were not read."))
    fair, half = by_name.get("fairshare"), period(policy, "PriorityDecayHalfLife")
    if fair is not None and fair.most:
        if half:
            out.append(
                _(
                    "Fairshare gives {points} of {most}. Past use counts half after {days:g} days; it moves only relative to others' use."
                ).format(points=fair.points, most=fair.most, days=round(half / 86400, 1))
            )
        elif half == 0:
            out.append(_("Past use never fades here (PriorityDecayHalfLife=0); it is forgotten at a reset, if the site does one."))
        if share is None:
            out.append(_("Your place in the fairshare tree is not known: sshare was not read, or does not list you."))
    return tuple(out)
