"""Why does this job wait: what keeps it now, who is ahead, its priority, and its story so far."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from queuecast.answers.explaining.binding import Binding, binding
from queuecast.answers.explaining.budget import spent_of
from queuecast.answers.explaining.history import Event, Spell, history
from queuecast.answers.explaining.priority import Priority, priority_of
from queuecast.answers.explaining.queue import limit_shares, snapshot_at, with_throttle
from queuecast.answers.lookup import KnownJob, find_job
from queuecast.answers.viewer import Viewer
from queuecast.answers.wait import iso, plain
from queuecast.errors import QueuecastError, UsageError
from queuecast.i18n import _
from queuecast.policy.tables import policy_at
from queuecast.policy.usage import usage_at
from queuecast.reasons import ReasonInfo, explain_reason
from queuecast.slurmtext.reasons import parse_reason

if TYPE_CHECKING:
    from collections.abc import Callable

    from queuecast.answers.explaining.changes_answer import Changes
    from queuecast.answers.explaining.queue import Snapshot
    from queuecast.answers.forecast import Forecaster
    from queuecast.policy.tables import Policy
    from queuecast.store.lake import Lake

__all__ = ["Spell", "WhyAnswer", "one_cluster", "why", "with_changes"]

FRESH = timedelta(hours=3)


@dataclass(frozen=True)
class WhyAnswer:
    """The answer. ``reason_seen_at``: when Slurm printed the reason; a reason can be stale, Slurm keeps only one.

    ``binding`` None: the job does not wait, or no snapshot shows it. ``priority`` None: not told. ``unknown``: what could
    not be found out and what would be needed, as sentences. ``changes``: what could be asked for instead (None: not looked for, see
    ``with_changes``).
    """

    cluster: str
    at: datetime
    job: KnownJob
    pending: bool
    reason: ReasonInfo
    reason_text: str | None
    history: tuple[Spell, ...]
    events: tuple[Event, ...] = ()
    snapshot_at: datetime | None = None
    binding: Binding | None = None
    priority: Priority | None = None
    unknown: tuple[str, ...] = ()
    changes: Changes | None = None

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
            "events": [plain(asdict(e)) for e in self.events],
            "snapshot_at": iso(self.snapshot_at),
            "binding": self._binding_json(),
            "priority": None if self.priority is None else plain(asdict(self.priority)),
            "unknown": list(self.unknown),
            "changes": None if self.changes is None else self.changes.as_json(),
        }

    def _binding_json(self) -> dict[str, Any] | None:
        if self.binding is None:
            return None
        out: dict[str, Any] = plain(asdict(self.binding))
        for constraint, told in zip(self.binding.constraints, out["constraints"], strict=True):
            told["title"] = constraint.title
        return out


def one_cluster(lake: Lake, name: str | None) -> str:
    """The cluster meant, as the lake spells it. Raises ``UsageError`` if the lake lacks it, or has several and none is named."""
    names = lake.clusters
    found = [n for n in names if name is None or n.casefold() == name.casefold()]
    if len(found) == 1:
        return found[0]
    known = ", ".join(names)
    if not names:
        raise UsageError(_("this lake is empty"), _("read some history first: queuecast collect, or queuecast ingest FOLDER"))
    if name is None:
        raise UsageError(_("this lake holds several clusters: {names}").format(names=known), _("name one with -M"))
    raise UsageError(_("cluster {name} is not in this lake").format(name=name), _("it has: {names}").format(names=known))


def why(lake: Lake, cluster: str, job_id: str, at: datetime, viewer: Viewer | None = None) -> WhyAnswer:
    """Raises ``NoDataError`` for a job that is not known at ``at``, ``UsageError`` for a bad id, ``NotPermitted``."""
    viewer = viewer or Viewer()
    job = find_job(lake, cluster, job_id, at)
    viewer.check(job.user, job_id)
    pending = job.start is None and job.end is None
    info = explain_reason(parse_reason(job.reason_text or job.reason or ""), pending=pending)
    spells, events = history(lake, cluster, job, at)
    reason = job.reason_text or job.reason
    if not pending:
        return WhyAnswer(cluster, at, job, pending, info, reason, spells, events)
    policy = policy_at(lake, cluster, at)
    snapshot = snapshot_at(lake, cluster, at)
    row = snapshot.row(job.job_id, job.text)
    found = None
    if row is not None:
        row = with_throttle(lake, cluster, row, at)

        @cache
        def shares() -> list[tuple[str | None, str | None, float]]:
            return limit_shares(lake, cluster, at)

        spent = spent_of(lake, cluster, at, policy)
        found = binding(policy, usage_at(lake, cluster, at), snapshot, row, job.request, shares, viewer, spent)
    priority = priority_of(lake, cluster, at, job, policy)
    unknown = (
        *_unknown(policy, snapshot.moment, at, row is not None, priority, job),
        *_hidden_jobs(policy, snapshot),
        *_read_later(lake, cluster, at),
    )
    return WhyAnswer(cluster, at, job, pending, info, reason, spells, events, snapshot.moment, found, priority, unknown)


def with_changes(
    answer: WhyAnswer, lake: Lake, viewer: Viewer | None = None, *, futures: int = 0, progress: Callable[[int, int], None] | None = None,
    forecaster: Forecaster | None = None,
) -> WhyAnswer:  # fmt: skip
    """The answer with the changes of the request that matter. Without a ``forecaster`` one is opened; where the model cannot be read, that
    is said in ``unknown``, and the changes are told without waits. Raises ``NotPermitted``."""
    if not answer.pending or answer.binding is None:
        return answer
    from queuecast.answers.explaining.changes import changes
    from queuecast.answers.forecast import Forecaster as Opened

    unknown = answer.unknown
    try:
        forecaster = forecaster or Opened(lake, answer.cluster)
    except QueuecastError as error:
        unknown = (*unknown, _("How long changed requests would wait is not known: {why}").format(why=error.message))
    found = changes(lake, answer, forecaster, viewer, futures=futures, progress=progress)
    return replace(answer, unknown=unknown, changes=found)


def _unknown(
    policy: Policy, moment: datetime | None, at: datetime, seen: bool, priority: Priority | None, job: KnownJob
) -> tuple[str, ...]:
    out = []
    if moment is None:
        out.append(_("What keeps it now is not known: the queue was never read. Run queuecast collect, best as a timer."))
    elif not seen:
        out.append(_("The last snapshot does not show it as waiting: it is newer, or has just started or ended. Run queuecast collect."))
    elif at - moment > FRESH:
        hours = round((at - moment).total_seconds() / 3600)
        out.append(_("The last snapshot is {hours} h old, so this may have changed. Run queuecast collect.").format(hours=hours))
    hidden = [t for t in ("partitions", "qos", "associations", "nodes") if t in policy.missing]
    if hidden:
        out.append(
            _(
                "Limits that could not be checked: {tables} were never read. PrivateData may hide them; an operator's account sees them."
            ).format(tables=", ".join(hidden))
        )
    if priority is None and job.eligible is not None:
        out.append(_("The parts of its priority are not known: sprio was not read lately, or does not list the job."))
    return tuple(out)


def _hidden_jobs(policy: Policy, snapshot: Snapshot) -> tuple[str, ...]:
    """Where PrivateData=jobs hides the jobs of others from the collecting account, all sums over jobs are too small."""
    private = {w.strip().casefold() for w in policy.settings.get("privatedata", "").split(",")}
    if "jobs" not in private or len({r["user"] for r in snapshot.rows}) > 1:
        return ()
    return (
        _(
            "PrivateData hides other people's jobs here: what counts against limits and who is ahead is more than is shown. "
            "Collecting with an operator's account shows it."
        ),
    )


def _read_later(lake: Lake, cluster: str, at: datetime) -> tuple[str, ...]:
    """A moment before the first reading of the limits: those of later stand in for them."""
    first = min(
        (datetime.fromisoformat(f.low) for t in ("qos", "partitions", "reservations") for f in lake.manifest.of(t, cluster) if f.low),
        default=at,
    )
    if first <= at:
        return ()
    return (
        _("Limits and reservations were first read on {date}, after the moment asked about: they may have been others then.").format(
            date=f"{first:%Y-%m-%d}"
        ),
    )
