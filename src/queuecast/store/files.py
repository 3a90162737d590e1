"""Parquet files read with as little as possible: the columns asked for, the row groups that may hold the times.

``pyarrow.parquet.read_table`` would do, but it brings in pyarrow.dataset and with it pandas: 0.3 s at every start.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from queuecast.schema import TIME

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read_file(
    path: Path,
    schema: pa.Schema,
    *,
    time: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    dictionary: bool = False,
) -> pa.Table:
    """The schema's columns of one file; those it lacks are null. With ``dictionary`` texts come dictionary-encoded.

    Row groups whose ``time`` column lies wholly outside
    [since, until) are left out, so the bounds are coarse."""
    texts = [f.name for f in schema if pa.types.is_string(f.type)] if dictionary else []
    if dictionary:
        schema = pa.schema([f.with_type(pa.dictionary(pa.int32(), f.type)) if f.name in texts else f for f in schema])
    with pq.ParquetFile(path, read_dictionary=texts) as file:
        present = file.schema_arrow.names
        columns = [n for n in schema.names if n in present]
        groups = _groups(file, time, since, until) if time in present else list(range(file.num_row_groups))
        rows = file.read_row_groups(groups, columns=columns) if groups else file.schema_arrow.empty_table().select(columns)
    return conform(rows, schema)


def _groups(file: pq.ParquetFile, time: str | None, since: datetime | None, until: datetime | None) -> Sequence[int]:
    if since is None and until is None:
        return list(range(file.num_row_groups))
    index = file.schema_arrow.names.index(time)
    chosen = []
    for group in range(file.num_row_groups):
        known = file.metadata.row_group(group).column(index).statistics
        if known is not None and known.has_min_max:
            low, high = _aware(known.min), _aware(known.max)
            if (since is not None and high < since) or (until is not None and low >= until):
                continue
        chosen.append(group)
    return chosen


def _aware(value: datetime) -> datetime:
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)


def instant(value: datetime) -> pa.Scalar:
    """An aware time as a scalar to compare columns with. ``pa.scalar(datetime)`` would import pandas."""
    micros = (value - _EPOCH) // timedelta(microseconds=1)
    return pa.scalar(micros, pa.int64()).cast(TIME)


def conform(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The schema's columns in its order and types; absent ones are null (so a file without ended jobs fits too)."""
    columns = [rows[f.name].cast(f.type) if f.name in rows.column_names else pa.nulls(rows.num_rows, f.type) for f in schema]
    return pa.table(columns, schema=schema)
