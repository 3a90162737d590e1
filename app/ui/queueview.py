"""What waits and which GPUs are free, as pictures and as a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from app.ui.charts import BLUES, ink
from app.ui.csvsafe import to_csv
from app.ui.shell import Frame
from app.ui.words import who_words
from queuecast.answers.queue import GpuStock, HoldCount, PendingJob, QueueNow, ReasonCount
from queuecast.i18n import N_, _, ngettext
from queuecast.slurmtext.durations import format_limit

HOLDS = {
    "never": N_("never starts as it is"), "held": N_("held"), "dependency": N_("other jobs first"), "time": N_("begin time"),
    "reservation": N_("a reservation"), "limit": N_("a limit"), "priority": N_("its place in line"),
    "resources": N_("too little free"), "other": N_("something else, or not told"),
}  # fmt: skip
IDLE, BLOCKED = "#E8B33C", "#8A96A3"


def reasons_chart(reasons: Sequence[ReasonCount]) -> alt.LayerChart:
    """Tasks that wait, by reason. Above each bar stands the reason and who can act, so that long ones are not cut."""
    strong, faint = ink()
    rows = pd.DataFrame(
        [
            {
                "title": r.title,
                "tasks": r.tasks,
                "code": r.reason,
                "who": _("who can act: {who}").format(who=who_words(r.who)),
                "jobs": r.jobs,
                "zero": 0,
                "gpus": _("unknown") if r.gpus is None else str(r.gpus),
            }
            for r in reasons
        ]
    )
    y = alt.Y("code:N", sort=[r.reason for r in reasons], title=None, axis=None)
    x = alt.X(
        "tasks:Q",
        title=_("tasks waiting"),
        scale=alt.Scale(domainMin=0, domainMax=max(4.0, float(rows["tasks"].max()) * 1.12), nice=False),
        axis=alt.Axis(tickMinStep=1, format="d", tickCount=5, titleColor=faint, labelColor=faint),
    )
    base = alt.Chart(rows).encode(
        y=y,
        tooltip=[
            alt.Tooltip("title:N", title=_("why")),
            alt.Tooltip("code:N", title=_("Slurm's code")),
            alt.Tooltip("who:N", title=" "),
            alt.Tooltip("jobs:Q", title=_("records")),
            alt.Tooltip("tasks:Q", title=_("tasks")),
            alt.Tooltip("gpus:N", title=_("GPUs asked for")),
        ],
    )
    layers = alt.layer(
        base.mark_text(align="left", dy=-17, fontSize=13, color=strong).encode(x=alt.X("zero:Q"), text="title:N"),
        base.mark_bar(color=BLUES[0.5], cornerRadius=2, height=12, yOffset=1).encode(x=x),
        base.mark_text(align="left", dx=5, dy=1, fontSize=12.5, fontWeight=600, color=strong).encode(x=x, text="tasks:Q"),
        base.mark_text(align="left", dy=18, fontSize=11.5, color=faint).encode(x=alt.X("zero:Q"), text="who:N"),
    )
    return layers.properties(height=alt.Step(68)).configure_view(strokeWidth=0)


def holds_table(holds: Sequence[HoldCount]) -> pd.DataFrame:
    """What keeps how many."""
    return pd.DataFrame(
        {
            _("kept by"): [_(HOLDS[h.hold]) for h in holds],
            _("records"): [h.jobs for h in holds],
            _("tasks"): [h.tasks for h in holds],
            _("GPUs"): pd.array([h.gpus for h in holds], "Int64"),
        }
    )


def holds_words(queue: QueueNow) -> str:
    """How the kinds were found, and what could not be checked."""
    checked = sum(h.checked for h in queue.holds)
    words = ngettext(
        "For {n} record the limits themselves show it; the others go by Slurm's reason.",
        "For {n} records the limits themselves show it; the others go by Slurm's reason.",
        checked,
    ).format(n=checked)
    if not queue.unread:
        return words
    unread = _("Never read, so not checked: {tables}. Run queuecast collect.").format(tables=", ".join(queue.unread))
    return f"{words} {unread}" if checked else _("By Slurm's reason alone.") + " " + unread


def gpu_chart(stock: Sequence[GpuStock]) -> alt.LayerChart:
    """GPUs of each type: in use, idle, blocked; the parts carry their numbers."""
    strong, faint = ink()
    parts = [
        (_("in use"), "in_use", BLUES[0.5], "white"),
        (_("idle"), "idle", IDLE, "#1B2733"),
        (_("blocked"), "blocked", BLOCKED, "#1B2733"),
    ]
    rows = []
    for s in stock:
        done = 0
        known: list[tuple[str, int, str]]
        if s.in_use is None or s.idle is None:
            known = [(_("in use or idle: not told"), s.total - s.blocked, strong), (parts[2][0], s.blocked, parts[2][3])]
        else:
            known = [(name, int(getattr(s, key)), text) for name, key, _color, text in parts]
        for name, count, text in known:
            if count:
                rows.append(
                    {
                        "type": s.gpu_type,
                        "part": name,
                        "count": count,
                        "from": done,
                        "to": done + count,
                        "middle": done + count / 2,
                        "ink": text,
                        "label": str(count),
                        "room": count / max(1, max(t.total for t in stock)),
                    }
                )
            done += count
    frame = pd.DataFrame(rows)
    names = [*(p[0] for p in parts), _("in use or idle: not told")]
    used = [n for n in names if n in set(frame["part"])]
    colors = dict(zip(names, [BLUES[0.5], IDLE, BLOCKED, BLUES[0.95]], strict=True))
    y = alt.Y(
        "type:N",
        sort=[s.gpu_type for s in stock],
        title=None,
        axis=alt.Axis(labelFontSize=13, labelColor=strong, labelLimit=120, ticks=False, domain=False),
    )
    x = alt.X(
        "from:Q", title=_("GPUs"), axis=alt.Axis(tickMinStep=1, format="d", titleColor=faint, labelColor=faint, tickCount=6)
    )
    bars = (
        alt.Chart(frame)
        .mark_bar(height=26, stroke="white", strokeWidth=1)
        .encode(
            x=x,
            x2="to:Q",
            y=y,
            color=alt.Color(
                "part:N",
                sort=used,
                scale=alt.Scale(domain=used, range=[colors[n] for n in used]),
                legend=alt.Legend(
                    title=None, orient="top", labelFontSize=12.5, labelColor=strong, symbolType="square", direction="horizontal"
                ),
            ),
            tooltip=[
                alt.Tooltip("type:N", title=_("GPU type")),
                alt.Tooltip("part:N", title=_("GPUs")),
                alt.Tooltip("count:Q", title=_("how many")),
            ],
        )
    )
    numbers = (
        alt.Chart(frame[frame["room"] > 0.045])
        .mark_text(fontSize=12.5, fontWeight=600)
        .encode(x=alt.X("middle:Q"), y=y, text="label:N", color=alt.Color("ink:N", scale=None))
    )
    return (
        alt.layer(bars, numbers).resolve_scale(color="independent").properties(height=alt.Step(42)).configure_view(strokeWidth=0)
    )


def gpu_table(stock: Sequence[GpuStock]) -> pd.DataFrame:
    """The numbers behind the picture."""
    return pd.DataFrame(
        {
            _("GPU type"): [s.gpu_type for s in stock],
            _("idle"): pd.array([s.idle for s in stock], "Int64"),
            _("largest free block"): pd.array([s.largest_block for s in stock], "Int64"),
            _("asked for"): pd.array([s.asked_for for s in stock], "Int64"),
        }
    )


def jobs_table(frame: Frame, jobs: Sequence[PendingJob]) -> pd.DataFrame:
    """The table of waiting jobs; names and users are empty where the viewer may not see them."""

    def local(value: datetime | None) -> datetime | None:
        return None if value is None else value.astimezone(frame.zone).replace(tzinfo=None)

    def whole(values: Iterable[int | None]) -> pd.arrays.IntegerArray:
        return pd.array(list(values), "Int64")

    return pd.DataFrame(
        {
            "job": [j.job_id for j in jobs],
            "why": [j.reason_title for j in jobs],
            "hold": [_(HOLDS[j.hold]) for j in jobs],
            "waited": [None if j.waited_s is None else j.waited_s / 3600 for j in jobs],
            "gpus": whole(j.gpus for j in jobs),
            "gpu_type": [j.gpu_type for j in jobs],
            "user": [j.user for j in jobs],
            "name": [j.name for j in jobs],
            "partition": [j.partition for j in jobs],
            "tasks": whole(j.tasks for j in jobs),
            "limit": [None if j.limit_s is None else format_limit(j.limit_s) for j in jobs],
            "account": [j.account for j in jobs],
            "cpus": whole(j.cpus for j in jobs),
            "submit": pd.to_datetime(pd.Series([local(j.submit) for j in jobs])),
            "slurm": pd.to_datetime(pd.Series([local(j.slurm_start) for j in jobs])),
        }
    )


def columns() -> dict[str, Any]:
    """Headings and forms of the table's columns; all texts are plain."""
    column = st.column_config
    texts = {
        "job": _("Job"),
        "why": _("Why"),
        "hold": _("Kept by"),
        "gpu_type": _("GPU type"),
        "user": _("User"),
        "partition": _("Partition"),
        "limit": _("Limit"),
        "account": _("Account"),
    }
    numbers = {"gpus": _("GPUs"), "tasks": _("Tasks"), "cpus": _("CPUs")}
    times = {"submit": _("Submitted"), "slurm": _("Slurm's estimate")}
    return (
        {k: column.TextColumn(v) for k, v in texts.items()}
        | {k: column.NumberColumn(v) for k, v in numbers.items()}
        | {k: column.DatetimeColumn(v, format="YYYY-MM-DD HH:mm") for k, v in times.items()}
        | {"waited": column.NumberColumn(_("Waited (h)"), format="%.1f"), "name": column.TextColumn(_("Name"), width="medium")}
    )


def jobs_csv(jobs: Sequence[PendingJob]) -> bytes:
    """For a spreadsheet: whole numbers of seconds and ISO times in UTC, texts that cannot be formulas."""
    names = (
        "job_id",
        "reason",
        "waited_s",
        "partition",
        "gpus",
        "gpu_type",
        "tasks",
        "limit_s",
        "name",
        "user",
        "account",
        "cpus",
        "submit_utc",
        "slurm_estimate_utc",
    )
    return to_csv(
        names,
        (
            [
                j.job_id,
                j.reason,
                None if j.waited_s is None else round(j.waited_s),
                j.partition,
                j.gpus,
                j.gpu_type,
                j.tasks,
                j.limit_s,
                j.name,
                j.user,
                j.account,
                j.cpus,
                _iso(j.submit),
                _iso(j.slurm_start),
            ]
            for j in jobs
        ),
    )


def _iso(value: object) -> str | None:
    return None if value is None else str(value).replace(" ", "T").replace("+00:00", "Z")


def found(jobs: Sequence[PendingJob], text: str, reason: str | None) -> list[PendingJob]:
    """Jobs with every word of ``text`` somewhere in what is shown of them, and with that reason."""
    words = text.casefold().split()

    def fits(job: PendingJob) -> bool:
        shown = " ".join(
            str(v)
            for v in (job.job_id, job.name, job.user, job.account, job.partition, job.gpu_type, job.reason, job.reason_title)
            if v
        )
        return all(w in shown.casefold() for w in words) and (reason is None or job.reason == reason)

    return [j for j in jobs if fits(j)]


def show_counts(queue: QueueNow) -> None:
    """The four figures at the top."""
    idle = None if any(s.idle is None for s in queue.gpus) or not queue.gpus else sum(s.idle or 0 for s in queue.gpus)
    total = sum(s.total for s in queue.gpus)
    with st.container(horizontal=True, key="counts"):
        st.metric(
            _("waiting jobs"),
            len(queue.pending),
            border=True,
            width="stretch",
            help=_("Records of squeue: the waiting tasks of an array are one."),
        )
        st.metric(_("waiting tasks"), sum(j.tasks for j in queue.pending), border=True, width="stretch")
        st.metric(_("running jobs"), queue.running, border=True, width="stretch")
        st.metric(
            _("idle GPUs"),
            _("unknown") if idle is None else _("{idle} of {total}").format(idle=idle, total=total),
            border=True,
            width="stretch",
        )
