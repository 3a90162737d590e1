from __future__ import annotations

import contextvars
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo

from queuecast import i18n
from queuecast.i18n import N_, Message, _, get_language, join_sentences, message, ngettext, set_language, use_language


@pytest.fixture(autouse=True)
def _no_choice(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("QUEUECAST_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    with use_language(None):
        yield


@pytest.fixture
def catalogues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A made-up Chinese and a German catalogue."""
    languages: dict[str, dict[Any, Any]] = {
        "zh_CN": {"wait": "等待", "%(n)s jobs on %(where)s": "%(where)s 上有 %(n)s 个作业", "node": "节点"},
        "de": {"wait": "warten", ("%(n)s job", "%(n)s jobs"): ("%(n)s Auftrag", "%(n)s Aufträge")},
    }
    for lang, texts in languages.items():
        catalog = Catalog(locale=lang)
        for msgid, msgstr in texts.items():
            catalog.add(msgid, msgstr)
        folder = tmp_path / lang / "LC_MESSAGES"
        folder.mkdir(parents=True)
        with (folder / "queuecast.mo").open("wb") as file:
            write_mo(file, catalog)
    monkeypatch.setattr(i18n, "LOCALE_DIR", tmp_path)


def test_english_without_any_choice() -> None:
    assert get_language() == "en"
    assert _("wait") == "wait"
    assert ngettext("%(n)s job", "%(n)s jobs", 1) == "%(n)s job"
    assert ngettext("%(n)s job", "%(n)s jobs", 2) == "%(n)s jobs"
    assert N_("wait") == "wait"


@pytest.mark.usefixtures("catalogues")
def test_the_language_is_asked_for_at_call_time() -> None:
    set_language("zh_CN")
    assert _("wait") == "等待"
    set_language("de")
    assert _("wait") == "warten"
    assert ngettext("%(n)s job", "%(n)s jobs", 3) == "%(n)s Aufträge"
    set_language(None)
    assert _("wait") == "wait"


@pytest.mark.usefixtures("catalogues")
def test_missing_text_and_missing_language_fall_back_to_english() -> None:
    with use_language("de"):
        assert _("never translated") == "never translated"
    with use_language("fr_CA"):
        assert _("wait") == "wait"
        assert get_language() == "fr_CA"
    with use_language("de_AT"):
        assert _("wait") == "warten", "a country without a catalogue uses the language's"


@pytest.mark.usefixtures("catalogues")
def test_empty_text_is_not_the_catalogue_header() -> None:
    with use_language("de"):
        assert _("") == ""


@pytest.mark.usefixtures("catalogues")
def test_available_languages() -> None:
    assert i18n.available_languages() == ("en", "de", "zh_CN")


def test_a_damaged_catalogue_means_english(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "de" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    (folder / "queuecast.mo").write_bytes(b"not a catalogue")
    monkeypatch.setattr(i18n, "LOCALE_DIR", tmp_path)
    with use_language("de"):
        assert _("wait") == "wait"


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("", "en"),
        ("C", "en"),
        ("C.UTF-8", "en"),
        ("POSIX", "en"),
        ("en_US.UTF-8", "en_US"),
        ("zh-cn", "zh_CN"),
        ("zh", "zh_CN"),
        ("zh-Hans", "zh_CN"),
        ("zh_hans_cn", "zh_CN"),
        ("zh_TW", "zh_TW"),
        ("de_DE@euro", "de_DE"),
        ("../../etc", "en"),
        ("_", "en"),
    ],
)
def test_names_of_languages(typed: str, name: str) -> None:
    assert i18n.normalize_language(typed) == name


def test_order_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    assert get_language() == "de_DE"
    monkeypatch.setenv("LC_ALL", "fr_FR.UTF-8")
    assert get_language() == "fr_FR"
    monkeypatch.setenv("QUEUECAST_LANG", "zh_CN")
    assert get_language() == "zh_CN"
    set_language("en")
    assert get_language() == "en"


@pytest.mark.usefixtures("catalogues")
def test_two_contexts_do_not_disturb_each_other() -> None:
    def switch(lang: str) -> str:
        set_language(lang)
        return _("wait")

    chinese, german = contextvars.copy_context(), contextvars.copy_context()
    assert chinese.run(switch, "zh_CN") == "等待"
    assert german.run(switch, "de") == "warten"
    assert chinese.run(_, "wait") == "等待"
    assert _("wait") == "wait"


@pytest.mark.usefixtures("catalogues")
def test_two_threads_at_once() -> None:
    both = threading.Barrier(2, timeout=10)
    seen: dict[str, str] = {}

    def person(lang: str) -> None:
        set_language(lang)
        both.wait()  # the other one has chosen too
        seen[lang] = _("wait")

    threads = [threading.Thread(target=person, args=(lang,)) for lang in ("zh_CN", "de")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert seen == {"zh_CN": "等待", "de": "warten"}
    assert _("wait") == "wait"


@pytest.mark.usefixtures("catalogues")
def test_a_message_is_translated_when_shown() -> None:
    shown = message("%(n)s jobs on %(where)s", n="3", where=message("node"))
    assert str(shown) == "3 jobs on node"
    with use_language("zh_CN"):
        assert str(shown) == "节点 上有 3 个作业"
    assert shown == message("%(n)s jobs on %(where)s", where=Message("node"), n="3")
    assert str(Message("the number after % in --array")) == "the number after % in --array"
    assert str(Message("100 % sure")) == "100 % sure"


def test_sentences_are_joined_as_the_script_does() -> None:
    assert join_sentences(["One.", "Two."]) == "One. Two."
    assert join_sentences(["一。", "二。"]) == "一。二。"
    assert join_sentences([]) == ""


@pytest.mark.parametrize("slip", ["%(nn)s jobs", "%(n)d jobs", "%(n) jobs %", "%s %s"])
def test_a_slip_in_a_translation_shows_english(slip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(i18n, "_", lambda text: slip)
    assert str(message("%(n)s waiting", n="three")) == "three waiting"
