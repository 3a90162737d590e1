"""Features of the queue's state: many moments of a long history at once, and one moment of a live answer.

python -m tests.benchmarks.features [--jobs 100000 1000000 10000000]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time

import numpy as np

from queuecast.features.asking import Asking
from queuecast.features.history import TEXTS, Floats, History
from queuecast.features.instant import Instant
from queuecast.features.situation import batch
from tests.benchmarks.measure import machine, python, report

QUEUE = 5000
PER_DAY = 2740.0
"""A million jobs a year."""
CHUNK = 5_000_000
T0 = 1_700_000_000.0


def made(count: int, days: float) -> History:
    """Jobs spread over ``days``, with about ``QUEUE`` of them pending at any time, 6 partitions, 400 users, 37 accounts."""
    rng = np.random.default_rng(1)
    now = T0 + days * 86400
    eligible = np.sort(np.floor(T0 + rng.uniform(0, days * 86400, count)))
    wait = np.where(rng.random(count) < 0.3, 0.0, rng.lognormal(0.0, 1.5, count))
    wait = np.floor(wait * (QUEUE * days * 86400 / count) / wait.mean())
    start, cancelled = eligible + wait, rng.random(count) < 0.08
    end = np.where(cancelled, start, start + np.floor(rng.lognormal(7.5, 1.6, count)))
    start[cancelled] = np.inf
    kind = rng.integers(0, 6, count)
    codes = {
        "partition": kind,
        "qos": rng.integers(0, 3, count),
        "account": rng.integers(0, 37, count),
        "user": rng.integers(0, 400, count),
        "gpu_type": np.array([1, 2, 3, 0, 0, 2])[kind],
    }
    words = {text: [f"{text}{i}" for i in range(int(codes[text].max()) + 1)] for text in TEXTS}
    start[start > now], end[end > now] = np.inf, np.inf
    gpus, cpus = np.array([4.0, 1, 8, 0, 0, 1])[kind], rng.choice([1.0, 4, 8, 16, 32], count)
    limit = rng.choice([3600.0, 14400, 43200, 86400], count)
    one, unknown = np.ones(count), np.full(count, np.nan)
    seen = np.full(count, now)
    return History("made", np.arange(count), codes, words, gpus, cpus, limit, eligible, start, end, seen, eligible, one, one, unknown)


def many(count: int, threads: int) -> None:
    """All jobs when they became eligible: prints seconds and the mean length of the queue. More than ``CHUNK`` are asked
    about in parts, so that the features of all need not fit into memory; the whole history is gone through each time."""
    history = made(count, count / PER_DAY)
    seconds, pending = 0.0, 0.0
    for begin in range(0, count, CHUNK):
        rows = np.arange(begin, min(begin + CHUNK, count))
        asking = Asking.of_rows(history, rows, history.eligible[rows])
        begun = time.perf_counter()
        values = batch(history, asking, threads=threads)
        seconds += time.perf_counter() - begun
        pending, features = float(values[len(rows) // 2 :, 0].mean()), values.shape[1]
        del values
    print(json.dumps({"seconds": seconds, "pending": pending, "features": features}))


def one(count: int, days: float) -> None:
    """A live answer: prints milliseconds to prepare the moment, for one request and for a thousand."""
    history, at = made(count, days), T0 + days * 86400
    rows = np.arange(1000) * (count // 1000)
    some = Asking.of_rows(history, rows, np.full(1000, at))
    asking = Asking(some.asked, some.asked, some.submit, some.codes, some.gpus, some.cpus, some.limit_s, np.full(1000, -1))
    now = Instant(history, at)
    single = asking.take(np.array([0]))
    laps = {
        "build_ms": [_lap(lambda: Instant(history, at)) for _ in range(9)],
        "one_ms": [_lap(lambda: now.features(single)) for _ in range(50)],
        "thousand_ms": [_lap(lambda: now.features(asking)) for _ in range(20)],
    }
    print(json.dumps({name: float(np.median(each)) for name, each in laps.items()}))


def _lap(work) -> float:  # type: ignore[no-untyped-def]
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1000


def main() -> None:
    """Print one JSON line per figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    load = "from tests.benchmarks.features import *; import sys; a = [float(x) for x in sys.argv[1:]]; "
    first: Floats | float = math.nan
    for count in sorted(args.jobs):
        cost = python(load + "many(int(a[0]), int(a[1]))", str(count), str(args.threads))
        found = json.loads(cost.said)
        effort = found["seconds"] / (count * math.log(count))
        first = effort if math.isnan(first) else first
        speed, growth = count / found["seconds"], effort / first
        more = {"peak_mib": round(cost.peak_mib), "n_log_n_ratio": round(growth, 2), "threads": args.threads, "machine": machine()}
        shape = {"jobs": count, "features": found["features"], "pending": round(found["pending"])}
        report("features_batch", speed, "jobs/s", ">= 100000", speed >= 100_000, **shape, **more)
    for count in (123_000, 1_000_000):
        found = json.loads(python(load + "one(int(a[0]), a[1])", str(count), "45").said)
        for name, bound in (("build_ms", 150), ("one_ms", 2), ("thousand_ms", 50)):
            report(
                f"features_instant_{name[:-3]}",
                found[name],
                "ms",
                f"< {bound}",
                found[name] < bound,
                jobs=count,
                days=45,
                machine=machine(),
            )


if __name__ == "__main__":
    main()
