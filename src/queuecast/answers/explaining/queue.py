"""The queue as the last snapshot shows it, the way the question "why" needs it."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from queuecast.policy.recent import last_snapshot
from queuecast.policy.request import Request
from queuecast.policy.shapes import fitting_nodes
from queuecast.policy.usage import RUNNING
from queuecast.reasons import explain_reason
from queuecast.store.files import instant

if TYPE_CHECKING:
    from queuecast.answers.viewer import Viewer
    from queuecast.policy.tables import Policy
    from queuecast.store.lake import Lake

COLUMNS = (
    "job_id", "job_id_text", "array_job_id", "array_task", "array_tasks", "array_throttle", "user", "account", "partition", "qos",
    "state", "reason", "reason_text", "submit", "eligible", "start", "limit_s", "elapsed_s", "nodes", "cpus", "gpus", "gpu_type",
    "priority", "dependency", "constraints", "reservation", "licenses", "start_estimate", "sched_nodes",
)  # fmt: skip

HISTORY = timedelta(days=30)
_PERCENT = re.compile(r"%(\d{1,9})")
_OPTION = re.compile(r"(?:--array[= ]|-a ?)[\d,:-]+%(\d{1,9})\b")
LEAST_LIKE = 20
"""Fewer ended jobs than that say nothing of how much of a limit is used."""


@dataclass(frozen=True)
class Snapshot:
    """Rows of the queue at ``moment`` (UTC; None: it was never read)."""

    moment: datetime | None
    rows: tuple[dict[str, Any], ...]

    def row(self, job_id: int, text: str) -> dict[str, Any] | None:
        """The waiting record of a job, None if it is not there.

        The text comes first: waiting tasks of an array all show the array's number, and get one of their own when they start.
        """
        waiting = [r for r in self.rows if r["state"] == "PENDING"]
        named = next((r for r in waiting if r["job_id_text"] == text), None)
        array = text.partition("_")[0] if "_" in text else ""
        numbers = {job_id, *([int(array)] if array.isdigit() else [])}
        whole = next((r for r in waiting if r["array_tasks"] > 1 and numbers & {r["job_id"], r["array_job_id"]}), None)
        if named or whole or "[" not in text:
            return named or whole
        parted = [r for r in waiting if r["array_job_id"] in numbers]  # an array asked about whose tasks are listed one by one: the next
        return min(parted, key=lambda r: r["array_task"] or 0, default=None)


@dataclass(frozen=True)
class AheadOf:
    """Waiting work of one account (None: not told). ``gpus`` and ``gpu_hours`` (to the limits) None: unknown for some."""

    account: str | None
    jobs: int
    tasks: int
    gpus: int | None
    gpu_hours: float | None


@dataclass(frozen=True)
class Ahead:
    """Who stands before the job: pending and not held back by anything but place or priority, and above in Slurm's order.

    ``shared``: in the same partitions or in ones with the same nodes; ``elsewhere``: records above in others.
    ``limited``: above too, but held by a limit, so that they do not keep this job back now.
    """

    shared: tuple[AheadOf, ...]
    elsewhere: int
    limited: int

    @property
    def total(self) -> AheadOf:
        """The sum over accounts."""
        return _sum(None, self.shared)


def snapshot_at(lake: Lake, cluster: str, at: datetime) -> Snapshot:
    """The last reading of the queue at ``at``."""
    rows, moment = last_snapshot(lake, "queue", cluster, at, COLUMNS)
    return Snapshot(moment, tuple(rows.to_pylist()))


def ahead_of(snapshot: Snapshot, policy: Policy, mine: dict[str, Any], viewer: Viewer | None = None) -> Ahead | None:
    """None where the job's priority is not told. Order: tier of the partition, priority, time of submission, id, task.

    Accounts are named only for a viewer who sees all; else there is one sum.
    """
    if mine["priority"] is None or not mine["priority"]:
        return None
    groups: dict[str | None, list[dict[str, Any]]] = defaultdict(list)
    kinds = cache(lambda reason: explain_reason(reason).wait_class)
    elsewhere = limited = 0
    for row, near in _above(snapshot, policy, mine):
        kind = kinds(row["reason"])
        if not near:
            elsewhere += 1
        elif kind in ("priority", "resources", "none"):
            groups[row["account"] if viewer is None or viewer.sees_all else None].append(row)
        elif kind == "limit":
            limited += 1
    accounts = [_of(name, rows) for name, rows in groups.items()]
    return Ahead(tuple(sorted(accounts, key=lambda a: (-(a.gpu_hours or 0), -a.tasks, a.account or ""))), elsewhere, limited)


def rows_ahead(snapshot: Snapshot, policy: Policy, mine: dict[str, Any]) -> list[dict[str, Any]]:
    """The records that ``ahead_of`` counts as ``shared``."""
    if not mine["priority"]:
        return []
    classes = ("priority", "resources", "none")
    return [r for r, near in _above(snapshot, policy, mine) if near and explain_reason(r["reason"]).wait_class in classes]


def _above(snapshot: Snapshot, policy: Policy, mine: dict[str, Any]) -> Iterator[tuple[dict[str, Any], bool]]:
    """Waiting records that stand above, and whether they could take a node that this one could."""
    beside = _beside(policy, mine)
    place = _place(policy, mine)
    for row in snapshot.rows:
        same = row["job_id"] == mine["job_id"] and row["job_id_text"] == mine["job_id_text"]
        if row["state"] == "PENDING" and not same and row["priority"] and _place(policy, row) < place:
            yield row, beside(row)


def _beside(policy: Policy, mine: dict[str, Any]) -> Callable[[dict[str, Any]], bool]:
    """Whether a row could take a node that ``mine`` could: by what fits where, or by partition where nodes are not told."""
    names = _partitions(mine)
    near = _sharing(policy, names)

    @cache
    def could(partition: str, gpus: int, kind: str | None, nodes: int, cpus: int, features: str | None) -> frozenset[str]:
        ask = Request(partitions=(partition,), gpus=gpus, gpu_type=kind, nodes=nodes, cpus=cpus, constraint=features)
        return frozenset(n.name for n in fitting_nodes(policy, ask, partition))

    def nodes_of(row: dict[str, Any]) -> frozenset[str]:
        kind = None if row["gpu_type"] == "mixed" else row["gpu_type"]
        shape = (row["gpus"] or 0, kind, max(1, row["nodes"] or 1), max(1, row["cpus"] or 1), row["constraints"])
        return frozenset[str]().union(*(could(p, *shape) for p in _partitions(row)))

    own = nodes_of(mine)

    def beside(row: dict[str, Any]) -> bool:
        theirs = nodes_of(row) if own else frozenset[str]()
        return bool(own & theirs) if own and theirs else bool(near & _partitions(row))

    return beside


def _partitions(row: dict[str, Any]) -> frozenset[str]:
    return frozenset(p.casefold() for p in (row["partition"] or "").split(",") if p)


def _sharing(policy: Policy, names: frozenset[str]) -> frozenset[str]:
    """The partitions, and all that have a node in common with them."""
    nodes = {n for name in names if (p := policy.partition(name)) is not None for n in p.nodes}
    return names | {p.name.casefold() for p in policy.partitions.values() if nodes & set(p.nodes)}


def _place(policy: Policy, row: dict[str, Any]) -> tuple[float, float, float, int, int]:
    """Smaller comes first."""
    tiers = [p.priority_tier or 1 for name in _partitions(row) if (p := policy.partition(name)) is not None]
    submit = row["submit"].timestamp() if row["submit"] else math.inf
    return -max(tiers, default=1), -(row["priority"] or 0), submit, row["job_id"], row["array_task"] or 0


def _of(account: str | None, rows: list[dict[str, Any]]) -> AheadOf:
    hours: float | None = 0.0
    gpus: int | None = 0
    for row in rows:
        count = None if row["gpus"] is None else row["gpus"] * row["array_tasks"]
        gpus = None if gpus is None or count is None else gpus + count
        known = count is not None and (row["limit_s"] is not None or count == 0)
        hours = hours + count * (row["limit_s"] or 0) / 3600 if hours is not None and known and count is not None else None
    return AheadOf(account, len(rows), sum(r["array_tasks"] for r in rows), gpus, hours)


def _sum(account: str | None, parts: tuple[AheadOf, ...]) -> AheadOf:
    gpus = None if any(p.gpus is None for p in parts) else sum(p.gpus or 0 for p in parts)
    hours = None if any(p.gpu_hours is None for p in parts) else sum(p.gpu_hours or 0 for p in parts)
    return AheadOf(account, sum(p.jobs for p in parts), sum(p.tasks for p in parts), gpus, hours)


def dependencies(snapshot: Snapshot, text: str | None) -> tuple[int, int, int]:
    """Of the jobs that a dependency names: how many run, wait, and are not in the queue."""
    named = {int(n) for n in re.findall(r"(?<=[:,])(\d+)|(?<=\?)(\d+)", text or "") for n in n if n}
    states: dict[int, str] = {}
    for row in snapshot.rows:
        for key in (row["job_id"], row["array_job_id"]):
            if key in named and states.get(key) != "RUNNING":
                states[key] = "RUNNING" if row["state"] in RUNNING else "PENDING"
    runs = sum(s == "RUNNING" for s in states.values())
    return runs, len(states) - runs, len(named) - len(states)


def with_throttle(lake: Lake, cluster: str, row: dict[str, Any], at: datetime) -> dict[str, Any]:
    """The row with the array's own limit. squeue prints it only where it prints the array as one record (``8_[4-9%2]``), as for
    its estimates; else the command line of the submission tells it, which a later change by scontrol does not show in."""
    if row["array_throttle"] or not row["array_job_id"]:
        return row
    since = max(row["submit"], at - timedelta(days=2)) if row["submit"] is not None else at - timedelta(days=2)
    until = at + timedelta(microseconds=1)
    told = lake.read("estimates", ["observed_at", "job_id_text"], cluster=cluster, since=since, until=until)
    mine = pc.and_(pc.starts_with(told["job_id_text"], f"{row['array_job_id']}_["), pc.less_equal(told["observed_at"], instant(at)))
    texts = told.filter(pc.fill_null(mine, False)).sort_by("observed_at")["job_id_text"].to_pylist()
    found = next((m for t in reversed(texts) if (m := _PERCENT.search(t))), None)
    if found is None:  # Slurm leaves it out of some records
        jobs = lake.read(
            "jobs", ["array_job_id", "submit", "submit_line"], cluster=cluster, since=at - 2 * HISTORY, until=until,
        )  # fmt: skip
        mine = pc.and_(pc.equal(jobs["array_job_id"], row["array_job_id"]), pc.less_equal(jobs["submit"], instant(at)))
        lines = [t for t in jobs.filter(pc.fill_null(mine, False))["submit_line"].to_pylist() if t]
        found = _OPTION.search(lines[0]) if lines else None
    return row if found is None else row | {"array_throttle": int(found[1])}


def limit_shares(lake: Lake, cluster: str, at: datetime) -> list[tuple[str | None, str | None, float]]:
    """(user, partition, run time as a share of the limit) of jobs that ended in the 30 days before ``at``."""
    rows = lake.read(
        "jobs",
        ["user", "partition", "start", "end", "limit_s"],
        cluster=cluster,
        since=at - 2 * HISTORY,
        until=at + timedelta(microseconds=1),
    )
    ended = pc.and_(pc.is_valid(rows["start"]), pc.less_equal(rows["end"], instant(at)))
    rows = rows.filter(pc.and_(pc.fill_null(ended, False), pc.fill_null(pc.greater(rows["limit_s"], 0), False)))
    rows = rows.filter(pc.greater_equal(rows["end"], instant(at - HISTORY)))
    took = pc.subtract(rows["end"].cast(pa.int64()), rows["start"].cast(pa.int64())).to_pylist()
    found = zip(rows["user"].to_pylist(), rows["partition"].to_pylist(), took, rows["limit_s"].to_pylist(), strict=True)
    return [(user, partition, min(1.0, max(0, t) / 1e6 / limit)) for user, partition, t, limit in found]
