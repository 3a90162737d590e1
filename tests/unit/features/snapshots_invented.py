"""A small invented cluster for the snapshot features: readings of all tables over forty hours, and questions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

Row = dict[str, Any]
Rows = dict[str, list[Row]]

BEGIN = datetime(2026, 5, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
HOURS = 40
REASONS = ("Priority", "Resources", "QOSGrpGRES", "AssocMaxJobsLimit", "JobHeldUser", "Dependency", None, "PartitionTimeLimit")
ASKS = (
    ("gpu", 4, "a100", 8, 1),
    ("gpu", 8, "v100", 16, 2),
    ("gpu,long", 1, None, 4, 1),
    ("cpu", 0, None, 32, 2),
    ("long", 2, "a100", 8, 1),
)


def _at(rng: np.random.Generator, low: float, high: float) -> datetime:
    return BEGIN + timedelta(seconds=int(rng.integers(int(low * 3600), int(high * 3600))))


def _jobs(rng: np.random.Generator) -> list[Row]:
    """Attempts, some of them requeued; arrays whose tasks got ids of their own when they started."""
    rows: list[Row] = []
    for number in range(40):
        partition, gpus, kind, cpus, nodes = ASKS[int(rng.integers(len(ASKS)))]
        account = ("bio", "Vision", None)[int(rng.choice(3, p=[0.5, 0.4, 0.1]))]
        base = {"account": account, "user": ("ann", "bob")[number % 2], "asked_in": partition, "partition": partition.split(",")[0]}
        base |= {"gpus_req": gpus, "gpu_type_req": kind, "cpus_req": cpus, "nodes_req": nodes, "job_id": 10 * number + 1}
        base |= {"limit_s": None if rng.random() < 0.1 else int(rng.integers(600, 90000)), "array_job_id": None, "array_task": None}
        submit = _at(rng, 0, HOURS - 4)
        if number % 5 == 0:
            each_line = bool(rng.random() < 0.5)
            for task in range(4):
                start = submit + timedelta(seconds=int(rng.exponential(40000))) if task else None
                own = 10 * number + 1 + task
                array = {"job_id": own, "array_job_id": 10 * number + 1, "array_task": task, "each_line": each_line}
                rows.append(base | array | {"submit": submit, "start": start})
            continue
        start = submit + timedelta(seconds=int(rng.exponential(30000))) if rng.random() < 0.8 else None
        rows.append(base | {"submit": submit, "start": start})
        if start is not None and rng.random() < 0.3:
            again = start + timedelta(seconds=int(rng.integers(60, 20000)))
            rows.append(base | {"submit": again, "start": again + timedelta(seconds=int(rng.exponential(30000)))})
    return [row | {"cluster": "toy", "observed_at": BEGIN + HOURS * HOUR, "job_id_text": str(row["job_id"])} for row in rows]


def _waiting(jobs: list[Row], moment: datetime) -> list[Row]:
    last: dict[int, Row] = {}
    for job in jobs:
        if job["submit"] <= moment:
            last[job["job_id"]] = max(job, last.get(job["job_id"], job), key=lambda j: j["submit"])
    return [j for j in last.values() if j["start"] is None or j["start"] > moment]


def _queue(rng: np.random.Generator, jobs: list[Row], moment: datetime) -> list[Row]:
    rows: list[Row] = []
    records: dict[int, Row] = {}
    for job in _waiting(jobs, moment):
        array = job["array_job_id"]
        reason = REASONS[int(rng.integers(len(REASONS)))]
        begun = (moment - job["submit"]).total_seconds()
        row = {"cluster": "toy", "observed_at": moment, "state": "PENDING", "reason": reason, "reason_text": None, "array_tasks": 1}
        row |= {name: job[name] for name in ("job_id", "user", "account", "submit", "limit_s", "array_job_id", "array_task")}
        row |= {"priority": None if rng.random() < 0.1 else int(1000 + (begun // 600) * 5 + rng.integers(0, 40) * 10)}
        row |= {"nodes": 9, "cpus": 99, "gpus": 99, "gpu_type": job["gpu_type_req"], "partition": job["asked_in"]}
        row |= {"eligible": job["submit"] if rng.random() < 0.5 else None}
        row |= {"start_estimate": moment + timedelta(seconds=int(rng.integers(0, 90000))) if rng.random() < 0.4 else None}
        if array is not None and array in records:
            same = records[array]
            if job["each_line"]:
                kept = {"array_task", "start_estimate"}
                rows.append(same | {name: row[name] for name in kept} | {"job_id_text": f"{array}_{job['array_task']}"})
            else:
                same["array_tasks"] += 1
                same["array_task"] = None
            continue
        row["job_id_text"] = str(job["job_id"])
        if array is not None:
            row["job_id"] = array
            row["job_id_text"] = f"{array}_{job['array_task']}"
            records[array] = row
        rows.append(row)
    for job in jobs:
        if job["start"] is not None and job["start"] <= moment < job["start"] + HOUR:
            row = {"cluster": "toy", "observed_at": moment, "state": "RUNNING", "job_id_text": job["job_id_text"], "array_tasks": 1}
            rows.append(row | {name: job[name] for name in ("job_id", "account", "partition", "submit")} | {"priority": 9999})
    return rows


def _others(rng: np.random.Generator, queue: list[Row]) -> tuple[list[Row], list[Row]]:
    """sprio and squeue --start, some seconds after the snapshot; in some cycles they fail."""
    estimates, priorities = [], []
    told_of = set()
    skip_estimates, skip_priorities = rng.random() < 0.2, rng.random() < 0.2
    for row in queue:
        if row["state"] != "PENDING" or rng.random() < 0.1:
            continue
        seen = row["observed_at"] + timedelta(seconds=20)
        same = {"cluster": "toy", "observed_at": seen, "job_id": row["job_id"], "job_id_text": row["job_id_text"], "array_tasks": 1}
        for partition in row["partition"].split(","):
            told = rng.random() < 0.6
            when = seen + timedelta(seconds=int(rng.choice([-5, 9000, 40000]) * rng.random())) if told else None
            if not skip_estimates:
                estimates.append(same | {"partition": partition, "start_estimate": when, "clamped": when <= seen if when else None})
            factors = {name: int(rng.integers(0, 500)) for name in ("age", "fairshare", "qos_factor")}
            if not skip_priorities and (row["job_id"], partition) not in told_of:
                told_of.add((row["job_id"], partition))
                priorities.append(same | {"partition": partition, "priority": sum(factors.values()) + int(rng.integers(0, 9))} | factors)
    return estimates, priorities


def _nodes(rng: np.random.Generator, moment: datetime, detail: int) -> list[Row]:
    rows = []
    for number, (parts, kind, gpus) in enumerate(
        [("gpu,long", "a100", 4), ("gpu,long", "a100", 4), ("gpu", "v100", 8), ("gpu", "v100", 8), ("cpu", None, 0), ("cpu", None, 0)]
    ):
        state = str(rng.choice(["IDLE", "MIXED", "ALLOCATED", "DOWN"], p=[0.3, 0.4, 0.2, 0.1]))
        flags = rng.choice(np.array([None, "DRAIN", "PLANNED", "MAINT,RESERVED", "RESERVED"], object), p=[0.6, 0.1, 0.1, 0.1, 0.1])
        busy = {"IDLE": 0, "ALLOCATED": 64}.get(state, int(rng.integers(1, 64)))
        row = {"cluster": "toy", "observed_at": moment, "node": f"n{number}", "partitions": parts, "state": state, "state_flags": flags}
        row |= {"cpus": 64, "cpus_alloc": busy if rng.random() < 0.9 else None, "gpus": gpus, "gpu_type": kind, "detail": detail}
        rows.append(row | {"gpus_alloc": int(rng.integers(0, gpus + 1)) if detail else None})
    return rows


def invented(seed: int) -> Rows:
    """Rows of all tables of a cluster over forty hours; the queue is read about every half hour, with gaps."""
    rng = np.random.default_rng(seed)
    tables: Rows = {name: [] for name in ("queue", "estimates", "priorities", "shares", "nodes", "partitions", "reservations")}
    tables["jobs"] = _jobs(rng)
    moment = BEGIN + HOUR
    while moment < BEGIN + HOURS * HOUR:
        queue = _queue(rng, tables["jobs"], moment)
        estimates, priorities = _others(rng, queue)
        tables["queue"] += queue
        tables["estimates"] += estimates
        tables["priorities"] += priorities
        tables["nodes"] += _nodes(rng, moment + timedelta(seconds=40), int(rng.random() < 0.4)) if rng.random() < 0.5 else []
        moment += timedelta(seconds=int(rng.choice([1800, 1830, 3 * 3600], p=[0.6, 0.35, 0.05])))
    for hours in (1, 30):
        seen = {"cluster": "toy", "observed_at": BEGIN + hours * HOUR, "depth": 1}
        for account, user, part in (
            ("bio", None, None),
            ("vision", None, None),
            ("bio", "ann", None),
            ("bio", "ann", "long"),
            ("vision", "bob", None),
        ):
            level = float(rng.choice([0.0, 0.5, 2.0, np.inf]))
            numbers = {name: float(rng.random()) for name in ("norm_shares", "effective_usage", "fairshare")}
            tables["shares"].append(seen | {"account": account, "user": user, "partition": part, "level_fs": level} | numbers)
    for hours, hosts in ((6, "n[0-1]"), (25, "n[0-3]")):
        seen = {"cluster": "toy", "observed_at": BEGIN + hours * HOUR}
        tables["partitions"].append(seen | {"partition": "gpu", "node_list": hosts, "total_nodes": 3, "total_cpus": 111})
    for hours, name, first, last, state, hosts, count in (
        (3, "early", 5, 9, "INACTIVE", "n[0-2]", 3),
        (3, "any", 20, 22, "INACTIVE", None, 2),
        (12, "late", 15, 30, "INACTIVE", "n[1-5]", 5),
        (12, "now", 10, 40, "ACTIVE", "n4", 1),
        (14, "told later", 16, 17, None, "n[0-5]", 6),
    ):
        seen = {
            "cluster": "toy",
            "observed_at": BEGIN + hours * HOUR,
            "reservation": name,
            "state": state,
            "node_list": hosts,
            "nodes": count,
        }
        tables["reservations"].append(seen | {"start": BEGIN + first * HOUR, "end": BEGIN + last * HOUR})
    return tables


def cut_at(tables: Rows, moment: datetime) -> Rows:
    """What there was at ``moment``: no reading from later, and of accounting no later submission or start."""
    kept = {name: [r for r in rows if r["observed_at"] <= moment] for name, rows in tables.items() if name != "jobs"}
    jobs = [r | {"start": r["start"] if r["start"] and r["start"] <= moment else None} for r in tables["jobs"] if r["submit"] <= moment]
    return kept | {"jobs": jobs}


def invented_cases(tables: Rows, seed: int, count: int) -> list[Row]:
    """Questions: jobs at moments when they waited or not, arrays' tasks, unknown ids, requests that are not submitted."""
    rng = np.random.default_rng(seed + 1)
    times = sorted({r["observed_at"] for r in tables["queue"]})
    cases = []
    for _ in range(count):
        job = tables["jobs"][int(rng.integers(len(tables["jobs"])))]
        upto = (job["start"] or BEGIN + HOURS * HOUR) - job["submit"]
        asked = job["submit"] + timedelta(seconds=int(rng.random() * upto.total_seconds()))
        if rng.random() < 0.2:
            asked = times[int(rng.integers(len(times)))]
        kind = rng.random()
        number = job["job_id"] if kind < 0.8 else -1 if kind < 0.9 else 99999
        case = {
            "job_id": number,
            "asked": min(asked, BEGIN + HOURS * HOUR),
            "partition": job["asked_in"].upper(),
            "account": job["account"],
        }
        case |= {"user": job["user"], "gpus": job["gpus_req"], "gpu_type": job["gpu_type_req"], "cpus": job["cpus_req"]}
        cases.append(case | {"nodes": job["nodes_req"], "limit_s": job["limit_s"]})
    cases[0] |= {"partition": "nowhere", "account": "nobody", "gpu_type": "h100"}
    cases[1] |= {"partition": None, "account": None, "user": None, "limit_s": None, "gpus": None, "nodes": None, "cpus": None}
    return cases
