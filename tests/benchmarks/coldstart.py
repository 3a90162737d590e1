"""A new cluster: how good answers are after the first 10, 100, 1,000 and 10,000 jobs.

    python -m tests.benchmarks.coldstart FILE.swf.gz...

At five places in the middle of a trace only the last N jobs before are known, and the next 500 are asked about when they
become eligible. Prints the mean pinball loss of log1p(wait) of like jobs and of the boosted model (from 100 jobs on), and
how many were answered: one JSON line per trace and N. With no job before, nothing is answered.
"""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from queuecast.collect.swf import read_swf, swf_jobs
from queuecast.features.build import build_cases
from queuecast.features.history import from_rows
from queuecast.models.baselines import like_jobs
from queuecast.models.measures import measure_all
from queuecast.models.stacked import fit
from queuecast.models.waits import Waits

KNOWN = (10, 100, 1000, 10_000)
ASKED = 500
PLACES = (0.3, 0.4, 0.5, 0.6, 0.7)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    for path in parser.parse_args().files:
        rows = swf_jobs(read_swf(path), "trace").sort_by("submit")
        for known in KNOWN:
            found: dict[str, list[float]] = {"like jobs": [], "boosted": []}
            for place in PLACES:
                begin = max(known, int(rows.num_rows * place))
                part = rows.slice(begin - known, known + ASKED)
                history = from_rows(part, "trace", datetime(1970, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
                cases = build_cases(history, float(history.eligible.max()) + 1)
                cut = len(cases) - ASKED
                asked = cases.take(np.arange(cut, len(cases)))
                wait, started = asked.outcomes(1e12)
                # Nothing that starts among those asked about teaches: the cluster is as new for the last as for the first.
                past = cases.take(np.arange(cut))
                told: dict[str, Waits] = {"like jobs": like_jobs(past, asked)}
                at = float(asked.asked[0])
                if known >= 100:
                    told["boosted"] = fit(past, at).predict(asked.values)
                for name, waits in told.items():
                    answered = np.isfinite(waits.cdf).all(axis=1)
                    if answered.any():
                        some = Waits(waits.cdf[answered], waits.knots_s)
                        found[name].append(measure_all(some, wait[answered], started[answered], asked.asked[answered])["pinball_log1p"])
            line = {name: round(float(np.mean(v)), 3) if v else None for name, v in found.items()}
            print(json.dumps({"trace": path.name.split(".")[0], "known": known, **line}), flush=True)


if __name__ == "__main__":
    main()
