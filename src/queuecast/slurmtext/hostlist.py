"""Host lists: ``n[001-003,010]-ib``, ``r[1-2]n[1-2]``; several bracket groups multiply, zero padding is kept."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby, product
from typing import Final

from queuecast.errors import ParseError
from queuecast.slurmtext.names import split_outside_parentheses
from queuecast.slurmtext.nulls import NODES

MAX_HOSTS: Final = 1_000_000
"""More hosts than any cluster has: an expansion beyond is refused rather than filling the memory."""

_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_PIECE = re.compile(r"[A-Za-z0-9_.-]+|\[[0-9,-]+\]")
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})")

_Range = tuple[int, int, int]  # first, last, width


def _group(piece: str, text: str) -> list[_Range]:
    ranges: list[_Range] = []
    for item in piece[1:-1].split(","):
        m = _RANGE.fullmatch(item)
        if m is None:
            raise ParseError("not a host list", text)
        first, last = int(m[1]), int(m[2] or m[1])
        if last < first:
            raise ParseError("not a host list", text)
        ranges.append((first, last, len(m[1])))
    return ranges


def _parse(text: str) -> list[list[str | list[_Range]]] | None:
    """Per comma part its pieces: plain text or a bracket group. None if no hosts are named."""
    text = text.strip()
    if text in NODES:
        return None
    parts: list[list[str | list[_Range]]] = []
    for part in split_outside_parentheses(text, ",", "[", "]"):
        if _HOST.fullmatch(part):
            parts.append([part])
            continue
        pieces = _PIECE.findall(part)
        if not pieces or "".join(pieces) != part or part[0] in ".-[":
            raise ParseError("not a host list", text)
        parts.append([_group(p, text) if p[0] == "[" else p for p in pieces])
    return parts


def count_hosts(text: str) -> int | None:
    """How many hosts the list names, without expanding it; None for no list (``None assigned``, ``(null)``, blank).

    Raises ParseError for other text, such as the reason in squeue's NODELIST(REASON).
    """
    parts = _parse(text)
    if parts is None:
        return None
    total = 0
    for pieces in parts:
        count = 1
        for piece in pieces:
            if not isinstance(piece, str):
                count *= sum(last - first + 1 for first, last, _ in piece)
        total += count
    return total


def expand_hostlist(text: str) -> tuple[str, ...] | None:
    """Host names in the order given; None for no list (``None assigned``, ``(null)``, ``N/A``, blank).

    Raises ParseError for other text and for lists of more than :data:`MAX_HOSTS` hosts.
    """
    parts = _parse(text)
    if parts is None:
        return None
    if (count_hosts(text) or 0) > MAX_HOSTS:
        raise ParseError("host list too long", text)
    out: list[str] = []
    for pieces in parts:
        if len(pieces) == 1 and isinstance(pieces[0], str):
            out.append(pieces[0])
            continue
        choices = [[p] if isinstance(p, str) else [f"{n:0{width}d}" for first, last, width in p for n in range(first, last + 1)]
                   for p in pieces]
        out.extend("".join(names) for names in product(*choices))
    return tuple(out)


def fold_hosts(hosts: Iterable[str]) -> str:
    """A host list of these names, sorted, duplicates dropped: ``expand_hostlist`` gives them back.

    Only the last number of a name is folded, at most nine digits of it.
    """
    numbered: dict[tuple[str, int], list[int]] = {}
    plain: list[str] = []
    for host in sorted(set(hosts)):
        m = _NUMBERED.fullmatch(host)
        if m is None or not m[1]:
            plain.append(host)
        else:
            numbered.setdefault((m[1], len(m[2])), []).append(int(m[2]))
    out = list(plain)
    for (prefix, width), numbers in sorted(numbered.items()):
        runs: list[str] = []
        ordered = sorted(numbers)
        for _, run in groupby(enumerate(ordered), key=lambda pair: pair[1] - pair[0]):
            members = [n for _, n in run]
            first, last = f"{members[0]:0{width}d}", f"{members[-1]:0{width}d}"
            runs.append(first if first == last else f"{first}-{last}")
        single = len(runs) == 1 and "-" not in runs[0]
        out.append(prefix + (runs[0] if single else f"[{','.join(runs)}]"))
    return ",".join(out)
