"""Reads tables of the layout of mila-iqia/slurm-queue-time-pred: pending jobs as seen at the noon of their submit day.

Such a table holds outcomes, what accounting knew after the job ended, and running numbers beside what was known at
noon. Only what was known is kept, by name: a column that is not listed here never becomes a feature. In particular not
kept: ``*_run_hours`` (real run times of jobs then pending), ``priority_x`` (accounting's last priority),
``partition_id_x`` (where the job ran; ``_y`` is where it was pending), all ids of rows and jobs.

The jobs are those that were pending at noon and later started: waits are length-biased, none was cancelled.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from queuecast.errors import ParseError, UsageError
from queuecast.features.cases import Cases
from queuecast.features.declare import Feature
from queuecast.features.history import Floats, size_class
from queuecast.slurmtext.tres import gpus_of_tres, parse_tres

TIMES = ("poll_time", "submit_time", "eligible_time", "start_time")
WHERE = {"": "in the cluster", "p_": "in the partition", "a_": "of the account", "p_a_": "of the account in the partition"}
AMOUNTS = {
    "jobs": ("jobs", "jobs"),
    "cores": ("CPUs", "CPUs"),
    "mem": ("MB", "memory"),
    "core_hours": ("core-hours", "CPUs times limit"),
    "gpus": ("GPUs", "GPUs"),
    "gpu_hours": ("GPU-hours", "GPUs times limit"),
}
QUEUE = tuple(
    Feature(f"{kind}_{place}{amount}_above", unit, "snapshot", topic, f"{what} of {jobs} {where}")
    for kind, topic, jobs in (("q", "ahead", "pending jobs of higher priority"), ("r", "running", "running jobs"))
    for place, where in WHERE.items()
    for amount, (unit, what) in AMOUNTS.items()
)
SHARE = (
    Feature("raw_share_poll", "shares", "snapshot", "fairshare", "shares of the account as set"),
    Feature("norm_share_poll", "share", "snapshot", "fairshare", "share of the account among its siblings"),
    Feature("raw_use_poll", "s", "snapshot", "fairshare", "decayed use of the account"),
    Feature("effect_use_poll", "share", "snapshot", "fairshare", "use of the account as a share of the cluster's"),
    Feature("level_fs_poll", "ratio", "snapshot", "fairshare", "share over use; without use unknown"),
    Feature("norm_use_poll", "ratio", "snapshot", "fairshare", "use over share; without a share unknown"),
    Feature("norm_use_log_poll", "log", "snapshot", "fairshare", "logarithm of that"),
    Feature("priority_y", "share", "snapshot", "priority", "priority at the snapshot"),
)
REQUEST = (
    Feature("req_cpus", "CPUs", "submit", "request", "CPUs asked for"),
    Feature("req_mem_total", "MB", "submit", "request", "memory asked for"),
    Feature("req_mem_per_cpu", "MB", "submit", "request", "memory asked for per CPU"),
    Feature("time_limit_sec", "s", "submit", "request", "time limit"),
)
MADE = (
    Feature("partition_code", "code", "snapshot", "request", "partition it is pending in, as numbered by the table"),
    Feature("account_code", "code", "submit", "request", "account, as numbered by the table"),
    Feature("req_gpus", "GPUs", "submit", "request", "GPUs asked for (gres/gpu of req_tres)"),
    Feature("req_nodes", "nodes", "submit", "request", "nodes asked for (node of req_tres)"),
    Feature("req_core_hours", "core-hours", "submit", "request", "CPUs times limit"),
    Feature("age_s", "s", "asked", "waited", "time since it became eligible; unknown if it was not yet"),
    Feature("not_eligible", "flag", "asked", "waited", "1 if it was not eligible yet"),
    Feature("since_submit_s", "s", "asked", "waited", "time since it was submitted"),
    Feature("submit_hour", "h", "submit", "time", "hour of the submission, by the table's clock"),
    Feature("submit_weekday", "days", "submit", "time", "day of the week of the submission, Monday is 0"),
)
FEATURES = (*QUEUE, *SHARE, *REQUEST, *MADE)
NEEDED = (*TIMES, "partition_id_y", "account_id", "req_tres", *(f.name for f in (*QUEUE, *SHARE, *REQUEST)))


def read_drac(path: str | Path) -> tuple[pd.DataFrame, Cases]:
    """The table's rows as a frame of features and as cases, in the same order (by snapshot).

    The frame holds the features plus ``partition``, ``account`` and ``asked`` (epoch seconds), no outcome.
    Times of the table are read as UTC. ``eligible`` is nan where the job was not eligible at the snapshot; when it would
    be was not known then. ``start`` is infinite where the table tells none. Groups: partition, account, user (the same:
    the table has no users), size, gpu. ``frame.attrs["left_out"]`` counts rows that were not pending at the snapshot.

    Raises ``UsageError`` if columns are missing or hold something else.
    """
    file = pq.ParquetFile(path)
    missing = [name for name in NEEDED if name not in file.schema_arrow.names]
    if missing:
        raise UsageError(f"{path} lacks {len(missing)} of the columns of this layout: {', '.join(missing[:8])}", "Is it another table?")
    table = file.read(columns=list(NEEDED)).to_pandas()
    asked, submit, eligible, start = (_seconds(table, name) for name in TIMES)
    if np.isnan(asked).any() or np.isnan(submit).any():
        raise UsageError(f"{path}: poll_time and submit_time must be there for each row")
    start = np.where(np.isnan(start), np.inf, start)
    causes = {"started by the snapshot": start <= asked, "submitted after the snapshot": submit > asked}
    keep = np.flatnonzero(~(causes["started by the snapshot"] | causes["submitted after the snapshot"]))
    keep = keep[np.argsort(asked[keep], kind="stable")]
    table, asked, submit, eligible, start = table.iloc[keep], asked[keep], submit[keep], eligible[keep], start[keep]
    eligible = np.where(eligible > asked, np.nan, eligible)

    made = dict(zip(("req_gpus", "req_nodes"), _request(table["req_tres"]), strict=True))
    made["partition_code"], made["account_code"] = _numbers(table, "partition_id_y"), _numbers(table, "account_id")
    made["age_s"], made["not_eligible"] = asked - eligible, np.isnan(eligible).astype(float)
    made["since_submit_s"] = asked - submit
    made["submit_hour"], made["submit_weekday"] = submit % 86400 / 3600, (submit // 86400 + 3) % 7  # 1970 began on a Thursday
    columns = {f.name: made[f.name] if f.name in made else _numbers(table, f.name) for f in FEATURES if f.name != "req_core_hours"}
    columns["req_core_hours"] = columns["req_cpus"] * columns["time_limit_sec"] / 3600
    frame = pd.DataFrame({f.name: columns[f.name] for f in FEATURES})
    groups = {
        "partition": table["partition_id_y"].to_numpy(np.int64),
        "account": table["account_id"].to_numpy(np.int64),
        "user": table["account_id"].to_numpy(np.int64),
        "size": size_class(columns["req_gpus"], columns["req_cpus"]),
        "gpu": (np.nan_to_num(columns["req_gpus"]) > 0).astype(np.int64),
    }
    cases = Cases(
        asked=asked,
        eligible=eligible,
        start=start,
        last_pending=np.where(np.isfinite(start), start, asked),
        features=FEATURES,
        values=frame.to_numpy(np.float32),
        groups=groups,
    )
    frame = frame.assign(partition=groups["partition"], account=groups["account"], asked=asked)
    frame.attrs["left_out"] = {cause: int(rows.sum()) for cause, rows in causes.items()}
    return frame, cases


def _seconds(table: pd.DataFrame, name: str) -> Floats:
    """Epoch seconds of a column of times or of their text; nan where there is none."""
    try:
        times = pd.to_datetime(table[name], utc=True, format="ISO8601")
    except (ValueError, TypeError) as error:
        raise UsageError(f"{name} does not hold times: {error}") from error
    micros = times.dt.as_unit("us")
    return np.where(micros.isna(), np.nan, micros.astype("int64").to_numpy() / 1e6)


def _numbers(table: pd.DataFrame, name: str) -> Floats:
    """A column as float64; infinite is nan."""
    try:
        values = table[name].to_numpy(np.float64, na_value=np.nan)
    except (ValueError, TypeError) as error:
        raise UsageError(f"{name} does not hold numbers: {error}") from error
    return np.where(np.isfinite(values), values, np.nan)


def _request(texts: pd.Series) -> tuple[Floats, Floats]:
    """GPUs and nodes of each ReqTRES; nan where it is not one. A request that names no GPU asks for none."""
    codes, words = pd.factorize(texts.fillna(""))
    found = np.array([_one_request(str(word)) for word in words], np.float64).reshape(-1, 2)
    return found[codes, 0], found[codes, 1]


def _one_request(text: str) -> tuple[float, float]:
    try:
        gpus, nodes = gpus_of_tres(text).total, parse_tres(text).get("node")
    except ParseError:
        return np.nan, np.nan
    return np.nan if gpus is None else float(gpus), np.nan if nodes is None else float(nodes)
