"""Over-requests as figures, tables and text: whose hours, what to ask for instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

from app.ui import overcharts as charts
from app.ui.overcharts import RESOURCES, group_name, hours_words
from app.ui.words import as_markdown
from queuecast.answers.rightsizing.answer import Change, Proposal
from queuecast.answers.rightsizing.overrequest_answer import Amounts, Group, Hours, OverRequests
from queuecast.i18n import N_, _, ngettext
from queuecast.render.overrequest_words import asked_of, most_used, proposed_of, share

WHAT = {
    "memory": N_("Memory"), "cpus": N_("CPUs"), "time": N_("Time limit"), "gpus": N_("GPUs"), "gpu_type": N_("GPU type"),
    "mig": N_("A slice of a GPU"), "no_gpu": N_("No GPU"),
}  # fmt: skip
RUNGS = {
    "kind": N_("of this kind"), "user and name": N_("of this user and name"), "user": N_("of this user"),
    "account": N_("of this account"), "partition": N_("of this partition"), "all": N_("of all users"),
}  # fmt: skip

MOST = 8
"""Proposals shown in full."""


def show_generated() -> None:
    """The mark of figures that a script made."""
    st.badge(_("generated, not measured"), icon=":material/science:", color="orange")


def show_nothing(answer: OverRequests) -> None:
    """No jobs, or none of which anything is known."""
    with st.container(border=True, key="empty"):
        if answer.status == "no_jobs":
            st.markdown("#### :material/inbox: " + _("No job ran in that time"))
            st.text(_("Choose more days, or fewer filters. History is read by:"))
            st.code("queuecast backfill --since 2026-01-01", language="bash")
            return
        st.markdown("#### :material/sensors_off: " + _("Nothing tells what the jobs used"))
        st.text(
            ngettext(
                "{n} job asked for resources, but neither its steps nor any other source tells its use.",
                "{n} jobs asked for resources, but neither their steps nor any other source tells their use.",
                answer.jobs,
            ).format(n=f"{answer.jobs:,}")
        )
        st.text(
            _("Slurm must gather it (JobAcctGatherType, AccountingStorageTRES=gres/gpuutil); other sources are read by queuecast ingest.")
        )


def show_figures(answer: OverRequests) -> None:
    """The numbers at the top, and the picture of them."""
    with st.container(horizontal=True, key="figures"):
        st.metric(_("jobs"), f"{answer.jobs:,}", border=True, width="stretch")
        for name, hours in answer.total.items():
            if name in RESOURCES and hours.asked > 0:
                st.metric(
                    _("{what} asked for").format(what=_(RESOURCES[name])),
                    hours_words(hours.asked),
                    _("{hours} could be freed").format(hours=hours_words(hours.reclaimable)) if hours.measured > 0 else _("not measured"),
                    delta_color="off",
                    delta_arrow="off",
                    border=True,
                    width="stretch",
                    help=figure_help(hours),
                )
    drawn = charts.whole_chart(answer.total)
    st.altair_chart(drawn, width="stretch", key="whole", alt=_("Shares of the hours asked for: used, to be freed, unused, not measured"))
    st.caption(
        _(
            "To be freed: had the requests below been made, at a risk of {risk} that a next job needs more. "
            "What the site's default asked for is nobody's over-request."
        ).format(risk=share(answer.risk))
    )
    for note in answer.notes:
        st.caption(as_markdown(note))


def figure_help(hours: Hours) -> str:
    """The hours behind a share."""
    words = _("Of {asked} hours asked for, the use of {measured} is known: {used} were used, {freed} could be freed.").format(
        asked=hours_words(hours.asked),
        measured=hours_words(hours.measured),
        used=hours_words(hours.used),
        freed=hours_words(hours.reclaimable),
    )
    if hours.without:
        words += " " + ngettext("Of {n} job it is not known.", "Of {n} jobs it is not known.", hours.without).format(n=f"{hours.without:,}")
    return words


def resources_there(total: Amounts) -> list[str]:
    """Those that anybody asked for."""
    return [name for name, hours in total.items() if name in RESOURCES and hours.asked > 0]


def groups_table(groups: Sequence[Group]) -> pd.DataFrame:
    """All resources of each group; empty where nothing was measured."""
    data: dict[str, Any] = {"name": [group_name(g) for g in groups], "jobs": [g.jobs for g in groups]}
    for resource in RESOURCES:
        of = [dict(g.amounts.items())[resource] for g in groups]
        data[f"{resource}_asked"] = [h.asked for h in of]
        data[f"{resource}_used"] = [h.used if h.measured > 0 else None for h in of]
        data[f"{resource}_freed"] = [h.reclaimable if h.measured > 0 else None for h in of]
    frame = pd.DataFrame(data)
    return frame.astype({c: "float64" for c in frame.columns if c not in ("name", "jobs")})


def groups_columns(title: str) -> dict[str, Any]:
    """Headings of the table."""
    column = st.column_config
    short = {"gpu": _("GPU-h"), "core": _("Core-h"), "memory": _("GiB-h")}
    parts = {"asked": _("{what} asked"), "used": _("{what} used"), "freed": _("{what} to free")}
    numbers = {f"{r}_{p}": column.NumberColumn(words.format(what=short[r]), format="%.0f") for r in RESOURCES for p, words in parts.items()}
    return {"name": column.TextColumn(title), "jobs": column.NumberColumn(_("Jobs"))} | numbers


def show_proposals(answer: OverRequests) -> None:
    """The weightiest kinds, each with what to ask for, why, and what to paste."""
    found = answer.proposals
    if not found.items:
        st.text(_("Nothing can be proposed: either requests fit, or too few jobs of a kind were measured."))
    for number, proposal in enumerate(found.items[:MOST]):
        with st.expander(proposal_title(proposal), expanded=number == 0, icon=":material/north:" if proposal.more else ":material/south:"):
            _show_proposal(proposal, number)
    if len(found.items) > MOST:
        st.caption(_("The {n} weightiest of {all}; the download has them all.").format(n=MOST, all=len(found.items)))
    for note in found.notes:
        st.caption(as_markdown(note))
    if found.hidden:
        st.caption(
            ngettext("{n} more is about a job of others.", "{n} more are about jobs of others.", found.hidden).format(n=found.hidden)
        )


def proposal_title(proposal: Proposal) -> str:
    """Whose jobs, how many, what is gained: safe as Markdown."""
    jobs = ngettext("{n} job", "{n} jobs", proposal.jobs).format(n=f"{proposal.jobs:,}")
    gain = saved_words(proposal)
    if proposal.more:
        gain = _("needs more") if not gain else _("needs more of one, {gain}").format(gain=gain)
    return as_markdown(f"{proposal.kind.key[:80]} · {jobs} · {gain or _('same hours, smaller GPU')}")


def saved_words(proposal: Proposal) -> str:
    """The hours that the proposal frees; "" without any."""
    saved = proposal.saved
    parts = [
        _("{n} GPU-h").format(n=hours_words(saved.gpu_hours)) if saved.gpu_hours >= 0.05 else "",
        _("{n} core-h").format(n=hours_words(saved.core_hours)) if saved.core_hours >= 0.05 else "",
        _("{n} GiB-h").format(n=hours_words(saved.memory_gib_hours)) if saved.memory_gib_hours >= 0.05 else "",
        _("{n} h of limits").format(n=hours_words(saved.limit_hours)) if saved.limit_hours >= 0.05 else "",
    ]
    told = [p for p in parts if p]
    return _("frees {amounts}").format(amounts=", ".join(told[:3])) if told else ""


def _show_proposal(proposal: Proposal, number: int) -> None:
    with st.container(key=f"proposal_{number}"):
        if proposal.generated:
            show_generated()
        kind = proposal.kind
        where = [kind.partition, kind.account, kind.qos]
        st.caption(as_markdown(" · ".join(w for w in where if w)))
        for change in proposal.changes:
            st.markdown(f"**{as_markdown(_(WHAT[change.what]))}:** {as_markdown(change_words(change))}")
            st.caption(as_markdown(evidence_words(change)))
            for condition in change.conditions:
                st.caption(":material/rule: " + as_markdown(_("If: {condition}").format(condition=condition)))
        if proposal.flags:
            st.code("sbatch " + " ".join(proposal.flags) + " …", language="bash", wrap_lines=True)
        if proposal.saved.price is not None:
            st.text(
                _("Worth {price} {currency} in this time.").format(price=f"{proposal.saved.price:,.0f}", currency=proposal.saved.currency)
            )


def change_words(change: Change) -> str:
    """From what to what."""
    words = _("{asked} asked, {proposed} would do").format(asked=asked_of(change), proposed=proposed_of(change))
    if change.more:
        words = _("{asked} asked, {proposed} needed: jobs were killed for too little").format(
            asked=asked_of(change), proposed=proposed_of(change)
        )
    return words + (" " + _("(set by the site's default)") if change.site_default else "")


def evidence_words(change: Change) -> str:
    """On how many jobs it rests, what they used, how sure it is."""
    e = change.evidence
    words = ngettext("Rests on {n} job {whose}", "Rests on {n} jobs {whose}", e.n).format(
        n=f"{e.n:,}", whose=_(RUNGS[e.rung]) if e.rung in RUNGS else ""
    )
    if e.used is not None:
        words += "; " + _("the most used was {most}").format(most=most_used(change))
    words += ". " + _("Up to {risk} of next jobs may need more.").format(risk=share(e.risk))
    if e.risk_seen is not None:
        words += " " + _("In the past it would have been {seen}.").format(seen=share(e.risk_seen))
    if e.without:
        words += " " + ngettext("{n} more tells nothing.", "{n} more tell nothing.", e.without).format(n=f"{e.without:,}")
    if e.changed_at is not None:
        words += " " + _("Use changed on {day}; earlier jobs do not count.").format(day=f"{e.changed_at:%Y-%m-%d}")
    return words
