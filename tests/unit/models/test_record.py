"""Past answers: parts of them, and how often the intervals held."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from queuecast.models.record import TrackRecord

PARTITIONS = ("cpu", "GPU", "gpu", "")


def record(count: int = 8, **known: Any) -> TrackRecord:
    """Intervals: 50 % from 40 to 60 s, 80 % from 20 to 80 s, 95 % from 10 s to infinity."""
    ends = {"low_50_s": 40.0, "high_50_s": 60.0, "low_80_s": 20.0, "high_80_s": 80.0, "low_95_s": 10.0, "high_95_s": np.inf}
    arrays: dict[str, Any] = {f.name: np.arange(count, dtype=np.float64) for f in fields(TrackRecord)}
    arrays |= {name: np.full(count, end) for name, end in ends.items()}
    arrays |= {"pending": np.arange(count) % 2 == 0, "partition": np.arange(count) % 4, "partitions": PARTITIONS}
    arrays |= {"gpus": np.array([0.0, 1.0, np.nan, 4.0] * 2)[:count], "started": np.ones(count, bool)}
    return TrackRecord(**{**arrays, **known})


def test_intervals_that_held() -> None:
    some = record(wait_s=np.array([5.0, 15.0, 30.0, 50.0, 70.0, 90.0, 20.0, 80.0]))
    assert some.held(0.5) == (1 / 8, 8)
    assert some.held(0.8) == (5 / 8, 8)
    assert some.held(0.95) == (7 / 8, 8)


def test_half_a_second_is_no_miss() -> None:
    some = record(4, wait_s=np.array([19.4, 19.6, 80.4, 80.6]))
    assert some.held(0.8) == (0.5, 4)


def test_a_job_without_a_start_counts_once_it_waited_longer_than_told() -> None:
    """Within the interval nothing is known yet; beyond it the answer was wrong. An interval without end cannot fail so."""
    some = record(4, wait_s=np.array([50.0, 50.0, 90.0, 5.0]), started=np.array([True, False, False, False]))
    assert some.held(0.8) == (0.5, 2)
    assert some.held(0.95) == (1.0, 1)


def test_a_job_beyond_its_interval_is_a_miss() -> None:
    some = record(
        4, wait_s=np.array([50.0, 50.0, 90.0, 90.0]), pit=np.array([0.5, 0.5, 0.95, 0.95]), started=np.array([True, True, False, False])
    )
    assert some.held_open_counted(0.8) == (0.5, 4)


def test_an_open_job_counts_as_those_did_that_came_as_far() -> None:
    """One that has only just been asked about tells nothing: it counts as the others came out. One that waits long may still
    be inside: of those that came as far two of three ended inside."""
    wait_s, pit = np.array([5.0, 50.0, 70.0, 90.0]), np.array([0.05, 0.5, 0.7, 0.95])
    some = record(4, wait_s=wait_s, pit=pit)
    assert some.held_open_counted(0.8) == (0.5, 4)
    fresh = record(5, wait_s=np.r_[wait_s, 0.0], pit=np.r_[pit, 0.0], started=np.r_[np.ones(4, bool), False])
    assert fresh.held_open_counted(0.8) == (pytest.approx(0.5), 4)
    later = record(5, wait_s=np.r_[wait_s, 30.0], pit=np.r_[pit, 0.3], started=np.r_[np.ones(4, bool), False])
    assert later.held_open_counted(0.8) == (pytest.approx((2 + 2 / 3) / 5), 4)


def test_one_sided_intervals_end_at_the_share_itself() -> None:
    """All begin now. The open job has come to 0.85: past the end of a one-sided interval, though not of a central one."""
    ends = {"low_80_s": np.zeros(4), "high_80_s": np.full(4, 80.0)}
    known = {"wait_s": np.array([5.0, 50.0, 90.0, 85.0]), "pit": np.array([0.05, 0.5, 0.95, 0.85])}
    assert record(4, **known, **ends, started=np.array([True, True, True, False])).held_open_counted(0.8) == (0.5, 4)


def test_nothing_to_count_is_unknown() -> None:
    share, count = record(4, started=np.zeros(4, bool)).held(0.8)
    assert np.isnan(share)
    assert count == 0
    assert np.isnan(record(4, started=np.zeros(4, bool)).held_open_counted(0.8)[0])
    assert len(record(0)) == 0
    assert np.isnan(record(0).held(0.5)[0])


def test_only_three_claims_are_kept() -> None:
    with pytest.raises(AttributeError):
        record().held(0.6)


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        ({}, range(8)),
        ({"partition": "cpu"}, [0, 4]),
        ({"partition": "Gpu"}, [1, 2, 5, 6]),
        ({"partition": ""}, [3, 7]),
        ({"partition": "none"}, []),
        ({"gpu": True}, [1, 3, 5, 7]),
        ({"gpu": False}, [0, 2, 4, 6]),
        ({"pending": True}, [0, 2, 4, 6]),
        ({"pending": False}, [1, 3, 5, 7]),
        ({"partition": "gpu", "gpu": True, "pending": False}, [1, 5]),
    ],
)
def test_answers_of_one_kind(kind: dict[str, Any], rows: list[int]) -> None:
    some = record().where(**kind)
    assert some.asked.tolist() == list(rows)
    assert len(some) == len(some.asked)


def test_parts_keep_every_column_in_step() -> None:
    whole = record()
    rows = np.array([True, False, False, True, False, True, False, False])
    part = whole.take(rows)
    for f in fields(TrackRecord):
        one, all_ = getattr(part, f.name), getattr(whole, f.name)
        if f.name == "partitions":
            assert one == PARTITIONS
        else:
            assert np.array_equal(one, all_[rows], equal_nan=True)
            assert one.dtype == all_.dtype
