"""Texts to values, a whole Arrow array at a time: the common shapes of numbers, durations and job ids."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from queuecast.errors import ParseError
from queuecast.slurmtext.jobids import JobId
from queuecast.slurmtext.nulls import NUMBERS

Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Parser = Callable[[str], Any]

MEMO = 200_000
"""Distinct texts remembered per parser."""


INT64 = 1 << 63


def bounded(value: Any, text: str) -> Any:
    """The value, if its whole numbers fit the lake's 64 bits. Raises `ParseError` if not."""
    for part in value if isinstance(value, tuple) else (value,):
        if isinstance(part, int) and not -INT64 <= part < INT64:
            raise ParseError("number out of range", text)
    return value


class Memo:
    """A parser that remembers. What it raises is remembered as well."""

    def __init__(self, parse: Parser) -> None:
        self.parse = parse
        self.known: dict[str, Any] = {}

    def all(self, texts: list[str]) -> list[Any]:
        """Results in order; a `ParseError` stands where the parser raised it."""
        known, parse = self.known, self.parse
        if len(known) > MEMO:
            known.clear()
        out = []
        for text in texts:
            value = known.get(text, known)
            if value is known:
                try:
                    value = bounded(parse(text), text)
                except ParseError as error:
                    value = error
                known[text] = value
            out.append(value)
        return out


@dataclass
class Ids:
    """Job ids taken apart: arrays of one length. ``bad`` marks texts that are no job id."""

    base: pa.Int64Array
    task: pa.Int64Array
    tasks: pa.Int64Array
    exact: pa.BooleanArray
    throttle: pa.Int64Array
    het: pa.Int64Array
    array: Mask
    bad: Mask


_SENTINEL = 4_294_967_294


def nulled(column: pa.StringArray, spellings: frozenset[str]) -> pa.StringArray:
    """The column with those texts null."""
    if all_blank(column):
        return pa.nulls(len(column), pa.string())
    size = pc.binary_length(column)
    nothing = pc.equal(size, 0)
    if len(spellings) > 1:
        short = pc.less_equal(size, max(map(len, spellings)))
        if not pc.any(short).as_py():
            return column
        nothing = pc.is_in(column, value_set=pa.array(sorted(spellings), pa.string()))
    if not pc.any(nothing).as_py():
        return column
    return pc.if_else(nothing, pa.scalar(None, pa.string()), column)


def all_blank(column: pa.StringArray) -> bool:
    """Has no row any text? Told by the offsets alone."""
    if not len(column):
        return True
    offsets = np.frombuffer(column.buffers()[1], np.int32)
    return bool(offsets[column.offset] == offsets[column.offset + len(column)])


def cast_whole(column: pa.StringArray) -> pa.Int64Array | None:
    """The column as whole numbers by Arrow's cast (blank is null); None if some text is no plain number."""
    if all_blank(column):
        return pa.nulls(len(column), pa.int64())
    blank = pc.equal(pc.binary_length(column), 0)
    try:
        out = (pc.if_else(blank, pa.scalar(None, pa.string()), column) if pc.any(blank).as_py() else column).cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    if len(out) and out.null_count < len(out):
        bounds = pc.min_max(out)
        if bounds["min"].as_py() < 0 or bounds["max"].as_py() >= 10**18:
            return None
        if bounds["max"].as_py() >= _SENTINEL:
            out = pc.if_else(pc.is_in(out, value_set=pa.array([_SENTINEL, _SENTINEL + 1])), pa.scalar(None, pa.int64()), out)
    return out


_CLOCK = ((0, 36000.0, 9), (1, 3600.0, 9), (3, 600.0, 5), (4, 60.0, 9), (6, 10.0, 5), (7, 1.0, 9))
_MILLIS = ((0, 600.0, 5), (1, 60.0, 9), (3, 10.0, 5), (4, 1.0, 9), (6, 0.1, 9), (7, 0.01, 9), (8, 0.001, 9))


def clock_seconds(column: pa.StringArray) -> tuple[npt.NDArray[np.float64], Mask]:
    """Seconds of texts ``HH:MM:SS``, ``D-HH:MM:SS`` and ``MM:SS.mmm``, by their bytes, and which texts have another shape."""
    n = len(column)
    values, left = np.zeros(n), np.ones(n, bool)
    buffers = column.buffers()
    if not n or buffers[2] is None:
        return values, left
    offsets = np.frombuffer(buffers[1], np.int32)[column.offset : column.offset + n + 1].astype(np.int64)
    data = np.frombuffer(buffers[2], np.uint8)
    size = np.diff(offsets)
    for length in (8, 9, 10, 11, 12):
        rows = np.flatnonzero(size == length)
        if not len(rows):
            continue
        start = offsets[rows]
        days = length - 9  # digits before the dash
        if days > 0:
            begin = start + days + 1
            fine = data[begin - 1] == 45
            places = [(place - days - 1, 86400.0 * 10 ** (days - 1 - place), 9) for place in range(days)]
            digits, marks = (*_CLOCK, *places), ((2, 58), (5, 58))
        else:
            begin, fine = start, np.ones(len(rows), bool)
            digits, marks = (_CLOCK, ((2, 58), (5, 58))) if length == 8 else (_MILLIS, ((2, 58), (5, 46)))
        for place, byte in marks:
            fine &= data[begin + place] == byte
        total = np.zeros(len(rows))
        for place, weight, highest in digits:
            digit = data[begin + place].astype(np.float64) - 48
            fine &= (digit >= 0) & (digit <= highest)
            total += digit * weight
        if days > 0:
            fine &= (data[begin] - 48) * 10 + (data[begin + 1] - 48) < 24
        values[rows[fine]] = np.round(total[fine], 3)
        left[rows[fine]] = False
    return values, left


def parse_float(text: str) -> float | None:
    text = text.strip()
    if not text or text in NUMBERS:
        return None
    try:
        value = float(text)
    except ValueError:
        raise ParseError("not a number", text) from None
    return None if value != value else value


def parse_ids(column: pa.StringArray, memo: Memo) -> Ids:
    """Job ids without steps, taken apart. ``memo`` remembers `parse_job_id`."""
    plain = pc.ascii_is_decimal(column)
    base = cast_whole(pc.if_else(plain, column, pa.scalar("", pa.string())))
    left = ~plain.to_numpy(zero_copy_only=False)
    n = len(column)
    if base is None:
        base, left = pa.nulls(n, pa.int64()), np.ones(n, bool)
    elif n and (pc.min(base).as_py() or 0) < 1:
        zero = pc.fill_null(pc.equal(base, 0), False)
        left |= zero.to_numpy(zero_copy_only=False)
    out = Ids(base, pa.nulls(n, pa.int64()), pa.array(np.ones(n, np.int64)), pa.array(np.ones(n, bool)), pa.nulls(n, pa.int64()),
              pa.nulls(n, pa.int64()), np.zeros(n, bool), np.zeros(n, bool))
    rows = np.flatnonzero(left)
    if not len(rows):
        return out
    part = column.take(pa.array(rows))
    tasks = pc.extract_regex(part, r"^(?P<b>[1-9][0-9]{0,9})_(?P<t>[0-9]{1,9})$")
    simple = tasks.is_valid().to_numpy(zero_copy_only=False)
    if simple.any():
        mask = np.zeros(n, bool)
        mask[rows[simple]] = True
        chosen = tasks.filter(pa.array(simple))
        out.base = pc.replace_with_mask(out.base, pa.array(mask), pc.struct_field(chosen, "b").cast(pa.int64()))
        out.task = pc.replace_with_mask(out.task, pa.array(mask), pc.struct_field(chosen, "t").cast(pa.int64()))
        out.array = mask
    if simple.all():
        return out
    mask = np.zeros(n, bool)
    mask[rows[~simple]] = True
    found = memo.all(part.filter(pa.array(~simple)).to_pylist())
    ids = [JobId(0) if isinstance(f, ParseError) else f for f in found]
    out.bad[mask] = [isinstance(f, ParseError) for f in found]
    out.array = out.array.copy()
    out.array[mask] = [i.array_task is not None or i.array_spec is not None for i in ids]

    def put(into: pa.Array, values: list[Any]) -> pa.Array:
        return pc.replace_with_mask(into, pa.array(mask), pa.array(values, into.type))

    out.base = put(out.base, [i.base or None for i in ids])
    out.task = put(out.task, [i.array_task for i in ids])
    out.tasks = put(out.tasks, [i.tasks for i in ids])
    out.exact = put(out.exact, [i.tasks_exact for i in ids])
    out.throttle = put(out.throttle, [i.throttle for i in ids])
    out.het = put(out.het, [i.het_offset for i in ids])
    return out
