"""The labelled cases, and what holds for every verdict."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.answers.failure_case import Case, judge
from tests.unit.answers.failure_cases_first import FIRST
from tests.unit.answers.failure_cases_second import SECOND

from queuecast.answers.failures.advice import OF_CLASS, OF_KEY, steps_for
from queuecast.answers.failures.rows import signs_of
from queuecast.answers.failures.weigh import Hit, Signs, Step, weigh
from queuecast.reasons.failureclasses import CLASSES, TEXTS
from queuecast.reasons.logpatterns import LONGEST_LINE, all_patterns, find_pattern

ALL = (*FIRST, *SECOND)
RIGHT = 0.9


@pytest.mark.parametrize(("cases", "least"), [(FIRST, RIGHT), (SECOND, RIGHT)], ids=("first half", "second half"))
def test_nine_in_ten_labelled_cases_are_right(cases: tuple[Case, ...], least: float, tmp_path: Path) -> None:
    wrong = [(c.name, c.expected, v.failure_class) for c in cases if (v := judge(c, tmp_path)).failure_class != c.expected]
    assert 1 - len(wrong) / len(cases) >= least, wrong


def test_the_labelled_cases_are_many_and_of_every_class() -> None:
    assert len(ALL) >= 120
    assert len({c.name for c in ALL}) == len(ALL)
    assert set(Counter(c.expected for c in ALL)) == set(CLASSES)
    assert {c.version for c in ALL} >= {"17.11", "20.11", "23.11", "24.11", "25.11"}


def test_confidence_says_how_often_it_is_right(tmp_path: Path) -> None:
    """Where it is sure it must not be wrong more often than it says; the cases are no sample of real failures."""
    verdicts = [(judge(c, tmp_path), c.expected) for c in ALL]
    sure = [v.failure_class == expected for v, expected in verdicts if v.confidence >= 0.9]
    assert len(sure) > 40
    assert sum(sure) / len(sure) >= 0.95


@pytest.mark.parametrize(
    ("printed", "version", "best"),
    [
        ({"exit_code": 139, "exit_signal": 0}, False, "user_code"),
        ({"exit_code": 11, "exit_signal": 0}, True, "user_code"),
        ({"exit_code": 0, "exit_signal": 11}, None, "user_code"),
        ({"exit_code": 137, "exit_signal": 0}, False, "oom_host"),
        ({"exit_code": 9, "exit_signal": 0}, True, "oom_host"),
        ({"exit_code": 0, "exit_signal": 9}, None, "oom_host"),
    ],
)
def test_one_crash_is_one_class_however_slurm_prints_it(printed: dict[str, int], version: bool | None, best: str) -> None:
    row = {"state": "FAILED", "elapsed_s": 100, "limit_s": 3600, "start": 1, "node_list": "n1", **printed}
    assert weigh(signs_of(row, subtracting=version)).failure_class == best


def test_exit_9_of_a_slurm_that_does_not_subtract_is_the_programs_own() -> None:
    row = {"state": "FAILED", "elapsed_s": 100, "limit_s": 3600, "start": 1, "node_list": "n1", "exit_code": 9, "exit_signal": 0}
    assert weigh(signs_of(row, subtracting=False)).failure_class == "user_code"


NUMBERS = st.one_of(st.none(), st.integers(0, 300))
SIGNS = st.builds(
    Signs,
    state=st.sampled_from(("FAILED", "TIMEOUT", "BOOT_FAIL", "OUT_OF_MEMORY", "NODE_FAIL", "CANCELLED", "PREEMPTED", "REQUEUED",
                           "COMPLETED", "UNKNOWN", "?")),
    status=NUMBERS, signal=NUMBERS, derived_status=NUMBERS, derived_signal=NUMBERS,
    subtracts=st.sampled_from((None, True, False)),
    reason=st.one_of(st.none(), st.sampled_from(("NodeDown", "TimeLimit", "DependencyNeverSatisfied", "Priority")), st.text(max_size=9)),
    started=st.booleans(), quick=st.booleans(), near_limit=st.sampled_from((None, True, False)),
    memory=st.sampled_from((None, "at", "near", "below")), cancelled=st.sampled_from((None, "owner", "root", "other")),
    oom_step=st.booleans(),
    step=st.one_of(st.none(), st.builds(Step, kind=st.sampled_from(("batch", "step")), state=st.just("FAILED"), status=NUMBERS,
                                        signal=NUMBERS)),
    node_event=st.sampled_from((None, "down", "fault", "after", "drain")), peers=st.booleans(),
)  # fmt: skip
HITS = st.lists(st.builds(Hit, st.sampled_from([p.key for p in all_patterns()]), st.booleans()), max_size=6)


@given(SIGNS, HITS)
def test_weights_are_probabilities_and_the_verdict_depends_on_nothing_else(signs: Signs, hits: list[Hit]) -> None:
    verdict = weigh(signs, hits)
    assert verdict == weigh(signs, list(hits))
    assert set(verdict.weights) == set(CLASSES)
    assert all(0.0 <= w <= 1.0 for w in verdict.weights.values())
    assert math.isclose(sum(verdict.weights.values()), 1.0, abs_tol=1e-9)
    assert verdict.confidence == max(verdict.weights.values()) == verdict.weights[verdict.failure_class]


@given(SIGNS, HITS)
def test_a_line_seen_twice_counts_once(signs: Signs, hits: list[Hit]) -> None:
    assert weigh(signs, hits).weights == weigh(signs, [*hits, *hits]).weights


@given(st.text())
@settings(max_examples=300)
def test_any_line_is_looked_at_without_harm(line: str) -> None:
    found = find_pattern(line)
    assert found is None or found in all_patterns()


@pytest.mark.parametrize(
    "piece", ["cuda ", "license fail ", "error: ", "killed", "nan loss ", "(" * 50, "checkpoint fail to load ", "a.b_c", "fatal:  "]
)
def test_long_lines_take_no_longer_than_their_bound(piece: str) -> None:
    """No pattern backtracks over a long line: what is looked at is cut."""
    assert find_pattern(piece * 100_000) == find_pattern((piece * 100_000)[:LONGEST_LINE])


def test_patterns_are_sound() -> None:
    keys = [p.key for p in all_patterns()]
    assert len(set(keys)) == len(keys)
    for one in all_patterns():
        assert one.words, one.key
        assert all(w == w.lower() for w in one.words), one.key
        assert set(one.scores) <= set(TEXTS), one.key
        assert one.title.strip(), one.key
        assert "" not in one.words, one.key


def test_every_step_can_be_filled_in_and_every_class_has_some() -> None:
    values = dict.fromkeys(("job", "nodes", "memory", "limit", "end"), "X")
    assert set(OF_CLASS) == set(CLASSES)
    for key in (None, *OF_KEY):
        for name in CLASSES:
            steps = steps_for(name, key, values)
            assert steps
            assert not any("?" in s or "{job}" in s for s in steps), steps


def test_lines_with_steps_of_their_own_lead_to_them() -> None:
    own = {p.advice or p.key for p in all_patterns()} & set(OF_KEY)
    assert {"lmod", "cuda_oom", "gpu_fault", "filesystem", "nccl", "quota", "checkpoint", "shm", "bus_error", "nested"} <= own
    named = {p.advice for p in all_patterns() if p.advice} - set(OF_KEY)
    assert named <= {"exception", "segfault", "cuda_assert"}  # of the program itself: the steps of the class
