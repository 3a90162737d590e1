"""The replay of Slurm's passes on small machines: order, backfill, limits, preemption, reservations, futures."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecast.policy.nodes import NodeShape
from queuecast.policy.reservations import Reservation
from queuecast.policy.tables import Limits, PartitionRule, Policy, QosRule
from queuecast.twin import ready
from queuecast.twin.arrays import PENDING, RUNNING
from queuecast.twin.candidates import Candidate
from queuecast.twin.forward import NO_ARRIVALS, clock_of, forward, ticks
from queuecast.twin.past import Past
from queuecast.twin.replay import Replayed, pass_instants, replay
from queuecast.twin.state import TwinState, frame_of
from queuecast.twin.work import Frame, Work, code, throttle_of

GIB = 1 << 30
SETTINGS = {
    "schedulerparameters": "batch_sched_delay=1,bf_interval=10,bf_window=10000",
    "accountingstorageenforce": "limits",
    "preempttype": "preempt/qos",
}


def node(name: str, cpus: int = 8, gpus: int = 0, weight: int = 1) -> NodeShape:
    kinds = {"a100": gpus} if gpus else {}
    return NodeShape(name, cpus, 64 * GIB, kinds, frozenset(), frozenset({"batch"}), "IDLE", frozenset(), True, 0, 0, {}, weight, None)


def partition(name: str = "batch", tier: int = 1) -> PartitionRule:
    values = dict.fromkeys(PartitionRule.__dataclass_fields__)
    return PartitionRule(
        **values | {"name": name, "state": "UP", "nodes": (), "priority_tier": tier, "is_default": True, "billing_weights": {}}
    )  # type: ignore[arg-type]


def qos(name: str, preempt: frozenset[str] = frozenset(), **limits: object) -> QosRule:
    return QosRule(name, 0, preempt, "requeue", frozenset(), 1.0, 0, replace(Limits.of({}), **limits))  # type: ignore[arg-type]


def frame(*nodes: NodeShape, qos_rules: tuple[QosRule, ...] = (), resv: tuple[Reservation, ...] = ()) -> Frame:
    rules = {q.name: q for q in qos_rules or (qos("normal"),)}
    policy = Policy("c", datetime(2026, 1, 1, tzinfo=UTC), {"batch": partition()}, rules, (), nodes, resv, dict(SETTINGS))
    return frame_of(policy)


def job(k: int, submit: float = 0.0, **more: object) -> Work:
    values: dict[str, object] = {"run": 100.0, "limit": 200.0, "cpus": 8, "qos": "normal", "user": "u"}
    return Work(id=k, submit=submit, partitions=("batch",), **values | more)  # type: ignore[arg-type]


def played(f: Frame, works: list[Work], length: float = 5000.0) -> Replayed:
    return replay(f, works, clock_of(f.policy, 0.0, length, growth=False))


def test_first_come_first_served_at_equal_priority() -> None:
    got = played(frame(node("n1")), [job(1), job(2), job(3)])
    assert got.starts.tolist() == sorted(got.starts.tolist())
    assert got.starts[0] < 5
    assert 100 <= got.starts[1] <= 130


def test_priority_goes_before_submission() -> None:
    got = played(frame(node("n1")), [job(1), job(2, static={"batch": 1.0}), job(3, static={"batch": 9.0})])
    assert got.starts[2] < got.starts[1]


def test_a_short_job_is_backfilled_before_a_wide_one_that_waits() -> None:
    wide = job(2, 1.0, nodes=2, cpus=16, static={"batch": 100.0})
    short, long = job(3, 2.0, run=40.0, limit=60.0), job(4, 2.0, run=500.0, limit=900.0)
    got = played(frame(node("n1"), node("n2")), [job(1, run=190.0), wide, short, long])
    assert got.starts[2] < 100 < got.starts[1] < got.starts[3]
    assert got.by[2] == 2


def test_typed_gpus_wait_for_their_node() -> None:
    got = played(frame(node("n1"), node("n2", gpus=2)), [job(k, cpus=1, gpus=2, gpu_type="a100") for k in range(2)])
    assert got.starts[0] < 5
    assert got.starts[1] >= 100


def test_a_limit_of_a_qos_per_user_does_not_stop_others() -> None:
    f = frame(node("n1", 64), qos_rules=(qos("normal", max_jobs_per_user=1),))
    got = played(f, [job(1), job(2), job(3, user="v")])
    assert got.starts[1] >= 100
    assert got.starts[2] < 5


def test_an_array_throttle_holds() -> None:
    got = played(frame(node("n1", 64)), [job(k, cpus=1, array=7, throttle=2) for k in range(4)])
    assert (got.starts < 50).sum() == 2


def test_a_reservation_keeps_jobs_away_that_would_reach_into_it() -> None:
    resv = Reservation(
        "m",
        datetime.fromtimestamp(150, UTC),
        datetime.fromtimestamp(1000, UTC),
        frozenset(),
        frozenset({"n1"}),
        None,
        frozenset(),
        frozenset(),
    )
    got = played(frame(node("n1"), resv=(resv,)), [job(1), job(2, limit=100.0)])
    assert got.starts[0] >= 1000
    assert got.starts[1] < 50


def test_preemption_requeues_the_victim() -> None:
    f = frame(node("n1"), qos_rules=(qos("normal", frozenset({"low"})), qos("low")))
    got = played(f, [job(1, qos="low", run=900.0, limit=1000.0), job(2, 50.0)])
    assert got.starts[0] < 5
    assert got.starts[1] < 120
    assert got.last[0] > got.starts[1] + 99


@given(
    st.lists(
        st.tuples(st.integers(0, 500), st.integers(1, 300), st.integers(1, 4), st.integers(0, 2), st.integers(1, 2)),
        min_size=1,
        max_size=25,
    )
)
@settings(max_examples=40, deadline=None)
def test_no_node_is_given_twice(rows: list[tuple[int, int, int, int, int]]) -> None:
    f = frame(node("n1", 4, 2), node("n2", 4))
    works = [job(k, float(s), run=float(r), limit=300.0, cpus=c * n, gpus=g * n, nodes=n) for k, (s, r, c, g, n) in enumerate(sorted(rows))]
    got = played(f, works)
    for t in got.starts[np.isfinite(got.starts)]:
        on = [w for w, a, b in zip(works, got.starts, got.ends, strict=True) if a <= t < b]
        assert sum(w.cpus for w in on) <= 8
        assert sum(w.gpus for w in on) <= 2
    assert all(a >= w.submit for w, a in zip(works, got.starts, strict=True))


def state(works: list[Work], f: Frame | None = None) -> TwinState:
    f = f or frame(node("n1"))
    return TwinState("c", 0.0, f.policy, f, tuple(works), code(f, works), 0.0, (), Past((), {}, 0.0, 0.0))


def test_forward_uses_the_same_futures_for_every_candidate_and_waits_for_the_running_job() -> None:
    s = state([job(1, -50.0, status=RUNNING, began=-50.0, node_list=("n1",))])
    twice = [Candidate(("batch",), cpus=8, limit_s=100, user="u", qos="normal")] * 2
    got = forward(s, twice, np.array([50.0, 50.0]), futures=20, horizon_s=3600.0)
    assert got.starts[0].tolist() == got.starts[1].tolist()
    assert (got.starts > 0).all()
    assert (got.starts < 200).all()
    again = forward(s, twice, np.array([50.0, 50.0]), futures=20, horizon_s=3600.0, arrivals=NO_ARRIVALS)
    assert again.starts.tolist() == got.starts.tolist()


def test_forward_replaces_a_pending_job_and_delays_a_submission() -> None:
    s = state([job(1, -1.0, status=PENDING, limit=300.0)])
    one = [Candidate(("batch",), cpus=8, limit_s=100, user="u", qos="normal")]
    behind = forward(s, one, np.array([50.0]), futures=5, horizon_s=3600.0).starts
    instead = forward(s, one, np.array([50.0]), futures=5, horizon_s=3600.0, replaces=1).starts
    assert (instead <= behind).all()
    assert instead.max() < behind.max()
    later = forward(s, [replace(one[0], delay_s=600.0)], np.array([50.0]), futures=5, horizon_s=3600.0, replaces=1).starts
    assert (later >= 600).all()


def test_a_request_that_never_fits_does_not_start() -> None:
    got = forward(state([]), [Candidate(("batch",), cpus=99, user="u", qos="normal")], np.array([50.0]), futures=2, horizon_s=3600.0)
    assert np.isinf(got.starts).all()


def test_a_longer_horizon_changes_no_start_within_the_shorter() -> None:
    works = [job(k, -100.0 + k, status=PENDING, limit=3000.0) for k in range(40)]
    one = [Candidate(("batch",), cpus=8, limit_s=100, user="u", qos="normal")]
    short = forward(state(works), one, np.array([50.0]), futures=8, horizon_s=40_000.0).starts
    long = forward(state(works), one, np.array([50.0]), futures=8, horizon_s=400_000.0).starts
    inside = long < 39_000
    assert short[inside].tolist() == long[inside].tolist()
    assert np.isfinite(long).all()


def test_tasks_of_an_array_without_a_throttle_are_known_as_one_array() -> None:
    f = frame(node("n1"))
    assert code(f, [job(1, array=7), job(2, array=7), job(3)]).array.tolist() == [0, 0, -1]
    assert f.throttles == [np.inf]
    code(f, [job(4, array=7, throttle=3)])
    assert f.throttles == [3]


@pytest.mark.parametrize(
    ("told", "array", "line", "want"),
    [
        (3.0, 7, "sbatch --array=1-9%2 x.sh", 3.0),
        (None, 7, "sbatch --array=1-9%2 x.sh", 2.0),
        (None, 7, "sbatch -a1-9%12", 12.0),
        (None, 7, "sbatch --array=1-9 x%3.sh", None),
        (None, None, "sbatch --array=1-9%2 x.sh", None),
        (None, 7, None, None),
    ],
)
def test_a_throttle_not_told_is_read_off_the_command_line(
    told: float | None, array: int | None, line: str | None, want: float | None
) -> None:
    assert throttle_of(told, array, line) == want


def test_the_simulator_says_whether_it_is_compiled() -> None:
    played(frame(node("n1")), [job(1)])
    assert ready()


@pytest.mark.parametrize(("growth", "count"), [(0.0, 11), (0.5, 8)])
def test_ticks_reach_the_end(growth: float, count: int) -> None:
    found = ticks(0.0, 100.0, 10.0, growth)
    assert found[0] == 0
    assert found[-1] >= 100 or growth == 0.0
    assert (np.diff(found) > 0).all()
    assert len(found) >= count - 3


def test_pass_instants_fill_the_gaps_evenly() -> None:
    found = pass_instants(np.array([100.0, 101.0, 500.0, np.inf]), 0.0, 700.0, 100.0, 50.0)
    assert found[:6].tolist() == pytest.approx([100.0, 200.0, 300.0, 400.0, 500.0, 600.0]) or found[0] == pytest.approx(0.0)
    assert np.diff(found).max() <= 101
