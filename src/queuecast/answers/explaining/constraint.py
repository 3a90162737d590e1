"""One thing that keeps a job, and what it is looked for in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from queuecast.answers.explaining.release import Release, Shares
from queuecast.answers.viewer import Viewer
from queuecast.i18n import _
from queuecast.reasons import explain_reason

if TYPE_CHECKING:
    from queuecast.answers.explaining.budget import Spent
    from queuecast.answers.explaining.queue import Snapshot
    from queuecast.policy.request import Request
    from queuecast.policy.reservations import Reservation
    from queuecast.policy.tables import Policy
    from queuecast.policy.usage import Usage

Standing = Literal["never", "held", "waits", "unchecked"]


@dataclass(frozen=True)
class Constraint:
    """One thing that keeps the job. ``standing``: ``never`` starts unless something changes; ``held`` until released;
    ``waits`` until it goes by itself; ``unchecked``: only Slurm says so, the data here cannot tell.

    ``code`` is Slurm's reason. ``limit``, ``asked`` and ``used`` in the unit of ``tres`` as in ``Verdict``; None: not known.
    """

    code: str
    standing: Standing
    text: str
    fix: str
    scope: str | None = None
    tres: str | None = None
    limit: float | None = None
    asked: float | None = None
    used: float | None = None
    release: Release | None = None

    @property
    def title(self) -> str:
        """A few words."""
        own = {"NextPass": _("Nothing found that keeps it"), "BadConstraints": _("No node can ever hold it")}
        return own.get(self.code) or explain_reason(self.code).title


@dataclass(frozen=True)
class Case:
    """A pending ``row`` of the snapshot with all that is held against it. ``spent``: use of budgets, see ``why_budget``."""

    policy: Policy
    usage: Usage
    snapshot: Snapshot
    row: dict[str, Any]
    request: Request
    moment: datetime
    shares: Callable[[], Shares]
    viewer: Viewer
    spent: Spent

    @property
    def own_reservation(self) -> Reservation | None:
        """The one that the job asks for; None without one, or where it is not known."""
        name = (self.row["reservation"] or "").casefold()
        return next((r for r in self.policy.reservations if name and r.name.casefold() == name), None)
