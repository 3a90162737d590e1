"""A record of ``scontrol show job``, on one line or on several: which text is a field and which stands in a user's text.

Values are not quoted, and job name, command, folder and comments may hold blanks, newlines and ``Key=Value``. What
holds is the order of the keys: ids, the name, then Slurm's own fields from ``UserId`` on, then ``Command`` and the
other texts of the user, last what is asked per GPU or node. So a field counts only where it can stand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from queuecast.errors import ParseError
from queuecast.slurmtext.hostlist import count_hosts
from queuecast.slurmtext.sizes import NO_REQ_MEM, Per, ReqMem, parse_req_mem

_HEAD = re.compile(r"JobId=[0-9]+(?:\s+(?!JobName=)[A-Za-z]+=\S*)*\s+JobName=")
_BODY = re.compile(r"(?<=\s)UserId=")
_END = re.compile(r"(\n {3}| )Command=")
_TOKEN = re.compile(r"([A-Za-z_][A-Za-z0-9_/:]*)=(.*)", re.DOTALL)
_HET_SET = re.compile(r"\s+HetJobIdSet=(\S+)$")
_COMMENTS: Final[tuple[str, ...]] = ("AdminComment", "SystemComment", "Comment", "Extra")
_LAST: Final = ("TresPerJob", "TresPerNode", "TresPerSocket", "TresPerTask", "CpusPerTres", "MemPerTres", "Power", "MailUser")
_AFTER_LOGS: Final = (*_LAST, "NtasksPerTRES", "TresBind", "TresFreq", "Switches", "MailType", "OOMKillStep")
_MEMORY: Final[tuple[tuple[str, Per], ...]] = (("MinMemoryCPU", "cpu"), ("MinMemoryNode", "node"), ("MinMemoryTRES", "gpu"))
_DETAIL: Final = frozenset(("Nodes", "CPU_IDs", "Mem", "GRES"))
"""Keys of ``-d``, once for each group of nodes."""

_ORDER: Final = ("UserId", "JobState", "RunTime", "SubmitTime", "StartTime", "EndTime", "Partition", "NodeList", "NumNodes", "NumCPUs")
"""Printed for every job by every release, in this order."""

Tokens = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class ShownJob:
    """``fields`` as printed. ``gres``: (nodes, what each of them gives) of the lines that ``-d`` adds while a job holds nodes."""

    fields: dict[str, str]
    gres: tuple[tuple[str, str], ...] = ()


def is_whole(text: str) -> bool:
    """Is the record at its end? If not, a line that looks like another job still is part of a user's text in it."""
    head = _HEAD.match(text)
    found = _bodies(text, head) if head else []
    return bool(found) and (("BatchFlag", "1") not in found[0][1] or "StdErr=" in text[found[0][2] :])


def split_job(text: str) -> ShownJob:
    """The fields of one record. Raises ParseError if it is none, or if a user's text repeats all of Slurm's fields so
    that nobody can tell which are true."""
    head = _HEAD.match(text)
    if head is None:
        raise ParseError("not a record of scontrol show job", text[:200])
    found = _bodies(text, head)
    if len(found) != 1:
        raise ParseError("fields of the job are told twice" if found else "job without its fields", text[:200])
    begin, tokens, end = found[0]
    separator = text[end : text.index("Command=", end)]  # what stands before the name's end may belong to the name
    fields = dict(t.split("=", 1) for t in text[: head.end() - len("JobName=")].split())
    name = text[head.end() : begin - len(separator)]
    if "HetJobId" in fields and (match := _HET_SET.search(name)):
        fields["HetJobIdSet"], name = match[1], name[: match.start()]
    fields["JobName"] = name
    fields |= {k: v for k, v in tokens if k not in _DETAIL}
    fields |= _texts(text[end:], separator, batch=fields.get("BatchFlag") != "0")
    return ShownJob(fields, _gres(tokens))


def _bodies(text: str, head: re.Match[str]) -> list[tuple[int, Tokens, int]]:
    """Where Slurm's own fields could begin, with them and their end: one place, unless a user's text forges all of them."""
    out = []
    for match in _BODY.finditer(text, head.end()):
        body = _body(text, match.start())
        if body is not None:
            out.append((match.start(), *body))
    return out


def _body(text: str, begin: int) -> tuple[Tokens, int] | None:
    """Slurm's own fields from ``begin`` on and where they end; None if they are not whole and in order, each once."""
    end = _END.search(text, begin)
    if end is None:
        return None
    stop = end.start()
    tokens: Tokens = []
    for word in text[begin:stop].split():
        match = _TOKEN.fullmatch(word)
        if match:
            tokens.append((match[1], match[2]))
        else:  # a value with a blank
            key, value = tokens[-1]
            tokens[-1] = key, f"{value} {word}"
    keys = [k for k, _ in tokens if k not in _DETAIL]
    known = [k for k in keys if k in _ORDER]
    return (tokens, stop) if known == list(_ORDER) and len(set(keys)) == len(keys) else None


def _texts(rest: str, separator: str, *, batch: bool) -> dict[str, str]:
    """What follows Slurm's fields. The texts of users come first, in a fixed order; of the last keys the last one counts."""
    cut = rest.rfind(f"{separator}StdErr=") if batch else -1
    if cut < 0:
        cut = min((at for name in _LAST if (at := rest.find(f"{separator}{name}=")) >= 0), default=len(rest))
    front, back = rest[:cut], rest[cut:]
    command, _, front = front.removeprefix(f"{separator}Command=").partition(f"{separator}WorkDir=")
    out = {"Command": command}
    key, left = "WorkDir", _COMMENTS
    while key:
        # the comment that comes first; after it only those that can follow it
        begins = sorted((at, name) for name in left if (at := front.find(f"{separator}{name}=")) >= 0)
        end, following = begins[0] if begins else (len(front), "")
        # comments are printed with a blank after them
        out[key] = front[:end] if key == "WorkDir" else front[:end].removesuffix(" ")
        front = front[end + len(f"{separator}{following}=") :]
        key, left = following, left[left.index(following) + 1 :] if following else ()
    if back.startswith(f"{separator}StdErr="):
        out |= _logs(back, separator)
    for name in _LAST:
        _, found, value_on = back.rpartition(f"{separator}{name}=")
        if found:
            out[name] = re.split(r"\s", value_on, maxsplit=1)[0]
    return out


def _logs(back: str, separator: str) -> dict[str, str]:
    """``StdErr``, ``StdIn`` and ``StdOut``, printed in this order; paths may hold blanks."""
    error, _, rest = back.removeprefix(f"{separator}StdErr=").partition(f"{separator}StdIn=")
    inward, found, output = rest.partition(f"{separator}StdOut=")
    if not found:
        return {}
    end = min((at for name in _AFTER_LOGS if (at := output.find(f"{separator}{name}=")) >= 0), default=len(output))
    return {"StdErr": error, "StdIn": inward, "StdOut": output[:end].rstrip()}


def _gres(tokens: Tokens) -> tuple[tuple[str, str], ...]:
    out, nodes = [], ""
    for key, value in tokens:
        if key == "Nodes":
            nodes = value
        elif key == "GRES" and value:
            out.append((nodes, value))
    return tuple(out)


def times_hosts(gres: tuple[tuple[str, str], ...]) -> list[tuple[int, str]]:
    """(number of nodes, what each of them gives)."""
    return [(count_hosts(nodes) or 1, each) for nodes, each in gres]


def min_memory(fields: Mapping[str, str]) -> ReqMem:
    """Memory that a job asked for: ``MinMemoryCPU``, ``MinMemoryNode`` or ``MinMemoryTRES`` (for each GPU).

    Of the last some releases print 0 and the amount in ``MemPerTres`` (``gres/gpu:4096``, MiB). 0 is None: not asked for, or
    all of the node. Raises ParseError for what is no size.
    """
    per: Per
    for name, per in _MEMORY:
        if name in fields:
            found = parse_req_mem(fields[name])
            if found.bytes is not None:
                return ReqMem(found.bytes, per)
    for part in fields.get("MemPerTres", "").replace("gres:", "gres/").split(","):
        key, _, amount = part.rpartition(":")
        if key == "gres/gpu" or key.startswith("gres/gpu:"):
            return ReqMem(parse_req_mem(amount).bytes, "gpu")
    return NO_REQ_MEM
