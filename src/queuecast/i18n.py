"""Languages: gettext catalogues, chosen at the moment a text is shown.

The language belongs to the context (a task, a thread), not to the process, because one Streamlit process
serves several people at once. A new thread starts without a choice, so the app sets it at the top of each run.
Order of choice: ``set_language`` in this context, QUEUECAST_LANG, LC_ALL, LC_MESSAGES, LANG; else English,
which is the language of the texts in the source and needs no catalogue.

Only the standard library is used at run time; catalogues are made with Babel (see locale/babel.cfg).
"""

from __future__ import annotations

import gettext as _gettext
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

DOMAIN = "queuecast"
ENGLISH = "en"
LOCALE_DIR = Path(__file__).with_name("locale")

_VARIABLES = ("QUEUECAST_LANG", "LC_ALL", "LC_MESSAGES", "LANG")
# Browsers and people name the script, catalogues the country.
_ALIASES = {"zh": "zh_CN", "zh_Hans": "zh_CN", "zh_Hans_CN": "zh_CN", "zh_SG": "zh_CN"}

_FULL_WIDTH_STOPS = "\u3002\uff01\uff1f"

_chosen: ContextVar[str | None] = ContextVar("queuecast_language", default=None)


def normalize_language(text: str) -> str:
    """Bring ``zh-cn``, ``zh_CN.UTF-8`` or ``de_DE@euro`` to a catalogue's name; ``''``, ``C`` and ``POSIX`` to ``en``."""
    bare = text.strip().split(".")[0].split("@")[0].replace("-", "_")
    if bare.lower() in ("", "c", "posix") or not bare.replace("_", "").isalnum():
        return ENGLISH
    first, *rest = [part for part in bare.split("_") if part] or [ENGLISH]
    parts = [first.lower()] + [part.title() if len(part) == 4 else part.upper() for part in rest]
    name = "_".join(parts)
    return _ALIASES.get(name, name)


def set_language(lang: str | None) -> None:
    """Choose the language of this context; None goes back to the environment's."""
    _chosen.set(None if lang is None else normalize_language(lang))


@contextmanager
def use_language(lang: str | None) -> Iterator[None]:
    """The language inside a ``with`` block; the former one afterwards."""
    token = _chosen.set(None if lang is None else normalize_language(lang))
    try:
        yield
    finally:
        _chosen.reset(token)


def get_language() -> str:
    """The language texts are shown in now, e.g. ``en`` or ``zh_CN`` (even if it has no catalogue)."""
    chosen = _chosen.get()
    if chosen is not None:
        return chosen
    for name in _VARIABLES:
        value = os.environ.get(name)
        if value:
            return normalize_language(value)
    return ENGLISH


def available_languages() -> tuple[str, ...]:
    """English, then the languages with a compiled catalogue."""
    found = {path.parts[-3] for path in LOCALE_DIR.glob(f"*/LC_MESSAGES/{DOMAIN}.mo")}
    return (ENGLISH, *sorted(found - {ENGLISH}))


@lru_cache(maxsize=64)
def _load(folder: str, lang: str) -> _gettext.NullTranslations:
    """The catalogue, read once; the texts themselves where there is none (or a broken one)."""
    try:
        return _gettext.translation(DOMAIN, folder, languages=[lang], fallback=True)
    except (OSError, ValueError):
        return _gettext.NullTranslations()


def _catalogue() -> _gettext.NullTranslations:
    return _load(str(LOCALE_DIR), get_language())


def _(message: str) -> str:
    """The text in the current language. Use named placeholders: ``_("%(n)s jobs ahead") % {"n": 3}``."""
    # gettext answers an empty text with the catalogue's header.
    return _catalogue().gettext(message) if message else ""


def ngettext(singular: str, plural: str, n: int) -> str:
    """The text that fits the number ``n`` in the current language."""
    return _catalogue().ngettext(singular, plural, n)


def N_(message: str) -> str:
    """Mark a text for translation without translating it yet."""
    return message


@dataclass(frozen=True)
class Message:
    """A text that is translated when it is shown: ``str(message)``.

    Comparable, hashable and free of any language, so it can be cached and shared between people.
    ``values`` fill the named placeholders and may be messages themselves.
    """

    msgid: str
    values: tuple[tuple[str, str | Message], ...] = ()

    def __str__(self) -> str:
        text = _(self.msgid)
        if not self.values:
            return text
        values = {name: str(value) for name, value in self.values}
        try:
            return text % values
        except (KeyError, TypeError, ValueError):  # a translator's slip must not hide the answer
            return self.msgid % values


def message(msgid: str, **values: str | Message) -> Message:
    """A ``Message`` of a text marked with ``N_``."""
    return Message(msgid, tuple(sorted(values.items())))


def join_sentences(sentences: Iterable[Message | str]) -> str:
    """Whole sentences one after the other; Chinese and Japanese full stops take no space."""
    joined = ""
    for sentence in map(str, sentences):
        gap = "" if not joined or joined[-1] in _FULL_WIDTH_STOPS else " "
        joined += gap + sentence
    return joined
