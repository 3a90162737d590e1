"""What a report on users' experience is made of: medians with censoring, shares with their chance, by experience and kind of job."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

from queuecast.answers.wait import JSON_VERSION, iso

Dimension = Literal["experience", "gpus", "form"]
EXPERIENCE: tuple[str, ...] = ("0", "1-9", "10-99", "100-999", "1000+", "unknown")
"""Earlier submissions of the user known here; an array is one."""
GPUS: tuple[str, ...] = ("0", "1", "2-4", "5-8", "9+", "unknown")
FORMS: tuple[str, ...] = ("batch", "array", "interactive", "unknown")


@dataclass(frozen=True)
class TimeTo:
    """Times to an event in seconds. Of ``cases``, ``seen`` had it; the others had not by the end of what is known, and are censored.

    ``quarter_s``, ``median_s``, ``three_quarters_s``: when so many had it, by Kaplan and Meier; None: not reached, or no cases.
    ``unknown``: cases whose beginning is not known, counted nowhere else.
    """

    cases: int
    seen: int
    quarter_s: float | None
    median_s: float | None
    three_quarters_s: float | None
    unknown: int


@dataclass(frozen=True)
class Part:
    """``hits`` of ``counted``; ``low`` and ``high``: the 95 % interval of E. B. Wilson (1927). None with none counted.

    ``open``: not decided yet, or not told. ``none``: not tried at all (no next attempt). Neither is counted.
    """

    counted: int
    hits: int
    share: float | None
    low: float | None
    high: float | None
    open: int
    none: int = 0


@dataclass(frozen=True)
class WaitErrors:
    """Waits told and kept: of ``scored`` the job has started. ``median_abs_s``: middle of |median told - wait|; None with none, or where
    half of the medians told had no end. ``held_80``: share of the 80 % intervals that held. ``open``: still waits; ``unknown``:
    cancelled, or no job found."""

    scored: int
    median_abs_s: float | None
    held_80: float | None
    open: int
    unknown: int


@dataclass(frozen=True)
class Cell:
    """One group: None in a dimension takes all. ``users``: distinct known users whose jobs are in it.

    ``first_success``: from the first submission of a user's job name (numbers left out) to the end of its first success.
    ``early_failure``: of started attempts, those that failed within two minutes. ``recovery``: from the first failure of a name to the
    end of the next success that was submitted after it. ``resumed``: of next attempts after a time-out, preemption or node failure,
    those that ended well. ``repeated``: of next attempts after a failure, those with the same state, exit code and signal.
    """

    experience: str | None
    gpus: str | None
    form: str | None
    attempts: int
    users: int
    first_success: TimeTo
    early_failure: Part
    recovery: TimeTo
    resumed: Part
    repeated: Part
    waits: WaitErrors

    def as_json(self) -> dict[str, Any]:
        """Plain values: seconds, shares between 0 and 1, null for unknown."""
        return asdict(self)


@dataclass(frozen=True)
class Experience:
    """Attempts submitted, started or ended between ``since`` and ``at`` (UTC), as known at ``known_until`` at the latest.

    ``known_from``: the first submission in the lake; nothing before it counts as experience. ``whole`` None: of too few users to show
    to this viewer. ``cells``: by one dimension each, then experience by GPUs; empty for viewers who may not see all.
    ``unnamed``: attempts whose user is not known; they are in no measure of a user's way.
    """

    cluster: str
    since: datetime
    at: datetime
    known_from: datetime | None
    known_until: datetime | None
    whole: Cell | None
    cells: tuple[Cell, ...]
    unnamed: int
    limited: bool

    def by(self, dimension: Dimension) -> tuple[Cell, ...]:
        """The cells of one dimension alone."""
        others = [d for d in ("experience", "gpus", "form") if d != dimension]
        return tuple(c for c in self.cells if getattr(c, dimension) is not None and all(getattr(c, d) is None for d in others))

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "queuecast_json": JSON_VERSION,
            "cluster": self.cluster,
            "since": iso(self.since),
            "at": iso(self.at),
            "known_from": iso(self.known_from),
            "known_until": iso(self.known_until),
            "whole": None if self.whole is None else self.whole.as_json(),
            "cells": [c.as_json() for c in self.cells],
            "attempts_without_user": self.unnamed,
            "limited": self.limited,
        }
