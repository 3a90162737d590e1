"""The snapshot features again, by plain loops over rows: what the quick ones are compared with."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from statistics import median

from tests.unit.features.snapshots_invented import HOUR, Row, Rows

from queuecast.features.snapshots_queue import OPEN, REASON_CLASSES, reason_class
from queuecast.slurmtext.states import UNUSABLE_FLAGS


def _same(a: str | None, b: str | None) -> bool:
    return (a or "").casefold() == (b or "").casefold()


def _reading(rows: list[Row], asked: datetime, age_h: float) -> tuple[datetime | None, list[Row]]:
    seen = max((r["observed_at"] for r in rows if r["observed_at"] <= asked), default=None)
    if seen is None or (asked - seen).total_seconds() > age_h * 3600:
        return None, []
    return seen, [r for r in rows if r["observed_at"] == seen]


def _attempt(tables: Rows, job_id: int, moment: datetime) -> Row | None:
    found = [j for j in tables["jobs"] if j["job_id"] == job_id and j["submit"] <= moment]
    return max(found, key=lambda j: j["submit"], default=None)


def _records(tables: Rows, rows: list[Row]) -> dict[int, Row]:
    """Pending records of one snapshot by raw id, with the request from accounting where it has the attempt."""
    out: dict[int, Row] = {}
    for row in sorted(
        (r for r in rows if r["state"] == "PENDING"), key=lambda r: (r["job_id"], -1 if r["array_task"] is None else r["array_task"])
    ):
        if row["job_id"] in out:
            same = out[row["job_id"]]
            same["array_tasks"] += row["array_tasks"]
            same["start_estimate"] = min((x for x in (same["start_estimate"], row["start_estimate"]) if x), default=None)
            continue
        job = _attempt(tables, row["job_id"], row["submit"])
        told = {name: job[f"{name}_req"] for name in ("nodes", "cpus", "gpus")} if job else {}
        out[row["job_id"]] = row | told
    return out


def _find(records: dict[int, Row], case: Row, attempt: Row | None, seen: datetime | None) -> Row | None:
    if seen is None or (attempt is not None and seen < attempt["submit"]):
        return None
    array = attempt["array_job_id"] if attempt else None
    return records.get(case["job_id"], records.get(array) if array is not None else None)


def _ahead(ordered: list[Row], place: int) -> dict[str, float]:
    out: dict[str, float] = dict.fromkeys(("jobs", "cpus", "gpus", "core_h", "gpu_h", "open_jobs", "open_core_h", "open_gpu_h"), 0.0)
    for row in ordered[:place]:
        tasks, hours = row["array_tasks"], (row["limit_s"] or 0) / 3600
        amounts = {"jobs": tasks, "cpus": tasks * row["cpus"], "gpus": tasks * row["gpus"]}
        amounts |= {"core_h": amounts["cpus"] * hours, "gpu_h": amounts["gpus"] * hours}
        for name, amount in amounts.items():
            out[name] += amount
        if REASON_CLASSES[reason_class(row["reason"])] in OPEN:
            for name in ("jobs", "core_h", "gpu_h"):
                out[f"open_{name}"] += amounts[name]
    return out


def _queue_features(tables: Rows, case: Row, out: dict[str, float]) -> tuple[Row | None, datetime | None]:
    asked, attempt = case["asked"], _attempt(tables, case["job_id"], case["asked"])
    seen, rows = _reading(tables["queue"], asked, 2)
    records = _records(tables, rows)
    record = _find(records, case, attempt, seen)
    if seen is None:
        return None, None
    out["queue_age_s"] = (asked - seen).total_seconds()
    out["queue_reason"] = reason_class(record["reason"]) if record else 0
    first = (case["partition"] or "").split(",")[0]
    if record:
        out["queue_tasks"] = record["array_tasks"]
        if record["eligible"]:
            out["queue_eligible_s"] = (asked - record["eligible"]).total_seconds()
    own = record["priority"] if record else None
    if own is not None:
        out["queue_priority"] = own
        middle = _started(tables, first, seen)
        if middle is not None:
            out["queue_priority_lead"] = own - middle
    priority = own
    if record is None:
        fresh = [_fresh(tables, r, seen) for r in records.values() if case["account"] and _same(r["account"], case["account"])]
        fresh = [f for f in fresh if f is not None]
        priority = median(fresh) if fresh else None
    if priority is None:
        return record, seen
    out["queue_rank_assumed"] = float(record is None)
    order = sorted((r for r in records.values() if r["priority"] is not None), key=lambda r: (-r["priority"], r["submit"], r["job_id"]))
    scopes = {"cluster": order}
    if first:
        scopes["partition"] = [r for r in order if any(_same(first, p) for p in r["partition"].split(","))]
    if case["gpus"]:
        scopes["gpu_type"] = [r for r in order if r["gpus"] and (not case["gpu_type"] or _same(r["gpu_type"], case["gpu_type"]))]
    for scope, queue in scopes.items():
        if record is not None:
            place = sum(order.index(r) < order.index(record) for r in queue)
        else:
            place = sum(r["priority"] >= priority for r in queue)
        amounts, tasks = _ahead(queue, place), sum(r["array_tasks"] for r in queue)
        names = {"jobs": "jobs", "cpus": "cpus", "gpus": "gpus", "core_h": "core_hours", "gpu_h": "gpu_hours"}
        for short, name in names.items():
            out[f"queue_{scope}_{name}_above"] = amounts[short]
        out[f"queue_{scope}_share_above"] = amounts["jobs"] / tasks if tasks else 0.0
        if scope == "partition":
            for short in ("jobs", "core_h", "gpu_h"):
                out[f"queue_partition_open_{names[short]}_above"] = amounts[f"open_{short}"]
    return record, seen


def _fresh(tables: Rows, record: Row, seen: datetime) -> int | None:
    """Priority of a record's job in the first snapshot of the day up to ``seen``."""
    same = [r for r in tables["queue"] if r["job_id"] == record["job_id"] and r["state"] == "PENDING"]
    first = min(
        (r for r in same if timedelta(0) <= seen - r["observed_at"] <= 24 * HOUR), key=lambda r: (r["observed_at"], r["array_task"] or -1)
    )
    return first["priority"]


def _started(tables: Rows, partition: str, moment: datetime) -> float | None:
    found = []
    for job in tables["jobs"]:
        if not job["start"] or not moment - 24 * HOUR < job["start"] <= moment or not _same(job["partition"], partition):
            continue
        seen, rows = _reading(tables["queue"], job["start"], 2)
        if seen is None or seen < job["submit"]:
            continue
        records = {r["job_id"]: r for r in reversed(rows) if r["state"] == "PENDING"}
        record = records.get(job["job_id"], records.get(job["array_job_id"]))
        if record is not None and record["priority"] is not None:
            found.append(record["priority"])
    return median(found) if found else None


def _slow_features(tables: Rows, case: Row, record: Row | None, queue_seen: datetime | None, out: dict[str, float]) -> None:
    asked, attempt = case["asked"], _attempt(tables, case["job_id"], case["asked"])
    seen, rows = _reading(tables["estimates"], asked, 2)
    mine = _find({r["job_id"]: r for r in rows}, case, attempt, seen)
    start, clamped = None, False
    if mine is not None:
        told = [r for r in rows if r["job_id"] == mine["job_id"] and r["start_estimate"]]
        best = min(told, key=lambda r: r["start_estimate"], default=None)
        start, clamped = (best["start_estimate"], best["clamped"]) if best else (None, False)
    elif record is not None:
        seen, start = queue_seen, record["start_estimate"]
        clamped = start is not None and start <= seen
    if mine is not None or record is not None:
        out["estimate_age_s"] = (asked - seen).total_seconds()
        out["estimate_told"] = float(start is not None)
        if start is not None:
            out["estimate_remaining_s"], out["estimate_clamped"] = (start - asked).total_seconds(), float(clamped)
    seen, rows = _reading(tables["priorities"], asked, 2)
    mine = _find({r["job_id"]: r for r in rows}, case, attempt, seen)
    if mine is not None:
        top = max((r for r in rows if r["job_id"] == mine["job_id"]), key=lambda r: (r["priority"], r["age"], r["fairshare"]))
        if top["priority"] > 0:
            for name, column in (("age", "age"), ("fairshare", "fairshare"), ("qos", "qos_factor")):
                out[f"sprio_{name}"] = top[column] / top["priority"]
    seen, rows = _reading(tables["shares"], asked, 24)
    if seen is not None:
        out["share_age_s"] = (asked - seen).total_seconds()
        first = (case["partition"] or "").split(",")[0]
        for who, name in (("user", case["user"]), ("account", None)):
            fit = [r for r in rows if _same(r["account"], case["account"]) and _same(r["user"], name) and case["account"]]
            fit = [r for r in fit if r["partition"] is None or _same(r["partition"], first)]
            if not fit or (who == "user" and not name):
                continue
            best = max(fit, key=lambda r: r["partition"] is not None)
            level = best["level_fs"]
            out[f"share_{who}_log_level"] = max(-10.0, min(10.0, math.log(level))) if level > 0 else -10.0
            for short, column in (("fairshare", "fairshare"), ("usage", "effective_usage"), ("norm", "norm_shares")):
                out[f"share_{who}_{short}"] = best[column]


def _node(row: Row) -> Row:
    flags = set((row["state_flags"] or "").split(","))
    usable = row["state"] != "DOWN" and not flags & UNUSABLE_FLAGS
    idle_cpus = None if row["cpus_alloc"] is None else row["cpus"] - row["cpus_alloc"]
    idle_gpus = None if row["gpus_alloc"] is None else row["gpus"] - row["gpus_alloc"]
    idle_cpus = idle_cpus if idle_cpus is not None else {"IDLE": row["cpus"], "ALLOCATED": 0}.get(row["state"])
    idle_gpus = row["gpus"] if idle_gpus is None and row["state"] == "IDLE" else idle_gpus
    return row | {"usable": usable, "free": usable and "RESERVED" not in flags, "idle_cpus": idle_cpus, "idle_gpus": idle_gpus}


def _telling(rows: list[Row], what: str, asked: datetime) -> tuple[datetime | None, list[Row]]:
    for seen in sorted({r["observed_at"] for r in rows if r["observed_at"] <= asked}, reverse=True):
        nodes = [_node(r) for r in rows if r["observed_at"] == seen]
        counted = [n for n in nodes if n["usable"] and (what == "idle_cpus" or n["gpus"])]
        if sum(n[what] is not None for n in counted) >= 0.9 * len(counted):
            return (seen, nodes) if asked - seen <= 24 * HOUR else (None, [])
    return None, []


def _node_features(tables: Rows, case: Row, out: dict[str, float]) -> None:
    asked = case["asked"]
    seen, rows = _reading(tables["nodes"], asked, 24)
    if seen is None:
        return
    gpu_seen, by_gpus = _telling(tables["nodes"], "idle_gpus", asked)
    cpu_seen, by_cpus = _telling(tables["nodes"], "idle_cpus", asked)
    count = case["nodes"] or 1
    gpus, cpus = math.ceil((case["gpus"] or 0) / count), max(1, math.ceil((case["cpus"] or 0) / count))
    first = (case["partition"] or "").split(",")[0].casefold()

    def kind(node: Row) -> bool:
        return bool(node["gpus"]) and (not case["gpu_type"] or _same(node["gpu_type"], case["gpu_type"]))

    def inside(nodes: list[Row]) -> list[Row]:
        return [n for n in nodes if first in n["partitions"].split(",")]

    out["node_age_s"] = (asked - seen).total_seconds()
    use = gpu_seen if gpus else cpu_seen
    if use is not None:
        out["node_use_age_s"] = (asked - use).total_seconds()
    if gpu_seen is not None:
        out["node_idle_gpus_type"] = sum(n["idle_gpus"] or 0 for n in by_gpus if kind(n) and n["free"])
        mine = [n for n in inside(by_gpus) if n["free"]]
        if inside(by_gpus):
            out["node_idle_gpus_partition"] = sum(n["idle_gpus"] or 0 for n in mine)
            out["node_largest_block"] = max((n["idle_gpus"] or 0 for n in mine if kind(n)), default=0)
            if gpus:
                spare = [n for n in mine if kind(n) and (n["idle_gpus"] or 0) >= gpus]
                out["node_fitting"] = sum(n["idle_cpus"] is None or n["idle_cpus"] >= cpus for n in spare)
    if cpu_seen is not None and inside(by_cpus):
        mine = [n for n in inside(by_cpus) if n["free"]]
        out["node_idle_cpus_partition"] = sum(n["idle_cpus"] or 0 for n in mine)
        if not gpus:
            out["node_fitting"] = sum((n["idle_cpus"] or 0) >= cpus for n in mine)
    if "node_fitting" in out:
        out["node_fits_now"] = float(out["node_fitting"] >= count)
    nodes = [_node(r) for r in rows]
    out["node_total_gpus_type"] = sum(n["gpus"] for n in nodes if kind(n))
    mine = inside(nodes)
    if mine:
        out["node_able"] = sum(n["usable"] and n["gpus"] >= gpus and n["cpus"] >= cpus and (not gpus or kind(n)) for n in mine)
        out["node_down_share"] = sum(not n["usable"] for n in mine) / len(mine)
        out["partition_gpus"] = sum(n["gpus"] for n in mine)
        out["partition_nodes"], out["partition_cpus"] = len(mine), sum(n["cpus"] for n in mine)


def _reservation_features(tables: Rows, case: Row, out: dict[str, float]) -> None:
    asked, first = case["asked"], (case["partition"] or "").split(",")[0].casefold()
    _, layout = _reading(tables["partitions"], asked, 1e9)
    told = next((r for r in layout if _same(r["partition"], first)), None)
    _, nodes = _reading(tables["nodes"], asked, 24)
    hosts = {r["node"] for r in nodes if first in r["partitions"].split(",")}
    if told is not None:
        out["partition_nodes"], out["partition_cpus"] = told["total_nodes"], told["total_cpus"]
        hosts = _hosts(told["node_list"])
    seen, rows = _reading([r for r in tables["reservations"] if r["state"]], asked, 1e9)
    if seen is None or not hosts:
        return
    taken = {r["reservation"]: len(_hosts(r["node_list"]) & hosts) if r["node_list"] else min(r["nodes"], len(hosts)) for r in rows}
    ahead = sorted((r for r in rows if taken[r["reservation"]] and r["start"] > asked), key=lambda r: r["start"])
    wait = (ahead[0]["start"] - asked).total_seconds() if ahead else math.inf
    out["reservation_next_h"] = min(720.0, wait / 3600)
    out["reservation_next_nodes"] = taken[ahead[0]["reservation"]] if ahead else 0
    out["reservation_now_nodes"] = sum(taken[r["reservation"]] for r in rows if r["start"] <= asked < r["end"])
    if case["limit_s"] is not None:
        out["reservation_crossed"] = float(wait < case["limit_s"])


def _hosts(text: str) -> set[str]:
    if "[" not in text:
        return {text}
    low, high = text[text.index("[") + 1 : -1].split("-")
    return {f"n{i}" for i in range(int(low), int(high) + 1)}


def reference(tables: Rows, case: Row) -> dict[str, float]:
    """Features by name; those that are not there are unknown."""
    out: dict[str, float] = {}
    record, seen = _queue_features(tables, case, out)
    _slow_features(tables, case, record, seen, out)
    _node_features(tables, case, out)
    _reservation_features(tables, case, out)
    return out
