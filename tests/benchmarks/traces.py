"""Accuracy on public job traces.

    python -m tests.benchmarks.traces FILE... [--json] [--refits N] [--report FOLDER]

Any trace in the Standard Workload Format (.swf, .swf.gz) or in the DRAC layout (.parquet) is taken. SWF: the last 30 %
of the jobs are asked about when they become eligible. DRAC: jobs pending at noon are asked about from day 21 on, by a
model refitted every day on past days. Prints one line per figure: {trace, slice, model, measure, value, low, high}.
Only past outcomes are used for each answer; low and high end a 95 % interval from a bootstrap over days.
"""

from __future__ import annotations

import argparse
import json
import math
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from rich.progress import Progress

from queuecast.collect.swf import read_swf, swf_jobs
from queuecast.features.build import build_cases
from queuecast.features.cases import Cases
from queuecast.features.history import from_rows
from queuecast.models.evaluation import Evaluation, evaluate
from queuecast.render.report import ReportData, write_report

DAY = 86400.0
LAST = 0.3
FIRST_DAY = 21
HEADLINES = (
    "cases", "within_2x", "mse_log10", "crps_log10", "pinball_log1p", "medae_s", "coverage_80", "coverage_90", "bound_95_held",
    "bound_95_tightness", "brier_skill_4h", "ece_1h", "ece_4h", "ece_24h",
)  # fmt: skip


def swf_trace(path: Path) -> tuple[Cases, float, list[str]]:
    """Cases of an SWF file, the moment from which on they are answered, names of its partitions."""
    rows = swf_jobs(read_swf(path), "trace")
    history = from_rows(rows, "trace", datetime(1970, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
    cases = build_cases(history, float(history.eligible.max()) + 1, threads=2)
    return cases, float(cases.asked[int(len(cases) * (1 - LAST))]), history.words["partition"]


def measure(path: Path, refits: int, draws: int) -> Evaluation:
    """Measure one trace."""
    name = path.name.split(".")[0]
    with Progress(transient=True) as bar:
        task = bar.add_task(name)

        def tell(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        if path.suffix == ".parquet":
            from tests.benchmarks.drac import read_drac

            cases = read_drac(path)[1]
            first = math.floor(float(cases.asked.min()) / DAY) * DAY + FIRST_DAY * DAY
            return evaluate(cases, first, trace=name, every_s=DAY, warm_up_s=7 * DAY, draws=draws, progress=tell)
        cases, first, partitions = swf_trace(path)
        every = (float(cases.asked[-1]) - first) / refits + 1.0
        return evaluate(cases, first, trace=name, every_s=every, warm_up_s=2 * every, partitions=partitions, draws=draws, progress=tell)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--json", action="store_true", help="one JSON line per figure; else the headline figures as a table")
    parser.add_argument("--refits", type=int, default=12, help="refits over the measured part of an SWF trace")
    parser.add_argument("--draws", type=int, default=100, help="bootstrap draws")
    parser.add_argument("--report", type=Path, help="folder for a report with plots")
    args = parser.parse_args()
    figures, shown = [], []
    for path in args.files:
        found = measure(path, args.refits, args.draws)
        figures += found.figures
        shown += found.shown
        for figure in found.figures:
            if args.json:
                print(json.dumps({k: None if isinstance(v, float) and not np.isfinite(v) else v for k, v in figure.items()}), flush=True)
        if not args.json:
            _table(found)
    if args.report:
        for written in write_report(figures, ReportData(title="Public traces", facts=[], shown=shown), args.report):
            print(written)


def _table(found: Evaluation) -> None:
    values = {(f["slice"], f["model"], f["measure"]): f["value"] for f in found.figures}
    for slice_, model in dict.fromkeys((f["slice"], f["model"]) for f in found.figures):
        line = "  ".join(f"{m} {values[slice_, model, m]:.3f}" for m in HEADLINES if (slice_, model, m) in values)
        print(f"{found.figures[0]['trace']} | {slice_} | {model} | {line}")


if __name__ == "__main__":
    main()
