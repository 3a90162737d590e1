"""Older lakes brought to the present schema, step by step.

A step names the schema version it starts from and what changed since. Added columns need no step: files without
them read as null. Renamed columns are renamed; ``convert`` may compute anything else. Each step rewrites the files
of the tables it touches and swaps the manifest once, so an interrupted migration starts over from a whole lake.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from queuecast.errors import StoreError
from queuecast.schema import SCHEMA_VERSION
from queuecast.store import manifest as manifests
from queuecast.store.manifest import DataFile

if TYPE_CHECKING:
    from queuecast.store.lake import Lake


@dataclass(frozen=True)
class Step:
    """``renames`` maps table -> old column -> new column."""

    from_version: int
    renames: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    convert: Callable[[str, pa.Table], pa.Table] | None = None


STEPS: list[Step] = []
"""None yet: version 1 is the first that was released."""


def migrate(lake: Lake) -> None:
    """Run the steps from the lake's version up to ``SCHEMA_VERSION``. Needs the writer's lock."""
    by_version = {s.from_version: s for s in STEPS}
    while lake.manifest.schema_version < SCHEMA_VERSION:
        step = by_version.get(lake.manifest.schema_version)
        if step is None:
            raise StoreError(
                f"no way is known from schema version {lake.manifest.schema_version} to {SCHEMA_VERSION}",
                "run: queuecast rebuild, which reads the archived Slurm output again",
            )
        _run(lake, step)


def _run(lake: Lake, step: Step) -> None:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    files: list[DataFile] = []
    for f in lake.manifest.files:
        renames = step.renames.get(f.table, {})
        if not renames and step.convert is None:
            files.append(f)
            continue
        with pq.ParquetFile(lake.path / f.path) as file:
            rows = file.read()
        rows = rows.rename_columns([renames.get(n, n) for n in rows.column_names])
        if step.convert is not None:
            rows = step.convert(f.table, rows)
        path = (lake.path / f.path).with_name(f"{uuid.uuid4().hex}.parquet")
        pq.write_table(rows, path, compression="zstd")
        lake.manifest.retired[f.path] = now
        files.append(
            DataFile(f.table, f.cluster, f.month, path.relative_to(lake.path).as_posix(), rows.num_rows, path.stat().st_size, f.low, f.high)
        )
    lake.manifest.files = files
    lake.manifest.schema_version = step.from_version + 1
    manifests.save(lake.path, lake.manifest, f"migration from version {step.from_version}")
