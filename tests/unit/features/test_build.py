"""Cases from a history: when they are asked, what came of them, which jobs are chosen; and what a history keeps."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.features.made_history import DAY, HOUR, left_queue, pending_at, rich
from tests.unit.synthetic import NOW, job_rows, table
from tests.unit.synthetic import T0 as TOY

from queuecast.features.build import build_cases
from queuecast.features.history import CPU_EDGES, GPU_EDGES, History, from_rows, limit_class, size_class
from queuecast.features.instant import Instant
from queuecast.features.situation import batch
from queuecast.features.situation_names import COLUMN


@pytest.fixture(scope="module")
def toy() -> History:
    return from_rows(table("jobs", job_rows(800)), "toy", TOY, NOW)


def test_cases_at_submission_and_while_pending(toy: History) -> None:
    until = NOW.timestamp() - 5 * DAY
    instants = TOY.timestamp() + np.arange(1, 20) * DAY + 7 * HOUR
    cases = build_cases(toy, until, pending_instants=instants, per_instant=4)
    assert (np.diff(cases.asked) >= 0).all()
    assert cases.asked.max() <= until
    at_submit = cases.groups["waited"] == 0
    assert np.count_nonzero(at_submit) == np.count_nonzero(toy.eligible <= until)
    later = cases.take(~at_submit)
    assert np.unique(later.asked, return_counts=True)[1].max() == 4
    assert (later.eligible < later.asked).all()
    assert (np.minimum(later.start, later.last_pending) > later.asked).all()
    assert np.array_equal(later.values[:, COLUMN["waited_s"]], np.float32(later.asked - later.eligible))
    assert set(cases.groups) == {"partition", "account", "user", "size", "gpu", "gpu_type", "qos", "waited"}
    waits, started = cases.outcomes(until)
    assert np.count_nonzero(~started) > 0
    assert np.array_equal(waits[started], np.maximum(0, cases.start - cases.asked)[started])
    again = build_cases(toy, until, pending_instants=instants, per_instant=4)
    assert np.array_equal(again.values, cases.values, equal_nan=True)


def test_cases_from_a_moment_on_and_of_nothing(toy: History) -> None:
    since = TOY.timestamp() + 10 * DAY
    cases = build_cases(toy, NOW.timestamp(), submit_since=since)
    assert cases.asked.min() >= since
    whole = build_cases(toy, NOW.timestamp())
    assert np.array_equal(cases.values, whole.values[whole.asked >= since], equal_nan=True)
    nothing = build_cases(from_rows(table("jobs", job_rows(3)).slice(0, 0), "toy", TOY, NOW), NOW.timestamp())
    assert len(nothing) == 0
    assert nothing.values.shape == (0, len(nothing.features))


def test_jobs_last_seen_before_are_not_asked_about() -> None:
    history = rich(300)
    lost = int(np.argmax(np.isinf(history.start)))
    history.end[lost], history.seen[lost] = np.inf, history.eligible[lost] + DAY
    instants = history.eligible[lost] + np.array([0.5, 2.0]) * DAY
    cases = build_cases(history, np.inf, pending_instants=instants, per_instant=1000)
    asked = cases.asked[(cases.eligible == history.eligible[lost]) & (cases.groups["waited"] > 0)]
    assert asked.tolist() == instants[:1].tolist()


def test_the_work_ahead_of_pending_jobs_grows_along_the_queue() -> None:
    history = rich()
    at = float(history.eligible[900]) + 0.5
    asking = pending_at(history, at)
    values = batch(history, asking)
    ahead = values[:, COLUMN["cluster_ahead_jobs"]]
    assert ahead[0] == 0
    assert np.array_equal(ahead, np.r_[0, np.cumsum(history.tasks[asking.row])[:-1]])
    everyone = history.tasks[asking.row].sum()
    assert np.array_equal(values[:, COLUMN["cluster_pending_jobs"]], everyone - history.tasks[asking.row])
    assert (left_queue(history)[asking.row] >= at).all()


def test_live_and_past_agree_on_the_toy_cluster(toy: History) -> None:
    at = float(toy.eligible[500])
    asking = pending_at(toy, at)
    assert np.allclose(Instant(toy, at).features(asking), batch(toy, asking), rtol=1e-5, atol=1e-5, equal_nan=True)


def test_history_keeps_submit_tasks_nodes_and_memory() -> None:
    rows = job_rows(5)
    rows[1] |= {"array_tasks": 30, "submit": TOY, "mem_req_bytes": 2_000_000_000, "nodes_req": None}
    history = from_rows(table("jobs", rows), "toy", TOY, NOW)
    i = history.job_id.tolist().index(1001)
    assert (history.tasks[i], history.submit[i], history.mem[i]) == (30, TOY.timestamp(), 2e9)
    assert np.isnan(history.nodes[i])
    assert np.isnan(history.mem[i - 1])


def test_classes_of_size_and_limit() -> None:
    gpus, cpus = np.array([np.nan, 0, 0.5, *GPU_EDGES, 1000]), np.array([np.nan, 0, *CPU_EDGES, 9999])
    some = np.nan_to_num(gpus) > 0
    expected = np.where(some, 10 + np.digitize(np.nan_to_num(gpus), GPU_EDGES), 0)
    assert size_class(gpus, np.zeros(len(gpus))).tolist() == expected.tolist()
    assert size_class(np.zeros(len(cpus)), cpus).tolist() == np.digitize(np.nan_to_num(cpus), CPU_EDGES).tolist()
    assert limit_class(np.array([60.0, 600, 601, 3600, 86400, 1e9, np.nan])).tolist() == [0, 0, 1, 1, 4, 6, 6]
