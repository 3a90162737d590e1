"""The truth around one collection, and small helpers to compare with it.

The truth is asked twice, before and after the collection; only what stayed the same in between is compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import truth
from .cluster import Cluster
from .machine import wait
from .queue_cli import Queuecast, Row


@dataclass(frozen=True)
class Seen:
    """Truth around one collection: only rows that were the same before and after it."""

    sacct: list[truth.Row]
    squeue: dict[str, truth.Row]
    start: dict[str, truth.Row]
    nodes: dict[str, truth.Row]


def look(queuecast: Queuecast, cluster: Cluster) -> Seen:
    """Collects once more, with the truth asked around it."""
    for _ in wait(60, "the queue does not stand still"):
        sacct, squeue, start, nodes = _ask(cluster)
        queuecast.collect()
        later = _ask(cluster)
        kept = Seen(
            [r for r in sacct if r in later[0]],
            {k: r for k, r in squeue.items() if later[1].get(k) == r},
            {k: r for k, r in start.items() if later[2].get(k) == r},
            {k: r for k, r in nodes.items() if later[3].get(k) == r},
        )
        if len(kept.squeue) >= 0.8 * len(squeue) and len(kept.start) >= 0.7 * len(start) and len(kept.sacct) >= 0.8 * len(sacct):
            return kept
    raise AssertionError("unreachable")


def _ask(cluster: Cluster) -> tuple[list[truth.Row], dict[str, truth.Row], dict[str, truth.Row], dict[str, truth.Row]]:
    nodes = {
        row["NodeName"]: {k: row.get(k, "") for k in ("State", "Gres", "AllocTRES", "CPUAlloc", "CPUTot", "RealMemory", "AllocMem")}
        for row in truth.blocks(cluster, "show", "node")
    }
    return truth.sacct(cluster), truth.squeue(cluster), truth.squeue(cluster, "--start"), nodes


def one(rows: list[Row], **wanted: Any) -> Row:
    found = [row for row in rows if all(row[k] == v for k, v in wanted.items())]
    assert len(found) == 1, (wanted, found)
    return found[0]


def same_text(ours: str | None, slurms: bytes) -> bool:
    """Equal where both are readable (but for line ends and blanks around); bytes that are not UTF-8 may stand as any mark, but
    must not take others with them."""
    if ours is None:
        return not slurms.strip()
    theirs = slurms.decode("utf-8", "replace").replace("\r\n", "\n").strip()
    if "\ufffd" not in theirs:
        return ours.replace("\r\n", "\n").strip() == theirs
    return all(c in ours for c in theirs if c.isascii() and c.isalnum())
