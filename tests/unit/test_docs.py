"""Docs that are made from the code agree with it."""

from __future__ import annotations

from pathlib import Path

from queuecast.schema import TABLES, markdown

ROOT = Path(__file__).parents[2]


def test_data_model_is_the_schema() -> None:
    assert (ROOT / "docs/data-model.md").read_text(encoding="utf-8") == markdown() + "\n", "run: make docs"


def test_every_column_says_what_it_is() -> None:
    for table in TABLES.values():
        assert set(table.key) <= set(table.column_names)
        assert table.partition_time in table.column_names
        assert len(set(table.column_names)) == len(table.columns)
        for column in table.columns:
            assert column.doc, (table.name, column.name)


def test_each_command_is_in_the_readme() -> None:
    from queuecast.cli.main import app

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for command in app.registered_commands:
        assert command.callback is not None
        assert f"queuecast {command.callback.__name__}" in text, command.callback.__name__


def test_the_template_holds_every_text() -> None:
    from babel.messages.extract import extract_from_dir
    from babel.messages.pofile import read_po

    keywords = {"_": None, "N_": None, "ngettext": (1, 2)}
    found = set()
    for folder in ("src/queuecast", "app"):
        for _, _, message, _, _ in extract_from_dir(ROOT / folder, method_map=[("**.py", "python")], keywords=keywords):
            found.add(message if isinstance(message, str) else tuple(message))
    with (ROOT / "src/queuecast/locale/queuecast.pot").open("rb") as template:
        held = {m.id if isinstance(m.id, str) else tuple(m.id) for m in read_po(template) if m.id}
    assert found == held, "run: make docs"
