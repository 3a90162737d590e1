"""``queuecast check`` and ``template`` as commands: exit status, formats, the templates' own check."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.synthetic import NOW, job_rows, make_lake

from queuecast.cli.main import main
from queuecast.store.lake import Lake

AT = NOW.isoformat()
SCRIPT = "#!/bin/bash\n#SBATCH -p gpu\n#SBATCH --gres=gpu:a100:{gpus}\n#SBATCH -t 60\n{body}\n"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return make_lake(tmp_path_factory.mktemp("toy") / "lake", job_rows())


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, lake: Lake, tmp_path: Path) -> None:
    for name in [n for n in os.environ if n.startswith(("QUEUECAST_", "SBATCH_"))] + ["MODULEPATH"]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("QUEUECAST_LAKE", str(lake.path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    (tmp_path / "good.sh").write_text(SCRIPT.format(gpus=4, body="torchrun --nproc_per_node=4 train.py"))
    (tmp_path / "warn.sh").write_text(SCRIPT.format(gpus=4, body="python train.py"))
    (tmp_path / "bad.sh").write_text(SCRIPT.format(gpus=8, body="torchrun --nproc_per_node=8 train.py"))


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["queuecast", *words])
    with pytest.raises(SystemExit) as done:
        main()
    out, err = capsys.readouterr()
    code = done.value.code
    return (code if isinstance(code, int) else 0 if code is None else 1), out, err


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (("good.sh",), 0, "nothing wrong was found"),
        (("good.sh", "--strict"), 0, "nothing wrong was found"),
        (("good.sh", "-q"), 0, ""),
        (("warn.sh",), 0, "warn.sh:5: warning:"),
        (("warn.sh", "--strict"), 1, "1 warning"),
        (("warn.sh", "-q", "--strict"), 1, "1 warning"),
        (("bad.sh",), 3, "bad.sh:3: error: 8 GPUs of type a100 per node"),
        (("bad.sh", "--strict"), 3, "1 error"),
        (("--", "--gres=gpu:a100:8", "warn.sh"), 3, "warn.sh:3: error:"),
        (("--", "-p", "none", "good.sh"), 3, "There is no partition none"),
    ],
)
def test_status_and_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], status: int, text: str
) -> None:
    code, out, _ = run(monkeypatch, capsys, "check", "--at", AT, "-u", "alice", *words)
    assert code == status, out
    assert text in out if text else out == ""


def test_formats_agree(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(monkeypatch, capsys, "check", "--at", AT, "-u", "alice", "bad.sh", "--json")
    told = json.loads(out)
    assert (code, told["errors"], told["cluster"], told["request"]["gpus"]) == (3, 1, "toy", 8)
    _, out, _ = run(monkeypatch, capsys, "check", "--at", AT, "-u", "alice", "bad.sh", "-P")
    assert [line.split("|")[:3] for line in out.splitlines()[1:]] == [
        [str(f["line"] or ""), f["severity"], f["code"]] for f in told["findings"]
    ]


def test_variables_of_sbatch_count(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SBATCH_PARTITION", "none")
    assert run(monkeypatch, capsys, "check", "--at", AT, "good.sh")[0] == 3
    assert run(monkeypatch, capsys, "check", "--at", AT, "--", "-p", "gpu", "good.sh")[0] == 0


def test_mistakes_of_the_call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\x7fELF\0")
    for words, part in (
        (["missing.sh"], "cannot read"),
        (["."], "cannot read"),
        (["binary"], "no batch script"),
        (["--", "-p", "gpu"], "no script"),
    ):
        code, _, err = run(monkeypatch, capsys, "check", *words)
        assert (code, part in err) == (2, True), err
    code, _, err = run(monkeypatch, capsys, "template", "none")
    assert (code, "single, multi, inference" in err) == (2, True)


def test_without_a_lake(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    monkeypatch.setenv("QUEUECAST_LAKE", str(tmp_path / "none"))
    code, out, _ = run(monkeypatch, capsys, "check", "warn.sh", "--strict")
    assert code == 1
    assert "not checked" in out


@pytest.mark.parametrize("kind", ["single", "multi", "inference"])
def test_templates_are_bash_and_pass(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, kind: str
) -> None:
    monkeypatch.setenv("QUEUECAST_LAKE", str(tmp_path / "none"))
    code, out, _ = run(monkeypatch, capsys, "template", kind, "-p", "gpu", "-t", "10:00:00", "-A", "vision", "--gres", "gpu:a100:4")
    assert code == 0
    for line in ("--partition=gpu", "--time=10:00:00", "--account=vision", "--gres=gpu:a100:4"):
        assert out.count(f"#SBATCH {line}\n") == 1
    assert out.count("--time") == out.count("--gres") == 1
    (tmp_path / "made.sh").write_text(out)
    assert subprocess.run(["bash", "-n", "made.sh"], cwd=tmp_path, check=False).returncode == 0
    code, out, _ = run(monkeypatch, capsys, "check", "--", "--gres=gpu:1" if kind != "multi" else "--gres=gpu:4", "made.sh", "server")
    findings = [line for line in out.splitlines() if "error" in line or "warning" in line]
    assert (code, findings) == (0, [])
