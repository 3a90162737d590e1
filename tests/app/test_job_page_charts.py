"""The pictures of one job: what they show is what was answered."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import altair as alt
from app.ui.jobcharts import ahead_chart, priority_chart

from queuecast.answers.explaining.priority import Priority, PriorityPart
from queuecast.answers.explaining.queue import Ahead, AheadOf


def rows(chart: alt.Chart | alt.LayerChart) -> list[dict[str, Any]]:
    return list(next(iter(chart.to_dict()["datasets"].values())))


def test_accounts_ahead_by_gpu_hours_or_by_jobs() -> None:
    known = Ahead((AheadOf("bio", 2, 3, 8, 96.0), AheadOf(None, 1, 1, 1, 4.0)), 0, 0)
    assert [(r["account"], r["value"]) for r in rows(ahead_chart(known))] == [("bio", 96.0), ("–", 4.0)]
    unknown = Ahead((AheadOf("bio", 2, 3, 8, None), AheadOf("chem", 5, 5, 1, 4.0)), 0, 0)
    assert [r["value"] for r in rows(ahead_chart(unknown))] == [2, 5]


def test_a_part_without_a_bound_reaches_what_it_has() -> None:
    parts = (PriorityPart("age", 120, 1000), PriorityPart("nice", -50, None), PriorityPart("site", 7, None))
    shown = rows(priority_chart(Priority(datetime(2026, 6, 10, tzinfo=UTC), "gpu", 77, parts, None, ())))
    assert [(r["points"], r["most"]) for r in shown] == [(120, 1000), (-50, 0), (7, 7)]
