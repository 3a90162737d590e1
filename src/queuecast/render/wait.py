"""The answer to "how long will this wait?" as text."""

from __future__ import annotations

import math

from queuecast.answers.wait import SlurmSays, WaitAnswer
from queuecast.i18n import _, ngettext
from queuecast.policy.request import Request
from queuecast.render.factors import factor_part, factor_text
from queuecast.render.words import moment, percent, safe, span, wrapped
from queuecast.slurmtext.durations import format_limit
from queuecast.slurmtext.sizes import format_size

LABEL = 9
BAR = 34


def describe(request: Request) -> str:
    """A request in one line: ``8 x a100 on gpu, limit 1-00:00:00``."""
    parts = []
    if request.gpus:
        parts.append(f"{request.gpus} x {safe(request.gpu_type or 'GPU')}")
    else:
        parts.append(ngettext("{n} CPU", "{n} CPUs", request.cpus).format(n=request.cpus))
    if request.nodes > 1:
        parts[0] += " " + _("on {n} nodes").format(n=request.nodes)
    if request.partitions:
        parts[0] += " " + _("in {partition}").format(partition=safe(",".join(request.partitions)))
    if request.limit_s is not None:
        parts.append(_("limit {limit}").format(limit=format_limit(request.limit_s)))
    elif request.unlimited:
        parts.append(_("no time limit"))
    if request.mem_bytes:
        parts.append(format_size(request.mem_bytes))
    if request.account:
        parts.append(_("account {name}").format(name=safe(request.account)))
    if request.qos:
        parts.append(_("QOS {name}").format(name=safe(request.qos)))
    return ", ".join(parts)


def wait_lines(answer: WaitAnswer, zone: str, width: int = 100) -> list[str]:
    """Lines of text; times in ``zone``."""
    head = describe(answer.request)
    if answer.job_id:
        head = _("job {job}").format(job=safe(answer.job_id)) + ": " + head
    lines = [head, _freshness(answer, zone), ""]
    lines += _STATUS[answer.status](answer, zone)
    if answer.reason is not None and answer.status not in ("started", "ended"):
        lines += _reason(answer, width)
    if answer.slurm is not None:
        lines += _slurm(answer, answer.slurm, zone)
    lines += _factors(answer, width)
    lines += _basis(answer)
    for note in answer.notes:
        lines += _labelled(_("note"), note, width)
    return lines


def for_job(step: str, job_id: str | None) -> str:
    """A step with the job's own id in its command."""
    return step.replace("<jobid>", safe(job_id)) if job_id else step


def _labelled(label: str, text: str, width: int) -> list[str]:
    first, *rest = wrapped(text, width - LABEL, 0)
    return [f"{label:<{LABEL}}{first}", *(" " * LABEL + line for line in rest)]


def _freshness(answer: WaitAnswer, zone: str) -> str:
    parts = [safe(answer.cluster)]
    if answer.freshness.age_s is not None:
        parts.append(_("data {age} old").format(age=span(answer.freshness.age_s)))
    parts.append(_("asked for {moment}").format(moment=f"{moment(answer.at, answer.at, zone)} ({answer.at:%Y-%m-%d %H:%M} UTC)"))
    return " · ".join(parts)


def _estimate(answer: WaitAnswer, zone: str) -> list[str]:
    eighty = answer.interval(0.8)
    assert eighty is not None
    low, high = moment(answer.moment(eighty.low_s), answer.at, zone), moment(answer.moment(eighty.high_s), answer.at, zone)
    high = high if not math.isinf(eighty.high_s) else _("later than history shows")
    middle = answer.moment(answer.median_s) if answer.median_s is not None else None
    text = _("8 in 10 like this")
    if middle is not None:
        text += "; " + _("half before {moment}").format(moment=moment(middle, answer.at, zone))
    lines = []
    if answer.waited_s is not None:
        lines.append(f"{_('waited'):<{LABEL}}{_('{span} so far').format(span=span(answer.waited_s))}")
    lines.append(f"{_('starts'):<{LABEL}}{low} {_bar(answer)} {high}")
    lines.append(f"{'':<{LABEL}}{text}")
    for share in (0.5, 0.95):
        i = answer.interval(share)
        if i is not None:
            words = _("5 in 10") if share == 0.5 else _("19 in 20")
            till = span(i.high_s) if not math.isinf(i.high_s) else _("longer than history shows")
            lines.append(f"{'':<{LABEL}}{words}: {_('in {low} to {high}').format(low=span(i.low_s), high=till)}")
    lines.append(f"{_('within'):<{LABEL}}" + "   ".join(f"{h:g} h {percent(p)}" for h, p in answer.within))
    return lines


def _bar(answer: WaitAnswer) -> str:
    """The 80 % interval with the 50 % one thick and the median marked, on a log axis of waiting time."""
    eighty, fifty = answer.interval(0.8), answer.interval(0.5)
    assert eighty is not None
    low, high = math.log1p(eighty.low_s), math.log1p(eighty.high_s) if not math.isinf(eighty.high_s) else math.log1p(30 * 86400)
    size = max(high - low, 1e-9)

    def place(seconds: float) -> int:
        value = high if math.isinf(seconds) else math.log1p(seconds)
        return min(BAR - 1, max(0, round((value - low) / size * (BAR - 1))))

    cells = ["─"] * BAR
    if fifty is not None:
        for i in range(place(fifty.low_s), place(fifty.high_s) + 1):
            cells[i] = "━"
    if answer.median_s is not None:
        cells[place(answer.median_s)] = "■"
    if math.isinf(eighty.high_s):
        cells[-1] = "▶"
    return "".join(cells)


def _not_eligible(answer: WaitAnswer, zone: str) -> list[str]:
    eighty = answer.interval(0.8)
    lines = [f"{_('waits'):<{LABEL}}" + _("not yet in the queue: the wait begins when it becomes eligible")]
    if eighty is not None:
        till = span(eighty.high_s) if not math.isinf(eighty.high_s) else _("longer than history shows")
        text = _("like jobs then waited {low} to {high} (8 in 10), half under {half}").format(
            low=span(eighty.low_s), high=till, half=span(answer.median_s)
        )
        lines.append(f"{_('then'):<{LABEL}}{text}")
    return lines


def _held(answer: WaitAnswer, zone: str) -> list[str]:
    return [f"{_('starts'):<{LABEL}}" + _("not until it is released: no time can be given")]


def _never(answer: WaitAnswer, zone: str) -> list[str]:
    return [f"{_('starts'):<{LABEL}}" + _("never as it is: something must be changed first")]


def _started(answer: WaitAnswer, zone: str) -> list[str]:
    return [f"{_('started'):<{LABEL}}{moment(answer.started_at, answer.at, zone)}"]


def _ended(answer: WaitAnswer, zone: str) -> list[str]:
    if answer.started_at is None:
        return [f"{_('ended'):<{LABEL}}{moment(answer.ended_at, answer.at, zone)}, {_('without having started')}"]
    return [*_started(answer, zone), f"{_('ended'):<{LABEL}}{moment(answer.ended_at, answer.at, zone)}"]


def _no_history(answer: WaitAnswer, zone: str) -> list[str]:
    return [f"{_('starts'):<{LABEL}}" + _("not known: no like job has started in the last weeks")]


def _beyond_history(answer: WaitAnswer, zone: str) -> list[str]:
    lines = [f"{_('waited'):<{LABEL}}{_('{span} so far').format(span=span(answer.waited_s))}"] if answer.waited_s is not None else []
    return [*lines, f"{_('starts'):<{LABEL}}" + _("not known: it has waited longer than the like jobs that started")]


_STATUS = {
    "estimate": _estimate,
    "not_eligible": _not_eligible,
    "held": _held,
    "never": _never,
    "started": _started,
    "ended": _ended,
    "no_history": _no_history,
    "beyond_history": _beyond_history,
}


def _reason(answer: WaitAnswer, width: int) -> list[str]:
    assert answer.reason is not None
    lines = ["", *_labelled(_("why"), f"{answer.reason.title} ({answer.reason.code}). {answer.reason.meaning}", width)]
    for i, step in enumerate(answer.reason.steps):
        lines += _labelled(_("to do") if i == 0 else "", for_job(step, answer.job_id), width)
    return lines


def _slurm(answer: WaitAnswer, says: SlurmSays, zone: str) -> list[str]:
    if answer.job_id is not None and answer.status in ("estimate", "not_eligible", "held", "never", "beyond_history"):
        if says.start is not None:
            word = moment(says.start, answer.at, zone)
            if says.clamped:
                word += " " + _("(overdue: Slurm shows the present)")
        else:
            word = _("no estimate (N/A: not tested, which is not never)")
    else:
        word = _("estimates exist only for submitted jobs")
    record = says.record
    if record is not None and record.median_abs_error_s is not None:
        word += "; " + _("here they were off by {span} in the middle lately, {share} of rows had none").format(
            span=span(record.median_abs_error_s), share=percent(record.missing)
        )
    return ["", f"{_('Slurm'):<{LABEL}}{word}"]


def _factors(answer: WaitAnswer, width: int) -> list[str]:
    """What moved the answer most, with the sign of its part."""
    if not answer.factors:
        return []
    lines = [""]
    for number, factor in enumerate(answer.factors):
        lines += _labelled(_("moved by") if number == 0 else "", f"{factor_part(factor):<9} {factor_text(factor)}", width)
    return lines


def _basis(answer: WaitAnswer) -> list[str]:
    basis = answer.basis
    if basis is None or answer.status not in ("estimate", "not_eligible", "no_history", "beyond_history"):
        return []
    names = {
        "partition": _("partition"),
        "qos": "QOS",
        "account": _("account"),
        "gpu_type": _("GPU type"),
        "size": _("size"),
        "limit": _("time limit"),
        "gpu": _("GPU or not"),
    }
    same = ", ".join(names[d] for d in basis.same) or _("cluster")
    text = ngettext("{n} job with the same {same} in {days} days", "{n} jobs with the same {same} in {days} days", basis.count).format(
        n=basis.count, same=same, days=max(1, round(basis.span_days))
    )
    lines = ["", f"{_('like'):<{LABEL}}{text}"]
    if basis.quartiles_s is not None:
        low, middle, high = basis.quartiles_s
        text = _("{n} started: half waited {low} to {high}, the middle one {middle}; {m} had not started").format(
            n=basis.started, low=span(low), high=span(high), middle=span(middle), m=basis.waiting
        )
        lines.append(f"{'':<{LABEL}}{text}")
    if answer.honesty is not None and answer.honesty.held is not None:
        if answer.honesty.days is None:
            text = _("of the last {n} answers so made, {share} of the 8-in-10 intervals held")
        else:
            text = _("of {n} answers like this in the last {days} days, {share} of the 8-in-10 intervals held")
        text = text.format(n=answer.honesty.counted, share=percent(answer.honesty.held), days=answer.honesty.days)
        lines.append(f"{_('lately'):<{LABEL}}{text}")
    return lines


PARSABLE = (
    "status",
    "cluster",
    "at",
    "job_id",
    "waited_s",
    "median_wait_s",
    "low_50_s",
    "high_50_s",
    "low_80_s",
    "high_80_s",
    "low_95_s",
    "high_95_s",
    "p_1h",
    "p_4h",
    "p_24h",
    "slurm_start",
    "reason",
    "like_jobs",
    "data_age_s",
)


def parsable(answer: WaitAnswer) -> str:
    """Header and one row, separated by ``|``; unknown is empty."""
    raw = answer.as_json()
    within = {p["hours"]: p["p"] for p in raw["p_start_within"]}
    row = {
        **{k: raw[k] for k in ("status", "cluster", "at", "job_id", "waited_s", "median_wait_s", "data_age_s")},
        **{f"{end}_{round(i['share'] * 100)}_s": i[f"{end}_s"] for i in raw["intervals"] for end in ("low", "high")},
        **{f"p_{h}h": within.get(h) for h in (1, 4, 24)},
        "slurm_start": (raw["slurm_estimate"] or {}).get("start"),
        "reason": (raw["reason"] or {}).get("code"),
        "like_jobs": (raw["like_jobs"] or {}).get("count"),
    }
    cells = ["" if row.get(k) is None else str(row[k]).replace("|", "\\x7c") for k in PARSABLE]
    return "|".join(PARSABLE) + "\n" + "|".join(safe(c) for c in cells)
