"""Cases to train and to test on: every job when it became eligible, and jobs pending at chosen instants."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from queuecast.features.asking import Asking
from queuecast.features.cases import Cases
from queuecast.features.history import Floats, History, Ints
from queuecast.features.situation import FEATURES, batch

WAITED_EDGES_S = (1e-3, 3600.0, 6 * 3600.0, 86400.0, 3 * 86400.0)
"""Time waited so far, in bins: 0, up to 1 h, 6 h, 1 day, 3 days, more."""


def build_cases(
    history: History,
    until: float,
    *,
    submit_since: float | None = None,
    pending_instants: Floats | None = None,
    per_instant: int = 200,
    threads: int = 2,
) -> Cases:
    """Cases asked in [.., until] (epoch seconds, UTC), sorted by ``asked``.

    Every job that became eligible from ``submit_since`` on is asked about at that moment. At each of
    ``pending_instants`` jobs pending then are asked about: all, or ``per_instant`` of them, chosen by a hash of job
    number and instant, so the same every time. Not among them are jobs last seen before the instant.
    """
    row, at = moments(history, until, submit_since=submit_since, pending_instants=pending_instants, per_instant=per_instant)
    return cases_at(history, row, at, threads=threads)


def moments(
    history: History, until: float, *, submit_since: float | None = None, pending_instants: Floats | None = None, per_instant: int = 200
) -> tuple[Ints, Floats]:
    """Rows of the history and the moments at which ``build_cases`` asks about them."""
    rows = np.flatnonzero((history.eligible <= until) & (history.eligible >= (-np.inf if submit_since is None else submit_since)))
    parts, asked = [rows], [history.eligible[rows]]
    ends = np.where(np.isfinite(history.end), history.end, history.seen)
    last_pending = np.maximum(np.where(np.isfinite(history.start), history.start, ends), history.eligible)
    reach = np.maximum.accumulate(last_pending) if len(history) else last_pending
    for instant in np.asarray([] if pending_instants is None else pending_instants, np.float64):
        if instant > until:
            continue
        low, high = np.searchsorted(reach, instant, side="right"), np.searchsorted(history.eligible, instant, side="left")
        found = low + np.flatnonzero(last_pending[low:high] > instant)
        parts.append(_some(history.job_id, found, float(instant), per_instant))
        asked.append(np.full(len(parts[-1]), instant))
    row, at = np.concatenate(parts), np.concatenate(asked)
    by = np.argsort(at, kind="stable")
    row, at = row[by], at[by]
    return row, at


def cases_at(history: History, row: Ints, at: Floats, *, threads: int = 1) -> Cases:
    """Cases of jobs of the history (row numbers) at given moments, sorted by them. Raises ``ValueError`` as ``batch``."""
    values = batch(history, Asking.of_rows(history, row, at), threads=threads)
    return replace(_unvalued(history, row, at), features=FEATURES, values=values)


def submit_cases(history: History) -> Cases:
    """Every job of the history when it became eligible, without features."""
    return _unvalued(history, np.arange(len(history)), history.eligible)


def _unvalued(history: History, row: Ints, at: Floats) -> Cases:
    ends = np.where(np.isfinite(history.end), history.end, history.seen)
    last_pending = np.maximum(np.where(np.isfinite(history.start), history.start, ends), history.eligible)
    groups = {name: history.column(name)[row] for name in ("partition", "account", "user", "size", "gpu", "gpu_type", "qos")}
    groups["waited"] = np.digitize(at - history.eligible[row], WAITED_EDGES_S).astype(np.int64)
    return Cases(at, history.eligible[row], history.start[row], last_pending[row], (), np.zeros((len(row), 0), np.float32), groups)


def _some(job_id: Ints, rows: Ints, instant: float, most: int) -> Ints:
    """At most so many of the rows, in their order."""
    if len(rows) <= most:
        return rows
    mixed = mixed_bits(job_id[rows].astype(np.uint64) ^ mixed_bits(np.array([int(instant)], np.uint64)))
    return rows[np.sort(np.argpartition(mixed, most)[:most])]


def mixed_bits(x: np.ndarray[tuple[int], np.dtype[np.uint64]]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Well mixed bits (the finaliser of SplitMix64: Steele, Lea, Flood 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
