"""An answer as a page shows it. Whatever people or Slurm wrote is shown with ``st.text``: no Markdown, no HTML."""

from __future__ import annotations

import streamlit as st

from app.ui.charts import band_name, interval_chart, like_chart
from app.ui.shell import Frame, show_freshness
from app.ui.words import as_markdown, between, percent, same_words, span, who_words
from queuecast.answers.wait import Basis, Interval, WaitAnswer
from queuecast.i18n import _, ngettext
from queuecast.policy.request import Request
from queuecast.render.factors import factor_part, factor_text
from queuecast.slurmtext.durations import format_limit
from queuecast.slurmtext.sizes import format_size


def show_answer(frame: Frame, answer: WaitAnswer) -> None:
    """The whole answer, whichever status it has."""
    show_freshness(frame, answer.at, answer.freshness.data_at)
    _head(frame, answer)
    if answer.intervals:
        _when(frame, answer)
    elif answer.status == "beyond_history" and answer.waited_s:
        st.metric(_("has waited"), span(answer.waited_s), border=True, width=180)
    if answer.reason is not None and answer.status not in ("started", "ended"):
        _why(answer)
    if answer.intervals:
        _trust(frame, answer)
    if answer.factors:
        _factors(answer)
    if answer.basis is not None and answer.basis.count:
        _like(answer, answer.basis)
    _foot(frame, answer)


def _head(frame: Frame, answer: WaitAnswer) -> None:
    title, sentence = _status_words(frame, answer)
    with st.container(key="head"):
        asked = request_words(answer.request)
        if answer.job_id is not None:
            asked = _("Job {job}: {request}").format(job=answer.job_id, request=asked)
        st.caption(as_markdown(asked))
        st.markdown(f"### {title}")
        st.markdown(sentence)


def _status_words(frame: Frame, answer: WaitAnswer) -> tuple[str, str]:
    """Title and sentence; they hold only our words and times, so Markdown is safe."""
    eight, half = answer.interval(0.8), answer.median_s
    if answer.status == "estimate" and eight is not None and half is not None:
        return _between(frame, answer, eight), _half(frame, answer, half)
    if answer.status == "beyond_history":
        title = ":material/help: " + _("It has waited longer than history reaches")
        return title, _("Hardly a like job that waited this long has started, so no range can be given. See why it waits.")
    if answer.status == "not_eligible":
        title = ":material/pending: " + _("Not in the race yet")
        sentence = _("Its wait in the queue begins when it becomes eligible: after a dependency, a begin time or a throttle.")
        if eight is not None:
            sentence += " " + _("From then on, 8 in 10 like jobs waited between {low} and {high}.").format(
                low=span(eight.low_s), high=span(eight.high_s)
            )
        return title, sentence
    if answer.status == "held":
        return ":material/pause_circle: " + _("On hold: it does not start until it is released"), _(
            "No forecast is made for a held job."
        )
    if answer.status == "never":
        return (
            ":material/block: " + _("It does not start as it is"),
            _("Waiting does not help: something about the job or the cluster has to change first."),
        )
    if answer.status == "started":
        when = frame.time(answer.started_at) if answer.started_at else _("unknown")
        return ":material/play_circle: " + _("It has started"), _("Started: {time}.").format(time=when)
    if answer.status == "ended":
        end = frame.time(answer.ended_at) if answer.ended_at else _("unknown")
        if answer.started_at is None:
            return ":material/cancel: " + _("It ended without having started"), _("Ended: {time}.").format(time=end)
        return (
            ":material/check_circle: " + _("It has ended"),
            _("Started: {start}. Ended: {end}.").format(start=frame.time(answer.started_at), end=end),
        )
    return (
        ":material/help: " + _("No like job has started yet"),
        _("There is no history to answer from. Ask again when some jobs have run, or read older history: queuecast backfill."),
    )


def _between(frame: Frame, answer: WaitAnswer, eight: Interval) -> str:
    low, high = answer.moment(eight.low_s), answer.moment(eight.high_s)
    if low is None:
        return ":material/help: " + _("It has waited longer than history reaches")
    if eight.low_s < 60:
        if high is None:
            return _("May start at once, or later than history reaches")
        return _("8 in 10 like this start before {high}").format(high=frame.time(high))
    if high is None:
        return _("9 in 10 like this start after {low}, some later than history reaches").format(low=frame.time(low))
    return _("8 in 10 like this start {between}").format(between=between(low, high, frame.zone, frame.now))


def _half(frame: Frame, answer: WaitAnswer, median: float) -> str:
    moment = answer.moment(median)
    if moment is None:
        return _("More than half wait longer than history reaches.")
    if median < 60:
        return _("Half start at once.")
    return _("Half start before **{time}**, that is within {span}.").format(time=frame.time(moment), span=span(median))


def request_words(request: Request) -> str:
    """What was asked for, in one line; names are the cluster's or the user's."""
    parts = []
    if request.gpus:
        parts.append(f"{request.gpus} × {request.gpu_type or _('GPU')}")
    if request.partitions:
        parts.append(_("partition {names}").format(names=",".join(request.partitions)))
    if request.nodes > 1:
        parts.append(_("{n} nodes").format(n=request.nodes))
    parts.append(ngettext("{n} CPU", "{n} CPUs", request.cpus).format(n=request.cpus))
    if request.mem_bytes:
        parts.append(_("{size} memory").format(size=format_size(request.mem_bytes)))
    if request.unlimited:
        parts.append(_("no time limit"))
    elif request.limit_s is not None:
        parts.append(_("limit {limit}").format(limit=format_limit(request.limit_s)))
    if request.account:
        parts.append(_("account {name}").format(name=request.account))
    if request.qos:
        parts.append(_("QOS {name}").format(name=request.qos))
    return " · ".join(parts)


def _when(frame: Frame, answer: WaitAnswer) -> None:
    eligible = answer.status == "estimate"
    st.caption(_("Chance that it starts") if eligible else _("Chance that it starts, counted from when it becomes eligible"))
    with st.container(horizontal=True, gap="small", key="within"):
        for hours, share in answer.within:
            st.metric(_("within {n} h").format(n=f"{hours:g}"), percent(share), border=True, width="stretch")
        if eligible and answer.waited_s and answer.waited_s >= 60:
            st.metric(_("has waited"), span(answer.waited_s), border=True, width="stretch")
    if answer.status == "estimate":
        st.altair_chart(
            interval_chart(answer, frame.zone, frame.now),
            width="stretch",
            key="interval",
            alt=_("Intervals of the start: half, 8 in 10 and 19 in 20 of such jobs"),
        )
        ranges = [
            _("{band}: {low} to {high}").format(band=band_name(i.share), low=span(i.low_s), high=span(i.high_s))
            for i in answer.intervals
        ]
        st.caption(_("Further wait, by share of such jobs.") + " " + " · ".join(ranges))


def _why(answer: WaitAnswer) -> None:
    reason = answer.reason
    if reason is None:
        return
    with st.container(border=True, gap="xsmall", key="why"):
        st.markdown("##### " + _("Why it waits: {title}").format(title=as_markdown(reason.title)))
        st.text(reason.meaning)
        st.markdown("**" + _("What to do") + "**")
        for step in reason.steps:
            st.text("• " + step.replace("<jobid>", answer.job_id.split("_[")[0] if answer.job_id else "<jobid>"))
        st.markdown("**" + _("The wait ends when") + "**")
        st.text(reason.ends_by)
        printed = _("Slurm prints: {text}").format(text=as_markdown(answer.reason_text)) if answer.reason_text else ""
        st.caption(" · ".join(filter(None, (_("Who can act: {who}").format(who=who_words(reason.who)), printed))))


def _trust(frame: Frame, answer: WaitAnswer) -> None:
    left, right = st.columns(2)
    with left.container(border=True, height="stretch", key="slurm"):
        st.markdown("##### " + _("What Slurm says"))
        for line in _slurm_words(frame, answer):
            st.markdown(line)
    with right.container(border=True, height="stretch", key="honesty"):
        st.markdown("##### " + _("How such answers held lately"))
        honesty = answer.honesty
        if honesty is not None and honesty.held is not None:
            st.markdown(
                (
                    _("Of {n} intervals that claim {claimed}, **{held}** held the start.")
                    if honesty.days is None
                    else _("Of {n} answers like this in the last {days} days, **{held}** of the {claimed} intervals held the start.")
                ).format(n=honesty.counted, claimed=percent(honesty.claimed), held=percent(honesty.held), days=honesty.days)
            )
        else:
            st.markdown(_("Not measured yet on this lake: run `queuecast train`."))
        if honesty is not None and honesty.corrected_by:
            st.caption(
                ngettext(
                    "The levels are corrected by {n} past answer.",
                    "The levels are corrected by {n} past answers.",
                    honesty.corrected_by,
                ).format(n=honesty.corrected_by)
            )


def _slurm_words(frame: Frame, answer: WaitAnswer) -> list[str]:
    says = answer.slurm
    lines = []
    if says is not None and says.start is not None:
        lines.append(
            _("It expects the start **{time}**.").format(time=frame.time(says.start))
            + (" " + _("That moment was the present: it is overdue, or about to start.") if says.clamped else "")
        )
    elif answer.job_id is not None:
        lines.append(_("It gives no estimate (N/A): its backfill has not tried this job. That does not mean never."))
    else:
        lines.append(_("It estimates only jobs that are in the queue: `sbatch --test-only` gives one for a script."))
    record = says.record if says is not None else None
    if record is not None and record.median_abs_error_s is not None:
        lines.append(
            _("Its estimates were off by **{span}** in the middle over two weeks ({n} scored; {within} within 1 h).").format(
                span=span(record.median_abs_error_s), n=record.scored, within=percent(record.within_1h)
            )
        )
        if record.missing:
            lines.append(_("For {share} of the waiting jobs it gave none.").format(share=percent(record.missing)))
    else:
        lines.append(_("How far its estimates are off is not known here: none was recorded and followed by a start."))
    return lines


def _factors(answer: WaitAnswer) -> None:
    with st.container(border=True, key="factors"):
        st.markdown("##### " + _("What moves this answer most"))
        for factor in answer.factors:
            st.markdown(f"**{factor_part(factor)}** · {as_markdown(factor_text(factor))}")
        st.caption(_("How much longer (+) or shorter (−) the middle of the answer is than with what is usual in this partition."))


def _like(answer: WaitAnswer, basis: Basis) -> None:
    with st.container(border=True, key="like"):
        st.markdown("##### " + _("What like jobs really waited"))
        same = same_words(basis.same)
        st.markdown(
            ngettext("{n} job in {days} days", "{n} jobs in {days} days", basis.count).format(
                n=basis.count, days=max(1, round(basis.span_days))
            )
            + " "
            + (_("with the same {dims}").format(dims=same) if same else _("of the whole cluster"))
            + ": "
            + _("{started} started, {waiting} still wait or were cancelled while waiting.").format(
                started=basis.started, waiting=basis.waiting
            )
        )
        chart = like_chart(answer)
        if chart is not None:
            st.altair_chart(
                chart,
                width="stretch",
                key="likewaits",
                alt=_("Waits of like jobs on a log scale, with the interval that 8 in 10 are expected in"),
            )
        words = _("Each dot is one of the last {n} that started.").format(n=len(basis.waits_s))
        if basis.quartiles_s is not None:
            first, middle, third = map(span, basis.quartiles_s)
            words += " " + _(
                "A quarter of all waited {first} or less, half {middle} or less, three quarters {third} or less."
            ).format(first=first, middle=middle, third=third)
        st.caption(words)


def _foot(frame: Frame, answer: WaitAnswer) -> None:
    for note in answer.notes:
        st.text(f"• {note}")
    fresh = answer.freshness
    parts = [_("asked as of {time}").format(time=frame.time(answer.at))]
    if fresh.data_at is not None and fresh.age_s is not None:
        parts.append(_("data of {time}, {span} old then").format(time=frame.time(fresh.data_at), span=span(fresh.age_s)))
    if fresh.model:
        parts.append(_("model of {time}").format(time=fresh.model[:8]))
    parts.append(_("times in {zone}").format(zone=frame.zone))
    st.caption(" · ".join(parts))
