"""What happened before: how long jobs ran against their limits, and what was submitted when. The futures are drawn from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queuecast.store.files import floats, instant
from queuecast.twin.arrays import Floats, Ints
from queuecast.twin.cluster import MIB
from queuecast.twin.work import FOREVER, Work, throttle_of

if TYPE_CHECKING:
    from queuecast.store.lake import Lake

WINDOW = timedelta(days=28)
ENOUGH = 20
"""Ended jobs of a group before its run times are believed."""
MOST = 60_000
"""At most so many of the latest past jobs."""
HOUR = 3600.0

Key = tuple[str, str, str]
_TEXTS = ("user", "account", "partition", "qos", "gpu_type_req")
_COLUMNS = (
    "job_id", "array_job_id", "array_tasks", "array_throttle", "submit_line", *_TEXTS, "state", "submit", "start", "end", "elapsed_s",
    "limit_s", "nodes_req", "cpus_req", "mem_req_bytes", "gpus_req",
)  # fmt: skip


@dataclass(frozen=True)
class Past:
    """``works`` are past submissions in their order, ``run`` nan where the end was not seen by then.

    ``shares``: sorted run time / limit of ended jobs by (partition, account, user), and coarser with empty names.
    ``since``: from when on submissions are known (seconds since 1970 UTC), ``until`` the moment.
    """

    works: tuple[Work, ...]
    shares: dict[Key, Floats]
    since: float
    until: float

    @cached_property
    def times(self) -> Floats:
        """When the works were submitted."""
        return np.array([w.submit for w in self.works], np.float64)

    def share(self, work: Work) -> Floats:
        """Run time / limit of the finest group with enough ended jobs; 0.05 to 1 evenly where nothing is known."""
        part, account, user = (work.partitions or ("",))[0].casefold(), work.account or "", work.user or ""
        for key in ((part, account, user), (part, "", user), (part, account, ""), (part, "", ""), ("", "", "")):
            found = self.shares.get(key)
            if found is not None and (len(found) >= ENOUGH or key == ("", "", "")):
                return found
        return np.linspace(0.05, 1.0, 20)

    def draw_runs(self, works: Sequence[Work], now: float, futures: int, rng: np.random.Generator) -> Floats:
        """Run times in seconds [job, future]: the share of the limit of like jobs, given what has elapsed already."""
        out = np.empty((len(works), futures))
        for i, w in enumerate(works):
            share = self.share(w)
            elapsed = max(0.0, now - w.began) if np.isfinite(w.began) else 0.0
            used = min(1.0, elapsed / w.limit)
            low = int(np.searchsorted(share, used, side="right"))
            u = rng.random(futures)
            if low < len(share):
                picked = share[low + np.minimum((u * (len(share) - low)).astype(np.int64), len(share) - low - 1)]
            else:  # longer than any like job: up to the limit
                picked = used + u * (1.0 - used)
            out[i] = np.maximum(picked * w.limit, elapsed + 1.0)
        return out

    def draw_arrivals(self, begin: float, length: float, rng: np.random.Generator) -> tuple[Ints, Floats]:
        """Submissions of ``length`` seconds from ``begin``: for each hour those of a past hour at the same hour of the week.

        With less than a week of history: of the same hour of a day, working day or weekend alike where there is one.
        Returns places in ``works`` and their new times.
        """
        times = self.times
        if not len(times) or self.until - self.since < 2 * HOUR:
            return np.zeros(0, np.int64), np.zeros(0)
        first = np.ceil(self.since / HOUR)
        hours = np.arange(first, np.floor(self.until / HOUR))
        edges = np.searchsorted(times, np.r_[hours, hours[-1] + 1] * HOUR) if len(hours) else np.zeros(1, np.int64)
        rows, stamps = [], []
        for h in range(int(np.ceil(length / HOUR)) + 1):
            hour = np.floor(begin / HOUR) + h
            pool = self._like(hours.astype(np.float64), float(hour))
            if not len(pool):
                continue
            k = int(pool[int(rng.integers(len(pool)))])
            chosen = np.arange(edges[k], edges[k + 1])
            moved = times[chosen] + (hour - hours[k]) * HOUR
            ahead = (moved > begin) & (moved <= begin + length)
            rows.append(chosen[ahead])
            stamps.append(moved[ahead])
        if not rows:
            return np.zeros(0, np.int64), np.zeros(0)
        return np.concatenate(rows), np.concatenate(stamps)

    @staticmethod
    def _like(hours: Floats, hour: float) -> Ints:
        def weekend(h: Floats) -> Floats:
            return ((h // 24 + 3) % 7 >= 5).astype(np.float64)  # 1 January 1970 was a Thursday

        same = np.flatnonzero((hours - hour) % 168 == 0)
        if len(same) >= 3:
            return same
        day = np.flatnonzero((hours - hour) % 24 == 0)
        alike = day[weekend(hours[day]) == weekend(np.array([hour]))[0]]
        return alike if len(alike) else day if len(day) else np.arange(len(hours))


def past_at(lake: Lake, cluster: str, at: datetime) -> Past:
    """Submissions of the last four weeks before ``at`` and what was known of them then."""
    rows = lake.read("jobs", _COLUMNS, cluster=cluster, since=at - WINDOW, until=at)
    rows = rows.filter(pc.less_equal(rows["submit"], instant(at)))
    rows = rows.sort_by([("submit", "ascending"), ("job_id", "ascending")])
    rows = rows.slice(max(0, rows.num_rows - MOST))
    now = at.timestamp()
    submit, start, end = (floats(rows[c]) / 1e6 for c in ("submit", "start", "end"))
    known_end = np.nan_to_num(end, nan=np.inf) <= now
    number = {c: floats(rows[c]) for c in ("elapsed_s", "limit_s", "nodes_req", "cpus_req", "mem_req_bytes", "gpus_req", "array_tasks")}
    text = {c: rows[c].cast(pa.string()).to_pylist() for c in _TEXTS}
    ids, arrays, throttles, lines = (rows[c].to_pylist() for c in ("job_id", "array_job_id", "array_throttle", "submit_line"))
    run = np.where(known_end & ~np.isnan(start), end - start, np.nan)
    works: list[Work] = []
    groups: dict[Key, list[float]] = {}
    last: dict[int, int] = {}
    for i in range(rows.num_rows):
        limit = number["limit_s"][i] if number["limit_s"][i] > 0 else FOREVER
        user, account, part = text["user"][i], text["account"][i], text["partition"][i] or ""
        if np.isfinite(run[i]) and limit < FOREVER:
            names = part.split(",")[0].casefold(), account or "", user or ""
            for key in (names, (names[0], "", names[2]), (names[0], names[1], ""), (names[0], "", ""), ("", "", "")):
                groups.setdefault(key, []).append(float(np.clip(run[i] / limit, 1e-4, 1.05)))
        if known_end[i] and np.isnan(start[i]):
            continue  # cancelled while it waited: it held no nodes
        work = Work(
            id=ids[i],
            submit=float(submit[i]),
            partitions=tuple(p for p in part.split(",") if p),
            limit=float(limit),
            run=float(run[i]),
            nodes=int(np.nan_to_num(number["nodes_req"][i], nan=1.0)) or 1,
            cpus=float(np.nan_to_num(number["cpus_req"][i], nan=1.0)),
            mem_mib=float(np.nan_to_num(number["mem_req_bytes"][i])) / MIB,
            gpus=float(np.nan_to_num(number["gpus_req"][i])),
            gpu_type=text["gpu_type_req"][i],
            user=user,
            account=account,
            qos=text["qos"][i],
            array=arrays[i],
            throttle=throttle_of(throttles[i], arrays[i], lines[i]),
        )
        if ids[i] in last:  # requeued: one submission, the last attempt tells the run time
            works[last[ids[i]]].run = work.run
            continue
        for _ in range(min(2000, int(number["array_tasks"][i] or 1))):
            last[ids[i]] = len(works)
            works.append(work)
    since = float(submit[0]) if len(submit) else now
    return Past(tuple(works), {k: np.sort(np.array(v)) for k, v in groups.items()}, since, now)
