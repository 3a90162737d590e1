"""What is known of a kind at a moment, against a plain loop."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecast.models.sizing_chance import by_counts
from queuecast.models.sizing_kinds import RUNGS, Codes, kind_name
from queuecast.models.sizing_past import LATEST, NEAR, SHARES, Jobs, Past
from queuecast.models.sizing_replay import chances, floors, replay


def made(count: int, seed: int) -> Jobs:
    draws = np.random.default_rng(seed)
    submit = np.sort(np.round(draws.uniform(0, 1000, count)))  # rounded: ties
    use = draws.lognormal(0, 1, count)
    use[draws.random(count) < 0.1] = np.nan
    asked = draws.choice([1.0, 3.0, 10.0], count)
    codes = np.array([draws.integers(0, 4, count), np.zeros(count, np.int64)])
    killed = np.nan_to_num(use) > asked
    return Jobs(submit, submit + np.round(draws.exponential(30, count)), use, asked, killed, np.ones(count), codes)


@pytest.mark.parametrize("seed", range(3))
def test_history_equals_a_plain_loop(seed: int) -> None:
    jobs = made(300, seed)
    past = Past(jobs)
    seen = past.look(jobs.codes, jobs.submit, jobs.asked)
    by_end = np.argsort(jobs.end, kind="stable")
    for i in range(0, 300, 7):
        for rung in range(2):
            like = (jobs.end < jobs.submit[i]) & (jobs.codes[rung] == jobs.codes[rung, i]) & np.isfinite(jobs.use)
            rows = [j for j in by_end if like[j]]
            need = past.need[rows]
            assert seen.count[i, rung] == len(rows)
            if not rows:
                assert np.isnan(seen.last[i, rung])
                continue
            assert seen.last[i, rung] == pytest.approx(need[-1] / jobs.asked[i])
            assert seen.most_5[i, rung] == pytest.approx(need[-5:].max() / jobs.asked[i])
            assert seen.most[i, rung] == pytest.approx(need[-LATEST:].max() / jobs.asked[i])
            assert seen.age[i, rung] == jobs.submit[i] - jobs.end[rows[-1]]
            near, own = need[-NEAR:] / jobs.asked[i], need[-LATEST:] / jobs.asked[rows[-LATEST:]]
            assert seen.above[i, rung].tolist() == [(near > s).sum() for s in SHARES]
            assert seen.above_own[i, rung].tolist() == [(own > s).sum() for s in SHARES]


def test_a_kind_never_seen_has_no_history() -> None:
    jobs = made(50, 1)
    seen = Past(jobs).look(np.array([[-1], [0]]), np.array([1e9]), np.array([1.0]))
    assert seen.count[0, 0] == 0
    assert seen.count[0, 1] > 0
    assert not seen.above[0, 0].any()


def test_no_jobs_at_all() -> None:
    jobs = made(0, 1)
    seen = Past(jobs).look(np.array([[3], [0]]), np.array([5.0]), np.array([1.0]))
    assert not seen.count.any()
    assert by_counts(seen).shape == (1, len(SHARES))
    assert floors(seen).tolist() == [1.0]


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), cut=st.integers(50, 249))
def test_proposals_do_not_know_what_ends_later(seed: int, cut: int) -> None:
    jobs = made(250, seed)

    def proposed(some: Jobs) -> np.ndarray:
        seen = Past(some).look(some.codes, some.submit, some.asked)
        told = chances(some, seen, 20, refits=1, trees=False)
        return replay(some, told, floors(seen), 20, 0.2).share

    at = jobs.submit[cut]
    other = jobs.use.copy()
    later = jobs.end >= at
    other[later] = np.random.default_rng(seed).lognormal(3, 1, int(later.sum()))
    changed = Jobs(jobs.submit, jobs.end, other, jobs.asked, np.nan_to_num(other) > jobs.asked, jobs.weight, jobs.codes)
    before = jobs.submit <= at
    assert proposed(jobs)[before].tolist() == proposed(changed)[before].tolist()


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), factor=st.sampled_from([0.125, 2.0, 1024.0, float(1 << 30)]))
def test_units_do_not_matter(seed: int, factor: float) -> None:
    jobs = made(200, seed)
    scaled = Jobs(jobs.submit, jobs.end, jobs.use * factor, jobs.asked * factor, jobs.killed, jobs.weight, jobs.codes)
    shares = []
    for some in (jobs, scaled):
        seen = Past(some).look(some.codes, some.submit, some.asked)
        shares.append(replay(some, by_counts(seen), floors(seen), 20, 0.1).share)
    assert shares[0].tolist() == shares[1].tolist()


@settings(max_examples=200)
@given(st.text(), st.one_of(st.none(), st.text()))
def test_any_name_is_taken(name: str, line: str | None) -> None:
    found = kind_name(name, line)
    assert found == found.casefold()
    assert not any(c in "0123456789" for c in found)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("train_007", "train_12"),
        ("train-2026-06-01", "train-2025-12-24"),
        ("run 3f2a9c1b", "run 0b1c77aa9"),
        ("Sweep[4]", "sweep[17]"),
        ("fit_12jan2026", "fit_3feb2025"),
    ],
)
def test_what_differs_from_run_to_run_is_dropped(one: str, other: str) -> None:
    assert kind_name(one) == kind_name(other)


def test_names_that_differ_stay_apart() -> None:
    assert len({kind_name(n) for n in ("train", "eval", "train_bert", "deadbeat", "facade")}) == 5


def test_a_name_that_says_nothing_gives_way_to_the_script() -> None:
    assert kind_name("bash", "sbatch --mem=4G /home/ann/fit_3.sh 17") == kind_name("wrap", "sbatch fit_4.sh")
    assert kind_name("bash", "sbatch") == "bash"
    assert kind_name(None) == ""


def test_codes_of_a_known_and_an_unknown_kind() -> None:
    columns = {"user": ["ann", "bob"], "name": ["a", "a"], "account": ["x", None], "partition": ["p", "p"]}
    codes = Codes(columns, np.array([1.0, 1.0]))
    known = codes.of({"user": "bob", "name": "a", "account": None, "partition": "p"}, 1.0)[:, 0]
    assert known.tolist() == codes.codes[:, 1].tolist()
    unknown = codes.of({"user": "eve", "name": "a", "account": None, "partition": "p"}, 2.0)[:, 0]
    labels = [label for label, _ in RUNGS]
    assert unknown[labels.index("user")] == -1
    assert unknown[labels.index("all")] == 0
