"""What moved an answer most: each topic's measured part, with this job's value and the usual one."""

from __future__ import annotations

import math

from queuecast.answers.wait import Factor
from queuecast.features.lakecases import FEATURES
from queuecast.models.waitmodel import Moved

MOST = 3
LEAST_S = 120.0
"""A topic that moves the median by less than two minutes, or by less than a hundredth of it, is not worth a line."""

UNITS = {f.name: f.unit for f in FEATURES}

# topic: the feature that stands for it, for a request with GPUs and for one without; None where no number says much.
SPEAKS: dict[str, tuple[str | None, str | None]] = {
    "queue": ("gpu_pending_gpu_h", "partition_pending_core_h"),
    "ahead": ("gpu_ahead_gpu_h", "partition_ahead_core_h"),
    "running": ("gpu_running_gpus", "partition_running_cpus"),
    "freed": ("gpu_freed_4h_gpus_limit", "partition_freed_4h_cpus_limit"),
    "capacity": ("gpu_idle_gpus", "partition_idle_cpus"),
    "starts": ("gpu_started_24h_jobs", "partition_started_24h_jobs"),
    "waits": (None, None),
    "usage": ("account_used_gpu_h", "account_used_core_h"),
    "burst": ("user_burst_1h", "user_burst_1h"),
    "request": ("request_gpu_h", "request_core_h"),
    "time": (None, None),
    "waited": ("waited_s", "waited_s"),
    "reason": (None, None),
    "priority": ("queue_priority", "queue_priority"),
    "estimate": ("estimate_remaining_s", "estimate_remaining_s"),
    "fairshare": ("share_user_fairshare", "share_user_fairshare"),
    "nodes": ("node_largest_block", "node_idle_cpus_partition"),
    "partition": ("partition_gpus", "partition_cpus"),
    "reservations": ("reservation_next_h", "reservation_next_h"),
}


def factors(moved: Moved | None, median_s: float, gpus: float) -> tuple[Factor, ...]:
    """The topics that moved the answer most, largest first; none if nothing stands out."""
    if moved is None:
        return ()
    least = max(LEAST_S, 0.01 * median_s if math.isfinite(median_s) else LEAST_S)
    found = []
    for topic, seconds in sorted(moved.seconds.items(), key=lambda item: -abs(item[1])):
        if math.isfinite(seconds) and abs(seconds) >= least and topic in SPEAKS:
            name = SPEAKS[topic][0 if gpus > 0 else 1] or ""
            found.append(Factor(topic, seconds, name, _known(moved.own, name), _known(moved.usual, name), UNITS.get(name, "")))
    return tuple(found[:MOST])


def _known(values: dict[str, float], name: str) -> float | None:
    value = values.get(name, math.nan)
    return None if math.isnan(value) else value
