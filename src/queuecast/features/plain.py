"""The state of the queue at a moment by the definition: slow and plain, to check ``situation`` and ``instant`` against.

One request after another; the jobs are a table of which rows are picked and summed up. Needs pandas, which the rest
of the package does not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from queuecast.features.asking import Asking
from queuecast.features.history import TEXTS, Floats, History, limit_class, size_class
from queuecast.features.situation_names import FEATURES, HALF_LIFE_DAYS, HOURS, NARROW, PLACES, USAGE_HALF_LIFE_DAYS, WIDE

HOUR, DAY, MEMORY = 3600.0, 86400.0, 30 * 86400.0

# Times are in whole milliseconds held as seconds * 1000; see ``situation_groups`` for what is counted how.


def features(history: History, asking: Asking) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """Features (m, F), in the order of ``FEATURES``; nan is unknown."""
    jobs = _table(history)
    jobs["predicted"] = [_predict(jobs, job.user, job.eligible, job.limit_s) for job in jobs.itertuples()]
    out = np.empty((len(asking), len(FEATURES)), np.float32)
    for i in range(len(asking)):
        found = _one(jobs, _request(asking, i, len(jobs)))
        out[i] = [found[feature.name] for feature in FEATURES]
    return out


def _ms(seconds: Any) -> Any:
    return np.where(np.isfinite(seconds), np.rint(np.where(np.isfinite(seconds), seconds, 0) * 1000), np.inf)


def _groups(codes: dict[str, Any], gpus: Any, cpus: Any, limit_s: Any) -> dict[str, Any]:
    """The value that jobs of one group share, for each dimension."""
    size, limit = size_class(np.atleast_1d(gpus), np.atleast_1d(cpus)), limit_class(np.atleast_1d(limit_s))
    names = {text: [str(int(c)) for c in np.atleast_1d(codes[text])] for text in TEXTS}
    any_gpu = [str(bool(g)) for g in np.nan_to_num(np.atleast_1d(gpus)) > 0]

    def joined(*parts: list[str]) -> list[str]:
        return ["/".join(p) for p in zip(*parts, strict=True)]

    sizes, limits = [str(int(s)) for s in size], [str(int(s)) for s in limit]
    return {
        "cluster": ["all"] * len(sizes),
        "partition": names["partition"],
        "gpu": joined(names["gpu_type"], any_gpu),
        "account": names["account"],
        "user": names["user"],
        "partition_account": joined(names["partition"], names["account"]),
        "like": joined(names["partition"], sizes),
        "twin": joined(names["user"], names["partition"], sizes, limits),
    }


def _table(history: History) -> Any:
    import pandas as pd

    eligible = _ms(history.eligible)
    start = np.maximum(_ms(history.start), eligible)
    over = np.maximum(_ms(history.end), eligible)
    limit = np.where(np.isnan(history.limit_s), 7 * DAY, np.minimum(history.limit_s, 366 * DAY))
    return pd.DataFrame(
        {
            **_groups(history.codes, history.gpus, history.cpus, history.limit_s),
            "row": np.arange(len(history)),
            "eligible": eligible,
            "leave": np.where(np.isfinite(start), start, over),
            "start": start,
            "end": np.where(np.isfinite(start), np.maximum(start, over), np.inf),
            "tasks": history.tasks,
            "cpus": np.rint(np.where(np.isnan(history.cpus), 1, history.cpus)) * history.tasks,
            "gpus": np.rint(np.nan_to_num(history.gpus)) * history.tasks,
            "limit_s": history.limit_s,
            "limit": np.floor(limit * 1000),
        }
    )


def _request(asking: Asking, i: int, count: int) -> dict[str, Any]:
    codes = {text: asking.codes[text][i] for text in TEXTS}
    groups = {dim: v[0] for dim, v in _groups(codes, asking.gpus[i], asking.cpus[i], asking.limit_s[i]).items()}
    return {
        **groups,
        **{f"{text}_code": float(code) if code >= 0 else np.nan for text, code in codes.items()},
        "at": float(_ms(asking.asked[i])),
        "asked": asking.asked[i],
        "eligible_s": asking.eligible[i],
        "submit_s": asking.submit[i],
        "eligible": float(_ms(asking.eligible[i])),
        "row": int(asking.row[i]),
        "place": int(asking.row[i]) if asking.row[i] >= 0 else count,
        "cpus": 1.0 if np.isnan(asking.cpus[i]) else np.rint(asking.cpus[i]),
        "gpus": np.rint(np.nan_to_num(asking.gpus[i])),
        "nodes": np.nan if asking.nodes is None else asking.nodes[i],
        "mem": np.nan if asking.mem is None else asking.mem[i],
        "limit_s": asking.limit_s[i],
    }


def _predict(jobs: Any, user: str, eligible: float, limit_s: float) -> float:
    """Predicted run time, ms."""
    ended = jobs[(jobs.end < eligible) & (jobs.end >= eligible - MEMORY * 1000)]
    limit = 7 * DAY * 1000 if np.isnan(limit_s) else np.floor(min(limit_s, 366 * DAY) * 1000)
    last = ended[ended.user == user].sort_values(["end", "row"]).tail(2)
    if len(last):
        return float(np.rint(np.fmin((last.end - last.start).mean(), limit_s * 1000)))
    bounded = ended[ended.limit_s > 0]
    if len(bounded):
        shares = np.rint(np.minimum((bounded.end - bounded.start) / 1000 / bounded.limit_s, 1.0) * 1e9)
        return float(np.rint(limit * (shares.sum() / len(bounded) / 1e9)))
    return float(np.rint(limit))


def _ratio(over: float, under: float) -> float:
    return float(over / under) if under else np.nan


def _one(jobs: Any, asked: dict[str, Any]) -> dict[str, float]:
    at = asked["at"]
    found: dict[str, float] = {}
    others = jobs[jobs.row != asked["row"]]
    arrived = others[(others.eligible < at) | ((others.eligible == at) & (others.row < asked["place"]))]
    pending = arrived[arrived.leave >= at]
    ahead = pending[pending.row < asked["place"]] if asked["row"] >= 0 else pending[pending.eligible <= asked["eligible"]]
    started = others[others.start < at]
    running = started[started.end >= at]
    ended = others[others.end < at]
    for dim in PLACES:
        mine = {
            name: table[table[dim] == asked[dim]]
            for name, table in (
                ("arrived", arrived),
                ("pending", pending),
                ("ahead", ahead),
                ("started", started),
                ("running", running),
                ("ended", ended),
                ("others", others),
            )
        }
        quantities = _queue(mine, at)
        if dim in (*WIDE, *NARROW):
            quantities |= _running(mine, at) | _usage(mine, at)
        if dim in WIDE:
            quantities |= _capacity(mine, at)
        if dim in HALF_LIFE_DAYS:
            quantities |= _waits(mine["started"], at, HALF_LIFE_DAYS[dim])
        found |= {f"{dim}_{name}": value for name, value in quantities.items()}
    for dim in ("account", "user"):
        for what in ("core", "gpu"):
            found[f"{dim}_used_{what}_share"] = _ratio(found[f"{dim}_used_{what}_h"], found[f"cluster_used_{what}_h"])
    lately = arrived[(arrived["partition"] == asked["partition"]) & (arrived.eligible >= at - MEMORY * 1000) & (arrived.limit_s > 0)]
    usual = lately.limit_s.mean() if len(lately) else np.nan
    predicted = _predict(others, asked["user"], min(asked["eligible"], at), asked["limit_s"])
    return found | _of_request(asked, usual, predicted / 1000)


def _queue(mine: dict[str, Any], at: float) -> dict[str, float]:
    pending, ahead, arrived = mine["pending"], mine["ahead"], mine["arrived"]
    waited = (at - pending.eligible) / 1000
    return {
        "pending_jobs": pending.tasks.sum(),
        "pending_cpus": pending.cpus.sum(),
        "pending_gpus": pending.gpus.sum(),
        "pending_core_h": (pending.cpus * pending.limit).sum() / 3.6e6,
        "pending_gpu_h": (pending.gpus * pending.limit).sum() / 3.6e6,
        "pending_predicted_core_h": (pending.cpus * pending.predicted).sum() / 3.6e6,
        "pending_mean_s": _ratio((waited * pending.tasks).sum(), pending.tasks.sum()),
        "pending_max_s": waited.max() if len(pending) else np.nan,
        "ahead_jobs": ahead.tasks.sum(),
        "ahead_core_h": (ahead.cpus * ahead.limit).sum() / 3.6e6,
        "ahead_gpu_h": (ahead.gpus * ahead.limit).sum() / 3.6e6,
        "ahead_share": _ratio(ahead.tasks.sum(), pending.tasks.sum()),
        "burst_10min": arrived[arrived.eligible >= at - 600_000].tasks.sum(),
        "burst_1h": arrived[arrived.eligible >= at - HOUR * 1000].tasks.sum(),
    }


def _running(mine: dict[str, Any], at: float) -> dict[str, float]:
    running, started = mine["running"], mine["started"]
    found: dict[str, float] = {
        "running_jobs": running.tasks.sum(),
        "running_cpus": running.cpus.sum(),
        "running_gpus": running.gpus.sum(),
        "left_core_h": (running.cpus * np.maximum(0, running.start + running.limit - at)).sum() / 3.6e6,
    }
    for hours in HOURS:
        for by in ("limit", "predicted"):
            soon = running[running.start + running[by] <= at + hours * HOUR * 1000]
            found |= {f"freed_{hours}h_{what}_{by}": soon[what].sum() for what in ("cpus", "gpus")}
        lately = started[started.start >= at - hours * HOUR * 1000]
        found[f"started_{hours}h_jobs"] = lately.tasks.sum()
        found[f"started_{hours}h_core_h"] = (lately.cpus * lately.limit).sum() / 3.6e6
    return found


def _capacity(mine: dict[str, Any], at: float) -> dict[str, float]:
    """The capacity is the most that was in use at the whole hours of the last 30 days, or is now."""
    hour = 3_600_000
    marks = at // hour * hour - hour * np.arange(MEMORY // HOUR)[:, None]
    jobs = mine["others"]
    found: dict[str, float] = {}
    at_marks = (jobs.start.to_numpy() < marks) & (jobs.end.to_numpy() >= marks)
    for what, work in (("cpus", "cpu"), ("gpus", "gpu")):
        now = mine["running"][what].sum()
        most = max(now, (at_marks @ jobs[what].to_numpy()).max())
        pending_work = (mine["pending"][what] * mine["pending"].limit).sum() / 3.6e6
        found |= {f"capacity_{what}": most, f"idle_{what}": most - now, f"drain_{work}_h": _ratio(pending_work, now)}
    return found


def _waits(started: Any, at: float, half_life_days: float) -> dict[str, float]:
    names = ("wait_mean_log", "wait_sd_log", "wait_count", "since_start_s", "last_wait_s", "last5_wait_log")
    started = started.sort_values(["start", "row"])
    z: Floats = np.log1p((started.start - started.eligible).to_numpy() / 1000)
    age_days = (at - started.start.to_numpy()) / 1000 / DAY
    weight = np.exp2(-age_days / half_life_days)
    lately = z[age_days <= MEMORY / DAY]
    if not len(lately):
        return dict.fromkeys(names, np.nan) | {"wait_count": weight.sum()}
    mean = (weight * z).sum() / weight.sum()
    spread = (weight * (z - mean) ** 2).sum() / weight.sum()
    values = (mean, np.sqrt(spread), weight.sum(), age_days[-1] * DAY, np.expm1(z[-1]), lately[-5:].mean())
    return dict(zip(names, values, strict=True))


def _usage(mine: dict[str, Any], at: float) -> dict[str, float]:
    ended, running = mine["ended"], mine["running"]
    found = {}
    for what, name in (("cpus", "core"), ("gpus", "gpu")):
        weight = np.exp2(-(at - ended.end) / 1000 / DAY / USAGE_HALF_LIFE_DAYS)
        past, now = ended[what] * (ended.end - ended.start) * weight, running[what] * (at - running.start)
        found[f"used_{name}_h"] = (past.sum() + now.sum()) / 3.6e6
    return found


def _of_request(asked: dict[str, Any], usual: float, predicted_s: float) -> dict[str, float]:
    limit = 7 * DAY if np.isnan(asked["limit_s"]) else min(asked["limit_s"], 366 * DAY)
    turn = 2 * np.pi * (asked["asked"] % DAY) / DAY
    return {
        "request_cpus_log": np.log1p(asked["cpus"]),
        "request_gpus_log": np.log1p(asked["gpus"]),
        "request_nodes_log": np.log1p(asked["nodes"]),
        "request_mem_log": np.log1p(asked["mem"] / 1e9),
        "request_limit_s": asked["limit_s"],
        "request_core_h": asked["cpus"] * limit / 3600,
        "request_gpu_h": asked["gpus"] * limit / 3600,
        "request_limit_ratio": asked["limit_s"] / usual,
        "request_predicted_s": predicted_s,
        "partition_code": asked["partition_code"],
        "qos_code": asked["qos_code"],
        "gpu_type_code": asked["gpu_type_code"],
        "hour_sin": np.sin(turn),
        "hour_cos": np.cos(turn),
        "weekday": (asked["asked"] // DAY + 3) % 7,
        "waited_s": max(0.0, asked["asked"] - asked["eligible_s"]),
        "held_s": asked["eligible_s"] - asked["submit_s"],
    }
