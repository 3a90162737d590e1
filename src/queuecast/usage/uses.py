"""The table of uses: one row per started attempt, the same columns whatever measured it.

Everything that judges use (rightsizing, the over-request review, failures) reads this table and nothing below it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from queuecast.schema import FLAG, INT, NUM, TEXT, TIME

COLUMNS: dict[str, tuple[pa.DataType, str]] = {
    "job_id": (INT, "raw job id"),
    "job_id_text": (TEXT, "as users see it"),
    "submit": (TIME, "UTC"),
    "start": (TIME, "UTC"),
    "end": (TIME, "UTC; null: still running at `at`"),
    "user": (TEXT, "null: hidden"),
    "account": (TEXT, ""),
    "partition": (TEXT, ""),
    "qos": (TEXT, ""),
    "name": (TEXT, "hostile text"),
    "state": (TEXT, "base state as known at `at`; RUNNING while it ran then"),
    "node_list": (TEXT, "Slurm's host list"),
    "nodes": (INT, "allocated"),
    "submit_line": (TEXT, "hostile text"),
    "work_dir": (TEXT, "hostile text"),
    "elapsed_s": (NUM, "run time so far or in all, less suspended time"),
    "limit_s": (NUM, "null: unlimited or unknown"),
    "final": (FLAG, "ended and booked: figures do not change any more; others never enter averages"),
    "interrupted": (FLAG, "killed: its CPU time is counted too low"),
    "cpus_alloc": (NUM, ""),
    "cpu_s": (NUM, "CPU time used; null: unknown"),
    "cpu_share": (NUM, "cpu_s / (elapsed_s x cpus_alloc), unclipped; null: unknown or no run time"),
    "cpu_quality": (TEXT, "ok, unknown, running, implausible (over 1.2), too_low (interrupted), few_steps (some nodes have no step)"),
    "mem_alloc_bytes": (NUM, "whole job; the request where the allocation is not told"),
    "mem_peak_bytes": (NUM, "whole job; null: unknown"),
    "mem_basis": (TEXT, "sampled (cgroup of the job), tasks (sum of task peaks of a step), task (one task's peak); null: unknown"),
    "mem_at_least": (FLAG, "the true peak may be higher: steps or tasks that overlap were not summed, or the job was killed for memory"),
    "mem_asked_by": (TEXT, "user, default (the site's DefMem...), null: not told"),
    "gpus_alloc": (NUM, "null: not tracked"),
    "gpu_type": (TEXT, "case-folded; null: unknown or none"),
    "gpus_seen": (NUM, "GPUs that something measured; null: none"),
    "gpus_used": (NUM, "of these, that ever computed: 0 is real, null is not measured"),
    "gpu_util_mean": (NUM, "mean over time and GPUs, 0 to 1; null: not measured (a peak is no mean)"),
    "gpu_util_peak": (NUM, "highest of one GPU, 0 to 1"),
    "gpu_mem_peak_bytes": (NUM, "highest of one GPU"),
    "gpu_mem_total_bytes": (NUM, "memory of one GPU; null: unknown"),
    "gpu_basis": (TEXT, "samples, jobstats, dcgm, csv, slurm (peaks only); null: not measured"),
    "energy_joules": (NUM, "null: not measured"),
    "generated": (FLAG, "some figure was made by a script: say so wherever it shows"),
}
"""Column: Arrow type and meaning. Null is unknown, never zero."""

SCHEMA = pa.schema([pa.field(name, kind) for name, (kind, _doc) in COLUMNS.items()])


@dataclass(frozen=True)
class Uses:
    """Attempts of one cluster that ran between ``since`` and ``at``, as known at ``at``; ``rows`` has ``SCHEMA``."""

    cluster: str
    since: datetime
    at: datetime
    rows: pa.Table
