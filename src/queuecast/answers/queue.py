"""The queue at an instant: what waits and why, and which GPUs stand idle."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from queuecast.answers.viewer import Viewer
from queuecast.answers.wait import plain
from queuecast.policy.request import Request
from queuecast.policy.tables import policy_at
from queuecast.policy.usage import usage_at
from queuecast.policy.verdicts import verdicts
from queuecast.reasons import explain_reason, never_starts
from queuecast.slurmtext.hostlist import expand_hostlist
from queuecast.slurmtext.reasons import parse_reason
from queuecast.slurmtext.states import UNUSABLE_FLAGS
from queuecast.store.files import instant

if TYPE_CHECKING:
    from queuecast.policy.tables import Policy
    from queuecast.policy.usage import Usage
    from queuecast.store.lake import Lake

Hold = Literal["never", "held", "dependency", "time", "reservation", "limit", "priority", "resources", "other"]

SPAN = timedelta(days=3)
"""Snapshots older than that say nothing of the present."""

UNUSABLE_STATES = frozenset({"DOWN", "ERROR", "FUTURE", "UNKNOWN"})


@dataclass(frozen=True)
class PendingJob:
    """One record of squeue; an array's pending tasks are one. ``user`` and ``name`` are None where the viewer may not see
    them. ``waited_s`` counts from eligible, else from submit."""

    job_id: str
    tasks: int
    user: str | None
    name: str | None
    account: str | None
    partition: str | None
    gpus: int | None
    gpu_type: str | None
    cpus: int | None
    limit_s: int | None
    submit: datetime | None
    waited_s: float | None
    reason: str
    reason_title: str
    slurm_start: datetime | None
    hold: Hold = "other"


@dataclass(frozen=True)
class ReasonCount:
    """Pending records, tasks and GPUs asked for under one reason. ``gpus`` None if unknown for some."""

    reason: str
    title: str
    who: tuple[str, ...]
    jobs: int
    tasks: int
    gpus: int | None


@dataclass(frozen=True)
class HoldCount:
    """Pending records, tasks and GPUs that one kind of constraint keeps. ``checked``: records for which the limits here say
    so themselves; of the others only Slurm does. ``gpus`` None if unknown for some."""

    hold: Hold
    jobs: int
    tasks: int
    gpus: int | None
    checked: int


@dataclass(frozen=True)
class GpuStock:
    """GPUs of one type. ``blocked`` are on nodes that are down, drained or in maintenance; ``largest_block`` is the most
    free on one usable node. ``in_use`` None: no source told."""

    gpu_type: str
    total: int
    in_use: int | None
    blocked: int
    idle: int | None
    largest_block: int | None
    asked_for: int


@dataclass(frozen=True)
class QueueNow:
    """The answer. ``snapshot_at`` None: there is no snapshot of the last days. ``unread``: tables of limits never read."""

    cluster: str
    at: datetime
    snapshot_at: datetime | None
    nodes_at: datetime | None
    running: int
    pending: tuple[PendingJob, ...]
    reasons: tuple[ReasonCount, ...]
    gpus: tuple[GpuStock, ...]
    holds: tuple[HoldCount, ...] = ()
    unread: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Plain values; times ISO 8601 UTC."""
        out: dict[str, Any] = plain(asdict(self))
        return out


def queue_now(lake: Lake, cluster: str, at: datetime, viewer: Viewer | None = None) -> QueueNow:
    """The last snapshot at or before ``at``."""
    viewer = viewer or Viewer()
    rows = _last(lake, "queue", cluster, at)
    read = lake.manifest.state.get("seen", {}).get(cluster, {}).get("queue")
    emptied = datetime.fromisoformat(read) if read else None  # a later reading without a row: the queue was empty
    if emptied is not None and (emptied > at or at - emptied > SPAN or (rows is not None and rows["observed_at"][0].as_py() >= emptied)):
        emptied = None
    if emptied is not None:
        rows = None
    nodes = _last(lake, "nodes", cluster, at)
    jobs = rows.to_pylist() if rows is not None else []
    _complete(lake, cluster, jobs)
    pending = [j for j in jobs if j["state"] == "PENDING"]
    running = [j for j in jobs if j["state"] in ("RUNNING", "COMPLETING", "SUSPENDED", "CONFIGURING")]
    snapshot = jobs[0]["observed_at"] if jobs else emptied
    policy = policy_at(lake, cluster, at)
    kept = _kept(policy, usage_at(lake, cluster, at), pending) if pending else {}
    return QueueNow(
        cluster,
        at,
        snapshot,
        nodes["observed_at"][0].as_py() if nodes is not None else None,
        len(running),
        tuple(_pending(j, viewer, snapshot, kept[j["job_id_text"]][0]) for j in sorted(pending, key=_order)),
        _reasons(pending),
        _stock(nodes.to_pylist() if nodes is not None else [], running, pending),
        _holds(pending, kept),
        tuple(t for t in ("partitions", "qos", "associations") if t in policy.missing),
    )


def _last(lake: Lake, table: str, cluster: str, at: datetime) -> pa.Table | None:
    rows = lake.read(table, cluster=cluster, since=at - SPAN, until=at + timedelta(microseconds=1))
    rows = rows.filter(pc.less_equal(rows["observed_at"], instant(at)))
    if not rows.num_rows:
        return None
    return rows.filter(pc.equal(rows["observed_at"], pc.max(rows["observed_at"])))


def _complete(lake: Lake, cluster: str, jobs: list[dict[str, Any]]) -> None:
    """GPUs and eligible time from accounting where it has the attempt: for pending jobs squeue's node count is a guess,
    and with it the GPUs of a request per node."""
    submits = [j["submit"] for j in jobs if j["submit"]]
    if not submits:
        return
    rows = lake.read("jobs", ["job_id", "submit", "eligible", "gpus_req", "gpu_type_req"], cluster=cluster, since=min(submits))
    rows = rows.filter(pc.is_in(rows["job_id"], value_set=pa.array([j["job_id"] for j in jobs], pa.int64())))
    known = {(r["job_id"], r["submit"]): r for r in rows.to_pylist()}
    for job in jobs:
        told = known.get((job["job_id"], job["submit"]))
        if told is None:
            continue
        if job["state"] == "PENDING" and told["gpus_req"] is not None:
            job["gpus"], job["gpu_type"] = told["gpus_req"], told["gpu_type_req"] or job["gpu_type"]
        if job["eligible"] is None and told["eligible"] and told["eligible"] <= job["observed_at"]:
            job["eligible"] = told["eligible"]


def _order(job: dict[str, Any]) -> tuple[bool, int, str]:
    """By priority; those that can never start come last."""
    return _hopeless(job), -(job["priority"] or 0), job["job_id_text"]


def _hopeless(job: dict[str, Any]) -> bool:
    return never_starts(job["reason"] or "")


def _kept(policy: Policy, usage: Usage, pending: list[dict[str, Any]]) -> dict[str, tuple[Hold, bool]]:
    """What keeps each record, and whether the limits here say so. Requests that are alike are looked at once."""
    seen: dict[Request, tuple[Hold, bool] | None] = {}
    out = {}
    for job in pending:
        request = _request(job)
        if request not in seen:
            kinds = {v.kind for v in verdicts(policy, request, usage, without=job["job_id"])}
            seen[request] = ("never", True) if kinds & {"never", "refused"} else ("limit", True) if kinds else None
        out[job["job_id_text"]] = _hold(job, seen[request], not set(policy.missing) & {"partitions", "qos", "associations"})
    return out


def _hold(job: dict[str, Any], rule: tuple[Hold, bool] | None, read: bool) -> tuple[Hold, bool]:
    """In the order in which one hides the other. ``read``: all limits are known, so that Slurm's word on one can be old."""
    info = explain_reason(parse_reason(job["reason_text"] or job["reason"] or ""))
    if job["priority"] == 0 or info.wait_class == "hold":
        return "held", False
    if rule is not None and rule[0] == "never":
        return rule
    if never_starts(info.code):
        return "never", False
    if info.wait_class == "dependency":
        return "dependency", False
    if info.wait_class == "time":
        return "time", False
    if info.code == "Reservation":
        return "reservation", False
    if rule is not None:
        return rule
    if info.wait_class == "limit":  # an array's own limit is in no table here
        return ("priority" if read and info.code != "JobArrayTaskLimit" and "Minutes" not in info.code else "limit"), False
    return ("priority" if info.wait_class == "priority" else "resources" if info.wait_class == "resources" else "other"), False


def _request(job: dict[str, Any]) -> Request:
    return Request(
        partitions=tuple(p for p in (job["partition"] or "").split(",") if p),
        gpus=job["gpus"] or 0,
        gpu_type=None if job["gpu_type"] == "mixed" else job["gpu_type"],
        nodes=job["nodes"] or 1,
        cpus=job["cpus"] or 1,
        mem_bytes=job.get("mem_req_bytes"),
        limit_s=job["limit_s"],
        unlimited=job.get("limit_kind") == "unlimited",
        account=job["account"],
        qos=job["qos"],
        user=job["user"],
        constraint=job["constraints"],
        reservation=job["reservation"],
        licenses=job["licenses"],
    )


def _holds(pending: list[dict[str, Any]], kept: dict[str, tuple[Hold, bool]]) -> tuple[HoldCount, ...]:
    groups: dict[Hold, list[dict[str, Any]]] = defaultdict(list)
    for job in pending:
        groups[kept[job["job_id_text"]][0]].append(job)
    out = []
    for hold, jobs in groups.items():
        gpus = None if any(j["gpus"] is None for j in jobs) else sum(j["gpus"] * j["array_tasks"] for j in jobs)
        checked = sum(kept[j["job_id_text"]][1] for j in jobs)
        out.append(HoldCount(hold, len(jobs), sum(j["array_tasks"] for j in jobs), gpus, checked))
    return tuple(sorted(out, key=lambda h: (-h.tasks, h.hold)))


def _pending(job: dict[str, Any], viewer: Viewer, snapshot: datetime | None, hold: Hold) -> PendingJob:
    info = explain_reason(parse_reason(job["reason_text"] or job["reason"] or ""))
    seen = viewer.may_see(job["user"])
    since = job["eligible"] or job["submit"]
    waited = (snapshot - since).total_seconds() if snapshot and since and since <= snapshot else None
    return PendingJob(
        job["job_id_text"],
        job["array_tasks"],
        job["user"] if seen else None,
        job["name"] if seen else None,
        job["account"],
        job["partition"],
        job["gpus"],
        job["gpu_type"],
        job["cpus"],
        job["limit_s"],
        job["submit"],
        waited,
        info.code,
        info.title,
        job["start_estimate"],
        hold,
    )


def _reasons(pending: list[dict[str, Any]]) -> tuple[ReasonCount, ...]:
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for job in pending:
        groups[explain_reason(parse_reason(job["reason_text"] or job["reason"] or "")).code].append(job)
    out = []
    for code, jobs in groups.items():
        info = explain_reason(code if code != "None" else None)
        gpus = None if any(j["gpus"] is None for j in jobs) else sum(j["gpus"] * j["array_tasks"] for j in jobs)
        out.append(ReasonCount(code, info.title, info.who, len(jobs), sum(j["array_tasks"] for j in jobs), gpus))
    return tuple(sorted(out, key=lambda r: (-r.tasks, r.reason)))


def _stock(nodes: list[dict[str, Any]], running: list[dict[str, Any]], pending: list[dict[str, Any]]) -> tuple[GpuStock, ...]:
    used, unclear = _used_by_jobs(running)
    by_type: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for node in nodes:
        if node["gpus"]:
            by_type[node["gpu_type"] or "gpu"].append(node)
    asked = Counter[str]()
    for job in (j for j in pending if not _hopeless(j)):
        asked[job["gpu_type"] or "gpu"] += (job["gpus"] or 0) * job["array_tasks"]
    stock = []
    for kind, members in sorted(by_type.items()):
        total = sum(n["gpus"] for n in members)
        told = all(n["gpus_alloc"] is not None for n in members)
        in_use = {n["node"]: n["gpus_alloc"] if told else used[n["node"]] for n in members}
        blocked = [n for n in members if _blocked(n)]
        names = {n["node"] for n in blocked}
        free = {n["node"]: max(0, n["gpus"] - in_use[n["node"]]) for n in members if n["node"] not in names}
        known = told or not unclear & {n["node"] for n in members}
        stock.append(
            GpuStock(
                kind,
                total,
                sum(in_use.values()) if known else None,
                sum(max(0, n["gpus"] - in_use[n["node"]]) for n in blocked),
                sum(free.values()) if known else None,
                max(free.values(), default=0) if known else None,
                asked[kind],
            )
        )
    return tuple(stock)


def _blocked(node: dict[str, Any]) -> bool:
    flags = set((node["state_flags"] or "").split(",")) - {""}
    return node["state"] in UNUSABLE_STATES or bool(flags & UNUSABLE_FLAGS)


def _used_by_jobs(running: list[dict[str, Any]]) -> tuple[Counter[str], set[str]]:
    """GPUs in use by node, from the jobs that run there: shared evenly over a job's nodes, which Slurm need not do.
    And the nodes on which a job runs whose GPUs are unknown."""
    used: Counter[str] = Counter()
    unclear: set[str] = set()
    for job in running:
        hosts = expand_hostlist(job["node_list"] or "") or ()
        if job["gpus"] is None:
            unclear.update(hosts)
        elif hosts and job["gpus"]:
            share, rest = divmod(job["gpus"], len(hosts))
            for i, host in enumerate(hosts):
                used[host] += share + (i < rest)
    return used, unclear
