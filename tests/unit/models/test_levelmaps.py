"""Corrections per kind of case: near nothing where a model holds, right for each kind, and not moved by one burst."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.unit.models.made_cases import DAY, HOUR, T0, logistic, made

from queuecast.features.cases import Cases
from queuecast.features.history import Flags, Floats, Ints
from queuecast.models.calibration import GRID, Calibration
from queuecast.models.levelmaps import FULL_TRUST, MOST, LevelMaps, kinds, luck, pits, share_of_correction
from queuecast.models.waits import KNOTS_S, Waits

AT = T0 + 3 * DAY


def codes_of(count: int, partition: Ints | int = 0, user: Ints | None = None) -> dict[str, Ints]:
    """One kind and a burst per case unless told otherwise."""
    zero = np.zeros(count, np.int64)
    return {"pending": zero, "partition": zero + partition, "size": zero, "burst": np.arange(count) if user is None else user}


def fitted(pit: Floats, codes: dict[str, Ints], started: Flags | None = None, asked: Floats | None = None) -> LevelMaps:
    """From so many answers of the last three days."""
    asked = np.linspace(T0, AT, len(pit)) if asked is None else asked
    return LevelMaps.fit(pit, np.ones(len(pit), bool) if started is None else started, asked, codes, AT)


def finest(maps: LevelMaps, partition: int = 0) -> Floats:
    return maps.of({"pending": 0, "partition": partition, "size": 0}).honest


def test_answers_that_held_change_next_to_nothing() -> None:
    maps = fitted(np.random.default_rng(1).uniform(size=3000), codes_of(3000))
    assert len(maps.maps) == 4
    assert np.abs(finest(maps) - GRID).max() < 0.04


def test_kinds_wrong_in_opposite_directions_are_each_set_right() -> None:
    """Partition 0 waits longer than told, partition 1 shorter: together they look right, and both are corrected."""
    rng = np.random.default_rng(2)

    def outcomes(count: int) -> tuple[Ints, Waits, Floats]:
        partition = rng.integers(0, 2, count)
        z = np.where(partition == 0, 9.0, 7.0) + 0.6 * rng.logistic(size=count)
        return partition, logistic(8.0, 0.9, count), np.expm1(np.maximum(z, 0.0))

    partition, told, wait_s = outcomes(3000)
    maps = fitted(told.within(wait_s), codes_of(3000, partition))
    assert abs(maps.maps[0, ()].probability(0.5) - 0.5) < 0.05
    partition, told, wait_s = outcomes(4000)
    better = maps.correct(told, codes_of(4000, partition))
    for level in (0.1, 0.5, 0.9):
        for p in (0, 1):
            rows = partition == p
            assert float(np.mean(wait_s <= better.quantile(level))) == pytest.approx(level, abs=0.05)
            assert np.mean((wait_s <= better.quantile(level))[rows]) == pytest.approx(level, abs=0.08)
        assert abs(np.mean((wait_s <= told.quantile(0.5))[partition == 0]) - 0.5) > 0.2


def test_a_small_kind_is_drawn_to_the_coarser_one_and_a_tiny_one_has_its_map() -> None:
    """Overall jobs start sooner than told; in partition 5 the few started far later."""
    rng = np.random.default_rng(3)
    pit, partition = rng.uniform(size=3000) ** 2, np.zeros(3000, np.int64)
    for rows, p in ((slice(100, 140), 5), (slice(200, 229), 6)):
        pit[rows], partition[rows] = rng.uniform(0.9, 1.0, rows.stop - rows.start), p
    maps = fitted(pit, codes_of(3000, partition))
    assert (finest(maps, 6) == maps.maps[1, (0,)].honest).all()
    assert (finest(maps, 77) == maps.maps[1, (0,)].honest).all()
    small, coarse = maps.maps[2, (0, 5)].honest, maps.maps[1, (0,)].honest
    middle = len(GRID) // 2
    assert coarse[middle] > 0.6
    # Its own outcomes alone would say that nothing starts so early.
    assert small[middle] == pytest.approx(coarse[middle] * FULL_TRUST / (FULL_TRUST + 40), abs=0.03)
    many = fitted(np.r_[pit, rng.uniform(0.9, 1.0, 2000)], codes_of(5000, np.r_[partition, np.full(2000, 5)]))
    assert finest(many, 5)[middle] < 0.1


def test_a_burst_of_one_user_moves_less_than_as_many_jobs_of_many() -> None:
    cases = made(2000, days=0.2)
    odd = np.arange(2000) % 2 == 0
    each, rng = np.arange(2000), np.random.default_rng(4)
    one, many = ({**cases.groups, "account": 0 * each, "user": np.where(odd, u, 100_000 + each)} for u in (0 * each, each))
    pit = np.where(odd, rng.uniform(0.9, 1.0, 2000), rng.uniform(size=2000))
    moved = [
        np.abs(fitted(pit, {**codes_of(2000), "burst": kinds(replace(cases, groups=g))["burst"]}).maps[0, ()].honest - GRID).max()
        for g in (one, many)
    ]
    assert moved[0] < 0.15
    assert moved[1] > 0.4


def test_older_answers_count_less_and_only_the_latest_are_used() -> None:
    asked = np.r_[np.linspace(AT - 60 * DAY, AT - 50 * DAY, 1000), np.linspace(AT - DAY, AT, 1000)]
    pit = np.r_[np.full(1000, 0.05), np.random.default_rng(5).uniform(size=1000)]
    assert np.abs(finest(fitted(pit, codes_of(2000), asked=asked)) - GRID).max() < 0.1
    crowd = np.r_[np.full(5000, 0.05), np.random.default_rng(6).uniform(size=MOST)]
    assert np.abs(finest(fitted(crowd, codes_of(len(crowd)))) - GRID).max() < 0.05


def test_jobs_still_pending_count_as_censored() -> None:
    rng = np.random.default_rng(7)
    level, cut = rng.uniform(size=4000), rng.uniform(size=4000)
    maps = fitted(np.minimum(level, cut), codes_of(4000), level <= cut)
    ignored = fitted(level[level <= cut], codes_of(int((level <= cut).sum())))
    assert np.abs(finest(maps) - GRID)[:160].max() < 0.06
    assert np.abs(finest(ignored) - GRID)[:160].max() > 0.15


def test_corrections_are_looked_up_row_by_row() -> None:
    pending, none = Calibration(GRID**2, 50), Calibration(np.sqrt(GRID), 50)
    maps = LevelMaps({(0, ()): none, (3, (1, 2, 4)): pending})
    told = logistic(np.linspace(6, 9, 5), 0.7, 5)
    codes = {"pending": np.array([1, 0, 1, 1, 0]), "partition": np.array([2, 2, 2, 3, 2]), "size": np.array([4, 4, 4, 4, 4])}
    found = maps.correct(told, codes)
    for i in range(5):
        honest = pending.honest if i in (0, 2) else none.honest
        assert (found.cdf[i] == np.interp(told.cdf[i], GRID, honest)).all()
    assert np.allclose(LevelMaps().correct(told, codes).cdf, told.cdf)


def test_nothing_known_corrects_nothing() -> None:
    maps = fitted(np.array([]), codes_of(0))
    assert (finest(maps) == GRID).all()


def test_kinds_tell_pending_cases_and_bursts_apart() -> None:
    def case(minutes: float, waited_s: float, user: int, account: int = 0) -> tuple[float, float, int, int]:
        asked = np.floor(T0 / (6 * HOUR)) * 6 * HOUR + 60 * minutes
        return asked, asked - waited_s, user, account

    table = [case(0, 0, 1), case(1, 60, 1), case(2, 61, 2), case(3, 0, 1, 5), case(359, 0, 1), case(361, 0, 1)]
    asked, eligible, user, account = (np.array(c) for c in zip(*table, strict=True))
    base = made(6)
    found = kinds(Cases(asked, eligible, asked, asked, base.features, base.values, {**base.groups, "user": user, "account": account}))
    assert found["pending"].tolist() == [0, 0, 1, 0, 0, 0]
    burst = found["burst"]
    assert burst[0] == burst[1] == burst[4]
    assert len(set(burst.tolist())) == 4


def test_levels_of_true_distributions_are_uniform_also_with_a_step_at_zero() -> None:
    rng = np.random.default_rng(8)
    cdf = np.clip(0.4 + 0.6 * np.log1p(KNOTS_S) / np.log1p(86400.0), 0, 1)
    told = Waits(np.tile(cdf, (4000, 1)), KNOTS_S)
    wait_s = np.where(rng.random(4000) < 0.4, 0.0, np.expm1(rng.uniform(size=4000) * np.log1p(86400.0)))
    level = pits(told, wait_s, np.ones(4000, bool), luck(4000))
    assert np.abs(np.quantile(level, np.linspace(0.02, 0.98, 49)) - np.linspace(0.02, 0.98, 49)).max() < 0.03
    # A job that still waits after no time at all was not among those that start at once.
    assert (pits(told, wait_s, np.zeros(4000, bool), luck(4000)) >= 0.4).all()
    assert (luck(10) == luck(20)[:10]).all()


def test_softened_corrections_lie_between_none_and_all() -> None:
    maps = LevelMaps({(0, ()): Calibration(GRID**2, 9)})
    for share in (0.0, 0.25, 1.0):
        assert np.allclose(maps.softened(share).maps[0, ()].honest, (1 - share) * GRID + share * GRID**2)
    assert maps.softened(0.5).maps[0, ()].count == 9


@pytest.mark.parametrize(("middle_raw", "middle_corrected", "share"), [(8.0, 8.0, 1.0), (6.0, 8.0, 1.0), (8.0, 5.0, 0.0)])
def test_corrections_are_followed_as_far_as_they_cost_nothing(middle_raw: float, middle_corrected: float, share: float) -> None:
    count = 2000
    wait = np.expm1(np.clip(np.random.default_rng(2).logistic(8.0, 0.6, count), 0.1, 15))
    raw, corrected = logistic(middle_raw, 0.6, count).cdf, logistic(middle_corrected, 0.6, count).cdf
    assert share_of_correction(raw, corrected, KNOTS_S, wait) == share


def test_corrections_that_nothing_is_known_about_are_followed() -> None:
    raw = logistic(8.0, 0.6, 500).cdf
    assert share_of_correction(raw, np.full_like(raw, np.nan), KNOTS_S, np.ones(500)) == 1.0
