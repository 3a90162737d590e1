"""Captures into the lake: one transaction for all of them, so a folder arrives whole or not at all."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

import pyarrow as pa

from queuecast.collect.archive import ArchiveSource, as_archived, write_capture
from queuecast.collect.parse import Report, parse_capture
from queuecast.collect.recorded import RecordedFolder
from queuecast.collect.source import Capture, SourceFailure
from queuecast.errors import NoDataError
from queuecast.store.lake import Lake, Transaction

ARCHIVE = "archive"
"""Folder of the archive below the lake's."""

Progress = Callable[[str, int], None]
"""Called with the capture's name and the rows read from it so far."""


@dataclass
class IngestSummary:
    """What an ingest did.

    ``rows`` by table (before equal keys are merged), ``rejected`` records that gave no row, ``nulled`` values set to
    null, ``causes`` of both, ``files`` one report per capture, ``failures`` of sources, ``notes`` on the whole.
    """

    rows: Counter[str] = field(default_factory=Counter)
    rejected: int = 0
    nulled: int = 0
    causes: Counter[str] = field(default_factory=Counter)
    files: list[Report] = field(default_factory=list)
    failures: list[SourceFailure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    duration_s: float = 0.0

    def add(self, other: IngestSummary) -> None:
        """Count another ingest's work with this one's."""
        self.rows.update(other.rows)
        self.rejected += other.rejected
        self.nulled += other.nulled
        self.causes.update(other.causes)
        self.files += other.files
        self.failures += other.failures
        self.notes += other.notes
        self.duration_s += other.duration_s

    @property
    def kept(self) -> list[tuple[str, str]]:
        """(file, what it is) of captures that were kept and not read into a table yet."""
        return [(f.source, k) for f in self.files for k in f.kept]


def ingest_captures(captures: Iterable[Capture | SourceFailure], lake: Lake, *, archive: bool = True,
                    progress: Progress | None = None,
                    label: str = "ingest", wait_s: float = 0.0,
                    finish: Callable[[Transaction, IngestSummary], None] | None = None) -> IngestSummary:
    """Read captures into the lake in one transaction; with ``archive`` their bytes are stored first.

    ``finish`` may note in the transaction's state how far the source was read. Raises ``LakeLocked`` if another
    process writes; the lake then, and after any other error, is as it was (captures
    archived so far stay in the archive and do no harm).
    """
    begun = time.monotonic()
    summary = IngestSummary()
    with lake.transaction(label, wait_s=wait_s) as tx:
        for capture in captures:
            if isinstance(capture, SourceFailure):
                summary.failures.append(capture)
                continue
            _ingest(capture, lake, tx, summary, archive, progress)
        if finish is not None:
            finish(tx, summary)
    summary.duration_s = time.monotonic() - begun
    return summary


def _ingest(capture: Capture, lake: Lake, tx: Transaction, summary: IngestSummary, archive: bool,
            progress: Progress | None) -> None:
    name = capture.source_file or capture.kind
    if archive:
        root = lake.path / ARCHIVE
        capture = as_archived(capture, write_capture(root, capture), root)
    report = Report()
    gpu_clusters = tx.state.setdefault("gpu_tracked", {})
    # A capture that mentions no GPU is not proof that the cluster does not count them: an earlier one may have told.
    tracked = True if gpu_clusters.get(capture.cluster or "") else None
    for table, rows in parse_capture(capture, report, tracked=tracked):
        tx.append(table, rows)
        if table == "settings" and _tracks_gpus(rows):
            gpu_clusters[capture.cluster or ""] = True
        if progress is not None:
            progress(name, sum(report.rows.values()))
    if capture.kind == "squeue" and capture.cluster and not capture.sampled and not capture.exit_code and not report.rejected:
        tx.note_read(capture.cluster, "queue", capture.taken_at)
    report.source = name
    summary.rows.update(report.rows)
    summary.rejected += report.rejected
    summary.nulled += report.nulled
    summary.causes.update(report.causes)
    summary.files.append(report)


def _tracks_gpus(settings: pa.Table) -> bool:
    return any(r["section"] == "config" and r["key"] == "AccountingStorageTRES" and "gres/gpu" in (r["value"] or "").lower()
               for r in settings.to_pylist())


def ingest_folder(path: str | Path, lake: Lake, *, zone: str | None = None, cluster: str | None = None, archive: bool = True,
                  progress: Progress | None = None, wait_s: float = 0.0) -> IngestSummary:
    """Read a folder (or one file) of captured output into the lake.

    ``zone`` (IANA) and ``cluster`` override what the folder tells. Raises ``NoDataError`` if nothing in it is Slurm's.
    """
    folder = RecordedFolder(Path(path), zone=zone, cluster=cluster)
    captures = list(folder.captures())
    captures = _at_home(captures, lake, folder.notes)
    if not captures:
        raise NoDataError(f"no Slurm output in {folder.name}: {folder.why_empty()}",
                          "Record some: sacct -a -P --delimiter=$'\\x1f' --format=ALL -S 2026-01-01 -E now > sacct.txt")
    summary = ingest_captures(captures, lake, archive=archive, progress=progress, label=f"ingest {folder.name}", wait_s=wait_s)
    summary.notes += folder.notes
    return summary


def _at_home(captures: list[Capture | SourceFailure], lake: Lake, notes: list[str]) -> list[Capture | SourceFailure]:
    """Measurements that no cluster's name comes with are of the lake's only cluster, if it has only one."""
    clusters = lake.clusters
    if len(clusters) != 1:
        return captures
    mine = [isinstance(c, Capture) and c.cluster is None and c.kind in ("job_use", "gpu_samples") for c in captures]
    if any(mine):
        if all(m for c, m in zip(captures, mine, strict=True) if isinstance(c, Capture) and c.cluster is None):
            notes[:] = [n for n in notes if not n.startswith("the cluster's name is not told")]
        notes.append(f"measurements are taken as those of {clusters[0]}, the only cluster in the lake: --cluster says otherwise")
    return [replace(c, cluster=clusters[0]) if m and isinstance(c, Capture) else c for c, m in zip(captures, mine, strict=True)]


def rebuild(lake: Lake, *, progress: Progress | None = None, wait_s: float = 0.0) -> IngestSummary:
    """Read the whole archive again, as after an update that understands more of it. The tables then hold exactly that:
    rows that were ingested without an archive are gone. Raises ``NoDataError`` if nothing is archived."""
    captures = ArchiveSource(lake.path / ARCHIVE).captures()
    first = next(captures, None)
    if first is None:
        raise NoDataError(f"nothing is archived in {lake.path / ARCHIVE}",
                          "Rows were ingested without an archive, or none yet: nothing was changed.")

    def anew(tx: Transaction, summary: IngestSummary) -> None:
        tx.clear()  # what an older parser wrote under a wrong key goes too

    return ingest_captures(chain([first], captures), lake, archive=False, progress=progress, label="rebuild", wait_s=wait_s,
                           finish=anew)
