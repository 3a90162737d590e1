"""Small changes that matter: tried within the rules, judged by what binds then and by the wait model, the smallest told."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.answers.test_why import NOW as TOY_NOW
from tests.unit.answers.test_why import policy, row, used
from tests.unit.synthetic import NOW, job_rows, make_lake, table

from queuecast.answers.alternatives_answer import Spread
from queuecast.answers.alternatives_offers import Told
from queuecast.answers.explaining.binding import binding
from queuecast.answers.explaining.changes import LEAST_S, _Wait, changes, smallest, sooner
from queuecast.answers.explaining.changes_answer import Change, Changes
from queuecast.answers.explaining.explain import why, with_changes
from queuecast.answers.explaining.queue import Snapshot
from queuecast.answers.explaining.tries import Try, smaller, tries
from queuecast.answers.viewer import Viewer
from queuecast.config import load_hardware
from queuecast.errors import NotPermitted
from queuecast.policy.request import Request
from queuecast.policy.reservations import Reservation
from queuecast.policy.tables import Policy
from queuecast.policy.usage import Usage
from queuecast.render.whychanges import changes_lines
from queuecast.store.lake import Lake

H = timedelta(hours=1)
GIB = 1 << 30


def told_of(p: Policy, rows: list[dict[str, Any]], request: Request, shares: Any = ()) -> tuple[Told, Any]:
    usage = Usage(TOY_NOW, tuple(used(r) for r in rows))
    found = binding(p, usage, Snapshot(TOY_NOW, tuple(rows)), rows[0], request, list, Viewer())
    return Told(p, usage, request, rows[0]["job_id"], np.sort(np.array(shares, float)), load_hardware(), None), found


def tried(p: Policy, rows: list[dict[str, Any]], request: Request, shares: Any = (), ahead: Any = ()) -> dict[str, Try]:
    told, found = told_of(p, rows, request, shares)
    return {t.offer.label: t for t in tries(told, found, rows[0], list(ahead), TOY_NOW)}


def asked(**more: Any) -> Request:
    base: dict[str, Any] = {
        "partitions": ("gpu",),
        "gpus": 8,
        "cpus": 8,
        "user": "ana",
        "account": "lab",
        "qos": "normal",
        "limit_s": 86400,
    }
    return Request(**(base | more))


def test_the_room_in_a_limit_and_the_largest_free_block_are_tried() -> None:
    rows = [row(1, gpus=8), row(2, "RUNNING", gpus=3)]
    found = tried(policy(idle=5, grp_tres={"gres/gpu": 9}), rows, asked(mem_bytes=8 * GIB))
    assert {"6 GPUs", "5 GPUs", "4 GPUs", "2 GPUs"} <= set(found)
    six = found["6 GPUs"].offer.request
    assert (six.gpus, six.cpus, six.mem_bytes) == (6, 6, 6 * GIB)
    assert not found["6 GPUs"].offer.in_place


@pytest.mark.parametrize(
    ("limits", "request_more", "label"),
    [
        ({"max_wall_s": 43200}, {}, "limit 12:00:00"),
        ({"max_tres_per_job": {"cpu": 4}}, {"gpus": 1}, "4 CPUs"),
        ({"max_tres_per_job": {"mem": 4 * GIB}}, {"gpus": 1, "mem_bytes": 9 * GIB}, "4G of memory"),
        ({"max_tres_per_job": {"gres/gpu": 3}}, {}, "3 GPUs"),
    ],
)
def test_what_a_broken_limit_allows_is_tried(limits: dict[str, Any], request_more: dict[str, Any], label: str) -> None:
    rows = [row(1, gpus=request_more.get("gpus", 8))]
    assert label in tried(policy(**limits), rows, asked(**request_more))


def test_gaps_before_a_reservation_and_a_planned_start() -> None:
    kept = Reservation("maint", TOY_NOW + 5 * H, None, frozenset(), frozenset({"n1"}), None, frozenset({"root"}), frozenset())
    ahead = [row(9, priority=900, start_estimate=TOY_NOW + 2 * H, sched_nodes="n1"), row(8, start_estimate=TOY_NOW + H, sched_nodes="n7")]
    found = tried(replace(policy(), reservations=(kept,)), [row(1, gpus=8)], asked(), [0.01] * 30, ahead)
    assert {"limit 04:55:00", "limit 01:55:00"} <= set(found)
    assert "limit 00:55:00" not in found  # planned on a node that it could not take
    assert found["limit 04:55:00"].offer.in_place
    assert "0 % of 30 like jobs ran longer, and would be cut" in found["limit 04:55:00"].offer.conditions
    assert "limit 04:55:00" not in tried(replace(policy(), reservations=(kept,)), [row(1, gpus=8)], asked(), [0.9] * 30)


def test_memory_and_nodes() -> None:
    p = policy(idle=8)
    node = replace(p.nodes[0], mem_bytes=100 * GIB, mem_alloc_bytes=70 * GIB)
    found = tried(replace(p, nodes=(node,)), [row(1, gpus=1)], asked(gpus=1, mem_bytes=40 * GIB))
    assert found["30G of memory"].kinds == ("memory",)
    two = replace(p.nodes[0], name="n2")
    both = replace(p, nodes=(p.nodes[0], two), partitions={"gpu": replace(p.partitions["gpu"], nodes=("n1", "n2"), total_nodes=2)})
    assert tried(both, [row(1, gpus=8)], asked(nodes=2))["1 node"].kinds == ("nodes",)


@given(st.integers(1, 64), st.integers(1, 64), st.integers(1, 256), st.integers(1, 8))
def test_smaller_never_asks_for_more(gpus: int, fewer: int, cpus: int, nodes: int) -> None:
    before = asked(gpus=gpus, cpus=max(cpus, nodes), nodes=nodes, mem_bytes=7 * GIB, tasks=nodes)
    after = smaller(before, min(gpus, fewer))
    assert after.gpus == min(gpus, fewer)
    assert 1 <= after.nodes <= before.nodes
    assert after.nodes <= after.cpus <= before.cpus
    assert 0 < (after.mem_bytes or 0) <= (before.mem_bytes or 0)


@given(st.integers(0, 8), st.integers(1, 8), st.integers(1, 12), st.integers(1, 8))
def test_nothing_is_tried_that_the_rules_forbid(running: int, gpus: int, limit: int, idle: int) -> None:
    rows = [row(1, gpus=gpus), *([row(2, "RUNNING", gpus=running)] if running else [])]
    told, found = told_of(policy(idle=idle, grp_tres={"gres/gpu": limit}), rows, asked(gpus=gpus))
    for one in tries(told, found, rows[0], [], TOY_NOW):
        assert one.offer.request != told.request
        assert one.offer.request.gpus <= min(limit, gpus)


# ------------------------------------------------------------------ what is material, and the smallest of it


def wait(median: float, p: float | None = None) -> _Wait:
    return _Wait(Spread(median / 2, median, median * 2), p)


@given(st.floats(1, 1e6), st.floats(1, 1e6))
def test_a_material_wait_is_shorter_in_proportion_and_in_seconds(before: float, after: float) -> None:
    found = sooner(wait(before), wait(after))
    assert found == (before - after >= LEAST_S and after * 1.5 <= before)
    assert not (found and sooner(wait(after), wait(before)))
    assert not sooner(_Wait(), wait(after))


def test_a_likelier_start_within_four_hours_is_material_too() -> None:
    assert sooner(wait(5000, 0.4), wait(4900, 0.51))
    assert not sooner(wait(5000, 0.4), wait(4900, 0.49))


def change(gpus: int = 4, effect: Any = "sooner", median: float | None = 1000, kinds: Any = ("fewer_gpus",), **more: Any) -> Change:
    spread = None if median is None else Spread(median / 2, median, median * 2)
    return Change(f"{gpus} GPUs", kinds, asked(gpus=gpus), ("-n", "1"), False, effect, (), None, spread, 0.5, **more)


def test_of_a_kind_the_smallest_change_is_told_and_more_only_if_it_does_more() -> None:
    four, two, one = change(4), change(2, median=900), change(1, median=400)
    assert [c.request.gpus for c in smallest([one, two, four])] == [1, 4]
    fits = change(2, "fits")
    assert [c.request.gpus for c in smallest([four, fits])] == [2, 4]
    assert smallest([change(4, "fits"), change(2, "fits", median=900)])[0].request.gpus == 4


@given(st.lists(st.tuples(st.integers(1, 8), st.sampled_from(["fits", "unblocks", "sooner"]), st.floats(1, 1e5)), max_size=8))
def test_the_smallest_is_always_among_those_told(given_changes: list[tuple[int, str, float]]) -> None:
    found = [change(g, e, m) for g, e, m in given_changes]
    kept = smallest(found)
    assert (not found) == (not kept)
    if found:
        assert max(c.request.gpus for c in found) == max(c.request.gpus for c in kept)
        ranks = [{"fits": 1, "unblocks": 2, "sooner": 3}[c.effect] for c in kept]
        assert ranks == sorted(ranks)


# ------------------------------------------------------------------ from a lake


MINE = 70_001


def lake_of(path: Path, **mine: Any) -> Lake:
    """1,500 jobs of history; alice waits for 4 GPUs behind a QOS limit of 6 of which 4 are used by another one's job."""
    rows = [r for r in job_rows() if r["end"] is not None]
    seen = {"cluster": "toy", "observed_at": NOW}
    base = rows[-1] | {
        "job_id": MINE, "job_id_text": str(MINE), "user": "alice", "account": "vision", "partition": "gpu", "gpus_req": 4,
        "gpu_type_req": "a100", "state": "PENDING", "submit": NOW - 2 * H, "eligible": NOW - 2 * H, "start": None, "end": None,
        "limit_s": 14400, "completeness": 1,
    }  # fmt: skip
    lake = make_lake(path / "lake", [*rows, base])
    waits = seen | {
        "job_id": MINE, "job_id_text": str(MINE), "array_tasks": 1, "array_tasks_exact": True, "user": "alice", "account": "vision",
        "partition": "gpu", "qos": "normal", "state": "PENDING", "reason": "QOSGrpGRES", "reason_text": "QOSGrpGRES", "limit_s": 14400,
        "submit": NOW - 2 * H, "eligible": NOW - 2 * H, "nodes": 1, "cpus": 8, "gpus": 4, "gpu_type": "a100", "priority": 100,
    }  # fmt: skip
    runs = waits | {
        "job_id": 70_000, "job_id_text": "70000", "user": "bob", "account": "nlp", "state": "RUNNING", "reason": None, "reason_text": None,
        "start": NOW - H, "elapsed_s": 3600, "node_list": "g1",
    }  # fmt: skip
    with lake.transaction("more") as tx:
        tx.append("queue", table("queue", [waits | mine, runs]))
        tx.append("qos", table("qos", [seen | {"qos": "normal", "grp_tres": "gres/gpu=6", "usage_factor": 1.0}]))
    return lake.refresh()


def test_the_room_of_the_limit_is_the_change_that_unblocks(tmp_path: Path) -> None:
    lake = lake_of(tmp_path)
    viewer = Viewer("alice", sees_all=False)
    answer = with_changes(why(lake, "toy", str(MINE), NOW, viewer), lake, viewer)
    assert answer.binding is not None
    assert answer.binding.constraints[0].code == "QOSGrpGRES"
    found = answer.changes
    assert found is not None
    two = next(c for c in found.changes if c.request.gpus == 2)
    assert two.effect in ("unblocks", "fits")
    assert "QOSGrpGRES" in two.frees
    assert "--gres=gpu:a100:2" in two.flags
    assert not two.keeps_place
    assert found.as_new is not None
    assert found.tried >= len(found.changes)
    plain = json.loads(json.dumps(answer.as_json()))["changes"]
    assert plain["changes"][0]["effect"] in ("unblocks", "fits")
    assert not [w for w in ("bob", "70000", "nlp") if w in json.dumps(plain)]


def test_a_model_that_cannot_be_read_leaves_what_frees_the_job(tmp_path: Path) -> None:
    lake = lake_of(tmp_path)
    bad = lake.path / "models" / "20260101T000000-00000000"
    bad.mkdir(parents=True)
    (lake.path / "models" / "current").write_text(bad.name)
    (bad / "model.json").write_text("{}")
    answer = with_changes(why(lake, "toy", str(MINE), NOW), lake)
    assert answer.changes is not None
    assert any("QOSGrpGRES" in c.frees for c in answer.changes.changes)
    assert answer.changes.as_new is None
    assert any("is not known" in text for text in answer.unknown)


@pytest.mark.parametrize(
    "mine", [{"priority": 0, "reason": "JobHeldUser"}, {"dependency": "afterok:3(unfulfilled)", "reason": "Dependency"}]
)
def test_what_no_change_of_the_request_ends(tmp_path: Path, mine: dict[str, Any]) -> None:
    lake = lake_of(tmp_path, **mine)
    found = with_changes(why(lake, "toy", str(MINE), NOW), lake).changes
    assert found is not None
    assert found.changes == ()
    assert "before that is over" in found.notes[0]


def test_another_one_may_not_ask(tmp_path: Path) -> None:
    lake = lake_of(tmp_path)
    answer = why(lake, "toy", str(MINE), NOW)
    with pytest.raises(NotPermitted):
        changes(lake, answer, None, Viewer("bob", sees_all=False))


def test_a_limit_that_is_too_long_is_cut_in_place(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, limit_s=14400)
    with lake.transaction("qos") as tx:
        tx.append("qos", table("qos", [{"cluster": "toy", "observed_at": NOW + H, "qos": "normal", "max_wall_s": 7200}]))
    answer = with_changes(why(lake.refresh(), "toy", str(MINE), NOW + H), lake)
    assert answer.binding is not None
    assert answer.binding.constraints[0].standing == "never"
    assert answer.changes is not None
    cut = next(c for c in answer.changes.changes if c.request.limit_s == 7200)
    assert (cut.effect, cut.keeps_place, cut.flags) == ("allowed", True, (f"JobId={MINE}", "TimeLimit=02:00:00"))
    assert answer.changes.as_new is None  # it never starts as it is


# ------------------------------------------------------------------ as text


def text(found: Changes, width: int = 100) -> str:
    return "\n".join(changes_lines(found, width))


def test_each_effect_and_figure_is_told() -> None:
    spread = Spread(600, 3600, 7200)
    some = (
        change(4, "fits", conditions=("loses \x1b[31mits place",)),
        replace(change(2, "unblocks"), frees=("QOSGrpGRES",), binds="Priority", keeps_place=True),
        replace(change(1), sooner=Spread(-60, 3600, 7200), p_sooner=0.75),
    )
    shown = text(Changes(some, spread, 0.5, spread, 0.2, 9, 40, ("a note",)))
    for words in (
        "As it is, it waits 1 h (10 min to 2 h in 8 of 10 cases) from now",
        "what it asks for is free now",
        "QOSGrpGRES no longer keeps it; then: Other jobs come first (Priority)",
        "such jobs started sooner so far",
        "within 4 h in 50 % of cases rather than 20 %",
        "In 40 drawn futures it starts sooner in 75 %: by 1 h (-",
        "scontrol update -n 1",
        "sbatch -n 1",
        "a note",
    ):
        assert words in " ".join(shown.split()), words
    assert "\x1b" not in shown


def test_nothing_that_matters_is_said_so() -> None:
    assert "Of 7 allowed changes" in text(Changes((), None, None, None, None, 7, 0, ()))
    assert text(Changes((), None, None, None, None, 0, 0, ("why not",))).endswith("why not")


@given(st.text(max_size=30), st.integers(40, 140))
def test_labels_are_harmless_and_lines_keep_the_width(label: str, width: int) -> None:
    found = Changes((replace(change(), label=label, conditions=(label,)),), None, None, None, None, 1, 0, ())
    assert all(c.isprintable() for line in changes_lines(found, width) for c in line)
