"""What looks wrong in a job row, as a comma list of constant words. The values stay as Slurm printed them."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queuecast.collect.columns import Columns, Times
from queuecast.collect.tables.values import Mask, latest, mask_of

SLACK = timedelta(minutes=5)
"""Clocks differ; a time later than the reading by more than this is ``future``."""

_REQUEUED = ("REQUEUED", "PREEMPTED", "NODE_FAIL", "CANCELLED", "BOOT_FAIL", "SPECIAL_EXIT", "REQUEUE_HOLD")


def of_jobs(c: Columns, jobs: dict[str, pa.Array], times: dict[str, Times]) -> dict[str, Mask]:
    """Masks by anomaly, for the rows of sacct."""
    submit, eligible, start, end = (jobs[n] for n in ("submit", "eligible", "start", "end"))
    horizon = pc.add(jobs["observed_at"], pa.scalar(SLACK, pa.duration("us")))
    late = latest(submit, start, end)
    out = {
        "end_before_start": mask_of(pc.less(end, start)),
        "eligible_after_start": mask_of(pc.greater(eligible, start)),
        "limit_exceeded": mask_of(pc.greater(jobs["elapsed_s"], jobs["limit_s"])),
        "future": mask_of(pc.greater(late, horizon)),
        "revoked": mask_of(pc.equal(jobs["state"], "REVOKED")),
        "not_utf8": c.not_utf8(),
        "ambiguous_hour": np.logical_or.reduce([t.ambiguous for t in times.values()]),
        "nonexistent_hour": np.logical_or.reduce([t.nonexistent for t in times.values()]),
        "resized": _resized(c, jobs),
    }
    return out


def _resized(c: Columns, jobs: dict[str, pa.Array]) -> Mask:
    """The part after a change of size: a new record of the same id whose times all are the moment of the change.

    A requeue also makes a new record, but it waits again, and the part before it ended otherwise.
    """
    out = mask_of(pc.equal(jobs["state"], "RESIZING"))
    if c.has("originalsluid") and c.has("sluid"):
        first = c.text("originalsluid")
        out |= mask_of(pc.not_equal(first, jobs["sluid"]))
    # the row before the first stands in the block before
    before = c.env.state.get("last job") or {"job_id": None, "end": None, "state": None}
    ids, end, state = (pa.concat_arrays([pa.array([before[n]], jobs[n].type), jobs[n]]) for n in ("job_id", "end", "state"))
    if c.n:
        c.env.state["last job"] = {"job_id": ids[-1].as_py(), "end": end[-1].as_py(), "state": state[-1].as_py()}
        again = mask_of(pc.equal(jobs["job_id"], ids.slice(0, c.n)))
        if again.any():
            submit = jobs["submit"]
            at_once = pc.and_(pc.equal(submit, jobs["start"]), pc.equal(submit, end.slice(0, c.n)))
            same = pc.equal(submit, jobs["eligible"])
            requeued = mask_of(pc.is_in(state.slice(0, c.n), value_set=pa.array(_REQUEUED)))
            out |= again & mask_of(pc.and_(at_once, same)) & ~requeued
    return out


def text(marks: dict[str, Mask], n: int) -> pa.StringArray:
    """The comma list of each row; null for none."""
    words: list[str | None] = [None] * n
    for name in sorted(marks):
        for row in np.flatnonzero(marks[name]):
            before = words[row]
            words[row] = name if before is None else f"{before},{name}"
    return pa.array(words, pa.string())
