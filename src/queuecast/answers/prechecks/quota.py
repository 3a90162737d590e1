"""Disk quotas as the system's own ``quota`` command tells them."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass

NEAR = 0.95
"""From that share of a quota on it is worth a warning."""


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


def own_quotas() -> tuple[Quota, ...]:
    """Of the user who asks; empty where there is no such command, or it does not answer within five seconds."""
    command = shutil.which("quota")
    if command is None:
        return ()
    try:
        done = subprocess.run([command, "-w", "-p"], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return ()
    return parse_quota(done.stdout)  # its status is 1 where a quota is exceeded


def parse_quota(text: str) -> tuple[Quota, ...]:
    """Lines of ``quota -w -p``: filesystem, blocks, quota, limit, grace, files, quota, limit, grace. The soft limit counts.

    Source: quota(1). Lines that are not understood are left out.
    """
    out: list[Quota] = []
    for line in text.splitlines():
        words = line.split()
        if len(words) != 9 or not all(w.rstrip("*").isdigit() for w in (*words[1:4], *words[5:8])):
            continue
        for what, (used, soft, hard) in (("space", words[1:4]), ("files", words[5:8])):
            limit = int(soft) or int(hard)
            if limit:
                out.append(Quota(words[0], what, int(used.rstrip("*")), limit))
    return tuple(out)
