"""The class of every failed attempt from accounting alone, cheaply: rows with the same signs are weighed once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from queuecast.answers.failures.rows import ended_rows, events_of, node_events, signs_of, steps_of, subtracts
from queuecast.answers.failures.weigh import Signs, Verdict, weigh
from queuecast.schema import INT, NUM, TEXT, TIME

if TYPE_CHECKING:
    from queuecast.store.lake import Lake

COLUMNS = (
    "job_id", "name", "user", "uid", "account", "partition", "state", "cancelled_by", "exit_code", "exit_signal", "derived_exit_code",
    "derived_exit_signal", "reason", "submit", "start", "end", "elapsed_s", "limit_s", "nodes_alloc", "mem_req_bytes", "mem_alloc_bytes",
    "max_rss_bytes", "node_list", "job_id_text", "gpus_alloc", "cpus_alloc", "array_job_id",
)  # fmt: skip
SCHEMA = pa.schema([("job_id", INT), ("submit", TIME), ("class", TEXT), ("confidence", NUM)])


def classify_row(row: Mapping[str, Any], *, subtracting: bool | None = None) -> Verdict:
    """The class of one ended row of ``jobs`` by itself: no steps, node events or logs. ``subtracting``: see ``subtracts``."""
    return weigh(signs_of(row, subtracting=subtracting))


def failure_classes(
    lake: Lake, cluster: str, since: datetime, at: datetime, *, on_bad_nodes: Collection[tuple[int, datetime]] = frozenset()
) -> pa.Table:
    """Failed attempts that ended in ``[since, at]``: job_id, submit, class, confidence (0 to 1), by end.

    Failed: every ended state but COMPLETED, and COMPLETED with a step that ran out of memory. Steps and node events count, logs
    do not. ``on_bad_nodes``: (job id, submit) of attempts in a group of failures of a node (``failure_groups``).
    """
    rows, verdicts = classified(lake, cluster, since, at, on_bad_nodes=on_bad_nodes)
    return pa.table(
        {
            "job_id": pa.array([r["job_id"] for r in rows], INT),
            "submit": pa.array([r["submit"] for r in rows], TIME),
            "class": pa.array([v.failure_class for v in verdicts], TEXT),
            "confidence": pa.array([v.confidence for v in verdicts], NUM),
        },
        schema=SCHEMA,
    )


def classified(
    lake: Lake, cluster: str, since: datetime, at: datetime, *, on_bad_nodes: Collection[tuple[int, datetime]] = frozenset()
) -> tuple[list[dict[str, Any]], list[Verdict]]:
    """The same as rows of ``jobs`` (columns ``COLUMNS``) and verdicts."""
    table = ended_rows(lake, cluster, since, at, COLUMNS)
    if not table.num_rows:
        return [], []
    first = pc.min(table["submit"]).as_py()
    told = steps_of(lake, cluster, table["job_id"], first, at)
    short = told.filter(pc.equal(told["state"], "OUT_OF_MEMORY"))["job_id"]
    table = table.filter(pc.or_(pc.not_equal(table["state"], "COMPLETED"), pc.is_in(table["job_id"], value_set=pc.unique(short))))
    by_attempt: dict[tuple[int, datetime], list[dict[str, Any]]] = {}
    for step in told.filter(pc.is_in(told["job_id"], value_set=pc.unique(table["job_id"]))).to_pylist():
        by_attempt.setdefault((step["job_id"], step["job_submit"]), []).append(step)
    ran_short = {key for key, of in by_attempt.items() if any(s["state"] == "OUT_OF_MEMORY" for s in of)}
    rows = [r for r in table.to_pylist() if r["state"] != "COMPLETED" or (r["job_id"], r["submit"]) in ran_short]
    events = node_events(lake, cluster, first, at)
    subtracting = subtracts(lake, cluster, at)
    known: dict[Signs, Verdict] = {}
    verdicts = []
    for row in rows:
        key = (row["job_id"], row["submit"])
        signs = signs_of(
            row, subtracting=subtracting, steps=by_attempt.get(key, ()), events=events_of(row, events), peers=key in on_bad_nodes
        )
        if signs not in known:
            known[signs] = weigh(signs)
        verdicts.append(known[signs])
    return rows, verdicts
