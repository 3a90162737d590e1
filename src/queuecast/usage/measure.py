"""What jobs used, from everything that measured it, as one table: `queuecast.usage.uses` says what each column means.

Which source stands: for CPU time and memory sums by job that were measured by something else (job_use, jobstats), then Slurm's
steps; for GPUs the same sums, then samples, then Slurm's peaks. What a script made up comes after everything measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queuecast.usage.asked import memory_asked_by
from queuecast.usage.attempts import KILLED, Attempts, Flags, Floats, attempts_of
from queuecast.usage.readings import readings_of, sums_of
from queuecast.usage.release import slurm_release
from queuecast.usage.steps import IMPLAUSIBLE, StepUse, likelier, step_use
from queuecast.usage.sums import NUMBERS, Sums, from_comments, job_use
from queuecast.usage.uses import SCHEMA, Uses

if TYPE_CHECKING:
    from queuecast.store.lake import Lake

_GPU_NUMBERS = ("gpus_seen", "gpus_used", "gpu_util_mean", "gpu_util_peak", "gpu_mem_peak_bytes", "gpu_mem_total_bytes")


def uses_of(lake: Lake, cluster: str, *, since: datetime, at: datetime, viewer_user: str | None = None) -> Uses:
    """Attempts that ran at some time in [since, at] and what they used, as known at ``at`` (both aware).

    ``viewer_user``: only this user's jobs. Jobs submitted more than 92 days before ``since`` are not among them.
    """
    attempts = attempts_of(lake, cluster, since=since, at=at)
    steps = step_use(lake, attempts, slurm_release(lake, cluster, at))
    readings = readings_of(lake, attempts)
    measured = [job_use(lake, attempts, generated=False), from_comments(attempts), sums_of(readings, attempts, generated=False)]
    made_up = [job_use(lake, attempts, generated=True), sums_of(readings, attempts, generated=True)]
    columns: dict[str, Any] = _plain(attempts)
    columns["interrupted"] = interrupted = _interrupted(attempts)
    generated = np.zeros(len(attempts), bool)
    columns |= _cpu(attempts, steps, interrupted, measured, made_up, generated)
    columns |= _memory(attempts, steps, measured, made_up, generated)
    columns |= _gpus(attempts, steps, measured, made_up, generated)
    columns["energy_joules"] = _first([s.numbers["energy_joules"] for s in measured] + [steps.energy])
    columns["mem_asked_by"] = memory_asked_by(lake, attempts, at)
    columns["generated"] = generated
    rows = pa.table([_column(columns[f.name], f.type) for f in SCHEMA], schema=SCHEMA)
    if viewer_user is not None:  # last: whose a reading is, is told by everybody's jobs
        rows = rows.filter(pc.fill_null(pc.equal(pc.utf8_lower(rows["user"]), viewer_user.lower()), False))
    return Uses(cluster, since, at, rows)


def _column(values: Any, kind: pa.DataType) -> Any:
    if isinstance(values, np.ndarray):
        if values.dtype != np.float64:
            return pa.array(values, kind)
        array = pa.array(values, pa.float64(), mask=~np.isfinite(values))
        return array if kind == pa.float64() else array.cast(kind)
    return pa.array(values, kind) if isinstance(values, list) else values.cast(kind)


def _plain(a: Attempts) -> dict[str, Any]:
    """The columns that accounting tells."""
    ended = np.isfinite(a.end)
    given = a.number("mem_alloc_bytes")
    out = {name: a.rows[name] for name in ("job_id", "job_id_text", "submit", "start", "user", "account", "partition", "qos", "name",
                                           "node_list", "submit_line", "work_dir")}  # fmt: skip
    return out | {
        "end": pc.if_else(pa.array(ended), a.rows["end"], pa.scalar(None, a.rows["end"].type)),
        "state": pc.if_else(pa.array(ended), a.rows["state"], "RUNNING"),
        "nodes": a.rows["nodes_alloc"], "elapsed_s": a.elapsed, "limit_s": a.number("limit_s"), "final": a.final,
        "cpus_alloc": a.number("cpus_alloc"), "mem_alloc_bytes": np.where(given > 0, given, a.number("mem_req_bytes")),
        "gpus_alloc": a.number("gpus_alloc"), "gpu_type": pc.utf8_lower(a.rows["gpu_type_alloc"]),
    }  # fmt: skip


def _interrupted(a: Attempts) -> Flags:
    killed = pc.is_in(a.rows["state"], value_set=pa.array(KILLED)).to_numpy()
    out: Flags = np.isfinite(a.end) & (killed | np.isin(a.number("exit_signal"), (9.0, 15.0)))
    return out


def _cpu(
    a: Attempts, steps: StepUse, interrupted: Flags, measured: Sequence[Sums], made_up: Sequence[Sums], generated: Flags
) -> dict[str, Any]:
    cpus, ended = a.number("cpus_alloc"), np.isfinite(a.end)
    room = a.elapsed * cpus
    told = a.number("total_cpu_s")
    # 00:00:00 is printed too where nothing is gathered; a job's own row is read at its end only
    told = np.where(((told > 0) | (steps.measured & (told == 0))) & ended, told, np.nan)
    slurm = likelier(steps.cpu_s, told, room)
    sums, invented = _first([s.numbers["cpu_s"] for s in measured]), _first([s.numbers["cpu_s"] for s in made_up])
    value = _first([sums, slurm, invented])
    by_slurm = np.isnan(sums) & ~np.isnan(slurm)
    generated |= np.isnan(sums) & np.isnan(slurm) & ~np.isnan(invented)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(ended & (room > 0), value / room, np.nan)
    nodes = a.number("nodes_alloc")
    quality = np.full(len(a), "ok", object)
    quality[by_slurm & interrupted] = "too_low"
    quality[by_slurm & (steps.covered > 0) & (steps.covered < nodes)] = "few_steps"
    quality[share > IMPLAUSIBLE] = "implausible"
    quality[np.isnan(share)] = "unknown"
    quality[~ended] = "running"
    return {"cpu_s": value, "cpu_share": share, "cpu_quality": quality.tolist()}


def _memory(a: Attempts, steps: StepUse, measured: Sequence[Sums], made_up: Sequence[Sums], generated: Flags) -> dict[str, Any]:
    row = a.number("max_rss_bytes")
    row = np.where((row > 0) & np.isfinite(a.end), row, np.nan)
    sampled = _first([s.numbers["mem_peak_bytes"] for s in measured])
    invented = _first([s.numbers["mem_peak_bytes"] for s in made_up])
    value = _first([sampled, steps.memory, row, invented])
    whole, stepped = ~np.isnan(sampled), ~np.isnan(steps.memory)
    only_row = ~whole & ~stepped & ~np.isnan(row)
    made = ~whole & ~stepped & ~only_row & ~np.isnan(invented)
    generated |= made
    basis = np.full(len(a), None, object)
    basis[made | whole] = "sampled"
    basis[~whole & stepped] = np.where(steps.task_only, "task", "tasks")[~whole & stepped]
    basis[only_row] = "task"
    killed = pc.fill_null(pc.equal(a.rows["state"], "OUT_OF_MEMORY"), False).to_numpy() & np.isfinite(a.end)
    at_least = (killed & ~np.isnan(value)) | (~whole & stepped & (steps.apart | steps.task_only)) | only_row
    return {"mem_peak_bytes": value, "mem_basis": basis.tolist(), "mem_at_least": at_least}


def _gpus(a: Attempts, steps: StepUse, measured: Sequence[Sums], made_up: Sequence[Sums], generated: Flags) -> dict[str, Any]:
    """All figures of a job's GPUs come from one source, but peaks that it does not tell are Slurm's."""
    n, given = len(a), a.number("gpus_alloc")
    out: dict[str, Any] = {name: np.full(n, np.nan) for name in _GPU_NUMBERS}
    basis, invented, free = np.full(n, None, object), np.zeros(n, bool), ~(given == 0)
    peaks = _of_slurm(a, steps)
    # a source with a mean before one that knows peaks or numbers only
    for sums, mean in (*((s, True) for s in measured), *((s, False) for s in (*measured, peaks, *made_up))):
        told = np.any([~np.isnan(sums.numbers[name]) for name in _GPU_NUMBERS if name != "gpu_mem_total_bytes"], axis=0)
        if mean:
            told &= ~np.isnan(sums.numbers["gpu_util_mean"])
        use = told & free
        free &= ~use
        for name in _GPU_NUMBERS:
            out[name] = np.where(use, sums.numbers[name], out[name])
        for row in np.flatnonzero(use).tolist():
            basis[row] = _BASIS.get(sums.source[row], sums.source[row])
        invented |= use & sums.generated
    for name in ("gpu_util_peak", "gpu_mem_peak_bytes"):
        out[name] = np.where(np.isnan(out[name]) & ~invented & ~(given == 0), peaks.numbers[name], out[name])
    generated |= invented
    return out | {"gpu_basis": basis.tolist()}


_BASIS = {"generated": "csv", "": None}
"""A made-up table of sums is one as a site would bring it; that it is made up stands in a column of its own."""


def _of_slurm(a: Attempts, steps: StepUse) -> Sums:
    """Peaks of the steps. A GPU type that reports and never did is unused; how many of several worked is not told."""
    numbers = {name: np.full(len(a), np.nan) for name in NUMBERS}
    given = a.number("gpus_alloc")
    slices = pc.fill_null(pc.match_substring_regex(a.rows["gpu_type_alloc"], r"\d+g\."), False).to_numpy()
    peak = np.where(slices & (steps.gpu_peak == 0), np.nan, steps.gpu_peak)  # a MIG slice's use is not reported: its 0 is nothing
    numbers["gpu_util_peak"], numbers["gpu_mem_peak_bytes"] = peak, np.where(np.isnan(peak) & slices, np.nan, steps.gpu_memory)
    never = (peak == 0) & (given > 0)
    numbers["gpus_seen"] = np.where(never, given, np.nan)
    numbers["gpus_used"] = np.where(never, 0.0, np.nan)
    told = ~np.isnan(peak) | ~np.isnan(steps.gpu_memory)
    return Sums(numbers, ["slurm" if t else "" for t in told.tolist()], np.zeros(len(a), bool))


def _first(columns: Sequence[Floats]) -> Floats:
    out = columns[0]
    for column in columns[1:]:
        out = np.where(np.isnan(out), column, out)
    return out
