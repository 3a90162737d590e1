"""Collecting round by round, and the walk through older history: what is asked, what is kept when it breaks."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from ingest_support import sacct_text

from queuecast.collect.cycle import backfill, collect_once
from queuecast.collect.source import Capture, SourceFailure
from queuecast.errors import LakeLocked, SlurmDown
from queuecast.store.lake import Lake
from queuecast.store.lock import writer_lock

T0 = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)


@dataclass
class FakeSlurm:
    """One job a day, submitted at noon; ``down`` says from which window on the database is away."""

    clusters: tuple[str, ...] = ()
    asked: list[datetime] = field(default_factory=list)
    down: list[datetime] = field(default_factory=list)
    sleep: Callable[[float], None] = lambda seconds: None

    def capabilities(self) -> SimpleNamespace:
        return SimpleNamespace(cluster="campus")

    def _sacct(self, start: datetime, end: datetime) -> Capture:
        noons = [T0 + DAY * n + timedelta(hours=12) for n in range(60)]
        rows = [{"JobID": str(n), "JobIDRaw": str(n), "Submit": f"{t:%Y-%m-%dT%H:%M:%S}", "Eligible": f"{t:%Y-%m-%dT%H:%M:%S}",
                 "Start": f"{t + timedelta(hours=1):%Y-%m-%dT%H:%M:%S}", "End": f"{t + timedelta(hours=3):%Y-%m-%dT%H:%M:%S}"}
                for n, t in enumerate(noons, 1) if start - DAY <= t < end]  # windows overlap, as Slurm's do
        data = sacct_text(*rows).encode()
        return Capture("sacct", T0 + 90 * DAY, "campus", "UTC", ("sacct",), "24.11.5", lambda: io.BytesIO(data))

    def history(self, start: datetime, end: datetime, step: timedelta, pause_s: float) -> Iterator[Capture | SourceFailure]:
        self.asked.append(start)
        if self.down and start >= self.down[0]:
            yield SourceFailure("sacct", "campus", ("sacct",), SlurmDown("slurmdbd does not answer"), end)
        else:
            yield self._sacct(start, end)

    def captures(self, since: datetime | None = None) -> Iterator[Capture | SourceFailure]:
        self.asked.append(since or T0)
        now = T0 + 40 * DAY
        queue = b"JOBID\x1fSTATE\x1fPARTITION\x1fREASON\x1fSUBMIT_TIME\n7\x1fPENDING\x1fgpu\x1fPriority\x1f2026-03-07T12:00:00\n"
        yield Capture("squeue", now, "campus", "UTC", ("squeue",), "24.11.5", lambda: io.BytesIO(queue))
        if self.down:
            yield SourceFailure("sacct", "campus", ("sacct",), SlurmDown("slurmdbd does not answer"), now)
        else:
            yield self._sacct(since or T0, now)


def submitted(lake: Lake) -> list[int]:
    return sorted(lake.refresh().read("jobs", ["job_id"])["job_id"].to_pylist())


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.open(tmp_path / "lake", create=True)


def walk(slurm: FakeSlurm, lake: Lake, since: datetime = T0, days: int = 28, **more: object) -> object:
    return backfill(slurm, lake, since, T0 + days * DAY, window=7 * DAY, **more)  # type: ignore[arg-type]  # a stand-in


def test_every_window_is_stored_and_none_twice(lake: Lake) -> None:
    slurm, done = FakeSlurm(), []
    walk(slurm, lake, progress=lambda cluster, until, jobs: done.append((cluster, until)))
    assert slurm.asked == [T0 + 7 * n * DAY for n in range(4)]
    assert done == [("campus", T0 + 7 * n * DAY) for n in range(1, 5)]
    assert submitted(lake) == list(range(1, 29))


def test_interrupted_it_keeps_what_came_and_goes_on_there(lake: Lake) -> None:
    slurm = FakeSlurm(down=[T0 + 14 * DAY])
    summary = walk(slurm, lake)
    assert [f.kind for f in summary.failures] == ["sacct"]  # type: ignore[attr-defined]
    assert submitted(lake) == list(range(1, 15))
    slurm.down.clear()
    slurm.asked.clear()
    walk(slurm, lake)
    assert slurm.asked == [T0 + 14 * DAY, T0 + 21 * DAY]
    assert submitted(lake) == list(range(1, 29))
    slurm.asked.clear()
    walk(slurm, lake)
    assert slurm.asked == [], "all of it was read"


def test_an_earlier_beginning_or_again_reads_from_there(lake: Lake) -> None:
    slurm = FakeSlurm()
    walk(slurm, lake, since=T0 + 14 * DAY)
    slurm.asked.clear()
    walk(slurm, lake, since=T0 + 7 * DAY)
    assert slurm.asked[0] == T0 + 7 * DAY
    slurm.asked.clear()
    walk(slurm, lake, since=T0 + 7 * DAY, again=True)
    assert len(slurm.asked) == 3


def test_collecting_asks_from_the_last_success_on(lake: Lake) -> None:
    slurm = FakeSlurm()
    collect_once(slurm, lake)  # type: ignore[arg-type]  # a stand-in
    collect_once(slurm, lake.refresh())  # type: ignore[arg-type]
    assert slurm.asked == [T0, T0 + 40 * DAY]


def test_a_failed_sacct_leaves_no_gap_and_the_queue_is_kept(lake: Lake) -> None:
    slurm = FakeSlurm(down=[T0])
    summary = collect_once(slurm, lake)  # type: ignore[arg-type]
    assert [f.kind for f in summary.failures] == ["sacct"]
    assert lake.refresh().read("queue").num_rows == 1
    slurm.down.clear()
    collect_once(slurm, lake)  # type: ignore[arg-type]
    assert slurm.asked == [T0, T0], "accounting was never read: it is asked from the beginning again"


def test_two_collectors_do_not_meet(lake: Lake) -> None:
    with writer_lock(lake.path / ".lock", "collect"), pytest.raises(LakeLocked, match="another queuecast writes to this lake: collect"):
        collect_once(FakeSlurm(), lake)  # type: ignore[arg-type]
    assert submitted(lake) == []
