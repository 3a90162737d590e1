"""What Slurm's accounting counted of the steps: CPU time, memory, GPU peaks, energy, by attempt.

Memory: a step's sum over tasks is TRESUsageInTot mem, or AveRSS times tasks; MaxRSS is one task's peak only. Steps that run at
the same time use their memory together, but when each peaked is not told: the highest is a lower bound then.

GPUs: ``gres/gpuutil`` and ``gres/gpumem`` are the highest reading over the run, so they say nothing of the mean. Until 24.05.0 a
task's value is one GPU's, since 24.05.1 the sum over its GPUs; Tot and Ave are wrong before 23.02.6, so Max comes first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queuecast.collect.convert import clock_seconds
from queuecast.errors import ParseError
from queuecast.slurmtext.durations import parse_elapsed
from queuecast.store.files import floats
from queuecast.usage.attempts import Attempts, Flags, Floats, Ints

if TYPE_CHECKING:
    from queuecast.store.lake import Lake

COLUMNS = (
    "job_id",
    "job_submit",
    "step",
    "start",
    "end",
    "elapsed_s",
    "nodes",
    "tasks",
    "cpus_alloc",
    "total_cpu_s",
    "max_rss_bytes",
    "ave_rss_bytes",
    "tres_usage_in_tot",
    "tres_usage_in_max",
    "tres_alloc",
    "energy_joules",
    "observed_at",
)

IMPLAUSIBLE = 1.2
"""CPU time over that many times the allocation cannot be: up to it, hyper-threads and threads that are not bound explain it."""

TOGETHER = 1.05
"""Steps that overlap make the highest of them a lower bound where their sum is above it by that factor (the batch shell is not)."""

SHORT_S = 60.0
"""A step shorter than two of Slurm's readings (JobAcctGatherFrequency, 30 s unless the site says else) may show 0 for what it used."""

ADOPTED = 0.01
"""Share of the run time that the external step must have computed to be taken for work that was started by ssh."""

SUM_OVER_GPUS = (24, 5, 1)
"""Release from which a task's GPU figures are the sum over its GPUs."""

TOT_IS_RIGHT = (23, 2, 6)
"""Release from which TRESUsageInTot sums ``gpuutil`` over several tasks as it should."""

_FACTORS = {"": 1.0, **{unit: 1024.0**power for power, unit in enumerate("KMGTPE", 1)}}


@dataclass(frozen=True)
class StepUse:
    """By attempt, nan where unknown. ``covered``: nodes that steps ran on (0: no steps known). ``task_only``: the memory is one
    task's peak of several. ``apart``: other steps ran beside the one with the highest memory."""

    cpu_s: Floats
    measured: Flags
    covered: Floats
    memory: Floats
    task_only: Flags
    apart: Flags
    gpu_peak: Floats
    gpu_memory: Floats
    energy: Floats


def step_use(lake: Lake, attempts: Attempts, version: tuple[int, ...] | None = None) -> StepUse:
    """Of the steps known at the attempts' moment. ``version``: of Slurm, (24, 5, 1); None: unknown."""
    n = len(attempts)
    table = lake.read("steps", COLUMNS, cluster=attempts.cluster, since=attempts.first_submit())
    owner = attempts.exactly(floats(table["job_id"]), floats(table["job_submit"]))
    known = (floats(table["end"]) / 1e6 <= attempts.at) | (floats(table["observed_at"]) / 1e6 <= attempts.at)
    known |= attempts.final[np.maximum(owner, 0)] if n else False
    rows = np.flatnonzero((owner >= 0) & known)
    table, owner = table.take(pa.array(rows)), owner[rows]
    step = pc.fill_null(table["step"], "")
    extern = pc.equal(step, "extern").to_numpy()
    tot = usage_columns(table["tres_usage_in_tot"])
    most = usage_columns(table["tres_usage_in_max"])
    tasks = np.fmax(floats(table["tasks"]), 1.0)
    cpu, measured = _cpu(table, tot["cpu"])
    memory, single = _memory(table, tot["mem"], most["mem"], tasks)
    peak, task_only, apart = _memory_of_jobs(n, owner, memory, single, floats(table["start"]), floats(table["end"]))
    util, gpu_memory = _gpus(table, tot, most, tasks, version)
    # the external step prints 0 whatever the job does, and a step that ended before the first reading does
    blind = extern | ~(floats(table["elapsed_s"]) >= SHORT_S)
    util, gpu_memory = (np.where(blind & (v == 0), np.nan, v) for v in (util, gpu_memory))
    return StepUse(
        _sum(n, owner, cpu), _any(n, owner, measured), _covered(n, owner, table, step, extern, cpu), peak, task_only,
        apart, _highest(n, owner, util), _highest(n, owner, gpu_memory), _energy(n, owner, floats(table["energy_joules"]), step),
    )  # fmt: skip


def usage_columns(column: pa.ChunkedArray) -> dict[str, Floats]:
    """``cpu`` (s), ``mem`` and ``gpumem`` (bytes), ``gpuutil`` (percent) of TRESUsage texts; nan where not told or not readable."""
    text = pc.fill_null(column, "").combine_chunks() if column.num_chunks else pa.array([], pa.string())
    out = {name: _amounts(text, key) for name, key in (("mem", "mem"), ("gpumem", "gres/gpumem"), ("gpuutil", "gres/gpuutil"))}
    cpu = pc.fill_null(_found(text, r"(?:^|,)cpu=(?P<v>[0-9:.-]+)(?:,|$)", "v"), "")
    values, left = clock_seconds(cpu)
    blank = pc.equal(cpu, "").to_numpy(zero_copy_only=False)
    values = np.where(blank, np.nan, values)
    for row in np.flatnonzero(left & ~blank):
        values[row] = _elapsed(cpu[int(row)].as_py())
    return out | {"cpu": values}


def _found(text: pa.Array, pattern: str, group: str) -> pa.Array:
    return pc.struct_field(pc.extract_regex(text, pattern), group)


def _amounts(text: pa.Array, key: str) -> Floats:
    pattern = rf"(?i)(?:^|,){key}=(?P<v>[0-9]{{1,18}}(?:\.[0-9]{{1,9}})?)(?P<u>[KMGTPE]?)(?:,|$)"
    parts = pc.extract_regex(text, pattern)
    values = floats(pa.chunked_array([pc.struct_field(parts, "v").cast(pa.float64())]))
    unit = pc.index_in(pc.utf8_upper(pc.struct_field(parts, "u")), value_set=pa.array(list(_FACTORS)))
    scale = np.array([*_FACTORS.values(), np.nan])[floats(pa.chunked_array([pc.fill_null(unit, len(_FACTORS))])).astype(np.int64)]
    out: Floats = np.round(values * scale)
    return out


def _elapsed(text: str) -> float:
    try:
        value = parse_elapsed(text) if text else None
    except ParseError:
        return float("nan")
    return float("nan") if value is None else float(value)


def likelier(first: Floats, second: Floats, room: Floats) -> Floats:
    """The higher of two counts of CPU seconds, for each misses some; the lower where only that fits into the allocation ``room``."""
    high, low = np.fmax(first, second), np.fmin(first, second)
    return np.where((high > IMPLAUSIBLE * room) & (low > 0) & (low <= IMPLAUSIBLE * room), low, high)


def _cpu(table: pa.Table, usage: Floats) -> tuple[Floats, Flags]:
    """CPU seconds of each step, and whether anything was measured of it: without a gatherer Slurm prints 00:00:00 for all."""
    total = floats(table["total_cpu_s"])
    rss = floats(table["max_rss_bytes"])
    value = likelier(total, usage, floats(table["elapsed_s"]) * floats(table["cpus_alloc"]))
    measured = (value > 0) | (rss > 0) | ~np.isnan(usage)
    return np.where(measured, value, np.nan), measured


def _memory(table: pa.Table, tot: Floats, most: Floats, tasks: Floats) -> tuple[Floats, Flags]:
    """Peak of each step (nan: not measured; 0 is what a step has that ended before the first reading), and whether it is one task's of
    several."""
    one = np.fmax(floats(table["max_rss_bytes"]), most)
    mean = floats(table["ave_rss_bytes"]) * tasks
    summed = np.where(tot > 0, tot, np.where(mean > 0, mean, np.where(tasks <= 1, one, np.nan)))
    # a task's own peak is a lower bound too, where the sum was read at another moment
    value = np.where(np.isnan(summed), one, np.fmax(summed, one))
    return np.where(value > 0, value, np.nan), np.isnan(summed) & (value > 0)


def _memory_of_jobs(n: int, owner: Ints, memory: Floats, single: Flags, start: Floats, end: Floats) -> tuple[Floats, Flags, Flags]:
    has = np.flatnonzero(~np.isnan(memory))
    peak = _highest(n, owner, memory)
    task_only = np.zeros(n, bool)
    top = has[memory[has] == peak[owner[has]]] if len(has) else has
    np.logical_or.at(task_only, owner[top], single[top])
    together = _sum_at_once(n, owner[has], memory[has], start[has], end[has])
    return peak, task_only, together > TOGETHER * peak


def _sum_at_once(n: int, owner: Ints, amount: Floats, start: Floats, end: Floats) -> Floats:
    """Highest sum of amounts of steps that ran at one time, by attempt (-inf: none). Unknown times count as the whole run."""
    begin = np.where(np.isnan(start), -np.inf, start)
    stop = np.where(np.isnan(end), np.inf, end)
    stop = np.where(stop <= begin, np.nextafter(begin, np.inf), stop)
    who = np.concatenate([owner, owner])
    when = np.concatenate([begin, stop])
    change = np.concatenate([amount, -amount])
    order = np.lexsort((change, when, who))  # what ends comes before what begins at the same second
    running = np.cumsum(change[order])
    out = np.full(n, -np.inf)
    np.maximum.at(out, who[order], running)
    return out


def _covered(n: int, owner: Ints, table: pa.Table, step: pa.ChunkedArray, extern: Flags, cpu: Floats) -> Floats:
    """Nodes that steps ran on, at most: beside the batch shell's, those of the steps one after the other or side by side."""
    nodes, elapsed = np.fmax(floats(table["nodes"]), 1.0), floats(table["elapsed_s"])
    shell = pc.equal(step, "batch").to_numpy()
    # what was adopted into the external step (ssh) shows there as CPU time
    idle = extern & ~(cpu > np.fmax(1.0, ADOPTED * elapsed))
    counted = np.where(idle, 0.0, nodes)
    out = np.zeros(n)
    np.add.at(out, owner[~shell], counted[~shell])
    np.maximum.at(out, owner[shell], counted[shell])
    return out


def _gpus(
    table: pa.Table, tot: dict[str, Floats], most: dict[str, Floats], tasks: Floats, version: tuple[int, ...] | None
) -> tuple[Floats, Floats]:
    """Peak use (share of one GPU) and memory (bytes) of one GPU, for each step."""
    gpus = _gpus_of_tres(table["tres_alloc"])
    each = np.fmax(1.0, np.where(np.isnan(gpus), 1.0, gpus) / tasks)
    alone = tasks <= 1
    summed_right = version is not None and version >= TOT_IS_RIGHT
    util = np.where(alone, tot["gpuutil"], tot["gpuutil"] / tasks if summed_right else np.nan)
    util = np.where(np.isnan(most["gpuutil"]), util, most["gpuutil"])
    summed = np.full(len(util), version >= SUM_OVER_GPUS) if version is not None else util > 100.0
    summed |= util > 100.0
    util = np.where(summed, util / each, util) / 100.0
    memory = np.where(np.isnan(most["gpumem"]), np.where(alone, tot["gpumem"], np.nan), most["gpumem"])
    return np.minimum(util, 1.0), memory


def _gpus_of_tres(column: pa.ChunkedArray) -> Floats:
    text = pc.fill_null(column, "").combine_chunks() if column.num_chunks else pa.array([], pa.string())
    plain = _found(text, r"(?:^|,)gres/gpu=(?P<v>[0-9]{1,9})(?:,|$)", "v").cast(pa.float64())
    typed = _found(text, r"(?:^|,)gres/gpu:[^=,]+=(?P<v>[0-9]{1,9})(?:,|$)", "v").cast(pa.float64())
    return floats(pa.chunked_array([pc.coalesce(plain, typed)]))


def _energy(n: int, owner: Ints, energy: Floats, step: pa.ChunkedArray) -> Floats:
    """Joules: of the steps, or of the batch shell's node where that is more. 0 is what a site without a meter prints."""
    energy = np.where(energy > 0, energy, 0.0)
    wide = pc.is_in(step, value_set=pa.array(["batch", "extern"])).to_numpy()
    steps, shell = np.zeros(n), np.zeros(n)
    np.add.at(steps, owner[~wide], energy[~wide])
    np.maximum.at(shell, owner[wide], energy[wide])
    best = np.maximum(steps, shell)
    return np.where(best > 0, best, np.nan)


def _sum(n: int, owner: Ints, values: Floats) -> Floats:
    known = ~np.isnan(values)
    out = np.bincount(owner[known], weights=values[known], minlength=n)
    return np.where(np.bincount(owner[known], minlength=n) > 0, out, np.nan)


def _highest(n: int, owner: Ints, values: Floats) -> Floats:
    known = ~np.isnan(values)
    out = np.full(n, -np.inf)
    np.maximum.at(out, owner[known], values[known])
    return np.where(np.isfinite(out), out, np.nan)


def _any(n: int, owner: Ints, flags: Flags) -> Flags:
    out = np.zeros(n, bool)
    out[owner[flags]] = True
    return out
