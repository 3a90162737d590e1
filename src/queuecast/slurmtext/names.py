"""Small conventions of names: the star of the default partition, the plus of a cut column, join keys."""

from __future__ import annotations


def parse_sinfo_partition(text: str) -> tuple[str, bool]:
    """sinfo's ``%P``: (name, is default). Only there, and only at the end, a star marks the default partition."""
    text = text.strip()
    return (text[:-1], True) if text.endswith("*") else (text, False)


def is_cut(text: str) -> bool:
    """Whether a value from a fixed-width table was cut: such tables end a cut value with ``+``."""
    return text.rstrip().endswith("+")


def join_key(text: str) -> str:
    """Key for joining names from the database (lower case) with those from the controller (as typed)."""
    return text.strip().casefold()


def split_outside_parentheses(text: str, separator: str = ",", opening: str = "(", closing: str = ")") -> list[str]:
    """Split at separators that stand outside brackets. A bracket that never closes runs to the end."""
    if opening not in text:
        return text.split(separator)
    parts: list[str] = []
    depth = start = 0
    for i, char in enumerate(text):
        if char == opening:
            depth += 1
        elif char == closing:
            depth = max(0, depth - 1)
        elif char == separator and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return parts
