"""Every table of the lake: columns, Arrow types, units, what null means, when a value becomes known.

This file is the single source for the Parquet files, for the views that ``queuecast sql`` offers and
for ``docs/data-model.md`` (made by ``python -m queuecast.schema``, checked in tests).

Conventions, true of every table:

* Times are ``timestamp[us, UTC]``. Durations are whole seconds (``int64``) unless the name says else.
* Sizes are bytes (``int64``). Counts are ``int64``. Null means *unknown*; it never stands for zero.
* ``cluster`` is Slurm's ClusterName. Text that Slurm keeps in lower case in its database (accounts,
  partitions, QOS, users) is stored as printed; join keys are compared case-folded.
* ``observed_at`` is when the row was printed by Slurm, so a row is only known from that time on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

import pyarrow as pa

SCHEMA_VERSION = 1
"""Raised when a column changes meaning or type; ``store.migrate`` says how older lakes are read."""

TIME = pa.timestamp("us", tz="UTC")
INT = pa.int64()
TEXT = pa.string()
NUM = pa.float64()
FLAG = pa.bool_()

Known = Literal["submit", "eligible", "start", "end", "observed"]


@dataclass(frozen=True)
class Column:
    """One column.

    ``known`` names the moment from which the value could have been seen: ``submit``, ``eligible``,
    ``start`` and ``end`` of the job, or ``observed`` (only once the row itself was printed; for rows of
    ``jobs`` that means "as it stood when accounting was read", not what held while the job waited).
    """

    name: str
    type: pa.DataType
    doc: str
    unit: str = ""
    null: str = "not printed by this Slurm"
    known: Known = "observed"


@dataclass(frozen=True)
class Table:
    """One table: a set of Parquet files by cluster and month of ``partition_time``.

    ``key`` identifies a row. When two rows share a key, the one with the higher ``rank`` column value
    stays (then the later ``observed_at``), so re-reading is idempotent and an ended job replaces its
    running row. ``steady`` tables describe configuration: a reading equal to the last one adds nothing.
    """

    name: str
    doc: str
    key: tuple[str, ...]
    partition_time: str
    columns: tuple[Column, ...]
    rank: str | None = None
    sort: tuple[str, ...] = ()
    steady: bool = False

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(c.name, c.type) for c in self.columns])

    @property
    def column_names(self) -> list[str]:
        return [c.name for c in self.columns]


def _c(name: str, kind: pa.DataType, doc: str, unit: str = "", null: str = "not printed by this Slurm",
       known: Known = "observed") -> Column:
    return Column(name, kind, doc, unit, null, known)


_CLUSTER = _c("cluster", TEXT, "Slurm's ClusterName", null="never", known="submit")
_OBSERVED = _c("observed_at", TIME, "when Slurm printed the row", "UTC", null="never")
_JOB_ID = _c("job_id", INT, "raw job id (JobIDRaw, squeue %A); repeats after a reset", null="never", known="submit")
_ID_TEXT = _c("job_id_text", TEXT, "the id as users see it: 12, 12_3, 12+1", null="never", known="submit")
_ARRAY_ID = _c("array_job_id", INT, "job id of the array", null="not an array", known="submit")
_ARRAY_TASK = _c("array_task", INT, "index within the array", null="not an array, or a record for many tasks", known="submit")

JOBS = Table(
    "jobs",
    "One row per attempt of a job (a requeue makes a new attempt), from sacct; squeue fills in jobs that "
    "accounting does not list yet. Request columns are the final values, not always those at submit.",
    key=("cluster", "job_id", "submit"),
    partition_time="submit",
    rank="completeness",
    sort=("submit", "job_id"),
    columns=(
        _CLUSTER, _JOB_ID, _ID_TEXT, _ARRAY_ID, _ARRAY_TASK,
        _c("array_tasks", INT, "tasks that this row stands for (a pending array is one record)", "tasks", null="never", known="submit"),
        _c("array_tasks_exact", FLAG, "false if Slurm cut the list of tasks, so array_tasks is a lower bound", null="never", known="submit"),
        _c("array_throttle", INT, "at most so many tasks of the array at once (%N)", "tasks", null="no throttle seen", known="submit"),
        _c("het_job_id", INT, "leader of a heterogeneous job", null="not heterogeneous", known="submit"),
        _c("het_offset", INT, "component number", null="not heterogeneous", known="submit"),
        _c("name", TEXT, "job name, as given by the user: hostile text", null="no name", known="submit"),
        _c("user", TEXT, "user name", null="hidden or unknown", known="submit"),
        _c("uid", INT, "numeric user", known="submit"),
        _c("account", TEXT, "account charged", null="none", known="submit"),
        _c("partition", TEXT, "partition; while pending it may be a comma list", null="none"),
        _c("qos", TEXT, "QOS", null="none"),
        _c("state", TEXT, "base state: PENDING, RUNNING, COMPLETED, ...", null="never"),
        _c("cancelled_by", INT, "uid that cancelled", null="not cancelled, or not told"),
        _c("exit_code", INT, "exit status of the job", known="end"),
        _c("exit_signal", INT, "signal that ended it; 0 is none", known="end"),
        _c("derived_exit_code", INT, "highest exit status of its steps", known="end"),
        _c("derived_exit_signal", INT, "signal beside it", known="end"),
        _c("reason", TEXT, "code of the last reason that blocked it; sacct keeps it after the start", null="none given"),
        _c("reason_text", TEXT, "the reason as printed where it is more than the code", null="code only"),
        _c("submit", TIME, "submitted (requeue sets it anew)", "UTC", null="never", known="submit"),
        _c("eligible", TIME, "could run from then on, but for priority and resources", "UTC", null="not eligible yet: held, dependent, throttled, or not told", known="eligible"),
        _c("start", TIME, "allocation", "UTC", null="has not started, or never did", known="start"),
        _c("end", TIME, "end of the allocation or of waiting", "UTC", null="has not ended", known="end"),
        _c("elapsed_s", INT, "run time less suspended time, as accounted", "s", known="end"),
        _c("suspended_s", INT, "suspended time", "s", known="end"),
        _c("limit_s", INT, "time limit", "s", null="unlimited or unknown: see limit_kind"),
        _c("limit_kind", TEXT, "limit, unlimited, or partition (the partition's maximum would have held)", null="not told"),
        _c("priority", INT, "last priority known, not the one while it waited"),
        _c("nodes_req", INT, "nodes asked for (a minimum while pending)", "nodes"),
        _c("nodes_alloc", INT, "nodes allocated", "nodes", null="has not started", known="start"),
        _c("cpus_req", INT, "CPUs asked for (a minimum while pending)", "CPUs"),
        _c("cpus_alloc", INT, "CPUs allocated", "CPUs", null="has not started", known="start"),
        _c("mem_req_bytes", INT, "memory asked for, whole job", "bytes", null="not asked for, or all of the node"),
        _c("mem_alloc_bytes", INT, "memory allocated", "bytes", null="has not started, or not tracked", known="start"),
        _c("gpus_req", INT, "GPUs asked for, whole job", "GPUs", null="unknown: the cluster does not track gres/gpu"),
        _c("gpu_type_req", TEXT, "GPU type asked for, case-folded", null="any type, none, or several"),
        _c("gpus_alloc", INT, "GPUs allocated", "GPUs", null="has not started, or not tracked", known="start"),
        _c("gpu_type_alloc", TEXT, "GPU type allocated, case-folded; 'mixed' if several", null="unknown or none", known="start"),
        _c("tres_req", TEXT, "ReqTRES as printed"),
        _c("tres_alloc", TEXT, "AllocTRES as printed", null="has not started", known="start"),
        _c("node_list", TEXT, "nodes as Slurm's host list", null="none assigned", known="start"),
        _c("constraints", TEXT, "features asked for", null="none"),
        _c("reservation", TEXT, "reservation asked for or used", null="none"),
        _c("licenses", TEXT, "licences", null="none"),
        _c("scheduled_by", TEXT, "main, backfill or submit", null="not told", known="start"),
        _c("total_cpu_s", NUM, "CPU time used by the steps", "s", known="end"),
        _c("max_rss_bytes", INT, "highest MaxRSS of the steps: one task's peak", "bytes", null="not measured", known="end"),
        _c("restarts", INT, "times requeued", "times"),
        _c("submit_line", TEXT, "command line of the submission: hostile text"),
        _c("work_dir", TEXT, "working directory"),
        _c("comment", TEXT, "user's comment: hostile text", null="none"),
        _c("admin_comment", TEXT, "administrator's comment (may hold jobstats data)", null="none"),
        _c("db_index", pa.uint64(), "JobDbInx: exceeds signed 64 bits from 24.11"),
        _c("sluid", TEXT, "SLUID"),
        _c("completeness", INT, "0 from squeue, 1 sacct while pending or incomplete, 2 running, 3 ended: the higher one stays", null="never"),
        _c("anomalies", TEXT, "comma list of what looked wrong (see docs): end_before_start, eligible_after_start, resized, runaway_repaired, ambiguous_hour, nonexistent_hour, future, limit_exceeded, not_utf8, incomplete, never_started_old_form, revoked", null="none"),
        _c("source", TEXT, "sacct or squeue", null="never"),
        _OBSERVED,
    ),
)

STEPS = Table(
    "steps",
    "One row per job step (batch, extern, interactive, 0, 1, ...): usage lives here; times and state of a job do not.",
    key=("cluster", "job_id", "job_submit", "step"),
    partition_time="job_submit",
    rank="completeness",
    sort=("job_submit", "job_id"),
    columns=(
        _CLUSTER, _JOB_ID, _ID_TEXT,
        _c("job_submit", TIME, "submit of the attempt it belongs to", "UTC", null="never (start of the step where the job row is missing)"),
        _c("step", TEXT, "batch, extern, interactive, or the step number", null="never"),
        _c("name", TEXT, "step name: hostile text", null="no name"),
        _c("state", TEXT, "base state", null="never"),
        _c("cancelled_by", INT, "uid that cancelled", null="not cancelled, or not told"),
        _c("exit_code", INT, "exit status", known="end"),
        _c("exit_signal", INT, "signal", known="end"),
        _c("start", TIME, "start", "UTC", null="not started", known="start"),
        _c("end", TIME, "end", "UTC", null="has not ended", known="end"),
        _c("elapsed_s", INT, "run time", "s", known="end"),
        _c("nodes", INT, "nodes", "nodes", known="start"),
        _c("tasks", INT, "tasks", "tasks", known="start"),
        _c("cpus_alloc", INT, "CPUs", "CPUs", known="start"),
        _c("total_cpu_s", NUM, "user + system CPU time", "s", known="end"),
        _c("max_rss_bytes", INT, "one task's peak", "bytes", null="not measured", known="end"),
        _c("ave_rss_bytes", INT, "mean over tasks", "bytes", null="not measured", known="end"),
        _c("tres_usage_in_tot", TEXT, "TRESUsageInTot as printed", known="end"),
        _c("tres_usage_in_max", TEXT, "TRESUsageInMax as printed", known="end"),
        _c("tres_usage_in_ave", TEXT, "TRESUsageInAve as printed", known="end"),
        _c("tres_alloc", TEXT, "AllocTRES as printed", known="start"),
        _c("energy_joules", INT, "ConsumedEnergyRaw", "J", null="not measured", known="end"),
        _c("completeness", INT, "1 running, 3 ended: the higher one stays", null="never"),
        _OBSERVED,
    ),
)

QUEUE = Table(
    "queue",
    "Snapshots of squeue: one row per job record and snapshot. For pending jobs counts are minimums.",
    key=("cluster", "observed_at", "job_id", "job_id_text"),
    partition_time="observed_at",
    sort=("observed_at", "job_id"),
    columns=(
        _CLUSTER, _OBSERVED, _JOB_ID, _ID_TEXT, _ARRAY_ID, _ARRAY_TASK,
        _c("array_tasks", INT, "tasks of this record", "tasks", null="never"),
        _c("array_tasks_exact", FLAG, "false if the list was cut", null="never"),
        _c("array_throttle", INT, "%N of the array", "tasks", null="none"),
        _c("name", TEXT, "job name: hostile text", null="no name"),
        _c("user", TEXT, "user name", null="hidden"),
        _c("account", TEXT, "account", null="none"),
        _c("partition", TEXT, "comma list while pending in several", null="none"),
        _c("qos", TEXT, "QOS", null="none"),
        _c("state", TEXT, "base state", null="never"),
        _c("reason", TEXT, "reason code (base), for pending jobs", null="none, or not evaluated yet"),
        _c("reason_text", TEXT, "the reason as printed", null="none"),
        _c("submit", TIME, "submit", "UTC"),
        _c("eligible", TIME, "eligible time where printed", "UTC"),
        _c("start", TIME, "start of a job that has started", "UTC", null="pending"),
        _c("start_estimate", TIME, "Slurm's estimate for a pending job", "UTC", null="N/A: not tested by backfill"),
        _c("end_expected", TIME, "start + limit: a forecast", "UTC", null="unlimited or pending"),
        _c("limit_s", INT, "time limit", "s", null="unlimited or unknown"),
        _c("limit_kind", TEXT, "limit, unlimited or partition", null="not told"),
        _c("elapsed_s", INT, "time used so far", "s"),
        _c("nodes", INT, "nodes: allocated, or the minimum asked for", "nodes"),
        _c("cpus", INT, "CPUs: allocated, or the minimum asked for", "CPUs"),
        _c("mem_req_bytes", INT, "minimum memory, per node or per CPU as Slurm printed it", "bytes", null="not asked for"),
        _c("gpus", INT, "GPUs of the whole job: allocated, or asked for", "GPUs", null="unknown"),
        _c("gpu_type", TEXT, "GPU type, case-folded", null="any, none or mixed"),
        _c("tres", TEXT, "tres-alloc or tres-per-node as printed", null="none"),
        _c("priority", INT, "priority at that moment"),
        _c("dependency", TEXT, "dependency as printed", null="none"),
        _c("node_list", TEXT, "nodes it runs on", null="pending"),
        _c("sched_nodes", TEXT, "nodes planned by backfill", null="none planned"),
        _c("constraints", TEXT, "features", null="none"),
        _c("reservation", TEXT, "reservation", null="none"),
        _c("licenses", TEXT, "licences", null="none"),
    ),
)

ESTIMATES = Table(
    "estimates",
    "Snapshots of squeue --start: Slurm's own estimate of the start of each pending job.",
    key=("cluster", "observed_at", "job_id_text", "partition"),
    partition_time="observed_at",
    sort=("observed_at",),
    columns=(
        _CLUSTER, _OBSERVED, _ID_TEXT,
        _c("job_id", INT, "raw id where printed, else the number before _ or [", null="never"),
        _ARRAY_ID, _ARRAY_TASK,
        _c("array_tasks", INT, "tasks of this record; the estimate is the earliest task's", "tasks", null="never"),
        _c("partition", TEXT, "partition, as printed", null="none"),
        _c("user", TEXT, "user", null="hidden"),
        _c("state", TEXT, "base state", null="never"),
        _c("start_estimate", TIME, "estimate", "UTC", null="N/A: not tested, not 'never'"),
        _c("clamped", FLAG, "estimate equals the snapshot: overdue or about to start", null="no estimate"),
        _c("nodes", INT, "nodes", "nodes"),
        _c("sched_nodes", TEXT, "planned nodes", null="none planned"),
        _c("reason", TEXT, "reason code", null="none"),
    ),
)

NODES = Table(
    "nodes",
    "Snapshots of nodes (scontrol show node, or sinfo -N): what each holds and what is in use.",
    key=("cluster", "observed_at", "node"),
    partition_time="observed_at",
    rank="detail",
    sort=("observed_at", "node"),
    columns=(
        _CLUSTER, _OBSERVED,
        _c("node", TEXT, "node name", null="never"),
        _c("partitions", TEXT, "comma list of partitions", null="none"),
        _c("state", TEXT, "base state: IDLE, MIXED, ALLOCATED, DOWN, ...", null="never"),
        _c("state_flags", TEXT, "comma list: DRAIN, MAINT, PLANNED, NOT_RESPONDING, ...", null="none"),
        _c("cpus", INT, "configured CPUs", "CPUs"),
        _c("cpus_alloc", INT, "CPUs in use", "CPUs"),
        _c("mem_bytes", INT, "configured memory", "bytes"),
        _c("mem_alloc_bytes", INT, "memory allocated by Slurm", "bytes"),
        _c("gpus", INT, "GPUs configured", "GPUs", null="unknown"),
        _c("gpus_alloc", INT, "GPUs in use", "GPUs", null="unknown: this command does not tell"),
        _c("gpu_type", TEXT, "type, case-folded; 'mixed' if several", null="none or unknown"),
        _c("gres", TEXT, "Gres as printed", null="none"),
        _c("gres_used", TEXT, "GresUsed, else AllocTRES, as printed", null="not told"),
        _c("features", TEXT, "active features", null="none"),
        _c("weight", INT, "scheduling weight"),
        _c("reason", TEXT, "administrator's reason: hostile text", null="none"),
        _c("reservation", TEXT, "reservation in force", null="none"),
        _c("detail", INT, "0 from sinfo, 1 from scontrol: the higher one stays", null="never"),
    ),
)

PARTITIONS = Table(
    "partitions",
    "Partitions as scontrol shows them; a reading equal to the last one is not stored again.",
    key=("cluster", "observed_at", "partition"),
    partition_time="observed_at",
    sort=("observed_at", "partition"),
    steady=True,
    columns=(
        _CLUSTER, _OBSERVED,
        _c("partition", TEXT, "name", null="never"),
        _c("is_default", FLAG, "the default partition"),
        _c("state", TEXT, "UP, DOWN, DRAIN, INACTIVE"),
        _c("max_time_s", INT, "MaxTime", "s", null="unlimited"),
        _c("default_time_s", INT, "DefaultTime", "s", null="none: MaxTime holds"),
        _c("min_nodes", INT, "MinNodes", "nodes"),
        _c("max_nodes", INT, "MaxNodes", "nodes", null="unlimited"),
        _c("max_cpus_per_node", INT, "MaxCPUsPerNode", "CPUs", null="unlimited"),
        _c("def_mem_per_cpu_bytes", INT, "DefMemPerCPU", "bytes", null="not set"),
        _c("def_mem_per_node_bytes", INT, "DefMemPerNode", "bytes", null="not set or unlimited"),
        _c("max_mem_per_cpu_bytes", INT, "MaxMemPerCPU", "bytes", null="not set"),
        _c("max_mem_per_node_bytes", INT, "MaxMemPerNode", "bytes", null="unlimited"),
        _c("priority_tier", INT, "PriorityTier"),
        _c("priority_job_factor", INT, "PriorityJobFactor"),
        _c("qos", TEXT, "partition QOS", null="none"),
        _c("allow_accounts", TEXT, "comma list", null="all"),
        _c("deny_accounts", TEXT, "comma list", null="none"),
        _c("allow_qos", TEXT, "comma list", null="all"),
        _c("deny_qos", TEXT, "comma list", null="none"),
        _c("allow_groups", TEXT, "comma list", null="all"),
        _c("node_list", TEXT, "nodes as host list", null="none"),
        _c("total_nodes", INT, "nodes", "nodes"),
        _c("total_cpus", INT, "CPUs", "CPUs"),
        _c("tres", TEXT, "TRES as printed"),
        _c("billing_weights", TEXT, "TRESBillingWeights as printed", null="none"),
        _c("preempt_mode", TEXT, "PreemptMode"),
    ),
)

RESERVATIONS = Table(
    "reservations",
    "Reservations, current (scontrol) and past (sacctmgr).",
    key=("cluster", "observed_at", "reservation", "start"),
    partition_time="observed_at",
    sort=("observed_at", "start"),
    steady=True,
    columns=(
        _CLUSTER, _OBSERVED,
        _c("reservation", TEXT, "name", null="never"),
        _c("start", TIME, "start", "UTC"),
        _c("end", TIME, "end", "UTC"),
        _c("state", TEXT, "ACTIVE or INACTIVE", null="past (sacctmgr)"),
        _c("flags", TEXT, "MAINT, IGNORE_JOBS, ...", null="none"),
        _c("node_list", TEXT, "nodes", null="none or not told"),
        _c("nodes", INT, "nodes", "nodes"),
        _c("partition", TEXT, "partition", null="any"),
        _c("users", TEXT, "comma list", null="none named"),
        _c("accounts", TEXT, "comma list", null="none named"),
        _c("tres", TEXT, "TRES as printed"),
    ),
)

PRIORITIES = Table(
    "priorities",
    "Snapshots of sprio: weighted priority factors of pending jobs, one row per partition.",
    key=("cluster", "observed_at", "job_id", "partition", "qos"),
    partition_time="observed_at",
    sort=("observed_at", "job_id"),
    columns=(
        _CLUSTER, _OBSERVED, _JOB_ID,
        _c("partition", TEXT, "partition", null="none"),
        _c("user", TEXT, "user", null="not told"),
        _c("qos", TEXT, "QOS name (24.11 and later)", null="not told"),
        _c("priority", INT, "total"),
        _c("site", INT, "site factor"), _c("age", INT, "age"), _c("assoc", INT, "association"),
        _c("fairshare", INT, "fairshare"), _c("job_size", INT, "job size"), _c("partition_factor", INT, "partition"),
        _c("qos_factor", INT, "QOS"), _c("nice", INT, "nice, subtracted"),
        _c("tres", TEXT, "TRES factors as printed (may be cut by Slurm)", null="none"),
    ),
)

SHARES = Table(
    "shares",
    "Snapshots of sshare: fairshare tree and usage.",
    key=("cluster", "observed_at", "account", "user", "partition"),
    partition_time="observed_at",
    sort=("observed_at", "account"),
    columns=(
        _CLUSTER, _OBSERVED,
        _c("account", TEXT, "account", null="never"),
        _c("user", TEXT, "user", null="row of the account itself"),
        _c("partition", TEXT, "partition of the association", null="any"),
        _c("depth", INT, "depth in the tree, by leading blanks", null="never"),
        _c("raw_shares", INT, "RawShares", null="parent"),
        _c("norm_shares", NUM, "NormShares, 0 to 1"),
        _c("raw_usage", INT, "RawUsage", "decayed billing seconds"),
        _c("norm_usage", NUM, "NormUsage, 0 to 1"),
        _c("effective_usage", NUM, "EffectvUsage, 0 to 1"),
        _c("fairshare", NUM, "FairShare factor, 0 to 1", null="account row"),
        _c("level_fs", NUM, "LevelFS: above 1 is under-served; infinite if nothing was used"),
        _c("tres_run_mins", TEXT, "TRESRunMins as printed"),
        _c("grp_tres_mins", TEXT, "GrpTRESMins as printed", null="no limit"),
    ),
)

QOS = Table(
    "qos",
    "QOS and their limits (sacctmgr show qos).",
    key=("cluster", "observed_at", "qos"),
    partition_time="observed_at",
    sort=("observed_at", "qos"),
    steady=True,
    columns=(
        _CLUSTER, _OBSERVED,
        _c("qos", TEXT, "name", null="never"),
        _c("priority", INT, "priority"),
        _c("preempt", TEXT, "comma list of QOS that it may preempt", null="none"),
        _c("preempt_mode", TEXT, "PreemptMode"),
        _c("flags", TEXT, "flags", null="none"),
        _c("usage_factor", NUM, "UsageFactor"),
        _c("grace_time_s", INT, "GraceTime", "s"),
        _c("max_wall_s", INT, "MaxWall", "s", null="no limit"),
        _c("grp_wall_s", INT, "GrpWall", "s", null="no limit"),
        _c("grp_jobs", INT, "GrpJobs", null="no limit"),
        _c("grp_submit", INT, "GrpSubmit", null="no limit"),
        _c("max_jobs_per_user", INT, "MaxJobsPU", null="no limit"),
        _c("max_submit_per_user", INT, "MaxSubmitPU", null="no limit"),
        _c("max_jobs_per_account", INT, "MaxJobsPA", null="no limit"),
        _c("max_submit_per_account", INT, "MaxSubmitPA", null="no limit"),
        _c("grp_tres", TEXT, "GrpTRES", null="no limit"),
        _c("grp_tres_mins", TEXT, "GrpTRESMins", null="no limit"),
        _c("grp_tres_run_mins", TEXT, "GrpTRESRunMins", null="no limit"),
        _c("max_tres_per_job", TEXT, "MaxTRES", null="no limit"),
        _c("max_tres_per_node", TEXT, "MaxTRESPerNode", null="no limit"),
        _c("max_tres_mins_per_job", TEXT, "MaxTRESMins", null="no limit"),
        _c("max_tres_per_user", TEXT, "MaxTRESPU", null="no limit"),
        _c("max_tres_per_account", TEXT, "MaxTRESPA", null="no limit"),
        _c("min_tres_per_job", TEXT, "MinTRES", null="no limit"),
    ),
)

ASSOCIATIONS = Table(
    "associations",
    "Accounts and users with their limits (sacctmgr show assoc).",
    key=("cluster", "observed_at", "account", "user", "partition"),
    partition_time="observed_at",
    sort=("observed_at", "account"),
    steady=True,
    columns=(
        _CLUSTER, _OBSERVED,
        _c("account", TEXT, "account", null="never"),
        _c("user", TEXT, "user", null="row of the account itself"),
        _c("partition", TEXT, "partition", null="any"),
        _c("parent", TEXT, "parent account", null="root, or not told"),
        _c("shares", TEXT, "Fairshare: a number or parent"),
        _c("qos", TEXT, "comma list of QOS that may be used", null="inherited or none"),
        _c("default_qos", TEXT, "QOS when none is named", null="none"),
        _c("max_wall_s", INT, "MaxWall", "s", null="no limit"),
        _c("grp_wall_s", INT, "GrpWall", "s", null="no limit"),
        _c("grp_jobs", INT, "GrpJobs", null="no limit"),
        _c("grp_submit", INT, "GrpSubmit", null="no limit"),
        _c("max_jobs", INT, "MaxJobs", null="no limit"),
        _c("max_submit", INT, "MaxSubmit", null="no limit"),
        _c("grp_tres", TEXT, "GrpTRES", null="no limit"),
        _c("grp_tres_mins", TEXT, "GrpTRESMins", null="no limit"),
        _c("grp_tres_run_mins", TEXT, "GrpTRESRunMins", null="no limit"),
        _c("max_tres_per_job", TEXT, "MaxTRES", null="no limit"),
        _c("max_tres_per_node", TEXT, "MaxTRESPerNode", null="no limit"),
        _c("max_tres_mins_per_job", TEXT, "MaxTRESMins", null="no limit"),
    ),
)

EVENTS = Table(
    "events",
    "Node and cluster events (sacctmgr show event): down, drained, registered.",
    key=("cluster", "node", "start"),
    partition_time="start",
    sort=("start",),
    columns=(
        _CLUSTER,
        _c("node", TEXT, "node", null="cluster-wide"),
        _c("start", TIME, "start", "UTC", null="never"),
        _c("end", TIME, "end", "UTC", null="still so"),
        _c("state", TEXT, "state as printed, upper case", null="none"),
        _c("reason", TEXT, "reason: hostile text", null="none"),
        _c("user", TEXT, "who set it", null="not told"),
        _OBSERVED,
    ),
)

SETTINGS = Table(
    "settings",
    "scontrol show config and sprio -w as key and value.",
    key=("cluster", "observed_at", "section", "key"),
    partition_time="observed_at",
    sort=("observed_at", "key"),
    steady=True,
    columns=(
        _CLUSTER, _OBSERVED,
        _c("section", TEXT, "config or priority_weights", null="never"),
        _c("key", TEXT, "parameter", null="never"),
        _c("value", TEXT, "value as printed", null="(null)"),
    ),
)

REJECTS = Table(
    "rejects",
    "What could not be parsed: kept with its cause, so that a later version can read it.",
    key=("cluster", "source_file", "line", "cause"),
    partition_time="observed_at",
    sort=("observed_at",),
    columns=(
        _CLUSTER,
        _c("kind", TEXT, "table it was meant for", null="never"),
        _c("source_file", TEXT, "archived call or file", null="never"),
        _c("line", INT, "first line of the record, from 1", null="never"),
        _c("cause", TEXT, "why", null="never"),
        _c("raw", TEXT, "the text, at most 64 KiB of it; bytes that are not UTF-8 as \\xNN", null="never"),
        _OBSERVED,
    ),
)

TABLES: dict[str, Table] = {
    t.name: t
    for t in (JOBS, STEPS, QUEUE, ESTIMATES, NODES, PARTITIONS, RESERVATIONS, PRIORITIES, SHARES, QOS,
              ASSOCIATIONS, EVENTS, SETTINGS, REJECTS)
}


@cache
def arrow_schema(table: str) -> pa.Schema:
    """Arrow schema of a table, built once."""
    return TABLES[table].schema


def markdown() -> str:
    """The data model as Markdown: what ``docs/data-model.md`` holds."""
    out = ["# Data model", "", "Made from `src/queuecast/schema.py` by `python -m queuecast.schema > docs/data-model.md`.", "",
           f"Schema version {SCHEMA_VERSION}. Times are UTC, sizes bytes, durations seconds. Null is unknown, never zero.",
           "*Known* is the moment from which a value could have been seen (see `Column`).", ""]
    for t in TABLES.values():
        out += [f"## {t.name}", "", t.doc, "", f"Key: {', '.join(f'`{k}`' for k in t.key)}. Files by cluster and month of `{t.partition_time}`."
                + (" Stored only when it changed." if t.steady else ""), "",
                "| column | type | unit | known | null means | |", "|---|---|---|---|---|---|"]
        for c in t.columns:
            cells = (f"`{c.name}`", str(c.type), c.unit, c.known, c.null, c.doc)
            out.append("| " + " | ".join(x.replace("|", "\\|") for x in cells) + " |")
        out.append("")
    return "\n".join(out)


if __name__ == "__main__":
    print(markdown())
