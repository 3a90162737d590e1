"""The statistics of groups of failures: stretches of a node's jobs, and whether its peers fared better."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Stratum(NamedTuple):
    """Jobs of one user and kind: ``died`` of ``ran`` on the node, ``other_died`` of ``other_ran`` elsewhere."""

    died: int
    ran: int
    other_died: int
    other_ran: int

    @property
    def expected(self) -> float:
        """Deaths on the node if it made no difference."""
        total = self.ran + self.other_ran
        return self.ran * (self.died + self.other_died) / total if total else 0.0

    @property
    def informative(self) -> bool:
        """Whether it can tell nodes apart: it ran elsewhere too, and neither all nor none died."""
        return self.other_ran > 0 and 0 < self.died + self.other_died < self.ran + self.other_ran


def hypergeometric(total: int, marked: int, drawn: int) -> npt.NDArray[np.float64]:
    """P(0), P(1), ... P(drawn) of so many marked ones among ``drawn`` of ``total``, of which ``marked`` are marked."""
    if not 0 <= marked <= total or not 0 <= drawn <= total:
        raise ValueError("counts beyond the total")
    out = np.zeros(drawn + 1)
    for k in range(max(0, drawn + marked - total), min(drawn, marked) + 1):
        out[k] = math.exp(_choose(marked, k) + _choose(total - marked, drawn - k) - _choose(total, drawn))
    shares: npt.NDArray[np.float64] = out / out.sum()
    return shares


def _choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def exact_tail(strata: Iterable[Stratum]) -> float:
    """P(at least as many deaths on the node), if within each stratum it is chance which of the jobs died.

    The exact one-sided test of Cochran, Mantel and Haenszel: within a stratum the number that died on the node, given how many
    died in all, is hypergeometric; the sum over the strata is their convolution. A script that dies everywhere adds to what is
    expected as much as to what was seen. 1 without any stratum that can tell.
    """
    told = [s for s in strata if s.informative]
    if not told:
        return 1.0
    shape: npt.NDArray[np.float64] = np.ones(1)
    for s in told:
        shape = np.convolve(shape, hypergeometric(s.ran + s.other_ran, s.died + s.other_died, s.ran))
    seen = sum(s.died for s in told)
    return float(min(1.0, max(0.0, shape[seen:].sum())))


def stretches(values: Sequence[float]) -> list[tuple[int, int]]:
    """All maximal scoring stretches ``[first, behind)`` of a sequence, in order; they do not overlap.

    In one pass (Ruzzo and Tompa, "A linear time algorithm for finding all maximal scoring subsequences", ISMB 1999).
    """
    found: list[tuple[int, int, float, float]] = []  # first, behind, sum before it, sum at its end
    total = 0.0
    for index, value in enumerate(values):
        before, total = total, total + value
        if value <= 0:
            continue
        new = (index, index + 1, before, total)
        while True:
            at = next((i for i in range(len(found) - 1, -1, -1) if found[i][2] < new[2]), None)
            if at is None or found[at][3] >= new[3]:
                break
            new = (found[at][0], new[1], found[at][2], new[3])
            del found[at:]
        found.append(new)
    return [(first, behind) for first, behind, _low, _high in found]
