"""Kinds of jobs: what must be equal for one job to tell of another, finest first."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from queuecast.features.history import Floats, Ints

RUNGS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("user and name", ("user", "name", "account", "asked")),
    ("user and name", ("user", "name")),
    ("user", ("user", "asked")),
    ("user", ("user",)),
    ("account", ("account",)),
    ("partition", ("partition", "asked")),
    ("all", ()),
)
"""(what it is called, what must be equal), finest first. ``name`` is a ``kind_name``, ``asked`` the amount of the resource."""

_HASH = re.compile(r"(?<![0-9a-z])(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{6,}(?![0-9a-z])")
_DIGITS = re.compile(r"[0-9]+")
_MARKS = re.compile(r"[#\s._:,;=+@()\[\]{}/-]+")
_MONTHS = re.compile(
    r"(?<![a-z])(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)(?=\d)|(?<=\d)(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)(?![a-z])"
)
_SAYS_NOTHING = frozenset(
    {"", "bash", "sh", "zsh", "wrap", "sbatch", "srun", "salloc", "interactive", "job", "run", "script", "test", "python"}
)
_LONGEST = 4096


def kind_name(name: str | None, submit_line: str | None = None) -> str:
    """A job's name without what differs from run to run: numbers, dates, hashes, case. Where the name says nothing (``bash``,
    ``wrap``), the script or program of the submit line is used. Any text may be passed; never shown as it is."""
    plain = _plain(name or "")
    if plain in _SAYS_NOTHING and submit_line:
        plain = _plain(_command(submit_line)) or plain
    return plain


def _plain(text: str) -> str:
    lower = text[:_LONGEST].casefold()
    lower = _HASH.sub("#", lower)
    lower = _MONTHS.sub("#", lower)
    return _MARKS.sub("-", _DIGITS.sub("#", lower)).strip("-")


def _command(submit_line: str) -> str:
    """The first word after ``sbatch`` or ``srun`` that is no option, without its folder. Options told with a blank before their
    value are not known here: their value may be taken for the command, the same one each time."""
    words = submit_line[:_LONGEST].split()
    for word in words[1:]:
        if word.startswith("--wrap="):
            return word[len("--wrap=") :].strip("'\"").rsplit("/", 1)[-1]
        if not word.startswith("-"):
            return word.strip("'\"").rsplit("/", 1)[-1]
    return ""


class Codes:
    """Numbers for kinds on each rung; a kind that was not seen has -1."""

    def __init__(self, columns: Mapping[str, Sequence[str | None]], asked: Floats) -> None:
        self.places: list[dict[tuple[object, ...], int]] = []
        codes = []
        for _label, keys in RUNGS:
            parts = [[round(float(a), 6) for a in asked] if k == "asked" else columns[k] for k in keys]
            place: dict[tuple[object, ...], int] = {}
            rows = zip(*parts, strict=True) if parts else (() for _ in range(len(asked)))
            codes.append(np.fromiter((place.setdefault(row, len(place)) for row in rows), np.int64, len(asked)))
            self.places.append(place)
        self.codes: Ints = np.array(codes, np.int64).reshape(len(RUNGS), len(asked))

    def of(self, known: dict[str, str | None], asked: float) -> Ints:
        """Codes (rungs, 1) of one job."""
        found = [
            place.get(tuple(round(float(asked), 6) if k == "asked" else known[k] for k in keys), -1)
            for place, (_label, keys) in zip(self.places, RUNGS, strict=True)
        ]
        return np.array(found, np.int64)[:, None]
