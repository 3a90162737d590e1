"""Hour and weekday as people at the cluster live them: features tell them in UTC, the model in the zone it was trained for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from queuecast.features.history import Floats
from queuecast.features.situation_names import COLUMN
from queuecast.models.trees import Values

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

UTC = "UTC"
COLUMNS = [COLUMN[name] for name in ("hour_sin", "hour_cos", "weekday")]
SLOT_S = 900.0
"""Clocks are put forward or back at a quarter of an hour, everywhere."""


def with_local_time(values: Values, asked: Floats, zone: str) -> Values:
    """The same features with hour and weekday in ``zone`` (IANA name) at ``asked`` (epoch seconds, UTC). A copy unless the
    zone is UTC. Raises ``ValueError`` for a zone that is not known."""
    if zone == UTC:
        return values
    out = values.copy()
    local = np.asarray(asked, np.float64) + offsets(asked, zone)
    turn = 2 * np.pi * (local % 86400) / 86400
    # 1970-01-01 was a Thursday.
    for column, told in zip(COLUMNS, (np.sin(turn), np.cos(turn), (local // 86400 + 3) % 7), strict=True):
        out[:, column] = told
    return out


def offsets(asked: Floats, zone: str) -> Floats:
    """Seconds that the zone's clocks are ahead of UTC at each moment. Raises ``ValueError`` for a zone that is not known."""
    from datetime import UTC as utc
    from datetime import datetime

    place = check_zone(zone)
    slots, of = np.unique(np.floor(np.asarray(asked, np.float64) / SLOT_S), return_inverse=True)
    ahead = [datetime.fromtimestamp(float(s) * SLOT_S, utc).astimezone(place).utcoffset() for s in slots]
    return np.array([a.total_seconds() if a is not None else 0.0 for a in ahead], np.float64)[np.ravel(of)]


def check_zone(zone: str) -> ZoneInfo:
    """The zone of that name. Raises ``ValueError`` if there is none."""
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(zone)
    except (OSError, KeyError, ValueError) as error:  # not found comes as a KeyError
        raise ValueError(f"no time zone is named {zone!r}") from error
