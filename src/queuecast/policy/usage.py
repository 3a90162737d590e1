"""What runs and waits per user, account and QOS at the last reading of the queue: the counters that limits are held against."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from queuecast.errors import ParseError
from queuecast.policy.nodes import nodes_at
from queuecast.policy.readings import latest_reading
from queuecast.policy.recent import last_snapshot
from queuecast.policy.tables import tres_amounts
from queuecast.slurmtext.gres import gpus_of_gres
from queuecast.slurmtext.hostlist import expand_hostlist

if TYPE_CHECKING:
    from queuecast.store.lake import Lake

RUNNING = frozenset({"RUNNING", "SUSPENDED", "CONFIGURING", "RESIZING", "SIGNALING", "STAGE_OUT", "STOPPED"})
"""States in which a job's resources count. COMPLETING does not: Slurm takes them off when the end begins."""

WAITING = frozenset({"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"})

_COLUMNS = (
    "job_id", "job_id_text", "array_tasks", "user", "account", "partition", "qos", "state", "limit_s", "elapsed_s", "nodes", "cpus",
    "mem_req_bytes", "gpus", "gpu_type", "tres", "node_list",
)  # fmt: skip


@dataclass(frozen=True)
class Scope:
    """Whose jobs: all conditions that are given must hold. Case is not looked at; ``accounts`` is a set of names.

    ``qos`` counts jobs that ask for it and jobs in a partition that carries it, as Slurm does.
    """

    user: str | None = None
    accounts: frozenset[str] | None = None
    qos: str | None = None

    def holds(self, job: UsedJob) -> bool:
        """Whether the job belongs to it."""
        return (
            (self.user is None or (job.user or "").casefold() == self.user.casefold())
            and (self.accounts is None or (job.account or "").casefold() in self.accounts)
            and (self.qos is None or self.qos.casefold() in job.qos)
        )


@dataclass(frozen=True)
class UsedJob:
    """A job of the queue. ``qos``: its own and its partition's, case-folded. ``left_s``: to its limit, None without one."""

    job_id: int
    user: str | None
    account: str | None
    qos: frozenset[str]
    running: bool
    tasks: int
    tres: dict[str, int]
    nodes: frozenset[str]
    left_s: float | None
    partition: str | None = None
    job_id_text: str = ""


@dataclass(frozen=True)
class Used:
    """Sums over running jobs. ``tres`` as in ``Limits`` (``node`` counts different nodes); ``run_mins``: amount times minutes left."""

    jobs: int
    tres: dict[str, int]
    run_mins: dict[str, float]


@dataclass(frozen=True)
class Usage:
    """The queue at ``observed_at`` (UTC; None: it was never read, and then every sum is unknown).

    Memory of a running job is what was asked for, per node, where the queue does not print what was given; the type of its
    GPUs, where it named none, is that of its nodes.
    """

    observed_at: datetime | None
    jobs: tuple[UsedJob, ...]

    def running(self, scope: Scope, without: int | None = None) -> Used:
        """Running jobs of a scope, ``without`` one job id."""
        chosen = [j for j in self.jobs if j.running and j.job_id != without and scope.holds(j)]
        tres: dict[str, int] = {}
        minutes: dict[str, float] = {}
        for job in chosen:
            for name, amount in job.tres.items():
                tres[name] = tres.get(name, 0) + amount
                minutes[name] = minutes.get(name, 0.0) + (amount * max(0.0, job.left_s) / 60 if job.left_s is not None else 0.0)
        told = frozenset[str]().union(*(j.nodes for j in chosen))
        tres["node"] = len(told) + sum(j.tres.get("node", 0) for j in chosen if not j.nodes)
        return Used(len(chosen), tres, minutes)

    def submitted(self, scope: Scope, without: int | None = None) -> int:
        """Jobs that run or wait; each task of an array counts."""
        return sum(j.tasks for j in self.jobs if j.job_id != without and scope.holds(j))


def usage_at(lake: Lake, cluster: str, at: datetime) -> Usage:
    """What the last reading of the queue at ``at`` shows. Raises ``LakeDamaged``."""
    rows, moment = last_snapshot(lake, "queue", cluster, at, _COLUMNS, told="account")  # a bare squeue does not print accounts
    if moment is None:
        rows, moment = last_snapshot(lake, "queue", cluster, at, _COLUMNS)
    partition_qos = {
        r["partition"].casefold(): r["qos"].casefold() for r in latest_reading(lake, "partitions", cluster, at).to_pylist() if r["qos"]
    }
    kinds = {n.name: next(iter(n.gpus)) for n in nodes_at(lake, cluster, at) if len(n.gpus) == 1}
    jobs = [_job(r, partition_qos, kinds) for r in rows.to_pylist() if r["state"] in RUNNING | WAITING]
    return Usage(moment, tuple(jobs))


def _job(row: dict[str, Any], partition_qos: dict[str, str], kinds: dict[str, str]) -> UsedJob:
    running = row["state"] in RUNNING
    # a job waiting in several partitions is counted in none of their QOS
    names = {(row["qos"] or "").casefold(), partition_qos.get((row["partition"] or "").casefold(), "")} - {""}
    left = None if row["limit_s"] is None else float(row["limit_s"]) - float(row["elapsed_s"] or 0)
    try:
        nodes = frozenset(expand_hostlist(row["node_list"] or "") or ()) if running else frozenset[str]()
    except ParseError:
        nodes = frozenset()
    return UsedJob(
        row["job_id"],
        row["user"],
        row["account"],
        frozenset(names),
        running,
        int(row["array_tasks"] or 1),
        _amounts(row) | _by_nodes(row, nodes, kinds),
        nodes,
        left,
        row["partition"],
        row["job_id_text"],
    )


def _amounts(row: dict[str, Any]) -> dict[str, int]:
    text = row["tres"] or ""
    told = tres_amounts(text) if "cpu=" in text else {}
    out = {k: v for k, v in (("cpu", row["cpus"]), ("node", row["nodes"]), ("gres/gpu", row["gpus"])) if v is not None}
    if row["mem_req_bytes"] is not None:
        out["mem"] = row["mem_req_bytes"] * (row["nodes"] or 1)
    types = _types(row)
    out |= {f"gres/gpu:{kind}": count for kind, count in types.items()}
    return out | told


def _by_nodes(row: dict[str, Any], nodes: frozenset[str], kinds: dict[str, str]) -> dict[str, int]:
    """The type of GPUs that a running job did not ask for by type, where all its nodes hold but one."""
    found = {kinds.get(n, "") for n in nodes}
    if not row["gpus"] or row["gpu_type"] or len(found) != 1 or found == {""}:
        return {}
    return {f"gres/gpu:{found.pop()}": row["gpus"]}


def _types(row: dict[str, Any]) -> dict[str, int]:
    if not row["gpus"]:
        return {}
    if row["gpu_type"] not in (None, "mixed"):
        return {row["gpu_type"]: row["gpus"]}
    try:
        found = gpus_of_gres((row["tres"] or "").replace("gres:", "").replace("gres/", "")) if "=" not in (row["tres"] or "") else None
    except ParseError:
        found = None
    return {kind: count * (row["nodes"] or 1) for kind, count in found.types} if found else {}
