"""Jobs for the replay: from rows with names to arrays with codes, and selections of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from queuecast.policy.tables import Policy
from queuecast.twin.arrays import L_CPU, L_GPU, L_JOBS, L_MEM, L_NODE, RUNNING, WAITING, Floats, Ints, Jobs, Machine, Rules
from queuecast.twin.cluster import BILLING_UNITS, LimitTable, per_job_reason, seconds, setting
from queuecast.twin.shares import Tree

FOREVER = 365 * 86400.0
"""What Slurm plans for a job without limit."""


@dataclass
class Work:
    """A job. ``cpus``, ``mem_mib`` and ``gpus`` of all its nodes together; times in seconds since 1970 UTC.

    ``static``: by partition, the part of the priority that stays (None: by the configuration's formula).
    ``array``: what its tasks share a throttle by. ``run`` nan: not known (to be drawn).
    """

    id: int
    submit: float
    partitions: tuple[str, ...]
    limit: float = FOREVER
    run: float = float("nan")
    nodes: int = 1
    cpus: float = 1
    mem_mib: float = 0
    gpus: float = 0
    gpu_type: str | None = None
    user: str | None = None
    account: str | None = None
    qos: str | None = None
    array: int | None = None
    throttle: float | None = None
    age_from: float | None = None
    cancel: float = float("inf")
    status: int = WAITING
    began: float = float("inf")
    node_list: tuple[str, ...] = ()
    static: Mapping[str, float] = field(default_factory=dict)
    nice: float = 0.0
    held: bool = False
    reservation: str | None = None
    features: str | None = None
    after: int = -1
    task: int = 10**9


@dataclass(frozen=True)
class Frame:
    """What jobs are coded against. ``unknown`` grows while coding."""

    policy: Policy
    machine: Machine
    node_names: tuple[str, ...]
    partitions: tuple[str, ...]
    types: tuple[str, ...]
    tree: Tree
    reservations: tuple[str, ...]
    qos: tuple[str, ...]
    limits: LimitTable
    arrays: dict[int, int]
    throttles: list[float]


_THROTTLE = re.compile(r"(?:--array[= ]|-a ?)\S*?%([0-9]{1,9})(?=\s|$)")


def throttle_of(told: float | None, array: int | None, submit_line: str | None) -> float | None:
    """How many tasks of an array may run at once: as told, else by the command line; None: any number, or not known."""
    if told is not None or array is None:
        return told
    found = _THROTTLE.search(submit_line or "")
    return float(found[1]) if found else None


def code(frame: Frame, works: Sequence[Work]) -> Jobs:
    """Arrays of the jobs, in their order. A job that no partition takes never starts."""
    policy, types = frame.policy, frame.types
    where = {n: i for i, n in enumerate(frame.node_names)}
    part_of = {p: i for i, p in enumerate(frame.partitions)}
    type_of = {t: i for i, t in enumerate(types)}
    qos_of = {q: i for i, q in enumerate(frame.qos)}
    width = 5 + len(types)
    record_from, record_part, record_prio = [0], [], []
    slot, slot_node, limit_row = [0], [], []
    slot_gpu: list[Floats] = []
    columns: dict[str, list[float]] = {k: [] for k in ("nodes", "cpu", "mem", "gpu", "gtype", "assoc", "qos", "array", "resv")}
    cache: dict[tuple[object, ...], tuple[int, list[tuple[int, float]]]] = {}
    weights = _weights(frame)
    for w in works:
        nodes = max(1, int(w.nodes))
        cpu, mem, gpu = w.cpus / nodes, w.mem_mib / nodes, w.gpus / nodes
        kind = type_of.get(w.gpu_type, len(types) - 1 if w.gpu_type and types else -1) if w.gpu_type and w.gpus else -1
        key = (w.user, w.account, w.qos, w.partitions, nodes, cpu, mem, gpu, kind, w.limit, w.held, w.nice)
        if key not in cache or w.static:
            request = np.zeros(width)
            request[[L_JOBS, L_CPU, L_MEM, L_NODE, L_GPU]] = 1, w.cpus, w.mem_mib, nodes, w.gpus
            if kind >= 0:
                request[L_GPU + 1 + kind] = w.gpus
            records = []
            for p in w.partitions:
                code_ = part_of.get(p.casefold())
                if code_ is not None and not per_job_reason(
                    policy, frame.limits, w.user, w.account, w.qos, p, request, request / nodes, w.limit
                ):
                    prio = w.static[p] if p in w.static else _static(frame, weights, w, code_, nodes) - w.nice
                    records.append((code_, prio))
            impossible = w.held or not records
            if not records:
                records = [(max(0, part_of.get(p.casefold(), 0)), 0.0) for p in w.partitions[:1] or ("",)]
            row = frame.limits.row(w.user, w.account, w.qos, w.partitions[0] if w.partitions else "", impossible)
            cache[key] = (row, records)
        row, records = cache[key]
        limit_row.append(row)
        for code_, prio in records:
            record_part.append(code_)
            record_prio.append(prio)
        record_from.append(len(record_part))
        slot.append(slot[-1] + nodes)
        places = [where.get(n, -1) for n in w.node_list[:nodes]] if w.status == RUNNING else []
        for i in range(nodes):
            n = places[i] if i < len(places) else -1
            slot_node.append(max(n, 0))
            held = np.zeros(len(types))
            if n >= 0 and gpu:
                left = gpu
                for k in [kind] if kind >= 0 else range(len(types)):
                    held[k] = min(left, frame.machine.total[n, 2 + k]) if kind < 0 else left
                    left -= held[k]
            slot_gpu.append(held)
        array = -1
        if w.array is not None:
            if w.array not in frame.arrays:
                frame.arrays[w.array] = len(frame.throttles)
                frame.throttles.append(np.inf)
            if w.throttle is not None:
                frame.throttles[frame.arrays[w.array]] = w.throttle
            array = frame.arrays[w.array]
        resv = frame.reservations.index(w.reservation) if w.reservation in frame.reservations else -1
        values = (nodes, cpu, mem, gpu, kind, frame.tree.row(w.user, w.account), qos_of.get((w.qos or "").casefold(), 0), array, resv)
        for name, value in zip(columns, values, strict=True):
            columns[name].append(value)

    def floats(values: list[float]) -> Floats:
        return np.array(values, np.float64)

    def ints(values: Sequence[float]) -> Ints:
        return np.array(values, np.int64)

    return Jobs(
        floats([w.submit for w in works]),
        floats([w.submit if w.age_from is None else w.age_from for w in works]),
        floats([w.run for w in works]),
        floats([w.limit for w in works]),
        ints(record_from),
        ints(record_part),
        floats(record_prio),
        ints(columns["nodes"]),
        floats(columns["cpu"]),
        floats(columns["mem"]),
        floats(columns["gpu"]),
        ints(columns["gtype"]),
        ints(limit_row),
        ints(columns["assoc"]),
        ints(columns["qos"]),
        ints(columns["array"]),
        floats([w.cancel for w in works]),
        ints(columns["resv"]),
        np.zeros(len(works), np.int64),
        ints([w.after for w in works]),
        ints(slot),
        ints([w.status for w in works]),
        floats([w.began for w in works]),
        ints(slot_node),
        np.array(slot_gpu, np.float64).reshape(-1, max(1, len(types))) if types else np.zeros((len(slot_node), 0)),
    )


def select(jobs: Jobs, rows: Ints, **columns: Floats | Ints) -> Jobs:
    """Rows of ``jobs`` in a new order, with columns replaced. ``after`` refers to the new order and is dropped."""

    def spread(begin: Ints) -> tuple[Ints, Ints]:
        size = begin[rows + 1] - begin[rows]
        edge = np.r_[0, np.cumsum(size)]
        return edge, np.repeat(begin[rows] - edge[:-1], size) + np.arange(edge[-1])

    record_from, records = spread(jobs.record_from)
    slot, places = spread(jobs.slot)
    ragged = {"record_from": record_from, "record_part": jobs.record_part[records], "record_prio": jobs.record_prio[records]}
    ragged |= {"slot": slot, "slot_node": jobs.slot_node[places], "slot_gpu": jobs.slot_gpu[places]}
    ragged["after"] = np.full(len(rows), -1, np.int64)
    return Jobs(**{n: columns.get(n, ragged[n] if n in ragged else getattr(jobs, n)[rows]) for n in Jobs._fields})  # type: ignore[arg-type]  # columns by name


def _weights(frame: Frame) -> dict[str, float]:
    """Priority weights and what the factors are divided by."""
    policy = frame.policy
    out = {k: setting(policy, f"PriorityWeight{k}", 0.0) for k in ("Age", "FairShare", "JobSize", "Partition", "QOS")}
    out["max_part"] = max([float(r.priority_job_factor or 0) for r in policy.partitions.values()] + [1.0])
    out["max_qos"] = max([float(q.priority or 0) for q in policy.qos.values()] + [1.0])
    out["small"] = float(policy.settings.get("priorityfavorsmall", "No").lower().startswith("y"))
    out["relative"] = float("SMALL_RELATIVE_TO_TIME" in policy.settings.get("priorityflags", ""))
    for part in policy.settings.get("priorityweighttres", "").split(","):
        name, _, value = part.partition("=")
        try:
            out["tres:" + name.strip().casefold()] = float(value)
        except ValueError:
            continue
    return out


def _static(frame: Frame, weights: dict[str, float], w: Work, part: int, nodes: int) -> float:
    """Job size, partition, QOS and TRES terms. Source: priority_multifactor.c, _get_priority_internal."""
    machine, policy = frame.machine, frame.policy
    count, cpus = len(machine.up), max(1.0, float(machine.total[:, 0].sum()))
    if weights["relative"]:
        size = min(1.0, max(nodes * cpus / count, w.cpus) / max(1.0, w.limit / 60) / cpus)
        size = 1 - size if weights["small"] else size
    elif weights["small"]:
        size = ((count - nodes) / count + (cpus - w.cpus) / cpus) / 2
    else:
        size = (nodes / count + w.cpus / cpus) / 2
    rule = policy.partition(frame.partitions[part])
    qos = policy.qos_rule(w.qos)
    total = weights["JobSize"] * size
    total += weights["Partition"] * (float(rule.priority_job_factor or 0) if rule else 0.0) / weights["max_part"]
    total += weights["QOS"] * (float(qos.priority or 0) if qos else 0.0) / weights["max_qos"]
    have = machine.total[machine.member[part]].sum(axis=0)
    amounts = {
        "cpu": (w.cpus, have[0]),
        "mem": (w.mem_mib, have[1]),
        "gres/gpu": (w.gpus, have[2:].sum()),
        "node": (nodes, machine.member[part].sum()),
    }
    for k, t in enumerate(frame.types):
        amounts[f"gres/gpu:{t}"] = (w.gpus if w.gpu_type == t else 0.0, have[2 + k])
    for name, (amount, of) in amounts.items():
        if of > 0:
            total += weights.get("tres:" + name, 0.0) * amount / of
    return total


def rules_of(frame: Frame, tree_moves: bool = True) -> Rules:
    """Rules once all jobs are coded (their classes and arrays are in the frame)."""
    policy, types, table = frame.policy, frame.types, frame.limits
    weights = _weights(frame)
    edges = np.r_[0, np.cumsum([len(e) for e in table.entries])].astype(np.int64)
    flat = [e for entry in table.entries for e in entry]
    rules = [policy.qos_rule(q) for q in frame.qos]
    on = policy.settings.get("preempttype", "").casefold() == "preempt/qos"
    preempts = np.zeros((len(rules), len(rules)), bool)
    for i, a in enumerate(rules):
        for k, name in enumerate(frame.qos):
            b = rules[k]
            preempts[i, k] = on and a is not None and name in a.preempt and (b is None or (b.preempt_mode or "").casefold() != "off")
    patterns, variant = np.unique(np.r_[np.zeros((1, len(rules)), bool), preempts], axis=0, return_inverse=True)
    billing = np.zeros((len(frame.partitions), 3 + len(types)))
    for p, name in enumerate(frame.partitions):
        rule = policy.partition(name)
        given = rule.billing_weights if rule else {}
        if not given:
            billing[p, 0] = 1.0
        for key, value in given.items():
            if key in BILLING_UNITS:
                billing[p, BILLING_UNITS[key]] = value * (1 << 30) if key == "mem" else value
            elif key.removeprefix("gres/gpu:") in types:
                billing[p, 3 + types.index(key.removeprefix("gres/gpu:"))] = value
    half = seconds(policy, "PriorityDecayHalfLife", 7 * 86400.0)
    flags = policy.settings.get("priorityflags", "").upper()
    tree = frame.tree
    return Rules(
        edges,
        np.array([g for g, _ in flat], np.int64),
        np.array([v for _, v in flat], np.float64).reshape(-1, 5 + len(types)),
        max(1, len(table.groups)),
        np.array(frame.throttles or [np.inf], np.float64),
        np.zeros(max(1, len(frame.throttles))),
        preempts,
        np.asarray(variant, np.int64).reshape(-1)[1:],
        patterns,
        np.array([1.0 if r is None or r.usage_factor is None else r.usage_factor for r in rules], np.float64),
        billing,
        weights["Age"],
        max(1.0, seconds(policy, "PriorityMaxAge", 7 * 86400.0)),
        weights["FairShare"],
        tree.fair,
        bool(tree_moves and tree.known and weights["FairShare"]),
        "NO_FAIR_TREE" not in flags,
        tree.parent,
        tree.shares,
        tree.is_user,
        tree.usage,
        1.0 - 0.693 / half if half > 0 else 1.0,
        max(1.0, setting(policy, "FairShareDampeningFactor", 1.0)),
    )
