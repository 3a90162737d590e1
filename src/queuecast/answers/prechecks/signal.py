"""Checks that a long job can be stopped and go on: checkpoint, signal before the time limit, trap, requeue."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from queuecast.i18n import _
from queuecast.slurmtext.durations import format_limit

if TYPE_CHECKING:
    from queuecast.answers.prechecks.precheck import Script
    from queuecast.answers.scriptlines import Command

LONG_S = 4 * 3600
"""From that limit on, losing all work at the end is worth a warning."""

_SAVING = re.compile(r"check[-_]?point|ckpt|resume|restart|snapshot|save[-_](?:every|steps|interval)", re.IGNORECASE)


def check_signal(script: Script) -> None:
    """Nothing is said of short jobs that use none of this."""
    signal = script.options.get("signal", "")
    traps = [c for c in script.body.commands if c.words[0] == "trap"]
    requeues = any(c.words[:2] == ("scontrol", "requeue") for c in script.body.commands) or "scontrol requeue" in _code(script.text)
    _missing(script, signal)
    if signal:
        _signal(script, signal, traps)
    elif requeues and traps:
        script.say(
            traps[0].line,
            "warning",
            "no-signal",
            _("A trap waits for a signal, but none is asked for before the time limit."),
            _("Add #SBATCH --signal=B:USR1@120."),
        )
    if requeues and "no-requeue" in script.options:
        script.say(
            script.line("no-requeue"),
            "error",
            "no-requeue",
            _("The script requeues itself and forbids it with --no-requeue."),
            _("Use --requeue."),
        )
    jobrequeue = script.policy.settings.get("jobrequeue") if script.policy else None
    if requeues and "requeue" not in script.options and "no-requeue" not in script.options and jobrequeue == "0":
        script.say(
            None,
            "error",
            "no-requeue",
            _("The cluster does not requeue jobs unless they allow it (JobRequeue=0)."),
            _("Add #SBATCH --requeue."),
        )
    if requeues and script.options.get("open-mode", "").lower() not in ("append", "a"):
        script.say(
            script.line("output"),
            "note",
            "output-lost",
            _("After a requeue the output file begins anew."),
            _("Add #SBATCH --open-mode=append to keep what was written."),
        )


def _missing(script: Script, signal: str) -> None:
    request = script.request
    if request is None or not (request.unlimited or (request.limit_s or 0) >= LONG_S):
        return
    if signal or _SAVING.search(_code(script.text)):
        return
    limit = _("no limit") if request.unlimited else format_limit(request.limit_s or 0)
    script.say(
        script.line("time"),
        "warning",
        "no-checkpoint",
        _("A job of {limit} without a checkpoint loses all its work at the limit, at a node failure or when preempted.").format(
            limit=limit
        ),
        _("Save regularly and go on from the last file; queuecast template single shows how."),
    )


def _signal(script: Script, signal: str, traps: list[Command]) -> None:
    line = script.line("signal")
    to_shell = signal.upper().startswith(("B:", "BR:", "RB:"))
    name = signal.rpartition(":")[2].partition("@")[0].upper().removeprefix("SIG")
    caught = [t for t in traps if any(w.upper().removeprefix("SIG") == name for w in t.words[2:])]
    if to_shell and not caught:
        script.say(
            line,
            "error",
            "no-trap",
            _("--signal sends {name} to the script, which does not catch it: the signal ends the job.").format(name=name or "?"),
            _("Add a trap for it before the program is started: trap 'on_timeout' {name}").format(name=name or "USR1"),
        )
    if caught and not to_shell:
        script.say(
            line,
            "warning",
            "signal-not-to-script",
            _("Without B: the signal goes to what srun started, and the trap of the script never runs."),
            _("Use --signal=B:{name}@120.").format(name=name),
        )
    after = [c for c in script.body.commands if caught and c.line > caught[0].line]
    if to_shell and caught and after and not any(c.words[0] == "wait" for c in after):
        script.say(
            caught[0].line,
            "warning",
            "trap-too-late",
            _("The shell runs a trap only when the program in the foreground has ended."),
            _("Start the program with & and then: wait $!"),
        )
    seconds = signal.partition("@")[2]
    limit = script.request.limit_s if script.request else None
    if limit is not None and seconds.isdigit() and int(seconds) >= limit:
        script.say(
            line,
            "warning",
            "signal-at-once",
            _("The signal comes {seconds} s before a limit of {limit}: at once.").format(seconds=seconds, limit=format_limit(limit)),
            _("Lower the number after @, or raise -t."),
        )


def _code(text: str) -> str:
    """The script without its comments."""
    return "\n".join(line for line in text.split("\n") if not line.lstrip().startswith("#"))
