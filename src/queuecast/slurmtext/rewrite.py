"""A changed copy of a batch script: other ``#SBATCH`` lines, a header of comments, a few lines of shell before the first command.

The commands themselves are never touched. What is put in stands between marks and is taken out again when the copy is
rewritten, so that a copy of a copy has one header.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from queuecast.slurmtext.script import parse_script

MAGIC: Final = "#SBATCH"
HEADER_BEGIN, HEADER_END = "# >>> queuecast retry", "# <<< queuecast retry"
SETUP_BEGIN, SETUP_END = "# >>> queuecast setup", "# <<< queuecast setup"
EXCLUDING: Final = (
    frozenset({"mem", "mem-per-cpu", "mem-per-gpu"}),
    frozenset({"requeue", "no-requeue"}),
    frozenset({"exclusive", "oversubscribe"}),
    frozenset({"nodelist", "nodefile"}),
)
"""Options of which the one given last, or on the command line, holds alone. Source: ``slurm_opt.c``."""

_SHELLS = re.compile(r"(?:ba|da|k|z|mk|pdk|a)?sh\Z")
_OURS = ("export QUEUECAST_", '[ "$#" -gt 0 ] || set -- ')
_PLAIN = re.compile(r"[\w@%+=:,./\[\]~^&|*-]*")


@dataclass
class Parts:
    """A script in three: ``head`` up to the first command, lines that an earlier copy put in (``setup``), and the rest.

    ``header``: what the earlier copy said, without the marks. ``head`` and ``body`` are lines without line ends; joined by
    newlines (with ``setup`` and the header left out) they are the script.
    """

    head: list[str] = field(default_factory=list)
    header: list[str] = field(default_factory=list)
    setup: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)


def split_script(text: str) -> Parts:
    """Where the first command begins, as sbatch sees it: blank lines and comments may stand before it."""
    lines = text.split("\n")
    first = next((i for i, line in enumerate(lines) if line.strip() and not line.strip().startswith("#")), len(lines))
    # the lines of an earlier copy begin with a mark, which is a comment
    begin = next((i for i in range(first) if lines[i] == SETUP_BEGIN), None)
    parts = Parts()
    if begin is not None:
        end = next((i for i in range(begin, min(len(lines), begin + 20)) if lines[i] == SETUP_END), None)
        if end is not None and all(line.startswith(_OURS) for line in lines[begin + 1 : end]):
            parts.setup = lines[begin + 1 : end]
            del lines[begin : end + 1]
            first = next((i for i, line in enumerate(lines) if line.strip() and not line.strip().startswith("#")), len(lines))
    if first == len(lines):  # no command: the last line end belongs to the head
        first = len(lines) - 1 if lines[-1] == "" and len(lines) > 1 else len(lines)
    head, parts.body = lines[:first], lines[first:]
    start = next((i for i, line in enumerate(head) if line == HEADER_BEGIN), None)
    if start is not None:
        stop = next((i for i in range(start, len(head)) if head[i] == HEADER_END), None)
        if stop is not None and not any(line.startswith(MAGIC) for line in head[start:stop]):
            parts.header = head[start + 1 : stop]
            del head[start : stop + 1]
    parts.head = head
    return parts


def is_shell(text: str) -> bool:
    """Whether the script's interpreter is a Bourne shell, so that ``export`` and ``set --`` mean what they should."""
    first = text.split("\n", 1)[0].rstrip("\r")
    words = first.removeprefix("#!").split()
    if not first.startswith("#!") or not words:
        return False
    if words[0].rsplit("/", 1)[-1] == "env":
        words = [w for w in words[1:] if not w.startswith("-") and "=" not in w] or [""]
    return _SHELLS.match(words[0].rsplit("/", 1)[-1]) is not None


def representable(value: str) -> bool:
    """Whether an ``#SBATCH`` line can hold the value: one line of printable text."""
    return value.isprintable()


def option_words(name: str, value: str) -> str:
    """``--mem=4G``, quoted as sbatch's own reader takes it. Raises ``ValueError`` where no line can hold the value."""
    if not representable(value):
        raise ValueError(f"no #SBATCH line can hold the value of --{name}")
    if not value and not any("needs a value" in p for p in parse_script(f"#!\n{MAGIC} --{name}").problems):
        return f"--{name}"
    if _PLAIN.fullmatch(value):
        return f"--{name}={value}"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'--{name}="{escaped}"'


def rewrite(
    text: str, options: Mapping[str, str | None], *, header: Sequence[str] = (), setup: Sequence[str] = (), keep_setup: bool = False
) -> str:
    """The script with ``options`` (long names; blank for a flag, None takes the option out), ``header`` as comments at its
    top and ``setup`` as lines before the first command.

    All other options keep their value and, where they stand on lines of their own, their very line. Options that exclude a
    new one (``--mem`` and ``--mem-per-cpu``) are taken out. Of a heterogeneous job only the first component is changed.
    Raises ``ValueError`` for a value that no line can hold.
    """
    parts = split_script(text)
    wanted: dict[str, str | None] = dict(options)
    for name, value in options.items():
        for group in EXCLUDING:
            if name in group and value is not None:
                wanted.update({other: None for other in group - {name} if wanted.get(other) is None})
    head = _changed_head(parts.head, wanted)
    top = 1 if head and head[0].startswith("#!") else 0
    block = [HEADER_BEGIN, *(comment(line) for line in header), HEADER_END] if header else []
    lines = list(parts.setup) if keep_setup and not setup else [_one_line(line) for line in setup]
    shell = [SETUP_BEGIN, *lines, SETUP_END] if lines else []
    return "\n".join([*head[:top], *block, *head[top:], *shell, *parts.body])


def comment(line: str) -> str:
    """One comment line, whatever the text holds: line ends and control characters are written out."""
    shown = _one_line(line)
    return f"# {shown}" if shown else "#"


def diff_lines(before: str, after: str) -> list[str]:
    """``-`` and ``+`` lines of what differs in the ``#SBATCH`` lines of two scripts, in the order of the scripts."""
    import difflib

    old, new = (_sbatch(split_script(text).head) for text in (before, after))
    return [line for line in difflib.ndiff(old, new) if line[:1] in "+-"]


def _sbatch(head: Sequence[str]) -> list[str]:
    return [line.rstrip("\r") for line in head if line.startswith(MAGIC)]


def _one_line(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)


@dataclass(frozen=True)
class _Piece:
    """One option as it stands in a line: raw text, and what it sets."""

    raw: str
    sets: Mapping[str, str]


def _changed_head(head: Sequence[str], wanted: Mapping[str, str | None]) -> list[str]:
    """The lines before the first command, with the options changed where they stand; new ones after the last of the first component."""
    left = {name: value for name, value in wanted.items() if value is not None}
    last = _last_lines(head, wanted)
    out: list[str] = []
    place = 1 if head and head[0].startswith("#!") else 0
    component = False
    for number, line in enumerate(head):
        if component or not _is_magic(line):
            out.append(line)
            continue
        pieces, tail = _pieces(line.rstrip("\r")[len(MAGIC) :])
        if pieces and pieces[0].raw in ("hetjob", "packjob"):
            component = True
            out.append(line)
            continue
        if not any(name in wanted for piece in pieces for name in piece.sets):
            out.append(line)
            place = len(out)
            continue
        words: list[str] = []
        for piece in pieces:
            if not any(name in wanted for name in piece.sets):
                words.append(piece.raw)
                continue
            for name, value in piece.sets.items():
                if name not in wanted:
                    words.append(option_words(name, value))
                elif name in left and last.get(name) == number:
                    words.append(option_words(name, left.pop(name)))
        if words:
            out.append(f"{MAGIC} {' '.join(words)}{tail}")
            place = len(out)
    added = [f"{MAGIC} {option_words(name, value)}" for name, value in left.items()]
    return [*out[:place], *added, *out[place:]]


def _last_lines(head: Sequence[str], wanted: Mapping[str, str | None]) -> dict[str, int]:
    """Of each option the last line that sets it in the first component: there its value is changed, earlier ones go."""
    found: dict[str, int] = {}
    for number, line in enumerate(head):
        if not _is_magic(line):
            continue
        pieces, _tail = _pieces(line.rstrip("\r")[len(MAGIC) :])
        if pieces and pieces[0].raw in ("hetjob", "packjob"):
            break
        found |= {name: number for piece in pieces for name in piece.sets if name in wanted}
    return found


def _is_magic(line: str) -> bool:
    body = line.rstrip("\r")[len(MAGIC) :]
    return line.startswith(MAGIC) and (not body or body[0] in " \t-\"'")


def _pieces(body: str) -> tuple[list[_Piece], str]:
    """Options of one line in order, and its comment with the blanks before it. Words that are no options stand alone."""
    words, tail = _raw_words(body)
    out: list[_Piece] = []
    i = 0
    while i < len(words):
        option = len(words[i]) > 1 and words[i][0] == "-" and words[i] != "--"
        if not option and (i or words[i] not in ("hetjob", "packjob")):  # sbatch reads the line no further
            return [*out, *(_Piece(word, {}) for word in words[i:])], tail
        read = parse_script(f"#!\n{MAGIC} {words[i]}")
        takes_next = any("needs a value" in p for p in read.problems) and i + 1 < len(words)
        unknown = any("unknown option" in p for p in read.problems) and "=" not in words[i] and i + 1 < len(words)
        if takes_next or (unknown and words[i].startswith("--") and not words[i + 1].startswith("-")):
            raw = f"{words[i]} {words[i + 1]}"
            read = parse_script(f"#!\n{MAGIC} {raw}")
            i += 2
        else:
            raw = words[i]
            i += 1
        out.append(_Piece(raw, {} if read.components else dict(read.options)))
    return out, tail


def _raw_words(body: str) -> tuple[list[str], str]:
    """Words with their quotes, as sbatch splits them (see ``script``), and the comment that ends the line."""
    words: list[str] = []
    start: int | None = None
    quote = ""
    i = 0
    while i < len(body):
        char = body[i]
        if char == "\\" and quote != "'" and i + 1 < len(body):
            start = i if start is None else start
            i += 2
            continue
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
            start = i if start is None else start
        elif char in " \t\v\f":
            if start is not None:
                words.append(body[start:i])
                start = None
        elif char == "#" and start is None:
            return words, "  " + body[i:]
        elif start is None:
            start = i
        i += 1
    if start is not None:
        words.append(body[start:])
    return words, ""
