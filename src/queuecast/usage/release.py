"""Which release of Slurm a cluster ran, where what a figure means depends on it."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from queuecast.store.lake import Lake


def slurm_release(lake: Lake, cluster: str, at: datetime) -> tuple[int, int, int] | None:
    """SLURM_VERSION of ``scontrol show config`` as last read by ``at`` (or first after it); None if never read."""
    found: list[tuple[datetime, str]] = [
        (row["observed_at"], row["value"] or "")
        for row in lake.read("settings", ["key", "value", "observed_at"], cluster=cluster).to_pylist()
        if row["key"] == "SLURM_VERSION"
    ]
    if not found:
        return None
    known = [pair for pair in found if pair[0] <= at]
    text = max(known)[1] if known else min(found)[1]
    match = re.match(r"(\d{2})\.(\d{2})(?:\.(\d+))?", text)
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else None
