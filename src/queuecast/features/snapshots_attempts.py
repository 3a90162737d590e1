"""Attempts of jobs as accounting has them: which one was waiting at an instant, which array it belongs to, when it started."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from queuecast.features.history import Floats, Ints
from queuecast.features.snapshots_readings import Words, distinct_words, seconds, whole
from queuecast.store.files import floats

COLUMNS = ("job_id", "array_job_id", "submit", "start", "partition", "nodes_req", "cpus_req", "gpus_req")
REQUEST = ("nodes", "cpus", "gpus")


@dataclass(frozen=True)
class Attempts:
    """One entry per (job, submit), sorted so. A requeue makes a new attempt under the same id.

    Times are epoch seconds, nan where unknown; ``array_job_id`` is -1 for a job of its own. ``partition`` is a code, of
    the first one if several are named. ``request`` holds nodes, CPUs and GPUs of the whole job, nan where unknown.
    """

    ids: Ints
    keys: Ints
    job_id: Ints
    array_job_id: Ints
    submit: Floats
    start: Floats
    partition: Ints
    request: dict[str, Floats]
    _from: float
    _span: int

    @classmethod
    def of(cls, rows: pa.Table, partitions: Words) -> Attempts:
        """Of rows of the table ``jobs``; rows without a time of submission are left out."""
        submit, job_id = seconds(rows["submit"]), whole(rows["job_id"])
        keep = np.flatnonzero(~np.isnan(submit))
        keep = keep[np.lexsort((submit[keep], job_id[keep]))]
        submit, job_id = submit[keep], job_id[keep]
        ids = np.unique(job_id)
        low = float(submit.min()) if len(keep) else 0.0
        span = int(submit.max() - low) + 2 if len(keep) else 2
        return cls(
            ids,
            np.searchsorted(ids, job_id) * span + np.floor(submit - low).astype(np.int64),
            job_id,
            whole(rows["array_job_id"])[keep],
            submit,
            seconds(rows["start"])[keep],
            _first_named(rows["partition"], partitions)[keep],
            {name: floats(rows[f"{name}_req"])[keep] for name in REQUEST},
            low,
            span,
        )

    def at(self, job_id: Ints, moment: Floats) -> Ints:
        """The last attempt of each job that was submitted by ``moment``, -1 if none is known."""
        if not len(self.keys):
            return np.full(len(job_id), -1)
        place = np.minimum(np.searchsorted(self.ids, job_id), len(self.ids) - 1)
        since = np.clip(np.floor(np.nan_to_num(moment - self._from, nan=-1.0)), -1, self._span - 1).astype(np.int64)
        entry = np.searchsorted(self.keys, place * self._span + since, "right") - 1
        return np.where((self.ids[place] == job_id) & (entry >= 0) & (self.job_id[entry] == job_id), entry, -1)


def _first_named(column: pa.ChunkedArray, partitions: Words) -> Ints:
    numbers, words = distinct_words(column)
    return np.array([partitions.add((w or "").split(",")[0]) for w in words], np.int64)[numbers]
