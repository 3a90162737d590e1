"""Where the wait lies, and how such waits scatter about it: one number by boosting, and the outcomes of cases told alike.

The number is the mean of log1p(wait), learned several times, each time without one share of the days. Cases of the past
thus have a number from a model that had not seen them ("out of fold"): what came of cases with such a number is
the distribution of a new one (predictive distributions from residuals, Vovk et al. 2019), and the number can be
used as a feature by another model without flattering itself (stacking, Wolpert 1992).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from queuecast.features.cases import Cases
from queuecast.features.history import Floats, Ints
from queuecast.models.lessons import Lessons
from queuecast.models.trees import Trees, Values, of_boosters
from queuecast.models.waits import KNOTS_S, Waits

if TYPE_CHECKING:
    import lightgbm

FOLDS = 4
ROUNDS = 100
DAYS_S = 2 * 86400.0
"""Jobs that became eligible within so long a stretch are left out together: they share the state of the queue."""

LEVELS = 40
"""Cases are told alike in so many groups of equal size, by their number."""

FEWEST_ALIKE = 50

PARAMETERS = {
    "objective": "regression",
    "learning_rate": 0.1,
    "num_leaves": 31,
    "max_depth": 8,
    "feature_fraction": 0.3,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "max_bin": 63,
    "seed": 1,
    "deterministic": True,
    "force_col_wise": True,
    "verbose": -1,
}


@dataclass(frozen=True)
class Located:
    """``levels`` are the mean numbers of the groups, ascending, shape (L,); ``cdf`` what came of them, shape (L, K)."""

    folds: int
    trees: Trees
    levels: Floats
    cdf: Floats
    boosters: tuple[lightgbm.Booster, ...] = field(default=(), repr=False, compare=False)

    def location(self, values: Values) -> Floats:
        """Mean of log1p(wait in seconds) expected, shape (n,)."""
        # In the process that trained, LightGBM itself is there and faster for many rows.
        if self.boosters and len(values) >= 500:
            return np.asarray(np.mean([b.predict(values) for b in self.boosters], axis=0), np.float64)
        return np.asarray(self.trees.raw(values)[:, 0] / self.folds, np.float64)

    def around(self, location: Floats) -> Waits:
        """What came of cases with such a number, between the two nearest groups in proportion."""
        place = np.interp(location, self.levels, np.arange(len(self.levels)))
        low = np.clip(place.astype(np.int64), 0, max(0, len(self.levels) - 2))
        share = (place - low)[:, None]
        return Waits((1 - share) * self.cdf[low] + share * self.cdf[np.minimum(low + 1, len(self.levels) - 1)], KNOTS_S)


def fit(cases: Cases, lessons: Lessons, *, rounds: int = ROUNDS, threads: int = 1) -> tuple[Located, Floats]:
    """Learn from the lessons; with the model, the out-of-fold number of every case (nan for those not learned from)."""
    import lightgbm

    fold = _folds(cases, lessons.rows)
    settings: dict[str, Any] = {**PARAMETERS, "num_threads": threads, "min_data_in_leaf": int(np.clip(len(fold) // 60, 5, 100))}
    number = np.full(len(cases), np.nan)
    values = cases.values[lessons.rows]
    boosters = []
    for left_out in np.unique(fold):
        rest, here = fold != left_out, fold == left_out
        if not rest.any():
            rest = here  # a single stretch of time: nothing can be left out
        data = lightgbm.Dataset(values[rest], lessons.z[rest], weight=lessons.weight[rest], free_raw_data=True)
        boosters.append(lightgbm.train(settings, data, rounds))
        number[lessons.rows[here]] = boosters[-1].predict(values[here])
    levels, cdf = _groups(number[lessons.rows], lessons)
    return Located(len(boosters), of_boosters(boosters), levels, cdf, tuple(boosters)), number


def _folds(cases: Cases, rows: Ints) -> Ints:
    """The fold of each lesson: all questions about one job lie in one, so that none tells of its own outcome."""
    moment = np.where(np.isfinite(cases.eligible[rows]), cases.eligible[rows], cases.asked[rows])
    begin = moment.min()
    stretch = min(DAYS_S, max((moment.max() - begin) / (4 * FOLDS), 1.0))
    return np.asarray(((moment - begin) // stretch).astype(np.int64) % FOLDS)


def _groups(number: Floats, lessons: Lessons) -> tuple[Floats, Floats]:
    """Groups of lessons by their number: the mean number, and the share of outcomes up to each knot."""
    count = int(np.clip(len(number) // FEWEST_ALIKE, 1, LEVELS))
    order = np.argsort(number, kind="stable")
    knots = np.log1p(KNOTS_S)
    levels, cdf = [], []
    for rows in np.array_split(order, count):
        ranked = rows[np.argsort(lessons.z[rows], kind="stable")]
        reached = np.concatenate([[0.0], np.cumsum(lessons.weight[ranked])])
        levels.append(np.average(number[rows], weights=lessons.weight[rows]))
        cdf.append(reached[np.searchsorted(lessons.z[ranked], knots + 1e-9, side="right")] / reached[-1])
    rising = np.maximum.accumulate(np.array(levels))
    return rising, np.array(cdf)


def saved(model: Located) -> dict[str, npt.NDArray[np.generic]]:
    """Arrays to save."""
    return {"folds": np.array(model.folds), "levels": model.levels, "cdf": model.cdf, **model.trees.arrays()}


def restored(arrays: dict[str, npt.NDArray[np.generic]]) -> Located:
    """From saved arrays. Raises ``ValueError`` or ``KeyError`` if they are not whole."""
    rest = {n: a for n, a in arrays.items() if n not in ("folds", "levels", "cdf")}
    levels, cdf = np.asarray(arrays["levels"], np.float64), np.asarray(arrays["cdf"], np.float64)
    folds, trees = int(arrays["folds"]), Trees.of_arrays(rest)
    if folds < 1 or trees.outputs != 1 or cdf.shape != (len(levels), len(KNOTS_S)) or not len(levels):
        raise ValueError("groups and trees do not fit")
    if (np.diff(levels) < 0).any() or (np.diff(cdf, axis=1) < 0).any() or not ((cdf >= 0) & (cdf <= 1 + 1e-9)).all():
        raise ValueError("groups are not distributions")
    return Located(folds, trees, levels, cdf)
