"""The answer to "what should I ask for to run this?" as text."""

from __future__ import annotations

import math

from queuecast.answers.suggestion import SHARE, Option, Suggestion
from queuecast.hardware.taskmemory import GIB
from queuecast.i18n import _, ngettext
from queuecast.render.words import moment, percent, safe, shift, span, wrapped

LABEL = 9
MOST = 5
"""Options shown unless all are asked for: the Pareto-optimal ones first."""

_MODES = {"full": "full training", "lora": "LoRA training", "inference": "inference"}


def suggest_lines(answer: Suggestion, zone: str, width: int = 100, *, show_all: bool = False) -> list[str]:
    """Lines of text; times in ``zone``."""
    lines = [_task(answer), _freshness(answer, zone), "", *_memory(answer, width), ""]
    shown = _shown(answer, show_all)
    if shown:
        lines.append(_heading())
        for number in shown:
            lines += _option(answer, number, zone, width)
        left = len(answer.options) - len(shown)
        if left:
            lines.append(" " * 4 + ngettext("{n} more option: --all", "{n} more options: --all", left).format(n=left))
        lines.append(" " * 4 + _("* no other starts sooner, ends sooner and needs fewer GPU-hours"))
    else:
        lines.append(_("No GPU of this cluster is offered for this task."))
    lines.append("")
    lines += _advice(answer, width)
    lines += _unfit(answer, width, show_all)
    if answer.assumptions:
        lines += _labelled(_("assumed"), " ".join(answer.assumptions), width)
    if answer.notes:
        lines += _labelled(_("note"), " ".join(safe(n) for n in answer.notes), width)
    return lines


def _task(answer: Suggestion) -> str:
    task, shape = answer.question.task, answer.question.task.shape
    billions = (
        _("{n:.1f} B parameters").format(n=shape.params / 1e9)
        if shape.params >= 1e9
        else _("{n:.0f} M parameters").format(n=shape.params / 1e6)
    )
    if shape.active_params < shape.params:
        billions += _(", {n:.1f} B active").format(n=shape.active_params / 1e9)
    sequences = ngettext("{n} sequence of {seq} tokens", "{n} sequences of {seq} tokens", answer.question.batch).format(
        n=answer.question.batch, seq=task.seq
    )
    where = _("at once") if task.mode == "inference" else _("per step")
    return f"{safe(shape.name)} ({safe(shape.source)}, {billions}), {_(_MODES[task.mode])}, {task.precision}, {sequences} {where}"


def _freshness(answer: Suggestion, zone: str) -> str:
    parts = [safe(answer.cluster)]
    if answer.freshness.age_s is not None:
        parts.append(_("data {age} old").format(age=span(answer.freshness.age_s)))
    parts.append(_("asked for {moment}").format(moment=f"{moment(answer.at, answer.at, zone)} ({answer.at:%Y-%m-%d %H:%M} UTC)"))
    return " · ".join(parts)


def part_words() -> dict[str, str]:
    """Names of the parts of memory."""
    return {
        "weights": _("weights"),
        "gradients": _("gradients"),
        "optimiser": _("Adam states"),
        "activations": _("activations"),
        "logits": _("logits"),
        "kv_cache": _("KV cache"),
        "gathered": _("gathered layers"),
        "overhead": _("allowances"),
    }


def _gib(value: float) -> str:
    return f"{value / GIB:.1f}" if value < 10 * GIB else f"{value / GIB:.0f}"


def _memory(answer: Suggestion, width: int) -> list[str]:
    whole, again = answer.whole, answer.recomputed
    words = part_words()
    parts = []
    for name, value in whole.parts().items():
        if value < 0.05 * GIB:
            continue
        text = f"{words[name]} {_gib(value)}"
        if name == "activations" and again is not None:
            text += " " + _("({gib} with checkpointing)").format(gib=_gib(again.activations))
        parts.append(text)
    one = _("{gib} GiB unsplit").format(gib=_gib(whole.total))
    if answer.question.task.mode != "inference":
        one += " " + _("with one sequence at a time")
    lines = _labelled(_("memory"), f"{one}: {', '.join(parts)}", width)
    return lines + _labelled("", _("computed, not measured: {basis}").format(basis=_basis(answer)), width)


def _basis(answer: Suggestion) -> str:
    mode = answer.question.task.mode
    if mode == "inference":
        return _("weights and 2 x layers x key-value width x tokens for the KV cache; formulas in docs/suggest.md")
    if mode == "lora":
        return _("frozen weights, 16 bytes per adapter parameter (LoRA, ZeRO), activations by Korthikanti et al. 2022; docs/suggest.md")
    return _("16 bytes per parameter (ZeRO, Rajbhandari et al. 2020), activations by Korthikanti et al. 2022; docs/suggest.md")


def _shown(answer: Suggestion, show_all: bool) -> list[int]:
    numbers = list(range(len(answer.options)))
    if show_all or len(numbers) <= MOST:
        return numbers
    first = sorted(numbers, key=lambda i: (i != answer.recommended, not answer.options[i].pareto, i))[:MOST]
    return sorted(first)


_WIDE = (4, 14, 10, 16, 26, 6, 6, 6, 16, 8)


def _row(*cells: str) -> str:
    return "".join(f"{cell:<{w}}" for cell, w in zip(cells, _WIDE, strict=False)).rstrip()


def _heading() -> str:
    return _row(
        "", _("GPUs"), _("partition"), _("GiB each (free)"), _("wait: half, 8 in 10"), _("1 h"), _("4 h"), _("24 h"), _("run"), _("GPU-h")
    )


def _option(answer: Suggestion, number: int, zone: str, width: int) -> list[str]:
    option = answer.options[number]
    eighty = option.wait.interval(SHARE)
    wait = _("no like job so far")
    if eighty is not None and option.wait.median_s is not None:
        wait = f"{_brief(option.wait.median_s)}, {_brief(eighty.low_s)} – {_brief(eighty.high_s)}"
    within = [percent(p) for _h, p in option.wait.within] or ["–", "–", "–"]
    run = "–" if option.run is None else span(option.run.likely_s)
    lines = [
        _row(
            f"{number + 1:>2}{'*' if option.pareto else ' '}",
            safe(option.name),
            safe(option.partition),
            f"{_gib(option.layout.memory.total)} ({_gib(option.layout.headroom_bytes)})",
            wait,
            *within,
            run,
            "–" if option.gpu_hours is None else f"{option.gpu_hours:,.0f}",
        )
    ]
    facts = [_way(option), _link(option)]
    if option.finish is not None:
        facts.insert(0, _ends(answer, option, zone))
    facts += _cost(option)
    lines += [" " * 4 + line for line in wrapped(" · ".join(f for f in facts if f), width - 4, 0)]
    lines += (
        [" " * 4 + line for line in wrapped("! " + safe("; ".join(n.rstrip(".") for n in option.notes)), width - 4, 2)]
        if option.notes
        else []
    )
    lines.append(" " * 4 + safe("sbatch " + " ".join(option.flags)))
    return lines


def _brief(seconds: float) -> str:
    """One unit: 40 s, 25 min, 7 h, 3 d."""
    if not math.isfinite(seconds):
        return "?"
    for size, unit in ((86400 * 2, 86400), (3600 * 1.5, 3600), (60, 60)):
        if seconds >= size:
            word = {86400: _("{n} d"), 3600: _("{n} h"), 60: _("{n} min")}[unit]
            return word.format(n=round(seconds / unit))
    return _("<1 min")


def _ends(answer: Suggestion, option: Option, zone: str) -> str:
    assert option.finish is not None
    at = answer.at
    low, middle = (moment(shift(at, s), at, zone) for s in (option.finish.low_s, option.finish.middle_s))
    high = _("unknown") if option.finish.high_s is None else moment(shift(at, option.finish.high_s), at, zone)
    return _("ends {middle} ({low} to {high})").format(middle=middle, low=low, high=high)


def _way(option: Option) -> str:
    layout = option.layout
    words = {"none": _("no sharding"), "zero2": _("ZeRO-2"), "zero3": _("ZeRO-3 / FSDP"), "tp": _("tensor parallel")}
    parts = [words[layout.sharding]] if layout.gpus > 1 else []
    if layout.memory.optimiser:
        parts.append(_("checkpointing") if layout.checkpointing else _("no checkpointing"))
        parts.append(_("{micro} at once x {steps}").format(micro=layout.micro_batch, steps=layout.accumulation))
    return ", ".join(parts)


def _link(option: Option) -> str:
    if option.layout.gpus == 1:
        return ""
    words = {
        "nvlink": _("NVLink"),
        "bridge": _("NVLink only where bridged"),
        "fabric": _("vendor's fabric"),
        "none": _("PCIe, no NVLink"),
        "varies": _("NVLink not known"),
    }
    text = words[option.link]
    return text if option.nodes == 1 else text + " " + _("in {n} nodes").format(n=option.nodes)


def _cost(option: Option) -> list[str]:
    cost = option.cost
    out = []
    if cost.charged is not None:
        out.append(_("billing {n:,.0f}").format(n=cost.charged))
    if cost.price is not None:
        out.append(f"{cost.price:,.2f} {safe(cost.currency)}".rstrip())
    return out


def _advice(answer: Suggestion, width: int) -> list[str]:
    lines = []
    if answer.recommended is not None:
        text = _("{number}, {name} in {partition}: {because}. The choice is yours.").format(
            number=answer.recommended + 1,
            name=safe(answer.options[answer.recommended].name),
            partition=safe(answer.options[answer.recommended].partition),
            because=answer.because,
        )
        lines += _labelled(_("advice"), text, width)
    timed = [o for o in answer.options if o.run is not None]
    if answer.options and answer.question.hours is None:
        lines += _labelled(_("run"), _("give --hours (and --on a100:8, the GPUs they are for) to see ends and GPU-hours"), width)
    elif timed and all(o.cost.charged is None and o.cost.price is None for o in timed):
        lines += _labelled(_("cost"), _("not known: no billing weights here, and no [prices] in the configuration"), width)
    return lines


def _unfit(answer: Suggestion, width: int, show_all: bool) -> list[str]:
    """What is not offered: one entry for each type and partition, its reasons one after the other."""
    whys: dict[tuple[str, str], list[str]] = {}
    for unfit in answer.unfit:
        name = safe(unfit.gpu_type)
        if unfit.partition is not None:
            name = _("{type} in {partition}").format(type=name, partition=safe(unfit.partition))
        whys.setdefault((name, unfit.hint), []).append(safe(unfit.why))
    lines = []
    for (name, hint), reasons in list(whys.items())[: None if show_all else MOST]:
        lines += _labelled(_("not"), f"{name}: {'; '.join(reasons)}" + (f" → {safe(hint)}" if hint else ""), width)
    if len(whys) > MOST and not show_all:
        lines += _labelled("", _("{n} more: --all").format(n=len(whys) - MOST), width)
    return lines


def _labelled(label: str, text: str, width: int) -> list[str]:
    first, *rest = wrapped(text, width - LABEL, 0)
    return [f"{label:<{LABEL}}{first}", *(" " * LABEL + line for line in rest)]


PARSABLE = (
    "gpu_type gpus nodes partition sharding checkpointing micro_batch memory_bytes headroom_bytes status median_wait_s low_80_s high_80_s "
    "p_1h p_4h p_24h run_s finish gpu_hours billing_charged price pareto recommended flags"
).split()


def parsable(answer: Suggestion) -> str:
    """Header and one row per option, separated by ``|``; unknown is empty."""
    rows = ["|".join(PARSABLE)]
    for number, option in enumerate(answer.options):
        raw = option.as_json(answer.at)
        within = {p["hours"]: p["p"] for p in raw["p_start_within"]}
        eighty = raw["wait_80_s"] or [None, None]
        cells = [
            *(raw[k] for k in ("gpu_type", "gpus", "nodes", "partition", "sharding")),
            int(raw["activation_checkpointing"]),
            raw["micro_batch"],
            raw["memory_per_gpu_bytes"]["total"],
            *(raw[k] for k in ("headroom_bytes", "status", "median_wait_s")),
            *eighty,
            *(within.get(h) for h in (1, 4, 24)),
            (raw["run_s"] or {}).get("likely_s"),
            (raw["finish"] or {}).get("middle"),
            raw["gpu_hours"],
            raw["cost"]["charged"],
            raw["cost"]["price"],
            int(option.pareto),
            int(number == answer.recommended),
            " ".join(option.flags),
        ]
        rows.append("|".join(safe("" if c is None else str(c).replace("|", "\\x7c")) for c in cells))
    return "\n".join(rows)
