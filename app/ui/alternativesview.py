"""What would start sooner than what was asked for. Names that Slurm or people gave are escaped, or shown as text or code."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from app.ui.alternativecharts import Point, pareto_chart
from app.ui.question import request_link, use
from app.ui.shell import Frame
from app.ui.suggestview import figures
from app.ui.words import as_markdown, between, percent, span
from queuecast.answers.alternatives_answer import Alternatives, Option, Spread
from queuecast.i18n import _, ngettext

MOST = 4
"""Changes shown in full; the table has all."""

SAME_S = 60.0
"""Starts that differ by less are called the same."""

LIKELY = 0.5
"""Starting sooner in more than this share of futures is called likely."""

FAR = 0.1
"""Below that share of futures, a start is not worth saying "in ... of the futures"."""


def show_alternatives(frame: Frame, found: Alternatives, question: Mapping[str, str]) -> None:
    """Advice, picture, the changes worth a look with flags to copy, all of them as a table, and what it rests on."""
    _head(found)
    if found.options:
        _picture(found)
        for number in shown_first(found):
            _card(frame, found, number, question)
        _table(frame, found)
    _basis(found)


def shown_first(found: Alternatives) -> list[int]:
    """Which changes are shown in full: the recommended one, then those that no other beats, then those that likely start sooner. What is
    neither is in the table."""
    recommended, options = found.recommended, found.options

    def likely(option: Option) -> bool:
        return (option.p_sooner or 0.0) > LIKELY

    def rank(number: int) -> tuple[bool, bool, bool, int]:
        option = options[number]
        return (option is not recommended, not _unbeaten(option), not likely(option), number)

    worth = [i for i, o in enumerate(options) if o is recommended or _unbeaten(o) or likely(o)]
    return sorted(worth, key=rank)[:MOST]


def _unbeaten(option: Option) -> bool:
    """No other is better in all, and it starts within the futures: being cheap alone is no reason to show what does not start."""
    return option.pareto and option.wait is not None and math.isfinite(option.wait.median_s)


def sooner_words(option: Option) -> str:
    """How much sooner it starts than as asked, in the same futures."""
    gain = option.sooner
    if gain is None:
        return _("not known")
    if math.isnan(gain.median_s) or abs(gain.median_s) < SAME_S:
        return _("about the same")
    if gain.median_s > 0:
        return _("{span} sooner").format(span=span(gain.median_s))
    return _("{span} later").format(span=span(-gain.median_s))


def _head(found: Alternatives) -> None:
    best = found.recommended
    with st.container(key="soonerhead"):
        if best is not None:
            st.markdown("#### :material/fast_forward: " + _("{change}: likely sooner").format(change=as_markdown(best.label)))
            words = [_gain(found, best)]
            if found.as_asked.finish is not None and best.finish is not None:
                words.append(_("It ends no later."))
            words.append(_("The choice is yours."))
            st.markdown(" ".join(words))
        elif not found.options:
            st.markdown("#### :material/check: " + _("There is nothing else to ask for here"))
            st.markdown(_("No other partition, type, size or limit is both allowed and different. Below is what was tried."))
        else:
            st.markdown("#### :material/check: " + _("Stay with what you asked for"))
            st.markdown(_("No change that is allowed here is likely to start sooner and end no later. These are the trades there are."))


def waits(found: Alternatives, seconds: float | None) -> str:
    """A wait; infinite is beyond the futures."""
    if seconds is not None and math.isinf(seconds):
        return _("over {span}").format(span=span(found.horizon_s))
    return span(seconds)


def _ends(frame: Frame, found: Alternatives, option: Option) -> str:
    middle = None if option.finish is None else found.moment(option.finish.median_s)
    if middle is not None:
        return frame.time(middle)
    if option.finish is None or option.wait is None:
        return _("unknown")
    return _("later than is looked at") if math.isinf(option.wait.median_s) else _("cut by its limit")


def _gain(found: Alternatives, option: Option) -> str:
    if option.sooner is None or option.p_sooner is None:
        return ""
    text = _("In {share} of {n} played futures it starts sooner, half of the time **{gain}** or better").format(
        share=percent(option.p_sooner), n=found.futures, gain=sooner_words(option)
    )
    low, high = option.sooner.low_s, option.sooner.high_s
    return text + " " + _("(8 in 10: {low} to {high}).").format(low=_signed(low), high=_signed(high))


def _signed(seconds: float) -> str:
    if abs(seconds) < SAME_S:
        return _("no change")
    return _("{span} sooner").format(span=span(seconds)) if seconds > 0 else _("{span} later").format(span=span(-seconds))


def _picture(found: Alternatives) -> None:
    points = [p for o in (found.as_asked, *found.options) if (p := _point(found, o, asked=o is found.as_asked)) is not None]
    chart = pareto_chart(points)
    if chart is None:
        return
    with st.container(border=True, gap="xsmall", key="soonerpicture"):
        st.markdown("##### " + _("Wait against end"))
        st.altair_chart(chart, width="stretch", key="pareto", alt=_("Each change by its wait and its end, with 8 in 10 ranges"))
        st.caption(
            _("Left: starts sooner. Down: ends sooner. Larger: costs more. Diamond: as asked. Filled: no other is better in all three.")
            + " "
            + _("Lines: 8 in 10 waits, and the range of ends.")
        )


def _point(found: Alternatives, option: Option, *, asked: bool) -> Point | None:
    if option.wait is None or option.finish is None:
        return None
    price = option.price
    return Point(
        _("as asked") if asked else option.label,
        _three(option.wait),
        _three(option.finish),
        None if price is None else price[0],
        " · ".join(f"{value} {label}" for label, value in _costs(option, markdown=False)),
        option.pareto,
        asked,
        _("over {span}").format(span=span(found.horizon_s)),
    )


def _three(spread: Spread) -> tuple[float, float, float]:
    return spread.low_s, spread.median_s, spread.high_s


def _costs(option: Option, *, markdown: bool = True) -> list[tuple[str, str]]:
    out = []
    if option.gpu_hours is not None:
        out.append((_("GPU-hours"), f"{option.gpu_hours:,.0f}" if option.gpu_hours >= 10 else f"{option.gpu_hours:,.1f}"))
    if option.cost.charged is not None:
        out.append((_("billing"), f"{option.cost.charged:,.0f}"))
    if option.cost.price is not None:
        currency = as_markdown(option.cost.currency) if markdown else option.cost.currency
        out.append((_("price"), f"{option.cost.price:,.2f} {currency}".rstrip()))
    return out


def command(option: Option, job_id: str | None) -> str:
    """What to type: only what changes."""
    flags = " ".join(option.flags)
    if option.keeps_place and job_id is not None:
        return f"scontrol update {flags}" if "JobId=" in flags else f"scontrol update JobId={job_id} {flags}"
    return f"sbatch {flags}"


def _card(frame: Frame, found: Alternatives, number: int, question: Mapping[str, str]) -> None:
    option = found.options[number]
    with st.container(border=True, gap="small", key=f"change{number}"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(f"##### {as_markdown(option.label)}", width="content")
            if option is found.recommended:
                st.badge(_("recommended"), icon=":material/recommend:", color="blue")
            elif _unbeaten(option):
                st.badge(_("no other beats it"), color="green")
        pairs = [(_("half wait at most"), waits(found, option.wait.median_s) if option.wait else _("unknown"))]
        pairs.append((_("against as asked"), sooner_words(option)))
        if option.finish is not None:
            pairs.append((_("ends about"), _ends(frame, found, option)))
        figures([*pairs, *_costs(option)])
        st.caption(" · ".join(_said(frame, found, option)))
        for condition in option.conditions:
            st.text(f"• {condition}")
        if option.flags:
            st.code(command(option, found.job_id), language="bash", wrap_lines=True)
            if option.keeps_place:
                st.caption(_("Changes the job that waits; it keeps the age it has."))
        if option.delay_s == 0 and option.request.array_tasks == 1:
            asked_qos = option.request.qos if found.job_id is not None or "qos" in option.kinds else question.get("qos")
            asked_account = option.request.account if found.job_id is not None else question.get("account")
            st.button(
                _("Use this request"),
                icon=":material/edit_note:",
                key=f"change_use{number}",
                on_click=partial(use, request_link(option.request, asked_account, asked_qos)),
                help=_("Puts it into the form, to be changed and asked about."),
            )


def _said(frame: Frame, found: Alternatives, option: Option) -> list[str]:
    said = []
    if option.wait is not None:
        said.append(_("8 in 10 wait {low} to {high}").format(low=waits(found, option.wait.low_s), high=waits(found, option.wait.high_s)))
    if option.within:
        chances = ", ".join(_("{share} within {n} h").format(share=percent(p), n=f"{h:g}") for h, p in option.within)
        said.append(_("chance to start: {chances}").format(chances=chances))
    if option.p_sooner is not None and option.p_sooner >= FAR:
        said.append(_("sooner in {share} of the futures").format(share=percent(option.p_sooner)))
    if option.finish is not None:
        low, high = found.moment(option.finish.low_s), found.moment(option.finish.high_s)
        if low is not None and high is not None:
            said.append(_("ends {between}").format(between=between(low, high, frame.zone, frame.now)))
    if option.cut:
        said.append(_("its limit would end {share} of like runs too early").format(share=percent(option.cut)))
    return said or [_("Nothing is known of its wait.")]


def _table(frame: Frame, found: Alternatives) -> None:
    n = len(found.options)
    with st.expander(ngettext("{n} change as a table", "All {n} changes as a table", n).format(n=n), key="soonertable"):
        rows = [_cells(frame, found, o) for o in (found.as_asked, *found.options)]
        st.dataframe(pd.DataFrame(rows), hide_index=True, width="stretch")


def _cells(frame: Frame, found: Alternatives, option: Option) -> Mapping[str, Any]:
    within = dict(option.within)
    asked = option is found.as_asked
    wait = option.wait
    return {
        _("change"): _("as asked") if asked else option.label,
        _("half wait at most"): "" if wait is None else waits(found, wait.median_s),
        _("8 in 10"): "" if wait is None else _("{low} to {high}").format(low=waits(found, wait.low_s), high=waits(found, wait.high_s)),
        **{_("within {n} h").format(n=h): percent(within[h]) if h in within else "" for h in (1, 4, 24)},
        _("against as asked"): "" if asked else sooner_words(option),
        _("ends about"): _ends(frame, found, option),
        _("GPU-hours"): None if option.gpu_hours is None else round(option.gpu_hours, 1),
        _("billing"): None if option.cost.charged is None else round(option.cost.charged),
        _("type"): "" if asked or not option.flags else command(option, found.job_id),
    }


def agreement_words(found: Alternatives) -> str:
    """Whether the replay of the queue and the model of waits tell the same; our own words and numbers."""
    both = found.agreement
    if both.model is None and both.twin is None:
        return _("Neither the model nor the replay of the queue can tell how long it waits as asked.")
    if both.twin is None or both.model is None:
        if both.model is None:
            return _("Only the replay of the queue tells how long it waits as asked: no like job has started yet.")
        return _("Only the model of past waits tells how long it waits as asked: the queue could not be replayed.")
    told = _("as asked, half wait {replay} at most by the replay of the queue, {model} by the model of past waits").format(
        replay=waits(found, both.twin.median_s), model=waits(found, both.model.median_s)
    )
    weight = _("the replay counts {share}").format(share=percent(both.twin_weight))
    basis = _("by how well both did for {n} jobs").format(n=both.counted) if both.counted else _("neither was measured here")
    head = _("They agree") if both.agree else _("They do not agree")
    return f"{head}: {told}; {weight}, {basis}."


def _basis(found: Alternatives) -> None:
    with st.container(border=True, gap="xsmall", key="soonerbasis"):
        st.markdown("##### " + _("What this rests on"))
        st.markdown((":material/warning: " if found.agreement.agree is False else "") + agreement_words(found))
        if found.futures:
            words = ngettext(
                "{n} future was played from the queue as it was read, the same one for each change.",
                "{n} futures were played from the queue as it was read, the same ones for each change.",
                found.futures,
            )
            st.markdown(words.format(n=found.futures))
        for line in (*found.basis, *found.notes):
            st.text(f"• {line}")
        if found.refused:
            n = len(found.refused)
            label = ngettext("{n} change is not possible here", "{n} changes are not possible here", n).format(n=n)
            with st.expander(label, key="refused"):
                for line in found.refused:
                    st.text(f"• {line}")
