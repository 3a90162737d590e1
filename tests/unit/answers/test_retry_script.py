"""Where a script comes from, and command lines that Slurm wrote down without their quotes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.answers.retry_lake import SUBMIT, Row, job

from queuecast.answers.retries.script import Source, find_script, read_script_file, read_submit_line
from queuecast.clock import now
from queuecast.collect.run import Finished, Runner
from queuecast.errors import UsageError

HEADING = b"Batch Script for 7\n" + b"-" * 80 + b"\n"
SCRIPT = "#!/bin/bash\n#SBATCH -t 5\ntrue\n"


def row(**more: object) -> Row:
    keys = dict.fromkeys(("array_job_id", "comment", "name", "submit_line", "work_dir"))
    return {**keys, **job(7), **more}


class Slurm(Runner):
    """Answers by command; anything else fails."""

    def __init__(self, answers: Mapping[str, bytes]) -> None:
        super().__init__()
        self.answers = answers
        self.asked: list[tuple[str, ...]] = []

    def run(self, command: tuple[str, ...], stdout: BinaryIO, timeout: float) -> Finished:
        assert timeout <= 30
        self.asked.append(command)
        stdout.write(self.answers.get(command[0], b""))
        return Finished(0 if command[0] in self.answers else 1, "", 0.0, now())


@pytest.mark.parametrize(
    ("text", "options", "script", "arguments", "wrap"),
    [
        ("sbatch job.sh", {}, "job.sh", (), None),
        ("sbatch -p gpu --parsable --mem 4G job.sh a -b", {"partition": "gpu", "mem": "4G"}, "job.sh", ("a", "-b"), None),
        ("/usr/bin/sbatch -J my long run job.sh", {"job-name": "my long run"}, "job.sh", (), None),
        ("sbatch --comment=my long run -t5 job.sh", {"comment": "my long run", "time": "5"}, "job.sh", (), None),
        ("sbatch -t 5 --wrap sleep 5; exit 3", {"time": "5"}, None, (), "sleep 5; exit 3"),
        ("sbatch -t 5 --wrap=sleep 5; exit 3", {"time": "5"}, None, (), "sleep 5; exit 3"),
        ("sbatch --wrap='echo a b' -t 5", {}, None, (), "'echo a b' -t 5"),
        ("sbatch", {}, None, (), None),
        ("", {}, None, (), None),
    ],
)
def test_command_lines(text: str, options: dict[str, str], script: str | None, arguments: tuple[str, ...], wrap: str | None) -> None:
    line = read_submit_line(text, {"job-name": "my long run", "comment": None})
    assert (line.options, line.script, line.arguments, line.wrap) == (options, script, arguments, wrap)


@given(st.text(), st.text(), st.text())
def test_any_command_line_is_read(text: str, name: str, comment: str) -> None:
    for line in (text, f"sbatch -J {name} --comment={comment} {text}"):
        read = read_submit_line(line, {"job-name": name, "comment": comment})
        assert read.script is None or read.wrap is None
        assert all(key == key.strip() and not key.startswith("-") for key in read.options)
        assert all(word in line for word in read.arguments)


def test_other_commands_have_no_script() -> None:
    assert "no batch script" in read_submit_line("srun -n4 ./a.out", {}).problems[0]


def test_the_order_of_places(tmp_path: Path) -> None:
    told = tmp_path / "with blank.sh"
    told.write_text(SCRIPT + "# told\n")
    (tmp_path / "job.sh").write_text(SCRIPT + "# line\n")
    for path in tmp_path.iterdir():
        os.utime(path, (SUBMIT.timestamp() - 5,) * 2)
    files = {"command": f"{told} one", "work_dir": str(tmp_path)}
    ran = row(work_dir=str(tmp_path))
    slurm = Slurm({"scontrol": SCRIPT.encode() + b"# held\n", "sacct": HEADING + SCRIPT.encode() + b"# kept\n\n"})

    def last(source: Source) -> tuple[str, str]:
        return source.origin, source.text.rstrip("\n").rsplit("# ", 1)[-1]

    assert last(find_script(ran, files, given=SCRIPT + "# given\n", runner=slurm)) == ("given", "given")
    found = find_script(ran, files, runner=slurm)
    assert (last(found), found.arguments, found.warnings) == (("file", "told"), ("one",), ())
    assert last(find_script(ran, None, runner=slurm)) == ("file", "line")
    assert slurm.asked == []
    assert last(find_script(row(), None, runner=slurm)) == ("controller", "held")
    assert last(find_script(ran, files, runner=slurm, local=False)) == ("controller", "held")
    del slurm.answers["scontrol"]  # type: ignore[attr-defined]
    kept = find_script(row(), None, runner=slurm)
    assert last(kept) == ("accounting", "kept")
    assert kept.text == SCRIPT + "# kept\n"
    wrapped = find_script(row(submit_line="sbatch -t 5 --wrap echo hi"), None, runner=Slurm({}))
    assert (wrapped.origin, wrapped.text.split("\n")[-2], wrapped.options) == ("wrap", "echo hi", {"time": "5"})
    with pytest.raises(UsageError, match="--script FILE"):
        find_script(row(), None, runner=slurm, stores_scripts=False)
    assert slurm.asked[-1][0] == "scontrol"  # accounting that keeps none is not asked


def test_a_file_that_changed_since_is_told(tmp_path: Path) -> None:
    (tmp_path / "job.sh").write_text(SCRIPT)
    os.utime(tmp_path / "job.sh", (SUBMIT.timestamp() + 60,) * 2)
    (warning,) = find_script(row(work_dir=str(tmp_path)), None).warnings
    assert "after the job was submitted" in warning


@pytest.mark.parametrize("told", [b"NONE\n", b"", HEADING + b"NONE\n", b"#!" + b"x" * (5 << 20), b"#!/bin/sh\n\0\0"])
def test_accounting_without_a_script(told: bytes) -> None:
    with pytest.raises(UsageError):
        find_script(row(), None, runner=Slurm({"sacct": told}))


def test_only_text_files_are_scripts(tmp_path: Path) -> None:
    (tmp_path / "elf").write_bytes(b"\x7fELF")
    (tmp_path / "nul").write_bytes(b"#!/bin/sh\n\0")
    (tmp_path / "long").write_bytes(b"#!" + b"x" * (5 << 20))
    os.mkfifo(tmp_path / "pipe")
    for name in ("elf", "nul", "long", "pipe", "none", "."):
        assert read_script_file(tmp_path / name) is None
