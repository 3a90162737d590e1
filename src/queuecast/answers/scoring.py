"""Answers given are scored once their jobs have started: what was claimed against what came."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from queuecast.answers.wait import WaitAnswer
from queuecast.store.files import instant
from queuecast.store.predictions import Logged, Predictions

if TYPE_CHECKING:
    from queuecast.store.lake import Lake

MATCH = timedelta(hours=1)
"""An answer given before submitting is scored by a job of that user with that request submitted within an hour."""

GIVE_UP = timedelta(days=60)


@dataclass(frozen=True)
class Score:
    """``given`` answers in all; of ``scored`` whose job started, the share inside each interval (None without any) and
    the middle of the errors of the median."""

    given: int
    scored: int
    held_50: float | None
    held_80: float | None
    held_95: float | None
    median_abs_error_s: float | None


def keep_answer(log: Predictions, answer: WaitAnswer) -> None:
    """Log an answer that predicts something, under the job's owner or whoever asked."""
    if answer.status == "estimate":
        log.add(
            at=answer.at,
            cluster=answer.cluster,
            job_id=answer.raw_job_id,
            job_submit=answer.submitted_at,
            user=answer.request.user,
            model=answer.freshness.model,
            answer=answer.as_json(),
        )


def score_open(lake: Lake, log: Predictions, cluster: str) -> int:
    """Score what can be scored by now; returns how many answers got an outcome."""
    waiting = log.unscored(cluster)
    if not waiting:
        return 0
    since = min(p.job_submit or p.at for p in waiting)
    jobs = lake.read(
        "jobs",
        ["job_id", "submit", "start", "end", "user", "partition", "gpus_req", "gpu_type_req", "limit_s", "observed_at"],
        cluster=cluster,
        since=since,
    )
    newest = pc.max(jobs["observed_at"]).as_py() if jobs.num_rows else None
    results = []
    for answer in waiting:
        job = _job_of(answer, jobs)
        if job is not None and job["start"] is not None and job["start"] >= answer.at:
            results.append((answer.id, "started", job["start"], (job["start"] - answer.at).total_seconds()))
        elif job is not None and job["end"] is not None:
            results.append((answer.id, "cancelled", None, None))
        elif job is None and newest is not None and newest > answer.at + (MATCH if answer.job_id is None else GIVE_UP) + MATCH:
            results.append((answer.id, "unmatched", None, None))
    if results:
        log.score(results)
    return len(results)


def _job_of(answer: Logged, jobs: pa.Table) -> dict[str, Any] | None:
    if answer.job_id is not None:
        rows = jobs.filter(pc.equal(jobs["job_id"], answer.job_id))
        if answer.job_submit is not None:
            rows = rows.filter(pc.equal(rows["submit"], instant(answer.job_submit)))
    else:
        if answer.user is None:
            return None
        asked = answer.answer["request"]
        after = instant(answer.at)
        until = instant(answer.at + MATCH)
        rows = jobs.filter(
            pc.and_(
                pc.and_(pc.greater_equal(jobs["submit"], after), pc.less(jobs["submit"], until)),
                pc.fill_null(pc.equal(jobs["user"], answer.user), False),
            )
        )
        for job in rows.sort_by("submit").to_pylist():
            if (
                (job["gpus_req"] or 0) == asked["gpus"]
                and job["limit_s"] == asked["limit_s"]
                and (job["gpu_type_req"] or None) == asked["gpu_type"]
                and job["partition"] in asked["partitions"]
            ):
                return job  # type: ignore[no-any-return]  # a row as dict
        return None
    found = rows.sort_by([("submit", "descending")]).slice(0, 1).to_pylist()
    return found[0] if found else None


def summary(log: Predictions, cluster: str) -> Score:
    """How the answers of this lake did."""
    done = [p for p in log.scored(cluster) if p.outcome == "started" and p.wait_s is not None]
    given = len(log.scored(cluster)) + len(log.unscored(cluster))

    def held(share: float) -> float | None:
        inside = [_inside(p, share) for p in done]
        known = [x for x in inside if x is not None]
        return sum(known) / len(known) if known else None

    errors = sorted(abs(p.answer["median_wait_s"] - (p.wait_s or 0.0)) for p in done if p.answer["median_wait_s"] is not None)
    return Score(given, len(done), held(0.5), held(0.8), held(0.95), errors[len(errors) // 2] if errors else None)


def _inside(logged: Logged, share: float) -> bool | None:
    for interval in logged.answer["intervals"]:
        if interval["share"] == share:
            high = interval["high_s"]
            return bool(interval["low_s"] <= (logged.wait_s or 0.0) + 0.5 and (high is None or (logged.wait_s or 0.0) <= high + 0.5))
    return None


def predictions_of(lake: Lake) -> Predictions:
    """The log of a lake."""
    return Predictions.beside(lake.path)


def is_live(answer: WaitAnswer, now: datetime) -> bool:
    """Whether the answer speaks of the present: only then is its outcome not known yet, and the answer worth keeping."""
    return abs((now - answer.at).total_seconds()) < 300
