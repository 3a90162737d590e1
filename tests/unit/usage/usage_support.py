"""Small lakes from sacct's text and from rows, and what was used in them."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from queuecast.collect.ingest import ingest_captures
from queuecast.collect.source import Capture
from queuecast.schema import arrow_schema
from queuecast.store.lake import Lake
from queuecast.usage.measure import uses_of

TAKEN = datetime(2026, 6, 13, 12, 0, 0, tzinfo=UTC)
START = datetime(2026, 6, 1, 9, 0, 0, tzinfo=UTC)
SUBMIT = datetime(2026, 6, 1, 8, 0, 0, tzinfo=UTC)
SINCE = datetime(2026, 5, 1, tzinfo=UTC)
GIB = 1 << 30

JOB = {
    "JobIDRaw": "100",
    "JobID": "100",
    "JobName": "train",
    "User": "alice",
    "Account": "vision",
    "Partition": "gpu",
    "QOS": "normal",
    "State": "COMPLETED",
    "ExitCode": "0:0",
    "Submit": "2026-06-01T08:00:00",
    "Eligible": "2026-06-01T08:00:00",
    "Start": "2026-06-01T09:00:00",
    "End": "2026-06-01T10:00:00",
    "ElapsedRaw": "3600",
    "TimelimitRaw": "120",
    "AllocNodes": "1",
    "ReqCPUS": "4",
    "AllocCPUS": "4",
    "ReqMem": "16G",
    "AllocTRES": "billing=4,cpu=4,mem=16G,node=1",
    "NodeList": "n01",
    "NTasks": "",
    "TotalCPU": "00:00:00",
    "MaxRSS": "",
    "AveRSS": "",
    "TRESUsageInTot": "",
    "TRESUsageInMax": "",
    "ConsumedEnergyRaw": "0",
    "AdminComment": "",
    "SubmitLine": "sbatch job.sh",
    "Cluster": "toy",
}


def job(**fields: str) -> dict[str, str]:
    """A row of a job; ``elapsed`` and so on by sacct's names."""
    return JOB | fields


def step(name: str, **fields: str) -> dict[str, str]:
    """A row of a step of job 100, as long as the job unless told."""
    return (
        JOB
        | {
            "JobIDRaw": f"100.{name}",
            "JobID": f"100.{name}",
            "JobName": name,
            "User": "",
            "Partition": "",
            "NTasks": "1",
            "TimelimitRaw": "",
            "ReqMem": "",
            "SubmitLine": "",
            "QOS": "",
        }
        | fields
    )


def capture(kind: str, text: str | bytes, name: str = "", **more: Any) -> Capture:
    raw = text.encode() if isinstance(text, str) else text
    told: dict[str, Any] = {"taken_at": TAKEN, "cluster": "toy", "zone": "UTC", "command": (kind, name or kind), "slurm_version": None}
    return Capture(kind=kind, raw=lambda: io.BytesIO(raw), source_file=name or f"{kind}.txt", **told | more)


def lake_of(path: Path, *rows: dict[str, str], also: tuple[Capture, ...] = ()) -> Lake:
    """A lake with sacct's rows, read as text, and other captures."""
    text = "\n".join("\x1f".join(cells) for cells in (JOB.keys(), *(r.values() for r in rows))) + "\n"
    lake = Lake.open(path / "lake", create=True)
    summary = ingest_captures([capture("sacct", text), *also], lake, archive=False)
    assert not summary.rejected, summary.causes
    return lake


def uses(lake: Lake, at: datetime = TAKEN, **more: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = uses_of(lake, "toy", since=SINCE, at=at, **more).rows.to_pylist()
    return rows


def use(path: Path, *rows: dict[str, str], also: tuple[Capture, ...] = (), at: datetime = TAKEN) -> dict[str, Any]:
    """The use of the only job."""
    (found,) = uses(lake_of(path, *rows, also=also), at)
    return found


def put(lake: Lake, table: str, rows: list[dict[str, Any]]) -> None:
    """Rows straight into a table; the cluster and the moment of reading are filled in."""
    filled = [{"cluster": "toy", "observed_at": TAKEN} | row for row in rows]
    with lake.transaction("test") as tx:
        tx.append(table, pa.Table.from_pylist(filled, arrow_schema(table)))


def sample(minutes: float, gpu: str = "0", util: float | None = 0.5, **more: Any) -> dict[str, Any]:
    """A reading so many minutes after the start of the job."""
    return {
        "observed_at": START + timedelta(minutes=minutes),
        "node": "n01",
        "gpu": gpu,
        "util": util,
        "source": "nvidia-smi",
        "generated": False,
    } | more
