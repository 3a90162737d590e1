"""The classes of failures: what each is called, what it means, and whose turn it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from queuecast.i18n import N_, _

FailureClass = Literal[
    "user_code", "oom_host", "oom_gpu", "time_limit", "environment", "node", "platform",
    "scheduler_cancel", "preempted", "dependency", "user_cancel", "unknown",
]  # fmt: skip
Turn = Literal["user", "site", "nobody"]


@dataclass(frozen=True)
class ClassText:
    """Texts are marked for translation; the properties translate them."""

    title_id: str
    meaning_id: str
    turn: Turn

    @property
    def title(self) -> str:
        """A few words."""
        return _(self.title_id)

    @property
    def meaning(self) -> str:
        """One or two sentences."""
        return _(self.meaning_id)


TEXTS: dict[FailureClass, ClassText] = {
    "user_code": ClassText(N_("Its own program failed"), N_("The script or program ended with an error of its own."), "user"),
    "oom_host": ClassText(
        N_("Out of main memory"), N_("The job used more main memory than it had, and was stopped, wholly or in part."), "user"
    ),
    "oom_gpu": ClassText(N_("Out of GPU memory"), N_("The program wanted more memory on a GPU than was free there."), "user"),
    "time_limit": ClassText(N_("Ran into its time limit"), N_("The job still ran when its time was up, and Slurm stopped it."), "user"),
    "environment": ClassText(
        N_("Something it needs was not there"),
        N_("The program did not find what it needs around it: a command, module, library, path, space, licence or connection."),
        "user",
    ),
    "node": ClassText(N_("A node failed"), N_("A node or one of its GPUs failed. The fault is the machine's, not the job's."), "site"),
    "platform": ClassText(
        N_("The platform failed"), N_("A file system, the network or Slurm itself failed. The fault is not the job's."), "site"
    ),
    "scheduler_cancel": ClassText(
        N_("Cancelled by Slurm or an administrator"), N_("Slurm or an administrator ended it, not its owner."), "user"
    ),
    "preempted": ClassText(N_("Preempted"), N_("It had to make room for a job that may displace it."), "nobody"),
    "dependency": ClassText(
        N_("What it depended on failed"), N_("A job that it was to follow did not end as required, so it never ran."), "user"
    ),
    "user_cancel": ClassText(N_("Cancelled by its owner"), N_("The owner cancelled it."), "nobody"),
    "unknown": ClassText(N_("Not known"), N_("What is recorded does not tell why it failed."), "user"),
}
CLASSES: tuple[FailureClass, ...] = tuple(TEXTS)
"""In the order in which ties are broken."""

TURNS: dict[Turn, str] = {"user": N_("yours"), "site": N_("your administrators'"), "nobody": N_("nobody's")}
