"""Weighs what is known of a failed job: which class of failure, and how sure.

The rule: each class begins with a score (how common it is), each piece of evidence adds to the scores of the classes that
it speaks for or against (log odds), and the confidences are ``exp(score)`` over the sum of them all. Evidence of one source
is not counted twice: of a log, the best line of each class counts, further ones add little, and lines that only report what
happened elsewhere count half beside a cause. The numbers were set by hand on the first half of the labelled cases.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from queuecast.reasons.failureclasses import CLASSES, FailureClass
from queuecast.reasons.logpatterns import pattern_of

Source = Literal["state", "exit", "reason", "step", "memory", "time", "node", "cancel", "peers", "log"]
Scores = Mapping[FailureClass, float]

PRIOR: dict[FailureClass, float] = {
    "user_code": 0.0, "environment": -0.9, "oom_host": -1.3, "oom_gpu": -2.0, "time_limit": -2.5, "node": -2.6, "platform": -2.6,
    "scheduler_cancel": -3.0, "user_cancel": -3.5, "preempted": -4.0, "dependency": -4.5, "unknown": -0.6,
}  # fmt: skip

STATES: dict[str, Scores] = {
    "FAILED": {"user_code": 0.5},
    "TIMEOUT": {"time_limit": 8.0},
    "OUT_OF_MEMORY": {"oom_host": 7.5},
    "NODE_FAIL": {"node": 8.5},
    "BOOT_FAIL": {"node": 8.0},
    "LAUNCH_FAILED": {"platform": 8.0},
    "RECONFIG_FAIL": {"node": 7.0},
    "PREEMPTED": {"preempted": 10.0},
    "DEADLINE": {"scheduler_cancel": 9.0},
    "REVOKED": {"scheduler_cancel": 9.0},
    "REQUEUED": {"preempted": 4.0, "unknown": 1.2, "scheduler_cancel": 2.0},
}
REASONS: dict[str, Scores] = {
    "NodeDown": {"node": 5.0},
    "SystemFailure": {"platform": 5.0},
    "JobLaunchFailure": {"platform": 4.5, "environment": 1.0},
    "TimeLimit": {"time_limit": 5.0},
    "OutOfMemory": {"oom_host": 5.0},
    "InactiveLimit": {"scheduler_cancel": 6.0},
    "DeadLine": {"scheduler_cancel": 6.0},
    "DependencyNeverSatisfied": {"dependency": 12.0},
    "JobHoldMaxRequeue": {"platform": 2.5},
    "BurstBufferStageIn": {"platform": 2.5},
    "BurstBufferOperation": {"platform": 4.0},
}
"""Slurm's reasons that tell of an end. sacct keeps older ones (why it waited); those say nothing."""

SIGNALS: dict[int, Scores] = {
    2: {"user_cancel": 2.5, "user_code": 0.3},
    4: {"environment": 2.0, "user_code": 1.0},
    6: {"user_code": 1.8},
    7: {"environment": 2.2, "node": 2.0, "user_code": 0.3},
    8: {"user_code": 2.2},
    10: {"user_code": 0.6, "unknown": 0.4},
    11: {"user_code": 2.2},
    12: {"user_code": 0.6, "unknown": 0.4},
    13: {"user_code": 1.0},
    24: {"time_limit": 5.0},
    25: {"environment": 3.0},
    53: {"environment": 6.0},
    125: {"oom_host": 6.0},
}
SUBTRACTED = (4, 6, 7, 8, 9, 11, 15, 24, 25)
"""Statuses below 128 that few programs use of their own and that are a signal where Slurm printed them less 128 (before 25.11)."""
STATUSES: dict[int, Scores] = {
    2: {"user_code": 0.6},
    124: {"user_code": 1.6, "time_limit": 0.8},
    125: {"environment": 2.0},
    126: {"environment": 3.0},
    127: {"environment": 3.8},
    255: {"unknown": 0.3, "environment": 0.3, "platform": 0.5},
}
NODE_EVENTS: dict[str, Scores] = {"down": {"node": 5.0}, "fault": {"node": 4.0}, "after": {"node": 1.6}, "drain": {"node": 0.7}}
EARLY, WARNING = 0.6, 0.25
"""Share of a log line's score if it stands far from the end of the file, or is a warning only."""
SPECIFIC = 1.35
"""Factor of log lines that name a cause."""


@dataclass(frozen=True)
class Step:
    """How the worst step ended: ``kind`` batch, extern, interactive or step."""

    kind: str
    state: str
    status: int | None
    signal: int | None


@dataclass(frozen=True)
class Signs:
    """What accounting and the node's events tell of an attempt, in classes rather than numbers. None is unknown.

    ``subtracts``: this Slurm prints statuses above 128 less 128. ``near_limit``: ran to within 2 % or a minute of the limit.
    ``memory``: highest memory against what it had: at (from 95 %), near (from 80 %), below. ``cancelled``: by whom.
    ``node_event``: down, fault (drained with words of broken hardware), after (either, minutes after the end),
    drain. ``peers``: jobs of others died on its nodes too.
    """

    state: str
    status: int | None = None
    signal: int | None = None
    derived_status: int | None = None
    derived_signal: int | None = None
    subtracts: bool | None = None
    reason: str | None = None
    started: bool = True
    quick: bool = False
    near_limit: bool | None = None
    memory: Literal["at", "near", "below"] | None = None
    cancelled: Literal["owner", "root", "other"] | None = None
    oom_step: bool = False
    step: Step | None = None
    node_event: Literal["down", "fault", "after", "drain"] | None = None
    peers: bool = False


@dataclass(frozen=True)
class Hit:
    """A line of a log that a pattern names. ``late``: near the end of the file, where what ended the job stands. ``warning``: the
    line says of itself that it is one."""

    key: str
    late: bool = True
    warning: bool = False


@dataclass(frozen=True)
class Because:
    """One piece of evidence: ``key`` names its text, ``number`` is what the text speaks of."""

    source: Source
    key: str
    scores: Scores
    number: int | None = None


@dataclass(frozen=True)
class Verdict:
    """``weights``: confidence by class, they sum to 1. ``because``: in the order of the sources."""

    failure_class: FailureClass
    confidence: float
    weights: Mapping[FailureClass, float]
    because: tuple[Because, ...]


def weigh(signs: Signs, hits: Iterable[Hit] = ()) -> Verdict:
    """The class of a failure. A function of its arguments alone; never raises."""
    because = tuple(_evidence(signs))
    score = dict(PRIOR)
    for one in because:
        for name, value in one.scores.items():
            score[name] += value
    for name, value in _log_scores(tuple(hits)).items():
        score[name] += value
    top = max(score.values())
    raised = {name: math.exp(value - top) for name, value in score.items()}
    total = math.fsum(raised.values())
    weights = {name: raised[name] / total for name in CLASSES}
    best = max(CLASSES, key=lambda name: weights[name])
    return Verdict(best, weights[best], weights, because)


def _log_scores(hits: tuple[Hit, ...]) -> dict[FailureClass, float]:
    from queuecast.reasons.logpatterns_user import GENERAL

    general = {p.key for p in GENERAL}
    keys: dict[str, float] = {}
    for hit in hits:
        keys[hit.key] = max(keys.get(hit.key, 0.0), WARNING if hit.warning else 1.0 if hit.late else EARLY)
    found = [(pattern_of(key), share) for key, share in keys.items()]
    caused = any(not p.follows and p.key not in general for p, share in found if share > WARNING)
    best: dict[FailureClass, float] = {}
    more: dict[FailureClass, int] = {}
    for one, share in found:
        specific = one.key not in general
        factor = share * (SPECIFIC if specific else 0.25 if caused else 1.0) * (0.5 if one.follows and caused and specific else 1.0)
        for name, value in one.scores.items():
            best[name] = max(best.get(name, value * factor), value * factor)
            if specific and not one.follows and value >= 1.5 and share > WARNING:
                more[name] = more.get(name, 0) + 1
    return {name: value + 0.3 * max(0, min(3, more.get(name, 0)) - 1) for name, value in best.items()}


def _evidence(signs: Signs) -> Iterable[Because]:
    yield Because("state", signs.state, STATES.get(signs.state, {}))
    if signs.state == "CANCELLED":
        yield _cancel(signs)
    if signs.state == "FAILED" and not signs.started:
        yield Because("state", "refused", {"scheduler_cancel": 6.5})
    if signs.reason in REASONS and not (signs.reason == "DependencyNeverSatisfied" and signs.started):
        yield Because("reason", signs.reason, REASONS[signs.reason])
    # What Slurm says of the end makes the exit code its consequence.
    told = signs.state in STATES and signs.state not in ("FAILED", "REQUEUED")
    if not told and signs.started:
        yield from _exit(signs)
    if signs.oom_step:
        yield Because("step", "oom_step", {"oom_host": 6.0})
    if signs.step is not None and signs.step.state == "NODE_FAIL":
        yield Because("step", "node_step", {"node": 5.0})
    if signs.memory in ("at", "near"):
        killed = not told and 9 in (_signal_of(signs)[0], signs.derived_signal, signs.step.signal if signs.step else None)
        yield Because("memory", signs.memory, {"oom_host": 3.0 if killed else 0.8} if signs.memory == "at" else {"oom_host": 0.8})
    elif signs.memory == "below":
        yield Because("memory", "below", {"oom_host": -1.0})
    if signs.near_limit and not told:
        ended = _signal_of(signs)[0] in (10, 12, 15, 24)
        by_root = signs.cancelled == "root"
        yield Because("time", "near_limit", {"time_limit": 5.0 if ended else 4.0 if by_root else 2.4})
    if signs.node_event is not None:
        # A node that drains lets its jobs run on: they may crash there, but it is not why they are put back into the queue.
        share = 0.0 if told else 0.2 if signs.state in ("REQUEUED", "CANCELLED") and signs.node_event != "down" else 1.0
        yield Because("node", signs.node_event, {n: v * share for n, v in NODE_EVENTS[signs.node_event].items()})
    if signs.peers:
        yield Because("peers", "peers", {"node": 4.2} if not told else {})


def _cancel(signs: Signs) -> Because:
    if signs.cancelled == "owner":
        return Because("cancel", "owner", {"user_cancel": 9.0})
    if signs.cancelled in ("root", "other"):  # Slurm acts as root or as its own user: its lines in the log say why
        return Because("cancel", signs.cancelled, {"scheduler_cancel": 6.5})
    return Because("cancel", "not_told", {"user_cancel": 5.5, "scheduler_cancel": 4.0, "unknown": 1.0})


def _exit(signs: Signs) -> Iterable[Because]:
    yield from _code(signs, signs.status, signs.signal, 1.0, "")
    inner = (signs.step.status, signs.step.signal) if signs.step is not None and signs.step.kind == "step" else (None, None)
    if inner == (None, None) or inner == (0, 0):
        inner = (signs.derived_status, signs.derived_signal)
    status, signal = inner
    # A script that goes on after its program died and then fails itself says 1; the step tells how the program ended.
    if (signal or (status or 0) > 1) and inner != (signs.status, signs.signal):
        yield from _code(signs, status, signal, 0.8, "step_")


def _code(signs: Signs, status: int | None, signal: int | None, share: float, prefix: str) -> Iterable[Because]:
    source: Source = "step" if prefix else "exit"
    number, sure = _read(signs, status, signal)
    if number is not None:
        scores = _signal(signs, number)
        key = "signal" if signal else "status_signal" if sure == 1.0 else "status_maybe_signal"
        yield Because(source, prefix + key, {n: v * share * sure for n, v in scores.items()}, number)
    elif status is None:
        yield Because(source, prefix + "not_told", {"unknown": 0.8})
    elif status == 0:
        if not prefix and signs.state == "FAILED":
            yield Because(source, "zero", {"unknown": 1.4})
    elif signs.state == "REQUEUED" and not prefix:
        yield Because(source, "status", {"user_code": 2.2, "preempted": -3.0}, status)
    else:
        scores = STATUSES.get(status, {} if status == 1 else {"user_code": 0.9})
        yield Because(source, prefix + "status", {n: v * share for n, v in scores.items()}, status)


def _read(signs: Signs, status: int | None, signal: int | None) -> tuple[int | None, float]:
    """The signal behind an exit code and how sure that is (0 to 1); (None, 0) if there is none."""
    if signal:
        return signal, 1.0
    if status is not None and 128 < status <= 192:
        return status - 128, 1.0
    if status in SUBTRACTED and signs.subtracts is not False:
        if status == 9:
            return status, 0.9 if signs.subtracts else 0.7
        return status, 0.7 if signs.subtracts else 0.45
    return None, 0.0


def _signal_of(signs: Signs) -> tuple[int | None, float]:
    return _read(signs, signs.status, signs.signal)


def _signal(signs: Signs, number: int) -> Scores:
    if number == 9:
        if signs.memory == "below":
            return {"unknown": 1.0, "user_code": 0.3, "node": 0.4, "oom_host": 1.0}
        return {"oom_host": 2.9, "unknown": 0.5, "node": 0.4}
    if number == 15:
        if signs.near_limit:
            return {"time_limit": 2.0}
        return {"scheduler_cancel": 2.6, "user_cancel": 3.0, "preempted": 2.0, "unknown": 1.2, "user_code": -0.3}
    return SIGNALS.get(number, {"user_code": 0.5, "unknown": 0.5})
