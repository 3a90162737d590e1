"""``queuecast failed``: text, JSON, fields, and questions that cannot be asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from tests.unit.answers.test_failure_answer import many
from tests.unit.synthetic import NOW, make_lake
from typer.testing import CliRunner

from queuecast.cli.failed import failed
from queuecast.errors import UsageError

AT = NOW.strftime("%Y-%m-%dT%H:%M:%SZ")
APP = typer.Typer()
APP.command()(failed)


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("QUEUECAST_LAKE", str(make_lake(tmp_path / "lake", many()).path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")


def run(*words: str) -> str:
    result = CliRunner().invoke(APP, [*words, "--at", AT], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_one_job_as_text_json_and_fields() -> None:
    text = run("4")
    assert "Something it needs was not there (environment)" in text
    assert "1. A command of the script is not found" in text
    assert json.loads(run("4", "--json"))["class"] == "environment"
    assert run("4", "-P").splitlines()[1].startswith("4|failed|environment|0.")


def test_the_table_as_text_json_and_fields() -> None:
    text = run("--since", "2d")
    assert "6 of 7 ended attempts did not complete" in text
    assert "g1: 1 of 1 job died" in text
    plain = json.loads(run("--since", "2d", "--json"))
    assert (plain["ended"], plain["failed"], len(plain["jobs"])) == (7, 6, 6)
    assert len(run("--since", "2d", "-P").splitlines()) == 7
    assert json.loads(run("--since", "2d", "--of", "bob", "--json"))["failed"] == 2


def test_a_named_log_is_read_and_none_with_no_logs(tmp_path: Path) -> None:
    log = tmp_path / "e.log"
    log.write_text("torch.OutOfMemoryError: CUDA out of memory.\n")
    assert json.loads(run("1", "--log", str(log), "--json"))["class"] == "oom_gpu"
    assert json.loads(run("1", "--no-logs", "--json"))["logs"] is None


@pytest.mark.parametrize(
    "words", [(), ("1", "--since", "7d"), ("1", "--log", "a", "--no-logs"), ("--since", "7d", "--log", "a"), ("--since", "2099-01-01")]
)
def test_what_cannot_be_asked_is_said(words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError) as error:
        CliRunner().invoke(APP, [*words, "--at", AT], catch_exceptions=False)
    assert error.value.hint


def test_where_people_see_their_own_only_others_jobs_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from queuecast.errors import NotPermitted

    monkeypatch.setattr("queuecast.cli.common.login_user", lambda: "alice")
    monkeypatch.setenv("QUEUECAST_PRIVACY", "own")
    assert json.loads(run("--since", "2d", "--json"))["own"] is True
    with pytest.raises(NotPermitted):
        CliRunner().invoke(APP, ["2", "--at", AT, "-u", "bob"], catch_exceptions=False)
