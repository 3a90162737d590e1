"""Readings of Slurm's commands as columns: which one was the last at an instant, and where in it a row is.

A reading is all rows of one table that were printed at one moment. Rows are found by a whole number (a job's raw id, or
codes of an account and a user packed together), so that finding many at once is one binary search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from queuecast.features.history import Floats, Ints
from queuecast.store.files import floats

QUEUE_AGE_S = 7200.0
"""A reading of squeue or sprio older than that tells nothing of the moment asked about."""

SLOW_AGE_S = 86400.0
"""The same for nodes and shares, which are read less often."""

NEVER = -2
"""Code of a word that no reading holds; null is -1."""

Texts = Sequence[str | None] | tuple[Ints, Sequence[str]]
"""One text per case, or codes with the words they stand for (as ``History`` keeps them). "" and None are null."""


class Words:
    """Texts as codes, compared case-folded, shared by the tables that name the same things."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self._places: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.words)

    def add(self, text: str | None) -> int:
        """Code of a text, a new one if it was not met yet; -1 for null and ""."""
        if not text:
            return -1
        folded = text.casefold()
        if folded not in self._places:
            self._places[folded] = len(self.words)
            self.words.append(folded)
        return self._places[folded]

    def find(self, text: str | None) -> int:
        """Code of a text; -1 for null and "", -2 if it was never met."""
        return self._places.get(text.casefold(), NEVER) if text else -1

    def encode(self, column: pa.ChunkedArray) -> Ints:
        """Codes of a column of texts (plain or dictionary-encoded); new words are added."""
        numbers, words = distinct_words(column)
        return np.array([self.add(w) for w in words], np.int64)[numbers]

    def codes(self, given: Texts) -> Ints:
        """Codes of the texts of cases; -1 for null, -2 where no reading holds the word."""
        if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], np.ndarray):
            numbers, words = given
            table = np.array([*(self.find(str(w)) for w in words), -1], np.int64)
            return table[np.where(numbers < 0, len(words), numbers)]
        return np.array([self.find(t) for t in given], np.int64)


def distinct_words(column: pa.ChunkedArray) -> tuple[Ints, list[str | None]]:
    """Numbers into the distinct texts of a column, and these texts; the last one is None, for null."""
    if not len(column):  # combining nothing would import pandas
        return np.array([], np.int64), [None]
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    joined = column.unify_dictionaries().combine_chunks()
    words: list[str | None] = [*joined.dictionary.to_pylist(), None]
    numbers = floats(pa.chunked_array([joined.indices]))
    return np.where(np.isnan(numbers), len(words) - 1, numbers).astype(np.int64), words


def seconds(column: pa.ChunkedArray) -> Floats:
    """A column of times as epoch seconds, null as nan."""
    return floats(column) / 1e6


def whole(column: pa.ChunkedArray, null: int = -1) -> Ints:
    """A column of whole numbers, null as ``null``."""
    values = floats(column)
    return np.where(np.isnan(values), null, values).astype(np.int64)


def distinct(*columns: Ints) -> tuple[Ints, Ints]:
    """(one row of each distinct combination, which combination each row has)."""
    order = np.lexsort(columns)
    new = np.zeros(len(order), bool)
    new[:1] = True
    for column in columns:
        new[1:] |= column[order][1:] != column[order][:-1]
    which = np.empty(len(order), np.int64)
    which[order] = np.cumsum(new) - 1
    return order[new], which


@dataclass(frozen=True)
class Readings:
    """When a table was read, and an index of its rows by (reading, number).

    ``times`` (r,) are sorted epoch seconds; ``keys`` (n,) are sorted and belong to rows in that order.
    """

    times: Floats
    ids: Ints
    keys: Ints

    @classmethod
    def of(cls, observed: Floats, number: Ints, *first: Ints | Floats) -> tuple[Readings, Ints, Ints]:
        """Index of rows: (index, order of the rows, where in that order each entry begins).

        Rows with one reading and number make one entry; among them the smallest of ``first`` comes first."""
        times, ids = np.unique(observed), np.unique(number)
        keys = np.searchsorted(times, observed) * max(1, len(ids)) + np.searchsorted(ids, number)
        order = np.lexsort((*reversed(first), keys))
        keys = keys[order]
        begin = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]]) if len(keys) else order
        return cls(times, ids, keys[begin]), order, begin

    @property
    def reading(self) -> Ints:
        """Number of the reading of each entry."""
        return self.keys // max(1, len(self.ids))

    def last(self, asked: Floats, age_s: float) -> Ints:
        """Number of the last reading at or before ``asked``; -1 if there is none, or if it is older than ``age_s``."""
        number = np.searchsorted(self.times, asked, "right") - 1
        return np.where(asked - self.time(number) <= age_s, number, -1)

    def time(self, reading: Ints) -> Floats:
        """When readings were made; nan for -1."""
        return pick(self.times, reading)

    def find(self, reading: Ints, number: Ints) -> Ints:
        """Entry of ``number`` in each reading, -1 if it has none or there is no reading."""
        if not len(self.keys):
            return np.full(len(reading), -1)
        place = np.minimum(np.searchsorted(self.ids, number), len(self.ids) - 1)
        wanted = reading * len(self.ids) + place
        entry = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        found = (reading >= 0) & (self.ids[place] == number) & (self.keys[entry] == wanted)
        return np.where(found, entry, -1)

    def find_job(self, reading: Ints, job_id: Ints, array_job_id: Ints) -> Ints:
        """Entry of a job. While they wait, the tasks of an array share one record under the array's own id: a task that
        started later, and so got an id of its own, is found there."""
        entry = self.find(reading, job_id)
        return np.where((entry < 0) & (array_job_id >= 0), self.find(reading, array_job_id), entry)


def pick(values: Floats, entry: Ints) -> Floats:
    """Values of entries, nan for -1. (Appending a nan to ``values`` would copy them all for one question.)"""
    if not len(values):
        return np.full(len(entry), np.nan)
    return np.where(entry < 0, np.nan, values[np.maximum(entry, 0)])


def pick_whole(values: Ints, entry: Ints, missing: int = -1) -> Ints:
    """The same for whole numbers."""
    if not len(values):
        return np.full(len(entry), missing)
    return np.where(entry < 0, missing, values[np.maximum(entry, 0)])
