"""Parsers that give several columns at once, and small helpers on Arrow arrays, shared by the tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from queuecast.collect.columns import Columns
from queuecast.errors import ParseError
from queuecast.schema import arrow_schema
from queuecast.slurmtext.durations import Limit
from queuecast.slurmtext.nulls import parse_count
from queuecast.slurmtext.reasons import parse_reason
from queuecast.slurmtext.sizes import parse_req_mem, parse_size
from queuecast.slurmtext.states import parse_exit, parse_node_state, parse_state
from queuecast.slurmtext.tres import gpus_of_gres, gpus_of_tres, parse_tres

Mask = npt.NDArray[np.bool_]
TresRow = tuple[int | None, int | None, int | None, str | None, int | None]


def parse_state_pair(text: str) -> tuple[str, int | None]:
    """(base state, uid that cancelled)."""
    state = parse_state(text)
    return state.base, state.by


def parse_node_state_pair(text: str) -> tuple[str, str | None]:
    """(base state, comma list of flags)."""
    state = parse_node_state(text)
    return state.base, ",".join(sorted(state.flags)) or None


def parse_reason_pair(text: str) -> tuple[str | None, str | None]:
    """(code, text as printed where it is more than the code)."""
    reason = parse_reason(text)
    if reason is None:
        return None, None
    return reason.code, None if text.strip().strip("()") == reason.code else text.strip()


def parse_exit_pair(text: str) -> tuple[int | None, int | None]:
    return parse_exit(text)


def parse_req_mem_pair(text: str) -> tuple[int | None, str | None]:
    found = parse_req_mem(text)
    return found.bytes, found.per


def parse_flags(text: str) -> str | None:
    """Which scheduler started it. 22.05 and before misspell another flag (StartRecieved), so each is compared whole."""
    flags = {f.strip() for f in text.split(",")}
    for name, value in (("SchedMain", "main"), ("SchedBackfill", "backfill"), ("SchedSubmit", "submit")):
        if name in flags:
            return value
    return None


def limit_pair(parse: Callable[[str], Limit]) -> Callable[[str], tuple[int | None, str | None]]:
    """(seconds, kind) of a limit; the kind is None where nothing was told."""
    def pair(text: str) -> tuple[int | None, str | None]:
        found = parse(text)
        return found.seconds, None if found.kind == "unknown" else found.kind

    return pair


@cache
def tres_parser(tracked: bool) -> Callable[[str], TresRow]:
    """(CPUs, bytes of memory, GPUs, GPU type, nodes) of a TRES text."""
    def parse(text: str) -> TresRow:
        amounts = parse_tres(text)
        gpus = gpus_of_tres(text, tracked)
        return amounts.get("cpu"), amounts.get("mem"), gpus.total, gpus.type, amounts.get("node")

    return parse


def parse_gres_pair(text: str) -> tuple[int | None, str | None]:
    """(GPUs, GPU type) of a GRES text; the type of several is ``mixed``."""
    gpus = gpus_of_gres(text)
    return gpus.total, gpus.type


def mask_of(values: pa.Array) -> Mask:
    """A boolean Arrow array as NumPy; null is false."""
    out: Mask = pc.fill_null(values, False).to_numpy(zero_copy_only=False).astype(bool, copy=True)
    return out


def null_where(values: pa.Array, mask: Mask) -> pa.Array:
    return pc.if_else(pa.array(mask), pa.scalar(None, values.type), values) if mask.any() else values


def whole_seconds(values: pa.Array) -> pa.Array:
    return pc.floor(values).cast(pa.int64())


def run_time(c: Columns) -> pa.Int64Array:
    """ElapsedRaw, else Elapsed, in seconds."""
    raw = c.whole("elapsedraw")
    return pc.coalesce(raw, whole_seconds(c.seconds("elapsed"))) if raw.null_count and c.has("elapsed") else raw


def latest(*times: pa.Array) -> pa.Array:
    """The last of several times in each row; null ones do not count."""
    return pc.max_element_wise(*[t.cast(pa.int64()) for t in times]).cast(times[0].type)


def parse_amount(text: str) -> int | None:
    """A count that squeue and sinfo shorten when it is large: ``4K`` nodes are 4096."""
    try:
        return parse_count(text)
    except ParseError:
        return parse_size(text)


def rows(table: str, columns: dict[str, pa.Array], n: int) -> pa.Table:
    """A table with exactly the schema's columns; those not given are null. Raises KeyError for a column it does not know."""
    schema = arrow_schema(table)
    unknown = columns.keys() - set(schema.names)
    if unknown:
        raise KeyError(f"{table} has no column {sorted(unknown)}")
    return pa.table([columns[f.name].cast(f.type) if f.name in columns else pa.nulls(n, f.type) for f in schema], schema=schema)


def without(table: pa.Table, bad: Mask) -> pa.Table:
    """The table without those rows."""
    return table.filter(pa.array(~bad)) if bad.any() else table
