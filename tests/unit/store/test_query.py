"""SQL over the lake: views, and nothing but reading."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from queuecast.errors import UsageError
from queuecast.schema import TABLES
from queuecast.store.lake import Lake
from queuecast.store.query import read_only

T0 = datetime(2026, 5, 30, tzinfo=UTC)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake.open(tmp_path / "it's a lake", create=True)
    hour = timedelta(hours=1)
    with lake.transaction("t") as tx:
        tx.append(
            "jobs",
            pa.table(
                {
                    "cluster": ["c"] * 3,
                    "job_id": [1, 2, 3],
                    "submit": [T0] * 3,
                    "eligible": [T0 + hour, T0 + 3 * hour, None],
                    "start": [T0 + 2 * hour, T0 + 2 * hour, None],
                    "name": ["a'b\"; drop table jobs;--", None, "=1+1"],
                    "completeness": [3, 3, 1],
                    "observed_at": [T0] * 3,
                }
            ),
        )
    return lake


def test_every_table_is_a_view_even_when_empty(lake: Lake) -> None:
    for table in TABLES:
        assert read_only(lake, f'SELECT * FROM "{table}"').column_names == TABLES[table].column_names


def test_waits_are_never_negative_and_unknown_stays_unknown(lake: Lake) -> None:
    rows = read_only(lake, "SELECT job_id, wait_s, submit_to_start_s FROM waits ORDER BY job_id").to_pylist()
    assert [(r["wait_s"], r["submit_to_start_s"]) for r in rows] == [(3600, 7200), (0, 7200), (None, None)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "COPY jobs TO '/tmp/queuecast-leak.csv'",
        "SELECT 1; SELECT 2",
        "DROP VIEW jobs",
        "ATTACH '/tmp/x.db'",
        "SET enable_external_access = true",
        "INSTALL httpfs",
        "SELECT getenv('HOME')",
        "PRAGMA database_list",
        "CREATE TABLE x AS SELECT 1",
        "SELECT * FROM glob('/etc/*')",
        "SELECT content FROM read_text('/etc/hostname')",
        "selec",
        "",
    ],
)
def test_only_one_select_and_no_files(lake: Lake, sql: str) -> None:
    with pytest.raises(UsageError):
        read_only(lake, sql)


def test_values_are_bound_not_pasted(lake: Lake) -> None:
    rows = read_only(lake, "SELECT job_id FROM jobs WHERE name = ?", ["a'b\"; drop table jobs;--"]).to_pylist()
    assert [r["job_id"] for r in rows] == [1]
