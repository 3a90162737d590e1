"""Which texts mean *nothing*, by kind of column: a job may really be called ``None`` or ``N/A``."""

from __future__ import annotations

from typing import Final

from queuecast.errors import ParseError

NAMES: Final = frozenset({""})
"""Text that users choose (job name, comment): only blank is nothing."""

TEXT: Final = frozenset({"", "(null)", "N/A", "n/a"})
"""Account, QOS, partition, reservation, licences, features, TRES text."""

WORDS: Final = TEXT | {"Unknown", "None", "none", "NONE"}
"""Columns with a fixed vocabulary that also print Unknown or None: owner, MCS label, reason of a node."""

NODES: Final = TEXT | {"None assigned", "None", "Unknown"}
"""Node lists: NodeList, SchedNodes, ReqNodes."""

NUMBERS: Final = TEXT | {"Unknown", "INVALID", "NONE", "n/s", "NO_VAL", "None"}
"""Numbers that Slurm replaces by a word when it has none."""


def clean(text: str, *, spellings: frozenset[str] = TEXT) -> str | None:
    """The text, or None if it is one of ``spellings`` (blanks around it ignored). Slurm's text ends at a NUL.

    What is returned is not stripped or changed: names may start with a blank.
    """
    if "\x00" in text:
        text = text[: text.index("\x00")]
    if text.strip() in spellings:
        return None
    return text


def parse_count(text: str) -> int | None:
    """A whole number of a column such as NCPUS or Priority; None for the words of :data:`NUMBERS` and sentinels.

    Raises ParseError for other text.
    """
    stripped = text.strip()
    if stripped.isascii() and stripped.isdigit() and len(stripped) <= 20:
        value = int(stripped)
        return None if value in _SENTINELS else value
    if stripped in NUMBERS or stripped in ("-1", "-2", "UNLIMITED", "INFINITE"):
        return None
    raise ParseError("not a count", text)


_SENTINELS: Final = frozenset({4_294_967_294, 4_294_967_295, 18_446_744_073_709_551_614, 18_446_744_073_709_551_615})
