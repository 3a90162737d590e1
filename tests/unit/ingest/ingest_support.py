"""Captures made in memory, and a slow reader to compare with."""

from __future__ import annotations

import gzip
import io
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from queuecast.collect.parse import Report, parse_capture
from queuecast.collect.source import Capture
from queuecast.schema import arrow_schema

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data"
CAMPUS = ROOT / "data" / "campus-22.05"
TAKEN = datetime(2026, 6, 13, 9, 24, 11, tzinfo=UTC)


@dataclass
class Read:
    """Everything that one capture gave."""

    tables: dict[str, pa.Table]
    report: Report

    def rows(self, table: str) -> list[dict[str, Any]]:
        return self.tables[table].to_pylist() if table in self.tables else []

    def one(self, table: str) -> dict[str, Any]:
        found = self.rows(table)
        assert len(found) == 1, found
        return found[0]

    @property
    def causes(self) -> list[str]:
        return [r["cause"] for r in self.rows("rejects")]

    def all_lines_told(self) -> bool:
        """Every line of the input is a row, part of one, a reject, or something that is none."""
        s = self.report.seen
        return s.read == s.in_rows + s.rejected + s.headers + s.markers + s.messages + s.blank + s.unread


def capture(kind: str, raw: bytes | str, **more: Any) -> Capture:
    data = raw.encode() if isinstance(raw, str) else raw
    told = {"taken_at": TAKEN, "cluster": "campus", "zone": "UTC", "command": (kind,), "slurm_version": None} | more
    return Capture(kind=kind, raw=lambda: io.BytesIO(data), source_file=f"{kind}.txt", **told)


def read(kind: str, raw: bytes | str, *, tracked: bool | None = None, **more: Any) -> Read:
    """Parse a capture; every table must have exactly the schema's columns."""
    report = Report()
    parts: dict[str, list[pa.Table]] = {}
    for name, rows in parse_capture(capture(kind, raw, **more), report, tracked=tracked):
        assert rows.schema == arrow_schema(name), name
        parts.setdefault(name, []).append(rows)
    return Read({n: pa.concat_tables(t) for n, t in parts.items()}, report)


def fixture(name: str) -> bytes:
    path = DATA / name if (DATA / name).exists() else CAMPUS / name
    data = path.read_bytes()
    return gzip.decompress(data) if name.endswith(".gz") else data


SACCT = {
    "JobIDRaw": "100", "JobID": "100", "Cluster": "campus", "JobName": "train", "User": "alice", "UID": "1001",
    "Account": "vision",
    "Partition": "gpu", "QOS": "normal", "State": "COMPLETED", "ExitCode": "0:0", "DerivedExitCode": "0:0", "Reason": "None",
    "Submit": "2026-06-01T08:00:00", "Eligible": "2026-06-01T08:00:00", "Start": "2026-06-01T09:00:00",
    "End": "2026-06-01T10:00:00",
    "Elapsed": "01:00:00", "ElapsedRaw": "3600", "Suspended": "00:00:00", "Timelimit": "02:00:00", "TimelimitRaw": "120",
    "Priority": "5000", "ReqNodes": "1", "AllocNodes": "1", "ReqCPUS": "4", "AllocCPUS": "4", "ReqMem": "16G",
    "ReqTRES": "billing=4,cpu=4,gres/gpu=1,mem=16G,node=1",
    "AllocTRES": "billing=4,cpu=4,gres/gpu:a100=1,gres/gpu=1,mem=16G,node=1",
    "NodeList": "a100-01", "Constraints": "", "Reservation": "", "Licenses": "", "Flags": "SchedMain,StartRecieved",
    "TotalCPU": "00:30:00", "MaxRSS": "", "AveRSS": "", "NTasks": "", "Restarts": "0", "Comment": "", "AdminComment": "",
    "DBIndex": "7", "TRESUsageInTot": "", "TRESUsageInMax": "", "ConsumedEnergyRaw": "0", "SubmitLine": "sbatch run.sh",
    "WorkDir": "/home/alice",
}
STEP = {
    "User": "", "UID": "", "Partition": "", "QOS": "", "ReqMem": "", "ReqTRES": "", "Flags": "", "Priority": "", "Reason": "",
    "Timelimit": "", "TimelimitRaw": "", "DerivedExitCode": "", "SubmitLine": "", "WorkDir": "",
    "Eligible": "2026-06-01T09:00:00",
    "Submit": "2026-06-01T09:00:00", "NTasks": "1",
}


def sacct_text(*rows: dict[str, str], without: tuple[str, ...] = (), delimiter: str = "\x1f", fields: tuple[str,
    ...] = ()) -> str:
    """sacct's output for rows that differ from the usual one in the given fields."""
    names = fields or tuple(n for n in (*SACCT, *(k for r in rows for k in r if k not in SACCT)) if n not in without)
    names = tuple(dict.fromkeys(names))
    lines = [delimiter.join(names)]
    lines += [delimiter.join((SACCT | row).get(n, "") for n in names) for row in rows]
    return "\n".join(lines) + "\n"


def job(*rows: dict[str, str], **more: Any) -> dict[str, Any]:
    """The one job row of such an output."""
    keep = {k: more.pop(k) for k in ("without", "delimiter", "fields") if k in more}
    return read("sacct", sacct_text(*(rows or ({},)), **keep), **more).one("jobs")


def step(name: str, **fields: str) -> dict[str, str]:
    return STEP | {"JobID": f"100.{name}", "JobIDRaw": f"100.{name}", "JobName": name} | fields


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)
