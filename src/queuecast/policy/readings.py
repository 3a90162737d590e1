"""The reading of a table of configuration that held at a moment."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from queuecast.schema import TABLES
from queuecast.store.files import instant, last_reading

if TYPE_CHECKING:
    from queuecast.store.lake import Lake


_KEPT: dict[tuple[str, int, str, str], pa.Table] = {}
_MOST_KEPT = 32


def _kept(lake: Lake, table: str, cluster: str) -> pa.Table:
    """All readings of a small table; read once for one state of the lake, since every question needs them."""
    key = (str(lake.path), lake.manifest.version, table, cluster)
    if key not in _KEPT:
        while len(_KEPT) >= _MOST_KEPT:
            _KEPT.pop(next(iter(_KEPT)))
        _KEPT[key] = lake.read(table, cluster=cluster)
    return _KEPT[key]


def latest_reading(lake: Lake, table: str, cluster: str, at: datetime) -> pa.Table:
    """The last stored reading of a table of configuration at ``at`` (of each of its parts); the first one if none is older."""
    rows = _kept(lake, table, cluster)
    if not rows.num_rows:
        return rows
    parts = TABLES[table].parts
    before = rows.filter(pc.less_equal(rows["observed_at"], instant(at)))
    if not before.num_rows:
        return last_reading(rows, parts, first=True).drop_columns(["observed_at"])
    rows = last_reading(before, parts)
    return rows.drop_columns(["observed_at"])  # a time as a Python value would import pandas
