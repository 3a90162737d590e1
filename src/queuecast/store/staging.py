"""Rows of one table on their way into the lake: written to one Parquet file per cluster and month as they come,
so that memory stays bounded whatever the length of the input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from queuecast.schema import Table

ROW_GROUP = 100_000
"""Rows buffered per file before they are written: a row group."""


class Staging:
    """Rows of ``table`` under ``folder``."""

    def __init__(self, table: Table, folder: Path) -> None:
        self.table = table
        self.folder = folder
        self._writers: dict[tuple[str, str], pq.ParquetWriter] = {}
        self._waiting: dict[tuple[str, str], list[pa.Table]] = {}
        self._bounds: dict[tuple[str, str], tuple[str, str]] = {}

    def append(self, rows: pa.Table) -> None:
        """Add rows that have the table's exact schema."""
        for part, piece in self._split(rows):
            waiting = self._waiting.setdefault(part, [])
            waiting.append(piece)
            if sum(t.num_rows for t in waiting) >= ROW_GROUP:
                self._flush(part)

    def close(self, latest: Mapping[str, pa.Table]) -> Iterator[tuple[str, str, Path, str, str]]:
        """Finish the files; yields (cluster, month, path, low, high).

        For steady tables ``latest`` holds each cluster's last stored reading (of each part), and readings equal to the one
        before are left out.
        """
        if self.table.steady:
            self._drop_repeats(latest)
        for part in list(self._waiting):
            self._flush(part)
        for part, writer in self._writers.items():
            writer.close()
            low, high = self._bounds[part]
            yield part[0], part[1], self._path(part), low, high

    def _split(self, rows: pa.Table) -> Iterator[tuple[tuple[str, str], pa.Table]]:
        when = rows[self.table.partition_time]
        # Month number as an integer: cheap to compare over millions of rows.
        month = pc.fill_null(pc.add(pc.multiply(pc.year(when), 12), pc.subtract(pc.month(when), 1)), -1)
        cluster = pc.fill_null(rows["cluster"], "")
        pairs = pa.table({"c": cluster, "m": month})
        distinct = pairs.group_by(["c", "m"]).aggregate([]).to_pylist()
        for pair in distinct:
            piece = rows
            if len(distinct) > 1:
                piece = rows.filter(pc.and_(pc.equal(cluster, pair["c"]), pc.equal(month, pair["m"])))
            name = f"{pair['m'] // 12:04d}-{pair['m'] % 12 + 1:02d}" if pair["m"] >= 0 else ""
            yield (pair["c"], name), piece

    def _flush(self, part: tuple[str, str]) -> None:
        pieces = self._waiting.pop(part, [])
        if not pieces:
            return
        rows = pa.concat_tables(pieces)
        if part not in self._writers:
            path = self._path(part)
            path.parent.mkdir(parents=True, exist_ok=True)
            self._writers[part] = pq.ParquetWriter(path, rows.schema, compression="zstd", compression_level=1)
        bounds = pc.min_max(rows[self.table.partition_time])
        if bounds["min"].is_valid:
            seen = self._bounds.get(part, ("", ""))
            low, high = bounds["min"].as_py().isoformat(), bounds["max"].as_py().isoformat()
            self._bounds[part] = (min(x for x in (low, seen[0]) if x), max(high, seen[1]))
        else:
            self._bounds.setdefault(part, ("", ""))
        self._writers[part].write_table(rows, row_group_size=ROW_GROUP)

    def _path(self, part: tuple[str, str]) -> Path:
        number = list(self._writers).index(part) if part in self._writers else len(self._writers)
        return self.folder / f"{number}.parquet"

    def _drop_repeats(self, latest: Mapping[str, pa.Table]) -> None:
        """Steady tables are small: they wait in memory. Keep only readings that differ from the one before."""
        pieces = [p for part in self._waiting.values() for p in part]
        self._waiting.clear()
        if not pieces:
            return
        rows = pa.concat_tables(pieces)
        by = ["cluster", *self.table.parts]
        before: dict[tuple[str, ...], tuple[object, frozenset[tuple[object, ...]]]] = {}
        for kept in latest.values():
            for part, reading in _readings(kept, by):
                before[part[:-1]] = (part[-1], _content(reading))
        for part, here in _readings(rows, by):
            name, when, content = part[:-1], part[-1], _content(here)
            last = before.get(name)
            # A reading older than the last stored one fills in the past: it is always kept.
            if last is not None and last[0] < when and last[1] == content:
                continue
            if last is None or last[0] < when:
                before[name] = (when, content)
            for target, piece in self._split(here):
                self._waiting.setdefault(target, []).append(piece)


def _readings(rows: pa.Table, by: list[str]) -> Iterator[tuple[tuple[Any, ...], pa.Table]]:
    """Each reading with its cluster, its part and its moment, in the order of the moments."""
    keys = [*by, "observed_at"]
    for reading in rows.select(keys).group_by(keys).aggregate([]).sort_by([(k, "ascending") for k in keys]).to_pylist():
        here = None
        for key in keys:
            same = pc.equal(rows[key], pa.scalar(reading[key], rows[key].type))
            here = same if here is None else pc.and_(here, same)
        yield tuple(reading[k] for k in keys), rows.filter(here)


def _content(rows: pa.Table) -> frozenset[tuple[object, ...]]:
    return frozenset(tuple(r.values()) for r in rows.drop_columns(["observed_at"]).to_pylist())
