"""Trees without LightGBM: the same scores as LightGBM's own, whatever is unknown; damaged ones are refused."""

from __future__ import annotations

from typing import Any

import lightgbm
import numpy as np
import pytest

from queuecast.models.trees import Trees, check_columns, of_boosters

BASE: dict[str, Any] = {"num_threads": 1, "verbose": -1, "min_data_in_leaf": 3, "seed": 1, "deterministic": True, "force_row_wise": True}


def values_of(count: int, seed: int, unknown: float) -> np.ndarray[Any, Any]:
    """Five features: smooth, whole numbers around zero, mostly zero, constant, large."""
    rng = np.random.default_rng(seed)
    columns = [rng.normal(size=count), rng.integers(-2, 3, count), np.where(rng.random(count) < 0.8, 0.0, rng.normal(size=count))]
    out = np.stack([*columns, np.full(count, 7.0), 1e6 * rng.exponential(size=count)], axis=1)
    out[rng.random(out.shape) < unknown] = np.nan
    return out.astype(np.float32)


def trained(unknown: float, classes: int, seed: int = 1) -> lightgbm.Booster:
    """Label ``classes - 1`` never occurs."""
    x = values_of(400, seed, unknown)
    rng = np.random.default_rng(seed)
    score = np.nan_to_num(x[:, 0]) + np.nan_to_num(x[:, 1]) + 2 * np.isnan(x[:, 4]) + np.log1p(np.nan_to_num(x[:, 4])) / 5
    score += rng.normal(size=400) / 2 - 2 * (x[:, 2] == 0)
    if classes == 1:
        return lightgbm.train({**BASE, "objective": "regression", "num_leaves": 12}, lightgbm.Dataset(x, score), 6)
    label = np.clip(np.searchsorted(np.quantile(score, np.linspace(0, 1, classes)), score) - 1, 0, classes - 2)
    settings = {**BASE, "objective": "multiclass", "num_class": classes, "num_leaves": 9, "feature_fraction": 0.6}
    return lightgbm.train(settings, lightgbm.Dataset(x, label), 5)


@pytest.fixture(scope="module")
def boosters() -> dict[tuple[float, int], lightgbm.Booster]:
    return {(unknown, classes): trained(unknown, classes) for unknown in (0.0, 0.2) for classes in (1, 4)}


@pytest.mark.parametrize("classes", [1, 4])
@pytest.mark.parametrize("unknown", [0.0, 0.2])
def test_scores_are_those_of_lightgbm(boosters: dict[tuple[float, int], lightgbm.Booster], unknown: float, classes: int) -> None:
    """Also for unknown values where training had none: LightGBM reads them as zero then."""
    booster = boosters[unknown, classes]
    kinds = {s for s in booster.trees_to_dataframe()["missing_type"] if isinstance(s, str)}
    assert kinds == ({"None"} if unknown == 0 else {"NaN"}) or unknown > 0
    trees = of_boosters([booster])
    assert trees.depth > 2
    for asked in (0.0, 0.3, 1.0):
        x = values_of(450, 9, asked)
        x[0, :] = 0.0
        x[1, :] = [1e-36, -1e-36, 1e30, -1e30, np.inf]
        told = np.asarray(booster.predict(x, raw_score=True)).reshape(450, classes)
        assert np.allclose(trees.raw(x), told, rtol=0, atol=1e-12)
    # Exactly at a threshold: that goes left. (Values closer to zero than 1e-30 are zero to LightGBM, and do not occur.)
    splits = np.flatnonzero((trees.feature >= 0) & (np.abs(trees.threshold) > 1e-30))
    exact = np.zeros((len(splits), 5))
    exact[np.arange(len(splits)), trees.feature[splits]] = trees.threshold[splits]
    told = np.asarray(booster.predict(exact, raw_score=True)).reshape(-1, classes)
    assert np.allclose(trees.raw(exact), told, rtol=0, atol=1e-12)  # type: ignore[arg-type]
    assert trees.raw(x[:0]).shape == (0, classes)


def test_a_tree_without_a_split_is_its_leaf() -> None:
    x = np.zeros((50, 1), np.float32)
    booster = lightgbm.train({**BASE, "objective": "regression"}, lightgbm.Dataset(x, np.full(50, 3.0)), 2)
    trees = of_boosters([booster])
    assert trees.depth == 0
    assert np.allclose(trees.raw(x)[:, 0], np.asarray(booster.predict(x, raw_score=True)))


def test_saved_and_read_again_they_are_the_same(boosters: dict[tuple[float, int], lightgbm.Booster]) -> None:
    trees = of_boosters([boosters[0.2, 4]])
    again = Trees.of_arrays(trees.arrays())
    x = values_of(300, 5, 0.3)
    assert (again.raw(x) == trees.raw(x)).all()
    assert (again.depth, again.outputs) == (trees.depth, trees.outputs)


def _with(name: str, place: int, value: float) -> Any:
    def change(arrays: dict[str, Any]) -> None:
        arrays[name] = arrays[name].copy()
        arrays[name][place] = value

    return change


def _shorter(name: str) -> Any:
    def change(arrays: dict[str, Any]) -> None:
        arrays[name] = arrays[name][:-1]

    return change


@pytest.mark.parametrize(
    "damage",
    [
        _with("left", 0, 10_000),
        _with("left", 0, -1),
        _with("right", 3, 10_000),
        _with("right", 3, -2),
        _with("root", 1, 10_000),
        _with("root", 0, -1),
        *(_shorter(n) for n in ("feature", "threshold", "nan_left", "left", "right", "score")),
        _shorter("root"),  # 20 trees of 4 classes: 19 do not go round
        _shorter("shape"),
        _with("shape", 1, 0),
        _with("shape", 1, -4),
        _with("shape", 1, 3),
        _with("shape", 0, -1),
        _with("shape", 0, 10**9),
    ],
)
def test_damaged_trees_are_refused(boosters: dict[tuple[float, int], lightgbm.Booster], damage: Any) -> None:
    arrays: dict[str, Any] = dict(of_boosters([boosters[0.2, 4]]).arrays())
    Trees.of_arrays(arrays)
    damage(arrays)
    with pytest.raises(ValueError, match=r"trees|unpack"):
        Trees.of_arrays(arrays)


def test_another_number_of_columns_is_refused(boosters: dict[tuple[float, int], lightgbm.Booster]) -> None:
    """With too few the next row's values would be read."""
    trees = of_boosters([boosters[0.2, 4]])
    x = values_of(20, 5, 0.0)
    needed = int(trees.feature.max()) + 1
    for few in (x[:, : needed - 1], x[:, :0], x[:0, : needed - 1], x[:, 0]):
        with pytest.raises(ValueError, match=f"{needed} columns"):
            trees.raw(few)
    check_columns(x, "abcde")
    for names in ("abcd", "abcdef", ""):
        with pytest.raises(ValueError, match="learned from"):
            check_columns(x, names)
    with pytest.raises(ValueError, match="learned from"):
        check_columns(x[:, 0], "abcde")
