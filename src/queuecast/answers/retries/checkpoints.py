"""The last checkpoint of a job that is whole: what its manifest says, held against the files that are there.

A manifest is a small JSON file beside the checkpoint (docs/retry.md). It is written by the job, so nothing it says is
trusted: paths stay below its own folder, sizes and checksums are measured.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from queuecast.i18n import _

SUFFIX: Final = ".manifest.json"
VERSION: Final = 1
PARTS: Final = ("model", "optimizer", "random_state", "data_position")
MOST_ENTRIES: Final = 20_000
MOST_MANIFESTS: Final = 200
MOST_FILES: Final = 4096
MOST_BYTES: Final = 1 << 20
HASH_BYTES: Final = 16 << 30
"""So much is read for checksums of one manifest; beyond it sizes alone are compared, and that is told."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint whose files are all there as written. ``resume``: the path to go on from. ``saved_at`` UTC.

    ``step`` and ``epoch``: None where not told. ``parts``: of model, optimizer, random_state and data_position whether each
    is in it; None: the manifest does not say. ``unhashed``: files compared by size alone. ``code`` and ``image`` as the
    job wrote them; ``environment``: path of the lock file and its checksum then.
    """

    manifest: str
    resume: str
    step: int | None
    epoch: int | None
    saved_at: datetime
    parts: Mapping[str, bool | None]
    bytes: int
    files: int
    unhashed: int
    code: str | None = None
    image: str | None = None
    environment: tuple[str, str] | None = None
    job: str | None = None

    @property
    def complete(self) -> bool:
        """Whether a run that goes on from it does what the interrupted one would have done."""
        return all(self.parts.get(name) is True for name in PARTS)

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "parts": dict(self.parts), "saved_at": self.saved_at.isoformat(), "complete": self.complete}


@dataclass(frozen=True)
class Search:
    """What was found in ``folder``: the newest whole checkpoint, and the newer ones that are not (manifest, why)."""

    folder: str
    found: Checkpoint | None
    broken: tuple[tuple[str, str], ...] = ()
    cut: bool = False
    others: int = 0
    """Manifests of other jobs, which were left alone."""

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "folder": self.folder,
            "found": self.found.as_json() if self.found else None,
            "broken": [{"manifest": m, "why": w} for m, w in self.broken],
            "others": self.others,
        }


def find_checkpoint(folder: Path, *, jobs: Collection[str] | None = None, hash_bytes: int = HASH_BYTES) -> Search:
    """The newest whole checkpoint whose manifest lies in ``folder`` or one level below it.

    Newest: the highest step, then the time of saving. ``jobs``: ids whose checkpoints may be taken, since several jobs may save
    into one folder; None: all. A manifest that names no job counts for every one. Never raises for what is found there.
    """
    names, cut = _manifests(folder)
    read: list[tuple[tuple[int, float], Path, dict[str, Any] | str]] = []
    others = 0
    for path in names:
        told = _read(path)
        if jobs is not None and not isinstance(told, str) and told["job"] is not None and told["job"] not in jobs:
            others += 1
            continue
        order = (-1, _mtime(path)) if isinstance(told, str) else (told["step"] if told["step"] is not None else -1, told["saved"])
        read.append((order, path, told))
    read.sort(key=lambda item: item[0], reverse=True)
    broken: list[tuple[str, str]] = []
    for _order, path, told in read:
        result = told if isinstance(told, str) else _verified(path, told, hash_bytes)
        if isinstance(result, Checkpoint):
            return Search(str(folder), result, tuple(broken), cut, others)
        broken.append((str(path), result))
    return Search(str(folder), None, tuple(broken), cut, others)


def changed_since(checkpoint: Checkpoint, *, commit: str | None, work_dir: Path | None, script: str) -> list[str]:
    """Warnings where a run that goes on would not be the run that was interrupted: other code, environment or image, missing parts.

    ``commit``: of the code now, None if it cannot be told.
    """
    out: list[str] = []
    missing = [n for n in PARTS if checkpoint.parts.get(n) is False]
    untold = [n for n in PARTS if checkpoint.parts.get(n) is None]
    if missing:
        out.append(_("The checkpoint lacks: {names}. The run goes on, but not as it would have.").format(names=_names(missing)))
    if untold:
        out.append(_("The manifest does not say whether the checkpoint holds: {names}.").format(names=_names(untold)))
    if checkpoint.code and commit and not (commit.startswith(checkpoint.code) or checkpoint.code.startswith(commit)):
        out.append(_("The code changed since: commit {then}, now {now}.").format(then=checkpoint.code[:12], now=commit[:12]))
    elif checkpoint.code and not commit:
        out.append(_("Whether the code changed since commit {then} cannot be told here.").format(then=checkpoint.code[:12]))
    if checkpoint.environment is not None:
        name, then = checkpoint.environment
        path = Path(name) if os.path.isabs(name) else (work_dir or Path("/nonexistent")) / name
        digest = _hash(path, 64 << 20)
        if digest is None:
            out.append(_("The environment's lock file {name} cannot be read: whether it changed is not known.").format(name=name))
        elif digest != then:
            out.append(_("The environment changed since: {name} is another file.").format(name=name))
    if checkpoint.image and checkpoint.image not in script:
        out.append(_("It was saved in the image {name}, which the script does not name.").format(name=checkpoint.image))
    if checkpoint.unhashed:
        out.append(_("{n} files are so large that only their sizes were compared.").format(n=checkpoint.unhashed))
    return out


def _names(parts: list[str]) -> str:
    words = {
        "model": _("model"),
        "optimizer": _("optimiser"),
        "random_state": _("state of the random numbers"),
        "data_position": _("position in the data"),
    }
    return ", ".join(words[p] for p in parts)


def _manifests(folder: Path) -> tuple[list[Path], bool]:
    """Manifests in the folder and one level below, newest first; whether some were left out."""
    found: list[Path] = []
    seen = 0
    level = [folder]
    for depth in (0, 1):
        below: list[Path] = []
        for place in level:
            try:
                with os.scandir(place) as entries:
                    for entry in entries:
                        seen += 1
                        if seen > MOST_ENTRIES:
                            break
                        if entry.name.endswith(SUFFIX) and entry.is_file(follow_symlinks=False):
                            found.append(place / entry.name)
                        elif depth == 0 and entry.is_dir(follow_symlinks=False):
                            below.append(place / entry.name)
            except OSError:
                continue
        level = below
    found.sort(key=_mtime, reverse=True)
    return found[:MOST_MANIFESTS], seen > MOST_ENTRIES or len(found) > MOST_MANIFESTS


def _mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _read(path: Path) -> dict[str, Any] | str:
    """The manifest's plain values, checked; or why it is none."""
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
        if len(raw) > MOST_BYTES:
            return _("the manifest is too large")
        told = json.loads(raw)
    except (OSError, ValueError, RecursionError):
        return _("the manifest cannot be read: it may be half written")
    if not isinstance(told, dict) or told.get("queuecast_checkpoint") != VERSION:
        return _("this is no manifest of version {n}").format(n=VERSION)
    files = told.get("files")
    if not isinstance(files, list) or not files or len(files) > MOST_FILES or not all(isinstance(f, dict) for f in files):
        return _("the manifest names no files")
    given = told.get("parts")
    parts: Mapping[str, Any] = given if isinstance(given, dict) else {}
    environment = told.get("environment")
    pair = (_text(environment, "file"), _text(environment, "sha256")) if isinstance(environment, dict) else (None, None)
    return {
        "files": files,
        "resume": _text(told, "resume"),
        "step": _count(told.get("step")),
        "epoch": _count(told.get("epoch")),
        "saved": _time(told.get("saved_at")) or _mtime(path),
        "parts": {n: parts.get(n) if isinstance(parts.get(n), bool) else None for n in PARTS},
        "code": _text(told, "code"),
        "image": _text(told, "image"),
        "job": _text(told, "job"),
        "environment": (pair[0], pair[1].lower()) if pair[0] and pair[1] else None,
    }


def _text(told: Mapping[str, Any], key: str) -> str | None:
    value = told.get(key)
    return value if isinstance(value, str) and value and len(value) <= 4096 and value.isprintable() else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62 else None


def _time(value: object) -> float | None:
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _verified(manifest: Path, told: Mapping[str, Any], budget: int) -> Checkpoint | str:
    """The checkpoint if every file is there with its size and checksum; else what is wrong."""
    total = unhashed = 0
    if told["parts"]["model"] is False:
        return _("the model is not in it")
    for entry in told["files"]:
        name, size, digest = _text(entry, "path"), _count(entry.get("bytes")), _text(entry, "sha256")
        path = _below(manifest.parent, name)
        if name is None or path is None or size is None:
            return _("a file is named wrongly: paths are relative, below the manifest's folder, with their size")
        try:
            status = path.stat()
        except OSError:
            return _("{name} is missing").format(name=name)
        if not stat.S_ISREG(status.st_mode):
            return _("{name} is no file").format(name=name)
        if status.st_size != size:
            return _("{name} has {n} bytes instead of {expected}").format(name=name, n=status.st_size, expected=size)
        total += size
        if digest is None or total > budget:
            unhashed += 1
        elif _hash(path, size) != digest.lower():
            return _("{name} is not what was written: its checksum differs").format(name=name)
    first = told["resume"] or told["files"][0]["path"]
    resume = _below(manifest.parent, first)
    if resume is None or not resume.exists():
        return _("{name}, from which to go on, is missing").format(name=first)
    return Checkpoint(
        str(manifest),
        str(resume),
        told["step"],
        told["epoch"],
        datetime.fromtimestamp(told["saved"], UTC),
        told["parts"],
        total,
        len(told["files"]),
        unhashed,
        told["code"],
        told["image"],
        told["environment"],
        told["job"],
    )


def _below(folder: Path, name: str | None) -> Path | None:
    """The path if it lies below the folder, links followed; None if not."""
    if not name or os.path.isabs(name):
        return None
    try:
        root, path = folder.resolve(), (folder / name).resolve()
    except (OSError, RuntimeError, ValueError):
        return None
    return path if path.is_relative_to(root) and path != root else None


def _hash(path: Path, most: int) -> str | None:
    """SHA-256 in hex; None if the file cannot be read or is longer than ``most`` bytes."""
    digest = hashlib.sha256()
    left = most
    try:
        if not path.is_file():  # a pipe would keep the reader waiting
            return None
        with path.open("rb") as file:
            while piece := file.read(1 << 20):
                left -= len(piece)
                if left < 0:
                    return None
                digest.update(piece)
    except OSError:
        return None
    return digest.hexdigest()
