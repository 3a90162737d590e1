"""The lake: immutable Parquet files by table, cluster and month, named by one manifest.

Writing goes through a transaction: rows are staged in files of their own, merged by key into new files, and one
rename of the manifest makes them the lake. Killed at any instant, the old manifest stands and the next writer
removes what was left over. Reading needs no lock.
"""

from __future__ import annotations

import copy
import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from queuecast.errors import LakeDamaged, StoreError
from queuecast.schema import SCHEMA_VERSION, TABLES, arrow_schema
from queuecast.store import manifest as manifests
from queuecast.store.files import conform, last_reading, read_file
from queuecast.store.lock import writer_lock
from queuecast.store.manifest import DataFile, Manifest
from queuecast.store.staging import Staging

if TYPE_CHECKING:
    from queuecast.store.query import Merger

GRACE = timedelta(minutes=15)
"""Replaced files stay that long for readers that began before."""

TOO_MANY = 12
"""With more files than that in a partition the small ones are merged, so that reading stays fast."""

SMALL = 50_000
"""Rows of a file that is merged whatever it meets; a larger one only with about a quarter of its own size, so that a
month of snapshots is not written anew for each of them."""

NOT_OF_SLURM = frozenset(("rejects", "job_use", "gpu_samples"))
"""Tables that say nothing of when Slurm was last read: readings of GPUs may be newer than the last look at the queue."""


class Lake:
    """A lake at ``path``. Opening reads only the manifest."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest

    @classmethod
    def open(cls, path: str | Path, *, create: bool = False) -> Lake:
        """Open the lake; with ``create`` an absent folder becomes an empty lake.

        Raises ``StoreError`` if there is none, ``LakeDamaged`` or ``LakeTooNew`` if it cannot be used.
        """
        root = Path(path).expanduser().absolute()
        if not (root / manifests.NAME).exists():
            if not create:
                raise StoreError(
                    f"there is no lake at {root}", "make one with: queuecast ingest FOLDER, or: queuecast collect (see --lake)"
                )
            try:
                root.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise StoreError(f"cannot make a lake at {root}: {error.strerror}", "choose another folder with --lake") from error
        return cls(root, manifests.load(root))

    def refresh(self) -> Lake:
        """Read the manifest again."""
        self.manifest = manifests.load(self.path)
        return self

    @property
    def clusters(self) -> list[str]:
        """Clusters with jobs or snapshots, sorted."""
        return sorted({f.cluster for f in self.manifest.files if f.table != "rejects"})

    def files(self, table: str, *, cluster: str | None = None, since: datetime | None = None, until: datetime | None = None) -> list[Path]:
        """Files of a table that may hold rows with ``since <= partition time < until``.

        Raises ``LakeDamaged`` if one is missing or has another size than was written.
        """
        chosen = []
        for f in self.manifest.of(table, cluster):
            if since is not None and f.high and datetime.fromisoformat(f.high) < since:
                continue
            if until is not None and f.low and datetime.fromisoformat(f.low) >= until:
                continue
            path = self.path / f.path
            try:
                size = path.stat().st_size
            except OSError:
                size = -1
            if size != f.bytes:
                raise LakeDamaged(
                    f"{path} is {'missing' if size < 0 else 'not what was written'}", "restore it from a backup, or run: queuecast rebuild"
                )
            chosen.append(path)
        return chosen

    def read(
        self,
        table: str,
        columns: Sequence[str] | None = None,
        *,
        cluster: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        dictionary: bool = False,
    ) -> pa.Table:
        """All rows that may lie between the times (the bounds are coarse), with the schema's columns.

        With ``dictionary`` texts come dictionary-encoded: less memory where they repeat.
        """
        schema = arrow_schema(table)
        if columns is not None:
            schema = pa.schema([schema.field(c) for c in columns])
        parts = [
            read_file(p, schema, time=TABLES[table].partition_time, since=since, until=until, dictionary=dictionary)
            for p in self.files(table, cluster=cluster, since=since, until=until)
        ]
        return pa.concat_tables(parts) if parts else pa.Table.from_batches([], schema=schema)  # empty_table() would import pandas

    @contextmanager
    def transaction(self, label: str, *, wait_s: float = 0.0) -> Iterator[Transaction]:
        """Write rows. All of them arrive when the block ends, or none if it raises.

        Raises ``LakeLocked`` if another process writes.
        """
        with writer_lock(self.path / ".lock", label, wait_s):
            self.refresh()
            self._clean()
            upgrade(self)
            tx = Transaction(self, label)
            try:
                yield tx
                tx.commit()
            finally:
                shutil.rmtree(tx.folder, ignore_errors=True)

    def _clean(self) -> None:
        """Remove what killed writers left and what was replaced long enough ago. Needs the lock."""
        shutil.rmtree(self.path / "staging", ignore_errors=True)
        live = {f.path for f in self.manifest.files}
        horizon = datetime.now(UTC) - GRACE
        for path in (self.path / "data").rglob("*.parquet"):
            name = path.relative_to(self.path).as_posix()
            retired = self.manifest.retired.get(name)
            if name not in live and (retired is None or datetime.fromisoformat(retired) < horizon):
                path.unlink(missing_ok=True)
        self.manifest.retired = {n: t for n, t in self.manifest.retired.items() if (self.path / n).exists()}


class Transaction:
    """Rows on their way into the lake. ``state`` is the collectors' own memory, saved with the rows."""

    def __init__(self, lake: Lake, label: str) -> None:
        self.lake = lake
        self.label = label
        self.folder = lake.path / "staging" / uuid.uuid4().hex
        self.folder.mkdir(parents=True)
        self.state: dict[str, Any] = copy.deepcopy(lake.manifest.state)
        self.rows: dict[str, int] = {}
        self._staging: dict[str, Staging] = {}
        self._cleared = False

    def append(self, table: str, rows: pa.Table) -> None:
        """Add rows to a table. Columns not given are null; columns the schema does not know are an error."""
        unknown = set(rows.column_names) - set(TABLES[table].column_names)
        if unknown:
            raise StoreError(f"table {table} has no column {sorted(unknown)}")
        if rows.num_rows:
            self._note_seen(table, rows)
            self.rows[table] = self.rows.get(table, 0) + rows.num_rows
            if table not in self._staging:
                self._staging[table] = Staging(TABLES[table], self.folder / table)
            self._staging[table].append(conform(rows, arrow_schema(table)))

    def clear(self) -> None:
        """Drop every row that the lake holds when this transaction commits; what is appended is then all there is."""
        self._cleared = True

    def _note_seen(self, table: str, rows: pa.Table) -> None:
        """Keep, by cluster and table, the latest moment that was read: also of readings that brought nothing new."""
        if table in NOT_OF_SLURM or "observed_at" not in rows.column_names or "cluster" not in rows.column_names:
            return
        latest = rows.select(["cluster", "observed_at"]).group_by("cluster").aggregate([("observed_at", "max")])
        for cluster, moment in zip(latest["cluster"].to_pylist(), latest["observed_at_max"].to_pylist(), strict=True):
            if cluster and moment is not None:
                self.note_read(cluster, table, moment)

    def note_read(self, cluster: str, table: str, moment: datetime) -> None:
        """Keep that a table was read from Slurm at ``moment``, even if it gave no row: an empty queue is known too."""
        known = self.state.setdefault("seen", {}).setdefault(cluster, {})
        known[table] = max(known.get(table, ""), moment.astimezone(UTC).isoformat(timespec="seconds"))

    def commit(self) -> None:
        """Merge, then swap the manifest in. Called by ``Lake.transaction``."""
        manifest = self.lake.manifest
        files = [] if self._cleared else list(manifest.files)
        retired: list[DataFile] = list(manifest.files) if self._cleared else []
        if self._staging:
            from queuecast.store.query import Merger  # duckdb: only where rows are written

            merger = Merger(self.folder / "spill")
            try:
                for name, staging in self._staging.items():
                    latest = _latest_reading(self.lake, name) if TABLES[name].steady and not self._cleared else {}
                    for cluster, month, path, low, high in staging.close(latest):
                        new, gone = self._merge(merger, name, cluster, month, path, low, high, [f for f in files if f.table == name])
                        files = [f for f in files if f not in gone] + [new]
                        retired += gone
            finally:
                merger.close()
        now = datetime.now(UTC).isoformat(timespec="seconds")
        manifest.files = sorted(files, key=lambda f: (f.table, f.cluster, f.month, f.low, f.path))
        manifest.retired.update({f.path: now for f in retired})
        manifest.state = self.state
        manifest.schema_version = SCHEMA_VERSION
        manifests.save(self.lake.path, manifest, self.label)

    def _merge(
        self, merger: Merger, table: str, cluster: str, month: str, staged: Path, low: str, high: str, present: list[DataFile]
    ) -> tuple[DataFile, list[DataFile]]:
        here = [f for f in present if f.cluster == cluster and f.month == month]
        # Rows with one key have one partition time, so only files whose span touches ours can share a key.
        touching = [f for f in here if not low or not f.low or (f.low <= high and low <= f.high)]
        if len(here) - len(touching) >= TOO_MANY:
            touching = touching + _small_ones([f for f in here if f not in touching], pq.read_metadata(staged).num_rows)
        folder = Path("data") / table / safe_name(cluster) / (month or "undated")
        (self.lake.path / folder).mkdir(parents=True, exist_ok=True)
        target = self.lake.path / folder / f"{uuid.uuid4().hex}.parquet"
        old = [self.lake.path / f.path for f in touching]
        if not merger.merge(TABLES[table], staged, old, target):
            staged.replace(target)
        with target.open("rb") as done:
            os.fsync(done.fileno())
        manifests.fsync_dir(target.parent)
        lows = [x for x in (low, *(f.low for f in touching)) if x]
        highs = [x for x in (high, *(f.high for f in touching)) if x]
        return DataFile(
            table,
            cluster,
            month,
            (folder / target.name).as_posix(),
            pq.read_metadata(target).num_rows,
            target.stat().st_size,
            min(lows, default=""),
            max(highs, default=""),
        ), touching


def _small_ones(files: list[DataFile], rows: int) -> list[DataFile]:
    """Files to merge with ``rows`` new rows: smallest first, as long as the next is not much larger than all before it."""
    chosen = []
    for file in sorted(files, key=lambda f: f.rows):
        if file.rows > max(SMALL, 4 * rows):
            break
        chosen.append(file)
        rows += file.rows
    return chosen


def _latest_reading(lake: Lake, table: str) -> dict[str, pa.Table]:
    """By cluster, the rows of the last reading of a steady table (of each of its parts)."""
    out: dict[str, pa.Table] = {}
    for cluster in {f.cluster for f in lake.manifest.of(table)}:
        files = lake.manifest.of(table, cluster)
        if not TABLES[table].parts:
            files = [max(files, key=lambda f: f.high)]
        rows = pa.concat_tables([read_file(lake.path / f.path, arrow_schema(table)) for f in files])
        out[cluster] = last_reading(rows, TABLES[table].parts)
    return out


def safe_name(text: str) -> str:
    """A folder name for a cluster name."""
    from urllib.parse import quote

    return quote(text, safe="") or "_"


def upgrade(lake: Lake) -> None:
    """Bring an older lake to this schema version. Needs the lock; each step leaves a whole lake."""
    from queuecast.store.migrate import migrate

    if lake.manifest.files and lake.manifest.schema_version < SCHEMA_VERSION:
        migrate(lake)
