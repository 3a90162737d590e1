"""Five minutes of a real Slurm 22.05.8 and of a 24.11.5, whole: some fifty pending reasons, every way to end, odd names.

What queuecast stored is compared with what the same cluster said in JSON (``sacct --json``, epoch times), which queuecast
does not read.
"""

from __future__ import annotations

import json
import tarfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from ingest_support import DATA

from queuecast.collect.ingest import IngestSummary, ingest_folder, rebuild
from queuecast.store.lake import Lake

VERSIONS = ("22.05", "24.11")
Read = tuple[Lake, IngestSummary, Path]


@pytest.fixture(scope="module", params=VERSIONS)
def recording(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Read:
    root = tmp_path_factory.mktemp(f"reasons-{request.param}")
    with tarfile.open(DATA / f"reasons-{request.param}.tar.xz") as tar:
        tar.extractall(root / "recording", filter="data")
    lake = Lake.open(root / "lake", create=True)
    return lake, ingest_folder(root / "recording", lake), root / "recording"


def _time(seconds: int) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None


def _states(value: str | list[str]) -> set[str]:
    return {value} if isinstance(value, str) else set(value)


def _number(value: Any) -> int | None:
    return (value["number"] if value["set"] else None) if isinstance(value, dict) else value


def _gpus(job: dict[str, Any]) -> int:
    return sum(t["count"] for t in job["tres"]["requested"] if t["type"] == "gres" and t["name"] == "gpu")


def test_nothing_is_rejected_and_every_file_is_accounted_for(recording: Read) -> None:
    lake, summary, root = recording
    assert (summary.rejected, summary.nulled) == (0, 0)
    assert lake.read("rejects").num_rows == 0
    read = {f.source for f in summary.files}
    told = {note.split(":")[0] for note in summary.notes}
    assert {p.name for p in root.iterdir()} - {"INDEX.txt"} <= read | told


def test_jobs_agree_with_slurms_json(recording: Read) -> None:
    lake, _, root = recording
    stored = {(j["job_id"], j["submit"]): j for j in lake.read("jobs").to_pylist()}
    text = (root / "sacct-json.txt").read_bytes().decode("utf-8", "replace")
    ended = [j for j in json.loads(text)["jobs"] if j["time"]["end"] and not _states(j["state"]["current"]) & {"RUNNING", "PENDING"}]
    assert len(ended) > 90
    for job in ended:
        found = stored[job["job_id"], _time(job["time"]["submission"])]
        name = f"{job['job_id']} {job['name']}"
        assert found["state"] in _states(job["state"]["current"]), name
        assert found["start"] == _time(job["time"]["start"]) or not found["nodes_alloc"], name
        assert found["end"] == _time(job["time"]["end"]), name
        assert found["elapsed_s"] == job["time"]["elapsed"], name
        assert (found["user"], found["account"], found["qos"]) == (job["association"]["user"], job["account"], job["qos"]), name
        assert found["partition"] == job["partition"], name
        limit = _number(job["time"]["limit"])
        if found["limit_kind"] == "limit":
            assert found["limit_s"] == (limit or 0) * 60, name
        assert found["gpus_req"] == _gpus(job), name
        code = job["exit_code"]["return_code"]
        if isinstance(code, dict):  # in 22.05's JSON it is 0 whatever the text says
            assert found["exit_code"] == code["number"], name


def test_names_survive(recording: Read) -> None:
    lake, _, _ = recording
    names = set(lake.read("jobs", ["name"])["name"].to_pylist())
    assert {"a|b|c", "two\nlines", "训练-模型 v2", "café ☕ 🚀", "tab\there", "it's single", "comma, semi; colon: eq=1", "<b>html</b> & co",
            "UNLIMITED", "None", "12_[3-10%2]", "[x]", "(Resources)", "-dash", "#hash", "x" * 255} <= names
    assert any(n and n.startswith("esc\x1b[31m") for n in names)


def test_pending_reasons_survive(recording: Read) -> None:
    lake, _, _ = recording
    queue = lake.read("queue", ["state", "reason"]).to_pylist()
    reasons = {q["reason"] for q in queue if q["state"] == "PENDING"}
    assert {"Priority", "Resources", "Dependency", "DependencyNeverSatisfied", "BeginTime", "JobHeldUser", "JobHeldAdmin",
            "ReqNodeNotAvail", "QOSMaxGRESPerUser", "AssocGrpCpuLimit", "PartitionTimeLimit", "Licenses", "Reservation"} <= reasons
    assert len(reasons) >= 38


def test_read_again_and_rebuilt_from_the_archive_it_is_the_same(recording: Read) -> None:
    lake, _, root = recording
    order = [("submit", "ascending"), ("job_id", "ascending")]
    before = lake.read("jobs").sort_by(order)
    counts = {t: lake.read(t).num_rows for t in ("queue", "nodes", "steps", "estimates", "shares")}
    ingest_folder(root, lake)
    assert lake.refresh().read("jobs").sort_by(order).equals(before)
    rebuild(lake)
    assert lake.refresh().read("jobs").sort_by(order).equals(before)
    assert {t: lake.read(t).num_rows for t in counts} == counts
