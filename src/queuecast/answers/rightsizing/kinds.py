"""Kinds of jobs: the same user, name (without what differs from run to run), account, command and request."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from queuecast.answers.rightsizing.rows import Rows
from queuecast.features.history import Ints
from queuecast.models.sizing_kinds import kind_name
from queuecast.policy.request import Request
from queuecast.slurmtext.script import parse_options

_NUMBERS = re.compile(r"\d+")
_LONG = 200


@dataclass(frozen=True)
class Kind:
    """``name`` is what ``models.sizing_kinds.kind_name`` makes of it, ``command`` has # for every number; both are hostile text.
    Sizes are of the whole job, as allocated; None: not told.

    ``limit_s`` is the middle of limits within a factor of two. ``mem_default``: the site's default set the memory. Of the latest job:
    ``shown``, its own name; ``line``, its command line (both hostile text); ``options``, the flags on that by long name
    (those of the script are not known).
    """

    user: str | None
    name: str
    account: str | None
    command: str
    partition: str
    qos: str | None
    nodes: int
    cpus: int | None
    mem_bytes: int | None
    mem_default: bool
    gpus: int | None
    gpu_type: str | None
    limit_s: int | None
    shown: str = field(default="", compare=False)
    options: Mapping[str, str] = field(default_factory=dict, compare=False, hash=False)
    line: str | None = field(default=None, compare=False, repr=False)

    @property
    def request(self) -> Request:
        """As the rest of the package takes it."""
        return Request(
            partitions=(self.partition,) if self.partition else (),
            gpus=self.gpus or 0,
            gpu_type=None if self.gpu_type == "mixed" else self.gpu_type,
            nodes=self.nodes,
            cpus=self.cpus or 1,
            mem_bytes=self.mem_bytes,
            limit_s=self.limit_s,
            account=self.account,
            qos=self.qos,
            user=self.user,
        )

    @property
    def key(self) -> str:
        """One text for the kind, for groups and files."""
        return f"{self.user or '?'}/{self.name or self.command or '?'}"

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "user": self.user,
            "name": self.name,
            "account": self.account,
            "command": self.command,
            "partition": self.partition,
            "qos": self.qos,
            "nodes": self.nodes,
            "cpus": self.cpus,
            "mem_bytes": self.mem_bytes,
            "mem_asked_by": "default" if self.mem_default else "user",
            "gpus": self.gpus,
            "gpu_type": self.gpu_type,
            "limit_s": self.limit_s,
        }


def normal_name(name: str | None) -> str:
    """A name without case, and with # for every number."""
    return _NUMBERS.sub("#", (name or "").strip().casefold())[:_LONG]


def command_of(line: str | None) -> tuple[str, dict[str, str]]:
    """The script's (or wrapped command's) file name without its numbers, and the flags of a submission's command line."""
    if not line:
        return "", {}
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    read = parse_options(words[1:])
    wrapped = read.options.get("wrap", "").split()
    first = (wrapped or read.rest or [""])[0]
    return normal_name(first.rpartition("/")[2]), read.options


def _whole(value: float) -> int | None:
    return int(value) if math.isfinite(value) else None


def kinds_of(rows: Rows) -> dict[Kind, Ints]:
    """Rows by kind. Jobs whose user is hidden make no kinds: they cannot be proposed anything."""
    seen: dict[str | None, tuple[str, dict[str, str]]] = {}
    found: dict[tuple[object, ...], list[int]] = {}
    t, n = rows.text, rows.num
    for i in range(len(rows)):
        if t["user"][i] is None:
            continue
        line = t["submit_line"][i]
        if line not in seen:
            seen[line] = command_of(line)
        key = (
            *(
                t["user"][i],
                kind_name(t["name"][i], line),
                t["account"][i],
                seen[line][0],
                t["partition"][i],
                t["qos"][i],
                t["gpu_type"][i],
            ),
            *(_whole(n[c][i]) for c in ("nodes", "cpus_alloc", "mem_alloc_bytes", "gpus_alloc")),
            *(bool(rows.default_memory[i]), _class(n["limit_s"][i])),
        )
        found.setdefault(key, []).append(i)
    return {_kind(rows, members, seen): np.array(members, np.int64) for members in found.values()}


def _class(limit: float) -> int | None:
    """Limits within a factor of two are alike: many scripts work them out anew for each job."""
    return math.floor(math.log2(limit)) if math.isfinite(limit) and limit > 0 else None


def _kind(rows: Rows, members: list[int], seen: Mapping[str | None, tuple[str, dict[str, str]]]) -> Kind:
    t, n = rows.text, rows.num
    last = max(members, key=lambda i: n["start"][i])
    command, options = seen[t["submit_line"][last]]
    limits = sorted(n["limit_s"][members])
    return Kind(
        user=t["user"][last],
        name=kind_name(t["name"][last], t["submit_line"][last]),
        account=t["account"][last],
        command=command,
        partition=t["partition"][last] or "",
        qos=t["qos"][last],
        nodes=max(1, _whole(n["nodes"][last]) or 1),
        cpus=_whole(n["cpus_alloc"][last]),
        mem_bytes=_whole(n["mem_alloc_bytes"][last]),
        mem_default=bool(rows.default_memory[last]),
        gpus=_whole(n["gpus_alloc"][last]),
        gpu_type=t["gpu_type"][last],
        limit_s=_whole(limits[(len(limits) - 1) // 2]),
        shown=t["name"][last] or "",
        options=options,
        line=t["submit_line"][last],
    )
