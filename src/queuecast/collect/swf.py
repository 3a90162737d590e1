"""Public workload logs in the Standard Workload Format: one line of 18 numbers per job, remarks behind ``;``.

Source: the format's definition, version 2.2 (Chapin et al., "Benchmarks and standards for the evaluation of parallel
job schedulers", JSSPP 1999; kept at the Parallel Workloads Archive). -1 stands for unknown and becomes null here.
A line that is not such a line is kept as a reject with its number and the reason.

What the format cannot tell stays null in the lake's ``jobs`` table: GPUs, QOS (unless the log has queues and
partitions), memory allocated, reasons, priorities, names.
"""

from __future__ import annotations

import gzip
import re
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from queuecast.collect.rejects import printable
from queuecast.errors import ParseError, UsageError
from queuecast.schema import arrow_schema
from queuecast.store.files import conform, floats

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

WHOLE = frozenset({"job", "cpus_used", "cpus_asked", "status", "user", "group", "executable", "queue", "partition", "previous"})
COLUMNS = (
    "job", "submit", "wait", "run", "cpus_used", "cpu_time", "mem_used_kb", "cpus_asked", "time_asked", "mem_asked_kb",
    "status", "user", "group", "executable", "queue", "partition", "previous", "think",
)
"""The 18 columns in the order of the file. ``submit`` counts seconds from the log's beginning; ``wait``, ``run``,
``time_asked`` and ``think`` are seconds; ``cpu_time`` is seconds and memory KB, both per processor. Some logs mean CPU
seconds per processor by ``time_asked``: a note in their header says so."""

LONGEST_S = 1e10
"""No time in a log is as long as that (317 years)."""

PARTIAL = (2, 3, 4)
"""Status of lines that tell one stretch of a job that was checkpointed or swapped out: to be continued, last one and
the job completed, last one and it failed."""

STATES = {0: "FAILED", 1: "COMPLETED", 2: "RUNNING", 5: "CANCELLED"}
"""Slurm's word for a status; 2 is left where a log ends before the job does. Other numbers are ``UNKNOWN``."""

_NUMBER = rb"[-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]{1,3})?"
_LINE = re.compile(rb"\s*" + _NUMBER + rb"(?:\s+" + _NUMBER + rb"){17}\s*")
_IS_NUMBER = re.compile(_NUMBER)
_KEY = re.compile(r";\s*([A-Z][A-Za-z0-9_]*)\s*:(.*)")
_CLOCK = re.compile(r"\w{3}\s+(\w{3})\s+(\d{1,2})\s+(\d{1,2}):(\d\d):(\d\d)\s+(?:[^\s\d]\S*\s+)?(\d{4})")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


@dataclass(frozen=True)
class SwfReject:
    """A line that gave no row: its number (from 1), a short constant reason, and its text."""

    line: int
    cause: str
    raw: str


@dataclass(frozen=True)
class Swf:
    """A log. ``header``: the values of each key in order (``Note`` and others repeat). ``rows``: the columns of
    ``COLUMNS``, int64 for ids and counts, float64 for times, CPU time and memory; null is unknown."""

    header: dict[str, tuple[str, ...]]
    rows: pa.Table
    rejects: tuple[SwfReject, ...]

    def text(self, key: str) -> str | None:
        """First value of a header key; None if it is not there or blank."""
        return next((v for v in self.header.get(key, ()) if v), None)

    @property
    def zone(self) -> ZoneInfo | timezone | None:
        """Where the machine stood: ``TimeZoneString``, else the fixed ``TimeZone`` (seconds east of UTC)."""
        name, offset = self.text("TimeZoneString"), self._number("TimeZone")
        if name is not None:
            try:
                return ZoneInfo(name)
            except (ZoneInfoNotFoundError, ValueError, OSError):
                pass  # some logs print an abbreviation here
        return timezone(timedelta(seconds=offset)) if offset is not None and abs(offset) < 86400 else None

    @property
    def epoch(self) -> float | None:
        """When second 0 of the log was, in seconds since 1970 UTC: ``UnixStartTime``, else ``StartTime`` read as a
        clock in the log's time zone; None if the header does not tell."""
        unix = self._number("UnixStartTime")
        if unix is not None and 0 <= unix < LONGEST_S:
            return unix
        zone, clock = self.zone, _CLOCK.match(self.text("StartTime") or "")
        if zone is None or clock is None or clock[1].lower() not in _MONTHS:
            return None
        day, hour, minute, second, year = (int(clock[i]) for i in range(2, 7))
        try:
            return datetime(year, _MONTHS.index(clock[1].lower()) + 1, day, hour, minute, second, tzinfo=zone).timestamp()
        except ValueError:
            return None

    def _number(self, key: str) -> float | None:
        text = self.text(key)
        found = None if text is None else _IS_NUMBER.match(text.encode("utf-8", "replace"))
        return None if found is None else float(found[0])


def read_swf(path: str | Path) -> Swf:
    """Read a log, compressed by gzip or not (told by its first bytes). Raises ``ParseError`` if the gzip is damaged or
    cut off, ``OSError`` if the file cannot be read."""
    data = Path(path).read_bytes()
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError, zlib.error) as error:
            raise ParseError("gzip is damaged or cut off", str(path)) from error
    return parse_swf(data)


def parse_swf(data: bytes) -> Swf:
    """Read a log's bytes."""
    header: dict[str, list[str]] = {}
    good: list[bytes] = []
    numbers: list[int] = []
    rejects: list[SwfReject] = []
    fits = _LINE.fullmatch
    for number, line in enumerate(data.splitlines(), 1):
        if fits(line):
            good.append(line)
            numbers.append(number)
            continue
        stripped = line.strip()
        if stripped.startswith(b";"):
            key = _KEY.fullmatch(printable(stripped))
            if key:
                header.setdefault(key[1], []).append(key[2].strip())
        elif stripped:
            rejects.append(SwfReject(number, _why(stripped), printable(line)))
    values = np.loadtxt(good, dtype=np.float64, ndmin=2) if good else np.empty((0, len(COLUMNS)))
    kept = np.ones(len(good), bool)
    for cause, wrong in _wrong(values):
        for row in np.flatnonzero(wrong & kept):
            rejects.append(SwfReject(numbers[row], cause, printable(good[row])))
        kept &= ~wrong
    values = values[kept]
    known = values != -1
    rows = pa.table({
        name: pa.array(values[:, i].astype(np.int64) if name in WHOLE else values[:, i], mask=~known[:, i])
        for i, name in enumerate(COLUMNS)
    })
    rejects.sort(key=lambda reject: reject.line)
    return Swf({key: tuple(texts) for key, texts in header.items()}, rows, tuple(rejects))


def _why(line: bytes) -> str:
    """Why a line is not 18 numbers."""
    fields = line.split()
    if len(fields) != len(COLUMNS):
        return "not 18 columns"
    name = next(n for n, f in zip(COLUMNS, fields, strict=True) if not _IS_NUMBER.fullmatch(f))
    return f"{name} is not a number"


def _wrong(values: Floats) -> list[tuple[str, Mask]]:
    """Rows of 18 numbers that cannot be a job, by reason."""
    found = []
    for name, column in zip(COLUMNS, values.T, strict=True):
        found.append((f"{name} is negative", (column < 0) & (column != -1)))
        # float64 holds whole numbers exactly up to there
        found.append((f"{name} is too large", ~(column < (2.0**53 if name in WHOLE or "mem" in name else LONGEST_S))))
        if name in WHOLE:
            found.append((f"{name} is not a whole number", column != np.floor(column)))
    submit, status = values[:, COLUMNS.index("submit")], values[:, COLUMNS.index("status")]
    found.append(("no job number", values[:, COLUMNS.index("job")] == -1))
    # Only the first of a job's partial lines has a submit time.
    found.append(("no submit time", (submit == -1) & ~np.isin(status, PARTIAL)))
    return found


def swf_jobs(swf: Swf, cluster: str, *, epoch: float | None = None) -> pa.Table:
    """The log as rows of the table ``jobs``.

    ``epoch`` (seconds since 1970 UTC) overrides what the header tells; ``UsageError`` if neither tells. Numbers become
    names: user ``u12``, group ``g3`` as account, ``p1`` as partition (the queue, ``q1``, where the log knows no
    partitions; with both, the queue is the QOS).

    A job counts as eligible from its submission. It never started if it was cancelled (5), or failed (0) without a
    processor, and ran for no time: it then ends at submit plus wait, with no start. Where the wait is unknown nothing
    after the submission is, and the row is marked ``incomplete``. Lines of partial executions are left out where the
    job has its summary line; else they are joined to one job that ran from its first stretch to its last. Where a
    log does not tell what was asked for, ``cpus_req`` is what was used, which one knows only from the start.
    ``observed_at`` is the last moment the log tells of.
    """
    began = swf.epoch if epoch is None else epoch
    if began is None:
        raise UsageError("the log does not tell when it began (no UnixStartTime in its header)", "Give the epoch of its second 0.")
    log = _without_partials({name: floats(swf.rows[name]) for name in COLUMNS})
    status, run, wait, used = log["status"], log["run"], log["wait"], log["cpus_used"]
    ran_not = ~(run > 0)
    never = ran_not & ((status == 5) | ((status == 0) & ~(used > 0)))
    submit = began + log["submit"]
    start = np.where(never, np.nan, submit + wait)
    end = np.where(never, submit + wait, np.where(np.isnan(log["until"]), start + run, began + log["until"]))
    asked = np.where(log["cpus_asked"] > 0, log["cpus_asked"], np.where(used > 0, used, np.nan))
    started = ~np.isnan(start)
    partitions = "p" if not np.isnan(log["partition"]).all() else None
    ends = np.r_[submit, start, end]
    last = float(np.nanmax(ends)) if len(submit) else began
    count = len(submit)

    def constant(value: object, kind: pa.DataType) -> pa.Array:
        return pa.repeat(pa.scalar(value, kind), count)

    columns = {
        "cluster": constant(cluster, pa.string()),
        "job_id": _whole(log["job"]),
        "job_id_text": _named("", log["job"]),
        "array_tasks": constant(1, pa.int64()),
        "array_tasks_exact": constant(True, pa.bool_()),
        "user": _named("u", log["user"]),
        "account": _named("g", log["group"]),
        "partition": _named("p", log["partition"]) if partitions else _named("q", log["queue"]),
        "qos": _named("q", log["queue"] if partitions else np.full(count, np.nan)),
        "state": pa.array([STATES.get(-1 if np.isnan(s) else int(s), "UNKNOWN") for s in status], pa.string()),
        "submit": _times(submit),
        "eligible": _times(submit),
        "start": _times(start),
        "end": _times(end),
        "elapsed_s": _whole(np.where(started, run, np.nan)),
        "limit_s": _whole(log["time_asked"]),
        "limit_kind": pa.array(np.where(np.isnan(log["time_asked"]), "", "limit"), pa.string(), mask=np.isnan(log["time_asked"])),
        "cpus_req": _whole(asked),
        "cpus_alloc": _whole(np.where(started & (used > 0), used, np.nan)),
        "mem_req_bytes": _whole(log["mem_asked_kb"] * 1024 * asked),
        "total_cpu_s": pa.array(np.where(started, log["cpu_time"] * used, np.nan), pa.float64(), from_pandas=True),
        "completeness": constant(3, pa.int64()),
        "anomalies": pa.array(np.where(np.isnan(wait), "incomplete", ""), pa.string(), mask=~np.isnan(wait)),
        "source": constant("swf", pa.string()),
        "observed_at": _times(np.full(count, last)),
    }
    return conform(pa.table(columns), arrow_schema("jobs"))


def _without_partials(log: dict[str, Floats]) -> dict[str, Floats]:
    """One row per job, with a column ``until``: second of the log at which the last of several stretches ended (nan
    for jobs that ran in one)."""
    log = {**log, "until": np.full(len(log["job"]), np.nan)}
    part = np.isin(log["status"], PARTIAL)
    if not part.any():
        return log
    alone = np.flatnonzero(part & ~np.isin(log["job"], log["job"][~part]))
    alone = alone[np.argsort(log["job"][alone], kind="stable")]
    first = np.flatnonzero(np.r_[True, np.diff(log["job"][alone]) != 0]) if len(alone) else alone
    heads, tails = alone[first], alone[np.r_[first[1:] - 1, len(alone) - 1]] if len(alone) else alone
    joined = {name: column[heads] for name, column in log.items()}
    if len(alone):
        joined["run"] = np.add.reduceat(log["run"][alone], first)
        joined["until"] = joined["submit"] + joined["run"] + np.add.reduceat(log["wait"][alone], first)
    joined["status"] = np.select([log["status"][tails] == 3, log["status"][tails] == 4], [1.0, 0.0], 2.0)
    open_ended = joined["status"] == 2
    joined["run"], joined["until"] = np.where(open_ended, np.nan, joined["run"]), np.where(open_ended, np.nan, joined["until"])
    whole = np.flatnonzero(~part)
    placed = ~np.isnan(joined["submit"])  # the line that told when it was submitted may have been cut off
    order = np.argsort(np.r_[whole, heads[placed]], kind="stable")
    return {name: np.r_[log[name][whole], joined[name][placed]][order] for name in log}


def _whole(values: Floats) -> pa.Array:
    """Rounded to int64; nan, and what does not fit, is null."""
    bad = ~(np.abs(values) < 2.0**63)
    return pa.array(np.round(np.where(bad, 0, values)).astype(np.int64), mask=bad)


def _times(seconds: Floats) -> pa.Array:
    return _whole(seconds * 1e6).cast(pa.timestamp("us")).cast(pa.timestamp("us", tz=str(UTC)))


def _named(letter: str, numbers: Floats) -> pa.Array:
    """``u12`` for 12; nan is null."""
    known = ~np.isnan(numbers)
    values, codes = np.unique(numbers[known], return_inverse=True)
    places = np.zeros(len(numbers), np.int32)
    places[known] = codes
    words = pa.array([f"{letter}{int(v)}" for v in values], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(places, mask=~known), words).cast(pa.string())
