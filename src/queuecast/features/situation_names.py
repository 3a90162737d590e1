"""The features of the queue's state: names, units, meanings. What each calculator fills in is what is declared here.

A name is a dimension (``partition_account`` and so on, see ``situation_groups.DIMS``) and a quantity.
"""

from __future__ import annotations

from queuecast.features.declare import Feature, KnownAt

PLACES = {
    "cluster": "in the cluster",
    "partition": "in the partition",
    "gpu": "asking for the same GPU type (or for none)",
    "account": "of the account",
    "user": "of the user",
    "partition_account": "of the account in the partition",
    "like": "of the same size in the partition",
    "twin": "of the user with the same partition, size and limit",
}

WIDE = ("cluster", "partition", "gpu")
NARROW = ("account", "user")
HOURS = (1, 4, 24)
HALF_LIFE_DAYS = {"cluster": 1, "partition": 1, "gpu": 1, "partition_account": 1, "account": 10, "user": 10, "like": 10}
"""Recent waits count half after so many days."""

USAGE_HALF_LIFE_DAYS = 7
"""Slurm's default for PriorityDecayHalfLife."""

# quantity: (dimensions, unit, topic, meaning; {where} is the dimension)
_OF_DIMS: dict[str, tuple[tuple[str, ...], str, str, str]] = {
    "pending_jobs": ((*WIDE, *NARROW, "partition_account", "like", "twin"), "jobs", "queue", "pending jobs {where}"),
    "pending_cpus": (WIDE, "CPUs", "queue", "CPUs asked for by pending jobs {where}"),
    "pending_gpus": (WIDE, "GPUs", "queue", "GPUs asked for by pending jobs {where}"),
    "pending_core_h": ((*WIDE, *NARROW, "partition_account", "like"), "core-hours", "queue", "CPUs times limit of pending jobs {where}"),
    "pending_gpu_h": ((*WIDE, *NARROW), "GPU-hours", "queue", "GPUs times limit of pending jobs {where}"),
    "pending_predicted_core_h": (WIDE, "core-hours", "queue", "CPUs times predicted run time of pending jobs {where}"),
    "pending_mean_s": (WIDE, "s", "queue", "mean time that pending jobs {where} have waited"),
    "pending_max_s": ((*WIDE, *NARROW, "like"), "s", "queue", "longest time that a pending job {where} has waited"),
    "ahead_jobs": ((*WIDE, *NARROW), "jobs", "ahead", "pending jobs {where} that became eligible before"),
    "ahead_core_h": ((*WIDE, *NARROW), "core-hours", "ahead", "CPUs times limit of the pending jobs {where} that became eligible before"),
    "ahead_gpu_h": ((*WIDE, *NARROW), "GPU-hours", "ahead", "GPUs times limit of the pending jobs {where} that became eligible before"),
    "ahead_share": (("partition", "gpu", "account"), "share", "ahead", "share of the pending jobs {where} that became eligible before"),
    "running_jobs": ((*WIDE, *NARROW), "jobs", "running", "running jobs {where}"),
    "running_cpus": ((*WIDE, *NARROW), "CPUs", "running", "CPUs of running jobs {where}"),
    "running_gpus": ((*WIDE, *NARROW), "GPUs", "running", "GPUs of running jobs {where}"),
    "left_core_h": (WIDE, "core-hours", "running", "CPUs of running jobs {where} times what is left of their limits"),
    "capacity_cpus": (("cluster", "partition"), "CPUs", "capacity", "most CPUs in use {where} at a whole hour of the last 30 days, or now"),
    "capacity_gpus": (WIDE, "GPUs", "capacity", "most GPUs in use {where} at a whole hour of the last 30 days, or now"),
    "idle_cpus": (("cluster", "partition"), "CPUs", "capacity", "capacity {where} less CPUs in use"),
    "idle_gpus": (WIDE, "GPUs", "capacity", "capacity {where} less GPUs in use"),
    "drain_cpu_h": (("cluster", "partition"), "h", "capacity", "core-hours pending {where} over CPUs in use: hours to work them off"),
    "drain_gpu_h": (WIDE, "h", "capacity", "GPU-hours pending {where} over GPUs in use: hours to work them off"),
    **{
        f"freed_{h}h_{what}_{by}": (
            ("partition",) if what == "cpus" else ("gpu",),
            {"cpus": "CPUs", "gpus": "GPUs"}[what],
            "freed",
            f"{what[:3].upper()}s of running jobs {{where}} that end within {h} h by their {length}",
        )
        for by, length in (("limit", "limit"), ("predicted", "predicted run time"))
        for h in HOURS
        for what in ("cpus", "gpus")
    },
    **{f"started_{h}h_jobs": (("partition", "gpu"), "jobs", "starts", f"jobs {{where}} started in the last {h} h") for h in HOURS},
    **{
        f"started_{h}h_core_h": (("partition",), "core-hours", "starts", f"CPUs times limit of jobs {{where}} started in the last {h} h")
        for h in HOURS
    },
    "since_start_s": (
        ("partition", "gpu", "account", "user", "partition_account", "like"),
        "s",
        "starts",
        "time since a job {where} last started, within 30 days",
    ),
    "wait_mean_log": (tuple(HALF_LIFE_DAYS), "log(1 + s)", "waits", "mean log wait of jobs {where} that started, older starts fading"),
    "wait_sd_log": (
        ("partition", "gpu", "user", "like"),
        "log(1 + s)",
        "waits",
        "spread of log waits of jobs {where}, older starts fading",
    ),
    "wait_count": (("partition", "gpu", "user", "like"), "jobs", "waits", "starts {where} behind those waits, older ones fading"),
    "last_wait_s": (("partition", "user", "partition_account", "like"), "s", "waits", "wait of the job {where} that started last"),
    "last5_wait_log": (
        ("partition", "gpu", "user", "partition_account", "like"),
        "log(1 + s)",
        "waits",
        "mean log wait of the last five jobs {where} that started",
    ),
    "used_core_h": (NARROW, "core-hours", "usage", "use {where} of ended and running jobs, halving every 7 days after their ends"),
    "used_gpu_h": (NARROW, "GPU-hours", "usage", "GPU use {where} of ended and running jobs, halving every 7 days after their ends"),
    "used_core_share": (NARROW, "share", "usage", "that use as a share of the cluster's"),
    "used_gpu_share": (NARROW, "share", "usage", "that GPU use as a share of the cluster's"),
    "burst_10min": (("user",), "jobs", "burst", "jobs {where} that became eligible within the last 10 minutes"),
    "burst_1h": (("user",), "jobs", "burst", "jobs {where} that became eligible within the last hour"),
}

_OF_REQUEST: tuple[tuple[str, str, KnownAt, str, str], ...] = (
    ("request_cpus_log", "log(1 + CPUs)", "submit", "request", "CPUs asked for"),
    ("request_gpus_log", "log(1 + GPUs)", "submit", "request", "GPUs asked for"),
    ("request_nodes_log", "log(1 + nodes)", "submit", "request", "nodes asked for"),
    ("request_mem_log", "log(1 + GB)", "submit", "request", "memory asked for"),
    ("request_limit_s", "s", "submit", "request", "time limit"),
    ("request_core_h", "core-hours", "submit", "request", "CPUs times limit"),
    ("request_gpu_h", "GPU-hours", "submit", "request", "GPUs times limit"),
    ("request_limit_ratio", "ratio", "asked", "request", "time limit over the mean limit in the partition in the last 30 days"),
    ("request_predicted_s", "s", "asked", "request", "predicted run time"),
    ("partition_code", "code", "submit", "request", "partition (categorical)"),
    ("qos_code", "code", "submit", "request", "QOS (categorical)"),
    ("gpu_type_code", "code", "submit", "request", "GPU type (categorical)"),
    ("hour_sin", "sin", "asked", "time", "hour of the day (UTC)"),
    ("hour_cos", "cos", "asked", "time", "hour of the day (UTC)"),
    ("weekday", "days", "asked", "time", "day of the week (UTC), Monday is 0"),
    ("waited_s", "s", "asked", "waited", "time waited so far"),
    ("held_s", "s", "submit", "request", "time from submission to becoming eligible"),
)

FEATURES: tuple[Feature, ...] = tuple(
    Feature(f"{dim}_{quantity}", unit, "asked", topic, meaning.format(where=PLACES[dim]))
    for quantity, (dims, unit, topic, meaning) in _OF_DIMS.items()
    for dim in dims
) + tuple(Feature(*each) for each in _OF_REQUEST)
"""Every column, in order."""


COLUMN = {feature.name: i for i, feature in enumerate(FEATURES)}


def dims_of(*quantities: str) -> tuple[str, ...]:
    """Dimensions in which at least one of these quantities is declared."""
    return tuple(d for d in PLACES if any(d in _OF_DIMS[q][0] for q in quantities))
