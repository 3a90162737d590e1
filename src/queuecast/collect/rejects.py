"""What could not be parsed: kept with its cause and its text, so that a later version can read it."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import datetime

import pyarrow as pa

from queuecast.schema import arrow_schema

MAX_RAW = 64 * 1024
"""Longest raw text kept in a reject, in characters. The archive keeps all of it."""

FLUSH = 50_000
"""Rejects held in memory before they are handed on."""


def printable(raw: bytes | str) -> str:
    """Raw text as it may stand in a table: bytes that are not UTF-8 as ``\\xNN``, NUL likewise, at most ``MAX_RAW`` long."""
    text = raw[: MAX_RAW + 4].decode("utf-8", "backslashreplace") if isinstance(raw, bytes) else raw[: MAX_RAW + 4]
    text = text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\x00", "\\x00")
    return text if len(text) <= MAX_RAW else text[:MAX_RAW]


class Rejects:
    """The rejects of one capture.

    ``records`` counts whole records that gave no row, ``values`` counts single values set to null in rows that were
    kept, ``causes`` both by cause.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.records = 0
        self.values = 0
        self.causes: Counter[str] = Counter()
        self._lock = threading.Lock()  # lines are cut and values converted in two threads
        self._seen: set[tuple[int, str]] = set()
        self._rows: list[tuple[str | None, int, str, str, datetime | None]] = []

    def record(self, line: int, cause: str, raw: bytes | str, *, cluster: str | None = None, at: datetime | None = None) -> None:
        """A record that gives no row. ``line`` counts from 1."""
        self.records += 1
        self._add(line, cause, raw, cluster, at)

    def value(self, line: int, column: str, cause: str, raw: str, *, cluster: str | None = None,
              at: datetime | None = None) -> None:
        """A value that is null in a row that was kept."""
        self.values += 1
        self._add(line, f"{column}: {cause}", f"{column}={raw}", cluster, at)

    def _add(self, line: int, cause: str, raw: bytes | str, cluster: str | None, at: datetime | None) -> None:
        with self._lock:
            self.causes[cause] += 1
            if (line, cause) not in self._seen:  # the key of the table: one capture, one line, one cause
                self._seen.add((line, cause))
                self._rows.append((cluster, line, cause, printable(raw), at))

    def __len__(self) -> int:
        return len(self._rows)

    def take(self, cluster: str, source_file: str, taken_at: datetime) -> pa.Table:
        """The rejects since the last call, as rows of the table ``rejects``."""
        with self._lock:
            rows, self._rows = self._rows, []
            self._seen.clear()
        schema = arrow_schema("rejects")
        return pa.table(
            {
                "cluster": pa.array([r[0] or cluster for r in rows], pa.string()),
                "kind": pa.array([self.kind] * len(rows), pa.string()),
                "source_file": pa.array([source_file] * len(rows), pa.string()),
                "line": pa.array([r[1] for r in rows], pa.int64()),
                "cause": pa.array([r[2] for r in rows], pa.string()),
                "raw": pa.array([r[3] for r in rows], pa.string()),
                "observed_at": pa.array([r[4] or taken_at for r in rows], schema.field("observed_at").type),
            },
            schema=schema,
        )
