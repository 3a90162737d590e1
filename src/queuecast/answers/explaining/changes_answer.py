"""What an answer to "which small change would start it sooner?" is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from queuecast.answers.alternatives_answer import Kind, Spread, whole
from queuecast.policy.request import Request

Effect = Literal["allowed", "fits", "unblocks", "sooner"]
"""``allowed``: as asked it can never start, so it can. ``fits``: what it asks for is free then, and nobody stands before it. ``unblocks``:
what keeps it now does not then. ``sooner``: by the wait model (or the replay) alone."""
ChangeKind = Kind | Literal["memory", "nodes", "cpus"]


@dataclass(frozen=True)
class Change:
    """One change of the request that matters.

    ``flags``: what to paste after ``sbatch``, or after ``scontrol update`` where ``keeps_place``. ``frees``: reasons that hold now and not
    then; ``binds``: the first that holds then (None: nothing found). ``wait`` and ``p_4h`` (start within 4 h): the wait model's for a new
    job like that, to be held against ``Changes.as_new``; None: not known. ``sooner``: start as asked minus start then, in the same drawn
    futures, and ``p_sooner`` the share of futures in which it starts sooner; None unless futures were played.
    """

    label: str
    kinds: tuple[ChangeKind, ...]
    request: Request
    flags: tuple[str, ...]
    keeps_place: bool
    effect: Effect
    frees: tuple[str, ...]
    binds: str | None
    wait: Spread | None
    p_4h: float | None
    sooner: Spread | None = None
    p_sooner: float | None = None
    conditions: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Plain values, units in the names."""
        return {
            "label": self.label,
            "kinds": list(self.kinds),
            "flags": list(self.flags),
            "keeps_place": self.keeps_place,
            "effect": self.effect,
            "frees": list(self.frees),
            "binds": self.binds,
            "wait": None if self.wait is None else self.wait.as_json(),
            "p_start_within_4h": _three(self.p_4h),
            "sooner": None if self.sooner is None else self.sooner.as_json(),
            "p_sooner": _three(self.p_sooner),
            "conditions": list(self.conditions),
        }


@dataclass(frozen=True)
class Changes:
    """``changes``: the smallest of each kind that matter, those that surely help first. ``now``: the wait still ahead of the job as it is;
    ``as_new``: of a new job like it (both by the wait model; None: not known), with P(start within 4 h). ``tried``: allowed changes looked
    at; ``futures``: drawn futures behind ``sooner`` (0: none). ``notes``: why there are none, or what is not known.
    """

    changes: tuple[Change, ...]
    now: Spread | None
    now_p_4h: float | None
    as_new: Spread | None
    as_new_p_4h: float | None
    tried: int
    futures: int
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Plain values; seconds count from the moment asked about."""
        return {
            "changes": [c.as_json() for c in self.changes],
            "now": None if self.now is None else self.now.as_json(),
            "now_p_start_within_4h": _three(self.now_p_4h),
            "as_new": None if self.as_new is None else self.as_new.as_json(),
            "as_new_p_start_within_4h": _three(self.as_new_p_4h),
            "tried": self.tried,
            "futures": whole(self.futures),
            "notes": list(self.notes),
        }


def _three(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
