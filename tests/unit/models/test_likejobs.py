"""Like jobs: backing off, leaving out, never looking ahead; and intervals that hold on a steady queue."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest
from tests.unit.synthetic import NOW, T0, job_rows, known_at, table

from queuecast.features.history import History, from_rows
from queuecast.models.backtest import calibrate, key_of, run_trials
from queuecast.models.calibration import CalibratedWait
from queuecast.models.likejobs import Key, find_like

HERE = NOW.timestamp()


@pytest.fixture(scope="module")
def history() -> History:
    return from_rows(table("jobs", job_rows()), "toy", T0, NOW)


def test_like_jobs_are_alike_and_the_job_itself_is_not_among_them(history: History) -> None:
    key = Key(("gpu",), "normal", "vision", "a100", 4.0, 8.0, 3600.0)
    like = find_like(history, key, HERE)
    assert like is not None
    assert like.dims == ("partition", "qos", "account", "gpu_type", "size")
    assert {history.words["gpu_type"][c] for c in history.codes["gpu_type"][like.rows]} == {"a100"}
    row = int(like.rows[0])
    again = find_like(history, key, HERE, without=row)
    assert again is not None
    assert row not in again.rows


def test_backs_off_to_what_is_there(history: History) -> None:
    strange = find_like(history, Key(("gpu",), "nosuch", "nobody", "v100", 1.0, 8.0, 60.0), HERE)
    assert strange is not None
    assert strange.dims == ("partition", "gpu_type", "size")
    lost = find_like(history, Key(("nowhere",), None, None, "h100", 8.0, 8.0), HERE)
    assert lost is not None
    assert lost.dims == ("gpu",)


def test_waiting_long_asks_for_jobs_that_waited_as_long(history: History) -> None:
    key = Key(("gpu",), "normal", "vision", "a100", 4.0, 8.0, 3600.0)
    long = find_like(history, key, HERE, waited_s=60000.0)
    assert long is not None
    assert np.count_nonzero(long.started & (long.waits >= 60000)) >= 5


@pytest.mark.parametrize("day", [6, 11, 17])
def test_what_came_later_changes_nothing(day: int) -> None:
    """Cut the data at t and answer again: the same, to the last bit."""
    rows, at = job_rows(), T0 + timedelta(days=day, hours=7)
    full = from_rows(table("jobs", rows), "toy", T0, NOW)
    cut = from_rows(table("jobs", known_at(rows, at)), "toy", T0, at)
    for key in (Key(("gpu",), "normal", "vision", "a100", 4.0, 8.0, 3600.0), Key(("cpu",), "normal", "nlp", None, 0.0, 8.0, 86400.0)):
        a, b = find_like(full, key, at.timestamp()), find_like(cut, key, at.timestamp())
        assert a is not None
        assert b is not None
        assert a.dims == b.dims
        assert (a.waits == b.waits).all()
        assert (a.started == b.started).all()
    for mode in ("submit", "pending"):
        a_, b_ = calibrate(full, at.timestamp(), "gpu", mode), calibrate(cut, at.timestamp(), "gpu", mode)  # type: ignore[arg-type]
        assert (a_.honest == b_.honest).all()
        assert a_.count == b_.count


def test_intervals_hold_on_a_steady_queue(history: History) -> None:
    """Half of the time teaches, the later half counts: started and censored jobs alike, 80 % within 6 points."""
    middle = (T0 + timedelta(days=12)).timestamp()
    honest = calibrate(history, middle, "gpu", "submit")
    inside = counted = 0
    for row in np.flatnonzero((history.eligible > middle) & (history.codes["partition"] == history.code("partition", "gpu"))):
        if not np.isfinite(history.start[row]):
            continue
        like = find_like(history, key_of(history, int(row)), float(history.eligible[row]), without=int(row))
        assert like is not None
        wait = CalibratedWait(like.distribution(), honest)
        truth = history.start[row] - history.eligible[row]
        inside += bool(wait.quantile(0.1) <= truth <= wait.quantile(0.9))
        counted += 1
    assert counted > 150
    # The started ones alone are the quicker ones: a little over 80 % is right, far off is not.
    assert 0.74 <= inside / counted <= 0.93


def test_trials_know_only_outcomes_up_to_their_end(history: History) -> None:
    trials = run_trials(history, HERE, "pending", "gpu")
    assert len(trials.asked) > 100
    assert (trials.asked <= HERE).all()
    held, counted = trials.coverage(0.8)
    assert counted > 50
    assert 0.6 < held <= 1


def test_an_empty_history_has_no_like_jobs() -> None:
    empty = from_rows(table("jobs", job_rows(3)).slice(0, 0), "toy", T0, NOW)
    assert find_like(empty, Key(("gpu",)), HERE) is None
    assert calibrate(empty, HERE, "gpu", "submit").count == 0


def test_waits_that_are_no_waits_are_left_out() -> None:
    rows = job_rows(40)
    rows[0] |= {"array_throttle": 4}
    rows[1] |= {"anomalies": "resized"}
    rows[2] |= {"het_offset": 1}
    rows[3] |= {"eligible": None}
    rows[4] |= {"start": None, "end": None, "state": "PENDING", "reason": "PartitionTimeLimit"}
    rows[5] |= {"reason": "JobArrayTaskLimit"}
    kept = from_rows(table("jobs", rows), "toy", T0, NOW)
    assert not set(range(1000, 1006)) & set(kept.job_id.tolist())
    assert len(kept) == 34
