"""The two rare layouts: columns of fixed width, and quoted CSV from other programs. Both are read line by line."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from queuecast.collect.dialect import Dialect
from queuecast.collect.lines import Ints, Lines, Mask
from queuecast.collect.mending import check
from queuecast.collect.rejects import MAX_RAW, Rejects

Record = tuple[int, list[str], bool, int]
"""Line, fields, whether it has bytes that are not UTF-8, lines."""

BATCH = 20_000
"""Records of a quoted file per frame."""


def cut_fixed(lines: Lines, low: int, high: int, skip: Mask, dialect: Dialect, rejects: Rejects,
              line0: int) -> tuple[list[Record], int, int]:
    """Records of fixed-width lines: (line, fields, has bytes that are not UTF-8, lines), the lines rejected, and the rejects.

    Slurm counts bytes, so a character may be cut in half and a newline in a name only splits the line: it is rejoined
    until the last column is reached.
    """
    spans = dialect.spans
    need = (spans[-1][1] or spans[-1][0]) - 1 if dialect.ruled else spans[-1][0] - 1
    anchor = dialect.keys.index("jobid") if "jobid" in dialect.keys else None
    out: list[Record] = []
    rejected = refused = 0
    i = low
    while i < high:
        if skip[i]:
            i += 1
            continue
        raw, n = lines.raw(i), 1
        while len(raw) < need and i + n < high and not skip[i + n] and n < 50:
            if anchor is None or _anchored(lines.raw(i + n), dialect, anchor):
                break
            raw += b"\n" + lines.raw(i + n)
            n += 1
        fields = [raw[a:b].partition(b"\x00")[0].decode("utf-8", "replace") for a, b in spans]
        # blanks before an account are its depth in the tree of sshare
        fields = [f.rstrip(" ") if k == "account" else f.strip(" ") for f, k in zip(fields, dialect.keys, strict=True)]
        if anchor is not None and not _anchored(raw, dialect, anchor):
            rejects.record(line0 + i, "columns do not stand under the header", raw[:MAX_RAW])
            rejected += n
            refused += 1
        else:
            out.append((i, fields, bool(lines.invalid[i : i + n].any()), n))
        i += n
    return out, rejected, refused


def _anchored(raw: bytes, dialect: Dialect, anchor: int) -> bool:
    a, b = dialect.spans[anchor]
    value = raw[a:b].decode("utf-8", "replace").strip()
    # squeue cuts a long list of array tasks: 63_[1-3,7,9,11,13,
    return value == "Weights" or (bool(value) and (check("jobid", value) or check("jobid", value.partition("[")[0] + "[]")))


def as_columns(records: list[list[str]], wanted: list[int]) -> dict[int, pa.StringArray]:
    return {j: pa.array([r[j] for r in records], pa.string()) for j in wanted}


def quoted_records(head: bytes, stream: BinaryIO, delimiter: str, columns: int, rejects: Rejects,
                   line0: int) -> Iterator[tuple[list[Record], int, int]]:
    """Batches of records (line, fields, has bytes that are not UTF-8, lines) of a quoted file, the lines rejected, and the rejects."""
    text = io.TextIOWrapper(io.BufferedReader(_Chain(head, stream)), "utf-8", errors="replace", newline="")
    csv.field_size_limit(64 << 20)
    reader = csv.reader(text, delimiter=delimiter, skipinitialspace=True, strict=False)
    batch: list[Record] = []
    rejected, refused, before = 0, 0, 0
    while True:
        try:
            fields = next(reader, None)
        except csv.Error as error:
            rejects.record(line0 + before, "not readable as CSV", str(error))
            rejected += reader.line_num - before
            refused += 1
            before = reader.line_num
            continue
        if fields is None:
            break
        line, n = line0 + before, reader.line_num - before
        before = reader.line_num
        fields = [f.partition("\x00")[0] for f in fields]
        while len(fields) > columns and not fields[-1].strip():
            fields.pop()
        if len(fields) == columns:
            batch.append((line, fields, any("\ufffd" in f for f in fields), n))
        elif any(f.strip() for f in fields):
            rejects.record(line, "wrong number of fields", delimiter.join(fields))
            rejected += n
            refused += 1
        if len(batch) >= BATCH:
            yield batch, rejected, refused
            batch, rejected, refused = [], 0, 0
    yield batch, rejected, refused


class _Chain(io.RawIOBase):
    """Bytes already read, then the rest of the stream."""

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        super().__init__()
        self._head, self._stream = head, stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # typeshed's Buffer has no slice assignment
        data = self._head[: len(buffer)] if self._head else self._stream.read(len(buffer))
        if self._head:
            self._head = self._head[len(data) :]
        buffer[: len(data)] = data
        return len(data)


def invalid_mask(records: list[Record]) -> Mask:
    return np.array([r[2] for r in records], bool)


def line_numbers(records: list[Record]) -> Ints:
    return np.array([r[0] for r in records], np.int64)


def merge_rows(at: Ints, columns: dict[int, pa.StringArray], slow: list[tuple[int, list[str]]], wanted: list[int]) -> tuple[Ints,
    dict[int, pa.StringArray]]:
    where = np.concatenate([at, np.array([line for line, _ in slow], np.int64)])
    order = np.argsort(where, kind="stable")
    take = pa.array(order)
    out = {j: pa.concat_arrays([columns[j], pa.array([f[j] for _, f in slow], pa.string())]).take(take) for j in wanted}
    return where[order], out


def one_array(column: pa.ChunkedArray) -> pa.StringArray:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([],
        pa.string())
