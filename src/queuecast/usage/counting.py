"""How much of what was given was used, over many jobs: with how many it is known of, and how many not."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queuecast.store.files import floats

Resource = Literal["cpus", "memory", "gpus"]
_COLUMNS = {"cpus": ("cpu_share", "cpus_alloc"), "memory": ("mem_peak_bytes", "mem_alloc_bytes"), "gpus": ("gpu_util_mean", "gpus_alloc")}


@dataclass(frozen=True)
class Counted:
    """``share``: used of given, each job weighted with its run time and size; None: known of no job. ``n`` jobs are in it.

    ``unknown`` ended jobs have no figure, ``doubtful`` have one that cannot be trusted (CPU time of killed jobs, of jobs with steps
    on some nodes only, or more than there was), ``running`` have none that is final. ``generated`` of the ``n`` were made up.
    """

    share: float | None
    n: int
    unknown: int
    doubtful: int
    running: int
    generated: int

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def counted(rows: pa.Table, resource: Resource) -> Counted:
    """Over rows of `queuecast.usage.uses` that were given some of the resource. What is not known is in no mean."""
    used_name, given_name = _COLUMNS[resource]
    used, given, elapsed = floats(rows[used_name]), floats(rows[given_name]), floats(rows["elapsed_s"])
    mine = given > 0
    final = pc.fill_null(rows["final"], False).to_numpy().astype(bool) & mine
    known = final & ~np.isnan(used) & (elapsed > 0)
    doubtful = np.zeros(len(mine), bool)
    if resource == "cpus":
        doubtful = known & pc.is_in(rows["cpu_quality"], value_set=pa.array(["implausible", "too_low", "few_steps"])).to_numpy()
    fine = known & ~doubtful
    part = np.where(fine, used / given if resource == "memory" else used, 0.0)
    weight = np.where(fine, given * elapsed, 0.0)
    total = float(weight.sum())
    generated = fine & pc.fill_null(rows["generated"], False).to_numpy().astype(bool)
    return Counted(float((part * weight).sum()) / total if total > 0 else None, int(fine.sum()), int((final & ~known).sum()),
                   int(doubtful.sum()), int((mine & ~final).sum()), int(generated.sum()))  # fmt: skip
