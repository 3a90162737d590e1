"""Running jobs that hold GPUs and do not use them, as the readings of the last hours show."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from queuecast.usage.attempts import Flags, Floats, attempts_of
from queuecast.usage.readings import LEAST, Readings, by_gpu, held, readings_of

if TYPE_CHECKING:
    from queuecast.store.lake import Lake

SPANNED = 0.75
"""Share of the hours asked about that the readings must span: those of the last ten minutes say nothing of four hours."""

STALE = timedelta(hours=1)
"""The last reading may not be older than that, or than two steps between readings: what was idle may work again."""


@dataclass(frozen=True)
class IdleGpu:
    """A running job none of whose GPUs computed in any reading of the last hours. Times are UTC.

    ``samples`` readings of ``gpus`` GPUs were all idle from ``idle_since`` (the first of them after the last busy one, however long
    ago) to ``last_seen``. ``mem_bytes`` is the memory that one GPU still holds. ``generated``: the readings were made by a script.
    """

    job_id: int
    job_id_text: str
    user: str | None
    account: str | None
    partition: str | None
    name: str | None
    node_list: str | None
    gpu_type: str | None
    gpus: int
    start: datetime
    idle_since: datetime
    last_seen: datetime
    samples: int
    mem_bytes: int | None
    generated: bool

    @property
    def idle_s(self) -> float:
        """Seconds from ``idle_since`` to ``last_seen``."""
        return (self.last_seen - self.idle_since).total_seconds()

    @property
    def gpu_hours(self) -> float:
        """GPU-hours held idle so far."""
        return self.gpus * self.idle_s / 3600.0

    def as_json(self) -> dict[str, Any]:
        """Plain values; times as ISO 8601 in UTC."""
        plain = {k: v.isoformat() if isinstance(v, datetime) else v for k, v in asdict(self).items()}
        return plain | {"idle_s": self.idle_s, "gpu_hours": self.gpu_hours}


def idle_now(lake: Lake, cluster: str, at: datetime, hours: float) -> list[IdleGpu]:
    """Jobs that run at ``at`` (aware) and whose GPUs were all idle in every reading of the ``hours`` before, most GPU-hours first.

    A job is left out where this is not known: it runs for less than that, not each of its GPUs was read (at least three times,
    over three quarters of the hours, the last time within the last hour), or a reading does not tell the use (MIG). Readings
    that were made by a script count only where there are no others.
    """
    attempts = attempts_of(lake, cluster, since=at, at=at)
    readings = readings_of(lake, attempts)
    now, begin = at.timestamp(), (at - timedelta(hours=hours)).timestamp()
    alloc = attempts.number("gpus_alloc")
    real = np.zeros(len(attempts), bool)
    real[readings.owner[~readings.generated]] = True
    usable = ~(readings.generated & real[readings.owner]) if len(attempts) else np.zeros(0, bool)
    recent = held(by_gpu(readings, usable & (readings.time >= begin)), alloc)
    out = []
    for row in np.unique(recent["owner"]).astype(np.int64).tolist():
        mine = {name: values[recent["owner"] == row] for name, values in recent.items()}
        if np.isfinite(attempts.end[row]) or attempts.start[row] > begin or not (mine["peak"] == 0).all():
            continue
        # a GPU given but not read may be busy
        if not np.isnan(alloc[row]) and len(mine["gpu"]) < alloc[row]:
            continue
        step = float((mine["last"] - mine["first"]).max()) / max(1.0, float(mine["n"].max()) - 1)
        fresh = now - float(mine["last"].min()) <= max(STALE.total_seconds(), 2 * step)
        if not fresh or mine["n"].min() < LEAST or float((mine["last"] - mine["first"]).min()) < SPANNED * hours * 3600 - step:
            continue
        since, count = _since(readings, usable & (readings.owner == row), mine)
        fields = {c: attempts.rows[c][row].as_py() for c in ("job_id", "job_id_text", "user", "account", "partition", "name", "node_list")}
        memory = np.nanmax(mine["memory"]) if not np.isnan(mine["memory"]).all() else float("nan")
        kind = attempts.rows["gpu_type_alloc"][row].as_py()
        out.append(IdleGpu(
            **fields, gpu_type=kind.casefold() if kind else None, gpus=len(mine["gpu"]), start=_time(attempts.start[row]),
            idle_since=_time(since), last_seen=_time(float(mine["last"].max())), samples=count,
            mem_bytes=None if np.isnan(memory) else int(memory), generated=bool(readings.generated[usable & (readings.owner == row)].all()),
        ))  # fmt: skip
    return sorted(out, key=lambda i: (-i.gpu_hours, i.job_id))


def _since(readings: Readings, mine: Flags, gpus: dict[str, Floats]) -> tuple[float, int]:
    """The first reading after the last busy one (of those GPUs), and how many there are from then on."""
    these = mine & np.isin(readings.gpu, gpus["gpu"].astype(np.int64))
    busy = these & ~(readings.util == 0)
    last = float(readings.time[busy].max()) if busy.any() else -np.inf
    after = these & (readings.time > last)
    return float(readings.time[after].min()), int(after.sum())


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(float(seconds), UTC)
