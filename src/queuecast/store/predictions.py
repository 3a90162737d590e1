"""Every answer given is kept, and scored once the job has started.

An SQLite file beside the lake's manifest (WAL, so that many may write), or the user's own if the lake is read-only.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from queuecast.errors import StoreError

NAME = "predictions.sqlite"

_SCHEMA = """
CREATE TABLE IF NOT EXISTS predictions (
  id INTEGER PRIMARY KEY,
  made_at TEXT NOT NULL,        -- ISO 8601 UTC: when it was asked
  at TEXT NOT NULL,             -- the instant it speaks from
  cluster TEXT NOT NULL,
  job_id INTEGER,               -- raw id; null: asked before submitting
  job_submit TEXT,              -- submit of that attempt
  user TEXT,                    -- who asked, or the job's owner
  model TEXT,                   -- trained model in use; null: calibrated on the spot
  answer TEXT NOT NULL,         -- the JSON form of the answer
  started_at TEXT,              -- filled in by scoring: the start
  outcome TEXT,                 -- started, cancelled, or unmatched
  wait_s REAL,                  -- remaining wait as it came out
  scored_at TEXT
);
CREATE INDEX IF NOT EXISTS open_predictions ON predictions (cluster, outcome) WHERE outcome IS NULL;
"""


@dataclass(frozen=True)
class Logged:
    """One kept answer. Times are UTC; ``wait_s`` counts from ``at``."""

    id: int
    at: datetime
    cluster: str
    job_id: int | None
    job_submit: datetime | None
    user: str | None
    model: str | None
    answer: dict[str, Any]
    outcome: str | None
    wait_s: float | None


class Predictions:
    """The log at ``path``."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def beside(cls, lake_path: Path) -> Predictions:
        """The log of a lake; in the user's own state folder if the lake cannot be written."""
        if os.access(lake_path, os.W_OK):
            return cls(lake_path / NAME)
        state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
        return cls(state / "queuecast" / NAME)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            con = sqlite3.connect(self.path, timeout=20)
            try:
                con.execute("PRAGMA journal_mode=WAL")
                con.executescript(_SCHEMA)
                with con:
                    yield con
            finally:
                con.close()
        except sqlite3.Error as error:
            raise StoreError(f"the log of answers at {self.path} cannot be used: {error}", "move it aside; a new one is made") from error

    def add(
        self,
        *,
        at: datetime,
        cluster: str,
        job_id: int | None,
        job_submit: datetime | None,
        user: str | None,
        model: str | None,
        answer: dict[str, Any],
    ) -> None:
        """Keep one answer."""
        with self._open() as con:
            con.execute(
                "INSERT INTO predictions (made_at, at, cluster, job_id, job_submit, user, model, answer) VALUES (?,?,?,?,?,?,?,?)",
                (_iso(datetime.now(UTC)), _iso(at), cluster, job_id, _iso(job_submit), user, model, json.dumps(answer)),
            )

    def unscored(self, cluster: str) -> list[Logged]:
        """Answers whose job has not been seen to start yet."""
        return self._select("cluster = ? AND outcome IS NULL", (cluster,))

    def scored(self, cluster: str) -> list[Logged]:
        """Answers with their outcome, oldest first."""
        return self._select("cluster = ? AND outcome IS NOT NULL", (cluster,))

    def _select(self, where: str, values: tuple[str, ...]) -> list[Logged]:
        if not self.path.exists():
            return []
        sql = f"SELECT id, at, cluster, job_id, job_submit, user, model, answer, outcome, wait_s FROM predictions WHERE {where} ORDER BY at"  # noqa: S608  # where is one of the two above
        with self._open() as con:
            return [
                Logged(
                    r[0],
                    datetime.fromisoformat(r[1]),
                    r[2],
                    r[3],
                    datetime.fromisoformat(r[4]) if r[4] else None,
                    r[5],
                    r[6],
                    json.loads(r[7]),
                    r[8],
                    r[9],
                )
                for r in con.execute(sql, values)
            ]

    def score(self, results: list[tuple[int, str, datetime | None, float | None]]) -> None:
        """Fill in outcomes: (id, outcome, started_at, wait_s)."""
        now = _iso(datetime.now(UTC))
        with self._open() as con:
            con.executemany(
                "UPDATE predictions SET outcome = ?, started_at = ?, wait_s = ?, scored_at = ? WHERE id = ?",
                [(o, _iso(s), w, now, i) for i, o, s, w in results],
            )


def _iso(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat(timespec="seconds")
