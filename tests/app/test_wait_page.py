"""The page that answers how long a job will wait."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from madelake import ENDED, FORGOTTEN, HELD, HOSTILE, HOSTILE_JOB, NEVER, NEWEST, NOT_ELIGIBLE, PENDING, STARTED, build_lake
from streamlit.testing.v1 import AppTest

from queuecast import clock
from queuecast.answers.scoring import predictions_of
from queuecast.store.lake import Lake

Opener = Callable[..., AppTest]
REQUEST = {"partition": "gpu", "gpu_type": "a100", "gpus": "4", "time": "1-00:00:00"}


def texts(app: AppTest) -> str:
    """All that the page says, without labels of widgets."""
    kinds = (app.markdown, app.text, app.caption, app.warning, app.info, app.error, app.code, app.header, app.metric)
    return "\n".join(str(e.value) for kind in kinds for e in kind)


def test_an_empty_page_says_what_to_do(open_app: Opener, campus: Path) -> None:
    app = open_app(campus)
    assert "Say what you would ask for" in texts(app)
    assert not app.metric
    assert "made-up users" in texts(app)


def test_a_link_reproduces_the_question(open_app: Opener, campus: Path) -> None:
    app = open_app(campus, **REQUEST, cpus="32", qos="normal")
    assert app.multiselect(key="partition").value == ["gpu"]
    assert app.selectbox(key="gpu_type").value == "a100"
    assert app.number_input(key="gpus").value == 4
    assert app.number_input(key="cpus").value == 32
    assert [m.label for m in app.metric] == ["within 1 h", "within 4 h", "within 24 h"]
    shares = [float(m.value.strip("<> %")) for m in app.metric]
    assert shares == sorted(shares)
    assert 0 < shares[0] < 60
    assert "8 in 10 like this start between" in texts(app)
    assert "4 × a100" in texts(app)


def test_the_form_writes_the_link(open_app: Opener, campus: Path) -> None:
    app = open_app(campus)
    app.multiselect(key="partition").set_value(["gpu"])
    app.selectbox(key="gpu_type").set_value("v100")
    app.number_input(key="gpus").set_value(2)
    app.text_input(key="time").set_value("12:00:00")
    app.button(key="ask").click().run()
    link = {k: v[0] if isinstance(v, list) else v for k, v in dict(app.query_params).items()}
    assert link == {"partition": "gpu", "gpu_type": "v100", "gpus": "2", "time": "12:00:00"}
    first = texts(app)
    assert "2 × v100" in first
    assert texts(open_app(campus, **link)) == first


def test_the_answer_tells_what_it_rests_on(open_app: Opener, campus: Path) -> None:
    said = texts(open_app(campus, **REQUEST))
    assert "with the same partition" in said
    assert "off by **3 h**" in said  # every recorded estimate was three hours late
    assert "Each dot is one of the last 60" in said
    assert "Not measured yet" in said
    assert "asked as of" in said


@pytest.mark.parametrize(
    ("job", "said", "forecast"),
    [
        (HELD, "On hold", False),
        (NEVER, "does not start as it is", False),
        (NOT_ELIGIBLE, "Not in the race yet", True),
        (STARTED, "It has started", False),
        (ENDED, "It has ended", False),
        (PENDING, "8 in 10 like this start", True),
    ],
)
def test_each_status_has_its_own_face(open_app: Opener, campus: Path, job: int, said: str, forecast: bool) -> None:
    app = open_app(campus, job=str(job))
    assert said in texts(app)
    assert bool(app.metric) is forecast
    assert app.text_input(key="job").value == str(job)


def test_a_waiting_job_gets_reason_and_steps(open_app: Opener, campus: Path) -> None:
    said = texts(open_app(campus, job=str(PENDING)))
    assert "Why it waits: Not enough free right now" in said
    assert "Nothing to do: just wait." in said
    assert "It expects the start **Wed 10 Jun 2026 18:00**" in said or "It expects the start **Wed 10 Jun 18:00**" in said
    assert "2 h 30 min" in said


def test_a_job_that_waits_longer_than_history_reaches(open_app: Opener, campus: Path) -> None:
    """No chance is shown as small where it is unknown."""
    app = open_app(campus, job=str(FORGOTTEN))
    assert "It has waited longer than history reaches" in texts(app)
    assert [(m.label, m.value) for m in app.metric] == [("has waited", "25 d")]
    assert "%" not in "".join(m.value for m in app.metric)


def test_no_history(open_app: Opener, two_clusters: Path) -> None:
    app = open_app(two_clusters, cluster="annex", gpus="1")
    assert "No like job has started yet" in texts(app)
    assert app.selectbox[0].value == "annex"


def test_an_unknown_cluster_in_a_link(open_app: Opener, two_clusters: Path) -> None:
    said = texts(open_app(two_clusters, cluster="nowhere"))
    assert "Cluster nowhere is not in this lake" in said
    assert "annex, campus" in said


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ({"partition": "nope"}, "There is no partition nope"),
        ({"time": "soon"}, "--time=soon is not a time limit"),
        ({"gpus": "many"}, "The number of GPUs cannot be many"),
        ({"gpus": "99999999999999999999"}, "The number of GPUs cannot be 9"),
        ({"gpu_type": "h900", "gpus": "1"}, "No node has GPUs of type h900"),
        ({"job": "12 or 1=1"}, "is not a job id"),
        ({"job": "424242"}, "Job 424242 is not known"),
        ({"gpus": "1", "at": "yesterday-ish"}, "Not a time"),
        ({"gpus": "1", "at": "0001-01-01"}, "cannot be asked about"),
        ({"gpus": "1", "at": "2999-01-01"}, "cannot be asked about"),
    ],
)
def test_a_mistake_is_told_with_what_to_do(open_app: Opener, campus: Path, link: dict[str, str], said: str) -> None:
    app = open_app(campus, **link)
    assert said in "\n".join(t.value for t in app.text)
    assert "What to do:" in texts(app)
    assert not app.metric
    assert app.button(key="ask") is not None


def test_hostile_text_is_never_markdown(open_app: Opener, campus: Path) -> None:
    """F: what a link or Slurm brings is shown, not run."""
    for link in ({"partition": HOSTILE}, {"account": HOSTILE}, {"gpu_type": HOSTILE}, {"job": HOSTILE}):
        app = open_app(campus, **link)
        marked = "\n".join(str(e.value) for kind in (app.markdown, app.caption, app.error, app.info, app.warning) for e in kind)
        assert "<script" not in marked
        assert "](javascript" not in marked
        assert not any(m.allow_html for m in app.markdown)
    said = texts(open_app(campus, job=str(HOSTILE_JOB)))
    assert "Other jobs come first" in said


def test_a_past_moment_in_a_link(open_app: Opener, campus: Path) -> None:
    """At that time the job did not run yet: the answer is a forecast, not what came later."""
    early = NEWEST - timedelta(hours=4, minutes=30)
    app = open_app(campus, job=str(STARTED), at=f"{early:%Y-%m-%dT%H:%MZ}")
    assert "It has started" not in texts(app)
    assert len(app.metric) >= 3
    assert app.datetime_input(key="at").value.hour == early.hour


def test_stale_data_are_said_to_be_stale(open_app: Opener, campus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", lambda: NEWEST + timedelta(hours=5))
    app = open_app(campus, **REQUEST)
    assert any("The data are old" in w.value and "5 h" in w.value for w in app.warning)
    monkeypatch.setattr(clock, "now", lambda: NEWEST + timedelta(minutes=5))
    assert not open_app(campus, **REQUEST).warning


def test_a_recording_is_asked_at_its_end(open_app: Opener, campus: Path) -> None:
    app = open_app(campus, **REQUEST)
    assert not app.warning
    assert "A recording that ends" in texts(app)


def test_no_lake_and_an_empty_lake(open_app: Opener, tmp_path: Path) -> None:
    for page in ("wait", "queue"):
        for lake in (None, tmp_path / "none"):
            app = open_app(lake, page)
            assert "There is no data folder yet" in texts(app)
            assert any("collect" in c.value for c in app.code)
        empty = tmp_path / f"empty-{page}"
        with Lake.open(empty, create=True).transaction("test"):
            pass
        assert "The lake is empty" in texts(open_app(empty, page))


def test_only_ones_own_jobs(open_app: Opener, campus: Path) -> None:
    said = texts(open_app(campus, sees="own", user="tomas", job=str(PENDING)))
    assert f"Job {PENDING} is not yours" in said


def test_a_damaged_lake_is_told(open_app: Opener, tmp_path: Path) -> None:
    lake = build_lake(tmp_path / "lake")
    for file in lake.manifest.files:
        (lake.path / file.path).unlink()
    said = texts(open_app(lake.path, **REQUEST))
    assert "No answer from here" in said
    assert "queuecast rebuild" in said


def test_the_language_of_the_link(open_app: Opener, campus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``?lang=`` reaches the texts: a catalogue that shouts stands in for a translation."""
    from queuecast import i18n

    def shout(text: str) -> str:
        return re.sub(r"\{\w+\}|[^{}]+", lambda m: m[0] if m[0].startswith("{") else m[0].upper(), text)

    loud: Any = SimpleNamespace(gettext=shout, ngettext=lambda one, many, n: one if n == 1 else many)
    quiet = i18n._catalogue
    monkeypatch.setattr(i18n, "_catalogue", lambda: loud if i18n.get_language() == "zh_CN" else quiet())
    assert open_app(campus, lang="zh").header[0].value == "HOW LONG WILL IT WAIT?"
    assert open_app(campus).header[0].value == "How long will it wait?"


def test_answers_about_now_are_kept_once_a_question(
    open_app: Opener, campus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = tmp_path / "lake"
    shutil.copytree(campus, lake, ignore=shutil.ignore_patterns("predictions.sqlite*"))
    log = predictions_of(Lake.open(lake))
    monkeypatch.setattr(clock, "now", lambda: NEWEST + timedelta(minutes=2))
    app = open_app(lake, job=str(PENDING))
    app.run()  # a redrawing asks nothing anew
    assert [p.job_id for p in log.unscored("campus")] == [PENDING]
    open_app(lake, job=str(PENDING), at=(NEWEST - timedelta(hours=4)).strftime("%Y-%m-%dT%H:%MZ"))
    assert len(log.unscored("campus")) == 1, "the outcome of a past moment is known: it proves nothing"
