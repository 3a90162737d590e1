"""sacct: jobs and their steps, from the fields of any release (17.11 to 25.11), found by name."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from queuecast.collect.columns import Columns, Env, Times
from queuecast.collect.convert import Mask
from queuecast.collect.dialect import Dialect
from queuecast.collect.framing import Frame
from queuecast.collect.tables import anomalies, jobfiles
from queuecast.collect.tables.steps import steps_of, usage_by_job
from queuecast.collect.tables.values import (
    latest,
    limit_pair,
    mask_of,
    null_where,
    parse_exit_pair,
    parse_flags,
    parse_reason_pair,
    parse_req_mem_pair,
    parse_state_pair,
    rows,
    run_time,
    tres_parser,
    whole_seconds,
    without,
)
from queuecast.slurmtext.durations import parse_limit, parse_limit_minutes
from queuecast.slurmtext.nulls import NAMES, NODES, TEXT
from queuecast.slurmtext.states import ENDED_STATES, PENDING_STATES, RUNNING_STATES
from queuecast.slurmtext.tres import gpus_of_gres

WANTED = frozenset((
    "jobid", "jobidraw", "cluster", "jobname", "user", "uid", "account", "partition", "qos", "state", "exitcode",
    "derivedexitcode", "reason",
    "submit", "eligible", "start", "end", "elapsed", "elapsedraw", "suspended", "timelimit", "timelimitraw", "priority",
    "reqnodes",
    "allocnodes", "nnodes", "reqcpus", "alloccpus", "ncpus", "reqmem", "reqtres", "alloctres", "reqgres", "allocgres", "nodelist",
    "constraints", "reservation", "licenses", "flags", "totalcpu", "maxrss", "averss", "ntasks", "restarts", "submitline",
    "workdir",
    "stdout", "stderr",
    "comment", "admincomment", "dbindex", "sluid", "originalsluid", "tresusageintot", "tresusageinmax", "tresusageinave",
    "consumedenergyraw"))

_FULL = ("user", "account", "partition", "start", "end")
"""Without these a row must not replace a fuller one of the same job, so it counts as incomplete."""

Result = Iterator[tuple[str, pa.Table]]


def missing(dialect: Dialect) -> str | None:
    """Why the rows cannot be jobs; None if they can."""
    gone = [n for n in ("JobID", "Submit",
                        "State") if n.lower() not in dialect.keys and not (n == "JobID" and "jobidraw" in dialect.keys)]
    return f"sacct without {', '.join(gone)}: its rows cannot be told apart as jobs" if gone else None


def read(frames: Iterator[Frame], env: Env, tracked: bool) -> Result:
    """Jobs and steps. ``tracked``: the cluster's TRES include gres/gpu, so a row without it has no GPU.

    Steps follow their job, so the last job of a block waits for the next block.
    """
    waiting: Frame | None = None
    for frame in frames:
        if waiting is not None and waiting.dialect is not frame.dialect:
            yield from _block(waiting, env, tracked)
            waiting = None
        whole = frame if waiting is None else _joined(waiting, frame)
        steps = _is_step(Columns(whole, env))
        jobs = np.flatnonzero(~steps)
        last = int(jobs[-1]) if len(jobs) else len(whole)
        if last:
            yield from _block(_slice(whole, 0, last), env, tracked)
        waiting = _slice(whole, last, len(whole))
    if waiting is not None:
        yield from _block(waiting, env, tracked)


def _is_step(columns: Columns) -> Mask:
    column = columns.need("jobid", "jobidraw")
    dotted = pc.greater_equal(pc.find_substring(column, "."), 0)
    # the dots of a cut task list (12_[1,3,...]) are no step
    return mask_of(pc.and_not(dotted, pc.match_substring(column, "[")))


def _block(frame: Frame, env: Env, tracked: bool) -> Result:
    columns = Columns(frame, env)
    step = _is_step(columns)
    job_rows = np.flatnonzero(~step)
    if step.any():
        env.state["steps"] = True
    jobs, sound, marks = _jobs(columns.at(job_rows), tracked)
    # the job row above each step; -1 where a block begins with steps
    owner = (np.cumsum(~step) - 1)[step]
    steps = columns.at(np.flatnonzero(step))
    if steps.n:
        table, cpu, rss = steps_of(steps, owner, jobs)
        usage_by_job(jobs, owner, cpu, rss)
        yield "steps", table.filter(pc.is_valid(table["job_submit"]))
    marks["runaway_repaired"] = _runaway(jobs, env, owner)
    jobs["anomalies"] = anomalies.text(marks, len(job_rows))
    table = rows("jobs", jobs, len(job_rows))
    yield "jobs", without(table, ~sound)
    if columns.has("stdout", "stderr"):
        yield "job_files", jobfiles.of_columns(columns.at(job_rows), jobs, sound)


def _jobs(c: Columns, tracked: bool) -> tuple[dict[str, pa.Array], Mask, dict[str, Mask]]:
    """Columns of the job rows, which of them are sound, and what looks wrong."""
    state, by = c.parsed("state", parse_state_pair, (pa.string(), pa.int64()), "state")
    out, bad_id, unsure = _ids(c)
    times = _times(c)
    bad_state = state.is_null().to_numpy(zero_copy_only=False)
    no_submit = times["submit"].values.is_null().to_numpy(zero_copy_only=False)
    c.reject_rows(bad_id, "not a job id")
    c.reject_rows(~bad_id & no_submit, "no submit time")
    c.reject_rows(~bad_id & ~no_submit & bad_state, "unknown job state")
    sound = ~(bad_id | bad_state | no_submit)

    node_list = c.text("nodelist", null=NODES)
    marks = {"no_raw_id": unsure}
    old_form = _never_started(c, state, times, node_list)
    marks["never_started_old_form"] = old_form
    partial = _partial(state, times)
    marks["incomplete"] = partial
    start = null_where(times["start"].values, old_form)
    times["start"].values = start
    started = start.is_valid()
    elapsed = run_time(c)
    end = times["end"].values
    limit = c.parsed("limit minutes", limit_pair(parse_limit_minutes), (pa.int64(), pa.string()), "timelimitraw")
    if limit[1].null_count == c.n and c.has("timelimit"):
        limit = c.parsed("limit", limit_pair(parse_limit), (pa.int64(), pa.string()), "timelimit")

    kind = "tres tracked" if tracked else "tres"
    tres = (pa.int64(), pa.int64(), pa.int64(), pa.string(), pa.int64())
    req = c.parsed(kind, tres_parser(tracked), tres, "reqtres")
    alloc = c.parsed(kind, tres_parser(tracked), tres, "alloctres")
    nodes_req = pc.coalesce(c.whole("reqnodes"), req[4], c.whole("nnodes"))
    cpus_req = pc.coalesce(c.whole("reqcpus"), req[0], c.whole("ncpus"))
    gpus_req = _old_gres(c, "reqgres", req[2], nodes_req)
    nodes_alloc = pc.coalesce(c.whole("allocnodes"), alloc[4], c.whole("nnodes"))
    gpus_alloc = _old_gres(c, "allocgres", alloc[2], nodes_alloc)
    reason = c.parsed("reason", parse_reason_pair, (pa.string(), pa.string()), "reason")
    exit_code = c.parsed("exit", parse_exit_pair, (pa.int64(), pa.int64()), "exitcode")
    derived = c.parsed("exit", parse_exit_pair, (pa.int64(), pa.int64()), "derivedexitcode")

    def when_started(values: pa.Array) -> pa.Array:
        return pc.if_else(started, values, pa.scalar(None, values.type))

    def positive(values: pa.Array) -> pa.Array:
        return pc.if_else(pc.fill_null(pc.greater(values, 0), False), values, pa.scalar(None, values.type))

    out.update(
        cluster=c.cluster(), name=c.text("jobname", null=NAMES), user=c.text("user"), uid=c.whole("uid"),
        account=c.text("account"),
        partition=c.text("partition"), qos=c.text("qos", null=TEXT | {"Unknown"}), state=state, cancelled_by=by,
        exit_code=exit_code[0], exit_signal=exit_code[1], derived_exit_code=derived[0], derived_exit_signal=derived[1],
        reason=reason[0], reason_text=reason[1], submit=times["submit"].values, eligible=times["eligible"].values, start=start,
        end=end,
        elapsed_s=elapsed, suspended_s=whole_seconds(c.seconds("suspended")), limit_s=limit[0], limit_kind=limit[1],
        priority=c.whole("priority"), nodes_req=nodes_req, nodes_alloc=when_started(positive(nodes_alloc)), cpus_req=cpus_req,
        cpus_alloc=when_started(positive(pc.coalesce(c.whole("alloccpus"), alloc[0], c.whole("ncpus")))),
        mem_req_bytes=_memory(c, req[1], nodes_req, cpus_req), mem_alloc_bytes=when_started(alloc[1]),
        gpus_req=gpus_req, gpu_type_req=pc.if_else(pc.equal(req[3], "mixed"), pa.scalar(None, pa.string()), req[3]),
        gpus_alloc=when_started(gpus_alloc), gpu_type_alloc=when_started(alloc[3]), tres_req=c.text("reqtres"),
        tres_alloc=c.text("alloctres"),
        node_list=node_list, constraints=c.text("constraints"), reservation=c.text("reservation"), licenses=c.text("licenses"),
        scheduled_by=c.parsed("flags", parse_flags, (pa.string(),), "flags")[0], total_cpu_s=c.seconds("totalcpu"),
        max_rss_bytes=pa.nulls(c.n, pa.int64()), restarts=c.whole("restarts"), submit_line=c.text("submitline", null=NAMES),
        work_dir=c.text("workdir", null=NAMES), comment=c.text("comment", null=NAMES | {"(null)"}),
        admin_comment=c.text("admincomment", null=NAMES | {"(null)"}),
        db_index=c.unsigned("dbindex"),
        sluid=c.text("sluid"), source=pa.array(["sacct"] * c.n, pa.string()), observed_at=c.observed(),
    )
    out["completeness"] = _completeness(c, state, partial)
    marks |= anomalies.of_jobs(c, out, times)
    return out, sound, marks


def _ids(c: Columns) -> tuple[dict[str, pa.Array], Mask, Mask]:
    """Id columns, which rows have none, and which have a made-up raw id (an array task without JobIDRaw)."""
    column = c.need("jobid", "jobidraw")
    ids = c.ids(column)
    raw, bad, unsure = ids.base, ids.bad.copy(), np.zeros(c.n, bool)
    given = c.raw("jobidraw")
    if given is not None:
        parsed = c.ids(given)
        known = parsed.base.is_valid()
        # an id with "_" here is not raw: some sites rename the column
        raw = pc.if_else(pc.and_(known, pa.array(~parsed.array)), parsed.base, raw)
        bad |= raw.is_null().to_numpy(zero_copy_only=False)
    else:
        # Components of a heterogeneous job get consecutive ids.
        raw = pc.if_else(ids.het.is_valid(), pc.add(raw, ids.het), raw)
        unsure = mask_of(pc.and_(ids.task.is_valid(), raw.is_valid()))
        if unsure.any():
            # Tasks of one array share the base id; a negative number that no job has keeps them apart.
            made = pc.negate(pc.add(pc.multiply(raw, 1 << 22), ids.task))
            raw = pc.if_else(pa.array(unsure), made, raw)
    array = pa.array(ids.array)
    none = pa.scalar(None, pa.int64())
    return {
        "job_id": raw, "job_id_text": column, "array_job_id": pc.if_else(array, ids.base, none), "array_task": ids.task,
        "array_tasks": ids.tasks, "array_tasks_exact": ids.exact, "array_throttle": ids.throttle,
        "het_job_id": pc.if_else(ids.het.is_valid(), ids.base, none), "het_offset": ids.het,
    }, bad, unsure


def _times(c: Columns) -> dict[str, Times]:
    times = {name: c.times(name) for name in ("submit", "eligible", "start", "end")}
    if any(t.ambiguous.any() for t in times.values()):
        lasted = pc.add(pc.coalesce(c.whole("elapsedraw").cast(pa.float64()), c.seconds("elapsed")),
                        pc.fill_null(c.seconds("suspended"), 0.0))
        times["end"] = c.settle(times["end"], times["start"], lasted, "end")
        # a start in the repeated hour follows from an end that is not in it, or that its first reading explains
        settled = c.settle(times["start"], times["end"], pc.negate(lasted), "start")
        times["start"] = settled
    return times


def _never_started(c: Columns, state: pa.Array, times: dict[str, Times], node_list: pa.Array) -> Mask:
    """Before 22.05 a job that ended without starting shows Start=End, no nodes and no run time."""
    if not c.has("nodelist"):
        return np.zeros(c.n, bool)
    start, end = times["start"].values, times["end"].values
    ended = pc.and_(pc.is_in(state, value_set=pa.array(sorted(ENDED_STATES - {"COMPLETED"}))), node_list.is_null())
    same = pc.fill_null(pc.equal(start, end), False)
    ran = c.seconds("elapsed") if c.has("elapsed") else c.whole("elapsedraw").cast(pa.float64())
    return mask_of(pc.and_(pc.and_(ended, same), pc.fill_null(pc.equal(ran, 0.0), True)))


def _partial(state: pa.Array, times: dict[str, Times]) -> Mask:
    """Records of which a part had not arrived: pending with a start, or ended without an end."""
    pending = pc.is_in(state, value_set=pa.array(sorted(PENDING_STATES)))
    ended = pc.is_in(state, value_set=pa.array(sorted(ENDED_STATES)))
    return mask_of(pc.or_(pc.and_(pending, times["start"].values.is_valid()), pc.and_(ended, times["end"].values.is_null())))


def _completeness(c: Columns, state: pa.Array, partial: Mask) -> pa.Array:
    out = np.ones(c.n, np.int64)
    if all(c.has(n) for n in _FULL):
        out[mask_of(pc.is_in(state, value_set=pa.array(sorted(RUNNING_STATES))))] = 2
        out[mask_of(pc.is_in(state, value_set=pa.array(sorted(ENDED_STATES))))] = 3
        out[partial] = 1
    return pa.array(out)


def _memory(c: Columns, tres: pa.Array, nodes: pa.Array, cpus: pa.Array) -> pa.Array:
    """Memory of the whole job: from ReqTRES, else ReqMem, which before 21.08 counts for each node or CPU."""
    amount, per = c.parsed("req mem", parse_req_mem_pair, (pa.int64(), pa.string()), "reqmem")
    if amount.null_count == c.n:
        return tres
    times = pc.if_else(pc.equal(per, "node"), nodes, pc.if_else(pc.equal(per, "cpu"), cpus, pc.if_else(pc.equal(per, "job"), 1,
        pa.scalar(None, pa.int64()))))
    return pc.coalesce(tres, pc.multiply(amount, times))


def _old_gres(c: Columns, name: str, known: pa.Array, nodes: pa.Array) -> pa.Array:
    """GPUs from ReqGRES or AllocGRES (before 20.11), which count for each node, where TRES do not tell."""
    if not c.has(name) or not known.null_count:
        return known
    each = c.parsed("gres", lambda text: gpus_of_gres(text).total, (pa.int64(),), name)[0]
    return pc.coalesce(known, pc.multiply(each, pc.coalesce(nodes, pa.scalar(1, pa.int64()))))


def _runaway(jobs: dict[str, pa.Array], env: Env, owner: npt.NDArray[np.int64]) -> Mask:
    """Ended in no time, with nodes, at the latest of its own times and without usage: what a repaired runaway job looks like."""
    last = latest(jobs["start"], jobs["eligible"], jobs["submit"])
    odd = pc.and_(pc.equal(jobs["elapsed_s"], 0), pc.equal(jobs["end"], last))
    idle = pc.fill_null(pc.equal(jobs["total_cpu_s"], 0.0), True)
    ended = pc.and_(jobs["node_list"].is_valid(), pc.is_in(jobs["state"], value_set=pa.array(["COMPLETED", "FAILED"])))
    mask = mask_of(pc.and_(pc.and_(odd, idle), ended))
    mask[np.unique(owner[owner >= 0])] = False  # a job with steps did run
    if not env.state.get("steps"):
        mask &= mask_of(jobs["total_cpu_s"].is_null())  # taken without steps: only a blank usage tells
    return mask


def _joined(first: Frame, second: Frame) -> Frame:
    columns = {j: pa.concat_arrays([first.columns[j], second.columns[j]]) for j in second.columns}
    return Frame(second.dialect, columns, np.concatenate([first.lines, second.lines]), np.concatenate([first.section,
        second.section]),
                 np.concatenate([first.not_utf8, second.not_utf8]), second.sections)


def _slice(frame: Frame, low: int, high: int) -> Frame:
    return Frame(frame.dialect, {j: c.slice(low, high - low) for j, c in frame.columns.items()}, frame.lines[low:high],
                 frame.section[low:high], frame.not_utf8[low:high], frame.sections)
