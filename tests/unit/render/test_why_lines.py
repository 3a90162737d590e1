"""Why a job waits, as text: every part is there, times are the reader's, hostile words are harmless, lines keep the width."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecast.answers.explaining.binding import Binding, Constraint
from queuecast.answers.explaining.explain import WhyAnswer
from queuecast.answers.explaining.history import Event
from queuecast.answers.explaining.priority import Priority, PriorityPart
from queuecast.answers.explaining.queue import Ahead, AheadOf
from queuecast.answers.explaining.release import Release
from queuecast.answers.lookup import KnownJob
from queuecast.policy.request import Request
from queuecast.reasons import explain_reason
from queuecast.render.why import release_words, why_lines

AT = datetime(2026, 6, 10, 12, tzinfo=UTC)
H = timedelta(hours=1)
HOSTILE = "\x1b[31mred\x07\u202e"

FREE = Release("gres/gpu", 4, 1, "812", AT + 2 * H, AT + 3 * H, AT + 5 * H, 42)
LIMIT = Constraint("QOSGrpGRES", "waits", "the text", "the fix for <jobid>", "QOS normal", "gres/gpu", 32, 4, 32, FREE)
LINE = Constraint("Priority", "waits", "3 stand above it", "wait")


def known(**more: Any) -> KnownJob:
    base: dict[str, Any] = dict.fromkeys(KnownJob.__dataclass_fields__)
    request = Request(partitions=("gpu",), gpus=4, gpu_type="a100", limit_s=3600)
    base |= {
        "job_id": 71,
        "text": "71",
        "user": "ana",
        "request": request,
        "state": "PENDING",
        "submit": AT - 2 * H,
        "eligible": AT - 2 * H,
    }
    return KnownJob(**(base | {"seen_at": AT, "array_tasks": 1} | more))


def answer(**more: Any) -> WhyAnswer:
    ahead = Ahead((AheadOf("bio", 2, 5, 20, 240.0), AheadOf("nlp", 1, 1, None, None)), 7, 3)
    found = Binding((LIMIT, LINE), ahead, "same", "")
    parts = (PriorityPart("fairshare", 3000, 10000), PriorityPart("age", 100, 1000))
    events = (
        Event("submitted", AT - 2 * H, "submitted"),
        Event("reason", AT - H, "No more GPUs (QOSGrpGRES)", False, AT - 1.5 * H, AT),
        Event("estimate", AT - H, "old words", False, AT - 1.5 * H, None, AT + 4 * H),
    )
    base = WhyAnswer(
        "toy", AT, known(), True, explain_reason("QOSGrpGRES"), "QOSGrpGRES", (), events, AT, found,
        Priority(AT, "gpu", 3100, parts, 0.3, ("Age adds 250 in 6 h.",)), ("sshare was not read",),
    )  # fmt: skip
    return replace(base, **more)


def text(given_answer: WhyAnswer, zone: str = "UTC", width: int = 100) -> str:
    return "\n".join(why_lines(given_answer, zone, width))


PARTS = (
    "(QOSGrpGRES): waits",
    "the text",
    "4 GPUs come free when job 812 ends, expected today 14:00 to today 15:00",
    "(8 in 10 of 42 like jobs; by the limit: today 17:00)",
    "the fix for 71",
    "(Priority): 3 stand above it",
    "3 more stand above it but are held by limits; 7 are for other nodes",
    "unknown sshare was not read",
    "priority 3100",
    "of 10000 97 %",
    "Age adds 250",
    "up to 30 min earlier",
    "seen until today 12:00",
)


@pytest.mark.parametrize("words", PARTS)
def test_every_part_is_there(words: str) -> None:
    assert words in " ".join(text(answer()).split())


def test_unknown_sums_are_a_dash_and_not_zero() -> None:
    rows = {line.split()[0]: line.split()[1:] for line in why_lines(answer(), "UTC") if line.startswith(("  bio", "  nlp", "  all"))}
    assert rows == {"bio": ["2", "5", "20", "240"], "nlp": ["1", "1", "–", "–"], "all": ["3", "6", "–", "–"]}


def test_a_viewer_who_sees_no_accounts_gets_one_sum() -> None:
    found = answer().binding
    assert found is not None
    shown = text(answer(binding=replace(found, ahead=Ahead((AheadOf(None, 3, 6, 24, 300.0),), 0, 0))))
    assert [line.split() for line in shown.splitlines() if line.startswith("  all")] == [["all", "3", "6", "24", "300"]]
    assert "held by limits" not in shown


def test_times_are_the_readers() -> None:
    shown = text(answer(), "Asia/Tokyo")
    assert "expected today 23:00 to tomorrow 00:00" in shown
    assert "Slurm expects the start tomorrow 01:00" in shown
    assert "old words" not in shown


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"job": None}, "4 GPUs come free when a job ends,"),
        ({"amount": 1}, "1 GPU comes free when"),
        ({"tres": "gres/gpu:a100"}, "4 a100 GPUs come free when"),
        ({"jobs": 3}, "when 3 jobs end,"),
        ({"tres": "jobs", "amount": 1}, "room for 1 more job when"),
        ({"tres": "mem", "amount": 64 << 30}, "64G of memory come free"),
        ({"latest": None}, "a time limit is missing, so when is not known"),
        ({"like": 0}, "by time limits alone"),
    ],
)
def test_what_comes_free_in_words(change: dict[str, Any], words: str) -> None:
    assert words in release_words(replace(FREE, **change), lambda t: f"{t:%H:%M}" if t else "–")


@pytest.mark.parametrize(("standing", "words"), [("never", "never starts as it is"), ("held", "held until"), ("unchecked", "Slurm's word")])
def test_how_it_stands(standing: Any, words: str) -> None:
    found = answer().binding
    assert found is not None
    assert words in text(answer(binding=replace(found, constraints=(replace(LIMIT, standing=standing),))))


def test_without_a_snapshot_slurms_reason_is_explained() -> None:
    shown = text(answer(binding=None))
    assert explain_reason("QOSGrpGRES").title in shown
    assert "to do" in shown


def test_a_difference_from_slurm_is_said() -> None:
    found = answer().binding
    assert found is not None
    assert "Slurm    Slurm shows Priority" in text(answer(binding=replace(found, agreement="differs", explained="Slurm shows Priority.")))


def test_hostile_words_do_nothing_to_a_terminal() -> None:
    event = Event("node", AT, f"node n1: DOWN ({HOSTILE})")
    bad = replace(LIMIT, text=HOSTILE, release=replace(FREE, job=HOSTILE))
    found = Binding((bad,), Ahead((AheadOf(HOSTILE, 1, 1, 1, 1.0),), 0, 0), "same", "")
    shown = text(answer(events=(event,), binding=found, reason_text=HOSTILE, job=known(text=HOSTILE)))
    assert all(c == "\n" or c.isprintable() for c in shown)


@given(st.integers(60, 110), st.lists(st.text(min_size=1, max_size=200), max_size=4))
def test_lines_keep_the_width(width: int, words: list[str]) -> None:
    events = tuple(Event("node", AT, w) for w in words)
    shown = why_lines(answer(events=events, unknown=tuple(words)), "UTC", width)
    assert max(len(line) for line in shown) <= width


def test_a_long_story_is_cut_and_says_so() -> None:
    events = tuple(Event("reason", AT - i * H, f"r{i}", False) for i in range(40))
    shown = text(answer(events=events))
    assert "16 earlier ones" in shown
    assert "r39" in shown
    assert "r0," not in shown
