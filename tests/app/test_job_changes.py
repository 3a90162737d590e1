"""The block of small changes on the page of a job: found at a click, said where there is none, hidden where it makes no sense."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from madelake import ENDED, HELD, PENDING, STARTED
from streamlit.testing.v1 import AppTest
from test_wait_page import texts

Opener = Callable[..., AppTest]


def look(app: AppTest) -> AppTest:
    app.button(key="look_changes").click()
    app.run()
    assert not app.exception, [e.message for e in app.exception]
    return app


def test_a_click_finds_changes_or_says_that_there_are_none(open_app: Opener, campus: Path) -> None:
    app = open_app(campus, "job", job=str(PENDING))
    assert "What would change that" in [s.value for s in app.subheader]
    shown = texts(look(app))
    assert ("sbatch" in " ".join(c.value for c in app.code) or "scontrol update" in " ".join(c.value for c in app.code)) or (
        "none would matter" in shown
    )
    again = app.run()
    assert not [b for b in again.button if b.key == "look_changes"]  # kept for this job and moment


def test_a_limit_says_what_it_has_room_for(open_app: Opener, campus: Path) -> None:
    shown = texts(look(open_app(campus, "job", job="9010")))
    assert "QOSMaxGRESPerUser" in shown


def test_a_held_job_is_told_to_be_released_first(open_app: Opener, campus: Path) -> None:
    assert "before that is over" in texts(look(open_app(campus, "job", job=str(HELD))))


@pytest.mark.parametrize("job", [STARTED, ENDED])
def test_a_job_that_does_not_wait_has_no_such_block(open_app: Opener, campus: Path, job: int) -> None:
    assert "What would change that" not in [s.value for s in open_app(campus, "job", job=str(job)).subheader]
