"""Why a job failed: class, confidence, evidence, whose turn it is, and what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from queuecast.answers.failures.advice import steps_for
from queuecast.answers.failures.attempt import Attempt, find_attempt
from queuecast.answers.failures.classes import classify_row, failure_classes
from queuecast.answers.failures.groups import DEATHS, FailureGroup, platform_groups
from queuecast.answers.failures.joblogs import Found, JobLogs, read_job_logs
from queuecast.answers.failures.rows import signs_of, subtracts
from queuecast.answers.failures.weigh import Because, Hit, Verdict, weigh
from queuecast.answers.failures.words import evidence_text, format_bytes, length
from queuecast.answers.viewer import Viewer
from queuecast.answers.wait import iso
from queuecast.i18n import _
from queuecast.reasons.failureclasses import TEXTS, FailureClass, Turn
from queuecast.reasons.logpatterns import pattern_of
from queuecast.slurmtext.hostlist import fold_hosts

if TYPE_CHECKING:
    from queuecast.store.lake import Lake

__all__ = ["Evidence", "FailureAnswer", "classify_row", "failure", "failure_classes"]

AROUND = timedelta(hours=12)
MOST_LINES = 12
Status = Literal["failed", "partly", "completed", "running", "pending"]
"""partly: Slurm counts it as completed, but a step of it failed."""


@dataclass(frozen=True)
class Evidence:
    """One piece. ``source``: state, exit, reason, step, memory, time, node, cancel, peers or log. ``speaks_for``: the class it adds
    most to (None: it only tells what happened). ``path``, ``number``, ``line``: of a log; ``line`` is cleaned, ``path`` is not."""

    source: str
    text: str
    speaks_for: FailureClass | None
    weight: float
    path: str | None = None
    number: int | None = None
    line: str | None = None


@dataclass(frozen=True)
class FailureAnswer:
    """The answer for one attempt of a job. ``failure_class`` None: it did not fail (so far), see ``status``.

    ``confidence``: 0 to 1, the share of the class in ``weights`` (which sum to 1; the rule is in docs/failures.md). ``turn``: who
    has to act. ``group``: the failures of its node that it is one of. ``again``: a later attempt is queued or has run. ``failed_tasks``
    and ``ended_tasks``: of a whole array that was asked about. ``unknown``: what could not be looked at, as sentences.
    """

    cluster: str
    at: datetime
    job: Attempt
    status: Status
    failure_class: FailureClass | None = None
    confidence: float | None = None
    weights: Mapping[FailureClass, float] = field(default_factory=dict)
    turn: Turn | None = None
    evidence: tuple[Evidence, ...] = ()
    steps: tuple[str, ...] = ()
    logs: JobLogs | None = None
    group: FailureGroup | None = None
    again: bool = False
    failed_tasks: int | None = None
    ended_tasks: int | None = None
    unknown: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The class in a few words."""
        return TEXTS[self.failure_class].title if self.failure_class else ""

    @property
    def meaning(self) -> str:
        """The class in a sentence."""
        return TEXTS[self.failure_class].meaning if self.failure_class else ""

    def as_json(self) -> dict[str, Any]:
        """Plain values; times ISO 8601 UTC."""
        return {
            "cluster": self.cluster,
            "at": iso(self.at),
            "status": self.status,
            "job": self.job.as_json(),
            "class": self.failure_class,
            "title": self.title or None,
            "meaning": self.meaning or None,
            "confidence": None if self.confidence is None else round(self.confidence, 4),
            "weights": {name: round(value, 4) for name, value in self.weights.items()},
            "turn": self.turn,
            "evidence": [
                {
                    "source": e.source,
                    "text": e.text,
                    "speaks_for": e.speaks_for,
                    "weight": round(e.weight, 3),
                    "path": e.path,
                    "line_number": e.number,
                    "line": e.line,
                }
                for e in self.evidence
            ],
            "steps": list(self.steps),
            "logs": None if self.logs is None else self.logs.as_json(),
            "group": None if self.group is None else self.group.as_json(),
            "queued_again": self.again,
            "failed_tasks": self.failed_tasks,
            "ended_tasks": self.ended_tasks,
            "unknown": list(self.unknown),
        }


def failure(
    lake: Lake, cluster: str, job_id_text: str, at: datetime, viewer: Viewer | None = None, *, logs: bool = True, files: Sequence[str] = ()
) -> FailureAnswer:
    """Why the last ended attempt of a job failed, as known at ``at``.

    ``logs`` False: no file is opened. ``files``: logs named by whoever runs this process (their own rights hold); else those that
    the job's row names, which have to belong to the job's owner. Raises ``NoDataError`` for a job not known at ``at``,
    ``UsageError`` for a bad id, ``NotPermitted`` for a job of others.
    """
    viewer = viewer or Viewer()
    found = find_attempt(lake, cluster, job_id_text, at, viewer)
    job = found.attempt
    if found.row is None:
        return FailureAnswer(cluster, at, job, "running" if job.start is not None else "pending")
    row = found.row
    since = row["end"] - AROUND
    until = min(at, row["end"] + AROUND)
    groups = platform_groups(lake, cluster, since, until, viewer, nodes=frozenset(found.nodes)) if row["state"] in DEATHS else ()
    group = next((g for g in groups if (row["job_id"], row["submit"]) in g.members), None)
    signs = signs_of(
        row,
        subtracting=subtracts(lake, cluster, at),
        steps=found.steps,
        events=found.events,
        peers=group is not None and group.basis != "slurm",
        memory=found.memory,
    )
    read = read_job_logs(row, found.files, found.nodes, files, at) if logs or files else None
    verdict = weigh(signs, [Hit(h.key, h.late, h.warning) for h in read.found] if read else ())
    killed = any(h.key in ("slurm_oom", "slurm_memory_limit") for h in (read.found if read else ()))
    if row["state"] == "COMPLETED" and not killed and not any(b.source == "step" for b in verdict.because):
        return FailureAnswer(cluster, at, job, "completed", logs=read, again=found.again)
    key = _advice_key(verdict, read.found if read else ())
    return FailureAnswer(
        cluster=cluster,
        at=at,
        job=job,
        status="partly" if row["state"] == "COMPLETED" else "failed",
        failure_class=verdict.failure_class,
        confidence=verdict.confidence,
        weights=verdict.weights,
        turn=_turn(verdict, read.found if read else (), found.again),
        evidence=_evidence(verdict, read.found if read else (), row, found),
        steps=steps_for(
            verdict.failure_class,
            "requeued" if found.again and verdict.failure_class in ("preempted", "node") and found.waits else key,
            {
                "job": row["job_id_text"] or str(row["job_id"]),
                "nodes": fold_hosts(found.nodes) if found.nodes else _("NODE"),
                "memory": format_bytes(row["mem_alloc_bytes"] or row["mem_req_bytes"]),
                "limit": length(row["limit_s"]),
                "end": f"{row['end']:%Y-%m-%d %H:%MZ}",
            },
        ),
        logs=read,
        group=group,
        again=found.again,
        failed_tasks=found.failed_tasks,
        ended_tasks=found.ended_tasks,
        unknown=_unknown(verdict, read, found.memory, row),
    )


def _evidence(verdict: Verdict, hits: Sequence[Found], row: Mapping[str, Any], found: Any) -> tuple[Evidence, ...]:
    out = [
        Evidence(b.source, evidence_text(b, row, found.events, found.memory), _speaks(b.scores), max(b.scores.values(), default=0.0))
        for b in verdict.because
        if not (b.source == "state" and b.key in ("FAILED", "CANCELLED", "UNKNOWN"))
    ]
    logged = [
        Evidence("log", p.title, _speaks(p.scores), max(p.scores.values()), h.path, h.number, h.line)
        for h in hits
        if (p := pattern_of(h.key))
    ]
    # What speaks for the answer first, then the rest; of a log, in the order in which it was written.
    chosen = verdict.failure_class
    strongest = sorted(range(len(logged)), key=lambda i: (logged[i].speaks_for != chosen, -logged[i].weight, i))[:MOST_LINES]
    told = [*sorted(out, key=lambda e: -e.weight), *(logged[i] for i in sorted(strongest))]
    return tuple(sorted(told, key=lambda e: e.speaks_for != chosen))


def _speaks(scores: Mapping[FailureClass, float]) -> FailureClass | None:
    best = max(scores, key=lambda name: scores[name], default=None)
    return best if best is not None and scores[best] >= 0.5 else None


def _advice_key(verdict: Verdict, hits: Sequence[Found]) -> str | None:
    """The steps of the strongest line for the class, else of the exit code, else of the class."""
    chosen = verdict.failure_class
    lines = [(p.scores.get(chosen, 0.0), p) for h in hits if chosen in (p := pattern_of(h.key)).scores]
    if lines:
        score, best = max(lines, key=lambda pair: pair[0])
        if score >= 1.0:
            return best.advice or best.key
    return next((k for b in verdict.because if b.scores.get(chosen, 0.0) > 0.4 and (k := _code_key(b, chosen))), None)


def _code_key(one: Because, chosen: FailureClass) -> str | None:
    key = one.key.removeprefix("step_")
    if key == "refused":
        return "refused"
    if one.source not in ("exit", "step") or one.number is None:
        return "launch" if key in ("LAUNCH_FAILED", "JobLaunchFailure") else None
    if key == "status":
        return f"status_{one.number}"
    if one.number == 53:
        return "signal_53"
    if one.number == 7:
        return "bus_error"
    return "killed" if one.number == 9 and chosen in ("oom_host", "unknown") else None


def _turn(verdict: Verdict, hits: Sequence[Found], again: bool) -> Turn:
    chosen = verdict.failure_class
    if chosen == "preempted":
        return "nobody" if again else "user"
    told = [p.turn for h in hits if (p := pattern_of(h.key)).turn is not None and p.scores.get(chosen, 0.0) >= 1.5]
    return told[0] if told and told[0] is not None else TEXTS[chosen].turn


def _unknown(verdict: Verdict, read: JobLogs | None, memory: float | None, row: Mapping[str, Any]) -> tuple[str, ...]:
    out = []
    if read is None:
        out.append(_("Logs were not looked at."))
    elif not any(f.status == "read" for f in read.files):
        out.append(_("No log could be read; with one the answer may be surer: --log FILE"))
    if memory is None and verdict.weights["oom_host"] > 0.05 and row["state"] != "OUT_OF_MEMORY":
        out.append(_("How much memory it used was not measured."))
    return tuple(out)
