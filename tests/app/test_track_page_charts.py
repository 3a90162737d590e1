"""The pictures of how answers held, at the edges of what there is to draw."""

from __future__ import annotations

import json
from datetime import datetime

import numpy as np
from app.ui import trackcharts as charts
from app.ui.trackview import FEW
from madelake import NEWEST
from test_track_page import made_record

from queuecast.answers.track import track


def test_pictures_hold_the_numbers() -> None:
    found = track(made_record(), at=NEWEST)
    rows = [r for data in charts.coverage_chart(found.by_day).to_dict()["datasets"].values() for r in data]  # type: ignore[union-attr]
    held = {r["x"]: r["held"] for r in rows if r.get("held") is not None}
    assert held == {datetime.fromisoformat(s.name).toordinal(): s.held.held for s in found.by_day if s.held.counted >= FEW}
    assert any(r.get("settled") is False for r in rows), "the last day's jobs still wait"
    errors = charts.error_chart(found.by_day)
    assert errors is not None
    names = [r["name"] for data in errors.to_dict()["datasets"].values() for r in data if "name" in r]
    assert names == ["queuecast", "Slurm"]
    alone = charts.error_chart(track(made_record(slurm=False), at=NEWEST).by_day)
    assert alone is not None
    assert [r["name"] for data in alone.to_dict()["datasets"].values() for r in data if "name" in r] == ["queuecast"]
    assert found.pit is not None
    for chart in (errors, alone, charts.pit_chart(found.pit, 10), *map(charts.reliability_chart, found.reliability)):
        assert "NaN" not in json.dumps(chart.to_dict())
        assert "Infinity" not in json.dumps(chart.to_dict())


def test_a_line_breaks_where_a_day_is_missing() -> None:
    record = made_record()
    gone = (record.asked > NEWEST.timestamp() - 12 * 86400) & (record.asked < NEWEST.timestamp() - 9 * 86400)
    chart = charts.coverage_chart(track(record.take(~gone), at=NEWEST).by_day)
    assert chart is not None
    rows = [r for data in chart.to_dict()["datasets"].values() for r in data if "held" in r]
    assert sum(r["held"] is None for r in rows) == 1
    days = [r["x"] for r in rows]
    assert days == sorted(days)


def test_too_few_a_day_are_not_drawn() -> None:
    """F: what one person's jobs did cannot be read off a picture."""
    sparse = track(made_record().take(np.arange(2500) % 60 == 0), at=NEWEST)
    assert 0 < max(s.held.counted for s in sparse.by_day) < FEW
    assert charts.coverage_chart(sparse.by_day) is None
    assert charts.error_chart(sparse.by_day) is None
