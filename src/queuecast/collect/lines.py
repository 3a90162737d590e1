"""The lines of a block of bytes, as NumPy sees them: where they begin, how many delimiters each has, which are odd."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from queuecast.collect.rejects import MAX_RAW, Rejects

MAX_LINE = 64 << 20
"""A longer line is rejected: no record of Slurm's comes near it."""

Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


class Lines:
    """``n`` lines of ``block``. A last line without newline counts. A carriage return before the newline is not content."""

    def __init__(self, block: bytes) -> None:
        self.block = block
        self.data = np.frombuffer(block, np.uint8)
        newline = np.flatnonzero(self.data == 10)
        if not block.endswith(b"\n"):
            newline = np.append(newline, len(block))
        self.ends = newline
        self.starts = np.concatenate([np.zeros(1, np.int64), newline[:-1] + 1]) if len(newline) else newline
        self.n = len(newline)

    def translated(self, old: bytes, new: bytes) -> Lines:
        """The same lines with a delimiter of several bytes replaced by one."""
        return Lines(self.block.replace(old, new))

    @cached_property
    def _stops(self) -> Ints:
        """Where the content of each line ends."""
        inside = self.ends > self.starts
        last = self.data[np.maximum(self.ends - 1, 0)] if len(self.data) else np.zeros(self.n, np.uint8)
        out: Ints = self.ends - (inside & (last == 13))
        return out

    def raw(self, i: int) -> bytes:
        return self.block[self.starts[i] : self._stops[i]]

    def text(self, i: int) -> str:
        return self.raw(i).decode("utf-8", "replace")

    def tail(self, i: int) -> bytes:
        return self.block[self.starts[i] :] if i < self.n else b""

    def size_from(self, i: int) -> int:
        return len(self.block) - int(self.starts[i]) if i < self.n else 0

    def starting(self, prefix: bytes) -> Ints:
        """Indices of the lines that begin with ``prefix``."""
        found = np.flatnonzero(self.ends - self.starts >= len(prefix))
        for offset, byte in enumerate(prefix):
            found = found[self.data[self.starts[found] + offset] == byte]
        return found

    def counts(self, delimiter: bytes) -> Ints:
        """Delimiters (of one byte) per line."""
        at = np.flatnonzero(self.data == delimiter[0])
        return np.diff(np.searchsorted(at, self.ends), prepend=0)

    def ending(self, delimiter: bytes) -> Mask:
        """Lines whose last byte is the delimiter."""
        out: Mask = (self._stops > self.starts) & (self.data[np.maximum(self._stops - 1, 0)] == delimiter[0])
        return out

    def blank(self) -> Mask:
        """Lines of white space only."""
        out: Mask = self._stops <= self.starts
        first = self.data[np.minimum(self.starts, max(len(self.data) - 1, 0))] if len(self.data) else np.zeros(self.n, np.uint8)
        for i in np.flatnonzero(~out & ((first == 32) | (first == 9)) & (self.ends - self.starts < 400)):
            out[i] = not self.raw(int(i)).strip()
        return out

    @cached_property
    def invalid(self) -> Mask:
        """Lines with bytes that are not UTF-8."""
        out = np.zeros(self.n, bool)
        if self.block.isascii():
            return out
        try:
            self.block.decode("utf-8")
        except UnicodeDecodeError:
            high = np.unique(np.searchsorted(self.ends, np.flatnonzero(self.data > 127)))
            for i in high:
                try:
                    self.raw(int(i)).decode("utf-8")
                except UnicodeDecodeError:
                    out[i] = True
        return out

    def special(self) -> Mask:
        """Lines that Arrow's reader must not see: NUL, a carriage return inside, bytes that are not UTF-8."""
        out = self.invalid.copy()
        if b"\x00" not in self.block and b"\r" not in self.block:
            return out
        strange = np.flatnonzero((self.data == 0) | (self.data == 13))
        if len(strange):
            line = np.searchsorted(self.ends, strange)
            lone = (self.data[strange] == 0) | (strange < self._stops[np.minimum(line, self.n - 1)])
            out[line[lone]] = True
        return out

    def join(self, mask: Mask) -> bytes | memoryview:
        """The bytes of the chosen lines, with their newlines."""
        if mask.all():
            return self.block
        edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.view(np.int8), [0]])))
        view = memoryview(self.block)
        parts = [view[self.starts[low] : self.ends[high - 1] + 1] for low, high in edges.reshape(-1, 2)]
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def runs(self, odd: Mask, blank: Mask, good: Mask) -> list[tuple[int, int]]:
        """Stretches of odd lines (with blank ones among them), each with the good line before it, which may be its beginning."""
        loose = odd | blank
        edges = np.flatnonzero(np.diff(np.concatenate([[0], loose.view(np.int8), [0]]))).reshape(-1, 2)
        out = []
        for low, high in edges:
            if odd[low:high].any():
                out.append((int(low) - (1 if low and good[low - 1] else 0), int(high)))
        return out

    def pieces(self, low: int, high: int, counts: Ints) -> Iterator[tuple[int, int, str, int]]:
        """(first line, lines, text, delimiters) of ``low`` to ``high``; lines without a delimiter are taken together."""
        i = low
        while i < high:
            stop = i + 1
            if counts[i] == 0:
                empty = not self.raw(i).strip()
                while stop < high and counts[stop] == 0 and (not empty or not self.raw(stop).strip()):
                    stop += 1
                while not empty and stop > i + 1 and not self.raw(stop - 1).strip():
                    stop -= 1
            yield i, stop - i, "\n".join(self.text(j) for j in range(i, stop)), int(counts[i])
            i = stop


def too_long(buffer: bytes, stream: BinaryIO, rejects: Rejects, line: int, block: int) -> bytes:
    """Skip a line beyond all measure; returns what follows it. The line becomes a reject."""
    raw = buffer[: MAX_RAW + 4]
    while True:
        data = stream.read(block)
        cut = data.find(b"\n")
        if cut >= 0 or not data:
            rejects.record(line, "line too long", raw)
            # an empty line in its place keeps the line numbers right
            return b"\n" + data[cut + 1 :] if data else b"\n"


def hold_from(lines: Lines, good: Mask, control: Mask, low: int, high: int) -> int:
    """The line from which on the block must wait: the last good one may go on in the next block."""
    last_good = low + int(np.flatnonzero(good[low:high])[-1]) if good[low:high].any() else -1
    last_control = low + int(np.flatnonzero(control[low:high])[-1]) if control[low:high].any() else -1
    stop = last_good if last_good > last_control else last_control + 1
    stop = max(low, stop)
    return high if lines.size_from(stop) > MAX_LINE else stop
