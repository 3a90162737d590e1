"""What jobs that started before waited, what users and accounts have used, and bursts of submissions."""

from __future__ import annotations

import numpy as np

from queuecast.features.history import Floats
from queuecast.features.intervals import HOUR, Fading, ratio
from queuecast.features.situation_names import HALF_LIFE_DAYS, USAGE_HALF_LIFE_DAYS
from queuecast.features.situation_view import MEMORY, View, hours_of

LAST = 5
DAY = 24 * HOUR


def waits(view: View) -> None:
    """Fill the columns of recent waits, unknown where nothing started within 30 days, and the time since the last start."""
    jobs = view.jobs
    if view.dim not in HALF_LIFE_DAYS:
        return
    rows, first, place = view.rows("start"), view.first("start"), view.place("start")
    when, z = jobs.start[rows], jobs.log_wait[rows]
    terms = [np.ones(len(z)), z, z * z] if view.wants("wait_sd_log") else [np.ones(len(z)), z]
    sums, scale = Fading(view.firsts("start"), when, terms, HALF_LIFE_DAYS[view.dim] * DAY).read(first, place, view.at)
    lately = np.minimum(place - view.place("start", MEMORY), LAST)
    mean = np.where(lately > 0, ratio(sums[1], sums[0]), np.nan)
    view.put("wait_mean_log", mean)
    view.put("wait_count", sums[0] * scale)
    if view.wants("wait_sd_log"):
        view.put("wait_sd_log", np.sqrt(np.maximum(0.0, ratio(sums[2], sums[0]) - mean * mean)))
    last = np.where(lately > 0, place - 1, len(z))
    view.put("since_start_s", np.where(lately > 0, view.at - np.r_[when, 0][last], np.nan) / 1000)
    view.put("last_wait_s", np.expm1(np.r_[z, np.nan][last]))
    if view.wants("last5_wait_log"):
        totals = np.r_[0.0, np.cumsum(z)]
        view.put("last5_wait_log", ratio(totals[place] - totals[place - lately], lately))


def usage(view: View) -> tuple[Floats, Floats]:
    """Fill the columns of decayed usage, after those of ``running``. Returns core-hours and GPU-hours used, in the order of the view."""
    jobs = view.jobs
    rows = view.rows("end")
    end = jobs.end[rows]
    run = hours_of(end - jobs.start[rows])
    fading = Fading(view.firsts("end"), end, [jobs.cpus[rows] * run, jobs.gpus[rows] * run], USAGE_HALF_LIFE_DAYS * DAY)
    ended, scale = fading.read(view.first("end"), view.place("end"), view.at)
    found = []
    for name, weights, past in (("cpus", jobs.cpus, ended[0]), ("gpus", jobs.gpus, ended[1])):
        since = view.within("start", "end", weights * jobs.start)
        found.append(past * scale + hours_of(view.found[name] * view.at - since))
    view.put("used_core_h", found[0])
    view.put("used_gpu_h", found[1])
    return found[0], found[1]


def usual_limit(view: View, limit_s: Floats) -> Floats:
    """Mean time limit (s) of jobs that became eligible in the last 30 days; nan if none of them has one."""
    jobs = view.jobs
    known = (limit_s > 0).astype(np.int64)
    weight = np.where(known > 0, limit_s, 0).astype(np.int64)
    own = view.waiting & (jobs.eligible[view.own] >= view.at - MEMORY) if len(jobs) else view.waiting
    (total,), (count,) = (view.since("arrival", w, (MEMORY,)) for w in (weight, known))
    return ratio(total - view.of_own(weight, own), count - view.of_own(known, own))


def bursts(view: View) -> None:
    """Fill the burst_* columns."""
    jobs = view.jobs
    for name, shift in (("burst_10min", 600_000), ("burst_1h", HOUR)):
        if view.wants(name):
            own = view.waiting & (jobs.eligible[view.own] >= view.at - shift) if len(jobs) else view.waiting
            (found,) = view.since("arrival", jobs.tasks, (shift,))
            view.put(name, found - view.of_own(jobs.tasks, own))
