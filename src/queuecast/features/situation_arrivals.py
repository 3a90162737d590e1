"""Jobs of one moment in order of arrival, summed up to a place in the queue, for any number of requests."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from queuecast.features.history import Floats, Ints
from queuecast.features.intervals import HOUR, ratio
from queuecast.features.situation_groups import Groups
from queuecast.features.situation_names import COLUMN
from queuecast.features.situation_tables import Part
from queuecast.features.situation_view import Matrix


class Arrivals:
    """Weights (rows, k) of some jobs by group and row number; ``base`` (groups + 1, k) is added to every sum."""

    def __init__(self, groups: Groups, rows: Ints, codes: Ints, weights: Ints, span: int, base: Floats | None = None) -> None:
        """``rows`` rise and are below ``span``."""
        by = np.argsort(codes, kind="stable")
        self._span = span + 1
        self._keys = codes[by] * self._span + rows[by]
        self._totals = np.zeros((len(rows) + 1, weights.shape[1]), np.int64)
        np.cumsum(weights[by], axis=0, out=self._totals[1:])
        self._base = base
        self.groups = groups
        self.rows: Ints = rows[by]

    def places(self, codes: Ints, until: Ints) -> tuple[Ints, Ints]:
        """Where the rows of each group begin, and where those below ``until`` end."""
        first = codes * self._span
        return np.searchsorted(self._keys, first), np.searchsorted(self._keys, first + until)

    def sums(self, codes: Ints, until: Ints) -> Ints | Floats:
        """Sums (m, k) over the rows of a group that are below ``until``."""
        first, place = self.places(codes, until)
        found = self._totals[place] - self._totals[first]
        return found if self._base is None else found + self._base[codes]


SUMS = ("jobs", "core_h", "gpu_h", "cpus", "gpus", "predicted_core_h", "since")
"""What is summed up over pending jobs; "since" for the mean time waited."""


def weights_of(part: Part) -> Ints:
    """Weights (jobs, ``SUMS``)."""
    tasks, core, gpu = part.tasks, part.cpus * part.limit, part.gpus * part.limit
    return np.column_stack([tasks, core, gpu, part.cpus, part.gpus, part.cpus * part.predicted, tasks * part.eligible])


class Queue:
    """The pending jobs in one dimension."""

    def __init__(self, dim: str, groups: Groups, part: Part, codes: Ints, span: int) -> None:
        self.groups = groups
        self._arrivals = Arrivals(groups, part.rows, codes, weights_of(part), span)
        self._eligible = np.r_[part.eligible[np.searchsorted(part.rows, self._arrivals.rows)], 0]
        self._dim = dim
        self._pending, self._ahead = self._columns("pending"), self._columns("ahead")

    def _columns(self, kind: str) -> tuple[list[int], list[int], Floats]:
        """Column numbers, which sums go there, and what they are multiplied by."""
        found = [
            (COLUMN[name], i, 1 / HOUR if s.endswith("_h") else 1.0)
            for i, s in enumerate(SUMS)
            if (name := f"{self._dim}_{kind}_{s}") in COLUMN
        ]
        return [f[0] for f in found], [f[1] for f in found], np.array([f[2] for f in found])

    def fill(self, codes: Ints, at: int, who: Who, out: Matrix) -> None:
        """Fill the pending_*, ahead_* and drain_* columns of this dimension."""
        dim, arrivals = self._dim, self._arrivals
        first, place = arrivals.places(codes, who.arrived)
        sums = arrivals.sums(codes, who.arrived) - who.own
        columns, which, scale = self._pending
        out[:, columns] = sums[:, which] * scale
        columns, which, scale = self._ahead
        if columns:
            ahead = arrivals.sums(codes, who.place)
            out[:, columns] = ahead[:, which] * scale
            if f"{dim}_ahead_share" in COLUMN:
                out[:, COLUMN[f"{dim}_ahead_share"]] = ratio(ahead[:, 0], sums[:, 0])
        if f"{dim}_pending_mean_s" in COLUMN:
            out[:, COLUMN[f"{dim}_pending_mean_s"]] = ratio(sums[:, 0] * at - sums[:, -1], sums[:, 0]) / 1000
        if f"{dim}_pending_max_s" in COLUMN:
            if len(arrivals.rows):
                first = first + (who.waiting & (arrivals.rows[np.minimum(first, len(arrivals.rows) - 1)] == who.row))
            waited = np.where(first < place, at - self._eligible[first], np.nan)
            out[:, COLUMN[f"{dim}_pending_max_s"]] = waited / 1000
        for work, what in (("cpu", "cpus"), ("gpu", "gpus")):
            column = COLUMN.get(f"{dim}_drain_{work}_h")
            if column is not None:
                out[:, column] = ratio(sums[:, 1 if work == "cpu" else 2] / HOUR, out[:, COLUMN[f"{dim}_running_{what}"]])


class Who:
    """Where requests (m,) stand: ``arrived`` jobs of the history had become eligible, those below ``place`` are ahead.

    ``waiting``: the job itself is among those arrived; ``own`` (m, ``SUMS``) are its weights then, else 0.
    """

    def __init__(self, row: Ints, place: Ints, low: int, high: int, part: Part) -> None:
        """``low``, ``high``: jobs eligible before the moment, and by then."""
        self.row = row
        self.arrived = np.where(row >= 0, np.clip(row, low, high), high)
        self.place = np.minimum(place, self.arrived)
        self.waiting: npt.NDArray[np.bool_] = (row >= 0) & (self.arrived > row)
        self.own = np.zeros((len(row), len(SUMS)), np.int64)
        if self.waiting.any():
            self.own[self.waiting] = weights_of(part)[np.searchsorted(part.rows, row[self.waiting])]
