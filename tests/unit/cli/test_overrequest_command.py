"""``queuecast overrequest``: flags, files and refusals. The answer itself is tested beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.unit.answers.made_uses import AT, FakeSizes, use, uses
from tests.unit.synthetic import job_rows, make_lake
from typer.testing import CliRunner

from queuecast.answers.rightsizing import rightsize
from queuecast.cli.overrequest import _since, overrequest
from queuecast.errors import NotPermitted, UsageError

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(overrequest)


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    found = uses([use(n) for n in range(1, 9)])
    monkeypatch.setenv("QUEUECAST_CONFIG", str(tmp_path / "config.toml"))
    (tmp_path / "config.toml").write_text('zone = "UTC"\n')
    monkeypatch.setattr(rightsize, "uses_at", lambda *_a: found)
    monkeypatch.setattr(rightsize, "sizes_at", lambda *_a: FakeSizes(found))
    make_lake(tmp_path / "lake", job_rows(60))
    return str(tmp_path / "lake")


def run(lake: str, *args: str) -> Any:
    return CliRunner().invoke(app, ["--lake", lake, "--at", "2026-06-11T00:00", "--since", "10d", *args])


def test_text_json_and_fields(lake: str) -> None:
    text = run(lake)
    assert text.exit_code == 0, text.output
    assert "--mem=8G" in text.output
    answer = json.loads(run(lake, "--json", "--by", "account,kind").output)
    assert set(answer["groups"]) == {"account", "kind"}
    assert answer["since"] == "2026-06-01T00:00:00Z"
    assert run(lake, "-P").output.startswith("by|name|")


def test_files(lake: str, tmp_path: Path) -> None:
    done = run(lake, "--csv", str(tmp_path / "a.csv"), "--messages", str(tmp_path / "out"), "--language", "zh")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "a-proposals.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    assert "alice，您好" in (tmp_path / "out" / "alice.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "args", [("--by", "colour"), ("--language", "fr"), ("--risk", "2"), ("--waits", "oracle"), ("--csv", "/nowhere/a.csv"), ("-M", "other")]
)
def test_what_cannot_be_done_is_said(lake: str, args: tuple[str, ...]) -> None:
    assert isinstance(run(lake, *args).exception, UsageError)


def test_another_users_jobs_are_not_shown_where_only_own_are(lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUEUECAST_PRIVACY", "own")
    monkeypatch.setattr("queuecast.cli.common.login_user", lambda: "bob")
    assert isinstance(run(lake, "-u", "alice").exception, NotPermitted)
    assert "alice" not in run(lake, "--json").output


def test_since_counts_back_from_the_moment_asked_about() -> None:
    assert (AT - _since("7d", AT, "UTC")).days == 7
    assert _since("2026-06-01T10:00Z", AT, "UTC").hour == 10
    with pytest.raises(UsageError):
        _since("2027-01-01", AT, "UTC")
