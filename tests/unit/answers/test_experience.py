"""How users fare, against the definitions taken literally."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecast.answers.experiences.experience import experience, part, time_to
from queuecast.answers.experiences.rows import attempts_of, experience_place, gpu_place
from queuecast.answers.experiences.ways import (
    HIT,
    MISS,
    NONE,
    OPEN,
    Events,
    early_failures,
    first_successes,
    recoveries,
    retries,
    time_quantile,
)
from queuecast.answers.scoring import predictions_of
from queuecast.answers.viewer import Viewer
from queuecast.schema import arrow_schema
from queuecast.store.lake import Lake

T0 = datetime(2026, 5, 1, tzinfo=UTC)
FAILED = ("FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL")
STATES = ("COMPLETED", *FAILED, "CANCELLED", "PREEMPTED")


def row(number: int, submit: float, start: float | None, end: float | None, state: str, **more: Any) -> dict[str, Any]:
    """A row of the jobs table; times are minutes after T0."""

    def moment(value: float | None) -> datetime | None:
        return None if value is None else T0 + timedelta(minutes=value)

    return {
        "cluster": "c",
        "job_id": number,
        "job_id_text": str(number),
        "array_job_id": None,
        "array_tasks": 1,
        "het_offset": None,
        "user": "ines",
        "name": "train",
        "state": state,
        "submit": moment(submit),
        "start": moment(start),
        "end": moment(end),
        "exit_code": 0 if state == "COMPLETED" else 1,
        "exit_signal": 0,
        "gpus_req": 1,
        "submit_line": "sbatch a.sh",
        "observed_at": T0 + timedelta(days=30),
        "completeness": 3,
        "source": "sacct",
    } | more


@st.composite
def histories(draw: st.DrawFn) -> list[dict[str, Any]]:
    out = []
    for number in range(draw(st.integers(0, 18))):
        submit = draw(st.integers(0, 60))
        start = submit + draw(st.integers(0, 20))
        end = start + draw(st.integers(0, 15))
        shape = draw(st.sampled_from(("ended", "ended", "ended", "running", "pending", "untold")))
        state = draw(st.sampled_from(STATES)) if shape in ("ended", "untold") else "RUNNING" if shape == "running" else "PENDING"
        out.append(
            row(
                number,
                submit,
                None if shape == "pending" else start,
                end if shape == "ended" else None,
                state,
                user=draw(st.sampled_from(("ines", "Ines", "wei", None))),
                name=draw(st.sampled_from(("train-1", "train-2", "eval"))),
                array_job_id=draw(st.sampled_from((None, None, 100, 101))),
                exit_code=draw(st.sampled_from((0, 1, 137))),
            )
        )
    return out


def as_known(rows: list[dict[str, Any]], horizon: float) -> list[dict[str, Any]]:
    """Literally: what had not happened by the horizon is not known. Times in epoch seconds."""
    out = []
    for r in sorted(rows, key=lambda r: (r["submit"], r["job_id"])):
        if r["submit"].timestamp() > horizon:
            continue
        known = dict(r)
        for name in ("submit", "start", "end"):
            known[name] = None if r[name] is None or r[name].timestamp() > horizon else r[name].timestamp()
        known["over"] = known["end"] is not None
        known["good"] = known["over"] and r["state"] == "COMPLETED"
        known["bad"] = known["over"] and r["state"] in FAILED
        known["work"] = None if r["user"] is None else (r["user"].casefold(), "train" if "train" in r["name"] else "eval")
        known["unit"] = r["array_job_id"] or -1 - r["job_id"]
        known["sign"] = (r["state"], r["exit_code"], r["exit_signal"])
        out.append(known)
    return out


def listed(events: Events) -> list[tuple[int, float | None, int]]:
    return sorted(
        (int(r), None if np.isnan(v) else float(v), int(m)) for r, v, m in zip(events.row, events.value, events.mark, strict=True)
    )


HORIZONS = st.integers(0, 100).map(lambda m: (T0 + timedelta(minutes=m)).timestamp())
SINCE = st.integers(-1, 60).map(lambda m: (T0 + timedelta(minutes=m)).timestamp())


@settings(deadline=None)
@given(histories(), HORIZONS, SINCE)
def test_early_failures_as_defined(rows: list[dict[str, Any]], horizon: float, since: float) -> None:
    wanted = []
    for i, r in enumerate(as_known(rows, horizon)):
        if r["start"] is None or r["start"] < since:
            continue
        ran = (r["end"] if r["over"] else horizon) - r["start"]
        untold = not r["over"] and rows[[x["job_id"] for x in rows].index(r["job_id"])]["end"] is None and r["state"] in STATES
        mark = OPEN if untold or (not r["over"] and ran <= 120) else HIT if r["bad"] and ran <= 120 else MISS
        wanted.append((i, None, mark))
    assert listed(early_failures(attempts_of(rows, {}, horizon), since, horizon)) == wanted


@settings(deadline=None)
@given(histories(), HORIZONS, SINCE, st.integers(0, 40))
def test_first_successes_as_defined(rows: list[dict[str, Any]], horizon: float, since: float, lead: int) -> None:
    known = as_known(rows, horizon)
    sure = T0.timestamp() + 60 * lead
    wanted = []
    for work in {r["work"] for r in known} - {None}:
        mine = [i for i, r in enumerate(known) if r["work"] == work]
        begun = known[mine[0]]["submit"]
        if begun < since:
            continue
        ends = [known[i]["end"] for i in mine if known[i]["good"]]
        if begun < sure:
            wanted.append((mine[0], None, OPEN))
        else:
            wanted.append((mine[0], min(ends) - begun, HIT) if ends else (mine[0], horizon - begun, MISS))
    assert listed(first_successes(attempts_of(rows, {}, horizon), since, horizon, sure)) == sorted(wanted)


@settings(deadline=None)
@given(histories(), HORIZONS, SINCE)
def test_recoveries_as_defined(rows: list[dict[str, Any]], horizon: float, since: float) -> None:
    known = as_known(rows, horizon)
    wanted = []
    for work in {r["work"] for r in known} - {None}:
        mine = [i for i, r in enumerate(known) if r["work"] == work]
        failures = sorted((i for i in mine if known[i]["bad"]), key=lambda i: known[i]["end"])
        while failures:
            begun = known[failures[0]]["end"]
            back = [known[i]["end"] for i in mine if known[i]["good"] and known[i]["submit"] >= begun]
            if begun >= since:
                wanted.append((failures[0], min(back) - begun, HIT) if back else (failures[0], horizon - begun, MISS))
            failures = [i for i in failures if back and known[i]["end"] > min(back)]
    assert listed(recoveries(attempts_of(rows, {}, horizon), since, horizon)) == sorted(wanted)


@settings(deadline=None)
@given(histories(), HORIZONS, SINCE, st.booleans())
def test_retries_as_defined(rows: list[dict[str, Any]], horizon: float, since: float, same: bool) -> None:
    known = as_known(rows, horizon)
    wanted, done = [], set()
    for i, r in enumerate(known):
        chosen = r["bad"] if same else r["over"] and r["state"] in ("TIMEOUT", "PREEMPTED", "NODE_FAIL")
        key = (r["work"], r["unit"], r["sign"])
        if r["work"] is None or not chosen or r["end"] < since or key in done:
            continue
        done.add(key)
        after = [j for j, o in enumerate(known) if j > i and o["work"] == r["work"] and o["submit"] >= r["end"]]
        if not after:
            wanted.append((i, None, NONE))
        elif not known[after[0]]["over"]:
            wanted.append((i, None, OPEN))
        else:
            good = known[after[0]]["sign"] == r["sign"] if same else known[after[0]]["good"]
            wanted.append((i, None, HIT if good else MISS))
    attempts = attempts_of(rows, {}, horizon)
    assert listed(retries(attempts, attempts.failed if same else attempts.interrupted, since, same=same)) == wanted


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), max_size=25), st.sampled_from((0.25, 0.5, 0.75)))
def test_the_median_with_censoring_is_kaplan_and_meiers(cases: list[tuple[int, bool]], share: float) -> None:
    left, wanted = 1.0, None
    for moment in sorted({t for t, seen in cases if seen}):
        at_risk = sum(t >= moment for t, _seen in cases)
        left *= 1 - sum(t == moment and seen for t, seen in cases) / at_risk
        if left <= 1 - share + 1e-9:
            wanted = float(moment)
            break
    found = time_quantile(np.array([t for t, _ in cases], float), np.array([s for _, s in cases], bool), share)
    assert found == wanted


def test_dropping_the_censored_would_flatter() -> None:
    """F: three quick successes and five who never got there: half have not recovered, however quick the three were."""
    events = Events(np.arange(8), np.array([1.0, 2, 3, 50, 50, 50, 50, 50]), np.array([HIT] * 3 + [MISS] * 5))
    found = time_to(events)
    assert (found.cases, found.seen, found.quarter_s, found.median_s) == (8, 3, 2.0, None)
    assert part(np.array([], np.int64)).share is None
    assert part(np.array([HIT, MISS, OPEN, NONE], np.int64)) == part(np.array([MISS, NONE, HIT, OPEN], np.int64))


def test_classes() -> None:
    assert [experience_place(n) for n in (0, 1, 9, 10, 99, 100, 999, 1000, None)] == [0, 1, 1, 2, 2, 3, 3, 4, 5]
    assert [gpu_place(n) for n in (0, 1, 2, 4, 5, 8, 9, None)] == [0, 1, 2, 2, 3, 3, 4, 5]
    rows = [
        row(1, 0, None, None, "PENDING", array_job_id=7),
        row(2, 1, None, None, "PENDING", submit_line="/usr/bin/srun --pty bash"),
        row(3, 2, None, None, "PENDING", submit_line=None),
        row(4, 3, None, None, "PENDING", submit_line=None),
    ]
    steps = {(3, (T0 + timedelta(minutes=2)).timestamp()): "interactive"}
    assert attempts_of(rows, steps, (T0 + timedelta(days=1)).timestamp()).form.tolist() == [1, 2, 2, 3]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Two users: ines fails in a minute, then gets there; wei's array fails twice the same way; an early job dates the lake."""
    rows = [row(1, 0, 1, 30, "COMPLETED", user="root", name="old")]
    day = 3 * 1440.0
    rows += [
        row(10, day, day + 5, day + 6, "FAILED"),
        row(11, day + 10, day + 12, day + 130, "COMPLETED"),
        row(20, day, day, day + 20, "OUT_OF_MEMORY", user="wei", name="sweep", array_job_id=20),
        row(21, day, day, day + 20, "OUT_OF_MEMORY", user="wei", name="sweep", array_job_id=20),
        row(22, day + 40, day + 41, day + 60, "OUT_OF_MEMORY", user="wei", name="sweep"),
        row(30, day + 50, day + 51, day + 90, "COMPLETED", user=None, name="hidden"),
    ]
    made = Lake.open(tmp_path / "lake", create=True)
    with made.transaction("test") as tx:
        tx.append("jobs", pa.Table.from_pylist(rows, schema=arrow_schema("jobs")))
    return made.refresh()


def test_the_report(lake: Lake) -> None:
    at = T0 + timedelta(days=4)
    found = experience(lake, "c", since=T0 + timedelta(days=1), at=at, viewer=Viewer())
    whole = found.whole
    assert whole is not None
    assert (whole.attempts, whole.users, found.unnamed) == (6, 2, 1)
    assert (whole.first_success.cases, whole.first_success.seen, whole.first_success.median_s) == (2, 1, 130 * 60.0)
    assert (whole.early_failure.counted, whole.early_failure.hits) == (6, 1)
    assert (whole.recovery.cases, whole.recovery.seen, whole.recovery.median_s) == (2, 1, 124 * 60.0)
    assert (whole.repeated.counted, whole.repeated.hits, whole.repeated.none) == (2, 1, 1)
    assert [c.experience for c in found.by("experience")] == ["0", "1-9", "unknown"]
    assert {c.form: c.attempts for c in found.by("form")} == {"batch": 4, "array": 2}
    assert sum(c.attempts for c in found.by("gpus")) == whole.attempts
    json.dumps(found.as_json(), allow_nan=False)


def test_nothing_later_than_the_moment_is_used(lake: Lake) -> None:
    """F: at the moment of the failure, nobody knows of the success."""
    at = T0 + timedelta(days=3, minutes=9)
    found = experience(lake, "c", since=T0 + timedelta(days=1), at=at)
    assert found.whole is not None
    assert found.whole.first_success.seen == 0
    assert found.whole.recovery.median_s is None
    assert found.known_until == at


def test_who_may_not_see_all_sees_no_groups_and_no_few(lake: Lake) -> None:
    at = T0 + timedelta(days=4)
    found = experience(lake, "c", since=T0 + timedelta(days=1), at=at, viewer=Viewer("ines", sees_all=False))
    assert found.whole is None
    assert found.cells == ()
    assert found.limited


def test_an_empty_lake(tmp_path: Path) -> None:
    found = experience(Lake.open(tmp_path / "lake", create=True), "c", since=T0, at=T0 + timedelta(days=1))
    assert found.known_from is None
    assert found.whole is not None
    assert found.whole.first_success.median_s is None
    json.dumps(found.as_json(), allow_nan=False)


@settings(max_examples=30, deadline=None)
@given(told=st.lists(st.tuples(st.sampled_from((None, 100.0, 1000.0)), st.sampled_from((None, 0.0, 500.0, 90000.0))), max_size=9))
def test_errors_of_waits_told(tmp_path_factory: pytest.TempPathFactory, told: list[tuple[float | None, float | None]]) -> None:
    """Open answers, and those whose job starts after the moment asked about, are counted apart."""
    lake = Lake.open(tmp_path_factory.mktemp("told") / "lake", create=True)
    log = predictions_of(lake)
    for median, wait in told:
        log.add(
            at=T0,
            cluster="c",
            job_id=None,
            job_submit=None,
            user="ines",
            model=None,
            answer={"median_wait_s": median, "intervals": [{"share": 0.8, "low_s": 0, "high_s": 400}], "request": {"gpus": 2}},
        )
        number = log.unscored("c")[-1].id
        if wait is not None:
            log.score([(number, "started", T0 + timedelta(seconds=wait), wait)])
    found = experience(lake, "c", since=T0 - timedelta(days=1), at=T0 + timedelta(hours=1))
    assert found.whole is not None
    waits = found.whole.waits
    done = [(m, w) for m, w in told if w is not None and w <= 3600]
    assert (waits.scored, waits.open, waits.unknown) == (len(done), len(told) - len(done), 0)
    errors = sorted(np.inf if m is None else abs(m - w) for m, w in done)
    middle = float(np.median(errors)) if errors else None
    assert waits.median_abs_s == (None if middle is None or not np.isfinite(middle) else middle)
    assert waits.held_80 == (None if not done else sum(w <= 400 for _, w in done) / len(done))
    assert {c.gpus for c in found.by("gpus")} == ({"2-4"} if told else set())
