"""The demo recording's invented use: made anew it is the same, it fits the recording, and it is marked."""

from __future__ import annotations

import gzip
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.compute as pc
import pytest

from queuecast.collect.ingest import ingest_folder, rebuild
from queuecast.store.lake import Lake
from queuecast.usage.idle import idle_now
from queuecast.usage.measure import uses_of

ROOT = Path(__file__).parents[3]
CAMPUS = ROOT / "data" / "campus-22.05"
AT = datetime(2026, 6, 13, 9, 24, 11, tzinfo=UTC)
MADE = ("use.csv.gz", "gpu-samples.csv.gz")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Accounting, configuration and the invented use."""
    folder = tmp_path_factory.mktemp("demo")
    for name in ("sacct.txt.gz", "scontrol-config.txt", "scontrol-partitions.txt", "taken-at.txt", *MADE):
        shutil.copy(CAMPUS / name, folder / name)
    lake = Lake.open(folder / "lake", create=True)
    summary = ingest_folder(folder, lake)
    assert summary.rejected == summary.nulled == 0
    return lake


def test_made_again_it_is_the_same(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(ROOT / "data" / "generate_use.py"), str(CAMPUS), str(tmp_path)], check=True)
    for name in MADE:
        assert gzip.decompress((tmp_path / name).read_bytes()) == gzip.decompress((CAMPUS / name).read_bytes()), name


def test_it_is_small() -> None:
    assert sum((CAMPUS / name).stat().st_size for name in MADE) < 1_000_000


def test_every_ended_job_has_its_use_and_all_of_it_is_marked(demo: Lake) -> None:
    rows = uses_of(demo, "campus", since=AT - timedelta(days=30), at=AT).rows
    ended = rows.filter(rows["final"])
    assert ended.num_rows > 7000
    for column in ("cpu_s", "mem_peak_bytes"):
        assert ended[column].null_count == 0
    assert pc.all(ended["generated"]).as_py()
    with_gpus = ended.filter(pc.greater(ended["gpus_alloc"], 0))
    assert with_gpus["gpu_util_mean"].null_count == 0
    assert ended.filter(pc.equal(ended["gpus_alloc"], 0))["gpu_util_mean"].null_count > 2000
    assert set(demo.read("job_use")["generated"].to_pylist()) == set(demo.read("gpu_samples")["generated"].to_pylist()) == {True}


def test_it_keeps_to_what_was_given(demo: Lake) -> None:
    rows = uses_of(demo, "campus", since=AT - timedelta(days=30), at=AT).rows
    final = rows.filter(rows["final"])
    for used, most in (("mem_peak_bytes", "mem_alloc_bytes"), ("gpus_used", "gpus_alloc"), ("gpu_mem_peak_bytes", "gpu_mem_total_bytes")):
        assert not pc.any(pc.greater(final[used], final[most])).as_py(), used
    assert pc.max(final["cpu_share"]).as_py() <= 1.0
    assert set(final["cpu_quality"].to_pylist()) == {"ok"}
    killed = demo.read("jobs", ["state", "exit_code"])
    assert pc.sum(pc.and_(pc.equal(killed["state"], "FAILED"), pc.equal(killed["exit_code"], 9))).as_py() > 50


def test_all_kinds_are_there(demo: Lake) -> None:
    rows = uses_of(demo, "campus", since=AT - timedelta(days=30), at=AT).rows
    r = rows.filter(pc.and_(rows["final"], pc.greater(rows["gpus_alloc"], 0))).to_pylist()
    several = [x for x in r if x["gpus_alloc"] > 1]
    assert sum(x["gpus_used"] == 1 for x in several) > 100, "several GPUs of which one works"
    assert sum(x["gpus_used"] == 0 for x in r) > 50, "never touched"
    assert sum(x["gpu_mem_peak_bytes"] < 0.15 * x["gpu_mem_total_bytes"] and x["gpu_util_mean"] > 0.2 for x in r) > 100, "little memory"
    assert sum(x["gpu_util_mean"] < 0.15 and x["cpu_share"] > 0.85 for x in r) > 100, "held up by the CPU"
    assert sum(x["gpu_util_mean"] > 0.7 for x in r) > 1000, "well used"
    little = [x for x in rows.to_pylist() if x["final"] and x["mem_peak_bytes"] < 0.3 * x["mem_alloc_bytes"]]
    assert len(little) > 2000, "more memory asked for than used"


def test_some_running_jobs_have_been_idle_for_hours(demo: Lake) -> None:
    found = idle_now(demo, "campus", AT, 4)
    assert len(found) >= 2
    assert all(i.generated and i.idle_s >= 4 * 3600 and i.gpus for i in found)


def test_read_again_it_adds_nothing(demo: Lake, tmp_path: Path) -> None:
    before = {t: demo.read(t).num_rows for t in ("jobs", "job_use", "gpu_samples")}
    copy = tmp_path / "lake"
    shutil.copytree(demo.path, copy)
    again = Lake.open(copy)
    folder = tmp_path / "more"
    folder.mkdir()
    for name in (*MADE, "taken-at.txt"):
        shutil.copy(CAMPUS / name, folder / name)
    seen = dict(again.manifest.state["seen"]["campus"])
    assert "only cluster" in " ".join(ingest_folder(folder, again).notes)
    assert again.clusters == ["campus"]
    assert again.manifest.state["seen"]["campus"] == seen, "a reading of a GPU is no look at the queue"
    assert not {"job_use", "gpu_samples"} & seen.keys()
    assert {t: again.read(t).num_rows for t in before} == before
    rebuild(again)
    assert {t: again.read(t).num_rows for t in before} == before
