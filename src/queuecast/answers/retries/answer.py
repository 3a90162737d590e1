"""The corrected copy of a job's script, with all that was changed and why."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from queuecast.answers.prechecks.precheck import Finding
    from queuecast.answers.retries.checkpoints import Search
    from queuecast.answers.retries.plan import Change


@dataclass(frozen=True)
class RetryAnswer:
    """``script``: the copy; None if it would fail again as it is (``blocked`` says why) and was not forced.

    ``job``: id that names all of it (of an array the array's). ``failure_class``: of docs/failures.md, or ``completed``; of an
    array the most frequent, with ``classes`` counting the failed tasks. ``confidence`` 0 to 1. ``tasks``: array tasks in the
    copy, None for a job. ``carried``: options of the command line that the copy holds as lines. ``mend``: what to look at
    first. ``notes`` and ``warnings`` are sentences; ``findings`` those of the check before submission, by line of the copy.
    ``folder``: where it ran; ``arguments``: of the script. ``diff``: ``-`` and ``+`` lines.
    """

    cluster: str
    at: datetime
    job: str
    name: str | None
    user: str | None
    state: str
    ended_at: datetime | None
    failure_class: str
    confidence: float
    classes: dict[str, int]
    tasks: tuple[int, ...] | None
    origin: str
    path: str | None
    folder: str | None
    arguments: tuple[str, ...]
    changes: tuple[Change, ...]
    carried: dict[str, str]
    checkpoint: Search | None
    blocked: str | None
    mend: tuple[str, ...]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    findings: tuple[Finding, ...]
    diff: tuple[str, ...]
    script: str | None
    stored: bool | None
    """Whether accounting keeps comments, and so the parent; None if not known."""

    @property
    def ready(self) -> bool:
        """Whether the copy may be submitted as it is."""
        return self.blocked is None

    def as_json(self) -> dict[str, Any]:
        """Plain values; times ISO 8601."""
        return {
            **{k: v for k, v in vars(self).items() if k not in ("changes", "findings", "checkpoint")},
            "at": self.at.isoformat(),
            "ended_at": self.ended_at.isoformat() if self.ended_at else None,
            "tasks": None if self.tasks is None else list(self.tasks),
            "arguments": list(self.arguments),
            "changes": [c.as_json() for c in self.changes],
            "checkpoint": self.checkpoint.as_json() if self.checkpoint else None,
            "mend": list(self.mend),
            "notes": list(self.notes),
            "warnings": list(self.warnings),
            "findings": [asdict(f) for f in self.findings],
            "diff": list(self.diff),
            "ready": self.ready,
        }
