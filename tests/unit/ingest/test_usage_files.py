"""What others than Slurm measured: GPU readings and sums by job as files, known by their content, read or rejected."""

from __future__ import annotations

import gzip
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ingest_support import TAKEN, fixture, read, sacct_text, utc

from queuecast.collect.gpulayouts import layout_of, node_of_path
from queuecast.collect.identify import identify
from queuecast.collect.ingest import ingest_folder, rebuild
from queuecast.collect.tables.gpusamples import moment
from queuecast.store.lake import Lake

MIB = 1 << 20
HEAD = "timestamp, index, uuid, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw [W]\n"
ROW = "2026/06/13 09:24:11.123, 0, GPU-8a1b, NVIDIA A100-SXM4-80GB, 87 %, 12345 MiB, 81920 MiB, 301.25 W\n"


def samples(text: str, path: str = "gpu07.csv", **more: Any) -> Any:
    return read("gpu_samples", text, command=("nvidia-smi", path), **more)


def test_nvidia_smi_with_header_and_units() -> None:
    found = samples(HEAD + ROW)
    row = found.one("gpu_samples")
    assert row["observed_at"] == utc("2026-06-13T09:24:11.123")
    assert (row["node"], row["gpu"], row["gpu_name"], row["job_id"]) == ("gpu07", "0", "NVIDIA A100-SXM4-80GB", None)
    assert (row["util"], row["mem_used_bytes"], row["mem_total_bytes"], row["power_w"]) == (0.87, 12345 * MIB, 81920 * MIB, 301.25)
    assert (row["source"], row["generated"]) == ("nvidia-smi", False)
    assert found.all_lines_told()


@pytest.mark.parametrize("text", [
    ROW, ROW.replace(" %", "").replace(" MiB", "").replace(" W", ""),
    HEAD + ROW.replace(" %", "").replace(" MiB", "").replace(" W", ""), "\ufeff" + HEAD + ROW, (HEAD + ROW).replace("\n", "\r\n"),
], ids=["no header", "no header, no units", "no units", "byte order mark", "carriage returns"])
def test_its_other_forms_are_the_same(text: str) -> None:
    assert identify(text.encode()) is not None
    row = samples(text).one("gpu_samples")
    assert (row["util"], row["mem_used_bytes"], row["power_w"]) == (0.87, 12345 * MIB, 301.25)


@pytest.mark.parametrize("word", ["[N/A]", "[Not Supported]", "N/A", "[Unknown Error]", "[GPU requires reset]", ""])
def test_what_is_not_supported_is_null(word: str) -> None:
    found = samples(HEAD + f"2026/06/13 09:24:11.123, 1, MIG-1, A100 MIG 1g.5gb, {word}, 100 MiB, 4864 MiB, {word}\n")
    row = found.one("gpu_samples")
    assert (row["util"], row["power_w"], row["mem_used_bytes"]) == (None, None, 100 * MIB)
    assert found.report.rejected == found.report.nulled == 0


def test_zero_is_zero() -> None:
    row = samples(HEAD + "2026/06/13 09:24:11.123, 1, GPU-1, A100, 0 %, 0 MiB, 4864 MiB, 30 W\n").one("gpu_samples")
    assert (row["util"], row["mem_used_bytes"]) == (0.0, 0)


@pytest.mark.parametrize(("line", "cause"), [
    ("garbage, 0, GPU-1, A100, 1 %, 1 MiB, 2 MiB, 3 W", "not a time"),
    ("2026/06/13 09:24:11.123, , , A100, 1 %, 1 MiB, 2 MiB, 3 W", "no GPU"),
    ("2026/06/13 09:24:11.123, 0, GPU-1, A100, 1 %", "wrong number of fields"),
    ("2026/13/45 09:24:11.123, 0, GPU-1, A100, 1 %, 1 MiB, 2 MiB, 3 W", "not a time"),
])
def test_bad_rows_are_rejects(line: str, cause: str) -> None:
    found = samples(HEAD + ROW + line + "\n")
    assert len(found.rows("gpu_samples")) == 1
    assert found.causes == [cause]
    assert found.report.rejected == 1
    assert found.all_lines_told()


@pytest.mark.parametrize("line", [
    "2026/06/13 09:24:11.123, 0, GPU-1, A100, 187 %, 1 MiB, 2 MiB, 3 W",
    "2026/06/13 09:24:11.123, 0, GPU-1, A100, lots, 1 MiB, 2 MiB, 3 W",
    "2026/06/13 09:24:11.123, 0, GPU-1, A100, 1 MiB, 1 MiB, 2 MiB, 3 W",
])
def test_bad_values_are_null_and_told(line: str) -> None:
    found = samples(HEAD + line + "\n")
    assert found.one("gpu_samples")["util"] is None
    assert found.report.nulled == 1


def test_without_a_node_nothing_can_be_said() -> None:
    found = samples(HEAD + ROW, path="nvidia-smi.csv")
    assert found.rows("gpu_samples") == []
    assert "node" in found.causes[0]


def test_a_column_tells_the_node_and_the_job() -> None:
    text = "timestamp,host,index,utilization.gpu [%],job_id,generated\n2026/06/13 09:24:11.000,gpu08.example.org,3,50 %,77,true\n"
    row = samples(text).one("gpu_samples")
    assert (row["node"], row["gpu"], row["job_id"], row["generated"], row["source"]) == ("gpu08", "3", 77, True, "generated")


@pytest.mark.parametrize(("path", "node"), [
    ("gpu07.csv", "gpu07"), ("gpu07/nvidia-smi.csv", "gpu07"), ("nvidia-smi_gpu07.csv.gz", "gpu07"), ("smi/a100-01.log", "a100-01"),
    ("gpu07-nvidia-smi-2026-06-13.csv", "gpu07"), ("a/b/node3/dcgmi-dmon.txt", "node3"), ("nvidia-smi.csv", None), ("", None),
    ("gpu-samples.csv.gz", None), ("rack2/gpu-usage.csv", "rack2"),
])
def test_the_node_in_a_path(path: str, node: str | None) -> None:
    assert node_of_path(path) == node


def test_joined_files_repeat_their_header() -> None:
    found = samples(HEAD + ROW + HEAD + ROW.replace(", 0,", ", 1,"))
    assert [r["gpu"] for r in found.rows("gpu_samples")] == ["0", "1"]
    assert found.report.rejected == 0


DCGM = "timestamp,Hostname,gpu,UUID,modelName,DCGM_FI_DEV_GPU_UTIL,DCGM_FI_DEV_FB_USED,DCGM_FI_DEV_FB_FREE,hpc_job\n"


@pytest.mark.parametrize("when", [
    "2026-06-13T09:24:11Z", "2026-06-13T11:24:11+02:00", "1781342651", "1781342651000", "2026-06-13 09:24:11"])
def test_dcgm_with_a_column_for_each_field(when: str) -> None:
    found = samples(DCGM + f"{when},gpu07,0,GPU-8a,NVIDIA H100,93,30000,51000,812\n{when},gpu07,1,GPU-8b,NVIDIA H100,0,0,81000,\n")
    first, second = found.rows("gpu_samples")
    assert first["observed_at"] == utc("2026-06-13T09:24:11")
    assert (first["util"], first["mem_used_bytes"], first["mem_total_bytes"], first["job_id"]) == (0.93, 30000 * MIB, 81000 * MIB, 812)
    assert (second["util"], second["job_id"], second["source"]) == (0.0, None, "dcgm")


def test_dcgm_with_a_row_for_each_metric() -> None:
    text = "time,metric,value,instance,gpu,hpc_job\n"
    for metric, value in (("DCGM_FI_DEV_GPU_UTIL", 40), ("DCGM_FI_DEV_FB_USED", 2048), ("DCGM_FI_DEV_GPU_TEMP", 60)):
        text += "".join(f"1781342651,{metric},{value},gpu07:9400,{g},5\n" for g in (0, 1))
    found = samples(text)
    assert [(r["gpu"], r["util"], r["mem_used_bytes"], r["node"]) for r in found.rows("gpu_samples")] == [
        ("0", 0.4, 2048 * MIB, "gpu07"), ("1", 0.4, 2048 * MIB, "gpu07")]


DMON = "#Entity   GPUTL   FBUSD   POWER\nID\nGPU 0     97      1234    250.5\nGPU 1     N/A     5       40\n"


def test_dmon_of_one_moment_is_that_of_its_taking() -> None:
    rows = samples(DMON).rows("gpu_samples")
    assert [(r["observed_at"], r["gpu"], r["util"], r["mem_used_bytes"]) for r in rows] == [
        (TAKEN, "0", 0.97, 1234 * MIB), (TAKEN, "1", None, 5 * MIB)]


def test_dmon_again_and_again_has_no_times() -> None:
    found = samples(DMON + "GPU 0     50      1234    250.5\n")
    assert len(found.rows("gpu_samples")) == 2
    assert found.causes == ["a reading without a time"]


def test_dmon_with_marks_has_them() -> None:
    marks = [f"### {1781342651 + 60 * i} 2026-06-13T09:2{4 + i}:11 dcgmi dmon -c 1\n" for i in (0, 1)]
    found = samples("".join(m + DMON for m in marks), sampled=True)
    times = {r["observed_at"] for r in found.rows("gpu_samples")}
    assert times == {utc("2026-06-13T09:24:11"), utc("2026-06-13T09:24:11") + timedelta(minutes=1)}


def test_local_times_are_of_the_zone() -> None:
    assert samples(HEAD + ROW, zone="Asia/Shanghai").one("gpu_samples")["observed_at"] == utc("2026-06-13T01:24:11.123")


def test_hostile_names_stay_out_of_keys() -> None:
    text = "timestamp,host,index,name,utilization.gpu [%]\n"
    text += "".join(f"2026/06/13 09:24:11.000,{cells},1\n" for cells in ("../../etc,0,x", "gpu07,=cmd(),x", "gpu07,0,=HYPERLINK(1)"))
    found = samples(text, path="nvidia-smi.csv")
    assert [r["gpu"] for r in found.rows("gpu_samples")] == ["0"]
    assert found.report.rejected == 2


@given(st.lists(st.text(alphabet="0123456789/:,. GPU-%MiBW[]NA\x00\t\"#", max_size=80), max_size=6))
@settings(max_examples=150, deadline=None)
def test_any_lines_are_rows_or_rejects(lines: list[str]) -> None:
    found = samples(HEAD + "\n".join(lines))
    assert found.all_lines_told()
    for row in found.rows("gpu_samples"):
        assert row["util"] is None or 0 <= row["util"] <= 1
        assert row["mem_used_bytes"] is None or row["mem_used_bytes"] >= 0


@given(st.text(max_size=40))
def test_any_text_is_a_time_or_none(text: str) -> None:
    found = moment(text, "UTC")
    assert found is None or found.tzinfo is not None
    layout_of(text)
    node_of_path(text)


def test_slurms_own_files_are_none_of_these() -> None:
    for name in ("sacct.txt.gz", "squeue.txt.gz", "sprio.txt.gz", "scontrol-config.txt"):
        guess = identify(fixture(name)[:100_000], name)
        assert guess is not None
        assert guess.kind not in ("job_use", "gpu_samples"), name


USE = "JobID,Submit,cpu_s,mem_peak_bytes,gpus_seen,gpus_used,gpu_util_mean,gpu_util_peak,gpu_mem_peak_bytes,generated\n"


def test_sums_by_job() -> None:
    guess = identify(USE.encode())
    assert guess is not None
    assert guess.kind == "job_use"
    row = read("job_use", USE + "12,2026-06-01T08:00:00,100.5,2G,2,1,0.45,0.9,1073741824,\n").one("job_use")
    assert (row["job_id"], row["job_submit"], row["source"], row["generated"]) == (12, utc("2026-06-01T08:00:00"), "csv", False)
    assert (row["cpu_s"], row["mem_peak_bytes"], row["gpus_seen"], row["gpus_used"]) == (100.5, 2 << 30, 2, 1)
    assert (row["gpu_util_mean"], row["gpu_util_peak"], row["gpu_mem_peak_bytes"], row["energy_joules"]) == (0.45, 0.9, 1 << 30, None)


def test_blank_is_unknown_and_a_mark_is_kept() -> None:
    row = read("job_use", USE + "12,2026-06-01T08:00:00,,,,,,,,true\n").one("job_use")
    assert (row["cpu_s"], row["mem_peak_bytes"], row["gpus_used"]) == (None, None, None)
    assert (row["generated"], row["source"]) == (True, "generated")


def test_without_submit_times_the_moment_stands_in() -> None:
    assert read("job_use", "JobID,cpu_s,mem_peak_bytes\n12,5,6\n").one("job_use")["job_submit"] == TAKEN


@pytest.mark.parametrize(("line", "cause"), [
    ("twelve,2026-06-01T08:00:00,1,1,1,1,0.1,0.1,1,", "not a job id"), ("12,soon,1,1,1,1,0.1,0.1,1,", "no submit time"),
    ("12,2026-06-01T08:00:00,1,1,1,2,0.1,0.1,1,", "more GPUs used than seen"), ("12,2026-06-01T08:00:00,1", "wrong number of fields"),
])
def test_bad_sums_are_rejects(line: str, cause: str) -> None:
    found = read("job_use", USE + line + "\n")
    assert found.rows("job_use") == []
    assert cause in found.causes


@pytest.mark.parametrize("value", ["-1", "1.5", "nonsense", "inf"])
def test_shares_outside_are_null_and_told(value: str) -> None:
    found = read("job_use", USE + f"12,2026-06-01T08:00:00,1,1,1,1,{value},0.1,1,\n")
    assert found.one("job_use")["gpu_util_mean"] is None
    assert found.report.nulled == 1


def test_a_folder_with_all_of_them_twice_and_rebuilt(tmp_path: Path) -> None:
    root = tmp_path / "rec"
    (root / "gpu09").mkdir(parents=True)
    (root / "gpu07.csv").write_text(HEAD + ROW)
    (root / "gpu09" / "nvidia-smi.csv.gz").write_bytes(gzip.compress((HEAD + ROW).encode()))
    (root / "dcgm.csv").write_text(DCGM + "1781342651,gpu08,0,GPU-8a,H100,93,30000,51000,812\n")
    (root / "used.csv").write_text(USE + "12,2026-06-01T08:00:00,1,1,1,1,0.5,0.1,1,\n")
    (root / "notes.csv").write_text("a,b\n1,2\n")
    (root / "taken-at.txt").write_text("2026-06-13T12:00:00\n")
    lake = Lake.open(tmp_path / "lake", create=True)
    for _ in range(2):
        summary = ingest_folder(root, lake, cluster="campus")
        assert summary.rejected == 0
        assert lake.read("job_use").num_rows == 1
        assert sorted(lake.read("gpu_samples")["node"].to_pylist()) == ["gpu07", "gpu08", "gpu09"]
    rebuild(lake)
    assert sorted(lake.read("gpu_samples")["node"].to_pylist()) == ["gpu07", "gpu08", "gpu09"], "the archive keeps the node of a file"
    assert lake.read("job_use").num_rows == 1


SHOWN = ("JobId=41 ArrayJobId=40 ArrayTaskId=7 JobName=train UserId=alice(1001) JobState=RUNNING Reason=None RunTime=00:10:00 "
         "TimeLimit=01:00:00 SubmitTime=2026-06-13T10:00:00 EligibleTime=2026-06-13T10:00:00 StartTime=2026-06-13T11:00:00 "
         "EndTime=2026-06-13T12:00:00 Partition=gpu NodeList=n1 NumNodes=1 NumCPUs=1 NumTasks=1 CPUs/Task=1 TRES=cpu=1,mem=1G,node=1 "
         "Command=/home/alice/my job.sh --epochs 3 WorkDir=/home/alice/run StdErr={} StdIn=/dev/null StdOut={}\n")


def test_files_of_a_job_that_scontrol_shows() -> None:
    row = read("jobs_detail", SHOWN.format("/scratch/%u/%x.err", "slurm-%A_%4a.out")).one("job_files")
    assert (row["job_id"], row["job_submit"]) == (41, utc("2026-06-13T10:00:00"))
    assert (row["command"], row["work_dir"]) == ("/home/alice/my job.sh --epochs 3", "/home/alice/run")
    assert (row["std_out"], row["std_err"]) == ("/home/alice/run/slurm-40_0007.out", "/scratch/alice/train.err")


def test_files_of_a_job_that_sacct_names() -> None:
    text = sacct_text({"StdOut": "logs/%j-%%.out", "StdErr": ""}, {"JobID": "101", "JobIDRaw": "101", "StdOut": "", "StdErr": ""})
    row = read("sacct", text).one("job_files")
    assert (row["job_id"], row["std_out"], row["std_err"], row["command"]) == (100, "/home/alice/logs/100-%.out", None, None)


def test_a_job_name_does_not_choose_the_folder() -> None:
    text = sacct_text({"JobName": "../../etc/x", "StdOut": "%x.out", "StdErr": "%N.err"})
    row = read("sacct", text).one("job_files")
    assert (row["std_out"], row["std_err"]) == ("/home/alice/%x.out", "/home/alice/%N.err")


def test_a_script_once_told_stays_known(tmp_path: Path) -> None:
    """sacct is read later, and of a job that is over again and again: it does not know the script."""
    root = tmp_path / "rec"
    root.mkdir()
    (root / "jobs.txt").write_text(SHOWN.format("e", "o"))
    (root / "taken-at.txt").write_text("2026-06-13T12:00:00\n")
    lake = Lake.open(tmp_path / "lake", create=True)
    ingest_folder(root, lake, cluster="campus")
    (root / "jobs.txt").unlink()
    (root / "sacct.txt").write_text(sacct_text({"JobID": "40_7", "JobIDRaw": "41", "Submit": "2026-06-13T10:00:00", "StdOut": "o"}))
    (root / "taken-at.txt").write_text("2026-06-14T12:00:00\n")
    ingest_folder(root, lake)
    (row,) = lake.read("job_files").to_pylist()
    assert row["command"] == "/home/alice/my job.sh --epochs 3"
