"""The reason a job waits or ended, as squeue, sacct and scontrol print it.

One code is stored per job, but squeue and scontrol print a sentence instead of the code where slurmctld wrote one;
scontrol puts ``_`` for the blanks in it. Sentences are mapped back to the code they stand for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from queuecast.errors import ParseError
from queuecast.slurmtext.hostlist import expand_hostlist
from queuecast.slurmtext.reasoncodes import known_code


@dataclass(frozen=True)
class Reason:
    """One reason.

    ``code``: Slurm's code, or ``Unknown`` for a text no rule understands. ``detail``: what the text says beyond the
    code (the sentence itself, the other reasons of an array); None if nothing. ``kind``: a constant word for the
    variant of the code, ``unknown`` for a code or text not known, None for a plain known code.
    ``nodes``: the nodes named as unavailable, expanded; empty if none are named or the list is cut off.
    """

    code: str
    detail: str | None = None
    kind: str | None = None
    nodes: tuple[str, ...] = ()


_NULLS = frozenset({"", "(null)", "null", "none", "n/a"})

# Beginning of the sentence (blanks for underscores, lower case), code, kind.
_SENTENCES: tuple[tuple[str, str, str], ...] = (
    ("nodes required for job are down", "Resources", "nodes_down"),
    ("launch failed requeued held", "JobHeldUser", "launch_failed"),
    ("job requeued in held state", "JobHeldUser", "requeued_held"),
    ("job requeued in special exit state", "JobHeldUser", "special_exit"),
    ("user env retrieval failed requeued held", "JobHeldUser", "env_failed"),
    ("job's account not ", "AccountNotAllowed", "partition_access"),
    ("job's qos not ", "QOSNotAllowed", "partition_access"),
    ("user's group not permitted", "PartitionConfig", "partition_access"),
    ("burst buffer stage-in timeout", "JobHeldAdmin", "burst_buffer"),
    ("burst buffer", "BurstBufferOperation", "burst_buffer"),
    ("burst_buffer", "BurstBufferOperation", "burst_buffer"),
    ("job is at or exceeds ", "TimeLimit", "budget"),
)
_RESERVATION_DELETED = re.compile(r"reservation (?P<name>.+) was deleted", re.IGNORECASE)
_NODE_VARIANTS: tuple[tuple[str, str], ...] = (
    ("unavailablenodes", "unavailable"),
    ("unavailable", "unavailable"),
    ("may be reserved", "reserved"),
    ("reserved for maintenance", "maintenance"),
)
_SHORTEST_CUT = 8  # characters of a sentence that a narrow column must leave to recognise it
_CODE = re.compile(r"[A-Z][A-Za-z0-9]+")
_CODE_AND_REST = re.compile(r"(?P<code>[A-Za-z][A-Za-z0-9]*)(?P<mark>\s*[,:(]\s*)(?P<rest>.*)", re.DOTALL)


def parse_reason(text: str) -> Reason | None:
    """Read a reason. Never raises: what is not understood is ``Reason("Unknown", text, "unknown")``.

    None for ``''``, ``(null)`` and ``None``. For a pending job that means "not looked at since the last change",
    for others "no reason"; it does not mean that nothing blocks the job.

    Joined reasons of one array (``Priority,Resources``): the first is the code, kind ``joined``, the others detail.
    """
    bare = _strip_parentheses(text.strip())
    while bare.lower().startswith("none,"):  # array tasks not looked at yet, beside others that were
        bare = bare[5:].lstrip()
    if bare.lower() in _NULLS:
        return None
    code = known_code(bare)
    if code is not None:
        return Reason(code)
    # One character for one character, so that positions in both stay the same.
    plain = bare if " " in bare else bare.replace("_", " ")
    return _sentence(plain) or _code_and_rest(bare, plain) or _other(bare)


def _other(bare: str) -> Reason:
    if _CODE.fullmatch(bare):
        return Reason(bare, None, "unknown")
    return Reason("Unknown", bare, "unknown")


def _strip_parentheses(text: str) -> str:
    """Take off the pair around the whole text; also a lone opening one, where a column cut the text off."""
    if not text.startswith("(") or text.lower() in _NULLS:
        return text
    depth = 0
    for position, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            return text[1:-1].strip() if position == len(text) - 1 else text
    return text[1:].strip()


def _starts(text: str, beginning: str) -> bool:
    """Whether text starts so, or is itself a cut-off beginning of it."""
    low = text.lower()
    return low.startswith(beginning) or (len(low) >= _SHORTEST_CUT and beginning.startswith(low))


def _sentence(plain: str) -> Reason | None:
    for beginning, code, kind in _SENTENCES:
        if _starts(plain, beginning):
            return Reason(code, plain, kind)
    if _RESERVATION_DELETED.fullmatch(plain):
        return Reason("ReservationDeleted", plain, "deleted")
    return None


def _code_and_rest(bare: str, plain: str) -> Reason | None:
    found = _CODE_AND_REST.fullmatch(plain)
    if found is None:
        return None
    code = known_code(found["code"])
    rest = found["rest"]
    mark = found["mark"].strip()
    if mark == "(" and rest.endswith(")"):
        rest = rest[:-1]
    if code is None:
        # Reasons joined by a later Slurm; a comma inside other prose has blanks around its words.
        if mark == "," and _CODE.fullmatch(found["code"]) and known_code(rest.split(",")[0].strip()):
            return Reason(found["code"], rest, "unknown")
        return None
    if not rest.strip():
        return Reason(code)
    if code == "ReqNodeNotAvail":
        variant = _node_variant(code, bare[found.start("rest") : found.start("rest") + len(rest)], rest)
        if variant is not None:
            return variant
    if code == "RaisedSignal":
        return Reason(code, rest, "signal")
    following = rest.split(",")[0].strip()
    joined = mark == "," and (_CODE.fullmatch(following) or _sentence(following))
    return Reason(code, rest, "joined" if joined else "detail")


def _node_variant(code: str, original: str, rest: str) -> Reason | None:
    low = rest.lower()
    for beginning, kind in _NODE_VARIANTS:
        # "Un" is what a 20-character column leaves of it.
        if not (low.startswith(beginning) or (len(low) >= 2 and beginning.startswith(low))):
            continue
        if kind != "unavailable" or ":" not in rest:
            return Reason(code, rest, kind)
        names = _without_joined_codes(original.split(":", 1)[1].strip())
        return Reason(code, original, kind, _expand(names))
    return None


def _without_joined_codes(names: str) -> str:
    """Cut reasons of other array tasks off the end of a node list."""
    while "," in names:
        head, tail = names.rsplit(",", 1)
        if known_code(tail.strip()) is None:
            break
        names = head
    return names


def _expand(names: str) -> tuple[str, ...]:
    try:
        return expand_hostlist(names) or ()
    except ParseError:
        return ()
