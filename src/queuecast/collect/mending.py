"""Records that do not fit on their line: a newline or the delimiter stands inside text that a user wrote.

Slurm escapes neither. A run of odd lines is cut into records so that as few lines as possible stay unexplained
(dynamic programming over the run): lines are joined until the field count is met, and where there are too many fields
the columns that hold user text take the surplus, provided that all other columns then look right.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from queuecast.collect.dialect import words

USER_TEXT = frozenset(words("""
jobname name comment admincomment systemcomment submitline workdir command extra stdout stderr stdin container wckey
batchscript info reason nodelistreason statecomplete"""))
"""Columns in which any text may stand."""

_OR_TEXT = frozenset(("constraints", "features", "availfeatures", "activefeatures", "prefer", "clusterfeatures", "licenses",
                      "dependency"))
"""Columns in which Slurm's own syntax has a ``|``."""

_PRICE = {**dict.fromkeys(USER_TEXT, 1.5), **dict.fromkeys(("jobname", "name", "comment", "submitline", "workdir"), 1.0),
          **dict.fromkeys(_OR_TEXT, 2.0)}
"""What a surplus field costs in a column: the texts that users really write take it first."""

_SHAPES = {"workdir": re.compile(r"/|$"), "submitline": re.compile(r"\S*(sbatch|srun|salloc)\b|$")}
"""How texts of a column begin, where several columns could take a surplus."""

_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d|\d+|[Uu]nknown|None|N/A|NONE|"
_SPAN = r"(\d+-)?(\d+:)*\d+(\.\d+)?|UNLIMITED|Partition_Limit|INVALID|N/A|NOT_SET|INFINITE|infinite|n/a|"
_SIZE = r"[\d.]*[KMGTPE?]?[nc]?|16\?"
_CHECKS: dict[str, str] = {
    "": r"\s*",
    "jobid": r"\d+(_(\d+|\[[^\]]*\]|\*))?(\+\d+)?(\.\S+)?",
    "jobidraw": r"\d*(\.\S+)?",
    "arrayjobid": r"\d+|N/A",
    "state": r"[A-Za-z_+*$~#!%@^\-]+( by \d+)?",
    "st": r"[A-Z]{1,3}",
    "exitcode": r"(-?\d+:\d+)?",
    "derivedexitcode": r"(-?\d+:\d+)?",
    "cpusaiot": r"[\d/KM.]+",
    "nodename": r"\S*",
    "maxrss": _SIZE,
    "reqmem": _SIZE,
    "minmemory": _SIZE,
    **dict.fromkeys(("submit", "eligible", "start", "end", "starttime", "endtime", "submittime", "eligibletime", "timestart",
                     "timeend"), _TIME),
    **dict.fromkeys(("elapsed", "suspended", "cputime", "totalcpu", "usercpu", "systemcpu", "timelimit", "time", "timeleft",
                     "planned",
                     "reserved"), _SPAN),
    **dict.fromkeys(("alloccpus", "ncpus", "nnodes", "ntasks", "reqcpus", "reqnodes", "elapsedraw", "cputimeraw", "uid", "gid",
                     "dbindex", "associd", "qosraw", "consumedenergyraw", "restarts", "priority", "maxrsstask", "maxvmsizetask",
                     "maxpagestask", "maxdiskreadtask", "maxdiskwritetask", "mincputask", "wckeyid", "plannedcpuraw",
                     "resvcpuraw"), r"[\d.]*"),
    **dict.fromkeys(("reqtres", "alloctres", "tresusageintot", "tresusageinmax", "tresusageinave", "tresusageinmin",
                     "tresusageouttot",
                     "tresusageoutmax", "tresusageoutave", "tresusageoutmin"), r"([^=,\s]+=[^=,\s]+(,|$))*"),
    "consumedenergy": r"[\d.]*[KMGT]?",
    "dependency": r"[^\n]*",
    "timelimitraw": r"\d*|UNLIMITED|Partition_Limit|INVALID",
    "nodelist": r"(None assigned|\S*)",
}
_COMPILED = {key: re.compile(f"(?:{pattern})") for key, pattern in _CHECKS.items()}

REJECT, SHIFTED, LENIENT, BLANK = 100.0, 50.0, 10.0, 0.1
"""Costs: a line without a record; a lone line whose id is wrong; a record with a doubtful value; a blank line taken in."""

ODD_SHAPE, EMPTY_PIECE = 2.0, 0.4
"""Costs of a surplus taken by a column: its text then begins unlike such texts; a piece of it is empty."""

MAX_LINES = 400
MAX_SURPLUS = 60


@dataclass(frozen=True)
class Odd:
    """A stretch of lines that is one piece for mending: one line, or several without any delimiter."""

    line: int
    lines: int
    text: str
    count: int

    @property
    def blank(self) -> bool:
        return not self.text.strip(" \t\r\n\v\f")  # str.strip() would take 0x1f for a blank


@dataclass(frozen=True)
class Mended:
    """A record (``fields``) or a stretch that none could be made of (``fields`` is None)."""

    line: int
    lines: int
    fields: list[str] | None
    raw: str


def check(key: str, value: str) -> bool:
    """Could ``value`` stand in the column? Names that Slurm itself gives have no blank inside."""
    if key in USER_TEXT or (key in _OR_TEXT and "\n" not in value):
        return True
    pattern = _COMPILED.get(key)
    if pattern is not None:
        return pattern.fullmatch(value.strip()) is not None
    return not re.search(r"\s", value.strip())


def fit(fields: list[str], keys: tuple[str, ...], delimiter: str) -> tuple[float, list[str]] | None:
    """Bring ``fields`` to the columns ``keys``: the cost and the fields, None if it cannot be."""
    surplus = len(fields) - len(keys)
    if surplus < 0:
        return None
    if surplus and delimiter == "\x1f" and next((i for i, f in enumerate(fields) if "\n" in f), None) == len(keys) - 1:
        return None  # a whole line before: a name may hold 0x1f, but that it also goes on in the next line is less likely than a stray line
    if surplus == 0:
        bad = {k: v for k, v in zip(keys, fields, strict=True) if not check(k, v)}
        if not bad:
            return 0.0, fields
        if any("\n" in v for v in bad.values()):
            return None
        if not bad.keys() & {"jobid", "jobidraw", "nodename"} and len(bad) <= max(1, len(keys) // 10):
            return LENIENT, fields
        return None if any("\n" in v for v in fields) else (SHIFTED, fields)
    return _absorb(fields, keys, surplus, delimiter)


def _absorb(fields: list[str], keys: tuple[str, ...], surplus: int, delimiter: str) -> tuple[float, list[str]] | None:
    if surplus > MAX_SURPLUS:
        return _absorb_in_one(fields, keys, surplus, delimiter)
    # surplus fields taken so far -> (cost, what each column took beyond one)
    frontier: dict[int, tuple[float, tuple[int, ...]]] = {0: (0.0, ())}
    for j, key in enumerate(keys):
        step: dict[int, tuple[float, tuple[int, ...]]] = {}
        price = _PRICE.get(key, 0.0)
        shape = _SHAPES.get(key)
        for extra, (cost, path) in frontier.items():
            first = fields[j + extra]
            if (not price or key in _OR_TEXT) and not check(key, first):
                continue
            if shape is not None and not shape.match(first):
                cost += ODD_SHAPE
            total = cost
            for more in range(surplus - extra + 1) if price else (0,):
                if more:
                    total += price + (EMPTY_PIECE if not fields[j + extra + more] else 0.0)
                start = EMPTY_PIECE if more and not first else 0.0
                known = step.get(extra + more)
                if known is None or total + start < known[0]:
                    step[extra + more] = (total + start, (*path, more))
        frontier = step
    if surplus not in frontier:
        return None
    cost, path = frontier[surplus]
    out, at = [], 0
    for more in path:
        out.append(delimiter.join(fields[at : at + more + 1]))
        at += more + 1
    return cost, out


def _absorb_in_one(fields: list[str], keys: tuple[str, ...], surplus: int, delimiter: str) -> tuple[float, list[str]] | None:
    for j, key in enumerate(keys):
        if key in USER_TEXT:
            out = [*fields[:j], delimiter.join(fields[j : j + surplus + 1]), *fields[j + surplus + 1 :]]
            if all(check(k, v) for k, v in zip(keys, out, strict=True)):
                return float(surplus), out
    return None


def _can_start(fields: list[str], keys: tuple[str, ...]) -> bool:
    for key, value in zip(keys, fields[:-1], strict=False):
        if key in USER_TEXT or key in _OR_TEXT:
            return True
        if not check(key, value):
            return False
    return True


def _begins(fields: list[str], keys: tuple[str, ...]) -> bool:
    """Is this the beginning of a record that was cut off? Then it is no continuation of the line before."""
    told = 0
    for key, value in zip(keys, fields[:-1], strict=False):
        if not check(key, value):
            return False
        told += key in _COMPILED and bool(value)
    return told >= 2


def mend(run: list[Odd], keys: tuple[str, ...], delimiter: str) -> list[Mended]:
    """Cut a run of lines into records. Every line of the run is in one of the results, or blank."""
    n, wanted = len(run), len(keys) - 1
    best: list[tuple[float, int, list[str] | None]] = [(0.0, 0, None)]
    starts = [_can_start(o.text.split(delimiter), keys) for o in run]
    fresh = [_begins(o.text.split(delimiter), keys) for o in run]
    for end in range(1, n + 1):
        last = run[end - 1]
        choice: tuple[float, int, list[str] | None] = (best[end - 1][0] + (0.0 if last.blank else REJECT), end - 1, None)
        count, blanks = 0, 0
        for begin in range(end - 1, max(-1, end - 1 - MAX_LINES), -1):
            count += run[begin].count
            blanks += run[begin].blank
            if begin < end - 1 and fresh[begin + 1]:
                break
            if count < wanted or not (starts[begin] or begin == end - 1):
                continue
            if count > wanted + MAX_SURPLUS and begin < end - 1:
                break
            before = best[begin][0] + BLANK * blanks
            if before >= choice[0]:
                continue
            text = "\n".join(o.text for o in run[begin:end])
            found = fit([f.partition("\x00")[0] for f in text.split(delimiter)], keys, delimiter)
            if found is not None and before + found[0] < choice[0]:
                choice = (before + found[0], begin, found[1])
        best.append(choice)
    out: list[Mended] = []
    end = n
    while end:
        _, begin, fields = best[end]
        part = run[begin:end]
        if fields is not None or not part[0].blank:
            out.append(Mended(part[0].line, sum(o.lines for o in part), fields, "\n".join(o.text for o in part)))
        end = begin
    out.reverse()
    return out
