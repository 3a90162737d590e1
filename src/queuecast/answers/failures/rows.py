"""Ended attempts as accounting tells them, and the signs (``Signs``) that each shows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from queuecast.answers.failures.weigh import Signs, Step
from queuecast.errors import ParseError
from queuecast.slurmtext.hostlist import expand_hostlist
from queuecast.slurmtext.states import ENDED_STATES, parse_state
from queuecast.store.files import instant

if TYPE_CHECKING:
    from queuecast.store.lake import Lake

JOB_COLUMNS = (
    "job_id", "job_id_text", "array_job_id", "array_task", "name", "user", "uid", "account", "partition", "qos", "state", "cancelled_by",
    "exit_code", "exit_signal", "derived_exit_code", "derived_exit_signal", "reason", "reason_text", "submit", "eligible", "start", "end",
    "elapsed_s", "limit_s", "nodes_alloc", "cpus_alloc", "mem_req_bytes", "mem_alloc_bytes", "gpus_alloc", "gpus_req", "gpu_type_alloc",
    "node_list", "max_rss_bytes", "restarts", "work_dir", "submit_line",
)  # fmt: skip
STEP_COLUMNS = (
    "job_id",
    "job_submit",
    "step",
    "name",
    "state",
    "exit_code",
    "exit_signal",
    "start",
    "end",
    "tasks",
    "nodes",
    "max_rss_bytes",
)
LONGEST = timedelta(days=62)
"""Attempts submitted longer before the time asked about are not looked for."""
AFTER = timedelta(minutes=10)
"""A node's event that late after the end may still tell of it: slurmctld notices after SlurmdTimeout (300 s by default)."""
AT, NEAR, BELOW = 0.95, 0.8, 0.5
"""Shares of the memory that count as at the limit, near it, well below it."""

_DOWN = ("DOWN", "ERROR", "NOT_RESPONDING", "POWERED_DOWN")
_FAULT_WORDS = re.compile(
    r"not responding|unexpected|reboot|xid|ecc|nvml|gpu|dimm|memory error|fan|power|psu|temperature|overheat|disk|raid|infiniband|\bib\b|"
    r"link|lustre|gpfs|nfs|beegfs|mount|file ?system|hardware|prolog|health|low (real)?mem|gres|kernel panic|node_?health|broken|fault",
    re.IGNORECASE,
)
_PLANNED = re.compile(r"maint|upgrade|update|planned|reserv|scheduled|patch", re.IGNORECASE)


class NodeEvent(NamedTuple):
    """A node out of service from ``start`` (UTC) on; ``reason`` is hostile text."""

    node: str
    start: datetime
    end: datetime | None
    state: str
    reason: str

    @property
    def kind(self) -> Literal["down", "fault", "drain"] | None:
        """What it says of jobs that ran there; None: planned work."""
        bare = self.state.rstrip("*~#!%$@^-+ ").upper()
        if bare.startswith(_DOWN) or "*" in self.state:
            return "down"
        if bare.startswith("FAIL"):  # still runs jobs, but is expected to break
            return "fault"
        if not bare.startswith(("DRAIN", "DRNG")):
            return None
        if _PLANNED.search(self.reason):
            return None
        return "fault" if _FAULT_WORDS.search(self.reason) and "kill task" not in self.reason.lower() else "drain"


def ended_rows(
    lake: Lake, cluster: str, since: datetime, at: datetime, columns: Iterable[str] = JOB_COLUMNS, *, back: timedelta = LONGEST
) -> pa.Table:
    """Attempts that ended in ``[since, at]`` and were submitted at most ``back`` before, by end; duplicates of federated jobs left out."""
    names = list(dict.fromkeys((*columns, "end", "state", "submit")))
    rows = lake.read("jobs", names, cluster=cluster, since=since - back, until=at + timedelta(microseconds=1))
    ended = pc.and_(pc.greater_equal(rows["end"], instant(since)), pc.less_equal(rows["end"], instant(at)))
    over = pc.is_in(rows["state"], value_set=pa.array(sorted(ENDED_STATES - {"REVOKED"})))
    return rows.filter(pc.fill_null(pc.and_(ended, over), False)).sort_by("end")


def steps_of(lake: Lake, cluster: str, ids: pa.Array | pa.ChunkedArray, since: datetime, until: datetime) -> pa.Table:
    """Steps of these jobs whose attempts were submitted in the time, in the order of their end."""
    rows = lake.read("steps", list(STEP_COLUMNS), cluster=cluster, since=since, until=until + timedelta(microseconds=1))
    rows = rows.filter(pc.is_in(rows["job_id"], value_set=pc.unique(ids)))
    return rows.sort_by([("end", "ascending"), ("step", "ascending")])


def node_events(lake: Lake, cluster: str, since: datetime, at: datetime) -> dict[str, list[NodeEvent]]:
    """Events of nodes that began in ``[since, at]``, by node, in the order of time."""
    rows = lake.read(
        "events", ["node", "start", "end", "state", "reason"], cluster=cluster, since=since, until=at + timedelta(microseconds=1)
    )
    out: dict[str, list[NodeEvent]] = {}
    for row in rows.sort_by("start").to_pylist():
        if row["node"] and row["start"] is not None and since <= row["start"] <= at:
            end = row["end"] if row["end"] is not None and row["end"] <= at else None
            out.setdefault(row["node"], []).append(NodeEvent(row["node"], row["start"], end, row["state"] or "", row["reason"] or ""))
    return out


@lru_cache(maxsize=1 << 15)
def nodes_in(text: str | None) -> tuple[str, ...]:
    """Names in a host list; none where it cannot be read."""
    try:
        return (expand_hostlist(text) or ()) if text else ()
    except ParseError:
        return ()


def events_of(row: Mapping[str, Any], events: Mapping[str, list[NodeEvent]]) -> list[NodeEvent]:
    """Events of the attempt's nodes that began while it ran or shortly after."""
    start, end = row.get("start"), row.get("end")
    if start is None or end is None or not events:
        return []
    return [e for name in nodes_in(row.get("node_list")) for e in events.get(name, ()) if start <= e.start <= end + AFTER]


def subtracts(lake: Lake, cluster: str, at: datetime) -> bool | None:
    """Whether this Slurm prints exit statuses above 128 less 128 (before 25.11). None if its version was never read."""
    rows = lake.read("settings", ["observed_at", "key", "value"], cluster=cluster)
    rows = rows.filter(pc.equal(pc.utf8_upper(rows["key"]), "SLURM_VERSION"))
    told = sorted((r["observed_at"], r["value"] or "") for r in rows.to_pylist())
    before = [t for t in told if t[0] <= at] or told[:1]
    found = re.match(r"(\d{1,3})\.(\d{1,2})", before[-1][1]) if before else None
    return None if found is None else (int(found[1]), int(found[2])) < (25, 11)


def signs_of(
    row: Mapping[str, Any],
    *,
    subtracting: bool | None = None,
    steps: Iterable[Mapping[str, Any]] = (),
    events: Iterable[NodeEvent] = (),
    peers: bool = False,
    memory: float | None = None,
) -> Signs:
    """The signs of a row of ``jobs`` (missing columns are unknown). ``memory``: highest share of its memory, where measured better
    than by the steps' MaxRSS."""
    steps = list(steps)
    worst = _worst(steps)
    if memory is None:
        memory = memory_share(row, steps)
        alone = bool(steps) and (row.get("nodes_alloc") or 0) == 1 and all((s.get("tasks") or 2) == 1 for s in steps)
    else:
        alone = True
    start, elapsed = row.get("start"), row.get("elapsed_s")
    ran = bool(row.get("node_list") or (elapsed or 0) > 0 or (row.get("nodes_alloc") or 0) > 0)
    kinds = _kinds(events, row)
    by, uid = row.get("cancelled_by"), row.get("uid")
    return Signs(
        state=_state(row.get("state")),
        status=row.get("exit_code"),
        signal=row.get("exit_signal"),
        derived_status=row.get("derived_exit_code"),
        derived_signal=row.get("derived_exit_signal"),
        subtracts=subtracting,
        reason=row.get("reason"),
        started=start is not None and ran,
        quick=elapsed is not None and elapsed < 120,
        near_limit=_near(elapsed, row.get("limit_s")),
        memory=None
        if memory is None
        else "at"
        if memory >= AT
        else "near"
        if memory >= NEAR
        else "below"
        if memory < BELOW and alone
        else None,
        cancelled=None if by is None else "owner" if by == uid else "root" if by == 0 else "other" if uid is not None else None,
        oom_step=any(s.get("state") == "OUT_OF_MEMORY" or s.get("exit_signal") == 125 for s in steps),
        step=worst,
        node_event=next((k for k in ("down", "fault", "after", "drain") if k in kinds), None),
        peers=peers,
    )


def _kinds(events: Iterable[NodeEvent], row: Mapping[str, Any]) -> set[str]:
    """A node that goes down after the end was there to tell of it, which speaks less for the node; a shutdown kills its jobs some
    seconds before."""
    end = row.get("end")
    killed = row.get("exit_signal") in (9, 15) or row.get("exit_code") in (9, 15, 137, 143)
    slack = timedelta(seconds=60 if killed else 5)
    out: set[str] = set()
    for event in events:
        kind = event.kind
        late = end is not None and event.start > end + slack
        if kind is not None:
            out.add(kind if kind == "drain" or not late else "after")
    return out


def _state(text: str | None) -> str:
    try:
        return parse_state(text).base if text else "UNKNOWN"
    except ParseError:
        return "UNKNOWN"


def _near(elapsed: float | None, limit: float | None) -> bool | None:
    if elapsed is None or not limit:
        return None
    return elapsed >= min(0.98 * limit, max(limit - 60.0, 0.9 * limit))


def memory_share(row: Mapping[str, Any], steps: Iterable[Mapping[str, Any]]) -> float | None:
    """The highest MaxRSS over the memory of the job: a lower bound of what it used."""
    have = row.get("mem_alloc_bytes") or row.get("mem_req_bytes")
    peaks = [p for p in (row.get("max_rss_bytes"), *(s.get("max_rss_bytes") for s in steps)) if p]
    # A task sees the memory of its own node only.
    return None if not have or not peaks else max(peaks) / (have / max(1, row.get("nodes_alloc") or 1))


def _worst(steps: Iterable[Mapping[str, Any]]) -> Step | None:
    """The step that tells most: the last srun step that failed, else the batch step."""
    failed = [
        s for s in steps if s.get("state") not in (None, "COMPLETED", "RUNNING", "PENDING") or s.get("exit_signal") or s.get("exit_code")
    ]
    named = [(s, s["step"] if s["step"] in ("batch", "extern", "interactive") else "step") for s in failed]
    for kind in ("step", "interactive", "batch"):
        of_kind = [s for s, k in named if k == kind]
        if of_kind:
            last = of_kind[-1]
            return Step(kind, last.get("state") or "", last.get("exit_code"), last.get("exit_signal"))
    return None
