"""What a job asks for: the ``#SBATCH`` lines of a script, or the flags of a submission.

Options are kept as text under their long name; what the text means is for the other modules. Nothing raises:
whatever sbatch would refuse or ignore is told in ``problems``, and the rest is read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

_MAGIC: Final = "#SBATCH"

_SHORT: Final = {
    "A": "account", "a": "array", "B": "extra-node-info", "b": "begin", "C": "constraint", "c": "cpus-per-task", "D": "chdir",
    "d": "dependency", "e": "error", "F": "nodefile", "G": "gpus", "H": "hold", "h": "help", "i": "input", "I": "immediate",
    "J": "job-name", "k": "no-kill", "L": "licenses", "M": "clusters", "m": "distribution", "N": "nodes", "n": "ntasks",
    "O": "overcommit", "o": "output", "p": "partition", "Q": "quiet", "q": "qos", "S": "core-spec", "s": "oversubscribe",
    "t": "time", "V": "version", "v": "verbose", "W": "wait", "w": "nodelist", "x": "exclude",
}
_FLAGS: Final = frozenset({
    "contiguous", "disable-stdout-job-summary", "help", "hold", "ignore-pbs", "no-requeue", "overcommit", "oversubscribe",
    "parsable", "quiet", "reboot", "requeue", "spread-job", "test-only", "usage", "use-min-nodes", "verbose", "version", "wait",
})
_OPTIONAL: Final = frozenset({"exclusive", "get-user-env", "immediate", "nice", "no-kill", "propagate", "resv-ports"})
_VALUED: Final = frozenset({
    "account", "acctg-freq", "array", "batch", "bb", "bbf", "begin", "chdir", "cluster-constraint", "clusters", "comment",
    "constraint", "container", "container-id", "core-spec", "cores-per-socket", "cpu-freq", "cpus-per-gpu", "cpus-per-task",
    "deadline", "delay-boot", "dependency", "distribution", "error", "exclude", "export", "export-file", "extra",
    "extra-node-info", "gid", "gpu-bind", "gpu-freq", "gpus", "gpus-per-node", "gpus-per-socket", "gpus-per-task", "gres",
    "gres-flags", "hint", "input", "job-name", "kill-on-invalid-dep", "licenses", "mail-type", "mail-user", "mcs-label", "mem",
    "mem-bind", "mem-per-cpu", "mem-per-gpu", "mincpus", "network", "nodefile", "nodelist", "nodes", "ntasks",
    "ntasks-per-core", "ntasks-per-gpu", "ntasks-per-node", "ntasks-per-socket", "open-mode", "output", "partition", "power",
    "prefer", "priority", "profile", "qos", "reservation", "segment", "signal", "sockets-per-node", "stepmgr", "switches",
    "thread-spec", "threads-per-core", "time", "time-min", "tmp", "tres-bind", "tres-per-task", "uid", "wait-all-nodes",
    "wckey", "wrap",
})
_ALIASES: Final = {
    "workdir": "chdir", "cluster": "clusters", "license": "licenses", "share": "oversubscribe", "tasks": "ntasks",
    "tasks-per-node": "ntasks-per-node", "ntasks-per-tres": "ntasks-per-gpu", "mem_bind": "mem-bind",
}
_COMPONENT_WORDS: Final = frozenset({"hetjob", "packjob"})
_WORD = re.compile(r"[ \t\v\f]+")


@dataclass(slots=True)
class ScriptRequest:
    """``options``: long option name to text (blank for a flag); later ones override earlier ones.

    ``lines``: option to the line of the script it stands in, from 1 (empty for flags). ``problems``: what was
    ignored and why, each starting with the line where there is one. ``rest``: what follows the options of a
    command (script and its arguments). ``components``: further components of a heterogeneous job.
    """

    options: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    rest: list[str] = field(default_factory=list)
    components: list[ScriptRequest] = field(default_factory=list)


def parse_script(text: str) -> ScriptRequest:
    """The request in a batch script.

    As sbatch does: only lines that begin with ``#SBATCH`` count, and only before the first command; blank lines
    and comments may stand between. A mark of byte order and DOS line ends are read over but told, since sbatch
    refuses such scripts. ``#SBATCH hetjob`` starts a further component.
    """
    request = ScriptRequest()
    if text.startswith("\ufeff"):
        text = text[1:]
        request.problems.append("line 1: byte order mark before the first line; sbatch refuses it")
    raw_lines = text.split("\n")
    if not raw_lines[0].startswith("#!"):
        request.problems.append("line 1: does not begin with #!; sbatch refuses the script")
    dos = any(line.endswith("\r") for line in raw_lines)
    if dos:
        request.problems.append("DOS line ends; sbatch refuses the script")
    current = request
    for number, raw in enumerate(raw_lines, start=1):
        line = raw.rstrip("\r")
        if not line.startswith(_MAGIC):
            stripped = line.strip()
            if stripped and not stripped.startswith("#"):
                _late_lines(raw_lines, number, request)
                break
            continue
        body = line[len(_MAGIC):]
        if body and body[0] not in " \t-\"'":
            continue  # a comment that only looks like it: #SBATCHER
        words, problem = _words(body)
        if problem:
            request.problems.append(f"line {number}: {problem}")
        if words and words[0] in _COMPONENT_WORDS:
            current = ScriptRequest()
            request.components.append(current)
            words = words[1:]
        rest = _read(words, current, number, request.problems)
        if rest:
            request.problems.append(f"line {number}: {rest[0]!r} is not an option; sbatch refuses it")
    return request


def parse_options(argv: Sequence[str]) -> ScriptRequest:
    """The request in the flags of a submission, without the command's own name.

    Reading stops at the first word that is no option (the script), which begins ``rest``; a lone ``:`` before
    that starts a further component.
    """
    request = ScriptRequest()
    current = request
    words = list(argv)
    while True:
        rest = _read(words, current, None, request.problems)
        if rest and rest[0] == ":":
            current = ScriptRequest()
            request.components.append(current)
            words = rest[1:]
            continue
        request.rest = rest
        return request


def _late_lines(raw_lines: Sequence[str], number: int, request: ScriptRequest) -> None:
    """Tell of the first ``#SBATCH`` line that stands after a command: a frequent mistake."""
    for later, line in enumerate(raw_lines[number:], start=number + 1):
        if line.startswith(_MAGIC + " "):
            request.problems.append(f"line {later}: #SBATCH after the first command is ignored")
            return


def _words(body: str) -> tuple[list[str], str]:
    """Words as sbatch splits them: blanks separate, quotes group, a backslash takes the next character, a word that
    begins with ``#`` starts a comment. Second value: a problem, or blank.
    """
    words: list[str] = []
    current: list[str] = []
    started = False
    quote = ""
    i = 0
    while i < len(body):
        char = body[i]
        if char == "\\" and quote != "'" and i + 1 < len(body):
            current.append(body[i + 1])
            started = True
            i += 2
            continue
        if quote:
            if char == quote:
                quote = ""
            else:
                current.append(char)
        elif char in "\"'":
            quote = char
            started = True
        elif _WORD.match(char):
            if started:
                words.append("".join(current))
                current, started = [], False
        elif char == "#" and not started:
            break
        else:
            current.append(char)
            started = True
        i += 1
    if started:
        words.append("".join(current))
    return words, "a quote is not closed" if quote else ""


def _read(words: Sequence[str], request: ScriptRequest, line: int | None, problems: list[str]) -> list[str]:
    """Read options into ``request``; the words from the first that is no option are returned."""
    where = f"line {line}: " if line is not None else ""
    i = 0
    while i < len(words):
        word = words[i]
        if word == "--":
            return list(words[i + 1:])
        if len(word) < 2 or word[0] != "-":
            return list(words[i:])
        if word.startswith("--"):
            i += _long(words, i, request, line, problems, where)
        else:
            i += _short(words, i, request, line, problems, where)
    return []


def _set(request: ScriptRequest, name: str, value: str, line: int | None) -> None:
    request.options[name] = value
    if line is not None:
        request.lines[name] = line


def _long(words: Sequence[str], i: int, request: ScriptRequest, line: int | None, problems: list[str], where: str) -> int:
    """One ``--option``; returns the number of words read."""
    name, equals, value = words[i][2:].partition("=")
    name = _ALIASES.get(name, name)
    if name in _FLAGS:
        if equals:
            problems.append(f"{where}--{name} takes no value")
        _set(request, name, "", line)
        return 1
    if name in _OPTIONAL:
        _set(request, name, value, line)
        return 1
    if name not in _VALUED:
        problems.append(f"{where}unknown option --{name[:40]}")
        # its value, if it has one as a word of its own, must not end the reading
        return 2 if not equals and i + 1 < len(words) and words[i + 1][:1] not in ("-", ":") and line is not None else 1
    if equals:
        _set(request, name, value, line)
        return 1
    if i + 1 >= len(words):
        problems.append(f"{where}--{name} needs a value")
        return 1
    _set(request, name, words[i + 1], line)
    return 2


def _short(words: Sequence[str], i: int, request: ScriptRequest, line: int | None, problems: list[str], where: str) -> int:
    """One word of short options: flags may be joined, the first that takes a value takes the rest of the word."""
    word = words[i]
    for at in range(1, len(word)):
        name = _SHORT.get(word[at])
        if name is None:
            problems.append(f"{where}unknown option -{word[at]}")
            return 1
        if name in _FLAGS:
            _set(request, name, "", line)
            continue
        rest = word[at + 1:]
        if name in _OPTIONAL or rest:
            _set(request, name, rest, line)
            return 1
        if i + 1 >= len(words):
            problems.append(f"{where}-{word[at]} needs a value")
            return 1
        _set(request, name, words[i + 1], line)
        return 2
    return 1
