"""Failures of nodes: found where a node is to blame, and not where a script, an array or chance is."""

from __future__ import annotations

import itertools
import math
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom
from tests.unit.synthetic import NOW, make_lake, table

from queuecast.answers.failures.groups import groups_of, jobs_of, kind_of, platform_groups
from queuecast.answers.failures.rows import NodeEvent
from queuecast.answers.failures.stats import Stratum, exact_tail, hypergeometric, stretches
from queuecast.answers.viewer import Viewer
from queuecast.store.lake import Lake

BEGIN = datetime.fromisoformat("2026-05-10T00:00:00+00:00")
NUMBERS = itertools.count(1)


def job(
    node: str, minute: float, *, died: bool = False, user: str = "alice", name: str = "train", sent: float | None = None, **more: Any
) -> dict[str, Any]:
    number = next(NUMBERS)
    end = BEGIN + timedelta(minutes=minute)
    ran = 1.5 if died else 40
    return {
        "cluster": "toy", "job_id": number, "job_id_text": str(number), "name": name, "user": user,
        "state": "FAILED" if died else "COMPLETED", "submit": BEGIN + timedelta(minutes=minute - 60 if sent is None else sent),
        "start": end - timedelta(minutes=ran), "end": end,
        "elapsed_s": int(60 * ran), "node_list": node, "array_job_id": None, "exit_code": int(died), "exit_signal": 0, "completeness": 3,
        "array_tasks": 1, "source": "sacct", "observed_at": NOW,
    } | more  # fmt: skip


def day(rng: np.random.Generator, *, users: int = 6, nodes: int = 8, per_user: int = 60, rate: float = 0.1) -> list[dict[str, Any]]:
    """Jobs of some users spread over nodes and a day, each failing by chance."""
    rows = []
    for u, _k in itertools.product(range(users), range(per_user)):
        minute = float(rng.uniform(0, 1440))
        rows.append(job(f"gpu{rng.integers(nodes):02}", minute, died=bool(rng.random() < rate), user=f"u{u}", name=f"job-{u}"))
    return rows


def test_a_black_hole_is_named() -> None:
    rng = np.random.default_rng(1)
    rows = day(rng)
    bad = [job("gpu07", 600 + i * 2, died=i not in (4, 8), user=f"u{i % 5}", name=f"job-{i % 5}") for i in range(11)]
    rows = [r for r in rows if r["node_list"] != "gpu07" or abs((r["end"] - BEGIN).total_seconds() / 60 - 610) > 60]
    found = groups_of(jobs_of([*rows, *bad]), {})
    assert [g.nodes for g in found] == [("gpu07",)]
    group = found[0]
    assert (group.failed, group.ended, group.users, group.basis) == (9, 11, 5, "peers")
    assert group.within_s == 90
    assert (group.expected or 9.0) < 3
    assert (group.p_value or 9.0) < 0.01


def test_one_users_broken_script_names_no_node() -> None:
    rows = day(np.random.default_rng(2))
    broken = [job(f"gpu{i % 8:02}", 700 + i, died=True, user="u1", name="broken") for i in range(80)]
    assert groups_of(jobs_of([*rows, *broken]), {}) == []
    alone = [job("gpu03", 700 + i, died=True, user="u1", name="only-here") for i in range(40)]
    assert groups_of(jobs_of([*rows, *alone]), {}) == []


def test_two_broken_arrays_that_met_on_a_node_name_it_not() -> None:
    rows = day(np.random.default_rng(3))
    arrays = [
        job("gpu05", 700 + i, died=True, user=user, name=f"job-{user[1:]}", sent=650, array_job_id=900 + int(user[1:]))
        for user in ("u1", "u2")
        for i in range(15)
    ]
    assert groups_of(jobs_of([*rows, *arrays]), {}) == []


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.6])
def test_chance_alone_names_hardly_ever_a_node(rate: float) -> None:
    """1 in 100 at most by design; the stretches are chosen by their deaths, which the factor has to make up for."""
    named = sum(bool(groups_of(jobs_of(day(np.random.default_rng(seed), rate=rate, per_user=30)), {})) for seed in range(60))
    assert named <= 2


def test_slurms_own_word_needs_no_statistics_and_names_the_node_with_the_event() -> None:
    rows = [
        job("gpu[01-02]", 100, died=True, state="NODE_FAIL", user="a"),
        job("gpu02", 100.5, died=True, state="NODE_FAIL", user="b"),
        job("gpu01", 300, user="b"),
    ]
    event = NodeEvent("gpu02", BEGIN + timedelta(minutes=99), None, "DOWN*", "Not responding")
    (group,) = groups_of(jobs_of(rows), {"gpu02": [event]})
    assert (group.nodes, group.failed, group.basis, group.p_value, group.events) == (("gpu02",), 2, "slurm", None, (event,))


def test_many_nodes_at_once_are_one_group() -> None:
    rows = [job(f"gpu{i:02}", 100 + i, died=True, state="NODE_FAIL", user=f"u{i}") for i in range(4)]
    (group,) = groups_of(jobs_of(rows), {})
    assert group.nodes == ("gpu00", "gpu01", "gpu02", "gpu03")
    assert (group.failed, group.ended) == (4, 4)


def test_an_event_in_that_time_lowers_the_bar() -> None:
    rng = np.random.default_rng(5)
    rows = [r for r in day(rng, rate=0.1) if r["node_list"] != "gpu07"]
    few = [job("gpu07", 600 + i, died=True, user=f"u{i}", name=f"job-{i}") for i in range(4)]
    event = NodeEvent("gpu07", BEGIN + timedelta(minutes=602), None, "DRAIN", "gres/gpu count reported lower than configured")
    assert groups_of(jobs_of([*rows, *few]), {}) == []
    (group,) = groups_of(jobs_of([*rows, *few]), {"gpu07": [event]})
    assert (group.nodes, group.basis) == (("gpu07",), "event")
    planned = event._replace(reason="maintenance on Friday")
    assert groups_of(jobs_of([*rows, *few]), {"gpu07": [planned]}) == []


def lake_of(path: Path, rows: list[dict[str, Any]], events: list[dict[str, Any]]) -> Lake:
    lake = make_lake(path / "lake", rows)
    if events:
        with lake.transaction("events") as tx:
            tx.append("events", table("events", events))
    return lake.refresh()


def test_who_may_not_see_all_gets_counts_without_others_jobs_or_words(tmp_path: Path) -> None:
    rows = [job(f"gpu0{i % 2}", 100 + i / 10, died=True, state="NODE_FAIL", user=u) for i, u in enumerate(("alice", "bob", "bob"))]
    event = {
        "cluster": "toy",
        "node": "gpu00",
        "start": BEGIN + timedelta(minutes=100),
        "state": "DOWN",
        "reason": "bob's job",
        "observed_at": NOW,
    }
    lake = lake_of(tmp_path, rows, [event])
    since = BEGIN - timedelta(days=1)
    everyone = platform_groups(lake, "toy", since, NOW, Viewer())
    assert sum(len(g.jobs) for g in everyone) == 3
    alice = platform_groups(lake, "toy", since, NOW, Viewer("alice", sees_all=False))
    assert [g.failed for g in alice] == [g.failed for g in everyone]
    assert [j for g in alice for j in g.jobs] == [rows[0]["job_id_text"]]
    assert "bob" not in str([g.as_json() for g in alice])


def test_nothing_later_than_the_moment_is_used(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, [job("gpu00", 100, died=True, state="NODE_FAIL")], [])
    assert platform_groups(lake, "toy", BEGIN, BEGIN + timedelta(minutes=99), Viewer()) == ()
    assert len(platform_groups(lake, "toy", BEGIN, BEGIN + timedelta(minutes=101), Viewer())) == 1


COUNT = st.integers(0, 12)
STRATA = st.builds(lambda a, b, c, d: Stratum(min(a, b), b, min(c, d), d), COUNT, COUNT, COUNT, COUNT)


@given(st.lists(STRATA, max_size=5))
def test_the_tail_is_a_probability_and_falls_with_more_deaths(strata: list[Stratum]) -> None:
    tail = exact_tail(strata)
    assert 0.0 <= tail <= 1.0
    more = [Stratum(s.died + 1, s.ran, s.other_died - 1, s.other_ran) if s.died < s.ran and s.other_died > 0 else s for s in strata]
    assert exact_tail(more) <= tail + 1e-9


@given(STRATA)
def test_one_stratum_is_fishers_test(s: Stratum) -> None:
    wanted = hypergeom.sf(s.died - 1, s.ran + s.other_ran, s.died + s.other_died, s.ran) if s.informative else 1.0
    assert math.isclose(exact_tail([s]), wanted, rel_tol=1e-9, abs_tol=1e-12)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_the_distribution_sums_to_one(total: int, marked: int, drawn: int) -> None:
    if marked <= total and drawn <= total:
        assert math.isclose(hypergeometric(total, marked, drawn).sum(), 1.0)


@given(st.lists(st.sampled_from((1.0, -1.0)), max_size=14))
def test_the_first_stretch_found_is_the_best_there_is(values: list[float]) -> None:
    found = stretches(values)
    assert all(a < b for a, b in found)
    assert all(found[i][1] <= found[i + 1][0] for i in range(len(found) - 1))
    sums = [sum(values[a:b]) for a in range(len(values)) for b in range(a + 1, len(values) + 1)]
    best = max(sums, default=0.0)
    assert max((sum(values[a:b]) for a, b in found), default=0.0) == max(best, 0.0)
    assert {i for i, v in enumerate(values) if v > 0} <= {i for a, b in found for i in range(a, b)}


def test_a_kind_is_the_name_without_numbers() -> None:
    assert kind_of("Train_17-lr0.3") == kind_of("train_2-lr0.05") == "train_#-lr#.#"
    assert kind_of(None) == ""


def test_early_deaths_are_looked_at_apart() -> None:
    """Where two in five jobs fail late everywhere, only that they die at once tells of the node."""
    rng = np.random.default_rng(8)
    rows = [r | {"elapsed_s": 2400} for r in day(rng, rate=0.4) if r["node_list"] != "gpu07"]
    bad = [job("gpu07", 600 + 3 * i, died=True, user=f"u{i % 4}", name=f"job-{i % 4}") for i in range(7)]
    (group,) = groups_of(jobs_of([*rows, *bad]), {})
    assert (group.nodes, group.failed, group.within_s) == (("gpu07",), 7, 90)
    slow = [b | {"elapsed_s": 2400} for b in bad]
    assert groups_of(jobs_of([*rows, *slow]), {}) == []


def test_asked_for_one_node_the_same_is_found() -> None:
    rows = [r for r in day(np.random.default_rng(1)) if r["node_list"] != "gpu07"]
    bad = [job("gpu07", 600 + i * 2, died=True, user=f"u{i % 5}", name=f"job-{i % 5}") for i in range(9)]
    jobs = jobs_of([*rows, *bad])
    whole = groups_of(jobs, {})
    assert [g.nodes for g in whole] == [("gpu07",)]
    assert groups_of(jobs, {}, nodes=frozenset({"gpu07"})) == whole
    assert groups_of(jobs, {}, nodes=frozenset({"gpu01", "none"})) == []
