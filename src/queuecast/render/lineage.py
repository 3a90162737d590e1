"""What ``queuecast retry`` changed, and the tree of ``queuecast lineage``, for a terminal."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from queuecast.answers.retries.header import change_text, title
from queuecast.i18n import _, ngettext
from queuecast.render.words import moment, safe, span, wrapped

if TYPE_CHECKING:
    from queuecast.answers.retries.answer import RetryAnswer
    from queuecast.answers.retries.lineage import Attempt, Lineage


def retry_lines(answer: RetryAnswer, width: int, zone: str) -> list[str]:
    """The whole story, for ``--explain``."""
    out = wrapped(
        _("Job {job} ({name}) ended {state} {time}: {cause} ({share:.0%} sure).").format(
            job=answer.job,
            name=safe(answer.name),
            state=answer.state,
            time=moment(answer.ended_at, answer.at, zone),
            cause=title(answer.failure_class),
            share=answer.confidence,
        ),
        width,
        2,
    )
    if answer.blocked:
        out += wrapped(_("Not ready: {why}").format(why=safe(answer.blocked)), width, 2)
    out += [line for text in answer.mend for line in wrapped(f"  [ ] {safe(text)}", width, 6)]
    out.append(_("Changed:") if answer.changes else _("Nothing would be changed."))
    out += [line for c in answer.changes for line in wrapped(f"  {safe(change_text(c))}", width, 6)]
    if answer.carried:
        options = " ".join(f"--{k}={v}" if v else f"--{k}" for k, v in answer.carried.items())
        out += wrapped(_("Carried over: {options}").format(options=safe(options)), width, 2)
    where = {
        "given": _("as given"),
        "file": _("the file that was submitted"),
        "controller": _("Slurm's controller"),
        "accounting": _("Slurm's accounting"),
        "wrap": _("rebuilt from --wrap"),
    }[answer.origin]
    out += wrapped(_("Script: {where} {path}").format(where=where, path=safe(answer.path) if answer.path else "").rstrip(), width, 2)
    return [*out, *retry_notes(answer, width)]


def retry_notes(answer: RetryAnswer, width: int) -> list[str]:
    """What somebody should read who sends the script to a file: warnings, notes, errors of the check, how to submit it."""
    out = [line for text in answer.warnings for line in wrapped(_("warning: {text}").format(text=safe(text)), width, 4)]
    out += [line for text in answer.notes for line in wrapped(_("note: {text}").format(text=safe(text)), width, 4)]
    for f in answer.findings:
        place = f":{f.line}" if f.line is not None else ""
        out += wrapped(_("check{place}: {severity}: {text}").format(place=place, severity=f.severity, text=safe(f.why)), width, 4)
    if answer.stored is False:
        text = _("Accounting does not keep comments here (AccountingStoreFlags): the parent is kept in the lake's log instead.")
        out += wrapped(_("note: {text}").format(text=text), width, 4)
    if answer.arguments:
        out += wrapped(_("submit with: sbatch FILE {words}").format(words=safe(shlex.join(answer.arguments))), width, 4)
    return out


def lineage_lines(answer: Lineage, width: int, zone: str) -> list[str]:
    """A tree, one attempt with its parameters and what changed per branch."""
    out: list[str] = []
    below: dict[int | None, list[int]] = {}
    for i, attempt in enumerate(answer.attempts):
        below.setdefault(attempt.parent, []).append(i)

    def draw(i: int, lead: str, last: bool, top: bool) -> None:
        attempt = answer.attempts[i]
        branch = "" if top else ("└─ " if last else "├─ ")
        deeper = lead if top else lead + ("   " if last else "│  ")
        mark = " ◀" if attempt.job == answer.asked and len(answer.attempts) > 1 else ""
        out.extend(_block(lead + branch, deeper, _head(attempt, answer, zone) + mark, width))
        bar = "│  " if below.get(i) else "   "
        for text in _details(attempt):
            out.extend(_block(deeper + bar, deeper + bar + "  ", text, width))
        children = below.get(i, [])
        for number, child in enumerate(children):
            draw(child, deeper, number == len(children) - 1, False)

    for root in below.get(None, []):
        draw(root, "", True, True)
    if len(answer.attempts) == 1:
        out.append(_("No other attempt is known."))
    for text in answer.notes:
        out += wrapped(_("note: {text}").format(text=safe(text)), width, 4)
    return out


def _head(attempt: Attempt, answer: Lineage, zone: str) -> str:
    words = [attempt.job, safe(attempt.name)]
    if attempt.tasks > 1:
        words.append(ngettext("{n} task", "{n} tasks", attempt.tasks).format(n=attempt.tasks))
    states = ", ".join(f"{n} {s}" if attempt.tasks > 1 else s for s, n in attempt.states.items())
    words.append(states)
    if attempt.failure_class:
        words.append(f"({title(attempt.failure_class)})")
    words.append(_("submitted {time}").format(time=moment(attempt.submit, answer.at, zone)))
    links = {"requeue": _("requeued"), "comment": _("retry"), "log": _("retry, by the log"), "guess": _("a guess: same name and folder")}
    if attempt.link in links:
        words.insert(0, f"[{links[attempt.link]}]")
    return "  ".join(words)


def _details(attempt: Attempt) -> list[str]:
    out = []
    cost = []
    if attempt.elapsed_s is not None:
        cost.append(_("ran {span}").format(span=span(attempt.elapsed_s)))
    if attempt.gpu_hours:
        cost.append(_("{n:,.1f} GPU-hours").format(n=attempt.gpu_hours))
    if attempt.core_hours is not None:
        cost.append(_("{n:,.1f} core-hours").format(n=attempt.core_hours))
    asked = "  ".join(f"{name} {value}" for name, value in attempt.parameters.items())
    out.append(safe(", ".join([*cost, asked]) if cost else asked))
    if attempt.changed:
        text = ", ".join(f"{name} {before or '–'} → {after or '–'}" for name, before, after in attempt.changed)
        out.append(_("changed: {text}").format(text=safe(text)))
    return out


def _block(first: str, rest: str, text: str, width: int) -> list[str]:
    lines = wrapped(text, max(30, width - len(rest)), 0)
    return [f"{first}{lines[0]}", *(f"{rest}{line}" for line in lines[1:])]
