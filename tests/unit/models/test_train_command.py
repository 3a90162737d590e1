"""``queuecast train``: what it says it did, and errors that say what to do."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.unit.synthetic import NOW, job_rows, make_lake

from queuecast import clock
from queuecast.cli.main import main
from queuecast.models import stacked

Run = Any


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_lake(tmp_path_factory.mktemp("toy") / "lake", job_rows(800)).path


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], path: Path, tmp_path: Path) -> Run:
    for name in [n for n in os.environ if n.startswith("QUEUECAST_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("QUEUECAST_LAKE", str(path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setattr(clock, "now", lambda: NOW)
    quick = {**stacked.fit.__kwdefaults__, "rounds": 5, "bins": 6, "location_rounds": 5}
    monkeypatch.setattr(stacked.fit, "__kwdefaults__", quick)

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["queuecast", "train", *words])
        with pytest.raises(SystemExit) as done:
            main()
        out, err = capsys.readouterr()
        return int(done.value.code or 0), out, err

    return call


def test_corrections_need_a_model_then_train_tells_what_was_learned(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    code, _, err = run("--corrections")
    assert code != 0
    assert "no model has been trained yet" in err
    assert "queuecast train" in err
    code, out, _ = run()
    assert code == 0
    assert "toy: learned until 2026-05-21 00:00, all past answers made anew" in out
    code, out, _ = run("--corrections", "--json")
    assert code == 0
    told = json.loads(out)["clusters"]["toy"]
    assert told["learned_until"] == told["corrected_until"] == told["full_until"] == NOW.isoformat()
    # A cluster whose hours are not UTC's.
    monkeypatch.setenv("QUEUECAST_ZONE", "Asia/Shanghai")
    assert run("--quiet") == (0, "", "")


def test_what_cannot_be_asked_for_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    code, _, err = run("--full", "--corrections")
    assert code != 0
    assert "exclude each other" in err
    monkeypatch.setenv("QUEUECAST_ZONE", "Nowhere/Town")
    code, _, err = run()
    assert code != 0
    assert "Nowhere/Town" in err
    assert "IANA name" in err
    assert "Traceback" not in err
