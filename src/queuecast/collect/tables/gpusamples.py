"""Readings of single GPUs: what nvidia-smi and DCGM print, as rows of ``gpu_samples``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, BinaryIO

import pyarrow as pa

from queuecast.collect.columns import Env
from queuecast.collect.framing import Section, Seen
from queuecast.collect.gpulayouts import GpuLayout, cells, layout_of, metric_of, node_name, node_of_path
from queuecast.collect.tables.keyvalue import BATCH, sections
from queuecast.errors import ParseError
from queuecast.schema import arrow_schema
from queuecast.slurmtext.sizes import parse_size
from queuecast.slurmtext.times import parse_time

_NOTHING = re.compile(r"(?i)\[.*\]|n/?a|none|null|nan|-|err!?|unknown|not supported|")
_NUMBER = re.compile(r"(\d{1,15}(?:\.\d{1,9})?(?:e[+-]?\d{1,2})?)\s*([A-Za-z%]*)")
_LOCAL = re.compile(r"(\d{4})[/-](\d\d)[/-](\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?")
_LAST_SECOND, _LAST_MILLI = 1e11, 1e14
_MEGABYTES = {"MIB", "MB", ""}
_COLUMNS = ("util", "mem_used", "mem_total", "power")

Result = Iterator[tuple[str, pa.Table]]
Key = tuple[datetime, str, str]


@dataclass
class _Reading:
    """One GPU at one moment; a DCGM file with a row for each metric fills it bit by bit."""

    gpu_name: str | None = None
    job: int | None = None
    util: float | None = None
    mem_used: int | None = None
    mem_total: int | None = None
    mem_free: int | None = None
    power: float | None = None
    source: str = ""
    generated: bool = False


@dataclass
class _Reader:
    env: Env
    node: str | None
    layout: GpuLayout | None = None
    readings: dict[Key, _Reading] = field(default_factory=dict)
    met: set[tuple[int, str]] = field(default_factory=set)
    _time: tuple[str, datetime | None] = ("", None)

    def take(self, number: int, line: bytes, section: Section) -> str:
        """What a line was: ``row``, ``header`` or ``reject``."""
        text = line.decode("utf-8", "replace").replace("\x00", "")
        if self.layout is not None and text.strip() == self.layout.header:
            return "header"
        # files may be joined: a header, alone, holds no digit
        found = layout_of(text) if self.layout is None or not any(c.isdigit() for c in text) else None
        if found is not None:
            self.layout = found
            if found.header:
                return "header"
        if self.layout is None or re.match(r"\s*#|\s*ID\s*$", text):
            return "header" if self.layout is not None else self._refuse(number, "no header line", line, section)
        try:
            self._row(number, text, section)
        except ParseError as error:
            return self._refuse(number, error.cause, line, section)
        return "row"

    def _refuse(self, number: int, cause: str, line: bytes, section: Section) -> str:
        self.env.rejects.record(number, cause, line, cluster=section.cluster, at=section.at)
        return "reject"

    def _row(self, number: int, text: str, section: Section) -> None:
        layout = self.layout
        assert layout is not None
        fields = _dmon_cells(text) if layout.form == "dmon" else cells(text, layout.delimiter)
        while len(fields) > layout.count and not fields[-1]:
            fields.pop()
        if len(fields) != layout.count:
            raise ParseError("wrong number of fields", text)
        told = {name: fields[i] for name, i in layout.at.items()}
        gpu = _gpu_of(told)
        node = node_name(told["node"]) if told.get("node") else self.node
        if node is None:
            raise ParseError("the node is not told (a column host, or the file's name)", text)
        when = self._when(told.get("time"), gpu, section)
        metric = metric_of(told["metric"]) if layout.form == "long" else None
        if layout.form == "long" and metric is None:
            return  # another of DCGM's many fields
        reading = self.readings.setdefault((when, node, gpu), _Reading(source=layout.source))
        reading.gpu_name = told.get("gpu_name", "")[:200] or reading.gpu_name
        reading.job = self._value(number, "job", _job, told.get("job"), section) or reading.job
        if self._value(number, "generated", _flag, told.get("generated"), section):
            reading.generated, reading.source = True, "generated"
        values = {metric: told["value"]} if metric is not None else told
        for name in ("util", "util_share", "mem_used", "mem_total", "mem_free", "power"):
            if name in values:
                unit = layout.units.get(name, "")
                value = self._value(number, name, lambda t, n=name, u=unit: _amount(n, t, u), values[name], section)
                if value is not None:
                    setattr(reading, "util" if name == "util_share" else name, value)

    def _when(self, text: str | None, gpu: str, section: Section) -> datetime:
        if text is None:
            # dcgmi dmon prints no times: one reading is that of the moment when it was taken
            if (id(section), gpu) in self.met:
                raise ParseError("a reading without a time", gpu)
            self.met.add((id(section), gpu))
            return section.at or self.env.taken_at
        if self._time[0] != text:
            self._time = (text, moment(text, self.env.zone))
        if self._time[1] is None:
            raise ParseError("not a time", text)
        return self._time[1]

    def _value(self, number: int, name: str, parse: Any, text: str | None, section: Section) -> Any:
        if text is None:
            return None
        try:
            return parse(text)
        except ParseError as error:
            self.env.rejects.value(number, name, error.cause, text, cluster=section.cluster, at=section.at)
            return None

    def table(self) -> pa.Table:
        """The readings so far, which are then forgotten."""
        items, self.readings = list(self.readings.items()), {}
        schema = arrow_schema("gpu_samples")
        total = [r.mem_total if r.mem_total is not None else _sum(r.mem_used, r.mem_free) for _, r in items]
        columns = {
            "cluster": [self.env.cluster] * len(items), "observed_at": [k[0] for k, _ in items], "node": [k[1] for k, _ in items],
            "gpu": [k[2] for k, _ in items], "gpu_name": [r.gpu_name for _, r in items], "job_id": [r.job for _, r in items],
            "util": [r.util for _, r in items], "mem_used_bytes": [r.mem_used for _, r in items], "mem_total_bytes": total,
            "power_w": [r.power for _, r in items], "source": [r.source for _, r in items], "generated": [r.generated for _, r in items],
        }
        return pa.table([pa.array(columns[f.name], f.type) for f in schema], schema=schema)


def read(stream: BinaryIO, env: Env, seen: Seen, *, sampled: bool, path: str) -> Result:
    """Rows of ``gpu_samples``. ``path``: of the file as it was found, which may name the node.

    A file with a row for each metric is held in memory until its end, for the rows of one reading may lie far apart.
    """
    reader = _Reader(env, node_of_path(path))
    for number, line, section in sections(stream, seen, sampled):
        what = reader.take(number, line, section)
        seen.headers += what == "header"
        seen.rejected += what == "reject"
        seen.in_rows += what == "row"
        if len(reader.readings) >= BATCH and reader.layout is not None and reader.layout.form != "long":
            yield "gpu_samples", reader.table()
    seen.records += seen.in_rows
    if reader.readings:
        yield "gpu_samples", reader.table()


def moment(text: str, zone: str) -> datetime | None:
    """A printed time: local to ``zone``, with an offset of its own, or epoch seconds or milliseconds; None for other text."""
    text = text.strip()
    match = _LOCAL.fullmatch(text)
    try:
        if match is None:
            number = float(text) if re.fullmatch(r"\d{9,16}(\.\d{1,9})?", text) else 0.0
            number = number / 1e6 if number >= _LAST_MILLI else number / 1e3 if number >= _LAST_SECOND else number
            return datetime.fromtimestamp(number, UTC) if number >= 1e8 else None
        plain = f"{match[1]}-{match[2]}-{match[3]}T{match[4]}"
        fraction = int((match[5] or "0").ljust(6, "0")[:6])
        if match[6]:
            value: datetime | None = datetime.fromisoformat(plain + match[6].replace("Z", "+00:00"))
        else:
            value = parse_time(plain, zone).value
        return None if value is None else value.astimezone(UTC).replace(microsecond=fraction)
    except (ParseError, ValueError, OverflowError, OSError):
        return None


def _gpu_of(told: dict[str, str]) -> str:
    for name in ("gpu", "uuid"):
        text = told.get(name, "")
        if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9:._/-]{0,79}", text) and not _NOTHING.fullmatch(text):
            return text.removeprefix("nvidia")
    raise ParseError("no GPU", told.get("gpu", "") or told.get("uuid", ""))


def _amount(name: str, text: str, unit: str) -> float | int | None:
    """Shares of 1, bytes or watts. nvidia-smi and DCGM count memory in MiB and use in percent."""
    if _NOTHING.fullmatch(text.strip()):
        return None
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise ParseError("not a reading", text)
    number, unit = float(match[1]), (match[2] or unit).upper()
    if name in ("util", "util_share"):
        share = number / 100.0 if name == "util" else number
        if share > 1.0 or unit not in ("%", ""):
            raise ParseError("not a share of a GPU", text)
        return share
    if name == "power":
        if number > 1e5 or unit not in ("W", ""):
            raise ParseError("not watts", text)
        return number
    if unit in _MEGABYTES:
        return _bounded(number * (1 << 20), text)
    return _bounded(float(parse_size(f"{match[1]}{unit}") or 0.0), text)


def _bounded(value: float, text: str) -> int:
    if value >= 1 << 50:
        raise ParseError("more memory than a GPU has", text)
    return round(value)


def _job(text: str) -> int | None:
    text = text.strip()
    if _NOTHING.fullmatch(text) or text == "0":
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > 10:
        raise ParseError("not a job id", text)
    return int(text)


def _flag(text: str) -> bool:
    return text.strip().lower() in ("1", "true", "yes", "generated")


def _sum(used: int | None, free: int | None) -> int | None:
    return None if used is None or free is None else used + free


def _dmon_cells(text: str) -> list[str]:
    """``GPU 0   98   1234``: kind, number, values; older releases print ``0`` alone."""
    words = text.split()
    return words if words[:1] and words[0].isalpha() and words[0] not in ("N",) else ["GPU", *words]
