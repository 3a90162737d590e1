"""From a task to requests: which GPUs of this cluster hold it, how many, and when each choice would start and finish.

The memory is computed (hardware/), the wait is the forecaster's answer for each request, the run time carries over from the one told by
a stated assumption. Nothing later than ``at`` is used.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from queuecast.answers.suggest_cluster import NodeGroup, node_groups
from queuecast.answers.suggest_options import Candidate, Offer, candidates
from queuecast.answers.suggestion import Option, Question, Suggestion, Unfit
from queuecast.answers.viewer import Viewer
from queuecast.answers.wait import Freshness
from queuecast.config import Hardware
from queuecast.errors import NoDataError, UsageError
from queuecast.hardware.gpufacts import gpu_fact
from queuecast.hardware.scaling import EXPONENTS, Set
from queuecast.hardware.taskfit import lay_out
from queuecast.hardware.taskmemory import memory
from queuecast.i18n import _
from queuecast.policy.tables import Policy, policy_at

if TYPE_CHECKING:
    from queuecast.answers.forecast import Forecaster

NEAR = 0.05
"""Finishes that differ by less than this share count as equal: the one with fewer GPU-hours is named."""

STALE = timedelta(hours=1)
"""Older data is said to be old."""


def suggest(forecaster: Forecaster, question: Question, at: datetime, viewer: Viewer, hardware: Hardware) -> Suggestion:
    """Options for a task, the soonest expected finish first.

    Raises ``UsageError`` for a reference that is not a GPU type with a count, or a partition, account or QOS that is not there;
    ``NoDataError`` if no nodes with GPUs are known.
    """
    lake, cluster = forecaster.lake, forecaster.cluster
    policy = policy_at(lake, cluster, at)
    _check(policy, question)
    groups = node_groups(policy)
    if not groups:
        raise NoDataError(
            _("no node of {cluster} with GPUs is known").format(cluster=cluster),
            _("read the nodes first: queuecast collect (it asks scontrol show node)"),
        )
    found, unfit = candidates(groups, question, hardware)
    reference = _reference(question, found, groups, hardware)
    offer = Offer(forecaster, policy, question, at, viewer, hardware, reference)
    options: list[Option] = []
    for candidate in found:
        made = offer.make(candidate)
        if isinstance(made, Unfit):
            unfit.append(made)
        else:
            options.append(made)
    options.sort(key=_order)
    options = _marked(options)
    best, because = _recommend(options)
    task = replace(question.task, micro_batch=question.batch if question.task.mode == "inference" else 1, checkpointing=False)
    newest = forecaster.newest()
    data_at = min(newest, at) if newest else None
    return Suggestion(
        cluster=cluster,
        at=at,
        question=question,
        whole=memory(task),
        recomputed=None if task.mode == "inference" else memory(replace(task, checkpointing=True)),
        options=tuple(options),
        unfit=tuple(dict.fromkeys(unfit)),
        recommended=best,
        because=because,
        reference=None if reference is None else f"{reference.gpus} x {reference.fact.type}",
        assumptions=_assumptions(question, reference, options),
        notes=_notes(options, data_at, at),
        freshness=Freshness(data_at, (at - data_at).total_seconds() if data_at else None, None),
    )


def _check(policy: Policy, question: Question) -> None:
    """Partitions as named; account and QOS are checked with each request."""
    known = [p.name for p in policy.partitions.values()]
    for name in question.partitions:
        if known and policy.partition(name) is None:
            raise UsageError(_("there is no partition {name}").format(name=name), _("there are: {names}").format(names=", ".join(known)))


def _reference(question: Question, found: Sequence[Candidate], groups: Sequence[NodeGroup], hardware: Hardware) -> Set | None:
    """The GPUs that ``hours`` were told for: those of ``--on``, else the fewest of the type that the cluster has most of."""
    if question.hours is None:
        if question.on is not None:
            raise UsageError(_("--on says what --hours are for"), _("give --hours too"))
        return None
    if question.on is not None:
        parsed = re.fullmatch(r"\s*([^\s:]+):(\d{1,5})\s*", question.on)
        if parsed is None or not int(parsed[2]):
            raise UsageError(_("--on {text} is not a GPU type with a count").format(text=question.on), _("write it like a100:8"))
        kind, count = parsed[1], int(parsed[2])
        fact = gpu_fact(kind, hardware.gpus)
        if fact is None:
            raise UsageError(
                _("GPU type {name} is not known").format(name=kind),
                _("set memory_gib and fp16_tflops below [gpus.{name}]").format(name=kind),
            )
        here = [g for g in groups if g.gpu_type == kind.casefold()]
        nodes = math.ceil(count / max((g.gpus for g in here), default=8))
        layout = lay_out(question.task, question.batch, fact, count, one_node=nodes == 1, sharding=question.sharding, again=question.again)
        link = "nvlink" if here and all(g.nvlink for g in here) else fact.link
        return Set(fact, count, nodes, link, layout is not None and layout.checkpointing)
    if not found:
        return None
    have: dict[str, int] = {}
    for group in groups:
        have[group.gpu_type] = max(have.get(group.gpu_type, 0), group.gpus * group.nodes)
    return min(found, key=lambda c: (-have[c.group.gpu_type], c.layout.gpus, c.group.gpu_type)).set


def _order(option: Option) -> tuple[float, float, int, str]:
    """Soonest finish, else soonest start; what is not known comes last."""
    finish = option.finish.middle_s if option.finish is not None else math.inf
    wait = option.wait.median_s if option.wait.median_s is not None else math.inf
    return (finish, wait, option.layout.gpus, option.partition)


def _measures(option: Option) -> tuple[float, float, float]:
    finish = option.finish.middle_s if option.finish is not None else math.inf
    wait = option.wait.median_s if option.wait.median_s is not None else math.inf
    return (wait, finish, option.gpu_hours if option.gpu_hours is not None else float(option.layout.gpus))


def _marked(options: list[Option]) -> list[Option]:
    """Marks those that no other beats or equals in wait, finish and GPU-hours while being better in one. Without a wait: never."""
    points = [_measures(o) for o in options]

    def beaten(mine: tuple[float, float, float]) -> bool:
        return any(all(o <= m for o, m in zip(other, mine, strict=True)) and other != mine for other in points)

    return [replace(o, pareto=math.isfinite(p[0]) and not beaten(p)) for o, p in zip(options, points, strict=True)]


def _recommend(options: Sequence[Option]) -> tuple[int | None, str]:
    """The soonest finish; of those nearly as soon, the one with the fewest GPU-hours. Tight ones only if there is no other."""
    known = [i for i, o in enumerate(options) if math.isfinite(_measures(o)[0])]
    roomy = [i for i in known if not options[i].layout.tight]
    able = roomy or known
    if not able:
        return None, ""
    among = "" if roomy == known else _("of those that are not tight, ") if roomy else _("all are tight; of these, ")
    finishes = {i: finish for i in able if (finish := options[i].finish) is not None}
    if not finishes:
        best = min(able, key=lambda i: (_measures(options[i])[0], options[i].layout.gpus))
        return best, among + _("it starts soonest; when each would end is not known")
    soonest = min(f.middle_s for f in finishes.values())
    near = [i for i, f in finishes.items() if f.middle_s <= soonest * (1 + NEAR)]
    best = min(near, key=lambda i: (options[i].gpu_hours or math.inf, finishes[i].middle_s))
    mine = finishes[best]
    because = among + (
        _("it is expected to end first") if mine.middle_s == soonest else _("it ends nearly as soon as the first, with fewer GPU-hours")
    )
    if any(i != best and (mine.high_s is None or f.low_s < mine.high_s) for i, f in finishes.items()):
        because += _("; others' intervals overlap with its own, so this is likely, not sure")
    tight = [i for i in known if i not in able and (f := options[i].finish) is not None and f.middle_s < mine.middle_s * (1 - NEAR)]
    if tight:
        because += _("; {number} would end sooner if it holds: try it for a few minutes first").format(number=tight[0] + 1)
    return best, because


def _assumptions(question: Question, reference: Set | None, options: Sequence[Option]) -> tuple[str, ...]:
    said = []
    task = question.task
    if reference is not None:
        rate = _("memory bandwidth") if task.mode == "inference" else _("peak throughput")
        said.append(
            (
                _("{hours:g} h are for {n} x {type}.")
                if question.on
                else _("{hours:g} h are taken for {n} x {type}, since --on does not say which GPUs they are for.")
            ).format(hours=question.hours, n=reference.gpus, type=reference.fact.type)
        )
        said.append(
            _("Other types: public {rate} to the power {likely} ({poor} to {ideal}).").format(
                rate=rate, likely=EXPONENTS[1], poor=EXPONENTS[2], ideal=EXPONENTS[0]
            )
        )
        said.append(_("More GPUs: 95 % kept per doubling over NVLink in one node, else 85 % (70 to 100 %)."))
    if task.mode != "inference" and any(o.layout.checkpointing for o in options):
        said.append(_("Checkpointing computes a third more."))
    if task.mode == "lora":
        said.append(_("LoRA of rank {rank} on all matrices of each layer.").format(rank=task.lora_rank))
    if not task.flash:
        said.append(_("Attention scores are kept, as without FlashAttention."))
    return tuple(said)


def _notes(options: Sequence[Option], data_at: datetime | None, at: datetime) -> tuple[str, ...]:
    """What holds for several options is said once."""
    notes: dict[str, None] = {}
    if data_at is not None and at - data_at > STALE:
        notes.setdefault(_("The data are old: run queuecast collect for a fresh answer."))
    for option in options:
        for note in (*option.fact.notes, *option.wait.request.assumed):
            notes.setdefault(note)
    return tuple(notes)
