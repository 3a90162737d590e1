"""Columns of strings become typed Arrow columns, whole columns at a time.

Each distinct text is parsed once by `queuecast.slurmtext`; the common shapes of numbers, times and job ids take
Arrow's own casts. A text that no rule understands gives null and a reject with the column's name, so nothing vanishes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from queuecast.collect.convert import (
    Ids,
    Ints,
    Mask,
    Memo,
    Parser,
    all_blank,
    cast_whole,
    clock_seconds,
    nulled,
    parse_float,
    parse_ids,
)
from queuecast.collect.framing import Frame, Section
from queuecast.collect.rejects import Rejects
from queuecast.errors import ParseError
from queuecast.schema import TIME
from queuecast.slurmtext.durations import parse_elapsed
from queuecast.slurmtext.jobids import parse_job_id
from queuecast.slurmtext.nulls import TEXT, parse_count
from queuecast.slurmtext.sizes import parse_size
from queuecast.slurmtext.times import NO_TIME, parse_time


@dataclass
class Times:
    """Times in UTC and what the local text left open."""

    values: pa.TimestampArray
    ambiguous: Mask
    nonexistent: Mask


@dataclass
class Env:
    """What a capture says about all its rows, and what is remembered between blocks."""

    zone: str
    cluster: str
    taken_at: datetime
    rejects: Rejects
    memos: dict[str, Memo] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)

    def memo(self, name: str, parse: Parser) -> Memo:
        if name not in self.memos:
            self.memos[name] = Memo(parse)
        return self.memos[name]


class Columns:
    """The columns of a frame by name, for the rows ``rows`` (None: all).

    Names are keys (see `dialect.key_of`); the first that the header has is used. Where no name is there, every
    method gives nulls.
    """

    def __init__(self, frame: Frame, env: Env, rows: Ints | None = None) -> None:
        self.frame, self.env, self.rows = frame, env, rows
        self.n = len(frame) if rows is None else len(rows)
        self._take = None if rows is None else pa.array(rows)
        self._raw: dict[int, pa.StringArray] = {}
        self.lines = frame.lines if rows is None else frame.lines[rows]

    def at(self, rows: Ints) -> Columns:
        """The same for some of the rows."""
        return Columns(self.frame, self.env, rows if self.rows is None else self.rows[rows])

    def has(self, *names: str) -> bool:
        return any(n in self.frame.dialect.keys for n in names)

    def every(self, name: str) -> list[pa.StringArray]:
        """All columns of that name in the header's order (squeue and sinfo repeat names)."""
        return [self._column(j) for j, key in enumerate(self.frame.dialect.keys) if key == name and j in self.frame.columns]

    def raw(self, *names: str) -> pa.StringArray | None:
        found = self.find(*names)
        return None if found is None else self._column(found[0])

    def need(self, *names: str) -> pa.StringArray:
        """The first of the columns there. Raises `ParseError` if none is: then nothing can be read."""
        column = self.raw(*names)
        if column is None:
            raise ParseError(f"no column {names[0]}", " ".join(self.frame.dialect.header))
        return column

    def find(self, *names: str) -> tuple[int, str] | None:
        """Position and printed name of the first of the names that is there."""
        for name in names:
            for j, key in enumerate(self.frame.dialect.keys):
                if key == name and j in self.frame.columns:
                    return j, self.frame.dialect.header[j]
        return None

    def _column(self, j: int) -> pa.StringArray:
        if j not in self._raw:
            column = self.frame.columns[j]
            self._raw[j] = column if self._take is None else column.take(self._take)
        return self._raw[j]

    # -- what every row has

    def observed(self) -> pa.TimestampArray:
        times = [s.at or self.env.taken_at for s in self.frame.sections]
        return pa.array(times, TIME).take(pa.array(self._section()))

    def cluster(self) -> pa.StringArray:
        names = pa.array([s.cluster or self.env.cluster for s in self.frame.sections],
                         pa.string()).take(pa.array(self._section()))
        column = self.raw("cluster")
        if column is None:
            return names
        given = nulled(column, TEXT)
        return given if not given.null_count else pc.fill_null(given, names)

    def not_utf8(self) -> Mask:
        return self.frame.not_utf8 if self.rows is None else self.frame.not_utf8[self.rows]

    def _section(self) -> npt.NDArray[np.int32]:
        return self.frame.section if self.rows is None else self.frame.section[self.rows]

    def section_of(self, row: int) -> Section:
        return self.frame.sections[int(self._section()[row])]

    # -- conversions

    def text(self, *names: str, null: frozenset[str] = TEXT) -> pa.StringArray:
        column = self.raw(*names)
        return pa.nulls(self.n, pa.string()) if column is None else nulled(column, null)

    def whole(self, *names: str) -> pa.Int64Array:
        """Whole numbers; Slurm's words and sentinels for "none" are null."""
        found = self.find(*names)
        if found is None:
            return pa.nulls(self.n, pa.int64())
        column = self._column(found[0])
        fast = cast_whole(column)
        return fast if fast is not None else self.mapped(column, found[1], "count", parse_count, (pa.int64(),))[0]

    def floats(self, *names: str) -> pa.DoubleArray:
        return self.parsed("float", parse_float, (pa.float64(),), *names)[0]

    def seconds(self, *names: str) -> pa.DoubleArray:
        """Printed durations in seconds."""
        found = self.find(*names)
        if found is None:
            return pa.nulls(self.n, pa.float64())
        column = self._column(found[0])
        if all_blank(column):
            return pa.nulls(self.n, pa.float64())
        values, left = clock_seconds(column)
        if not left.any():
            return pa.array(values, pa.float64())
        rows = np.flatnonzero(left)
        rest = self.mapped(column.take(pa.array(rows)), found[1], "elapsed", parse_elapsed, (pa.float64(),), rows=rows)[0]
        missing = rest.is_null().to_numpy(zero_copy_only=False)
        values[rows] = pc.fill_null(rest, 0.0).to_numpy(zero_copy_only=False)
        mask = np.zeros(self.n, bool)
        mask[rows] = missing
        return pa.array(values, pa.float64(), mask=mask)

    def sizes(self, *names: str) -> pa.Int64Array:
        """Printed sizes in bytes; a bare number is bytes."""
        found = self.find(*names)
        if found is None:
            return pa.nulls(self.n, pa.int64())
        column = self._column(found[0])
        if all_blank(column):
            return pa.nulls(self.n, pa.int64())
        number = pc.utf8_rtrim(column, characters="K")
        plain = pc.and_(pc.ascii_is_decimal(number), pc.less(pc.binary_length(number), 15))
        values = pc.if_else(plain, number, pa.scalar(None, pa.string())).cast(pa.int64())
        values = pc.if_else(pc.ends_with(column, "K"), pc.multiply(values, 1024), values)
        left = ~pc.or_(plain, pc.equal(pc.binary_length(column), 0)).to_numpy(zero_copy_only=False)
        if not left.any():
            return values
        rows = np.flatnonzero(left)
        rest = self.mapped(column.take(pa.array(rows)), found[1], "size", parse_size, (pa.int64(),), rows=rows)[0]
        return pc.replace_with_mask(values, pa.array(left), rest)

    def unsigned(self, *names: str) -> pa.UInt64Array:
        """Numbers up to 64 bits; anything else is null."""
        column = self.raw(*names)
        if column is None:
            return pa.nulls(self.n, pa.uint64())
        plain = pc.ascii_is_decimal(column)
        try:
            return pc.if_else(plain, column, pa.scalar(None, pa.string())).cast(pa.uint64())
        except pa.ArrowInvalid:
            return pa.array([int(t) if t.isascii() and t.isdigit() and int(t) < 1 << 64 else None for t in column.to_pylist()],
                            pa.uint64())

    def parsed(self, memo: str, parse: Parser, types: Sequence[pa.DataType], *names: str) -> list[pa.Array]:
        """``parse`` over the first of the columns there. With several types it returns a tuple with a value for each."""
        found = self.find(*names)
        if found is None:
            return [pa.nulls(self.n, t) for t in types]
        return self.mapped(self._column(found[0]), found[1], memo, parse, types)

    def mapped(self, column: pa.StringArray, name: str, memo: str, parse: Parser, types: Sequence[pa.DataType], *,
               rows: Ints | None = None) -> list[pa.Array]:
        """``parse`` over a column by its distinct texts. ``rows`` are the rows the column stands for, if not all."""
        if all_blank(column) and self.env.memo(memo, parse).all([""]) == [None]:
            return [pa.nulls(len(column), t) for t in types]
        encoded = column.dictionary_encode()
        results = self.env.memo(memo, parse).all(encoded.dictionary.to_pylist())
        bad = [i for i, r in enumerate(results) if isinstance(r, ParseError)]
        if bad:
            codes = encoded.indices.to_numpy()
            for i in bad:
                error = results[i]
                results[i] = None
                for row in np.flatnonzero(codes == i):
                    self.reject_value(int(row if rows is None else rows[row]), name, error.cause, encoded.dictionary[i].as_py())
        if len(types) == 1:
            return [pa.array(results, types[0]).take(encoded.indices)]
        empty = (None,) * len(types)
        parts = list(zip(*[empty if r is None else r for r in results], strict=True)) or [()] * len(types)
        return [pa.array(p, t).take(encoded.indices) for p, t in zip(parts, types, strict=True)]

    def reject_value(self, row: int, name: str, cause: str, raw: str) -> None:
        where = self.section_of(row)
        self.env.rejects.value(int(self.lines[row]), name, cause, raw, cluster=where.cluster, at=where.at)

    def reject_rows(self, bad: Mask, cause: str) -> None:
        """Whole records that give no row."""
        for row in np.flatnonzero(bad):
            where = self.section_of(int(row))
            names = self.frame.dialect.header
            raw = "\n".join(f"{names[j]}={c[int(self.rows[row]) if self.rows is not None else int(row)].as_py()}"
                            for j, c in sorted(self.frame.columns.items()))
            self.env.rejects.record(int(self.lines[row]), cause, raw, cluster=where.cluster, at=where.at)

    def times(self, *names: str) -> Times:
        """Printed times. Local to the capture's zone, or epoch seconds."""
        found = self.find(*names)
        none = np.zeros(self.n, bool)
        if found is None:
            return Times(pa.nulls(self.n, TIME), none, none)
        return self.times_of(self._column(found[0]), found[1])

    def times_of(self, column: pa.StringArray, name: str) -> Times:
        none = np.zeros(self.n, bool)
        zone = self.env.zone
        iso = pc.equal(pc.binary_length(column), 19)
        try:
            naive = (column if pc.all(iso).as_py() else pc.if_else(iso, column, pa.scalar(None,
                pa.string()))).cast(pa.timestamp("us"))
        except pa.ArrowInvalid:
            naive = None
        if naive is None:
            rest = np.ones(self.n, bool)
            out, ambiguous, nonexistent = pa.nulls(self.n, TIME), none.copy(), none.copy()
        elif zone == "UTC":
            out, ambiguous, nonexistent = naive.cast(TIME), none, none
            rest = ~iso.to_numpy(zero_copy_only=False)
        else:
            early = pc.assume_timezone(naive, zone, ambiguous="earliest", nonexistent="earliest")
            late = pc.assume_timezone(naive, zone, ambiguous="latest", nonexistent="latest")
            out, ambiguous, nonexistent = early.cast(TIME), none.copy(), none.copy()
            rest = ~iso.to_numpy(zero_copy_only=False) | pc.fill_null(pc.not_equal(early, late),
                False).to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(rest)
        if len(rows):
            encoded = column.take(pa.array(rows)).dictionary_encode()
            parsed = self.env.memo(f"time {zone}", lambda t: parse_time(t, zone)).all(encoded.dictionary.to_pylist())
            codes = encoded.indices.to_numpy()
            if any(p is not NO_TIME and (isinstance(p, ParseError) or p.value or p.flag) for p in parsed):
                values, out_flags = [], []
                for i, p in enumerate(parsed):
                    if isinstance(p, ParseError):
                        for row in rows[codes == i]:
                            self.reject_value(int(row), name, p.cause, encoded.dictionary[i].as_py())
                        p = NO_TIME
                    values.append(p.value)
                    out_flags.append(p.flag)
                flags = np.array(out_flags, object)[codes]
                ambiguous, nonexistent = ambiguous.copy(), nonexistent.copy()
                ambiguous[rows] = flags == "ambiguous_hour"
                nonexistent[rows] = flags == "nonexistent_hour"
                out = pc.replace_with_mask(out, pa.array(rest), pa.array(values, TIME).take(encoded.indices))
            elif naive is None:
                out = pa.nulls(self.n, TIME)
        return Times(out, ambiguous, nonexistent)

    def settle(self, times: Times, other: Times, span: pa.Array, *names: str) -> Times:
        """Use a run time to tell the two instants of a repeated hour apart: ``times`` lies ``span`` seconds after ``other``."""
        column = self.raw(*names)
        rows = np.flatnonzero(times.ambiguous)
        if column is None or not len(rows):
            return times
        values, flags = times.values.to_pylist(), times.ambiguous.copy()
        begins, spans = other.values, span
        for row in rows:
            begin, length = begins[int(row)].as_py(), spans[int(row)].as_py()
            if begin is None or length is None or (other.ambiguous[row] and length < 0):
                continue
            found = parse_time(column[int(row)].as_py(), self.env.zone, elapsed_from=begin, elapsed_s=length)
            if not found.flag:
                values[int(row)] = found.value
                flags[row] = False
        return Times(pa.array(values, TIME), flags, times.nonexistent)

    def ids(self, column: pa.StringArray) -> Ids:
        """Job ids without steps."""
        return parse_ids(column, self.env.memo("jobid", parse_job_id))
