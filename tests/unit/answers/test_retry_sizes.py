"""Sizes and places of a copy, for any request: never less than before, never more than there is, text that sbatch reads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.answers.retry_lake import GIB, job, make
from tests.unit.synthetic import NOW

from queuecast.answers.retries.placing import _hosts, _ranges, away_from_nodes
from queuecast.answers.retries.plan import Case, Plan, request_of
from queuecast.answers.retries.sizes import MIB, WORTH_IT, _flag, _minutes, _rounded, _with_type, more_memory, more_time
from queuecast.policy.shapes import fitting_nodes
from queuecast.policy.tables import Policy, policy_at
from queuecast.slurmtext.durations import parse_typed_limit
from queuecast.slurmtext.gres import gpus_of_gres
from queuecast.slurmtext.jobids import array_indices
from queuecast.slurmtext.sizes import parse_req_mem


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    return policy_at(make(tmp_path_factory.mktemp("sizes") / "lake", [job(7)]), "toy", NOW)


def case_of(policy: Policy, options: dict[str, str], **row: Any) -> Case:
    told = {**dict.fromkeys(("gpu_type_req", "constraints", "array_throttle", "reason")), **job(7, **row)}
    return Case("toy", NOW, told, options, request_of(told, options), policy)


@given(st.floats(1, 1e16))
def test_sizes_are_rounded_up_and_read_by_sbatch(value: float) -> None:
    made = _rounded(value)
    assert made >= value
    assert made <= value * 1.25 + MIB
    assert parse_req_mem(_flag(made)).bytes == made


@given(st.floats(1, 1e8))
def test_limits_are_whole_minutes(seconds: float) -> None:
    assert seconds <= _minutes(seconds) <= seconds + 900
    assert _minutes(seconds) % 60 == 0


@settings(deadline=None)
@given(st.integers(16 << 20, 400 * GIB), st.integers(1, 4), st.sampled_from(["mem", "mem-per-cpu"]), st.sampled_from(["cpu", "big", "gpu"]))
def test_memory_grows_and_fits(policy: Policy, whole: int, nodes: int, form: str, partition: str) -> None:
    case = case_of(policy, {form: "1"}, mem_req_bytes=whole, mem_alloc_bytes=whole, nodes_req=nodes, partition=partition)
    plan = Plan()
    more_memory(case, plan)
    made = {c.option: c.after for c in plan.changes}
    if plan.blocked is not None:
        assert not made
        assert not any(len([n for n in policy.nodes if p in n.partitions and (n.mem_bytes or 0) * nodes >= whole * 1.6]) >= nodes
                       for p in ("cpu", "big", "gpu"))  # fmt: skip
        return
    each = parse_req_mem(made[form] or "").bytes
    assert each is not None
    units = nodes if form == "mem" else 4
    assert each * units >= whole * WORTH_IT * 0.999
    asked = replace(case.request, mem_bytes=each * units, partitions=(made.get("partition") or partition,))
    assert len(fitting_nodes(policy, asked, asked.partitions[0])) >= nodes
    assert case.allowed(asked)


@settings(deadline=None)
@given(st.integers(1, 4000), st.sampled_from(["cpu", "big"]), st.sampled_from(["normal", "short"]))
def test_a_limit_grows_and_is_allowed(policy: Policy, minutes: int, partition: str, qos: str) -> None:
    case = case_of(policy, {"time": str(minutes)}, limit_s=minutes * 60, partition=partition, qos=qos)
    plan = Plan()
    more_time(case, plan)
    made = {c.option: c.after for c in plan.changes}
    if plan.blocked is not None:
        assert minutes * 60 * WORTH_IT > 172800
        assert not made
        return
    seconds = parse_typed_limit(made["time"] or "").seconds
    assert seconds is not None
    assert minutes * 60 * WORTH_IT <= seconds <= minutes * 120 + 900
    assert case.allowed(
        replace(case.request, limit_s=seconds, qos=made.get("qos") or qos, partitions=(made.get("partition") or partition,))
    )


@given(st.sets(st.integers(0, 500), min_size=1))
def test_tasks_are_folded_without_loss(numbers: set[int]) -> None:
    assert list(array_indices(_ranges(sorted(numbers)))) == sorted(numbers)


@settings(deadline=None)
@given(st.lists(st.integers(1, 30), max_size=25), st.lists(st.integers(1, 30), min_size=1, max_size=3, unique=True))
def test_the_list_of_excluded_nodes_is_bounded(policy: Policy, earlier: list[int], failed: list[int]) -> None:
    bare = replace(policy, nodes=())
    options = {"exclude": ",".join(f"m{n}" for n in earlier)} if earlier else {}
    case = replace(case_of(bare, options), nodes_at_fault=tuple(f"m{n}" for n in failed))
    plan = Plan()
    away_from_nodes(case, plan)
    after = next((c.after for c in plan.changes if c.option == "exclude"), options.get("exclude"))
    assert set(case.nodes_at_fault) <= set(_hosts(after))
    assert len(set(_hosts(after))) <= max(16, len(set(earlier)))
    assert set(_hosts(after)) <= {f"m{n}" for n in (*earlier, *failed)}


@pytest.mark.parametrize(
    ("text", "option", "expected"),
    [
        ("gpu:2", "gres", "gpu:h100:2"), ("gpu:v100:2", "gres", "gpu:h100:2"), ("gpu", "gres", "gpu:h100:1"),
        ("gpu:v100", "gres", "gpu:h100:1"),
        ("shard:4,gpu:v100:1", "gres", "shard:4,gpu:h100:1"), ("2", "gpus", "h100:2"), ("v100:2", "gpus-per-node", "h100:2"),
    ],
)  # fmt: skip
def test_another_type_of_gpu(text: str, option: str, expected: str) -> None:
    made = _with_type(text, option, "h100")
    assert made == expected
    assert gpus_of_gres(made if option == "gres" else f"gpu:{made}").type == "h100"
