"""Forward from a state: the same drawn futures for every candidate, one candidate at a time put into the queue."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from queuecast.errors import UsageError
from queuecast.i18n import _
from queuecast.policy.tables import Policy
from queuecast.twin.arrays import PENDING, WAITING, Clock, Floats, Ints, Jobs, Rules
from queuecast.twin.candidates import Candidate
from queuecast.twin.cluster import MIB, number, parameters, seconds
from queuecast.twin.past import Past
from queuecast.twin.state import TwinState
from queuecast.twin.work import Frame, Work, code, rules_of, select

GROWTH_MAIN, GROWTH_BACKFILL = 0.01, 0.04
"""The further ahead, the rarer the passes: steps grow by this share of the time from the beginning."""
DEPTH, RESERVE = 100, 4
"""Records tested and reservations made per partition in a backfill cycle of a forward run."""
NO_ARRIVALS = Past((), {}, 0.0, 0.0)


@dataclass(frozen=True)
class Forward:
    """``starts[c, f]``: seconds from the state's instant to the start of candidate c in future f, inf if not within the
    horizon; of an array the first task's. ``runs[c, f]``: its run time in seconds, as given."""

    starts: Floats
    runs: Floats
    at: float
    horizon_s: float
    futures: int
    seed: int
    unknown: tuple[str, ...]


def forward(
    state: TwinState,
    candidates: Sequence[Candidate],
    runs: Floats,
    *,
    arrivals: Past | None = None,
    futures: int = 200,
    seed: int = 0,
    horizon_s: float = 14 * 86400.0,
    replaces: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Forward:
    """Play ``futures`` drawn futures for each candidate.

    ``runs``: run times of the candidates in seconds, [candidate] or [candidate, future]. ``arrivals``: what is submitted
    later, and how long jobs run (None: the state's own past; ``NO_ARRIVALS``: nothing comes). ``replaces``: raw id of the
    pending job (with all tasks of its array record) that the candidate stands for. ``progress(done, all)`` is called
    after each future. Raises ``UsageError`` for a candidate without a known partition.
    """
    past = state.past if arrivals is None else arrivals
    draws = state.past if arrivals is NO_ARRIVALS else past
    given = np.broadcast_to(np.asarray(runs, np.float64).reshape(len(candidates), -1), (len(candidates), futures))
    base = [w for w in state.works if not (w.id == replaces and w.status == PENDING)] if replaces is not None else list(state.works)
    mine = [work_of(state.policy, state.frame, c, state.at) for c in candidates]
    everything = [*base, *(w for works in mine for w in works), *past.works]
    jobs = code(state.frame, everything)
    rules = rules_of(state.frame)
    first = np.r_[len(base), len(base) + np.cumsum([len(w) for w in mine])].astype(np.int64)
    shared = draws.draw_runs(base, state.at, futures, np.random.default_rng([seed, 1]))
    starts = np.full((len(candidates), futures), np.inf)
    clock = clock_of(state.policy, state.at, horizon_s)
    come_run = np.array([w.run for w in past.works])
    fill = np.isnan(come_run)
    unknown = [w for w, missing in zip(past.works, fill, strict=True) if missing]
    for f in range(futures):
        later = come_run.copy()
        if unknown:
            later[fill] = draws.draw_runs(unknown, state.at, 1, np.random.default_rng([seed, 2, f]))[:, 0]
        rows, stamps = past.draw_arrivals(state.at, horizon_s, np.random.default_rng([seed, 3, f]))
        for c in range(len(candidates)):
            waiting = np.arange(first[c], first[c + 1])
            play = _assemble(jobs, len(base), shared[:, f], waiting, given[c, f], rows, stamps, later, int(first[-1]))
            start = _play(state, play[0], rules, clock._replace(stop_job=play[1]))
            if np.isfinite(start):
                starts[c, f] = max(0.0, start - state.at)
        if progress is not None:
            progress(f + 1, futures)
    return Forward(starts, np.array(given), state.at, horizon_s, futures, seed, state.unknown)


def _assemble(
    jobs: Jobs, base: int, base_runs: Floats, waiting: Ints, run: float, rows: Ints, stamps: Floats, later: Floats, offset: int
) -> tuple[Jobs, int]:
    """Jobs of one future in the order of submission, and the place of the candidate."""
    came = offset + rows
    pick = np.r_[np.arange(base), waiting, came]
    submit = np.r_[jobs.submit[:base], jobs.submit[waiting], stamps]
    length = np.r_[base_runs, np.full(len(waiting), run), later[rows]]
    order = np.argsort(submit, kind="stable")
    place = int(np.flatnonzero(order == base)[0]) if len(waiting) else -1
    age = np.r_[jobs.age_from[:base], jobs.submit[waiting], stamps]
    status = np.r_[jobs.status[:base], np.full(len(waiting) + len(came), WAITING)]
    new = select(jobs, pick[order], submit=submit[order], age_from=age[order], run=length[order], status=status[order])
    after = np.full(len(order), -1, np.int64)
    where = np.empty(len(order), np.int64)
    where[order] = np.arange(len(order))
    linked = np.flatnonzero(jobs.after[:base] >= 0)
    keep = linked[jobs.after[linked] < base]
    after[where[keep]] = where[jobs.after[keep]]
    return new._replace(after=after), place


def _play(state: TwinState, jobs: Jobs, rules: Rules, clock: Clock) -> float:
    from queuecast.twin.loop import run  # numba is imported here, not by those who only read states

    sim = run(state.machine, jobs, rules, clock)
    return float(sim.first[clock.stop_job])


def clock_of(policy: Policy, begin: float, length: float, *, growth: bool = True) -> Clock:
    """When passes happen in ``length`` seconds from ``begin``, by SchedulerParameters; with ``growth`` ever more rarely."""
    found = parameters(policy)
    step = max(1.0, number(found, "batch_sched_delay", 3.0))
    interval = max(1.0, number(found, "bf_interval", 30.0))
    window = number(found, "bf_window", 1440.0) * 60
    return Clock(
        begin,
        begin + length,
        ticks(begin, length, max(step, 10.0) if growth else step, GROWTH_MAIN if growth else 0.0),
        ticks(begin, length, interval * 1.2, GROWTH_BACKFILL if growth else 0.0),
        max(step, number(found, "sched_interval", 60.0)),
        max(seconds(policy, "PriorityCalcPeriod", 300.0), 600.0 if growth else 0.0),
        seconds(policy, "KillWait", 30.0),
        121.0,
        0.0 if growth else 5.0,
        int(number(found, "default_queue_depth", 100)),
        int(number(found, "partition_job_depth", 0)),
        window,
        max(1.0, number(found, "bf_resolution", 60.0)),
        min(int(number(found, "bf_max_job_test", 500)), DEPTH if growth else 10**9),
        int(number(found, "bf_max_job_array_resv", 20)),
        200 if growth else 1000,
        RESERVE if growth else 10**9,
        0.0,
        _groups_end_late(policy),
        -1,
    )


def _groups_end_late(policy: Policy) -> bool:
    """Whether this Slurm is older than 25.05, or not told: a plan then starts when the last job of the group ends."""
    found = re.match(r"(\d\d)\.(\d\d)", policy.settings.get("slurm_version", ""))
    return found is None or (int(found[1]), int(found[2])) < (25, 5)


def ticks(begin: float, length: float, step: float, growth: float) -> Floats:
    """Instants from ``begin`` on: every ``step`` seconds, or by ``growth`` of the time gone where that is more."""
    if growth <= 0:
        return begin + np.arange(0.0, length + step, step)
    even = np.arange(0.0, min(length, step / growth) + step, step)
    last = float(even[-1])
    if last >= length:
        return begin + even
    more = int(np.ceil(np.log(length / last) / np.log1p(growth))) + 1
    out: Floats = begin + np.r_[even, last * (1 + growth) ** np.arange(1, more + 1)]
    return out


def work_of(policy: Policy, frame: Frame, candidate: Candidate, at: float) -> list[Work]:
    """The tasks of a candidate, with the defaults of association, partition and memory filled in."""
    parts = candidate.partitions or ((policy.default_partition.name,) if policy.default_partition else ())
    known = tuple(p for p in parts if p.casefold() in frame.partitions)
    if not known:
        raise UsageError(
            _("no partition {names} is known").format(names=", ".join(parts) or "-"),
            _("name one of: {names}").format(names=", ".join(frame.partitions)),
        )
    account, qos = candidate.account, candidate.qos
    own = policy.associations_of(candidate.user, account)
    if account is None and own:
        account = own[0].account
    if qos is None:
        qos = next((a.default_qos for a in policy.chain(candidate.user, account) if a.default_qos), None)
    rule = policy.partition(known[0])
    mem = candidate.mem_bytes
    if mem is None:
        per_cpu = (
            rule.def_mem_per_cpu_bytes
            if rule and rule.def_mem_per_cpu_bytes
            else number({"m": policy.settings.get("defmempercpu", "0")}, "m", 0.0) * MIB
        )
        mem = int(per_cpu * candidate.cpus)
    work = Work(
        id=-1,
        submit=at + candidate.delay_s,
        partitions=known,
        limit=float(candidate.limit_s),
        nodes=candidate.nodes,
        cpus=float(candidate.cpus),
        mem_mib=mem / MIB,
        gpus=float(candidate.gpus),
        gpu_type=candidate.gpu_type.casefold() if candidate.gpu_type else None,
        user=candidate.user,
        account=account,
        qos=qos,
    )
    return [replace(work) for _n in range(max(1, candidate.array_tasks))]


__all__ = ["NO_ARRIVALS", "Forward", "clock_of", "forward", "ticks", "work_of"]
