"""The parts a report is made of, each written as HTML and as Markdown. Every text is escaped here and nowhere else."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence
from dataclasses import dataclass

from queuecast.i18n import get_language
from queuecast.render.words import safe


@dataclass(frozen=True)
class Heading:
    """``level`` 1 to 3."""

    level: int
    text: str


@dataclass(frozen=True)
class Text:
    """A paragraph; ``hint`` sets it apart: it says what to do."""

    text: str
    hint: bool = False


@dataclass(frozen=True)
class Value:
    """A table cell: a figure, its interval below it, and whether it is the best of its kind."""

    text: str
    range: str = ""
    best: bool = False


@dataclass(frozen=True)
class Table:
    """``rows`` hold texts (left) and values (right). A row of one text is a heading over the rows below it."""

    head: Sequence[str]
    rows: Sequence[Sequence[str | Value]]
    caption: str = ""


@dataclass(frozen=True)
class Plot:
    """A picture as PNG; ``name`` is the file's, made by the program; ``alt`` tells what it shows."""

    name: str
    alt: str
    png: bytes


Block = Heading | Text | Table | Plot

# No script and nothing from elsewhere can run in the page, whatever a partition is called.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1b2733; background: #fff; max-width: 1280px; margin: 2rem auto; padding: 0 1.5rem; }
h1 { font-size: 1.9rem; margin-bottom: .3rem; } h2 { margin-top: 2.6rem; border-top: 1px solid #d5dce3; padding-top: 1.2rem; }
h3 { margin-top: 2rem; } p { max-width: 76ch; } .hint { background: #f2f5f8; border-left: 4px solid #0b66a8; padding: .6rem .9rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: #5b6b7a; padding-bottom: .4rem; } th, td { padding: .3rem .5rem; text-align: left; vertical-align: top; }
thead th { text-wrap: balance; border-bottom: 2px solid #1b2733; vertical-align: bottom; } td.n, th.n { text-align: right; }
td small { display: block; color: #5b6b7a; white-space: nowrap; } td.best { font-weight: 650; } td.best small { font-weight: 400; }
tbody tr { border-bottom: 1px solid #e4e9ee; } tr.part th { padding-top: .9rem; font-weight: 650; }
img { max-width: 100%; height: auto; display: block; margin: .6rem 0 1.4rem; }
"""


def as_html(blocks: Sequence[Block]) -> str:
    """A page that needs no other file."""
    title = next((b.text for b in blocks if isinstance(b, Heading)), "")
    body = "\n".join(_html(block) for block in blocks)
    return (
        f'<!doctype html>\n<html lang="{_h(get_language().replace("_", "-"))}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_h(POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_h(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def as_markdown(blocks: Sequence[Block], plots: str) -> str:
    """Markdown (with the tables of GitHub's) whose pictures lie in the folder ``plots`` beside it."""
    return "\n\n".join(_markdown(block, plots) for block in blocks) + "\n"


def _html(block: Block) -> str:
    if isinstance(block, Heading):
        return f"<h{block.level}>{_h(block.text)}</h{block.level}>"
    if isinstance(block, Text):
        return f'<p class="hint">{_h(block.text)}</p>' if block.hint else f"<p>{_h(block.text)}</p>"
    if isinstance(block, Plot):
        return f'<img alt="{_h(block.alt)}" src="data:image/png;base64,{base64.b64encode(block.png).decode()}">'
    numbers = _number_columns(block)
    head = "".join(f'<th scope="col"{_side(i in numbers)}>{_h(text)}</th>' for i, text in enumerate(block.head))
    rows = "\n".join(_html_row(row, len(block.head)) for row in block.rows)
    caption = f"<caption>{_h(block.caption)}</caption>\n" if block.caption else ""
    return f'<div class="scroll"><table>\n{caption}<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>'


def _html_row(row: Sequence[str | Value], width: int) -> str:
    if len(row) == 1 and isinstance(row[0], str):
        return f'<tr class="part"><th scope="rowgroup" colspan="{width}">{_h(row[0])}</th></tr>'
    cells = []
    for cell in row:
        if isinstance(cell, str):
            cells.append(f"<td>{_h(cell)}</td>")
        else:
            small = f"<small>{_h(cell.range)}</small>" if cell.range else ""
            cells.append(f'<td class="n{" best" if cell.best else ""}">{_h(cell.text)}{small}</td>')
    return f"<tr>{''.join(cells)}</tr>"


def _markdown(block: Block, plots: str) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {_m(block.text)}"
    if isinstance(block, Text):
        return ("> " if block.hint else "") + _m(block.text)
    if isinstance(block, Plot):
        return f"![{_m(block.alt)}]({plots}/{block.name})"
    numbers = _number_columns(block)
    lines = [
        "| " + " | ".join(_m(text) for text in block.head) + " |",
        "|" + "|".join("---:" if i in numbers else "---" for i in range(len(block.head))) + "|",
    ]
    for row in block.rows:
        if len(row) == 1 and isinstance(row[0], str):
            cells = [f"**{_m(row[0])}**" if row[0] else ""]
        else:
            cells = [_m(cell) if isinstance(cell, str) else _markdown_value(cell) for cell in row]
        lines.append("| " + " | ".join(cells + [""] * (len(block.head) - len(cells))) + " |")
    return (f"{_m(block.caption)}\n\n" if block.caption else "") + "\n".join(lines)


def _markdown_value(cell: Value) -> str:
    text = f"**{_m(cell.text)}**" if cell.best else _m(cell.text)
    return f"{text} ({_m(cell.range)})" if cell.range else text


def _number_columns(table: Table) -> set[int]:
    return {i for row in table.rows for i, cell in enumerate(row) if isinstance(cell, Value)}


def _side(number: bool) -> str:
    return ' class="n"' if number else ""


def _h(text: str) -> str:
    """For HTML, in content and in quoted attributes."""
    return html.escape(safe(text), quote=True)


def _m(text: str) -> str:
    """For Markdown, also inside tables: no markup, no HTML, no link can come from it."""
    plain = safe(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    plain = re.sub(r"([\\`*_{}\[\]|~$])", r"\\\1", plain)
    # Bare addresses become links by themselves on some sites; a list or a heading starts a line.
    plain = re.sub(r"(?i)(https?|ftp)(?=:)|(?<=www)(?=\.)", r"\1&#8203;", plain)
    return re.sub(r"^(\s*)([#+=-]|\d+(?=[.)](?:\s|$)))", _unlisted, plain)


def _unlisted(found: re.Match[str]) -> str:
    """A list, a heading or an underline is none if its first mark is escaped; a digit cannot be, so a character that
    takes no room stands before it."""
    return found[1] + ("&#8203;" if found[2][0].isdigit() else "\\") + found[2]
