"""One round of collecting, and the walk through older history: what ``queuecast collect`` and ``backfill`` do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from queuecast.collect.ingest import IngestSummary, Progress, ingest_captures
from queuecast.collect.live import LiveSource
from queuecast.store.lake import Lake, Transaction

WINDOW = timedelta(days=7)
_COLLECTED = "sacct_read_until"  # by cluster: collecting has read accounting without a gap up to then
_BACKFILL = "backfill"  # by cluster: since, done_until


def collect_once(source: LiveSource, lake: Lake, *, progress: Progress | None = None, wait_s: float = 0.0) -> IngestSummary:
    """One snapshot of each cluster, and sacct since the last one that succeeded."""

    def finish(tx: Transaction, summary: IngestSummary) -> None:
        failed = {f.cluster for f in summary.failures if f.kind == "sacct"}
        for cluster, seen in tx.state.get("seen", {}).items():
            if cluster not in failed and seen.get("queue"):
                tx.state.setdefault(_COLLECTED, {})[cluster] = seen["queue"]

    return ingest_captures(source.captures(since=_last_sacct(lake, source)), lake, progress=progress, label="collect", wait_s=wait_s,
                           finish=finish)


def _last_sacct(lake: Lake, source: LiveSource) -> datetime | None:
    """The moment up to which accounting is known for all clusters asked; None if one was never read."""
    known = lake.manifest.state.get(_COLLECTED, {})
    names = source.clusters or (source.capabilities().cluster,)
    times = [known.get(name) for name in names]
    return min(map(datetime.fromisoformat, times)) if all(times) else None


def backfill(source: LiveSource, lake: Lake, since: datetime, until: datetime, *, window: timedelta = WINDOW, pause_s: float = 1.0,
             again: bool = False, progress: Callable[[str, datetime, int], None] | None = None, wait_s: float = 0.0) -> IngestSummary:
    """sacct and node events from ``since`` to ``until``, oldest window first, each stored before the next is asked for.

    Interrupted, the next call goes on after the last window that was stored, unless ``again``. A window that fails ends
    the walk: the summary holds the failure, the lake what came before it. ``progress`` gets (cluster, done until, jobs).
    """
    total = IngestSummary()
    for cluster in source.clusters or (None,):
        here = replace(source, clusters=(cluster,) if cluster else ())
        name = cluster or here.capabilities().cluster
        at = since if again else max(since, _done(lake, name, since) or since)
        while at < until:
            end = min(at + window, until)
            note = {"since": since.isoformat(), "done_until": end.isoformat()}

            def finish(tx: Transaction, summary: IngestSummary, name: str = name, note: dict[str, str] = note) -> None:
                if not summary.failures:
                    tx.state.setdefault(_BACKFILL, {})[name] = note

            captures = here.history(at, end, step=window, pause_s=0.0)
            summary = ingest_captures(captures, lake, label=f"backfill from {at:%Y-%m-%d}", wait_s=wait_s, finish=finish)
            total.add(summary)
            if summary.failures:
                return total
            at = end
            if progress is not None:
                progress(name, at, total.rows["jobs"])
            if at < until:
                source.sleep(pause_s)
    return total


def _done(lake: Lake, cluster: str, since: datetime) -> datetime | None:
    """Where an earlier walk that began no later than ``since`` stopped."""
    note = lake.manifest.state.get(_BACKFILL, {}).get(cluster)
    if note is None or datetime.fromisoformat(note["since"]) > since:
        return None
    return datetime.fromisoformat(note["done_until"]).astimezone(UTC)
