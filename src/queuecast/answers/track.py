"""How well answers like this held: what the past answers kept with a model claimed, against what came of them.

A ``Track`` is made of counts and shares alone; it names no job. Intervals of shares are those of E. B. Wilson,
"Probable inference, the law of succession, and statistical inference", JASA 22 (1927), at 95 %. They take answers as
independent. Answers of one day share their queue, so the truth is somewhat less certain than they say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from queuecast.answers.wait import HOURS, LEVELS, iso
from queuecast.features.history import Flags, Floats
from queuecast.models.measures_points import ROUNDING
from queuecast.models.measures_probabilities import labels, reliability
from queuecast.models.record import TrackRecord

CLAIMED = 0.8
"""The interval that series and summaries speak of."""

ENOUGH = 20
"""With fewer answers counted nothing is said about how such answers do."""

PIT_BINS = 10
CURVE_BINS = 10
DAY_S = 86400.0
FRESH_S = 3600.0
UNSETTLED = 0.1


@dataclass(frozen=True)
class Held:
    """Of ``counted`` intervals claiming ``claimed``, the share ``held`` that held, and its Wilson interval. Counted are
    answers whose job started, and those whose job already waited longer than the interval. None with none counted."""

    claimed: float
    held: float | None
    counted: int
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Errors:
    """``count`` predictions whose job has started: the middle of |predicted - actual wait| in seconds (None with none, and
    where half of the predictions do not reach that far), and the share within a factor of two either way, of seconds
    not below one (None with none)."""

    count: int
    median_abs_s: float | None
    within_2x: float | None


@dataclass(frozen=True)
class Slice:
    """Answers of one ``name``: a day (ISO date, UTC), a partition ("" if unknown), or "*" for all.

    ``answers`` were given; of ``started`` the job has started; of ``waiting`` it still waits inside the 80 % interval,
    so that they are not counted yet. ``ours`` are the errors of the median over ``started``. Slurm told an estimate
    for ``slurm_given`` answers; ``slurm`` are its errors where the job has started, ``ours_beside_slurm`` the
    median's on exactly those answers.
    """

    name: str
    answers: int
    started: int
    waiting: int
    held: Held
    ours: Errors
    slurm_given: int
    slurm: Errors
    ours_beside_slurm: Errors

    @property
    def settled(self) -> bool:
        """False where more than a tenth still waits: what is counted by now are then the quick ones."""
        return self.waiting <= UNSETTLED * self.answers


@dataclass(frozen=True)
class Point:
    """``cases`` answers with like chances: the mean chance told, the share that came, and its Wilson interval."""

    told: float
    came: float
    low: float
    high: float
    cases: int


@dataclass(frozen=True)
class Curve:
    """Reliability of the chance to start within ``hours``, by rising chance; no points with fewer than 20 known."""

    hours: float
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Track:
    """Answers asked in the ``days`` before ``at`` (UTC), with what was known of them at ``at``.

    ``coverage``: of the 50, 80 and 95 % intervals. ``by_day`` has every day from the first answer to the last,
    ``by_partition`` the most answered first. ``pit``: shares of started jobs in ten equal classes of the probability
    that the answer gave to no longer a wait; all near 0.1 if calibrated; None without a start.
    """

    at: datetime
    days: int
    partition: str | None
    gpu: bool | None
    pending: bool | None
    whole: Slice
    coverage: tuple[Held, ...]
    by_day: tuple[Slice, ...]
    by_partition: tuple[Slice, ...]
    reliability: tuple[Curve, ...]
    pit: tuple[float, ...] | None

    @property
    def enough(self) -> bool:
        """Whether enough was counted to say anything."""
        return self.whole.held.counted >= ENOUGH

    def as_json(self) -> dict[str, Any]:
        """Plain values: seconds, shares between 0 and 1, null for unknown."""
        return {**asdict(self), "at": iso(self.at)}


def track(
    record: TrackRecord, *, partition: str | None = None, gpu: bool | None = None, pending: bool | None = None, days: int = 30, at: datetime
) -> Track:
    """How the answers of one kind did; None for ``partition``, ``gpu`` or ``pending`` takes all. Nothing later than
    ``at`` is used: a job that had not started by then counts as one that was waiting."""
    end = at.timestamp()
    asked = (record.asked > end - days * DAY_S) & (record.asked <= end)
    known = _as_known(record.take(asked), end)
    latest = float((known.asked + known.wait_s).max()) if len(known) else end
    chosen = known.where(partition=partition, gpu=gpu, pending=pending)
    return Track(
        at=at.astimezone(UTC),
        days=days,
        partition=partition,
        gpu=gpu,
        pending=pending,
        whole=_slice("*", chosen, latest),
        coverage=tuple(_held(chosen, share) for share in LEVELS),
        by_day=tuple(_slice(name, part, latest) for name, part in _days(chosen)),
        by_partition=tuple(_slice(name, part, latest) for name, part in _partitions(chosen)),
        reliability=tuple(_curve(chosen, hours) for hours in HOURS),
        pit=_pit(chosen),
    )


def wilson(hits: int, count: int) -> tuple[float, float]:
    """95 % interval of a share of which ``hits`` of ``count`` were seen. Raises ValueError without any."""
    if count < 1:
        raise ValueError("a share of nothing")
    z = 1.959963984540054
    share = hits / count
    middle, half = share + z * z / (2 * count), z * float(np.sqrt(share * (1 - share) / count + (z / (2 * count)) ** 2))
    scale = 1 + z * z / count
    # The formula reaches 0 and 1 where nothing or all was seen; rounding may not quite.
    return (0.0 if not hits else (middle - half) / scale), (1.0 if hits == count else (middle + half) / scale)


def _as_known(record: TrackRecord, end: float) -> TrackRecord:
    """Starts after ``end`` taken back: the job was waiting then."""
    so_far = end - record.asked
    return replace(record, started=record.started & (record.wait_s <= so_far), wait_s=np.minimum(record.wait_s, so_far))


def _slice(name: str, record: TrackRecord, latest: float) -> Slice:
    estimated = np.isfinite(record.slurm_s)
    inside = ~record.started & (record.wait_s <= record.high_80_s)
    waiting = inside & (record.asked + record.wait_s >= latest - FRESH_S)
    return Slice(
        name=name,
        answers=len(record),
        started=int(np.count_nonzero(record.started)),
        waiting=int(np.count_nonzero(waiting)),
        held=_held(record, CLAIMED),
        ours=_errors(record.median_s, record, record.started),
        slurm_given=int(np.count_nonzero(estimated)),
        slurm=_errors(record.slurm_s, record, record.started & estimated),
        ours_beside_slurm=_errors(record.median_s, record, record.started & estimated),
    )


def _held(record: TrackRecord, share: float) -> Held:
    held, counted = record.held(share)
    if not counted:
        return Held(share, None, 0, None, None)
    return Held(share, held, counted, *wilson(round(held * counted), counted))


def _errors(predicted: Floats, record: TrackRecord, rows: Flags) -> Errors:
    """A median that the answer did not reach is infinitely far off and no hit."""
    predicted, actual = predicted[rows], record.wait_s[rows]
    if not len(actual):
        return Errors(0, None, None)
    ordered = np.sort(np.abs(predicted - actual))
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    apart = np.abs(np.log(np.maximum(predicted, 1.0)) - np.log(np.maximum(actual, 1.0)))
    median = float((low + high) / 2)
    return Errors(len(actual), median if np.isfinite(median) else None, float(np.mean(apart <= np.log(2.0) + ROUNDING)))


def _days(record: TrackRecord) -> Iterator[tuple[str, TrackRecord]]:
    if not len(record):
        return
    day = np.floor(record.asked / DAY_S)
    for number in range(int(day.min()), int(day.max()) + 1):
        name = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=number)).date().isoformat()
        yield name, record.take(day == number)


def _partitions(record: TrackRecord) -> list[tuple[str, TrackRecord]]:
    """By the first spelling of a name; answers whose partition is not told are under ""."""
    names: dict[str, str] = {}
    for name in record.partitions:
        if name:
            names.setdefault(name.casefold(), name)
    parts = [(name, record.where(partition=name)) for name in names.values()]
    named = np.isin(record.partition, [i for i, name in enumerate(record.partitions) if name])
    parts.append(("", record.take(~named)))
    return sorted(((n, p) for n, p in parts if len(p)), key=lambda part: (-len(part[1]), part[0]))


def _curve(record: TrackRecord, hours: float) -> Curve:
    told: Floats = getattr(record, f"p_{hours:g}h")
    came = np.where(np.isnan(told), np.nan, labels(record.wait_s, record.started, 3600.0 * hours))
    known = int(np.count_nonzero(~np.isnan(came)))
    if known < ENOUGH:
        return Curve(hours, ())
    line = reliability(told, came, max(1, min(CURVE_BINS, known // ENOUGH)))
    points = []
    for mean, share, count in zip(line.told.tolist(), line.came.tolist(), line.cases.tolist(), strict=True):
        cases = int(count)
        points.append(Point(mean, share, *wilson(round(share * cases), cases), cases))
    return Curve(hours, tuple(points))


def _pit(record: TrackRecord) -> tuple[float, ...] | None:
    """Where jobs start at once the distribution has a step: its mass is spread over the classes it spans (Czado,
    Gneiting and Held, "Predictive model assessment for count data", Biometrics 65 (2009))."""
    rows = record.started & ~np.isnan(record.pit)
    upper = record.pit[rows]
    if not len(upper):
        return None
    lower = np.where(record.wait_s[rows] <= 0, 0.0, upper)
    edges = np.linspace(0.0, 1.0, PIT_BINS + 1)
    step = (upper - lower)[:, None]
    passed = (edges >= upper[:, None]).astype(np.float64)
    below = np.clip(np.divide(edges - lower[:, None], step, out=passed, where=step > 0), 0.0, 1.0).sum(axis=0)
    below[0], below[-1] = 0.0, len(upper)
    return tuple(float(share) for share in np.diff(below) / len(upper))
