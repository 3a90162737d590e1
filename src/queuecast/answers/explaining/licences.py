"""Licences: how many of the cluster's own there are (slurm.conf's Licenses) and how many running jobs hold."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from queuecast.policy.amounts import licences
from queuecast.policy.usage import RUNNING

if TYPE_CHECKING:
    from queuecast.answers.explaining.queue import Snapshot
    from queuecast.policy.tables import Policy


@dataclass(frozen=True)
class Licence:
    """One licence that is asked for. ``total`` and ``used`` None: its count is not known (a licence of the accounting database,
    as a rule with ``@`` and its server, or the settings were not read)."""

    name: str
    asked: int
    total: int | None
    used: int | None

    @property
    def short(self) -> bool | None:
        """Whether too few are free; None: not known."""
        return None if self.total is None or self.used is None else self.used + self.asked > self.total


def total_licences(policy: Policy) -> dict[str, int]:
    """Counts by name (lower case) of ``Licenses=matlab:4,ansys`` of the settings; empty where there are none or it was not read."""
    return {name.partition("/")[2]: int(count) for name, count in licences(policy.settings.get("licenses")).items()}


def asked_licences(policy: Policy, snapshot: Snapshot, row: dict[str, Any]) -> tuple[Licence, ...]:
    """What a record asks for. Of ``a|b``, where either will do, nothing is told."""
    text = row["licenses"] or ""
    if not text or text == "(null)" or "|" in text:
        return ()
    totals = total_licences(policy)
    used: dict[str, float] = {}
    for other in snapshot.rows:
        if other["state"] in RUNNING and other["licenses"]:
            for name, count in held_licences(other).items():
                used[name] = used.get(name, 0) + count
    out = []
    for part in re.split("[,;]", text):
        for full, wanted in licences(part).items():
            name = full.partition("/")[2]
            own = "@" not in part and name in totals
            out.append(Licence(name, int(wanted), totals[name] if own else None, int(used.get(name, 0)) if own else None))
    return tuple(out)


def held_licences(row: dict[str, Any]) -> dict[str, int]:
    """Counts by name that a record has."""
    found = licences((row["licenses"] or "").replace(";", ","))
    return {name.partition("/")[2]: int(count) for name, count in found.items() if name != "license/(null)"}
