"""Hour and weekday in the cluster's zone are those that a calendar tells."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecast.features.lakecases import FEATURES
from queuecast.models.localtime import COLUMNS, check_zone, with_local_time

ZONES = ("UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kathmandu", "Australia/Lord_Howe", "Asia/Shanghai")


@given(st.lists(st.integers(0, 4_000_000_000), min_size=1, max_size=20), st.sampled_from(ZONES))
def test_as_the_calendar_tells(moments: list[int], zone: str) -> None:
    asked = np.array(moments, np.float64)
    values = np.arange(len(asked) * len(FEATURES), dtype=np.float32).reshape(len(asked), -1)
    told = with_local_time(values, asked, zone)
    if zone == "UTC":
        assert told is values
        return
    rest = np.delete(np.arange(len(FEATURES)), COLUMNS)
    assert np.array_equal(told[:, rest], values[:, rest])
    for moment, (sin, cos, weekday) in zip(moments, told[:, COLUMNS], strict=True):
        local = datetime.fromtimestamp(moment, UTC).astimezone(ZoneInfo(zone))
        turn = 2 * np.pi * (local.hour * 3600 + local.minute * 60 + local.second) / 86400
        assert (sin, cos) == (pytest.approx(np.sin(turn), abs=1e-4), pytest.approx(np.cos(turn), abs=1e-4))
        assert weekday == local.weekday()


@pytest.mark.parametrize("name", ["", "Nowhere/Town", "../etc/passwd", "/etc/localtime", "a\x00b", "Europe"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no time zone"):
        check_zone(name)
