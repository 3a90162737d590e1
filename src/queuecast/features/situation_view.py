"""Moments asked about, in order, and where each of them falls among the events of its group.

Shared by the calculators of the queue's state for many moments (``situation_*``): they read sums over intervals
through a ``View`` of one dimension and write columns through it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from queuecast.features.asking import Asking
from queuecast.features.history import Flags, Floats, Ints
from queuecast.features.intervals import HOUR, NEVER, Lanes, Moments, sorted_with
from queuecast.features.situation_groups import MEMORY_S, milliseconds
from queuecast.features.situation_jobs import Jobs
from queuecast.features.situation_names import COLUMN, HOURS

Matrix = np.ndarray[tuple[int, int], np.dtype[np.float32]]

MEMORY = int(MEMORY_S * 1000)


class Clock:
    """The moments asked about in rising order, and how many events of each kind come before them.

    ``order`` sorts the requests; all other arrays are in that order. ``arrived`` jobs of the history had become
    eligible: those before the moment, and at that very moment those of lower row number. Starts and ends count when
    they happened before the moment: what happens in the same second as the question is not known to it. ``seen`` are
    runs that do not end before they are due within so many hours.
    """

    def __init__(self, jobs: Jobs, asking: Asking) -> None:
        self.jobs = jobs
        asked = milliseconds(asking.asked, jobs.base)
        row = asking.row.astype(np.int64)
        place = np.where(row >= 0, row, np.searchsorted(jobs.eligible, milliseconds(asking.eligible, jobs.base), side="right"))
        rising = (np.diff(asked) > 0) | ((np.diff(asked) == 0) & (np.diff(place) >= 0))
        self.order: Ints = np.arange(len(asked)) if rising.all() else np.lexsort((place, asked))
        self.at: Ints = asked[self.order]
        self.row: Ints = row[self.order]
        own = np.maximum(self.row, 0)
        if len(jobs) and ((self.row >= 0) & (jobs.leave[own] < self.at)).any():
            raise ValueError("a job is asked about after it started or was cancelled")
        low, high = (np.searchsorted(jobs.eligible, self.at, side=side) for side in ("left", "right"))
        self.arrived: Ints = np.where(self.row >= 0, np.clip(self.row, low, high), high)
        self.place: Ints = np.minimum(place[self.order], self.arrived)
        self.waiting = (self.row >= 0) & (self.arrived > self.row)
        self.seen: dict[str, Flags] = {}
        self._moments = {"leave": Moments(jobs.leave), "end": Moments(jobs.end), "limit": Moments(np.minimum(jobs.end, jobs.planned()))}
        for by in ("limit", "predicted"):
            for hours in HOURS:
                due = jobs.coming(by, hours)
                self.seen[f"{by} {hours}"] = due <= jobs.end
                self._moments[f"{by} {hours}"] = Moments(due, self.seen[f"{by} {hours}"])
        self._ranks = {(kind, 0): moments.before(self.at) for kind, moments in self._moments.items()}
        for shift in (*(h * HOUR for h in HOURS), MEMORY):
            self._ranks["leave", shift] = self._moments["leave"].before(self.at - shift)
        self._ranks["arrival", 0] = self.arrived
        for shift in (600_000, HOUR, MEMORY):
            self._ranks["arrival", shift] = np.searchsorted(jobs.eligible, self.at - shift, side="left")

    def rank(self, kind: str, shift: int) -> Ints:
        """How many events of a kind came before each moment less ``shift`` ms."""
        return self._ranks[kind, shift]

    def rows(self, kind: str) -> Ints:
        """Jobs that such an event happened to, in time order."""
        return np.arange(len(self.jobs)) if kind == "arrival" else self._moments[kind].rows


class View:
    """One dimension: the moments in the order of their groups, and the lanes of events."""

    def __init__(self, clock: Clock, dim: str, codes: Ints, out: Matrix) -> None:
        """``codes``: group numbers of the requests, in the clock's order; ``out``: where columns go, (m, F).
        ``found`` keeps sums that several columns need."""
        self.clock, self.jobs, self.dim, self._out = clock, clock.jobs, dim, out
        self.found: dict[str, Ints] = {}
        self.size = clock.jobs.groups[dim].size + 1
        by = self.by = sorted_with(codes)[0]
        self.codes: Ints = codes[by]
        self.at, self.row, self.waiting = clock.at[by], clock.row[by], clock.waiting[by]
        self.waits = bool(self.waiting.any())
        self.own: Ints = np.maximum(self.row, 0)
        self._each: Ints = np.bincount(codes, minlength=self.size)
        self._back = np.empty(len(by), np.int64)
        self._back[clock.order[by]] = np.arange(len(by))
        self._lanes: dict[str, Lanes] = {}
        self._places: dict[tuple[str, int], Ints] = {}
        self._room = np.empty(len(by), np.int64)
        self._totals = np.empty(len(self.jobs) + 1, np.int64)

    def wants(self, quantity: str) -> bool:
        """Whether the quantity is declared in this dimension."""
        return f"{self.dim}_{quantity}" in COLUMN

    def put(self, quantity: str, values: npt.NDArray[np.generic]) -> None:
        """Fill a column if it is declared."""
        column = COLUMN.get(f"{self.dim}_{quantity}")
        if column is not None:
            np.take(values.astype(np.float32), self._back, out=self._out[:, column], mode="clip")

    def repeat(self, quantity: str, filled: str) -> None:
        """Fill a column with what is in another, if it is declared."""
        if self.wants(quantity):
            self._out[:, COLUMN[f"{self.dim}_{quantity}"]] = self._out[:, COLUMN[f"{self.dim}_{filled}"]]

    def clocked(self, values: Floats) -> Floats:
        """Values of the view in the order of the clock."""
        out = np.empty(len(values))
        out[self.by] = values
        return out

    def lanes(self, kind: str) -> Lanes:
        """Events of one kind, by group."""
        if kind not in self._lanes:
            self._lanes[kind] = Lanes(self.clock.rows(kind), self.jobs.groups[self.dim].codes, self.size)
            if kind == "leave":  # starts are those of them that are no cancellations
                self._starts = self._lanes[kind].only(self.jobs.start < NEVER)
        return self._lanes[kind]

    def place(self, kind: str, shift: int = 0) -> Ints:
        """Where the events before the moment (less ``shift`` ms) end in their lane."""
        if (kind, shift) not in self._places:
            if kind == "start":
                left = self.place("leave", shift)
                found = np.take(self._starts[2], left, mode="clip")
            else:
                found = self.lanes(kind).place(self.codes, np.take(self.clock.rank(kind, shift), self.by))
            self._places[kind, shift] = found
        return self._places[kind, shift]

    def rows(self, kind: str) -> Ints:
        """Jobs that such an event happened to, in the order of the lanes."""
        rows = self.lanes("leave" if kind == "start" else kind).rows
        return self._starts[0] if kind == "start" else rows

    def firsts(self, kind: str) -> Ints:
        """Where each lane begins, and the end."""
        first = self.lanes("leave" if kind == "start" else kind).first
        return self._starts[1] if kind == "start" else first

    def first(self, kind: str) -> Ints:
        """Where the lane of each moment begins."""
        return np.repeat(self.firsts(kind)[:-1], self._each)

    def totals(self, kind: str, weights: Ints) -> Ints:
        """Running totals of a weight per job: the sum over events i to j - 1 is ``totals[j] - totals[i]``. Good until
        the next call: memory that was used before costs nothing, fresh pages more than what is done with them."""
        rows = self.rows(kind)
        out = self._totals[: len(rows) + 1]
        out[0] = 0
        np.take(weights, rows, out=out[1:], mode="clip")
        np.cumsum(out, out=out)
        return out

    def upto(self, kind: str, weights: Ints) -> Ints:
        """Sum of weights over the events before the moment."""
        if weights is self.jobs.tasks and self.jobs.single:
            return self.place(kind) - self.first(kind)
        totals = self.totals(kind, weights)
        found: Ints = np.take(totals, self.place(kind), mode="clip")
        np.take(totals[self.firsts(kind)[:-1]], self.codes, out=self._room, mode="clip")
        found -= self._room
        return found

    def within(self, entered: str, left: str, weights: Ints) -> Ints:
        """Sum of weights over the jobs that entered a state before the moment and had not left it."""
        found = self.upto(entered, weights)
        found -= self.upto(left, weights)
        return found

    def since(self, kind: str, weights: Ints, shifts: tuple[int, ...]) -> list[Ints]:
        """Sums of weights over the events in the last ``shifts`` ms before the moment."""
        totals = self.totals(kind, weights)
        now = np.take(totals, self.place(kind), mode="clip")
        return [now - np.take(totals, self.place(kind, shift), mode="clip") for shift in shifts]

    def of_own(self, values: Ints, where: npt.NDArray[np.bool_]) -> Ints:
        """The job's own value where it would be among those counted, else 0."""
        return np.where(where, values[self.own], 0) if len(values) else np.zeros(len(self.own), np.int64)


def hours_of(ms: Ints) -> Floats:
    """Milliseconds (times CPUs, GPUs) as hours."""
    return ms / HOUR
