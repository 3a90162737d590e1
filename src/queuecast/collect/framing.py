"""Slurm's text as columns of strings: a byte stream of any length is cut into records, block by block.

Lines with the right number of delimiters (nearly all) go through Arrow's CSV reader without touching Python; what is
odd (a newline or the delimiter in user text, NUL, a lone carriage return, bytes that are not UTF-8) is mended line by
line. Nothing is dropped: a line is a row, part of one, a reject, or a marker, header, message or blank.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from queuecast.collect import dialect as dialects
from queuecast.collect.dialect import Dialect
from queuecast.collect.layouts import as_columns, cut_fixed, invalid_mask, line_numbers, merge_rows, one_array, quoted_records
from queuecast.collect.lines import MAX_LINE, Ints, Lines, Mask, hold_from, too_long
from queuecast.collect.mending import Odd, mend
from queuecast.collect.rejects import Rejects
from queuecast.collect.streams import MARKER, MESSAGE, fill, refuse_binary, why_no_header
from queuecast.errors import ParseError

BLOCK = 16 << 20
"""Bytes read at a time; memory is a small multiple of it."""

CHUNK = 2 << 20
"""Bytes that one thread of Arrow's reader takes at a time."""


@dataclass
class Section:
    """A stretch of the stream taken at one moment on one cluster. None: as the capture says."""

    at: datetime | None = None
    cluster: str | None = None
    command: str = ""


@dataclass
class Frame:
    """Records with one layout, as string columns. ``columns`` holds the wanted ones by position in the header."""

    dialect: Dialect
    columns: dict[int, pa.StringArray]
    lines: Ints
    section: npt.NDArray[np.int32]
    not_utf8: Mask
    sections: list[Section]

    def __len__(self) -> int:
        return len(self.lines)


@dataclass
class Seen:
    """What became of the lines, for the summary and for the proof that none is lost.

    ``read`` lines are ``in_rows``, ``rejected``, ``headers``, ``markers``, ``messages``, ``blank`` or ``unread`` (of a layout
    that no table takes). ``records`` were cut from those in rows, ``refused`` could not be.
    """

    read: int = 0
    records: int = 0
    refused: int = 0
    in_rows: int = 0
    rejected: int = 0
    headers: int = 0
    markers: int = 0
    messages: int = 0
    blank: int = 0
    unread: int = 0
    notes: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)


class Framer:
    """Cuts one stream. Iterate once; ``sections`` and ``seen`` fill while it runs.

    ``wanted`` says which columns (positions) of a layout are needed. Raises `ParseError` where the stream as a whole is
    not a table of Slurm's.
    """

    def __init__(self, stream: BinaryIO, rejects: Rejects, wanted: Callable[[Dialect], list[int]], *, command: str = "",
                 sampled: bool = False, block: int = BLOCK) -> None:
        self.stream, self.rejects, self.wanted, self.sampled, self.block = stream, rejects, wanted, sampled, block
        self.sections = [Section(command=command)]
        self.seen = Seen()
        self.dialect: Dialect | None = None
        self._expect_header = True
        self._line = 1
        self._checked = False  # field count of the layout compared with its rows

    def __iter__(self) -> Iterator[Frame]:
        carry = b""
        first = True
        while True:
            data = fill(self.stream, self.block)
            buffer = carry + data
            if first and buffer:
                first = False
                buffer = buffer.removeprefix(b"\xef\xbb\xbf")
                refuse_binary(buffer)
            last = len(data) < self.block
            sample = 0
            if last:
                block, rest = buffer, b""
            else:
                cut = buffer.rfind(b"\n") + 1
                if not cut:
                    carry = (too_long(buffer, self.stream, self.rejects, self._line, self.block) if len(buffer) > MAX_LINE
                             else buffer)
                    continue
                sample = self._last_sample(buffer)
                cut = sample or cut
                block, rest = buffer[:cut], buffer[cut:]
            if block:
                if self.dialect is not None and self.dialect.quoted:
                    yield from self._quoted(block + rest)
                    return
                held = yield from self._cut(block, last=last or bool(sample))
                if self.dialect is not None and self.dialect.quoted:
                    yield from self._quoted(held + rest)
                    return
                carry = held + rest
            if last:
                break
        if self.dialect is None and not self.seen.messages and not self.seen.markers:
            raise ParseError("empty file" if not self.seen.read else "no header line")

    def _last_sample(self, buffer: bytes) -> int:
        """Where the last sample begins, so that a snapshot is not cut in two; 0 if that is not known."""
        at = buffer.rfind(b"\n### ") + 1 if self.sampled else 0
        return at if at and MARKER.match(buffer[at : at + 200]) else 0

    def _cut(self, block: bytes, *, last: bool) -> Generator[Frame, None, bytes]:
        """Frames of a block; returns its tail, which must wait for what follows."""
        lines = Lines(block)
        control = np.zeros(lines.n, bool)
        section = np.full(lines.n, len(self.sections) - 1, np.int32)
        edges = [0, *self._marks(lines), lines.n]
        groups: list[tuple[Dialect, int, int]] = []
        for low, high in pairwise(edges):
            if low < high and (low or edges[1] == 0) and self._mark(lines, low):
                control[low] = True
                section[low:] = len(self.sections) - 1
            if self._expect_header:
                dialect, at = self._header(lines, low, high, control)
                if dialect is None:
                    continue
                if dialect.quoted and dialect.readable:
                    self.dialect = dialect
                    self._line += at + 1
                    self.seen.read += at + 1
                    return lines.tail(at + 1)
                if dialect is not self.dialect:
                    self.dialect, self._checked = dialect, False
                    groups.append((dialect, at, high))
                    continue
            if self.dialect is None:
                continue  # no header yet: _header keeps looking
            if groups and groups[-1][0] is self.dialect:
                groups[-1] = (self.dialect, groups[-1][1], high)
            else:
                groups.append((self.dialect, low, high))
        done = lines.n
        for group, low, high in groups:
            frame, stop = self._group(group, lines, low, high, control, section, hold=not last and high == lines.n)
            if frame is not None and len(frame):
                yield frame
            done = stop if high == lines.n else done
        self.seen.read += done
        self._line += done
        return lines.tail(done)

    def _marks(self, lines: Lines) -> list[int]:
        found = lines.starting(b"CLUSTER: ")
        if self.sampled:
            found = np.concatenate([found, [i for i in lines.starting(b"### ") if MARKER.match(lines.raw(int(i)))]])
        return [int(i) for i in np.sort(found)]

    def _mark(self, lines: Lines, i: int) -> bool:
        """Begin a section if line ``i`` says so."""
        line = lines.raw(i)
        if self.sampled and (match := MARKER.match(line)):
            at = datetime.fromtimestamp(int(match[1]), UTC)
            self.sections.append(Section(at, None, match[3].decode("utf-8", "replace")))
        elif line.startswith(b"CLUSTER: "):
            before = self.sections[-1]
            self.sections.append(Section(before.at, line[9:].strip().decode("utf-8", "replace"), before.command))
        else:
            return False
        self.seen.markers += 1
        self._expect_header = True
        return True

    def _header(self, lines: Lines, low: int, high: int, control: Mask) -> tuple[Dialect | None, int]:
        """The layout of lines ``low`` to ``high`` and where their header stands; None if nothing is there (yet)."""
        for i in range(low, high):
            line = lines.raw(i)
            if control[i]:
                continue
            if not line.strip() or MESSAGE.match(line):
                control[i] = True
                if line.strip():
                    self._message(line)
                else:
                    self.seen.blank += 1
                continue
            self._expect_header = False
            if self.dialect is None or line != self.dialect.raw:
                try:
                    following = [lines.raw(j) for j in range(i + 1, min(high, i + 200))]
                    dialect = dialects.sniff(line, following, self.sections[-1].command)
                except ParseError as error:
                    if self.dialect is None and len(self.sections) == 1:
                        raise ParseError(*why_no_header(line, error)) from None
                    self.seen.kept["a sample without a header line (taken with -h or -n?)"] += 1
                    self.seen.unread += int((~control[i:high]).sum())
                    control[i:high] = True
                    self._expect_header = high == lines.n  # what follows belongs to it
                    return None, i
            else:
                dialect = self.dialect
            control[i] = True
            self.seen.headers += 1
            if dialect.ruled and i + 1 < lines.n:
                control[i + 1] = True
                self.seen.headers += 1
            if dialect is not self.dialect and not dialect.readable:
                self.seen.kept[dialect.what] += 1
            return dialect, i
        return None, low

    def _message(self, line: bytes) -> None:
        self.seen.messages += 1
        self.seen.notes[f"Slurm said: {line.strip().decode('utf-8', 'replace')[:200]}"] += 1

    def _group(self, dialect: Dialect, lines: Lines, low: int, high: int, control: Mask, section: npt.NDArray[np.int32], *,
               hold: bool) -> tuple[Frame | None, int]:
        """Frame of the lines that share a layout, and the line before which it stops."""
        if not dialect.readable:
            self.seen.unread += int((~control[low:high]).sum())
            return None, high
        active = ~control
        active[:low] = active[high:] = False
        blank = active & lines.blank()
        stop = high
        if dialect.delimiter:
            single = dialect.delimiter
            if len(single) > 1:
                single = next(bytes([b]) for b in (31, 30, 29, 28, 2, 3, 4, 5) if bytes([b]) not in lines.block)
                lines = lines.translated(dialect.delimiter, single)
            counts = lines.counts(single)
            if not self._checked and (active & ~blank).any():
                dialect = self.dialect = self._fit_header(dialect, lines, counts, active & ~blank, single)
                self._checked = True
            if hold:
                stop = hold_from(lines, active & (counts == len(dialect.keys) - 1), control, low, high)
                active[stop:] = blank[stop:] = False
        self.seen.blank += int(blank.sum())
        odd = active & ~blank if not dialect.delimiter else active & ~blank & (counts != len(dialect.keys) - 1)
        for i in np.flatnonzero(odd):
            if MESSAGE.match(lines.raw(int(i))):
                self._message(lines.raw(int(i)))
                odd[i] = active[i] = False
        if not dialect.delimiter:
            records, rejected, refused = cut_fixed(lines, low, high, ~active | blank, dialect, self.rejects, self._line)
            self.seen.in_rows += sum(r[3] for r in records)
            self.seen.rejected += rejected
            self.seen.refused += refused
            at = line_numbers(records)
            columns = as_columns([r[1] for r in records], self.wanted(dialect))
            return Frame(dialect, columns, at + self._line, section[at], invalid_mask(records), self.sections), stop
        return self._delimited(dialect, lines, single, counts, active & ~blank & ~odd, odd, blank, section), stop

    def _delimited(self, dialect: Dialect, lines: Lines, single: bytes, counts: Ints, good: Mask, odd: Mask, blank: Mask,
                   section: npt.NDArray[np.int32]) -> Frame:
        wanted = self.wanted(dialect)
        fast = good & ~lines.special()
        columns = self._read(lines, single, fast, dialect, wanted, good, odd)
        slow: list[tuple[int, list[str]]] = []
        if (good & ~fast).any() or odd.any():
            begun = np.flatnonzero(fast)
            self._mend(lines, single, counts, dialect, good, fast, odd, blank, slow)
            keep = fast[begun]
            if not keep.all():
                columns = {j: c.filter(pa.array(keep)) for j, c in columns.items()}
        at = np.flatnonzero(fast)
        self.seen.in_rows += len(at)
        if slow:
            at, columns = merge_rows(at, columns, slow, wanted)
        return Frame(dialect, columns, at + self._line, section[at], lines.invalid[at], self.sections)

    def _fit_header(self, dialect: Dialect, lines: Lines, counts: Ints, active: Mask, single: bytes) -> Dialect:
        """A delimiter at the end of the header but not of the rows, or the other way round (some versions do either)."""
        k = len(dialect.keys) - 1
        here = counts[active]
        if (here == k).mean() >= 0.5:
            return dialect
        if ((here == k + 1) & lines.ending(single)[active]).mean() > 0.5:
            return dialects.with_trailing(dialect, 1)
        if not dialect.keys[-1] and (here == k - 1).mean() > 0.5:
            return dialects.with_trailing(dialect, -1)
        if not (here == k).any() and here.mean() < 0.2 * k:
            other = dialects.likely_delimiter([lines.raw(int(i)) for i in np.flatnonzero(active)[:20]], k)
            if other:
                raise ParseError("rows are not separated like the header", f"{dialect.delimiter!r} there, {other!r} here")
        return dialect

    def _read(self, lines: Lines, single: bytes, fast: Mask, dialect: Dialect, wanted: list[int], good: Mask,
              odd: Mask) -> dict[int, pa.StringArray]:
        """Good lines through Arrow's reader. Lines whose id cannot be one (they are pieces of a broken record) become odd."""
        empty = {j: pa.array([], pa.string()) for j in wanted}
        if not fast.any():
            return empty
        names = [str(j) for j in range(len(dialect.keys))]
        data = lines.join(fast)
        longest = int((lines.ends - lines.starts).max())
        table = pacsv.read_csv(
            pa.BufferReader(data),
            read_options=pacsv.ReadOptions(column_names=names, block_size=max(CHUNK, longest + 2)),
            parse_options=pacsv.ParseOptions(delimiter=single.decode("latin-1"), quote_char=False, double_quote=False,
                                             escape_char=False,
                                             newlines_in_values=False),
            convert_options=pacsv.ConvertOptions(include_columns=[str(j) for j in wanted], strings_can_be_null=False,
                                                 check_utf8=False,
                                                 column_types=dict.fromkeys(names, pa.string())),
        )
        if table.num_rows != int(fast.sum()):
            fast[:] = False  # not seen so far: then the slow path reads them all
            return empty
        columns = {j: one_array(table.column(str(j))) for j in wanted}
        anchor = next((j for j in wanted if dialect.keys[j] == "jobid"), None)
        # hardly anybody writes 0x1f into a name: there a piece with the right count has odd lines beside it
        if anchor is not None and (dialect.delimiter != b"\x1f" or odd.any()):
            sound = pc.match_substring_regex(columns[anchor], r"^\d").to_numpy(zero_copy_only=False)
            if not sound.all():
                rows = np.flatnonzero(fast)[~sound]
                columns = {j: c.filter(pa.array(sound)) for j, c in columns.items()}
                fast[rows] = good[rows] = False
                odd[rows] = True
        return columns

    def _mend(self, lines: Lines, single: bytes, counts: Ints, dialect: Dialect, good: Mask, fast: Mask, odd: Mask, blank: Mask,
              slow: list[tuple[int, list[str]]]) -> None:
        """Records of the odd lines into ``slow``; a good line before an odd one may be its beginning, so it joins the run."""
        delimiter = dialect.delimiter.decode("utf-8", "replace")
        one = single.decode("latin-1")
        in_run = np.zeros(lines.n, bool)
        for low, high in lines.runs(odd, blank, good):
            in_run[low:high] = True
            fast[low:high] = False
            pieces = [Odd(*p) for p in lines.pieces(low, high, counts)]
            for record in mend(pieces, dialect.keys, one):
                absorbed = int(blank[record.line : record.line + record.lines].sum())
                self.seen.blank -= absorbed
                if record.fields is not None:
                    slow.append((record.line, [f.replace(one, delimiter) for f in record.fields]))
                    self.seen.in_rows += record.lines
                else:
                    self.seen.rejected += record.lines
                    self.seen.refused += 1
                    self.rejects.record(self._line + record.line, "wrong number of fields", record.raw.replace(one, delimiter))
        for i in np.flatnonzero(good & ~fast & ~in_run):
            slow.append((int(i), [f.partition("\x00")[0] for f in lines.text(int(i)).split(one)]))
            self.seen.in_rows += 1
        slow.sort(key=lambda r: r[0])

    def _quoted(self, head: bytes) -> Iterator[Frame]:
        """A CSV file that another program wrote: quotes, blanks after commas, newlines inside quotes."""
        dialect = self.dialect
        if dialect is None:
            return
        batches = quoted_records(head, self.stream, dialect.delimiter.decode(), len(dialect.keys), self.rejects, self._line)
        for records, rejected, refused in batches:
            lines = sum(r[3] for r in records)
            self.seen.in_rows += lines
            self.seen.rejected += rejected
            self.seen.refused += refused
            self.seen.read += lines + rejected
            if records:
                section = np.full(len(records), len(self.sections) - 1, np.int32)
                yield Frame(dialect, as_columns([r[1] for r in records], self.wanted(dialect)), line_numbers(records), section,
                            invalid_mask(records), self.sections)
