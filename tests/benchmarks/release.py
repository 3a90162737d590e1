"""How often what is told to come free does so in the time told: ``python -m tests.benchmarks.release LAKE [--moments N]``.

At evenly spread snapshots, of running jobs drawn at random: the end of one, and of a group of like account the moment at which half of
its GPUs (or jobs) are free, against accounting. Each answer uses what was known at its moment.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter, defaultdict
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from queuecast.answers.explaining.queue import limit_shares, snapshot_at
from queuecast.answers.explaining.release import Release, release
from queuecast.answers.viewer import Viewer
from queuecast.policy.usage import RUNNING
from queuecast.store.lake import Lake

MOST = 20


def measure(lake: Lake, cluster: str, moments: int, offset: int = 0) -> dict[str, Counter[str]]:
    """For one job and for groups: ``early`` (before the interval), ``inside``, ``late``; ``like``: rests on like jobs."""
    times = sorted(pc.unique(lake.read("queue", ["observed_at"], cluster=cluster)["observed_at"]).to_pylist())
    chosen = times[offset :: max(1, len(times) // moments)][:moments]
    rows = lake.read("jobs", ["job_id", "start", "end"], cluster=cluster).to_pylist()
    ends: dict[tuple[int, datetime], datetime] = {(r["job_id"], r["start"]): r["end"] for r in rows if r["end"] is not None and r["start"]}
    out: dict[str, Counter[str]] = {"one": Counter(), "group": Counter()}
    for at in chosen:
        running = [r for r in snapshot_at(lake, cluster, at).rows if r["state"] in RUNNING and (r["job_id"], r["start"]) in ends]
        shares = limit_shares(lake, cluster, at)
        draw = random.Random(int(at.timestamp()))
        for row in draw.sample(running, min(MOST, len(running))):
            found = release([row], lambda _r: 1.0, "jobs", 1, at, shares, Viewer())
            _judge(out["one"], found, ends[row["job_id"], row["start"]])
        groups: dict[str | None, list[dict[str, Any]]] = defaultdict(list)
        for row in running:
            groups[row["account"]].append(row)
        for members in groups.values():
            whole = sum(r["gpus"] or 0 for r in members)
            if len(members) < 3 or not whole:
                continue
            found = release(members, lambda r: float(r["gpus"] or 0), "gres/gpu", whole / 2, at, shares, Viewer())
            _judge(out["group"], found, _freed(members, ends, whole / 2))
    return out


def _freed(rows: list[dict[str, Any]], ends: dict[tuple[int, datetime], datetime], need: float) -> datetime:
    got = 0.0
    last = datetime.min
    for row in sorted(rows, key=lambda r: ends[r["job_id"], r["start"]]):
        got, last = got + (row["gpus"] or 0), ends[row["job_id"], row["start"]]
        if got >= need:
            break
    return last


def _judge(counts: Counter[str], found: Release | None, truth: datetime) -> None:
    if found is None or found.earliest is None or found.latest is None:
        counts["unknown"] += 1
        return
    counts["like" if found.like else "limits"] += 1
    counts["early" if truth < found.earliest else "late" if truth > found.latest else "inside"] += 1


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lake")
    parser.add_argument("--moments", type=int, default=30)
    parser.add_argument("--offset", type=int, default=3)
    args = parser.parse_args()
    lake = Lake.open(Path(args.lake))
    for name, counts in measure(lake, lake.clusters[0], args.moments, args.offset).items():
        told = counts["early"] + counts["inside"] + counts["late"]
        print(name, dict(counts), f"inside: {counts['inside'] / max(1, told):.0%}")


if __name__ == "__main__":
    main()
