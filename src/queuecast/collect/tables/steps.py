"""Steps of sacct. A step belongs to the job row above it; usage lives here, times and state of the job do not."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from queuecast.collect.columns import Columns
from queuecast.collect.convert import clock_seconds
from queuecast.collect.tables.values import mask_of, parse_exit_pair, parse_state_pair, rows, run_time
from queuecast.schema import TIME
from queuecast.slurmtext.jobids import parse_job_id
from queuecast.slurmtext.nulls import NAMES
from queuecast.slurmtext.states import ENDED_STATES
from queuecast.slurmtext.tres import parse_tres_usage

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def steps_of(c: Columns, owner: Ints, jobs: dict[str, pa.Array]) -> tuple[pa.Table, Floats, Floats]:
    """The table ``steps``, and CPU seconds and MaxRSS of each (NaN: not measured).

    ``owner`` is the job row above each step, -1 for none. A step whose raw id is not that job's, or whose DBIndex is
    another's, belongs to a row that is not here: the start of the step then stands for the submit time.
    """
    column = c.need("jobid", "jobidraw")
    raw_column = c.need("jobidraw", "jobid")
    text, step = _apart(column)
    raw_text, _ = _apart(raw_column)
    ids = c.ids(raw_text)
    times = {n: c.times(n).values for n in ("start", "end")}
    state, by = c.parsed("state", parse_state_pair, (pa.string(), pa.int64()), "state")
    exit_code = c.parsed("exit", parse_exit_pair, (pa.int64(), pa.int64()), "exitcode")
    above = pa.array(np.maximum(owner, 0))
    if len(jobs["job_id"]):
        same = pc.or_(pc.equal(jobs["job_id"].take(above), ids.base), pc.equal(jobs["job_id_text"].take(above), text))
        if c.has("dbindex"):
            index = jobs["db_index"].take(above)
            mine = c.raw("dbindex")
            same = pc.and_(same, pc.or_(pc.equal(index.cast(pa.string()), mine), pc.or_(index.is_null(), pc.equal(mine, ""))))
        owned = (owner >= 0) & mask_of(same)
        submit = pc.if_else(pa.array(owned), jobs["submit"].take(above), pa.scalar(None, TIME))
        job_id = pc.if_else(pa.array(owned), jobs["job_id"].take(above), ids.base)
    else:
        owned = np.zeros(c.n, bool)
        submit, job_id = pa.nulls(c.n, TIME), ids.base
    submit = pc.coalesce(submit, times["start"], c.times("submit").values)
    bad = mask_of(job_id.is_null()) | (ids.bad & ~owned)
    c.reject_rows(bad, "not a step id")
    c.reject_rows(~bad & mask_of(submit.is_null()), "step without its job")
    c.reject_rows(~bad & mask_of(pc.and_(submit.is_valid(), state.is_null())), "unknown step state")
    submit = pc.if_else(pa.array(~bad & ~mask_of(state.is_null())), submit, pa.scalar(None, TIME))

    cpu = c.seconds("totalcpu")
    # 25.05 prints TotalCPU 00:00:00 at some sites; the usage has it then
    idle = mask_of(pc.or_(cpu.is_null(), pc.equal(cpu, 0.0)))
    if idle.any() and c.has("tresusageintot"):
        used = _cpu_of_usage(c, np.flatnonzero(idle))
        cpu = pc.replace_with_mask(cpu, pa.array(idle), pc.coalesce(used, cpu.filter(pa.array(idle))))
    rss = c.sizes("maxrss")
    if rss.null_count == c.n and c.has("tresusageinmax"):
        rss = c.parsed("usage memory", _memory_of_usage, (pa.int64(),), "tresusageinmax")[0]
    elapsed = run_time(c)
    ended = pc.or_(times["end"].is_valid(), pc.is_in(state, value_set=pa.array(sorted(ENDED_STATES))))
    table = rows("steps", {
        "cluster": c.cluster(), "job_id": job_id, "job_id_text": text, "job_submit": submit, "step": step,
        "name": c.text("jobname", null=NAMES), "state": state, "cancelled_by": by, "exit_code": exit_code[0],
        "exit_signal": exit_code[1],
        "start": times["start"], "end": times["end"], "elapsed_s": elapsed, "nodes": pc.coalesce(c.whole("allocnodes"),
            c.whole("nnodes")),
        "tasks": c.whole("ntasks"), "cpus_alloc": pc.coalesce(c.whole("alloccpus"), c.whole("ncpus")), "total_cpu_s": cpu,
        "max_rss_bytes": rss,
        "ave_rss_bytes": c.sizes("averss"), "tres_usage_in_tot": c.text("tresusageintot"),
        "tres_usage_in_max": c.text("tresusageinmax"), "tres_usage_in_ave": c.text("tresusageinave"),
        "tres_alloc": c.text("alloctres"),
        "energy_joules": c.parsed("energy", _energy, (pa.int64(),), "consumedenergyraw")[0],
        "completeness": pc.if_else(ended, pa.scalar(3, pa.int64()), pa.scalar(1, pa.int64())), "observed_at": c.observed(),
    }, c.n)
    here = np.where(owned, 1.0, np.nan)
    return table, _floats(cpu) * here, _floats(rss) * here


def usage_by_job(jobs: dict[str, pa.Array], owner: Ints, cpu: Floats, rss: Floats) -> None:
    """The job's MaxRSS is the highest of its steps (a lower bound where they overlap); its CPU time is on the job row,
    and the sum over the steps where that says nothing."""
    n = len(jobs["job_id"])
    highest = np.full(n, -1.0)
    known = ~np.isnan(rss) & (owner >= 0)
    np.maximum.at(highest, owner[known], rss[known])
    jobs["max_rss_bytes"] = pa.array(highest.astype(np.int64), mask=highest < 0)
    known = ~np.isnan(cpu) & (owner >= 0)
    total = np.bincount(owner[known], weights=cpu[known], minlength=n)
    measured = np.bincount(owner[known], minlength=n) > 0
    own = jobs["total_cpu_s"]
    use = mask_of(pc.or_(own.is_null(), pc.equal(own, 0.0))) & measured
    jobs["total_cpu_s"] = pc.if_else(pa.array(use), pa.array(np.round(total, 3)), own)


def _apart(column: pa.StringArray) -> tuple[pa.StringArray, pa.StringArray]:
    """``12_3.batch``: ``12_3`` and ``batch``. Numbers that stand for a name in some releases become the name."""
    dot = pc.find_substring(column, ".").to_numpy(zero_copy_only=False)
    if (dot < 0).any():
        pairs = [t.partition(".") for t in column.to_pylist()]
        return pa.array([p[0] for p in pairs], pa.string()), pa.array([p[2] for p in pairs], pa.string())
    parts = pc.split_pattern(column, ".", max_splits=1).flatten()
    text = parts.take(pa.array(np.arange(0, len(parts), 2)))
    step = parts.take(pa.array(np.arange(1, len(parts), 2)))
    odd = pc.starts_with(step, "42949672")
    if pc.any(odd).as_py():
        step = pa.array([parse_job_id(f"1.{s}").step if s.startswith("42949672") and s.isdigit() else s
                         for s in step.to_pylist()], pa.string())
    return text, step


def _cpu_of_usage(c: Columns, rows: Ints) -> pa.DoubleArray:
    """CPU seconds of TRESUsageInTot in those rows, where they are more than nothing."""
    column = c.at(rows).raw("tresusageintot")
    found = pc.struct_field(pc.extract_regex(column, r"(?:^|,)cpu=(?P<cpu>[0-9:.-]+)(?:,|$)"), "cpu")
    values, left = clock_seconds(pc.fill_null(found, ""))
    for row in np.flatnonzero(left):
        text = found[int(row)].as_py()
        values[row] = 0.0 if text is None else parse_tres_usage(f"cpu={text}").get("cpu") or 0.0
    return pa.array(values, mask=values <= 0)


def _memory_of_usage(text: str) -> int | None:
    memory = parse_tres_usage(text).get("mem")
    return None if memory is None else int(memory)


def _energy(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and int(text) < 1 << 62 else None


def _floats(values: pa.Array) -> Floats:
    out: Floats = pc.fill_null(values.cast(pa.float64()), float("nan")).to_numpy(zero_copy_only=False)
    return out
