"""The answer to "what would start or end sooner?" as text."""

from __future__ import annotations

import math
from datetime import datetime

from queuecast.answers.alternatives_answer import Alternatives, Option, Spread
from queuecast.i18n import _, ngettext
from queuecast.render.words import moment, percent, safe, shift, span, wrapped

LABEL = 9
MOST = 8
"""Options shown unless all are asked for."""
SHORT = 3
"""Rows of the block inside ``when``."""
_FIELDS = (
    *("label", "kinds", "wait_low_s", "wait_median_s", "wait_high_s", "p_1h", "p_4h", "p_24h"),
    *("sooner_median_s", "p_sooner", "finish_median_s", "gpu_hours", "pareto", "flags"),
)
_WIDE = (2, 26, 24, 28, 18, 8, 12)


def alternatives_lines(answer: Alternatives, zone: str, width: int = 100, *, show_all: bool = False) -> list[str]:
    """Lines of text; times in ``zone``."""
    names = (_("request"), _("starts (8 in 10)"), _("sooner by (8 in 10)"), _("done by (half)"), _("GPU-h"), _("cost"))
    lines = [_heading(answer, zone), "", _row("", *names)]
    lines += _option(answer, answer.as_asked, zone)
    shown, hidden = _shown(answer, show_all)
    for option in shown:
        lines += _option(answer, option, zone)
        lines += _conditions(option, width)
    if hidden:
        lines.append("  " + ngettext("{n} more option: --all", "{n} more options: --all", hidden).format(n=hidden))
    if not answer.options:
        lines.append("  " + _("No other request is allowed here that would change the wait."))
    lines += ["  " + _("* no other is better in wait, end and cost at once"), ""]
    lines += _advice(answer, width)
    lines += _agreement(answer, width)
    if answer.same:
        labels = ", ".join(safe(s) for s in answer.same)
        lines += _labelled(_("same"), _("no change of start or end: {labels}").format(labels=labels), width)
    if answer.refused and show_all:
        lines += _labelled(_("refused"), " ".join(safe(r) for r in answer.refused), width)
    lines += _labelled(_("basis"), " ".join(safe(b) for b in answer.basis), width)
    if answer.notes:
        lines += _labelled(_("note"), " ".join(safe(n) for n in answer.notes), width)
    return lines


def sooner_lines(answer: Alternatives, zone: str, width: int = 100) -> list[str]:
    """The block inside ``queuecast when``: at most three rows, and what to try."""
    best = answer.best(SHORT)
    if not best:
        return _labelled(_("sooner"), _("no allowed change of the request is likely to start sooner"), width)
    lines = []
    for i, option in enumerate(best):
        done = moment(answer.moment(None if option.finish is None else option.finish.median_s), answer.at, zone)
        row = f"{safe(option.label):<28}{_wait(answer, option.wait, zone):<26}{_('done by {moment}').format(moment=done)}"
        lines += [f"{_('sooner') if i == 0 else '':<{LABEL}}{row}".rstrip()]
    return lines + _labelled(_("try"), command(answer, answer.recommended or best[0]), width)


def parsable(answer: Alternatives) -> str:
    """Fields separated by | with a header; seconds as whole numbers, empty where unknown."""
    rows = ["|".join(_FIELDS)]
    for o in (answer.as_asked, *answer.options):
        wait, finish = o.wait, o.finish
        cells = [
            _flat(o.label),
            ",".join(o.kinds),
            *(("", "", "") if wait is None else (_whole(wait.low_s), _whole(wait.median_s), _whole(wait.high_s))),
            *([f"{p:.3f}" for _h, p in o.within] or ["", "", ""]),
            "" if o.sooner is None else _whole(o.sooner.median_s),
            "" if o.p_sooner is None else f"{o.p_sooner:.3f}",
            "" if finish is None else _whole(finish.median_s),
            "" if o.gpu_hours is None else f"{o.gpu_hours:.1f}",
            "yes" if o.pareto else "no",
            _flat(" ".join(o.flags)),
        ]
        rows.append("|".join(cells))
    return "\n".join(rows)


def command(answer: Alternatives, option: Option) -> str:
    """What to type."""
    flags = " ".join(safe(f) for f in option.flags)
    if option.keeps_place:
        return f"scontrol update {flags}"
    again = _(" (submitted anew: job {job} keeps its place until you cancel it)").format(job=safe(answer.job_id)) if answer.job_id else ""
    return f"sbatch {flags} ...{again}"


def _flat(text: str) -> str:
    return safe(text).replace("|", "/")


def _whole(value: float) -> str:
    return f"{value:.0f}" if math.isfinite(value) else "inf"


def _heading(answer: Alternatives, zone: str) -> str:
    r = answer.as_asked.request
    what = _("job {job}").format(job=safe(answer.job_id)) if answer.job_id else _("this request")
    gpus = ngettext("{n} CPU", "{n} CPUs", r.cpus).format(n=r.cpus)
    if r.gpus:
        gpus = _("{n} x {type}").format(n=r.gpus, type=safe(r.gpu_type or _("GPU")))
    parts = [
        _("What would start sooner than {what}: {gpus} on {partition}, limit {limit}").format(
            what=what, gpus=gpus, partition=safe(",".join(r.partitions)) or "–", limit=span(r.limit_s)
        ),
        safe(answer.cluster),
    ]
    if answer.freshness.age_s is not None:
        parts.append(_("data {age} old").format(age=span(answer.freshness.age_s)))
    return " · ".join(parts)


def _row(*cells: str) -> str:
    return "".join(f"{cell[: w - 1]:<{w}}" for cell, w in zip(cells, _WIDE, strict=False)).rstrip()


def _shown(answer: Alternatives, show_all: bool) -> tuple[list[Option], int]:
    if show_all:
        return list(answer.options), 0
    worth = [o for o in answer.options if o.pareto or (o.p_sooner or 0.0) > 0.25 or o.sooner is None]
    shown = worth[:MOST]
    return shown, len(answer.options) - len(shown)


def _option(answer: Alternatives, option: Option, zone: str) -> list[str]:
    asked = option is answer.as_asked
    gain = "" if asked else "–" if option.sooner is None else _gain(option.sooner)
    finish = "–" if option.finish is None else moment(answer.moment(option.finish.median_s), answer.at, zone)
    return [
        _row(
            "*" if option.pareto else "",
            safe(option.label),
            _wait(answer, option.wait, zone),
            gain,
            finish,
            "–" if option.gpu_hours is None else f"{option.gpu_hours:,.0f}",
            _cost(option),
        ),
        "  " + _("within 1 h {a}, 4 h {b}, 24 h {c}").format(**dict(zip("abc", (percent(p) for _h, p in option.within), strict=False)))
        if len(option.within) == 3
        else "",
    ]


def _wait(answer: Alternatives, wait: Spread | None, zone: str) -> str:
    if wait is None:
        return _("not known")
    if math.isinf(wait.low_s):
        return _("not within {span}").format(span=span(answer.horizon_s))
    if math.isinf(wait.high_s):
        return _("from {moment}").format(moment=_clock(answer.at, wait.low_s, zone))
    if wait.low_s < 60:
        return _("within {span}").format(span=span(max(60.0, wait.high_s)))
    return _("in {low} – {high}").format(low=span(wait.low_s), high=span(wait.high_s))


def _clock(at: datetime, seconds: float, zone: str) -> str:
    return moment(shift(at, seconds), at, zone)


def _gain(gain: Spread) -> str:
    if gain.low_s == gain.high_s == 0:
        return _("no change")
    if gain.median_s < 0:
        return _("later: {low} – {high}").format(low=span(max(0.0, -gain.high_s)), high=span(-gain.low_s))
    low = ("−" if gain.low_s <= -60 else "") + span(abs(gain.low_s)) if abs(gain.low_s) >= 60 else "0"
    return f"{low} – {span(gain.high_s)}"


def _cost(option: Option) -> str:
    price = option.price
    if price is None or price[1] == "gpu_hours":
        return "–"
    return f"{price[0]:,.0f} {safe(option.cost.currency)}".rstrip() if price[1] == "price" else _("{n:,.0f} billed").format(n=price[0])


def _conditions(option: Option, width: int) -> list[str]:
    text = "; ".join(safe(c) for c in option.conditions)
    flags = " ".join(safe(f) for f in option.flags)
    out = wrapped(" " * 4 + text, width, 4) if text else []
    return [*out, " " * 4 + flags] if flags else out


def _advice(answer: Alternatives, width: int) -> list[str]:
    best = answer.recommended
    if best is not None and best.sooner is not None:
        return _labelled(_("try"), command(answer, best), width)
    if answer.futures:
        return _labelled(_("try"), _("stay with the request: no allowed change likely starts sooner and ends no later"), width)
    return []


def _agreement(answer: Alternatives, width: int) -> list[str]:
    a = answer.agreement
    if a.agree is None or a.model is None or a.twin is None:
        return []
    text = _("model {model}, replay {twin} (half before)").format(model=_half(a.model, answer), twin=_half(a.twin, answer))
    said = _("they agree") if a.agree else _("they do not agree: take the waits with care, the gains less so")
    return _labelled(_("checked"), f"{text}: {said}", width)


def _half(spread: Spread, answer: Alternatives) -> str:
    return span(spread.median_s) if math.isfinite(spread.median_s) else _("over {span}").format(span=span(answer.horizon_s))


def _labelled(label: str, text: str, width: int) -> list[str]:
    first, *rest = wrapped(text, width - LABEL, 0)
    return [f"{label:<{LABEL}}{first}", *(" " * LABEL + line for line in rest)]
