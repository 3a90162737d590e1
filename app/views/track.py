"""Page: how well such answers held."""

from __future__ import annotations

from collections.abc import Container, Mapping
from datetime import datetime

import altair as alt
import streamlit as st
from app.ui import trackcharts as charts
from app.ui import trackview as view
from app.ui.question import asked_at
from app.ui.shell import Frame, friendly, open_frame

from queuecast.answers.track import Track, track
from queuecast.i18n import N_, _
from queuecast.models.record import TrackRecord

GPUS = {"": N_("All jobs"), "yes": N_("With GPUs"), "no": N_("Without")}
WHEN = {"": N_("All answers"), "submission": N_("At submission"), "waiting": N_("While pending")}
DAYS = {"7": "7", "14": "14", "30": "30"}


def measured(frame: Frame) -> tuple[TrackRecord, datetime] | None:
    """The answers kept with the current model for this cluster, and up to when they reach."""
    model = frame.shared.forecaster.model
    records: Mapping[str, TrackRecord] = {} if model is None else model.records
    record = records.get(frame.cluster)
    return (record, model.data_until) if model is not None and record is not None and len(record) else None


def choose(record: TrackRecord, at: datetime) -> Track:
    """The filters, kept in the link, and what is left."""
    names = sorted({name for name in record.partitions if name}, key=str.casefold)
    with st.container(horizontal=True, vertical_alignment="bottom", key="filters"):
        _follow_link("partition", names, None)
        partition = st.selectbox(_("Partition"), names, index=None, key="track_partition", placeholder=_("all partitions"), width=220)
        gpu = _choice(_("GPUs"), "gpu", GPUS, "")
        asked = _choice(_("Asked"), "asked", WHEN, "")
        days = _choice(_("Last days"), "days", DAYS, "30")
    _write_link("partition", partition, None)
    return track(
        record,
        partition=partition,
        gpu={"yes": True, "no": False}.get(gpu),
        pending={"waiting": True, "submission": False}.get(asked),
        days=int(days),
        at=at,
    )


def _choice(label: str, name: str, options: Mapping[str, str], usual: str) -> str:
    _follow_link(name, options, usual)
    chosen = st.segmented_control(label, list(options), format_func=lambda value: _(options[value]), key=f"track_{name}", required=True)
    _write_link(name, chosen, usual)
    return chosen or usual


def _follow_link(name: str, options: Container[str], usual: str | None) -> None:
    """Start from the link; what is not offered (any more) gives way to the usual."""
    key = f"track_{name}"
    if key not in st.session_state:
        st.session_state[key] = st.query_params.get(name, usual)
    if st.session_state[key] not in options:
        st.session_state[key] = usual


def _write_link(name: str, chosen: str | None, usual: str | None) -> None:
    if chosen and chosen != usual:
        st.query_params[name] = chosen
    else:
        st.query_params.pop(name, None)


def show(found: Track) -> None:
    """The page below its filters."""
    if not found.enough:
        view.show_too_few(found)
        return
    view.show_headline(found)
    view.show_figures(found)
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader(_("Do the intervals hold?"), anchor=False)
        held = charts.coverage_chart(found.by_day)
        _chart(held, "coverage", _("Share of 80 % intervals that held by day, against the claimed 80 %"))
        st.caption(
            _("Bars: where the true share may lie, given how few were counted that day. Hollow: many of that day's jobs still wait.")
            + " "
            + _("Days of fewer than {n} answers are left out.").format(n=view.FEW)
        )
    with right:
        st.subheader(_("How far off is the middle?"), anchor=False)
        errors = charts.error_chart(found.by_day)
        _chart(errors, "errors", _("Middle error by day, of the median and of Slurm's own estimate"))
        st.caption(view.slurm_words(found))
    st.subheader(_("Do the chances hold?"), anchor=False)
    *places, last = st.columns(4, gap="small")
    for place, curve in zip(places, found.reliability, strict=True):
        with place:
            st.markdown("**" + _("Start within {n} h").format(n=f"{curve.hours:g}") + "**")
            if curve.points:
                name = _("Chance told to start within {n} h against the share that did").format(n=f"{curve.hours:g}")
                st.altair_chart(charts.reliability_chart(curve), width="stretch", key=f"chance_{curve.hours:g}", alt=name)
            else:
                st.text(_("Too few outcomes are known."))
    with last:
        st.markdown("**" + _("Start in the range told") + "**")
        if found.pit is not None:
            words = _("Where in the range told the jobs started, in tenths")
            st.altair_chart(charts.pit_chart(found.pit, found.whole.started), width="stretch", key="pit", alt=words)
    st.caption(
        _("Of the answers that told a chance of 70 %, 7 in 10 should start in time: dots on the dashed line.")
        + " "
        + _("And as many jobs should start in each tenth of the range told.")
    )
    view.show_partitions(found)


def _chart(chart: alt.LayerChart | None, key: str, words: str) -> None:
    if chart is None:
        st.text(_("No day has {n} answers that can be counted.").format(n=view.FEW))
    else:
        st.altair_chart(chart, width="stretch", key=key, alt=words)


st.header(_("How well did such answers hold?"), anchor=False)
page_frame = open_frame()
with friendly():
    page_record = measured(page_frame)
    if page_record is None:
        view.show_nothing()
    else:
        show(choose(page_record[0], asked_at(page_frame)))
        st.caption(
            _(
                "Each answer was made again with what was known at its moment, by a model that had not seen the outcome. "
                "Counted are those whose job has started or has waited longer than the interval. The record ends {time}."
            ).format(time=page_frame.time(page_record[1]))
        )
    view.show_given(page_frame)
