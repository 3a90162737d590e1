"""Do the changes that ``why`` tells start a job sooner? ``python -m tests.benchmarks.changes LAKE [--jobs N] [--futures N]``.

At evenly spread snapshots pending jobs are drawn at random; each change told is played in the same drawn futures as the request as asked.
The replay is not the truth, but it knows the queue, which the model's like jobs do not.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter, defaultdict
from pathlib import Path

import pyarrow.compute as pc

from queuecast.answers.explaining import changes as why_changes
from queuecast.answers.explaining.explain import why, with_changes
from queuecast.answers.explaining.queue import snapshot_at
from queuecast.answers.forecast import Forecaster
from queuecast.errors import QueuecastError
from queuecast.store.lake import Lake


def measure(lake: Lake, cluster: str, jobs: int, futures: int, offset: int) -> dict[str, Counter[str]]:
    """By effect: ``sooner`` in most futures, ``same`` start, ``later``; and answers with (``told``) and without changes (``none``)."""
    why_changes.REFUTED = 0.0  # nothing is taken off the list
    times = sorted(pc.unique(lake.read("queue", ["observed_at"], cluster=cluster)["observed_at"]).to_pylist())
    chosen = times[offset :: max(1, len(times) // jobs)][:jobs]
    out: dict[str, Counter[str]] = defaultdict(Counter)
    forecaster = Forecaster(lake, cluster)
    for at in chosen:
        rows = [r for r in snapshot_at(lake, cluster, at).rows if r["state"] == "PENDING" and r["reason"] and r["priority"]]
        if not rows:
            continue
        row = random.Random(int(at.timestamp())).choice(rows)
        try:
            answer = with_changes(why(lake, cluster, row["job_id_text"].split("_[")[0], at), lake, futures=futures, forecaster=forecaster)
        except QueuecastError:
            continue
        found = answer.changes
        if found is None:
            continue
        out["answers"]["told" if found.changes else "none"] += 1
        for change in found.changes:
            if change.sooner is None or change.p_sooner is None:
                out[change.effect]["not played"] += 1
            else:
                gain = change.sooner.median_s
                out[change.effect]["sooner" if change.p_sooner > 0.5 else "same" if abs(gain) <= 60 else "later"] += 1
    return out


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lake")
    parser.add_argument("--jobs", type=int, default=30)
    parser.add_argument("--futures", type=int, default=8)
    parser.add_argument("--offset", type=int, default=350)
    args = parser.parse_args()
    lake = Lake.open(Path(args.lake))
    for name, counts in measure(lake, lake.clusters[0], args.jobs, args.futures, args.offset).items():
        print(name, dict(counts), flush=True)


if __name__ == "__main__":
    main()
