"""More memory, more time or a larger GPU for the copy, within what nodes, partition, QOS and association allow."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from queuecast.answers.retries.plan import Case, Plan
from queuecast.errors import ParseError
from queuecast.hardware.gpufacts import gpu_fact
from queuecast.i18n import _
from queuecast.policy.counted import levels_of
from queuecast.policy.request import Request
from queuecast.policy.shapes import fitting_nodes
from queuecast.policy.tables import PartitionRule
from queuecast.slurmtext.durations import format_limit
from queuecast.slurmtext.sizes import format_size, parse_req_mem

MORE_MEMORY = 1.5
"""A job killed for memory shows only that it needed more than it had. Growing by half reaches any need in few steps and wastes little."""
WORTH_IT = 1.15
"""A smaller step than that is not worth another wait."""
OVER_PEAK = 1.25
MORE_TIME = 2.0
"""Nothing tells how far a job had come; most codes do not. Doubling reaches any need in few steps."""
GIB, MIB = 1 << 30, 1 << 20


def more_memory(case: Case, plan: Plan) -> None:
    """Larger ``--mem``, ``--mem-per-cpu`` or ``--mem-per-gpu``, in the form that was used."""
    form, units = _form(case)
    asked = _asked(case, form, units)
    if asked is None:
        plan.blocked = _("How much memory it had is not known: set --mem by hand.")
        return
    wanted = math.ceil(asked * MORE_MEMORY)
    why = _("it was killed for memory with {asked}; half as much again").format(asked=format_size(_rounded(asked)))
    peak = _peak(case)
    nodes = max(1, case.request.nodes)
    if peak is not None and peak * nodes / units * OVER_PEAK > wanted:
        wanted = math.ceil(peak * nodes / units * OVER_PEAK)
        why = _("it was killed for memory; {peak} were seen, and a quarter is added").format(peak=format_size(_rounded(peak)))
    bound = case.bounds.get("memory")
    if bound is not None and bound.value / units > wanted:
        wanted = math.ceil(bound.value / units)
        why = _("it was killed for memory; the last {n} jobs of its kind call for that").format(n=bound.n)
    wanted = _rounded(wanted)
    cap = _memory_cap(case, case.request, case.rule, form, units)
    request = case.request
    value = wanted if cap is None else min(wanted, _rounded_down(cap))
    partition = None
    if value < asked * WORTH_IT or not case.allowed(replace(request, mem_bytes=value * units)):
        value, partition = _elsewhere(case, form, units, asked, wanted)
        if not value:
            plan.blocked = _("No node that it may use has more memory than it had ({asked} {per}).").format(
                asked=format_size(_rounded(asked)), per=_per(form)
            )
            plan.mend.append(_("Spread it over more nodes, or let it need less: smaller batches, fewer workers, data read in parts."))
            return
    if value < wanted:
        plan.notes.append(
            _("{wanted} would be surer; there is no more than {value} {per}.").format(
                wanted=format_size(wanted), value=format_size(value), per=_per(form)
            )
        )
    if partition is not None:
        plan.change(
            "partition",
            case.options.get("partition"),
            partition,
            _("the nodes of {name} have no more memory").format(name=case.request.partitions[0]),
        )
    plan.change(form, case.options.get(form), _flag(value), why)
    if cap is None and not case.policy.nodes:
        plan.notes.append(_("How much memory the nodes have is not known here."))


def more_time(case: Case, plan: Plan) -> None:
    """A longer ``--time``; with a checkpoint to go on from, the same one."""
    limit = case.row["limit_s"]
    if case.resumes:
        plan.notes.append(_("It goes on from its checkpoint, so the time limit stays."))
        return
    if not limit:
        plan.blocked = _("Its time limit is not known: set --time by hand.")
        return
    wanted = _minutes(limit * MORE_TIME)
    why = _("it reached its limit of {limit}; twice that").format(limit=format_limit(limit))
    bound = case.bounds.get("time")
    if bound is not None and bound.value > wanted:
        wanted = _minutes(bound.value)
        why = _("it reached its limit of {limit}; the last {n} jobs of its kind call for that").format(limit=format_limit(limit), n=bound.n)
    found = _somewhere(case, limit, wanted)
    if found is None:
        plan.blocked = _("No partition or QOS that it may use allows clearly more than {limit}.").format(limit=format_limit(limit))
        plan.mend.append(_("Let it save and go on: queuecast template single shows how; then retry finds the checkpoint (docs/retry.md)."))
        plan.mend.append(_("Or split the work into parts that fit."))
        return
    best, there = found
    if best < wanted:
        plan.notes.append(
            _("{wanted} would be surer; no more than {best} is allowed.").format(wanted=format_limit(wanted), best=format_limit(best))
        )
    if there.partitions != case.request.partitions:
        plan.change("partition", case.options.get("partition"), there.partitions[0], _("a longer limit is allowed there"))
    if there.qos != case.request.qos:
        plan.change("qos", case.options.get("qos"), there.qos, _("a longer limit is allowed with it"))
    plan.change("time", case.options.get("time"), format_limit(best), why)


def larger_gpu(case: Case, plan: Plan) -> None:
    """GPUs of another type with more memory each, in the form that was used."""
    current = case.row["gpu_type_alloc"] or case.row["gpu_type_req"]
    fact = gpu_fact(current) if current and current != "mixed" else None
    batch = _("Or let it need less GPU memory: a smaller batch, gradient accumulation, checkpointing of activations, 16 bit.")
    plan.mend.append(batch)
    if fact is None:
        plan.blocked = _("A GPU ran out of memory, and which type it was is not known.")
        return
    types = {t for n in case.policy.nodes if n.available for t in n.gpus if t}
    larger = sorted(
        ((f.memory_gib, t) for t in types if (f := gpu_fact(t)) is not None and f.memory_gib > fact.memory_gib and not f.slice),
        key=lambda item: (item[0], item[1]),
    )
    option = next((o for o in ("gpus", "gpus-per-node", "gpus-per-task") if case.options.get(o)), None)
    option = option or ("gres" if "gpu" in (case.options.get("gres") or "") else None)
    for memory, kind in larger:
        request = replace(case.request, gpu_type=kind)
        here = case.request.partitions[:1]
        fits = bool(here) and len(fitting_nodes(case.policy, request, here[0])) >= max(1, request.nodes) and case.allowed(request)
        other = [] if fits else case.others(request)
        if not fits and not other:
            continue
        if not fits:
            plan.change("partition", case.options.get("partition"), other[0][0].name, _("these GPUs are there"))
        why = _("a GPU of type {old} ({a:.0f} GiB) ran out of memory; {new} has {b:.0f} GiB").format(
            old=current, a=fact.memory_gib, new=kind, b=memory
        )
        if option is not None:
            plan.change(option, case.options[option], _with_type(case.options[option], option, kind), why)
            return
        each = f"gpu:{kind}:{math.ceil(max(1, request.gpus) / max(1, request.nodes))}"
        given = case.options.get("gres")
        plan.change("gres", given, f"{given},{each}" if given else each, why)
        return
    plan.blocked = _("A GPU ran out of memory, and the cluster has none with more that the job may use.")


def _with_type(text: str, option: str, kind: str) -> str:
    """``gpu:v100:2`` with another type; further entries of a list are kept."""
    out = []
    for part in text.split(","):
        words = part.split(":")
        if option == "gres":
            if words[0].removeprefix("gres/") != "gpu":
                out.append(part)
                continue
            count = words[-1] if len(words) > 1 and words[-1].isdigit() else "1"
            out.append(f"{words[0]}:{kind}:{count}")
        else:
            out.append(f"{kind}:{words[-1] if words[-1].isdigit() else '1'}")
    return ",".join(out)


def _form(case: Case) -> tuple[str, int]:
    """The option that sets the memory, and how many of its units the whole job has."""
    if "mem-per-cpu" in case.options:
        return "mem-per-cpu", max(1, case.request.cpus)
    if "mem-per-gpu" in case.options and case.request.gpus:
        return "mem-per-gpu", case.request.gpus
    return "mem", max(1, case.request.nodes)


def _asked(case: Case, form: str, units: int) -> float | None:
    """Bytes per unit as accounting counts them; else as the option says."""
    if case.request.mem_bytes:
        return case.request.mem_bytes / units
    try:
        size = parse_req_mem(case.options.get(form, ""))
    except ParseError:
        return None
    return size.bytes or None


def _peak(case: Case) -> float | None:
    """Highest memory of one task, where a node had one: then it is the node's."""
    seen = [s["max_rss_bytes"] for s in case.steps if s["max_rss_bytes"] and (s["tasks"] or 1) <= (s["nodes"] or 1)]
    return max(seen, default=None)


def _memory_cap(case: Case, request: Request, rule: PartitionRule | None, form: str, units: int) -> float | None:
    """Bytes per unit that the nodes of a partition can give; None if not known."""
    if rule is None or not case.policy.nodes:
        return None
    nodes = max(1, request.nodes)
    sizes = sorted(
        (n.mem_bytes for n in fitting_nodes(case.policy, replace(request, mem_bytes=None), rule.name) if n.mem_bytes), reverse=True
    )
    caps = [sizes[nodes - 1]] if len(sizes) >= nodes else [0]
    if rule.max_mem_per_node_bytes:
        caps.append(rule.max_mem_per_node_bytes)
    out = min(caps) * nodes / units
    return min(out, rule.max_mem_per_cpu_bytes) if form == "mem-per-cpu" and rule.max_mem_per_cpu_bytes else out


def _elsewhere(case: Case, form: str, units: int, asked: float, wanted: int) -> tuple[int, str | None]:
    """The other partition that gives what is wanted with the least memory to spare, else the one with the most; (0, None) if none does."""
    found: list[tuple[bool, float, int, str]] = []
    for rule, there in case.others(case.request):
        cap = _memory_cap(case, there, rule, form, units)
        if cap is None:
            continue
        value = min(wanted, _rounded_down(cap))
        if value >= asked * WORTH_IT and case.allowed(replace(there, mem_bytes=value * units)):
            found.append((value < wanted, cap if value == wanted else -cap, value, rule.name))
    if not found:
        return 0, None
    _short, _spare, value, name = min(found)
    return value, name


def _longest(case: Case, request: Request, rule: PartitionRule | None, limit: int, wanted: int) -> int | None:
    """The longest limit up to ``wanted`` that the rules allow; None if none is worth it."""
    values = {wanted}
    if rule is not None and rule.max_time_s is not None:
        values.add(rule.max_time_s)
    values |= {level.limits.max_wall_s for level in levels_of(case.policy, request, rule) if level.limits.max_wall_s is not None}
    for value in sorted((v for v in values if limit * WORTH_IT <= v <= wanted), reverse=True):
        if case.allowed(replace(request, limit_s=value, unlimited=False)):
            return value
    return None


def _somewhere(case: Case, limit: int, wanted: int) -> tuple[int, Request] | None:
    """The longest limit, where the job was; else in another partition, with another QOS, with both. None if none is worth it."""
    asked = case.request
    with_qos = [replace(asked, qos=q.name) for q in case.granted_qos()]
    stages: tuple[Callable[[], list[Request]], ...] = (
        lambda: [asked],
        lambda: [there for _rule, there in case.others(asked)],
        lambda: with_qos,
        lambda: [there for request in with_qos for _rule, there in case.others(request)],
    )
    for stage in stages:
        found = []
        for request in stage():
            rule = case.policy.partition(request.partitions[0]) if request.partitions else None
            best = _longest(case, request, rule, limit, wanted)
            if best is not None:
                # of equal limits the partition made for shorter ones
                found.append((best, -((rule.max_time_s if rule else None) or 1 << 40), request))
        if found:
            best, _room, request = max(found, key=lambda item: item[:2])
            return best, request
    return None


def _minutes(seconds: float) -> int:
    """Whole minutes; above four hours whole quarters of an hour."""
    step = 900 if seconds > 4 * 3600 else 60
    return math.ceil(seconds / step) * step


def _step(value: float) -> int:
    return GIB if value >= 8 * GIB else 256 * MIB if value >= GIB else 16 * MIB if value >= 64 * MIB else MIB


def _rounded(value: float) -> int:
    step = _step(value)
    return math.ceil(value / step) * step


def _rounded_down(value: float) -> int:
    """A node's own size may be used up to the last MiB."""
    return math.floor(value / MIB) * MIB


def _flag(value: int) -> str:
    """As sbatch reads it: whole numbers only."""
    return f"{value // GIB}G" if value % GIB == 0 else f"{value // MIB}M"


def _per(form: str) -> str:
    return {"mem": _("per node"), "mem-per-cpu": _("per CPU"), "mem-per-gpu": _("per GPU")}[form]
