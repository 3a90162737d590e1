"""What corrections renewed daily, and trainings that go on from the last one, are worth.

    python -m tests.benchmarks.renewing LAKE_OR_SWF... [--from 0.5] [--days 6] [--trainings 3] [--most N]

The model is trained once, at the share ``--from`` of the recorded time. For each of the next ``--days`` days the questions of that
day are answered with the corrections of the training ("frozen") and with those renewed every day ("renewed"), nothing learned
anew. Then, for the last ``--trainings`` days, the model is trained daily, going on from the one before ("incremental") and
with all past answers made again ("full"); how long each training took is told. Lines: pinball loss of log1p(wait) and coverage
over started jobs, coverage with open jobs counted by the Kaplan-Meier estimate of the levels (``models.openjobs``), and the
CRPS of log1p(wait) in which at each wait all jobs count that were watched as long, started or not (as in ``models.blend``).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from queuecast.collect.swf import read_swf, swf_jobs
from queuecast.features.asking import Asking
from queuecast.features.build import submit_cases
from queuecast.features.history import Flags, Floats, load_history
from queuecast.features.lakecases import lake_cases
from queuecast.models import lessons
from queuecast.models.learning import BEFORE, Learned, learn, like_waits
from queuecast.models.openjobs import inside_share
from queuecast.models.renewing import INSTANTS_A_DAY, renew
from queuecast.models.waits import KNOTS_S, Waits
from queuecast.store.lake import Lake
from tests.benchmarks.measure import report

DAY = timedelta(days=1)
LEVELS = np.arange(1, 20) / 20


def lake_of(path: Path, folder: Path) -> Lake:
    """The lake itself, or one made of an SWF file."""
    if path.is_dir():
        return Lake.open(path)
    lake = Lake.open(folder / path.name, create=True)
    with lake.transaction("benchmark") as tx:
        tx.append("jobs", swf_jobs(read_swf(path), "trace"))
    lake.refresh()
    return lake


class Day:
    """The questions of one day, with what came of them by the end of the recording."""

    def __init__(self, lake: Lake, cluster: str, begin: datetime, end: float) -> None:
        self.cases, self.history, self.rows = lake_cases(lake, cluster, begin, begin + DAY, before=BEFORE, instants=INSTANTS_A_DAY)
        self.like = like_waits(self.cases, submit_cases(self.history))
        self.wait, self.started = self.cases.outcomes(end)
        self.watched = np.where(self.started, end - self.cases.asked, self.wait)
        self.pending: Flags = self.cases.asked - self.cases.eligible > 60

    def told(self, learned: Learned) -> Waits:
        asking = Asking.of_rows(self.history, self.rows, self.cases.asked)
        return learned.model.predict(self.cases.values, asking, self.like, self.history)


def scores(told: Waits, wait: Floats, started: Flags, watched: Floats) -> dict[str, float]:
    """Pinball loss of log1p over started jobs, CRPS over all as far as they were watched, coverage of started jobs, and with open
    jobs counted."""
    y = np.log1p(wait)
    top = np.log1p(KNOTS_S[-1])
    gaps = [y - np.minimum(np.log1p(told.quantile(float(q))), top) for q in LEVELS]
    pinball = np.mean([np.maximum(q * g, (q - 1) * g) for q, g in zip(LEVELS, gaps, strict=True)], axis=0)
    out = {"answers": float(len(wait)), "started": float(started.sum()), "pinball": float(pinball[started].mean())}
    counts = watched[:, None] >= KNOTS_S[None, :]
    off = np.square(told.cdf - (started[:, None] & (wait[:, None] <= KNOTS_S[None, :]))) * counts
    known = counts.sum(axis=0)
    out["crps_watched"] = float(off.sum(axis=0) @ np.where(known >= 30, np.gradient(np.log1p(KNOTS_S)) / np.maximum(known, 1), 0.0))
    for share in (0.8, 0.9):
        low, high = told.interval(share)
        inside = (wait >= low - 0.5) & (wait <= high + 0.5)
        out[f"held_{round(100 * share)}"] = float(inside[started].mean())
        bottom, ceiling = (np.where(low <= 0, one, two) for one, two in ((0.0, (1 - share) / 2), (share, (1 + share) / 2)))
        counted = inside_share(bottom, told.within(wait), ceiling, inside, started)
        out[f"held_{round(100 * share)}_open_counted"] = counted
    return out


def tell(name: str, kind: str, days: list[Day], answers: list[Waits], **more: object) -> None:
    """One line for all, one at submission, one while pending."""
    wait, started, pending, watched = (np.concatenate([getattr(d, n) for d in days]) for n in ("wait", "started", "pending", "watched"))
    cdf = np.concatenate([a.cdf for a in answers])
    for part, rows in (("all", np.ones(len(wait), bool)), ("at submission", ~pending), ("pending", pending)):
        if np.count_nonzero(started & rows) > 50:
            found = scores(Waits(cdf[rows], KNOTS_S), wait[rows], started[rows], watched[rows])
            report("renewing", found["pinball"], "pinball", "-", True, data=name, model=kind, part=part, **found, **more)


def simulate(name: str, lake: Lake, share: float, count: int, trainings: int) -> None:
    """Both comparisons on one lake."""
    cluster = lake.clusters[0]
    history = load_history(lake, cluster, since=datetime(1970, 1, 2, tzinfo=UTC), until=datetime(2100, 1, 1, tzinfo=UTC))
    begin, end = float(history.eligible.min()), float(np.max(history.eligible))
    at = datetime.fromtimestamp(begin + share * (end - begin), UTC)
    if count:
        base, took = timed(lambda: learn(lake, cluster, at))
        renewed, days, renewals = base, [], []
        frozen_told, renewed_told = [], []
        for number in range(count):
            days.append(Day(lake, cluster, at + number * DAY, end))
            frozen_told.append(days[-1].told(base))
            renewed_told.append(days[-1].told(renewed))
            renewed, seconds = timed(lambda old=renewed, to=at + (number + 1) * DAY: renew(lake, cluster, old, to))  # type: ignore[misc]
            renewals.append(seconds)
        tell(name, "frozen", days, frozen_told, training_s=round(took, 1))
        tell(name, "renewed", days, renewed_told, renewal_s=round(float(np.mean(renewals)), 2))
    if trainings:
        last = datetime.fromtimestamp(end, UTC) if path_is_short(begin, end) else at + (count + trainings) * DAY
        moments = [last - (trainings - i) * DAY for i in range(trainings)]
        steps, _ = timed(lambda: learn(lake, cluster, moments[0] - DAY))
        told: dict[str, list[Waits]] = {"incremental": [], "full": []}
        times: dict[str, list[float]] = {"incremental": [], "full": []}
        days = []
        for moment in moments:
            days.append(Day(lake, cluster, moment, end))
            steps, seconds = timed(lambda old=steps, to=moment: learn(lake, cluster, to, old=old))  # type: ignore[misc]
            full, whole = timed(lambda to=moment: learn(lake, cluster, to))  # type: ignore[misc]
            for kind, learned, took in (("incremental", steps, seconds), ("full", full, whole)):
                told[kind].append(days[-1].told(learned))
                times[kind].append(took)
        for kind, answers in told.items():
            tell(name, kind, days, answers, training_s=round(float(np.mean(times[kind])), 1))


def path_is_short(begin: float, end: float) -> bool:
    """A recording of some weeks is measured at its end, a trace of months in the middle."""
    return end - begin < 40 * 86400


def timed(make: Callable[[], Learned | None]) -> tuple[Learned, float]:
    """What it makes, and seconds."""
    begun = time.perf_counter()
    made = make()
    if made is None:
        raise SystemExit("too few started jobs before that moment: try a later --from")
    return made, time.perf_counter() - begun


def main() -> None:
    """Print JSON lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--from", dest="share", type=float, default=0.5)
    parser.add_argument("--days", type=int, default=6)
    parser.add_argument("--trainings", type=int, default=3)
    parser.add_argument("--most", type=int, help="learn from so many cases at most, to be quicker than the command")
    args = parser.parse_args()
    if args.most:
        lessons.MOST_CASES = args.most
    for path in args.paths:
        with tempfile.TemporaryDirectory() as folder:
            simulate(path.name.split(".")[0], lake_of(path, Path(folder)), args.share, args.days, args.trainings)


if __name__ == "__main__":
    main()
