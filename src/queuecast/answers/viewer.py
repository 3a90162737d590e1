"""Who asks. Where people may see only their own jobs, others appear as aggregates."""

from __future__ import annotations

from dataclasses import dataclass

from queuecast.errors import NotPermitted
from queuecast.i18n import _


@dataclass(frozen=True)
class Viewer:
    """``user`` is a Slurm user name, None if unknown. ``sees_all``: may see other people's jobs by name."""

    user: str | None = None
    sees_all: bool = True

    def may_see(self, owner: str | None) -> bool:
        """Whether a job of ``owner`` may be shown as such."""
        return self.sees_all or (self.user is not None and owner is not None and owner.casefold() == self.user.casefold())

    def check(self, owner: str | None, job_id: str) -> None:
        """Raises ``NotPermitted`` if not."""
        if not self.may_see(owner):
            raise NotPermitted(
                _("job {job} is not yours").format(job=job_id),
                _("you may see your own jobs; ask about a request instead: queuecast when -p PARTITION ..."),
            )
