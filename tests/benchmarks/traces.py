"""Accuracy on public job traces.

    python -m tests.benchmarks.traces FILE... [--json] [--refits N] [--report FOLDER]

Any trace in the Standard Workload Format (.swf, .swf.gz) or in the DRAC layout (.parquet) is taken. SWF: the last 30 %
of the jobs are asked about when they become eligible. DRAC: jobs pending at noon are asked about from day 21 on, by a
model refitted every day on past days. Prints one line per figure: {trace, slice, model, measure, value, low, high}.
Only past outcomes are used for each answer; low and high end a 95 % interval from a bootstrap over days. Slices like
"partition=gpu", "gpus=4", "size=CPUs 5-16", "user_jobs=1-9", "hour=09", "month=2011-05" (UTC) tell how intervals held there.
With several files the last lines, of the trace "all", tell of all of them: mean and largest ratio of the pinball loss to
that of the best baseline, mean coverage.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import Progress

from queuecast.collect.swf import read_swf, swf_jobs
from queuecast.features.build import cases_at, moments
from queuecast.features.cases import Cases
from queuecast.features.history import Floats, from_rows
from queuecast.models.evaluation import BESIDE_SLURM, OURS, UNCORRECTED, Evaluation, evaluate
from queuecast.models.measures_slices import earlier_jobs
from queuecast.render.report import ReportData, write_report

DAY = 86400.0
LAST = 0.3
FIRST_DAY = 21
HEADLINES = (
    "cases", "within_2x", "mse_log10", "crps_log10", "pinball_log1p", "medae_s", "coverage_80", "coverage_90", "bound_95_held",
    "bound_95_tightness", "brier_skill_1h", "brier_skill_4h", "brier_skill_24h", "ece_1h", "ece_4h", "ece_24h",
)  # fmt: skip
COVERED = ("coverage_50", "coverage_80", "coverage_90", "coverage_95")


@dataclass(frozen=True)
class Trace:
    """Cases of a file, the moment from which on they are answered, and what names slices (see ``groups_of``)."""

    cases: Cases
    first: float
    partitions: list[str]
    earlier: Floats
    gpus: Floats


def swf_trace(path: Path) -> Trace:
    """Read an SWF file: every job is asked about when it becomes eligible."""
    rows = swf_jobs(read_swf(path), "trace")
    history = from_rows(rows, "trace", datetime(1970, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
    job, asked = moments(history, float(history.eligible.max()) + 1)
    cases = cases_at(history, job, asked, threads=2)
    first = float(asked[int(len(asked) * (1 - LAST))])
    return Trace(cases, first, history.words["partition"], earlier_jobs(history, job, asked), history.gpus[job])


def measure(path: Path, refits: int, draws: int) -> Evaluation:
    """Measure one trace."""
    name = path.name.split(".")[0]
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name)

        def tell(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        if path.suffix == ".parquet":
            from tests.benchmarks.drac import read_drac

            cases = read_drac(path)[1]
            first = math.floor(float(cases.asked.min()) / DAY) * DAY + FIRST_DAY * DAY
            return evaluate(cases, first, trace=name, every_s=DAY, warm_up_s=7 * DAY, draws=draws, progress=tell)
        read = swf_trace(path)
        every = (float(read.cases.asked[-1]) - read.first) / refits + 1.0
        return evaluate(
            read.cases, read.first, trace=name, every_s=every, warm_up_s=2 * every, partitions=read.partitions,
            earlier=read.earlier, gpus=read.gpus, draws=draws, progress=tell,
        )  # fmt: skip


def over_all(found: list[list[dict[str, object]]]) -> list[dict[str, object]]:
    """Figures of the trace "all" from those of each trace (one list each), for all jobs and for GPU jobs: mean and largest
    over traces of ``pinball_ratio``, our pinball loss by that of the trace's best baseline; mean coverage. Our own answers
    before their levels are corrected are no baseline. A trace without such a slice does not count; ``traces`` do."""
    out: list[dict[str, object]] = []
    for part in ("all", "gpu"):
        ratios, covered = [], {measure: list[float]() for measure in COVERED}
        for figures in found:
            value = {(f["model"], f["measure"]): float(str(f["value"])) for f in figures if f["slice"] == part}
            ours = value.get((OURS, "pinball_log1p"), math.nan)
            others = [v for (model, m), v in value.items() if m == "pinball_log1p" and model not in (OURS, UNCORRECTED, BESIDE_SLURM)]
            others = [v for v in others if v > 0]  # nan is no loss
            if math.isfinite(ours) and others:
                ratios.append(ours / min(others))
            for measure, held in covered.items():
                if math.isfinite(value.get((OURS, measure), math.nan)):
                    held.append(value[OURS, measure])
        if not ratios:
            continue
        told = {"traces": float(len(ratios)), "pinball_ratio_mean": float(np.mean(ratios)), "pinball_ratio_largest": max(ratios)}
        told |= {f"{measure}_mean": float(np.mean(held)) for measure, held in covered.items() if held}
        out += [
            {"trace": "all", "slice": part, "model": OURS, "measure": m, "value": v, "low": math.nan, "high": math.nan}
            for m, v in told.items()
        ]
    return out


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
        figures.append(found.figures)
        shown += found.shown
        if args.json:
            _lines(found.figures)
        else:
            _table(found.figures)
    if len(figures) > 1:
        together = over_all(figures)
        if args.json:
            _lines(together)
        elif together:
            _table(together, tuple(dict.fromkeys(str(f["measure"]) for f in together)))
    if args.report:
        every = [figure for own in figures for figure in own]
        for written in write_report(every, ReportData(title="Public traces", facts=[], shown=shown), args.report):
            print(written, file=sys.stderr if args.json else sys.stdout)


def _lines(figures: list[dict[str, object]]) -> None:
    for figure in figures:
        print(json.dumps({k: None if isinstance(v, float) and not np.isfinite(v) else v for k, v in figure.items()}), flush=True)


def _table(figures: list[dict[str, object]], measures: tuple[str, ...] = HEADLINES) -> None:
    values = {(f["slice"], f["model"], f["measure"]): f["value"] for f in figures}
    for slice_, model in dict.fromkeys((f["slice"], f["model"]) for f in figures if "=" not in str(f["slice"])):
        line = "  ".join(f"{m} {values[slice_, model, m]:.3f}" for m in measures if (slice_, model, m) in values)
        print(f"{figures[0]['trace']} | {slice_} | {model} | {line}")


if __name__ == "__main__":
    main()
