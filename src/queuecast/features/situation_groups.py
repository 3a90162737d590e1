"""How jobs are counted, and the groups that they are counted by.

- Times are taken to the millisecond. A start before the job became eligible, or an end before its start, is moved up
  to it.
- An unknown or unlimited time limit counts as 7 days, an unknown number of CPUs as 1, of GPUs as 0. A row of an array
  that waits counts as many times as it has tasks.
"""

from __future__ import annotations

import numpy as np

from queuecast.features.asking import Asking
from queuecast.features.history import Floats, History, Ints, limit_class, size_class
from queuecast.features.intervals import NEVER

MEMORY_S = 30 * 86400.0
"""What happened longer ago does not count where the last or the usual is meant. A live answer reads 45 days."""

UNKNOWN_LIMIT_S = 7 * 86400.0
LONGEST_LIMIT_S = 366 * 86400.0

DIMS = ("cluster", "partition", "gpu", "account", "user", "partition_account", "like", "twin")
"""What jobs are counted by. gpu: GPU type asked for and whether any GPU is. like: partition and size class. twin: user,
partition, size class and limit class."""

SIZES, LIMITS = 18, 7
"""Numbers of size and limit classes."""


def milliseconds(seconds: Floats, base: float) -> Ints:
    """Whole milliseconds since ``base`` (epoch seconds); infinite is ``NEVER``."""
    return np.minimum(np.rint((seconds - base) * 1000), NEVER).astype(np.int64)


def counted_limit(limit_s: Floats) -> Floats:
    """Time limit in seconds as it is counted."""
    return np.where(np.isnan(limit_s), UNKNOWN_LIMIT_S, np.minimum(limit_s, LONGEST_LIMIT_S))


def counted_cpus(cpus: Floats) -> Floats:
    """CPUs as they are counted: whole, unknown is 1."""
    return np.rint(np.fmax(cpus, np.where(np.isnan(cpus), 1.0, 0.0)))


def counted_gpus(gpus: Floats) -> Floats:
    """GPUs as they are counted: whole, unknown is 0."""
    return np.rint(np.fmax(gpus, 0.0))


def base_of(history: History) -> float:
    """The second that times are counted from."""
    return float(np.floor(history.eligible[0])) if len(history) else 0.0


def raw_codes(dim: str, words: dict[str, list[str]], who: History | Asking) -> tuple[Ints, int]:
    """Group numbers of jobs or requests, and the number that all are below; negative if a word never occurred."""
    codes, count = who.codes, {text: len(known) for text, known in words.items()}
    if dim == "cluster":
        return np.zeros(len(who), np.int64), 1
    if dim == "gpu":
        return codes["gpu_type"] * 2 + (who.gpus > 0), 2 * count["gpu_type"]
    if dim == "partition_account":
        return _unless(codes["account"], codes["partition"] * count["account"] + codes["account"]), count["partition"] * count["account"]
    if dim in ("like", "twin"):
        like = codes["partition"] * SIZES + size_class(who.gpus, who.cpus)
        if dim == "like":
            return like, count["partition"] * SIZES
        span = count["partition"] * SIZES * LIMITS
        return _unless(codes["partition"], codes["user"] * span + like * LIMITS + limit_class(who.limit_s)), count["user"] * span
    return codes[dim], count[dim]


def _unless(unseen: Ints, codes: Ints) -> Ints:
    return np.where(unseen < 0, -1, codes)


class Groups:
    """Group numbers 0 .. ``size`` - 1 of some jobs in one dimension, and those of requests: ``size`` is "never seen"."""

    def __init__(self, dim: str, history: History, rows: Ints | None = None, most: int = 4096) -> None:
        """All jobs, or some of them. Where there could be more than ``most`` groups, only those that occur count."""
        self._dim, self._words = dim, history.words
        # The moment asked about does not matter here.
        some = history if rows is None else Asking.of_rows(history, rows, history.eligible[rows])
        codes, self.size = raw_codes(dim, history.words, some)
        self._seen: Ints | None = None
        if self.size > most:
            self._seen, codes = np.unique(codes, return_inverse=True)
            self.size = len(self._seen)
        self.codes: Ints = codes

    def sums(self, weights: Floats, rows: slice) -> Floats:
        """Sum of weights per group (``size`` + 1,) over a stretch of the jobs."""
        return np.asarray(np.bincount(self.codes[rows], weights, minlength=self.size + 1), np.float64)

    def of_requests(self, asking: Asking) -> Ints:
        """Group numbers (m,) of requests."""
        codes, _ = raw_codes(self._dim, self._words, asking)
        if self._seen is None:
            return np.where(codes < 0, self.size, codes)
        if not self.size:
            return np.zeros(len(asking), np.int64)
        place = np.minimum(np.searchsorted(self._seen, codes), self.size - 1)
        return np.where(self._seen[place] == codes, place, self.size)
