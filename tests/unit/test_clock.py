"""Instants as typed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
import time_machine

from queuecast.clock import parse_instant
from queuecast.errors import UsageError


@time_machine.travel(datetime(2026, 6, 10, 12, tzinfo=UTC), tick=False)
@pytest.mark.parametrize(
    ("text", "zone", "value"),
    [
        ("now", "UTC", datetime(2026, 6, 10, 12, tzinfo=UTC)),
        ("3d", "UTC", datetime(2026, 6, 7, 12, tzinfo=UTC)),
        ("90min", "UTC", datetime(2026, 6, 10, 10, 30, tzinfo=UTC)),
        ("2026-06-01", "UTC", datetime(2026, 6, 1, tzinfo=UTC)),
        ("2026-06-01T08:00", "Asia/Shanghai", datetime(2026, 6, 1, tzinfo=UTC)),
        ("2026-06-01T08:00+02:00", "Asia/Shanghai", datetime(2026, 6, 1, 6, tzinfo=UTC)),
        ("1780278567", "UTC", datetime(2026, 6, 1, 1, 49, 27, tzinfo=UTC)),
    ],
)
def test_instants(text: str, zone: str, value: datetime) -> None:
    assert parse_instant(text, zone) == value


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01", "12:00:00 yesterday", "-3d"])
def test_what_is_no_time_is_told(text: str) -> None:
    with pytest.raises(UsageError):
        parse_instant(text)
