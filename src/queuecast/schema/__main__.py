"""``python -m queuecast.schema``: the data model as Markdown."""

from queuecast.schema import markdown

print(markdown())
