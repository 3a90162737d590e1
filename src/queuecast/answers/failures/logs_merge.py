"""Several logs of one job (per node, per rank) as one, in the order of time, with node and level."""

from __future__ import annotations

import heapq
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Literal

from queuecast.answers.failures.logs_read import LogFile

Level = Literal["error", "warning", "info", "debug"]

_MONTHS = {m: i + 1 for i, m in enumerate(("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"))}
_ISO = re.compile(
    r"(?<!\d)(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?\s?(Z|[+-]\d\d:?\d\d)?(?!\d)", re.IGNORECASE
)
_SYSLOG = re.compile(
    r"^(?:<\d{1,3}>)?(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec) {1,2}(\d{1,2}) (\d\d):(\d\d):(\d\d)(?: (\S{1,64}))?", re.IGNORECASE
)
_GLOG = re.compile(r"^([IWEF])(\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{1,6})")
_LEVEL = re.compile(
    r"(?:^|[\s\[(:|])(?:\x1b)?(critical|fatal|emerg|alert|error|err|severe|warning|warn|notice|info|debug|trace)(?=[\])\s:|]|$)",
    re.IGNORECASE,
)
_LEVELS: dict[str, Level] = {
    "critical": "error", "fatal": "error", "emerg": "error", "alert": "error", "error": "error", "err": "error", "severe": "error",
    "warning": "warning", "warn": "warning", "notice": "info", "info": "info", "debug": "debug", "trace": "debug",
}  # fmt: skip
_NCCL = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]{0,63}):\d{1,8}:\d{1,8} \[-?\d{1,3}\] (?:NCCL )?")
_LABEL = re.compile(r"^\[?([A-Za-z][A-Za-z0-9._-]{0,63})\]?: ")
_RANK = re.compile(r"^(\d{1,6}): |^\[?(?:rank|default|worker)[ _]?(\d{1,6})\]?", re.IGNORECASE)


@dataclass(frozen=True)
class MergedLine:
    """``at`` (UTC): of the line itself; None: the line has none, and stands behind the one above it in its file. ``node`` and
    ``rank``: None if neither line nor file name tells. ``text`` is cleaned."""

    path: str
    number: int | None
    at: datetime | None
    level: Level | None
    node: str | None
    rank: int | None
    text: str


@dataclass(frozen=True)
class MergedLog:
    """The last lines of all files by time. ``dated``: files with times; others stand at the end, each whole. ``left_out``: lines
    before those shown. ``levels``: how many lines of each level were read."""

    lines: tuple[MergedLine, ...]
    dated: int
    files: int
    left_out: int
    levels: dict[str, int]


def merge_logs(files: Iterable[LogFile], *, zone: tzinfo = UTC, nodes: Iterable[str] = (), year: int = 1970, most: int = 200) -> MergedLog:
    """Lines of all files by their time stamps: ISO 8601, Python's logging, glog, syslog. ``zone``: of stamps without one. ``year``:
    of stamps without one. A line without a stamp goes with the stamped line above it. Memory is bounded by ``read_log``'s limits
    and ``most``. Never raises for the text of a log."""
    names = frozenset(nodes)
    read = [f for f in files if f.lines]
    dated: list[list[tuple[datetime, int, int, MergedLine]]] = []
    plain: list[MergedLine] = []
    levels: Counter[str] = Counter()
    for index, file in enumerate(read):
        lines = list(_lines(file, zone, names, year))
        levels.update(line.level for line in lines if line.level is not None)
        if not any(line.at for line in lines):
            plain.extend(lines)
            continue
        last = next(line.at for line in lines if line.at is not None)
        keyed = []
        for order, line in enumerate(lines):
            last = max(last, line.at) if line.at is not None else last  # a clock that steps back must not tear a file apart
            keyed.append((last, index, order, line))
        dated.append(keyed)
    ordered = [line for *_key, line in heapq.merge(*dated, key=lambda k: k[:3])]
    every = ordered + plain
    shown = every[-most:] if most > 0 else []
    return MergedLog(tuple(shown), len(dated), len(read), len(every) - len(shown), dict(levels))


def _lines(file: LogFile, zone: tzinfo, names: frozenset[str], year: int) -> Iterator[MergedLine]:
    by_name = node_of_path(file.path, names)
    for line in file.lines:
        text = line.text
        syslog = _SYSLOG.match(text)
        node = by_name
        if found := _NCCL.match(text) or _LABEL.match(text):
            node = found[1] if not names or found[1] in names else node
            if not names and not _NCCL.match(text):
                node = by_name
        elif syslog and syslog[6] and (not names or syslog[6] in names):
            node = syslog[6]
        rank = _RANK.match(text)
        yield MergedLine(
            file.path, line.number, stamp_of(text, zone, year), level_of(text), node, int(rank[1] or rank[2]) if rank else None, text
        )


def node_of_path(path: str, names: frozenset[str]) -> str | None:
    """The node that a file name tells (``train-gpu07.err``), the longest name that fits."""
    base = os.path.basename(path)
    for part in sorted(names, key=lambda n: (-len(n), n)):
        if part in base and re.search(rf"(?<![A-Za-z0-9]){re.escape(part)}(?![A-Za-z0-9])", base):
            return part
    return None


def stamp_of(text: str, zone: tzinfo = UTC, year: int = 1970) -> datetime | None:
    """The time of a line (UTC), looked for in its first 100 characters; None if it has none that can be."""
    text = text[:100]
    try:
        if found := _ISO.search(text):
            y, mo, d, h, mi, s = (int(found[i]) for i in range(1, 7))
            micro = int((found[7] or "0")[:6].ljust(6, "0"))
            offset = found[8]
            if offset:
                iso = "+00:00" if offset.upper() == "Z" else offset if ":" in offset else offset[:3] + ":" + offset[3:]
                return datetime.fromisoformat(f"{y:04}-{mo:02}-{d:02}T{h:02}:{mi:02}:{s:02}.{micro:06}{iso}").astimezone(UTC)
            return datetime(y, mo, d, h, mi, s, micro, tzinfo=zone).astimezone(UTC)
        if found := _SYSLOG.match(text):
            h, mi, s = int(found[3]), int(found[4]), int(found[5])
            return datetime(year, _MONTHS[found[1].lower()], int(found[2]), h, mi, s, tzinfo=zone).astimezone(UTC)
        if found := _GLOG.match(text):
            mo, d, h, mi, s = (int(found[i]) for i in range(2, 7))
            return datetime(year, mo, d, h, mi, s, int(found[7].ljust(6, "0")), tzinfo=zone).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return None


def level_of(text: str) -> Level | None:
    """The level that a line claims in its first 120 characters."""
    if found := _GLOG.match(text):
        return {"I": "info", "W": "warning", "E": "error", "F": "error"}[found[1]]  # type: ignore[return-value]  # of these
    found = _LEVEL.search(text[:120])
    return _LEVELS[found[1].lower()] if found else None
