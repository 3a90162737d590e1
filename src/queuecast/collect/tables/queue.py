"""squeue: snapshots of the queue, Slurm's start estimates, and the jobs that accounting does not list yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from queuecast.collect.columns import Columns, Env
from queuecast.collect.convert import Ids, cast_whole
from queuecast.collect.framing import Frame
from queuecast.collect.tables.values import (
    limit_pair,
    mask_of,
    parse_amount,
    parse_gres_pair,
    parse_reason_pair,
    parse_req_mem_pair,
    parse_state_pair,
    rows,
    tres_parser,
    whole_seconds,
)
from queuecast.slurmtext.durations import parse_limit
from queuecast.slurmtext.nulls import NAMES, NODES
from queuecast.slurmtext.states import ENDED_STATES, PENDING_STATES

WANTED = frozenset((
    "jobid", "arrayjobid", "arraytaskid", "name", "user", "account", "partition", "qos", "state", "st", "reason",
    "nodelistreason", "nodelist",
    "submittime", "eligibletime", "starttime", "endtime", "timelimit", "time", "nodes", "cpus", "minmemory", "trespernode",
    "gres",
    "tresalloc", "tresperjob", "trespertask", "tasks", "priority", "dependency", "schednodes", "features", "reservation",
    "licenses",
    "cluster", "uid", "restartcount", "workdir", "comment", "admincomment"))

CLAMP_S = 5
"""An estimate no later than this after the snapshot is Slurm's "now": the controller reports no past start."""

Result = Iterator[tuple[str, pa.Table]]
Ints = npt.NDArray[np.int64]


def read(frames: Iterator[Frame], env: Env, tracked: bool) -> Result:
    """Rows of ``queue``, and of ``jobs`` (completeness 0) for the last sight of each job."""
    for c, base in _sound(frames, env):
        queue, more = _queue(c, base, tracked)
        yield "queue", rows("queue", queue, c.n)
        jobs = _jobs(c, queue, more)
        if jobs.num_rows:
            yield "jobs", jobs


def read_start(frames: Iterator[Frame], env: Env) -> Result:
    """Rows of ``estimates``."""
    for c, base in _sound(frames, env):
        if not c.has("starttime"):
            continue
        estimate = c.times("starttime").values
        seen = base["observed_at"]
        after = pc.subtract(estimate.cast(pa.int64()), seen.cast(pa.int64()))
        yield "estimates", rows("estimates", {
            **{n: base[n] for n in ("cluster", "observed_at", "job_id_text", "job_id", "array_job_id", "array_task",
                                    "array_tasks", "state")},
            "partition": c.text("partition"), "user": c.text("user"), "start_estimate": estimate,
            "clamped": pc.less_equal(after, CLAMP_S * 1_000_000), "nodes": c.parsed("amount", parse_amount, (pa.int64(),),
                "nodes")[0],
            "sched_nodes": c.text("schednodes", null=NODES), "reason": _reason(c)[0],
        }, c.n)


def _sound(frames: Iterator[Frame], env: Env) -> Iterator[tuple[Columns, dict[str, pa.Array]]]:
    """The rows of each frame that can be kept, with the columns of every squeue table."""
    for frame in frames:
        c = Columns(frame, env)
        base, sound = _common(c)
        if not sound.all():
            c = c.at(np.flatnonzero(sound))
            base, _ = _common(c)
        yield c, base


def _common(c: Columns) -> tuple[dict[str, pa.Array], npt.NDArray[np.bool_]]:
    """Columns of every squeue table, and which rows can be kept."""
    text, ids, raw = _ids(c)
    state = c.parsed("state", parse_state_pair, (pa.string(), pa.int64()), "state", "st")[0]
    bad = ids.bad | mask_of(raw.is_null())
    c.reject_rows(bad, "not a job id")
    unknown = ~bad & mask_of(state.is_null())
    c.reject_rows(unknown, "unknown job state")
    array = pa.array(ids.array)
    return {
        "cluster": c.cluster(), "observed_at": c.observed(), "job_id": raw, "job_id_text": text,
        "array_job_id": pc.if_else(array, ids.base, pa.scalar(None, pa.int64())), "array_task": ids.task,
        "array_tasks": ids.tasks,
        "array_tasks_exact": ids.exact, "array_throttle": ids.throttle, "state": state,
    }, ~(bad | unknown)


def _ids(c: Columns) -> tuple[pa.StringArray, Ids, pa.Int64Array]:
    """(id as users see it, taken apart, raw id). Both columns are called JOBID: the raw one holds numbers only."""
    columns = c.every("jobid")
    plain = [bool(pc.all(pc.ascii_is_decimal(col)).as_py()) for col in columns]
    shown = next((i for i, p in enumerate(plain) if not p), 0)
    ids = c.ids(columns[shown])
    number = next((i for i, p in enumerate(plain) if p and i != shown), None)
    raw = cast_whole(columns[number]) if number is not None else None
    if raw is None:
        raw = pc.if_else(ids.het.is_valid(), pc.add(ids.base, ids.het), ids.base)
    return columns[shown], ids, raw


def _queue(c: Columns, base: dict[str, pa.Array], tracked: bool) -> tuple[dict[str, pa.Array], dict[str, pa.Array]]:
    pending = pc.is_in(base["state"], value_set=pa.array(sorted(PENDING_STATES)))
    ended = pc.is_in(base["state"], value_set=pa.array(sorted(ENDED_STATES)))
    none = pa.scalar(None, base["observed_at"].type)
    time, end = c.times("starttime").values, c.times("endtime").values
    limit = c.parsed("limit", limit_pair(parse_limit), (pa.int64(), pa.string()), "timelimit")
    nodes = c.parsed("amount", parse_amount, (pa.int64(),), "nodes")[0]
    reason, reason_text = _reason(c)
    node_list = c.text("nodelist", null=NODES)
    if not c.has("nodelist") and c.has("nodelistreason"):
        column = c.raw("nodelistreason")
        node_list = pc.if_else(pc.or_(pc.starts_with(column, "("), pc.equal(column, "")), pa.scalar(None, pa.string()), column)
    # Cancelled before it ran: squeue shows the moment of the end as start too, in every release.
    never = pc.and_(ended, pc.and_(pc.fill_null(pc.equal(time, end), False), node_list.is_null()))
    start = pc.if_else(pc.or_(pending, never), none, time)
    tres = c.parsed("tres tracked" if tracked else "tres", tres_parser(tracked),
                    (pa.int64(), pa.int64(), pa.int64(), pa.string(), pa.int64()), "tresalloc")
    gpus, kind = _gpus(c, tres[2], tres[3], nodes)
    cpus = c.parsed("amount", parse_amount, (pa.int64(),), "cpus")[0]
    queue = {
        **base, "name": c.text("name", null=NAMES), "user": c.text("user"), "account": c.text("account"),
        "partition": c.text("partition"),
        "qos": c.text("qos"), "reason": reason, "reason_text": reason_text, "submit": c.times("submittime").values,
        "eligible": c.times("eligibletime").values, "start": start, "start_estimate": pc.if_else(pending, time, none),
        "end_expected": pc.if_else(pc.or_(pending, ended), none, end), "limit_s": limit[0], "limit_kind": limit[1],
        "elapsed_s": whole_seconds(c.seconds("time")), "nodes": nodes, "cpus": pc.coalesce(cpus, tres[0]),
        "mem_req_bytes": c.parsed("req mem", parse_req_mem_pair, (pa.int64(), pa.string()), "minmemory")[0],
        "gpus": gpus, "gpu_type": kind, "tres": pc.coalesce(c.text("tresalloc"), c.text("tresperjob"), c.text("trespernode",
            "gres")),
        "priority": _priority(c), "dependency": c.text("dependency"), "node_list": pc.if_else(pending, pa.scalar(None,
            pa.string()), node_list),
        "sched_nodes": c.text("schednodes", null=NODES), "constraints": c.text("features"), "reservation": c.text("reservation"),
        "licenses": c.text("licenses"),
    }
    more = {"pending": pending, "end": pc.if_else(ended, end, none)}
    return queue, more


def _reason(c: Columns) -> tuple[pa.Array, pa.Array]:
    types = (pa.string(), pa.string())
    if c.has("reason"):
        found = c.parsed("reason", parse_reason_pair, types, "reason")
        return found[0], found[1]
    column = c.raw("nodelistreason")
    if column is None:
        return pa.nulls(c.n, pa.string()), pa.nulls(c.n, pa.string())
    only = pc.if_else(pc.starts_with(column, "("), column, pa.scalar("", pa.string()))
    found = c.mapped(only, "NODELIST(REASON)", "reason", parse_reason_pair, types)
    return found[0], found[1]


def _gpus(c: Columns, known: pa.Array, kind: pa.Array, nodes: pa.Array) -> tuple[pa.Array, pa.Array]:
    """GPUs of the whole job: tres-alloc tells (of a pending job it is the request), else what was asked for per job,
    or per node times nodes. Pending counts are minimums, and ``N/A`` tells nothing."""
    types = (pa.int64(), pa.string())
    for names, times in ((("tresperjob",), None), (("trespernode", "gres"), nodes), (("trespertask",), c.whole("tasks"))):
        if c.has(*names) and known.null_count:
            count, its = c.parsed("gres pair", parse_gres_pair, types, *names)
            told = count if times is None else pc.multiply(count, times)
            # "(null)" per job does not mean none: the job may have asked per node
            told = pc.if_else(pc.equal(told, 0), pa.scalar(None, pa.int64()), told) if names != ("trespernode", "gres") else told
            kind = pc.if_else(pc.and_(known.is_null(), told.is_valid()), its, kind)
            known = pc.coalesce(known, told)
    return known, pc.if_else(pc.equal(kind, "mixed"), pa.scalar(None, pa.string()), kind)


def _priority(c: Columns) -> pa.Array:
    """Of two columns called PRIORITY the one with whole numbers; the other is a fraction of 2^32."""
    columns = c.every("priority")
    for column in columns:
        if not pc.any(pc.match_substring(column, ".")).as_py():
            return c.mapped(column, "PRIORITY", "amount", parse_amount, (pa.int64(),))[0]
    return pa.nulls(c.n, pa.int64())


def _jobs(c: Columns, queue: dict[str, pa.Array], more: dict[str, pa.Array]) -> pa.Table:
    """The last sight of each job, as a row that accounting replaces. Tasks of a pending array shown one by one share the
    raw id: they become one record, as accounting keeps them."""
    known = mask_of(queue["submit"].is_valid())
    picked = np.flatnonzero(known)
    if not len(picked):
        return rows("jobs", {}, 0)
    ids = queue["job_id"].to_numpy(zero_copy_only=False)[picked]
    submit = queue["submit"].cast(pa.int64()).to_numpy(zero_copy_only=False)[picked]
    seen = queue["observed_at"].cast(pa.int64()).to_numpy(zero_copy_only=False)[picked]
    order = np.lexsort((seen, submit, ids))
    picked, ids, submit, seen = picked[order], ids[order], submit[order], seen[order]
    last = np.append((ids[1:] != ids[:-1]) | (submit[1:] != submit[:-1]), True)
    group = np.cumsum(np.insert(last[:-1], 0, False))
    newest = seen == seen[np.flatnonzero(last)][group]
    picked, group = picked[newest], group[newest]
    first = np.flatnonzero(np.insert(np.diff(group), 0, 1))
    take = pa.array(picked[first])
    pending = more["pending"]
    out: dict[str, Any] = {n: queue[n].take(take) for n in (
        "cluster", "job_id", "job_id_text", "array_job_id", "array_task", "array_tasks", "array_tasks_exact", "array_throttle",
        "name", "user",
        "account", "partition", "qos", "state", "reason", "reason_text", "submit", "eligible", "start", "limit_s", "limit_kind",
        "priority",
        "node_list", "constraints", "reservation", "licenses", "observed_at")}
    run, null = pc.invert(pending).take(take), pa.scalar(None, pa.int64())
    for name in ("nodes", "cpus", "gpus"):
        values = queue[name].take(take)
        out[f"{name}_req"] = pc.if_else(run, null, values) if name != "gpus" else values
        out[f"{name}_alloc"] = pc.if_else(run, values, null)
    out["gpu_type_req"] = pc.if_else(run, pa.scalar(None, pa.string()), queue["gpu_type"].take(take))
    out["gpu_type_alloc"] = pc.if_else(run, queue["gpu_type"].take(take), pa.scalar(None, pa.string()))
    out["end"] = more["end"].take(take)
    out["elapsed_s"] = pc.if_else(run, queue["elapsed_s"].take(take), null)
    out["restarts"] = c.whole("restartcount").take(take)
    out["uid"] = c.whole("uid").take(take)
    out["work_dir"] = c.text("workdir", null=NAMES).take(take)
    out["comment"] = c.text("comment", null=NAMES | {"(null)"}).take(take)
    n = len(first)
    out["completeness"] = pa.array(np.zeros(n, np.int64))
    out["source"] = pa.array(["squeue"] * n, pa.string())
    words = np.full(n, None, object)
    words[mask_of(pa.array(c.not_utf8()).take(take))] = "not_utf8"
    words[mask_of(pc.equal(out["state"], "REVOKED"))] = "revoked"
    out["anomalies"] = pa.array(words, pa.string())
    _fold_tasks(out, queue, picked, first)
    return rows("jobs", out, n)


def _fold_tasks(out: dict[str, Any], queue: dict[str, pa.Array], picked: Ints, first: Ints) -> None:
    sizes = np.diff(np.append(first, len(picked)))
    many = np.flatnonzero(sizes > 1)
    if not len(many):
        return
    text, task, tasks = out["job_id_text"].to_pylist(), out["array_task"].to_pylist(), out["array_tasks"].to_pylist()
    for g in many:
        members = pa.array(picked[first[g] : first[g] + sizes[g]])
        indices = sorted(i for i in queue["array_task"].take(members).to_pylist() if i is not None)
        if len(indices) > 1:
            text[g] = f"{out['array_job_id'][int(g)].as_py()}_[{_spans(indices)}]"
            task[g] = None
            tasks[g] = len(indices)
    out["job_id_text"] = pa.array(text, pa.string())
    out["array_task"] = pa.array(task, pa.int64())
    out["array_tasks"] = pa.array(tasks, pa.int64())


def _spans(numbers: list[int]) -> str:
    """``1-3,7`` for 1, 2, 3, 7."""
    out: list[str] = []
    begin = before = numbers[0]
    for number in [*numbers[1:], -1]:
        if number == before + 1:
            before = number
            continue
        out.append(str(begin) if begin == before else f"{begin}-{before}")
        begin = before = number
    return ",".join(out)
