"""Text of users on the pages: what is not seen is written out."""

from __future__ import annotations

from app.ui.overcharts import part_words
from app.ui.words import as_markdown, cell
from hypothesis import given
from hypothesis import strategies as st


def test_direction_and_control_marks_are_written_out() -> None:
    assert cell("\u202eabc\u2066") == "\\u202eabc\\u2066"
    assert cell("a\x1b[31m\n b") == "a\\x1b[31m b"
    assert "\u202e" not in as_markdown("\u202eabc")


@given(st.text())
def test_a_cell_is_one_line_of_what_is_seen(text: str) -> None:
    shown = cell(text)
    assert shown.isprintable()
    if " ".join(text.split()).isprintable():
        assert shown == " ".join(text.split())


def test_all_of_it_is_all_of_it() -> None:
    assert (part_words(1.0), part_words(0.995), part_words(0.5)) == ("100 %", "> 99 %", "50 %")
