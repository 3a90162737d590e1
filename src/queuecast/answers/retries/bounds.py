"""What the owner's jobs of the same kind used lately: a copy should hold that, too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from queuecast.models.sizing import sizes_of
from queuecast.usage.measure import uses_of

if TYPE_CHECKING:
    from queuecast.models.sizing_bound import Resource, SizeBound
    from queuecast.store.lake import Lake

SINCE: Final = timedelta(days=30)
MOST_ROWS: Final = 400
"""Of the latest of the kind: with more, a model would be learned first, which takes seconds."""
LEAST: Final = 3
ABOVE: Final = 1.05
"""A killed job's peak may be seen a little above what it had."""


def bound_of(lake: Lake, cluster: str, row: Mapping[str, Any], at: datetime, resource: Resource, asked: float) -> SizeBound | None:
    """An upper bound for the next job of the kind (docs/rightsizing.md), only where it is above ``asked``; None without.

    Jobs of the same user, whose name differs only in what changes from run to run.
    """
    if not row["user"]:
        return None
    uses = uses_of(lake, cluster, since=at - SINCE, at=at, viewer_user=row["user"])
    keys = [(key[0], key[1]) for key in sizes_of(uses).kind_keys]
    ids = uses.rows["job_id"].to_pylist()
    mine = next((k for k, job in zip(keys, ids, strict=True) if job == row["job_id"]), None)
    like = [i for i, k in enumerate(keys) if k == mine][-MOST_ROWS:]
    if mine is None or len(like) < LEAST:
        return None
    few = replace(uses, rows=uses.rows.take(pa.array(like, pa.int64())))
    found = sizes_of(few).bound(
        resource, user=row["user"], name=row["name"], account=row["account"], partition=row["partition"], asked=asked
    )
    # where all that is known is that the kind was killed as well, the step is the copy's own
    return found if found is not None and found.n >= LEAST and found.value > asked and found.used[2] > asked * ABOVE else None
