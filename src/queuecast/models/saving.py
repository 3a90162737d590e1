"""A trained model on disk: numbers as npz, the rest as JSON, checksums in a manifest. Never pickle.

A model lies in a folder of its own under ``<lake>/models`` and is made current by one rename, so a reader sees a
whole model or the one before.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import uuid
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from queuecast.errors import StoreError
from queuecast.models.calibration import Calibration
from queuecast.models.kept import Kept
from queuecast.models.record import TrackRecord
from queuecast.models.savedparts import pack_record, pack_wait_model, unpack_record, unpack_wait_model
from queuecast.models.slurmrecord import SlurmRecord
from queuecast.models.waitmodel import WaitModel
from queuecast.store.lock import writer_lock

FORMAT = 4
KEEP = 5
KIND = "queuecast wait model"
HINT = "train again: queuecast train"


PART = re.compile(r"model\.json|calibration\.npz|(waits|record|kept)[0-9]{1,4}\.npz")


class ModelDamaged(StoreError):
    """The files are not those that were saved, or another program's."""


@dataclass(frozen=True)
class Standing:
    """How a cluster's wait model came about, all moments UTC: outcomes known at ``learned_until`` taught it, those known at
    ``corrected_until`` correct it, and its answers of the past were last all made anew at ``full_until``. ``jobs`` became eligible in
    the span learned from. ``renewal_s``: CPU seconds of the last renewal of corrections, None before the first."""

    learned_until: datetime
    corrected_until: datetime
    full_until: datetime
    jobs: int
    renewal_s: float | None = None

    def as_json(self) -> dict[str, object]:
        return {n: v.isoformat() if isinstance(v, datetime) else v for n, v in asdict(self).items()}

    @classmethod
    def of_json(cls, raw: dict[str, Any]) -> Standing:
        """Raises ``ValueError``, ``KeyError`` or ``TypeError`` if it is not whole."""
        learned, corrected, full = (datetime.fromisoformat(raw[n]) for n in ("learned_until", "corrected_until", "full_until"))
        return cls(learned, corrected, full, int(raw["jobs"]), None if raw["renewal_s"] is None else float(raw["renewal_s"]))


@dataclass
class Model:
    """What ``queuecast train`` learns. Groups are (cluster, mode, partition); partition "*" is the whole cluster.

    ``coverage`` maps a group to {claimed share: (share that held, answers counted)}. ``waits`` are the wait models of
    the clusters that have enough history, ``records`` what came of the answers that they made again, ``standings`` how they
    came about. ``kept`` are those answers themselves: loaded only to go on from them.
    """

    trained_at: datetime
    data_until: datetime
    calibrations: dict[tuple[str, str, str], Calibration] = field(default_factory=dict)
    coverage: dict[tuple[str, str, str], dict[str, tuple[float, int]]] = field(default_factory=dict)
    slurm: dict[tuple[str, str], SlurmRecord] = field(default_factory=dict)
    waits: dict[str, WaitModel] = field(default_factory=dict)
    records: dict[str, TrackRecord] = field(default_factory=dict)
    name: str = ""
    standings: dict[str, Standing] = field(default_factory=dict)
    kept: dict[str, Kept] = field(default_factory=dict)

    def known_until(self, cluster: str) -> datetime:
        """The latest moment that anything in its answers about a cluster comes from."""
        standing = self.standings.get(cluster)
        return self.data_until if standing is None else standing.corrected_until


@contextmanager
def lock_models(folder: Path, label: str, wait_s: float = 0.0) -> Iterator[None]:
    """For whoever reads the current model to save a newer one: one at a time. Raises ``LakeLocked``, ``StoreError``."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot save a model in {folder}: {error.strerror}", "train with a lake that you may write") from error
    with writer_lock(folder / ".lock", label, wait_s):
        for left in folder.glob(".*-*"):  # by a writer that was killed
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
        yield


def save_model(folder: Path, model: Model) -> Path:
    """Write and make current. Returns the model's folder."""
    name = f"{model.data_until:%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}"
    target, staging = folder / name, folder / f".{name}"
    try:
        staging.mkdir(parents=True)
        groups = list(model.calibrations)
        parts = {
            "calibration.npz": _npz(
                {
                    "honest": np.array([model.calibrations[g].honest for g in groups]),
                    "count": np.array([model.calibrations[g].count for g in groups], np.int64),
                }
            ),
            "model.json": json.dumps(
                {
                    "trained_at": model.trained_at.isoformat(),
                    "data_until": model.data_until.isoformat(),
                    "groups": groups,
                    "coverage": [[list(g), v] for g, v in model.coverage.items()],
                    "slurm": [[list(g), asdict(r)] for g, r in model.slurm.items()],
                    "standings": {cluster: standing.as_json() for cluster, standing in model.standings.items()},
                },
                indent=1,
            ).encode(),
        }
        for number, (cluster, wait) in enumerate(model.waits.items()):
            parts[f"waits{number}.npz"] = _npz({**pack_wait_model(wait), "cluster": np.array(cluster)})
        for number, (cluster, record) in enumerate(model.records.items()):
            parts[f"record{number}.npz"] = _npz({**pack_record(record), "cluster": np.array(cluster)})
        answering = list(parts)
        for number, (cluster, kept) in enumerate(model.kept.items()):
            parts[f"kept{number}.npz"] = _npz({**kept.arrays(), "cluster": np.array(cluster)})
        digests = {n: hashlib.sha256(b).hexdigest() for n, b in parts.items()}
        manifest = {
            "format": FORMAT,
            "kind": KIND,
            "sha256": {n: d for n, d in digests.items() if n in answering},
            "sha256_kept": {n: d for n, d in digests.items() if n not in answering},
        }
        parts["manifest.json"] = json.dumps(manifest, indent=1).encode()
        for part, content in parts.items():
            with (staging / part).open("wb") as out:
                out.write(content)
                out.flush()
                os.fsync(out.fileno())
        staging.rename(target)
        pointer = folder / "current.new"
        pointer.write_text(name, encoding="utf-8")
        os.replace(pointer, folder / "current")
    except BaseException as error:
        shutil.rmtree(staging, ignore_errors=True)
        if _current(folder) != name:  # an interrupt may come just after it was made current
            shutil.rmtree(target, ignore_errors=True)
        if isinstance(error, OSError):
            hint = "train with a lake that you may write"
            raise StoreError(f"cannot save the model in {folder}: {error.strerror}", hint) from error
        raise
    for old in sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))[:-KEEP]:
        if old.name != name:
            shutil.rmtree(old, ignore_errors=True)
    return target


def load_model(folder: Path, *, kept: bool = False) -> Model | None:
    """The current model, None if none was trained; with ``kept`` also the answers that it goes on from. Raises
    ``ModelDamaged`` for anything that was not saved so."""
    name = _current(folder)
    if name is None:
        return None
    if not name or "/" in name or name.startswith("."):
        raise ModelDamaged(f"{folder / 'current'} does not name a model", HINT)
    path = folder / name
    try:
        content = _parts(path, "sha256")
        arrays = _arrays(content["calibration.npz"])
        raw = json.loads(content["model.json"])
        calibrations = {
            (g[0], g[1], g[2]): Calibration(h, int(c)) for g, h, c in zip(raw["groups"], arrays["honest"], arrays["count"], strict=True)
        }
        return Model(
            datetime.fromisoformat(raw["trained_at"]),
            datetime.fromisoformat(raw["data_until"]),
            calibrations,
            {(g[0], g[1], g[2]): {k: (float(a), int(b)) for k, (a, b) in v.items()} for g, v in raw["coverage"]},
            {(g[0], g[1]): SlurmRecord(**r) for g, r in raw["slurm"]},
            {str(a["cluster"]): unpack_wait_model(a) for a in _of(content, "waits")},
            {str(a["cluster"]): unpack_record(a) for a in _of(content, "record")},
            name,
            {str(cluster): Standing.of_json(standing) for cluster, standing in raw["standings"].items()},
            load_kept(path) if kept else {},
        )
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, zipfile.BadZipFile) as error:
        raise ModelDamaged(f"{path} is not a whole model ({type(error).__name__})", HINT) from error


def _current(folder: Path) -> str | None:
    try:
        return (folder / "current").read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None


def load_kept(path: Path) -> dict[str, Kept]:
    """The answers kept in a model's folder, by cluster. Raises ``ModelDamaged``."""
    try:
        return {str(a["cluster"]): Kept.of_arrays(a) for a in _of(_parts(path, "sha256_kept"), "kept")}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise ModelDamaged(f"{path} is not a whole model ({type(error).__name__})", HINT) from error


def _parts(path: Path, listed: str) -> dict[str, bytes]:
    """The parts that the manifest lists there, each as it was saved."""
    manifest = json.loads((path / "manifest.json").read_bytes())
    if manifest["format"] != FORMAT or manifest["kind"] != KIND:
        raise ModelDamaged(f"{path} is a model of another kind or version", HINT)
    content = {}
    for part, digest in manifest[listed].items():
        if not PART.fullmatch(part):
            raise ModelDamaged(f"{path} names a part that is none: {part}", HINT)
        content[part] = (path / part).read_bytes()
        if hashlib.sha256(content[part]).hexdigest() != digest:
            raise ModelDamaged(f"{path / part} is not what was saved", HINT)
    return content


def _npz(arrays: dict[str, npt.NDArray[np.generic]]) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]  # its stub takes a flag among the names
    return buffer.getvalue()


def _arrays(content: bytes) -> dict[str, npt.NDArray[np.generic]]:
    """All arrays of a part; Python objects are refused."""
    with np.load(io.BytesIO(content), allow_pickle=False) as loaded:
        return dict(loaded)


def _of(content: dict[str, bytes], kind: str) -> list[dict[str, npt.NDArray[np.generic]]]:
    return [_arrays(content[part]) for part in sorted(content) if part.startswith(kind)]
