"""From a task to requests: every option can be asked for, the sums hold, and what is not known is not told."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.synthetic import NOW, job_rows, make_lake, table

from queuecast.answers.forecast import Forecaster
from queuecast.answers.suggest import _recommend, suggest
from queuecast.answers.suggest_cluster import cost, node_groups, preemptible
from queuecast.answers.suggestion import Question, Suggestion
from queuecast.answers.viewer import Viewer
from queuecast.config import Hardware
from queuecast.errors import NoDataError, UsageError
from queuecast.hardware.modelshapes import Parts, find_shape
from queuecast.hardware.scaling import Run
from queuecast.hardware.taskmemory import Task
from queuecast.policy.request import Request, from_options
from queuecast.policy.tables import policy_at
from queuecast.policy.usage import usage_at
from queuecast.policy.verdicts import verdicts
from queuecast.render.suggest import parsable, suggest_lines
from queuecast.slurmtext.script import parse_script
from queuecast.store.lake import Lake

PLAIN = Hardware({}, {})
BIG = Hardware({"a100": {"memory_gib": 80}}, {"a100": 1.5}, "EUR")


@pytest.fixture(scope="module")
def forecaster(tmp_path_factory: pytest.TempPathFactory) -> Forecaster:
    return Forecaster(make_lake(tmp_path_factory.mktemp("toy") / "lake", job_rows()))


def task(model: str = "7b", mode: Any = "lora", precision: Any = "fp16", seq: int = 2048) -> Task:
    return Task(find_shape(model, Parts()), mode, precision, seq=seq)


def ask(forecaster: Forecaster, hardware: Hardware = PLAIN, **more: Any) -> Suggestion:
    question = Question(**{"task": task(), "batch": 8, "hours": 10.0, "on": "a100:4", **more})
    return suggest(forecaster, question, NOW, Viewer("alice"), hardware)


def test_options_hold_the_task_and_can_be_pasted(forecaster: Forecaster) -> None:
    answer = ask(forecaster)
    assert answer.options
    assert {o.gpu_type for o in answer.options} == {"a100", "v100"}
    for option in answer.options:
        assert option.layout.memory.total <= option.layout.usable_bytes
        assert option.layout.gpus <= 4
        pasted = parse_script("#!/bin/sh\n#SBATCH " + " ".join(option.flags) + "\n").options
        request = from_options(pasted)
        assert (request.partitions, request.gpus, request.gpu_type) == (("gpu",), option.layout.gpus, option.gpu_type)
        assert (request.cpus, request.nodes, request.limit_s) == (option.request.cpus, option.nodes, option.request.limit_s)
        assert request.cpus <= 64 * option.layout.gpus // 4


def test_wait_run_and_finish_add_up(forecaster: Forecaster) -> None:
    for option in ask(forecaster).options:
        assert option.run is not None
        assert option.finish is not None
        eighty = option.wait.interval(0.8)
        assert eighty is not None
        assert option.wait.median_s is not None
        assert option.finish.low_s == eighty.low_s + option.run.low_s
        assert option.finish.middle_s == option.wait.median_s + option.run.likely_s
        assert option.finish.high_s is None or option.finish.high_s == eighty.high_s + option.run.high_s
        assert option.gpu_hours == pytest.approx(option.layout.gpus * option.run.likely_s / 3600)
        assert option.request.limit_s is not None
        assert option.request.limit_s >= min(option.run.high_s, 172800)
        assert option.wait.within


def test_the_reference_takes_what_was_told(forecaster: Forecaster) -> None:
    answer = ask(forecaster)
    mine = next(o for o in answer.options if o.name == "4 x a100")
    assert mine.run is not None
    assert mine.run.low_s == mine.run.high_s == pytest.approx(36000)
    assert answer.reference == "4 x a100"
    without = ask(forecaster, on=None)
    assert without.reference is not None
    assert any("since --on does not say" in a and without.reference in a for a in without.assumptions)


def test_pareto_and_recommendation(forecaster: Forecaster) -> None:
    answer = ask(forecaster, hardware=BIG)
    assert any(o.pareto for o in answer.options)
    for option in answer.options:
        mine = (option.wait.median_s, option.finish and option.finish.middle_s, option.gpu_hours)
        better = [
            o
            for o in answer.options
            if o is not option
            and all(
                a is not None and b is not None and a < b
                for a, b in zip((o.wait.median_s, o.finish and o.finish.middle_s, o.gpu_hours), mine, strict=True)
            )
        ]
        assert not (option.pareto and better)
    assert answer.recommended is not None
    assert not answer.options[answer.recommended].layout.tight
    assert answer.because


def test_a_tight_one_that_ends_sooner_is_pointed_at(forecaster: Forecaster) -> None:
    options = list(ask(forecaster, hardware=BIG).options)
    first, second = options[0], options[1]
    assert first.finish is not None
    assert second.finish is not None
    first = replace(
        first, layout=replace(first.layout, usable_bytes=first.layout.memory.total), finish=replace(first.finish, middle_s=60.0)
    )
    best, because = _recommend([first, second])
    assert best == 1
    assert "1 would end sooner if it holds" in because
    alone, why = _recommend([first])
    assert alone == 0
    assert "tight" in why
    assert _recommend([]) == (None, "")


def test_cost_only_where_something_is_configured(forecaster: Forecaster) -> None:
    for option in ask(forecaster).options:
        assert (option.cost.billing_hours, option.cost.charged, option.cost.price) == (None, None, None)
    assert any("cost" in line and "not known" in line for line in suggest_lines(ask(forecaster), "UTC"))
    for option in ask(forecaster, hardware=BIG).options:
        assert option.gpu_hours is not None
        price = option.cost.price
        assert price is None if option.gpu_type == "v100" else price == pytest.approx(1.5 * option.gpu_hours)


def test_without_hours_there_is_no_finish(forecaster: Forecaster) -> None:
    answer = ask(forecaster, hours=None, on=None)
    assert answer.options
    assert all(o.run is None and o.finish is None and o.gpu_hours is None for o in answer.options)
    assert all(o.wait.median_s is not None for o in answer.options)
    assert any("--hours" in line for line in suggest_lines(answer, "UTC"))


def test_what_does_not_fit_says_why(forecaster: Forecaster) -> None:
    bf16 = ask(forecaster, task=task(precision="bf16"))
    assert {o.gpu_type for o in bf16.options} == {"a100"}
    assert [(u.gpu_type, "fp16" in u.hint) for u in bf16.unfit] == [("v100", True)]
    none = ask(forecaster, task=task("405b", "full"))
    assert none.options == ()
    assert none.recommended is None
    assert {u.gpu_type for u in none.unfit} == {"a100", "v100"}
    assert any("No GPU of this cluster" in line for line in suggest_lines(none, "UTC"))


def test_a_run_longer_than_the_partition_allows_is_not_offered(forecaster: Forecaster) -> None:
    answer = ask(forecaster, hours=100.0)
    for option in answer.options:
        assert option.run is not None
        assert option.run.likely_s <= 172800
        assert option.request.limit_s is not None
        assert option.request.limit_s <= 172800
    assert any("over its limit" in u.why for u in answer.unfit)


def test_a_limit_as_typed_is_kept(forecaster: Forecaster) -> None:
    answer = ask(forecaster, limit="2:00:00")
    assert all(o.request.limit_s == 7200 for o in answer.options)
    assert all(any("before the expected end" in n for n in o.notes) for o in answer.options if o.run and o.run.likely_s > 7200)
    with pytest.raises(UsageError):
        ask(forecaster, limit="soon")


@pytest.mark.parametrize(
    "more",
    [
        {"on": "a100"},
        {"on": "a100:0"},
        {"on": "warp:8"},
        {"hours": None},
        {"partitions": ("nosuch",)},
        {"account": "nobody"},
        {"qos": "gold"},
    ],
)
def test_wrong_questions_are_refused(forecaster: Forecaster, more: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as refused:
        ask(forecaster, **more)
    assert refused.value.hint


def test_nodes_not_known_yet_and_types_not_known(forecaster: Forecaster, tmp_path: Path) -> None:
    bare = Lake.open(tmp_path / "bare", create=True)
    with bare.transaction("toy") as tx:
        tx.append("jobs", table("jobs", job_rows(20)))
    with pytest.raises(NoDataError):
        suggest(Forecaster(bare), Question(task(), 8), NOW, Viewer(), PLAIN)
    lake = make_lake(tmp_path / "lake", job_rows(200))
    later = NOW + timedelta(minutes=5)
    node = {"cluster": "toy", "observed_at": later, "node": "z1", "partitions": "gpu", "state": "IDLE", "cpus": 8, "gpus": 2}
    with lake.transaction("toy") as tx:
        tx.append("nodes", table("nodes", [{**node, "gpu_type": "zeta", "gres": "gpu:zeta:2", "detail": 1}]))
    fresh = Forecaster(lake)
    answer = suggest(fresh, Question(task(), 8), later, Viewer(), PLAIN)
    assert answer.options == ()
    assert "[gpus.zeta]" in answer.unfit[0].hint
    told = suggest(fresh, Question(task(), 8), later, Viewer(), Hardware({"zeta": {"memory_gib": 96}}, {}))
    assert {o.gpu_type for o in told.options} == {"zeta"}


def test_mixed_nodes_and_features(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake", job_rows(50))
    later = NOW + timedelta(minutes=5)
    base = {"cluster": "toy", "observed_at": later, "partitions": "gpu,cpu", "state": "IDLE", "cpus": 64, "mem_bytes": 2**38, "detail": 1}
    rows = [
        {**base, "node": "m1", "gpus": 6, "gpu_type": "mixed", "gres": "gpu:a100:4,gpu:1g.10gb:2", "features": "nvlink"},
        {**base, "node": "m2", "gpus": 2, "gpu_type": "a100", "gres": "gpu:a100:2", "features": "nvlink"},
    ]
    with lake.transaction("toy") as tx:
        tx.append("nodes", table("nodes", rows))
    groups = {(g.gpu_type, g.partition): g for g in node_groups(policy_at(lake, "toy", later))}
    assert set(groups) == {(t, p) for t in ("a100", "1g.10gb") for p in ("gpu", "cpu")}
    assert (groups["a100", "gpu"].gpus, groups["a100", "gpu"].nodes, groups["a100", "gpu"].nvlink) == (4, 1, True)
    answer = suggest(Forecaster(lake), Question(task("125m", "full", seq=512), 4, 1.0), later, Viewer(), PLAIN)
    assert {o.layout.gpus for o in answer.options if o.gpu_type == "1g.10gb"} == {1}
    assert all(o.run is None for o in answer.options if o.gpu_type == "1g.10gb")


@pytest.mark.parametrize(
    ("weights", "flags", "hourly"),
    [
        ({"cpu": 1.0, "mem": 0.25 / 2**30, "gres/gpu": 10.0, "gres/gpu:a100": 20.0}, "", 32 + 0.25 * 128 + 40 + 80),
        ({"cpu": 1.0, "gres/gpu:a100": 20.0}, "MAX_TRES", 80),
        ({}, "", None),
    ],
)
def test_billing(forecaster: Forecaster, weights: dict[str, float], flags: str, hourly: float | None) -> None:
    policy = policy_at(forecaster.lake, "toy", NOW)
    rule, qos = replace(policy.partitions["gpu"], billing_weights=weights), replace(policy.qos["normal"], usage_factor=0.5)
    policy = replace(policy, partitions={"gpu": rule}, qos={"normal": qos}, settings={"priorityflags": flags})
    request = Request(partitions=("gpu",), gpus=4, gpu_type="a100", cpus=32, mem_bytes=128 * 2**30, qos="normal")
    found = cost(policy, request, "gpu", Run(3600, 7200, 9000), PLAIN)
    assert found.billing_hours == (None if hourly is None else pytest.approx(2 * hourly))
    assert found.charged == (None if hourly is None else pytest.approx(hourly))
    assert cost(policy, request, "gpu", None, BIG).price is None


def test_who_may_be_preempted(forecaster: Forecaster) -> None:
    policy = policy_at(forecaster.lake, "toy", NOW)
    request = Request(partitions=("gpu",), gpus=1, qos="normal")
    assert not preemptible(policy, request, "gpu")
    high = replace(policy.qos["high"], preempt=frozenset({"normal"}))
    by_qos = replace(policy, qos={**policy.qos, "high": high}, settings={"preempttype": "preempt/qos"})
    assert preemptible(by_qos, request, "gpu")
    assert not preemptible(by_qos, replace(request, qos="high"), "gpu")
    low, top = (
        replace(policy.partitions["gpu"], name=n, priority_tier=t, preempt_mode="REQUEUE", nodes=("g1",))
        for n, t in (("gpu", 1), ("top", 9))
    )
    by_tier = replace(policy, partitions={"gpu": low, "top": top}, settings={"preempttype": "preempt/partition_prio"})
    assert preemptible(by_tier, request, "gpu")
    assert not preemptible(by_tier, request, "top")


def test_every_option_passes_the_rules(forecaster: Forecaster) -> None:
    policy, usage = policy_at(forecaster.lake, "toy", NOW), usage_at(forecaster.lake, "toy", NOW)
    answers = [ask(forecaster, task=task(m, mode), batch=b) for m in ("125m", "7b") for mode in ("full", "lora", "inference") for b in (8,)]
    assert sum(len(a.options) for a in answers) > 20
    for option in (o for a in answers for o in a.options):
        assert [v for v in verdicts(policy, option.request, usage) if v.kind != "waits"] == []


def test_what_the_rules_refuse_is_not_offered(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake", job_rows(200))
    later = NOW + timedelta(minutes=5)
    row = {"cluster": "toy", "observed_at": later, "partition": "gpu", "is_default": True, "max_time_s": 172800, "state": "UP"}
    with lake.transaction("toy") as tx:
        tx.append("partitions", table("partitions", [{**row, "allow_accounts": "bio"}]))
    fresh = Forecaster(lake)
    answer = suggest(fresh, Question(task(), 8, account="vision"), later, Viewer("alice"), PLAIN)
    assert answer.options == ()
    assert all(u.why and u.partition == "gpu" for u in answer.unfit)
    assert suggest(fresh, Question(task(), 8, account="bio"), later, Viewer("carol"), PLAIN).options


def test_json_and_text_say_the_same(forecaster: Forecaster) -> None:
    answer = ask(forecaster, hardware=BIG)
    raw = json.loads(json.dumps(answer.as_json()))
    assert len(raw["options"]) == len(answer.options)
    for option in raw["options"]:
        parts = dict(option["memory_per_gpu_bytes"])
        assert parts.pop("total") == sum(parts.values())
    text = "\n".join(suggest_lines(answer, "UTC", show_all=True))
    for option in answer.options:
        assert "sbatch " + " ".join(option.flags) in text
    rows = [dict(zip(parsable(answer).splitlines()[0].split("|"), r.split("|"), strict=True)) for r in parsable(answer).splitlines()[1:]]
    assert [r["gpus"] for r in rows] == [str(o["gpus"]) for o in raw["options"]]
    assert [r["recommended"] for r in rows].count("1") == 1


def test_hostile_names_reach_no_terminal(forecaster: Forecaster) -> None:
    answer = ask(forecaster)
    option = replace(answer.options[0], gpu_type="a\x1b[31m", partition="p\x1b]0;x\x07", flags=("-p", "'\x1b'"))
    lines = suggest_lines(replace(answer, options=(option,), recommended=0), "UTC")
    assert not any("\x1b" in line or "\x07" in line for line in lines)
    assert "\x1b" not in parsable(replace(answer, options=(option,)))


@settings(max_examples=8, deadline=None)
@given(
    st.sampled_from(["125m", "1b", "7b", "8x7b"]),
    st.sampled_from(["full", "lora", "inference"]),
    st.sampled_from([1, 3, 8, 64]),
    st.sampled_from([1, 512, 8192]),
    st.sampled_from([None, 0.01, 30.0, 5000.0]),
)
def test_any_task_is_answered(forecaster: Forecaster, model: str, mode: str, batch: int, seq: int, hours: float | None) -> None:
    answer = ask(forecaster, task=task(model, mode, seq=seq), batch=batch, hours=hours, on=None)
    assert answer.options or answer.unfit
    for option in answer.options:
        assert option.layout.headroom_bytes >= 0
        assert option.request.mem_bytes is None or option.request.mem_bytes > 0
    json.dumps(answer.as_json())
    assert suggest_lines(answer, "UTC")
