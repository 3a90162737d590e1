"""The tree of accounts where the associations do not print their parents: sshare indents by depth."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from queuecast.policy.recent import standing_snapshot

if TYPE_CHECKING:
    from queuecast.store.lake import Lake


def parents_of(lake: Lake, cluster: str, at: datetime) -> dict[str, str]:
    """Account (case-folded) to its parent; empty if sshare was never read, or its order, parents before children, is lost."""
    rows, _ = standing_snapshot(lake, "shares", cluster, at, ["account", "user", "depth"])
    path: list[tuple[int, str]] = []
    out: dict[str, str] = {}
    for row in rows.filter(pc.is_null(rows["user"])).to_pylist():
        while path and path[-1][0] >= row["depth"]:
            path.pop()
        if row["depth"] != (path[-1][0] + 1 if path else 0):
            return {}
        if path:
            out[row["account"].casefold()] = path[-1][1]
        path.append((row["depth"], row["account"]))
    return out
