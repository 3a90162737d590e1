"""What would start sooner: allowed requests only, gains in the same futures, and nothing told that is not known."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.policy.test_policy_limits import limits, node, partition, policy, qos
from tests.unit.synthetic import NOW, job_rows, table

from queuecast.answers import alternatives_blend as blending
from queuecast.answers.alternatives import alternatives
from queuecast.answers.alternatives_answer import Alternatives, Option, Spread, mark_pareto
from queuecast.answers.alternatives_flags import changed
from queuecast.answers.alternatives_offers import Offer, Told, offers
from queuecast.answers.forecast import Forecaster
from queuecast.answers.lookup import find_job
from queuecast.answers.suggest_cluster import Cost
from queuecast.answers.viewer import Viewer
from queuecast.config import Hardware
from queuecast.errors import NotPermitted, UsageError
from queuecast.policy.request import Request, from_options
from queuecast.policy.tables import Association
from queuecast.policy.usage import Usage
from queuecast.policy.verdicts import verdicts
from queuecast.render.alternatives import alternatives_lines, command, parsable, sooner_lines
from queuecast.slurmtext.script import parse_options
from queuecast.store.lake import Lake

PLAIN = Hardware({}, {})
AT = NOW + timedelta(seconds=1)
ASK = {"partition": "gpu", "gres": "gpu:a100:4", "time": "8:00:00", "cpus-per-task": "8", "mem": "32G"}


def running(number: int, gpus: int, nodes: str, hours: float, **more: Any) -> dict[str, Any]:
    """A row of the queue: a job that has run for an hour."""
    return {
        "cluster": "toy", "observed_at": NOW, "job_id": number, "job_id_text": str(number), "array_tasks": 1, "array_tasks_exact": True,
        "name": "x", "user": "carol", "account": "bio", "partition": "gpu", "qos": "normal", "state": "RUNNING", "limit_kind": "limit",
        "submit": NOW - timedelta(hours=2), "eligible": NOW - timedelta(hours=2), "start": NOW - timedelta(hours=1),
        "limit_s": int(hours * 3600), "nodes": 1, "cpus": 8, "gpus": gpus, "gpu_type": "a100", "priority": 100, "node_list": nodes,
    } | more  # fmt: skip


def build(path: Path, *, snapshot: bool = True) -> Lake:
    """Three of four A100 are taken on each of two nodes; four V100 are free; alice's job 77 waits for four A100."""
    lake = Lake.open(path, create=True)
    seen = {"cluster": "toy", "observed_at": NOW}
    waiting = running(77, 4, "", 8, state="PENDING", reason="Resources", user="alice", account="vision", start=None, node_list=None)
    with lake.transaction("toy") as tx:
        tx.append("jobs", table("jobs", [r for r in job_rows(400) if r["end"] is not None and r["end"] < NOW]))
        if snapshot:
            tx.append("queue", table("queue", [running(1, 3, "g1", 30), running(2, 3, "g2", 40), waiting]))
        parts = [("gpu", True, 172800), ("short", False, 3600)]
        rows = [{**seen, "partition": p, "is_default": d, "max_time_s": m, "state": "UP"} for p, d, m in parts]
        tx.append("partitions", table("partitions", rows))
        tx.append("qos", table("qos", [{**seen, "qos": "normal"}, {**seen, "qos": "capped", "max_tres_per_job": "gres/gpu=2"}]))
        mine = [("vision", "alice"), ("bio", "carol")]
        rows = [{**seen, "account": a, "user": u, "default_qos": "normal", "qos": "normal,capped"} for a, u in mine]
        tx.append("associations", table("associations", [*rows, *({**seen, "account": a, "user": None} for a, _u in mine)]))
        rows = [
            {**seen, "node": n, "partitions": "gpu,short", "state": "MIXED", "cpus": 64, "mem_bytes": 256 << 30, "gpus": 4, "gpu_type": k,
             "gres": f"gpu:{k}:4", "detail": 1}
            for n, k in (("g1", "a100"), ("g2", "a100"), ("g3", "v100"))
        ]  # fmt: skip
        tx.append("nodes", table("nodes", rows))
        enforce = {"section": "config", "key": "AccountingStorageEnforce", "value": "associations,limits,qos"}
        tx.append("settings", table("settings", [{**seen, **enforce}]))
    return lake.refresh()


@pytest.fixture(scope="module")
def forecaster(tmp_path_factory: pytest.TempPathFactory) -> Forecaster:
    return Forecaster(build(tmp_path_factory.mktemp("toy") / "lake"))


@pytest.fixture(scope="module")
def answer(forecaster: Forecaster) -> Alternatives:
    return alternatives(forecaster, from_options(ASK, "alice"), AT, Viewer("alice"), futures=12, run_s=1200.0, hardware=PLAIN)


def by_label(answer: Alternatives, label: str) -> Option:
    return next(o for o in answer.options if o.label == label)


def test_what_fits_beside_the_others_starts_sooner(answer: Alternatives) -> None:
    one, other = by_label(answer, "1 GPU"), by_label(answer, "4 x v100")
    assert answer.agreement.twin is not None
    assert answer.agreement.twin.low_s > 600
    for option in (one, other):
        assert option.sooner is not None
        assert option.sooner.low_s > 600
        assert option.p_sooner == 1.0
        assert option.within[0][1] >= answer.as_asked.within[0][1]
    assert "--gres=gpu:v100:4" in other.flags
    assert any("GiB per GPU" in c for c in other.conditions)


def test_the_flags_ask_for_the_request_that_was_played(answer: Alternatives) -> None:
    for option in (o for o in answer.options if "later" not in o.kinds):
        pasted = from_options({**ASK, **parse_options(list(option.flags)).options}, "alice")
        for name in ("gpus", "gpu_type", "nodes", "cpus", "limit_s", "array_tasks", "partitions", "mem_bytes"):
            assert getattr(pasted, name) == getattr(option.request, name), (option.label, name)


def test_what_is_not_allowed_is_told_and_not_offered(answer: Alternatives) -> None:
    assert not any("QOS capped" in o.label for o in answer.options)
    assert any(r.startswith("QOS capped: ") for r in answer.refused)


def test_ranked_by_the_end_and_the_recommended_ends_no_later(answer: Alternatives) -> None:
    ends = [math.inf if o.finish is None else o.finish.median_s for o in answer.options]
    assert ends == sorted(ends)
    best = answer.recommended
    assert best is not None
    assert best.finish is not None
    assert answer.as_asked.finish is not None
    assert best.finish.median_s <= answer.as_asked.finish.median_s


def test_json_is_plain_and_the_text_has_the_command(answer: Alternatives) -> None:
    told = json.loads(json.dumps(answer.as_json(), allow_nan=False))
    assert told["as_asked"]["kinds"] == ["asked"]
    assert told["options"][told["recommended"]]["flags"]
    text = "\n".join(alternatives_lines(answer, "UTC", 110, show_all=True))
    best = answer.recommended
    assert best is not None
    assert command(answer, best) in " ".join(text.split())
    assert len(sooner_lines(answer, "UTC")) <= 6
    head, *rows = parsable(answer).splitlines()
    assert all(r.count("|") == head.count("|") for r in rows)


def test_the_same_request_gains_exactly_nothing(forecaster: Forecaster, monkeypatch: pytest.MonkeyPatch) -> None:
    def same(told: Told) -> tuple[list[Offer], list[str]]:
        return [Offer("same", ("qos",), told.request), Offer("later", ("later",), told.request, delay_s=3600.0)], []

    monkeypatch.setattr("queuecast.answers.alternatives.offers", same)
    found = alternatives(forecaster, from_options(ASK, "alice"), AT, Viewer("alice"), futures=6, hardware=PLAIN)
    assert found.same == ("same",)
    assert [o.label for o in found.options] == ["later"]


def test_memory_that_is_too_small_is_left_out(forecaster: Forecaster) -> None:
    asked = from_options(ASK, "alice")
    big = alternatives(forecaster, asked, AT, Viewer("alice"), futures=4, gpu_memory_gib=30, hardware=PLAIN)
    assert not any(o.request.gpu_type == "v100" for o in big.options)
    small = alternatives(forecaster, asked, AT, Viewer("alice"), futures=4, gpu_memory_gib=8, hardware=PLAIN)
    assert not any("GiB per GPU" in c for o in small.options for c in o.conditions)


def test_a_pending_job_is_changed_in_place_or_submitted_anew(forecaster: Forecaster) -> None:
    job = find_job(forecaster.lake, "toy", "77", AT)
    found = alternatives(forecaster, job.request, AT, Viewer("alice"), job=job, futures=4, hardware=PLAIN)
    assert found.job_id == "77"
    for option in found.options:
        assert option.keeps_place == bool({"limit", "partition", "qos"} >= set(option.kinds)), option.kinds
        if option.keeps_place:
            assert option.flags[0] == "JobId=77"
    with pytest.raises(NotPermitted):
        alternatives(forecaster, job.request, AT, Viewer("carol", sees_all=False), job=job, futures=4, hardware=PLAIN)
    started = find_job(forecaster.lake, "toy", "1", AT)
    with pytest.raises(UsageError):
        alternatives(forecaster, started.request, AT, Viewer("alice"), job=started, futures=4, hardware=PLAIN)


def test_without_a_snapshot_no_gain_is_told(tmp_path: Path) -> None:
    bare = Forecaster(build(tmp_path / "lake", snapshot=False))
    found = alternatives(bare, from_options(ASK, "alice"), AT, Viewer("alice"), futures=4, hardware=PLAIN)
    assert found.futures == 0
    assert found.source in ("model", "none")
    assert all(o.sooner is None for o in found.options)
    assert "queuecast collect" in found.basis[0]
    assert found.recommended is None
    json.dumps(found.as_json(), allow_nan=False)
    assert alternatives_lines(found, "UTC")


PARTS = {"gpu": partition(), "other": partition(name="other", is_default=False, nodes=("n3",), max_time_s=7200)}


@settings(max_examples=60, deadline=None)
@given(
    gpus=st.integers(0, 8),
    nodes=st.integers(1, 2),
    limit=st.integers(900, 200000),
    most=st.dictionaries(st.sampled_from(["gres/gpu", "cpu"]), st.integers(1, 8), max_size=2),
    shares=st.lists(st.floats(0.001, 1.0), min_size=0, max_size=60),
    kind=st.sampled_from([None, "a100"]),
)
def test_no_offer_breaks_a_rule(gpus: int, nodes: int, limit: int, most: dict[str, int], shares: list[float], kind: str | None) -> None:
    text = ",".join(f"{k}={v}" for k, v in most.items())
    own = Association("lab", "ann", None, None, frozenset({"normal", "tight"}), "normal", limits())
    rules = policy(
        qos("normal"), qos("tight", max_tres_per_job=text), associations=(own,), partitions=PARTS,
        nodes=(node("n1"), node("n2"), node("n3", kind="v100")),
    )  # fmt: skip
    request = Request(("gpu",), gpus, kind if gpus else None, nodes, 8, None, limit, qos="normal", account="lab", user="ann", tasks=nodes)
    told = Told(rules, Usage(None, ()), request, None, np.sort(np.array(shares)), PLAIN, None)
    found, _refused = offers(told)
    for offer in found:
        assert not [v for v in verdicts(rules, offer.request, None) if v.kind != "waits"], offer
        assert offer.request.gpus * offer.request.array_tasks <= max(gpus, 0)
        assert offer.factors[0] <= offer.factors[1] <= offer.factors[2]
        if offer.kinds == ("limit",):
            assert offer.request.limit_s is not None
            assert offer.request.limit_s < limit
            assert np.mean(np.array(shares) * limit > offer.request.limit_s) <= 0.05
        assert offer.delay_s or changed(request, offer, False, None), offer
    assert len({(o.request, o.delay_s) for o in found}) == len(found)


STARTS = st.lists(st.one_of(st.floats(0, 2e5), st.just(math.inf)), min_size=1, max_size=40)


@given(starts=STARTS, weight=st.floats(0, 1), model=st.floats(0, 1e5))
def test_the_same_starts_stay_the_same_when_moved(starts: list[float], weight: float, model: float) -> None:
    asked = np.array(starts)
    quantiles = np.linspace(0, model, len(starts))
    blended = blending.blend(asked, quantiles, weight, 172800.0)
    again = blending.moved(asked, blended, asked, 0.0, 172800.0)
    known = np.isfinite(asked) & (blended <= 172800.0)
    assert np.array_equal(again[known], blended[known])
    assert np.all(blended[np.argsort(asked, kind="stable")][:-1] <= blended[np.argsort(asked, kind="stable")][1:] + 1e-6)


@given(starts=STARTS)
def test_with_all_weight_the_replay_is_left_alone(starts: list[float]) -> None:
    assert np.array_equal(blending.blend(np.array(starts), np.zeros(len(starts)), 1.0, 1e5), np.array(starts))


def plain(wait: float, finish: float, hours: float) -> Option:
    return Option(
        "x", ("limit",), Request(), (), False, Spread(wait, wait, wait), (), None, None, None, Spread(finish, finish, finish), hours,
        Cost(None, None, None, ""),
    )  # fmt: skip


@given(st.lists(st.tuples(*[st.integers(0, 5)] * 3), min_size=1, max_size=12))
def test_the_front_is_what_nothing_beats(points: list[tuple[int, int, int]]) -> None:
    flags = mark_pareto(tuple(plain(*p) for p in points))
    for p, flag in zip(points, flags, strict=True):
        beaten = any(q != p and all(a <= b for a, b in zip(q, p, strict=True)) for q in points)
        assert flag != beaten


def test_skill_weighs_and_is_not_used_before_its_time(forecaster: Forecaster) -> None:
    lake = forecaster.lake
    blending.save_skill(lake, "toy", blending.Skill(1.0, 2.0, 100, AT.timestamp()))
    try:
        assert blending.twin_weight(blending.load_skill(lake, "toy", AT.timestamp())) == pytest.approx(0.2)
        assert blending.load_skill(lake, "toy", AT.timestamp() - 1) is None
        assert blending.twin_weight(replace(blending.Skill(1, 2, 100, 0), counted=3)) == 0.5
        (Path(lake.path) / blending.FILE).write_text('{"toy": {"model": "NaN", "twin": 1}}')
        assert blending.load_skill(lake, "toy", AT.timestamp()) is None
    finally:
        (Path(lake.path) / blending.FILE).unlink()


def test_the_share_of_a_stranger_is_not_known() -> None:
    """Nobody's fairshare is none: the answer says that the replay's waits are too long then."""
    from types import SimpleNamespace

    from queuecast.answers.alternatives import _stranger
    from queuecast.twin.shares import make_tree

    rows = [
        {"account": a, "user": u, "depth": d, "raw_shares": 1, "raw_usage": 0, "fairshare": 0.5, "norm_shares": 1.0, "effective_usage": 0.0}
        for a, u, d in (("root", None, 0), ("lab", None, 1), ("lab", "ann", 2))
    ]
    state: Any = SimpleNamespace(frame=SimpleNamespace(tree=make_tree(rows)))
    assert _stranger(state, Request(user="ann", account="lab")) == ()
    assert "-u, -A" in _stranger(state, Request(user="ann"))[0]
