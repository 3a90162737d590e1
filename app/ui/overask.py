"""What the review of over-requests is asked for, kept in the link, and its answer, kept until the data change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import streamlit as st

from app.ui.linked import link_choice, link_select
from app.ui.question import asked_at, choices
from app.ui.shell import Frame
from queuecast.answers.rightsizing.overrequest import overrequest
from queuecast.answers.rightsizing.overrequest_answer import DIMENSIONS, By, OverRequests
from queuecast.answers.rightsizing.overrequest_effect import effect
from queuecast.answers.rightsizing.overrequest_effect_answer import Effect
from queuecast.answers.rightsizing.rightsize import RISK, judged, sizes_at, uses_at
from queuecast.answers.rightsizing.sizes import SizeSource
from queuecast.config import load_hardware
from queuecast.i18n import N_, _, get_language
from queuecast.models.sizing_bound import Resource, SizeBound
from queuecast.policy.tables import policy_at
from queuecast.usage.idle import idle_now
from queuecast.usage.uses import Uses

DAYS = {"7": "7", "14": "14", "30": "30", "90": "90"}
BY = {"user": N_("User"), "account": N_("Account"), "partition": N_("Partition"), "kind": N_("Kind of job")}


@dataclass(frozen=True)
class Asked:
    """What to look at: attempts of ``since`` to ``at``; None takes all."""

    since: datetime
    at: datetime
    by: By
    partition: str | None
    account: str | None
    user: str | None


@dataclass(frozen=True)
class Measured:
    """The table of uses and the bounds made of it, which all filters share."""

    uses: Uses
    sizes: SizeSource


def moment(frame: Frame) -> datetime:
    """The moment in the link, else the newest reading: so that a page that is drawn anew does not compute anew."""
    at = asked_at(frame)
    return frame.newest if frame.newest is not None and "at" not in st.query_params else at


def ask_review(frame: Frame) -> Asked:
    """The filters. Raises ``UsageError`` for an impossible moment in the link."""
    at = moment(frame)
    with st.container(horizontal=True, vertical_alignment="bottom", key="filters"):
        days = link_choice("over", _("Last days"), "days", DAYS, "30")
        by = link_choice("over", _("By"), "by", BY, "user")
        since = at - timedelta(days=int(days))
        with st.spinner(_("Reading what jobs used …")):
            found = measured(frame, since, at)
        names = {name: _names(found.uses, name) for name in ("partition", "account", "user")}
        if not frame.viewer.sees_all:
            names["account"], names["user"] = list(choices(frame).accounts), [u for u in [frame.viewer.user] if u]
        partition = link_select("over", _("Partition"), "partition", names["partition"], _("all partitions"), 150)
        account = link_select("over", _("Account"), "account", names["account"], _("all accounts"), 150)
        user = link_select("over", _("User"), "user", names["user"], _("all users"), 150)
    return Asked(since, at, next(d for d in DIMENSIONS if d == by), partition, account, user)


def _names(uses: Uses, column: str) -> list[str]:
    return sorted({v for v in uses.rows[column].to_pylist() if v}, key=lambda v: (v.casefold(), v))


class Remembered:
    """A source of bounds that works each out once: every filter asks for the same ones."""

    def __init__(self, source: SizeSource) -> None:
        self._source = source
        self._known: dict[tuple[object, ...], SizeBound | None] = {}

    def bound(self, resource: Resource, **kind: Any) -> SizeBound | None:
        """As of the source."""
        key = (resource, *sorted(kind.items()))
        if key not in self._known:
            self._known[key] = self._source.bound(resource, **kind)
        return self._known[key]


def _measure(_frame: Frame, path: str, version: int, cluster: str, since: datetime, at: datetime) -> Measured:
    """Kept by what does not begin with an underscore."""
    uses = uses_at(_frame.lake, cluster, since, at)
    return Measured(uses, Remembered(sizes_at(uses, RISK)))


_measured: Callable[[Frame, str, int, str, datetime, datetime], Measured] = st.cache_resource(_measure, max_entries=3, show_spinner=False)


def measured(frame: Frame, since: datetime, at: datetime) -> Measured:
    """What jobs used in a window."""
    return _measured(frame, str(frame.lake.path), frame.lake.manifest.version, frame.cluster, since, at)


def _review(
    _frame: Frame, path: str, version: int, cluster: str, window: Window, viewer: tuple[str | None, bool], lang: str
) -> OverRequests:
    since, at, partition, account, user = window
    found = measured(_frame, since, at)
    return overrequest(
        _frame.lake,
        cluster,
        since=since,
        at=at,
        viewer=_frame.viewer,
        by=DIMENSIONS,
        partition=partition,
        account=account,
        user=user,
        idle_hours=None,
        uses=found.uses,
        sizes=found.sizes,
    )


Window = tuple[datetime, datetime, str | None, str | None, str | None]
_reviewed: Callable[[Frame, str, int, str, Window, tuple[str | None, bool], str], OverRequests] = st.cache_resource(
    _review, max_entries=12, show_spinner=False
)


def review(frame: Frame, asked: Asked) -> OverRequests:
    """The answer by all dimensions, without idle GPUs. Raises ``QueuecastError``."""
    window = (asked.since, asked.at, asked.partition, asked.account, asked.user)
    who = (frame.viewer.user, frame.viewer.sees_all)
    # the language is part of the question: notes are sentences
    return _reviewed(frame, str(frame.lake.path), frame.lake.manifest.version, frame.cluster, window, who, get_language())


def with_idle(frame: Frame, asked: Asked, answer: OverRequests, hours: float) -> OverRequests:
    """The answer with the running jobs whose GPUs did nothing for so long."""
    if not frame.lake.manifest.of("gpu_samples", frame.cluster):
        return replace(answer, idle_hours=hours, idle=None)
    filters = {"partition": asked.partition, "account": asked.account, "user": asked.user}
    found = [
        i
        for i in idle_now(frame.lake, frame.cluster, asked.at, hours)
        if all(v is None or (getattr(i, k) or "").casefold() == v.casefold() for k, v in filters.items())
    ]
    mine = tuple(i for i in found if frame.viewer.may_see(i.user))
    return replace(answer, idle_hours=hours, idle=mine, idle_hidden=len(found) - len(mine))


def replay_effect(frame: Frame, asked: Asked, progress: Callable[[int, int], None]) -> Effect:
    """What the queue would have been with the weightiest ten proposals of all users. Some minutes on a large lake."""
    found = measured(frame, asked.since, asked.at)
    every = judged(found.uses, found.sizes, policy_at(frame.lake, frame.cluster, asked.at), load_hardware(), RISK)
    return effect(frame.lake, frame.cluster, every, since=asked.since, at=asked.at, progress=progress)
