"""Whether intervals hold, with the jobs counted that have not started yet.

Counting the started ones alone flatters: near the end of a recording those that have started are the ones that waited little. What
became of open jobs is estimated from those that came as far by the level of their answers (Kaplan and Meier 1958; Efron
1967), which asks that jobs are not left open because of how they will end.
"""

from __future__ import annotations

import numpy as np

from queuecast.features.history import Flags, Floats


def inside_chances(bottom: Floats, level: Floats, top: Floats, inside: Flags, started: Flags) -> Floats:
    """Per answer (n,) the chance that the wait lies inside its interval: 1 or 0 by ``inside`` where the job has ``started``.

    ``level`` is the probability that the answer gave to a wait of at most what came, or, for an open job, of what it has waited;
    ``bottom`` and ``top`` are the levels of the interval's ends. An open job lies inside with the chance that a job
    that came as far ended between them; 0 where none did.
    """
    order = np.lexsort((~started, level))
    ranked, came = level[order], started[order]
    left = np.r_[1.0, np.cumprod(np.where(came, 1.0 - 1.0 / np.arange(len(level), 0, -1), 1.0))]

    def beyond(levels: Floats) -> Floats:
        return np.asarray(left[np.searchsorted(ranked, levels, side="right")], np.float64)

    at, rest = np.maximum(bottom, level), beyond(level)
    chance = np.divide(beyond(at) - beyond(np.maximum(at, top)), rest, out=np.zeros(len(level)), where=rest > 0)
    return np.where(started, inside.astype(np.float64), chance)


def inside_share(bottom: Floats, level: Floats, top: Floats, inside: Flags, started: Flags) -> float:
    """Mean of ``inside_chances``; nan without any answer."""
    return float(inside_chances(bottom, level, top, inside, started).mean()) if len(level) else float("nan")
