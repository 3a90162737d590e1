"""Boosted trees as plain arrays: learned by LightGBM, saved and asked without it (importing it costs seconds).

The format is that of LightGBM's model text, https://lightgbm.readthedocs.io/; a test compares every prediction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from queuecast.features.history import Floats

if TYPE_CHECKING:
    import lightgbm

Values = npt.NDArray[np.float32]
MISSING_IS_NAN = 2
ROWS_AT_ONCE = 200


@dataclass(frozen=True)
class Trees:
    """``outputs`` raw scores per row: tree t adds to output ``t % outputs``.

    Nodes of all trees lie behind one another, shape (nodes,): ``feature`` (-1 at a leaf), ``threshold`` (value <=
    threshold goes left), ``nan_left`` (where an unknown value goes), ``left`` and ``right`` (node numbers; a leaf is its
    own child), ``score`` (of a leaf). ``root`` is the first node of each tree, ``depth`` the longest path.
    """

    feature: npt.NDArray[np.int32]
    threshold: Floats
    nan_left: npt.NDArray[np.bool_]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    score: Floats
    root: npt.NDArray[np.int32]
    depth: int
    outputs: int

    def raw(self, values: Values) -> Floats:
        """Scores of shape (n, outputs) for features of shape (n, F); nan is unknown. Raises ``ValueError`` for fewer
        columns than the trees ask for (who knows their names checks that there are not more)."""
        needed = int(self.feature.max(initial=-1)) + 1
        if values.ndim != 2 or values.shape[1] < needed:
            raise ValueError(f"the trees ask for {needed} columns, got values of shape {values.shape}")
        parts = [self._raw(values[i : i + ROWS_AT_ONCE]) for i in range(0, len(values), ROWS_AT_ONCE)]
        return np.concatenate(parts) if parts else np.zeros((0, self.outputs))

    def _raw(self, values: Values) -> Floats:
        count, width = values.shape
        flat = np.ascontiguousarray(values, np.float64).ravel()
        unknown = np.isnan(flat)
        node = np.broadcast_to(self.root, (count, len(self.root))).copy()
        offset = (np.arange(count) * width)[:, None]
        for _ in range(self.depth):
            place = offset + np.maximum(self.feature[node], 0)
            goes_left = np.where(unknown[place], self.nan_left[node], flat[place] <= self.threshold[node])
            node = np.where(goes_left, self.left[node], self.right[node])
        return np.asarray(self.score[node].reshape(count, -1, self.outputs).sum(axis=1))

    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """What is saved: the numbers and no code."""
        names = ("feature", "threshold", "nan_left", "left", "right", "score", "root")
        return {**{n: getattr(self, n) for n in names}, "shape": np.array([self.depth, self.outputs])}

    @classmethod
    def of_arrays(cls, arrays: dict[str, npt.NDArray[np.generic]]) -> Trees:
        """From what was saved. Raises ``ValueError`` for arrays that are not whole trees."""
        if set(arrays) != {"feature", "threshold", "nan_left", "left", "right", "score", "root", "shape"}:
            raise ValueError("not whole trees")
        depth, outputs = (int(v) for v in arrays["shape"])
        trees = cls(**{n: a for n, a in arrays.items() if n != "shape"}, depth=depth, outputs=outputs)  # type: ignore[arg-type]
        nodes = len(trees.feature)
        same = all(len(a) == nodes for a in (trees.threshold, trees.nan_left, trees.left, trees.right, trees.score))
        inside = all(bool(((a >= 0) & (a < nodes)).all()) for a in (trees.left, trees.right, trees.root))
        if not same or not inside or outputs < 1 or len(trees.root) % outputs or not 0 <= depth <= 1000:
            raise ValueError("not whole trees")
        return trees


def check_columns(values: Values, names: Sequence[str]) -> None:
    """Raises ``ValueError`` unless ``values`` (n, F) have one column per name: with others a model would answer, and wrongly."""
    if values.ndim != 2 or values.shape[1] != len(names):
        raise ValueError(f"the model was learned from {len(names)} columns, got values of shape {values.shape}")


def of_boosters(boosters: Sequence[lightgbm.Booster]) -> Trees:
    """The trees of trained boosters with numerical features only; with several their scores add up."""
    models = [booster.dump_model() for booster in boosters]
    parts: dict[str, list[float]] = {n: [] for n in ("feature", "threshold", "nan_left", "left", "right", "score")}
    roots, deepest = [], 0

    def add(node: dict[str, object], depth: int) -> int:
        nonlocal deepest
        deepest = max(deepest, depth)
        number = len(parts["feature"])
        split = "split_feature" in node
        for name, value in (
            ("feature", node["split_feature"] if split else -1),
            ("threshold", node["threshold"] if split else np.inf),
            ("nan_left", node["default_left"] if split else True),
            ("left", number),
            ("right", number),
            ("score", 0.0 if split else node["leaf_value"]),
        ):
            parts[name].append(value)  # type: ignore[arg-type]
        if split:
            if node["missing_type"] != "NaN":
                # Without unknown values in training LightGBM reads one as zero.
                parts["nan_left"][number] = float(node["threshold"] >= 0.0)  # type: ignore[operator]
            parts["left"][number] = add(node["left_child"], depth + 1)  # type: ignore[arg-type]
            parts["right"][number] = add(node["right_child"], depth + 1)  # type: ignore[arg-type]
        return number

    for tree in (tree for model in models for tree in model["tree_info"]):
        roots.append(add(tree["tree_structure"], 0))
    return Trees(
        np.array(parts["feature"], np.int32),
        np.array(parts["threshold"], np.float64),
        np.array(parts["nan_left"], np.bool_),
        np.array(parts["left"], np.int32),
        np.array(parts["right"], np.int32),
        np.array(parts["score"], np.float64),
        np.array(roots, np.int32),
        deepest,
        int(models[0]["num_tree_per_iteration"]),
    )
