"""Failures of the platform, grouped by node and time: "gpu07: 9 of 11 jobs died within 2 min".

A node is named if Slurm says so (NODE_FAIL and the like), or if more jobs died on it than by the fate of the same users' same
kinds of jobs on other nodes at about that time. One user's broken script dies everywhere and names no node.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from queuecast.answers.failures.rows import NodeEvent, ended_rows, node_events, nodes_in
from queuecast.answers.failures.stats import Stratum, exact_tail, stretches
from queuecast.answers.wait import iso
from queuecast.slurmtext.states import INFRASTRUCTURE_STATES

if TYPE_CHECKING:
    from queuecast.answers.viewer import Viewer
    from queuecast.store.lake import Lake

LEAST_DEATHS = 3
LEAST_USERS = 2
SURE = 0.01
"""Chance, over all stretches looked at, of naming a node at all if nodes made no difference."""
EARLY_S = 300.0
PEERS = timedelta(hours=12)
"""Like jobs elsewhere count that ended so long before or after."""
GAP = timedelta(hours=12)
BURST = timedelta(hours=1)
"""Jobs of one kind sent closer together than that share their fate."""
SUBMITTED = timedelta(days=14)
"""Jobs that waited and ran longer than that are few, and finding them would mean to read months."""
TOGETHER = timedelta(minutes=10)
MANY_NODES = 3
WIDEST = 64
"""Jobs on more nodes say little of any one of them."""
_COLUMNS = ("job_id", "job_id_text", "name", "user", "state", "submit", "start", "end", "elapsed_s", "node_list", "array_job_id")
DEATHS = frozenset({"FAILED"}) | INFRASTRUCTURE_STATES
"""Ends that may be a node's doing."""
_LIVED = frozenset({"COMPLETED", "TIMEOUT", "OUT_OF_MEMORY"})
_DIGITS = re.compile(r"\d+")
Basis = Literal["slurm", "event", "peers"]


@dataclass(frozen=True)
class FailureGroup:
    """``failed`` of ``ended`` jobs that ended on ``nodes`` between ``start`` and ``end`` (UTC) died; ``expected`` would have if the
    nodes were like others (None: not compared). ``within_s``: nine in ten of those that died ran at most so long.

    ``basis``: slurm (its own state says so), event (a node event in that time, and worse than its peers), peers (worse than its
    peers alone). ``p_value``: chance of so many deaths or more, times the stretches looked at; None for ``slurm``. ``jobs``: those
    that the viewer may see.
    """

    nodes: tuple[str, ...]
    start: datetime
    end: datetime
    failed: int
    ended: int
    expected: float | None
    within_s: float | None
    users: int
    kinds: int
    basis: Basis
    p_value: float | None
    events: tuple[NodeEvent, ...] = ()
    jobs: tuple[str, ...] = ()
    members: frozenset[tuple[int, datetime]] = field(default=frozenset(), repr=False)

    def as_json(self) -> dict[str, Any]:
        """Plain values; times ISO 8601 UTC."""
        return {
            "nodes": list(self.nodes),
            "start": iso(self.start),
            "end": iso(self.end),
            "failed": self.failed,
            "ended": self.ended,
            "expected": None if self.expected is None else round(self.expected, 2),
            "within_s": self.within_s,
            "users": self.users,
            "kinds": self.kinds,
            "basis": self.basis,
            "p_value": self.p_value,
            "events": [
                {"node": e.node, "start": iso(e.start), "end": iso(e.end), "state": e.state, "reason": e.reason} for e in self.events
            ],
            "jobs": list(self.jobs),
        }


_Kind = tuple[str, str]
_Died = Mapping[tuple[int, datetime], bool]


@dataclass(frozen=True)
class _Job:
    key: tuple[int, datetime]
    text: str
    user: str | None
    kind: _Kind
    burst: tuple[int, int]
    end: datetime
    elapsed: float | None
    nodes: tuple[str, ...]
    died: bool
    told: bool


def platform_groups(
    lake: Lake, cluster: str, since: datetime, at: datetime, viewer: Viewer, *, nodes: frozenset[str] | None = None
) -> tuple[FailureGroup, ...]:
    """Groups that ended in ``[since, at]``, by start. Counts are of all jobs; job ids are those that ``viewer`` may see, and
    reasons of node events only for who sees all. ``nodes``: only groups of these (cheaper; the bar is the same)."""
    rows = ended_rows(lake, cluster, since - PEERS, at, _COLUMNS, back=SUBMITTED)
    known = pc.and_(pc.is_valid(rows["node_list"]), pc.is_valid(rows["start"]))
    rows = rows.filter(pc.and_(known, pc.is_in(rows["state"], value_set=pa.array(sorted(DEATHS | _LIVED)))))
    deaths = pc.sum(pc.is_in(rows["state"], value_set=pa.array(sorted(DEATHS)))).as_py() or 0
    if nodes is not None:
        here = [name for name in pc.unique(rows["node_list"]).to_pylist() if not nodes.isdisjoint(nodes_in(name))]
        there = rows.filter(pc.is_in(rows["node_list"], value_set=pa.array(here, pa.string())))
        rows = rows.filter(pc.fill_null(pc.is_in(rows["user"], value_set=pc.unique(there["user"])), False))
    jobs = jobs_of(rows.select([c for c in _COLUMNS if c != "start"]).to_pylist())
    events = node_events(lake, cluster, since - PEERS, at)
    found = [g for g in groups_of(jobs, events, nodes=nodes, deaths=deaths) if g.end >= since]
    owners = {j.key: (j.text, j.user) for j in jobs}
    return tuple(_seen_by(g, viewer, owners) for g in found)


def kind_of(name: str | None) -> str:
    """A job's name without what numbers it."""
    return _DIGITS.sub("#", (name or "").casefold())[:80]


def jobs_of(rows: Iterable[Mapping[str, Any]]) -> list[_Job]:
    """Started attempts on at most 64 known nodes, with the burst that each was sent in."""
    sent: dict[_Kind, tuple[datetime, int]] = {}
    out = []
    for row in sorted(rows, key=lambda r: (r["submit"], r["job_id"])):
        nodes = nodes_in(row["node_list"])
        if not 0 < len(nodes) <= WIDEST:
            continue
        kind = (row["user"] or "", kind_of(row["name"]))
        last, number = sent.get(kind, (None, 0))
        if last is not None and row["submit"] - last > BURST:
            number += 1
        sent[kind] = (row["submit"], number)
        burst = (row["array_job_id"], -1) if row["array_job_id"] is not None else (0, number)
        key = (row["job_id"], row["submit"])
        died, told = row["state"] in DEATHS, row["state"] in INFRASTRUCTURE_STATES
        text = row["job_id_text"] or str(row["job_id"])
        out.append(_Job(key, text, row["user"], kind, burst, row["end"], row["elapsed_s"], nodes, died, told))
    return out


def groups_of(
    jobs: Iterable[_Job], events: Mapping[str, Sequence[NodeEvent]], *, nodes: frozenset[str] | None = None, deaths: int = 0
) -> list[FailureGroup]:
    """Groups among ended jobs, by start. Deterministic. With ``nodes`` only theirs, with ``deaths`` counted over all nodes."""
    ordered = sorted(jobs, key=lambda j: (j.end, j.key))
    found = [g for g in _told(ordered, events) if nodes is None or not nodes.isdisjoint(g.nodes)]
    # Broken nodes kill at once, and few jobs die so early elsewhere: deaths of the first minutes are looked at apart as well.
    for dead in ([j.died for j in ordered], [j.died and j.elapsed is not None and j.elapsed <= EARLY_S for j in ordered]):
        died = dict(zip((j.key for j in ordered), dead, strict=True))
        # A stretch begins with a death, so there are no more of them than deaths; and this is done twice.
        looked_at = 2 * max(deaths, sum(len(j.nodes) for j in ordered if died[j.key]))
        found += _worse(died, ordered, events, nodes, looked_at)
    return _together(sorted(found, key=lambda g: (g.start, g.nodes)))


def _worse(
    died: _Died, jobs: list[_Job], events: Mapping[str, Sequence[NodeEvent]], nodes: frozenset[str] | None, looked_at: int
) -> Iterable[FailureGroup]:
    by_node: dict[str, list[_Job]] = {}
    by_kind: dict[_Kind, list[_Job]] = {}
    for job in jobs:
        by_kind.setdefault(job.kind, []).append(job)
        for node in job.nodes:
            by_node.setdefault(node, []).append(job)
    for node in sorted(by_node if nodes is None else nodes & by_node.keys()):
        yield from _of_node(node, died, by_node[node], by_kind, events.get(node, ()), looked_at)


def _of_node(
    node: str, died: _Died, jobs: list[_Job], by_kind: Mapping[_Kind, list[_Job]], events: Sequence[NodeEvent], looked_at: int
) -> Iterable[FailureGroup]:
    """Stretches of this node in which most jobs died and like ones elsewhere did not."""
    runs: list[list[_Job]] = [[]]
    for job in jobs:
        if runs[-1] and job.end - runs[-1][-1].end > GAP:
            runs.append([])
        runs[-1].append(job)
    parts = [run[a:b] for run in runs for a, b in stretches([1.0 if died[j.key] else -1.0 for j in run])]
    parts = [part for part in parts if sum(died[j.key] for j in part) >= LEAST_DEATHS]
    for part in parts:
        dead = [j for j in part if died[j.key]]
        strata = _strata(node, died, part, by_kind)
        worse = {kind[0] for kind, s in strata if s.informative and s.died > s.expected}
        if len(worse) < LEAST_USERS:
            continue
        near = tuple(e for e in events if e.kind is not None and part[0].end - TOGETHER <= e.start <= part[-1].end + TOGETHER)
        # A stretch that an event points out was not picked out of all of them by its deaths.
        chance = min(1.0, exact_tail(s for _kind, s in strata) * (2 * len(parts) if near else looked_at))
        if chance > SURE:
            continue
        seen, told = sum(s.died for _kind, s in strata), sum(s.expected for _kind, s in strata)
        expected = len(dead) * told / seen if seen else None
        yield _group((node,), dead, len(part), expected, "event" if near else "peers", chance, near)


def _strata(node: str, died: _Died, part: list[_Job], by_kind: Mapping[_Kind, list[_Job]]) -> list[tuple[_Kind, Stratum]]:
    """What can be compared. Jobs sent together (an array, or within an hour) share their fate: they are compared among themselves
    if some ran elsewhere; else they count as one, beside other such bursts of the kind."""
    low, high = part[0].end - PEERS, part[-1].end + PEERS
    out = []
    for kind in sorted({j.kind for j in part}):
        like = by_kind[kind]
        first, behind = bisect_left(like, low, key=lambda j: j.end), bisect_right(like, high, key=lambda j: j.end)
        here, others = _bursts(j for j in part if j.kind == kind), _bursts(j for j in like[first:behind] if node not in j.nodes)
        for burst in sorted(here.keys() & others.keys()):
            out.append((kind, Stratum(*_count(died, here[burst]), *_count(died, others[burst]))))
        alone = [_mostly(died, jobs) for burst, jobs in here.items() if burst not in others]
        beside = [_mostly(died, jobs) for burst, jobs in others.items() if burst not in here]
        if alone:
            out.append((kind, Stratum(sum(alone), len(alone), sum(beside), len(beside))))
    return out


def _bursts(jobs: Iterable[_Job]) -> dict[tuple[int, int], list[_Job]]:
    out: dict[tuple[int, int], list[_Job]] = {}
    for job in jobs:
        out.setdefault(job.burst, []).append(job)
    return out


def _count(died: _Died, jobs: list[_Job]) -> tuple[int, int]:
    return sum(died[j.key] for j in jobs), len(jobs)


def _mostly(died: _Died, jobs: list[_Job]) -> bool:
    dead, ran = _count(died, jobs)
    return 2 * dead > ran


def _told(jobs: list[_Job], events: Mapping[str, Sequence[NodeEvent]]) -> Iterable[FailureGroup]:
    """Deaths that Slurm itself lays on the node. Of a job on several nodes, those with an event are named, else all of them."""
    runs: dict[tuple[str, ...], list[tuple[_Job, tuple[NodeEvent, ...]]]] = {}
    groups: list[FailureGroup] = []
    for job in jobs:
        if not job.told:
            continue
        near = tuple(
            e
            for n in job.nodes
            for e in events.get(n, ())
            if e.kind is not None and job.end - TOGETHER * 2 <= e.start <= job.end + TOGETHER
        )
        nodes = tuple(sorted({e.node for e in near})) or job.nodes
        run = runs.setdefault(nodes, [])
        if run and job.end - run[-1][0].end > TOGETHER:
            groups.append(_of_run(nodes, run))
            run.clear()
        run.append((job, near))
    return [*groups, *(_of_run(nodes, run) for nodes, run in runs.items() if run)]


def _of_run(nodes: tuple[str, ...], run: list[tuple[_Job, tuple[NodeEvent, ...]]]) -> FailureGroup:
    near = tuple(dict.fromkeys(e for _job, of in run for e in of))
    return _group(nodes, [job for job, _events in run], len(run), None, "slurm", None, near)


def _group(
    nodes: tuple[str, ...],
    dead: list[_Job],
    ended: int,
    expected: float | None,
    basis: Basis,
    chance: float | None,
    events: tuple[NodeEvent, ...],
) -> FailureGroup:
    ran = sorted(j.elapsed for j in dead if j.elapsed is not None)
    return FailureGroup(
        nodes=nodes,
        start=min(j.end for j in dead),
        end=max(j.end for j in dead),
        failed=len(dead),
        ended=ended,
        expected=expected,
        within_s=ran[-(-9 * len(ran) // 10) - 1] if ran else None,
        users=len({j.user for j in dead}),
        kinds=len({j.kind for j in dead}),
        basis=basis,
        p_value=chance,
        events=events,
        members=frozenset(j.key for j in dead),
    )


def _together(groups: list[FailureGroup]) -> list[FailureGroup]:
    """One group of what Slurm says and what the peers show of a node; one group where three nodes or more fail at once."""
    out: list[FailureGroup] = []
    for group in groups:
        same = next((i for i, g in enumerate(out) if g.nodes == group.nodes and group.start <= g.end + TOGETHER), None)
        if same is None:
            out.append(group)
        else:
            out[same] = _merged(out[same], group)
    runs: list[list[FailureGroup]] = []
    for group in out:
        if runs and group.start - runs[-1][-1].start <= TOGETHER:
            runs[-1].append(group)
        else:
            runs.append([group])
    merged: list[FailureGroup] = []
    for run in runs:
        if len({n for g in run for n in g.nodes}) < MANY_NODES or len(run) < MANY_NODES:
            merged += run
            continue
        whole = run[0]
        for other in run[1:]:
            whole = _merged(whole, other)
        merged.append(whole)
    return merged


def _merged(one: FailureGroup, two: FailureGroup) -> FailureGroup:
    members = one.members | two.members
    failed = len(members)
    chances = [p for p in (one.p_value, two.p_value) if p is not None]
    stronger = one if one.basis == "slurm" else two if two.basis == "slurm" else one
    told = [g.expected for g in (one, two) if g.expected is not None]
    ran = [g.within_s for g in (one, two) if g.within_s is not None]
    same = one.nodes == two.nodes  # then both count the same jobs
    ended = max(one.ended, two.ended) if same else one.ended + two.ended - len(one.members & two.members)
    return replace(
        stronger,
        nodes=tuple(sorted({*one.nodes, *two.nodes})),
        start=min(one.start, two.start),
        end=max(one.end, two.end),
        failed=failed,
        ended=max(ended, failed),
        expected=(max(told) if same else sum(told)) if told else None,
        within_s=max(ran) if ran else None,
        users=max(one.users, two.users),
        kinds=max(one.kinds, two.kinds),
        p_value=min(chances) if chances else None,
        events=tuple(dict.fromkeys((*one.events, *two.events))),
        members=members,
    )


def _seen_by(group: FailureGroup, viewer: Viewer, owners: Mapping[tuple[int, datetime], tuple[str, str | None]]) -> FailureGroup:
    mine = tuple(owners[key][0] for key in sorted(group.members, key=lambda k: (k[1], k[0])) if viewer.may_see(owners[key][1]))
    events = group.events if viewer.sees_all else tuple(e._replace(reason="") for e in group.events)
    return replace(group, jobs=mine, events=events)
