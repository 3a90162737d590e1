"""The queue's state three ways: for many moments, for one, and by the definition. And nothing from the future in it."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.unit.features.made_history import DAY, HOUR, T0, at_submit, cut, histories, left_queue, new_requests, pending_at, rich

from queuecast.features import plain
from queuecast.features.asking import Asking
from queuecast.features.history import History
from queuecast.features.instant import Instant
from queuecast.features.situation import FEATURES, batch
from queuecast.features.situation_names import COLUMN


def few(examples: int) -> settings:
    """Settings for examples that take their time: a failing one is shown as it is, not made smaller."""
    phases = (Phase.explicit, Phase.reuse, Phase.generate)
    return settings(max_examples=examples, deadline=None, phases=phases, suppress_health_check=[HealthCheck.too_slow])


def agree(a: np.ndarray, b: np.ndarray) -> None:  # type: ignore[type-arg]
    """Equal to a relative 1e-5; the names of the columns that are not."""
    differ = ~np.isclose(a, b, rtol=1e-5, atol=1e-5, equal_nan=True)
    shown = {FEATURES[j].name: (a[differ[:, j], j][:3], b[differ[:, j], j][:3]) for j in np.flatnonzero(differ.any(axis=0))}
    assert not shown


@few(12)
@given(histories(), st.data())
def test_many_moments_agree_with_the_definition(history: History, data: st.DataObject) -> None:
    count = len(history)
    rows = np.array(data.draw(st.lists(st.integers(0, count - 1), max_size=2)) if count else [], np.int64)
    later = data.draw(st.sampled_from([0.0, 1.0, HOUR, 3 * DAY]))
    asked = np.minimum(history.eligible[rows] + later, left_queue(history)[rows])
    asking = Asking.of_rows(history, rows, asked)
    agree(batch(history, asking), plain.features(history, asking))
    new = new_requests(history, (history.eligible[-1] if count else T0) + later, 2)
    agree(batch(history, new), plain.features(history, new))


@few(60)
@given(histories(), st.data())
def test_one_moment_agrees_with_many(history: History, data: st.DataObject) -> None:
    times = sorted({T0 - 1, T0, *history.eligible, *history.start[np.isfinite(history.start)], *history.end[np.isfinite(history.end)]})
    at = data.draw(st.sampled_from(times)) + data.draw(st.sampled_from([0.0, 0.5, HOUR, 2 * DAY, 30 * DAY]))
    now = Instant(history, at)
    for asking in (pending_at(history, at), new_requests(history, at)):
        agree(now.features(asking), batch(history, asking))


def test_all_three_agree_on_a_rich_history_and_every_feature_shows() -> None:
    history = rich(900)
    at = T0 + 37.3 * DAY
    now, asking = Instant(history, at), pending_at(history, at)
    assert len(asking) > 10
    some = asking.take(np.arange(0, len(asking), len(asking) // 3))
    agree(now.features(some), plain.features(history, some))
    agree(now.features(asking), batch(history, asking))
    moments = T0 + np.arange(31, 45, 0.7) * DAY
    values = [batch(history, pending_at(history, t)) for t in moments] + [batch(history, at_submit(history))]
    same = {"request_nodes_log", "request_mem_log", "held_s"}
    for j, feature in enumerate(FEATURES):
        column = np.concatenate([v[:, j] for v in values])
        assert len(np.unique(column[~np.isnan(column)])) > (0 if feature.name in same else 1), feature


def test_a_job_does_not_count_itself() -> None:
    only = cut(rich(), T0 + 45 * DAY)
    row = int(np.argmax(left_queue(only) - only.eligible))
    alone = cut(only, np.inf)
    for name in ("eligible", "start", "end", "seen", "submit", "job_id", "gpus", "cpus", "limit_s", "tasks", "nodes", "mem"):
        setattr(alone, name, getattr(only, name)[row : row + 1])
    alone.codes = {text: codes[row : row + 1] for text, codes in only.codes.items()}
    at = float(alone.eligible[0]) + 60
    asking = Asking.of_rows(alone, np.array([0]), np.array([at]))
    for values in (batch(alone, asking), Instant(alone, at).features(asking), plain.features(alone, asking)):
        for j, feature in enumerate(FEATURES):
            if feature.topic not in ("request", "time", "waited"):
                assert np.isnan(values[0, j]) or values[0, j] == 0, feature
        assert np.isnan(values[0, COLUMN["request_limit_ratio"]])


def test_predicted_run_time_is_the_mean_of_the_last_two_at_most_the_limit() -> None:
    """Runs of 100 s and 300 s predict 200 s, or the limit of 150 s if that is less; a stranger gets the mean share."""
    made = cut(rich(6), np.inf)
    made.eligible = T0 + np.arange(6) * HOUR
    made.start = made.eligible + 1
    made.end = made.start + np.array([50.0, 100, 300, 900, 900, 900])
    made.limit_s = np.array([1000.0, 1000, 1000, 1000, 150, 1000])
    made.codes["user"] = np.array([0, 0, 0, 0, 0, 1])
    made.end[3:] = np.inf
    predicted = batch(made, at_submit(made))[:, COLUMN["request_predicted_s"]]
    assert predicted.tolist() == [1000, 50, 75, 200, 150, pytest.approx(1000 * 0.15)]


@pytest.mark.parametrize(("after", "freed"), [(HOUR - 1, 0), (HOUR, 16), (HOUR + 1, 16)])
def test_what_is_due_in_exactly_four_hours_counts_as_freed_within_four(after: float, freed: float) -> None:
    """A run of 16 CPUs limited to five hours, asked about around its first hour."""
    made = cut(rich(1), np.inf)
    made.start, made.end, made.limit_s, made.cpus = made.eligible + 60, made.end + np.inf, np.array([5 * HOUR]), np.array([16.0])
    at = float(made.start[0] + after)
    asking = new_requests(made, at, 1)
    asking.codes["partition"][:] = made.codes["partition"]
    for values in (batch(made, asking), Instant(made, at).features(asking), plain.features(made, asking)):
        assert values[0, COLUMN["partition_freed_4h_cpus_limit"]] == freed


def test_jobs_that_left_the_queue_are_not_asked_about() -> None:
    history = rich()
    row = np.flatnonzero(np.isfinite(history.start))[:1]
    late = Asking.of_rows(history, row, left_queue(history)[row] + 1)
    with pytest.raises(ValueError, match="after it started"):
        batch(history, late)
    now = Instant(history, float(late.asked[0]))
    with pytest.raises(ValueError, match="after it started"):
        now.features(late)
    with pytest.raises(ValueError, match="another moment"):
        now.features(new_requests(history, now.at + 1))


def test_requests_in_any_order_and_number_get_the_same() -> None:
    history = rich(300)
    asking = at_submit(history)
    whole = batch(history, asking)
    mixed = np.random.default_rng(1).permutation(len(asking))
    assert np.array_equal(batch(history, asking.take(mixed), threads=1), whole[mixed], equal_nan=True)
    assert batch(history, asking.take(np.array([], np.int64))).shape == (0, len(FEATURES))


def test_names_are_unique_and_the_live_path_needs_no_large_library() -> None:
    assert len({f.name for f in FEATURES}) == len(FEATURES)
    code = "import sys, queuecast.features.instant, queuecast.features.build; print({'pandas', 'scipy', 'sklearn'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "set()"
