"""DuckDB over the lake. The only module that imports duckdb, so its API changes are met in one place."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from queuecast.errors import UsageError
from queuecast.schema import TABLES, Table
from queuecast.store import views

if TYPE_CHECKING:
    from queuecast.store.lake import Lake

_DUCK_TYPES = {
    pa.string(): "VARCHAR",
    pa.int64(): "BIGINT",
    pa.uint64(): "UBIGINT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    pa.timestamp("us", tz="UTC"): "TIMESTAMPTZ",
}


def quote(text: str) -> str:
    """A string literal of SQL. For paths only, which cannot be bound as parameters in a view or COPY."""
    return "'" + text.replace("'", "''") + "'"


def engine(*, memory: str = "1GB", threads: int | None = None, spill: Path | None = None) -> duckdb.DuckDBPyConnection:
    """An in-memory DuckDB with bounded memory; what does not fit is spilled to ``spill``."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": memory,
        "preserve_insertion_order": "false",
        "threads": str(threads or min(4, os.cpu_count() or 1)),
    }
    if spill is not None:
        config["temp_directory"] = str(spill)
    con = duckdb.connect(":memory:", config=config)
    con.execute("SET TimeZone = 'UTC'")  # refused as a connection option in DuckDB 2: ICU is not loaded yet there
    return con


def connect(lake: Lake, *, memory: str = "1GB") -> duckdb.DuckDBPyConnection:
    """A connection with one view per table (empty tables too), and those of ``store.views``."""
    con = engine(memory=memory)
    for table in TABLES.values():
        con.execute(f'CREATE VIEW "{table.name}" AS {_scan(lake, table)}')
    for view in views.ALL:
        con.execute(view)
    return con


def _scan(lake: Lake, table: Table) -> str:
    paths = [str(p) for p in lake.files(table.name)]
    # files written before a column was added do not have it: there it is null
    columns = ", ".join(f'NULL::{_DUCK_TYPES[c.type]} AS "{c.name}"' for c in table.columns)
    empty = f"SELECT {columns} WHERE false"
    if not paths:
        return empty
    return f"{empty} UNION ALL BY NAME SELECT * FROM read_parquet([{', '.join(map(quote, paths))}], union_by_name=true)"


def read_only(lake: Lake, sql: str, parameters: Sequence[Any] = ()) -> pa.Table:
    """Run one SELECT over the views, with no access to files or settings beyond them.

    Raises ``UsageError`` for anything but one SELECT, and for SQL that DuckDB refuses.
    """
    con = connect(lake)
    try:
        statements = con.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise UsageError("only one SELECT can be run", 'try: queuecast sql "select state, count(*) from jobs group by state"')
        # The views must be able to open the lake's own files: list exactly those, then close the door.
        allowed = "[" + ", ".join(quote(str(p)) for t in TABLES for p in lake.files(t)) + "]"
        con.execute(f"SET allowed_paths = {allowed}")
        con.execute("SET enable_external_access = false")
        con.execute("SET lock_configuration = true")
        return con.sql(sql, params=list(parameters)).to_arrow_table()
    except duckdb.Error as error:
        raise UsageError(f"SQL: {str(error).strip()}", "tables: " + ", ".join((*TABLES, *views.NAMES))) from error
    finally:
        con.close()


class Merger:
    """Merges files of a partition; one engine for all partitions of a transaction."""

    def __init__(self, spill: Path) -> None:
        self._con = engine(memory="768MB", threads=2, spill=spill)

    def close(self) -> None:
        """Give the memory back."""
        self._con.close()

    def merge(self, table: Table, new: Path, old: Sequence[Path], target: Path) -> bool:
        """Merge into ``target``, one row per key: higher rank, then later, then newer file.

        Returns False, writing nothing, if ``new`` stands alone and has no key twice: it can be used as it is.
        """
        con = self._con
        key = ", ".join(f'"{k}"' for k in table.key)
        if not old:
            # Hashes may collide: then the slow way is taken, which is right as well.
            clashes = con.execute(f"SELECT count(*) - count(DISTINCT hash({key})) FROM read_parquet({quote(str(new))})").fetchall()
            if clashes[0][0] == 0:
                return False
        files = "[" + ", ".join(quote(str(p)) for p in (*old, new)) + "]"
        scan = f"read_parquet({files}, union_by_name=true, filename=true, file_row_number=true)"
        order = ", ".join(
            [
                *([f'"{table.rank}" DESC NULLS LAST'] if table.rank else []),
                *(['"observed_at" DESC'] if "observed_at" not in table.key else []),
                f"(filename = {quote(str(new))}) DESC",
                "file_row_number DESC",
            ]
        )
        con.execute(
            f"CREATE OR REPLACE TEMP TABLE winners AS SELECT filename, file_row_number FROM {scan} "
            f"QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY {order}) = 1"
        )
        columns = ", ".join(f'"{c}"' for c in table.column_names)
        sort = " ORDER BY " + ", ".join(f'"{c}"' for c in table.sort) if table.sort else ""
        con.execute(
            f"COPY (SELECT {columns} FROM {scan} SEMI JOIN winners USING (filename, file_row_number){sort}) "
            f"TO {quote(str(target))} (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 122880)"
        )
        return True
