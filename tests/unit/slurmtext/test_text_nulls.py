"""Spellings of nothing, and small conventions of names."""

from __future__ import annotations

import pytest

from queuecast.errors import ParseError
from queuecast.slurmtext.names import is_cut, join_key, parse_sinfo_partition, split_outside_parentheses
from queuecast.slurmtext.nulls import NAMES, NODES, NUMBERS, TEXT, WORDS, clean, parse_count


@pytest.mark.parametrize(("text", "spellings", "expected"), [
    pytest.param("(null)", TEXT, None, id="G10-account"), pytest.param("N/A", TEXT, None, id="G10-not-available"),
    pytest.param("", TEXT, None, id="G10-blank"), pytest.param("Unknown", WORDS, None, id="G10-unknown"),
    pytest.param("none", WORDS, None, id="G10-none"), pytest.param("None", NAMES, "None", id="G10-job-called-None"),
    pytest.param("null", NAMES, "null", id="G10-job-called-null"),
    pytest.param("(null)", NAMES, "(null)", id="G10-job-called-(null)"),
    pytest.param("None", TEXT, "None", id="G10-account-called-None"),
    pytest.param("None assigned", NODES, None, id="D02-H14-nodes"),
    pytest.param("INVALID", NUMBERS, None, id="reserved"), pytest.param("vision", TEXT, "vision", id="plain"),
    pytest.param(" leading", NAMES, " leading", id="blanks-stay"), pytest.param("   ", NAMES, None, id="only-blanks"),
    pytest.param("a\x00b", NAMES, "a", id="G16-ends-at-NUL"), pytest.param("\x00b", NAMES, None, id="G16-nothing-before-NUL"),
    pytest.param("tab\there\x1b[31m", NAMES, "tab\there\x1b[31m", id="G16-control-characters-stay"),
    pytest.param("训练_第1次", NAMES, "训练_第1次", id="G05-multibyte"), pytest.param("a|b", NAMES, "a|b", id="G01-delimiter"),
])
def test_clean(text: str, spellings: frozenset[str], expected: str | None) -> None:
    assert clean(text, spellings=spellings) == expected


def test_clean_reads_text_columns_unless_told() -> None:
    assert clean("(null)") is None
    assert clean("None") == "None"


@pytest.mark.parametrize(("text", "expected"), [
    pytest.param("4294967294", None, id="C08-tasks-not-set"), ("4", 4), ("0", 0), ("", None), ("Unknown", None),
    pytest.param("10968104258476505088", 10968104258476505088, id="real-index-beyond-signed-64-bits"),
    ("18446744073709551614", None), ("-2", None), ("N/A", None), ("UNLIMITED", None),
])
def test_count(text: str, expected: int | None) -> None:
    assert parse_count(text) == expected


@pytest.mark.parametrize("text", ["1.5", "4K", "-7", "x", "²", "9" * 25])
def test_count_rejects(text: str) -> None:
    with pytest.raises(ParseError):
        parse_count(text)


@pytest.mark.parametrize(("text", "expected"), [
    pytest.param("cpu*", ("cpu", True), id="G11-default"), pytest.param("cpu", ("cpu", False), id="G11-other"),
    pytest.param("c*pu", ("c*pu", False), id="G11-only-at-the-end"), pytest.param("cpu**", ("cpu*", True), id="G11-only-one"),
])
def test_default_partition(text: str, expected: tuple[str, bool]) -> None:
    assert parse_sinfo_partition(text) == expected


def test_g08_cut_values_are_told() -> None:
    assert is_cut("lab-computational-g+")
    assert not is_cut("lab-computational-genomics-unit")


def test_h17_names_join_whatever_their_case() -> None:
    assert join_key("Bio_Lab") == join_key(" bio_lab ")
    assert join_key("bio_lab") != join_key("biolab")


def test_split_outside_parentheses() -> None:
    assert split_outside_parentheses("a(1,2),b,c(3") == ["a(1,2)", "b", "c(3"]
    assert split_outside_parentheses("a),b") == ["a)", "b"]
    assert split_outside_parentheses("a") == ["a"]
