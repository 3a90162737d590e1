"""Nodes, from ``scontrol show node`` (what each holds and what is in use) and from sinfo."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queuecast.collect.columns import Columns, Env
from queuecast.collect.framing import Frame
from queuecast.collect.tables.keyvalue import Record, Values, in_batches
from queuecast.collect.tables.values import mask_of, parse_gres_pair, parse_node_state_pair, rows
from queuecast.errors import ParseError
from queuecast.slurmtext.hostlist import expand_hostlist
from queuecast.slurmtext.names import parse_sinfo_partition
from queuecast.slurmtext.nulls import TEXT, WORDS, clean, parse_count
from queuecast.slurmtext.sizes import parse_size
from queuecast.slurmtext.states import parse_node_state
from queuecast.slurmtext.tres import gpus_of_gres, gpus_of_tres, parse_tres

WANTED = frozenset((
    "nodelist", "hostnames", "partition", "state", "statelong", "statecomplete", "cpusaiot", "cpus", "memory", "allocmem",
    "gres", "gresused",
    "activefeatures", "availfeatures", "weight", "reason", "reservation", "nodes", "cluster"))

Result = Iterator[tuple[str, pa.Table]]


def read_scontrol(records: Iterable[Record], env: Env) -> Result:
    """Rows of ``nodes`` with detail 1."""
    return in_batches("nodes", (_row(record, env) for record in records))


def _row(record: Record, env: Env) -> dict[str, Any] | None:
    v = Values(record, env)
    where = record.section
    try:
        state = parse_node_state(record.get("State") or "")
    except ParseError as error:
        env.rejects.record(record.line, error.cause, record.raw, cluster=where.cluster, at=where.at)
        return None
    node = v.text("NodeName")
    if node is None:
        env.rejects.record(record.line, "node without a name", record.raw, cluster=where.cluster, at=where.at)
        return None
    gres, used = record.get("Gres"), record.get("GresUsed")
    configured = v.of(gpus_of_gres, "Gres")
    total = v.of(gpus_of_tres, "CfgTRES")
    if (configured is None or not configured.total) and total is not None and total.total:
        configured = total
    in_use = v.of(gpus_of_gres, "GresUsed") if used is not None else None
    count = in_use.total if in_use is not None else None
    if count is None and record.get("AllocTRES") is not None:
        # AllocTRES is blank on an idle node, and tells GPUs only where the cluster tracks them
        tracked = "gres/gpu" in (record.get("CfgTRES") or "")
        found = v.of(lambda t: gpus_of_tres(t, tracked).total if t else 0, "AllocTRES")
        count = found if tracked else (0 if configured is not None and configured.total == 0 else None)
    cpus = v.of(parse_tres, "CfgTRES") or {}
    return {
        **v.where, "node": node,
        "partitions": v.text("Partitions", null=WORDS), "state": state.base, "state_flags": ",".join(sorted(state.flags)) or None,
        "cpus": v.of(parse_count, "CPUTot") or cpus.get("cpu"), "cpus_alloc": v.of(parse_count, "CPUAlloc"),
        "mem_bytes": v.of(lambda t: parse_size(t, "M"), "RealMemory"), "mem_alloc_bytes": v.of(lambda t: parse_size(t, "M"),
            "AllocMem"),
        "gpus": None if configured is None else configured.total, "gpus_alloc": count,
        "gpu_type": None if configured is None else configured.type, "gres": clean(gres) if gres is not None else None,
        "gres_used": v.text("GresUsed", "AllocTRES"), "features": v.text("ActiveFeatures", "AvailableFeatures"),
        "weight": v.of(parse_count, "Weight"), "reason": v.text("Reason", null=WORDS), "reservation": v.text("ReservationName",
            null=WORDS),
        "detail": 1,
    }


def read_sinfo(frames: Iterator[Frame], env: Env) -> Result:
    """Rows of ``nodes`` with detail 0. A line of sinfo may stand for several nodes (then it tells no counts for each) and
    for one of a node's partitions (then the partitions are joined)."""
    for frame in frames:
        c = Columns(frame, env)
        names = c.raw("nodelist", "hostnames")
        state, flags = _states(c)
        unknown = mask_of(state.is_null())
        c.reject_rows(unknown, "unknown node state")
        hosts = c.mapped(names, "NODELIST", "hosts", _hosts, (pa.list_(pa.string()),))[0]
        empty = mask_of(pc.equal(pc.fill_null(pc.list_value_length(hosts), 0), 0))
        c.reject_rows(empty & ~unknown & mask_of(pc.not_equal(names, "")), "not a host list")
        sound = np.flatnonzero(~unknown & ~empty)
        if not len(sound):
            continue
        take = pa.array(sound)
        c, hosts = c.at(sound), hosts.take(take)
        single = pc.equal(pc.list_value_length(hosts), 1)
        parent = pc.list_parent_indices(hosts)
        columns = _sinfo_columns(c, single) | {"state": state.take(take), "state_flags": flags.take(take)}
        columns = {k: v.take(parent) for k, v in columns.items()}
        columns["node"] = pc.list_flatten(hosts)
        yield "nodes", _one_per_node(rows("nodes", columns, len(parent)))


def _sinfo_columns(c: Columns, single: pa.Array) -> dict[str, pa.Array]:
    count, size = (pa.int64(),), lambda text: parse_size(text, "M")
    aiot = c.parsed("aiot", _aiot, (pa.int64(), pa.int64()), "cpusaiot")
    null = pa.scalar(None, pa.int64())
    gpus, kind = c.parsed("gres pair", parse_gres_pair, (pa.int64(), pa.string()), "gres")
    used, _ = c.parsed("gres pair", parse_gres_pair, (pa.int64(), pa.string()), "gresused")
    gres_used = c.text("gresused")
    # sinfo prints (null) both for "none" and, before 20.11, for "not told"
    used = pc.if_else(gres_used.is_null(), null, used)
    memory = c.parsed("size M", size, count, "memory")[0]
    cpus = aiot[1] if aiot[1].null_count < c.n else c.parsed("count", parse_count, count, "cpus")[0]
    partition = c.parsed("sinfo partition", lambda t: parse_sinfo_partition(t)[0] or None, (pa.string(),), "partition")[0]
    return {
        "cluster": c.cluster(), "observed_at": c.observed(), "partitions": partition,
        "cpus": pc.if_else(single, cpus, null), "cpus_alloc": pc.if_else(single, aiot[0], null), "mem_bytes": memory,
        "mem_alloc_bytes": pc.if_else(single, c.parsed("size M", size, count, "allocmem")[0], null), "gpus": gpus,
        "gpus_alloc": pc.if_else(single, used, null), "gpu_type": kind, "gres": c.text("gres"), "gres_used": gres_used,
        "features": c.text("activefeatures", "availfeatures"), "weight": c.parsed("count", parse_count, count, "weight")[0],
        "reason": c.text("reason", null=WORDS), "reservation": c.text("reservation", null=WORDS),
        "detail": pa.array(np.zeros(c.n, np.int64)),
    }


def _states(c: Columns) -> tuple[pa.Array, pa.Array]:
    """Of several columns called STATE the long one: the short ones cut flags off."""
    columns = [col for name in ("state", "statelong", "statecomplete") for col in c.every(name)]
    column = max(columns, key=lambda col: pc.sum(pc.binary_length(col)).as_py() or 0)
    found = c.mapped(column, "STATE", "node state", parse_node_state_pair, (pa.string(), pa.string()))
    return found[0], found[1]


def _one_per_node(table: pa.Table) -> pa.Table:
    """Rows of one snapshot and node become one, with all its partitions."""
    keys = ["cluster", "observed_at", "node"]
    others = [n for n in table.column_names if n not in keys and n != "partitions"]
    grouped = table.group_by(keys, use_threads=False).aggregate([(n, "first") for n in others] + [("partitions", "distinct")])
    joined = [",".join(p for p in parts if p) or None for parts in grouped["partitions_distinct"].to_pylist()]
    columns = {k: grouped[k] for k in keys} | {n: grouped[f"{n}_first"] for n in others}
    columns["partitions"] = pa.array(joined, pa.string())
    return rows("nodes", columns, grouped.num_rows)


def _hosts(text: str) -> list[str] | None:
    found = expand_hostlist(text.strip())
    return None if found is None else list(found)


def _aiot(text: str) -> tuple[int | None, int | None]:
    """(allocated, total) of ``A/I/O/T``."""
    parts = text.strip().split("/")
    if len(parts) != 4:
        if not text.strip() or text.strip() in TEXT:
            return None, None
        raise ParseError("not CPUs as A/I/O/T", text)
    return parse_size(parts[0]), parse_size(parts[3])
