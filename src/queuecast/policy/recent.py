"""The last reading of a table of snapshots, which is too large to be kept whole."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from queuecast.store.files import instant

if TYPE_CHECKING:
    from queuecast.store.lake import Lake

_BACK = (timedelta(hours=3), timedelta(days=2), timedelta(days=40), None)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def standing_snapshot(lake: Lake, table: str, cluster: str, at: datetime, columns: Sequence[str]) -> tuple[pa.Table, datetime | None]:
    """For what rarely changes: as ``last_snapshot``, but the first reading of all if none is as old as ``at``."""
    rows, moment = last_snapshot(lake, table, cluster, at, columns)
    firsts = [datetime.fromisoformat(f.low) for f in lake.manifest.of(table, cluster) if f.low]
    if moment is None and firsts:
        return last_snapshot(lake, table, cluster, min(firsts), columns)
    return rows, moment


def last_snapshot(
    lake: Lake, table: str, cluster: str, at: datetime, columns: Sequence[str], *, told: str | None = None
) -> tuple[pa.Table, datetime | None]:
    """Rows of the last reading at ``at`` and its moment (None and no rows if there is none).

    With ``told``: of the last reading in which that column is not null everywhere.
    """
    for back in _BACK:
        since = None if back is None else at - back
        rows = lake.read(table, [*columns, "observed_at"], cluster=cluster, since=since, until=at + timedelta(microseconds=1))
        rows = rows.filter(pc.less_equal(rows["observed_at"], instant(at)))
        speaking = rows if told is None else rows.filter(pc.is_valid(rows[told]))
        if speaking.num_rows:
            last = pc.max(speaking["observed_at"])
            moment = _EPOCH + timedelta(microseconds=last.cast(pa.int64()).as_py())
            return rows.filter(pc.equal(rows["observed_at"], last)).drop_columns(["observed_at"]), moment
    return lake.read(table, columns, cluster=cluster, since=at, until=at).slice(0, 0), None
