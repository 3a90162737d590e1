"""Sizes: ``1084.50M``, ``256K``, a bare number. All factors are powers of 1024; results are bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from queuecast.errors import ParseError

Per = Literal["job", "node", "cpu", "gpu"]

FACTORS: Final[dict[str, int]] = {
    "": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50, "E": 1 << 60,
}
_INT64: Final = 1 << 63
_NO_SIZE = frozenset({"", "n/a", "(null)", "unknown", "none", "invalid", "unlimited", "-1", "-2",
                      "18446744073709551614", "18446744073709551615"})

_WHOLE = re.compile(r"([0-9]{1,15})([KMGTP]?)")
_SIZE = re.compile(r"([0-9]{1,20})(?:\.([0-9]{1,9}))?([KMGTPEkmgtpe]?)(?:i?[Bb])?")
_UNKNOWN_UNIT = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,9})?\?")
_REQ_MEM = re.compile(r"([0-9]{1,20})(?:\.([0-9]{1,9}))?([KMGTPE?]?)([ncg]?)")
_PER: Final[dict[str, Per]] = {"n": "node", "c": "cpu", "g": "gpu", "": "job"}


def _scaled(whole: str, fraction: str | None, factor: int) -> int:
    """Exact: a float would lose the last bytes of large values."""
    if not fraction:
        return int(whole) * factor
    scale: int = 10 ** len(fraction)
    return (int(whole + fraction) * factor + scale // 2) // scale


def parse_size(text: str, unit: str = "B") -> int | None:
    """Bytes of a printed size.

    ``unit`` is what a bare number counts (``B``, ``K``, ``M``, ...): bytes for the usage fields of sacct, ``M``
    for memory that users ask for. ``0`` is a measured zero. None: blank, ``N/A``, ``UNLIMITED``, Slurm's
    not-set values, or an unknown unit letter (``16?``, which Slurm prints when it runs out of letters).
    Raises ParseError for other text and beyond signed 64 bits.
    """
    m = _WHOLE.fullmatch(text)
    if m is not None:
        value = int(m[1]) * FACTORS[m[2] or unit]
    else:
        text = text.strip()
        if text.lower() in _NO_SIZE:
            return None
        m = _SIZE.fullmatch(text)
        if m is None:
            if _UNKNOWN_UNIT.fullmatch(text):
                return None
            raise ParseError("not a size", text)
        value = _scaled(m[1], m[2], FACTORS[m[3].upper() or unit])
    if value >= _INT64:
        raise ParseError("size out of range", text)
    return value


@dataclass(frozen=True, slots=True)
class ReqMem:
    """Memory asked for. ``bytes`` is None if none was asked for, or all of the node, which Slurm prints alike as 0.

    ``per`` says what the amount counts for: the whole job (21.08 and later), or each node, CPU or GPU.
    """

    bytes: int | None
    per: Per | None


NO_REQ_MEM: Final = ReqMem(None, None)


def parse_req_mem(text: str) -> ReqMem:
    """sacct's ReqMem and squeue's MIN_MEMORY: ``10G``, ``10000Mn`` (per node), ``4Gc`` (per CPU), ``0``, blank.

    A bare number is MiB. The huge values that some versions print for *not set* (before 23.02.6) are None.
    Raises ParseError otherwise.
    """
    text = text.strip()
    m = _REQ_MEM.fullmatch(text)
    if m is None:
        if text.lower() in _NO_SIZE:
            return NO_REQ_MEM
        raise ParseError("not a memory request", text)
    whole, fraction, letter, per = m.groups()
    if letter == "?":
        return ReqMem(None, _PER[per])
    if per == "g" and not letter:  # typed by hand: 4g is a size; Slurm itself prints a unit before the g
        letter, per = "G", ""
    value = _scaled(whole, fraction, FACTORS[letter or "M"])
    if value == 0:
        return NO_REQ_MEM
    return ReqMem(value if value < FACTORS["E"] else None, _PER[per])


def format_size(value: int) -> str:
    """Slurm's notation with at most two decimals, exact: the largest unit in which nothing is lost."""
    if value < 0:
        raise ValueError("a size cannot be negative")
    for letter in "EPTGMK":
        factor = FACTORS[letter]
        if value < factor:
            continue
        if value % factor == 0:
            return f"{value // factor}{letter}"
        if value * 100 % factor == 0:
            hundredths = value * 100 // factor
            return f"{hundredths // 100}.{hundredths % 100:02d}{letter}"
    return str(value)
