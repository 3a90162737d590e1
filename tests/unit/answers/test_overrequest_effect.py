"""The effect on the queue: the same replay both ways, nothing later than the moment, and only what the proposals change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from tests.unit.answers.made_uses import GIB, PLAIN, FakeSizes, cluster, use, uses
from tests.unit.twin.test_scheduler import frame, node

from queuecast.answers.rightsizing.overrequest_effect import effect, known_at
from queuecast.answers.rightsizing.overrequest_effect_answer import Effect
from queuecast.answers.rightsizing.rightsize import Judged, judged
from queuecast.policy.request import Request
from queuecast.render.overrequest import effect_lines
from queuecast.twin.replay import Recording
from queuecast.twin.work import Work

BEGIN = datetime(2026, 6, 1, tzinfo=UTC)
T0 = BEGIN.timestamp()
DAY = 86400.0
COUNT = 12


def recorded(**more: Any) -> Recording:
    """Jobs of an hour, one every ten minutes, each asking for all 8 CPUs of the only node."""
    works, attempts = [], []
    for n in range(1, COUNT + 1):
        submit = T0 + 600.0 * n
        start = T0 + 3600.0 * n
        values: dict[str, Any] = {"run": 3600.0, "limit": 7200.0, "cpus": 8, "gpus": 0, "qos": "normal", "user": "u"}
        works.append(Work(id=n, submit=submit, partitions=("batch",), **(values | more)))
        attempts.append(((submit, submit, start, start + 3600.0, "COMPLETED"),))
    started = np.array([a[0][2] for a in attempts])
    none = np.zeros(COUNT, np.int64)
    return Recording(frame(node("a", cpus=8)), tuple(works), started, none, tuple(attempts), (("a",),) * COUNT, works[0].submit, T0 + DAY)


def found(**given: Any) -> Judged:
    """They used one CPU of their eight."""
    row: dict[str, Any] = {
        "partition": "batch", "cpus_alloc": 8.0, "cpu_s": 3600.0, "hours": 1.0, "gpus_alloc": 0.0, "gpu_type": None, "gpus_seen": None,
        "gpus_used": None, "gpu_util_mean": None, "limit_s": 7200.0, "user": "u",
    }  # fmt: skip
    table = uses([use(n, after=float(n), **(row | given)) for n in range(1, COUNT + 1)], since=BEGIN, at=BEGIN + timedelta(days=1))
    return judged(table, FakeSizes(table, bounds={"memory": None, "time": None}), cluster(), PLAIN)


@pytest.fixture(scope="module")
def told() -> Effect:
    steps: list[tuple[int, int]] = []
    answer = effect(
        None,  # type: ignore[arg-type]  # no lake is read
        "c",
        found(),
        since=BEGIN,
        at=BEGIN + timedelta(days=1),
        recorded=recorded(),
        progress=lambda a, b: steps.append((a, b)),
    )
    assert steps[-1] == (6, 6)
    return answer


def test_smaller_requests_start_sooner_in_the_replay(told: Effect) -> None:
    assert (told.kinds, told.fixed, told.replays) == (1, COUNT, 3)
    everyone = told.moved[0]
    assert everyone.jobs == COUNT
    assert everyone.before_s is not None
    assert everyone.after_s is not None
    assert everyone.before_s > 3600
    assert everyone.after_s < 120  # eight of them fit side by side
    assert everyone.mean_sooner_s is not None
    assert everyone.low_s is not None
    assert everyone.high_s is not None
    assert 3600 < everyone.low_s <= everyone.mean_sooner_s <= everyone.high_s
    assert {m.name for m in told.moved} == {"all jobs", "changed jobs", "batch"}
    assert told.occupied_before is None  # no GPUs
    assert told.busy_before is None


def test_the_text_tells_how_far_it_can_be_trusted(told: Effect) -> None:
    text = "\n".join(effect_lines(told, "UTC", 100))
    assert "on average" in text
    assert "sooner" in text
    assert "recorded" in text
    assert "Not modelled" in text
    assert told.as_json()["fidelity"]["median_wait_recorded_s"] is not None


def test_nothing_changed_gains_exactly_nothing() -> None:
    answer = effect(None, "c", found(cpu_s=8 * 3600.0), since=BEGIN, at=BEGIN + timedelta(days=1), recorded=recorded())  # type: ignore[arg-type]
    assert (answer.kinds, answer.fixed) == (0, 0)
    assert all(m.mean_sooner_s == m.low_s == m.high_s == 0 for m in answer.moved)


def test_nothing_later_than_the_moment_is_used() -> None:
    at = BEGIN + timedelta(hours=1, minutes=30)
    rec = known_at(recorded(), BEGIN, at)
    assert all(w.submit <= at.timestamp() for w in rec.works)
    assert all(w.run == w.limit for w in rec.works)  # none has ended by then
    assert np.isfinite(rec.started).sum() == 1
    empty = effect(None, "c", found(), since=BEGIN - timedelta(days=9), at=BEGIN - timedelta(days=8), recorded=recorded())  # type: ignore[arg-type]
    assert empty.moved == ()
    assert "nothing is replayed" in " ".join(empty.notes)


def test_a_replay_far_from_the_record_is_doubted() -> None:
    rec = recorded()
    late = Recording(**{**vars(rec), "started": rec.started + 20 * 3600.0})
    answer = effect(None, "c", found(), since=BEGIN, at=BEGIN + timedelta(days=2), recorded=late)  # type: ignore[arg-type]
    assert answer.doubtful
    assert "as a direction" in answer.notes[0]


def test_only_what_the_proposal_changes_is_changed() -> None:
    from queuecast.answers.rightsizing.overrequest_effect import _changed

    work = Work(id=1, submit=0.0, partitions=("a", "b"), run=5000.0, limit=9000.0, cpus=7, mem_mib=100.0, gpus=2, gpu_type=None)
    old = Request(partitions=("a",), gpus=2, gpu_type="a100", cpus=8, mem_bytes=GIB, limit_s=9000)
    assert _changed(work, old, old) == work
    new = _changed(work, old, Request(partitions=("a",), gpus=0, gpu_type=None, cpus=4, mem_bytes=2 * GIB, limit_s=3600))
    assert (new.partitions, new.cpus, new.mem_mib, new.gpus, new.gpu_type) == (("a", "b"), 4, 2048.0, 0, None)
    assert (new.limit, new.run) == (3600.0, 3600.0)
