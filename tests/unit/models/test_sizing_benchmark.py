"""The measures and the other methods of the sizing benchmark, on cases that can be worked out by hand."""

import numpy as np
import pytest
from tests.benchmarks.sizing import Case, capped, figures, margin_at
from tests.benchmarks.sizing_methods import Windows, largest_of, last_two, methods, quantile_of, sizey

from queuecast.models.sizing_past import Jobs, Past

DAY = 86400.0


def case(use: np.ndarray, asked: float = 10.0) -> Case:
    n = len(use)
    submit = np.arange(n) * DAY / 8
    one = np.zeros((7, n), np.int64)
    jobs = Jobs(submit, submit + 60.0, use, np.full(n, asked), use >= asked, np.ones(n), one)
    return Case("made time", jobs, np.ones(n), {"hours": np.ones(n)})


def test_as_asked_removes_nothing_and_kills_nothing() -> None:
    found = figures(case(np.full(80, 2.0)), np.ones(80), np.arange(80))
    assert found.killed == (0.0, 0.0, 0.0)
    assert found.removed["hours"] == (0.0, 0.0, 0.0)


def test_what_was_used_removes_all() -> None:
    found = figures(case(np.full(80, 2.0)), np.full(80, 0.2), np.arange(80))
    assert found.killed[0] == 0.0
    assert found.removed["hours"][0] == pytest.approx(1.0)


def test_a_killed_job_saves_nothing_and_costs_an_attempt() -> None:
    use = np.array([1.0] * 40 + [6.0] * 40)
    found = figures(case(use), np.full(80, 0.5), np.arange(80))
    assert found.killed[0] == 0.5
    over = 40 * 9.0 + 40 * 4.0
    assert found.removed["hours"][0] == pytest.approx(1 - (40 * 4.0 + 40 * 4.0) / over)
    assert found.retried["hours"][0] == pytest.approx(1 - (40 * 4.0 + 40 * 9.0) / over)
    assert found.killed[1] <= 0.5 <= found.killed[2]


def test_a_request_that_was_too_small_is_no_kill() -> None:
    assert figures(case(np.full(80, 12.0)), np.full(80, 0.5), np.arange(80)).killed[0] == 0.0


def test_the_margin_holds_the_risk_on_the_middle() -> None:
    made = case(np.random.default_rng(1).uniform(1, 9, 1000))
    amount = np.full(1000, 1.0)
    share = capped(made, amount, margin_at(made, amount, 0.05))
    middle = figures(made, share, made.middle)
    assert 0.03 < middle.killed[0] <= 0.05


def test_methods_read_ended_jobs_only() -> None:
    use = np.arange(1.0, 9.0)
    made = case(use, 100.0)
    w = Windows(Past(made.jobs), made.jobs, 0)
    assert last_two(w)[2:].tolist() == [1.5, 2.5, 3.5, 4.5, 5.5, 6.5]
    assert np.isnan(last_two(w)[:2]).all()
    assert largest_of(w, 20, 3)[3:].tolist() == [3.0, 4.0, 5.0, 6.0, 7.0]
    assert w.largest_ever(3)[3:].tolist() == [3.0, 4.0, 5.0, 6.0, 7.0]
    assert np.isnan(w.largest_ever(3)[:3]).all()
    assert quantile_of(w, 0.5, 3)[3:].tolist() == [2.0, 2.0, 3.0, 3.0, 4.0]


def test_an_ensemble_of_equal_uses_tells_them() -> None:
    made = case(np.full(40, 4.0), 100.0)
    w = Windows(Past(made.jobs), made.jobs, 0)
    told = sizey(w, np.ones(40))
    assert np.isnan(told[:3]).all()
    assert told[10:] == pytest.approx(np.full(30, 4.2), rel=0.06)


def test_each_family_tells_something() -> None:
    made = case(np.random.default_rng(1).uniform(1, 9, 60))
    for method in methods(Past(made.jobs), made.jobs, np.ones(60), {"same request": 0, "user": 3}, 1.25):
        assert np.isfinite(method.amount()[-1]), method.name
