"""Who is pending at a moment, and who of them is ahead."""

from __future__ import annotations

import numpy as np

from queuecast.features.history import Ints
from queuecast.features.intervals import Oldest, ratio, sorted_with
from queuecast.features.situation_names import COLUMN
from queuecast.features.situation_view import Clock, Matrix, View, hours_of

PAIRS = 2_000_000
"""So many (moment, pending job) pairs are held at once."""


def pending(view: View) -> None:
    """Fill the pending_* columns, and the ahead_* columns as if all pending jobs were ahead."""
    jobs = view.jobs
    weights = {
        "jobs": jobs.tasks,
        "cpus": jobs.cpus,
        "gpus": jobs.gpus,
        "core_h": jobs.core,
        "gpu_h": jobs.gpu,
        "predicted_core_h": jobs.cpus * jobs.predicted,
    }
    for name, weight in weights.items():
        if view.wants(f"pending_{name}"):
            found = view.found[f"pending_{name}"] = _pending(view, weight)
            values = hours_of(found) if name.endswith("_h") else found
            view.put(f"pending_{name}", values)
            view.repeat(f"ahead_{name}", f"pending_{name}")
    count = view.found["pending_jobs"]
    view.put("ahead_share", np.where(count > 0, 1.0, np.nan))
    if view.wants("pending_mean_s"):
        arrived = _pending(view, jobs.tasks * jobs.eligible)
        view.put("pending_mean_s", ratio(count * view.at - arrived, count) / 1000)
    if not len(jobs):
        view.put("pending_max_s", np.full(len(view.at), np.nan))
    elif view.wants("pending_max_s"):
        lanes = view.lanes("arrival")
        oldest = Oldest(lanes, jobs.leave)
        rows = np.r_[lanes.rows, 0]
        place = oldest.place(view.codes, view.at, 0)
        mine = view.waiting & (rows[place] == view.row)
        place[mine] = oldest.place(view.codes[mine], view.at[mine], 1)
        there = place < view.place("arrival")
        view.put("pending_max_s", np.where(there, view.at - jobs.eligible[rows[place]], np.nan) / 1000)


def _pending(view: View, weights: Ints) -> Ints:
    found = view.within("arrival", "leave", weights)
    if view.waits:
        found -= view.of_own(weights, view.waiting)
    return found


def ahead(clock: Clock, codes: dict[str, Ints], out: Matrix) -> None:
    """Fill the ahead_* columns of jobs that have others behind them: for each moment asked about, its pending jobs
    are listed and summed up in order of arrival. ``codes``: group numbers of the requests, in the clock's order."""
    jobs = clock.jobs
    late = np.flatnonzero(clock.place < clock.arrived)
    if not len(late):
        return
    moments, which = np.unique(clock.at[late], return_inverse=True)
    last = np.zeros(len(moments), np.int64)
    np.maximum.at(last, which, clock.place[late])
    first = np.searchsorted(np.maximum.accumulate(jobs.leave), moments, side="left")
    rows: list[Ints] = []
    begin = held = 0
    for i, moment in enumerate(moments):
        found = first[i] + np.flatnonzero(jobs.leave[first[i] : last[i]] >= moment)
        rows.append(found)
        held += len(found)
        if held >= PAIRS or i == len(moments) - 1:
            here = late[(which >= begin) & (which <= i)]
            _ahead(clock, here, which[(which >= begin) & (which <= i)] - begin, rows, codes, out)
            rows, begin, held = [], i + 1, 0


def _ahead(clock: Clock, here: Ints, which: Ints, rows: list[Ints], codes: dict[str, Ints], out: Matrix) -> None:
    """``here``: requests (in the clock's order); ``which``: the number of the moment of each; ``rows``: the jobs pending
    at each moment, in order of arrival."""
    jobs = clock.jobs
    row = np.concatenate(rows)
    moment = np.repeat(np.arange(len(rows)), [len(r) for r in rows])
    span = len(jobs) + 1
    weights = {"jobs": jobs.tasks[row], "core_h": jobs.core[row], "gpu_h": jobs.gpu[row]}
    for dim in codes:
        size = jobs.groups[dim].size + 1
        lane = moment * size + jobs.groups[dim].codes[row]
        by = sorted_with(lane)[0]
        keys = (lane * span + row)[by]
        mine = (which * size + codes[dim][here]) * span
        first, place = np.searchsorted(keys, mine), np.searchsorted(keys, mine + clock.place[here])
        for name, weight in weights.items():
            totals = np.r_[0, np.cumsum(weight[by])]
            found = totals[place] - totals[first]
            target = clock.order[here]
            out[target, COLUMN[f"{dim}_ahead_{name}"]] = hours_of(found) if name.endswith("_h") else found
            if name == "jobs" and f"{dim}_ahead_share" in COLUMN:
                everyone = out[target, COLUMN[f"{dim}_pending_jobs"]]
                out[target, COLUMN[f"{dim}_ahead_share"]] = ratio(found, everyone)
