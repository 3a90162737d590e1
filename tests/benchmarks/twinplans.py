"""Does the twin plan as Slurm does? ``python -m tests.benchmarks.twinplans [--lake .demo/lake] [--every 6] [--json]``

Slurm's estimates (squeue --start) are its backfill plans. For snapshots taken soon after a recorded cycle the state at that cycle is set up
from the recording, one cycle is played, and the planned starts are held against the printed ones, and the starts of the cycle against the
recorded ones. Of an array Slurm prints the task planned last (before 23.02).
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from queuecast.slurmtext.hostlist import expand_hostlist
from queuecast.store.files import floats
from queuecast.store.lake import Lake
from queuecast.twin.arrays import PENDING, RUNNING, Clock
from queuecast.twin.backfill import backfill_pass
from queuecast.twin.forward import clock_of
from queuecast.twin.loop import fresh
from queuecast.twin.passes import records_of
from queuecast.twin.priority import rank
from queuecast.twin.replay import Recording, pass_instants, recording
from queuecast.twin.shares import tree_at
from queuecast.twin.work import Frame, Work, code, rules_of
from tests.benchmarks.measure import machine

NEAR_S = 120.0
"""Printed plans and played ones that near are the same: the cycle takes a while."""


class Recorded:
    """A recording with what ran and waited at any moment."""

    def __init__(self, lake: Lake, cluster: str) -> None:
        self.lake, self.cluster, self.rec = lake, cluster, recording(lake, cluster)
        rows = lake.read("jobs", ["job_id", "start", "node_list"], cluster=cluster)
        starts = floats(rows["start"]) / 1e6
        self.nodes = {
            (j, round(s)): expand_hostlist(n) or ()
            for j, s, n in zip(rows["job_id"].to_pylist(), starts.tolist(), rows["node_list"].to_pylist(), strict=True)
            if n and np.isfinite(s)
        }

    def state(self, at: float) -> tuple[list[Work], list[int]]:
        """Jobs that ran or waited just before ``at``, with their place in the recording; requeued ones by their attempt then."""
        works, rows = [], []
        for i, w in enumerate(self.rec.works):
            if w.submit >= at - 1:
                continue
            for submit, _eligible, start, end, _state in self.rec.attempts[i]:
                if np.isfinite(end) and end <= at:
                    continue
                if np.isfinite(start) and start < at - 1:
                    works.append(replace(w, status=RUNNING, began=start, node_list=tuple(self.nodes.get((w.id, round(start)), ()))))
                elif submit < at - 1:
                    works.append(replace(w, status=PENDING, age_from=submit))
                else:
                    continue
                rows.append(i)
                break
        return works, rows

    def frame(self, at: float) -> Frame:
        """The machine and rules with fair share as last read before."""
        tree, read = tree_at(self.lake, self.cluster, datetime.fromtimestamp(at, UTC), self.rec.frame.policy)
        return self.rec.frame if read is None else replace(self.rec.frame, tree=tree)


def told_clock(rec: Recording) -> Clock:
    """The clock with the passes' instants told from the recorded starts."""
    nominal = clock_of(rec.frame.policy, rec.begin - 1, rec.end - rec.begin + 1, growth=False)
    main, back = (rec.started[rec.by == k] for k in (1, 2))
    step, interval = float(np.diff(nominal.main_at[:2])[0]), float(np.diff(nominal.backfill_at[:2])[0])
    return nominal._replace(
        main_at=pass_instants(main, rec.begin - 1, rec.end, step, step / 4),
        backfill_at=pass_instants(back, rec.begin - 1, rec.end, interval, interval / 2),
    )


def cycle(found: Recorded, clock: Clock, at: float) -> tuple[list[Work], np.ndarray, set[int]]:
    """One backfill cycle at ``at``: the jobs, their planned starts (inf: none), ids of those that started."""
    works, _rows = found.state(at)
    frame = found.frame(at)
    jobs = code(frame, works)
    rules, m = rules_of(frame), frame.machine
    sim = fresh(m, jobs, rules)
    for when, n, up in zip(m.change_at, m.change_node, m.change_up, strict=True):
        if when <= at:
            sim.up[n] = up
    queue = np.array([k for k, w in enumerate(works) if w.status == PENDING], np.int64)
    rank(sim, jobs, rules, queue, len(queue), at)
    owner, record = records_of(sim, jobs, m, rules, queue, len(queue))
    running = np.array([k for k, w in enumerate(works) if w.status == RUNNING], np.int64)
    plan, started, room = np.full(len(works), np.inf), np.empty(len(works) + 1, np.int64), np.empty(sim.used.shape[1])
    done = backfill_pass(sim, m, jobs, rules, clock, owner, record, running, at, room, started, plan)
    return [works[j] for j in owner], plan[owner], {works[j].id for j in started[:done]}


def compare(lake: Lake, cluster: str, every: int, soon: float) -> dict[str, Any]:
    """Agreement over the snapshots, every so many of them, that were taken ``soon`` after a cycle that started something."""
    found = Recorded(lake, cluster)
    rec, clock = found.rec, told_clock(found.rec)
    by_backfill = np.sort(rec.started[(rec.by == 2) & np.isfinite(rec.started)])
    array_of = {w.id: w.array or w.id for w in rec.works}
    rows = lake.read("estimates", ["observed_at", "job_id", "start_estimate", "sched_nodes"], cluster=cluster)
    seen, estimate = floats(rows["observed_at"]) / 1e6, floats(rows["start_estimate"]) / 1e6
    ids, planned = rows["job_id"].to_pylist(), rows["sched_nodes"].to_pylist()
    out = dict.fromkeys(("cycles", "plans", "same", "earlier", "later", "none", "first", "first_same", "both", "real_only", "twin_only"), 0)
    for moment in np.unique(seen)[::every]:
        k = int(np.searchsorted(clock.backfill_at, moment)) - 1
        at = float(clock.backfill_at[k])
        if k < 0 or moment - at > soon or not ((by_backfill >= at - 1) & (by_backfill < at + 5)).any():
            continue
        works, plan, started = cycle(found, clock, at)
        real = {w.id for w, s, b in zip(rec.works, rec.started, rec.by, strict=True) if b == 2 and at - 1 <= s < at + 60}
        out["cycles"] += 1
        out["both"] += len(real & started)
        out["real_only"] += len(real - started)
        out["twin_only"] += len(started - real)
        last = {w.array or w.id: p for w, p in zip(works, plan, strict=True) if np.isfinite(p)}
        printed = {
            array_of.get(ids[r], ids[r]): float(estimate[r])
            for r in np.flatnonzero(seen == moment)
            if np.isfinite(estimate[r]) and planned[r] and estimate[r] > moment
        }
        first: set[str] = set()
        for w in works:
            key = w.array or w.id
            if key not in printed:
                continue
            gap = last.get(key, np.inf) - printed.pop(key)
            same = abs(gap) <= NEAR_S
            out["plans"] += 1
            out["same" if same else "none" if np.isinf(gap) else "later" if gap > 0 else "earlier"] += 1
            if w.partitions[0] not in first:
                first.add(w.partitions[0])
                out["first"] += 1
                out["first_same"] += same
    return out


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lake", default=".demo/lake")
    parser.add_argument("--cluster", default="campus")
    parser.add_argument("--every", type=int, default=6, help="take every so many snapshots")
    parser.add_argument("--soon", type=float, default=400.0, help="seconds after the cycle")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    found = compare(Lake.open(args.lake), args.cluster, args.every, args.soon)
    if args.json:
        print(json.dumps({"machine": machine(), **found}, indent=1))
        return
    print(machine())
    for name, value in found.items():
        print(f"{name:<12} {value}")


if __name__ == "__main__":
    main()
