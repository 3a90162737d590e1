"""Recorded submissions played again from their beginning to their end, to see how far the replay's starts are from the real ones."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from queuecast.errors import ParseError
from queuecast.policy.reservations import Reservation
from queuecast.policy.tables import Policy, policy_at, tres_amounts
from queuecast.slurmtext.hostlist import expand_hostlist
from queuecast.store.files import floats
from queuecast.twin.arrays import Clock, Floats, Ints
from queuecast.twin.cluster import MIB
from queuecast.twin.shares import tree_at
from queuecast.twin.state import frame_of, with_weights
from queuecast.twin.work import FOREVER, Frame, Work, code, rules_of, throttle_of

if TYPE_CHECKING:
    from queuecast.store.lake import Lake

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBERS = (
    "job_id",
    "array_job_id",
    "array_task",
    "array_throttle",
    "array_tasks",
    "limit_s",
    "nodes_req",
    "cpus_req",
    "mem_req_bytes",
    "gpus_req",
)
_TEXTS = ("user", "account", "partition", "qos", "gpu_type_req", "state", "reservation", "scheduled_by", "node_list", "submit_line")
_TIMES = ("submit", "eligible", "start", "end")


@dataclass(frozen=True)
class Recording:
    """Submissions of a recording in order. ``started``: the first recorded start in seconds since 1970 UTC, inf for none.

    ``attempts[i]``: (submit, eligible, start, end, state) of each attempt. ``by``: 1 main, 2 backfill, 0 not told.
    """

    frame: Frame
    works: tuple[Work, ...]
    started: Floats
    by: Ints
    attempts: tuple[tuple[tuple[float, float, float, float, str], ...], ...]
    nodes: tuple[tuple[str, ...], ...]  # of the first attempt
    begin: float
    end: float


@dataclass(frozen=True)
class Replayed:
    """``starts``: first start in the replay, inf for none; ``last``: the last one; ``by`` as in ``Recording``."""

    starts: Floats
    last: Floats
    ends: Floats
    by: Ints
    fair: Floats


def replay(frame: Frame, works: Sequence[Work], clock: Clock) -> Replayed:
    """Play the jobs (in the order of submission, with their run times) on the machine of ``frame`` by its rules."""
    from queuecast.twin.loop import run

    jobs = code(frame, works)
    sim = run(frame.machine, jobs, rules_of(frame), clock)
    return Replayed(sim.first, sim.start, sim.end, sim.how, sim.fair)


def recording(lake: Lake, cluster: str) -> Recording:
    """All jobs of a lake with the configuration as read last, outages from the events, reservations also past ones.

    A requeued job is one submission; its run time is that of its last attempt if that came to an end, else its limit.
    """
    rows = lake.read("jobs", [*_NUMBERS, *_TEXTS, *_TIMES], cluster=cluster)
    rows = rows.sort_by([("submit", "ascending"), ("job_id", "ascending")])
    times = {c: floats(rows[c]) / 1e6 for c in _TIMES}
    cols = {c: rows[c].to_pylist() for c in (*_NUMBERS, *_TEXTS)}
    by_job: dict[int, list[int]] = {}
    for i, job in enumerate(cols["job_id"]):
        by_job.setdefault(job, []).append(i)
    entries: list[tuple[Work, float, int, tuple[tuple[float, float, float, float, str], ...]]] = []
    placed: dict[int, tuple[str, ...]] = {}
    last = max(float(np.nanmax(times[c])) for c in _TIMES)
    for rows_of in by_job.values():
        first, final = rows_of[0], rows_of[-1]
        tries = tuple((*(float(times[c][i]) for c in _TIMES), cols["state"][i]) for i in rows_of)
        entries += _entries(cols, first, final, tries)
        try:
            placed[cols["job_id"][first]] = expand_hostlist(cols["node_list"][first] or "") or ()
        except ParseError:
            placed[cols["job_id"][first]] = ()
    # the raw id of the array itself goes to its last task: tasks are ordered by their index
    entries.sort(key=lambda e: (e[0].submit, e[0].array or e[0].id, e[0].task))
    at = EPOCH + timedelta(seconds=last)
    policy = _with_past_reservations(lake, cluster, policy_at(lake, cluster, at), at)
    policy = with_weights(lake, cluster, policy, at)
    tree, _ = tree_at(lake, cluster, at, policy)
    changes = _outages(lake, cluster)
    frame = frame_of(policy, replace(tree, usage=np.zeros(len(tree.usage)), fair=np.where(tree.is_user, 1.0, 0.0)), changes=changes)
    frame.machine.up[:] = True
    works = [w for w, *_ in entries]
    return Recording(
        frame,
        tuple(works),
        np.array([s for _, s, _, _ in entries]),
        np.array([b for _, _, b, _ in entries], np.int64),
        tuple(a for *_, a in entries),
        tuple(placed[w.id] for w in works),
        works[0].submit if works else last,
        last,
    )


def _entries(
    cols: dict[str, list[Any]], first: int, final: int, tries: tuple[tuple[float, float, float, float, str], ...]
) -> list[tuple[Work, float, int, tuple[tuple[float, float, float, float, str], ...]]]:
    limit = float(cols["limit_s"][first] or FOREVER)
    _, _, start, end, state = tries[-1]
    run, cancel = limit, np.inf
    if np.isfinite(start) and np.isfinite(end) and state not in ("PREEMPTED", "CANCELLED", "NODE_FAIL"):
        run = end - start
    elif state == "CANCELLED" and np.isfinite(end):
        cancel = end
    work = Work(
        id=cols["job_id"][first],
        submit=tries[0][0],
        partitions=tuple((cols["partition"][first] or "").split(",")),
        limit=limit,
        run=run,
        nodes=int(cols["nodes_req"][first] or 1),
        cpus=float(cols["cpus_req"][first] or 1),
        mem_mib=float(cols["mem_req_bytes"][first] or 0) / MIB,
        gpus=float(cols["gpus_req"][first] or 0),
        gpu_type=cols["gpu_type_req"][first],
        user=cols["user"][first],
        account=cols["account"][first],
        qos=cols["qos"][first],
        array=cols["array_job_id"][first],
        throttle=throttle_of(cols["array_throttle"][first], cols["array_job_id"][first], cols["submit_line"][first]),
        task=10**9 if cols["array_task"][first] is None else int(cols["array_task"][first]),
        cancel=float(cancel),
    )
    real = tries[0][2]
    by = {"main": 1, "backfill": 2}.get(cols["scheduled_by"][first] or "", 0)
    tasks = int(cols["array_tasks"][first] or 1) if cols["state"][final] == "PENDING" else 1
    return [(work, real if np.isfinite(real) else np.inf, by, tries)] * tasks


def _with_past_reservations(lake: Lake, cluster: str, policy: Policy, at: datetime) -> Policy:
    """Reservations that are over by now too; where the nodes are not told, all if the CPUs say so, else those seen reserved."""
    rows = lake.read("reservations", cluster=cluster)
    spans = [floats(rows[c]) / 1e6 for c in ("start", "end")]
    found: dict[str, Reservation] = {}
    cpus = sum(n.cpus or 0 for n in policy.nodes)
    for row, start, end in zip(rows.drop_columns(["start", "end", "observed_at"]).to_pylist(), *spans, strict=True):
        name = row["reservation"]
        nodes: frozenset[str] = frozenset()
        with suppress(ParseError):
            nodes = frozenset(expand_hostlist(row["node_list"] or "") or ())
        if not nodes and tres_amounts(row["tres"]).get("cpu") == cpus:
            nodes = frozenset(n.name for n in policy.nodes)
        if not nodes:
            nodes = _seen_reserved(lake, cluster, start, end, tres_amounts(row["tres"]).get("cpu") or 0, policy)
        old = found.get(name)
        if old is not None and old.nodes:
            nodes = old.nodes
        flags = frozenset((row["flags"] or "").upper().split(","))
        found[name] = Reservation(
            name, EPOCH + timedelta(seconds=start), EPOCH + timedelta(seconds=end), flags, nodes, row["partition"], frozenset(), frozenset()
        )
    return replace(policy, reservations=tuple(found.values()))


def _seen_reserved(lake: Lake, cluster: str, start: float, end: float, cpus: int, policy: Policy) -> frozenset[str]:
    since, until = EPOCH + timedelta(seconds=start), EPOCH + timedelta(seconds=end)
    rows = lake.read("nodes", ["node", "state_flags", "observed_at"], cluster=cluster, since=since, until=until)
    inside = floats(rows["observed_at"]) / 1e6
    seen: dict[str, int] = {}
    for name, flags, t in zip(rows["node"].to_pylist(), rows["state_flags"].to_pylist(), inside, strict=True):
        if start <= t < end and "RESERVED" in (flags or "").split(","):
            seen[name] = seen.get(name, 0) + 1
    size = {n.name: n.cpus or 0 for n in policy.nodes}
    return frozenset(n for n in seen if size.get(n) == cpus) or frozenset(seen)


def _outages(lake: Lake, cluster: str) -> list[tuple[float, str, bool]]:
    """Nodes down or drained by the events: (time, node, up)."""
    rows = lake.read("events", ["node", "state", "start", "end"], cluster=cluster)
    start, end = (floats(rows[c]) / 1e6 for c in ("start", "end"))
    out = []
    for i, (node, state) in enumerate(zip(rows["node"].to_pylist(), rows["state"].cast(pa.string()).to_pylist(), strict=True)):
        if node and state and any(w in state for w in ("DOWN", "DRAIN", "FAIL")):
            out.append((float(start[i]), node, False))
            if np.isfinite(end[i]):
                out.append((float(end[i]), node, True))
    return out


def pass_instants(starts: Floats, begin: float, end: float, step: float, gap: float) -> Floats:
    """When passes happened, from the starts they made: the first of each cluster of starts (``gap`` apart), the times between
    filled in evenly about every ``step`` seconds."""
    known = np.unique(starts[np.isfinite(starts)])
    if not len(known):
        return np.arange(begin, end, step)
    heads = known[np.r_[True, np.diff(known) > gap]]
    out = [np.arange(heads[0] - step, begin, -step)[::-1]]
    for a, b in pairwise(heads):
        n = max(1, round((b - a) / step))
        out.append(a + (b - a) * np.arange(n) / n)
    out.append(np.arange(heads[-1], end + step, step))
    return np.concatenate(out)
