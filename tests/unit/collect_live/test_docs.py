"""The manual on collecting and its examples: every command in them is one that queuecast understands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer

from queuecast.cli.main import app

DOCS = Path(__file__).parents[3] / "docs"
FILES = (DOCS / "collecting.md", *sorted((DOCS / "examples").iterdir()))


def commands() -> list[tuple[str, str]]:
    """What stands after the program's name: in code of the manual, and in the examples."""
    found = []
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".md":
            blocks = re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
            inline = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
            lines = [line for part in (*blocks, *inline) for line in part.splitlines()]
            found += [(path.name, m[1].strip()) for line in lines if (m := re.match(r"queuecast ([^#]*)", line))]
        else:
            lines = [line for line in text.splitlines() if not line.startswith("#")]
            found += [
                (path.name, m[1].strip()) for line in lines if (m := re.search(r"(?:bin/queuecast|\"\$QUEUECAST\") (.+)", line))
            ]
    return found


def test_examples_are_found() -> None:
    assert {name for name, _ in commands()} >= {"collecting.md", "crontab", "queuecast-collect.service"}
    assert len(commands()) >= 8


@pytest.mark.parametrize(("name", "line"), commands())
def test_command_is_understood(name: str, line: str) -> None:
    program = typer.main.get_command(app)
    word, *rest = shlex.split(line)
    command = program.commands[word]  # type: ignore[attr-defined]  # a group
    assert command.make_context("queuecast", rest).params is not None  # a wrong option raises


def test_crontab_lines_have_five_times_and_a_command() -> None:
    lines = [line for line in (DOCS / "examples" / "crontab").read_text().splitlines() if line[:1] in "*0123456789" and line]
    assert len(lines) == 2
    for line in lines:
        assert all(re.fullmatch(r"[\d*/,-]+", field) for field in line.split()[:5])
        assert line.split()[5] == "flock"
