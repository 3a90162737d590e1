"""The last whole checkpoint: damage of any kind is told and the one before is taken; hostile manifests lead nowhere."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecast.answers.retries.checkpoints import PARTS, changed_since, find_checkpoint

ALL = dict.fromkeys(PARTS, True)


def save(folder: Path, step: int, data: bytes = b"weights", **more: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"step{step}").write_bytes(data)
    file = {"path": f"step{step}", "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    saved = f"2026-06-01T00:{step % 60:02d}:00Z"
    told = {"queuecast_checkpoint": 1, "step": step, "saved_at": saved, "files": [file], "parts": ALL, **more}
    path = folder / f"step{step}.manifest.json"
    path.write_text(json.dumps(told))
    return path


def test_the_newest_whole_one_is_found(tmp_path: Path) -> None:
    for step in (1, 2, 30):
        save(tmp_path / "below" if step == 2 else tmp_path, step)
    found = find_checkpoint(tmp_path)
    assert found.found is not None
    assert (found.found.step, found.found.resume, found.broken) == (30, str(tmp_path / "step30"), ())
    assert found.found.complete
    assert json.loads(json.dumps(found.as_json()))["found"]["step"] == 30


@pytest.mark.parametrize("damage", ["missing", "cut", "other", "manifest", "version", "folder", "no model"])
def test_damage_is_told_and_the_one_before_taken(tmp_path: Path, damage: str) -> None:
    save(tmp_path, 1)
    path = save(tmp_path, 2)
    data = tmp_path / "step2"
    if damage == "missing":
        data.unlink()
    elif damage == "cut":
        data.write_bytes(b"wei")
    elif damage == "other":
        data.write_bytes(b"Weights")
    elif damage == "manifest":
        path.write_text(path.read_text()[:50])
    elif damage == "version":
        save(tmp_path, 2, queuecast_checkpoint=9)
    elif damage == "folder":
        data.unlink()
        data.mkdir()
    else:
        save(tmp_path, 2, parts={**ALL, "model": False})
    search = find_checkpoint(tmp_path)
    assert search.found is not None
    assert search.found.step == 1
    if damage not in ("manifest", "version"):
        assert search.broken[0][0] == str(path)


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "link", "", ".", 5, None])
def test_a_path_outside_the_folder_is_not_followed(tmp_path: Path, name: object) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (tmp_path / "outside").write_bytes(b"x")
    (folder / "link").symlink_to(tmp_path / "outside")
    (folder / "a.manifest.json").write_text(json.dumps({"queuecast_checkpoint": 1, "files": [{"path": name, "bytes": 1}]}))
    assert find_checkpoint(folder).found is None
    save(folder, 1, resume=name)
    found = find_checkpoint(folder).found
    assert found is None or found.resume == str(folder / "step1")


@settings(max_examples=150)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from("files path bytes sha256 step parts saved_at environment resume code job".split()), inner)
        ),
        max_leaves=12,
    )
)
def test_any_manifest_is_read_without_an_error(told: Any) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "x").write_bytes(b"1")
        whole = {"queuecast_checkpoint": 1, "files": [{"path": "x", "bytes": 1}], **(told if isinstance(told, dict) else {"parts": told})}
        for number, content in enumerate((told, whole)):
            (folder / f"{number}.manifest.json").write_text(json.dumps(content))
        search = find_checkpoint(folder)
        if search.found is not None:
            assert Path(search.found.resume).exists()
            changed_since(search.found, commit=None, work_dir=folder, script="")


def test_checkpoints_of_other_jobs_are_left_alone(tmp_path: Path) -> None:
    save(tmp_path, 1, job="7")
    save(tmp_path, 2, job="8")
    search = find_checkpoint(tmp_path, jobs={"7"})
    assert search.found is not None
    assert (search.found.step, search.others) == (1, 1)
    assert find_checkpoint(tmp_path, jobs={"9"}).found is None
    save(tmp_path, 3)  # names no job
    last = find_checkpoint(tmp_path, jobs={"9"}).found
    assert last is not None
    assert last.step == 3


def test_large_files_are_compared_by_size_and_that_is_told(tmp_path: Path) -> None:
    save(tmp_path, 1, b"x" * 100)
    found = find_checkpoint(tmp_path, hash_bytes=50).found
    assert found is not None
    assert found.unhashed == 1
    assert any("only their sizes" in w for w in changed_since(found, commit=None, work_dir=None, script=""))


def test_what_changed_since_is_told(tmp_path: Path) -> None:
    lock = tmp_path / "requirements.lock"
    lock.write_text("torch==2")
    digest = hashlib.sha256(b"torch==2").hexdigest()
    save(
        tmp_path, 1, code="abcdef1234", image="train.sif", parts={"model": True, "optimizer": False},
        environment={"file": "requirements.lock", "sha256": digest},
    )  # fmt: skip
    found = find_checkpoint(tmp_path).found
    assert found is not None
    assert not found.complete

    def told(commit: str | None, script: str) -> str:
        return " ".join(changed_since(found, commit=commit, work_dir=tmp_path, script=script))

    same = told("abcdef1234", "apptainer exec train.sif x")
    assert "lacks: optimiser" in same
    assert "does not say whether the checkpoint holds: state of the random numbers, position in the data" in same
    assert not any(w in same for w in ("code", "environment", "image"))
    lock.write_text("torch==3")
    other = told("1234567890", "python x")
    assert all(w in other for w in ("commit abcdef1234, now 1234567890", "requirements.lock is another file", "train.sif"))
    lock.unlink()
    assert "cannot be read" in told(None, "train.sif")
    assert "cannot be told here" in told(None, "train.sif")


def test_no_folder_is_no_checkpoint(tmp_path: Path) -> None:
    assert find_checkpoint(tmp_path / "none").found is None
    os.mkfifo(tmp_path / "pipe.manifest.json")
    assert find_checkpoint(tmp_path).found is None
