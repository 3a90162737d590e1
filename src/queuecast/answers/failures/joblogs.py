"""The logs of an attempt: found, read, and looked through for lines that tell."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from queuecast.answers.failures.logs import MOST_FILES, find_logs
from queuecast.answers.failures.logs_merge import MergedLog, merge_logs
from queuecast.answers.failures.logs_read import LogFile, owner_of, read_log
from queuecast.answers.wait import iso
from queuecast.errors import UsageError
from queuecast.i18n import _
from queuecast.reasons.logpatterns import find_pattern

LATE_LINES = 150
"""So many lines before the end of a file count in full; what stands earlier was survived more often than not."""
MOST_FOUND = 500


@dataclass(frozen=True)
class Found:
    """A line that a pattern names; ``line`` is cleaned, ``number`` None behind a gap."""

    key: str
    path: str
    number: int | None
    line: str
    late: bool
    warning: bool = False


@dataclass(frozen=True)
class JobLogs:
    """``files``: what was looked at. ``missing``: names that should be there. ``more``: further files that were left out. ``notes``:
    sentences on what to mind. ``merged``: all files by time, None with none read."""

    files: tuple[LogFile, ...]
    missing: tuple[str, ...]
    more: int
    found: tuple[Found, ...]
    notes: tuple[str, ...]
    merged: MergedLog | None

    def as_json(self) -> dict[str, Any]:
        """Plain values; the last 200 lines of all files by time."""
        return {
            "files": [
                {
                    "path": f.path,
                    "status": f.status,
                    "problem": f.problem,
                    "size": f.size,
                    "modified": iso(f.modified),
                    "left_out_bytes": f.gap_bytes,
                }
                for f in self.files
            ],
            "missing": list(self.missing),
            "more_files": self.more,
            "notes": list(self.notes),
            "levels": {} if self.merged is None else self.merged.levels,
            "lines": []
            if self.merged is None
            else [
                {"path": x.path, "number": x.number, "at": iso(x.at), "level": x.level, "node": x.node, "rank": x.rank, "text": x.text}
                for x in self.merged.lines
            ],
        }


def read_job_logs(
    row: Mapping[str, Any], files: Mapping[str, str | None] | None, nodes: Sequence[str], named: Sequence[str], at: datetime
) -> JobLogs:
    """Logs of an ended attempt. ``named``: files to read instead of its own, with the rights of this process. Raises ``UsageError``
    for more than 64 named ones."""
    if len(named) > MOST_FILES:
        raise UsageError(_("{n} log files are too many").format(n=len(named)), _("name at most {most}").format(most=MOST_FILES))
    missing: tuple[str, ...] = ()
    more = 0
    notes = []
    if named:
        read = [read_log(path, None) for path in dict.fromkeys(named)]
    else:
        places = files or {}
        owner = owner_of(row.get("uid"), row.get("user"))
        found = find_logs({**row, "nodes": nodes}, places.get("std_out"), places.get("std_err"), places.get("work_dir"))
        missing, more = found.missing, found.more
        if owner is None:
            # Whose a file must be is not known: then none is opened.
            read = [LogFile(path, "not_owned") for path in found.paths]
        else:
            read = [read_log(path, owner, row.get("start")) for path in found.paths]
        if not found.paths and not missing:
            notes.append(_("Where its log lies is not known."))
        elif not places.get("std_out") and found.paths:
            notes.append(_("Its output file is not told; the default name in its working directory was looked at."))
    end = row.get("end")
    for file in read:
        if (
            file.modified is not None
            and end is not None
            and file.modified > end + timedelta(hours=1)
            and not named
            and file.status == "read"
        ):
            notes.append(_("{path} was written to after the job's end: another job may use it too.").format(path=file.path))
    year = end.year if end is not None else at.year
    merged = merge_logs(read, nodes=nodes, year=year) if any(f.lines for f in read) else None
    return JobLogs(tuple(read), missing, more, tuple(_look(read)), tuple(notes), merged)


_STAMP = r"^(?:\[?\d{4}-\d\d-\d\d[T ][\d:.,]{5,20}\S{0,8}\]?[\s:|-]{0,4})?\W{0,2}"
_LITTLE = re.compile(rf"{_STAMP}(?:info|debug|trace|notice)\b|{_STAMP}I tensorflow|^I\d{{4}} |\bNCCL INFO\b", re.IGNORECASE)
_WARNS = re.compile(rf"{_STAMP}warn(?:ing)?\b|{_STAMP}W tensorflow|^W\d{{4}} |\b[a-z]{{2,30}}warning: ", re.IGNORECASE)


def says_little(text: str) -> bool:
    """Whether a line calls itself information: libraries tell there of what they tried and did without."""
    return _LITTLE.search(text[:300]) is not None


def warns(text: str) -> bool:
    """Whether a line calls itself a warning (NCCL's are errors)."""
    return _WARNS.search(text[:300]) is not None


def _look(files: Sequence[LogFile]) -> list[Found]:
    """Lines that tell, in the order of the files; of many the same, the first and the last of a file."""
    out: list[Found] = []
    for file in files:
        of_file: dict[str, list[Found]] = {}
        for line in file.lines:
            one = None if says_little(line.text) else find_pattern(line.text)
            if one is None:
                continue
            kept = of_file.setdefault(one.key, [])
            del kept[1:]
            kept.append(Found(one.key, file.path, line.number, line.text, line.back < LATE_LINES, warns(line.text)))
        flat = [f for kept in of_file.values() for f in kept]
        out += flat[: max(0, MOST_FOUND - len(out))]
    return out
