"""Tables of how the cluster is set up: partitions, reservations, QOS, associations, settings; and the rejects."""

from __future__ import annotations

from queuecast.schema.columns import CLUSTER, FLAG, INT, NUM, OBSERVED, TEXT, TIME, Table, column

PARTITIONS = Table(
    "partitions",
    "Partitions as scontrol shows them; a reading equal to the last one is not stored again.",
    key=("cluster", "observed_at", "partition"),
    partition_time="observed_at",
    sort=("observed_at", "partition"),
    steady=True,
    columns=(
        CLUSTER, OBSERVED,
        column("partition", TEXT, "name", null="never"),
        column("is_default", FLAG, "the default partition"),
        column("state", TEXT, "UP, DOWN, DRAIN, INACTIVE"),
        column("max_time_s", INT, "MaxTime", "s", null="unlimited"),
        column("default_time_s", INT, "DefaultTime", "s", null="none: MaxTime holds"),
        column("min_nodes", INT, "MinNodes", "nodes"),
        column("max_nodes", INT, "MaxNodes", "nodes", null="unlimited"),
        column("max_cpus_per_node", INT, "MaxCPUsPerNode", "CPUs", null="unlimited"),
        column("def_mem_per_cpu_bytes", INT, "DefMemPerCPU", "bytes", null="not set"),
        column("def_mem_per_node_bytes", INT, "DefMemPerNode", "bytes", null="not set or unlimited"),
        column("max_mem_per_cpu_bytes", INT, "MaxMemPerCPU", "bytes", null="not set"),
        column("max_mem_per_node_bytes", INT, "MaxMemPerNode", "bytes", null="unlimited"),
        column("priority_tier", INT, "PriorityTier"),
        column("priority_job_factor", INT, "PriorityJobFactor"),
        column("qos", TEXT, "partition QOS", null="none"),
        column("allow_accounts", TEXT, "comma list", null="all"),
        column("deny_accounts", TEXT, "comma list", null="none"),
        column("allow_qos", TEXT, "comma list", null="all"),
        column("deny_qos", TEXT, "comma list", null="none"),
        column("allow_groups", TEXT, "comma list", null="all"),
        column("node_list", TEXT, "nodes as host list", null="none"),
        column("total_nodes", INT, "nodes", "nodes"),
        column("total_cpus", INT, "CPUs", "CPUs"),
        column("tres", TEXT, "TRES as printed"),
        column("billing_weights", TEXT, "TRESBillingWeights as printed", null="none"),
        column("preempt_mode", TEXT, "PreemptMode"),
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
        CLUSTER, OBSERVED,
        column("reservation", TEXT, "name", null="never"),
        column("start", TIME, "start", "UTC"),
        column("end", TIME, "end", "UTC"),
        column("state", TEXT, "ACTIVE or INACTIVE", null="past (sacctmgr)"),
        column("flags", TEXT, "MAINT, IGNORE_JOBS, ...", null="none"),
        column("node_list", TEXT, "nodes", null="none or not told"),
        column("nodes", INT, "nodes", "nodes"),
        column("partition", TEXT, "partition", null="any"),
        column("users", TEXT, "comma list", null="none named"),
        column("accounts", TEXT, "comma list", null="none named"),
        column("tres", TEXT, "TRES as printed"),
    ),
)

# Limits that QOS and associations share, under one name each.
_COUNT_LIMITS = (
    column("max_wall_s", INT, "MaxWall", "s", null="no limit"),
    column("grp_wall_s", INT, "GrpWall", "s", null="no limit"),
    column("grp_jobs", INT, "GrpJobs", null="no limit"),
    column("grp_submit", INT, "GrpSubmit", null="no limit"),
)
_TRES_LIMITS = (
    column("grp_tres", TEXT, "GrpTRES", null="no limit"),
    column("grp_tres_mins", TEXT, "GrpTRESMins", null="no limit"),
    column("grp_tres_run_mins", TEXT, "GrpTRESRunMins", null="no limit"),
    column("max_tres_per_job", TEXT, "MaxTRES", null="no limit"),
    column("max_tres_per_node", TEXT, "MaxTRESPerNode", null="no limit"),
    column("max_tres_mins_per_job", TEXT, "MaxTRESMins", null="no limit"),
)

QOS = Table(
    "qos",
    "QOS and their limits (sacctmgr show qos).",
    key=("cluster", "observed_at", "qos"),
    partition_time="observed_at",
    sort=("observed_at", "qos"),
    steady=True,
    columns=(
        CLUSTER, OBSERVED,
        column("qos", TEXT, "name", null="never"),
        column("priority", INT, "priority"),
        column("preempt", TEXT, "comma list of QOS that it may preempt", null="none"),
        column("preempt_mode", TEXT, "PreemptMode"),
        column("flags", TEXT, "flags", null="none"),
        column("usage_factor", NUM, "UsageFactor"),
        column("grace_time_s", INT, "GraceTime", "s"),
        *_COUNT_LIMITS,
        column("max_jobs_per_user", INT, "MaxJobsPU", null="no limit"),
        column("max_submit_per_user", INT, "MaxSubmitPU", null="no limit"),
        column("max_jobs_per_account", INT, "MaxJobsPA", null="no limit"),
        column("max_submit_per_account", INT, "MaxSubmitPA", null="no limit"),
        *_TRES_LIMITS,
        column("max_tres_per_user", TEXT, "MaxTRESPU", null="no limit"),
        column("max_tres_per_account", TEXT, "MaxTRESPA", null="no limit"),
        column("min_tres_per_job", TEXT, "MinTRES", null="no limit"),
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
        CLUSTER, OBSERVED,
        column("account", TEXT, "account", null="never"),
        column("user", TEXT, "user", null="row of the account itself"),
        column("partition", TEXT, "partition", null="any"),
        column("parent", TEXT, "parent account", null="root, or not told"),
        column("shares", TEXT, "Fairshare: a number or parent"),
        column("qos", TEXT, "comma list of QOS that may be used", null="inherited or none"),
        column("default_qos", TEXT, "QOS when none is named", null="none"),
        *_COUNT_LIMITS,
        column("max_jobs", INT, "MaxJobs", null="no limit"),
        column("max_submit", INT, "MaxSubmit", null="no limit"),
        *_TRES_LIMITS,
    ),
)

SETTINGS = Table(
    "settings",
    "scontrol show config and sprio -w as key and value.",
    key=("cluster", "observed_at", "section", "key"),
    partition_time="observed_at",
    sort=("observed_at", "key"),
    steady=True,
    parts=("section",),
    columns=(
        CLUSTER, OBSERVED,
        column("section", TEXT, "config or priority_weights", null="never"),
        column("key", TEXT, "parameter", null="never"),
        column("value", TEXT, "value as printed", null="(null)"),
    ),
)

REJECTS = Table(
    "rejects",
    "What could not be parsed: kept with its cause, so that a later version can read it.",
    key=("cluster", "source_file", "line", "cause"),
    partition_time="observed_at",
    sort=("observed_at",),
    columns=(
        CLUSTER,
        column("kind", TEXT, "table it was meant for", null="never"),
        column("source_file", TEXT, "archived call or file", null="never"),
        column("line", INT, "first line of the record, from 1", null="never"),
        column("cause", TEXT, "why", null="never"),
        column("raw", TEXT, "the text, at most 64 KiB of it; bytes that are not UTF-8 as \\xNN", null="never"),
        OBSERVED,
    ),
)
