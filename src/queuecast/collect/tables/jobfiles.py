"""Where a job's script and logs lie: from ``scontrol show job``, and from sacct where it tells (24.05 and later)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from queuecast.collect.columns import Columns
from queuecast.collect.tables.keyvalue import Values
from queuecast.collect.tables.values import Mask, rows
from queuecast.slurmtext.nulls import NAMES

_NOTHING = NAMES | {"(null)"}
_PATTERN = re.compile(r"%(%|(\d{0,2})([AajuxNnst]))")
LONGEST = 4096
"""Characters of a path that are kept: PATH_MAX."""


def filled(path: str, job: Mapping[str, Any]) -> str:
    """Slurm's patterns in a file name filled in where the job tells: %j, %A, %a, %u and %x (padded as in %4j), %%.

    ``job`` has columns of ``jobs``. %N, %n, %s and %t differ by node and task, so they stay. A job name with a slash stays too:
    it would be another folder, and Slurm writes something else.
    """
    array = job.get("array_job_id")
    known = {"j": job.get("job_id"), "A": array if array is not None else job.get("job_id"), "a": job.get("array_task"),
             "u": job.get("user"), "x": job.get("name")}

    def value(match: re.Match[str]) -> str:
        if match[1] == "%":
            return "%"
        found = known.get(match[3])
        if found is None or "/" in str(found):
            return match[0]
        return str(found).zfill(min(int(match[2] or 0), 10)) if isinstance(found, int) else str(found)

    return _PATTERN.sub(value, path)


def absolute(path: str | None, folder: str | None) -> str | None:
    """The path below the working directory where it is relative to it; as it is where that is not known."""
    if path is None or path.startswith("/") or not folder or not folder.startswith("/"):
        return path
    return f"{folder.rstrip('/')}/{path}"


def of_record(v: Values, job: Mapping[str, Any]) -> dict[str, Any] | None:
    """A row of ``job_files`` for a job that scontrol shows; None if it tells no file."""
    folder = v.text("WorkDir", null=_NOTHING)
    paths = {name: v.text(key, null=_NOTHING) for name, key in (("command", "Command"), ("std_out", "StdOut"), ("std_err", "StdErr"))}
    if not any(paths.values()):
        return None
    logs = {name: _kept(absolute(_filled(paths[name], job), folder)) for name in ("std_out", "std_err")}
    return {**v.where, "job_id": job["job_id"], "job_submit": job["submit"], "command": _kept(paths["command"]), "work_dir": _kept(folder),
            **logs}


def of_columns(c: Columns, jobs: Mapping[str, pa.Array], sound: Mask) -> pa.Table:
    """Rows of ``job_files`` for the jobs of sacct that name their logs. The script is not told there."""
    logs = {"std_out": c.text("stdout", null=_NOTHING), "std_err": c.text("stderr", null=_NOTHING)}
    here = pc.and_(pa.array(sound), pc.or_(logs["std_out"].is_valid(), logs["std_err"].is_valid()))
    told = {name: jobs[name].to_pylist() for name in ("job_id", "array_job_id", "array_task", "user", "name", "work_dir")}
    each = [dict(zip(told, values, strict=True)) for values in zip(*told.values(), strict=True)]
    for name, column in logs.items():
        paths = [_kept(absolute(_filled(p, job), job["work_dir"])) for p, job in zip(column.to_pylist(), each, strict=True)]
        logs[name] = pa.array(paths, pa.string())
    columns = {"cluster": jobs["cluster"], "job_id": jobs["job_id"], "job_submit": jobs["submit"], "work_dir": jobs["work_dir"],
               **logs, "observed_at": c.observed()}
    return rows("job_files", columns, c.n).filter(here)


def _filled(path: str | None, job: Mapping[str, Any]) -> str | None:
    return None if path is None else filled(path, job)


def _kept(path: str | None) -> str | None:
    return None if path is None else path[:LONGEST]
