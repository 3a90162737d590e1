"""Sums by job that others made: the table ``job_use``, and what jobstats left in the administrator's comment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from queuecast.slurmtext.jobstats import PREFIX, parse_jobstats
from queuecast.store.files import floats
from queuecast.usage.attempts import Attempts, Flags, Floats, Ints

if TYPE_CHECKING:
    from queuecast.store.lake import Lake

NUMBERS = (
    "cpu_s",
    "mem_peak_bytes",
    "gpus_seen",
    "gpus_used",
    "gpu_util_mean",
    "gpu_util_peak",
    "gpu_mem_peak_bytes",
    "gpu_mem_total_bytes",
    "energy_joules",
)


@dataclass(frozen=True)
class Sums:
    """By attempt, nan where unknown. ``source`` is "" where the source says nothing of the attempt."""

    numbers: dict[str, Floats]
    source: list[str]
    generated: Flags


def job_use(lake: Lake, attempts: Attempts, *, generated: bool) -> Sums:
    """What the table ``job_use`` says: rows that were measured, or those that a script made up.

    A row is used once its job has ended, or if it was taken by then; of several the one taken last, dcgm before csv.
    """
    n = len(attempts)
    table = lake.read("job_use", cluster=attempts.cluster, since=attempts.first_submit())
    marked = table["generated"].to_pylist()
    made = np.array([bool(m) for m in marked], bool)
    job, submit, seen = floats(table["job_id"]), floats(table["job_submit"]), floats(table["observed_at"])
    # a table without submit times has the moment it was taken in their place
    stand_in = submit == seen
    owner = np.where(stand_in, attempts.latest(job, submit), attempts.exactly(job, submit))
    usable = (owner >= 0) & (made == generated)
    if n:
        usable &= attempts.final[np.maximum(owner, 0)] | (seen / 1e6 <= attempts.at)
    rows = np.flatnonzero(usable)
    source = table["source"].to_pylist()
    better = np.array([source[row] == "dcgm" for row in rows], bool)
    rows = rows[np.lexsort((better, seen[rows]))]  # the last one written stands
    chosen = np.full(n, -1, np.int64)
    chosen[owner[rows]] = rows
    return Sums({name: _take(floats(table[name]), chosen) for name in NUMBERS},
                [source[row] or "csv" if row >= 0 else "" for row in chosen.tolist()], (chosen >= 0) & generated)  # fmt: skip


def _take(values: Floats, rows: Ints) -> Floats:
    return np.where(rows >= 0, values[np.maximum(rows, 0)], np.nan) if len(values) else np.full(len(rows), np.nan)


def from_comments(attempts: Attempts) -> Sums:
    """What jobstats wrote into the administrator's comment when the job ended; attempts that still run have none."""
    n = len(attempts)
    numbers = {name: np.full(n, np.nan) for name in NUMBERS}
    source = [""] * n
    for row, text in enumerate(attempts.texts("admin_comment")):
        if text is None or not text.startswith(PREFIX) or not attempts.final[row]:
            continue
        stats = parse_jobstats(text).stats
        if stats is None:
            continue
        source[row] = "jobstats"
        for name, value in stats.numbers().items():
            numbers[name][row] = np.nan if value is None else value
    return Sums(numbers, source, np.zeros(n, bool))
