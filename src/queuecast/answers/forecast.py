"""How long will this wait? The like-jobs distribution, corrected by how such answers held, with all that stands beside it.

A ``Forecaster`` keeps the history in memory between questions; ``when`` is a function of (lake, model, request, viewer,
at) and uses nothing later than ``at``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from queuecast.answers.factors import factors
from queuecast.answers.learned import Learned, Learnt
from queuecast.answers.lookup import KnownJob, find_job
from queuecast.answers.resolve import like_key, resolve
from queuecast.answers.viewer import Viewer
from queuecast.answers.wait import HOURS, LEVELS, Basis, Freshness, Honesty, Interval, SlurmSays, Status, WaitAnswer
from queuecast.errors import UsageError
from queuecast.features.history import History, load_history
from queuecast.i18n import _
from queuecast.models.backtest import Mode, calibrate
from queuecast.models.calibration import CalibratedWait, Calibration
from queuecast.models.likejobs import Like, find_like
from queuecast.models.saving import Model, load_model
from queuecast.models.slurmrecord import SlurmRecord, slurm_record
from queuecast.models.training import HISTORY, data_until
from queuecast.models.waitmodel import Moved
from queuecast.policy.request import Request
from queuecast.reasons import ReasonInfo, explain_reason
from queuecast.slurmtext.reasons import parse_reason
from queuecast.store.files import instant
from queuecast.store.lake import Lake

SLACK = timedelta(days=1)
"""Read that much more history, so that questions about nearby moments need no reading."""

STALE = timedelta(hours=1)
"""Older data is said to be old."""


@dataclass(frozen=True)
class _Told:
    """What was predicted, and on what it rests."""

    status: Status
    like: Like | None = None
    wait: CalibratedWait | Learnt | None = None
    honesty: Honesty | None = None
    moved: Moved | None = None


class Forecaster:
    """Answers about one cluster of a lake. Not for several threads at once."""

    def __init__(self, lake: Lake, cluster: str | None = None) -> None:
        """Raises ``UsageError`` if the lake has no cluster, or several and none is named."""
        self.lake = lake
        names = lake.clusters
        if cluster is not None and cluster.casefold() not in (n.casefold() for n in names):
            raise UsageError(
                _("cluster {name} is not in this lake").format(name=cluster),
                _("it has: {names}").format(names=", ".join(names) or _("none yet")),
            )
        if cluster is None and len(names) != 1:
            raise UsageError(
                _("this lake holds several clusters: {names}").format(names=", ".join(names)) if names else _("this lake is empty"),
                _("name one with -M") if names else _("read some history first: queuecast collect, or queuecast ingest FOLDER"),
            )
        self.cluster = next(n for n in names if cluster is None or n.casefold() == cluster.casefold())
        self.model: Model | None = load_model(lake.path / "models")
        self._history: tuple[int, datetime, datetime, History] | None = None
        self._learned: Learned | None = None
        self._then: tuple[datetime, Learned | None] | None = None

    def newest(self) -> datetime | None:
        """When Slurm was last read for this cluster (UTC)."""
        return data_until(self.lake, self.cluster)

    def history(self, at: datetime) -> History:
        """Jobs of the last weeks before ``at`` and up to the newest: read once for one state of the lake.

        What became eligible or started after the instant asked about is left out where the history is used.
        """
        version = self.lake.manifest.version
        kept = self._history
        if kept and kept[0] == version and kept[1] <= at - HISTORY and at <= kept[2]:
            return kept[3]
        since, until = at - HISTORY - SLACK, max(at, self.newest() or at) + SLACK
        history = load_history(self.lake, self.cluster, since=since, until=until)
        self._history = (version, since, until, history)
        return history

    def when(self, request: Request, at: datetime, viewer: Viewer | None = None) -> WaitAnswer:
        """A job with this request, submitted at ``at``. Raises ``UsageError`` for a request the cluster does not know."""
        viewer = viewer or Viewer()
        request = resolve(self.lake, self.cluster, request, at)
        return self._answer(request, at, None, None)

    def when_job(self, job_id: str, at: datetime, viewer: Viewer | None = None) -> WaitAnswer:
        """A job of the cluster, given the time it has waited. Raises ``NoDataError``, ``UsageError``, ``NotPermitted``."""
        viewer = viewer or Viewer()
        job = find_job(self.lake, self.cluster, job_id, at)
        viewer.check(job.user, job_id)
        reason = explain_reason(parse_reason(job.reason_text or job.reason or ""), pending=job.start is None)
        return self._answer(job.request, at, job, reason)

    def _answer(self, request: Request, at: datetime, job: KnownJob | None, reason: ReasonInfo | None) -> WaitAnswer:
        status = _status(job, reason)
        waited = _waited(job, at)
        told = _Told(status)
        if status in ("estimate", "not_eligible"):
            told = self._predict(status, request, at, job, waited or 0.0)
        status, like, wait = told.status, told.like, told.wait
        newest = self.newest()
        data_at = min(newest, at) if newest else None
        return WaitAnswer(
            status=status,
            cluster=self.cluster,
            at=at,
            request=request,
            job_id=job.text if job else None,
            waited_s=waited,
            median_s=float(wait.quantile(0.5)) if wait else None,
            intervals=tuple(Interval(s, *wait.interval(s)) for s in LEVELS) if wait else (),
            within=tuple((float(h), float(wait.within(h * 3600.0))) for h in HOURS) if wait else (),
            basis=_basis(like, at) if like is not None else None,
            honesty=told.honesty,
            slurm=self._slurm(request, at, job),
            reason=reason if job else None,
            reason_text=job.reason_text or job.reason if job else None,
            freshness=Freshness(data_at, (at - data_at).total_seconds() if data_at else None, self._model_name(at)),
            notes=(*request.assumed, *_notes(job, request, at, data_at, like, wait)),
            raw_job_id=job.job_id if job else None,
            submitted_at=job.submit if job else None,
            eligible_at=job.eligible if job else None,
            started_at=job.start if job else None,
            ended_at=job.end if job else None,
            factors=factors(told.moved, float(wait.quantile(0.5)), request.gpus) if wait else (),
        )

    def _predict(self, status: Status, request: Request, at: datetime, job: KnownJob | None, waited: float) -> _Told:
        """The trained model where there is one for that moment, else what like jobs waited, its levels corrected; with
        how such answers held. Or the status that says why not."""
        history = self.history(at)
        row = -1
        if job is not None:
            same = np.flatnonzero((history.job_id == job.job_id) & (history.eligible <= at.timestamp()))
            row = int(same[-1]) if len(same) else -1
        like = find_like(history, like_key(request), at.timestamp(), waited, without=row)
        learned = self._learned_for(at)
        if learned is not None:
            wait, moved = learned.predict(history, request, at, row, waited, like)
            return _Told(status, like, wait, learned.honesty(request, at, waited > 60), moved)
        if like is None or not like.started.any():
            return _Told("no_history", like)
        mode: Mode = "pending" if waited > 60 else "submit"
        calibration, honesty = self._calibration(history, request, at, mode)
        corrected = CalibratedWait(like.distribution().after(waited), calibration)
        if np.isinf(corrected.quantile((1 - max(LEVELS)) / 2)):
            return _Told("beyond_history", like)
        return _Told(status, like, corrected, honesty)

    def _learned_for(self, at: datetime) -> Learned | None:
        """The trained model, unless it was learned from more than was known at ``at`` or has not enough history. Where only
        its corrections know more, it is asked with those known then."""
        if self.model is None or self.cluster not in self.model.waits:
            return None
        if self.model.known_until(self.cluster) > at:
            return self._learned_then(self.model, at)
        if self._learned is None:
            self._learned = Learned(self.lake, self.cluster, self.model.waits[self.cluster], self.model.records.get(self.cluster))
        return self._learned

    def _learned_then(self, model: Model, at: datetime) -> Learned | None:
        if self._then is None or self._then[0] != at:
            from queuecast.models.renewing import as_known_at  # rarely needed

            known = as_known_at(self.lake.path / "models", model, self.cluster, at)
            self._then = (at, None if known is None else Learned(self.lake, self.cluster, *known))
        return self._then[1]

    def _model_name(self, at: datetime) -> str | None:
        return self.model.name if self.model and (self.model.data_until <= at or self._learned_for(at) is not None) else None

    def _calibration(self, history: History, request: Request, at: datetime, mode: Mode) -> tuple[Calibration, Honesty]:
        """The trained one if it knows nothing later than ``at``, else made anew from the days before."""
        partition = request.partitions[0].casefold() if len(request.partitions) == 1 else "*"
        if self.model and self.model.data_until <= at:
            for group in ((self.cluster, mode, partition), (self.cluster, mode, "*")):
                if group in self.model.calibrations:
                    found = self.model.calibrations[group]
                    held, counted = self.model.coverage[group]["0.8"]
                    return found, Honesty(0.8, None if np.isnan(held) else held, counted, found.count)
        fresh = calibrate(history, at.timestamp(), None if partition == "*" else partition, mode)
        return fresh, Honesty(0.8, None, 0, fresh.count)

    def _slurm(self, request: Request, at: datetime, job: KnownJob | None) -> SlurmSays | None:
        """Slurm's last word on the job, and how such words did in this partition."""
        partition = request.partitions[0].casefold() if request.partitions else "*"
        record: SlurmRecord | None = None
        if self.model and self.model.data_until <= at:
            record = self.model.slurm.get((self.cluster, partition)) or self.model.slurm.get((self.cluster, "*"))
        elif self.lake.manifest.of("estimates", self.cluster):
            record = slurm_record(self.lake, self.cluster, at, None if partition == "*" else partition)
        start, seen, clamped = self._estimate(job, at) if job and job.start is None else (None, None, False)
        if start is None and seen is None and (record is None or not record.asked):
            return None
        return SlurmSays(start, seen, clamped, record)

    def _estimate(self, job: KnownJob, at: datetime) -> tuple[datetime | None, datetime | None, bool]:
        """Last row of ``squeue --start`` for the job. An estimate up to ten minutes older than a newer N/A still stands:
        Slurm forgets them at the start of each backfill cycle."""
        rows = self.lake.read(
            "estimates",
            ["observed_at", "job_id", "array_job_id", "start_estimate", "clamped"],
            cluster=self.cluster,
            since=at - timedelta(days=1),
            until=at + timedelta(microseconds=1),
        )
        seen = rows["observed_at"]
        mine = pc.equal(rows["job_id"], job.job_id)
        rows = rows.filter(pc.and_(mine, pc.less_equal(seen, instant(at)))).sort_by("observed_at")
        if not rows.num_rows:
            return None, None, False
        newest = rows.slice(rows.num_rows - 1).to_pylist()[0]
        given = rows.filter(pc.is_valid(rows["start_estimate"]))
        if given.num_rows:
            last = given.slice(given.num_rows - 1).to_pylist()[0]
            if newest["observed_at"] - last["observed_at"] <= timedelta(minutes=10):
                return last["start_estimate"], last["observed_at"], bool(last["clamped"])
        return None, newest["observed_at"], False


def open_forecaster(path: str | Path, cluster: str | None = None) -> Forecaster:
    """Open a lake for questions."""
    return Forecaster(Lake.open(path), cluster)


def _waited(job: KnownJob | None, at: datetime) -> float | None:
    """Seconds in the queue so far; None before it became eligible, or without a job."""
    if job is None or job.eligible is None:
        return None
    until = min(t for t in (job.start, job.end, at) if t is not None)
    return max(0.0, (until - job.eligible).total_seconds())


def _status(job: KnownJob | None, reason: ReasonInfo | None) -> Status:
    if job is None:
        return "estimate"
    if job.end is not None:
        return "ended"
    if job.start is not None:
        return "started"
    if reason is not None and reason.permanence == "yes":
        return "held" if reason.wait_class == "hold" else "never"
    return "estimate" if job.eligible is not None else "not_eligible"


def _basis(like: Like, at: datetime) -> Basis:
    waits = like.waits[like.started]
    quartiles = None
    if len(waits):
        low, middle, high = np.quantile(waits, [0.25, 0.5, 0.75])
        quartiles = (float(low), float(middle), float(high))
    return Basis(
        count=len(like.rows),
        started=len(waits),
        waiting=len(like.rows) - len(waits),
        same=like.dims,
        waits_s=tuple(float(w) for w in waits[-60:]),
        quartiles_s=quartiles,
        span_days=like.span_days(at.timestamp()),
    )


def _notes(
    job: KnownJob | None, request: Request, at: datetime, data_at: datetime | None, like: Like | None, wait: CalibratedWait | Learnt | None
) -> list[str]:
    notes = []
    if data_at is None:
        notes.append(_("Nothing was read from Slurm before that moment."))
    elif at - data_at > STALE:
        notes.append(_("The data are old: run queuecast collect for a fresh answer."))
    if job is not None and job.array_tasks > 1 and job.start is None:
        notes.append(_("This is an array with {n} tasks waiting: the answer is for the next one.").format(n=job.array_tasks))
    if wait is not None and np.isinf(wait.quantile(0.9)):
        notes.append(_("Some like jobs still wait, longer than the others did: the upper end is not known."))
    if like is not None and "partition" not in like.dims and request.partitions:
        notes.append(_("Too few jobs ran in this partition: the answer rests on the whole cluster."))
    return notes
