"""Where the logs of a job lie: Slurm's file patterns filled in, and the files that are there.

Source of the patterns: sbatch(1) and srun(1), "filename pattern".
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

MOST_FILES = 64
_FIELD = re.compile(r"%(%|(\d{1,2})?([AaJjNnstuxb]))")
_EACH = "NnstJ"
"""One file per node, task or step: which there are is looked up."""


@dataclass(frozen=True)
class LogPlaces:
    """``paths``: files to look into, at most 64, sorted. ``missing``: names that should be there and are not (or match nothing).
    ``more``: how many further files match. Paths are hostile text."""

    paths: tuple[str, ...]
    missing: tuple[str, ...] = ()
    more: int = 0


def fill_pattern(pattern: str, job: Mapping[str, Any], *, magic: bool = False) -> str:
    """Slurm's pattern with the values of a job: job_id, array_job_id, array_task, name, user and the node of ``node`` (missing: kept
    as it stands).

    With ``magic`` the rest is escaped for ``glob``, and what differs by node, task or step becomes ``*``. A backslash in a pattern
    turns all replacing off, as in Slurm. A width is honoured for numbers (``%5j``), at most 10 digits.
    """
    plain = glob.escape if magic else str
    if "\\" in pattern:
        return plain(pattern.replace("\\", ""))
    out, last = [], 0
    for found in _FIELD.finditer(pattern):
        out.append(plain(pattern[last : found.start()]))
        last = found.end()
        if found[1] == "%":
            out.append(plain("%"))
            continue
        value = _value(found[3], job)
        if value is None:
            out.append("*" if magic else found[0])
            continue
        width = min(10, int(found[2] or 0))
        out.append(plain(value.zfill(width) if value.isascii() and value.isdigit() else value))
    out.append(plain(pattern[last:]))
    return "".join(out)


def _value(letter: str, job: Mapping[str, Any]) -> str | None:
    number, array, task = job.get("job_id"), job.get("array_job_id"), job.get("array_task")
    value = {
        "j": number,
        "A": array if array is not None else number,
        "a": task if task is not None else 4294967294 if array is None else None,
        "b": None if task is None else task % 10,
        "x": None if "/" in (job.get("name") or "") else job.get("name"),  # it would be another folder; Slurm writes something else
        "u": job.get("user"),
        "N": job.get("node"),
    }.get(letter)
    return None if value is None else str(value)


def default_pattern(job: Mapping[str, Any]) -> str:
    """What sbatch uses without ``--output``."""
    return "slurm-%A_%a.out" if job.get("array_task") is not None else "slurm-%j.out"


def find_logs(job: Mapping[str, Any], std_out: str | None, std_err: str | None, work_dir: str | None) -> LogPlaces:
    """The job's log files. Without ``std_out`` the default name in the working directory; without that too, none.

    ``job`` needs job_id, array_job_id, array_task, name, user and nodes (their names). Never raises; only names are
    looked up, nothing is opened.
    """
    names = [n for n in (std_out, std_err) if n]
    if not names and work_dir:
        names = [default_pattern(job)]
    paths: dict[str, None] = {}
    missing: list[str] = []
    more = 0
    for name in dict.fromkeys(names):
        if "\0" in name or (not os.path.isabs(name) and not work_dir):
            missing.append(name)
            continue
        found = list(islice(_matches(os.path.join(work_dir or "/", name), job, work_dir or ""), MOST_FILES + 1000))
        found.sort()
        if not found:
            missing.append(os.path.join(work_dir or "", fill_pattern(name, job)))
        room = MOST_FILES - len(paths)
        more += max(0, len(found) - room)
        paths.update(dict.fromkeys(found[: max(0, room)]))
    return LogPlaces(tuple(paths), tuple(missing), more)


def _matches(pattern: str, job: Mapping[str, Any], folder: str) -> Iterator[str]:
    if folder and "%" in folder and "\\" not in pattern and pattern.startswith(folder):  # a folder's own per cent sign is no pattern
        pattern = folder.replace("%", "%%") + pattern[len(folder) :]
    letters = {f[3] for f in _FIELD.finditer(pattern) if f[3]} if "\\" not in pattern else set()
    each = [{**job, "node": node} for node in job.get("nodes") or ()] if "N" in letters else [dict(job)]
    for one in each or [dict(job)]:
        if not any(_value(letter, one) is None for letter in letters & set(_EACH)):
            exact = fill_pattern(pattern, one)
            if os.path.lexists(exact):
                yield exact
            continue
        wanted = _regex(pattern, one)
        try:
            yield from (path for path in glob.iglob(fill_pattern(pattern, one, magic=True)) if wanted.fullmatch(path))
        except (OSError, ValueError, re.error):
            continue


def _regex(pattern: str, job: Mapping[str, Any]) -> re.Pattern[str]:
    """What a file of the pattern may be called: numbers of tasks and steps, names of nodes, and nothing else."""
    out, last = [], 0
    for found in _FIELD.finditer(pattern):
        out.append(re.escape(pattern[last : found.start()]))
        last = found.end()
        known = fill_pattern(found[0], job)
        open_ended = found[3] and _value(found[3], job) is None
        out.append((r"[\w.-]{1,64}" if found[3] in "Nxu" else r"[0-9.]{1,24}") if open_ended else re.escape(known))
    return re.compile("".join(out) + re.escape(pattern[last:]), re.DOTALL)
