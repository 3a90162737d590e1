"""Kept answers: exact enough on disk, whole or refused, and outcomes found later belong to the attempt that was asked about."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.models.made_cases import DAY, T0, made
from tests.unit.models.test_rolling import like_of, narrow

from queuecast.features.history import TEXTS, Floats, History
from queuecast.models.kept import CDFS, CODES, STEPS, Kept, steady_numbers
from queuecast.models.rolling import corrections, roll

CASES = made(300, days=10.0)
ABOUT = {"job_id": np.arange(300.0), "gpus": np.ones(300), "slurm_s": np.full(300, np.nan)}
ROLL = partial(roll, every_s=DAY, learn=narrow, about=ABOUT, partitions=("alpha", "beta"))


@pytest.fixture(scope="module")
def kept() -> Kept:
    return ROLL(CASES, T0 + 4 * DAY, warm_up_s=DAY, like=like_of(CASES)).kept


def history(job_id: list[int], eligible: list[float], start: list[float], end: list[float]) -> History:
    """Jobs of which nothing else matters."""
    none: Floats = np.zeros(len(job_id))
    codes = {text: np.zeros(len(job_id), np.int64) for text in TEXTS}
    seen = np.full(len(job_id), T0 + 30 * DAY)
    times = (np.array(eligible), np.array(start), np.array(end), seen)
    return History("toy", np.array(job_id), codes, {t: ["alpha"] for t in TEXTS}, none, none, none, *times, *(none,) * 4)


def test_what_is_saved_comes_back(kept: Kept) -> None:
    back = Kept.of_arrays(kept.arrays())
    for name in (
        "asked",
        "eligible",
        "start",
        "last_pending",
        "job_id",
        "gpus",
        "slurm_s",
        "luck",
        "like_share",
        "follow",
        "level",
        "shown",
    ):
        assert np.array_equal(getattr(back, name), getattr(kept, name), equal_nan=name != "shown"), name
    assert all(np.array_equal(back.codes[n], kept.codes[n]) for n in CODES)
    assert back.partitions == kept.partitions == ("alpha", "beta")
    for name in CDFS:
        one, two = getattr(kept, name), getattr(back, name)
        assert np.array_equal(np.isnan(one), np.isnan(two))
        assert np.nanmax(np.abs(one - two)) <= 0.6 / STEPS
        assert (np.diff(two[~np.isnan(two).any(axis=1)], axis=1) >= 0).all()
    # Corrections made from what was saved are those made from what was there.
    at = T0 + 12 * DAY
    (maps, follow), (again, same) = corrections(kept, at), corrections(back, at)
    assert follow == same
    assert maps.maps.keys() == again.maps.keys()
    assert all(np.abs(maps.maps[k].honest - again.maps[k].honest).max() < 1e-3 for k in maps.maps)


@pytest.mark.parametrize("harm", ["short", "order", "partition", "knots", "kind", "missing"])
def test_broken_arrays_are_refused(kept: Kept, harm: str) -> None:
    arrays = kept.arrays()
    if harm == "short":
        arrays["start"] = arrays["start"][:-1]
    elif harm == "order":
        arrays["asked"] = arrays["asked"][::-1]
    elif harm == "partition":
        arrays["code_partition"] = arrays["code_partition"] + 5
    elif harm == "knots":
        arrays["model"] = arrays["model"][:, :-1]
    elif harm == "kind":
        arrays["like"] = arrays["like"].astype(np.float32)
    else:
        del arrays["luck"]
    with pytest.raises((ValueError, KeyError)):
        Kept.of_arrays(arrays)


def test_answers_given_are_the_mixture_as_far_as_corrections_were_followed(kept: Kept) -> None:
    found = ROLL(CASES, T0 + 4 * DAY, warm_up_s=DAY, like=like_of(CASES))
    shown = kept.take(kept.shown)
    assert len(shown) == len(found.rows) < len(kept)
    assert np.allclose(shown.told().cdf, found.waits.cdf)
    assert np.allclose(shown.mixture().cdf, found.uncorrected.cdf)


def test_an_outcome_is_that_of_the_attempt_asked_about(kept: Kept) -> None:
    """A requeued job has its number again, but became eligible at another moment; one that is not found stays as it was."""
    few = kept.take(slice(0, 4))
    asked = few.eligible
    few = replace(few, start=np.full(4, np.inf), last_pending=asked + 5, level=np.full(4, np.nan), job_id=np.array([7.0, 8.0, 9.0, np.nan]))
    told = few.known(
        history(
            [7, 7, 8, 10],
            [asked[0], asked[0] + 900, asked[1], asked[2]],
            [asked[0] + 60, asked[0] + 990, np.inf, asked[2] + 1],
            [np.inf, np.inf, asked[1] + 70, np.inf],
        )
    )
    assert told.start.tolist() == [asked[0] + 60, np.inf, np.inf, np.inf]
    assert told.last_pending.tolist() == [asked[0] + 60, asked[1] + 70, asked[2] + 5, asked[3] + 5]
    assert told.level[0] == pytest.approx(float(few.take(slice(0, 1)).mixture().within(60.0)[0]))
    assert np.isnan(told.level[1:]).all()
    waits, started = told.outcomes(float(asked[0]) + 30)
    assert (waits[0], started[0]) == (30.0, False)


@given(st.permutations(["alpha", "beta", "gamma", "delta"]), st.integers(0, 4))
def test_partitions_keep_their_meaning_however_they_are_numbered(words: list[str], count: int) -> None:
    some = ROLL(CASES.take(np.arange(60)), T0, partitions=("alpha", "beta")).kept
    other = some.numbered(words[:count])
    assert other.partitions[:count] == tuple(words[:count])
    before = [some.partitions[c] for c in some.codes["partition"]]
    assert [other.partitions[c] for c in other.codes["partition"]] == before
    both = Kept.joined(some, other)
    assert [both.partitions[c] for c in both.codes["partition"]] == before * 2


@given(st.lists(st.text(max_size=8), unique=True, max_size=20))
def test_numbers_of_words_do_not_depend_on_other_words(words: list[str]) -> None:
    numbers = steady_numbers(words)
    assert len(set(numbers.tolist())) == len(words)
    assert (numbers >= 0).all()
    assert [int(steady_numbers([w])[0]) for w in words] == numbers.tolist()


def test_going_on_is_what_answering_at_once_would_have_been() -> None:
    """The same questions, in one go or in two: what is told of the second half is the same."""
    once = ROLL(CASES, T0 + 4 * DAY, like=like_of(CASES))
    half = T0 + 7 * DAY
    early = CASES.asked < half
    first = ROLL(CASES.take(early), T0 + 4 * DAY, like=like_of(CASES).__class__(like_of(CASES).cdf[early], like_of(CASES).knots_s))
    # Those that had not started by the first half's end are learned of later.
    second = ROLL(CASES, half, like=like_of(CASES), before=first.kept)
    late = CASES.asked[once.rows] >= half
    assert second.rows.tolist() == once.rows[late].tolist()
    assert np.allclose(second.waits.cdf, once.waits.cdf[late], atol=2e-3)
    assert len(second.kept) == len(once.kept)
