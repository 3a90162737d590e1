"""A folder of recorded output as a source: each file is known by its content first and by its name second."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import BinaryIO

from queuecast.collect import identify
from queuecast.collect.identify import HEAD, Guess
from queuecast.collect.source import Capture, SourceFailure
from queuecast.errors import ConfigError, NoDataError, ParseError
from queuecast.slurmtext.times import parse_time, zone_of

_ORDER = ("config", "nodes", "partitions", "sinfo", "qos", "assoc", "resv_history", "reservations", "events", "sacct", "jobs_detail",
          "squeue")
"""Where two files of one moment tell of the same thing, the later one stands: scontrol tells more of a reservation, and of a job
that accounting does not list squeue tells all tasks."""
_SKIP = frozenset(("taken-at.txt", "zone.txt", "queuecast.toml", "INDEX.txt"))


@dataclass
class RecordedFolder:
    """Recorded output below ``path`` (a folder or one file).

    ``zone`` and ``cluster`` override what the folder tells: ``zone.txt`` or ``queuecast.toml`` (``zone``, ``cluster``), the
    data's own cluster names; the zone is UTC if nothing tells. ``notes``, ``skipped``
    and ``assumed`` (files whose moment is only their date) fill while `captures` runs.
    """

    path: Path
    zone: str | None = None
    cluster: str | None = None
    notes: list[str] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return str(self.path)

    def captures(self, since: datetime | None = None, kinds: Collection[str] | None = None) -> Iterator[Capture | SourceFailure]:
        """One capture per file that is Slurm's, configuration first. Raises ``NoDataError`` if there is no such folder."""
        if not self.path.exists():
            raise NoDataError(f"there is no {self.path}", "Name a folder with recorded output of sacct, squeue and so on.")
        root = self.path if self.path.is_dir() else self.path.parent
        below = sorted(p for p in self.path.rglob("*") if p.is_file() and not p.name.startswith("."))
        files = below if self.path.is_dir() else [self.path]
        commands = _index(root / "INDEX.txt")
        found: list[tuple[Path, Guess]] = []
        for file in files:
            if file.name in _SKIP:
                continue
            name = file.relative_to(root).as_posix()
            with open_any(file) as stream:
                head = stream.read(HEAD)
            guess = identify.identify(head, file.name, commands.get(_plain(file.name), ""))
            if guess is None:
                self.skipped.append((name, identify.why_not(head)))
            else:
                found.append((file, guess))
        for name, why in self.skipped:
            self.notes.append(f"{name}: skipped, {why}")
        zone = self._zone(root)
        cluster = self.cluster or _toml(root).get("cluster") or next((g.cluster for _, g in found if g.cluster), None)
        if found and cluster is None:
            self.notes.append("the cluster's name is not told: say --cluster NAME")
        version = next((g.version for _, g in found if g.version), None)
        rank = {kind: i for i, kind in enumerate(_ORDER)}
        for file, guess in sorted(found, key=lambda f: (rank.get(f[1].kind, len(rank)), f[0])):
            if kinds is not None and guess.kind not in kinds:
                continue
            at = guess.taken_at or self._taken_at(file, root, zone)
            if since is not None and at < since and not guess.sampled:
                continue
            name = file.relative_to(root).as_posix()
            # the archive has names of its own, and this one may tell the node
            command = (*guess.command, name) if guess.kind == "gpu_samples" else guess.command
            yield Capture(guess.kind, at, cluster, zone, command, version, partial(open_any, file), sampled=guess.sampled,
                          source_file=name)
        if self.assumed:
            few = ", ".join(self.assumed[:3]) + (", ..." if len(self.assumed) > 3 else "")
            self.notes.append(f"when {len(self.assumed)} file(s) were taken is assumed from their dates ({few}):"
                              " taken-at.txt can tell")

    def why_empty(self) -> str:
        """Why nothing was found, for a person."""
        if not self.skipped:
            return "it holds no files"
        reasons = {why for _, why in self.skipped}
        return f"{len(self.skipped)} files, {', '.join(sorted(reasons)[:3])}"

    def _zone(self, root: Path) -> str:
        told = self.zone or _first_line(root / "zone.txt") or _toml(root).get("zone")
        if told is None:
            self.notes.append("times are taken as UTC: say --tz ZONE, or put the zone into zone.txt, if they are local")
            return "UTC"
        zone_of(told)  # ConfigError for an unknown name
        return told

    def _taken_at(self, file: Path, root: Path, zone: str) -> datetime:
        for folder in (file.parent, root):
            text = _first_line(folder / "taken-at.txt")
            if text is not None:
                try:
                    value = parse_time(text.replace(" ", "T").removesuffix("Z"), "UTC" if text.endswith("Z") else zone).value
                except ParseError as error:
                    raise ConfigError(f"taken-at.txt does not hold a time: {text[:60]!r}",
                                      "Write 2026-06-13T09:24:11, or epoch seconds.") from error
                if value is not None:
                    return value
        at = datetime.fromtimestamp(int(file.stat().st_mtime), UTC)
        self.assumed.append(file.relative_to(root).as_posix())
        return at


def open_any(path: Path) -> BinaryIO:
    """A file's bytes, decompressed if it is gzip, bzip2, xz or zstd (by its first bytes, not its name)."""
    import bz2
    import gzip
    import io
    import lzma
    from typing import Any, cast

    with path.open("rb") as raw:
        magic = raw.read(6)
    if magic.startswith(b"\x1f\x8b"):
        return cast("BinaryIO", gzip.open(path, "rb"))
    if magic.startswith(b"BZh"):
        return cast("BinaryIO", bz2.open(path, "rb"))
    if magic.startswith(b"\xfd7zXZ\x00"):
        return cast("BinaryIO", lzma.open(path, "rb"))
    if magic.startswith(b"\x28\xb5\x2f\xfd"):
        import pyarrow as pa

        return io.BufferedReader(cast("Any", pa.input_stream(str(path), compression="zstd")))
    return path.open("rb")


def _plain(name: str) -> str:
    return re.sub(r"\.(gz|bz2|xz|zst)$", "", name)


def _index(path: Path) -> dict[str, str]:
    """Commands by file from an index that the recording wrote: name, sizes and times, command, separated by tabs."""
    out: dict[str, str] = {}
    if path.is_file():
        for line in path.read_text("utf-8", "replace").splitlines():
            cells = line.split("\t")
            if len(cells) > 4:
                out[cells[0]] = cells[-1].strip()
    return out


def _first_line(path: Path) -> str | None:
    if not path.is_file():
        return None
    return next((line.strip() for line in path.read_text("utf-8", "replace").splitlines() if line.strip()), None)


def _toml(root: Path) -> dict[str, str]:
    path = root / "queuecast.toml"
    if not path.is_file():
        return {}
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}", "Correct it, or remove it.") from error
    part = data.get("recorded", data)
    return {k: str(part[k]) for k in ("zone", "cluster") if isinstance(part, dict) and k in part}

