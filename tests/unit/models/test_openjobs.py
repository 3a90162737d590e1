"""Coverage with open jobs counted: right where counting the started ones alone is not, and the same where none is open."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecast.models.openjobs import inside_chances, inside_share


def test_counting_those_that_started_alone_flatters_and_this_does_not() -> None:
    """Honest answers, watched for a random time: 80 % hold, though of those seen to start many more do."""
    rng = np.random.default_rng(3)
    level, seen = rng.uniform(size=(2, 20_000))
    started = level <= seen
    reached = np.minimum(level, seen)
    inside = level <= 0.8
    share = inside_share(np.zeros(20_000), reached, np.full(20_000, 0.8), inside & started, started)
    assert share == pytest.approx(0.8, abs=0.02)
    assert inside[started].mean() > 0.93
    assert np.isnan(inside_share(*(np.zeros(0),) * 3, *(np.zeros(0, bool),) * 2))


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_chances_are_chances_and_known_outcomes_stay(rows: list[tuple[float, bool, bool]]) -> None:
    level, inside, started = (np.array(column) for column in zip(*rows, strict=True))
    low, high = np.full(len(level), 0.1), np.full(len(level), 0.9)
    chance = inside_chances(low, level, high, inside, started)
    assert ((chance >= 0) & (chance <= 1)).all()
    assert (chance[started] == inside[started]).all()
    assert (chance[~started & (level >= 0.9)] == 0).all()
    # Where all have started it is the plain share.
    assert inside_share(low, level, high, inside, np.ones(len(level), bool)) == pytest.approx(inside.mean())
