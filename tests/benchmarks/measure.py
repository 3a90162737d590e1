"""Timing a piece of work in a process of its own: wall seconds and peak memory, as the operating system counts them."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cost:
    """Wall seconds, CPU seconds and peak resident memory (MiB) of one process; ``said`` is what it printed."""

    wall_s: float
    cpu_s: float
    peak_mib: float
    said: str


# A process inherits the peak of the one it was forked from, so each is started by a small interpreter of its own.
_LAUNCHER = """
import json, os, sys, time
begun = time.perf_counter()
pid = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, used = os.wait4(pid, 0)
with open(sys.argv[1], "w") as out:
    json.dump([os.waitstatus_to_exitcode(status), time.perf_counter() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024], out)
"""


def run(command: list[str]) -> Cost:
    """Run to the end. Raises RuntimeError if it fails."""
    with tempfile.NamedTemporaryFile("r") as figures:
        done = subprocess.run([sys.executable, "-S", "-E", "-c", _LAUNCHER, figures.name, *command], stdout=subprocess.PIPE, check=True)
        code, wall, cpu, peak = json.load(figures)
    said = done.stdout.decode("utf-8", "replace")
    if code != 0:
        raise RuntimeError(f"{command[:4]} ended with {code}: {said[-2000:]}")
    return Cost(wall, cpu, peak, said)


def python(code: str, *args: str) -> Cost:
    """Run Python code with arguments."""
    return run([sys.executable, "-c", code, *args])


def median(costs: list[Cost]) -> Cost:
    """The run with the middle wall time."""
    middle = statistics.median_low([c.wall_s for c in costs])
    return next(c for c in costs if c.wall_s == middle)


def report(name: str, value: float, unit: str, bound: str, ok: bool, **more: object) -> None:
    """One JSON line per figure."""
    print(json.dumps({"name": name, "value": round(value, 3), "unit": unit, "bound": bound, "ok": ok, **more}), flush=True)


def show(cost: Cost) -> dict[str, float]:
    """Figures for a report."""
    return {k: round(v, 2) for k, v in asdict(cost).items() if isinstance(v, float)}


def machine() -> str:
    """What this ran on."""
    model = next(
        (line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "?"
    )
    return f"{os.cpu_count()} x {model}"
