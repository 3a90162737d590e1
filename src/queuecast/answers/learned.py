"""The trained model asked about requests: the state of the queue is read once per moment and serves all questions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from queuecast.answers.resolve import like_key
from queuecast.answers.wait import Honesty
from queuecast.features.asking import Asking
from queuecast.features.history import Floats, History, Ints
from queuecast.features.instant import Instant
from queuecast.features.lakecases import Matrix, seen_values
from queuecast.features.snapshots import Snapshots, load_snapshots
from queuecast.models.likejobs import Like
from queuecast.models.record import TrackRecord
from queuecast.models.training import data_until
from queuecast.models.waitmodel import Moved, WaitModel
from queuecast.models.waits import KNOTS_S, Waits
from queuecast.policy.request import Request

if TYPE_CHECKING:
    from queuecast.store.lake import Lake

TRACK_DAYS = 30
ENOUGH = 20
"""With fewer answers of one kind, those of the whole cluster are counted."""

SEEN_BACK = timedelta(hours=3)
"""Snapshots so long before the moment are read (older ones would not count)."""

AGED = timedelta(days=1)
"""With data older than that the state of the queue is told as of the moment asked about, as far as it is known."""


@dataclass(frozen=True)
class Learnt:
    """One answer of the trained model, with the faces of ``CalibratedWait``."""

    waits: Waits

    def quantile(self, probability: Floats | float) -> Floats:
        """Seconds; infinite where the model does not reach."""
        return self.waits.quantile(probability)[0]  # type: ignore[no-any-return]

    def interval(self, share: float) -> tuple[float, float]:
        """Ends in seconds of the interval that claims ``share``."""
        low, high = self.waits.interval(share)
        return float(low[0]), float(high[0])

    def within(self, seconds: Floats | float) -> Floats:
        """P(start within ``seconds``)."""
        return self.waits.within(seconds)[0]  # type: ignore[no-any-return]


class Learned:
    """A trained wait model with the lake that it speaks of."""

    def __init__(self, lake: Lake, cluster: str, model: WaitModel, record: TrackRecord | None) -> None:
        self.lake, self.cluster, self.model, self.record = lake, cluster, model, record
        self._state: tuple[int, float, Instant, Snapshots] | None = None
        self._honest: dict[tuple[str | None, bool, bool, int], Honesty] = {}

    def predict(
        self, history: History, request: Request, at: datetime, row: int, waited_s: float, like: Like | None
    ) -> tuple[Learnt, Moved | None]:
        """Distribution of the remaining wait, and what moved it. ``row`` is the job's in the history, -1 for a request."""
        asking = self._asking(history, request, self._moment(at), row)
        values = self._values(history, asking, history.job_id[[row]] if row >= 0 else np.array([-1]))
        cdf = np.full((1, len(KNOTS_S)), np.nan)
        if like is not None and like.started.any():
            told = like.distribution().after(waited_s).cdf(KNOTS_S)
            if np.isfinite(told).all():
                cdf[0] = told
        waits = self.model.predict(values, asking, Waits(cdf, KNOTS_S), history)
        return Learnt(waits), self.model.moved(values, asking, history)

    def pending(self, history: History, at: datetime) -> tuple[Ints, Waits]:
        """Rows of all jobs pending at ``at`` and the distributions of their remaining waits, without like jobs."""
        moment = self._moment(at)
        last = np.where(np.isfinite(history.start), history.start, np.where(np.isfinite(history.end), history.end, np.inf))
        rows = np.flatnonzero((history.eligible <= moment) & (last > moment))
        asking = Asking.of_rows(history, rows, np.full(len(rows), moment))
        values = self._values(history, asking, history.job_id[rows])
        unknown = Waits(np.full((len(rows), len(KNOTS_S)), np.nan), KNOTS_S)
        return rows, self.model.predict(values, asking, unknown, history)

    def honesty(self, request: Request, at: datetime, pending: bool) -> Honesty:
        """How 80 % intervals held in the last days for answers of that kind, as known when the model was trained."""
        partition = request.partitions[0] if len(request.partitions) == 1 else None
        kind = (partition, request.gpus > 0, pending, int(at.timestamp() // 3600))
        if kind not in self._honest:
            self._honest = {kind: self._held(partition, request.gpus > 0, pending, at), **dict(list(self._honest.items())[:100])}
        return self._honest[kind]

    def _held(self, partition: str | None, gpu: bool, pending: bool, at: datetime) -> Honesty:
        count = sum(c.count for key, c in self.model.maps.maps.items() if key[0] == 0)
        if self.record is None or not len(self.record):
            return Honesty(0.8, None, 0, count)
        late = self.record.take(self.record.asked >= at.timestamp() - TRACK_DAYS * 86400)
        for part in (late.where(partition=partition, gpu=gpu, pending=pending), late.where(pending=pending), late):
            held, counted = part.held_open_counted(0.8)
            if counted >= ENOUGH:
                return Honesty(0.8, held, counted, count, TRACK_DAYS)
        return Honesty(0.8, None, 0, count)

    def _moment(self, at: datetime) -> float:
        """The moment whose state is told: when Slurm was last read, if that was a short while before ``at``."""
        newest = data_until(self.lake, self.cluster)
        if newest is not None and newest < at < newest + AGED:
            return newest.timestamp()
        return at.timestamp()

    def _values(self, history: History, asking: Asking, job_id: Ints) -> Matrix:
        moment = float(asking.asked[0]) if len(asking) else 0.0
        version = self.lake.manifest.version
        if self._state is None or self._state[:2] != (version, moment):
            at = datetime.fromtimestamp(moment, UTC)
            snapshots = load_snapshots(self.lake, self.cluster, at - SEEN_BACK, at + timedelta(microseconds=1))
            self._state = (version, moment, Instant(history, moment), snapshots)
        state, snapshots = self._state[2:]
        return np.hstack([state.features(asking), seen_values(snapshots, history, asking, job_id)])

    def _asking(self, history: History, request: Request, moment: float, row: int) -> Asking:
        if row >= 0 and history.eligible[row] <= moment < min(history.start[row], history.end[row]):
            return Asking.of_rows(history, np.array([row]), np.array([moment]))
        key = like_key(request)
        partition = request.partitions[0] if request.partitions else ""
        words = {"partition": partition, "qos": key.qos, "account": key.account, "gpu_type": key.gpu_type, "user": request.user}
        now = np.array([moment])
        return Asking(
            now,
            now,
            now,
            {text: np.array([history.code(text, word)]) for text, word in words.items()},
            np.array([float(request.gpus)]),
            np.array([float(request.cpus)]),
            np.array([float("nan") if request.limit_s is None else float(request.limit_s)]),
            np.array([-1]),
            np.array([float(request.nodes)]),
            np.array([float("nan") if request.mem_bytes is None else float(request.mem_bytes)]),
        )
