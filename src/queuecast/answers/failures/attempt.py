"""Which attempt of a job is asked about, and everything that the lake holds of its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from queuecast.answers.failures.rows import AFTER, JOB_COLUMNS, LONGEST, NodeEvent, events_of, memory_share, node_events, nodes_in, steps_of
from queuecast.answers.lookup import find_job, parse_id
from queuecast.answers.wait import iso
from queuecast.slurmtext.states import ENDED_STATES
from queuecast.store.files import instant
from queuecast.usage.measure import uses_of

if TYPE_CHECKING:
    from queuecast.answers.viewer import Viewer
    from queuecast.slurmtext.jobids import JobId
    from queuecast.store.lake import Lake

MEMORY_TELLS = frozenset({"FAILED", "OUT_OF_MEMORY", "REQUEUED", "COMPLETED"})
"""Of other states it is known why; all use of a time has to be read to know that of one job."""
SNAPSHOTS_BEFORE = timedelta(hours=2)
SNAPSHOTS_AFTER = timedelta(minutes=30)


@dataclass(frozen=True)
class Attempt:
    """What accounting tells of the attempt; times UTC, None is unknown or not yet. ``memory_peak_share``: highest memory seen over
    what it had (a lower bound where only one task's peak is known). ``exit_code`` and ``exit_signal`` as Slurm printed them.
    ``earlier``: states of the attempts before it, in order."""

    job_id: int
    text: str
    user: str | None
    name: str | None
    partition: str | None
    state: str
    submit: datetime | None
    start: datetime | None
    end: datetime | None
    elapsed_s: float | None = None
    limit_s: float | None = None
    exit_code: int | None = None
    exit_signal: int | None = None
    node_list: str | None = None
    gpus: int | None = None
    memory_bytes: int | None = None
    memory_peak_share: float | None = None
    earlier: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        times = {"submit": iso(self.submit), "start": iso(self.start), "end": iso(self.end)}
        plain = {k: v for k, v in self.__dict__.items() if k not in ("job_id", "text")}
        return {"job_id": self.text, "raw_job_id": self.job_id, **plain, **times, "earlier": list(self.earlier)}


@dataclass(frozen=True)
class FoundAttempt:
    """``row``: of ``jobs``, None if no attempt has ended. ``steps``: rows of ``steps``. ``memory``: see ``Attempt``. ``files``: std_out,
    std_err, work_dir. ``again``: there is a later attempt; ``waits``: it has not ended."""

    attempt: Attempt
    row: dict[str, Any] | None = None
    steps: tuple[dict[str, Any], ...] = ()
    events: tuple[NodeEvent, ...] = ()
    memory: float | None = None
    nodes: tuple[str, ...] = ()
    files: Mapping[str, str | None] | None = None
    again: bool = False
    waits: bool = False
    failed_tasks: int | None = None
    ended_tasks: int | None = None


def find_attempt(lake: Lake, cluster: str, text: str, at: datetime, viewer: Viewer) -> FoundAttempt:
    """The last ended attempt; of an array asked about as a whole, of its first failed task. Raises as ``failure`` does."""
    wanted = parse_id(text)
    rows = _rows(lake, cluster, wanted, at)
    if not rows:
        known = find_job(lake, cluster, text, at)
        viewer.check(known.user, text)
        partition = ",".join(known.request.partitions) or None
        return FoundAttempt(
            Attempt(known.job_id, known.text, known.user, known.name, partition, known.state, known.submit, known.start, known.end)
        )
    for owner in {r["user"] for r in rows}:
        viewer.check(owner, text)
    last: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        last.setdefault(row["job_id_text"] or str(row["job_id"]), []).append(row)
    ended = {task: of[-1] for task, of in last.items() if _over(of[-1], at)}
    failed_rows = sorted((r for r in ended.values() if r["state"] != "COMPLETED"), key=lambda r: (r["end"], r["job_id"]))
    chosen = failed_rows[0] if failed_rows else next(iter(ended.values()), None)
    if chosen is None or (len(last) == 1 and not _over(rows[-1], at)):
        # Queued again: the attempt before tells why.
        chosen = next((r for r in reversed(rows) if _over(r, at)), None)
    if chosen is None:
        row = rows[-1]
        begun = row["start"] is not None and row["start"] <= at
        return FoundAttempt(
            _attempt({**row, "end": None, "start": row["start"] if begun else None}, None, "RUNNING" if begun else "PENDING")
        )
    later = [r for r in last[chosen["job_id_text"] or str(chosen["job_id"])] if r["submit"] > chosen["submit"]]
    nodes = nodes_in(chosen["node_list"])
    steps = steps_of(lake, cluster, pa.array([chosen["job_id"]], pa.int64()), chosen["submit"] - timedelta(days=1), at)
    own = [s for s in steps.to_pylist() if s["job_submit"] == chosen["submit"]]
    memory = memory_share(chosen, own)
    if memory is None or any((s["tasks"] or 1) > 1 for s in own):  # one task's peak is no more than a part then
        memory = _memory(lake, cluster, chosen, at) or memory
    before = tuple(r["state"] for r in last[chosen["job_id_text"] or str(chosen["job_id"])] if r["submit"] < chosen["submit"])
    several = len(ended) > 1
    return FoundAttempt(
        _attempt(chosen, memory, chosen["state"], before),
        chosen,
        tuple(own),
        _events(lake, cluster, chosen, nodes, at),
        memory,
        nodes,
        _files(lake, cluster, chosen),
        bool(later),
        bool(later) and not _over(later[-1], at),
        len(failed_rows) if several else None,
        len(ended) if several else None,
    )


def _rows(lake: Lake, cluster: str, wanted: JobId, at: datetime) -> list[dict[str, Any]]:
    behind = timedelta(microseconds=1)
    names = ["submit", "job_id", "array_job_id", "array_task", *(["job_id_text"] if wanted.het_offset is not None else [])]
    for since in (at - LONGEST, None):
        # The few columns that name jobs first: the others are read only from where the job is.
        ids = _of(lake.read("jobs", names, cluster=cluster, since=since, until=at + behind), wanted, at)
        if not ids.num_rows:
            continue
        sent = ids["submit"].to_pylist()
        rows = lake.read("jobs", list(JOB_COLUMNS), cluster=cluster, since=min(sent), until=max(sent) + behind)
        found: list[dict[str, Any]] = _of(rows, wanted, at).sort_by([("submit", "ascending"), ("job_id", "ascending")]).to_pylist()
        return found
    return []


def _of(rows: pa.Table, wanted: JobId, at: datetime) -> pa.Table:
    if wanted.het_offset is not None:
        mine = pc.equal(rows["job_id_text"], f"{wanted.base}+{wanted.het_offset}")
    elif wanted.array_task is not None:
        mine = pc.and_(pc.equal(rows["array_job_id"], wanted.base), pc.equal(rows["array_task"], wanted.array_task))
    else:
        # The last task of an array keeps the array's own number: then the whole array is meant.
        mine = pc.or_(pc.equal(rows["job_id"], wanted.base), pc.fill_null(pc.equal(rows["array_job_id"], wanted.base), False))
    return rows.filter(pc.and_(pc.fill_null(mine, False), pc.less_equal(rows["submit"], instant(at))))


def _over(row: Mapping[str, Any], at: datetime) -> bool:
    return row["end"] is not None and row["end"] <= at and row["state"] in ENDED_STATES


def _attempt(row: Mapping[str, Any], memory: float | None, state: str, before: tuple[str, ...] = ()) -> Attempt:
    return Attempt(
        job_id=row["job_id"],
        text=row["job_id_text"] or str(row["job_id"]),
        user=row["user"],
        name=row["name"],
        partition=row["partition"],
        state=state,
        submit=row["submit"],
        start=row["start"],
        end=row["end"],
        elapsed_s=row["elapsed_s"] if row["end"] else None,
        limit_s=row["limit_s"],
        exit_code=row["exit_code"] if row["end"] else None,
        exit_signal=row["exit_signal"] if row["end"] else None,
        node_list=row["node_list"] if row["start"] else None,
        gpus=row["gpus_alloc"] if row["gpus_alloc"] is not None else row["gpus_req"],
        memory_bytes=row["mem_alloc_bytes"] or row["mem_req_bytes"],
        memory_peak_share=memory,
        earlier=before,
    )


def _memory(lake: Lake, cluster: str, row: Mapping[str, Any], at: datetime) -> float | None:
    """Highest memory over what it had, from whatever measured it (``usage.measure``); what a script made up does not count."""
    if row["start"] is None or row["end"] is None or row["end"] <= row["start"] or row["state"] not in MEMORY_TELLS:
        return None
    rows = uses_of(lake, cluster, since=row["end"] - timedelta(seconds=1), at=min(at, row["end"] + timedelta(seconds=1))).rows
    rows = rows.filter(
        pc.and_(pc.equal(rows["job_id"], row["job_id"]), pc.equal(rows["submit"], pa.scalar(row["submit"], rows["submit"].type)))
    )
    if not rows.num_rows:
        return None
    use = rows.slice(0, 1).to_pylist()[0]
    peak, have = use["mem_peak_bytes"], use["mem_alloc_bytes"]
    return None if not peak or not have or use["generated"] else float(peak / have)


def _events(lake: Lake, cluster: str, row: Mapping[str, Any], nodes: tuple[str, ...], at: datetime) -> tuple[NodeEvent, ...]:
    """Events of its nodes, and what snapshots show of nodes without any."""
    start, end = row["start"], row["end"]
    if start is None or not nodes:
        return ()
    found = events_of(row, node_events(lake, cluster, start, min(at, end + AFTER)))
    told = {e.node for e in found}
    low, high = max(start, end - SNAPSHOTS_BEFORE), min(at, end + SNAPSHOTS_AFTER)
    columns = ["observed_at", "node", "state", "state_flags", "reason"]
    seen = lake.read("nodes", columns, cluster=cluster, since=low, until=high + timedelta(microseconds=1))
    silent = [n for n in nodes if n not in told]
    inside = pc.and_(pc.greater_equal(seen["observed_at"], instant(low)), pc.less_equal(seen["observed_at"], instant(high)))
    seen = seen.filter(pc.and_(inside, pc.is_in(seen["node"], value_set=pa.array(silent, pa.string()))))
    for reading in seen.sort_by("observed_at").to_pylist():
        flags = (reading["state_flags"] or "").split(",")
        down = reading["state"] in ("DOWN", "ERROR") or "NOT_RESPONDING" in flags or "FAIL" in flags
        if reading["node"] not in told and (down or "DRAIN" in flags):
            told.add(reading["node"])
            state = "DOWN" if down else "DRAIN"
            found.append(NodeEvent(reading["node"], reading["observed_at"], None, state, reading["reason"] or ""))
    return tuple(sorted(found, key=lambda e: (e.kind is None, e.kind == "drain", e.start, e.node)))


def _files(lake: Lake, cluster: str, row: Mapping[str, Any]) -> dict[str, str | None]:
    """Where its logs lie, from ``job_files``; a row of another attempt of the same job serves, since the patterns are the same."""
    names = ["job_id", "job_submit", "work_dir", "std_out", "std_err"]
    rows = lake.read("job_files", names, cluster=cluster, since=row["submit"] - LONGEST, until=row["end"] + timedelta(seconds=1))
    found = rows.filter(pc.equal(rows["job_id"], row["job_id"])).sort_by("job_submit").to_pylist()
    exact = [f for f in found if f["job_submit"] == row["submit"]]
    one = (exact or found or [{}])[-1]
    return {"std_out": one.get("std_out"), "std_err": one.get("std_err"), "work_dir": one.get("work_dir") or row["work_dir"]}
