"""The page of one job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from madelake import ENDED, HELD, HOSTILE_JOB, NOT_ELIGIBLE, PENDING, STARTED
from streamlit.testing.v1 import AppTest
from test_wait_page import texts

Opener = Callable[..., AppTest]


def test_without_a_job_it_says_what_to_do(open_app: Opener, campus: Path) -> None:
    app = open_app(campus, "job")
    assert "Name a job" in texts(app)


def test_a_link_opens_the_job(open_app: Opener, campus: Path) -> None:
    app = open_app(campus, "job", job=str(PENDING))
    assert app.text_input(key="which").value == str(PENDING)
    shown = texts(app)
    assert f"Job {PENDING}" in shown
    assert "Resources" in shown or "Priority" in shown
    assert "Who is ahead" in " ".join(s.value for s in app.subheader)
    events = next(d.value for d in app.dataframe if "what" in d.value.columns)
    assert "submitted" in events["what"].tolist()


@pytest.mark.parametrize(("job", "words"), [(HELD, "JobHeldUser"), (NOT_ELIGIBLE, "Dependency"), (9010, "QOSMaxGRESPerUser")])
def test_each_kind_of_wait_is_first(open_app: Opener, campus: Path, job: int, words: str) -> None:
    assert words in texts(open_app(campus, "job", job=str(job)))


@pytest.mark.parametrize("job", [STARTED, ENDED])
def test_jobs_that_do_not_wait_have_a_story_only(open_app: Opener, campus: Path, job: int) -> None:
    app = open_app(campus, "job", job=str(job))
    assert [s.value for s in app.subheader][-1] == "What happened so far"
    assert "started" in next(d.value for d in app.dataframe if "what" in d.value.columns)["what"].tolist()


def test_hostile_text_is_not_markup(open_app: Opener, campus: Path) -> None:
    assert "<script" not in texts(open_app(campus, "job", job=str(HOSTILE_JOB)))
    typed = open_app(campus, "job", job="<script>alert(1)</script>")
    assert "is not a job id" in texts(typed)
    assert not any("<script" in m.value for m in typed.markdown)


def test_an_unknown_job_and_another_ones_job(open_app: Opener, campus: Path) -> None:
    assert "not known" in texts(open_app(campus, "job", job="424242"))
    assert "not yours" in texts(open_app(campus, "job", job=str(PENDING), sees="own", user="ines"))
