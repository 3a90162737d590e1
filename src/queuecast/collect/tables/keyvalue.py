"""scontrol's ``Key=Value`` records, on one line each or on several, and ``scontrol show config``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, BinaryIO

import pyarrow as pa

from queuecast.collect.columns import Env
from queuecast.collect.convert import Parser, bounded
from queuecast.collect.framing import Section, Seen
from queuecast.collect.rejects import Rejects
from queuecast.collect.streams import MARKER, MESSAGE, refuse_binary
from queuecast.errors import ParseError
from queuecast.schema import arrow_schema
from queuecast.slurmtext.nulls import TEXT, clean
from queuecast.slurmtext.showjob import is_whole, split_job

BATCH = 20_000
"""Rows that wait in memory before they are handed on."""

_KEY = re.compile(r"(?:^|\s)([A-Za-z][A-Za-z0-9_/:]*)=")
FIRST = {"nodes": "NodeName", "partitions": "PartitionName", "reservations": "ReservationName", "jobs_detail": "JobId"}
NOTHING = re.compile(rb"No reservations in the system|No (nodes|partitions|jobs) (found|in the system)")
MAX_LINES = 200
"""Lines of one record; what comes after is not part of it."""
MAX_JOB_LINES = 20_000
"""The same of a job, which has a line for each group of its nodes."""


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


@dataclass
class JobRecord(Record):
    """A job, with the devices that ``-d`` tells for its nodes: (nodes, GRES of each)."""

    gres: tuple[tuple[str, str], ...] = ()


class Values:
    """Values of a record; a bad one is null and a reject."""

    def __init__(self, record: Record, env: Env) -> None:
        self.record, self.env = record, env

    def of(self, parse: Parser, *names: str) -> Any:
        """``parse`` of the first of the fields there; None if there is none."""
        text = self.record.get(*names)
        if text is None:
            return None
        return self.parsed(parse, next(n for n in names if n in self.record.fields), text)

    def parsed(self, parse: Parser, name: str, text: str) -> Any:
        """``parse`` of a text that stands for the field ``name``."""
        try:
            return bounded(parse(text), text)
        except ParseError as error:
            where = self.record.section
            self.env.rejects.value(self.record.line, name, error.cause, text, cluster=where.cluster, at=where.at)
            return None

    def text(self, *names: str, null: frozenset[str] = TEXT) -> str | None:
        """The text of the first of the fields there; None also for the ways to say "nothing"."""
        found = self.record.get(*names)
        return None if found is None else clean(found, spellings=null)

    @property
    def where(self) -> dict[str, Any]:
        """Cluster and time of the row."""
        section = self.record.section
        return {"cluster": section.cluster or self.env.cluster, "observed_at": section.at or self.env.taken_at}


def in_batches(table: str, rows: Iterable[dict[str, Any] | None]) -> Iterator[tuple[str, pa.Table]]:
    """Rows as tables of bounded size; None is no row."""
    batch: list[dict[str, Any]] = []
    for row in rows:
        if row is not None:
            batch.append(row)
        if len(batch) >= BATCH:
            yield table, pa.Table.from_pylist(batch, arrow_schema(table))
            batch = []
    if batch:
        yield table, pa.Table.from_pylist(batch, arrow_schema(table))


def split(text: str) -> dict[str, str]:
    """Keys and values of one record; values may hold blanks (``OS=Linux 6.1 #1 SMP``)."""
    found = list(_KEY.finditer(text))
    out: dict[str, str] = {}
    for match, following in zip(found, [*found[1:], None], strict=True):
        value = text[match.end() : following.start() if following else len(text)].strip()
        out.setdefault(match[1], value)
    return out


def sections(stream: BinaryIO, seen: Seen, sampled: bool) -> Iterator[tuple[int, bytes, Section]]:
    """Lines with their number and section; markers, messages and blanks are taken out."""
    section = Section()
    for number, raw in enumerate(stream, 1):
        line = raw.rstrip(b"\r\n")
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
            refuse_binary(line)
        seen.read += 1
        if not line.strip():
            seen.blank += 1
        elif sampled and (match := MARKER.match(line)):
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
    for start, section, lines in _stretches(stream, kind, rejects, seen, sampled):
        raw = b"\n".join(lines)
        text = raw.decode("utf-8", "replace").replace("\x00", "")
        seen.in_rows += len(lines)
        yield Record(start, split(text), section, "\ufffd" in text, raw)


def job_records(stream: BinaryIO, rejects: Rejects, seen: Seen, sampled: bool) -> Iterator[JobRecord]:
    """The records of ``scontrol show job``. What is none of them, or cannot be told apart from a user's text, is a reject."""
    for start, section, lines in _stretches(stream, "jobs_detail", rejects, seen, sampled):
        raw = b"\n".join(lines)
        text = raw.decode("utf-8", "replace").replace("\x00", "")
        try:
            shown = split_job(text)
        except ParseError as error:
            seen.rejected += len(lines)
            rejects.record(start, error.cause, raw, cluster=section.cluster, at=section.at)
            continue
        seen.in_rows += len(lines)
        yield JobRecord(start, shown.fields, section, "\ufffd" in text, raw, shown.gres)


def _stretches(stream: BinaryIO, kind: str, rejects: Rejects, seen: Seen, sampled: bool) -> Iterator[tuple[int, Section, list[bytes]]]:
    """(number of the first line, section, lines) of each record."""
    begin = FIRST[kind].encode() + b"="
    longest = MAX_JOB_LINES if kind == "jobs_detail" else MAX_LINES
    lines: list[bytes] = []
    start, where = 0, Section()

    def begins(line: bytes) -> bool:
        if not line.startswith(begin):
            return False
        # a job's name may hold a line that looks like the beginning of another job
        return kind != "jobs_detail" or not lines or is_whole(b"\n".join(lines).decode("utf-8", "replace"))

    for number, line, section in sections(stream, seen, sampled):
        new = begins(line) or (lines and section is not where)
        if new:
            if lines:
                yield start, where, lines
            lines, start, where = [], number, section
        if not (lines or line.startswith(begin)) or len(lines) >= longest:
            seen.rejected += 1
            rejects.record(number, f"not a record of scontrol show {FIRST[kind].removesuffix('Name').removesuffix('Id').lower()}", line,
                           at=section.at)
            continue
        lines.append(line)
    if lines:
        yield start, where, lines


def settings(stream: BinaryIO, seen: Seen, sampled: bool) -> Iterator[tuple[Section, str, str | None]]:
    """Keys and values of ``scontrol show config``; a key that a later part repeats gets the part's name before it."""
    part = ""
    had: set[tuple[int, str]] = set()
    for _, line, section in sections(stream, seen, sampled):
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
