"""Why does this job wait? Slurm's reason in plain words, and how long it has held."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from queuecast.answers.lookup import KnownJob, find_job
from queuecast.answers.viewer import Viewer
from queuecast.answers.wait import iso
from queuecast.reasons import ReasonInfo, explain_reason
from queuecast.slurmtext.reasons import parse_reason
from queuecast.store.files import instant

if TYPE_CHECKING:
    from queuecast.store.lake import Lake


@dataclass(frozen=True)
class Spell:
    """A stretch of snapshots with one reason: first and last seen (UTC). What lies between snapshots is not known."""

    reason: str
    title: str
    first: datetime
    last: datetime
    snapshots: int


@dataclass(frozen=True)
class WhyAnswer:
    """The answer. ``reason_seen_at``: when Slurm printed the reason; a reason can be stale, Slurm keeps only one."""

    cluster: str
    at: datetime
    job: KnownJob
    pending: bool
    reason: ReasonInfo
    reason_text: str | None
    history: tuple[Spell, ...]

    def as_json(self) -> dict[str, Any]:
        """Plain values; times ISO 8601 UTC."""
        return {
            "cluster": self.cluster,
            "at": iso(self.at),
            "job_id": self.job.text,
            "state": self.job.state,
            "pending": self.pending,
            "submit": iso(self.job.submit),
            "eligible": iso(self.job.eligible),
            "started_at": iso(self.job.start),
            "ended_at": iso(self.job.end),
            "reason": {**self.reason.as_dict(), "slurm_text": self.reason_text, "seen_at": iso(self.job.reason_seen_at)},
            "history": [
                {"reason": s.reason, "title": s.title, "first_seen": iso(s.first), "last_seen": iso(s.last), "snapshots": s.snapshots}
                for s in self.history
            ],
        }


def why(lake: Lake, cluster: str, job_id: str, at: datetime, viewer: Viewer | None = None) -> WhyAnswer:
    """Raises ``NoDataError`` for a job that is not known at ``at``, ``UsageError`` for a bad id, ``NotPermitted``."""
    job = find_job(lake, cluster, job_id, at)
    (viewer or Viewer()).check(job.user, job_id)
    pending = job.start is None and job.end is None
    info = explain_reason(parse_reason(job.reason_text or job.reason or ""), pending=pending)
    return WhyAnswer(cluster, at, job, pending, info, job.reason_text or job.reason, _spells(lake, cluster, job, at))


def _spells(lake: Lake, cluster: str, job: KnownJob, at: datetime) -> tuple[Spell, ...]:
    """Reasons in the order of the snapshots. A snapshot without one (not looked at in that cycle) ends no stretch."""
    since = job.submit or at - timedelta(days=14)
    rows = lake.read(
        "queue",
        ["observed_at", "job_id", "job_id_text", "state", "reason", "reason_text"],
        cluster=cluster,
        since=since,
        until=at + timedelta(microseconds=1),
    )
    seen = rows["observed_at"]
    mine = pc.and_(pc.equal(rows["job_id"], job.job_id), pc.fill_null(pc.equal(rows["state"], "PENDING"), False))
    mine = pc.and_(mine, pc.and_(pc.less_equal(seen, instant(at)), pc.greater_equal(seen, instant(since))))
    spells: list[Spell] = []
    for row in rows.filter(mine).sort_by("observed_at").to_pylist():
        reason = parse_reason(row["reason_text"] or row["reason"] or "")
        when = row["observed_at"]
        if spells and (reason is None or reason.code == spells[-1].reason):
            last = spells[-1]
            spells[-1] = Spell(last.reason, last.title, last.first, when, last.snapshots + 1)
        elif reason is not None:
            spells.append(Spell(reason.code, explain_reason(reason).title, when, when, 1))
    return tuple(spells)
