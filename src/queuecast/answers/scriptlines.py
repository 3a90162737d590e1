"""The commands of a batch script, read and not run: words, variables that the script sets to plain values, line numbers."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::?-([^{}$]*))?\}|(\w+))")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)([A-Za-z_]\w*)\1")
_BETWEEN = re.compile(r"[;&|()]+")
_REDIRECT = re.compile(r"\d?(?:>>?|<)(?:&\d)?")
_WORDS = frozenset({"then", "do", "else", "elif", "if", "while", "until", "fi", "done", "time", "exec", "nohup", "command", "!", "{", "}"})


@dataclass(frozen=True)
class Command:
    """``words`` with plain variables filled in (a word that still holds ``$`` is not known); ``settings``: NAME=value before it.

    ``redirects``: files that output goes to. ``background``: ended by ``&``.
    """

    line: int
    words: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    redirects: tuple[str, ...] = ()
    background: bool = False


@dataclass(frozen=True)
class Body:
    """Commands in order, and where variables are set: name to (line, value)."""

    commands: tuple[Command, ...] = ()
    variables: Mapping[str, tuple[int, str]] = field(default_factory=dict)


def read_body(text: str, variables: Mapping[str, str]) -> Body:
    """All commands outside comments and here-documents. What a line means beyond plain words is not understood: never raises."""
    known = dict(variables)
    places: dict[str, tuple[int, str]] = {}
    commands: list[Command] = []
    for line, statement in _statements(text):
        for words, background in _split(statement):
            command = _command(line, words, known, background)
            for name, value in command.settings.items():
                if name not in places or not command.words:
                    places[name] = (line, value)
                if not command.words or command.words[0] in ("export", "declare", "readonly"):
                    known[name] = value
            if command.words:
                commands.append(command)
    return Body(tuple(commands), places)


def expand(word: str, known: Mapping[str, str]) -> str:
    """``$NAME``, ``${NAME}`` and ``${NAME:-default}`` filled in where the value is known; the rest stays."""

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[3]
        return known.get(name, found[2] if found[2] is not None else found[0])

    return _VARIABLE.sub(value, word)


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """(first line, statement) with continued lines joined; comments and here-documents left out."""
    lines = text.replace("\r\n", "\n").split("\n")
    i = 0
    while i < len(lines):
        start, statement = i + 1, lines[i]
        while statement.endswith("\\") and i + 1 < len(lines):
            i += 1
            statement = statement[:-1] + " " + lines[i].strip()
        i += 1
        if statement.lstrip().startswith("#"):
            continue
        ends = [m[2] for m in _HEREDOC.finditer(statement)]
        for end in ends:
            while i < len(lines) and lines[i].strip() != end:
                i += 1
            i += 1
        if statement.strip():
            yield start, _HEREDOC.sub("", statement)


def _without_comment(statement: str) -> str:
    """Up to a ``#`` that begins a word outside quotes."""
    quote = ""
    before = " "
    for i, char in enumerate(statement):
        if quote:
            quote = "" if char == quote and before != "\\" else quote
        elif char in "\"'" and before != "\\":
            quote = char
        elif char == "#" and before in " \t;":
            return statement[:i]
        before = char
    return statement


def _split(statement: str) -> Iterator[tuple[list[str], bool]]:
    """Words of each simple command of a statement, and whether ``&`` ends it."""
    statement = _without_comment(statement)
    lexer = shlex.shlex(statement, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""  # shlex would begin one in the middle of a word
    try:
        pieces = list(lexer)
    except ValueError:  # a quote that goes on in the next line
        pieces = statement.split()
    current: list[str] = []
    for piece in pieces:
        if _BETWEEN.fullmatch(piece):
            if current:
                yield current, piece == "&"
            current = []
        else:
            current.append(piece)
    if current:
        yield current, False


def _command(line: int, words: list[str], known: Mapping[str, str], background: bool) -> Command:
    plain: list[str] = []
    redirects: list[str] = []
    settings: dict[str, str] = {}
    i = 0
    while i < len(words):
        word = words[i]
        if _REDIRECT.fullmatch(word):
            if ">" in word and i + 1 < len(words) and not word.endswith(("&1", "&2")):
                redirects.append(expand(words[i + 1], known))
            i += 2
            continue
        found = _ASSIGNMENT.fullmatch(word)
        if found and (not plain or plain[0] in ("export", "declare", "readonly", "env")):
            settings[found[1]] = expand(found[2], known)
        elif plain or word not in _WORDS:
            plain.append(expand(word, known))
        i += 1
    return Command(line, tuple(plain), settings, tuple(redirects), background)
