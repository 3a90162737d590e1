"""What each piece of evidence says, in words."""

from __future__ import annotations

import signal as signals
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from queuecast.i18n import _
from queuecast.slurmtext.durations import format_elapsed
from queuecast.slurmtext.sizes import format_size

if TYPE_CHECKING:
    from queuecast.answers.failures.rows import NodeEvent
    from queuecast.answers.failures.weigh import Because


def evidence_text(one: Because, row: Mapping[str, Any], events: Sequence[NodeEvent], memory: float | None) -> str:
    """One sentence. It may hold words of users and administrators (states, reasons): clean it before showing."""
    if one.source == "state":
        return _state(one, row)
    if one.source == "cancel":
        return {
            "owner": _("Its owner cancelled it."),
            "root": _("It was cancelled by root: an administrator, a script of the site, or Slurm itself."),
            "other": _("It was cancelled by another user (uid {uid}), not its owner.").format(uid=row.get("cancelled_by")),
        }.get(one.key, _("It was cancelled; Slurm does not tell by whom."))
    if one.source == "reason":
        return _("Slurm's reason is {reason}.").format(reason=one.key)
    if one.source in ("exit", "step"):
        return _exit(one)
    if one.source == "memory":
        share = _("{share} % of its memory ({memory})").format(
            share="?" if memory is None else round(100 * memory),
            memory=format_bytes(row.get("mem_alloc_bytes") or row.get("mem_req_bytes")),
        )
        if one.key == "below":
            return _("It was seen to use {share} at most; short peaks can be missed.").format(share=share)
        return _("It was seen to use {share}.").format(share=share)
    if one.source == "time":
        return _("It ran {ran} of the {limit} it had asked for.").format(ran=length(row.get("elapsed_s")), limit=length(row.get("limit_s")))
    if one.source == "node":
        told = events[0] if events else None
        if told is None:
            return _("A node of it went out of service about then.")
        return _("Node {node} was {state} from {time} on: {reason}").format(
            node=told.node, state=told.state, time=f"{told.start:%Y-%m-%d %H:%MZ}", reason=told.reason or _("no reason given")
        )
    return _("Jobs of others died on the same node about then, more than on other nodes.")


def _state(one: Because, row: Mapping[str, Any]) -> str:
    if one.key == "refused":
        return _("It never ran: Slurm took it in and gave it up at once, as for a request that it cannot meet.")
    return {
        "TIMEOUT": _("Slurm ended it at its time limit of {limit} (TIMEOUT).").format(limit=length(row.get("limit_s"))),
        "OUT_OF_MEMORY": _("The kernel killed a process of it for memory (OUT_OF_MEMORY); it had {memory}.").format(
            memory=format_bytes(row.get("mem_alloc_bytes") or row.get("mem_req_bytes"))
        ),
        "NODE_FAIL": _("Slurm lost contact to a node of it, or the node was set down (NODE_FAIL)."),
        "BOOT_FAIL": _("Its nodes could not be booted (BOOT_FAIL)."),
        "LAUNCH_FAILED": _("Slurm could not start it on its nodes (LAUNCH_FAILED)."),
        "PREEMPTED": _("Slurm ended it to make room for another job (PREEMPTED)."),
        "DEADLINE": _("It could not end by its --deadline (DEADLINE)."),
        "REQUEUED": _("This attempt was ended and the job was queued again (REQUEUED)."),
        "COMPLETED": _("Slurm counts it as completed, though a step of it failed."),
    }.get(one.key, _("Slurm's state is {state}.").format(state=one.key))


def _exit(one: Because) -> str:
    key, inner = one.key.removeprefix("step_"), one.key.startswith("step_")
    if one.key == "oom_step":
        return _("A step of it ran out of memory (OUT_OF_MEMORY).")
    if one.key == "node_step":
        return _("A step of it lost its node (NODE_FAIL).")
    who = _("A step") if inner else _("The job")
    number = one.number
    if key == "not_told":
        return _("Its exit code is not told.")
    if key == "zero":
        return _("Its exit code is 0 though it failed.")
    if key == "signal" and number == 53:
        return _("Signal 53: Slurm could not open its output file or enter its working directory.")
    if key == "signal" and number == 125:
        return _("Signal 125: Slurm's mark of a kill for memory.")
    if key in ("signal", "status_signal"):
        return _("{who} was ended by signal {number} ({name}).").format(who=who, number=number, name=signal_name(number))
    if key == "status_maybe_signal":
        return _("{who} ended with exit code {number}; this Slurm prints {high} (signal {number}, {name}) so too.").format(
            who=who, number=number, name=signal_name(number), high=128 + (number or 0)
        )
    meaning = {
        124: _("timeout(1) ended a command"),
        125: _("a container or wrapper could not start its command"),
        126: _("a command could not be run: no right to, or not a program for this machine"),
        127: _("a command was not found"),
    }.get(number or 0)
    said = _("{who} ended with exit code {number}").format(who=who, number=number)
    return f"{said}: {meaning}." if meaning else f"{said}."


def signal_name(number: int | None) -> str:
    """``SIGKILL``; ``?`` if there is none of that number."""
    try:
        return signals.Signals(number).name if number is not None else "?"
    except ValueError:
        return "?"


def format_bytes(value: float | None) -> str:
    """With a unit of 1024; unknown is "an unknown amount"."""
    if value is None:
        return _("an unknown amount")
    return format_size(int(value))


def length(seconds: float | None) -> str:
    """Slurm's form of a length of time; unknown is a question mark."""
    return "?" if seconds is None else format_elapsed(seconds)
