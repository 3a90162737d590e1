"""What ``doctor`` reads and what it says: plain data between `doctor` (which asks) and `checks` (which judges)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from queuecast.collect.fields import Version
from queuecast.errors import SourceError

Level = Literal["ok", "warn", "fail"]
COMMANDS = ("sinfo", "squeue", "sacct", "scontrol", "sprio", "sshare", "sacctmgr")
NEEDED = frozenset(("sinfo", "squeue", "sacct", "scontrol"))


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at, in the language of the moment.

    level           ok; warn: answers are worse or fewer than they could be; fail: something does not work
    what            what was found
    why_it_matters  what it means for the answers; "" if nothing follows
    todo            what to do about it; "" if nothing is to be done
    check           short constant name, for JSON and tests
    """

    level: Level
    what: str
    why_it_matters: str = ""
    todo: str = ""
    check: str = ""


@dataclass
class Facts:
    """What was read, as text by kind; what failed, by kind. ``user`` is who runs the commands, None if unknown."""

    texts: dict[str, str] = field(default_factory=dict)
    failures: dict[str, SourceError] = field(default_factory=dict)
    versions: dict[str, Version] = field(default_factory=dict)
    version_errors: dict[str, SourceError] = field(default_factory=dict)
    cluster: str | None = None
    user: str | None = None
    admin_level: str | None = None
    job_owners: frozenset[str] | None = None
    missing_fields: dict[str, tuple[str, ...]] = field(default_factory=dict)
    ssh: str | None = None
    ssh_offset: timedelta = timedelta(0)
    controller_offset_s: float | None = None
