"""CSV that a spreadsheet cannot take for formulas: job names are written by anybody."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def safe_cell(value: object) -> object:
    """Text that a spreadsheet might compute gets an apostrophe in front (OWASP's advice); numbers stay, None is empty."""
    if value is None:
        return ""
    if isinstance(value, str) and (value.startswith(STARTS) or _bare(value).startswith(STARTS)):
        return "'" + value
    return value


def _bare(text: str) -> str:
    """Without the white space and the invisible characters in front, which a spreadsheet may skip."""
    return text[next((i for i, c in enumerate(text) if c.isprintable() and not c.isspace()), len(text)) :]


def to_csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """UTF-8 with a byte-order mark, which Excel needs to see the encoding; every text quoted."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(header)
    writer.writerows([safe_cell(v) for v in row] for row in rows)
    return out.getvalue().encode("utf-8-sig", errors="replace")
