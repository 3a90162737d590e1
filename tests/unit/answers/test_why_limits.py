"""Limits in words: whose, how much, by what, what ends next; budgets, licences, run minutes, reservations."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.answers.test_why import NOW, policy, row, used
from tests.unit.answers.test_why_story import SUBMIT, H, job, lake_with, waits

from queuecast.answers.explaining.binding import Binding, binding, never_met
from queuecast.answers.explaining.budget import Use, faded, spent_of
from queuecast.answers.explaining.explain import why
from queuecast.answers.explaining.licences import asked_licences
from queuecast.answers.explaining.queue import Snapshot
from queuecast.answers.explaining.release import minutes_release, release
from queuecast.answers.viewer import Viewer
from queuecast.policy.counted import Level
from queuecast.policy.request import Request
from queuecast.policy.reservations import Reservation
from queuecast.policy.tables import Association, Limits, Policy, policy_at
from queuecast.policy.usage import Scope, Usage
from queuecast.render.why import ending_words, release_words

ANA = Viewer("ana", sees_all=False)


def limits(**more: Any) -> Limits:
    flat: Any = {k: ({} if "tres" in k else None) for k in Limits.__dataclass_fields__}
    return Limits(**(flat | more))


def ask(p: Policy, rows: list[dict[str, Any]], viewer: Viewer = ANA, spent: Any = None, **more: Any) -> Binding:
    mine = rows[0]
    request = Request(
        partitions=("gpu",), gpus=mine["gpus"], user=mine["user"], account=mine["account"], qos="normal", limit_s=mine["limit_s"]
    )
    usage = Usage(NOW, tuple(used(r) for r in rows))
    return binding(p, usage, Snapshot(NOW, tuple(rows)), mine, replace(request, **more), list, viewer, spent)


def with_account(p: Policy, **more: Any) -> Policy:
    own = Association("lab", "ana", None, None, frozenset({"normal"}), None, limits())
    return replace(p, associations=(own, Association("lab", None, None, None, None, None, limits(**more))))


def at(hours: float) -> datetime:
    return NOW + timedelta(hours=hours)


def clock(value: datetime | None) -> str:
    return "?" if value is None else f"{value:%H:%M}"


def test_a_qos_limit_is_told_as_used_of_allowed_with_the_own_part() -> None:
    rows = [row(1, gpus=4), row(2, "RUNNING", gpus=4), row(3, "RUNNING", gpus=28, user="eve", limit_s=7200)]
    first = ask(policy(grp_tres={"gres/gpu": 32}), rows).constraints[0]
    assert (
        first.text == "All jobs with QOS normal together use 32 of 32 GPUs allowed by QOS normal; this job asks for 4. 4 of them are yours."
    )
    assert first.release is not None
    assert (first.release.kin, first.release.job, first.release.amount) == ("qos", "2", 4)
    assert release_words(first.release, clock).startswith("4 GPUs come free when job 2 ends, expected 12:00 to 12:30")


def test_a_groups_limit_names_own_jobs_only() -> None:
    rows = [row(1, gpus=6), row(2, "RUNNING", gpus=4, user="eve"), row(3, "RUNNING", gpus=2), row(4, "RUNNING", gpus=2, limit_s=90000)]
    found = ask(with_account(policy(), grp_tres={"gres/gpu": 8}), rows).constraints[0]
    assert found.code == "AssocGrpGRES"
    assert found.text.startswith("Your group's jobs (account lab) use 8 of 8 GPUs allowed by the limit of account lab;")
    assert "4 of them are yours" in found.text
    assert found.release is not None
    assert {e.job for e in found.release.next} == {None, "3"}  # 2 is another one's, 4 is not needed
    lines = ending_words(found.release, clock)
    assert any(line.startswith("a job of your group: 4 GPUs come free") for line in lines)
    assert any(line.startswith("job 3: 2 GPUs come free") for line in lines)
    assert not any("eve" in line for line in [*lines, found.text])


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"max_tres_per_user": {"gres/gpu": 4}}, "Your jobs use 4 of 4 GPUs allowed by QOS normal for each user"),
        (
            {"max_tres_per_account": {"gres/gpu": 4}},
            "Your group's jobs (account lab) use 4 of 4 GPUs allowed by QOS normal for each account",
        ),
        ({"max_jobs_per_user": 1}, "Your jobs: 1 run, and QOS normal for each user allows 1 to run at a time"),
        ({"grp_jobs": 1}, "All jobs with QOS normal together: 1 run, and QOS normal allows 1 to run at a time"),
        ({"grp_tres": {"cpu": 1}}, "use 1 of 1 CPUs allowed by QOS normal"),
        ({"grp_tres": {"node": 1}}, "use 1 of 1 nodes allowed by QOS normal"),
        ({"grp_tres": {"gres/gpu": 0}}, "This job asks for 1 GPUs; QOS normal allows 0 altogether"),
    ],
)
def test_whose_limit_it_is(more: dict[str, Any], words: str) -> None:
    assert words in ask(policy(**more), [row(1), row(2, "RUNNING", gpus=4)]).constraints[0].text


def test_another_viewer_reads_of_the_user() -> None:
    rows = [row(1), row(2, "RUNNING", gpus=4)]
    text = ask(policy(max_tres_per_user={"gres/gpu": 4}), rows, Viewer("root")).constraints[0].text
    assert text.startswith("The jobs of ana use 4 of 4 GPUs")


def test_minutes_still_to_run_fall_while_jobs_run() -> None:
    """4 GPUs with 30 minutes left hold 120 GPU-minutes; 60 more are asked for and 150 allowed: 30 must go, which takes 7.5 minutes."""
    rows = [row(1, limit_s=3600), row(2, "RUNNING", gpus=4)]
    first = ask(policy(grp_tres_run_mins={"gres/gpu": 150}), rows).constraints[0]
    assert first.code == "QOSGrpGRESRunMinutes"
    assert "have 120 of the 150 GPU-minutes before them that QOS normal allows" in first.text
    assert first.release is not None
    assert first.release.gradual
    assert first.release.by_limit is not None
    assert abs((first.release.by_limit - NOW).total_seconds() - 450) <= 2
    assert "Room for 30 GPU-minutes more" in release_words(first.release, clock)


@given(st.lists(st.tuples(st.integers(1, 8), st.integers(120, 86400), st.floats(0, 0.95)), min_size=1, max_size=8), st.floats(0.01, 1.2))
def test_run_minutes_bounds_are_ordered_and_enough(jobs: list[tuple[int, int, float]], share: float) -> None:
    rows = [row(i, "RUNNING", gpus=g, limit_s=limit, elapsed_s=int(limit * ran)) for i, (g, limit, ran) in enumerate(jobs)]
    left = [(g, limit - int(limit * ran)) for g, limit, ran in jobs]
    whole = sum(g * s / 60 for g, s in left)
    need = whole * share
    shares: list[tuple[str | None, str | None, float]] = [("ana", "gpu", i / 40) for i in range(41)]
    found = minutes_release(rows, lambda r: r["gpus"], "gres/gpu_mins", need, NOW, shares, ANA)
    assert (found is None) == (share > 1)
    if found is None:
        return
    assert found.earliest is not None
    assert found.latest is not None
    assert found.by_limit is not None
    assert found.earliest <= found.latest + timedelta(seconds=2)
    assert found.latest <= found.by_limit + timedelta(seconds=2)
    seconds = (found.by_limit - NOW).total_seconds()
    assert sum(g * max(0.0, s - seconds) / 60 for g, s in left) <= whole - need + 8 * 8 / 60 + 1e-6


def test_jobs_without_a_limit_leave_run_minutes_open() -> None:
    assert minutes_release([row(1, "RUNNING", limit_s=None)], lambda r: 1, "cpu_mins", 1, NOW, [], ANA) is None


# ------------------------------------------------------------------ budgets


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(600, 1e6))
def test_faded_use_is_the_integral_of_the_decay(age: float, length: float, half: float) -> None:
    now = 2e6
    begin = now - age - length
    found = float(faded(np.array([begin]), np.array([now - age]), now, half)[0])
    steps = np.linspace(begin, now - age, 20001)
    assert found == pytest.approx(float(np.trapezoid(np.exp2((steps - now) / half), steps)), rel=1e-3, abs=1e-3)
    assert found <= length + 1e-6
    assert faded(np.array([begin]), np.array([now - age]), now, None)[0] == pytest.approx(length, abs=1e-6)


def budget(used_minutes: float, source: str = "accounting", since: datetime | None = None, half: float | None = 7 * 86400.0) -> Any:
    return lambda _level, _tres: Use(used_minutes, NOW, source, since, half)


def test_a_budget_that_is_used_up_binds_and_says_when_it_has_faded() -> None:
    p = with_account(policy(), grp_tres_mins={"gres/gpu": 100})
    first = ask(p, [row(1)], spent=budget(200)).constraints[0]
    assert (first.code, first.standing, first.used, first.limit) == ("AssocGrpGRESMinutes", "waits", 200, 100)
    assert "200 of the 100 GPU-minutes of account lab are used" in first.text
    assert first.release is not None
    assert first.release.earliest == NOW + timedelta(days=7)  # half of it has gone by then
    assert "Not before" in release_words(first.release, clock)
    assert ask(p, [row(1)], spent=budget(99)).constraints[0].code != "AssocGrpGRESMinutes"


def test_with_safe_the_jobs_own_need_and_what_runs_count() -> None:
    p = replace(with_account(policy(), grp_tres_mins={"gres/gpu": 100}), settings={"accountingstorageenforce": "safe"})
    rows = [row(1, limit_s=1800), row(2, "RUNNING", gpus=1)]  # 30 of its own, 30 that runs
    assert ask(p, rows, spent=budget(39)).constraints[0].code != "AssocGrpGRESMinutes"
    first = ask(p, rows, spent=budget(41)).constraints[0]
    assert first.code == "AssocGrpGRESMinutes"
    assert "jobs that run may use 30 more, and this one 30" in first.text


def test_a_budget_known_in_part_is_said_to_be_at_least_that() -> None:
    p = with_account(policy(), grp_tres_mins={"gres/gpu": 100})
    text = ask(p, [row(1)], spent=budget(150, since=NOW - timedelta(days=3), half=None)).constraints[0].text
    assert text.startswith("At least 150 of the 100 GPU-minutes")
    assert "since 2026-06-07" in text
    assert "not forgotten" in text
    found = ask(p, [row(1, reason="AssocGrpGRESMinutes")], spent=budget(50, since=NOW))
    assert found.constraints[0].standing == "unchecked"  # less than the limit, but not all is known: Slurm's word


def test_a_budget_of_wall_time_and_limits_that_are_not_looked_at() -> None:
    p = with_account(policy(), grp_wall_s=6000)
    first = ask(p, [row(1, reason="AssocGrpWallLimit")], spent=budget(100)).constraints[0]
    assert (first.code, first.standing) == ("AssocGrpWallLimit", "waits")
    assert "100 of the 100 job-minutes of account lab are used" in first.text
    assert ask(p, [row(1)], spent=budget(99)).constraints[0].code == "NextPass"
    unseen = ask(policy(), [row(1, reason="MaxGRESRunMinsPerUser")])
    assert (unseen.constraints[0].code, unseen.constraints[0].standing) == ("MaxGRESRunMinsPerUser", "unchecked")


def test_minutes_of_memory_are_told_in_gib() -> None:
    p = with_account(policy(), grp_tres_mins={"mem": 100 << 30})
    text = ask(p, [row(1)], spent=budget(float(200 << 30)), mem_bytes=1 << 30).constraints[0].text
    assert text.startswith("200 of the 100 GiB-minutes of memory of account lab are used")


def test_use_is_read_off_sshare_or_added_up_from_accounting(tmp_path: Path) -> None:
    share = {"cluster": "toy", "observed_at": SUBMIT + 4 * H, "account": "vision", "user": None, "depth": 1, "raw_usage": 6000}
    ran = job(5, start=SUBMIT, end=SUBMIT + 2 * H, state="COMPLETED", completeness=3, cpus_alloc=8, gpus_alloc=4, gpu_type_alloc="a100")
    other = job(6, start=SUBMIT, end=SUBMIT + 2 * H, state="COMPLETED", completeness=3, cpus_alloc=8, gpus_alloc=4, account="bio")
    settings = [
        {"cluster": "toy", "observed_at": SUBMIT, "section": "config", "key": k, "value": v}
        for k, v in {"PriorityDecayHalfLife": "7-0", "PriorityType": "priority/multifactor"}.items()
    ]
    lake = lake_with(tmp_path, [ran, other], [waits(71, SUBMIT + 4 * H)], shares=[share], settings=settings)
    spent = spent_of(lake, "toy", SUBMIT + 4 * H, policy_at(lake, "toy", SUBMIT + 4 * H))
    level = Level("assoc", "account vision", limits(), Scope(accounts=frozenset({"vision"})), False)
    by_share = spent(level, "billing")
    assert by_share is not None
    assert (by_share.minutes, by_share.source, by_share.since) == (100, "sshare", None)
    gpu = spent(level, "gres/gpu")
    assert gpu is not None
    assert gpu.source == "accounting"
    assert gpu.minutes == pytest.approx(480, rel=0.03)
    assert gpu.minutes < 480
    typed, none = spent(level, "gres/gpu:a100"), spent(level, "gres/gpu:v100")
    assert typed is not None
    assert none is not None
    assert (typed.minutes, none.minutes) == (gpu.minutes, 0)
    assert gpu.since is not None  # accounting does not reach back over enough half-lives
    assert spent(level, "license/x") is None


def test_settings_are_those_of_their_own_last_reading(tmp_path: Path) -> None:
    """The weights are read some seconds after the configuration, into the same table."""
    rows = [
        {"cluster": "toy", "observed_at": SUBMIT, "section": "config", "key": "Licenses", "value": "a:1"},
        {"cluster": "toy", "observed_at": SUBMIT + H, "section": "config", "key": "Licenses", "value": "a:2"},
        {"cluster": "toy", "observed_at": SUBMIT + H + timedelta(seconds=2), "section": "priority_weights", "key": "Age", "value": "1"},
        {"cluster": "toy", "observed_at": SUBMIT + 9 * H, "section": "config", "key": "Licenses", "value": "a:3"},
    ]
    lake = lake_with(tmp_path, [job(71)], [], settings=rows)
    assert policy_at(lake, "toy", SUBMIT + 2 * H).settings == {"licenses": "a:2"}
    assert policy_at(lake, "toy", SUBMIT - H).settings == {"licenses": "a:1"}


# ------------------------------------------------------------------ licences, reservations, dependencies


def licensed(p: Policy, text: str = "matlab:4,ansys:2") -> Policy:
    return replace(p, settings={"licenses": text})


@pytest.mark.parametrize(
    ("asked", "code", "standing"),
    [
        ("matlab:2", "Licenses", "waits"),
        ("matlab:1", "NextPass", "waits"),
        ("matlab:5", "Licenses", "never"),
        ("ansys:2", "NextPass", "waits"),
        ("ansys:1,matlab:2", "Licenses", "waits"),
        ("other@server:2", "NextPass", "waits"),
    ],
)
def test_licences_are_counted(asked: str, code: str, standing: str) -> None:
    rows = [row(1, licenses=asked), row(2, "RUNNING", licenses="matlab:3", limit_s=7200), row(3, licenses="matlab:4", priority=1)]
    first = ask(licensed(policy()), rows).constraints[0]
    assert (first.code, first.standing) == (code, standing)
    if standing == "waits" and code == "Licenses":
        assert "3 of the 4 licences of matlab are in use; this job asks for 2" in first.text
        assert first.release is not None
        assert first.release.job == "2"


def test_licences_that_cannot_be_counted_are_slurms_word() -> None:
    first = ask(licensed(policy()), [row(1, licenses="flex@srv:1", reason="Licenses")]).constraints[0]
    assert (first.code, first.standing) == ("Licenses", "unchecked")
    assert "scontrol show license" in first.text
    stale = ask(licensed(policy()), [row(1, licenses="matlab:1", reason="Licenses")])
    assert (stale.constraints[0].code, stale.agreement) == ("NextPass", "differs")


@given(st.text(max_size=40))
def test_no_text_of_licences_breaks_the_count(text: str) -> None:
    rows = (row(1, licenses=text), row(2, "RUNNING", licenses=text))
    for one in asked_licences(licensed(policy(), text), Snapshot(NOW, rows), rows[0]):
        assert one.asked >= 0


@pytest.mark.parametrize(
    ("start", "user", "code", "standing"),
    [(at(1), "ana", "Reservation", "waits"), (at(-1), "ana", "NextPass", "waits"), (at(-1), "eve", "Reservation", "never")],
)
def test_the_reservation_that_it_asks_for(start: datetime, user: str, code: str, standing: str) -> None:
    kept = Reservation("work", start, at(9), frozenset(), frozenset({"n1"}), None, frozenset({user}), frozenset())
    p = replace(policy(), reservations=(kept,))
    first = ask(p, [row(1, reservation="work")]).constraints[0]
    assert (first.code, first.standing) == (code, standing)
    if start > NOW:
        assert first.release is not None
        assert release_words(first.release, clock) == "It can go on from 13:00."


@pytest.mark.parametrize(
    ("text", "never"),
    [
        ("afterok:7(failed)", True),
        ("afterok:7(unfulfilled),afterok:8(failed)", True),
        ("afterok:7(failed)?afterok:8(unfulfilled)", False),
        ("afterok:7(failed)?afterok:8(failed)", True),
        ("afterok:7(unfulfilled)", False),
        ("singleton", False),
    ],
)
def test_a_dependency_that_can_never_be_met(text: str, never: bool) -> None:
    assert never_met(text) == never
    first = ask(policy(), [row(1, dependency=text, reason="Dependency")]).constraints[0]
    assert first.standing == ("never" if never else "waits")


def test_nodes_that_slurm_names_are_looked_at() -> None:
    p = policy()
    gone = replace(p.nodes[0], name="n2", available=False, state="DOWN", flags=frozenset({"DRAIN"}))
    p = replace(p, nodes=(*p.nodes, gone))
    told = "ReqNodeNotAvail, UnavailableNodes:n2"
    first = ask(p, [row(1, reason="ReqNodeNotAvail", reason_text=told)]).constraints[0]
    assert (first.code, first.standing) == ("ReqNodeNotAvail", "waits")
    assert "n2 (down drain)" in first.text
    back = replace(p, nodes=(p.nodes[0], replace(gone, available=True)))
    assert ask(back, [row(1, reason="ReqNodeNotAvail", reason_text=told)]).constraints[0].standing == "unchecked"


def test_a_limit_on_submissions_that_slurm_names_is_counted() -> None:
    rows = [row(1, reason="QOSMaxSubmitJobPerUserLimit"), row(2, "RUNNING"), row(3)]
    first = ask(policy(max_submit_per_user=3), rows).constraints
    found = next(c for c in first if c.code == "QOSMaxSubmitJobPerUserLimit")
    assert (found.limit, found.used) == (3, 3)
    assert all("Submit" not in c.code for c in ask(policy(max_submit_per_user=4), rows).constraints)


@pytest.mark.parametrize(("limit", "running", "standing"), [(3, 0, "never"), (3, 2, "never"), (5, 2, "waits"), (9, 2, None)])
def test_components_of_a_heterogeneous_job_count_together(limit: int, running: int, standing: str | None) -> None:
    rows = [row(1, job_id_text="1+0", gpus=2), row(2, job_id_text="1+1", gpus=2), row(3, job_id_text="3+0", gpus=2)]
    rows += [row(4, "RUNNING", gpus=running)] if running else []
    found = [c for c in ask(policy(grp_tres={"gres/gpu": limit}), rows).constraints if c.code == "QOSGrpGRES"]
    assert [c.standing for c in found][:1] == ([standing] if standing else [])
    if found:
        assert found[0].text.startswith("The 2 components of this heterogeneous job start together:")


def test_the_answer_as_a_whole_is_plain_json(tmp_path: Path) -> None:
    when = SUBMIT + H
    queue = [waits(71, when), waits(5, when, user="bob") | {"state": "RUNNING", "start": SUBMIT, "elapsed_s": 3600, "limit_s": 7200}]
    qos = [{"cluster": "toy", "observed_at": SUBMIT, "qos": "normal", "grp_tres": "gres/gpu=4", "usage_factor": 1.0}]
    lake = lake_with(tmp_path, [job(71)], queue, qos=qos)
    plain = why(lake, "toy", "71", when, Viewer("alice", sees_all=False)).as_json()
    first = plain["binding"]["constraints"][0]
    assert first["code"] == "QOSGrpGRES"
    assert first["release"]["next"][0]["job"] is None
    assert "bob" not in str(plain)


def test_release_of_a_kind_keeps_its_words() -> None:
    free = release([row(2, "RUNNING", user="eve")], lambda r: 2, "gres/gpu", 2, NOW, [], ANA, "group")
    assert free is not None
    assert "when a job of your group ends" in release_words(free, clock)
    assert math.isclose(free.amount, 2)
    assert free.next[0].latest == datetime(2026, 6, 10, 12, 30, tzinfo=UTC)
