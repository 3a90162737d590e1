"""``queuecast why``: text and JSON, other people's jobs, and no trained model in the way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.synthetic import NOW, job_rows, make_lake

from queuecast.cli.main import main
from queuecast.store.lake import Lake

AT = NOW.strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    rows = job_rows(60)
    rows[-1] |= {"job_id": 900, "job_id_text": "900", "submit": NOW, "eligible": NOW, "start": None, "end": None, "state": "PENDING"}
    rows[-1] |= {"user": "alice", "account": "vision", "partition": "gpu", "gpus_req": 1, "gpu_type_req": "a100", "completeness": 1}
    return make_lake(tmp_path_factory.mktemp("why") / "lake", rows)


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, lake: Lake, tmp_path: Path) -> None:
    monkeypatch.setenv("QUEUECAST_LAKE", str(lake.path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    monkeypatch.setattr("sys.argv", ["queuecast", "why", *words, "--at", AT])
    with pytest.raises(SystemExit) as stop:
        main()
    shown = capsys.readouterr()
    return int(stop.value.code or 0), shown.out, shown.err


def test_text_and_json_say_the_same(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _err = run(monkeypatch, capsys, "900")
    assert status == 0
    assert out.startswith("job 900: 1 x a100 in gpu")
    status, plain, _err = run(monkeypatch, capsys, "900", "--json")
    first = json.loads(plain)["binding"]["constraints"][0]
    assert status == 0
    assert f"{first['title']} ({first['code']})" in out


def test_changes_are_looked_for_unless_told_not_to(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _err = run(monkeypatch, capsys, "900")
    assert status == 0
    assert "what would change that" in out
    _status, plain, _err = run(monkeypatch, capsys, "900", "--json")
    assert {"changes", "now", "as_new", "tried", "futures", "notes"} <= set(json.loads(plain)["changes"])
    _status, out, _err = run(monkeypatch, capsys, "900", "--no-changes")
    assert "what would change that" not in out
    _status, plain, _err = run(monkeypatch, capsys, "900", "--no-changes", "--json")
    assert json.loads(plain)["changes"] is None
    status, _out, err = run(monkeypatch, capsys, "900", "--futures", "-1")
    assert status == 2
    assert "futures" in err


def test_a_model_that_cannot_be_read_is_not_needed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], lake: Lake) -> None:
    bad = lake.path / "models" / "20260101T000000-00000000"
    bad.mkdir(parents=True)
    (lake.path / "models" / "current").write_text(bad.name)
    (bad / "model.json").write_text("{}")
    assert run(monkeypatch, capsys, "900")[0] == 0


@pytest.mark.parametrize(
    ("words", "told"), [(("12345",), "not known"), (("x1",), "not a job id"), (("900", "-M", "other"), "not in this lake")]
)
def test_mistakes_are_one_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], told: str
) -> None:
    status, out, err = run(monkeypatch, capsys, *words)
    assert status != 0
    assert told in err
    assert "Traceback" not in out + err


def test_under_privacy_own_another_ones_job_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("QUEUECAST_PRIVACY", "own")
    status, out, err = run(monkeypatch, capsys, "900", "-u", "alice")
    assert status != 0
    assert "not yours" in err
    assert "vision" not in out + err
