"""Candidates for a task on a cluster's nodes, and each made into a request with its wait, run, finish and cost."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from queuecast.answers.resolve import resolve
from queuecast.answers.suggest_cluster import UNTYPED, NodeGroup, cost, preemptible
from queuecast.answers.suggestion import SHARE, Option, Question, Range, Unfit
from queuecast.answers.viewer import Viewer
from queuecast.answers.wait import WaitAnswer
from queuecast.config import Hardware
from queuecast.hardware.gpufacts import GpuFact, gpu_fact
from queuecast.hardware.gputable import Link
from queuecast.hardware.scaling import Run, Set, carry_over
from queuecast.hardware.taskfit import Layout, lay_out, usable_bytes
from queuecast.hardware.taskmemory import BYTES, GIB
from queuecast.i18n import _
from queuecast.policy.request import Request, from_options
from queuecast.policy.tables import PartitionRule, Policy
from queuecast.policy.usage import usage_at
from queuecast.policy.verdicts import verdicts
from queuecast.slurmtext.durations import format_limit

if TYPE_CHECKING:
    from queuecast.answers.forecast import Forecaster

CPUS_PER_GPU = 8
HOST_GIB_PER_GPU = 32
MARGIN = 1.1
"""The time limit is that much above the longest expected run, up to a full hour."""


@dataclass(frozen=True)
class Candidate:
    """A layout on nodes of one group."""

    group: NodeGroup
    fact: GpuFact
    layout: Layout
    nodes: int
    link: Link

    @property
    def set(self) -> Set:
        """In the terms of scaling."""
        return Set(self.fact, self.layout.gpus, self.nodes, self.link, self.layout.checkpointing)


def candidates(groups: Sequence[NodeGroup], question: Question, hardware: Hardware) -> tuple[list[Candidate], list[Unfit]]:
    """For each type and partition: the fewest GPUs in one node that hold the task, and twice and four times as many; whole nodes only
    where no single node holds it. With the types that do not, and why."""
    found: list[Candidate] = []
    unfit: dict[str, Unfit] = {}
    wanted = {p.casefold() for p in question.partitions}
    groups = [g for g in groups if not wanted or g.partition.casefold() in wanted]
    for group in groups:
        fact = gpu_fact(group.gpu_type, hardware.gpus)
        refused = _cannot(group.gpu_type, fact, question)
        if fact is None or refused is not None:
            unfit.setdefault(group.gpu_type, refused or Unfit(group.gpu_type, None, ""))
            continue
        here = _of_group(group, fact, question)
        if not here:
            unfit.setdefault(group.gpu_type, _too_small(group, fact, question))
        found += here
    if not groups:
        unfit["*"] = Unfit("*", ", ".join(question.partitions), _("no node of that partition has GPUs"), _("leave -p out to see all"))
    held = {c.group.gpu_type for c in found}
    return found, [u for kind, u in unfit.items() if kind not in held]


def _cannot(kind: str, fact: GpuFact | None, question: Question) -> Unfit | None:
    precision = question.task.precision
    if fact is None:
        return Unfit(
            kind,
            None,
            _("this type is not known: whether the task fits cannot be judged"),
            _("set its memory_gib, fp16_tflops and bf16_tflops below [gpus.{name}] in the configuration").format(name=kind),
        )
    if precision == "bf16" and not fact.has_bf16:
        return Unfit(kind, None, _("has no fast bf16 ({model})").format(model=fact.model), _("ask with --precision fp16"))
    return None


def _of_group(group: NodeGroup, fact: GpuFact, question: Question) -> list[Candidate]:
    link: Link = "nvlink" if group.nvlink and not fact.slice else fact.link
    inside = sorted({1 << k for k in range(group.gpus.bit_length()) if 1 << k <= group.gpus} | {group.gpus})
    found: list[Candidate] = []
    for count in inside:
        layout = lay_out(question.task, question.batch, fact, count, sharding=question.sharding, again=question.again)
        if layout is not None and (not found or count <= 4 * found[0].layout.gpus):
            found.append(Candidate(group, fact, layout, 1, link))
    if found or question.task.mode == "inference" or fact.slice:
        return found
    nodes = 2
    while nodes <= group.nodes and len(found) < 2:
        count = nodes * group.gpus
        layout = lay_out(question.task, question.batch, fact, count, one_node=False, sharding=question.sharding, again=question.again)
        if layout is not None:
            found.append(Candidate(group, fact, layout, nodes, link))
        nodes *= 2
    return found


def _too_small(group: NodeGroup, fact: GpuFact, question: Question) -> Unfit:
    why = _("does not fit on one node ({n} x {gib:.0f} GiB usable)").format(n=group.gpus, gib=usable_bytes(fact) / GIB)
    if fact.slice:
        why = _("does not fit on one slice ({gib:.1f} GiB usable)").format(gib=usable_bytes(fact) / GIB)
    elif question.task.mode != "inference" and group.nodes > 1:
        why += _(", nor on several with {batch} sequences to share").format(batch=question.batch)
        if question.batch < group.gpus * group.nodes:
            return Unfit(group.gpu_type, None, why, _("a larger --batch lets more GPUs share the work: each needs a sequence"))
    return Unfit(group.gpu_type, None, why, _("shorter --seq, fewer sequences, --mode lora or a smaller model need less"))


class Offer:
    """Makes candidates into options; the rules of the cluster are those of ``policy``."""

    def __init__(
        self,
        forecaster: Forecaster,
        policy: Policy,
        question: Question,
        at: datetime,
        viewer: Viewer,
        hardware: Hardware,
        reference: Set | None,
    ) -> None:
        self.forecaster, self.policy, self.question, self.at, self.viewer = forecaster, policy, question, at, viewer
        self.hardware, self.reference = hardware, reference
        self.usage = usage_at(forecaster.lake, forecaster.cluster, at)

    def make(self, candidate: Candidate) -> Option | Unfit:
        """An option, or why it is none: it would run too long there, or Slurm would refuse it or never start it."""
        group = candidate.group
        run = self._run(candidate)
        limit = self._limit(candidate, run)
        if isinstance(limit, Unfit):
            return limit
        words = self._words(candidate, limit)
        request = resolve(self.forecaster.lake, self.forecaster.cluster, from_options(words, self.viewer.user), self.at)
        said = verdicts(self.policy, request, self.usage)
        for verdict in said:
            if verdict.kind != "waits":
                return Unfit(group.gpu_type, group.partition, verdict.text, verdict.fix)
        wait = self.forecaster.when(request, self.at, self.viewer)
        return Option(
            gpu_type=group.gpu_type,
            fact=candidate.fact,
            partition=group.partition,
            nodes=candidate.nodes,
            layout=candidate.layout,
            link=candidate.link,
            request=request,
            flags=_flags(words),
            wait=wait,
            run=run,
            finish=_finish(wait, run),
            gpu_hours=None if run is None else candidate.layout.gpus * run.likely_s / 3600,
            cost=cost(self.policy, request, group.partition, run, self.hardware),
            notes=(*self._notes(candidate, request, run), *dict.fromkeys(v.text for v in said)),
        )

    def _run(self, candidate: Candidate) -> Run | None:
        if self.reference is None or self.question.hours is None:
            return None
        task = self.question.task
        return carry_over(self.question.hours, self.reference, candidate.set, task.mode, task.precision)

    def _limit(self, candidate: Candidate, run: Run | None) -> str | Unfit | None:
        """The limit as typed; else the longest run with a margin, cut to what the partition allows if the likely run fits."""
        if self.question.limit is not None or run is None:
            return self.question.limit
        seconds = math.ceil(run.high_s * MARGIN / 3600) * 3600
        most = self._max_time(candidate)
        if most is not None and run.likely_s > most:
            return Unfit(
                candidate.group.gpu_type,
                candidate.group.partition,
                _("{hours:.0f} h on {n} GPUs is over its limit of {most}").format(
                    n=candidate.layout.gpus, hours=run.likely_s / 3600, most=format_limit(most)
                ),
                _("save checkpoints and run it in parts"),
            )
        return format_limit(min(seconds, most) if most is not None else seconds)

    def _words(self, candidate: Candidate, limit: str | None) -> dict[str, str]:
        """sbatch's options by long name: one task per node that starts a process per GPU; CPUs and memory in proportion."""
        group, rule = candidate.group, self._rule(candidate)
        per_node = candidate.layout.gpus // candidate.nodes
        cpus = max(1, min(CPUS_PER_GPU, group.cpus // group.gpus) * per_node)
        weights = self.question.task.shape.params * BYTES[self.question.task.precision]
        wanted = max(HOST_GIB_PER_GPU * per_node, math.ceil(1.2 * weights / candidate.nodes / GIB))
        most = [group.mem_bytes / GIB * per_node / group.gpus * 0.95] if group.mem_bytes else []
        if rule is not None and rule.max_mem_per_node_bytes:
            most.append(rule.max_mem_per_node_bytes / GIB)
        mem = max(1, math.floor(min([wanted, *most])))
        words = {
            "partition": group.partition,
            "nodes": str(candidate.nodes),
            "gres": f"gpu:{per_node}" if group.gpu_type == UNTYPED else f"gpu:{group.gpu_type}:{per_node}",
            "ntasks-per-node": "1",
            "cpus-per-task": str(cpus),
            "mem": f"{mem}G",
        }
        more = {"time": limit, "account": self.question.account, "qos": self.question.qos}
        return words | {k: v for k, v in more.items() if v}

    def _rule(self, candidate: Candidate) -> PartitionRule | None:
        return self.policy.partition(candidate.group.partition)

    def _max_time(self, candidate: Candidate) -> int | None:
        rule = self._rule(candidate)
        return None if rule is None else rule.max_time_s

    def _notes(self, candidate: Candidate, request: Request, run: Run | None) -> tuple[str, ...]:
        notes = []
        if candidate.layout.tight:
            notes.append(_("tight: the estimate's own error may be more than what stays free"))
        if candidate.layout.sharding == "tp" and self.question.task.mode != "inference":
            notes.append(_("fits only with tensor parallelism, for which the code must be made"))
        if candidate.nodes > 1:
            notes.append(_("no single node holds it; speed between nodes depends on the network"))
        if run is not None and self.question.limit is None:
            most = self._max_time(candidate)
            if most is not None and run.high_s > most:
                notes.append(_("it may run longer than the partition allows: save checkpoints"))
        if run is not None and self.question.limit is not None and request.limit_s is not None and request.limit_s < run.likely_s:
            notes.append(_("-t ends it before the expected end: save checkpoints, or ask for more"))
        if preemptible(self.policy, request, candidate.group.partition):
            notes.append(_("other jobs may preempt it: save checkpoints"))
        return tuple(notes)


def _finish(wait: WaitAnswer, run: Run | None) -> Range | None:
    """Wait and run added end to end."""
    eighty = wait.interval(SHARE)
    if run is None or eighty is None or wait.median_s is None or math.isinf(wait.median_s):
        return None
    high = None if math.isinf(eighty.high_s) else eighty.high_s + run.high_s
    return Range(eighty.low_s + run.low_s, wait.median_s + run.likely_s, high)


_SHORT = {"partition": "-p", "nodes": "-N", "time": "-t", "account": "-A", "qos": "-q"}


def _flags(words: dict[str, str]) -> tuple[str, ...]:
    """For the shell: names are quoted where they need it."""
    out: list[str] = []
    for name, value in words.items():
        if name in _SHORT:
            out += [_SHORT[name], shlex.quote(value)]
        else:
            out.append(shlex.quote(f"--{name}={value}"))
    return tuple(out)
