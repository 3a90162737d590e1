"""Lines of job logs that tell why a job failed: what to look for, and what each line speaks for.

A pattern has words of which one must occur (cheap), and a regular expression where words are not enough. The first
pattern that fits names the line, so the special ones stand before the general ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from queuecast.i18n import _
from queuecast.reasons.failureclasses import FailureClass, Turn

LONGEST_LINE = 1000
"""Characters of a line that are looked at; nothing that matters stands later, and it bounds the time."""


@dataclass(frozen=True)
class Pattern:
    """``words``: lower case, one must occur. ``scores``: log odds it adds to each class. ``follows``: the line is mostly
    a consequence of something else (a rank reports that another one died), so it counts little beside a cause."""

    key: str
    title_id: str
    words: tuple[str, ...]
    scores: Mapping[FailureClass, float]
    regex: re.Pattern[str] | None = None
    follows: bool = False
    turn: Turn | None = None
    advice: str | None = field(default=None)

    @property
    def title(self) -> str:
        """What the line says, in a few words."""
        return _(self.title_id)


def pattern(
    key: str,
    title_id: str,
    words: str | tuple[str, ...],
    regex: str | None = None,
    *,
    follows: bool = False,
    turn: Turn | None = None,
    advice: str | None = None,
    **scores: float,
) -> Pattern:
    """A pattern of a table: ``regex`` ignores case; ``advice`` is the key of the steps to take (else ``key``)."""
    given = (words,) if isinstance(words, str) else words
    compiled = re.compile(regex, re.IGNORECASE) if regex else None
    return Pattern(key, title_id, given, scores, compiled, follows, turn, advice)  # type: ignore[arg-type]  # keys: the classes


def find_pattern(line: str) -> Pattern | None:
    """The pattern of a line, None if it says nothing known. Never raises."""
    text = line[:LONGEST_LINE]
    low = text.lower()
    for one in all_patterns():
        for word in one.words:
            if word in low:
                if one.regex is None or one.regex.search(text):
                    return one
                break
    return None


_ALL: list[Pattern] = []


def all_patterns() -> list[Pattern]:
    """Every pattern, in the order in which they are tried."""
    if not _ALL:
        from queuecast.reasons.logpatterns_around import AROUND
        from queuecast.reasons.logpatterns_site import SITE
        from queuecast.reasons.logpatterns_user import CAUSES, GENERAL

        _ALL.extend((*SITE, *AROUND, *CAUSES, *GENERAL))
    return _ALL


def pattern_of(key: str) -> Pattern:
    """By its key. Raises ``KeyError``."""
    for one in all_patterns():
        if one.key == key:
            return one
    raise KeyError(key)
