"""The summary that jobstats leaves in AdminComment: ``JS1:`` and base64 of gzip of JSON, read with bounds.

Users cannot write this field, but it passes through a script of the site, the database's column width and hand edits: it may be
cut, empty or something else. Whatever is wrong gives no summary and a word for why, never an error.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

PREFIX: Final = "JS1:"
MOST_TEXT: Final = 4 << 20
"""Characters of base64 that are looked at. A job on a thousand nodes with eight GPUs each stays below."""
MOST_JSON: Final = 4 << 20
"""Bytes after decompression; more is refused unread."""
MOST_DEPTH: Final = 16

Why = Literal["absent", "short", "none", "truncated", "too_large", "not_base64", "not_gzip", "not_json", "not_jobstats"]


@dataclass(frozen=True)
class Gpu:
    """One GPU of a node. ``util`` is the mean over the run as a share of 1; sizes are bytes. None: not told."""

    index: str
    util: float | None
    mem_used: int | None
    mem_total: int | None


@dataclass(frozen=True)
class Node:
    """One node of the job. ``cpu_s``: CPU seconds used; ``mem_used``: highest reading in bytes. None: not told."""

    name: str
    cpus: float | None
    cpu_s: float | None
    mem_used: int | None
    mem_total: int | None
    gpus: tuple[Gpu, ...]


@dataclass(frozen=True)
class JobStats:
    """A summary. ``total_time``: seconds that it covers; ``gpus``: of the whole job, as told."""

    total_time: float | None
    gpus: int | None
    nodes: tuple[Node, ...]

    def numbers(self) -> dict[str, float | None]:
        """The job's sums by the names of the table ``job_use``. A sum over nodes is None as soon as one of them does not tell."""
        gpus = [g for n in self.nodes for g in n.gpus]
        utils = [g.util for g in gpus if g.util is not None]
        used, total = [g.mem_used for g in gpus if g.mem_used is not None], [g.mem_total for g in gpus if g.mem_total]
        whole = len(utils) == len(gpus) and bool(gpus)
        memory = _sum([n.mem_used for n in self.nodes])
        return {
            "cpu_s": _sum([n.cpu_s for n in self.nodes]), "mem_peak_bytes": memory if memory else None,
            "gpus_seen": float(len(utils)) if utils else None, "gpus_used": float(sum(u > 0 for u in utils)) if whole else None,
            "gpu_util_mean": sum(utils) / len(utils) if whole else None, "gpu_mem_peak_bytes": float(max(used)) if used else None,
            "gpu_mem_total_bytes": float(max(total)) if total else None,
        }


@dataclass(frozen=True)
class Parsed:
    """``stats`` is None where there is no summary; then ``why`` says what there is instead (``short``: the job was too short for
    one, ``none``: nothing was measured)."""

    stats: JobStats | None
    why: Why | None


def parse_jobstats(text: str | None) -> Parsed:
    """The summary of an AdminComment. Never raises; text, decompressed bytes and nesting are bounded."""
    if text is None or not text.strip().startswith(PREFIX):
        return Parsed(None, "absent")
    body = text.strip()[len(PREFIX):]
    if body in ("Short", "None"):
        return Parsed(None, "short" if body == "Short" else "none")
    if len(body) > MOST_TEXT:
        return Parsed(None, "too_large")
    try:
        packed = base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        return Parsed(None, "truncated" if _like_base64(body) else "not_base64")
    if not packed.startswith(b"\x1f\x8b"):
        return Parsed(None, "truncated" if len(packed) < 2 else "not_gzip")
    raw = _unpack(packed)
    if isinstance(raw, str):
        return Parsed(None, raw)
    try:
        _depth(raw)
        data = json.loads(raw.decode("utf-8"), parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return Parsed(None, "not_json")
    stats = _stats(data)
    return Parsed(stats, None if stats is not None else "not_jobstats")


def _like_base64(body: str) -> bool:
    return body.isascii() and all(c.isalnum() or c in "+/=" for c in body)


def _unpack(packed: bytes) -> bytes | Why:
    machine = zlib.decompressobj(wbits=31)
    try:
        raw = machine.decompress(packed, MOST_JSON + 1)
    except zlib.error:
        return "not_gzip"
    if len(raw) > MOST_JSON:
        return "too_large"
    return raw if machine.eof else "truncated"


_NO_BRACKET: Final = bytes(set(range(256)) - set(b"[]{}"))


def _depth(raw: bytes) -> None:
    """Raises ValueError for nesting that no summary has (braces within strings count too: there are none)."""
    depth = 0
    for byte in raw.translate(None, _NO_BRACKET):
        if byte in b"[{":
            depth += 1
            if depth > MOST_DEPTH:
                raise ValueError("too deep")
        elif byte in b"]}":
            depth -= 1


def _stats(data: Any) -> JobStats | None:
    nodes = data.get("nodes") if isinstance(data, dict) else None
    if not isinstance(nodes, dict) or not nodes:
        return None
    found = tuple(_node(name, node) for name, node in nodes.items() if isinstance(node, dict))
    if len(found) != len(nodes):
        return None
    gpus = _number(data.get("gpus"))
    return JobStats(_number(data.get("total_time")), None if gpus is None else int(gpus), found)


def _node(name: str, node: dict[str, Any]) -> Node:
    return Node(name[:255], _number(node.get("cpus")), _number(node.get("total_time")), _size(node.get("used_memory")),
                _size(node.get("total_memory")), tuple(_gpus(node)))


def _gpus(node: dict[str, Any]) -> Iterator[Gpu]:
    util, used, total = (v if isinstance(v, dict) else {} for v in (
        node.get("gpu_utilization"), node.get("gpu_used_memory"), node.get("gpu_total_memory")))
    for index in dict.fromkeys([*util, *used, *total]):
        percent = _number(util.get(index))
        share = percent / 100.0 if percent is not None and percent <= 100.0 else None
        yield Gpu(str(index)[:80], share, _size(used.get(index)), _size(total.get(index)))


def _number(value: Any) -> float | None:
    """A number that is finite and not negative; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _size(value: Any) -> int | None:
    number = _number(value)
    return None if number is None or number >= 1 << 62 else int(number)


def _sum(values: list[Any]) -> float | None:
    return None if not values or any(v is None for v in values) else float(sum(values))
