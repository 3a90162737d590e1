"""What jobs used as a table that something else than Slurm made: one row per job, a CSV with queuecast's own column names."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queuecast.collect.columns import Columns, Env
from queuecast.collect.convert import Mask, parse_float
from queuecast.collect.framing import Frame
from queuecast.collect.tables.values import mask_of, null_where, rows
from queuecast.errors import ParseError
from queuecast.slurmtext.sizes import parse_size

SOURCES = ("csv", "dcgm", "generated")

_YES = frozenset(("1", "true", "yes", "generated"))
_NO = frozenset(("", "0", "false", "no"))

Result = Iterator[tuple[str, pa.Table]]


def read(frames: Iterator[Frame], env: Env) -> Result:
    """Rows of ``job_use``. Where the table does not tell the submit time, the moment it was taken stands for it: the reader
    then takes the latest attempt of the job that was submitted by then."""
    for frame in frames:
        c = Columns(frame, env)
        ids = c.ids(c.need("jobidraw", "jobid"))
        submit = c.times("submit", "jobsubmit").values
        told = c.raw("submit", "jobsubmit")
        unreadable = np.zeros(c.n, bool) if told is None else mask_of(pc.and_(submit.is_null(), pc.greater(pc.binary_length(told), 0)))
        generated = pc.fill_null(c.parsed("flag", _flag, (pa.bool_(),), "generated")[0], False)
        columns = {
            "cluster": c.cluster(), "job_id": ids.base, "job_submit": pc.coalesce(submit, c.observed()),
            "source": pc.if_else(generated, "generated", pc.coalesce(c.parsed("use source", _source, (pa.string(),), "source")[0], "csv")),
            "cpu_s": _numbers(c, "cpus"), "mem_peak_bytes": _sizes(c, "mempeakbytes"),
            "gpus_seen": c.whole("gpusseen"), "gpus_used": c.whole("gpusused"),
            "gpu_util_mean": _numbers(c, "gpuutilmean", 1.0), "gpu_util_peak": _numbers(c, "gpuutilpeak", 1.0),
            "gpu_mem_peak_bytes": _sizes(c, "gpumempeakbytes"), "gpu_mem_total_bytes": _sizes(c, "gpumemtotalbytes"),
            "energy_joules": c.whole("energyjoules"), "generated": generated, "observed_at": c.observed(),
        }
        bad = ids.bad | mask_of(ids.base.is_null())
        c.reject_rows(bad, "not a job id")
        c.reject_rows(unreadable & ~bad, "no submit time")
        bad |= unreadable
        many = _impossible(columns["gpus_seen"], columns["gpus_used"])
        c.reject_rows(many & ~bad, "more GPUs used than seen")
        yield "job_use", rows("job_use", columns, c.n).filter(pa.array(~(bad | many)))


def _impossible(seen: pa.Array, used: pa.Array) -> Mask:
    return mask_of(pc.or_(pc.greater(used, seen), pc.or_(pc.less(seen, 0), pc.less(used, 0))))


def _numbers(c: Columns, name: str, most: float | None = None) -> pa.Array:
    """Numbers that are not negative, and not above ``most``; others are null, and told as rejects."""
    values = c.parsed("float", parse_float, (pa.float64(),), name)[0]
    return _within(c, name, values, mask_of(pc.or_(pc.less(values, 0.0), pc.greater(values, most if most is not None else 1e15))))


def _sizes(c: Columns, name: str) -> pa.Array:
    values = c.parsed("size", parse_size, (pa.int64(),), name)[0]
    return _within(c, name, values, mask_of(pc.less(values, 0)))


def _within(c: Columns, name: str, values: pa.Array, outside: Mask) -> pa.Array:
    for row in np.flatnonzero(outside):
        c.reject_value(int(row), name, "out of range", str(values[int(row)].as_py()))
    return null_where(values, outside)


def _flag(text: str) -> bool | None:
    word = text.strip().lower()
    if word in _YES:
        return True
    if word in _NO:
        return False
    raise ParseError("neither true nor false", text)


def _source(text: str) -> str | None:
    word = text.strip().lower()
    if not word:
        return None
    if word not in SOURCES:
        raise ParseError("not a known source", text)
    return word


