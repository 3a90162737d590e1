"""How users fare: time to a first success, early failures, ways back from failure, and how waits told came out.

Shown to administrators by experience and kind of job. A viewer who may not see all gets the whole cluster alone, and that only of
five users or more.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from queuecast.answers.experiences.answer import EXPERIENCE, FORMS, GPUS, Cell, Experience, Part, TimeTo, WaitErrors
from queuecast.answers.experiences.rows import Attempts, attempts_of, earlier_at, experience_place, gpu_place
from queuecast.answers.experiences.ways import (
    HIT,
    MISS,
    NONE,
    OPEN,
    Events,
    early_failures,
    first_successes,
    recoveries,
    retries,
    time_quantile,
)
from queuecast.answers.scoring import predictions_of
from queuecast.answers.track import wilson
from queuecast.answers.viewer import Viewer
from queuecast.errors import StoreError
from queuecast.features.history import Floats, Ints

if TYPE_CHECKING:
    from queuecast.store.lake import Lake
    from queuecast.store.predictions import Logged

REACH = timedelta(days=180)
"""So much before ``since`` counts as experience."""
LEAD = timedelta(days=2)
"""A name first seen sooner after the lake's own beginning may be older than the lake."""
FEW_USERS = 5

COLUMNS = (
    "job_id",
    "array_job_id",
    "array_tasks",
    "het_offset",
    "user",
    "name",
    "state",
    "submit",
    "start",
    "end",
    "exit_code",
    "exit_signal",
    "gpus_req",
    "submit_line",
    "observed_at",
)


def experience(lake: Lake, cluster: str, *, since: datetime, at: datetime, viewer: Viewer | None = None) -> Experience:
    """Of attempts between ``since`` and ``at``, as known at ``at``. Null where nothing can be said; never raises for odd rows."""
    viewer = viewer or Viewer()
    rows = lake.read("jobs", COLUMNS, cluster=cluster, since=since - REACH, until=at + timedelta(microseconds=1)).to_pylist()
    rows = [r for r in rows if r["submit"] <= at and not (r["het_offset"] or 0)]
    read_at = [r["observed_at"] for r in rows if r["observed_at"] is not None]
    known_until = min(at, max(read_at)) if read_at else None
    horizon = (known_until or at).timestamp()
    attempts = attempts_of(rows, _steps(lake, cluster, rows, since, at), horizon)
    begun = since.timestamp()
    first = float(attempts.submit[0]) if len(attempts) else horizon
    ways = {
        "first_success": first_successes(attempts, begun, horizon, first + LEAD.total_seconds()),
        "early_failure": early_failures(attempts, begun, horizon),
        "recovery": recoveries(attempts, begun, horizon),
        "resumed": retries(attempts, attempts.interrupted, begun, same=False),
        "repeated": retries(attempts, attempts.failed, begun, same=True),
    }
    report = _Report(attempts, ways, _Waits(_told(lake, cluster, since, at), attempts, at), begun)
    whole = report.cell(None, None, None)
    shown = viewer.sees_all or whole.users >= FEW_USERS
    return Experience(
        cluster=cluster,
        since=since,
        at=at,
        known_from=datetime.fromtimestamp(first, since.tzinfo) if len(attempts) else None,
        known_until=known_until,
        whole=whole if shown else None,
        cells=tuple(report.cells()) if viewer.sees_all else (),
        unnamed=int(((attempts.user < 0) & report.recent).sum()),
        limited=not viewer.sees_all,
    )


def _steps(lake: Lake, cluster: str, rows: list[dict[str, Any]], since: datetime, at: datetime) -> dict[tuple[int, float], str]:
    """Which jobs have an interactive or a batch step; read only where a submission's command line is not told."""
    if all(r["submit_line"] for r in rows):
        return {}
    table = lake.read("steps", ["job_id", "job_submit", "step"], cluster=cluster, since=since - REACH, until=at + timedelta(microseconds=1))
    return {(r["job_id"], r["job_submit"].timestamp()): r["step"] for r in table.to_pylist() if r["step"] in ("interactive", "batch")}


def _told(lake: Lake, cluster: str, since: datetime, at: datetime) -> list[Logged]:
    """Answers kept between the two; none where the log cannot be read."""
    try:
        log = predictions_of(lake)
        return [p for p in (*log.scored(cluster), *log.unscored(cluster)) if since <= p.at <= at]
    except StoreError:
        return []


class _Waits:
    """The answers kept, with the group of each."""

    def __init__(self, told: list[Logged], attempts: Attempts, at: datetime) -> None:
        rows = [attempts.keys.get((p.job_id, int(p.job_submit.timestamp())), -1) if p.job_id and p.job_submit else -1 for p in told]
        self.experience = _ints(experience_place(earlier_at(attempts, p.user, p.at.timestamp())) for p in told)
        self.gpus = _ints(gpu_place(_number(p.answer.get("request", {}).get("gpus"))) for p in told)
        self.form = _ints(int(attempts.form[r]) if r >= 0 else len(FORMS) - 1 for r in rows)
        by_then = [p.outcome is not None and (p.wait_s is None or p.at + timedelta(seconds=p.wait_s) <= at) for p in told]
        self.mark = _ints(
            OPEN if not done else HIT if p.outcome == "started" and p.wait_s is not None else NONE
            for p, done in zip(told, by_then, strict=True)
        )
        self.error = np.array([_error(p) for p in told], float)
        self.held = np.array([_held(p) for p in told], float)

    def cell(self, groups: tuple[int | None, ...]) -> WaitErrors:
        """Of one group."""
        keep = np.ones(len(self.mark), bool)
        for place, values in zip(groups, (self.experience, self.gpus, self.form), strict=True):
            if place is not None:
                keep &= values == place
        done = keep & (self.mark == HIT)
        ordered = np.sort(self.error[done])
        middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2 if len(ordered) else np.nan
        held = self.held[done & ~np.isnan(self.held)]
        return WaitErrors(
            scored=int(done.sum()),
            median_abs_s=float(middle) if np.isfinite(middle) else None,
            held_80=float(held.mean()) if len(held) else None,
            open=int((keep & (self.mark == OPEN)).sum()),
            unknown=int((keep & (self.mark == NONE)).sum()),
        )


def _ints(values: Any) -> Ints:
    return np.array(list(values), np.int64)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _error(p: Logged) -> float:
    """A median without end is infinitely far off."""
    told = _number(p.answer.get("median_wait_s"))
    return np.inf if told is None else abs(told - (p.wait_s or 0.0))


def _held(p: Logged) -> float:
    """1, 0 or nan."""
    wait = p.wait_s or 0.0
    for interval in p.answer.get("intervals", ()):
        if interval.get("share") == 0.8:
            high = interval.get("high_s")
            return float(interval["low_s"] <= wait + 0.5 and (high is None or wait <= high + 0.5))
    return np.nan


class _Report:
    """Cells over the same events."""

    def __init__(self, attempts: Attempts, ways: dict[str, Events], waits: _Waits, since: float) -> None:
        self._attempts, self._ways, self._waits = attempts, ways, waits
        times = (attempts.submit, attempts.start, attempts.end)
        self.recent = np.any([t >= since for t in times], axis=0) if len(attempts) else np.zeros(0, bool)

    def cell(self, experience: int | None, gpus: int | None, form: int | None) -> Cell:
        """Of one group; None takes all."""
        groups = (experience, gpus, form)
        a = self._attempts
        inside = np.ones(len(a), bool)
        for place, values in zip(groups, (a.experience, a.gpus, a.form), strict=True):
            if place is not None:
                inside &= values == place
        mine = inside & self.recent
        way = {name: e.of(inside[e.row]) for name, e in self._ways.items()}
        return Cell(
            experience=None if experience is None else EXPERIENCE[experience],
            gpus=None if gpus is None else GPUS[gpus],
            form=None if form is None else FORMS[form],
            attempts=int(mine.sum()),
            users=len(set(a.user[mine].tolist()) - {-1}),
            first_success=time_to(way["first_success"]),
            early_failure=part(way["early_failure"].mark),
            recovery=time_to(way["recovery"]),
            resumed=part(way["resumed"].mark),
            repeated=part(way["repeated"].mark),
            waits=self._waits.cell(groups),
        )

    def cells(self) -> list[Cell]:
        """Those with anything in them."""
        wanted: list[tuple[int | None, int | None, int | None]] = [(i, None, None) for i in range(len(EXPERIENCE))]
        wanted += [(None, i, None) for i in range(len(GPUS))] + [(None, None, i) for i in range(len(FORMS))]
        wanted += [(i, j, None) for i in range(len(EXPERIENCE)) for j in range(len(GPUS))]
        found = [self.cell(*groups) for groups in wanted]
        return [c for c in found if c.attempts or c.waits.scored or c.waits.open or c.waits.unknown]


def time_to(events: Events) -> TimeTo:
    """Quartiles with censoring."""
    known = events.mark != OPEN
    times: Floats = events.value[known]
    seen = events.mark[known] == HIT
    quarter, half, most = (time_quantile(times, seen, share) for share in (0.25, 0.5, 0.75))
    return TimeTo(len(times), int(seen.sum()), quarter, half, most, int((~known).sum()))


def part(marks: Ints) -> Part:
    """A share of what is decided."""
    hits, misses, open_, none = (int((marks == m).sum()) for m in (HIT, MISS, OPEN, NONE))
    counted = hits + misses
    low, high = wilson(hits, counted) if counted else (None, None)
    return Part(counted, hits, hits / counted if counted else None, low, high, open_, none)
