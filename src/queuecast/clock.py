"""The one place that asks what time it is, and how instants typed by people are read."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from queuecast.errors import UsageError

_AGO = re.compile(r"(\d+)\s*(s|m|min|h|d|w)\Z")
_UNIT = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800}


def now() -> datetime:
    """The present, UTC, whole seconds."""
    return datetime.now(UTC).replace(microsecond=0)


def local_zone() -> str:
    """Name of this process's zone (TZ, else the system's); UTC if it has no IANA name."""
    import os
    from pathlib import Path
    from zoneinfo import ZoneInfo

    name = os.environ.get("TZ", "").lstrip(":")
    if not name:
        try:
            name = str(Path("/etc/localtime").resolve()).split("/zoneinfo/")[1]
        except IndexError:
            name = "UTC"
    try:
        ZoneInfo(name)
    except (ValueError, OSError):
        return "UTC"
    return name


def parse_instant(text: str, zone: str | None = None) -> datetime:
    """An instant as typed: ISO date or time (in ``zone`` unless it has an offset), epoch seconds, ``now``, ``3d``
    (three days ago).

    Returns UTC. Raises ``UsageError``.
    """
    from zoneinfo import ZoneInfo

    text = text.strip()
    if text == "now":
        return now()
    if ago := _AGO.match(text):
        return now() - timedelta(seconds=int(ago[1]) * _UNIT[ago[2]])
    if re.fullmatch(r"\d{9,11}", text):
        return datetime.fromtimestamp(int(text), UTC)
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"not a time: {text!r}", "write 2026-06-10T14:00, 2026-06-10, 3d (ago) or now") from None
    if value.tzinfo is None:
        value = value.replace(tzinfo=ZoneInfo(zone or local_zone()))
    return value.astimezone(UTC)
