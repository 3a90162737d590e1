"""Every table of the lake: columns, Arrow types, units, what null means, when a value becomes known.

This file is the single source for the Parquet files, for the views that ``queuecast sql`` offers and
for ``docs/data-model.md`` (made by ``python -m queuecast.schema``, checked in tests).

Conventions, true of every table:

* Times are ``timestamp[us, UTC]``. Durations are whole seconds (``int64``) unless the name says else.
* Sizes are bytes (``int64``). Counts are ``int64``. Null means *unknown*; it never stands for zero.
* ``cluster`` is Slurm's ClusterName. Text that Slurm keeps in lower case in its database (accounts,
  partitions, QOS, users) is stored as printed; join keys are compared case-folded.
* ``observed_at`` is when the row was printed by Slurm, so a row is only known from that time on.
"""

from __future__ import annotations

from functools import cache

import pyarrow as pa

from queuecast.schema.accounting import EVENTS, JOB_FILES, JOBS, STEPS
from queuecast.schema.columns import FLAG, INT, NUM, TEXT, TIME, Column, Table
from queuecast.schema.configuration import ASSOCIATIONS, PARTITIONS, QOS, REJECTS, RESERVATIONS, SETTINGS
from queuecast.schema.snapshots import ESTIMATES, NODES, PRIORITIES, QUEUE, SHARES
from queuecast.schema.usage import GPU_SAMPLES, JOB_USE

__all__ = ["FLAG", "INT", "NUM", "SCHEMA_VERSION", "TABLES", "TEXT", "TIME", "Column", "Table", "arrow_schema", "markdown"]

SCHEMA_VERSION = 1
"""Raised when a column changes meaning or type; ``store.migrate`` says how older lakes are read."""

TABLES: dict[str, Table] = {
    t.name: t
    for t in (JOBS, STEPS, QUEUE, ESTIMATES, NODES, PARTITIONS, RESERVATIONS, PRIORITIES, SHARES, QOS,
              ASSOCIATIONS, EVENTS, JOB_FILES, GPU_SAMPLES, JOB_USE, SETTINGS, REJECTS)
}


@cache
def arrow_schema(table: str) -> pa.Schema:
    """Arrow schema of a table, built once."""
    return TABLES[table].schema


def markdown() -> str:
    """The data model as Markdown: what ``docs/data-model.md`` holds."""
    out = ["# Data model", "", "Made from `src/queuecast/schema/` by `python -m queuecast.schema > docs/data-model.md`.", "",
           f"Schema version {SCHEMA_VERSION}. Times are UTC, sizes bytes, durations seconds. Null is unknown, never zero.",
           "*Known* is the moment from which a value could have been seen (see `Column`).", ""]
    for t in TABLES.values():
        out += [f"## {t.name}", "", t.doc, "",
                f"Key: {', '.join(f'`{k}`' for k in t.key)}. Files by cluster and month of `{t.partition_time}`."
                + (" Stored only when it changed." if t.steady else ""), "",
                "| column | type | unit | known | null means | |", "|---|---|---|---|---|---|"]
        for c in t.columns:
            cells = (f"`{c.name}`", str(c.type), c.unit, c.known, c.null, c.doc)
            out.append("| " + " | ".join(x.replace("|", "\\|") for x in cells) + " |")
        out.append("")
    out += ["## Views", "", "`queuecast sql` offers two more:", "",
            "- `waits`: `jobs` with `wait_s` (start minus eligible, never negative, null until started) and `submit_to_start_s`.",
            "- `usage`: CPU and GPU hours and efficiencies of jobs, each with what makes it doubtful (`cpu_quality`), and `settlement`: "
            "`settled`, `ended_unsettled`, `running`.", ""]
    return "\n".join(out)
