"""How far Slurm's own estimates were off: each ``squeue --start`` row scored against the start that followed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queuecast.features.history import Floats, Ints
from queuecast.store.files import instant

if TYPE_CHECKING:
    from queuecast.store.lake import Lake

SPAN = timedelta(days=14)


@dataclass(frozen=True)
class SlurmRecord:
    """``asked`` rows of pending jobs, ``given`` with an estimate, ``scored`` of those whose job has started.

    ``median_abs_error_s``: middle of |estimate - start|. Shares are of the scored; None where nothing was scored.
    """

    asked: int
    given: int
    scored: int
    median_abs_error_s: float | None
    within_1h: float | None
    within_2x: float | None
    earlier: float | None

    @property
    def missing(self) -> float | None:
        """Share of rows without an estimate (N/A)."""
        return None if not self.asked else 1.0 - self.given / self.asked


def slurm_record(lake: Lake, cluster: str, at: datetime, partition: str | None = None) -> SlurmRecord:
    """Score the estimates of the two weeks before ``at`` by the starts known at ``at``."""
    since = at - SPAN
    rows = lake.read(
        "estimates", ["observed_at", "job_id", "partition", "start_estimate", "array_tasks"], cluster=cluster, since=since, until=at
    )
    when = rows["observed_at"]
    rows = rows.filter(pc.and_(pc.greater_equal(when, instant(since)), pc.less(when, instant(at))))
    if partition is not None:
        rows = rows.filter(pc.fill_null(pc.equal(pc.utf8_lower(rows["partition"]), partition.casefold()), False))
    asked = rows.num_rows
    rows = rows.filter(pc.is_valid(rows["start_estimate"]))
    given = rows.num_rows
    # One record for many tasks shows the earliest task's estimate: which task that is, is not told.
    rows = rows.filter(pc.equal(rows["array_tasks"], 1))
    seen, estimate = _s(rows["observed_at"]), _s(rows["start_estimate"])
    start = _start_after(lake, cluster, rows["job_id"].to_numpy(), seen, since, at)
    known = ~np.isnan(start)
    if not known.any():
        return SlurmRecord(asked, given, 0, None, None, None, None)
    error = estimate[known] - start[known]
    told, truly = estimate[known] - seen[known] + 1, start[known] - seen[known] + 1
    ratio = np.maximum(told, 1) / np.maximum(truly, 1)
    return SlurmRecord(
        asked,
        given,
        int(known.sum()),
        float(np.median(np.abs(error))),
        float(np.mean(np.abs(error) <= 3600)),
        float(np.mean((ratio >= 0.5) & (ratio <= 2.0))),
        float(np.mean(error > 60)),
    )


def _start_after(lake: Lake, cluster: str, job: Ints, seen: Floats, since: datetime, at: datetime) -> Floats:
    """Start of the attempt that was pending at ``seen``; nan if it has not started by ``at``."""
    jobs = lake.read("jobs", ["job_id", "submit", "start"], cluster=cluster, since=since - timedelta(days=31), until=at)
    jobs = jobs.filter(pc.is_valid(jobs["start"])).sort_by([("job_id", "ascending"), ("submit", "ascending")])
    ids, submit, start = jobs["job_id"].to_numpy(), _s(jobs["submit"]), _s(jobs["start"])
    if not len(ids) or not len(job):
        return np.full(len(job), np.nan)
    # The last attempt submitted before the snapshot: order by (job, time) as one sorted array of pairs.
    order = np.lexsort((np.r_[submit, seen], np.r_[ids, job]))
    is_job = order < len(ids)
    last = np.maximum.accumulate(np.where(is_job, order, -1))
    attempt = np.full(len(job), -1)
    attempt[order[~is_job] - len(ids)] = last[~is_job]
    found = (attempt >= 0) & (ids[attempt] == job) & (start[attempt] >= seen) & (start[attempt] <= at.astimezone(UTC).timestamp())
    return np.where(found, start[attempt], np.nan)


def _s(column: pa.ChunkedArray) -> Floats:
    return np.asarray(column.cast(pa.int64()).to_numpy() / 1e6, np.float64)
