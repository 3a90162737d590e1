"""scontrol's ``Key=Value`` records, on one line each or on several, and ``scontrol show config``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from queuecast.collect.framing import Section, Seen
from queuecast.collect.rejects import Rejects
from queuecast.collect.streams import MARKER, MESSAGE, refuse_binary

_KEY = re.compile(r"(?:^|\s)([A-Za-z][A-Za-z0-9_/:]*)=")
FIRST = {"nodes": "NodeName", "partitions": "PartitionName", "reservations": "ReservationName"}
NOTHING = re.compile(rb"No reservations in the system|No (nodes|partitions) (found|in the system)")
MAX_LINES = 200
"""Lines of one record; what comes after is not part of it."""


@dataclass
class Record:
    """One record. The first of two equal keys stands: what users write comes last."""

    line: int
    fields: dict[str, str]
    section: Section
    not_utf8: bool
    raw: bytes

    def get(self, *names: str) -> str | None:
        """The value of the first name that is there; None if none is."""
        return next((self.fields[n] for n in names if n in self.fields), None)


def split(text: str) -> dict[str, str]:
    """Keys and values of one record; values may hold blanks (``OS=Linux 6.1 #1 SMP``)."""
    found = list(_KEY.finditer(text))
    out: dict[str, str] = {}
    for match, following in zip(found, [*found[1:], None], strict=True):
        value = text[match.end() : following.start() if following else len(text)].strip()
        out.setdefault(match[1], value)
    return out


def sections(stream: BinaryIO, rejects: Rejects, seen: Seen, sampled: bool) -> Iterator[tuple[int, bytes, Section]]:
    """Lines with their number and section; markers, messages and blanks are taken out."""
    section = Section()
    number = 0
    del rejects
    for number, raw in enumerate(stream, 1):
        line = raw.rstrip(b"\r\n")
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
            refuse_binary(line)
        seen.read += 1
        if not line.strip():
            seen.blank += 1
        elif sampled and (match := MARKER.match(line)):
            from datetime import UTC, datetime

            section = Section(datetime.fromtimestamp(int(match[1]), UTC), None, match[3].decode("utf-8", "replace"))
            seen.markers += 1
        elif line.startswith(b"CLUSTER: "):
            section = Section(section.at, line[9:].strip().decode("utf-8", "replace"), section.command)
            seen.markers += 1
        elif MESSAGE.match(line) or NOTHING.match(line):
            seen.messages += 1
            if not NOTHING.match(line):
                seen.notes[f"Slurm said: {line.decode('utf-8', 'replace')[:200]}"] += 1
        else:
            yield number, line, section


def records(stream: BinaryIO, kind: str, rejects: Rejects, seen: Seen, sampled: bool) -> Iterator[Record]:
    """The records of ``scontrol show node``, ``partition`` or ``reservation``. Lines before the first are rejects."""
    begin = FIRST[kind].encode() + b"="
    lines: list[bytes] = []
    start, where = 0, Section()

    def done() -> Record:
        raw = b"\n".join(lines)
        text = raw.decode("utf-8", "replace").replace("\x00", "")
        seen.in_rows += len(lines)
        return Record(start, split(text), where, "\ufffd" in text, raw)

    for number, line, section in sections(stream, rejects, seen, sampled):
        if line.startswith(begin) or (lines and section is not where):
            if lines:
                yield done()
            lines, start, where = [], number, section
        if not line.startswith(begin) and (not lines or len(lines) >= MAX_LINES):
            seen.rejected += 1
            rejects.record(number, f"not a record of scontrol show {FIRST[kind].removesuffix('Name').lower()}", line,
                           at=section.at)
            continue
        lines.append(line)
    if lines:
        yield done()


def settings(stream: BinaryIO, rejects: Rejects, seen: Seen, sampled: bool) -> Iterator[tuple[Section, str, str | None]]:
    """Keys and values of ``scontrol show config``; a key that a later part repeats gets the part's name before it."""
    part = ""
    had: set[tuple[int, str]] = set()
    for _, line, section in sections(stream, rejects, seen, sampled):
        key, equals, value = line.decode("utf-8", "replace").partition("=")
        seen.in_rows += 1
        if not equals:
            part = key.strip().rstrip(":")
            continue
        name = key.strip()
        if (id(section), name) in had:
            name = f"{part}/{name}"
        had.add((id(section), name))
        text = value.strip()
        yield section, name, None if text == "(null)" else text
