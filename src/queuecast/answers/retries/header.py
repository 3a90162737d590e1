"""The comments at the top of a copy: whose copy it is, what was changed and why, what to look at, how to submit it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from queuecast import __version__
from queuecast.i18n import _
from queuecast.reasons.failureclasses import TEXTS
from queuecast.slurmtext.rewrite import split_script

if TYPE_CHECKING:
    from queuecast.answers.retries.answer import RetryAnswer
    from queuecast.answers.retries.plan import Change

LINEAGE: Final = "lineage: "
MOST_LINES: Final = 20
MOST_DIFF: Final = 40


def header_lines(answer: RetryAnswer, before: str) -> list[str]:
    """Lines without their ``#``. ``before``: the script that was copied, whose own header's line of descent goes on."""
    ended = f"{answer.ended_at:%Y-%m-%d %H:%M} UTC" if answer.ended_at else "?"
    out = [
        _("Copy of job {job} ({name}) on {cluster}, made by queuecast {version}.").format(
            job=answer.job, name=answer.name or "-", cluster=answer.cluster, version=__version__
        ),
        _("That job ended {state} at {time}. Cause: {cause} ({share:.0%} sure).").format(
            state=answer.state, time=ended, cause=title(answer.failure_class), share=answer.confidence
        ),
    ]
    if len(answer.classes) > 1:
        counts = ", ".join(f"{n} {title(c)}" for c, n in answer.classes.items())
        out.append(_("Failed tasks by cause: {counts}.").format(counts=counts))
    if answer.blocked:
        out += ["", _("NOT READY: {why}").format(why=answer.blocked)]
    if answer.mend:
        out += ["", _("Look at this first:"), *(f"  [ ] {line}" for line in answer.mend)]
    out += ["", _("Changed:") if answer.changes else _("Nothing was changed.")]
    out += [f"  {change_text(c)}" for c in answer.changes]
    if answer.carried:
        out.append(_("Carried over from the submission: {options}").format(options=_options(answer.carried)))
    out += [_("Note: {text}").format(text=n) for n in (*answer.warnings, *answer.notes)]
    out += [_("Check: {severity}: {text}").format(severity=f.severity, text=f.why) for f in answer.findings if f.severity != "note"]
    if answer.diff:
        out += ["", _("Differences:"), *(f"  {line}" for line in answer.diff[:MOST_DIFF])]
    if answer.arguments:
        out += ["", _("Submit it with: sbatch FILE {arguments}").format(arguments=shlex.join(answer.arguments))]
    return [*out, "", *descent(answer, before)]


def descent(answer: RetryAnswer, before: str) -> list[str]:
    """One line for each job of the line of descent, oldest first, the last for the copied one. Not translated: it is read again."""
    key = f"{LINEAGE}{answer.cluster}/{answer.job} "
    earlier = [line.removeprefix("# ") for line in split_script(before).header if line.startswith(f"# {LINEAGE}")]
    kept = [line for line in earlier if not line.startswith(key)][-(MOST_LINES - 1) :]
    changed = " ".join(f"--{c.option}={c.after}" if c.after is not None else f"-{c.option}" for c in answer.changes)
    return [*kept, f"{key}{answer.failure_class} {changed}".rstrip()]


def change_text(change: Change) -> str:
    """``--mem: 4G -> 6G: why``."""
    none = _("not given")

    def shown(value: str | None) -> str:
        return none if value is None else value or _("given")

    return f"--{change.option}: {shown(change.before)} -> {shown(change.after)}: {change.why}"


def title(failure_class: str) -> str:
    """The class in a few words."""
    return next((t.title for name, t in TEXTS.items() if name == failure_class), _("it completed"))


def first_steps(failure_class: str) -> Sequence[str]:
    """What to look at before a job of the class is sent again; empty where a copy can simply be sent."""
    steps: dict[str, Iterable[str]] = {
        "user_code": (
            _("Read the last lines of its output and errors (queuecast failed JOBID shows them)."),
            _("Mend the program, and try it with a small input or in an interactive job."),
        ),
        "environment": (
            _("Look for what was not found: a module, a file, a command, a package, the quota."),
            _("Check that the paths and the environment of the script exist on the nodes."),
        ),
        "completed": (_("Say why it should run again: it completed."),),
    }
    return tuple(steps.get(failure_class, ()))


def _options(carried: dict[str, str]) -> str:
    return " ".join(f"--{name}={value}" if value else f"--{name}" for name, value in carried.items())
