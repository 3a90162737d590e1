"""``queuecast alternatives`` and the hint of ``queuecast when``: forms of output, a user's mistakes, and what is not imported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.answers.test_alternatives import AT, build

from queuecast.cli.main import app

runner = pytest.importorskip("typer.testing").CliRunner()


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("command") / "lake"
    build(path)
    return path


def words(lake: Path, *more: str) -> list[str]:
    at = AT.isoformat().replace("+00:00", "Z")
    return [*more, "-u", "alice", "--lake", str(lake), "--at", at]


ASK = ("-p", "gpu", "--gres", "gpu:a100:4", "-t", "8:00:00", "-c", "8", "--mem", "32G")


def test_json_parsable_and_text(lake: Path) -> None:
    told = runner.invoke(app, words(lake, "alternatives", *ASK, "--futures", "4", "--json"))
    assert told.exit_code == 0, told.output
    answer = json.loads(told.stdout)
    assert answer["futures"] == 4
    assert {"as_asked", "options", "agreement", "basis", "refused", "same"} <= set(answer)
    rows = runner.invoke(app, words(lake, "alternatives", *ASK, "--futures", "4", "-P")).stdout.splitlines()
    assert rows[0].startswith("label|kinds|wait_low_s")
    assert rows[1].startswith("as asked|asked|")
    text = runner.invoke(app, words(lake, "alternatives", "77", "--futures", "4", "--all")).stdout
    assert "job 77" in text
    assert "drawn futures" in text


def test_when_points_at_it_and_has_a_block_if_asked(lake: Path) -> None:
    hint = runner.invoke(app, words(lake, "when", *ASK)).stdout
    assert "queuecast alternatives --partition=gpu --time=8:00:00 --gres=gpu:a100:4" in hint
    block = runner.invoke(app, words(lake, "when", *ASK, "--alternatives")).stdout
    assert "sbatch" in block
    assert "alternatives" in json.loads(runner.invoke(app, words(lake, "when", *ASK, "--alternatives", "--json")).stdout)


def test_a_users_mistakes_are_told(lake: Path) -> None:
    for wrong in ((), ("77", "-p", "gpu"), ("-p", "nope"), ("-p", "gpu", "--gpu-memory", "-1"), ("-p", "gpu", "--hours", "nan")):
        failed = runner.invoke(app, words(lake, "alternatives", *wrong))
        assert failed.exit_code != 0, wrong
        assert failed.exception is not None
        assert type(failed.exception).__name__ in ("UsageError", "SystemExit"), failed.exception


def test_plain_when_does_not_import_the_replay(lake: Path) -> None:
    code = (
        "import sys; from queuecast.cli.main import app\n"
        f"app({words(lake, 'when', *ASK)!r}, standalone_mode=False)\n"
        "print([m for m in sys.modules if m in ('numba', 'pandas') or m.startswith('queuecast.twin')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines()[-1] == "[]", done.stdout + done.stderr
