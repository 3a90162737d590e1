"""``queuecast retry`` and ``lineage`` as commands: what goes where, exit status, files that are never replaced."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import typer
from tests.unit.answers.retry_lake import SUBMIT, job, make
from tests.unit.synthetic import NOW

from queuecast.answers.retries.lineage_log import entries
from queuecast.cli.retry import lineage, retry
from queuecast.clock import now
from queuecast.errors import UsageError
from queuecast.slurmtext.script import parse_script
from queuecast.store.lake import Lake

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(retry)
app.command()(lineage)


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    for name in [n for n in os.environ if n.startswith("QUEUECAST_")]:
        monkeypatch.delenv(name)
    made = make(tmp_path / "lake", [job(7, "OUT_OF_MEMORY", work_dir=str(tmp_path)), job(8, work_dir=str(tmp_path))])
    monkeypatch.setenv("QUEUECAST_LAKE", str(made.path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/bash\n#SBATCH -p cpu --mem=4G -t 2:00:00\nprintf '%s' \"$1\"\n")
    os.utime(script, (SUBMIT.timestamp() - 60,) * 2)
    return made


def run(capsysbinary: pytest.CaptureFixture[bytes], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as done:
        app(list(words))
    out, err = capsysbinary.readouterr()
    return (done.value.code if isinstance(done.value.code, int) else 0), out.decode(), err.decode()


def test_the_script_alone_goes_to_standard_output(lake: Lake, capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> None:
    before = (tmp_path / "job.sh").read_bytes()
    status, out, err = run(capsysbinary, "retry", "7", "--no-slurm")
    assert status == 0, err
    assert parse_script(out).options["mem"] == "6G"
    assert (tmp_path / "job.sh").read_bytes() == before
    (tmp_path / "retry.sh").write_text(out)
    assert subprocess.run(["bash", "retry.sh", "ran"], cwd=tmp_path, capture_output=True, check=True).stdout == b"ran"
    assert [e.parent for e in entries(lake.path, "toy", now())] == ["7"]
    assert run(capsysbinary, "retry", "7", "--at", NOW.isoformat())[1].split("\n")[3:] == out.split("\n")[3:]
    assert len(entries(lake.path, "toy", now())) == 1  # a question about the past leaves no trace


def test_a_file_is_never_replaced(lake: Lake, capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> None:
    assert run(capsysbinary, "retry", "7", "--no-slurm", "-o", "new.sh")[:2] == (0, "")
    assert "--mem=6G" in (tmp_path / "new.sh").read_text()
    (tmp_path / "dangling").symlink_to("nowhere")
    for name in ("new.sh", "job.sh", ".", "dangling"):
        with pytest.raises(UsageError, match="exists already"):
            app(["retry", "7", "--no-slurm", "-o", name])
    with pytest.raises(UsageError, match="cannot write"):
        app(["retry", "7", "--no-slurm", "-o", "none/new.sh"])
    with pytest.raises(UsageError, match="no batch script"):
        app(["retry", "7", "--script", "none"])


def test_what_would_fail_again_is_refused(lake: Lake, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    status, out, err = run(capsysbinary, "retry", "8", "--no-slurm")
    assert (status, out) == (3, "")
    assert "[ ]" in err
    assert "--force" in err
    assert entries(lake.path, "toy", now()) == []
    status, out, _ = run(capsysbinary, "retry", "8", "--no-slurm", "--force")
    assert (status, out.startswith("#!/bin/bash\n")) == (0, True)
    status, out, _ = run(capsysbinary, "retry", "8", "--no-slurm", "--json")
    told = json.loads(out)
    assert (status, told["ready"], told["script"], told["failure_class"]) == (3, False, None, "user_code")


def test_explain_prints_no_script(lake: Lake, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    status, out, _ = run(capsysbinary, "retry", "7", "--no-slurm", "--explain")
    assert status == 0
    assert "--mem: 4G -> 6G" in out
    assert "#!/bin/bash" not in out


def test_lineage(lake: Lake, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    status, out, _ = run(capsysbinary, "lineage", "7")
    assert (status, out.startswith("7  train  OUT_OF_MEMORY")) == (0, True)
    told = json.loads(run(capsysbinary, "lineage", "7", "--json")[1])
    assert [a["job"] for a in told["attempts"]] == ["7"]
