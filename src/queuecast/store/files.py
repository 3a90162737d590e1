"""Parquet files read with as little as possible: the columns asked for, the row groups that may hold the times.

``pyarrow.parquet.read_table`` would do, but it brings in pyarrow.dataset and with it pandas: 0.3 s at every start.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
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
        rows = file.read_row_groups(groups, columns=columns)
    return conform(rows, schema)


def floats(column: pa.ChunkedArray) -> npt.NDArray[np.float64]:
    """A column of numbers or times (then microseconds since 1970) as float64, null as nan.

    ``to_numpy`` would do; it imports pandas.
    """
    if not len(column):  # combining nothing would import pandas too
        return np.array([], np.float64)
    whole = column.combine_chunks()
    kind = np.float64 if pa.types.is_floating(whole.type) else np.int32 if pa.types.is_int32(whole.type) else np.int64
    raw = np.frombuffer(whole.buffers()[1] or b"", kind)[whole.offset : whole.offset + len(whole)].astype(np.float64)
    if whole.null_count:
        raw[np.from_dlpack(whole.is_null().cast(pa.uint8())).astype(bool)] = np.nan
    return raw


def _groups(file: pq.ParquetFile, time: str | None, since: datetime | None, until: datetime | None) -> Sequence[int]:
    if since is None and until is None:
        return list(range(file.num_row_groups))
    index = file.schema_arrow.names.index(time)
    chosen = []
    for group in range(file.num_row_groups):
        known = file.metadata.row_group(group).column(index).statistics
        if known is not None and known.has_min_max:
            # The raw values are microseconds, as the schema says; the converted ones would import pandas.
            low, high = known.min_raw, known.max_raw
            if (since is not None and high < _micros(since)) or (until is not None and low >= _micros(until)):
                continue
        chosen.append(group)
    return chosen


def _micros(value: datetime) -> int:
    return (value - _EPOCH) // timedelta(microseconds=1)


def instant(value: datetime) -> pa.Scalar:
    """An aware time as a scalar to compare columns with. ``pa.scalar`` and ``pa.array`` would import pandas."""
    return pa.Array.from_buffers(TIME, 1, [None, pa.py_buffer(struct.pack("=q", _micros(value)))])[0]


def conform(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The schema's columns in its order and types; absent ones are null (so a file without ended jobs fits too)."""
    columns = [rows[f.name].cast(f.type) if f.name in rows.column_names else pa.nulls(rows.num_rows, f.type) for f in schema]
    return pa.table(columns, schema=schema)


def last_reading(rows: pa.Table, parts: Sequence[str] = (), *, first: bool = False) -> pa.Table:
    """The rows of the last reading (of the first one), of each of the ``parts`` of the table."""
    if parts:
        found = [rows.filter(pc.fill_null(pc.equal(rows[parts[0]], p), False)) for p in pc.unique(rows[parts[0]])]
        return pa.concat_tables([last_reading(f, parts[1:], first=first) for f in found]) if found else rows
    seen = rows["observed_at"]
    return rows.filter(pc.equal(seen, pc.min(seen) if first else pc.max(seen)))
