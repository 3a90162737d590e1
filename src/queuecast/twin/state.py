"""The state of a cluster at a moment, as far as snapshots tell: what the replay begins with."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queuecast.errors import ParseError
from queuecast.policy.nodes import UNUSABLE_STATES
from queuecast.policy.recent import last_snapshot
from queuecast.policy.tables import Policy, policy_at
from queuecast.slurmtext.hostlist import expand_hostlist
from queuecast.store.files import instant
from queuecast.twin.arrays import PENDING, RUNNING, Jobs, Machine, Rules
from queuecast.twin.cluster import MIB, LimitTable
from queuecast.twin.past import Past, past_at
from queuecast.twin.shares import EMPTY, Tree, tree_at
from queuecast.twin.work import FOREVER, Frame, Work, code, rules_of, throttle_of

if TYPE_CHECKING:
    from queuecast.store.lake import Lake

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Asked = tuple[float | None, str | None, str | None]
NOT_TOLD: Asked = (None, None, None)
NOTHING = Past((), {}, 0.0, 0.0)
MOST_TASKS = 2000
"""Tasks of one pending array record that are played; the rest would wait behind them anyway."""

_QUEUE = (
    "job_id", "array_job_id", "array_task", "array_tasks", "array_throttle", "user", "account", "partition", "qos", "state", "reason",
    "limit_s",
    "limit_kind", "nodes", "cpus", "mem_req_bytes", "gpus", "gpu_type", "priority", "dependency", "node_list", "reservation",
)  # fmt: skip


@dataclass(frozen=True)
class TwinState:
    """A cluster at ``at`` (seconds since 1970 UTC). ``works`` are its running and pending jobs, ``jobs`` the same as arrays.

    ``unknown``: what could not be known, and what was assumed instead, in plain words. ``queue_at``: when the queue was
    read (None: never; then there are no jobs).
    """

    cluster: str
    at: float
    policy: Policy
    frame: Frame
    works: tuple[Work, ...]
    jobs: Jobs
    queue_at: float | None
    unknown: tuple[str, ...] = field(default=())
    past: Past = field(default=NOTHING, repr=False)

    @property
    def machine(self) -> Machine:
        """Nodes, partitions, reservations."""
        return self.frame.machine

    @property
    def rules(self) -> Rules:
        """Limits, preemption and priority as they stand."""
        return rules_of(self.frame)

    @property
    def pending(self) -> int:
        """Pending jobs (array tasks counted one by one)."""
        return sum(w.status == PENDING for w in self.works)

    @property
    def running(self) -> int:
        """Running jobs."""
        return sum(w.status == RUNNING for w in self.works)


def state_at(lake: Lake, cluster: str, at: datetime | float, *, policy: Policy | None = None) -> TwinState:
    """The state at ``at`` from the last snapshots at or before it. Raises ``LakeDamaged``.

    Configuration is that of the last reading at ``at``, the first one if none is that old (said in ``unknown``).
    """
    moment = at if isinstance(at, datetime) else EPOCH + timedelta(seconds=float(at))
    now = (moment - EPOCH).total_seconds()
    policy = with_weights(lake, cluster, policy or policy_at(lake, cluster, moment), moment)
    notes: list[str] = [f"{name} were never read: nothing of them is modelled" for name in policy.missing]
    firsts = [datetime.fromisoformat(f.low) for t in ("settings", "nodes", "partitions") for f in lake.manifest.of(t, cluster) if f.low]
    if firsts and min(firsts) > moment:
        notes.append(f"the configuration was first read on {min(firsts):%Y-%m-%d %H:%M} UTC: it counts as the same before")
    tree, shares_at = tree_at(lake, cluster, moment, policy)
    if shares_at is None:
        notes.append("fair share was never read: the factor counts as 0")
    elif not tree.known:
        notes.append("the tree of accounts is not known: fair share stays as last printed")
    rows, queue_at = last_snapshot(lake, "queue", cluster, moment, _QUEUE)
    stamps = _times(lake, cluster, moment, queue_at, ("submit", "eligible", "start"))
    if queue_at is None:
        notes.append("the queue was never read: it counts as empty")
    ranks, ranks_at = _priorities(lake, cluster, moment)
    memory = _requests(lake, cluster, moment)
    frame = frame_of(policy, tree, now, notes)
    works = _works(rows.to_pylist(), stamps, ranks, ranks_at, memory, frame, now, notes)
    jobs = code(frame, works)
    if frame.limits.ignored:
        notes.append("limits on " + ", ".join(sorted(frame.limits.ignored)) + " are not modelled")
    seen = None if queue_at is None else (queue_at - EPOCH).total_seconds()
    return TwinState(cluster, now, policy, frame, tuple(works), jobs, seen, tuple(notes), past_at(lake, cluster, moment))


def frame_of(
    policy: Policy, tree: Tree = EMPTY, now: float = 0.0, notes: list[str] | None = None, changes: Sequence[tuple[float, str, bool]] = ()
) -> Frame:
    """What jobs are coded against, from the configuration. ``changes``: (time, node, up) for nodes that go and come."""
    names = tuple(n.name for n in policy.nodes)
    types = tuple(sorted({t for n in policy.nodes for t in n.gpus}))
    total = np.zeros((len(names), 2 + len(types)))
    for i, n in enumerate(policy.nodes):
        total[i, 0], total[i, 1] = n.cpus or 0, (n.mem_bytes or 0) / MIB
        for t, count in n.gpus.items():
            total[i, 2 + types.index(t)] = count
    parts = tuple(policy.partitions) or tuple(sorted({p for n in policy.nodes for p in n.partitions}))
    member = np.array([[p in n.partitions for n in policy.nodes] for p in parts], bool).reshape(len(parts), len(names))
    for i, p in enumerate(parts):
        rule = policy.partition(p)
        if rule is not None and not member[i].any():
            member[i] = [n in rule.nodes for n in names]
    if notes is not None and any(n.weight is None for n in policy.nodes):
        notes.append("node weights are not told: nodes are taken in their order")
    resv = [r for r in policy.reservations if r.start is not None and r.end is not None]
    if notes is not None and any(not r.nodes for r in resv):
        notes.append("reservations whose nodes are not told are left out")
    resv = [r for r in resv if r.nodes]
    kept = np.array([[n in r.nodes for n in names] for r in resv], bool).reshape(len(resv), len(names))
    place = {n: i for i, n in enumerate(names)}
    ordered = sorted((t, place[n], up) for t, n, up in changes if n in place)
    machine = Machine(
        total,
        np.array(
            [
                n.available or (n.state not in UNUSABLE_STATES and "MAINT" in n.flags and not n.flags & {"DRAIN", "DOWN"})
                for n in policy.nodes
            ],
            bool,
        ),
        np.array([float(n.weight or 1) for n in policy.nodes]),
        member,
        np.array([float((policy.partitions[p].priority_tier if p in policy.partitions else 1) or 1) for p in parts]),
        np.array([p not in policy.partitions or policy.partitions[p].state in (None, "UP", "DRAIN") for p in parts], bool),
        np.array([r.start.timestamp() for r in resv if r.start], np.float64),
        np.array([r.end.timestamp() for r in resv if r.end], np.float64),
        kept,
        np.array([t for t, _, _ in ordered], np.float64),
        np.array([n for _, n, _ in ordered], np.int64),
        np.array([u for _, _, u in ordered], bool),
        np.ones((1, len(names)), bool),
    )
    qos = tuple(policy.qos) or ("",)
    return Frame(policy, machine, names, parts, types, tree, tuple(r.name for r in resv), qos, LimitTable(policy, types), {}, [])


def with_weights(lake: Lake, cluster: str, policy: Policy, at: datetime) -> Policy:
    """Node weights from the last reading that tells them (sinfo does not)."""
    if all(n.weight is not None for n in policy.nodes):
        return policy
    rows, _ = last_snapshot(lake, "nodes", cluster, at, ["node", "weight"], told="weight")
    known = {r["node"]: r["weight"] for r in rows.to_pylist()}
    return replace(policy, nodes=tuple(replace(n, weight=n.weight if n.weight is not None else known.get(n.name)) for n in policy.nodes))


def _times(lake: Lake, cluster: str, at: datetime, moment: datetime | None, names: Iterable[str]) -> dict[str, list[float | None]]:
    """Times of the queue's last reading in seconds, None for null (read apart: times as Python values need pandas)."""
    names = tuple(names)
    if moment is None:
        return {n: [] for n in names}
    rows, _ = last_snapshot(lake, "queue", cluster, at, names)
    return {n: [None if v is None else v / 1e6 for v in rows[n].cast(pa.int64()).to_pylist()] for n in names}


def _priorities(lake: Lake, cluster: str, at: datetime) -> tuple[dict[tuple[int, str], float], datetime | None]:
    """By (job, partition) the part of the priority that age and fair share do not make."""
    rows, moment = last_snapshot(lake, "priorities", cluster, at, ("job_id", "partition", "priority", "age", "fairshare"))
    out = {}
    for r in rows.to_pylist():
        if r["priority"] is not None:
            out[(r["job_id"], (r["partition"] or "").casefold())] = float(r["priority"]) - (r["age"] or 0) - (r["fairshare"] or 0)
    return out, moment


def _requests(lake: Lake, cluster: str, at: datetime) -> dict[int, Asked]:
    """By job id the memory (bytes, whole job) and GPU type asked for and the command line, of jobs submitted by then (accounting)."""
    rows = lake.read("jobs", ["job_id", "submit", "mem_req_bytes", "gpu_type_req", "submit_line"], cluster=cluster, until=at)
    rows = rows.filter(pc.less_equal(rows["submit"], instant(at)))
    return {
        r: (m, t, line)
        for r, m, t, line in zip(*(rows[c].to_pylist() for c in ("job_id", "mem_req_bytes", "gpu_type_req", "submit_line")), strict=True)
    }


def _works(
    rows: list[dict[str, Any]],
    stamps: Mapping[str, list[float | None]],
    ranks: Mapping[tuple[int, str], float],
    ranks_at: datetime | None,
    requests: Mapping[int, Asked],
    frame: Frame,
    now: float,
    notes: list[str],
) -> list[Work]:
    out: list[Work] = []
    by_id: dict[int, int] = {}
    dependent: list[tuple[int, str]] = []
    hidden = unplaced = 0
    for i, r in enumerate(rows):
        running = r["state"] in ("RUNNING", "SUSPENDED", "COMPLETING")
        if not running and r["state"] not in ("PENDING", "REQUEUED"):
            continue
        submit, start = stamps["submit"][i] or now, stamps["start"][i]
        hidden += r["user"] is None
        try:
            nodes = expand_hostlist(r["node_list"] or "") or ()
        except ParseError:
            nodes = ()
        if running and (not nodes or start is None):
            unplaced += 1
            continue
        count = max(1, int(r["nodes"] or len(nodes) or 1))
        mem, kind, line = requests.get(r["array_job_id"], NOT_TOLD)
        mem, kind, line = requests.get(r["job_id"], (None, None, line))
        if mem is None:
            mem = float(r["mem_req_bytes"] or 0) * count
        parts = tuple(p for p in (r["partition"] or "").split(",") if p)
        work = Work(
            id=r["job_id"],
            submit=submit,
            partitions=parts,
            limit=float(r["limit_s"]) if r["limit_s"] else _longest(frame, parts),
            nodes=count,
            cpus=float(r["cpus"] or 1),
            mem_mib=mem / MIB,
            gpus=float(r["gpus"] or 0),
            gpu_type=(r["gpu_type"] if r["gpu_type"] != "mixed" else None) or kind,
            user=r["user"],
            account=r["account"],
            qos=r["qos"],
            array=r["array_job_id"],
            throttle=throttle_of(r["array_throttle"], r["array_job_id"], line),
            age_from=stamps["eligible"][i] or submit,
            status=RUNNING if running else PENDING,
            began=start if running and start is not None else math.inf,
            node_list=nodes,
            static={p: ranks[(r["job_id"], p.casefold())] for p in parts if (r["job_id"], p.casefold()) in ranks},
            held=not running and (r["priority"] == 0 or r["reason"] in ("JobHeldUser", "JobHeldAdmin", "DependencyNeverSatisfied")),
            reservation=r["reservation"],
            task=10**9 if r["array_task"] is None else int(r["array_task"]),
        )
        tasks = 1 if running else min(MOST_TASKS, int(r["array_tasks"] or 1))
        for _ in range(tasks):
            by_id[work.id] = len(out)
            if not running and r["dependency"]:
                dependent.append((len(out), r["dependency"]))
            out.append(work)
    if hidden:
        notes.append("users of some jobs are hidden: their limits and fair share are not known")
    if unplaced:
        notes.append("running jobs without nodes were left out")
    if any(w.status == PENDING and not w.static for w in out):
        notes.append("priority factors of some pending jobs were not printed: worked out from the configuration")
    order = sorted(range(len(out)), key=lambda i: (out[i].submit, out[i].array or out[i].id, out[i].task))
    rank = {old: new for new, old in enumerate(order)}
    for i, text in dependent:
        first = next((by_id[int(w)] for w in text.replace("(", ":").replace("_", ":").split(":") if w.isdigit() and int(w) in by_id), None)
        if first is not None and first != i:
            out[i].after = rank[first]
    return [out[i] for i in order]


def _longest(frame: Frame, parts: tuple[str, ...]) -> float:
    """The limit that Slurm plans with where a job has none: the partition's maximum."""
    times = [rule.max_time_s for p in parts if (rule := frame.policy.partition(p)) is not None and rule.max_time_s]
    return float(max(times)) if times else FOREVER
