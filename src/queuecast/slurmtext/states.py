"""Job states, node states and exit codes, with their short codes, flags and cut forms.

Text tools show a flag *instead of* the base state (``COMPLETING``), JSON shows both as a list.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from queuecast.errors import ParseError

# ---------------------------------------------------------------------------------------------------- job states

_BASES: Final = {
    "PENDING": "PD", "RUNNING": "R", "SUSPENDED": "S", "COMPLETED": "CD", "CANCELLED": "CA", "FAILED": "F",
    "TIMEOUT": "TO", "NODE_FAIL": "NF", "PREEMPTED": "PR", "BOOT_FAIL": "BF", "DEADLINE": "DL", "OUT_OF_MEMORY": "OOM",
}
_FLAGS: Final = {
    "COMPLETING": "CG", "CONFIGURING": "CF", "RESIZING": "RS", "REQUEUED": "RQ", "REQUEUE_FED": "RF",
    "REQUEUE_HOLD": "RH", "RESV_DEL_HOLD": "RD", "REVOKED": "RV", "SIGNALING": "SI", "SPECIAL_EXIT": "SE",
    "STAGE_OUT": "SO", "STOPPED": "ST", "EXPEDITING": "", "LAUNCH_FAILED": "", "RECONFIG_FAIL": "",
    "POWER_UP_NODE": "", "UPDATE_DB": "",
}

PENDING_STATES: Final = frozenset({"PENDING", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT", "EXPEDITING"})
"""Waiting, also if held. EXPEDITING (25.11): looked at for an expedited requeue."""

RUNNING_STATES: Final = frozenset({"RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "RESIZING", "SIGNALING",
                                   "STAGE_OUT", "STOPPED", "POWER_UP_NODE"})
"""Holds an allocation. A COMPLETING job has ended its work but not yet given its nodes back."""

FAILED_STATES: Final = frozenset({"FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "BOOT_FAIL", "LAUNCH_FAILED",
                                  "RECONFIG_FAIL"})
"""Ran and did not do what it should. Not DEADLINE (could not start in time), CANCELLED or PREEMPTED."""

INFRASTRUCTURE_STATES: Final = frozenset({"NODE_FAIL", "BOOT_FAIL", "LAUNCH_FAILED", "RECONFIG_FAIL"})
"""Those of FAILED_STATES that are not the user's doing."""

ENDED_STATES: Final = FAILED_STATES | {"COMPLETED", "CANCELLED", "PREEMPTED", "DEADLINE", "REVOKED", "REQUEUED"}
"""This attempt is over. REQUEUED rows of sacct are attempts that ended so; REVOKED ones duplicate a federated job."""

MEMORY_STATES: Final = frozenset({"OUT_OF_MEMORY"})
"""Ran out of memory whatever the exit code says (it can be 0)."""

_BY = re.compile(r"CANCELLED by (\S{1,64})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class JobState:
    """``base``: the state, or the flag that was printed in its place. ``by``: uid that cancelled, None if not told.

    ``flags`` holds every flag seen, also one that stands in for the base. ``truncated``: cut by a table.
    """

    base: str
    by: int | None = None
    flags: frozenset[str] = frozenset()
    truncated: bool = False


def _state(name: str) -> JobState:
    return JobState(name, flags=frozenset({name}) if name in _FLAGS else frozenset())


_STATES: Final[dict[str, JobState]] = {}
for _name, _code in (_BASES | _FLAGS).items():
    _STATES[_name] = _state(_name)
    if _code:
        _STATES[_code] = _STATES[_name]


def parse_state(text: str) -> JobState:
    """A state of sacct or squeue: long or short, ``CANCELLED by 1000``, cut (``CANCELLED+``, ``OUT_OF_ME+``).

    Case does not matter. Raises ParseError for an unknown state, or if a cut one could be several.
    """
    state = _STATES.get(text)
    if state is not None:
        return state
    text = text.strip()
    m = _BY.fullmatch(text)
    if m is not None:
        by = m[1]
        return JobState("CANCELLED", int(by) if by.isascii() and by.isdigit() and len(by) <= 10 else None)
    upper = text.upper()
    state = _STATES.get(upper)
    if state is not None:
        return state
    if upper.endswith("+") and len(upper) > 2:
        stem = upper[:-1]
        if stem.startswith("CANCELLED"):
            return JobState("CANCELLED", truncated=True)
        names = [name for name in (*_BASES, *_FLAGS) if name.startswith(stem)]
        if len(names) == 1:
            found = _STATES[names[0]]
            return JobState(found.base, None, found.flags, True)
        raise ParseError("state cut too short", text)
    raise ParseError("unknown job state", text)


def parse_states(names: Sequence[str]) -> JobState:
    """The list form of JSON (data_parser 0.0.40 and later): a base state and any flags, in any order.

    Unknown flags are kept. Raises ParseError if the list is empty or holds nothing known.
    """
    uppers = [name.strip().upper() for name in names]
    bases = [name for name in uppers if name in _BASES]
    flags = [name for name in uppers if name and name not in _BASES]
    if bases:
        return JobState(bases[0], flags=frozenset(flags))
    if len(uppers) == 1:
        return parse_state(uppers[0])
    known = [name for name in flags if name in _FLAGS]
    if not known:
        raise ParseError("unknown job state", ",".join(names))
    return JobState(known[0], flags=frozenset(flags))


# ---------------------------------------------------------------------------------------------------- exit codes

_EXIT = re.compile(r"([0-9]{1,10})(?::([0-9]{1,10}))?")
_NO_EXIT = frozenset({"", "-2", "-1", "N/A", "n/a", "(null)", "None", "Unknown", "4294967294", "4294967295"})


def parse_exit(text: str) -> tuple[int | None, int | None]:
    """(status, signal) of ``status:signal``; a value that is missing or not set is None.

    Before 25.11 statuses above 128 were printed less 128, so compare within one version only.
    Raises ParseError for other text.
    """
    text = text.strip()
    m = _EXIT.fullmatch(text)
    if text in _NO_EXIT:
        return None, None
    if m is None:
        raise ParseError("not an exit code", text)
    return int(m[1]), None if m[2] is None else int(m[2])


# --------------------------------------------------------------------------------------------------- node states

_SUFFIXES: Final = {
    "*": "NOT_RESPONDING", "~": "POWERED_DOWN", "#": "POWERING_UP", "!": "POWER_DOWN", "%": "POWERING_DOWN",
    "$": "MAINT", "@": "REBOOT_REQUESTED", "^": "REBOOT_ISSUED", "-": "PLANNED", "+": "COMPLETING",
}
_SUFFIX_CHARACTERS: Final = "".join(_SUFFIXES)
_NODE_BASES: Final = frozenset({"IDLE", "MIXED", "ALLOCATED", "DOWN", "FUTURE", "UNKNOWN", "ERROR"})

# What sinfo prints where it shows a flag instead of the base state: (base, flag). A busy node that drains, fails
# or completes may be ALLOCATED or MIXED, which is not told: MIXED then means "in use".
_NODE_NAMES: Final[dict[str, tuple[str, str | None]]] = {
    "IDLE": ("IDLE", None),
    "MIXED": ("MIXED", None), "MIX": ("MIXED", None),
    "ALLOCATED": ("ALLOCATED", None), "ALLOC": ("ALLOCATED", None),
    "DOWN": ("DOWN", None),
    "FUTURE": ("FUTURE", None), "FUTR": ("FUTURE", None),
    "UNKNOWN": ("UNKNOWN", None), "UNK": ("UNKNOWN", None), "?": ("UNKNOWN", None),
    "ERROR": ("ERROR", None),
    "COMPLETING": ("MIXED", "COMPLETING"), "COMP": ("MIXED", "COMPLETING"),
    "DRAINED": ("IDLE", "DRAIN"), "DRAIN": ("IDLE", "DRAIN"),
    "DRAINING": ("MIXED", "DRAIN"), "DRNG": ("MIXED", "DRAIN"),
    "FAIL": ("IDLE", "FAIL"), "FAILING": ("MIXED", "FAIL"), "FAILG": ("MIXED", "FAIL"),
    "MAINT": ("IDLE", "MAINT"),
    "RESERVED": ("IDLE", "RESERVED"), "RESV": ("IDLE", "RESERVED"),
    "PLANNED": ("IDLE", "PLANNED"), "PLND": ("IDLE", "PLANNED"),
    "BLOCKED": ("IDLE", "BLOCKED"), "BLOCK": ("IDLE", "BLOCKED"),
    "INVAL": ("UNKNOWN", "INVALID_REG"), "INVALID": ("UNKNOWN", "INVALID_REG"),
    "NO_RESPOND": ("UNKNOWN", "NOT_RESPONDING"), "NO_RESP": ("UNKNOWN", "NOT_RESPONDING"),
    "PERFCTRS": ("IDLE", "PERFCTRS"), "NPC": ("IDLE", "PERFCTRS"),
    "CLOUD": ("IDLE", "CLOUD"),
    "POWERED_DOWN": ("IDLE", "POWERED_DOWN"), "POWERDOWN": ("IDLE", "POWERED_DOWN"), "POW_DN": ("IDLE", "POWERED_DOWN"),
    "POWERING_DOWN": ("IDLE", "POWERING_DOWN"), "POWER_DOWN": ("IDLE", "POWER_DOWN"),
    "POWERING_UP": ("IDLE", "POWERING_UP"), "POWER_UP": ("IDLE", "POWERING_UP"), "POW_UP": ("IDLE", "POWERING_UP"),
    "REBOOT": ("IDLE", "REBOOT_REQUESTED"), "REBOOT_REQUESTED": ("IDLE", "REBOOT_REQUESTED"),
    "REBOOT_ISSUED": ("IDLE", "REBOOT_ISSUED"), "BOOT": ("IDLE", "REBOOT_ISSUED"),
}
_FLAG_ALIASES: Final = {"MAINTENANCE": "MAINT", "RES": "RESERVED", "DRAINED": "DRAIN", "DRAINING": "DRAIN",
                        "POWER_UP": "POWERING_UP", "REBOOT": "REBOOT_REQUESTED", "INVAL": "INVALID_REG"}
_FLAG = re.compile(r"[A-Z][A-Z_0-9]{1,40}")

UNUSABLE_FLAGS: Final = frozenset({"DRAIN", "FAIL", "MAINT", "NOT_RESPONDING", "POWERING_DOWN", "POWER_DOWN",
                                   "REBOOT_REQUESTED", "REBOOT_ISSUED", "INVALID_REG", "BLOCKED"})
"""A node with one of these takes no new jobs now (a MAINT node only those of the reservation)."""


@dataclass(frozen=True, slots=True)
class NodeState:
    """``base``: IDLE, MIXED, ALLOCATED, DOWN, FUTURE, UNKNOWN or ERROR. ``flags``: DRAIN, MAINT, PLANNED, ...

    sinfo prints some flags in place of the base; then ``base`` is what follows from it (draining: in use, so MIXED;
    drained: IDLE, though it may be DOWN as well). Ask scontrol or JSON where the difference matters.
    """

    base: str
    flags: frozenset[str] = frozenset()


_NODE_CACHE: Final[dict[str, NodeState]] = {}


def parse_node_state(text: str) -> NodeState:
    """A node state: sinfo's long and short words with suffixes (``mixed$``, ``idle*``, ``drng``, ``mixed-``) or
    scontrol's ``BASE+FLAG+FLAG``. Case does not matter. Raises ParseError if the base is unknown.
    """
    state = _NODE_CACHE.get(text)
    if state is None:
        state = _node_state(text)
        if len(_NODE_CACHE) < 1000:
            _NODE_CACHE[text] = state
    return state


def _node_state(text: str) -> NodeState:
    words = text.strip().upper()
    flags: set[str] = set()
    if words.endswith("+"):
        flags.add("COMPLETING")
        words = words.rstrip("+")
    names: list[str] = []
    for word in words.split("+"):
        name = word.rstrip(_SUFFIX_CHARACTERS)
        flags.update(_SUFFIXES[char] for char in word[len(name):])
        names.append(name)
    found = _NODE_NAMES.get(names[0])
    if found is None:
        raise ParseError("unknown node state", text)
    base, flag = found
    if flag is not None:
        flags.add(flag)
    for name in names[1:]:
        if not _FLAG.fullmatch(name):
            raise ParseError("unknown node state", text)
        if name in _NODE_BASES and flag is not None:
            base = name  # JSON and some versions print the flag first
            continue
        flags.add(_FLAG_ALIASES.get(name, name))
    return NodeState(base, frozenset(flags))


def parse_node_states(names: Sequence[str]) -> NodeState:
    """The list form of JSON: ``["IDLE", "DRAIN"]``. Raises ParseError if it is empty or its base is unknown."""
    return parse_node_state("+".join(names))
