"""What would have been if the worst over-requests had been right: the recorded workload replayed as it was, and changed.

Both are played with the same submissions, run times, nodes and clock, so that the difference of a job's two starts is due to the
changed requests. Scheduling is sensitive: pairs with the scheduler's passes moved by a part of their interval show how much is chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from queuecast.answers.rightsizing.answer import Proposal
from queuecast.answers.rightsizing.overrequest_effect_answer import Effect, Moved
from queuecast.answers.rightsizing.rightsize import Judged
from queuecast.features.history import Flags, Floats
from queuecast.i18n import _
from queuecast.policy.request import Request

if TYPE_CHECKING:
    from queuecast.store.lake import Lake
    from queuecast.twin.replay import Recording, Replayed
    from queuecast.twin.work import Work

KINDS = 10
LONGEST = timedelta(days=14)
"""At most so much is replayed, up to ``at``."""
WARM = timedelta(days=3)
"""So much before is played first, so that the machine is not empty when it counts."""
SHIFTS = (0.0, 0.35, 0.7)
"""Parts of their interval that the passes are moved by: one pair of replays for each."""
NEAR_S = 600.0
DOUBTFUL_TIMES, DOUBTFUL_S = 1.5, 900.0
"""The replay is doubtful if its median wait is off by more than both."""
MIB = float(1 << 20)


@dataclass(frozen=True)
class _Pair:
    before: Replayed
    after: Replayed


def effect(
    lake: Lake,
    cluster: str,
    found: Judged,
    *,
    since: datetime,
    at: datetime,
    kinds: int = KINDS,
    progress: Callable[[int, int], None] | None = None,
    recorded: Recording | None = None,
) -> Effect:
    """The weightiest ``kinds`` proposals that save something, made true in a replay of at most the last 14 days before ``at``.

    Minutes on a large lake; ``progress(done, all)`` counts replays. ``recorded``: where read already.
    """
    from queuecast.twin.forward import clock_of
    from queuecast.twin.replay import recording, replay

    begin = max(since, at - LONGEST)
    rec = known_at(recorded or recording(lake, cluster), begin - WARM, at)
    fixes = [p for p in found.items if p.weight > 0][:kinds]
    wanted = _wanted(found, fixes)
    works = rec.works
    changed = [_changed(w, *wanted[w.id]) if w.id in wanted else w for w in works]
    fixed = np.array([w.id in wanted for w in works], bool)
    submit = np.array([w.submit for w in works], np.float64)
    inside = (submit >= begin.timestamp()) & (submit <= at.timestamp())
    pairs: list[_Pair] = []
    if len(works) and inside.any():
        clock = clock_of(rec.frame.policy, rec.begin - 1, at.timestamp() - rec.begin + 2, growth=False)
        for k, part in enumerate(SHIFTS):
            moved = clock._replace(
                main_at=clock.main_at + part * _step(clock.main_at), backfill_at=clock.backfill_at + part * _step(clock.backfill_at)
            )
            before = replay(rec.frame, works, moved)
            if progress is not None:
                progress(2 * k + 1, 2 * len(SHIFTS))
            pairs.append(_Pair(before, replay(rec.frame, changed, moved)))
            if progress is not None:
                progress(2 * k + 2, 2 * len(SHIFTS))
    return _told(found, fixes, rec, changed, pairs, submit, inside, fixed, begin, at)


def known_at(rec: Recording, begin: datetime, at: datetime) -> Recording:
    """Submissions from ``begin`` on with what was known at ``at``: a job that ran then counts with its limit."""
    low, now = begin.timestamp(), at.timestamp()
    keep = [i for i, w in enumerate(rec.works) if low <= w.submit <= now]
    works = []
    for i in keep:
        work = rec.works[i]
        end = rec.attempts[i][-1][3]
        if not np.isfinite(end) or end > now:
            work = replace(work, run=work.limit, cancel=np.inf)
        works.append(work)
    started = rec.started[keep]
    return replace(
        rec,
        works=tuple(works),
        started=np.where(started <= now, started, np.inf),
        by=rec.by[keep],
        attempts=tuple(rec.attempts[i] for i in keep),
        nodes=tuple(rec.nodes[i] for i in keep),
        begin=min((w.submit for w in works), default=now),
        end=now,
    )


def _wanted(found: Judged, fixes: Sequence[Proposal]) -> dict[int, tuple[Request, Request]]:
    """The request as asked and as proposed, by raw job id."""
    ids = found.sums.rows.num["job_id"]
    return {int(ids[i]): (p.kind.request, p.request) for p in fixes for i in p.rows}


def _changed(work: Work, old: Request, new: Request) -> Work:
    """The job with what the proposal changes. Its run time stays; so does all that was asked for otherwise than it was given."""
    if new.partitions != old.partitions:
        work = replace(work, partitions=new.partitions)
    if new.nodes != old.nodes:
        work = replace(work, nodes=new.nodes)
    if new.cpus != old.cpus:
        work = replace(work, cpus=float(new.cpus))
    if new.mem_bytes is not None and new.mem_bytes != old.mem_bytes:
        work = replace(work, mem_mib=new.mem_bytes / MIB)
    if (new.gpus, new.gpu_type) != (old.gpus, old.gpu_type):
        work = replace(work, gpus=float(new.gpus), gpu_type=new.gpu_type if new.gpus else None)
    if new.limit_s is not None and new.limit_s != old.limit_s:
        # a run that was cut by its own limit is not known beyond it, and ends with a shorter one
        work = replace(work, limit=float(new.limit_s), run=min(work.run, float(new.limit_s)))
    return work


def _step(ticks: Floats) -> float:
    return float(ticks[1] - ticks[0]) if len(ticks) > 1 else 0.0


def _told(
    found: Judged,
    fixes: Sequence[Proposal],
    rec: Recording,
    changed: Sequence[Work],
    pairs: Sequence[_Pair],
    submit: Floats,
    inside: Flags,
    fixed: Flags,
    begin: datetime,
    at: datetime,
) -> Effect:
    parts = np.array([w.partitions[0] if w.partitions else "" for w in rec.works], object)
    sets = [(_("all jobs"), inside), (_("changed jobs"), inside & fixed), (_("other jobs"), inside & ~fixed)]
    sets += [(str(p), inside & (parts == p)) for p in sorted(set(parts[inside]))]
    moved = tuple(_moved(name, mask, pairs, submit) for name, mask in sets if mask.any()) if pairs else ()
    window = (begin.timestamp(), at.timestamp())
    gpus = float(rec.frame.machine.total[:, 2:].sum())
    real, twin, near = _fidelity(rec.started, pairs[0].before.starts, submit, inside) if pairs else (None, None, None)
    doubtful = _doubtful(real, twin)
    busy = _busy(found)
    return Effect(
        begin=begin,
        end=at,
        kinds=len(fixes),
        fixed=int((inside & fixed).sum()),
        moved=moved,
        occupied_before=_occupied(rec.works, pairs[0].before, gpus, window) if pairs else None,
        occupied_after=_occupied(changed, pairs[0].after, gpus, window) if pairs else None,
        busy_before=busy[0],
        busy_after=_busy_after(found, fixes, busy),
        replays=len(pairs),
        real_median_s=real,
        twin_median_s=twin,
        within_10min=near,
        doubtful=doubtful,
        notes=_notes(found, bool(pairs), doubtful, rec, at),
    )


def _moved(name: str, mask: Flags, pairs: Sequence[_Pair], submit: Floats) -> Moved:
    first = pairs[0]
    gains = []
    for pair in pairs:
        a, b = pair.before.starts[mask], pair.after.starts[mask]
        both = np.isfinite(a) & np.isfinite(b)
        if both.any():
            gains.append(float((a[both] - b[both]).mean()))
    a, b = first.before.starts[mask], first.after.starts[mask]
    return Moved(
        name,
        int(mask.sum()),
        _median(a - submit[mask]),
        _median(b - submit[mask]),
        gains[0] if gains else None,
        min(gains, default=None),
        max(gains, default=None),
        int((np.isfinite(a) ^ np.isfinite(b)).sum()),
    )


def _median(waits: Floats) -> float:
    """With those that never start as the longest."""
    ordered = np.sort(waits)
    return float(ordered[(len(ordered) - 1) // 2])


def _occupied(works: Sequence[Work], got: Replayed, gpus: float, window: tuple[float, float]) -> float | None:
    """Share of all GPU time in the window that is allocated (nodes down or not)."""
    if gpus <= 0:
        return None
    held = np.array([w.gpus for w in works], np.float64)
    start, end = got.last, got.ends
    ran = np.isfinite(start)
    length = np.clip(np.minimum(np.where(ran, end, 0.0), window[1]) - np.maximum(np.where(ran, start, 0.0), window[0]), 0.0, None)
    return float((held * np.where(ran, length, 0.0)).sum() / (gpus * (window[1] - window[0])))


def _busy(found: Judged) -> tuple[float | None, float, float]:
    """(share of allocated GPU time that computes, GPU-hours used, GPU-hours allocated) of measured jobs."""
    rows, sums = found.sums.rows, found.sums
    known = np.isfinite(sums.used["gpu"])
    used = float((sums.used["gpu"] * rows.hours)[known].sum())
    asked = float((np.fmin(sums.asked["gpu"], rows.num["gpus_seen"]) * rows.hours)[known].sum())
    return (used / asked if asked > 0 else None), used, asked


def _busy_after(found: Judged, fixes: Sequence[Proposal], busy: tuple[float | None, float, float]) -> float | None:
    """The same with the GPU-hours that the changes save no longer allocated."""
    saved = sum(float(p.saves["gpu"].sum()) for p in fixes if "gpu" in p.saves)
    return busy[1] / (busy[2] - saved) if busy[0] is not None and busy[2] > saved else busy[0]


def _fidelity(real: Floats, twin: Floats, submit: Floats, inside: Flags) -> tuple[float | None, float | None, float | None]:
    both = inside & np.isfinite(real) & np.isfinite(twin)
    if not both.any():
        return None, None, None
    near = float((np.abs(real[both] - twin[both]) <= NEAR_S).mean())
    return float(np.median(real[both] - submit[both])), float(np.median(twin[both] - submit[both])), near


def _doubtful(real: float | None, twin: float | None) -> bool:
    if real is None or twin is None:
        return True
    low, high = sorted((max(1.0, real), max(1.0, twin)))
    return high - low > DOUBTFUL_S and high / low > DOUBTFUL_TIMES


def _notes(found: Judged, played: bool, doubtful: bool, rec: Recording, at: datetime) -> tuple[str, ...]:
    out = []
    if not played:
        return (_("No job was submitted in that time: nothing is replayed."),)
    if doubtful:
        out.append(_("The replay's waits are far from the recorded ones: take the difference as a direction, not as an amount."))
    out.append(
        _(
            "Not modelled: people who send more once the queue is shorter, runs that get slower or are killed by a smaller request, "
            "and what docs/twin.md lists."
        )
    )
    if math.isfinite(rec.frame.policy.at.timestamp()) and rec.frame.policy.at > at:
        out.append(
            _("The configuration is that of {day}, later than the moment asked about.").format(
                day=f"{rec.frame.policy.at.astimezone(UTC):%Y-%m-%d}"
            )
        )
    if bool(found.sums.rows.flag["generated"].any()):
        out.append(_("Some figures of use were generated by a script, not measured."))
    return tuple(out)
