"""``queuecast train``: learn each cluster's wait model, how like jobs' levels must be corrected, how Slurm's estimates did."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from queuecast.errors import NoDataError
from queuecast.features.history import History, load_history
from queuecast.models.backtest import ENOUGH, ENOUGH_STARTS, MODES, SPAN_S, TRIALS, run_trials
from queuecast.models.learning import Learned, learn
from queuecast.models.likejobs import WINDOW_S
from queuecast.models.localtime import UTC
from queuecast.models.saving import Model, ModelDamaged, load_model, lock_models, save_model
from queuecast.models.slurmrecord import slurm_record

if TYPE_CHECKING:
    from pathlib import Path

    from queuecast.store.lake import Lake

HISTORY = timedelta(seconds=WINDOW_S + SPAN_S)
"""How far back jobs are read: the answers that are made again look back from their own moment."""

CLAIMS = (0.5, 0.8, 0.95)


def data_until(lake: Lake, cluster: str) -> datetime | None:
    """When the cluster's newest job row or snapshot was read from Slurm; None without any."""
    seen = lake.manifest.state.get("seen", {}).get(cluster, {})
    return max((datetime.fromisoformat(t) for t in seen.values()), default=None)


def train(
    lake: Lake, now: datetime, progress: Callable[[str, int, int], None] | None = None, *, old: Model | None = None, zone: str = UTC
) -> Model:
    """Learn from all clusters of the lake up to ``now``, going on from ``old`` (loaded with what it kept) where that
    will do. ``progress`` gets (what, done, total). Hours and weekdays are those in ``zone`` (IANA name).

    Raises ``NoDataError`` if no cluster has a job that started.
    """
    model = Model(now, now)
    latest = []
    for cluster in lake.clusters:
        until = min(now, data_until(lake, cluster) or now)
        history = load_history(lake, cluster, since=until - HISTORY, until=until)
        if not np.isfinite(history.start).any():
            continue
        latest.append(until)
        _learn(model, history, until.timestamp(), progress)
        learned = learn(lake, cluster, until, progress, None if old is None else learned_of(old, cluster), zone)
        if learned is not None:
            model.waits[cluster], model.records[cluster] = learned.model, learned.record
            model.kept[cluster], model.standings[cluster] = learned.kept, learned.standing
            tell_record(model, cluster)
        for partition in ("*", *_partitions(history)):
            model.slurm[cluster, partition] = slurm_record(lake, cluster, until, None if partition == "*" else partition)
    if not latest:
        raise NoDataError(
            "no job in this lake has started yet, so there is nothing to learn from",
            "read some history first: queuecast backfill --since 2026-01-01, or queuecast ingest FOLDER",
        )
    model.data_until = max(latest)
    return model


def train_lake(
    lake: Lake,
    now: datetime,
    progress: Callable[[str, int, int], None] | None = None,
    *,
    full: bool = False,
    zone: str = UTC,
    wait_s: float = 0.0,
) -> Model:
    """Train and make the model current. It goes on from the current one unless ``full``, or unless that is damaged.

    Raises ``NoDataError``, ``LakeLocked`` while another process trains, ``StoreError``. Until it returns the current model stays.
    """
    folder = lake.path / "models"
    with lock_models(folder, "trains", wait_s):
        model = train(lake, now, progress, old=None if full else _going_on_from(folder), zone=zone)
        model.name = save_model(folder, model).name
    return model


def learned_of(model: Model, cluster: str) -> Learned | None:
    """What a model, loaded with what it kept, has learned of one cluster; None if it does not know its waits."""
    if any(cluster not in part for part in (model.waits, model.records, model.kept, model.standings)):
        return None
    return Learned(model.waits[cluster], model.records[cluster], model.kept[cluster], model.standings[cluster])


def _going_on_from(folder: Path) -> Model | None:
    try:
        return load_model(folder, kept=True)
    except ModelDamaged:
        return None


def tell_record(model: Model, cluster: str) -> None:
    """How intervals held is told of the model that answers: the wait model, not the like jobs that it replaces."""
    for _, mode, name in [group for group in model.coverage if group[0] == cluster]:
        part = model.records[cluster].where(partition=None if name == "*" else name, pending=mode == "pending")
        held = {str(claim): part.held_open_counted(claim) for claim in CLAIMS}
        model.coverage[cluster, mode, name] = {c: (h, n) if n >= ENOUGH_STARTS else (float("nan"), 0) for c, (h, n) in held.items()}


def _partitions(history: History) -> list[str]:
    """Single partitions; a comma list is a request to several."""
    return [p for p in history.words["partition"] if p and "," not in p]


def _learn(model: Model, history: History, at: float, progress: Callable[[str, int, int], None] | None) -> None:
    names = ["*", *_partitions(history)]
    done, total = 0, len(names) * len(MODES) * TRIALS

    def tick() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(history.cluster, done, total)

    for mode in MODES:
        for i, name in enumerate(names):
            trials = run_trials(history, at, mode, None if name == "*" else name, tick)
            group = (history.cluster, mode, name)
            if name == "*" or len(trials.asked) >= ENOUGH:
                model.calibrations[group] = trials.calibration()
                model.coverage[group] = {str(c): trials.coverage(c) for c in CLAIMS}
            done = (MODES.index(mode) * len(names) + i + 1) * TRIALS
    if progress is not None:
        progress(history.cluster, total, total)
