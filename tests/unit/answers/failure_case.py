"""A labelled case of a failure, and what the classifier makes of it: the whole way from rows and a log file to the class."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from queuecast.answers.failures.joblogs import read_job_logs
from queuecast.answers.failures.rows import NodeEvent, signs_of
from queuecast.answers.failures.weigh import Hit, Verdict, weigh

END = datetime(2026, 5, 20, 12, tzinfo=UTC)
G = 2**30


@dataclass(frozen=True)
class Case:
    """``row``: columns of ``jobs`` that differ from a job that failed with exit code 1 after ten minutes of an hour. ``version``: as Slurm
    prints it, None unknown. ``events``: (minutes after the end, state, reason) of its node."""

    name: str
    expected: str
    row: dict[str, Any] = field(default_factory=dict)
    log: str | bytes | None = None
    steps: tuple[dict[str, Any], ...] = ()
    events: tuple[tuple[float, str, str], ...] = ()
    version: str | None = "23.11"
    peers: bool = False


def step(kind: str = "0", state: str = "FAILED", code: int = 1, signal: int = 0, rss: int | None = None) -> dict[str, Any]:
    return {"step": kind, "state": state, "exit_code": code, "exit_signal": signal, "tasks": 1, "max_rss_bytes": rss}


def judge(case: Case, folder: Path) -> Verdict:
    """Nothing but what a lake and a file would hold."""
    row: dict[str, Any] = {
        "job_id": 7, "job_id_text": "7", "array_job_id": None, "array_task": None, "name": "train", "user": None, "uid": 1000,
        "state": "FAILED", "cancelled_by": None, "exit_code": 1, "exit_signal": 0, "derived_exit_code": 0, "derived_exit_signal": 0,
        "reason": None,
        "start": END - timedelta(minutes=10), "end": END, "elapsed_s": 600, "limit_s": 3600, "nodes_alloc": 1, "node_list": "gpu07",
        "mem_alloc_bytes": 16 * G, "max_rss_bytes": None, "gpus_alloc": 1,
    } | case.row  # fmt: skip
    events = [NodeEvent("gpu07", row["end"] + timedelta(minutes=m), None, state, reason) for m, state, reason in case.events]
    subtracting = None if case.version is None else tuple(map(int, case.version.split("."))) < (25, 11)
    signs = signs_of(row, subtracting=subtracting, steps=case.steps, events=events, peers=case.peers)
    hits = []
    if case.log is not None:
        path = folder / "case.log"
        path.write_bytes(case.log if isinstance(case.log, bytes) else case.log.encode())
        hits = [Hit(f.key, f.late, f.warning) for f in read_job_logs(row, None, ("gpu07",), [str(path)], END).found]
    return weigh(signs, hits)
