"""What is running at a moment, what of it will be freed soon, and how much has been seen in use."""

from __future__ import annotations

import numpy as np

from queuecast.features.history import Floats, Ints
from queuecast.features.intervals import HOUR, ratio
from queuecast.features.situation_names import HOURS
from queuecast.features.situation_view import MEMORY, View, hours_of


def running(view: View) -> None:
    """Fill the running_*, left_*, capacity_*, idle_* and drain_* columns, after those of ``pending``."""
    jobs = view.jobs
    if not view.wants("running_jobs"):
        return
    found = view.found
    for name, weight in (("jobs", jobs.tasks), ("cpus", jobs.cpus), ("gpus", jobs.gpus)):
        found[name] = view.within("start", "end", weight)
        view.put(f"running_{name}", found[name])
    if view.wants("left_core_h"):
        until = jobs.planned()
        still = view.within("start", "limit", jobs.cpus)
        ends = view.within("start", "limit", jobs.cpus * until)
        view.put("left_core_h", hours_of(ends - still * view.at))
    for name, weight, hours in (("cpus", jobs.cpus, "core_h"), ("gpus", jobs.gpus, "gpu_h")):
        if view.wants(f"capacity_{name}"):
            most = np.maximum(found[name], _most(view, weight))
            view.put(f"capacity_{name}", most)
            view.put(f"idle_{name}", most - found[name])
        if view.wants(f"drain_{name[:-1]}_h"):
            view.put(f"drain_{name[:-1]}_h", ratio(hours_of(found[f"pending_{hours}"]), found[name]))


def freed(view: View) -> None:
    """Fill the freed_* columns."""
    jobs = view.jobs
    for by in ("limit", "predicted"):
        for hours in HOURS:
            for name, weight in (("cpus", jobs.cpus), ("gpus", jobs.gpus)):
                if view.wants(f"freed_{hours}h_{name}_{by}"):
                    kind = f"{by} {hours}"
                    seen = weight * view.clock.seen[kind]
                    view.put(f"freed_{hours}h_{name}_{by}", view.within(kind, "end", seen))


def started(view: View) -> None:
    """Fill the started_* columns."""
    jobs = view.jobs
    shifts = tuple(h * HOUR for h in HOURS)
    for name, weight in (("jobs", jobs.tasks), ("core_h", jobs.core)):
        if view.wants(f"started_1h_{name}"):
            for hours, values in zip(HOURS, view.since("start", weight, shifts), strict=True):
                view.put(f"started_{hours}h_{name}", hours_of(values) if name == "core_h" else values)


def marks(view_base: float, ms: Ints) -> Ints:
    """Number of the last whole hour (UTC) at or before times in ms since ``view_base``."""
    offset = int(view_base % 3600) * 1000
    return (ms + offset) // HOUR


def _most(view: View, weights: Ints) -> Ints:
    """Highest sum of weights of running jobs at the whole hours of the last 30 days."""
    jobs, out = view.jobs, np.zeros(len(view.at), np.int64)
    if not len(view.at) or not len(jobs):
        return out
    now = marks(jobs.base, view.at)
    first, count = int(now.min()) - MEMORY // HOUR, int(now.max() - now.min()) + MEMORY // HOUR + 2
    borders = np.searchsorted(view.codes, np.arange(view.size + 1))
    for lane in np.flatnonzero(np.diff(borders)):
        change = np.zeros(count)
        for kind, sign in (("start", 1), ("end", -1)):
            begin, end = view.firsts(kind)[lane : lane + 2]
            rows = view.rows(kind)[begin:end]
            # Seen from the next whole hour on; what comes after all moments falls into the last, unread one.
            hour = np.clip(marks(jobs.base, (jobs.start if kind == "start" else jobs.end)[rows]) + 1 - first, 0, count - 1)
            change += sign * np.bincount(hour, weights[rows], minlength=count)
        use = sliding_maximum(np.cumsum(change), MEMORY // HOUR)
        here = slice(int(borders[lane]), int(borders[lane + 1]))
        out[here] = use[now[here] - first]
    return out


def sliding_maximum(values: Floats, width: int) -> Floats:
    """Maximum of the last ``width`` values at each place: running maxima forwards and backwards within blocks of that
    width (van Herk 1992, Gil and Werman 1993), so the time does not depend on the width."""
    blocks = -(-len(values) // width)
    padded = np.full((blocks, width), -np.inf)
    padded.ravel()[: len(values)] = values
    forward = np.maximum.accumulate(padded, axis=1).ravel()
    backward = np.maximum.accumulate(padded[:, ::-1], axis=1)[:, ::-1].ravel()
    out = forward.copy()
    out[width - 1 :] = np.maximum(forward[width - 1 :], backward[: len(forward) - width + 1])
    return out[: len(values)]
