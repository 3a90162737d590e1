"""Disk quotas of the user who asks, by the commands of the file systems: ``quota``, ``lfs quota`` (Lustre), ``mmlsquota`` (GPFS)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

NEAR = 0.95
"""From that share of a quota on it is worth a warning."""
EACH_S, ALL_S = 5.0, 8.0
"""Seconds that one command, and all of them together, may take: a file system that hangs must not hold up a submission."""
_GPFS = "/usr/lpp/mmfs/bin"
_NUMBER = re.compile(r"\[?(\d{1,18})\*?\]?")


@dataclass(frozen=True)
class Quota:
    """A file system's quota of the user: ``used`` and ``limit`` in KiB, or in files; a limit of 0 is none and not listed."""

    place: str
    what: str
    used: int
    limit: int

    @property
    def share(self) -> float:
        """Used of the limit, above 1 when exceeded."""
        return self.used / self.limit


@dataclass(frozen=True)
class Mount:
    """Where a file system is mounted, and its type."""

    place: str
    kind: str


def own_quotas(paths: Sequence[Path] = (), mounts: Path = Path("/proc/self/mounts")) -> tuple[Quota, ...]:
    """Of the user who runs this, on the file systems that have the commands for it; Lustre is asked about where ``paths`` lie only.

    Empty where there are no such commands, or none answers in time.
    """
    until = time.monotonic() + ALL_S
    found = [*parse_quota(_ask(["quota", "-w", "-p"], until))]  # its status is 1 where a quota is exceeded
    try:
        mounted = parse_mounts(mounts.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        mounted = ()
    user = str(os.geteuid())
    here = [m for m in (mount_of(p, mounted) for p in paths) if m is not None]
    for place in dict.fromkeys(m.place for m in here if m.kind == "lustre"):
        found += parse_lfs(_ask(["lfs", "quota", "-q", "-u", user, place], until))
    if any(m.kind == "gpfs" for m in here):
        found += parse_mmlsquota(_ask(["mmlsquota", "-u", user, "-Y"], until))
    return tuple(dict.fromkeys(found))


def _ask(words: list[str], until: float) -> str:
    """What a command prints; nothing where it is not there, fails to start, or takes too long."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), _GPFS])
    command = shutil.which(words[0], path=path)
    left = min(EACH_S, until - time.monotonic())
    if command is None or left <= 0:
        return ""
    env = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            [command, *words[1:]], capture_output=True, timeout=left, check=False, stdin=subprocess.DEVNULL, env=env
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace")


def parse_mounts(text: str) -> tuple[Mount, ...]:
    """Lines of /proc/mounts: device, place, type; blanks in a place are written ``\\040``."""
    out = []
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 3:
            place = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), words[1])
            out.append(Mount(place, words[2].casefold()))
    return tuple(out)


def mount_of(path: Path, mounts: Sequence[Mount]) -> Mount | None:
    """The mount that holds an absolute path: the one with the longest name; None if there is none."""
    text = os.path.normpath(path)
    holding = [m for m in mounts if m.place == "/" or text == m.place or text.startswith(m.place.rstrip("/") + "/")]
    return max(holding, key=lambda m: len(m.place), default=None)


def parse_quota(text: str) -> tuple[Quota, ...]:
    """Lines of ``quota -w -p``: filesystem, blocks, quota, limit, grace, files, quota, limit, grace. The soft limit counts.

    Source: quota(1). Lines that are not understood are left out.
    """
    out: list[Quota] = []
    for line in text.splitlines():
        words = line.split()
        if len(words) == 9:
            out += _nine(words)
    return tuple(out)


def parse_lfs(text: str) -> tuple[Quota, ...]:
    """``lfs quota``: as ``parse_quota`` in KiB, but a long filesystem's name stands in a line of its own, what is exceeded has a ``*``, and
    what is not exact stands in brackets. Source: lfs-quota(1)."""
    out: list[Quota] = []
    words = text.split()
    for i, word in enumerate(words):
        if word.startswith("/"):
            out += _nine(words[i : i + 9])
    return tuple(out)


def _nine(words: list[str]) -> list[Quota]:
    numbers = [_NUMBER.fullmatch(w) for w in (*words[1:4], *words[5:8])]
    if len(words) != 9 or any(n is None for n in numbers):
        return []
    values = [int(n[1]) for n in numbers if n is not None]
    out = []
    for what, (used, soft, hard) in (("space", values[:3]), ("files", values[3:])):
        if soft or hard:
            out.append(Quota(words[0], what, used, soft or hard))
    return out


def parse_mmlsquota(text: str) -> tuple[Quota, ...]:
    """``mmlsquota -Y``: fields between colons, named by a HEADER line; KiB. Quotas of users only. Source: the command's manual."""
    out: list[Quota] = []
    names: list[str] = []
    for line in text.splitlines():
        fields = line.split(":")
        if len(fields) < 3 or fields[0] != "mmlsquota":
            continue
        if fields[2] == "HEADER":
            names = [f.casefold() for f in fields]
            continue
        row = dict(zip(names, (unquote(f) for f in fields), strict=False))
        if row.get("quotatype", "").upper() != "USR":
            continue
        place = "/".join(w for w in (row.get("filesystemname", ""), row.get("filesetname", "")) if w)
        for what, key in (("space", "block"), ("files", "files")):
            values = [row.get(f"{key}{part}", "") for part in ("usage", "quota", "limit")]
            if not all(v.isascii() and v.isdigit() and len(v) < 19 for v in values):
                continue
            used, soft, hard = (int(v) for v in values)
            if soft or hard:
                out.append(Quota(place, what, used, soft or hard))
    return tuple(out)
