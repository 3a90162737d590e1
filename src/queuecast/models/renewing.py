"""Corrections renewed between trainings, so that intervals follow the queue: no trees are learned, so it takes seconds.

What was asked since is answered by the model as it is; with those answers and the ones kept before, all outcomes known by
now correct the levels. The corrections known at an earlier moment can be made from the same answers.
"""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from queuecast.errors import StoreError
from queuecast.features.build import submit_cases
from queuecast.features.lakecases import lake_cases
from queuecast.models.learning import BEFORE, DAY_S, Learned, answered, like_waits, record_of
from queuecast.models.record import TrackRecord
from queuecast.models.rolling import LOOK_BACK, corrections
from queuecast.models.saving import Model, load_kept, load_model, lock_models, save_model
from queuecast.models.training import data_until, learned_of, tell_record
from queuecast.models.waitmodel import WaitModel

if TYPE_CHECKING:
    from pathlib import Path

    from queuecast.store.lake import Lake

DUE = timedelta(hours=6)
"""Corrections older than that are renewed after data were collected."""

PART = 1 / 720
"""...and no more than so much of the time is spent on it: what takes 30 s is done every 6 h, what takes 2 min once a day."""

INSTANTS_A_DAY = 12
"""Pending jobs are asked about at so many moments of a day, as in a training over some weeks."""

MOST_SUBMITS = 10_000
"""At most so many jobs are asked about at their submission."""


def renew(lake: Lake, cluster: str, old: Learned, until: datetime) -> Learned:
    """The same model, corrected by what was known at ``until`` (aware). The very same if nothing was read since."""
    since = old.standing.corrected_until
    if until <= since:
        return old
    begun = time.process_time()
    instants = max(1, round((until - since).total_seconds() / DAY_S * INSTANTS_A_DAY))
    cases, history, rows = lake_cases(lake, cluster, since, until, before=BEFORE, instants=instants, most_submits=MOST_SUBMITS)
    like = like_waits(cases, submit_cases(history))
    # The model's own numbers come first and stay: its corrections go by them.
    words = tuple(dict.fromkeys([*old.kept.partitions, *history.words["partition"]]))
    rolled = answered(old, cases, history, rows, until, like, words)
    standing = replace(old.standing, corrected_until=until, renewal_s=time.process_time() - begun)
    model = replace(old.model, maps=rolled.maps, shares=rolled.shares)
    return Learned(model, record_of(rolled.kept, until.timestamp()), rolled.kept, standing)


def renew_lake(
    lake: Lake, now: datetime, *, due: timedelta = timedelta(0), part: float = float("inf"), wait_s: float = 0.0
) -> Model | None:
    """Renew and save the corrections of all clusters that have a wait model, where they are older than ``due`` and than what the
    last time took over ``part``. None if there is no model, or nothing to do.

    Raises ``LakeLocked`` while another process trains, ``ModelDamaged``, ``StoreError``.
    """
    folder = lake.path / "models"
    if load_model(folder) is None:
        return None
    with lock_models(folder, "renews corrections", wait_s):
        model = load_model(folder, kept=True)
        if model is None:
            return None
        changed = False
        for cluster in lake.clusters:
            old = learned_of(model, cluster)
            if old is None:
                continue
            until = min(now, data_until(lake, cluster) or now)
            if until <= old.standing.corrected_until + max(due, timedelta(seconds=(old.standing.renewal_s or 0.0) / part)):
                continue
            new = renew(lake, cluster, old, until)
            model.waits[cluster], model.records[cluster] = new.model, new.record
            model.kept[cluster], model.standings[cluster] = new.kept, new.standing
            tell_record(model, cluster)
            changed = True
        if not changed:
            return None
        model.data_until = max(model.known_until(cluster) for cluster in model.standings)
        model.name = save_model(folder, model).name
    return model


def renew_if_due(lake: Lake, now: datetime) -> Model | None:
    """What is done after data were collected: cheap, and never a reason for the collector to fail."""
    try:
        return renew_lake(lake, now, due=DUE, part=PART)
    except StoreError:
        return None  # locked, not writable or damaged: those who ask the model are told


def as_known_at(folder: Path, model: Model, cluster: str, at: datetime) -> tuple[WaitModel, TrackRecord] | None:
    """The model with the corrections, and the record, as they were known at ``at``; None if it was learned later.

    Raises ``ModelDamaged``."""
    standing = model.standings.get(cluster)
    if standing is None or not standing.learned_until <= at <= standing.corrected_until:
        return None
    kept = _kept_of(folder / model.name).get(cluster)
    if kept is None:
        return None
    moment = at.astimezone(UTC).timestamp()
    then = kept.take(np.flatnonzero(kept.asked < moment)[-LOOK_BACK:])
    maps, follow = corrections(then, moment)
    return replace(model.waits[cluster], maps=maps.softened(follow)), record_of(then, moment)


_kept_of = lru_cache(maxsize=1)(load_kept)
"""A model's folder never changes: several past moments asked about are read once."""
