"""Why a job waits, in plain words, and what to do about it.

``explain_reason`` answers for every reason of Slurm 17.11 to 25.11, and for limits of later releases by the parts
of their names. One reason is all Slurm keeps for a job: when it is gone, another may appear.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from queuecast.i18n import N_, Message, join_sentences, message
from queuecast.reasons.faults import FAULTS, LEGACY, REMOVED, UNKNOWN
from queuecast.reasons.limits import general_limit, limit_text
from queuecast.reasons.texts import VARIANTS, WAITING, Permanence, Text, WaitClass, Who
from queuecast.slurmtext.reasoncodes import CODES, REMOVED_IN, parse_limit_code, since
from queuecast.slurmtext.reasons import Reason, parse_reason

ALL_REASONS: tuple[str, ...] = CODES
"""Every code of 17.11 to 25.11, the removed ones last: the 218 of 25.11 have 216 different names."""

_TEXTS: dict[str, Text] = WAITING | FAULTS | LEGACY | REMOVED

_LONGEST_QUOTE = 300  # characters of Slurm's own sentence


class ReasonDict(TypedDict):
    """``ReasonInfo`` for JSON, in the language current when it was made."""

    code: str
    title: str
    meaning: str
    who: list[Who]
    todo: str
    steps: list[str]
    ends_by: str
    permanence: Permanence
    predictable: bool
    wait_class: WaitClass
    since: str | None
    removed: str | None


@dataclass(frozen=True)
class ReasonInfo:
    """A reason explained.

    It holds no language: ``title``, ``meaning``, ``steps``, ``todo`` and ``ends_by`` are translated each time
    they are read, so one object can be shared between people with different languages.

    ``who`` can act: the user by changing the request, an admin, or nobody (wait); empty if the wait is over.
    ``permanence``: ``yes`` = never starts unless something is changed, ``maybe`` = never in the case that ``ends_by``
    or ``steps`` names. ``predictable``: a start time can be estimated. ``since``: first release series with this code,
    ``17.11`` meaning that or earlier; None if not known. ``removed``: first series without it; None if still there.
    """

    code: str
    who: tuple[Who, ...]
    permanence: Permanence
    predictable: bool
    wait_class: WaitClass
    since: str | None
    removed: str | None
    title_message: Message
    meaning_messages: tuple[Message, ...]
    step_messages: tuple[Message, ...]
    ends_by_message: Message

    @property
    def title(self) -> str:
        """A few words, without a full stop."""
        return str(self.title_message)

    @property
    def meaning(self) -> str:
        """What keeps the job, in one to a few sentences."""
        return join_sentences(self.meaning_messages)

    @property
    def steps(self) -> tuple[str, ...]:
        """What to do, one step each; ``<jobid>`` and the like are for the reader to fill in."""
        return tuple(map(str, self.step_messages))

    @property
    def todo(self) -> str:
        """The steps on one line; a ``;`` (harmless when pasted) divides those that end with a command."""
        *first, last = self.steps
        return join_sentences([*(step if step[-1] in ".。" else step + ";" for step in first), last])

    @property
    def ends_by(self) -> str:
        """What makes the wait end."""
        return str(self.ends_by_message)

    def as_dict(self) -> ReasonDict:
        """Plain values for JSON."""
        return {
            "code": self.code,
            "title": self.title,
            "meaning": self.meaning,
            "who": list(self.who),
            "todo": self.todo,
            "steps": list(self.steps),
            "ends_by": self.ends_by,
            "permanence": self.permanence,
            "predictable": self.predictable,
            "wait_class": self.wait_class,
            "since": self.since,
            "removed": self.removed,
        }


def explain_reason(reason: Reason | str | None, *, pending: bool = True) -> ReasonInfo:
    """Explain a reason, given as text or parsed. Never raises.

    None (and ``''``, ``None``, ``(null)``): of a pending job "not looked at yet", else "no reason".
    ``pending=False``: the job runs or has ended, so the reason is history. sacct keeps the last one other than Priority
    and Resources for ever; it need not be what the job waited for longest. Reasons of an end are explained as such.
    """
    if isinstance(reason, str):
        reason = parse_reason(reason)
    if reason is None:
        reason = Reason("None")
    info = _explain(reason)
    return info if pending else _past(info, reason)


def never_starts(code: str) -> bool:
    """Whether a pending job with this reason stays until someone changes or releases something."""
    return explain_reason(code).permanence == "yes"


def _explain(reason: Reason) -> ReasonInfo:
    text = _text(reason)
    if text is not None:
        return _build(
            reason, text.wait_class, text.who, text.permanence, text.predictable, message(text.title),
            tuple(map(message, text.meaning)), tuple(map(message, text.steps)), message(text.ends_by),
        )
    limit = parse_limit_code(reason.code)
    words = limit_text(limit) if limit is not None else None
    if words is None:
        words = general_limit("qos" if reason.code.startswith("QOS") else "assoc")
    return _build(
        reason, "limit", words.who, words.permanence, words.predictable, words.title, words.meaning, words.steps, words.ends_by
    )


def _text(reason: Reason) -> Text | None:
    """The text for this very code, the unknown one, or None where it is a limit's name."""
    found = VARIANTS.get((reason.code, reason.kind or "")) or _TEXTS.get(reason.code)
    if found is not None or parse_limit_code(reason.code) is not None or _looks_like_limit(reason.code):
        return found
    return UNKNOWN


def _looks_like_limit(code: str) -> bool:
    return code.startswith(("AssocGrp", "AssocMax", "QOSGrp", "QOSMax", "QOSMin"))


def _build(
    reason: Reason, wait_class: WaitClass, who: tuple[Who, ...], permanence: Permanence, predictable: bool,
    title: Message, meaning: tuple[Message, ...], steps: tuple[Message, ...], ends_by: Message,
) -> ReasonInfo:
    return ReasonInfo(
        reason.code, who, permanence, predictable, wait_class, since(reason.code), REMOVED_IN.get(reason.code),
        title, (*meaning, *_quotes(reason)), steps, ends_by,
    )


def _quotes(reason: Reason) -> tuple[Message, ...]:
    """What this job's own text adds: names and numbers that no fixed sentence can hold."""
    detail = reason.detail
    if not detail:
        return (message(N_("The code is %(code)s."), code=reason.code),) if _is_unknown(reason) else ()
    if len(detail) > _LONGEST_QUOTE:
        detail = detail[:_LONGEST_QUOTE] + "…"
    if reason.kind == "joined":
        return (message(N_("Other tasks of this array wait for: %(others)s."), others=detail),)
    if reason.kind == "unavailable":
        nodes = detail.split(":", 1)[1].strip() if ":" in detail else ""
        return (message(N_("Slurm names these: %(nodes)s."), nodes=nodes),) if nodes else ()
    if (reason.code, reason.kind) in VARIANTS and reason.kind not in ("burst_buffer", "budget"):
        return ()  # the variant's own text says as much as Slurm's sentence
    return (message(N_("Slurm says: %(detail)s"), detail=detail),)


def _is_unknown(reason: Reason) -> bool:
    return reason.code != "Unknown" and reason.code not in CODES


def _past(info: ReasonInfo, reason: Reason) -> ReasonInfo:
    text = VARIANTS.get((reason.code, reason.kind or "")) or _TEXTS.get(reason.code)
    if text is not None and text.after_end:
        return info
    if reason.code == "None":
        title = message(N_("No reason given"))
        meaning: tuple[Message, ...] = (message(N_("Slurm gives no reason; this does not mean that the job never waited.")),)
    else:
        title = info.title_message
        meaning = (
            message(N_("The last thing Slurm noted while the job waited: %(title)s."), title=info.title_message),
            message(N_("It keeps no note of waiting for priority or free resources, which may have taken longer.")),
        )
    return ReasonInfo(
        info.code, (), "no", False, info.wait_class, info.since, info.removed,
        title, meaning, (message(N_("Nothing to do: this wait is over.")),), message(N_("The wait is over.")),
    )
