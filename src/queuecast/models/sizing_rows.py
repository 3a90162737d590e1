"""From the table of uses to what sizing learns from: for one resource, ended jobs with a known use and a known request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queuecast.features.history import Flags, Floats, Ints
from queuecast.models.sizing_bound import Resource
from queuecast.models.sizing_kinds import kind_name
from queuecast.store.files import floats
from queuecast.usage.uses import Uses

CUT_OFF = ("PREEMPTED", "NODE_FAIL", "BOOT_FAIL", "REVOKED")
"""Ended from outside, before they had used what they would have: they tell nothing of their need."""

COLUMNS: dict[Resource, tuple[str, str]] = {
    "memory": ("mem_peak_bytes", "mem_alloc_bytes"),
    "time": ("elapsed_s", "limit_s"),
    "cpus": ("cpu_s", "cpus_alloc"),
    "gpu_memory": ("gpu_mem_peak_bytes", "gpu_mem_total_bytes"),
}
"""(used, asked) by resource; CPUs used are ``cpu_s`` by run time."""

KILLED: dict[Resource, str] = {"memory": "OUT_OF_MEMORY", "time": "TIMEOUT"}
_HOUR = 3600.0


@dataclass(frozen=True)
class Measured:
    """By job, sorted by submission: its row in the table, moments in epoch seconds, use and request in the resource's unit,
    whether it was killed for it, hours it ran, and ``weight``: what a unit of its over-ask costs. That is 1 for time; for amounts that
    are held as long as the job runs, the cost of the whole request is the root of request x limit, so that small requests get
    proposals too."""

    rows: Ints
    submit: Floats
    end: Floats
    use: Floats
    asked: Floats
    killed: Flags
    hours: Floats
    weight: Floats
    gpu_types: list[str] | None

    def latest(self, most: int) -> Measured:
        """The last rows."""
        part = slice(max(0, len(self.rows) - most), None)
        return Measured(
            self.rows[part],
            self.submit[part],
            self.end[part],
            self.use[part],
            self.asked[part],
            self.killed[part],
            self.hours[part],
            self.weight[part],
            self.gpu_types[part] if self.gpu_types is not None else None,
        )


def measured(uses: Uses, resource: Resource) -> Measured:
    """Final rows up to ``uses.at`` only; a row whose use or request is not known is left out, as unknown is not zero. Memory
    that may have been higher (``mem_at_least``) is left out too, unless the job was killed for it: then it used at least that."""
    table = uses.rows
    used, asked_column = COLUMNS[resource]
    use, asked, elapsed, limit = (floats(table[c]) for c in (used, asked_column, "elapsed_s", "limit_s"))
    start, end = _seconds(table["start"]), _seconds(table["end"])
    submit = np.where(np.isfinite(_seconds(table["submit"])), _seconds(table["submit"]), start)
    state = table["state"]
    killed = _flag(pc.equal(state, KILLED[resource])) if resource in KILLED else np.zeros(len(table), np.bool_)
    cut_off = _flag(pc.is_in(state, value_set=pa.array(CUT_OFF)))
    if resource == "memory":
        use = np.where(killed & np.isnan(use), asked, use)
        use = np.where(_flag(table["mem_at_least"]) & ~killed, np.nan, use)
    elif resource == "cpus":
        fine = _flag(pc.equal(table["cpu_quality"], "ok")) & (elapsed > 0)
        use = np.where(fine, use / np.where(elapsed > 0, elapsed, np.nan), np.nan)
    ended = _flag(table["final"]) & np.isfinite(end) & (end <= uses.at.timestamp()) & np.isfinite(submit) & ~cut_off
    rows = np.flatnonzero(ended & np.isfinite(use) & (use >= 0) & np.isfinite(asked) & (asked > 0))
    rows = rows[np.argsort(submit[rows], kind="stable")]
    hours = np.nan_to_num(elapsed / _HOUR, nan=0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.sqrt(np.where(np.isfinite(limit) & (limit > 0), limit / _HOUR, np.maximum(hours, 1.0)) / asked)
    if resource == "time":
        weight = np.ones(len(table))
    gpus = [str(g or "") for g in table["gpu_type"].take(pa.array(rows)).to_pylist()] if resource == "gpu_memory" else None
    return Measured(rows, submit[rows], end[rows], use[rows], asked[rows], killed[rows], np.maximum(hours[rows], 0.0), weight[rows], gpus)


class Kinds:
    """What the rows' kinds are made of; names are made plain once per distinct text."""

    def __init__(self, uses: Uses) -> None:
        table = uses.rows
        self.user, self.account, self.partition = (table[c].to_pylist() for c in ("user", "account", "partition"))
        made: dict[tuple[str | None, str | None], str] = {}
        self.name: list[str] = []
        for pair in zip(table["name"].to_pylist(), table["submit_line"].to_pylist(), strict=True):
            if pair not in made:
                made[pair] = kind_name(*pair)
            self.name.append(made[pair])

    def keys(self) -> list[tuple[str | None, str, str | None, str | None]]:
        """User, name, account, partition by row."""
        return list(zip(self.user, self.name, self.account, self.partition, strict=True))

    def columns(self, rows: Ints, gpu_types: Sequence[str] | None = None) -> dict[str, Sequence[str | None]]:
        """Columns of the ladder for some rows; with GPU types these are part of the name and of the partition."""
        found: dict[str, Sequence[str | None]] = {
            key: [column[i] for i in rows]
            for key, column in (("user", self.user), ("name", self.name), ("account", self.account), ("partition", self.partition))
        }
        if gpu_types is not None:
            for key in ("name", "partition"):
                found[key] = [with_gpu(text, gpu) for text, gpu in zip(found[key], gpu_types, strict=True)]
        return found


def with_gpu(text: str | None, gpu_type: str | None) -> str:
    """A name or partition together with the GPU type that a job had."""
    return f"{text or ''}\n{(gpu_type or '').casefold()}"


def _seconds(column: pa.ChunkedArray) -> Floats:
    """Epoch seconds, nan where null."""
    found = pc.cast(pc.cast(column, pa.timestamp("us", "UTC")), pa.int64())
    return floats(found) / 1e6


def _flag(column: pa.ChunkedArray) -> Flags:
    return np.asarray(pc.fill_null(column, False).to_numpy(zero_copy_only=False), np.bool_)
