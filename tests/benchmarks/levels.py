"""How the like-jobs model's dimensions, number of jobs and half-life were chosen, on the demo recording.

    make demo ARGS=--no-serve && python -m tests.benchmarks.levels .demo/lake [--sample 1000]

Each candidate answers for the same jobs, from day 4 on, with what was known when each became eligible. Prints the mean
pinball loss of log1p(wait) over levels 0.1 to 0.9 (started jobs), the coverage of the raw 80 % interval and the median
absolute error; then how the calibrated intervals held over 500 started jobs of days 4 to 8.5 (on which the number of trials and
their weight were chosen) and of the days after, with one map per partition and with one for the whole cluster.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from unittest.mock import patch

import numpy as np

from queuecast.features.history import Floats, History, Ints, load_history
from queuecast.models import likejobs
from queuecast.models.backtest import calibrate, key_of
from queuecast.models.calibration import CalibratedWait, Calibration
from queuecast.models.likejobs import LEVELS, find_like
from queuecast.models.training import data_until
from queuecast.store.lake import Lake
from tests.benchmarks.measure import report

COARSE = ((("partition", "gpu_type"), 30), (("partition", "gpu"), 20), (("partition",), 10), (("gpu",), 10), ((), 5))
Q = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
CANDIDATES = {
    "partition": ((("partition",), 10), ((), 5)),
    "partition, GPU type, size, limit": (
        (("partition", "gpu_type", "size", "limit"), 15),
        (("partition", "gpu_type", "size"), 15),
        *COARSE,
    ),
    "with QOS": ((("partition", "qos", "gpu_type", "size", "limit"), 15), (("partition", "qos", "gpu_type", "size"), 15), *COARSE),
    "with QOS and account, no limit": (
        (("partition", "qos", "account", "gpu_type", "size"), 15),
        (("partition", "qos", "gpu_type", "size"), 15),
        *COARSE,
    ),
    "as released": LEVELS,
}


def evaluate(history: History, rows: Ints) -> dict[str, float]:
    """Score the levels that are in force."""
    loss, held, errors = [], [], []
    for row in rows:
        at = float(history.eligible[row])
        like = find_like(history, key_of(history, int(row)), at, without=int(row))
        if like is None or not np.isfinite(history.start[row]):
            continue
        wait = float(history.start[row]) - at
        told = like.distribution().quantile(Q)
        told = np.where(np.isfinite(told), told, 30 * 86400.0)
        gap = np.log1p(wait) - np.log1p(told)
        loss.append(float(np.mean(np.maximum(Q * gap, (Q - 1) * gap))))
        held.append(bool(told[0] <= wait <= told[-1]))
        errors.append(abs(float(told[2]) - wait))
    return {
        "pinball_log1p": float(np.mean(loss)),
        "raw_coverage_80": float(np.mean(held)),
        "medae_s": float(np.median(errors)),
        "jobs": len(loss),
    }


def coverage(history: History, rows: Ints, pooled: bool) -> dict[str, float]:
    """How calibrated intervals held over started jobs; the map is made anew every 12 hours of the past."""
    maps: dict[tuple[int, str], Calibration] = {}
    inside: dict[float, list[bool]] = {0.5: [], 0.8: [], 0.95: []}
    for row in rows:
        at = float(history.eligible[row])
        partition = history.words["partition"][int(history.codes["partition"][row])]
        slot = (int(at // 43200), "*" if pooled else partition)
        if slot not in maps:
            maps[slot] = calibrate(history, slot[0] * 43200.0, None if pooled else partition, "submit")
        like = find_like(history, key_of(history, int(row)), at, without=int(row))
        if like is None or not np.isfinite(history.start[row]):
            continue
        wait = CalibratedWait(like.distribution(), maps[slot])
        truth = float(history.start[row]) - at
        for share, found in inside.items():
            found.append(bool(wait.quantile((1 - share) / 2) <= truth <= wait.quantile((1 + share) / 2)))
    return {f"coverage_{round(s * 100)}": float(np.mean(v)) for s, v in inside.items()}


def main() -> None:
    """Print one JSON line per candidate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lake")
    parser.add_argument("--sample", type=int, default=1000)
    args = parser.parse_args()
    lake = Lake.open(args.lake)
    until = data_until(lake, lake.clusters[0]) or datetime.now(UTC)
    history = load_history(lake, lake.clusters[0], since=datetime(2000, 1, 1, tzinfo=UTC), until=until)
    late: Floats = history.eligible > history.eligible.min() + 4 * 86400
    rows = np.sort(np.random.default_rng(1).choice(np.flatnonzero(late), min(args.sample, int(late.sum())), replace=False))
    for name, levels in CANDIDATES.items():
        for most, half_life in ((200, 1e12), (800, 1e12), (800, 3 * 86400.0)):
            with (
                patch.object(likejobs, "LEVELS", levels),
                patch.object(likejobs, "MOST", most),
                patch.object(likejobs, "HALF_LIFE_S", half_life),
            ):
                found = evaluate(history, rows)
            days = round(half_life / 86400) if half_life < 1e11 else None
            report("levels", found["pinball_log1p"], "pinball", "-", True, dims=name, most=most, half_life_days=days, **found)
    first = float(history.eligible.min())
    for part, begin, end in (("middle", 4.0, 8.5), ("end", 8.5, 99.0)):
        inside = (history.eligible > first + begin * 86400) & (history.eligible <= first + end * 86400) & np.isfinite(history.start)
        few = np.sort(np.random.default_rng(7).choice(np.flatnonzero(inside), 500, replace=False))
        for pooled in (False, True):
            found = coverage(history, few, pooled)
            report("calibration", found["coverage_80"], "share", "-", True, part=part, map="cluster" if pooled else "partition", **found)


if __name__ == "__main__":
    main()
