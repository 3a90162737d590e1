"""The story of a job, from accounting (exact times) and from snapshots (between two of them, a change has no exact time)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from queuecast.errors import ParseError
from queuecast.i18n import _
from queuecast.reasons import explain_reason
from queuecast.slurmtext.hostlist import expand_hostlist
from queuecast.slurmtext.reasons import parse_reason
from queuecast.store.files import instant

if TYPE_CHECKING:
    from queuecast.answers.lookup import KnownJob
    from queuecast.store.lake import Lake

Kind = Literal["submitted", "eligible", "reason", "estimate", "started", "requeued", "ended", "node"]
MOVED_S = 600.0
"""Estimates that move by less are the same estimate."""
_BACK = timedelta(days=14)
_AFTER = timedelta(hours=1)
"""A snapshot may still show a job for a while after its end."""


@dataclass(frozen=True)
class Spell:
    """A stretch of snapshots with one reason: first and last seen (UTC). What lies between snapshots is not known."""

    reason: str
    title: str
    first: datetime
    last: datetime
    snapshots: int


@dataclass(frozen=True)
class Event:
    """Something that happened at ``at`` (UTC). ``after``: only seen in a snapshot at ``at``; it happened later than this one
    (None with ``exact`` false: no snapshot before). ``until``: a state that lasted, as far as it was seen. ``text`` may
    hold words of Slurm's users and administrators: clean it before showing. ``value``: of an estimate, the start expected (UTC)."""

    kind: Kind
    at: datetime
    text: str
    exact: bool = True
    after: datetime | None = None
    until: datetime | None = None
    value: datetime | None = None


def spells(rows: list[dict[str, Any]]) -> tuple[Spell, ...]:
    """Reasons in the order of the snapshots. A snapshot without one (not looked at in that cycle) ends no stretch."""
    out: list[Spell] = []
    for row in rows:
        reason = parse_reason(row["reason_text"] or row["reason"] or "")
        when = row["observed_at"]
        if out and (reason is None or reason.code == out[-1].reason):
            last = out[-1]
            out[-1] = Spell(last.reason, last.title, last.first, when, last.snapshots + 1)
        elif reason is not None:
            out.append(Spell(reason.code, explain_reason(reason).title, when, when, 1))
    return tuple(out)


def history(lake: Lake, cluster: str, job: KnownJob, at: datetime) -> tuple[tuple[Spell, ...], tuple[Event, ...]]:
    """Stretches of reasons of this attempt, and all events of all attempts in the order of time; nothing later than ``at``."""
    tries = _attempts(lake, cluster, job, at)
    first = min((t["submit"] for t in tries if t["submit"]), default=job.submit) or at - _BACK
    since = job.submit or at - _BACK
    until = _over(job, tries, at)
    rows = lake.read(
        "queue",
        ["observed_at", "job_id", "job_id_text", "array_tasks", "state", "reason", "reason_text"],
        cluster=cluster, since=min(first, since), until=until,
    )  # fmt: skip
    seen = rows["observed_at"]
    rows = rows.filter(pc.and_(pc.less_equal(seen, instant(at)), pc.greater_equal(seen, instant(min(first, since)))))
    moments = sorted(pc.unique(rows["observed_at"]).to_pylist())
    waiting = _of_record(rows.filter(pc.fill_null(pc.equal(rows["state"], "PENDING"), False)), job).sort_by("observed_at").to_pylist()
    waiting = [r for r in waiting if not _runs(r, tries)]
    now = spells([r for r in waiting if r["observed_at"] >= since])
    events = [e for t in tries for e in _of_attempt(t, t is tries[-1], at)] or _of_job(job)
    for spell in spells(waiting):
        before = max((m for m in moments if m < spell.first), default=None)
        text = f"{spell.title} ({spell.reason})"
        events.append(Event("reason", spell.first, text, False, before, spell.last))
    events += _estimates(lake, cluster, job, tries, since, until)
    events += [e for t in tries for e in _nodes(lake, cluster, t, at)]
    return now, tuple(sorted(events, key=lambda e: e.at))


def _over(job: KnownJob, tries: list[dict[str, Any]], at: datetime) -> datetime:
    """Snapshots after that moment say nothing more of it: it has ended. No later than ``at``."""
    now = at + timedelta(microseconds=1)
    if job.end is None:
        return now
    ends: list[datetime] = [t["end"] for t in tries if t["end"] is not None and t["end"] <= at]
    return min(now, max([job.end, *ends]) + _AFTER)


def _of_record(rows: pa.Table, job: KnownJob) -> pa.Table:
    """The job's own rows, by text (waiting tasks of an array share a number, and get their own at the start), and the record
    of an array's tasks not yet parted."""
    whole = pc.and_(
        pc.is_in(rows["job_id"], value_set=pa.array(numbers_of(job), rows.schema.field("job_id").type)), pc.greater(rows["array_tasks"], 1)
    )
    return rows.filter(pc.or_(pc.fill_null(pc.equal(rows["job_id_text"], job.text), False), pc.fill_null(whole, False)))


def numbers_of(job: KnownJob) -> list[int]:
    """The numbers under which it may be listed: its own, and its array's."""
    array = job.text.partition("_")[0]
    return [job.job_id, *([int(array)] if "_" in job.text and array.isdigit() else [])]


def _attempts(lake: Lake, cluster: str, job: KnownJob, at: datetime) -> list[dict[str, Any]]:
    """Rows of accounting with that id: a requeue leaves a row behind and begins another."""
    columns = [
        "job_id",
        "job_id_text",
        "array_tasks",
        "submit",
        "eligible",
        "start",
        "end",
        "state",
        "node_list",
        "restarts",
        "observed_at",
    ]
    last = (job.submit or at) + timedelta(microseconds=1)  # the latest attempt by then
    rows = lake.read("jobs", columns, cluster=cluster, since=last - timedelta(days=62), until=last)
    rows = rows.filter(pc.less_equal(rows["submit"], instant(at)))
    found: list[dict[str, Any]] = _of_record(rows, job).sort_by("submit").to_pylist()
    return found


def _of_attempt(row: dict[str, Any], last: bool, at: datetime) -> list[Event]:
    out = [Event("submitted", row["submit"], _("submitted"))]
    if row["eligible"] is not None and row["eligible"] <= at:
        out.append(Event("eligible", row["eligible"], _("eligible: it may start from here on")))
    if row["start"] is not None and row["start"] <= at:
        out.append(Event("started", row["start"], _("started")))
    if row["end"] is not None and row["end"] <= at:
        state = row["state"] or ""
        if last:
            out.append(Event("ended", row["end"], _("ended: {state}").format(state=state.lower())))
        else:
            out.append(
                Event("requeued", row["end"], _("this attempt ended as {state} and the job was queued again").format(state=state.lower()))
            )
    return out


def _of_job(job: KnownJob) -> list[Event]:
    found = [
        ("submitted", job.submit, _("submitted")),
        ("eligible", job.eligible, _("eligible: it may start from here on")),
        ("started", job.start, _("started")),
        ("ended", job.end, _("ended")),
    ]
    return [Event(kind, when, text) for kind, when, text in found if when is not None]  # type: ignore[arg-type]  # the kinds above


def _runs(row: dict[str, Any], tries: list[dict[str, Any]]) -> bool:
    """Whether a record of a whole array was seen while this task of it ran or after it had ended: it does not speak of it then."""
    if row["array_tasks"] <= 1 or not tries:
        return False
    begun = [t for t in tries if t["start"] is not None and t["start"] <= row["observed_at"]]
    queued = [t for t in tries if t["submit"] is not None and t["submit"] <= row["observed_at"]]
    return bool(begun) and bool(queued) and begun[-1] is queued[-1]


def _estimates(lake: Lake, cluster: str, job: KnownJob, tries: list[dict[str, Any]], since: datetime, until: datetime) -> list[Event]:
    rows = lake.read(
        "estimates", ["observed_at", "job_id", "job_id_text", "array_tasks", "start_estimate"], cluster=cluster, since=since, until=until
    )
    rows = _of_record(rows.filter(pc.less(rows["observed_at"], instant(until))), job)
    rows = rows.filter(pc.and_(pc.is_valid(rows["start_estimate"]), pc.greater_equal(rows["observed_at"], instant(since))))
    out: list[Event] = []
    told: datetime | None = None
    before: datetime | None = None
    for row in rows.sort_by("observed_at").to_pylist():
        value = row["start_estimate"]
        if _runs(row, tries):
            continue
        if told is None or abs((value - told).total_seconds()) >= MOVED_S:
            text = _("Slurm's estimate of the start: {time}") if told is None else _("Slurm's estimate moved to {time}")
            out.append(Event("estimate", row["observed_at"], text.format(time=f"{value:%Y-%m-%d %H:%MZ}"), False, before, None, value))
            told = value
        before = row["observed_at"]
    return out


def _nodes(lake: Lake, cluster: str, row: dict[str, Any], at: datetime) -> list[Event]:
    """States of the nodes that the attempt ran on, begun while it ran."""
    start, end = row["start"], row["end"] if row["end"] is not None and row["end"] <= at else at
    if start is None or start > at or not row["node_list"]:
        return []
    try:
        names = expand_hostlist(row["node_list"]) or ()
    except ParseError:
        return []
    rows = lake.read("events", ["node", "start", "state", "reason"], cluster=cluster, since=start, until=end + timedelta(microseconds=1))
    rows = rows.filter(pc.is_in(rows["node"], value_set=pa.array(list(names), pa.string())))
    return [
        Event("node", r["start"], _("node {node}: {state} ({reason})").format(node=r["node"], state=r["state"], reason=r["reason"] or ""))
        for r in rows.to_pylist()
        if r["start"] is not None and start <= r["start"] <= end
    ]
