"""Small invented histories for the features of the queue's state: drawn ones with many ties and odd rows, and one that
is rich enough to show every feature."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from queuecast.features.asking import Asking
from queuecast.features.history import TEXTS, History

T0 = 1_780_000_000.0
HOUR, DAY = 3600.0, 86400.0

_seconds = st.sampled_from([0.0, 0.0, 1.0, 59.0, 600.0, 1800.5, HOUR, 7 * HOUR, DAY, 3 * DAY, 12 * DAY, 30 * DAY, 31 * DAY])
_job = st.tuples(
    st.sampled_from([0.0, 0.0, 0.0, 1.0, 60.0, 600.0, HOUR, 5 * HOUR, 2 * DAY, 9 * DAY, 31 * DAY]),  # after the one before
    _seconds,  # wait
    _seconds,  # run
    st.sampled_from(["ended", "ended", "ended", "running", "pending", "cancelled", "early", "backwards"]),
    st.integers(0, 1),  # partition
    st.integers(0, 2),  # account
    st.integers(0, 2),  # user
    st.integers(0, 1),  # GPU type
    st.sampled_from([0.0, 0.0, 1.0, 4.0, np.nan]),  # GPUs
    st.sampled_from([1.0, 2.0, 48.0, np.nan]),  # CPUs
    st.sampled_from([60.0, HOUR, DAY, 40 * DAY, np.nan]),  # limit
    st.sampled_from([1.0, 1.0, 1.0, 7.0]),  # tasks
)


@st.composite
def histories(draw: st.DrawFn, most: int = 24) -> History:
    """Up to ``most`` jobs within days or months."""
    jobs = draw(st.lists(_job, max_size=most))
    gap, wait, run, fate, *rest = zip(*jobs, strict=True) if jobs else [()] * 12
    eligible = T0 + np.cumsum(np.array(gap, np.float64))
    start, end = np.full(len(jobs), np.inf), np.full(len(jobs), np.inf)
    for i, kind in enumerate(fate):
        if kind not in ("pending", "cancelled"):
            start[i] = eligible[i] + wait[i] if kind != "early" else eligible[i] - 5
        if kind != "pending" and kind != "running":
            end[i] = eligible[i] + wait[i] + run[i] if kind != "backwards" else start[i] - 5
    partition, account, user, gpu_type, gpus, cpus, limit, tasks = rest
    named = {"partition": partition, "account": account, "user": user, "gpu_type": gpu_type, "qos": account}
    codes = {text: np.array(numbers, np.int64) for text, numbers in named.items()}
    numbers = (np.array(x, np.float64) for x in (gpus, cpus, limit))
    return _history(codes, *numbers, eligible, start, end, np.array(tasks, np.float64))


def _history(codes: dict[str, Any], gpus: Any, cpus: Any, limit: Any, eligible: Any, start: Any, end: Any, tasks: Any) -> History:
    count = len(eligible)
    words = {text: [f"{text}{i}" for i in range(12)] for text in TEXTS}
    job_id = np.arange(count, dtype=np.int64) + 100
    seen, nodes, mem = np.full(count, T0 + 900 * DAY), np.ones(count), np.full(count, 4e9)
    return History("made", job_id, codes, words, gpus, cpus, limit, eligible, start, end, seen, eligible - 30, tasks, nodes, mem)


def rich(count: int = 1500, days: float = 45.0, seed: int = 3) -> History:
    """A queue that fills up and drains, with users, accounts and kinds of jobs that differ."""
    rng = np.random.default_rng(seed)
    eligible = np.sort(np.floor(T0 + rng.uniform(0, days * DAY, count)))
    user = rng.integers(0, 12, count)
    partition = (user + rng.integers(0, 2, count)) % 3
    gpus = np.where(partition == 0, 0.0, rng.choice([1.0, 2.0, 4.0, 8.0], count))
    limit = rng.choice([HOUR, 4 * HOUR, DAY, 2 * DAY, np.nan], count)
    start = eligible + np.floor(np.where(rng.random(count) < 0.3, 0, rng.lognormal(11.0, 1.5, count)))
    end = start + np.floor(np.minimum(rng.lognormal(9.5, 1.5, count), np.nan_to_num(limit, nan=3 * DAY)))
    cancelled = rng.random(count) < 0.1
    start, end = np.where(cancelled, np.inf, start), np.where(cancelled, start, end)
    codes = {"partition": partition, "account": user // 3, "user": user, "gpu_type": np.where(gpus > 0, partition, 0), "qos": user % 2}
    cpus, tasks = rng.choice([1.0, 4.0, 16.0, 64.0], count), np.where(rng.random(count) < 0.05, 9.0, 1.0)
    return _history(codes, gpus, cpus, limit, eligible, start, end, tasks)


def cut(history: History, at: float) -> History:
    """The history as it was known at ``at``: nothing that came later is in it."""
    keep = history.eligible <= at
    arrays = {f.name: getattr(history, f.name)[keep] for f in fields(History) if isinstance(getattr(history, f.name), np.ndarray)}
    arrays["start"] = np.where(arrays["start"] > at, np.inf, arrays["start"])
    arrays["end"] = np.where(arrays["end"] > at, np.inf, arrays["end"])
    return replace(history, **arrays, codes={text: codes[keep] for text, codes in history.codes.items()}, _groups={})


def left_queue(history: History) -> Any:
    """When each job left the queue, as the features see it."""
    started = np.isfinite(history.start)
    return np.maximum(np.where(started, history.start, history.end), history.eligible)


def pending_at(history: History, at: float) -> Asking:
    """All jobs pending at a moment."""
    rows = np.flatnonzero((history.eligible <= at) & (left_queue(history) >= at))
    return Asking.of_rows(history, rows, np.full(len(rows), at))


def at_submit(history: History) -> Asking:
    """All jobs, when they became eligible."""
    return Asking.of_rows(history, np.arange(len(history)), history.eligible)


def new_requests(history: History, at: float, count: int = 4) -> Asking:
    """Requests like jobs of the history and unlike any; not submitted yet."""
    rows = np.arange(count) * 7 % max(1, len(history))
    some = Asking.of_rows(history, rows, np.full(count, at)) if len(history) else None

    def pick(values: Any, otherwise: float) -> Any:
        return np.full(count, otherwise) if some is None else values(some)

    codes = {text: pick(lambda s, text=text: s.codes[text], 0).astype(np.int64) for text in TEXTS}
    codes["user"][0], codes["partition"][-1], codes["gpu_type"][-1] = -1, -1, -1
    gpus, cpus, limit = pick(lambda s: s.gpus, 0.0), pick(lambda s: s.cpus, 2.0), pick(lambda s: s.limit_s, HOUR)
    now = np.full(count, at)
    return Asking(now, now, np.full(count, np.nan), codes, gpus, cpus, limit, np.full(count, -1))
