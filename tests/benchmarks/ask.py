"""``queuecast when`` at a million jobs of history: the whole command from cold, and a call of a library that is warm.

python -m tests.benchmarks.ask [--jobs 1000000]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

from queuecast.answers.forecast import Forecaster
from queuecast.models.saving import save_model
from queuecast.models.training import train
from queuecast.policy.request import Request
from queuecast.store.lake import Lake
from tests.benchmarks.measure import machine, median, report, run, show

END = datetime(2026, 6, 1, tzinfo=UTC)


def jobs(count: int, days: float) -> pa.Table:
    """Job rows in the form of the lake, spread evenly over ``days`` before ``END``; the last of them wait."""
    rng = np.random.default_rng(1)
    submit = (END.timestamp() - days * 86400 * (1 - np.arange(count) / count)) * 1e6
    wait, runs = np.exp(rng.normal(6.5, 2.2, count)) * 1e6, np.exp(rng.normal(7.5, 1.6, count)) * 1e6
    now = END.timestamp() * 1e6
    start, end = submit + wait, submit + wait + runs
    kind = rng.integers(0, 6, count)

    def times(values: np.ndarray, known: np.ndarray) -> pa.Array:  # type: ignore[type-arg]
        return pa.array(values.astype(np.int64), pa.timestamp("us", tz="UTC"), mask=~known)

    def pick(*words: str | None) -> pa.Array:
        return pa.array(words).take(pa.array(kind))

    everywhere = np.ones(count, bool)
    return pa.table(
        {
            "cluster": pa.array(["bench"] * count),
            "job_id": np.arange(count),
            "job_id_text": pa.array(np.arange(count)).cast(pa.string()),
            "array_tasks": np.ones(count, np.int64),
            "user": pa.array([f"user{i:03d}" for i in range(400)]).take(pa.array(rng.integers(0, 400, count))),
            "account": pa.array([f"lab{i}" for i in range(37)]).take(pa.array(rng.integers(0, 37, count))),
            "partition": pick("gpu", "gpu", "h100", "cpu", "cpu", "debug"),
            "qos": pa.array(["normal"] * count),
            "gpu_type_req": pick("a100", "v100", "h100", None, None, "v100"),
            "gpus_req": pa.array([4, 1, 8, 0, 0, 1]).take(pa.array(kind)),
            "cpus_req": rng.choice([1, 4, 8, 16, 32], count),
            "limit_s": rng.choice([3600, 14400, 43200, 86400], count),
            "submit": times(submit, everywhere),
            "eligible": times(submit, everywhere),
            "start": times(start, start <= now),
            "end": times(end, end <= now),
            "state": pa.array(np.where(end <= now, "COMPLETED", np.where(start <= now, "RUNNING", "PENDING"))),
            "completeness": np.where(end <= now, 3, np.where(start <= now, 2, 1)),
            "source": pa.array(["sacct"] * count),
            "observed_at": pa.array([END] * count, pa.timestamp("us", tz="UTC")),
        }
    )


def main() -> None:
    """Print one JSON line per figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--days", type=float, default=365.0)
    parser.add_argument("--runs", type=int, default=7)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="queuecast-bench-") as name:
        lake = Lake.open(Path(name) / "lake", create=True)
        with lake.transaction("bench") as tx:
            tx.append("jobs", jobs(args.jobs, args.days))
        begun = time.perf_counter()
        save_model(lake.path / "models", train(lake, END))
        report("train", time.perf_counter() - begun, "s", "-", True, jobs=args.jobs)
        shape = {"machine": machine(), "jobs": args.jobs, "days": args.days}
        command = [
            sys.executable,
            "-m",
            "queuecast.cli.main",
            "when",
            "-p",
            "gpu",
            "--gres",
            "gpu:a100:4",
            "-t",
            "1-00:00:00",
            "-A",
            "lab1",
            "-q",
            "normal",
            "--at",
            "data",
            "--lake",
            str(lake.path),
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # byte code written, files in the page cache
        cold = median([run(command) for _ in range(args.runs)])
        report("when_cold", cold.wall_s, "s", "< 1.2", cold.wall_s < 1.2, **show(cold), **shape)
        forecaster = Forecaster(lake)
        request = Request(partitions=("gpu",), gpus=4, gpu_type="a100", cpus=8, limit_s=86400, account="lab1", qos="normal")
        forecaster.when(request, END)
        laps = []
        for i in range(60):
            begun = time.perf_counter()
            forecaster.when(request, END + timedelta(seconds=i))
            laps.append(time.perf_counter() - begun)
        warm = float(np.median(laps)) * 1000
        learned = forecaster._learned_for(END)
        assert learned is not None
        history = forecaster.history(END)
        learned.pending(history, END)
        begun = time.perf_counter()
        rows, _waits = learned.pending(history, END)
        each = (time.perf_counter() - begun) / max(1, len(rows)) * 1000
        report("pending_1000", each, "s", "< 1.0", each < 1.0, pending=len(rows), **shape)
        report("when_warm_p50", warm, "ms", "< 15", warm < 15, p95=round(float(np.quantile(laps, 0.95)) * 1000, 2), **shape)


if __name__ == "__main__":
    main()
