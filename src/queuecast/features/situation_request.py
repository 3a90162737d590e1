"""What is asked for, and when."""

from __future__ import annotations

import numpy as np

from queuecast.features.asking import Asking
from queuecast.features.history import Floats
from queuecast.features.situation_groups import counted_cpus, counted_gpus, counted_limit
from queuecast.features.situation_names import COLUMN
from queuecast.features.situation_view import Matrix

CODED = ("partition", "qos", "gpu_type")
"""Texts that are features as codes."""


def request(asking: Asking, predicted_s: Floats, usual_limit_s: Floats, out: Matrix) -> None:
    """Fill the columns of the request and of the time of day into ``out`` (m, F). ``usual_limit_s``: mean limit in the
    partition lately; nan if none is known."""
    unknown = np.full(len(asking), np.nan)
    limit = counted_limit(asking.limit_s)
    columns = {
        "request_cpus_log": np.log1p(counted_cpus(asking.cpus)),
        "request_gpus_log": np.log1p(counted_gpus(asking.gpus)),
        "request_nodes_log": np.log1p(unknown if asking.nodes is None else asking.nodes),
        "request_mem_log": np.log1p((unknown if asking.mem is None else asking.mem) / 1e9),
        "request_limit_s": asking.limit_s,
        "request_core_h": counted_cpus(asking.cpus) * limit / 3600,
        "request_gpu_h": counted_gpus(asking.gpus) * limit / 3600,
        "request_limit_ratio": asking.limit_s / usual_limit_s,
        "request_predicted_s": predicted_s,
        "waited_s": np.maximum(0.0, asking.asked - asking.eligible),
        "held_s": asking.eligible - asking.submit,
    }
    for text in CODED:
        codes = asking.codes[text]
        columns[f"{text}_code"] = np.where(codes < 0, np.nan, codes)
    turn = 2 * np.pi * (asking.asked % 86400) / 86400
    columns["hour_sin"], columns["hour_cos"] = np.sin(turn), np.cos(turn)
    columns["weekday"] = (asking.asked // 86400 + 3) % 7  # 1970-01-01 was a Thursday
    for name, values in columns.items():
        out[:, COLUMN[name]] = values
