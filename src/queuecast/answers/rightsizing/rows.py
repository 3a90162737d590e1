"""The table of uses as plain columns, and how much of each attempt lies in the time looked at."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from queuecast.features.history import Flags, Floats, Ints
from queuecast.models.sizing_bound import Resource
from queuecast.store.files import floats
from queuecast.usage.uses import Uses

GIB = float(1 << 30)
LEAST_S = 1.0
"""Shorter runs, which Slurm prints as none, have no share of anything."""
ENDED = ("COMPLETED", "TIMEOUT")
"""States after which what was used tells what such work needs; a job that failed or was cancelled may have needed more."""

_NUMBERS = (
    *("job_id", "start", "end", "elapsed_s", "limit_s", "nodes", "cpus_alloc", "cpu_s", "mem_alloc_bytes", "mem_peak_bytes"),
    *("gpus_alloc", "gpus_seen", "gpus_used", "gpu_util_mean", "gpu_util_peak", "gpu_mem_peak_bytes", "gpu_mem_total_bytes"),
)
_TEXTS = (
    *("job_id_text", "user", "account", "partition", "qos", "name", "state", "submit_line", "cpu_quality", "mem_asked_by", "gpu_type"),
    "node_list",
)
_FLAGS = ("final", "mem_at_least", "generated")


@dataclass(frozen=True)
class Rows:
    """One entry per attempt. ``num``: null is nan, times in seconds since 1970 UTC. ``flag``: null is False.

    ``share``: of the attempt's run, what lies between ``since`` and ``at``; hours count in this proportion.
    """

    since: float
    at: float
    num: dict[str, Floats]
    text: dict[str, list[str | None]]
    flag: dict[str, Flags]

    def __len__(self) -> int:
        return len(self.num["job_id"])

    @cached_property
    def ends(self) -> Floats:
        """The end; ``at`` for those that run."""
        end = self.num["end"]
        return np.where(np.isfinite(end), np.minimum(end, self.at), self.at)

    @cached_property
    def hours(self) -> Floats:
        """Run time within the window in hours; 0 where it is not known."""
        return np.nan_to_num(self.num["elapsed_s"]) * self.overlap(self.since, self.at) / 3600.0

    def overlap(self, begin: float, end: float) -> Floats:
        """Share of each run that lies in [begin, end); a run of no length counts where it begins."""
        start, stop = self.num["start"], self.ends
        length = stop - start
        inside = np.minimum(stop, end) - np.maximum(start, begin)
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(length > 0, np.clip(inside, 0.0, None) / length, (start >= begin) & (start < end))
        out: Floats = np.nan_to_num(share)
        return out

    @cached_property
    def settled(self) -> Flags:
        """Ended and booked, with a run time."""
        return self.flag["final"] & np.isfinite(self.num["elapsed_s"])

    @cached_property
    def ended_well(self) -> Flags:
        """Ran to its own end, or to its limit."""
        out: Flags = self.settled & np.array([s in ENDED for s in self.text["state"]], bool)
        return out

    def known(self, resource: str) -> Flags:
        """Attempts whose use of ``gpu``, ``core``, ``memory`` or ``limit`` is measured."""
        n = self.num
        good: Flags
        if resource == "gpu":
            good = (n["gpus_alloc"] > 0) & (n["gpus_seen"] > 0) & np.isfinite(n["gpu_util_mean"])
        elif resource == "core":
            good = np.array([q == "ok" for q in self.text["cpu_quality"]], bool)
            good &= np.isfinite(n["cpu_s"]) & np.isfinite(n["cpus_alloc"])
        elif resource == "memory":
            good = ~self.flag["mem_at_least"] & np.isfinite(n["mem_peak_bytes"]) & np.isfinite(n["mem_alloc_bytes"])
        else:
            good = np.isfinite(n["limit_s"])
        out: Flags = self.settled & good
        return out

    @cached_property
    def default_memory(self) -> Flags:
        """The site's default set the memory, not the user."""
        return np.array([b == "default" for b in self.text["mem_asked_by"]], bool)


def rows_of(uses: Uses) -> Rows:
    """Columns of ``uses``; rows without a start are left out."""
    table = uses.rows
    num = {c: floats(table[c]) for c in _NUMBERS}
    for name in ("start", "end"):
        num[name] = num[name] / 1e6
    text = {c: table[c].to_pylist() for c in _TEXTS}
    flag = {c: np.array([bool(v) for v in table[c].to_pylist()], bool) for c in _FLAGS}
    rows = Rows(uses.since.timestamp(), uses.at.timestamp(), num, text, flag)
    started = np.isfinite(num["start"]) & (num["start"] <= rows.at)
    return rows if started.all() else chosen(rows, np.flatnonzero(started))


def chosen(rows: Rows, index: Ints) -> Rows:
    """Some of the rows."""
    return Rows(
        rows.since,
        rows.at,
        {k: v[index] for k, v in rows.num.items()},
        {k: [v[i] for i in index] for k, v in rows.text.items()},
        {k: v[index] for k, v in rows.flag.items()},
    )


def amounts(rows: Rows, resource: str) -> tuple[Floats, Floats]:
    """(asked, used) in units of the whole job: GPUs, CPUs, GiB, or 1 and the share of the limit that ran.

    Asked is what was allocated, nan where it is not told. Used is nan where it is not measured, and never above asked. Used GPUs are
    the mean share of time with a kernel running, times the GPUs that were measured; the others' use is not known, so that
    asked counts the measured ones only there (see ``measured``). Memory is the peak, as if it had been held all the time.
    """
    n, known = rows.num, rows.known(resource)
    if resource == "gpu":
        asked = n["gpus_alloc"]
        used = n["gpu_util_mean"] * np.minimum(n["gpus_seen"], asked)
    elif resource == "core":
        asked = n["cpus_alloc"]
        with np.errstate(invalid="ignore", divide="ignore"):
            used = np.where(n["elapsed_s"] >= LEAST_S, n["cpu_s"] / np.maximum(n["elapsed_s"], LEAST_S), 0.0)
    elif resource == "memory":
        asked, used = n["mem_alloc_bytes"] / GIB, n["mem_peak_bytes"] / GIB
    else:
        with np.errstate(invalid="ignore", divide="ignore"):
            asked = np.where(n["elapsed_s"] >= LEAST_S, n["limit_s"] / np.maximum(n["elapsed_s"], LEAST_S), np.nan)
        used = np.ones(len(rows))
        known = known & (n["elapsed_s"] >= LEAST_S)
    most = measured(rows, resource, asked)
    return asked, np.where(known, np.clip(used, 0.0, most), np.nan)


def measured(rows: Rows, resource: str, asked: Floats) -> Floats:
    """What of ``asked`` is measured where anything is: all of it, but of the GPUs those that were seen."""
    return np.fmin(asked, rows.num["gpus_seen"]) if resource == "gpu" else asked


RESOURCES = ("gpu", "core", "memory", "limit")
OF: dict[Resource, str] = {"memory": "memory", "cpus": "core", "time": "limit", "gpu_memory": "gpu"}
"""Which hours a bound is about."""
