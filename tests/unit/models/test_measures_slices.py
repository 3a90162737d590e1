"""Slices: who is in which, counted job by job, and coverage in each as counted by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.models.made_cases import DAY, T0, logistic, made
from tests.unit.synthetic import NOW, job_rows, table
from tests.unit.synthetic import T0 as BEGIN

from queuecast.features.history import from_rows
from queuecast.models.measures_slices import coverage_slices, earlier_jobs, groups_of
from queuecast.models.waits import KNOTS_S, Waits


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.integers(2, 60))
def test_earlier_jobs_are_those_submitted_before_without_the_own_one(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    rows = job_rows(count, seed)
    for row in rows:
        row["user"] = [None, "alice", "bob"][int(rng.integers(3))]
        row["submit"] = row["eligible"] - timedelta(seconds=int(rng.choice([0, 3600, 40 * 3600])))
        if rng.random() < 0.2:  # an attempt again of another one's job
            row["job_id"] = rows[int(rng.integers(count))]["job_id"]
    history = from_rows(table("jobs", rows), "toy", BEGIN, NOW)
    which = rng.integers(0, len(history), 20)
    asked = history.eligible[which] + rng.choice([0.0, 5e4, 3e5], 20)
    found = earlier_jobs(history, which, asked)
    for row, at, told in zip(which, asked, found, strict=True):
        user = history.codes["user"][row]
        if history.words["user"][user] == "":
            assert np.isnan(told)
            continue
        same = (history.codes["user"] == user) & (history.submit < at) & (history.job_id != history.job_id[row])
        assert told == len(set(history.job_id[same].tolist()))


def test_the_slices_of_a_case() -> None:
    cases = made(4)
    cases = replace(
        cases, asked=np.array([0.0, 3600.0, 32 * DAY, 33 * DAY - 1]),
        groups={**cases.groups, "partition": np.array([0, 1, 0, 0]), "size": np.array([0, 5, 13, 17])},
    )  # fmt: skip
    found = groups_of(cases, ["<b>", "cpu"], np.array([0.0, 9.0, 10.0, np.nan]), np.array([np.nan, 0.0, 3.0, 40.0]))
    assert {n: v.tolist() for n, v in found.items()} == {
        "partition": ["<b>", "cpu", "<b>", "<b>"],
        "gpus": ["0", "0", "3", "40"],
        "size": ["CPUs 1", "CPUs 257+", "GPUs 3-4", "GPUs 33+"],
        "user_jobs": ["0", "1-9", "10-99", ""],
        "hour": ["00", "01", "00", "23"],
        "month": ["1970-01", "1970-01", "1970-02", "1970-02"],
    }
    assert groups_of(cases, ["a", "b"], np.array([1.0, 99.0, 100.0, 1e9]))["user_jobs"].tolist() == ["1-9", "10-99", "100+", "100+"]
    assert groups_of(cases)["gpus"].tolist() == ["0", "0", "3-4", "33+"]


def test_without_a_history_earlier_cases_of_the_user_count() -> None:
    cases = made(200)
    found = groups_of(cases)["user_jobs"]
    for i in range(200):
        count = int((cases.groups["user"][:i] == cases.groups["user"][i]).sum())
        assert found[i] == ("0" if count == 0 else "1-9" if count < 10 else "10-99")


def test_coverage_is_counted_over_jobs_that_started_and_few_are_left_out() -> None:
    count = 900
    rng = np.random.default_rng(1)
    wait = np.expm1(8 + rng.logistic(size=count) * 0.6)
    started = rng.random(count) < 0.8
    wait[:5] = np.nan
    asked = T0 + rng.uniform(0, 10 * DAY, count)
    group = np.array(["big"] * 700 + ["few"] * 120 + [""] * 80)
    told = logistic(8.0, 0.6, count)
    told = Waits(np.where((rng.random(count) < 0.5)[:, None], told.cdf, logistic(9.0, 0.6, count).cdf), KNOTS_S)
    found = {(s, m): f for s, m, f in coverage_slices(told, wait, started, asked, {"kind": group}, draws=30)}
    assert {s for s, _m in found} == {"kind=big"}
    rows = (group == "big") & started & ~np.isnan(wait)
    low, high = told.interval(0.8)
    held = (wait >= low - 0.5) & (wait <= high + 0.5)
    assert found["kind=big", "cases"].value == rows.sum()
    figure = found["kind=big", "coverage_80"]
    assert figure.value == pytest.approx(held[rows].mean())
    assert figure.low <= figure.value <= figure.high
    assert figure.low < figure.high
    assert {s for s, _m, _f in coverage_slices(told, wait, started, asked, {"kind": group}, draws=5, fewest=50)} == {"kind=big", "kind=few"}
    assert not list(coverage_slices(told, wait, np.zeros(count, bool), asked, {"kind": group}))
