"""What the lake holds: tables, rows, span, freshness, rejects."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from queuecast.answers.runaway import Runaway, runaway_jobs
from queuecast.answers.scoring import Score, predictions_of, summary
from queuecast.schema import TABLES

if TYPE_CHECKING:
    from queuecast.store.lake import Lake


@dataclass(frozen=True)
class TableStatus:
    """One table of one cluster. ``low`` and ``high`` bound its times (UTC, ISO), ``seen`` is when it was last read."""

    cluster: str
    table: str
    rows: int
    files: int
    bytes: int
    low: str
    high: str
    seen: str


@dataclass(frozen=True)
class LakeStatus:
    """``rejects`` by table and cause, most first. ``backfill``: how far older history was read, by cluster.
    ``runaways``: jobs that accounting takes for running though the queue no longer shows them."""

    path: str
    version: int
    schema_version: int
    written_at: str
    written_by: str
    tables: tuple[TableStatus, ...]
    rejects: tuple[tuple[str, str, int], ...]
    backfill: dict[str, dict[str, str]]
    answers: dict[str, Score]
    runaways: dict[str, list[Runaway]]

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def age_s(self, now: datetime, cluster: str) -> float | None:
        """Seconds since the cluster was last read."""
        seen = [t.seen for t in self.tables if t.cluster == cluster and t.seen]
        return (now.astimezone(UTC) - datetime.fromisoformat(max(seen))).total_seconds() if seen else None


def lake_status(lake: Lake) -> LakeStatus:
    """Read from the manifest; every file is checked to be there. Raises ``LakeDamaged``."""
    groups: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for f in lake.manifest.files:
        groups[f.cluster, f.table].append(f)
    for table in TABLES:
        lake.files(table)
    seen = lake.manifest.state.get("seen", {})
    tables = tuple(
        TableStatus(
            c,
            t,
            sum(f.rows for f in fs),
            len(fs),
            sum(f.bytes for f in fs),
            min((f.low for f in fs if f.low), default=""),
            max((f.high for f in fs if f.high), default=""),
            seen.get(c, {}).get(t, ""),
        )
        for (c, t), fs in sorted(groups.items(), key=lambda g: (g[0][0], list(TABLES).index(g[0][1])))
    )
    rejects = lake.read("rejects", ["kind", "cause"])
    counted = rejects.group_by(["kind", "cause"]).aggregate([([], "count_all")]).sort_by([("count_all", "descending")])
    log = predictions_of(lake)
    return LakeStatus(
        str(lake.path),
        lake.manifest.version,
        lake.manifest.schema_version,
        lake.manifest.written_at,
        lake.manifest.written_by,
        tables,
        tuple((r["kind"], r["cause"], r["count_all"]) for r in counted.to_pylist()),
        lake.manifest.state.get("backfill", {}),
        {c: summary(log, c) for c in lake.clusters},
        {c: runaway_jobs(lake, c, datetime.now(UTC)) for c in lake.clusters},
    )
