"""Folders of recorded output into a lake: what is found, what is told, and that doing it twice changes nothing."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import shutil
from pathlib import Path

import pytest
from ingest_support import DATA, fixture, sacct_text, step, utc

from queuecast.collect.archive import archived
from queuecast.collect.ingest import ingest_captures, ingest_folder, rebuild
from queuecast.collect.recorded import RecordedFolder
from queuecast.collect.source import Capture, SourceFailure
from queuecast.errors import ConfigError, NoDataError, SlurmDown
from queuecast.store.lake import Lake


def lake(tmp_path: Path) -> Lake:
    return Lake.open(tmp_path / "lake", create=True)


def folder(tmp_path: Path, **files: bytes | str) -> Path:
    root = tmp_path / "rec"
    root.mkdir(exist_ok=True)
    for name, data in files.items():
        (root / name.replace("__", ".")).write_bytes(data.encode() if isinstance(data, str) else data)
    return root


def captures(root: Path, **more: str) -> dict[str, Capture]:
    found = RecordedFolder(root, **more).captures()  # type: ignore[arg-type]  # zone and cluster are texts
    return {c.source_file: c for c in found if isinstance(c, Capture)}


@pytest.mark.parametrize("version", ["22.05", "24.11"])
def test_recorded_versions_whole(tmp_path: Path, version: str) -> None:
    """Every recorded form is read or told; nothing is rejected."""
    db = lake(tmp_path)
    summary = ingest_folder(DATA / f"slurm-{version}", db)
    assert summary.rejected == summary.nulled == 0
    assert db.read("rejects").num_rows == 0
    unread = {f for f, _ in summary.kept}
    assert {"sacct-p.txt", "sacct-n-P-names.txt", "sinfo-s.txt", "sprio-norm.txt", "squeue-steps.txt",
            "sacctmgr-tres.txt"} <= unread
    for table in ("jobs", "steps", "queue", "estimates", "nodes", "partitions", "reservations", "priorities", "shares", "qos",
                  "associations",
                  "events", "settings"):
        assert db.read(table).num_rows > 0, table
    jobs = db.read("jobs").to_pylist()
    keys = [(j["cluster"], j["job_id"], j["submit"]) for j in jobs]
    assert len(keys) == len(set(keys))
    train = next(j for j in jobs if j["job_id"] == 2)
    assert train["user"] == "alice", "the form with times only must not replace the full one"
    assert {j["cluster"] for j in jobs} == {"virt" if version == "22.05" else "virt24"}


def test_H05_twice_is_once(tmp_path: Path) -> None:
    db = lake(tmp_path)
    root = folder(tmp_path, sacct__txt=sacct_text({}, step("batch"), {"JobID": "101", "JobIDRaw": "101"}))
    os.utime(root / "sacct.txt", (1_780_000_000, 1_780_000_000))
    ingest_folder(root, db)
    first = db.read("jobs")
    ingest_folder(root, db)
    rebuild(db)
    assert db.refresh().read("jobs").equals(first)
    assert db.read("steps").num_rows == 1
    assert len(list(archived(db.path / "archive"))) == 1


def test_rejects_are_kept_with_their_file_and_line(tmp_path: Path) -> None:
    db = lake(tmp_path)
    root = folder(tmp_path, sacct__txt=sacct_text({}, {"JobID": "", "JobIDRaw": ""}, {"Start": "soon"}))
    summary = ingest_folder(root, db)
    assert (summary.rejected, summary.nulled) == (1, 1)
    rows = {r["cause"]: r for r in db.read("rejects").to_pylist()}
    assert rows["not a job id"]["line"] == 3
    assert rows["Start: not a time"]["raw"] == "Start=soon"
    assert rows["not a job id"]["source_file"].startswith("campus/")
    assert rows["not a job id"]["kind"] == "jobs"


def test_without_the_archive(tmp_path: Path) -> None:
    db = lake(tmp_path)
    ingest_folder(folder(tmp_path, sacct__txt=sacct_text({})), db, archive=False)
    assert db.read("jobs").num_rows == 1
    assert not (db.path / "archive").exists()


def test_an_error_leaves_the_lake_as_it_was(tmp_path: Path) -> None:
    db = lake(tmp_path)
    ingest_folder(folder(tmp_path, sacct__txt=sacct_text({})), db)

    def broken() -> object:
        raise OSError("disk")

    good = next(iter(captures(folder(tmp_path, sacct__txt=sacct_text({"JobID": "7", "JobIDRaw": "7"}))).values()))
    bad = Capture("squeue", good.taken_at, "campus", "UTC", (), None, broken)  # type: ignore[arg-type]  # it never returns
    with pytest.raises(OSError, match="disk"):
        ingest_captures([good, bad], db, archive=False)
    assert [j["job_id"] for j in db.refresh().read("jobs").to_pylist()] == [100]


def test_failures_of_a_source_are_told_and_the_rest_goes_on(tmp_path: Path) -> None:
    db = lake(tmp_path)
    good = next(iter(captures(folder(tmp_path, sacct__txt=sacct_text({}))).values()))
    failure = SourceFailure("squeue", "campus", ("squeue",), SlurmDown("no answer"), good.taken_at)
    seen: list[tuple[str, int]] = []
    summary = ingest_captures([failure, good], db, progress=lambda name, rows: seen.append((name, rows)))
    assert summary.failures == [failure]
    assert summary.rows["jobs"] == 1
    assert seen[-1] == ("sacct.txt", 1)


def test_taken_at(tmp_path: Path) -> None:
    root = folder(tmp_path, **{"sacct__txt": sacct_text({}), "taken-at__txt": "2026-06-13T09:24:11\n", "squeue__txt":
                               "### 1780278567 2026-06-01T01:49:27 squeue\nJOBID|STATE\n1|RUNNING\n"})
    found = captures(root)
    assert found["sacct.txt"].taken_at == utc("2026-06-13T09:24:11")
    assert found["squeue.txt"].taken_at == utc("2026-06-01T01:49:27")
    assert found["squeue.txt"].sampled
    assert captures(root, zone="Europe/Berlin")["sacct.txt"].taken_at == utc("2026-06-13T07:24:11")
    (root / "taken-at.txt").unlink()
    os.utime(root / "sacct.txt", (1_780_000_000, 1_780_000_000))
    source = RecordedFolder(root)
    found = {c.source_file: c.taken_at.timestamp() for c in source.captures() if isinstance(c, Capture)}
    assert found["sacct.txt"] == 1_780_000_000
    assert "sacct.txt" in source.assumed
    assert any("assumed from their dates" in n for n in source.notes)
    (root / "taken-at.txt").write_text("last week")
    with pytest.raises(ConfigError):
        captures(root)


def test_zone_and_cluster(tmp_path: Path) -> None:
    root = folder(tmp_path, sacct__txt=sacct_text({"Cluster": "alps"}), squeue__txt="JOBID|STATE\n1|RUNNING\n")
    assert {(c.zone, c.cluster) for c in captures(root).values()} == {("UTC", "alps")}
    assert {c.cluster for c in captures(root, cluster="mine").values()} == {"mine"}
    (root / "zone.txt").write_text("Europe/Zurich\n")
    assert {c.zone for c in captures(root).values()} == {"Europe/Zurich"}
    (root / "zone.txt").unlink()
    (root / "queuecast.toml").write_text('[recorded]\nzone = "Asia/Shanghai"\ncluster = "tide"\n')
    assert {(c.zone, c.cluster) for c in captures(root).values()} == {("Asia/Shanghai", "tide")}
    with pytest.raises(ConfigError):
        captures(root, zone="Mars/Olympus")


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress], ids=["gz", "bz2", "xz"])
def test_compressed_whatever_its_name(tmp_path: Path, pack: object) -> None:
    assert callable(pack)
    db = lake(tmp_path)
    ingest_folder(folder(tmp_path, data__bin=pack(sacct_text({}).encode())), db)
    assert db.read("jobs").num_rows == 1


def test_names_do_not_decide(tmp_path: Path) -> None:
    root = folder(tmp_path, squeue__txt=sacct_text({}), notes__md="JOBID|STATE\n1|RUNNING\n",
                  conf=fixture("slurm-22.05/sacctmgr-qos.txt"))
    assert {n: c.kind for n, c in captures(root).items()} == {"squeue.txt": "sacct", "notes.md": "squeue", "conf": "qos"}


PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(range(256)) * 20


@pytest.mark.parametrize(("files", "says"), [
    ({}, "it holds no files"), ({"a__png": PNG, "b__png": PNG}, "2 files, not text"),
    ({"letter__txt": "Dear all,\nthe cluster is down.\n", "x__py": "import os\nprint(os)\n"},
     "not Slurm's output"), ({"a__txt": b""}, "empty"),
])
def test_folders_without_slurm_output(tmp_path: Path, files: dict[str, bytes], says: str) -> None:
    db = lake(tmp_path)
    with pytest.raises(NoDataError, match=says):
        ingest_folder(folder(tmp_path, **files), db)
    with pytest.raises(NoDataError, match="there is no"):
        ingest_folder(tmp_path / "nowhere", db)


def test_pictures_beside_the_data_are_skipped_and_told(tmp_path: Path) -> None:
    db = lake(tmp_path)
    summary = ingest_folder(folder(tmp_path, sacct__txt=sacct_text({}), chart__png=PNG), db)
    assert summary.rows["jobs"] == 1
    assert "chart.png: skipped, not text" in summary.notes


def test_one_file_and_folders_below(tmp_path: Path) -> None:
    root = folder(tmp_path, sacct__txt=sacct_text({}))
    assert list(captures(root / "sacct.txt")) == ["sacct.txt"]
    (root / "deep").mkdir()
    shutil.move(root / "sacct.txt", root / "deep" / "more.txt")
    assert list(captures(root)) == ["deep/more.txt"]


def test_reservation_of_scontrol_stands_over_that_of_sacctmgr(tmp_path: Path) -> None:
    root = folder(tmp_path, **{"a__txt": fixture("slurm-22.05/scontrol-show-reservation.txt"),
                               "b__txt": fixture("slurm-22.05/sacctmgr-reservation.txt"),
                               "taken-at__txt": "2026-11-30T16:50:12\n"})
    db = lake(tmp_path)
    ingest_folder(root, db, cluster="virt")
    rows = {r["reservation"]: r for r in db.read("reservations").to_pylist()}
    assert set(rows) == {"course101", "workshop", "maintenance", "shortlived"}
    assert rows["course101"]["users"] == "dave,carol"


def test_gpu_tracking_is_remembered_from_the_configuration(tmp_path: Path) -> None:
    plain = {"ReqTRES": "cpu=4,mem=16G,node=1", "AllocTRES": "cpu=4,mem=16G,node=1"}
    db = lake(tmp_path)
    config = "Configuration data as of 2026-06-13T09:55:21\nAccountingStorageTRES = cpu,mem,gres/gpu\nClusterName = campus\n"
    ingest_folder(folder(tmp_path, config__txt=config, sacct__txt=sacct_text(plain)), db)
    assert db.read("jobs").to_pylist()[0]["gpus_alloc"] == 0
    again = folder(tmp_path, sacct__txt=sacct_text(plain | {"JobID": "101", "JobIDRaw": "101"}))
    (again / "config.txt").unlink()
    ingest_folder(again, db)
    assert [j["gpus_alloc"] for j in db.read("jobs").to_pylist()] == [0, 0]
