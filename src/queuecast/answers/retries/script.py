"""Where the script of a job that ended can still be had, and the options that it really ran with.

In this order: the file that is given; the file that was submitted, if it can be read; the controller, which keeps scripts
for some minutes; accounting, where the site stores them; for ``--wrap`` the command line. Nothing is ever written.
"""

from __future__ import annotations

import os
import shlex
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from queuecast.errors import SourceError, UsageError
from queuecast.i18n import _
from queuecast.slurmtext.script import ScriptRequest, parse_options

if TYPE_CHECKING:
    from queuecast.collect.run import Runner

Origin = Literal["given", "file", "controller", "accounting", "wrap"]
MOST_BYTES: Final = 4 << 20
"""sbatch's own limit by default (max_script_size)."""
TIMEOUT_S: Final = 20.0
WRAP: Final = "#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{command}\n"
_RULE = "-" * 40
_NOT_CARRIED: Final = frozenset(
    {"help", "usage", "version", "parsable", "quiet", "verbose", "wait", "test-only", "wrap", "uid", "gid", "ignore-pbs"}
)
"""Options of one call of sbatch, not of the job."""


@dataclass(frozen=True)
class Source:
    """``text`` of the script. ``arguments``: those that followed it. ``options``: of the command line, which override the
    script's. ``path``: the file, None where it is not one. ``warnings`` are sentences."""

    text: str
    origin: Origin
    path: Path | None = None
    arguments: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Line:
    """A command line of accounting, read: options, the script (None with ``--wrap`` or if it cannot be told), its arguments."""

    options: Mapping[str, str] = field(default_factory=dict)
    script: str | None = None
    arguments: tuple[str, ...] = ()
    wrap: str | None = None
    problems: tuple[str, ...] = ()


def read_submit_line(text: str | None, known: Mapping[str, str | None]) -> Line:
    """Read SubmitLine. Slurm joins its words with blanks and drops the quotes: values of ``known`` (option to text, as
    accounting tells them) that hold blanks are found again; what is left is read as it stands.
    """
    if not text:
        return Line()
    words, wrap = _words(text, known)
    if not words or words[0].rsplit("/", 1)[-1] not in ("sbatch", "salloc", "srun"):
        return Line(problems=(_("The command line of the submission is not sbatch's."),))
    read: ScriptRequest = parse_options(words[1:])
    problems = list(read.problems)
    if words[0].rsplit("/", 1)[-1] != "sbatch":
        return Line(problems=(_("The job was started with {name}: there is no batch script.").format(name=words[0]),))
    options = {k: v for k, v in read.options.items() if k not in _NOT_CARRIED}
    if wrap is None and "wrap" in read.options:
        wrap = " ".join([read.options["wrap"], *read.rest])
        return Line(options, None, (), wrap, tuple(problems))
    if wrap is not None:
        return Line(options, None, (), wrap, tuple(problems))
    return Line(options, read.rest[0] if read.rest else None, tuple(read.rest[1:]), None, tuple(problems))


def find_script(
    row: Mapping[str, Any],
    files: Mapping[str, Any] | None,
    *,
    given: str | None = None,
    given_path: Path | None = None,
    runner: Runner | None = None,
    stores_scripts: bool | None = None,
    local: bool = True,
) -> Source:
    """The script of the job of ``row``. ``runner`` None: Slurm is not asked. ``stores_scripts``: whether accounting keeps
    scripts (AccountingStoreFlags), None if not known. ``local``: files of this machine may be read.

    Raises ``UsageError`` that says what to give if there is none.
    """
    line = read_submit_line(row["submit_line"], {"job-name": row["name"], "comment": row["comment"], "chdir": row["work_dir"]})
    notes = [_("On the command line: {problem}").format(problem=p) for p in line.problems]
    if given is not None:
        return Source(given, "given", given_path, line.arguments, line.options, tuple(notes))
    found = _from_file(row, files, line) if local else None
    if found is None and runner is not None:
        found = _from_slurm(row, runner, stores_scripts)
    if found is None and line.wrap is not None:
        notes.append(_("Rebuilt from --wrap as accounting shows it, without the quotes around words: look at it."))
        found = Source(WRAP.format(command=line.wrap), "wrap")
    if found is None:
        hint = _("give the file: queuecast retry {job} --script FILE").format(job=row["job_id_text"])
        raise UsageError(_("the script of job {job} is no longer to be had").format(job=row["job_id_text"]), hint)
    arguments = line.arguments if line.arguments or found.origin == "wrap" else found.arguments
    return replace(found, arguments=arguments, options=line.options, warnings=(*found.warnings, *notes))


def read_script_file(path: Path) -> str | None:
    """The text, None if it is no readable batch script of at most 4 MiB. Bytes that are not UTF-8 come as surrogates."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except (OSError, ValueError):
        return None
    if len(raw) > MOST_BYTES or b"\0" in raw or not raw.startswith(b"#!"):
        return None
    return raw.decode("utf-8", "surrogateescape")


def _words(text: str, known: Mapping[str, str | None]) -> tuple[list[str], str | None]:
    """Words, and the command of ``--wrap`` if it ends the line."""
    wrap: str | None = None
    for mark in (" --wrap=", " --wrap "):
        before, found, after = text.partition(mark)
        if found:
            text, wrap = before, after
            break
    held: dict[str, str] = {}
    for number, value in enumerate(sorted((v for v in known.values() if v and " " in v), key=len, reverse=True)):
        if value in text:
            held[f"\x00{number}\x00"] = value
            text = text.replace(value, f"\x00{number}\x00", 1)
    try:
        words = shlex.split(text) if any(q in text for q in "\"'") else text.split()
    except ValueError:
        words = text.split()
    for mark, value in held.items():
        words = [w.replace(mark, value) for w in words]
    if wrap is not None and len(wrap) > 1 and wrap[0] in "\"'" and wrap[-1] == wrap[0] and wrap[0] not in wrap[1:-1]:
        wrap = wrap[1:-1]
    return words, wrap


def _from_file(row: Mapping[str, Any], files: Mapping[str, Any] | None, line: Line) -> Source | None:
    """The file that was submitted: by its path as the controller told it, else by the command line and working directory."""
    folder = (files or {}).get("work_dir") or row["work_dir"]
    candidates: list[tuple[str, tuple[str, ...]]] = []
    command = (files or {}).get("command")
    if command:
        words = command.split(" ")
        # a path may hold blanks: the longest beginning that is a file
        candidates += [(" ".join(words[:n]), tuple(words[n:])) for n in range(min(len(words), 12), 0, -1)]
    if line.script:
        candidates.append((line.script, line.arguments))
    for name, arguments in candidates:
        path = Path(name) if os.path.isabs(name) else Path(folder) / name if folder else None
        text = read_script_file(path) if path is not None and "\0" not in name else None
        if text is not None and path is not None:
            return Source(text, "file", path, arguments, {}, _changed(path, row["submit"]))
    return None


def _changed(path: Path, submit: datetime) -> tuple[str, ...]:
    try:
        status = path.stat()
    except OSError:
        return ()
    changed = datetime.fromtimestamp(status.st_mtime, UTC)
    if not stat.S_ISREG(status.st_mode) or changed <= submit:
        return ()
    text = _("{path} was changed at {time} UTC, after the job was submitted: it may not be what ran.")
    return (text.format(path=path, time=f"{changed:%Y-%m-%d %H:%M}"),)


def _from_slurm(row: Mapping[str, Any], runner: Runner, stores: bool | None) -> Source | None:
    """From the controller, which forgets a job some minutes after its end; then from accounting."""
    job = str(row["array_job_id"] or row["job_id"])
    if not job.isdigit():
        return None
    text = _asked(runner, ("scontrol", "write", "batch_script", job, "-"))
    if text is not None:
        return Source(text, "controller")
    if stores is False:
        return None
    told = _asked(runner, ("sacct", "-j", job, "--batch-script"), script=False)
    text = _stored(told) if told is not None else None
    return None if text is None else Source(text, "accounting")


def _stored(told: str) -> str | None:
    """The script below the heading that sacct prints; None where none is stored (it prints NONE)."""
    lines = told.split("\n")
    start = next((i for i, line in enumerate(lines[:10]) if line.startswith(_RULE)), None)
    text = "\n".join(lines[start + 1 :]) if start is not None else told
    if not text.startswith("#!"):
        return None
    end = text.find("\nBatch Script for ")  # a further record of the same job
    if end >= 0 and f"\n{_RULE}" in text[end + 1 : end + 120]:
        text = text[: end + 1]
    return text.removesuffix("\n")  # sacct ends the script with a line end of its own


def _asked(runner: Runner, command: tuple[str, ...], *, script: bool = True) -> str | None:
    """The output of a bounded call; None if it failed, or is no script."""
    with tempfile.TemporaryFile() as out:
        try:
            done = runner.run(command, out, TIMEOUT_S)
        except SourceError:
            return None
        if done.exit_code:
            return None
        out.seek(0)
        raw = out.read(MOST_BYTES + 4096)
    if len(raw) > MOST_BYTES or (script and not raw.startswith(b"#!")):
        return None
    raw = raw.removesuffix(b"\0\n").removesuffix(b"\0")  # scontrol ends the script with a NUL
    if b"\0" in raw:
        return None
    return raw.decode("utf-8", "surrogateescape")
