"""The chance of each bin of the wait, learned by boosting: a multinomial model over the whole range of waits.

The wait is cut into bins at quantiles of the waits in training (a wait of zero is a bin of its own), and one boosted
classifier gives the chance of every bin. It speaks of jobs that either start at once or wait for days, which a
location and a spread do not, and its quantiles cannot cross.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from queuecast.features.declare import Feature
from queuecast.features.history import Floats
from queuecast.models.lessons import Lessons
from queuecast.models.trees import Trees, Values, check_columns, of_boosters
from queuecast.models.waits import KNOTS_S, Waits

if TYPE_CHECKING:
    import lightgbm

BINS = 16
ROUNDS = 60
PARAMETERS = {
    "objective": "multiclass",
    "learning_rate": 0.1,
    "num_leaves": 15,
    "max_depth": 8,
    "min_data_in_leaf": 50,
    "feature_fraction": 0.2,
    "bagging_fraction": 0.5,
    "bagging_freq": 1,
    "lambda_l2": 5.0,
    "max_bin": 63,
    "seed": 1,
    "deterministic": True,
    "force_col_wise": True,
    "verbose": -1,
}


@dataclass(frozen=True)
class Boosted:
    """``low`` and ``high`` are the ends of each bin in log1p(seconds); the first may be the single wait of zero."""

    names: tuple[str, ...]
    low: Floats
    high: Floats
    trees: Trees
    booster: lightgbm.Booster | None = field(default=None, repr=False, compare=False)

    def predict(self, values: Values) -> Waits:
        """Distributions for features in the order of ``names``. Raises ``ValueError`` for another number of columns."""
        check_columns(values, self.names)
        # In the process that trained, LightGBM itself is there and faster for many rows.
        scores = self.trees.raw(values) if self.booster is None or len(values) < 500 else self.booster.predict(values, raw_score=True)
        scores = np.asarray(scores, np.float64)
        chance = np.exp(scores - scores.max(axis=1, keepdims=True))
        chance /= chance.sum(axis=1, keepdims=True)
        z = np.log1p(KNOTS_S)
        width = self.high - self.low
        inside = np.where(width[:, None] > 0, (z[None, :] - self.low[:, None]) / np.maximum(width, 1e-9)[:, None], 1.0)
        return Waits(np.minimum.accumulate((chance @ np.clip(inside, 0.0, 1.0))[:, ::-1], axis=1)[:, ::-1], KNOTS_S)


def fit(
    values: Values, features: tuple[Feature, ...], lessons: Lessons, *, threads: int = 1, rounds: int = ROUNDS, bins: int = BINS
) -> Boosted:
    """Learn from lessons; ``values`` are their features, shape (lessons, F)."""
    import lightgbm

    low, high = _bins(lessons.z, bins)
    # A wait on an inner edge belongs to the bin that begins there.
    label = np.clip(np.searchsorted(low, lessons.z, side="right") - 1, 0, len(low) - 1)
    label[lessons.z <= 0] = 0
    settings: dict[str, Any] = {**PARAMETERS, "num_class": len(low), "num_threads": threads}
    settings["min_data_in_leaf"] = int(np.clip(len(lessons.z) // 60, 5, PARAMETERS["min_data_in_leaf"]))  # type: ignore[call-overload]
    data = lightgbm.Dataset(values, label, weight=lessons.weight, free_raw_data=True)
    booster = lightgbm.train(settings, data, rounds)
    return Boosted(tuple(f.name for f in features), low, high, of_boosters([booster]), booster)


def _bins(z: Floats, bins: int) -> tuple[Floats, Floats]:
    """Ends of the bins: one for zero (if any started at once), the others at quantiles."""
    top = float(z.max())
    inner = np.unique(np.quantile(z, np.linspace(0, 1, bins + 1)[1:-1]))
    inner = inner[(inner > 0) & (inner < top)]
    if not len(inner) and top > 0:
        inner = np.array([top])  # all that wait do so equally long: one bin just above that, as one class alone cannot be learned
    low = np.r_[0.0, inner]
    high = np.r_[inner, top + 0.05]
    if (z <= 0).any():
        low, high = np.r_[0.0, low], np.r_[0.0, high]
        # The first bin above zero begins just above it.
        low[1] = min(1e-9, high[1])
    return low, high


def saved(model: Boosted) -> dict[str, npt.NDArray[np.generic]]:
    """Arrays to save."""
    return {"names": np.array(model.names), "low": model.low, "high": model.high, **model.trees.arrays()}


def restored(arrays: dict[str, npt.NDArray[np.generic]]) -> Boosted:
    """From saved arrays. Raises ``ValueError`` or ``KeyError`` if they are not whole."""
    rest = {n: a for n, a in arrays.items() if n not in ("names", "low", "high")}
    low, high = np.asarray(arrays["low"], np.float64), np.asarray(arrays["high"], np.float64)
    trees = Trees.of_arrays(rest)
    if len(low) != len(high) or len(low) != trees.outputs or (np.diff(low) < 0).any() or (high < low).any():
        raise ValueError("bins and trees do not fit")
    if int(trees.feature.max(initial=-1)) >= len(arrays["names"]):
        raise ValueError("trees ask for features that are not named")
    return Boosted(tuple(str(n) for n in arrays["names"]), low, high, trees)
