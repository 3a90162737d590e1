"""Reads the two ends of a log: bounded, only plain files, and only files of the job's owner.

The path of a log is what the owner of the job made it, so a program that runs as somebody else (the app) must not open what
the owner could not: the file opened has to belong to the owner of the job, whatever links lead to it.
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from queuecast.i18n import _

HEAD_BYTES, TAIL_BYTES = 16 << 10, 256 << 10
LONGEST = 2000
"""Characters of a line that are kept."""
Status = Literal["read", "missing", "denied", "not_owned", "not_a_file", "binary", "empty", "older"]

_ESCAPE = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,500}(\x07|\x1b\\)?|[@-Z\\-_])")
_BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"


@dataclass(frozen=True)
class Line:
    """``number`` counts from 1; None behind a gap, where it is not known. ``back``: lines to the end of the file (0 is the last).
    ``text`` is cleaned: no control or formatting characters."""

    number: int | None
    back: int
    text: str


@dataclass(frozen=True)
class LogFile:
    """What was read of ``path``. ``gap_bytes``: left out between head and tail. ``modified`` (UTC): last written."""

    path: str
    status: Status
    size: int | None = None
    modified: datetime | None = None
    lines: tuple[Line, ...] = ()
    gap_bytes: int = 0

    @property
    def problem(self) -> str | None:
        """Why nothing was read, as a sentence."""
        return {
            "missing": _("It is not there: moved, deleted, or never written."),
            "denied": _("It may not be read by this account."),
            "not_owned": _("It does not belong to the owner of the job, so it was not opened."),
            "not_a_file": _("It is no plain file (a device, pipe or folder), so it was not opened."),
            "binary": _("It holds no text."),
            "empty": _("It is empty."),
            "older": _("It was last written before the job started: not this job's, or the job wrote nothing."),
        }.get(self.status)


def clean(text: str) -> str:
    """Hostile text as one harmless line: terminal sequences are dropped, other control and direction characters shown as an escape."""
    text = _ESCAPE.sub("", text).replace("\t", " ")
    if text.isascii() and text.isprintable():
        return text[:LONGEST].rstrip()
    shown = "".join(
        c if c.isprintable() and c not in _BIDI and unicodedata.category(c)[0] != "C" else c.encode("unicode_escape").decode()
        for c in text[:LONGEST]
    )
    return shown[:LONGEST].rstrip()


def read_log(path: str, owner: int | None, started: datetime | None = None) -> LogFile:
    """Both ends of a log. ``owner``: uid that the file must have; None: whatever this process may read (files named by whoever
    runs it). Never raises for what is on the disk."""
    try:
        # Not blocking: a pipe in the log's place would never open. No terminal either.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return LogFile(path, "missing")
    except PermissionError:
        return LogFile(path, "denied")
    except (OSError, ValueError):
        return LogFile(path, "not_a_file")
    try:
        about = os.fstat(handle)
        modified = datetime.fromtimestamp(min(max(about.st_mtime, 0.0), 4e9), UTC)
        if not stat.S_ISREG(about.st_mode):
            return LogFile(path, "not_a_file")
        if owner is not None and about.st_uid != owner:
            return LogFile(path, "not_owned")
        if about.st_size == 0:
            return LogFile(path, "empty", 0, modified)
        if started is not None and modified < started - timedelta(minutes=1):
            return LogFile(path, "older", about.st_size, modified)
        return _ends(path, handle, about.st_size, modified)
    except OSError:
        return LogFile(path, "denied")
    finally:
        os.close(handle)


def _ends(path: str, handle: int, size: int, modified: datetime) -> LogFile:
    whole = size <= HEAD_BYTES + TAIL_BYTES
    head = os.pread(handle, size if whole else HEAD_BYTES, 0)
    tail = b"" if whole else os.pread(handle, TAIL_BYTES, size - TAIL_BYTES)
    if _binary(head) or _binary(tail):
        return LogFile(path, "binary", size, modified)
    first = _texts(head)
    last = _texts(tail)
    if not whole:
        first, last = first[:-1] or first, last[1:] or last  # the lines that were cut in two
    count = len(first) + len(last)
    lines = [Line(i + 1, count - 1 - i, clean(t)) for i, t in enumerate(first)]
    lines += [Line(None, len(last) - 1 - i, clean(t)) for i, t in enumerate(last)]
    return LogFile(path, "read", size, modified, tuple(lines), 0 if whole else size - HEAD_BYTES - TAIL_BYTES)


def _texts(raw: bytes) -> list[str]:
    """Lines; of a progress bar, which goes back to the start of its line, the last state."""
    lines = raw.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return [line.rstrip("\r").rpartition("\r")[2] for line in lines]


def _binary(raw: bytes) -> bool:
    """NUL bytes (but a hole that a truncated log leaves at its beginning is none), or mostly bytes that no text has."""
    raw = raw.lstrip(b"\0")
    if not raw:
        return False
    odd = sum(raw.count(bytes([c])) for c in (*range(7), *range(14, 27), 28, 29, 30, 31))
    return odd > len(raw) // 50


def owner_of(uid: int | None, user: str | None) -> int | None:
    """The uid that a job's files must have: as accounting tells it, else by name on this machine. None if neither is known."""
    if uid is not None:
        return uid
    import pwd

    try:
        return pwd.getpwnam(user).pw_uid if user else None
    except (KeyError, ValueError):
        return None
