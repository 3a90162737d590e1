"""When a pending job is planned to start: groups of ends, as Slurm's select plugin takes them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecast.twin import reference
from queuecast.twin.arrays import RUNNING
from queuecast.twin.backfill import due_order, will_run
from queuecast.twin.forward import clock_of
from queuecast.twin.loop import fresh
from queuecast.twin.placing import need_of
from queuecast.twin.work import code, rules_of
from tests.unit.twin.test_scheduler import frame, job, node

NAMES = ("n0", "n1", "n2", "n3")


def planned(
    running: list[tuple[float, str, int]], names: tuple[str, ...], shared: tuple[str, ...], need: int, old: bool
) -> tuple[float, str] | None:
    """By the kernel, for the machine of four nodes with four GPUs at second 0."""
    f = frame(*(node(n, 64, 4) for n in NAMES))
    works = [
        replace(job(k, -100.0, cpus=1, gpus=g, limit=end + 100.0), status=RUNNING, began=-100.0, node_list=(n,))
        for k, (end, n, g) in enumerate(running)
    ]
    jobs = code(f, [*works, job(99, 0.0, cpus=1, gpus=need)])
    rules = rules_of(f)
    sim = fresh(f.machine, jobs, rules)
    due, order = np.empty(len(works) + 1), np.empty(len(works) + 1, np.int64)
    count = due_order(sim, jobs, np.arange(len(works)), due, order)
    nodes, here = np.empty(4, np.int64), np.empty(4, bool)
    may, all_ = (np.array([n in group for n in NAMES]) for group in (names, shared))
    clock = clock_of(f.policy, 0.0, 100.0, growth=False)._replace(old_group_end=old)
    when = will_run(
        sim, f.machine, jobs, rules, clock, 0, need_of(jobs, len(works)), may, all_, np.zeros(4, bool), 0.0, True, due, order, count,
        np.empty_like(sim.free), here, nodes,
    )  # fmt: skip
    return None if not np.isfinite(when) or when <= 1.0 else (float(when), NAMES[nodes[0]])


@st.composite
def machines(draw: st.DrawFn) -> list[tuple[float, str, int]]:
    """Running jobs that fit on their nodes, by their ends."""
    rows = draw(st.lists(st.tuples(st.integers(2, 40000), st.sampled_from(NAMES), st.integers(1, 4)), max_size=14))
    left = dict.fromkeys(NAMES, 4)
    kept = []
    for end, n, g in rows:
        if left[n] >= g:
            left[n] -= g
            kept.append((float(end), n, g))
    return sorted(kept, key=lambda r: r[0])


@settings(deadline=None, max_examples=40)
@given(machines(), st.integers(1, 4), st.sets(st.sampled_from(NAMES), min_size=1), st.booleans())
def test_the_plan_equals_plain_python(running: list[tuple[float, str, int]], need: int, may: set[str], old: bool) -> None:
    names = tuple(n for n in NAMES if n in may)
    shared = (*names, "n3") if "n3" not in names else names
    told = planned(running, names, shared, need, old)
    plain = reference.will_run(running, dict.fromkeys(NAMES, 4), names, shared, need, old)
    if told is None or plain is None:
        assert told == plain
    else:
        assert told[0] == plain[0]


def test_ends_in_one_window_count_as_one_and_the_window_doubles() -> None:
    running = [(600.0, "n0", 1), (7000.0, "n1", 4), (8000.0, "n2", 1), (20000.0, "n3", 4)]
    # 630 + 30 * 2**8 = 8310: the job that ends at 8000 is gone with the one at 7000
    assert planned(running, ("n1",), NAMES, 4, True) == (8000.0, "n1")
    assert planned(running, ("n1",), NAMES, 4, False) == (7000.0, "n1")


def test_jobs_on_other_nodes_do_not_count() -> None:
    running = [(600.0, "n0", 1), (7000.0, "n1", 4), (8000.0, "n2", 1), (20000.0, "n3", 4)]
    assert planned(running, ("n1",), ("n1", "n3"), 4, True) == (7000.0, "n1")
