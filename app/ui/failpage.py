"""Failures of a cluster: what is asked for, kept in the link; the table; groups by node; how users fare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

import pandas as pd
import streamlit as st

from app.ui.csvsafe import to_csv
from app.ui.failview import group_title, group_words
from app.ui.linked import link_choice, link_select
from app.ui.overask import moment
from app.ui.shell import Frame
from app.ui.words import as_markdown, cell, percent
from queuecast.answers.failures.classes import classified
from queuecast.answers.failures.groups import FailureGroup, platform_groups
from queuecast.answers.failures.rows import ended_rows
from queuecast.i18n import N_, _, ngettext
from queuecast.reasons.failureclasses import CLASSES, TEXTS, FailureClass, Turn

DAYS = {"1": "1", "7": "7", "14": "14", "30": "30", "90": "90"}
MOST_ROWS = 500
MOST_GROUPS = 20
TURN: dict[str, str] = {"": N_("Everybody's"), "user": N_("Users'"), "site": N_("The site's")}

WHOSE: dict[Turn, str] = {"user": N_("the users'"), "site": N_("the site's"), "nobody": N_("nobody's")}


@dataclass(frozen=True)
class Failed:
    """One failed attempt; times UTC. ``user`` and ``name`` are hostile text."""

    job: str
    user: str | None
    account: str | None
    partition: str | None
    name: str | None
    state: str
    end: datetime
    elapsed_s: float | None
    nodes: str | None
    exit_code: int | None
    exit_signal: int | None
    failure_class: FailureClass
    confidence: float

    @property
    def turn(self) -> Turn:
        """Whose turn it is by the class."""
        return TEXTS[self.failure_class].turn


@dataclass(frozen=True)
class Failures:
    """Of ``ended`` attempts between ``since`` and ``at`` that the viewer may see. ``groups``: of all."""

    since: datetime
    at: datetime
    ended: int
    failed: tuple[Failed, ...]
    groups: tuple[FailureGroup, ...]


def ask_days(frame: Frame) -> tuple[datetime, datetime]:
    """The window. Raises ``UsageError`` for an impossible moment in the link."""
    at = moment(frame)
    days = link_choice("fail", _("Last days"), "days", DAYS, "30")
    return at - timedelta(days=int(days)), at


def ask_filters(found: Failures) -> tuple[Failed, ...]:
    """What is left by class, turn, partition and account, all kept in the link."""
    turn = link_choice("fail", _("Whose turn"), "turn", TURN, "")
    there = {f.failure_class for f in found.failed}
    titles = {TEXTS[c].title: c for c in CLASSES if c in there}
    title = link_select("fail", _("Class"), "class", list(titles), _("all classes"))
    partition = link_select("fail", _("Partition"), "partition", _names(f.partition for f in found.failed), _("all partitions"), 150)
    account = link_select("fail", _("Account"), "account", _names(f.account for f in found.failed), _("all accounts"), 150)
    return tuple(
        f
        for f in found.failed
        if (not turn or f.turn == turn)
        and (title is None or f.failure_class == titles[title])
        and (partition is None or f.partition == partition)
        and (account is None or f.account == account)
    )


def _names(values: Any) -> list[str]:
    return sorted({v for v in values if v}, key=lambda v: (v.casefold(), v))


def _find(_frame: Frame, path: str, version: int, cluster: str, since: datetime, at: datetime, viewer: tuple[str | None, bool]) -> Failures:
    """Kept by what does not begin with an underscore."""
    lake, who = _frame.lake, _frame.viewer
    groups = platform_groups(lake, cluster, since, at, who)
    members = frozenset(m for g in groups if g.basis != "slurm" for m in g.members)
    rows, verdicts = classified(lake, cluster, since, at, on_bad_nodes=members)
    ended = [u for u in ended_rows(lake, cluster, since, at, ("user",))["user"].to_pylist() if who.may_see(u)]
    failed = tuple(
        Failed(
            row["job_id_text"] or str(row["job_id"]),
            row["user"],
            row["account"],
            row["partition"],
            row["name"],
            row["state"],
            row["end"],
            row["elapsed_s"],
            row["node_list"],
            row["exit_code"],
            row["exit_signal"],
            verdict.failure_class,
            verdict.confidence,
        )
        for row, verdict in zip(rows, verdicts, strict=True)
        if who.may_see(row["user"])
    )
    return Failures(since, at, len(ended), failed[::-1], groups)


_found: Callable[[Frame, str, int, str, datetime, datetime, tuple[str | None, bool]], Failures] = st.cache_resource(
    _find, max_entries=8, show_spinner=False
)


def failures(frame: Frame, since: datetime, at: datetime) -> Failures:
    """All failed attempts of the window, the latest first. Raises ``QueuecastError``."""
    who = (frame.viewer.user, frame.viewer.sees_all)
    return _found(frame, str(frame.lake.path), frame.lake.manifest.version, frame.cluster, since, at, who)


def show_figures(found: Failures, shown: Sequence[Failed]) -> None:
    """The numbers at the top."""
    turns = Counter(f.turn for f in shown)
    with st.container(horizontal=True, key="figures"):
        st.metric(
            _("did not end well"),
            f"{len(shown):,}",
            border=True,
            width="stretch",
            help=_("Every end but a good one: cancelled and preempted ones are among them. Of an array, each task counts."),
        )
        st.metric(
            _("of all that ended"),
            percent(len(shown) / found.ended) if found.ended else _("unknown"),
            border=True,
            width="stretch",
            help=_("{n} attempts ended in this time.").format(n=f"{found.ended:,}"),
        )
        for turn in ("user", "site"):
            st.metric(_("the users' turn") if turn == "user" else _("the site's turn"), f"{turns[turn]:,}", border=True, width="stretch")


def classes_table(shown: Sequence[Failed]) -> pd.DataFrame:
    """How many of each class, whose turn."""
    counts = Counter(f.failure_class for f in shown)
    users = {c: len({f.user for f in shown if f.failure_class == c} - {None}) for c in counts}
    chosen = sorted(counts, key=lambda c: -counts[c])
    return pd.DataFrame(
        {
            _("class"): [TEXTS[c].title for c in chosen],
            _("attempts"): [counts[c] for c in chosen],
            _("users"): [users[c] for c in chosen],
            _("whose turn"): [_(WHOSE[TEXTS[c].turn]) for c in chosen],
        }
    )


def show_groups(frame: Frame, groups: Sequence[FailureGroup]) -> None:
    """Nodes on which jobs died, the latest first."""
    for group in list(reversed(groups))[:MOST_GROUPS]:
        with st.expander(as_markdown(group_title(group) + f" · {frame.time(group.start)}"), icon=":material/dns:"):
            st.text(group_words(frame, group))
            if group.jobs:
                links = " · ".join(f"[{as_markdown(j)}](job?job={quote(j, safe='')})" for j in group.jobs[:40])
                more = len(group.jobs) - 40
                st.markdown(links + (f" … (+{more})" if more > 0 else ""))
    if len(groups) > MOST_GROUPS:
        st.caption(ngettext("{n} earlier one is not shown.", "{n} earlier ones are not shown.", len(groups) - MOST_GROUPS).format(
            n=len(groups) - MOST_GROUPS
        ))  # fmt: skip


def failed_table(frame: Frame, shown: Sequence[Failed]) -> pd.DataFrame:
    """The latest, with a link each. Links are ours; names are cells."""
    some = shown[:MOST_ROWS]
    return pd.DataFrame(
        {
            "job": [f"job?job={quote(f.job, safe='')}" for f in some],
            "class": [TEXTS[f.failure_class].title for f in some],
            "sure": [min(99.0, 100 * f.confidence) for f in some],
            "user": [None if f.user is None else cell(f.user) for f in some],
            "end": [f.end.astimezone(frame.zone).replace(tzinfo=None) for f in some],
            "ran": [None if f.elapsed_s is None else f.elapsed_s / 3600 for f in some],
            "name": [None if f.name is None else cell(f.name) for f in some],
            "partition": [f.partition for f in some],
            "nodes": [f.nodes for f in some],
            "state": [f.state for f in some],
            "exit": [exit_words(f) for f in some],
            "account": [f.account for f in some],
        }
    ).astype({"ran": "float64", "sure": "float64"})


def exit_words(f: Failed) -> str | None:
    """``1``, or ``signal 9``."""
    if f.exit_signal:
        return _("signal {n}").format(n=f.exit_signal)
    return None if f.exit_code is None else str(f.exit_code)


def failed_columns() -> dict[str, Any]:
    """Headings and forms."""
    column = st.column_config
    texts = {
        "class": _("Class"), "user": _("User"), "name": _("Name"), "partition": _("Partition"), "nodes": _("Nodes"), "state": _("State"),
        "exit": _("Exit"), "account": _("Account"),
    }  # fmt: skip
    return {k: column.TextColumn(v) for k, v in texts.items()} | {
        "job": column.LinkColumn(_("Job"), display_text=r"job=(.*)$"),
        "sure": column.NumberColumn(_("Sure"), format="%.0f %%"),
        "end": column.DatetimeColumn(_("Ended"), format="YYYY-MM-DD HH:mm"),
        "ran": column.NumberColumn(_("Ran (h)"), format="%.2f"),
    }


def failed_csv(shown: Sequence[Failed]) -> bytes:
    """All of them for a spreadsheet; times in UTC."""
    header = ("job_id", "class", "confidence", "turn", "user", "account", "partition", "name", "state", "exit_code", "exit_signal",
              "end_utc", "elapsed_s", "nodes")  # fmt: skip
    rows = (
        [f.job, f.failure_class, round(f.confidence, 3), f.turn, f.user, f.account, f.partition, f.name, f.state, f.exit_code,
         f.exit_signal, f"{f.end:%Y-%m-%dT%H:%M:%SZ}", f.elapsed_s, f.nodes]
        for f in shown
    )  # fmt: skip
    return to_csv(header, rows)
