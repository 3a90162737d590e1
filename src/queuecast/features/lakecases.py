"""Cases of a lake: the state of the queue from job history, joined with what the snapshots showed."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from queuecast.features.asking import Asking
from queuecast.features.build import cases_at, moments
from queuecast.features.cases import Cases
from queuecast.features.history import TEXTS, Floats, History, Ints, load_history
from queuecast.features.situation import FEATURES as STATE
from queuecast.features.snapshots import FEATURES as SEEN
from queuecast.features.snapshots import Snapshots, load_snapshots

if TYPE_CHECKING:
    from queuecast.store.lake import Lake

FEATURES = (*STATE, *SEEN)

MOST_SUBMITS = 150_000
"""Of more jobs than that every second, third, ... is asked about when it became eligible."""

INSTANTS = 300
"""Pending jobs are asked about at so many moments, spread evenly."""

PER_INSTANT = 150
AFTER_SNAPSHOT_S = 60.0
"""Asked so long after a snapshot, so that all of its commands have been read."""

Matrix = np.ndarray[tuple[int, int], np.dtype[np.float32]]


def lake_cases(
    lake: Lake,
    cluster: str,
    since: datetime,
    until: datetime,
    *,
    before: timedelta,
    instants: int = INSTANTS,
    most_submits: int = MOST_SUBMITS,
) -> tuple[Cases, History, Ints]:
    """Cases asked in [since, until), the history that they come from (which begins ``before`` earlier, so that the
    first of them see a past), and the row in it of each case. Pending jobs are asked about at ``instants`` moments; of more
    than ``most_submits`` jobs only every second, third, ... is asked about when it became eligible."""
    history = load_history(lake, cluster, since=since - before, until=until)
    begin, end = since.timestamp(), until.timestamp()
    submitted = int(np.count_nonzero(history.eligible >= begin))
    every = max(1, -(-submitted // most_submits))
    snapshots = load_snapshots(lake, cluster, since, until)
    instants_s = _instants(snapshots, begin, end, instants)
    rows, asked = moments(history, end, submit_since=begin, pending_instants=instants_s, per_instant=PER_INSTANT)
    # A thinned row keeps its pending cases: only questions at submission are dropped.
    keep = (asked > history.eligible[rows]) | (rows % every == 0)
    rows, asked = rows[keep], asked[keep]
    cases = cases_at(history, rows, asked, threads=2)
    values = np.hstack([cases.values, seen_values(snapshots, history, Asking.of_rows(history, rows, asked), history.job_id[rows])])
    return Cases(cases.asked, cases.eligible, cases.start, cases.last_pending, FEATURES, values, cases.groups), history, rows


def seen_values(snapshots: Snapshots, history: History, asking: Asking, job_id: Ints) -> Matrix:
    """What the snapshots say about each question; ``job_id`` -1 is a request that is not submitted."""

    def text(name: str) -> tuple[Ints, list[str]]:
        # A word that never occurred is the last, empty one.
        return np.where(asking.codes[name] < 0, len(history.words[name]), asking.codes[name]), [*history.words[name], ""]

    words = {name: text(name) for name in TEXTS}
    nodes = asking.nodes if asking.nodes is not None else np.ones(len(asking))
    return snapshots.features(
        job_id,
        None,
        asking.asked,
        words["partition"],
        words["account"],
        words["user"],
        asking.gpus,
        words["gpu_type"],
        asking.cpus,
        nodes,
        asking.limit_s,
        asking.submit,
    )


def _instants(snapshots: Snapshots, begin: float, end: float, count: int) -> Floats:
    """Moments just after snapshots where there are some, else every so many hours."""
    times = np.unique(snapshots.pending.readings.times) + AFTER_SNAPSHOT_S
    times = times[(times >= begin) & (times < end)]
    if len(times) < min(20, count):
        times = np.linspace(begin, end, count, endpoint=False)
    return times[np.unique(np.linspace(0, len(times) - 1, min(count, len(times))).astype(np.int64))]
