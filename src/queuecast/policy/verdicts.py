"""What Slurm would say to a request: refused at submission, never started, or kept waiting by a limit.

The order is Slurm's own: access, partition, node shapes, then the limits (partition QOS, job QOS, associations). The
first one is the reason that Slurm would show; the others come to light when it is gone.
Sources: ``acct_policy.c``, ``job_mgr.c``; resource_limits.shtml, qos.shtml.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from queuecast.policy.request import Request
    from queuecast.policy.tables import Policy
    from queuecast.policy.usage import Usage

Kind = Literal["refused", "never", "waits"]


@dataclass(frozen=True)
class Verdict:
    """One thing that stands in the way.

    ``code`` is Slurm's reason; where Slurm refuses without one: ``InvalidPartition``, ``PartitionDrain``. ``refused``: sbatch fails;
    ``never``: the job is taken and never starts unless something is changed; ``waits``: it starts once the limit has room.
    ``scope`` names whose rule it is ("QOS normal", "partition gpu", "account bio"). ``limit``, ``asked`` and ``used`` in the
    unit of ``tres`` (``mem``: bytes; ``wall``: seconds; ``jobs``; ``*_mins``: amount times minutes); None: not known.
    ``partition`` is the one that was looked at.
    """

    code: str
    kind: Kind
    scope: str
    tres: str | None
    limit: float | None
    asked: float | None
    used: float | None
    text: str
    fix: str
    partition: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return dict(vars(self))


def verdicts(policy: Policy, request: Request, usage: Usage | None = None, *, without: int | None = None) -> tuple[Verdict, ...]:
    """All of them, in Slurm's order. Nothing for what is not known (see ``Policy.missing``); nothing if all is allowed.

    Without ``usage`` only what this request breaks by itself is found. ``without``: the id of the job itself, if it is in
    the queue already: it is not counted, and what only new jobs are refused for is left out. Of several partitions the
    one that is least against it counts: Slurm takes whichever lets it in.
    """
    from queuecast.policy.access import access_verdicts
    from queuecast.policy.counted import limit_verdicts
    from queuecast.policy.fits import partition_verdicts

    names = tuple(p for p in request.partitions if p) or ((policy.default_partition.name,) if policy.default_partition else ())
    best: tuple[Verdict, ...] | None = None
    for name in names or (None,):
        found = [
            *access_verdicts(policy, request, name, queued=without is not None),
            *(partition_verdicts(policy, request, name) if name is not None else ()),
            *limit_verdicts(policy, request, name, usage, without),
        ]
        here = tuple(replace(v, partition=name) for v in found)
        if best is None or _weight(here) < _weight(best):
            best = here
    return best or ()


def _weight(found: tuple[Verdict, ...]) -> int:
    return max(({"waits": 1, "never": 2, "refused": 3}[v.kind] for v in found), default=0)
