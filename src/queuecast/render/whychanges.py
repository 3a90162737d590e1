"""Changes of a request that would matter, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queuecast.i18n import _
from queuecast.reasons import explain_reason
from queuecast.render.words import percent, safe, span, wrapped

if TYPE_CHECKING:
    from queuecast.answers.alternatives_answer import Spread
    from queuecast.answers.explaining.changes_answer import Change, Changes


def changes_lines(found: Changes, width: int) -> list[str]:
    """A heading, then each change with its effect and what to paste."""
    out = [_("what would change that")]
    for text in found.notes:
        out += ["  " + line for line in wrapped(text, width - 2, 0)]
    if not found.changes:
        if found.tried:
            text = _("Of {n} allowed changes of the request none would matter much by what is known here.").format(n=found.tried)
            out += ["  " + line for line in wrapped(text, width - 2, 0)]
        return out
    before = before_words(found)
    if before:
        out += ["  " + line for line in wrapped(before, width - 2, 0)]
    for change in found.changes:
        out.append(f"  {safe(change.label)}: {effect_words(change)}")
        for text in (wait_words(change, found), gain_words(change, found.futures), *(safe(c) for c in change.conditions)):
            if text:
                out += ["    " + line for line in wrapped(text[:1].upper() + text[1:] + ("" if text.endswith(".") else "."), width - 4, 0)]
        if change.flags:
            out.append(f"    {'scontrol update' if change.keeps_place else 'sbatch'} {safe(' '.join(change.flags))}")
    return out


def before_words(found: Changes) -> str:
    """The waits to compare with."""
    if found.now is None and found.as_new is None:
        return ""
    if found.now is None and found.as_new is not None:
        return _("A new job like it waits {wait}.").format(wait=spread_words(found.as_new))
    if found.as_new is None and found.now is not None:
        return _("As it is, it waits {wait} from now.").format(wait=spread_words(found.now))
    return _("As it is, it waits {now} from now; a new job like it {new}.").format(
        now=spread_words(found.now), new=spread_words(found.as_new)
    )


def spread_words(value: Spread | None) -> str:
    """``3 h 20 min (1 h to 9 h in 8 of 10 cases)``."""
    if value is None:
        return "–"
    return _("{median} ({low} to {high} in 8 of 10 cases)").format(
        median=span(value.median_s), low=span(value.low_s), high=span(value.high_s)
    )


def effect_words(change: Change) -> str:
    """What the change does."""
    title = "" if change.binds is None else f"{explain_reason(change.binds).title} ({change.binds})"
    if change.effect == "allowed":
        then = _("; then it waits: {what}").format(what=title) if title else ""
        return _("it can start at all") + then
    if change.effect == "fits":
        return _("what it asks for is free now, and nothing found keeps it")
    if change.effect == "unblocks":
        told = _("{codes} no longer keeps it").format(codes=", ".join(change.frees) or _("what keeps it now"))
        return told + (_("; then: {what}").format(what=title) if title else "")
    return _("such jobs started sooner so far")


def wait_words(change: Change, found: Changes) -> str:
    """The wait of a new job like that, against one as asked."""
    if change.wait is None:
        return ""
    told = _("a new job like that waits {wait}").format(wait=spread_words(change.wait))
    if change.p_4h is None:
        return told
    if found.as_new_p_4h is None:
        return told + _("; it starts within 4 h in {p} of cases").format(p=percent(change.p_4h))
    return told + _("; it starts within 4 h in {p} of cases rather than {before}").format(
        p=percent(change.p_4h), before=percent(found.as_new_p_4h)
    )


def gain_words(change: Change, futures: int) -> str:
    """What drawn futures say; empty without any."""
    gain = change.sooner
    if gain is None or not futures:
        return ""
    if gain.low_s == gain.high_s == 0:
        return _("in {n} drawn futures it starts at the same time").format(n=futures)
    return _("in {n} drawn futures it starts sooner in {p}: by {median} ({low} to {high})").format(
        n=futures, p=percent(change.p_sooner), median=_signed(gain.median_s), low=_signed(gain.low_s), high=_signed(gain.high_s)
    )


def _signed(seconds: float) -> str:
    return span(seconds) if seconds >= 0 else _("-{time}").format(time=span(-seconds))
