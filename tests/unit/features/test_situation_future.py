"""Nothing from the future is in the queue's state: with the history cut at t, all answers up to t stay the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.features.made_history import DAY, HOUR, T0, at_submit, cut, histories, new_requests, pending_at, rich

from queuecast.features.asking import Asking
from queuecast.features.history import History
from queuecast.features.instant import Instant
from queuecast.features.situation import FEATURES, batch
from queuecast.features.situation_names import COLUMN


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(histories(40), st.data())
def test_cutting_the_history_changes_nothing(history: History, data: st.DataObject) -> None:
    """Whatever was asked at or before t gets the same answer from what was known at t, to the last bit."""
    if not len(history):
        return
    at = history.eligible[data.draw(st.integers(0, len(history) - 1))] + data.draw(st.sampled_from([0.0, 1.0, HOUR, 3 * DAY]))
    known = cut(history, at)
    asking = pending_at(history, at)
    assert np.array_equal(batch(history, asking), batch(known, asking), equal_nan=True)
    assert np.array_equal(Instant(history, at).features(asking), Instant(known, at).features(asking), equal_nan=True)
    before = at_submit(known)
    assert np.array_equal(batch(history, before), batch(known, before), equal_nan=True)


@pytest.mark.parametrize("day", [8.0, 20.2, 40.0])
def test_cutting_a_rich_history_changes_nothing(day: float) -> None:
    history, at = rich(), T0 + day * DAY
    for asking in (pending_at(history, at), at_submit(cut(history, at)), new_requests(history, at)):
        assert np.array_equal(batch(history, asking), batch(cut(history, at), asking), equal_nan=True)


def test_the_cut_would_notice_a_look_ahead() -> None:
    """The same comparison with a history that lacks the last six hours fails for most features."""
    history, at = rich(), T0 + 40 * DAY
    asking = new_requests(history, at)
    whole, less = batch(history, asking), batch(cut(history, at - 6 * HOUR), asking)
    changed = {FEATURES[j].topic for j in np.flatnonzero(~np.isclose(whole, less, equal_nan=True).all(axis=0))}
    assert changed >= {"queue", "ahead", "running", "capacity", "freed", "starts", "waits", "usage"}


def test_siblings_that_start_in_the_same_second_do_not_give_it_away() -> None:
    """Five tasks of an array arrive at once. Whether they start at once or wait, each sees the same: those before it."""
    history = rich()
    rows = np.arange(500, 505)
    at = history.eligible[500]
    eligible = history.eligible.copy()
    eligible[rows] = at
    seen = []
    for wait in (0.0, 5 * HOUR):
        start, end = history.start.copy(), history.end.copy()
        start[rows], end[rows] = at + wait, at + wait + DAY
        made = cut(history, np.inf)
        made.eligible, made.start, made.end = eligible, start, end
        seen.append(batch(made, Asking.of_rows(made, rows, eligible[rows])))
    assert np.array_equal(*seen, equal_nan=True)
    assert (np.diff(seen[0][:, COLUMN["cluster_pending_jobs"]]) > 0).all()
