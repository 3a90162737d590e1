"""The failed jobs of a time by class, with the failures of nodes: for the administrator, or of one's own jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from queuecast.answers.failures.classes import classified
from queuecast.answers.failures.groups import FailureGroup, platform_groups
from queuecast.answers.failures.rows import ended_rows
from queuecast.answers.viewer import Viewer
from queuecast.answers.wait import iso
from queuecast.reasons.failureclasses import CLASSES, TEXTS, FailureClass, Turn

if TYPE_CHECKING:
    from queuecast.answers.failures.weigh import Verdict
    from queuecast.store.lake import Lake

QUICK_S = 120


@dataclass(frozen=True)
class ClassCount:
    """One class. ``users``: different ones. ``quick``: ended within two minutes of their start. ``gpu_hours``, ``core_hours``: allocated
    to these attempts (None: of none known); ``unknown_hours``: attempts whose GPUs or CPUs are not told."""

    failure_class: FailureClass
    jobs: int
    users: int
    quick: int
    gpu_hours: float | None
    core_hours: float | None
    unknown_hours: int
    turn: Turn


@dataclass(frozen=True)
class FailedJob:
    """One failed attempt; times UTC; ``name`` is hostile text."""

    job_id: str
    user: str | None
    name: str | None
    partition: str | None
    state: str
    exit_code: int | None
    exit_signal: int | None
    submit: datetime
    start: datetime | None
    end: datetime
    elapsed_s: float | None
    node_list: str | None
    failure_class: FailureClass
    confidence: float


@dataclass(frozen=True)
class FailureTable:
    """Attempts that ended in ``[since, at]``. ``own``: only the viewer's. ``ended``: all of them, ``jobs``: those that failed (ended
    otherwise than COMPLETED, or with a step out of memory), latest first. ``groups``: failures of nodes; of an ``own`` table those
    that took one of the viewer's jobs."""

    cluster: str
    since: datetime
    at: datetime
    own: bool
    ended: int
    classes: tuple[ClassCount, ...]
    groups: tuple[FailureGroup, ...]
    jobs: tuple[FailedJob, ...]

    def as_json(self) -> dict[str, Any]:
        """Plain values; times ISO 8601 UTC."""
        return {
            "cluster": self.cluster,
            "since": iso(self.since),
            "at": iso(self.at),
            "own": self.own,
            "ended": self.ended,
            "failed": len(self.jobs),
            "classes": [
                {
                    "class": c.failure_class,
                    "title": TEXTS[c.failure_class].title,
                    "jobs": c.jobs,
                    "users": c.users,
                    "quick": c.quick,
                    "gpu_hours": None if c.gpu_hours is None else round(c.gpu_hours, 2),
                    "core_hours": None if c.core_hours is None else round(c.core_hours, 2),
                    "unknown_hours": c.unknown_hours,
                    "turn": c.turn,
                }
                for c in self.classes
            ],
            "groups": [g.as_json() for g in self.groups],
            "jobs": [
                {
                    "job_id": j.job_id,
                    "user": j.user,
                    "name": j.name,
                    "partition": j.partition,
                    "state": j.state,
                    "exit_code": j.exit_code,
                    "exit_signal": j.exit_signal,
                    "submit": iso(j.submit),
                    "start": iso(j.start),
                    "end": iso(j.end),
                    "elapsed_s": j.elapsed_s,
                    "node_list": j.node_list,
                    "class": j.failure_class,
                    "confidence": round(j.confidence, 4),
                }
                for j in self.jobs
            ],
        }


def failed_jobs(
    lake: Lake, cluster: str, since: datetime, at: datetime, viewer: Viewer | None = None, *, user: str | None = None
) -> FailureTable:
    """Failed attempts that ended in ``[since, at]``, from accounting and node events (no logs). Who may not see all sees their own.

    ``user``: only this one's. Raises ``NotPermitted`` if the viewer may not see them.
    """
    viewer = viewer or Viewer()
    if user is not None:
        viewer.check(user, user)
    only = user if viewer.sees_all else (viewer.user or "")
    groups = platform_groups(lake, cluster, since, at, viewer)
    rows, verdicts = classified(
        lake, cluster, since, at, on_bad_nodes=frozenset(k for g in groups if g.basis != "slurm" for k in g.members)
    )
    everything = ended_rows(lake, cluster, since, at, ("user",))
    pairs = list(zip(rows, verdicts, strict=True))
    if only is not None:
        wanted = only.casefold()
        pairs = [(r, v) for r, v in pairs if (r["user"] or "").casefold() == wanted]
        everything = everything.filter(pc.fill_null(pc.equal(pc.utf8_lower(everything["user"]), wanted), False))
        mine = {(r["job_id"], r["submit"]) for r, _v in pairs}
        groups = tuple(g for g in groups if g.members & mine)
    jobs = tuple(
        FailedJob(
            r["job_id_text"] or str(r["job_id"]), r["user"], r["name"], r["partition"], r["state"], r["exit_code"], r["exit_signal"],
            r["submit"], r["start"], r["end"], r["elapsed_s"], r["node_list"], v.failure_class, v.confidence,
        )
        for r, v in reversed(pairs)
    )  # fmt: skip
    counts = [c for name in CLASSES if (c := _count(name, pairs)) is not None]
    return FailureTable(
        cluster, since, at, only is not None, everything.num_rows, tuple(sorted(counts, key=lambda c: -c.jobs)), groups, jobs
    )


def since_text(text: str, at: datetime, zone: str) -> datetime:
    """``7d`` and the like count back from ``at``; else an instant as typed. Raises ``UsageError``."""
    import re

    from queuecast.clock import parse_instant

    ago = re.fullmatch(r"(\d{1,5})([mhdw])", text.strip())
    if ago is None:
        return parse_instant(text, zone)
    return at - int(ago[1]) * {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}[ago[2]]


def _count(name: FailureClass, pairs: Sequence[tuple[dict[str, Any], Verdict]]) -> ClassCount | None:
    rows = [r for r, v in pairs if v.failure_class == name]
    if not rows:
        return None
    gpus = [r["gpus_alloc"] * r["elapsed_s"] / 3600 for r in rows if r["gpus_alloc"] is not None and r["elapsed_s"] is not None]
    cores = [r["cpus_alloc"] * r["elapsed_s"] / 3600 for r in rows if r["cpus_alloc"] is not None and r["elapsed_s"] is not None]
    return ClassCount(
        failure_class=name,
        jobs=len(rows),
        users=len({r["user"] for r in rows if r["user"] is not None}),
        quick=sum(r["start"] is not None and r["elapsed_s"] is not None and r["elapsed_s"] < QUICK_S for r in rows),
        gpu_hours=sum(gpus) if gpus else None,
        core_hours=sum(cores) if cores else None,
        unknown_hours=len(rows) - min(len(gpus), len(cores)),
        turn=TEXTS[name].turn,
    )
