"""How the like-jobs model would have done lately: past answers made again with what was known then.

Two kinds of answer are tried, since they err differently: at the moment a job became eligible, and at some moment
while it was pending (drawn evenly over its wait, reproducibly).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from queuecast.features.history import Flags, Floats, History, Ints
from queuecast.models.calibration import Calibration
from queuecast.models.distribution import kaplan_meier
from queuecast.models.likejobs import Key, find_like

Mode = Literal["submit", "pending"]
MODES: tuple[Mode, ...] = ("submit", "pending")

SPAN_S = 14 * 86400.0
"""Answers of the last two weeks are tried."""

TRIALS = 200
"""At most so many: the latest ones."""

ENOUGH_STARTS = 20
"""With fewer starts among the answers that are counted, how many held is not known."""

ENOUGH = 40
"""With fewer trials in a partition, those of the whole cluster are used."""


@dataclass(frozen=True)
class Trials:
    """Past answers: when each was asked (epoch seconds), the model's probability of a start by the time the job did
    start (or by the last moment it was known to wait: ``started`` False)."""

    asked: Floats
    level: Floats
    started: Flags

    def calibration(self) -> Calibration:
        return Calibration.fit(self.level, self.started)

    def coverage(self, share: float) -> tuple[float, int]:
        """Share of waits inside the central interval, calibrated on the first half and counted on the second;
        and how many were counted. nan with too few."""
        order = np.argsort(self.asked)
        half = len(order) // 2
        before, later = order[:half], order[half:]
        # Answers are counted whose outcome is known; the first half teaches only what was known then.
        if half < 10 or np.count_nonzero(self.started[later]) < ENOUGH_STARTS:
            return float("nan"), 0
        map_ = Calibration.fit(self.level[before], self.started[before])
        # Jobs that still wait count as well, as censored: the started ones alone would be the quick ones.
        honest = kaplan_meier(map_.probability(self.level[later]), self.started[later])
        low, high = honest.cdf(np.array([(1 - share) / 2, (1 + share) / 2]))
        return float(high - low), len(later)


def key_of(history: History, row: int, partition: str | None = None) -> Key:
    """The request of a past job."""

    def word(text: str) -> str:
        return history.words[text][int(history.codes[text][row])]

    return Key(
        tuple((partition or word("partition")).split(",")),
        word("qos"),
        word("account"),
        word("gpu_type"),
        float(history.gpus[row]),
        float(history.cpus[row]),
        float(history.limit_s[row]),
    )


def run_trials(history: History, at: float, mode: Mode, partition: str | None = None, progress: Callable[[], None] | None = None) -> Trials:
    """Answer again for jobs of the last days before ``at``, in one partition (case-folded) or all."""
    rows = _chosen(history, at, partition)
    asked, level, started = [], [], []
    for row in rows:
        if progress is not None:
            progress()
        row = int(row)
        waits, start = history.outcomes(np.array([row]), at)
        waited = 0.0
        if mode == "pending":
            if waits[0] < 60:
                continue
            # Reproducible without a stored seed: the job's own number places the moment in its wait.
            waited = float(waits[0]) * float(np.random.default_rng(int(history.job_id[row])).random())
        moment = float(history.eligible[row]) + waited
        like = find_like(history, key_of(history, row), moment, waited, without=row)
        if like is None:
            continue
        asked.append(moment)
        level.append(float(like.distribution().after(waited).cdf(float(waits[0]) - waited)))
        started.append(bool(start[0]))
    return Trials(np.array(asked), np.array(level), np.array(started, bool))


def _chosen(history: History, at: float, partition: str | None) -> Ints:
    inside = (history.eligible >= at - SPAN_S) & (history.eligible < at)
    if partition is not None:
        inside &= history.codes["partition"] == history.code("partition", partition)
    return np.flatnonzero(inside)[-TRIALS:]


def calibrate(history: History, at: float, partition: str | None, mode: Mode) -> Calibration:
    """Calibration for one partition, from the whole cluster where its own past is short."""
    if partition is not None:
        trials = run_trials(history, at, mode, partition)
        if len(trials.asked) >= ENOUGH:
            return trials.calibration()
    return run_trials(history, at, mode).calibration()
