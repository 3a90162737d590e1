"""The archive: every captured output as it was printed, so that a later version can read it again.

``<root>/<cluster>/<YYYY-MM>/<UTC time>-<kind>[-n].zst``; zstd, the first line is a JSON header with the fields of
`Capture`, all the rest are the command's bytes. A file appears whole (written beside, then renamed) or not at all.
"""

from __future__ import annotations

import io
import itertools
import json
import os
import re
import shutil
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import quote, unquote

from queuecast.collect.source import Capture, SourceFailure
from queuecast.errors import LakeDamaged, LakeTooNew

FORMAT = 1
"""Version of the header. A file with a higher one was written by a later queuecast."""

UNKNOWN_CLUSTER = "%unknown"  # no quoted name can look like this
_NAME = re.compile(r"(?P<time>\d{8}T\d{6})Z-(?P<kind>[a-z_]+)(?:-(?P<n>\d+))?\.zst")
_CHUNK = 1 << 20
_RESTORE = "Remove the file, or restore it from a backup."


def write_capture(root: Path, capture: Capture) -> Path:
    """Store a capture below ``root`` and return the file's path.

    The same capture stored twice (same time, kind, command and bytes) is one file: its path is returned again.
    Raises OSError if the disk refuses; nothing is left behind then.
    """
    folder = root / _folder_of(capture.cluster) / f"{capture.taken_at:%Y-%m}"
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{capture.taken_at:%Y%m%dT%H%M%S}Z-{capture.kind}"
    temporary = folder / f".{stem}.{os.getpid()}.tmp"
    try:
        _write(temporary, capture)
        for n in itertools.count(1):
            path = folder / (f"{stem}.zst" if n == 1 else f"{stem}-{n}.zst")
            if not path.exists():
                os.replace(temporary, path)
                _sync_folder(folder)
                return path
            if _same(path, temporary):
                return path
    finally:
        temporary.unlink(missing_ok=True)
    raise AssertionError("unreachable")


def read_header(path: Path) -> dict[str, Any]:
    """The header of an archived capture, as it was written. Raises `LakeDamaged`, `LakeTooNew`."""
    with _open(path) as stream:
        return _header_of(stream, path)


def open_raw(path: Path) -> BinaryIO:
    """The command's bytes: a stream positioned after the header. Raises `LakeDamaged`, `LakeTooNew`."""
    stream = _open(path)
    try:
        _header_of(stream, path)
    except BaseException:
        stream.close()
        raise
    return stream


def read_capture(path: Path, root: Path | None = None) -> Capture:
    """An archived capture, with its bytes behind ``raw``. ``source_file`` is the path relative to ``root``."""
    header = read_header(path)
    try:
        return Capture(
            kind=header["kind"],
            taken_at=datetime.fromisoformat(header["taken_at"]),
            cluster=header["cluster"],
            zone=header["zone"],
            command=tuple(header["command"]),
            slurm_version=header["slurm_version"],
            raw=lambda: open_raw(path),
            stderr=header["stderr"],
            exit_code=header["exit_code"],
            sampled=header["sampled"],
            missing_fields=tuple(header.get("missing_fields", ())),
            source_file=str(path.relative_to(root) if root else path),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise LakeDamaged(f"the header of {path} is not a capture's: {error}", _RESTORE) from error


def archived(root: Path, since: datetime | None = None, kinds: Collection[str] | None = None,
             cluster: str | None = None) -> Iterator[Path]:
    """Paths of all archived captures in the order of their time (UTC, to the second), then kind and number.

    ``since`` (aware) leaves out what was taken before; only names are read, no file is opened.
    """
    found: list[tuple[str, str, int, str, Path]] = []
    folders = [root / _folder_of(cluster)] if cluster is not None else sorted(p for p in root.glob("*") if p.is_dir())
    floor = "" if since is None else f"{since.astimezone(UTC):%Y%m%dT%H%M%S}"
    for folder in folders:
        for path in folder.glob("[0-9][0-9][0-9][0-9]-[0-9][0-9]/*.zst"):
            match = _NAME.fullmatch(path.name)
            if match and match["time"] >= floor and (kinds is None or match["kind"] in kinds):
                found.append((match["time"], match["kind"], int(match["n"] or 1), folder.name, path))
    return (path for *_, path in sorted(found))


def cluster_of(path: Path) -> str | None:
    """The cluster that an archived file belongs to, from its folder; None if it was unknown."""
    name = path.parent.parent.name
    return None if name == UNKNOWN_CLUSTER else unquote(name)


@dataclass(frozen=True)
class ArchiveSource:
    """The archive as a `Source`: what ``rebuild`` reads."""

    root: Path
    cluster: str | None = None

    @property
    def name(self) -> str:
        return str(self.root)

    def captures(self, since: datetime | None = None, kinds: Collection[str] | None = None) -> Iterator[Capture | SourceFailure]:
        """Every archived capture in time order. A damaged file raises `LakeDamaged`: `rebuild` must not lose it silently."""
        for path in archived(self.root, since, kinds, self.cluster):
            yield read_capture(path, self.root)


def _folder_of(cluster: str | None) -> str:
    if cluster is None:
        return UNKNOWN_CLUSTER
    # a cluster's name comes from outside: it must not name a folder elsewhere
    return quote(cluster, safe="").replace(".", "%2E") or "%00"


def _header(capture: Capture) -> dict[str, Any]:
    return {
        "queuecast_archive": FORMAT,
        "kind": capture.kind,
        "taken_at": capture.taken_at.isoformat(),
        "cluster": capture.cluster,
        "zone": capture.zone,
        "command": list(capture.command),
        "slurm_version": capture.slurm_version,
        "stderr": capture.stderr,
        "exit_code": capture.exit_code,
        "sampled": capture.sampled,
        "missing_fields": list(capture.missing_fields),
    }


def _write(path: Path, capture: Capture) -> None:
    import pyarrow as pa  # here, so that the command line starts without it

    # ensure_ascii keeps the header one line of ASCII whatever the arguments hold
    with pa.CompressedOutputStream(str(path), "zstd") as out, capture.raw() as raw:
        out.write(json.dumps(_header(capture), ensure_ascii=True).encode("ascii") + b"\n")
        shutil.copyfileobj(raw, cast("Any", out), _CHUNK)
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class _Damaged(io.RawIOBase):
    """Turns what the decompressor says of a damaged file into our own error."""

    def __init__(self, inner: Any, path: Path) -> None:
        super().__init__()
        self._inner = inner
        self._path = path

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            return int(self._inner.readinto(buffer))
        except OSError as error:
            raise LakeDamaged(f"{self._path} cannot be decompressed: {error}", "Restore it from a backup.") from error

    def close(self) -> None:
        if not self.closed:
            self._inner.close()
        super().close()


def _open(path: Path) -> BinaryIO:
    import pyarrow as pa

    return io.BufferedReader(_Damaged(pa.input_stream(str(path), compression="zstd"), path), _CHUNK)


def _header_of(stream: BinaryIO, path: Path) -> dict[str, Any]:
    try:
        header = json.loads(stream.readline())
        version = header["queuecast_archive"]
    except (ValueError, TypeError, KeyError) as error:
        raise LakeDamaged(f"{path} does not begin with an archive header", _RESTORE) from error
    if version > FORMAT:
        raise LakeTooNew(f"{path} was written by a later queuecast (archive format {version})", "Update queuecast.")
    return cast("dict[str, Any]", header)


def _same(a: Path, b: Path) -> bool:
    with _open(a) as left, _open(b) as right:
        while True:
            x, y = left.read(_CHUNK), right.read(_CHUNK)
            if x != y:
                return False
            if not x:
                return True


def as_archived(capture: Capture, path: Path, root: Path) -> Capture:
    """The same capture, now reading from its archived file: what ingest is given after `write_capture`."""
    return replace(capture, raw=lambda: open_raw(path), source_file=str(path.relative_to(root)))
