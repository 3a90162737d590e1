"""What a column and a table are, and the columns that many tables share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

TIME = pa.timestamp("us", tz="UTC")
INT = pa.int64()
TEXT = pa.string()
NUM = pa.float64()
FLAG = pa.bool_()

Known = Literal["submit", "eligible", "start", "end", "observed"]


@dataclass(frozen=True)
class Column:
    """One column.

    ``known`` names the moment from which the value could have been seen: ``submit``, ``eligible``,
    ``start`` and ``end`` of the job, or ``observed`` (only once the row itself was printed; for rows of
    ``jobs`` that means "as it stood when accounting was read", not what held while the job waited).
    """

    name: str
    type: pa.DataType
    doc: str
    unit: str = ""
    null: str = "not printed by this Slurm"
    known: Known = "observed"


@dataclass(frozen=True)
class Table:
    """One table: a set of Parquet files by cluster and month of ``partition_time``.

    ``key`` identifies a row. When two rows share a key, the one with the higher ``rank`` column value
    stays (then the later ``observed_at``), so re-reading is idempotent and an ended job replaces its
    running row. ``steady`` tables describe configuration: a reading equal to the last one adds nothing. ``parts``: columns that tell
    apart what several commands print into one table; each part is read, and repeated, for itself.
    """

    name: str
    doc: str
    key: tuple[str, ...]
    partition_time: str
    columns: tuple[Column, ...]
    rank: str | None = None
    sort: tuple[str, ...] = ()
    steady: bool = False
    parts: tuple[str, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(c.name, c.type) for c in self.columns])

    @property
    def column_names(self) -> list[str]:
        return [c.name for c in self.columns]


def column(name: str, kind: pa.DataType, doc: str, unit: str = "", null: str = "not printed by this Slurm",
       known: Known = "observed") -> Column:
    return Column(name, kind, doc, unit, null, known)


CLUSTER = column("cluster", TEXT, "Slurm's ClusterName", null="never", known="submit")
OBSERVED = column("observed_at", TIME, "when Slurm printed the row", "UTC", null="never")
JOB_ID = column("job_id", INT, "raw job id (JobIDRaw, squeue %A); repeats after a reset", null="never", known="submit")
ID_TEXT = column("job_id_text", TEXT, "the id as users see it: 12, 12_3, 12+1", null="never", known="submit")
ARRAY_ID = column("array_job_id", INT, "job id of the array", null="not an array", known="submit")
ARRAY_TASK = column("array_task", INT, "index within the array", null="not an array, or a record for many tasks", known="submit")
