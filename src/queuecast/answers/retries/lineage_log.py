"""The lake's own memory of copies: one JSON line for each that was made, only ever appended to.

It serves where accounting does not keep comments. A line does not know the copy's job id, which Slurm gives out later; the
job is found by who submitted what from where.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from queuecast.answers.retries.answer import RetryAnswer

NAME: Final = "lineage.jsonl"
MOST_BYTES: Final = 8 << 20
"""Only the end of a longer log is read."""
MOST_LINE: Final = 8192


@dataclass(frozen=True)
class Entry:
    """A copy that was made at ``at`` (UTC): of which job, of whose, from which folder, into which file (None: printed)."""

    at: datetime
    cluster: str
    parent: str
    user: str | None
    name: str | None
    folder: str | None
    file: str | None
    changes: Mapping[str, str | None]


def append(lake: Path, answer: RetryAnswer, at: datetime, file: str | None) -> bool:
    """Add one line, in one write, so that lines of several writers do not mix. False if the lake cannot be written to."""
    told = {
        "at": at.astimezone(UTC).isoformat(),
        "cluster": answer.cluster,
        "parent": answer.job,
        "user": answer.user,
        "name": answer.name,
        "folder": answer.folder,
        "file": file,
        "changes": {c.option: c.after for c in answer.changes},
    }
    line = json.dumps(told, ensure_ascii=True).encode() + b"\n"
    if len(line) > MOST_LINE:
        line = json.dumps({**told, "changes": {}, "folder": None, "file": None}).encode() + b"\n"
    try:
        handle = os.open(lake / NAME, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o664)
    except OSError:
        return False
    try:
        return os.write(handle, line) == len(line)
    except OSError:
        return False
    finally:
        os.close(handle)


def entries(lake: Path, cluster: str, at: datetime) -> list[Entry]:
    """Lines of the cluster up to ``at``, oldest first; lines that are none are left out."""
    try:
        with (lake / NAME).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - MOST_BYTES))
            raw = file.read(MOST_BYTES)
    except OSError:
        return []
    lines = raw.split(b"\n")
    out = [e for line in (lines[1:] if size > MOST_BYTES else lines) if line and (e := _entry(line)) is not None]
    return sorted((e for e in out if e.cluster == cluster and e.at <= at), key=lambda e: e.at)


def _entry(line: bytes) -> Entry | None:
    try:
        told: dict[str, Any] = json.loads(line)
        at = datetime.fromisoformat(told["at"])
        changes = told.get("changes") or {}
        if at.tzinfo is None or not isinstance(changes, dict):
            return None
        texts = {k: told.get(k) if isinstance(told.get(k), str) else None for k in ("user", "name", "folder", "file")}
        return Entry(at, str(told["cluster"]), str(told["parent"]), texts["user"], texts["name"], texts["folder"], texts["file"], changes)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
