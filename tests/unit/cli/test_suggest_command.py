"""``queuecast suggest``: what is printed, what is refused, and what the configuration changes."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from tests.unit.synthetic import NOW, job_rows, make_lake

from queuecast.cli.main import main
from queuecast.config import load_hardware, load_settings
from queuecast.errors import ConfigError
from queuecast.store.lake import Lake

ASK = ("suggest", "--model", "7b", "--mode", "lora", "--hours", "10", "--on", "a100:4", "-A", "vision", "--at", NOW.isoformat())


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return make_lake(tmp_path_factory.mktemp("toy") / "lake", job_rows(600))


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch, lake: Lake, tmp_path: Path) -> None:
    for name in [n for n in os.environ if n.startswith("QUEUECAST_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("QUEUECAST_LAKE", str(lake.path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("COLUMNS", "110")


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["queuecast", *words])
    with pytest.raises(SystemExit) as done:
        main()
    out, err = capsys.readouterr()
    code = done.value.code
    return (code if isinstance(code, int) else 0 if code is None else 1), out, err


def configure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str) -> None:
    file = tmp_path / "own.toml"
    file.write_text(text)
    monkeypatch.setenv("QUEUECAST_CONFIG", str(file))


def test_one_screen_with_its_basis(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(monkeypatch, capsys, *ASK)
    assert code == 0
    for part in ("Llama 2 7B", "memory", "computed, not measured", "sbatch -p gpu", "advice", "The choice is yours", "assumed", "40 or 80"):
        assert part in out, part
    assert len(out.splitlines()) <= 45
    assert max(len(line) for line in out.splitlines() if "sbatch" not in line) <= 115


def test_json_and_rows(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(monkeypatch, capsys, *ASK, "--json")
    answer = json.loads(out)
    _, out, _ = run(monkeypatch, capsys, *ASK, "-P")
    rows = out.splitlines()
    assert len(rows) == 1 + len(answer["options"])
    first = dict(zip(rows[0].split("|"), rows[1].split("|"), strict=True))
    assert first["gpu_type"] == answer["options"][0]["gpu_type"]
    assert answer["task"]["params"] == 6_738_415_616
    assert answer["task"]["hours_are_for"] == "4 x a100"


def test_parts_instead_of_a_size(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--layers", "12", "--hidden", "768", "--heads", "12", "--vocab", "50257"]
    code, out, _ = run(monkeypatch, capsys, "suggest", *words, "--seq", "512", "--at", NOW.isoformat(), "--json")
    assert code == 0
    assert json.loads(out)["task"]["model"] == "by parts"


@pytest.mark.parametrize(
    "words",
    [
        ["suggest"],
        ["suggest", "--model", "9b"],
        ["suggest", "--model", "16x3b"],
        ["suggest", "--model", "7b", "--batch", "0"],
        ["suggest", "--model", "7b", "--seq", "-1"],
        ["suggest", "--model", "7b", "--hours", "-1"],
        ["suggest", "--model", "7b", "--hours", "nan"],
        ["suggest", "--model", "7b", "--precision", "int4"],
        ["suggest", "--model", "7b", "--on", "a100:8"],
        ["suggest", "--model", "7b", "--mode", "sleep"],
    ],
)
def test_wrong_questions_are_one_message(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    code, _, err = run(monkeypatch, capsys, *words, "--at", NOW.isoformat())
    assert code == 2
    assert "Traceback" not in err
    assert err.strip()


def test_the_configuration_tells_memory_and_prices(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    configure(monkeypatch, tmp_path, '[gpus.A100]\nmemory_gib = 80\nnvlink = true\n[prices]\ncurrency = "EUR"\na100 = 2\n')
    assert load_settings().privacy == "all"
    _, out, _ = run(monkeypatch, capsys, *ASK, "--json")
    mine = next(o for o in json.loads(out)["options"] if o["gpu_type"] == "a100" and o["gpus"] == 4)
    assert (mine["gpu"]["memory_gib"], mine["gpu"]["interconnect"]) == (80, "nvlink")
    assert mine["cost"]["price"] == pytest.approx(80)
    _, out, _ = run(monkeypatch, capsys, *ASK)
    assert "80.00 EUR" in out


@pytest.mark.parametrize(
    "text",
    [
        "gpus = 3",
        "[gpus]\na100 = 80",
        "[gpus.a100]\nmemory = 80",
        "[gpus.a100]\nmemory_gib = 0",
        "[gpus.a100]\nmemory_gib = true",
        "[gpus.a100]\nnvlink = 1",
        "[prices]\na100 = -1",
        '[prices]\na100 = "cheap"',
    ],
)
def test_wrong_tables_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str) -> None:
    configure(monkeypatch, tmp_path, text)
    with pytest.raises(ConfigError) as refused:
        load_hardware()
    assert refused.value.hint
