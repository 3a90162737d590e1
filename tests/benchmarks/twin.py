"""The twin: how near its starts are to recorded ones, how fast it is.

python -m tests.benchmarks.twin fidelity [--lake .demo/lake] [--cluster campus] [--json]
python -m tests.benchmarks.twin speed --swf KTH-SP2-1996-2.1-cln.swf.gz [--accasim PYTHON] [--json]
python -m tests.benchmarks.twin forward [--json]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from queuecast.collect.swf import read_swf
from queuecast.store.files import floats
from queuecast.store.lake import Lake
from queuecast.twin.arrays import PENDING, RUNNING
from queuecast.twin.easy import easy
from queuecast.twin.forward import clock_of
from queuecast.twin.replay import Recording, Replayed, recording, replay
from tests.benchmarks.measure import machine
from tests.benchmarks.twinplans import Recorded, told_clock

ACCASIM = """
import collections, collections.abc, sys, time, warnings
warnings.filterwarnings("ignore")
for name in ("Mapping", "MutableMapping", "Sequence", "Iterable", "Callable", "Set", "MutableSet", "MutableSequence"):
    setattr(collections, name, getattr(collections.abc, name))
from accasim.base.simulator_class import Simulator
from accasim.base.scheduler_class import EASYBackfilling
from accasim.base.allocator_class import FirstFit
begin = time.perf_counter()
Simulator(sys.argv[1], sys.argv[2], EASYBackfilling(FirstFit()), RESULTS_FOLDER_PATH=sys.argv[3]).start_simulation()
print("SECONDS", time.perf_counter() - begin)
"""


def score(real: np.ndarray, twin: np.ndarray, submit: np.ndarray) -> dict[str, float]:
    """Agreement of start times of the jobs that started in both."""
    both = np.isfinite(real) & np.isfinite(twin)
    if both.sum() < 3:
        return {"jobs": int(both.sum())}
    gap = np.abs(twin[both] - real[both])
    return {
        "jobs": int(both.sum()),
        "median_s": float(np.median(gap)),
        "within_1min": float((gap <= 60).mean()),
        "within_10min": float((gap <= 600).mean()),
        "rank_correlation": float(spearmanr(twin[both], real[both])[0]),
        "rank_correlation_of_waits": float(spearmanr(twin[both] - submit[both], real[both] - submit[both])[0]),
        "mean_wait_real_s": float((real[both] - submit[both]).mean()),
        "mean_wait_twin_s": float((twin[both] - submit[both]).mean()),
        "started_in_one_only": int((np.isfinite(real) ^ np.isfinite(twin)).sum()),
    }


def by_partition(rec: Recording, got: Replayed) -> dict[str, dict[str, float]]:
    """Scores of all jobs and of each partition."""
    submit = np.array([w.submit for w in rec.works])
    part = np.array([w.partitions[0] for w in rec.works])
    out = {"all": score(rec.started, got.starts, submit)}
    for p in sorted(set(part)):
        out[p] = score(rec.started[part == p], got.starts[part == p], submit[part == p])
    return out


def one_step(found: Recorded, clock: Any, hours: float) -> dict[str, dict[str, float]]:
    """As ``by_partition``, the state set to the recording's every ``hours``: running and pending jobs, fair share. A start counts in
    the step it was submitted or became due in; jobs that had started before and were requeued are there and are not judged."""
    rec, step = found.rec, hours * 3600
    starts, decided = np.full(len(rec.works), np.inf), np.zeros(len(rec.works), bool)
    for begin in np.arange(rec.begin, rec.end, step):
        works, rows = found.state(begin + 1)
        later = [i for i, w in enumerate(rec.works) if begin <= w.submit <= begin + step]
        works, rows = [*works, *(rec.works[i] for i in later)], [*rows, *later]
        ticks = {n: t[(t >= begin) & (t <= begin + step)] for n, t in (("main_at", clock.main_at), ("backfill_at", clock.backfill_at))}
        got = replay(found.frame(begin), works, clock._replace(begin=begin, stop=begin + step, **ticks))
        for k, i in enumerate(rows):
            judged = works[k].status != RUNNING and rec.started[i] > begin
            if judged and np.isfinite(got.starts[k]) and not decided[i]:
                starts[i], decided[i] = got.starts[k], True
    return by_partition(rec, Replayed(starts, starts, starts, rec.by, starts))


def fidelity(lake: str, cluster: str, hours: float) -> dict[str, Any]:
    """Replays of a recording with the nominal clock, and with the passes' instants told from the recorded starts."""
    found = Recorded(Lake.open(lake), cluster)
    rec = found.rec
    nominal = clock_of(rec.frame.policy, rec.begin - 1, rec.end - rec.begin + 1, growth=False)
    told = told_clock(rec)
    out: dict[str, Any] = {}
    for name, clock in (("clock of the recording", told), ("nominal clock", nominal)):
        began = time.perf_counter()
        out[name] = by_partition(rec, replay(rec.frame, rec.works, clock))
        out[name]["all"]["seconds"] = time.perf_counter() - began
    if hours > 0:
        out[f"one step of {hours:g} h"] = one_step(found, told, hours)
    return out


def speed(path: str, accasim: str | None, sample: int) -> dict[str, Any]:
    """Jobs per second of EASY on a log, against AccaSim's on its first jobs where that is installed."""
    log = read_swf(path)
    column = {n: np.nan_to_num(floats(log.rows[n])) for n in ("submit", "run", "time_asked", "cpus_asked", "cpus_used")}
    procs = np.maximum(np.maximum(column["cpus_asked"], column["cpus_used"]), 1.0)
    limit = np.maximum(np.where(column["time_asked"] > 0, column["time_asked"], column["run"]), 1.0)
    order = np.argsort(column["submit"], kind="stable")
    args = [x[order].astype(np.float64) for x in (column["submit"], column["run"], limit, procs, np.zeros(len(procs)))]
    total = float(log.text("MaxProcs") or procs.max())
    easy(*(x[:50] for x in args), total)
    times = []
    for _ in range(5):
        began = time.perf_counter()
        start = easy(*args, total)
        times.append(time.perf_counter() - began)
    out: dict[str, Any] = {
        "jobs": len(start),
        "seconds": min(times),
        "jobs_per_s": len(start) / min(times),
        "mean_wait_s": float((start - args[0])[np.isfinite(start)].mean()),
    }
    if accasim is None or not Path(accasim).exists():
        out["accasim"] = "not installed: give the Python of an environment with accasim==1.1.3 by --accasim"
        return out
    return out | accasim_speed(accasim, args, total, sample)


def accasim_speed(python: str, args: list[np.ndarray], total: float, sample: int) -> dict[str, Any]:
    """Seconds that AccaSim and the twin take for the first ``sample`` jobs (whole seconds, ``total`` nodes of one core), and how
    many starts are the same: EASY does not say in which order jobs that end in the same second are looked at."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        work, config = Path(folder, "jobs.swf"), Path(folder, "system.json")
        lines = [
            f"{i + 1} {int(s)} -1 {max(1, int(min(r, m)))} {int(p)} -1 -1 {int(p)} {int(m)} 1024 1 1 1 1 1 1 -1 -1"
            for i, (s, r, m, p) in enumerate(zip(*(a[:sample] for a in args[:4]), strict=True))
        ]
        work.write_text("; UnixStartTime: 0\n" + "\n".join(lines) + "\n")
        config.write_text(json.dumps({"groups": {"g0": {"core": 1, "mem": 1024}}, "resources": {"g0": int(total)}}))
        done = subprocess.run(
            [python, "-c", ACCASIM, str(work), str(config), str(Path(folder, "out"))],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        plan = next(iter(Path(folder, "out").glob("sched-*")), None)
        waits = accasim_waits(plan.read_text() if plan else "", sample)
    words = done.stdout.split()
    if "SECONDS" not in words:
        return {"accasim": "failed: " + (done.stderr.strip().splitlines() or ["no output"])[-1][:200]}
    spent = float(words[words.index("SECONDS") + 1])
    first = [np.floor(a[:sample]) for a in args]
    first[1] = np.maximum(1.0, np.minimum(first[1], first[2]))
    times = []
    for _ in range(5):
        began = time.perf_counter()
        own = easy(*first, total)
        times.append(time.perf_counter() - began)
    mine = own - first[0]
    both = np.isfinite(waits) & np.isfinite(mine)
    gap = np.abs(waits[both] - mine[both])
    return {
        "accasim_jobs": sample,
        "accasim_seconds": spent,
        "twin_seconds_same_jobs": min(times),
        "times_accasim_same_jobs": spent / min(times),
        "starts_compared": int(both.sum()),
        "starts_equal": float((gap < 1.5).mean()) if both.any() else float("nan"),
        "starts_within_10min": float((gap <= 600).mean()) if both.any() else float("nan"),
        "mean_wait_accasim_s": float(waits[both].mean()) if both.any() else float("nan"),
        "mean_wait_twin_s": float(mine[both].mean()) if both.any() else float("nan"),
    }


def accasim_waits(plan: str, sample: int) -> np.ndarray:
    """Waits in seconds by place from AccaSim's dispatching plan (id;user;queued__nodes__started;...), nan for those not in it."""
    out = np.full(sample, np.nan)
    for line in plan.splitlines():
        head, _, rest = line.partition("__")
        words = head.split(";")
        started = rest.rpartition("__")[2].split(";")[0]
        if len(words) == 3 and words[0].isdigit() and 0 < int(words[0]) <= sample:
            out[int(words[0]) - 1] = (datetime.fromisoformat(started) - datetime.fromisoformat(words[2])).total_seconds()
    return out


def forward_speed(lake: str, cluster: str, pending: int, running: int) -> dict[str, Any]:
    """One future of a state with as many jobs, to the start of the last pending job or six hours."""
    from queuecast.twin.loop import run
    from queuecast.twin.work import code, rules_of

    rec = recording(Lake.open(lake), cluster)
    rng = np.random.default_rng(1)
    begin = rec.end
    nodes = rec.frame.node_names
    # a machine large enough for so many running jobs: the recorded one, many times
    times = max(1, running // 40)
    m = rec.frame.machine
    wide = m._replace(
        total=np.tile(m.total, (times, 1)), up=np.tile(m.up, times), weight=np.tile(m.weight, times), member=np.tile(m.member, (1, times)),
        resv_node=np.zeros((0, len(nodes) * times), bool), resv_start=np.zeros(0), resv_end=np.zeros(0),
        change_at=np.zeros(0), change_node=np.zeros(0, np.int64), change_up=np.zeros(0, bool), masks=np.ones((1, len(nodes) * times), bool),
    )  # fmt: skip
    names = tuple(f"{n}-{k}" for k in range(times) for n in nodes)
    frame = replace(rec.frame, machine=wide, node_names=names)
    pool = [w for w in rec.works if w.limit < 2e5]
    picks = rng.integers(0, len(pool), pending)
    works = [
        replace(pool[i], id=k, submit=begin - 3600, status=PENDING, user=None, account=None, qos=None, array=None, cancel=np.inf)
        for k, i in enumerate(picks)
    ]
    free = wide.total.copy()
    for k in range(running):
        w = pool[int(rng.integers(0, len(pool)))]
        part = rec.frame.partitions.index(w.partitions[0])
        for n in rng.permutation(np.flatnonzero(wide.member[part])):
            if free[n, 0] >= w.cpus and free[n, 1] >= w.mem_mib and free[n, 2:].sum() >= w.gpus:
                free[n, 0] -= w.cpus
                free[n, 1] -= w.mem_mib
                free[n, 2 + int(np.argmax(free[n, 2:]))] -= w.gpus
                works.append(
                    replace(
                        w,
                        id=pending + k,
                        submit=begin - 7200,
                        status=RUNNING,
                        began=begin - 60,
                        node_list=(names[n],),
                        user=None,
                        account=None,
                        qos=None,
                        array=None,
                        cancel=np.inf,
                    )
                )
                break
    jobs = code(frame, works)
    rules = rules_of(frame)
    clock = clock_of(frame.policy, begin, 6 * 3600.0)
    run(wide, jobs, rules, clock)
    spent = []
    for _ in range(5):
        began = time.perf_counter()
        sim = run(wide, jobs, rules, clock)
        spent.append(time.perf_counter() - began)
    return {
        "pending": pending, "running": len(works) - pending, "nodes": len(names), "horizon_h": 6, "seconds_per_future": min(spent),
        "started": int(np.isfinite(sim.first[jobs.status == PENDING]).sum()),
    }  # fmt: skip


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["fidelity", "speed", "forward"])
    parser.add_argument("--lake", default=".demo/lake")
    parser.add_argument("--cluster", default="campus")
    parser.add_argument("--swf")
    parser.add_argument("--accasim")
    parser.add_argument("--sample", type=int, default=2000)
    parser.add_argument("--step-hours", type=float, default=6.0)
    parser.add_argument("--pending", type=int, default=2000)
    parser.add_argument("--running", type=int, default=1000)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.what == "fidelity":
        found = fidelity(args.lake, args.cluster, args.step_hours)
    elif args.what == "speed":
        if not args.swf:
            parser.error("speed needs --swf FILE")
        found = speed(args.swf, args.accasim, args.sample)
    else:
        found = forward_speed(args.lake, args.cluster, args.pending, args.running)
    if args.json:
        print(json.dumps({"machine": machine(), **found}, indent=1))
        return
    print(machine())
    for name, values in found.items():
        print(name, values if not isinstance(values, dict) else "")
        for key, row in values.items() if isinstance(values, dict) else ():
            print(f"  {key:8s}", "  ".join(f"{k} {v:.4g}" for k, v in row.items()))


if __name__ == "__main__":
    main()
