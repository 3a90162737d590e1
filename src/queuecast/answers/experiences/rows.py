"""Attempts as they were known at an instant, and the user's way that each belongs to."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from queuecast.answers.experiences.answer import EXPERIENCE, FORMS, GPUS
from queuecast.answers.rightsizing.kinds import normal_name
from queuecast.features.history import Flags, Floats, Ints
from queuecast.slurmtext.states import ENDED_STATES, FAILED_STATES

INTERRUPTED = frozenset({"TIMEOUT", "PREEMPTED", "NODE_FAIL"})
"""States after which a run can go on where it stopped."""
EXPERIENCE_EDGES = (1, 10, 100, 1000)
GPU_EDGES = (1, 2, 5, 9)


@dataclass(frozen=True)
class Attempts:
    """By submit, then job id. Times are epoch seconds (UTC), nan where they have not happened by the horizon or are not told.

    ``work``: code of user and name without its numbers, -1 for unknown users. ``submission``: code of what was submitted together.
    ``ended``: known to be over; ``untold``: over, but nobody knows since when. ``sign``: code of (state, exit code, signal).
    ``experience``, ``gpus``, ``form``: places in the names of the answer. ``keys``: row by job and second of submit.
    ``submissions``: when each user submitted something.
    """

    submit: Floats
    start: Floats
    end: Floats
    ended: Flags
    untold: Flags
    ok: Flags
    failed: Flags
    interrupted: Flags
    sign: Ints
    user: Ints
    work: Ints
    submission: Ints
    experience: Ints
    gpus: Ints
    form: Ints
    keys: Mapping[tuple[int, int], int]
    submissions: Mapping[str, Sequence[float]]

    def __len__(self) -> int:
        return len(self.submit)


def attempts_of(rows: Sequence[Mapping[str, Any]], steps: Mapping[tuple[int, float], str], horizon: float) -> Attempts:
    """Of rows of the ``jobs`` table submitted by ``horizon``. ``steps``: by job and submit, ``interactive`` or ``batch``."""
    known = sorted((r for r in rows if r["submit"].timestamp() <= horizon), key=lambda r: (r["submit"], r["job_id"]))
    codes: dict[tuple[object, ...], int] = {}

    def code(*key: object) -> int:
        return codes.setdefault(key, len(codes))

    def moment(value: Any) -> float:
        return value.timestamp() if value is not None and value.timestamp() <= horizon else np.nan

    submit = np.array([r["submit"].timestamp() for r in known], float)
    start = np.array([moment(r["start"]) for r in known], float)
    end = np.array([moment(r["end"]) for r in known], float)
    ended = ~np.isnan(end)
    states = [r["state"] if e else "" for r, e in zip(known, ended, strict=True)]
    names = [None if r["user"] is None else r["user"].casefold() for r in known]
    ids = [code("s", r["array_job_id"] if r["array_job_id"] is not None else r["job_id"]) for r in known]
    earlier, moments = _experience(names, ids, submit)
    return Attempts(
        submit=submit,
        start=start,
        end=end,
        ended=ended,
        untold=np.array([r["end"] is None and r["state"] in ENDED_STATES for r in known], bool),
        ok=np.array([s == "COMPLETED" for s in states], bool),
        failed=np.array([s in FAILED_STATES for s in states], bool),
        interrupted=np.array([s in INTERRUPTED for s in states], bool),
        sign=_ints(code("f", s, r["exit_code"], r["exit_signal"]) for s, r in zip(states, known, strict=True)),
        user=_ints(-1 if n is None else code("u", n) for n in names),
        work=_ints(-1 if n is None else code("w", n, normal_name(r["name"])) for n, r in zip(names, known, strict=True)),
        submission=_ints(ids),
        experience=earlier,
        gpus=_ints(gpu_place(r["gpus_req"]) for r in known),
        form=_ints(FORMS.index(_form(r, steps)) for r in known),
        keys={(int(r["job_id"]), int(s)): i for i, (r, s) in enumerate(zip(known, submit, strict=True))},
        submissions=moments,
    )


def experience_place(earlier: int | None) -> int:
    """Place among the names of experience; None is unknown."""
    return len(EXPERIENCE) - 1 if earlier is None else sum(earlier >= e for e in EXPERIENCE_EDGES)


def gpu_place(gpus: float | None) -> int:
    """Place among the GPU classes; None is unknown."""
    return len(GPUS) - 1 if gpus is None else sum(gpus >= e for e in GPU_EDGES)


def earlier_at(attempts: Attempts, user: str | None, moment: float) -> int | None:
    """Submissions of a user before a moment; None for an unknown user."""
    return None if user is None else bisect_left(attempts.submissions.get(user.casefold(), ()), moment)


def _ints(values: Any) -> Ints:
    return np.array(list(values), np.int64)


def _experience(names: Sequence[str | None], ids: Sequence[int], submit: Floats) -> tuple[Ints, dict[str, list[float]]]:
    """Places of experience at each attempt's first submission, and each user's submissions' times."""
    first: dict[int, int] = {}
    moments: dict[str, list[float]] = {}
    places = []
    for name, number, moment in zip(names, ids, submit.tolist(), strict=True):
        if number not in first:
            if name is None:
                first[number] = experience_place(None)
            else:
                before = moments.setdefault(name, [])
                first[number] = experience_place(bisect_left(before, moment))
                before.append(moment)
        places.append(first[number])
    return _ints(places), moments


def _form(row: Mapping[str, Any], steps: Mapping[tuple[int, float], str]) -> str:
    if row["array_job_id"] is not None or (row["array_tasks"] or 1) > 1:
        return "array"
    words = (row["submit_line"] or "").split(maxsplit=1)
    command = words[0].rpartition("/")[2] if words else ""
    told = {"sbatch": "batch", "salloc": "interactive", "srun": "interactive"}.get(command)
    return told or steps.get((row["job_id"], row["submit"].timestamp()), "unknown")
