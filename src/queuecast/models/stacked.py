"""The learned distribution: the chance of each bin, with the expected location among its features, mixed with what came
of cases of like location.

Bins tell of jobs that start at once or wait for days; a single number learns more from few jobs. Each alone was worse
than both on every public trace (docs/model.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from queuecast.features.cases import Cases
from queuecast.features.declare import Feature
from queuecast.features.history import Floats
from queuecast.models import boosted, located
from queuecast.models.boosted import Boosted
from queuecast.models.lessons import HALF_LIFE_S, Lessons
from queuecast.models.located import Located
from queuecast.models.trees import Values, check_columns
from queuecast.models.waits import Waits

LOCATION = Feature("location", "log1p(s)", "asked", "model", "wait that another model expects")

SHARE = 0.4
"""Of the mixture, for what came of cases of like location (chosen on the middle of the public traces)."""


@dataclass(frozen=True)
class Stacked:
    """``names`` of the features asked for, in order."""

    names: tuple[str, ...]
    located: Located
    bins: Boosted

    def predict(self, values: Values) -> Waits:
        """Distributions for features of shape (n, F) in the order of ``names``; nan is unknown. Raises ``ValueError`` for another
        number of columns."""
        check_columns(values, self.names)
        location = self.located.location(values)
        told = self.bins.predict(_with(values, location))
        alike = self.located.around(location)
        return Waits((1 - SHARE) * told.cdf + SHARE * alike.cdf, told.knots_s)

    def alone(self) -> Stacked:
        """Without what is left of learning: as if restored from a file."""
        return replace(self, located=replace(self.located, boosters=()), bins=replace(self.bins, booster=None))


def fit(
    cases: Cases,
    at: float,
    *,
    half_life_s: float = HALF_LIFE_S,
    threads: int = 1,
    rounds: int = boosted.ROUNDS,
    bins: int = boosted.BINS,
    location_rounds: int = located.ROUNDS,
) -> Stacked:
    """Learn from the outcomes known at ``at`` (epoch seconds, UTC). Newer cases weigh more.

    Raises ``ValueError`` if none of the cases has started.
    """
    lessons = Lessons.of(cases, at, half_life_s)
    where, number = located.fit(cases, lessons, rounds=location_rounds, threads=threads)
    features = (*cases.features, LOCATION)
    chances = boosted.fit(
        _with(cases.values[lessons.rows], number[lessons.rows]), features, lessons, rounds=rounds, bins=bins, threads=threads
    )
    return Stacked(tuple(f.name for f in cases.features), where, chances)


def _with(values: Values, location: Floats) -> Values:
    return np.column_stack([values, location.astype(np.float32)])


def saved(model: Stacked) -> dict[str, npt.NDArray[np.generic]]:
    """Arrays to save."""
    return {
        **{f"located_{name}": array for name, array in located.saved(model.located).items()},
        **{f"bins_{name}": array for name, array in boosted.saved(model.bins).items()},
    }


def restored(arrays: dict[str, npt.NDArray[np.generic]]) -> Stacked:
    """From saved arrays. Raises ``ValueError`` or ``KeyError`` if they are not whole."""
    parts = {p: {n.removeprefix(p): a for n, a in arrays.items() if n.startswith(p)} for p in ("located_", "bins_")}
    where, chances = located.restored(parts["located_"]), boosted.restored(parts["bins_"])
    if chances.names[-1:] != (LOCATION.name,) or int(where.trees.feature.max(initial=-1)) >= len(chances.names) - 1:
        raise ValueError("the parts do not fit")
    return Stacked(chances.names[:-1], where, chances)
