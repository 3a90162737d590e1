"""What a recorded file is: by its content, then by the command that an index or a marker names, last by its name."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from queuecast.collect import dialect as dialects
from queuecast.collect.gpulayouts import layout_of
from queuecast.collect.streams import MARKER, MESSAGE, refuse_binary
from queuecast.errors import ParseError

HEAD = 256 * 1024
"""Bytes of a file that are looked at to know it."""


@dataclass(frozen=True)
class Guess:
    """``kind`` as of a capture. ``what`` tells a person. ``taken_at`` and ``sampled`` from a marker line."""

    kind: str
    what: str
    command: tuple[str, ...] = ()
    taken_at: datetime | None = None
    sampled: bool = False
    cluster: str | None = None
    version: str | None = None


_STARTS: tuple[tuple[str, str, str], ...] = (
    (r"NodeName=\S+\s.*?(?:Arch|State|CPUAlloc)=", "nodes", "scontrol show node"),
    (r"PartitionName=\S+\s+AllowGroups=", "partitions", "scontrol show partition"),
    (r"ReservationName=\S+\s+StartTime=|No reservations in the system", "reservations", "scontrol show reservation"),
    (r"JobId=\d+|No jobs in the system", "jobs_detail", "scontrol show job"),
    (r"StepId=\d+", "other", "scontrol show step"),
    (r"LicenseName=", "other", "scontrol show license"),
    (r"Configuration data as of ", "config", "scontrol show config"),
    (r"Current Association Manager state", "assoc_mgr", "scontrol show assoc_mgr"),
    (r"\*{10,}\s*sdiag output", "sdiag", "sdiag"),
    (r"\*{10,}\s*sacctmgr show stats", "other", "sacctmgr show stats"),
    (r"-{20,}\s*\S.*?(?:Utilization|Usage reported|Top \d+)", "sreport", "sreport"),
    (r"Slurmctld\(\w+\)", "other", "scontrol ping"),
    (r"slurm\S*\s+\d\d\.\d\d\.", "other", "version of Slurm"),
    (r"%[A-Za-z]\s+%[A-Za-z]", "other", "a list of format letters"),
    (r"\$ s\w+", "other", "a transcript of commands"),
)
_SLURM_JSON = re.compile(r'"(meta|plugin|jobs|sinfo|nodes|shares|associations|statistics|job_id|partition)"')
_COMMANDS = ("sacct", "squeue", "sinfo", "sprio", "sshare", "sacctmgr", "scontrol", "sdiag", "sreport", "sstat")


def identify(head: bytes, name: str = "", command: str = "") -> Guess | None:
    """What a file is by its first bytes; None if it is not Slurm's. ``command`` is what an index says of it."""
    head = head.removeprefix(b"\xef\xbb\xbf")
    try:
        refuse_binary(head)
    except ParseError:
        return None
    at, sampled = None, False
    lines = head.splitlines()
    if lines and (match := MARKER.match(lines[0])):
        at, sampled = datetime.fromtimestamp(int(match[1]), UTC), True
        command = match[3].decode("utf-8", "replace") or command
        lines = [line for line in lines if not MARKER.match(line)]
    args = _split(command)
    text = b"\n".join(line for line in lines if not line.startswith(b"CLUSTER: ")).decode("utf-8", "replace").lstrip()
    by_name = _by_name(name, args)

    def guess(kind: str, what: str, cluster: str | None = None, version: str | None = None) -> Guess:
        return Guess(kind, what, args or tuple(what.split()), at, sampled, cluster, version)

    if not text:
        return guess("other", "empty output") if sampled or args or by_name else None
    gpus = layout_of(text.partition("\n")[0])
    if gpus is not None:
        return Guess("gpu_samples", gpus.source, args or (gpus.source,), at, sampled)
    if text[0] in "{[" and re.match(r"[{\[]\s*(\"|\{|\}|\])", text):
        return guess("other", "JSON") if by_name or _SLURM_JSON.search(text) else None
    if all(MESSAGE.match(line) or not line.strip() for line in lines):
        return guess("other", "messages of Slurm only")
    if by_name and ("yaml" in name or "--yaml" in command):
        return guess("other", "YAML")
    for pattern, kind, what in _STARTS:
        if re.match(pattern, text, re.S if kind in ("sdiag", "sreport", "nodes") or "stats" in what else 0):
            version = re.search(r"\bVersion=(\d\d\.\d\d\.\d+)|SLURM_VERSION\s*=\s*(\d\d\.\d\d\.\d+)", text)
            cluster = re.search(r"^ClusterName\s*=\s*(\S+)", text, re.M) if kind == "config" else None
            return guess(kind, what, cluster[1] if cluster else None, (version[1] or version[2]) if version else None)
    return _table(lines, command, sampled, by_name, guess)


def _table(lines: list[bytes], command: str, sampled: bool, by_name: bool, make: Callable[..., Guess]) -> Guess | None:
    data = [line for line in lines if line.strip() and not line.startswith(b"CLUSTER: ")]
    body = [line for line in data if not MESSAGE.match(line)]
    if not body:
        return make("other", "messages of Slurm only")
    try:
        layout = dialects.sniff(body[0], body[1:200], command)
    except ParseError:
        first = body[0].decode("utf-8", "replace").strip()
        headless = re.match(r"\d+([_+.]\S*)?[|\x1f;@]", first) or sampled
        if headless or (by_name and re.match(r"(?i)usage|\d+\s", first)):
            return make("other", "no header line (taken with -h or -n?)")
        return None
    if layout.kind == "other" and layout.what == "a table that queuecast does not know" and not by_name and not sampled:
        return None
    return make(layout.kind, layout.what, _cluster(layout, body[1:200]))


def _cluster(layout: dialects.Dialect, rows: list[bytes]) -> str | None:
    """The only cluster named in the first rows; None if none or several are."""
    if "cluster" not in layout.keys or not layout.delimiter or layout.quoted:
        return None
    at = layout.keys.index("cluster")
    names = set()
    for row in rows:
        cells = row.split(layout.delimiter)
        if len(cells) == len(layout.keys):
            names.add(cells[at].decode("utf-8", "replace").strip())
    names -= {"", "N/A", "(null)"}
    return names.pop() if len(names) == 1 else None


def why_not(head: bytes) -> str:
    """Why a file is not taken, for a person."""
    if not head:
        return "empty"
    try:
        refuse_binary(head)
    except ParseError:
        return "not text"
    return "not Slurm's output"


def _by_name(name: str, args: tuple[str, ...]) -> bool:
    return bool(args and args[0].rsplit("/", 1)[-1] in (*_COMMANDS, "env")) or name.startswith(_COMMANDS)


def _split(command: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(command))
    except ValueError:
        return (command,)
