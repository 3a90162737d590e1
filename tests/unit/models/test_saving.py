"""Models on disk: exact, whole or refused."""

from __future__ import annotations

import json
import pickle
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from queuecast.models.calibration import Calibration
from queuecast.models.saving import KEEP, Model, ModelDamaged, load_model, save_model
from queuecast.models.slurmrecord import SlurmRecord

T0 = datetime(2026, 6, 1, tzinfo=UTC)


def model(day: int = 0) -> Model:
    honest = Calibration.fit(np.random.default_rng(day).uniform(size=50), np.ones(50, bool))
    return Model(
        T0,
        T0 + timedelta(days=day),
        {("c", "submit", "gpu"): honest, ("c", "pending", "*"): Calibration.none()},
        {("c", "submit", "gpu"): {"0.8": (0.79, 120)}},
        {("c", "*"): SlurmRecord(10, 4, 2, 3600.0, 0.5, 0.5, 0.5)},
    )


def test_what_is_saved_comes_back_exactly(tmp_path: Path) -> None:
    made = model()
    save_model(tmp_path / "models", made)
    back = load_model(tmp_path / "models")
    assert back is not None
    assert back.calibrations.keys() == made.calibrations.keys()
    for group, honest in made.calibrations.items():
        assert (back.calibrations[group].honest == honest.honest).all()
        assert back.calibrations[group].count == honest.count
    assert (back.coverage, back.slurm, back.data_until) == (made.coverage, made.slurm, made.data_until)


def test_none_before_the_first_and_only_a_few_are_kept(tmp_path: Path) -> None:
    assert load_model(tmp_path / "models") is None
    for day in range(KEEP + 3):
        save_model(tmp_path / "models", model(day))
    assert len([p for p in (tmp_path / "models").iterdir() if p.is_dir()]) == KEEP
    back = load_model(tmp_path / "models")
    assert back is not None
    assert back.data_until == T0 + timedelta(days=KEEP + 2)


@pytest.mark.parametrize("harm", ["flip", "cut", "missing", "kind", "pickle", "pointer", "json"])
def test_broken_and_foreign_files_are_refused(tmp_path: Path, harm: str) -> None:
    folder = tmp_path / "models"
    path = save_model(folder, model())
    npz = path / "calibration.npz"
    if harm == "flip":
        raw = bytearray(npz.read_bytes())
        raw[len(raw) // 2] ^= 1
        npz.write_bytes(raw)
    elif harm == "cut":
        (path / "model.json").write_bytes((path / "model.json").read_bytes()[:-5])
    elif harm == "missing":
        npz.unlink()
    elif harm == "kind":
        manifest = json.loads((path / "manifest.json").read_text())
        (path / "manifest.json").write_text(json.dumps({**manifest, "kind": "somebody else's"}))
    elif harm == "pickle":
        npz.write_bytes(pickle.dumps({"honest": [1]}))
    elif harm == "pointer":
        (folder / "current").write_text("../../etc")
    elif harm == "json":
        (path / "manifest.json").write_text("[]")
    with pytest.raises(ModelDamaged, match="train again"):
        load_model(folder)
