"""How past answers held, by partition and in words. Only counts and shares are shown, and none of fewer than five answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from app.ui.csvsafe import to_csv
from app.ui.shell import Frame
from app.ui.words import percent, span
from queuecast.answers.scoring import predictions_of, summary
from queuecast.answers.track import CLAIMED, ENOUGH, Errors, Held, Slice, Track
from queuecast.errors import StoreError
from queuecast.i18n import _, ngettext

FEW = 5
"""A share or a middle of fewer is noise, and might be of one person."""

MOST_WAITING = 0.1
"""Where more than this share still waits inside its interval, it is said that the quick ones are counted."""


def show_nothing() -> None:
    """No model, or one without answers of this cluster."""
    with st.container(border=True, key="empty"):
        st.markdown("#### :material/fact_check: " + _("Nothing was measured yet"))
        st.text(_("Training asks again what could have been asked in the last weeks, and keeps what was told and what came:"))
        st.code("queuecast train", language="bash")


def show_too_few(found: Track) -> None:
    """What to do where nothing can be said."""
    with st.container(border=True, key="few"):
        st.markdown("#### :material/hourglass_empty: " + _("Too few answers to judge"))
        st.text(
            ngettext(
                "{n} answer of this kind can be counted so far; {enough} are needed.",
                "{n} answers of this kind can be counted so far; {enough} are needed.",
                found.whole.held.counted,
            ).format(n=found.whole.held.counted, enough=ENOUGH)
        )
        st.text(_("Choose more days or more kinds of jobs. If the record is old, make it anew:"))
        st.code("queuecast train", language="bash")


def show_headline(found: Track) -> None:
    """The finding in plain words: our own and numbers only, so Markdown is safe."""
    held = found.whole.held
    if held.held is None or held.low is None or held.high is None:
        return
    if held.high < held.claimed:
        title = ":material/warning: " + _("The intervals held less often than they claim")
        verdict = _("They are too narrow, or off to one side.")
    elif held.low > held.claimed:
        title = ":material/check: " + _("The intervals held more often than they claim")
        verdict = _("They are wider than they need be.")
    else:
        title = ":material/check_circle: " + _("The intervals held as often as they claim")
        verdict = _("That is within chance.")
    said = ngettext(
        "Of **{n}** answer in the last {days} days, **{held}** of the {claimed} intervals held the start.",
        "Of **{n}** answers in the last {days} days, **{held}** of the {claimed} intervals held the start.",
        held.counted,
    ).format(n=f"{held.counted:,}", days=found.days, held=percent(held.held), claimed=percent(held.claimed))
    with st.container(key="head"):
        st.markdown(f"### {title}")
        st.markdown(said + " " + verdict)
        if found.whole.waiting > MOST_WAITING * found.whole.answers:
            st.markdown(
                ":material/info: "
                + ngettext(
                    "{n} more job still waits inside its interval: what is counted so far are the quick ones.",
                    "{n} more jobs still wait inside their intervals: what is counted so far are the quick ones.",
                    found.whole.waiting,
                ).format(n=f"{found.whole.waiting:,}")
            )


def show_figures(found: Track) -> None:
    """The numbers at the top."""
    with st.container(horizontal=True, key="figures"):
        for held in found.coverage:
            st.metric(
                _("{claimed} intervals held").format(claimed=percent(held.claimed)),
                percent(held.held),
                border=True,
                width="stretch",
                help=_within_chance(held),
            )
        whole = found.whole
        st.metric(
            _("off by, in the middle"),
            span(whole.ours.median_abs_s),
            border=True,
            width="stretch",
            help=_("Half of the medians were off by less, over {n} answers whose job has started.").format(n=f"{whole.ours.count:,}"),
        )
        st.metric(
            _("within a factor of 2"),
            percent(whole.ours.within_2x),
            border=True,
            width="stretch",
            help=_("Share of the medians that were between half and twice the wait."),
        )


def _within_chance(held: Held) -> str:
    return _("{n} counted; the true share may lie at {range}.").format(n=f"{held.counted:,}", range=range_words(held))


def slurm_words(found: Track) -> str:
    """Our errors and Slurm's on the same answers."""
    whole = found.whole
    if whole.slurm.count < FEW:
        return _("Slurm's own estimates cannot be compared: hardly any was recorded beside these answers.")
    words = _("Slurm gave an estimate beside {given} of {answers} answers. On the {n} whose job has started, it was off by {slurm}").format(
        given=f"{whole.slurm_given:,}", answers=f"{whole.answers:,}", n=f"{whole.slurm.count:,}", slurm=span(whole.slurm.median_abs_s)
    )
    return (
        words
        + " "
        + _("in the middle, our median by {ours}; within a factor of 2: {near} and {ours_near}.").format(
            ours=span(whole.ours_beside_slurm.median_abs_s),
            near=percent(whole.slurm.within_2x),
            ours_near=percent(whole.ours_beside_slurm.within_2x),
        )
    )


def show_partitions(found: Track) -> None:
    """The table, to look at and to take along."""
    st.subheader(_("By partition"), anchor=False)
    slices = found.by_partition
    st.dataframe(
        partition_table(slices),
        column_config=partition_columns(),
        hide_index=True,
        width="stretch",
        key="partitions",
        height=min(460, 38 + 35 * len(slices)),
        placeholder="–",
    )
    with st.container(horizontal=True, vertical_alignment="center", key="foot"):
        st.download_button(
            _("Download CSV"), track_csv(found), "track-record.csv", "text/csv", key="csv", icon=":material/download:", on_click="ignore"
        )
        st.caption(_("Numbers of fewer than {n} answers are left out.").format(n=FEW))


def show_given(frame: Frame) -> None:
    """Answers that people were really given, scored by what came. Says nothing of few: they might be one person's."""
    try:
        score = summary(predictions_of(frame.lake), frame.cluster)
    except StoreError:
        return  # a log that cannot be read is no reason to hide the rest
    if not score.given:
        return
    with st.container(border=True, key="given"):
        st.markdown("##### " + _("Answers really given"))
        words = ngettext("{n} answer was given", "{n} answers were given", score.given).format(n=f"{score.given:,}")
        words += "; " + ngettext("{n} of the jobs has started since.", "{n} of the jobs have started since.", score.scored).format(
            n=f"{score.scored:,}"
        )
        if score.scored < ENOUGH:
            st.markdown(words + " " + _("From {n} on they are scored here.").format(n=ENOUGH))
            return
        st.markdown(words)
        with st.container(horizontal=True, key="given_figures"):
            for claimed, held in ((0.5, score.held_50), (CLAIMED, score.held_80), (0.95, score.held_95)):
                st.metric(_("{claimed} intervals held").format(claimed=percent(claimed)), percent(held), border=True, width="stretch")
            st.metric(_("off by, in the middle"), span(score.median_abs_error_s), border=True, width="stretch")


def partition_table(slices: Sequence[Slice]) -> pd.DataFrame:
    """One row per partition; empty cells where fewer than five answers stand behind a number."""

    def share(values: Iterable[float | None]) -> list[float | None]:
        return [None if v is None else 100 * v for v in values]

    def hours(errors: Iterable[Errors]) -> list[float | None]:
        return [None if (m := _middle(e)) is None else m / 3600 for e in errors]

    return pd.DataFrame(
        {
            "partition": [s.name or _("unknown") for s in slices],
            "counted": [s.held.counted for s in slices],
            "held": share(s.held.held if s.held.counted >= FEW else None for s in slices),
            "range": [range_words(s.held) if s.held.counted >= FEW else None for s in slices],
            "ours": hours(s.ours for s in slices),
            "near": share(_near(s.ours) for s in slices),
            "given": share(s.slurm_given / s.answers if s.answers >= FEW else None for s in slices),
            "slurm": hours(s.slurm for s in slices),
            "beside": hours(s.ours_beside_slurm for s in slices),
        }
    ).astype(dict.fromkeys(("held", "ours", "near", "given", "slurm", "beside"), "float64"))


def partition_columns() -> dict[str, Any]:
    """Headings and forms of the table's columns; names of partitions are plain text."""
    column = st.column_config
    return {
        "partition": column.TextColumn(_("Partition")),
        "counted": column.NumberColumn(_("Counted"), help=_("Answers whose job started, or waited longer than the interval.")),
        "held": column.NumberColumn(_("80 % held"), format="%.0f %%", help=_("Share of the 80 % intervals that held the start.")),
        "range": column.TextColumn(_("Within chance"), help=_("Where the true share may lie, given that so few were counted.")),
        "ours": column.NumberColumn(_("Off by (h)"), format="%.2f", help=_("Middle of the errors of our median.")),
        "near": column.NumberColumn(_("Within 2×"), format="%.0f %%", help=_("Our median at most a factor of 2 off.")),
        "given": column.NumberColumn(_("Slurm gave"), format="%.0f %%", help=_("Share of answers beside which Slurm had an estimate.")),
        "slurm": column.NumberColumn(_("Slurm off by (h)"), format="%.2f", help=_("Middle of the errors of Slurm's estimates.")),
        "beside": column.NumberColumn(_("Ours there (h)"), format="%.2f", help=_("Middle of our errors on those same answers.")),
    }


def track_csv(track: Track) -> bytes:
    """The numbers by partition for a spreadsheet: seconds and shares between 0 and 1, empty where unknown or of too few."""
    names = (
        "partition",
        "answers",
        "counted",
        "held_80",
        "held_80_low",
        "held_80_high",
        "median_abs_error_s",
        "within_2x",
        "slurm_given",
        "slurm_scored",
        "slurm_median_abs_error_s",
        "slurm_within_2x",
        "ours_beside_slurm_median_abs_error_s",
        "ours_beside_slurm_within_2x",
    )

    def errors(e: Errors) -> list[float | None]:
        middle = _middle(e)
        return [None if middle is None else round(middle), _rounded(_near(e))]

    def held(h: Held) -> list[float | None]:
        return [_rounded(v) if h.counted >= FEW else None for v in (h.held, h.low, h.high)]

    return to_csv(
        names,
        (
            [
                s.name,
                s.answers,
                s.held.counted,
                *held(s.held),
                *errors(s.ours),
                s.slurm_given,
                s.slurm.count,
                *errors(s.slurm),
                *errors(s.ours_beside_slurm),
            ]
            for s in track.by_partition
        ),
    )


def range_words(held: Held) -> str:
    """Between which shares the true one may lie."""
    return _("unknown") if held.low is None or held.high is None else to_words(held.low, held.high)


def to_words(low: float, high: float) -> str:
    """Two shares in per cent."""
    return _("{low} to {high} %").format(low=round(100 * low), high=round(100 * high))


def _middle(errors: Errors) -> float | None:
    return errors.median_abs_s if errors.count >= FEW else None


def _near(errors: Errors) -> float | None:
    return errors.within_2x if errors.count >= FEW else None


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 4)
