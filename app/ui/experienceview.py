"""How users fare: a row per group, and what each measure means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import pandas as pd
import streamlit as st

from app.ui.csvsafe import to_csv
from app.ui.linked import link_choice
from app.ui.shell import Frame
from app.ui.words import percent, span
from queuecast.answers.experiences.answer import Cell, Experience, Part, TimeTo
from queuecast.answers.experiences.experience import experience
from queuecast.i18n import N_, _, ngettext

BY = {"experience": N_("Experience"), "gpus": N_("GPUs"), "form": N_("Form of job")}
FORMS = {"batch": N_("batch job"), "array": N_("array"), "interactive": N_("interactive"), "unknown": N_("unknown")}
FEW = 5
"""A middle or share of fewer is noise."""


def _measure(
    _frame: Frame, path: str, version: int, cluster: str, since: datetime, at: datetime, viewer: tuple[str | None, bool]
) -> Experience:
    """Kept by what does not begin with an underscore."""
    return experience(_frame.lake, cluster, since=since, at=at, viewer=_frame.viewer)


_measured: Callable[[Frame, str, int, str, datetime, datetime, tuple[str | None, bool]], Experience] = st.cache_resource(
    _measure, max_entries=8, show_spinner=False
)


def measured(frame: Frame, since: datetime, at: datetime) -> Experience:
    """The measures of a window."""
    who = (frame.viewer.user, frame.viewer.sees_all)
    return _measured(frame, str(frame.lake.path), frame.lake.manifest.version, frame.cluster, since, at, who)


def show_experience(frame: Frame, since: datetime, at: datetime) -> None:
    """The block."""
    with st.spinner(_("Following users from failure to success …")):
        found = measured(frame, since, at)
    whole = found.whole
    if whole is None:
        st.text(_("Too few users to show without showing single ones."))
        return
    if not whole.attempts:
        st.text(_("No attempt in this time."))
        return
    with st.container(horizontal=True, key="experience"):
        _metric(_("first success"), time_words(whole.first_success), time_help(whole.first_success))
        _metric(_("fail within 2 min"), share_words(whole.early_failure), share_help(whole.early_failure))
        _metric(_("back after a failure"), time_words(whole.recovery), time_help(whole.recovery))
        _metric(_("resumed well"), share_words(whole.resumed), share_help(whole.resumed))
        _metric(_("same failure again"), share_words(whole.repeated), share_help(whole.repeated))
    if found.cells:
        dimension = link_choice("fail", _("By"), "by", BY, "experience")
        cells = [c for c in found.cells if _only(c, dimension)]
        st.dataframe(
            cells_table(cells, dimension),
            column_config=columns(_(BY[dimension])),
            hide_index=True,
            width="stretch",
            key="cells",
            placeholder="–",
        )
        st.download_button(
            _("Download CSV"),
            experience_csv(found.cells),
            "experience.csv",
            "text/csv",
            key="experience_csv",
            icon=":material/download:",
            on_click="ignore",
        )
    with st.expander(_("What is measured"), icon=":material/help:"):
        for text in meanings():
            st.markdown("- " + text)
    if found.unnamed:
        st.caption(
            ngettext("{n} attempt of an unknown user is left out.", "{n} attempts of unknown users are left out.",
                     found.unnamed).format(n=f"{found.unnamed:,}")
        )  # fmt: skip


def meanings() -> tuple[str, ...]:
    """Our own words: safe as Markdown."""
    return (
        _("**Experience:** submissions of the user before, as far as the lake reaches back; an array is one."),
        _(
            "**First success:** from the first submission of a user's job name (numbers left out) to the end of its first success. "
            "Names that have none yet count as longer, not as missing (Kaplan-Meier)."
        ),
        _("**Fail within 2 min:** of the attempts that started, those that failed within two minutes."),
        _(
            "**Back after a failure:** from the first failure of a name to the end of the next success that was submitted after it. "
            "Those still without count as longer."
        ),
        _("**Resumed well:** of the next attempts after a time-out, a preemption or a failed node, those that ended well."),
        _("**Same failure again:** of the next attempts after a failure, those that ended with the same state, exit code and signal."),
        _("**Wait off by:** the middle of how far the waits that were told here were off."),
    )


def _metric(label: str, value: str, words: str) -> None:
    st.metric(label, value, border=True, width="stretch", help=words)


def _only(cell: Cell, dimension: str) -> bool:
    return getattr(cell, dimension) is not None and all(getattr(cell, d) is None for d in BY if d != dimension)


def time_words(found: TimeTo) -> str:
    """The median; "not known" of too few, "half not yet" where it was not reached."""
    if found.cases < FEW:
        return _("unknown")
    return _("half not yet") if found.median_s is None else span(found.median_s)


def time_help(found: TimeTo) -> str:
    """How many stand behind it."""
    words = _("Median of {cases} cases; {seen} got there.").format(cases=f"{found.cases:,}", seen=f"{found.seen:,}")
    if found.unknown:
        words += " " + ngettext(
            "{n} more began before, or soon after, the lake begins.",
            "{n} more began before, or soon after, the lake begins.",
            found.unknown,
        ).format(n=f"{found.unknown:,}")
    return words


def share_words(found: Part) -> str:
    """The share; "unknown" of too few."""
    return percent(found.share) if found.counted >= FEW else _("unknown")


def share_help(found: Part) -> str:
    """Of how many, and what is not counted."""
    words = _("{hits} of {n}.").format(hits=f"{found.hits:,}", n=f"{found.counted:,}")
    if found.low is not None and found.high is not None:
        words += " " + _("The true share may lie at {low} to {high} %.").format(low=round(100 * found.low), high=round(100 * found.high))
    if found.open:
        words += " " + ngettext("{n} is not decided.", "{n} are not decided.", found.open).format(n=f"{found.open:,}")
    if found.none:
        words += " " + ngettext("{n} was not tried again.", "{n} were not tried again.", found.none).format(n=f"{found.none:,}")
    return words


def cells_table(cells: Sequence[Cell], dimension: str) -> pd.DataFrame:
    """Empty cells where fewer than five stand behind a number; times are words, for the table sorts by their hours."""

    def hours(found: TimeTo) -> float | None:
        return None if found.median_s is None or found.cases < FEW else found.median_s / 3600

    def share(found: Part) -> float | None:
        return None if found.share is None or found.counted < FEW else 100 * found.share

    def name(cell: Cell) -> str:
        value = str(getattr(cell, dimension))
        return _(FORMS.get(value, value)) if dimension == "form" or value == "unknown" else value

    numbers = {
        "first": [hours(c.first_success) for c in cells],
        "early": [share(c.early_failure) for c in cells],
        "back": [hours(c.recovery) for c in cells],
        "resumed": [share(c.resumed) for c in cells],
        "again": [share(c.repeated) for c in cells],
        "off": [c.waits.median_abs_s / 3600 if c.waits.median_abs_s is not None and c.waits.scored >= FEW else None for c in cells],
    }
    frame = pd.DataFrame(
        {"name": [name(c) for c in cells], "attempts": [c.attempts for c in cells], "users": [c.users for c in cells], **numbers}
    )
    return frame.astype(dict.fromkeys(numbers, "float64"))


def columns(title: str) -> dict[str, Any]:
    """Headings."""
    column = st.column_config
    return {
        "name": column.TextColumn(title),
        "attempts": column.NumberColumn(_("Attempts")),
        "users": column.NumberColumn(_("Users")),
        "first": column.NumberColumn(_("First success (h)"), format="%.1f"),
        "early": column.NumberColumn(_("Fail in 2 min"), format="%.1f %%"),
        "back": column.NumberColumn(_("Back after failure (h)"), format="%.1f"),
        "resumed": column.NumberColumn(_("Resumed well"), format="%.0f %%"),
        "again": column.NumberColumn(_("Same again"), format="%.0f %%"),
        "off": column.NumberColumn(_("Wait off by (h)"), format="%.2f"),
    }


def experience_csv(cells: Sequence[Cell]) -> bytes:
    """Every cell with its counts; "all" where a dimension takes all."""
    times = ("first_success", "recovery")
    parts = ("early_failure", "resumed", "repeated")
    header = ["experience", "gpus", "form", "attempts", "users"]
    header += [f"{t}_{w}" for t in times for w in ("cases", "seen", "median_s", "unknown")]
    header += [f"{p}_{w}" for p in parts for w in ("counted", "share", "open", "none")] + [
        "waits_scored",
        "waits_median_abs_s",
        "waits_open",
    ]

    def row(c: Cell) -> list[object]:
        out: list[object] = [c.experience or "all", c.gpus or "all", c.form or "all", c.attempts, c.users]
        for found in (c.first_success, c.recovery):
            out += [found.cases, found.seen, found.median_s, found.unknown]
        for share in (c.early_failure, c.resumed, c.repeated):
            out += [share.counted, None if share.share is None else round(share.share, 4), share.open, share.none]
        return [*out, c.waits.scored, c.waits.median_abs_s, c.waits.open]

    return to_csv(header, (row(c) for c in cells))
