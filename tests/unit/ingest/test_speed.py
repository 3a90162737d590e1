"""How fast and how large: run with ``pytest -m bench``."""

from __future__ import annotations

import random
import resource
import time

import pytest
from ingest_support import SACCT, STEP, read

ROWS = 300_000


@pytest.mark.bench
def test_sacct_rows_per_second_and_memory() -> None:
    """Some 200,000 rows a second on two idle cores (the bound here leaves room for a busy machine); memory does not grow with the input."""
    draw = random.Random(1)
    names = tuple(SACCT)
    lines = ["\x1f".join(names)]
    number = 1000
    while len(lines) < ROWS:
        number += 1
        ids = {"JobID": str(number), "JobIDRaw": str(number), "DBIndex": str(number), "ElapsedRaw": str(draw.randrange(100_000)),
               "User": f"user{draw.randrange(400)}", "JobName": f"train-{draw.randrange(5000)}", "Priority": str(draw.randrange(100_000)),
               "SubmitLine": f"sbatch run.sh {draw.random()}"}
        lines.append("\x1f".join((SACCT | ids)[n] for n in names))
        for step in ("batch", "extern"):
            more = {"JobID": f"{number}.{step}", "JobIDRaw": f"{number}.{step}", "DBIndex": str(number), "JobName": step,
                    "MaxRSS": f"{draw.randrange(10**8)}K",
                    "TotalCPU": f"{draw.randrange(60):02d}:{draw.randrange(60):02d}.{draw.randrange(1000):03d}"}
            lines.append("\x1f".join((SACCT | STEP | more).get(n, "") for n in names))
    raw = "\n".join(lines) + "\n"
    read("sacct", "\n".join(lines[:100]))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.perf_counter()
    found = read("sacct", raw)
    seconds = time.perf_counter() - begun
    print(f"{len(lines) / seconds:,.0f} rows/s, {len(raw) / seconds / 1e6:.0f} MB/s")
    assert found.report.rejected == found.report.nulled == 0
    assert len(lines) / seconds > 30_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2_000_000
