"""TRES: ``cpu=4,mem=2.50G,gres/gpu:a100=2`` as amounts, as usage and as limits; GPUs counted once.

Key order differs between commands, so everything is read as key and value. Keys stay as printed; GPU types in
:class:`Gpus` are case-folded, because the database keeps lower case and the controller what was configured.
GRES as nodes and jobs print it (``gpu:a100:4(S:0-1)``) is in :mod:`queuecast.slurmtext.gres`, re-exported here.
"""

from __future__ import annotations

import re
from typing import Final

from queuecast.errors import ParseError
from queuecast.slurmtext.durations import parse_elapsed
from queuecast.slurmtext.gres import Gpus, Gres, Mig, add_types, gpus_of_gres, mig_of_type, parse_gres
from queuecast.slurmtext.sizes import format_size, parse_size

__all__ = ["Gpus", "Gres", "Mig", "format_tres", "gpus_of_gres", "gpus_of_tres", "mig_of_type", "parse_gres",
           "parse_tres", "parse_tres_limits", "parse_tres_usage", "split_tres"]

_NOTHING = frozenset({"", "(null)", "n/a", "unknown", "none"})
_DROPPED = frozenset({"", "none", "n/a", "(null)", "-1", "-2", "18446744073709551614", "18446744073709551615"})
_COUNTED_GRES = frozenset({"gpu", "gpumem", "gpuutil", "shard", "mps"})  # a zero of these is a zero
_COUNT = re.compile(r"[0-9]{1,18}")
_NUMBER = re.compile(r"[0-9]{1,18}(?:\.[0-9]{1,9})?")
_LIMIT = re.compile(r"(N|-?[0-9]{1,20})\(([0-9]{1,20})\)")
_INT64: Final = 1 << 63


def split_tres(text: str) -> list[tuple[str, str]]:
    """(key, value) as printed, in order, sentinels dropped; commas inside parentheses do not split.

    Raises ParseError if a part has no ``=``.
    """
    text = text.strip()
    if text.lower() in _NOTHING:
        return []
    if "(" in text:
        # pieces of a value in parentheses belong together; only limits print them
        raise ParseError("TRES with parentheses", text)
    pairs: list[tuple[str, str]] = []
    for part in text.split(","):
        key, equals, value = part.partition("=")
        key = key.strip()
        if not equals or not key:
            raise ParseError("TRES without a value", text)
        value = value.strip()
        if value.lower() not in _DROPPED:
            pairs.append((key, value))
    return pairs


def _gres_name(key: str) -> str | None:
    """``gpu`` of ``gres/gpu:a100``; None if the key is no GRES. Names compare whole: gpumem is not gpu."""
    if key[:5].lower() != "gres/":
        return None
    return key[5:].partition(":")[0].lower()


def _memory_unit(key: str) -> str | None:
    """Unit of a bare number if the key holds a size, else None. Slurm counts ``mem`` in MiB, the others in bytes."""
    lower = key.lower()
    if lower == "mem":
        return "M"
    if lower == "vmem" or lower.startswith(("fs/", "bb/")) or _gres_name(key) == "gpumem":
        return "B"
    return None


def parse_tres(text: str) -> dict[str, int | None]:
    """Amounts of AllocTRES, ReqTRES, CfgTRES and of limits such as GrpTRES.

    ``mem``, ``vmem``, ``fs/…``, ``bb/…`` and ``gres/gpumem`` are bytes (a bare ``mem`` is MiB), the rest counts.
    A GRES that is lent but not counted (no_consume) prints 0: its amount is None, the key present. Sentinels
    (``18446744073709551614``, ``-2``, ``NONE``) are dropped. Blank text gives an empty dict.
    Raises ParseError otherwise.
    """
    out: dict[str, int | None] = {}
    for key, value in split_tres(text):
        unit = _memory_unit(key)
        if unit is not None:
            out[key] = parse_size(value, unit)
            continue
        amount = int(value) if _COUNT.fullmatch(value) else _scaled_count(value, text)
        if amount == 0:
            gres = _gres_name(key)
            if gres is not None and gres not in _COUNTED_GRES:
                out[key] = None
                continue
        out[key] = amount
    return out


def _scaled_count(value: str, text: str) -> int | None:
    """A count with a unit letter (``1.50K``); a fraction of a unit is no count."""
    if value[-1:].isdigit() or value[-1:] == ".":
        raise ParseError("TRES value is not a number", text)
    try:
        return parse_size(value)
    except ParseError:
        raise ParseError("TRES value is not a number", text) from None


def parse_tres_usage(text: str) -> dict[str, float | None]:
    """TRESUsageIn*/Out*: ``cpu`` in seconds, ``mem``, ``vmem``, ``fs/…``, ``gres/gpumem`` in bytes, the rest as printed.

    ``energy`` is joules, ``gres/gpuutil`` percent (summed over tasks in Tot), ``pages`` a count. Bare sizes are
    bytes here. Sentinels are dropped; an amount with an unknown unit is None. Raises ParseError otherwise.
    """
    out: dict[str, float | None] = {}
    for key, value in split_tres(text):
        if key.lower() == "cpu":
            out[key] = parse_elapsed(value)
        elif _memory_unit(key) is not None:
            size = parse_size(value, "B")
            out[key] = None if size is None else float(size)
        elif _NUMBER.fullmatch(value):
            out[key] = float(value)
        else:
            size = _scaled_count(value, text)
            out[key] = None if size is None else float(size)
    return out


def parse_tres_limits(text: str) -> dict[str, tuple[int | None, int | None]]:
    """``limit(usage)`` pairs of scontrol show assoc_mgr: ``cpu=N(4),mem=300000(4096)``; ``N`` is no limit: None.

    ``mem`` is converted to bytes (in the tables of minutes: byte-minutes), the rest are counts.
    Raises ParseError otherwise.
    """
    text = text.strip()
    out: dict[str, tuple[int | None, int | None]] = {}
    if text.lower() in _NOTHING:
        return out
    for part in text.split(","):
        key, _, value = part.partition("=")
        m = _LIMIT.fullmatch(value.strip())
        if m is None or not key.strip():
            raise ParseError("not a limit with its usage", text)
        factor = 1 << 20 if key.strip().lower() == "mem" else 1
        limit = None if m[1] == "N" or m[1].startswith("-") else _bounded(int(m[1]) * factor)
        out[key.strip()] = (limit, _bounded(int(m[2]) * factor))
    return out


def _bounded(value: int) -> int | None:
    """None for the not-set values, which lie beyond what the lake can hold."""
    return value if value < _INT64 else None


def gpus_of_tres(text: str, tracked: bool = True) -> Gpus:
    """GPUs of an AllocTRES or ReqTRES.

    The total is ``gres/gpu`` if printed, else the sum of the typed entries, never both: clusters track one or
    the other or both. The total may exceed the typed sum when a type is not tracked. Without any GPU entry the
    total is 0 if the cluster tracks GPUs (AccountingStorageTRES) and None if not; blank text tells nothing: None.
    Raises ParseError for text that is not TRES.
    """
    generic: int | None = None
    typed: list[tuple[str, int]] = []
    pairs = split_tres(text)
    if not pairs:
        return Gpus(None)
    for key, value in pairs:
        if _gres_name(key) != "gpu":
            continue
        amount = int(value) if _COUNT.fullmatch(value) else _scaled_count(value, text)
        if amount is None:
            continue
        _, colon, kind = key.partition(":")
        if not colon:
            generic = amount
        else:
            typed.append((kind, amount))
    types = add_types(typed)
    if generic is not None:
        return Gpus(generic, types)
    if typed:
        return Gpus(sum(count for _, count in types), types)
    return Gpus(0 if tracked else None)


def format_tres(amounts: dict[str, int | None]) -> str:
    """TRES text with the keys in order; sizes in the largest exact unit, amounts that are None left out."""
    parts: list[str] = []
    for key, value in amounts.items():
        if value is None:
            continue
        if _memory_unit(key) is None:
            parts.append(f"{key}={value}")
            continue
        shown = format_size(value)
        if key.lower() == "mem" and shown.isdigit() and value:
            raise ValueError("mem has no notation for less than a hundredth of a KiB")
        parts.append(f"{key}={shown}")
    return ",".join(parts)
