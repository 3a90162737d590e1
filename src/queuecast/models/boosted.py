"""The chance of each bin of the wait, learned by boosting: a multinomial model over the whole range of waits.

The wait is cut into bins at quantiles of the waits in training (a wait of zero is a bin of its own), and one boosted
classifier gives the chance of every bin. This was chosen by measurement against one number with conformal residuals,
quantile boosting and hazards (docs/model.md): it speaks of jobs that either start at once or wait for days, which a
location and a spread do not, and its quantiles cannot cross.

Censored jobs are used: what such a job has waited is known, and the rest is spread over the longer waits of others in
the proportions that the Kaplan-Meier estimate gives them (Efron 1967, "redistribute to the right").
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from queuecast.features.cases import Cases
from queuecast.features.history import Flags, Floats, Ints
from queuecast.models.distribution import kaplan_meier
from queuecast.models.trees import Trees, Values, of_booster
from queuecast.models.waits import KNOTS_S, Waits

if TYPE_CHECKING:
    import lightgbm

BINS = 24
ROUNDS = 60
MOST_CASES = 80_000
"""Training cases at most: the latest weigh most, so the oldest are thinned first."""

COPIES = 3
"""A censored case stands in training as so many equally likely outcomes."""

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
        """Distributions for features in the order of ``names``."""
        # In the process that trained, LightGBM itself is there and faster for many rows.
        scores = self.trees.raw(values) if self.booster is None or len(values) < 500 else self.booster.predict(values, raw_score=True)
        scores = np.asarray(scores, np.float64)
        chance = np.exp(scores - scores.max(axis=1, keepdims=True))
        chance /= chance.sum(axis=1, keepdims=True)
        z = np.log1p(KNOTS_S)
        width = self.high - self.low
        inside = np.where(width[:, None] > 0, (z[None, :] - self.low[:, None]) / np.maximum(width, 1e-9)[:, None], 1.0)
        return Waits(np.minimum.accumulate((chance @ np.clip(inside, 0.0, 1.0))[:, ::-1], axis=1)[:, ::-1], KNOTS_S)


def fit(cases: Cases, at: float, *, half_life_s: float = 40 * 86400.0, threads: int = 1, rounds: int = ROUNDS, bins: int = BINS) -> Boosted:
    """Learn from the outcomes known at ``at`` (epoch seconds, UTC). Newer cases weigh more.

    Raises ``ValueError`` if none of the cases has started.
    """
    import lightgbm

    rows = _chosen(cases, at)
    some = cases.take(rows)
    waits, started = some.outcomes(at)
    if not started.any():
        raise ValueError("no case has started")
    index, z = _outcomes(waits, started)
    weight = np.exp2(-(at - some.asked) / half_life_s)[index] * np.where(started, 1.0, 1.0 / COPIES)[index]
    low, high = _bins(z, bins)
    # A wait on an inner edge belongs to the bin that begins there.
    label = np.clip(np.searchsorted(low, z, side="right") - 1, 0, len(low) - 1)
    label[z <= 0] = 0
    settings: dict[str, Any] = {**PARAMETERS, "num_class": len(low), "num_threads": threads}
    settings["min_data_in_leaf"] = int(np.clip(len(z) // 60, 5, PARAMETERS["min_data_in_leaf"]))  # type: ignore[call-overload]
    data = lightgbm.Dataset(some.values[index], label, weight=weight, free_raw_data=True)
    booster = lightgbm.train(settings, data, rounds)
    return Boosted(tuple(f.name for f in cases.features), low, high, of_booster(booster), booster)


def _chosen(cases: Cases, at: float) -> Ints:
    """Cases asked before ``at``, the oldest thinned: of each earlier stretch of time only every second, fourth, ..."""
    rows = np.flatnonzero(cases.asked < at)
    if len(rows) <= MOST_CASES:
        return rows
    # Half of the places go to the latest cases, the rest evenly to all that came before.
    late = rows[-MOST_CASES // 2 :]
    early = rows[: len(rows) - len(late)]
    return np.concatenate([early[np.linspace(0, len(early) - 1, MOST_CASES - len(late)).astype(np.int64)], late])


def _outcomes(waits: Floats, started: Flags) -> tuple[Ints, Floats]:
    """Rows and log1p waits for training; a censored row comes ``COPIES`` times with outcomes beyond what it waited."""
    known, unknown = np.flatnonzero(started), np.flatnonzero(~started)
    z = np.log1p(waits)
    if not len(unknown):
        return known, z[known]
    whole = kaplan_meier(waits, started)
    base = np.interp(z[unknown], whole.z, whole.p)
    top = float(np.log1p(max(waits.max(), 1.0))) + 0.7
    level = base[:, None] + (1 - base[:, None]) * (np.arange(COPIES) + 0.5) / COPIES
    beyond = np.where(level > whole.p[-1], top, np.interp(level, whole.p, whole.z))
    beyond = np.maximum(beyond, z[unknown][:, None] + 1e-6)
    return np.concatenate([known, np.repeat(unknown, COPIES)]), np.concatenate([z[known], beyond.ravel()])


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
