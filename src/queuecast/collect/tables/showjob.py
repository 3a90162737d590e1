"""``scontrol show job``: the jobs that the controller knows, as rows of ``jobs`` that accounting replaces."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import Any

import pyarrow as pa

from queuecast.collect.columns import Env
from queuecast.collect.tables import jobfiles
from queuecast.collect.tables.keyvalue import JobRecord, Values, in_batches
from queuecast.collect.tables.values import limit_pair, parse_exit_pair, parse_reason_pair, parse_state_pair
from queuecast.errors import ParseError
from queuecast.slurmtext.durations import parse_elapsed, parse_limit
from queuecast.slurmtext.gres import Gpus, add_types
from queuecast.slurmtext.jobids import JobId, parse_job_id
from queuecast.slurmtext.nulls import NAMES, NODES, TEXT, parse_count
from queuecast.slurmtext.showjob import min_memory, times_hosts
from queuecast.slurmtext.states import ENDED_STATES, PENDING_STATES
from queuecast.slurmtext.times import NO_TIME, ParsedTime, parse_time
from queuecast.slurmtext.tres import gpus_of_gres, gpus_of_tres, parse_tres

Result = Iterator[tuple[str, pa.Table]]

_USER = re.compile(r"(.*)\((\d+)\)")
_SCHEDULERS = {"Main": "main", "Backfill": "backfill", "Submit": "submit"}
_PER = (("TresPerJob", None), ("TresPerNode", "nodes"), ("Gres", "nodes"), ("TresPerTask", "tasks"))
"""What a job asked for each of something; ``Gres`` until 18.08."""


def read(records: Iterable[JobRecord], env: Env, tracked: bool) -> Result:
    """Rows of ``jobs`` with completeness 0, and of ``job_files``. ``tracked``: the cluster's TRES include gres/gpu, so a job without it
    has no GPU."""
    files: list[dict[str, Any]] = []
    yield from in_batches("jobs", (_row(record, env, tracked, files) for record in records))
    yield from in_batches("job_files", files)


def _row(record: JobRecord, env: Env, tracked: bool, files: list[dict[str, Any]]) -> dict[str, Any] | None:
    v = Values(record, env)
    section = record.section
    try:
        ids = _ids(record)
        state, by = parse_state_pair(record.fields["JobState"])
        submit = parse_time(record.fields["SubmitTime"], env.zone)
        if submit.value is None:
            raise ParseError("no submit time", record.fields["SubmitTime"])
    except ParseError as error:
        env.rejects.record(record.line, error.cause, record.raw, cluster=section.cluster, at=section.at)
        return None
    nodes, node_list = v.of(_least, "NumNodes"), v.text("NodeList", null=NODES)
    pending, ended = state in PENDING_STATES, state in ENDED_STATES
    begin, end, eligible = (_time(v, name) for name in ("StartTime", "EndTime", "EligibleTime"))
    # Of a job that waits StartTime is an estimate; one cancelled before it ran shows the moment of the end.
    started = not (pending or begin.value is None or (ended and node_list is None and begin.value == end.value))
    user, uid = v.of(_user, "UserId") or (None, None)
    seconds, kind = v.of(limit_pair(parse_limit), "TimeLimit") or (None, None)
    code, signal = _exit(v, "ExitCode", ended and started)
    derived, derived_signal = _exit(v, "DerivedExitCode", ended and started)
    scheduler = record.fields.get("Scheduler", "")
    row: dict[str, Any] = {
        **v.where, **ids, "name": v.text("JobName", null=NAMES | {"(null)"}), "user": user, "uid": uid, "account": v.text("Account"),
        "partition": v.text("Partition"), "qos": v.text("QOS"), "state": state, "cancelled_by": by, "exit_code": code,
        "exit_signal": signal, "derived_exit_code": derived, "derived_exit_signal": derived_signal, "submit": submit.value,
        "eligible": _reached(eligible.value, submit.value, v.where["observed_at"]), "start": begin.value if started else None,
        "end": end.value if ended else None, "elapsed_s": _seconds(v) if started else None, "limit_s": seconds, "limit_kind": kind,
        "priority": v.of(parse_count, "Priority"), "node_list": node_list if started else None, "constraints": v.text("Features"),
        "reservation": v.text("Reservation"), "licenses": v.text("Licenses"), "restarts": v.of(parse_count, "Restarts"),
        "scheduled_by": _SCHEDULERS.get(scheduler) if started else None, "work_dir": v.text("WorkDir", null=NAMES | {"(null)"}),
        "comment": v.text("Comment", null=NAMES | {"(null)"}), "admin_comment": v.text("AdminComment", null=NAMES | {"(null)"}),
        "completeness": 0, "source": "scontrol",
        "anomalies": _anomalies(record, state, submit, begin if started else NO_TIME, end if ended else NO_TIME),
    }
    row["reason"], row["reason_text"] = _reason(v)
    row |= _amounts(v, record, nodes, started=started, tracked=tracked)
    paths = jobfiles.of_record(v, row)
    if paths is not None:
        files.append(paths)
    return row


def _ids(record: JobRecord) -> dict[str, Any]:
    """Id columns. Raises ParseError for what is no id."""
    fields = record.fields
    job = parse_job_id(fields["JobId"])
    text, its = fields["JobId"], job
    if "ArrayTaskId" in fields:
        spec, base = fields["ArrayTaskId"], fields.get("ArrayJobId", text)
        throttle = fields.get("ArrayTaskThrottle")
        if not spec.isdigit():
            spec = f"[{spec}]" if throttle is None or "%" in spec else f"[{spec}%{throttle}]"
        text = f"{base}_{spec}"
        its = parse_job_id(text)
        if throttle is not None and its.throttle is None and throttle.isdigit():
            its = JobId(its.base, its.array_task, its.array_spec, its.tasks, its.tasks_exact, int(throttle) or None)
    elif "HetJobOffset" in fields:
        text = f"{fields.get('HetJobId', text)}+{fields['HetJobOffset']}"
        its = parse_job_id(text)
    het = its.het_offset is not None
    array = its.array_task is not None or its.array_spec is not None
    return {"job_id": job.base, "job_id_text": text, "array_job_id": its.base if array else None, "array_task": its.array_task,
            "array_tasks": its.tasks, "array_tasks_exact": its.tasks_exact, "array_throttle": its.throttle,
            "het_job_id": its.base if het else None, "het_offset": its.het_offset, "sluid": fields.get("SLUID")}


def _amounts(v: Values, record: JobRecord, nodes: int | None, *, started: bool, tracked: bool) -> dict[str, Any]:
    """Nodes, CPUs, memory and GPUs: asked for and, once it has started, allocated. ``TRES`` (until 22.05) is the one or the other."""
    fields = record.fields
    cpus = v.of(_least, "NumCPUs")
    old = "TRES" in fields
    of_request, of_allocation = ("TRES", "") if old and not started else ("", "TRES") if old else ("ReqTRES", "AllocTRES")
    asked = v.of(parse_tres, of_request) or {}
    given = (v.of(parse_tres, of_allocation) or {}) if started else {}
    out: dict[str, Any] = {
        "nodes_req": asked.get("node") or (None if started else nodes), "cpus_req": asked.get("cpu") or (None if started else cpus),
        "tres_req": v.text(of_request), "tres_alloc": v.text(of_allocation) if started else None,
    }
    if started:
        out |= {"nodes_alloc": given.get("node") or nodes, "cpus_alloc": given.get("cpu") or cpus, "mem_alloc_bytes": given.get("mem")}
    gpus_alloc = _allocated(v, record, given, of_allocation, tracked=tracked) if started else Gpus(None)
    gpus_req = _requested(v, asked, of_request, out["nodes_req"] or nodes, gpus_alloc, tracked=tracked)
    out |= {"gpus_alloc": gpus_alloc.total, "gpu_type_alloc": gpus_alloc.type, "gpus_req": gpus_req.total,
            "gpu_type_req": None if gpus_req.type == "mixed" else gpus_req.type}
    # An exclusive job is given more CPUs than it asked for.
    cpus_req = out["cpus_req"] or _product(v.of(_least, "NumTasks"), v.of(_least, "CPUs/Task"))
    out["mem_req_bytes"] = asked.get("mem") or _memory(v, {"node": out["nodes_req"] or nodes, "cpu": cpus_req, "gpu": gpus_req.total})
    return out


def _memory(v: Values, count: dict[str, int | None]) -> int | None:
    """Memory of the whole job by what it asked for each node, CPU or GPU."""
    name = next((n for n in ("MinMemoryCPU", "MinMemoryNode", "MinMemoryTRES") if n in v.record.fields), "MemPerTres")
    each = v.parsed(lambda _: min_memory(v.record.fields), name, v.record.fields.get(name, ""))
    return None if each is None or each.per is None else _product(each.bytes, count[each.per])


def _product(one: int | None, many: int | None) -> int | None:
    return None if one is None or many is None else one * many


def _allocated(v: Values, record: JobRecord, tres: dict[str, int | None], name: str, *, tracked: bool) -> Gpus:
    """From the TRES; where the cluster does not track GPUs, from the devices that ``-d`` shows (B05)."""
    if _has_gpus(tres):
        return v.of(gpus_of_tres, name) or Gpus(None)
    total = v.of(gpus_of_gres, "JOB_GRES")
    if total is not None and total.total:
        return Gpus(total.total, total.types)
    parts = [_times(v.parsed(gpus_of_gres, "GRES", each) or Gpus(None), n) for n, each in times_hosts(record.gres)]
    count = sum(part.total or 0 for part in parts)
    if count:
        return Gpus(count, add_types(t for part in parts for t in part.types))
    return Gpus(0 if tracked else None)


def _times(each: Gpus, many: int) -> Gpus:
    return Gpus(_product(each.total, many), tuple((kind, n * many) for kind, n in each.types))


def _requested(v: Values, tres: dict[str, int | None], name: str, nodes: int | None, allocated: Gpus, *, tracked: bool) -> Gpus:
    """From the TRES, else from what the job asked for in all or for each node or task, else what it was given."""
    if _has_gpus(tres):
        return v.of(gpus_of_tres, name) or Gpus(None)
    count = {None: 1, "nodes": nodes, "tasks": v.of(_least, "NumTasks")}
    for key, per in _PER:
        each, many = v.of(gpus_of_gres, key), count[per]
        if each is not None and each.total and many is not None:
            return _times(each, many)
    if allocated.total is not None:
        return allocated
    return Gpus(0 if tracked else None)


def _has_gpus(tres: dict[str, int | None]) -> bool:
    return any(key.lower() == "gres/gpu" or key.lower().startswith("gres/gpu:") for key in tres)


def _time(v: Values, name: str) -> ParsedTime:
    found: ParsedTime | None = v.of(partial(parse_time, zone=v.env.zone), name)
    return found or NO_TIME


def _reached(when: datetime | None, submit: datetime, seen: datetime) -> datetime | None:
    """Eligible since then. A job with ``--begin`` shows when it will be: not yet."""
    return when if when is not None and (when <= seen or when == submit) else None


def _reason(v: Values) -> tuple[str | None, str | None]:
    """(code, text). scontrol puts ``_`` for the blanks of a sentence; squeue prints it with blanks."""
    code, text = v.of(parse_reason_pair, "Reason") or (None, None)
    return code, text.replace("_", " ") if text is not None and code != "Unknown" else text


def _exit(v: Values, name: str, ran: bool) -> tuple[int | None, int | None]:
    found: tuple[int | None, int | None] | None = v.of(parse_exit_pair, name) if ran else None
    return found or (None, None)


def _seconds(v: Values) -> int | None:
    found: float | None = v.of(parse_elapsed, "RunTime")
    return None if found is None else int(found)


def _least(text: str) -> int | None:
    """``2-4`` nodes: at least 2."""
    first = text.partition("-")[0]
    return parse_count(first) if first else None


def _user(text: str) -> tuple[str | None, int | None]:
    """``alice(1001)``: name and number."""
    match = _USER.fullmatch(text)
    if match is None:
        raise ParseError("not a user with a number", text)
    return (None if match[1] in TEXT else match[1]), int(match[2])


def _anomalies(record: JobRecord, state: str, *times: ParsedTime) -> str | None:
    words: set[str] = {t.flag for t in times if t.flag}
    if record.not_utf8:
        words.add("not_utf8")
    if state == "REVOKED":
        words.add("revoked")
    return ",".join(sorted(words)) or None
