"""Budgets of used minutes (GrpTRESMins, GrpWall): use by sshare, or by accounting with its decay, and when enough of it has faded.

Slurm halves past use every PriorityDecayHalfLife; use of a job is its amount times its time, times the QOS's UsageFactor. Source:
``priority_multifactor.c`` (decay), ``acct_policy.c`` (limits), resource_limits.shtml.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from queuecast.answers.explaining.priority import period
from queuecast.policy.counted import Level, levels_of
from queuecast.policy.recent import last_snapshot
from queuecast.policy.tables import tres_amounts
from queuecast.store.files import floats, instant

if TYPE_CHECKING:
    from queuecast.policy.request import Request
    from queuecast.policy.tables import PartitionRule, Policy
    from queuecast.store.lake import Lake

Spent = Callable[[Level, str], "Use | None"]
WALL = "wall"
"""GrpWall: the time of jobs itself, whatever they hold."""
HALVINGS = 8
"""What was used so many half-lives ago counts for less than half a percent."""
SHARES_FRESH = timedelta(hours=6)
_COLUMNS = (
    "user", "account", "qos", "partition", "start", "end", "cpus_alloc", "nodes_alloc", "mem_alloc_bytes", "gpus_alloc", "gpu_type_alloc",
)  # fmt: skip


@dataclass(frozen=True)
class Use:
    """``minutes``: amount times minutes used, faded, at ``seen_at`` (UTC). ``source``: sshare (Slurm's own count) or accounting.

    ``since``: what was used before that moment is not known and not in it (None: nothing that matters is missing).
    ``half_life_s`` None: it does not fade.
    """

    minutes: float
    seen_at: datetime
    source: str
    since: datetime | None
    half_life_s: float | None


@dataclass(frozen=True)
class Overdrawn:
    """A budget that the request does not fit in. ``need`` is its own, ``running`` what jobs that run may still use (both 0 unless
    AccountingStorageEnforce has ``safe``). ``free_at``: not before that moment, if nothing of the group runs until then; None: it does
    not come back by itself."""

    level: Level
    tres: str
    limit: float
    need: float
    running: float
    use: Use
    free_at: datetime | None


def overdrawn(
    policy: Policy, request: Request, rule: PartitionRule | None, asked: dict[str, float], running: Callable[[Level, str], float],
    spent: Spent,
) -> Iterator[Overdrawn]:  # fmt: skip
    """Budgets without room. ``running``: minutes that running jobs of a level may still use. Nothing where use is not known."""
    if policy.enforced is not None and "limits" not in policy.enforced:
        return
    safe = policy.enforced is not None and "safe" in policy.enforced
    minutes = 0.0 if request.limit_s is None else request.limit_s / 60
    for level in levels_of(policy, request, rule):
        for tres, limit in level.limits.grp_tres_mins.items():
            amount = asked.get(tres, 0.0)
            if not amount or limit <= 0:
                continue
            use = spent(level, tres)
            need = amount * minutes if safe else 0.0
            if use is None or need > limit:  # more than the whole budget: the rules say never
                continue
            more = running(level, tres) if safe else 0.0
            if use.minutes + need + more > limit or use.minutes >= limit:
                yield Overdrawn(level, tres, limit, need, more, use, _free(use, limit - need))
        wall = level.limits.grp_wall_s
        use = spent(level, WALL) if wall else None
        if wall and use is not None and use.minutes >= wall / 60:
            yield Overdrawn(level, WALL, wall / 60, 0.0, 0.0, use, _free(use, wall / 60))


def _free(use: Use, room: float) -> datetime | None:
    if use.half_life_s is None or room <= 0:
        return None
    return use.seen_at + timedelta(seconds=max(0.0, use.half_life_s * math.log2(max(use.minutes, 1e-9) / room)))


def spent_of(lake: Lake, cluster: str, at: datetime, policy: Policy) -> Spent:
    """Use by level and TRES as known at ``at``; accounting is read once, and only where a budget asks for it."""
    history: list[_Past] = []

    def spent(level: Level, tres: str) -> Use | None:
        no_decay = level.owner == "qos" and _flagged(policy, level, "nodecay")
        half = period(policy, "PriorityDecayHalfLife")
        half = None if no_decay or not half else half
        if level.owner == "assoc" and (tres == "billing" or (tres == "cpu" and not _weighted(policy))):
            found = _by_sshare(lake, cluster, at, level, half)
            if found is not None:
                return found
        if "prioritytype" in policy.settings and "multifactor" not in policy.settings["prioritytype"]:
            half = None
        if not history:
            history.append(_past(lake, cluster, at, half if not _any_no_decay(policy) else None))
        return _by_accounting(history[0], policy, at, level, tres, half)

    return spent


def _flagged(policy: Policy, level: Level, flag: str) -> bool:
    rule = policy.qos_rule(level.group.qos)
    return rule is not None and flag in rule.flags


def _any_no_decay(policy: Policy) -> bool:
    return any("nodecay" in q.flags and q.limits.grp_tres_mins for q in policy.qos.values())


def _weighted(policy: Policy) -> bool:
    return any(p.billing_weights for p in policy.partitions.values())


def _by_sshare(lake: Lake, cluster: str, at: datetime, level: Level, half: float | None) -> Use | None:
    """RawUsage is decayed billing-seconds of the account with all below it, or of the user in it."""
    rows, moment = last_snapshot(lake, "shares", cluster, at, ["account", "user", "raw_usage"])
    if moment is None or at - moment > SHARES_FRESH:
        return None
    account = level.scope.rpartition(" ")[2].casefold()
    user = level.group.user
    for row in rows.to_pylist():
        same = (row["user"] or "").casefold() == (user or "").casefold()
        if same and row["account"].casefold() == account and row["raw_usage"] is not None:
            return Use(row["raw_usage"] / 60, moment, "sshare", None, half)
    return None


@dataclass(frozen=True)
class _Past:
    """Attempts that have run, as columns. ``first``: from when on accounting is known."""

    texts: dict[str, list[str]]
    values: dict[str, npt.NDArray[np.float64]]
    tres: list[str | None]
    first: datetime | None


def _past(lake: Lake, cluster: str, at: datetime, half: float | None) -> _Past:
    since = None if half is None else at - timedelta(seconds=HALVINGS * half) - timedelta(days=31)  # submitted before it ran
    rows = lake.read("jobs", [*_COLUMNS, "tres_alloc"], cluster=cluster, since=since, until=at + timedelta(microseconds=1))
    rows = rows.filter(pc.fill_null(pc.less_equal(rows["start"], instant(at)), False))
    lows = [datetime.fromisoformat(f.low) for f in lake.manifest.of("jobs", cluster) if f.low]
    texts = {n: [(v or "").casefold() for v in rows[n].to_pylist()] for n in ("user", "account", "qos", "partition", "gpu_type_alloc")}
    numbers = ("cpus_alloc", "nodes_alloc", "mem_alloc_bytes", "gpus_alloc")
    values = {n: np.nan_to_num(floats(rows[n])) for n in numbers}
    begin, end = floats(rows["start"]) / 1e6, floats(rows["end"]) / 1e6
    values["begin"], values["end"] = begin, np.where(np.isnan(end), at.timestamp(), np.minimum(end, at.timestamp()))
    return _Past(texts, values, rows["tres_alloc"].to_pylist(), min(lows, default=None))


def _by_accounting(past: _Past, policy: Policy, at: datetime, level: Level, tres: str, half: float | None) -> Use | None:
    amounts = _amounts(past, tres)
    if amounts is None:
        return None
    inside = np.fromiter((_inside(past, policy, level, i) for i in range(len(amounts))), bool, len(amounts))
    factors = {q.name.casefold(): 1.0 if q.usage_factor is None else q.usage_factor for q in policy.qos.values()}
    weight = np.array([factors.get(q, 1.0) for q in past.texts["qos"]]) if len(amounts) else np.zeros(0)
    lasted = faded(past.values["begin"], past.values["end"], at.timestamp(), half)
    total = float((amounts * weight * lasted * inside).sum()) / 60
    enough = half is not None and past.first is not None and past.first <= at - timedelta(seconds=HALVINGS * half)
    return Use(total, at, "accounting", None if enough else past.first, half)


def faded(begin: npt.NDArray[np.float64], end: npt.NDArray[np.float64], now: float, half: float | None) -> npt.NDArray[np.float64]:
    """Seconds from ``begin`` to ``end``, each counted by 2 to the power of minus its age over ``half`` (None: whole)."""
    end = np.maximum(begin, np.minimum(end, now))
    if half is None:
        return end - begin
    out: npt.NDArray[np.float64] = half / math.log(2) * (np.exp2((end - now) / half) - np.exp2((begin - now) / half))
    return out


def _amounts(past: _Past, tres: str) -> npt.NDArray[np.float64] | None:
    plain = {"cpu": "cpus_alloc", "node": "nodes_alloc", "mem": "mem_alloc_bytes", "gres/gpu": "gpus_alloc"}
    if tres == WALL:
        return np.ones(len(past.tres))
    if tres in plain:
        return past.values[plain[tres]]
    if tres.startswith("gres/gpu:"):
        mine = np.array([k == tres.partition(":")[2].casefold() for k in past.texts["gpu_type_alloc"]], bool)
        return past.values["gpus_alloc"] * mine if len(mine) else np.zeros(0)
    known: dict[str | None, float | None] = {t: tres_amounts(t).get(tres) for t in set(past.tres)}
    if past.tres and all(v is None for v in known.values()):
        return None
    return np.array([known[t] or 0.0 for t in past.tres], np.float64)


def _inside(past: _Past, policy: Policy, level: Level, i: int) -> bool:
    scope = level.group
    if scope.user is not None and past.texts["user"][i] != scope.user.casefold():
        return False
    if scope.accounts is not None and past.texts["account"][i] not in scope.accounts:
        return False
    if scope.qos is None:
        return True
    rule = policy.partition(past.texts["partition"][i])
    return scope.qos.casefold() in (past.texts["qos"][i], (rule.qos or "").casefold() if rule is not None else "")


def first_day(use: Use) -> str:
    """The day from which on use is known, in UTC."""
    return "" if use.since is None else f"{use.since.astimezone(UTC):%Y-%m-%d}"
