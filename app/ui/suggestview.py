"""What to ask for to run a task, as a page shows it. Names that Slurm or people gave are escaped, or shown as text or code."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from app.ui.alternativecharts import GIB, Point, memory_bar, pareto_chart
from app.ui.question import request_link, use
from app.ui.shell import Frame, show_freshness
from app.ui.taskform import MODES
from app.ui.words import as_markdown, between, percent, span
from queuecast.answers.suggestion import SHARE, Option, Suggestion
from queuecast.hardware.taskmemory import Memory
from queuecast.i18n import N_, _, ngettext
from queuecast.render.suggest import part_words

MOST = 4
"""Choices shown in full; the table has all."""

WAYS = {"none": N_("no sharding"), "zero2": N_("ZeRO-2"), "zero3": N_("ZeRO-3 / FSDP"), "tp": N_("tensor parallel")}
LINKS = {
    "nvlink": N_("NVLink"),
    "bridge": N_("NVLink only where bridged"),
    "fabric": N_("vendor's fabric"),
    "none": N_("PCIe, no NVLink"),
    "varies": N_("NVLink not known"),
}
SLIVER = 0.05 * GIB
"""Parts below that are not worth a word."""


def show_suggestion(frame: Frame, answer: Suggestion) -> None:
    """The whole answer: advice, what the task needs, the choices, what is not offered, what was assumed."""
    show_freshness(frame, answer.at, answer.freshness.data_at)
    _head(frame, answer)
    _need(answer)
    if answer.options:
        _picture(answer)
        for number in shown_first(answer):
            _card(frame, answer, number)
        _table(frame, answer)
    _not_offered(answer)
    _assumed(frame, answer)


def shown_first(answer: Suggestion) -> list[int]:
    """Which choices are shown in full: the recommended one on top, then those that no other beats, then by their end."""
    numbers = range(len(answer.options))
    return sorted(numbers, key=lambda i: (i != answer.recommended, not answer.options[i].pareto, i))[:MOST]


def _head(frame: Frame, answer: Suggestion) -> None:
    with st.container(key="head"):
        st.caption(as_markdown(_task_words(answer)))
        if not answer.options:
            st.markdown("### :material/block: " + _("No GPUs of this cluster can be offered"))
            st.markdown(_("Below is why, and what would change that."))
        elif answer.recommended is None:
            st.markdown("### :material/list: " + _("These hold the task; none stands out"))
            st.markdown(_("How long they would wait is not known: no like job has started yet."))
        else:
            best = answer.options[answer.recommended]
            st.markdown("### :material/recommend: " + _("{choice} would do").format(choice=_name(best)))
            reason = as_markdown(answer.because[:1].upper() + answer.because[1:])
            said = [reason + "."]
            if best.finish is not None:
                said.append(_("It would end about **{time}**.").format(time=_moment(frame, answer.at, best.finish.middle_s)))
            st.markdown(" ".join((*said, _("The choice is yours."))))


def _task_words(answer: Suggestion) -> str:
    question = answer.question
    task, shape = question.task, question.task.shape
    count = _("{n:.1f} B parameters").format(n=shape.params / 1e9)
    if shape.params < 1e9:
        count = _("{n:.0f} M parameters").format(n=shape.params / 1e6)
    batch = ngettext("{n} sequence of {seq} tokens", "{n} sequences of {seq} tokens", question.batch).format(n=question.batch, seq=task.seq)
    parts = [f"{shape.name} ({shape.source}, {count})", _(MODES[task.mode]), task.precision, batch]
    if question.hours is not None and answer.reference is not None:
        parts.append(_("{hours:g} h on {gpus}").format(hours=question.hours, gpus=answer.reference))
    return " · ".join(parts)


def _need(answer: Suggestion) -> None:
    with st.container(border=True, gap="xsmall", key="need"):
        st.markdown("##### " + _("Memory: {gib} GiB before it is split").format(gib=_gib(answer.whole.total)))
        words = [_parts(answer.whole)]
        if answer.recomputed is not None:
            words.append(_("activations {gib} GiB with checkpointing").format(gib=_gib(answer.recomputed.activations)))
            words.append(_("one sequence at a time"))
        st.markdown(" · ".join(words))
        basis = {
            "full": _("16 bytes per parameter (ZeRO, Rajbhandari et al. 2020), activations by Korthikanti et al. 2022."),
            "lora": _("Frozen weights, 16 bytes per adapter parameter (LoRA, ZeRO), activations by Korthikanti et al. 2022."),
            "inference": _("Weights, and 2 x layers x key-value width x tokens for the KV cache."),
        }[answer.question.task.mode]
        st.caption(_("Computed from published formulas, not measured.") + " " + basis)


def _parts(memory: Memory) -> str:
    words = part_words()
    return " · ".join(f"{words[k]} {_gib(v)}" for k, v in memory.parts().items() if v >= SLIVER)


def _gib(value: float) -> str:
    return f"{value / GIB:.1f}" if value < 10 * GIB else f"{value / GIB:.0f}"


def _name(option: Option) -> str:
    return as_markdown(_plain_name(option))


def _plain_name(option: Option) -> str:
    return _("{n} × {type} in {partition}").format(n=option.layout.gpus, type=option.gpu_type or _("GPU"), partition=option.partition)


def _moment(frame: Frame, at: datetime, seconds: float) -> str:
    return frame.time(at + timedelta(seconds=round(seconds)))


def _picture(answer: Suggestion) -> None:
    points = []
    for option in answer.options:
        eighty, finish, median = option.wait.interval(SHARE), option.finish, option.wait.median_s
        if eighty is None or finish is None or median is None:
            continue
        points.append(
            Point(
                _plain_name(option),
                (eighty.low_s, median, eighty.high_s),
                (finish.low_s, finish.middle_s, math.inf if finish.high_s is None else finish.high_s),
                option.gpu_hours,
                "" if option.gpu_hours is None else _("{n} GPU-hours").format(n=f"{option.gpu_hours:,.0f}"),
                option.pareto,
            )
        )
    chart = pareto_chart(points)
    if chart is None:
        return
    with st.container(border=True, gap="xsmall", key="taskpicture"):
        st.markdown("##### " + _("When each would start and end"))
        st.altair_chart(chart, width="stretch", key="taskpareto", alt=_("Each choice by its wait and its end, with ranges"))
        st.caption(
            _("Left: starts sooner. Down: ends sooner. Larger: more GPU-hours. Filled: no other is better in all three.")
            + " "
            + _("Lines: 8 in 10 waits, and the range of ends.")
        )


def _card(frame: Frame, answer: Suggestion, number: int) -> None:
    option = answer.options[number]
    layout = option.layout
    with st.container(border=True, gap="small", key=f"option{number}"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(f"##### {_name(option)}", width="content")
            if number == answer.recommended:
                st.badge(_("recommended"), icon=":material/recommend:", color="blue")
            elif option.pareto:
                st.badge(_("no other beats it"), color="green")
            if layout.tight:
                st.badge(_("tight"), icon=":material/warning:", color="orange")
        _figures(frame, answer, option)
        st.altair_chart(
            memory_bar(layout.memory.parts(), part_words(), layout.usable_bytes, option.fact.memory_gib * GIB),
            width="stretch",
            key=f"memory{number}",
            alt=_("What fills the memory of each GPU"),
        )
        st.caption(
            _("Each GPU: {used} of {whole} GiB, {free} free").format(
                used=_gib(layout.memory.total), whole=f"{option.fact.memory_gib:g}", free=_gib(layout.headroom_bytes)
            )
            + f" · {_parts(layout.memory)}"
        )
        way = " · ".join(filter(None, (option.fact.model, _way(option), _link(option))))
        st.caption(as_markdown(way))
        for note in option.notes:
            st.text(f"! {note}")
        st.code("sbatch " + " ".join(option.flags), language="bash", wrap_lines=True)
        st.button(
            _("Use this request"),
            icon=":material/edit_note:",
            key=f"use{number}",
            on_click=partial(use, request_link(option.request, answer.question.account, answer.question.qos)),
            help=_("Puts it into the form, to be changed and asked about."),
        )


def figures(pairs: list[tuple[str, str]]) -> None:
    """Small labelled values side by side; they wrap on a narrow screen. Values are our own words and numbers."""
    with st.container(horizontal=True, gap="medium"):
        for label, value in pairs:
            st.markdown(f":small[{label}]  \n**{value}**", width="content")


def _figures(frame: Frame, answer: Suggestion, option: Option) -> None:
    wait, finish = option.wait, option.finish
    pairs = [(_("half wait at most"), span(wait.median_s))]
    if finish is not None:
        pairs.append((_("ends about"), _moment(frame, answer.at, finish.middle_s)))
    if option.run is not None:
        pairs.append((_("runs about"), span(option.run.likely_s)))
    if option.gpu_hours is not None:
        pairs.append((_("GPU-hours"), f"{option.gpu_hours:,.0f}"))
    pairs += _costs(option)
    figures(pairs)
    said = []
    eighty = wait.interval(SHARE)
    if eighty is not None:
        said.append(_("8 in 10 wait {low} to {high}").format(low=span(eighty.low_s), high=span(eighty.high_s)))
    if wait.within:
        chances = ", ".join(_("{share} within {n} h").format(share=percent(p), n=f"{h:g}") for h, p in wait.within)
        said.append(_("chance to start: {chances}").format(chances=chances))
    if finish is not None and finish.high_s is not None:
        low, high = (answer.at + timedelta(seconds=round(s)) for s in (finish.low_s, finish.high_s))
        said.append(_("ends {between}").format(between=between(low, high, frame.zone, frame.now)))
    if said:
        st.caption(" · ".join(said))
    else:
        st.caption(_("No like job has started yet: the wait is not known."))


def _costs(option: Option) -> list[tuple[str, str]]:
    out = []
    if option.cost.charged is not None:
        out.append((_("billing"), f"{option.cost.charged:,.0f}"))
    if option.cost.price is not None:
        out.append((_("price"), f"{option.cost.price:,.2f} {as_markdown(option.cost.currency)}".rstrip()))
    return out


def _way(option: Option) -> str:
    layout = option.layout
    parts = [_(WAYS[layout.sharding])] if layout.gpus > 1 else []
    if layout.memory.optimiser:
        parts.append(_("activation checkpointing") if layout.checkpointing else _("no checkpointing"))
        parts.append(_("{micro} at once, {steps} per batch").format(micro=layout.micro_batch, steps=layout.accumulation))
    return ", ".join(parts)


def _link(option: Option) -> str:
    if option.layout.gpus == 1:
        return ""
    text = _(LINKS[option.link])
    return text if option.nodes == 1 else _("{link} in {n} nodes").format(link=text, n=option.nodes)


def _table(frame: Frame, answer: Suggestion) -> None:
    n = len(answer.options)
    with st.expander(ngettext("{n} choice as a table", "All {n} choices as a table", n).format(n=n), key="tasktable"):
        st.dataframe(pd.DataFrame([_cells(frame, answer, o) for o in answer.options]), hide_index=True, width="stretch")


def _cells(frame: Frame, answer: Suggestion, option: Option) -> Mapping[str, Any]:
    eighty = option.wait.interval(SHARE)
    within = dict(option.wait.within)
    return {
        _("GPUs"): f"{option.layout.gpus} × {option.gpu_type or _('GPU')}",
        _("partition"): option.partition,
        _("GiB each"): round(option.layout.memory.total / GIB, 1),
        _("free"): round(option.layout.headroom_bytes / GIB, 1),
        _("half wait at most"): span(option.wait.median_s),
        _("8 in 10"): "" if eighty is None else _("{low} to {high}").format(low=span(eighty.low_s), high=span(eighty.high_s)),
        _("within 24 h"): percent(within.get(24.0)) if within else "",
        _("ends about"): "" if option.finish is None else _moment(frame, answer.at, option.finish.middle_s),
        _("GPU-hours"): None if option.gpu_hours is None else round(option.gpu_hours, 1),
        _("billing"): None if option.cost.charged is None else round(option.cost.charged),
        _("flags"): " ".join(option.flags),
    }


def _not_offered(answer: Suggestion) -> None:
    if not answer.unfit:
        return
    n = len(answer.unfit)
    label = ngettext("{n} kind is not offered", "{n} kinds are not offered", n).format(n=n)
    with st.expander(label, expanded=not answer.options, key="unfit"):
        for unfit in answer.unfit:
            name = unfit.gpu_type
            if unfit.partition is not None:
                name = _("{type} in {partition}").format(type=name, partition=unfit.partition)
            st.text(f"• {name}: {unfit.why}" + (f" → {unfit.hint}" if unfit.hint else ""))


def _assumed(frame: Frame, answer: Suggestion) -> None:
    said = [*answer.assumptions, *answer.notes]
    timed = [o for o in answer.options if o.run is not None]
    if answer.options and answer.question.hours is None:
        said.insert(0, _("Tell the hours, and the GPUs they are for, to see ends and GPU-hours."))
    elif timed and all(o.cost.charged is None and o.cost.price is None for o in timed):
        said.append(_("What it costs is not known: no billing weights here, and no [prices] in the configuration."))
    if said:
        with st.container(border=True, gap="xsmall", key="assumed"):
            st.markdown("##### " + _("What is assumed"))
            for line in said:
                st.text(f"• {line}")
    st.caption(_("asked as of {time}").format(time=frame.time(answer.at)) + " · " + _("times in {zone}").format(zone=frame.zone))
