"""How past answers held: counts against a slow count by hand, nothing later than asked about, unknown as None."""

from __future__ import annotations

import json
import math
import statistics
import subprocess
import sys
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecast.answers.track import Errors, Held, track, wilson
from queuecast.models.record import TrackRecord

AT = datetime(2026, 6, 10, 12, tzinfo=UTC)
END = AT.timestamp()
DAY = 86400.0
NAN, INF = float("nan"), float("inf")
NAMES = ("gpu", "cpu", "", "GPU")
FLOATS = [f.name for f in fields(TrackRecord) if f.name not in ("pending", "partition", "started", "partitions")]

times = st.sampled_from([0.0, 10.0, 60.0, 1800.0, 3600.0, 7200.0, 40_000.0, 200_000.0])
answers = st.fixed_dictionaries(
    {
        "asked": st.integers(0, 40).map(lambda n: END - DAY * n / 4 - 1800.0),
        "pending": st.booleans(),
        "partition": st.integers(0, 3),
        "gpus": st.sampled_from([0.0, 1.0, 8.0, NAN]),
        "wait_s": times,
        "started": st.booleans(),
        "pit": st.sampled_from([0.0, 0.05, 0.1, 0.55, 1.0]),
        "median_s": st.sampled_from([0.0, 59.0, 120.0, 3599.0, 5000.0, INF]),
        "low_80_s": st.sampled_from([0.0, 30.0, 1800.0, INF]),
        "width": st.sampled_from([0.0, 1000.0, 90_000.0, INF]),
        "p_1h": st.sampled_from([0.0, 0.2, 0.5, 0.9, NAN]),
        "slurm_s": st.sampled_from([NAN, NAN, -60.0, 100.0, 3600.0, 90_000.0]),
    }
)
many = st.lists(answers, max_size=60)


def record_of(rows: list[dict[str, Any]]) -> TrackRecord:
    """All intervals are the 80 % one, all chances the first."""
    rows = sorted(rows, key=lambda r: r["asked"])
    full: list[dict[str, Any]] = []
    for row in rows:
        ends = {f"low_{s}_s": row["low_80_s"] for s in (50, 80, 95)}
        ends |= {f"high_{s}_s": row["low_80_s"] + row["width"] for s in (50, 80, 95)}
        full.append({**row, **ends, "p_4h": row["p_1h"], "p_24h": row["p_1h"]})
    columns: dict[str, Any] = {name: np.array([r[name] for r in full], np.float64) for name in FLOATS}
    columns |= {name: np.array([r[name] for r in full], bool) for name in ("pending", "started")}
    return TrackRecord(**columns, partition=np.array([r["partition"] for r in full], np.int64), partitions=NAMES)


def calibrated(count: int = 4000, seed: int = 5) -> TrackRecord:
    """Waits drawn from the very distributions told: log-normal with known middle and spread."""
    rng = np.random.default_rng(seed)
    middle, spread = rng.normal(8.0, 1.0, count), rng.uniform(0.5, 1.5, count)
    luck = rng.uniform(size=count)
    normal = NormalDist()

    def at(level: float) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.asarray(np.exp(middle + spread * normal.inv_cdf(level)))

    def chance(seconds: float) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.array([normal.cdf((math.log(seconds) - m) / s) for m, s in zip(middle, spread, strict=True)])

    ends = {f"{end}_{s}_s": at((1 + sign * s / 100) / 2) for s in (50, 80, 95) for end, sign in (("low", -1), ("high", 1))}
    return TrackRecord(
        asked=np.sort(END - 8 * DAY - rng.uniform(0, 20 * DAY, count)),
        pending=rng.uniform(size=count) < 0.5,
        partition=rng.integers(0, 2, count),
        gpus=rng.integers(0, 3, count).astype(np.float64),
        wait_s=np.array([math.exp(m + s * normal.inv_cdf(u)) for m, s, u in zip(middle, spread, luck, strict=True)]),
        started=np.ones(count, bool),
        pit=luck,
        median_s=at(0.5),
        **ends,
        **{f"p_{h}h": chance(3600.0 * h) for h in (1, 4, 24)},
        slurm_s=np.where(rng.uniform(size=count) < 0.3, 5000.0, NAN),
        partitions=("gpu", "cpu"),
    )


def by_hand(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What a slice should say, one answer after the other."""
    held = counted = 0
    ours, beside, slurm = [], [], []
    for r in rows:
        high = r["low_80_s"] + r["width"]
        so_far = END - r["asked"]
        started, wait = r["started"] and r["wait_s"] <= so_far, min(r["wait_s"], so_far)
        if started or wait > high:
            counted += 1
            held += started and r["low_80_s"] - 0.5 <= wait <= high + 0.5
        if started:
            ours.append((r["median_s"], wait))
            if not math.isnan(r["slurm_s"]):
                beside.append((r["median_s"], wait))
                slurm.append((r["slurm_s"], wait))

    def errors(pairs: list[tuple[float, float]]) -> Errors:
        if not pairs:
            return Errors(0, None, None)
        middle = statistics.median(abs(told - came) for told, came in pairs)
        near = [0.4999999 <= max(told, 1) / max(came, 1) <= 2.0000001 for told, came in pairs]
        return Errors(len(pairs), None if math.isinf(middle) or math.isnan(middle) else middle, sum(near) / len(near))

    return {
        "answers": len(rows),
        "held": (held / counted if counted else None, counted),
        "ours": errors(ours),
        "slurm_given": sum(not math.isnan(r["slurm_s"]) for r in rows),
        "slurm": errors(slurm),
        "ours_beside_slurm": errors(beside),
    }


@settings(max_examples=150, deadline=None)
@given(many, st.sampled_from([None, "gpu", "CPU"]), st.sampled_from([None, True, False]), st.sampled_from([3, 30]))
def test_every_slice_is_what_a_count_by_hand_finds(rows: list[dict[str, Any]], partition: str | None, flag: bool | None, days: int) -> None:
    found = track(record_of(rows), partition=partition, gpu=flag, pending=flag, days=days, at=AT)
    chosen = [
        r
        for r in rows
        if r["asked"] > END - days * DAY
        and (partition is None or NAMES[r["partition"]].casefold() == partition.casefold())
        and flag in (None, r["gpus"] > 0)
        and flag in (None, r["pending"])
    ]
    groups = {"*": chosen}
    for r in chosen:
        groups.setdefault(f"{datetime.fromtimestamp(r['asked'], UTC):%Y-%m-%d}", []).append(r)
        groups.setdefault("in " + NAMES[r["partition"]].casefold(), []).append(r)
    slices = {"*": found.whole} | {s.name: s for s in found.by_day} | {"in " + s.name.casefold(): s for s in found.by_partition}
    for name, slice_ in slices.items():
        wanted = by_hand(groups.pop(name, []))
        got = {k: getattr(slice_, k) for k in wanted} | {"held": (slice_.held.held, slice_.held.counted)}
        for key, value in wanted.items():
            if isinstance(value, Errors):
                other = got[key]
                assert (other.count, other.within_2x) == (value.count, pytest.approx(value.within_2x)), (name, key)
                assert other.median_abs_s == (None if value.median_abs_s is None else pytest.approx(value.median_abs_s)), (name, key)
            else:
                assert got[key] == value, (name, key)
    assert sum(s.answers for s in found.by_partition) == len(chosen), "spellings of one name are one partition"
    assert not groups, "each day and partition with answers has its slice"
    json.dumps(found.as_json(), allow_nan=False)


@settings(max_examples=60, deadline=None)
@given(many, st.integers(0, 12), times)
def test_nothing_later_than_the_moment_asked_about_is_used(rows: list[dict[str, Any]], quarters: int, other: float) -> None:
    at = END - DAY * quarters / 4
    changed = []
    for r in rows:
        if r["asked"] > at:
            changed.append({**r, "wait_s": other, "started": not r["started"]})
        elif r["asked"] + r["wait_s"] > at:
            # It was waiting at that moment; whether and when it started later must not matter.
            changed.append({**r, "started": not r["started"], "wait_s": r["wait_s"] + other})
        else:
            changed.append(r)
    moment = datetime.fromtimestamp(at, UTC)
    assert track(record_of(rows), at=moment) == track(record_of(changed), at=moment)


def test_a_calibrated_record_is_found_calibrated() -> None:
    found = track(calibrated(), at=AT)
    for held in found.coverage:
        assert held.held is not None
        assert held.low is not None
        assert held.high is not None
        assert held.counted == 4000
        assert held.low < held.held < held.high
        assert held.held == pytest.approx(held.claimed, abs=0.025)
    assert [c.hours for c in found.reliability] == [1, 4, 24]
    for curve in found.reliability:
        assert len(curve.points) == 10
        assert sum(p.cases for p in curve.points) == 4000
        assert [p.told for p in curve.points] == sorted(p.told for p in curve.points)
        assert sum(abs(p.told - p.came) for p in curve.points) / 10 < 0.03
    assert found.pit is not None
    assert sum(found.pit) == pytest.approx(1)
    assert max(abs(share - 0.1) for share in found.pit) < 0.02
    assert sum(s.answers for s in found.by_day) == sum(s.answers for s in found.by_partition) == 4000


def test_answers_that_are_too_narrow_are_found_out() -> None:
    good = calibrated()
    narrow = replace(good, low_80_s=good.low_50_s, high_80_s=good.high_50_s)
    found = track(narrow, at=AT).whole.held
    assert found.high is not None
    assert found.high < 0.55
    late = track(replace(good, wait_s=good.wait_s * 4, pit=np.minimum(1.0, good.pit + 0.3)), at=AT)
    assert all(p.came < p.told for p in late.reliability[1].points if 0.2 < p.told < 0.8)
    assert late.pit is not None
    assert late.pit[-1] > 0.3


def test_nothing_known_is_none_not_zero() -> None:
    empty = track(record_of([]), at=AT)
    assert (empty.whole.answers, empty.by_day, empty.by_partition, empty.pit) == (0, (), (), None)
    assert empty.whole.held == Held(0.8, None, 0, None, None)
    assert empty.whole.ours == Errors(0, None, None)
    assert all(curve.points == () for curve in empty.reliability)
    assert track(calibrated(), at=AT, partition="no such").whole.answers == 0
    told = json.loads(json.dumps(empty.as_json(), allow_nan=False))
    assert told["whole"]["held"]["held"] is None
    assert told["at"] == "2026-06-10T12:00:00Z"


BASE: dict[str, Any] = {
    "asked": END - 2 * DAY, "pending": False, "partition": 0, "gpus": 1.0, "wait_s": 600.0, "started": True, "pit": 0.4,
    "median_s": 900.0, "low_80_s": 60.0, "width": 3600.0, "p_1h": 0.7, "slurm_s": NAN,
}  # fmt: skip


def test_a_day_between_without_answers_is_there_and_unknown() -> None:
    found = track(record_of([BASE, {**BASE, "asked": END - 4.5 * DAY}]), at=AT)
    assert [s.name for s in found.by_day] == ["2026-06-06", "2026-06-07", "2026-06-08"]
    assert (found.by_day[1].answers, found.by_day[1].held.held) == (0, None)


def test_jobs_that_still_wait_are_told_apart_from_cancelled_ones() -> None:
    """A cancelled job's answer never counts; one that still waits will, so its day is not settled."""
    fresh = {**BASE, "asked": END - 1800.0, "started": False, "wait_s": 1800.0}
    gone = {**BASE, "started": False, "wait_s": 100.0}
    missed = {**fresh, "width": 60.0}
    found = track(record_of([BASE, gone, fresh, missed]), at=AT)
    assert (found.whole.answers, found.whole.started, found.whole.waiting, found.whole.held.counted) == (4, 1, 1, 2)
    assert [s.settled for s in found.by_day] == [True, True, False]


def test_a_median_beyond_reach_is_far_off() -> None:
    beyond = {**BASE, "median_s": INF}
    most = track(record_of([beyond, beyond, BASE]), at=AT).whole.ours
    assert most.median_abs_s is None
    assert most.within_2x == pytest.approx(1 / 3)
    assert track(record_of([beyond, BASE, BASE]), at=AT).whole.ours.median_abs_s == 300.0


def test_mass_on_a_step_is_spread_over_it() -> None:
    """Half of all jobs start at once, as told: that is calibrated, though each has the same probability."""
    rows = [{**BASE, "wait_s": 0.0, "pit": 0.5}] * 50 + [{**BASE, "pit": 0.5 + (i + 0.5) / 100} for i in range(50)]
    assert track(record_of(rows), at=AT).pit == pytest.approx([0.1] * 10)


def test_wilson_of_a_known_case() -> None:
    assert wilson(0, 10) == pytest.approx((0.0, 0.27753), abs=1e-5)  # 1.96^2 / (10 + 1.96^2)
    with pytest.raises(ValueError, match="nothing"):
        wilson(0, 0)


def test_nothing_heavy_is_imported() -> None:
    code = "import sys, queuecast.answers.track; print([m for m in ('pandas', 'scipy', 'duckdb', 'sklearn') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_before_the_first_answer_there_is_none() -> None:
    assert track(calibrated(200), at=AT - timedelta(days=60)).whole.answers == 0
