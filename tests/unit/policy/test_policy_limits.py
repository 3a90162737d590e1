"""Precedence and counting of limits, on invented policies."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.synthetic import NOW, job_rows, make_lake, table

from queuecast.policy.access import strictness
from queuecast.policy.codes import COUNT_CODES, TRES_CODES
from queuecast.policy.nodes import NodeShape
from queuecast.policy.parents import parents_of
from queuecast.policy.request import Request
from queuecast.policy.reservations import Reservation
from queuecast.policy.shapes import fitting_nodes
from queuecast.policy.tables import Association, Limits, PartitionRule, Policy, QosRule, names, policy_at, tres_amounts
from queuecast.policy.usage import Scope, Usage, UsedJob, usage_at
from queuecast.policy.verdicts import verdicts
from queuecast.slurmtext.reasoncodes import CODES

AT = datetime(2026, 6, 1, tzinfo=UTC)


def limits(**given: Any) -> Limits:
    return Limits.of(given)


def qos(name: str, flags: str = "", **given: Any) -> QosRule:
    return QosRule(name, 0, frozenset(), None, names(flags) or frozenset(), 1.0, 0, limits(**given))


def node(name: str, gpus: int = 4, cpus: int = 32, kind: str = "a100", available: bool = True) -> NodeShape:
    return NodeShape(
        name, cpus, 256 << 30, {kind: gpus} if gpus else {}, frozenset({kind}), frozenset({"gpu"}), "IDLE", frozenset(), available,
        0, 0, None, 1, None,
    )  # fmt: skip


def partition(**given: Any) -> PartitionRule:
    values: dict[str, Any] = dict.fromkeys(PartitionRule.__dataclass_fields__)
    values |= {"name": "gpu", "state": "UP", "nodes": ("n1", "n2"), "total_nodes": 2, "is_default": True, "billing_weights": {}}
    return PartitionRule(**(values | given))


def policy(*rules: QosRule, enforce: str = "associations,limits,qos", associations: tuple[Association, ...] = (), **given: Any) -> Policy:
    values: dict[str, Any] = {
        "cluster": "c",
        "at": AT,
        "partitions": {"gpu": partition()},
        "qos": {q.name: q for q in rules},
        "associations": associations,
        "nodes": (node("n1"), node("n2")),
        "reservations": (),
        "settings": {"accountingstorageenforce": enforce},
    }
    return Policy(**(values | given))


def job(number: int, user: str, gpus: int, *, qos: str = "normal", account: str = "lab", left: float = 3600) -> UsedJob:
    amounts = {"cpu": 1, "node": 1, "gres/gpu": gpus}
    return UsedJob(number, user, account, frozenset({qos}), True, 1, amounts, frozenset({"n1"}), left)


ASK = Request(partitions=("gpu",), gpus=4, cpus=4, limit_s=3600, qos="normal", account="lab", user="ann")


def codes(found: Policy, request: Request = ASK, usage: Usage | None = None) -> list[tuple[str, str]]:
    return [(v.code, v.kind) for v in verdicts(found, request, usage)]


def test_nothing_set_nothing_said() -> None:
    assert codes(policy(qos("normal"))) == []
    assert codes(policy(nodes=(), partitions={})) == []


def test_every_code_is_slurms() -> None:
    assert set(TRES_CODES.values()) | set(COUNT_CODES.values()) <= set(CODES)


def test_only_what_is_enforced_binds() -> None:
    rule = qos("normal", max_tres_per_job="gres/gpu=2")
    assert codes(policy(rule)) == [("QOSMaxGRESPerJob", "never")]
    assert codes(policy(rule, enforce="associations")) == []
    assert codes(policy(rule, enforce="safe")) == [("QOSMaxGRESPerJob", "never")]
    assert codes(policy(rule, settings={})) == [("QOSMaxGRESPerJob", "never")]  # not known: limits that are set are taken to hold


def test_deny_on_limit_refuses() -> None:
    assert codes(policy(qos("normal", "DenyOnLimit", max_tres_per_job="gres/gpu=2"))) == [("QOSMaxGRESPerJob", "refused")]


def test_the_partition_qos_comes_first_unless_the_job_qos_is_over_it() -> None:
    part = {"gpu": partition(qos="part")}
    loose, tight = qos("part", max_tres_per_job="gres/gpu=8"), qos("normal", max_tres_per_job="gres/gpu=2")
    assert codes(policy(loose, tight, partitions=part)) == []
    over = replace(tight, flags=frozenset({"overpartqos"}))
    assert codes(policy(loose, over, partitions=part)) == [("QOSMaxGRESPerJob", "never")]


def test_a_qos_settles_a_limit_for_the_associations() -> None:
    own = Association("lab", "ann", None, None, None, None, limits(max_wall_s=60, max_tres_per_job="gres/gpu=1,cpu=1"))
    assert codes(policy(qos("normal", max_wall_s=7200, max_tres_per_job="gres/gpu=4"), associations=(own,))) == [
        ("AssocMaxCpuPerJobLimit", "never")
    ]
    assert codes(policy(qos("normal"), associations=(own,))) == [
        ("AssocMaxWallDurationPerJobLimit", "never"),
        ("AssocMaxCpuPerJobLimit", "never"),
        ("AssocMaxGRESPerJob", "never"),
    ]


def test_group_limits_of_every_parent_count_the_whole_tree() -> None:
    tree = (
        Association("root", None, None, None, None, None, limits()),
        Association("uni", None, None, "root", None, None, limits(grp_tres="gres/gpu=6")),
        Association("lab", None, None, "uni", None, None, limits(max_tres_per_job="gres/gpu=1")),
        Association("other", None, None, "uni", None, None, limits()),
        Association("lab", "ann", None, None, None, None, limits()),
    )
    found = policy(qos("normal"), associations=tree)
    assert codes(found, usage=Usage(AT, (job(1, "bob", 2, account="other"),))) == []
    busy = Usage(AT, (job(1, "bob", 3, account="other"),))
    assert codes(found, usage=busy) == [("AssocGrpGRES", "waits")]
    assert codes(found) == [], "what is in use is not known"
    assert codes(found, replace(ASK, gpus=8, nodes=2)) == [("AssocGrpGRES", "never")]
    verdict = verdicts(found, ASK, busy)[0]
    assert (verdict.scope, verdict.limit, verdict.asked, verdict.used) == ("account uni", 6, 4, 3)


def test_counts_per_user_and_per_qos() -> None:
    used = Usage(AT, (job(1, "ann", 1), job(2, "bob", 1)))
    assert codes(policy(qos("normal", max_jobs_per_user=1)), usage=used) == [("QOSMaxJobsPerUserLimit", "waits")]
    assert codes(policy(qos("normal", max_jobs_per_user=2)), usage=used) == []
    assert codes(policy(qos("normal", grp_jobs=2)), usage=used) == [("QOSGrpJobsLimit", "waits")]
    assert codes(policy(qos("normal", max_tres_per_user="gres/gpu=4")), usage=used) == [("QOSMaxGRESPerUser", "waits")]
    assert codes(policy(qos("normal", max_tres_per_account="gres/gpu=5")), usage=used) == [("MaxGRESPerAccount", "waits")]
    assert codes(policy(qos("normal", grp_jobs=0))) == [("QOSGrpJobsLimit", "never")]


def test_submissions_are_refused_and_tasks_count() -> None:
    rule = policy(qos("normal", max_submit_per_user=10))
    assert codes(rule, replace(ASK, array_tasks=11)) == [("QOSMaxSubmitJobPerUserLimit", "refused")]
    assert codes(rule, replace(ASK, array_tasks=10), Usage(AT, (job(1, "ann", 1),))) == [("QOSMaxSubmitJobPerUserLimit", "refused")]
    assert codes(rule, replace(ASK, array_tasks=10), Usage(AT, (job(1, "bob", 1),))) == []


def test_a_typed_limit_does_not_bind_an_untyped_request() -> None:
    rule = policy(qos("normal", max_tres_per_job="gres/gpu:a100=2"))
    assert codes(rule) == []
    assert codes(rule, replace(ASK, gpu_type="a100")) == [("QOSMaxGRESPerJob", "never")]


def test_minutes() -> None:
    rule = qos("normal", grp_tres_mins="gres/gpu=100")
    assert codes(policy(rule)) == [], "without safe the job may start until the budget is used up"
    assert codes(policy(rule, enforce="safe")) == [("QOSGrpGRESMinutes", "never")]  # 4 GPUs x 60 min
    assert codes(policy(qos("normal", max_tres_mins_per_job="gres/gpu=100"))) == [("QOSMaxGRESMinutesPerJob", "never")]
    running = policy(qos("normal", grp_tres_run_mins="gres/gpu=300"))
    assert codes(running, usage=Usage(AT, (job(1, "bob", 1, left=3600),))) == []  # 240 + 60
    assert codes(running, usage=Usage(AT, (job(1, "bob", 1, left=3660),))) == [("QOSGrpGRESRunMinutes", "waits")]


def test_a_limit_that_slurm_filled_in_is_cut_rather_than_refused() -> None:
    rule = policy(qos("normal", max_wall_s=60))
    assert codes(rule) == [("QOSMaxWallDurationPerJobLimit", "never")]
    assert codes(rule, replace(ASK, limit_defaulted=True)) == []


def test_enforce_part_limits() -> None:
    part = {"gpu": partition(max_time_s=60)}
    assert codes(policy(partitions=part)) == [("PartitionTimeLimit", "never")]
    strict = policy(partitions=part, settings={"enforcepartlimits": "ALL"})
    assert strictness(strict) == "refused"
    assert codes(strict) == [("PartitionTimeLimit", "refused")]
    flagged = policy(qos("normal", "PartitionTimeLimit"), partitions=part)
    assert codes(flagged) == []


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"gpus": 5}, "BadConstraints"),
        ({"gpu_type": "h100"}, "BadConstraints"),
        ({"cpus": 33}, "BadConstraints"),
        ({"mem_bytes": 257 << 30}, "BadConstraints"),
        ({"constraint": "h100"}, "BadConstraints"),
        ({"nodelist": "n9"}, "BadConstraints"),
        ({"nodes": 3}, "PartitionNodeLimit"),
        ({"partitions": ("none",)}, "InvalidPartition"),
        ({"qos": "none"}, "InvalidQOS"),
    ],
)
def test_what_no_node_holds(changes: dict[str, Any], code: str) -> None:
    found = codes(policy(qos("normal")), replace(ASK, **changes))
    assert [c for c, _ in found] == [code]


def test_one_of_several_partitions_is_enough() -> None:
    parts = {"gpu": partition(max_time_s=60), "big": partition(name="big", is_default=False)}
    assert codes(policy(partitions=parts), replace(ASK, partitions=("gpu", "big"))) == []
    assert codes(policy(partitions=parts)) == [("PartitionTimeLimit", "never")]


def test_down_and_reserved_nodes_are_waited_for() -> None:
    down = policy(nodes=(node("n1"), node("n2", available=False)))
    assert codes(down) == []
    assert codes(down, replace(ASK, nodes=2)) == [("Resources", "waits")]
    kept = Reservation(
        "maint", AT + timedelta(minutes=30), AT + timedelta(hours=9), frozenset({"MAINT"}), frozenset({"n1", "n2"}), None,
        frozenset(), frozenset(),
    )  # fmt: skip
    found = verdicts(policy(reservations=(kept,)), ASK)
    assert [(v.code, v.kind) for v in found] == [("ReqNodeNotAvail", "waits")]
    assert "00:30:00" in found[0].fix
    assert codes(policy(reservations=(kept,)), replace(ASK, limit_s=1800)) == []
    assert codes(policy(reservations=(kept,)), replace(ASK, reservation="MAINT")) == []


def test_fitting_nodes_take_one_nodes_share() -> None:
    found = policy(nodes=(node("n1", gpus=4), node("n2", gpus=2)))
    assert [n.name for n in fitting_nodes(found, replace(ASK, gpus=6, nodes=2), "gpu")] == ["n1"]
    assert [n.name for n in fitting_nodes(found, replace(ASK, gpus=4, nodes=2), "gpu")] == ["n1", "n2"]


def test_the_toy_cluster(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake", job_rows())
    found, usage = policy_at(lake, "toy", NOW), usage_at(lake, "toy", NOW)
    assert found.missing == ("reservations", "settings")
    assert found.enforced is None
    assert usage.observed_at == NOW
    everyone = usage.running(Scope())
    assert everyone.jobs == sum(usage.running(Scope(user=u)).jobs for u in ("alice", "bob", "carol"))
    assert everyone.tres["cpu"] == 8 * everyone.jobs
    assert policy_at(lake, "elsewhere", NOW).missing == ("partitions", "qos", "associations", "nodes", "reservations", "settings")


def test_gpus_without_a_type_count_as_what_their_nodes_hold(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake", [])
    seen = {"cluster": "toy", "observed_at": NOW, "state": "RUNNING", "partition": "gpu", "user": "ann", "account": "bio"}
    rows = [{**seen, "job_id": 1, "job_id_text": "1", "gpus": 2, "node_list": "g1", "nodes": 1, "cpus": 3}]
    rows += [{**seen, "job_id": 2, "job_id_text": "2", "gpus": 2, "node_list": "g[1-2]", "nodes": 2, "cpus": 3}]
    rows += [{**seen, "job_id": 3, "job_id_text": "3", "gpus": 1, "gpu_type": "v100", "node_list": "g2", "nodes": 1, "cpus": 3}]
    with lake.transaction("more") as tx:
        tx.append("queue", table("queue", rows))
    used = usage_at(lake, "toy", NOW).running(Scope(user="ANN"))
    assert used.tres == {"cpu": 9, "node": 2, "gres/gpu": 5, "gres/gpu:a100": 2, "gres/gpu:v100": 1}


def test_nothing_later_than_the_moment_counts(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake", job_rows())
    assert usage_at(lake, "toy", NOW - timedelta(seconds=1)).observed_at is None
    assert usage_at(lake, "toy", NOW - timedelta(seconds=1)).jobs == ()


@given(st.text(alphabet="cpumemgres/=:,0123456789MGKa-", max_size=60))
def test_any_text_is_a_limit_or_none(text: str) -> None:
    assert all(isinstance(v, int) and v >= 0 for v in tres_amounts(text).values())


@given(
    st.integers(0, 64), st.integers(1, 8), st.integers(1, 400), st.one_of(st.none(), st.integers(0, 10**7)), st.integers(0, 20),
    st.dictionaries(st.sampled_from(["cpu", "gres/gpu", "node"]), st.integers(0, 100), max_size=3),
)  # fmt: skip
def test_a_smaller_request_is_never_worse(gpus: int, nodes: int, cpus: int, limit: int | None, used: int, most: dict[str, int]) -> None:
    """Halving everything removes verdicts of maxima and adds none; every verdict that counts is truly above its limit."""
    text = ",".join(f"{k}={v}" for k, v in most.items())
    found = policy(qos("normal", grp_tres=text, max_tres_per_job=text, max_wall_s=86400))
    usage = Usage(AT, tuple(job(i, "bob", 1) for i in range(used)))
    ask = replace(ASK, gpus=gpus, nodes=nodes, cpus=cpus, limit_s=limit)
    half = replace(ask, gpus=gpus // 2, nodes=max(1, nodes // 2), cpus=max(1, cpus // 2), limit_s=None if limit is None else limit // 2)
    before, after = verdicts(found, ask, usage), verdicts(found, half, usage)
    counted = {v.code for v in before if v.code.startswith("QOS")}
    assert {v.code for v in after if v.code.startswith("QOS")} <= counted
    for v in before:
        if v.code.startswith("QOS") and v.limit is not None and v.asked is not None:
            assert v.asked + (v.used or 0) > v.limit
            assert (v.kind == "never") == (v.asked > v.limit)


TREE = (("root", None, 0), ("root", "root", 1), ("lab", None, 1), ("vision", None, 2), ("vision", "alice", 3), ("course", None, 1))


def test_the_tree_comes_from_sshare_where_associations_do_not_tell_it(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake", job_rows(50))
    accounts = [("root", None), ("lab", None), ("vision", None), ("vision", "alice"), ("course", None)]
    with lake.transaction("more") as tx:
        rows: list[dict[str, Any]] = [
            {"cluster": "toy", "observed_at": NOW + timedelta(hours=1), "account": a, "user": u} for a, u in accounts
        ]
        tx.append("associations", table("associations", rows))
        # read later than asked about: the tree is configuration, so the first reading stands
        rows = [{"cluster": "toy", "observed_at": NOW + timedelta(hours=1), "account": a, "user": u, "depth": d} for a, u, d in TREE]
        tx.append("shares", table("shares", rows))
    found = policy_at(lake, "toy", NOW + timedelta(hours=2))
    assert [(a.account, a.user) for a in found.chain("alice", "vision")] == [
        ("vision", "alice"), ("vision", None), ("lab", None), ("root", None)
    ]  # fmt: skip
    assert found.accounts_under("lab") == {"lab", "vision"}


def test_a_tree_without_its_order_is_no_tree(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake", job_rows(50))
    with lake.transaction("more") as tx:
        rows = [{"cluster": "toy", "observed_at": NOW, "account": a, "user": u, "depth": d} for a, u, d in sorted(TREE, key=str)]
        tx.append("shares", table("shares", rows))
    assert parents_of(lake, "toy", NOW) == {}
