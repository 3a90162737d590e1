"""What a feature is: its name, unit, when it becomes known, and the topic under which an answer speaks of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

KnownAt = Literal["submit", "asked", "snapshot"]
"""submit: part of the request. asked: follows from what had happened by the moment asked about. snapshot: from the
last snapshot at or before that moment."""


@dataclass(frozen=True)
class Feature:
    """One column of a feature matrix. ``topic`` names the group of features whose contributions are told together."""

    name: str
    unit: str
    known_at: KnownAt
    topic: str
    meaning: str
