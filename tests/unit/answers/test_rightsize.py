"""Proposals: what fits, only on evidence, never less where jobs were killed, in flags that ask for just that."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.answers.made_uses import AT, GIB, PLAIN, SINCE, FakeSizes, cluster, use, uses

from queuecast.answers.rightsizing.answer import Change, Proposal
from queuecast.answers.rightsizing.flags import round_memory, round_time
from queuecast.answers.rightsizing.gpus import upper
from queuecast.answers.rightsizing.kinds import command_of, kinds_of, normal_name
from queuecast.answers.rightsizing.rightsize import Judged, judged, merged, notes_of, proposals
from queuecast.answers.rightsizing.rows import rows_of
from queuecast.answers.viewer import Viewer
from queuecast.config import Hardware
from queuecast.errors import UsageError
from queuecast.policy.request import from_options
from queuecast.slurmtext.script import parse_options
from queuecast.usage.uses import Uses


def judge(
    found: Uses, *more: tuple[str, str, int], sizes: FakeSizes | None = None, hardware: Hardware = PLAIN, risk: float = 0.01
) -> Judged:
    return judged(found, sizes or FakeSizes(found, risk), cluster(*more), hardware, risk)


def one(found: Uses, *more: tuple[str, str, int], **given: Any) -> Proposal:
    items = judge(found, *more, **given).items
    assert len(items) == 1, items
    return items[0]


def change(p: Proposal, what: str) -> Change | None:
    return next((c for c in p.changes if c.what == what), None)


def test_memory_cpus_and_time_that_were_never_used() -> None:
    p = one(uses([use(n) for n in range(1, 9)]))
    assert p.flags == ("-c", "4", "--mem=8G", "-t", "02:00:00")
    assert (p.request.cpus, p.request.mem_bytes, p.request.limit_s) == (4, 8 * GIB, 7200)
    assert p.saved.core_hours == pytest.approx(8 * 2 * 12)
    assert p.saved.memory_gib_hours == pytest.approx(8 * 2 * 56)
    assert p.saved.limit_hours == pytest.approx(8 * 22)
    assert p.saved.gpu_hours == 0
    memory = change(p, "memory")
    assert memory is not None
    assert (memory.evidence.n, memory.evidence.without, memory.evidence.rung) == (8, 0, "user and name")


def test_never_less_where_jobs_were_killed_for_it() -> None:
    rows = [use(n) for n in range(1, 9)]
    rows += [use(9, state="OUT_OF_MEMORY", mem_at_least=True), use(10, hours=24.0, after=0, state="TIMEOUT")]
    p = one(uses(rows))
    assert change(p, "memory") is None
    assert change(p, "time") is None
    assert change(p, "cpus") is not None


def test_more_where_the_latest_jobs_were_killed() -> None:
    found = uses([use(n, state="OUT_OF_MEMORY") for n in range(1, 5)])
    sizes = FakeSizes(found, bounds={"memory": 90.0 * GIB, "cpus": None, "time": None}, needs_more=("memory",))
    p = one(found, sizes=sizes)
    assert p.more
    assert p.flags == ("--mem=90G",)
    assert p.saved.memory_gib_hours == 0


def test_more_time_ends_at_the_partitions_limit() -> None:
    found = uses([use(n, state="TIMEOUT") for n in range(1, 5)])
    sizes = FakeSizes(found, bounds={"time": 30 * 86400.0, "cpus": None, "memory": None}, needs_more=("time",))
    p = one(found, sizes=sizes)
    assert p.flags == ("-t", "7-00:00:00")
    assert any("checkpoint" in c for c in p.changes[0].conditions)


def test_needs_more_below_what_is_asked_is_no_saving() -> None:
    found = uses([use(n) for n in range(1, 5)])
    sizes = FakeSizes(found, bounds={"memory": 10.0 * GIB, "cpus": None, "time": None}, needs_more=("memory",))
    assert not judge(found, sizes=sizes).items


def test_fewer_gpus_where_one_was_busy() -> None:
    rows = [use(n, gpus_used=1.0, gpu_util_mean=0.2) for n in range(1, 9)]
    found = uses(rows)
    p = one(found, sizes=FakeSizes(found, bounds={"memory": None, "cpus": None, "time": None}))
    assert p.flags == ("--gres=gpu:a100:1",)
    assert p.saved.gpu_hours == pytest.approx(8 * 2 * 3)
    gpus = change(p, "gpus")
    assert gpus is not None
    assert gpus.evidence.risk == pytest.approx(1 / 9)  # eight jobs cannot promise 1 %


@pytest.mark.parametrize(
    "given",
    [
        {"gpus_seen": None, "gpus_used": None, "gpu_util_mean": None, "gpu_basis": None},
        {"gpus_seen": 2.0},
        {"state": "FAILED"},
        {"hours": 0.05},
        {"final": False},
    ],
)
def test_what_was_not_measured_proposes_nothing(given: dict[str, Any]) -> None:
    found = uses([use(n, **{"gpus_used": 1.0, "gpu_util_mean": 0.2, **given}) for n in range(1, 9)])
    result = judge(found, sizes=FakeSizes(found, bounds={"memory": None, "cpus": None, "time": None}))
    assert not result.items


def test_unmeasured_gpu_jobs_are_counted() -> None:
    blind = {"gpus_seen": None, "gpus_used": None, "gpu_util_mean": None}
    result = judge(uses([use(1), use(2, **blind), use(3, gpus_seen=2.0), use(4, gpus_alloc=0.0, gpu_type=None, **blind)]))
    assert (result.gpu_jobs, result.unmeasured_gpu_jobs) == (3, 2)
    assert "2 of 3" in " ".join(notes_of(result))


def test_a_gpu_that_was_never_used_goes() -> None:
    found = uses([use(n, gpus_used=0.0, gpu_util_mean=0.0, gpus_alloc=1.0, gpus_seen=1.0) for n in range(1, 9)])
    p = one(found, sizes=FakeSizes(found, bounds={"memory": None, "cpus": None, "time": None}))
    assert p.flags == ("-p", "cpu", "--gres=none")
    assert p.saved.gpu_hours == pytest.approx(16)


def test_a_large_card_with_little_used() -> None:
    idle = {
        "partition": "h100",
        "gpu_type": "h100",
        "gpu_util_mean": 0.3,
        "gpu_mem_peak_bytes": 9.0 * GIB,
        "gpu_mem_total_bytes": 80.0 * GIB,
    }
    found = uses([use(n, **idle) for n in range(1, 9)])
    sizes = FakeSizes(found, bounds={"memory": None, "cpus": None})
    p = one(found, sizes=sizes, hardware=Hardware({}, {"h100": 4.0, "t4": 0.5}, "EUR"))
    assert p.flags == ("-p", "small", "--gres=gpu:t4:4")  # the time limit stays: the run may take longer there
    assert p.saved.smaller_gpu_hours == pytest.approx(8 * 2 * 4)
    assert p.saved.price == pytest.approx(8 * 2 * 4 * 3.5)
    busy = uses([use(n, **(idle | {"gpu_util_mean": 0.9})) for n in range(1, 9)])
    assert not judge(busy, sizes=FakeSizes(busy, bounds={"memory": None, "cpus": None, "time": None})).items
    full = uses([use(n, **(idle | {"gpu_mem_peak_bytes": 79.0 * GIB})) for n in range(1, 9)])
    assert not judge(full, sizes=FakeSizes(full, bounds={"memory": None, "cpus": None, "time": None, "gpu_memory": 9.0 * GIB})).items


def test_a_slice_only_where_there_are_any_and_for_one_gpu() -> None:
    light = {"gpus_alloc": 1.0, "gpus_seen": 1.0, "gpus_used": 1.0, "gpu_util_mean": 0.03, "gpu_mem_peak_bytes": 2.0 * GIB}
    found = uses([use(n, partition="h100", gpu_type="h100", **light) for n in range(1, 9)])
    blind = {"memory": None, "cpus": None, "time": None}
    p = one(found, sizes=FakeSizes(found, bounds=blind))
    assert change(p, "mig") is None
    p = one(found, ("mig", "a100_1g.5gb", 7), sizes=FakeSizes(found, bounds=blind))
    assert change(p, "mig") is not None
    assert p.flags == ("-p", "mig", "--gres=gpu:a100_1g.5gb:1")
    two = uses(
        [
            use(n, partition="h100", gpu_type="h100", **(light | {"gpus_alloc": 2.0, "gpus_seen": 2.0, "gpus_used": 2.0}))
            for n in range(1, 9)
        ]
    )
    assert all(change(p, "mig") is None for p in judge(two, ("mig", "a100_1g.5gb", 7), sizes=FakeSizes(two, bounds=blind)).items)


def test_the_sites_default_memory_is_not_the_users() -> None:
    found = uses([use(n, mem_asked_by="default") for n in range(1, 9)])
    p = one(found, sizes=FakeSizes(found, bounds={"cpus": None, "time": None}))
    memory = change(p, "memory")
    assert memory is not None
    assert memory.site_default


def test_memory_stays_where_fewer_cpus_would_take_it_away() -> None:
    found = uses([use(n, mem_asked_by="default") for n in range(1, 9)])
    p = one(found, sizes=FakeSizes(found, bounds={"memory": None, "time": None}))
    assert p.flags == ("-c", "4", "--mem=64G")
    line = "sbatch --mem-per-cpu=4G -n 2 -c 8 train.sh"
    found = uses([use(n, submit_line=line) for n in range(1, 9)])
    p = one(found, sizes=FakeSizes(found, bounds={"memory": None, "time": None}))
    assert p.flags == ("-c", "2", "--mem-per-cpu=16384M")


def test_the_terms_of_the_submission_are_kept() -> None:
    blind = {"memory": None, "cpus": None, "time": None}
    for line, wanted in (("sbatch -G 4 x.sh", "--gpus=a100:1"), ("sbatch --gpus-per-node=4 x.sh", "--gpus-per-node=a100:1")):
        found = uses([use(n, gpus_used=1.0, gpu_util_mean=0.2, submit_line=line) for n in range(1, 9)])
        assert one(found, sizes=FakeSizes(found, bounds=blind)).flags == (wanted,)


def test_kinds_with_limits_alike_are_one_and_others_are_merged() -> None:
    rows = [use(n, limit_s=86400.0 + 600 * n) for n in range(1, 9)] + [use(n, limit_s=345600.0) for n in range(9, 17)]
    found = uses(rows)
    assert len(kinds_of(rows_of(found))) == 2
    p = one(found)
    assert p.jobs == 16
    assert p.saved.core_hours == pytest.approx(16 * 2 * 12)
    assert sorted(p.rows) == list(range(16))


def test_a_viewer_sees_own_proposals_only() -> None:
    found = uses([use(n) for n in range(1, 9)] + [use(n, user="bob") for n in range(9, 17)])
    given: dict[str, Any] = {"since": SINCE, "uses": found, "sizes": FakeSizes(found), "policy": cluster(), "hardware": PLAIN}
    whole = proposals(None, "toy", AT, Viewer("alice"), **given)  # type: ignore[arg-type]  # no lake is read
    own = proposals(None, "toy", AT, Viewer("alice", sees_all=False), **given)  # type: ignore[arg-type]
    assert {p.kind.user for p in whole.items} == {"alice", "bob"}
    assert {p.kind.user for p in own.items} == {"alice"}
    assert own.hidden == 1
    text = json.dumps(own.as_json())
    assert "bob" not in text
    assert json.loads(text)["proposals"][0]["flags"]
    with pytest.raises(UsageError):
        proposals(None, "toy", AT, Viewer(), **(given | {"risk": 0.0}))  # type: ignore[arg-type]


def test_hidden_users_get_no_proposal_and_generated_is_told() -> None:
    assert not judge(uses([use(n, user=None) for n in range(1, 9)])).items
    assert one(uses([use(n, generated=n == 3) for n in range(1, 9)])).generated
    assert not merged([])


def test_running_jobs_are_no_evidence() -> None:
    found = uses([use(n, final=False, end=None, state="RUNNING", gpus_used=0.0, gpu_util_mean=0.0) for n in range(1, 9)])
    assert not judge(found, sizes=FakeSizes(uses([use(1)]))).items or all(
        p.saved.core_hours == p.saved.gpu_hours == 0 for p in judge(found, sizes=FakeSizes(uses([use(1)]))).items
    )


@given(st.floats(1, 1e13), st.floats(1, 1e13))
def test_memory_is_rounded_up_a_little(a: float, b: float) -> None:
    low, high = sorted((a, b))
    assert a <= round_memory(a) <= a + GIB
    assert round_memory(low) <= round_memory(high)
    assert round_memory(a) % (256 << 20) == 0
    assert round_memory(round_memory(a)) == round_memory(a)


@given(st.floats(1, 1e7), st.floats(1, 1e7))
def test_time_is_rounded_up_a_little(a: float, b: float) -> None:
    low, high = sorted((a, b))
    assert a <= round_time(a) <= a + 3600
    assert round_time(low) <= round_time(high)
    assert round_time(a) % 60 == 0
    assert round_time(round_time(a)) == round_time(a)


@given(st.lists(st.integers(0, 8), min_size=1, max_size=200), st.floats(0.001, 0.5), st.floats(0.001, 0.5))
def test_more_risk_never_asks_for_more_gpus(used: list[int], a: float, b: float) -> None:
    values = np.array(used, float)
    low, high = sorted((a, b))
    assert upper(values, high)[0] <= upper(values, low)[0]
    bound, promised = upper(values, a)
    assert promised >= a - 1e-12 or promised == pytest.approx(1 / (len(used) + 1))
    assert (values > bound).sum() <= a * (len(used) + 1)


LINES = ("sbatch x.sh", "sbatch -n 2 -c 8 --mem=64G x.sh", "sbatch --mem-per-cpu=4G x.sh", "sbatch -G 4 --ntasks-per-node=4 x.sh")
_JOBS = st.lists(
    st.tuples(st.integers(0, 4), st.floats(0.1, 64), st.floats(0.1, 16), st.floats(0.2, 30)), min_size=5, max_size=12
)  # fmt: skip


def _made(jobs: list[tuple[int, float, float, float]], line: str, nodes: int = 1) -> Uses:
    return uses(
        [
            use(
                n,
                hours,
                gpus_used=float(gpus),
                gpu_util_mean=gpus / 4 * 0.5,
                mem_peak_bytes=gib * GIB,
                cpu_s=cpus * hours * 3600,
                limit_s=40 * 3600.0,
                submit_line=line,
                nodes=nodes,
            )
            for n, (gpus, gib, cpus, hours) in enumerate(jobs, 1)
        ]
    )


@settings(max_examples=20, deadline=None)
@given(_JOBS, st.sampled_from(LINES))
def test_flags_ask_for_what_is_proposed(jobs: list[tuple[int, float, float, float]], line: str) -> None:
    for p in judge(_made(jobs, line)).items:
        told = parse_options(line.split()[1:]).options
        given = {"partition": "gpu", "gres": "gpu:a100:4", "nodes": "1", "cpus-per-task": "16", "time": "1-16:00:00", **told}
        pasted = parse_options(list(p.flags)).options
        assert not parse_options(list(p.flags)).problems
        if {"mem", "mem-per-cpu"} & set(pasted):
            given = {k: v for k, v in given.items() if k not in ("mem", "mem-per-cpu")}
        if {"gpus", "gres"} & set(pasted):
            given = {k: v for k, v in given.items() if k not in ("gpus", "gres")}
        got = from_options(given | pasted)
        assert got.gpus == p.request.gpus
        assert got.limit_s == p.request.limit_s
        assert got.partitions == p.request.partitions
        if "-c" in p.flags:
            assert got.cpus == p.request.cpus
        if got.mem_bytes is not None and {"mem", "mem-per-cpu"} & set(pasted):
            assert p.request.mem_bytes is not None
            assert p.request.mem_bytes <= got.mem_bytes < p.request.mem_bytes + p.request.cpus * (1 << 20)


@settings(max_examples=20, deadline=None)
@given(_JOBS, st.floats(0.001, 0.5), st.floats(0.001, 0.5))
def test_more_risk_never_asks_for_more(jobs: list[tuple[int, float, float, float]], a: float, b: float) -> None:
    found = _made(jobs, "sbatch x.sh")
    asks = []
    for risk in sorted((a, b)):
        items = judge(found, sizes=FakeSizes(found, risk, bounds={"gpu_memory": None}), risk=risk).items
        asks.append(items[0].request if items else next(iter(kinds_of(rows_of(found)))).request)
    careful, bold = asks
    assert bold.gpus <= careful.gpus
    assert bold.cpus <= careful.cpus
    assert (bold.mem_bytes or 0) <= (careful.mem_bytes or 0)
    assert (bold.limit_s or 0) <= (careful.limit_s or 0)


@settings(max_examples=20, deadline=None)
@given(_JOBS)
def test_a_proposal_never_asks_for_less_than_its_bound(jobs: list[tuple[int, float, float, float]]) -> None:
    found = _made(jobs, "sbatch x.sh")
    for p in judge(found).items:
        assert (p.request.mem_bytes or 0) >= min(64 * GIB, max(j[1] for j in jobs) * GIB)
        assert (p.request.limit_s or 0) >= min(40 * 3600, max(j[3] for j in jobs) * 3600) - 1
        assert p.request.cpus >= min(16, max(j[2] for j in jobs)) - 1e-6


@given(st.text(), st.text())
def test_any_text_is_a_name_and_a_command(name: str, line: str) -> None:
    assert not any(c in "0123456789" for c in normal_name(name))
    command, options = command_of(line)
    assert isinstance(command, str)
    assert isinstance(options, dict)


def test_names_that_differ_in_numbers_are_one_kind() -> None:
    rows = rows_of(uses([use(1, name="Train-17_s3"), use(2, name="train-2_s44"), use(3, name="other")]))
    assert sorted(len(i) for i in kinds_of(rows).values()) == [1, 2]
    assert command_of("sbatch -N 1 /home/a/run_12.sh 7")[0] == "run_#.sh"
    assert command_of("sbatch --wrap 'python t.py 3'")[0] == "python"


def test_two_nodes_with_one_in_use_become_one() -> None:
    rows = [use(n, nodes=2, gpus_alloc=8.0, gpus_seen=8.0, gpus_used=4.0, gpu_util_mean=0.5, cpus_alloc=32.0) for n in range(1, 9)]
    found = uses(rows)
    p = one(found, sizes=FakeSizes(found, bounds={"memory": None, "cpus": None, "time": None}))
    assert p.flags[:3] == ("-N", "1", "--gres=gpu:a100:4")
    assert (p.request.nodes, p.request.cpus, p.request.mem_bytes) == (1, 16, 32 * GIB)


def test_rows_keep_their_share_of_the_window() -> None:
    early = use(1, hours=10.0, after=-5.0)
    rows = rows_of(uses([early, use(2, hours=0.0), replace_end(use(3, hours=2.0))]))
    assert rows.hours[0] == pytest.approx(5.0)
    assert rows.hours[1] == 0.0
    assert replace(rows, since=rows.since).overlap(rows.since, rows.at)[2] == 1.0


def replace_end(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"end": None, "final": False, "state": "RUNNING"}
