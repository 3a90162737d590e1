"""How often the binding constraint agrees with Slurm's own reason: ``python -m tests.benchmarks.why LAKE [--moments N] [--json]``.

At evenly spread snapshots pending records with a reason are explained, at most ``MOST`` per reason and moment, once *blind*
(Slurm's reason is taken out of the record first, so that agreement is not borrowed from it) and once as a person sees it.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter, defaultdict
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from queuecast.answers.explaining.binding import binding, compare
from queuecast.answers.explaining.budget import spent_of
from queuecast.answers.explaining.queue import limit_shares, snapshot_at, with_throttle
from queuecast.answers.lookup import KnownJob, find_job
from queuecast.answers.viewer import Viewer
from queuecast.errors import QueuecastError
from queuecast.policy.tables import Policy, policy_at
from queuecast.policy.usage import Usage, UsedJob, usage_at
from queuecast.policy.verdicts import verdicts
from queuecast.reasons import explain_reason
from queuecast.store.lake import Lake

MOST = 3
AGREEMENTS = ("same", "kind", "differs", "unchecked")


def measure(lake: Lake, cluster: str, moments: int, offset: int = 0) -> dict[str, Any]:
    """Counts by Slurm's reason: blind and told agreement; where blind differs, what was found and whether others were before it."""
    times = sorted(pc.unique(lake.read("queue", ["observed_at"], cluster=cluster)["observed_at"]).to_pylist())
    chosen = times[offset :: max(1, len(times) // moments)][:moments]
    blind: dict[str, Counter[str]] = defaultdict(Counter)
    told: dict[str, Counter[str]] = defaultdict(Counter)
    instead: Counter[tuple[str, str]] = Counter()
    behind = limits = confirmed = cramped = 0
    past = _past(lake, cluster)
    for at in chosen:
        for reason, row, job, context in _records(lake, cluster, at):
            policy, usage, snapshot, shares, spent = context
            hidden = row | {"reason": None, "reason_text": None}
            found = binding(policy, usage, snapshot, hidden, job.request, shares, Viewer(), spent)
            agreement, _explained = compare(reason, found.constraints)
            blind[reason][agreement] += 1
            told[reason][binding(policy, usage, snapshot, row, job.request, shares, Viewer(), spent).agreement] += 1
            cramped += (
                reason == "Resources" and found.constraints[0].code == "Priority" and any(c.code == reason for c in found.constraints)
            )
            if agreement in ("differs", "kind"):
                instead[reason, found.constraints[0].code] += 1
            if agreement == "differs":
                behind += found.ahead is not None and bool(found.ahead.shared)
                if explain_reason(reason).wait_class == "limit":
                    limits += 1
                    confirmed += _room_by_accounting(past, policy, row, job, reason, at)
    return {
        "moments": len(chosen),
        "first": chosen[0].isoformat(),
        "last": chosen[-1].isoformat(),
        "blind": {k: dict(v) for k, v in blind.items()},
        "told": {k: dict(v) for k, v in told.items()},
        "instead": [{"slurm": s, "ours": o, "jobs": n} for (s, o), n in instead.most_common()],
        "differing_with_others_ahead": behind,
        "resources_behind_others_that_lack_room_too": cramped,
        "differing_limits": limits,
        "differing_limits_with_room_by_accounting": confirmed,
    }


def _records(lake: Lake, cluster: str, at: datetime) -> list[tuple[str, dict[str, Any], Any, Any]]:
    policy, usage, snapshot = policy_at(lake, cluster, at), usage_at(lake, cluster, at), snapshot_at(lake, cluster, at)
    spent = spent_of(lake, cluster, at, policy)

    @cache
    def shares() -> list[tuple[str | None, str | None, float]]:
        return limit_shares(lake, cluster, at)

    rows = [r for r in snapshot.rows if r["state"] == "PENDING" and r["reason"]]
    random.Random(int(at.timestamp())).shuffle(rows)
    done: Counter[str] = Counter()
    out = []
    for row in rows:
        reason = row["reason"]
        if done[reason] >= MOST:
            continue
        try:
            job = find_job(lake, cluster, row["job_id_text"].split("_[")[0], at)
        except QueuecastError:
            continue
        if snapshot.row(job.job_id, job.text) is not row or job.reason != reason:
            continue
        done[reason] += 1
        out.append((reason, with_throttle(lake, cluster, row, at), job, (policy, usage, snapshot, shares, spent)))
    return out


def _past(lake: Lake, cluster: str) -> list[dict[str, Any]]:
    columns = [
        "job_id",
        "array_job_id",
        "user",
        "account",
        "qos",
        "partition",
        "start",
        "end",
        "cpus_alloc",
        "gpus_alloc",
        "gpu_type_alloc",
    ]
    return [r for r in lake.read("jobs", columns, cluster=cluster).to_pylist() if r["start"] is not None]


def _room_by_accounting(past: list[dict[str, Any]], policy: Policy, row: dict[str, Any], job: KnownJob, reason: str, at: datetime) -> bool:
    """Whether the limit that Slurm names has room by what accounting says ran then: a second source beside the snapshot."""
    ran = [r for r in past if r["start"] <= at and (r["end"] is None or r["end"] > at)]
    if reason == "JobArrayTaskLimit":
        limit = row["array_throttle"]
        return limit is not None and sum(r["array_job_id"] == row["array_job_id"] for r in ran) < limit
    used = []
    for r in ran:
        rule = policy.partition(r["partition"])
        qos = frozenset(q.casefold() for q in (r["qos"], rule.qos if rule else None) if q)
        tres = {"cpu": r["cpus_alloc"] or 0, "node": 1, "gres/gpu": r["gpus_alloc"] or 0}
        if r["gpu_type_alloc"]:
            tres[f"gres/gpu:{r['gpu_type_alloc']}"] = r["gpus_alloc"] or 0
        used.append(UsedJob(r["job_id"], r["user"], r["account"], qos, True, 1, tres, frozenset(), None, r["partition"]))
    found = verdicts(policy, job.request, Usage(at, tuple(used)), without=row["job_id"])
    return all(v.code != reason for v in found)


def lines(result: dict[str, Any]) -> list[str]:
    """The table of docs/why.md."""
    out = ["| Slurm's reason | jobs | same | same kind | differs | not checked | same once Slurm's word is seen |", "|" + "---|" * 7]
    total: Counter[str] = Counter()
    seen = 0
    for reason, counts in sorted(result["blind"].items(), key=lambda item: -sum(item[1].values())):
        cells = [counts.get(k, 0) for k in AGREEMENTS]
        same = result["told"][reason].get("same", 0)
        out.append(f"| {reason} | {sum(cells)} | " + " | ".join(map(str, cells)) + f" | {same} |")
        total.update(counts)
        seen += same
    cells = [total[k] for k in AGREEMENTS]
    out.append(f"| all | {sum(cells)} | " + " | ".join(map(str, cells)) + f" | {seen} |")
    out.append("")
    out += [f"{p['slurm']} -> {p['ours']}: {p['jobs']}" for p in result["instead"]]
    out.append(f"Resources behind others that lack room too: {result['resources_behind_others_that_lack_room_too']}")
    room, limits = result["differing_limits_with_room_by_accounting"], result["differing_limits"]
    out.append(f"differing where Slurm names a limit: {limits}; with room by accounting too: {room}")
    out.append(f"differing, with others ahead for the same nodes: {result['differing_with_others_ahead']} of {total['differs']}")
    return out


def main() -> None:
    """Print the table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lake")
    parser.add_argument("--moments", type=int, default=15)
    parser.add_argument("--offset", type=int, default=0, help="begin at this snapshot: other moments, for a second look")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    lake = Lake.open(Path(args.lake))
    result = measure(lake, lake.clusters[0], args.moments, args.offset)
    print(json.dumps(result, indent=2) if args.json else "\n".join(lines(result)))


if __name__ == "__main__":
    main()
