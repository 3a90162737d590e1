"""The review: sums are conserved however they are cut, unknown is not zero, others stay hidden, files are harmless."""

from __future__ import annotations

import csv
import io
import json
import re
import string
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.answers.made_uses import AT, GIB, PLAIN, SINCE, FakeSizes, cluster, use, uses

from queuecast.answers.rightsizing.overrequest import overrequest
from queuecast.answers.rightsizing.overrequest_answer import DIMENSIONS, Amounts, OverRequests
from queuecast.answers.rightsizing.waits import with_waits
from queuecast.answers.viewer import Viewer
from queuecast.errors import NotPermitted, UsageError
from queuecast.render.csvsafe import STARTS, safe_cell, to_csv
from queuecast.render.overrequest import bar, overrequest_lines, spark
from queuecast.render.overrequest_messages import LANGUAGES, file_name, load_texts, messages, write_messages
from queuecast.render.overrequest_table import FIELDS, groups_csv, parsable, proposals_csv
from queuecast.store.lake import Lake
from queuecast.usage.idle import IdleGpu
from queuecast.usage.uses import Uses

EVIL = "=cmd|' /C calc'!A0\x1b[31m\n\u202eevil|name"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return Lake.open(tmp_path_factory.mktemp("empty") / "lake", create=True)


def review(lake: Lake, found: Uses, **more: Any) -> OverRequests:
    options: dict[str, Any] = {"uses": found, "sizes": FakeSizes(found), "policy": cluster(), "hardware": PLAIN, "by": DIMENSIONS}
    return overrequest(lake, "toy", **({"since": SINCE, "at": AT} | options | more))


def some(count: int = 24) -> Uses:
    people = ("alice", "bob", "carol")
    return uses(
        [use(n, user=people[n % 3], account=("vision", "bio")[n % 2], gpus_used=float(n % 3), gpu_util_mean=0.2) for n in range(1, count)]
    )


def idle_job(**given: Any) -> IdleGpu:
    values: dict[str, Any] = {
        "job_id": 7, "job_id_text": "7", "user": "alice", "account": "vision", "partition": "gpu", "name": EVIL, "node_list": "g1",
        "gpu_type": "a100", "gpus": 4, "start": SINCE, "idle_since": AT - timedelta(hours=5), "last_seen": AT, "samples": 20,
        "mem_bytes": None, "generated": False,
    }  # fmt: skip
    return IdleGpu(**(values | given))


def total(parts: list[Amounts]) -> Amounts:
    out = Amounts()
    for part in parts:
        out = out + part
    return out


def same(a: Amounts, b: Amounts, jobs: bool = True) -> None:
    for (_name, x), (_same, y) in zip(a.items(), b.items(), strict=True):
        for field in ("asked", "measured", "used", "reclaimable", "by_default"):
            assert getattr(x, field) == pytest.approx(getattr(y, field), rel=1e-9, abs=1e-6)
        if jobs:
            assert (x.jobs, x.without) == (y.jobs, y.without)


def holds(amounts: Amounts) -> None:
    for _name, h in amounts.items():
        assert min(h.asked, h.measured, h.used, h.reclaimable, h.by_default) >= 0
        assert h.used + h.reclaimable + h.by_default <= h.measured + 1e-6
        assert h.measured <= h.asked + 1e-6
        assert h.without <= h.jobs


_known = st.floats(0, 70)
_rows = st.lists(
    st.fixed_dictionaries(
        {
            "user": st.sampled_from(["alice", "bob", "carol", None]),
            "account": st.sampled_from(["vision", "bio", None]),
            "partition": st.sampled_from(["gpu", "h100", "cpu"]),
            "state": st.sampled_from(["COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY"]),
            "final": st.booleans(),
            "after": st.floats(-30, 230),
            "hours": st.floats(0, 60),
            "gpus_alloc": st.sampled_from([None, 0.0, 1.0, 4.0]),
            "gpus_seen": st.sampled_from([None, 1.0, 2.0, 4.0]),
            "gpus_used": st.sampled_from([None, 0.0, 1.0, 4.0]),
            "gpu_util_mean": st.one_of(st.none(), st.floats(0, 1)),
            "mem_peak_bytes": st.one_of(st.none(), _known.map(lambda v: v * GIB)),
            "mem_at_least": st.booleans(),
            "mem_asked_by": st.sampled_from(["user", "default", None]),
            "cpu_s": st.one_of(st.none(), st.floats(0, 4e6)),
            "cpu_quality": st.sampled_from(["ok", "unknown", "too_low"]),
            "limit_s": st.sampled_from([None, 3600.0, 400000.0]),
        }
    ),
    max_size=12,
)


@settings(max_examples=25, deadline=None)
@given(_rows, st.integers(1, 3))
def test_sums_are_conserved_however_they_are_cut(rows: list[dict[str, Any]], top: int) -> None:
    found = uses([use(n, **row) for n, row in enumerate(rows, 1)])
    answer = review(None, found, top=top, idle_hours=None)  # type: ignore[arg-type]  # no lake is read
    holds(answer.total)
    for groups in answer.groups.values():
        assert len(groups) <= top + 1
        for group in groups:
            holds(group.amounts)
        same(total([g.amounts for g in groups]), answer.total)
        assert sum(g.jobs for g in groups) == answer.jobs
    for period in answer.trend:
        holds(period.amounts)
    same(total([p.amounts for p in answer.trend]), answer.total, jobs=False)
    json.dumps(answer.as_json(), allow_nan=False)
    overrequest_lines(answer, "UTC")


@settings(max_examples=15, deadline=None)
@given(_rows)
def test_saved_is_what_the_total_calls_reclaimable(rows: list[dict[str, Any]]) -> None:
    found = uses([use(n, **row) for n, row in enumerate(rows, 1)])
    answer = review(None, found, idle_hours=None)  # type: ignore[arg-type]
    saved = [p.saved for p in answer.proposals.items]
    assert sum(s.gpu_hours for s in saved) == pytest.approx(answer.total.gpu.reclaimable)
    assert sum(s.core_hours for s in saved) == pytest.approx(answer.total.core.reclaimable)
    memory = answer.total.memory
    assert sum(s.memory_gib_hours for s in saved) == pytest.approx(memory.reclaimable + memory.by_default)


def test_hours_of_a_plain_job(lake: Lake) -> None:
    h = review(lake, uses([use(n) for n in range(1, 11)])).total
    assert (h.gpu.asked, h.core.asked, h.memory.asked, h.limit.asked) == pytest.approx((80, 320, 1280, 240))
    assert (h.gpu.used, h.core.used, h.memory.used, h.limit.used) == pytest.approx((72, 80, 160, 20))
    assert (h.core.reclaimable, h.memory.reclaimable) == pytest.approx((240, 1120))


def test_running_and_unmeasured_jobs_are_without_data(lake: Lake) -> None:
    running = use(1, end=None, final=False, state="RUNNING", elapsed_s=3600.0, after=239.0)
    blind = use(2, gpus_seen=None, gpus_used=None, gpu_util_mean=None, cpu_quality="unknown", cpu_s=None, mem_peak_bytes=None)
    answer = review(lake, uses([running, blind, use(3)]))
    assert (answer.total.gpu.jobs, answer.total.gpu.without) == (3, 2)
    assert answer.total.gpu.asked == pytest.approx(4 * (1 + 2 + 2))
    assert answer.total.gpu.measured == pytest.approx(8)
    assert any("1 attempts still run" in n for n in answer.notes)


def test_what_the_sites_default_set_is_apart(lake: Lake) -> None:
    answer = review(lake, uses([use(n, mem_asked_by="default") for n in range(1, 9)]))
    assert answer.total.memory.reclaimable == 0
    assert answer.total.memory.by_default == pytest.approx(8 * 2 * 56)
    assert any("default" in n for n in answer.notes)
    text = messages(answer)[0].text
    assert "the default that we set ourselves" in text
    assert "Memory: asked for" not in text


def test_nothing_measured_says_what_to_collect(lake: Lake) -> None:
    blind = {"gpus_seen": None, "gpus_used": None, "gpu_util_mean": None, "cpu_quality": "unknown", "cpu_s": None, "mem_peak_bytes": None}
    answer = review(lake, uses([use(n, **blind) for n in range(1, 9)]))
    assert answer.status == "nothing_measured"
    text = "\n".join(overrequest_lines(answer, "UTC"))
    assert "docs/usage.md" in text
    assert answer.as_json()["total"]["gpu_hours"]["used"] is None
    empty = review(lake, uses([]))
    assert empty.status == "no_jobs"
    assert "--since" in "\n".join(overrequest_lines(empty, "UTC"))


def test_others_are_sums_only_for_a_viewer_without_rights(lake: Lake) -> None:
    answer = review(lake, some(), viewer=Viewer("alice", sees_all=False), idle_hours=None)
    same(answer.total, review(lake, some()).total)
    assert [g.name for g in answer.groups["user"]] == ["alice", None]
    assert answer.groups["user"][1].rest == 2
    assert all(g.name is None or g.name.startswith("alice/") for g in answer.groups["kind"])
    assert {g.name for g in answer.groups["account"]} == {"vision", "bio"}
    text = json.dumps(answer.as_json()) + "\n".join(overrequest_lines(answer, "UTC")) + parsable(answer)
    text += groups_csv(answer).decode() + proposals_csv(answer).decode() + "".join(m.user for m in messages(answer))
    assert "bob" not in text
    assert "carol" not in text
    with pytest.raises(NotPermitted):
        review(lake, some(), viewer=Viewer("alice", sees_all=False), user="bob")
    assert review(lake, some(), viewer=Viewer("alice", sees_all=False), user="ALICE").jobs > 0


def test_an_account_of_few_others_is_hidden(lake: Lake) -> None:
    found = uses([use(n, user="bob", account="secret") for n in range(1, 9)] + [use(9)])
    names = [g.name for g in review(lake, found, viewer=Viewer("alice", sees_all=False)).groups["account"]]
    assert names == ["vision", None]
    with pytest.raises(NotPermitted):
        review(lake, found, viewer=Viewer("alice", sees_all=False), account="secret")
    assert review(lake, found, viewer=Viewer("alice", sees_all=False), account="vision").jobs == 1


def test_filters(lake: Lake) -> None:
    answer = review(lake, some(), user="bob", account="BIO", partition="gpu")
    assert {p.kind.user for p in answer.proposals.items} <= {"bob"}
    assert answer.filters == {"user": "bob", "account": "BIO", "partition": "gpu"}
    assert review(lake, some(), partition="none").status == "no_jobs"


@pytest.mark.parametrize("more", [{"by": ("group",)}, {"risk": 0.0}, {"risk": 0.9}, {"since": AT}, {"top": 0}])
def test_impossible_questions(lake: Lake, more: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        review(lake, some(), **more)


def test_a_long_window_is_told_by_week(lake: Lake) -> None:
    found = uses([use(n, after=24.0 * n) for n in range(1, 60)], at=SINCE + timedelta(days=60))
    answer = review(lake, found, at=SINCE + timedelta(days=60))
    assert answer.trend_step == "week"
    assert answer.trend[0].begin == SINCE
    assert all(a.end == b.begin for a, b in zip(answer.trend, answer.trend[1:], strict=False))
    same(total([p.amounts for p in answer.trend]), answer.total, jobs=False)


def test_hostile_names_harm_neither_terminal_nor_table_nor_message(lake: Lake) -> None:
    found = uses(
        [use(n, name=EVIL, user="=mal|lory\x1b", account=EVIL, partition="gpu", submit_line="sbatch '=x\x1b.sh'") for n in range(1, 9)]
    )
    answer = replace(review(lake, found), idle=(idle_job(user="=mal|lory\x1b"),))
    lines = overrequest_lines(answer, "UTC")
    assert all(line.isprintable() for line in lines)
    rows = parsable(answer).split("\n")
    assert {len(r.split("|")) for r in rows} == {len(FIELDS)}
    one = messages(answer)[0]
    assert all(c.isprintable() or c == "\n" for c in one.text + one.subject)
    assert "scancel 7" in one.text
    for data in (groups_csv(answer), proposals_csv(answer)):
        read = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))
        assert len({len(r) for r in read}) == 1
        assert not any(cell.startswith(STARTS) for row in read for cell in row)


@given(st.text())
def test_no_text_is_taken_for_a_formula(text: str) -> None:
    read = list(csv.reader(io.StringIO(to_csv(["a"], [[text]]).decode("utf-8-sig"), newline="")))
    cell = read[1][0] if len(read) > 1 and read[1] else ""
    assert not cell.lstrip(" \t\r\n\x00\ufeff\u200b\u00a0").startswith(("=", "+", "-", "@", "＝", "＋", "－", "＠"))
    assert str(safe_cell(text)).endswith(text)


@given(st.lists(st.text(min_size=1), max_size=8))
def test_file_names_are_plain_and_different(users: list[str]) -> None:
    taken: set[str] = set()
    for user in users:
        name = file_name(user, taken)
        assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*\.txt", name)
        assert name.casefold() not in taken
        taken.add(name.casefold())


def test_both_languages_have_the_same_texts() -> None:
    english, chinese = (load_texts(lang) for lang in LANGUAGES)
    assert english.keys() == chinese.keys()
    for name, text in english.items():
        fields = [{f for _t, f, _s, _c in string.Formatter().parse(t) if f} for t in (text, chinese[name])]
        assert fields[0] == fields[1], name
    with pytest.raises(UsageError):
        load_texts("../en")


@pytest.mark.parametrize("language", LANGUAGES)
def test_messages_speak_of_idle_gpus_and_of_generated_figures(lake: Lake, language: str, tmp_path: Path) -> None:
    found = uses([use(n, generated=True) for n in range(1, 9)])
    jobs = (idle_job(), idle_job(user="dave", job_id_text="9_1", name="x"))
    told = messages(replace(review(lake, found), idle=jobs), language, "Europe/Berlin")
    assert [m.user for m in told] == ["alice", "dave"]
    assert "--mem=8G" in told[0].text
    assert "scancel 9_1" in told[1].text
    assert "2026-06-10 21:00" in told[1].text  # the idle time in the viewer's zone
    texts = load_texts(language)
    assert texts["generated"] in told[0].text
    assert texts["generated"] not in told[1].text
    kept = tmp_path / "kept"
    kept.write_text("safe")
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "alice.txt").symlink_to(kept)
    paths = write_messages(told, folder)
    assert [p.name for p in paths] == ["alice.txt", "dave.txt"]
    assert kept.read_text() == "safe"
    assert told[0].text in paths[0].read_text(encoding="utf-8")
    with pytest.raises(UsageError):
        write_messages(told, kept)


def test_a_message_says_so_where_more_is_needed(lake: Lake) -> None:
    found = uses([use(n, state="OUT_OF_MEMORY") for n in range(1, 9)])
    sizes = FakeSizes(found, bounds={"memory": 90.0 * GIB, "cpus": None, "time": None}, needs_more=("memory",))
    answer = review(lake, found, sizes=sizes)
    one = messages(answer)[0]
    assert "90 GiB instead of 64 GiB" in one.text
    assert "more than they ask for" in one.subject
    assert any("MORE needed" in line for line in overrequest_lines(answer, "UTC"))


def test_bars_and_sparks() -> None:
    assert bar(0.5, 4) == "━━──"
    assert bar(None, 3) == "···"
    assert spark([0.0, None, 1.0]) == "▁·█"


def test_the_wait_model_tells_the_change(lake: Lake, tmp_path: Path) -> None:
    from tests.unit.synthetic import NOW, job_rows, make_lake

    from queuecast.answers.forecast import Forecaster

    found = uses([use(n, gpus_used=1.0, gpu_util_mean=0.2) for n in range(1, 9)])
    items = review(lake, found).proposals.items
    told = with_waits(Forecaster(make_lake(tmp_path / "lake", job_rows(600))), items, NOW)
    assert told[0].wait is not None
    assert told[0].wait.how == "model"
    assert told[0].wait.before_s is not None
    answer = review(lake, found)
    shown = replace(answer, proposals=replace(answer.proposals, items=told))
    assert any("median wait now" in line for line in overrequest_lines(shown, "UTC"))
