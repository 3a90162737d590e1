"""The manifest: which Parquet files make up the lake. Replaced whole, so a reader sees one state or the next."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from queuecast.errors import LakeDamaged, LakeTooNew
from queuecast.schema import SCHEMA_VERSION

NAME = "manifest.json"


@dataclass(frozen=True)
class DataFile:
    """One Parquet file. ``low`` and ``high`` bound the table's partition time (ISO, UTC; "" if all are null)."""

    table: str
    cluster: str
    month: str
    path: str
    rows: int
    bytes: int
    low: str
    high: str


@dataclass
class Manifest:
    """``state`` is free JSON kept by collectors (where they stopped); ``retired`` maps replaced files to the time
    they were replaced: readers that still hold the old manifest may finish before they are removed."""

    version: int = 0
    schema_version: int = SCHEMA_VERSION
    written_at: str = ""
    written_by: str = ""
    files: list[DataFile] = field(default_factory=list)
    retired: dict[str, str] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)

    def of(self, table: str, cluster: str | None = None) -> list[DataFile]:
        return [f for f in self.files if f.table == table and (cluster is None or f.cluster == cluster)]


def load(root: Path) -> Manifest:
    """Read the manifest of the lake at ``root``; an absent one is an empty lake.

    Raises ``LakeDamaged`` if it is not JSON of the right form, ``LakeTooNew`` if a later queuecast wrote it.
    """
    path = root / NAME
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return Manifest()
    try:
        raw = json.loads(text)
        version = int(raw["schema_version"])
        if version > SCHEMA_VERSION:
            raise LakeTooNew(
                f"the lake at {root} has schema version {version}; this queuecast knows up to {SCHEMA_VERSION}",
                "update queuecast, or point --lake at another folder",
            )
        raw["files"] = [DataFile(**f) for f in raw["files"]]
        return Manifest(**raw)
    except (ValueError, KeyError, TypeError) as error:
        raise LakeDamaged(f"{path} is not a manifest of queuecast ({error})", "move it aside and run: queuecast rebuild") from error


def save(root: Path, manifest: Manifest, label: str) -> None:
    """Write the manifest durably and swap it in; the version goes up by one."""
    manifest.version += 1
    manifest.written_at = datetime.now(UTC).isoformat(timespec="seconds")
    manifest.written_by = label
    path, temporary = root / NAME, root / (NAME + ".new")
    with temporary.open("w", encoding="utf-8") as out:
        json.dump(asdict(manifest), out, indent=1)
        out.flush()
        os.fsync(out.fileno())
    os.replace(temporary, path)
    fsync_dir(root)


def fsync_dir(path: Path) -> None:
    """Make renames in ``path`` durable."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
