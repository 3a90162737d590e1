"""Why the job, or each failed task of an array, ended as it did, in the terms that the copy is decided by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from queuecast.answers.failures.failure import failure
from queuecast.answers.failures.rows import events_of, node_events, signs_of, steps_of, subtracts
from queuecast.answers.failures.weigh import weigh
from queuecast.errors import NoDataError

if TYPE_CHECKING:
    from queuecast.answers.retries.job import Ended
    from queuecast.answers.viewer import Viewer
    from queuecast.store.lake import Lake

COMPLETED: Final = "completed"
MOST_LOOKED_AT: Final = 4
"""Of an array so many kinds of ends are looked into with their logs."""


@dataclass(frozen=True)
class Cause:
    """``failure_class``: as in docs/failures.md, or ``completed``. ``confidence`` 0 to 1. ``nodes``: those of the job that
    went out of service around its end, or on which others died as well. ``steps`` of the attempt. ``advice``: what to do, as
    sentences, where it was looked into."""

    failure_class: str
    confidence: float
    nodes: tuple[str, ...] = ()
    steps: tuple[Mapping[str, Any], ...] = ()
    advice: tuple[str, ...] = ()


def causes_of(lake: Lake, cluster: str, ended: Ended, at: datetime, viewer: Viewer, *, logs: bool) -> list[tuple[Mapping[str, Any], Cause]]:
    """Each failed task (the job itself, where it is no array) with its cause; of a job that completed, that it did.

    Tasks that ended alike (state and exit code) have one cause: that of the first, whose logs are read with ``logs``.
    """
    rows: Sequence[Mapping[str, Any]] = ended.failed or ended.tasks
    ids = pa.array(sorted({r["job_id"] for r in rows}), pa.int64())
    first = min(r["submit"] for r in rows)
    steps: dict[tuple[int, datetime], list[Mapping[str, Any]]] = {}
    for step in steps_of(lake, cluster, ids, first, at).to_pylist():
        steps.setdefault((step["job_id"], step["job_submit"]), []).append(step)
    events = node_events(lake, cluster, first, at)
    subtracting = subtracts(lake, cluster, at)
    alike: dict[tuple[object, ...], Cause | None] = {}
    out = []
    for row in rows:
        mine = tuple(steps.get((row["job_id"], row["submit"]), ()))
        near = events_of(row, events)
        if row["state"] == "COMPLETED" and not any(s["state"] == "OUT_OF_MEMORY" for s in mine):
            out.append((row, Cause(COMPLETED, 1.0, (), mine)))
            continue
        at_fault = tuple(dict.fromkeys(e.node for e in near if e.kind in ("down", "fault")))
        key = (row["state"], row["exit_code"], row["exit_signal"], bool(at_fault))
        if key not in alike:
            alike[key] = _looked_into(lake, cluster, row, at, viewer, logs) if len(alike) < MOST_LOOKED_AT else None
        known = alike[key]
        if known is None:
            verdict = weigh(signs_of(row, subtracting=subtracting, steps=mine, events=near))
            known = Cause(verdict.failure_class, verdict.confidence)
        nodes = tuple(dict.fromkeys([*at_fault, *known.nodes]))
        out.append((row, Cause(known.failure_class, known.confidence, nodes, mine, known.advice)))
    return out


def _looked_into(lake: Lake, cluster: str, row: Mapping[str, Any], at: datetime, viewer: Viewer, logs: bool) -> Cause | None:
    """The cause with logs, measured use and what became of other jobs on the node; None if nothing is known so."""
    try:
        answer = failure(lake, cluster, str(row["job_id_text"] or row["job_id"]), at, viewer, logs=logs)
    except NoDataError:
        return None
    if answer.failure_class is None or answer.confidence is None:
        return None
    nodes = answer.group.nodes if answer.group is not None else ()
    advice = tuple(s for s in answer.steps if "queuecast retry" not in s and "retry.sh" not in s)
    return Cause(answer.failure_class, answer.confidence, nodes, (), advice)
