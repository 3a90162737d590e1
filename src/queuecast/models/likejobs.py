"""The first model: what happened to recent jobs like this one.

Likeness is tried from fine to coarse until enough started jobs are found; jobs still pending or cancelled while
pending count as censored. Recent jobs weigh more. Which dimensions, how many jobs and which half-life were chosen by
measurement on the demo recording (``docs/decisions.md``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from queuecast.features.history import Flags, Floats, History, Ints, limit_class, size_class
from queuecast.models.distribution import WaitDistribution, kaplan_meier

LEVELS: tuple[tuple[tuple[str, ...], int], ...] = (
    (("partition", "qos", "account", "gpu_type", "size", "limit"), 200),
    (("partition", "qos", "account", "gpu_type", "size"), 30),
    (("partition", "qos", "gpu_type", "size", "limit"), 200),
    (("partition", "qos", "gpu_type", "size"), 30),
    (("partition", "gpu_type", "size"), 30),
    (("partition", "gpu_type"), 30),
    (("partition", "gpu"), 20),
    (("partition",), 10),
    (("gpu",), 10),
    ((), 5),
)
"""(dimensions that must be equal, started jobs needed), finest first. The last level is the whole cluster."""

MOST = 800
"""At most so many of the latest like jobs."""

WINDOW_S = 45 * 86400.0
"""Jobs that became eligible longer ago say nothing any more."""

HALF_LIFE_S = 3 * 86400.0
"""A job that became eligible that much earlier counts half."""


@dataclass(frozen=True)
class Key:
    """A request in the terms that jobs are likened by. Texts are compared case-folded; nan is unknown.

    Several partitions may be named, as Slurm allows; the job then starts in whichever is first.
    """

    partitions: tuple[str, ...]
    qos: str | None = None
    account: str | None = None
    gpu_type: str | None = None
    gpus: float = 0.0
    cpus: float = 1.0
    limit_s: float = float("nan")

    def codes(self, history: History, partition: str) -> Mapping[str, int]:
        """Codes of each dimension in ``history``; -1 where the value never occurred."""
        return {
            "partition": history.code("partition", partition),
            "qos": history.code("qos", self.qos),
            "account": history.code("account", self.account),
            "gpu_type": history.code("gpu_type", self.gpu_type),
            "gpu": int(self.gpus > 0),
            "size": int(size_class(np.array([self.gpus]), np.array([self.cpus]))[0]),
            "limit": int(limit_class(np.array([self.limit_s]))[0]),
        }


@dataclass(frozen=True)
class Like:
    """The like jobs of one answer: row numbers in the history, waits in seconds as known then, which started, weights."""

    dims: tuple[str, ...]
    rows: Ints
    waits: Floats
    started: Flags
    weights: Floats

    eligible: Floats

    def span_days(self, at: float) -> float:
        """How far back the oldest of them became eligible, in days."""
        return float(at - self.eligible.min()) / 86400.0

    def distribution(self) -> WaitDistribution:
        """Kaplan-Meier over them."""
        return kaplan_meier(self.waits, self.started, self.weights)


def find_like(history: History, key: Key, at: float, waited_s: float = 0.0, *, without: int = -1) -> Like | None:
    """Like jobs as known at ``at`` (epoch seconds); None if the cluster has no history at all.

    For a job that has waited ``waited_s`` already, only levels count where enough jobs waited at least that long and
    then started. ``without`` leaves one row out: the job itself.
    """
    fallback: Like | None = None
    settled = False
    for dims, need in LEVELS:
        if "partition" in dims and not key.partitions:
            continue  # no partition was named: the default is not known here
        like = _level(history, key, dims, at, without)
        if like is None:
            continue
        if int(np.count_nonzero(like.started & (like.waits >= waited_s))) >= need:
            return like
        # Nobody waited as long? Then the finest level with enough started jobs is what the answer is shown to rest on.
        started = int(np.count_nonzero(like.started))
        if not settled and (fallback is None or started >= need or started > np.count_nonzero(fallback.started)):
            fallback, settled = like, started >= need
    return fallback


def _level(history: History, key: Key, dims: tuple[str, ...], at: float, without: int) -> Like | None:
    """The latest jobs equal in ``dims``, over all partitions asked for; None if there is none."""
    partitions = key.partitions if "partition" in dims else ("",)
    found = []
    for partition in partitions:
        codes = key.codes(history, partition)
        found.append(history.like(dims, [codes[d] for d in dims], at - WINDOW_S, at, MOST))
    rows = np.sort(np.concatenate(found))[-MOST:]  # row numbers ascend with eligible time
    rows = rows[rows != without]
    if not len(rows):
        return None
    waits, started = history.outcomes(rows, at)
    age = at - history.eligible[rows]
    return Like(dims, rows, waits, started, np.exp2(-age / HALF_LIFE_S), history.eligible[rows])
