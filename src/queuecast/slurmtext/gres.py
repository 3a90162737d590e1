"""GRES as nodes and jobs print it: ``gpu:a100:4(S:0-1)``, ``gres:gpu:2``, ``gres/gpu:v100=1``, ``gpu(CNT:2)``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from queuecast.errors import ParseError
from queuecast.slurmtext.names import split_outside_parentheses
from queuecast.slurmtext.sizes import parse_size

_PARENTHESES = re.compile(r"\(([^()]*)\)")
_COUNT = re.compile(r"[0-9]{1,18}[KMGTPE]?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_TYPE = re.compile(r"[^\s:=(),]+")
_INDICES = re.compile(r"[0-9]{1,9}(?:-[0-9]{1,9})?(?:,[0-9]{1,9}(?:-[0-9]{1,9})?)*")
_MIG = re.compile(r"(.*?)[_.-]?([0-9]{1,2})g\.([0-9]{1,4})gb(?:[.+_-].*)?", re.IGNORECASE)
_UNKNOWN = frozenset({"n/a", "unknown"})


@dataclass(frozen=True, slots=True)
class Gpus:
    """GPUs of a job or node. ``total`` None: unknown. ``types`` are case-folded, sorted, without zero counts.

    A total above the sum of the types means that the rest is of a type that is not told.
    """

    total: int | None
    types: tuple[tuple[str, int], ...] = field(default=())

    @property
    def type(self) -> str | None:
        """The only type, ``mixed`` if there are several (or one and others untold), None if unknown or none."""
        if not self.types:
            return None
        if len(self.types) > 1 or (self.total is not None and self.total > self.types[0][1]):
            return "mixed"
        return self.types[0][0]


@dataclass(frozen=True, slots=True)
class Gres:
    """One entry. ``type`` as printed, case kept. ``count`` None: not counted (no_consume).

    ``indices``: devices in use (``0-1,3``), None if none or not told. ``sockets``: the sockets it is bound to.
    """

    name: str
    type: str | None
    count: int | None
    indices: str | None = None
    sockets: str | None = None


@dataclass(frozen=True, slots=True)
class Mig:
    """A MIG profile: ``slices`` of the GPU's (seven on A100 and H100) and gigabytes. ``model`` is what stands before it."""

    model: str
    slices: int
    memory_gb: int


def add_types(typed: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """Counts by case-folded type, sorted, zero counts left out."""
    sums: dict[str, int] = {}
    for kind, count in typed:
        if count:
            key = kind.strip().casefold()
            sums[key] = sums.get(key, 0) + count
    return tuple(sorted(sums.items()))


def mig_of_type(gpu_type: str) -> Mig | None:
    """The MIG profile in a type such as ``nvidia_a100_1g.5gb`` or ``a100_3g.20gb``; None for a whole GPU.

    A MIG device is a part of a GPU: 21 of ``1g.5gb`` are three A100, not 21. Source: gres.conf(5), MIG.
    """
    m = _MIG.fullmatch(gpu_type.casefold())
    return Mig(m[1], int(m[2]), int(m[3])) if m else None


def count_indices(text: str) -> int | None:
    """Devices in ``0-1,3``: 3. None if the text is no index list (``N/A``, blank)."""
    if not _INDICES.fullmatch(text):
        return None
    total = 0
    for part in text.split(","):
        first, dash, last = part.partition("-")
        total += max(0, int(last) - int(first) + 1) if dash else 1
    return total


def parse_gres(text: str) -> tuple[Gres, ...]:
    """Every entry of a Gres, GresUsed or TRES_PER_NODE column, in order.

    An entry without a count stands for one. Suffixes in parentheses (``IDX``, ``S``, ``CNT``) may hold commas;
    unknown ones are ignored. ``(null)``, ``N/A`` and blank give no entries. Raises ParseError otherwise.
    """
    stripped = text.strip()
    if stripped.lower() in ("", "(null)", "none") or stripped.lower() in _UNKNOWN:
        return ()
    return tuple(_entry(part.strip(), text) for part in split_outside_parentheses(stripped))


def _entry(part: str, text: str) -> Gres:
    if part[:5].lower() in ("gres:", "gres/"):
        part = part[5:]
    if ":(null)" in part:
        part = part.replace(":(null)", "")
    indices = sockets = None
    count: int | None = None
    if "(" in part:
        for inner in _PARENTHESES.findall(part):
            tag, colon, value = inner.partition(":")
            if not colon:
                continue
            if tag == "IDX":
                indices = value if value and value.lower() not in _UNKNOWN else None
            elif tag == "S":
                sockets = value or None
            elif tag == "CNT" and _COUNT.fullmatch(value):
                count = parse_size(value)
        part = _PARENTHESES.sub("", part)
    words = part.replace("=", ":").split(":")
    name = words[0]
    if not _NAME.fullmatch(name):
        raise ParseError("not a GRES", text)
    consumed = "no_consume" not in words[1:]
    rest = [w for w in words[1:] if w != "no_consume"]
    if rest and _COUNT.fullmatch(rest[-1]):
        count = parse_size(rest.pop())
    if len(rest) > 1 or (rest and not _TYPE.fullmatch(rest[0])):
        raise ParseError("not a GRES", text)
    if count is None:
        count = count_indices(indices) if indices is not None else None
        count = 1 if count is None else count
    return Gres(name, rest[0] if rest else None, count if consumed else None, indices, sockets)


NO_GPUS: Final = Gpus(0)


def gpus_of_gres(text: str) -> Gpus:
    """GPUs of a GRES text. ``(null)`` and blank are 0; ``N/A`` says nothing (jobs that used ``--gpus``): total None.

    Only the name ``gpu`` counts: shards, MPS and other devices are not GPUs. A MIG device counts as one.
    Raises ParseError for text that is not GRES.
    """
    if text.strip().lower() in _UNKNOWN:
        return Gpus(None)
    total = 0
    typed: list[tuple[str, int]] = []
    for entry in parse_gres(text):
        if entry.name.lower() != "gpu" or entry.count is None:
            continue
        total += entry.count
        if entry.type is not None:
            typed.append((entry.type, entry.count))
    return Gpus(total, add_types(typed)) if total else NO_GPUS
