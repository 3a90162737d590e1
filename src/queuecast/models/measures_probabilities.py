"""How good the chances to start within 1, 4 and 24 hours are: Brier score and skill, calibration, discrimination.

The label of a job censored before the hour in question is unknown; it is left out. Where many jobs are cancelled that
early, a right probability therefore looks somewhat too low.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from queuecast.features.history import Flags, Floats
from queuecast.models.measures_distribution import within
from queuecast.models.measures_statistic import BINS, Auroc, CalibrationError, Mean, Skill, Statistic, equal_mass
from queuecast.models.waits import Waits

HOURS = (1, 4, 24)


@dataclass(frozen=True)
class Reliability:
    """Per bin of equal mass, by rising probability: mean probability told, share that came, number of cases."""

    told: Floats
    came: Floats
    cases: Floats


def labels(wait: Floats, started: Flags, seconds: float) -> Floats:
    """1 where the job started within ``seconds``, 0 where it waited longer, nan where that is not known. Shape (n,)."""
    early = started & (wait <= seconds)
    late = np.where(started, wait > seconds, wait >= seconds)
    return np.where(early, 1.0, np.where(late, 0.0, np.nan))


def probabilities(
    waits: Waits, wait: Floats, started: Flags, climatology: Mapping[int, Floats] | None = None
) -> Iterator[tuple[str, Statistic]]:
    """Measures of P(start within h hours).

    ``brier_4h``: mean squared error of the probability (Brier 1950). ``brier_skill_4h``: what is saved against the
    probabilities ``climatology[4]`` (n,), where given; nan there leaves a case out. ``ece_4h``: expected calibration error
    in 15 bins of equal mass. ``auroc_4h``: area under the ROC curve.
    """
    for hours in HOURS:
        told, came = within(waits, 3600.0 * hours), labels(wait, started, 3600.0 * hours)
        brier = (told - came) ** 2
        yield f"brier_{hours}h", Mean(brier)
        if climatology is not None and hours in climatology:
            yield f"brier_skill_{hours}h", Skill(brier, (climatology[hours] - came) ** 2)
        yield f"ece_{hours}h", CalibrationError(told, came)
        yield f"auroc_{hours}h", Auroc(told, came)


def reliability(told: Floats, came: Floats, bins: int = BINS) -> Reliability:
    """Reliability curve of probabilities ``told`` (n,) for ``came`` (n,; 1, 0 or nan), in at most ``bins`` bins."""
    known = ~np.isnan(came)
    told, came = told[known], came[known]
    place = equal_mass(told, bins)
    cases = np.bincount(place).astype(np.float64)
    return Reliability(np.bincount(place, told) / cases, np.bincount(place, came) / cases, cases)
