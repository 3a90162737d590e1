"""sacct, case by case. The number of the case stands in each test's id."""

from __future__ import annotations

from typing import Any

import pytest
from ingest_support import SACCT, job, read, sacct_text, step, utc

NOT_STARTED = {"Start": "Unknown", "End": "Unknown", "State": "PENDING", "NodeList": "None assigned", "AllocTRES": "",
               "AllocNodes": "0",
               "AllocCPUS": "0", "Elapsed": "00:00:00", "ElapsedRaw": "0", "TotalCPU": "00:00:00"}


def marks(row: dict[str, Any]) -> set[str]:
    return set((row["anomalies"] or "").split(",")) - {""}


CASES: list[tuple[str, dict[str, str], dict[str, Any]]] = [
    ("A01 fraction", {"TotalCPU": "00:00.181"}, {"total_cpu_s": 0.181}),
    ("A01 minutes", {"TotalCPU": "04:02.123"}, {"total_cpu_s": 242.123}),
    ("A01 hours", {"TotalCPU": "01:15:11"}, {"total_cpu_s": 4511.0}),
    ("A01 days", {"TotalCPU": "451-06:00:24"}, {"total_cpu_s": 38988024.0}),
    ("A04 unlimited", {"Timelimit": "UNLIMITED", "TimelimitRaw": "UNLIMITED"}, {"limit_s": None, "limit_kind": "unlimited"}),
    ("A04 partition", {"Timelimit": "Partition_Limit", "TimelimitRaw": "Partition_Limit"}, {"limit_s": None,
        "limit_kind": "partition"}),
    ("A04 raw is minutes", {"TimelimitRaw": "600"}, {"limit_s": 36000, "limit_kind": "limit"}),
    ("A04 blank", {"Timelimit": "", "TimelimitRaw": ""}, {"limit_s": None, "limit_kind": None}),
    ("A05 None", NOT_STARTED | {"Start": "None", "State": "CANCELLED", "End": "2026-06-01T09:30:00"},
     {"start": None, "end": utc("2026-06-01T09:30:00"), "completeness": 3}),
    ("A05 Unknown", NOT_STARTED, {"start": None, "end": None, "completeness": 1, "cpus_alloc": None, "nodes_alloc": None}),
    ("A10 suspended", {"End": "2026-06-01T11:30:00", "Suspended": "00:30:00", "ElapsedRaw": "7200", "Elapsed": "02:00:00"},
     {"elapsed_s": 7200, "suspended_s": 1800}),
    ("A14 deadline is not the step's", {}, {"end": utc("2026-06-01T10:00:00")}),
    ("B01 generic and typed", {"AllocTRES": "billing=10,cpu=10,gres/gpu:a100=1,gres/gpu=1,mem=100G,node=1"},
     {"gpus_alloc": 1, "gpu_type_alloc": "a100"}),
    ("B02 typed only", {"AllocTRES": "billing=1,cpu=1,gres/gpu:p100=1,mem=125G,node=1"}, {"gpus_alloc": 1,
        "gpu_type_alloc": "p100"}),
    ("B04 generic larger", {"AllocTRES": "gres/gpu=3,gres/gpu:a100=2"}, {"gpus_alloc": 3, "gpu_type_alloc": "mixed"}),
    ("B13 MIG", {"AllocTRES": "gres/gpu:a100_3g.20gb=1,gres/gpu=1"}, {"gpus_alloc": 1, "gpu_type_alloc": "a100_3g.20gb"}),
    ("B14 case", {"AllocTRES": "gres/gpu:NVlink_A100=4"}, {"gpus_alloc": 4, "gpu_type_alloc": "nvlink_a100"}),
    ("B16 only looks like GPUs", {"AllocTRES": "cpu=2,gres/gpumem=36266M,gres/gpuutil=100,node=1"}, {"gpus_alloc": 0}),
    ("B20 zero memory", {"ReqMem": "0", "ReqTRES": "cpu=4,node=1"}, {"mem_req_bytes": None}),
    ("B25 any order", {"AllocTRES": "node=1,cpu=40,mem=2.50G,billing=40"}, {"mem_alloc_bytes": 2684354560}),
    ("B34 two memories", {"ReqMem": "10G", "ReqTRES": "cpu=1,mem=10G,node=1", "AllocTRES": "cpu=1,mem=16G,node=1"},
     {"mem_req_bytes": 10 << 30, "mem_alloc_bytes": 16 << 30}),
    ("C01 pending array", NOT_STARTED | {"JobID": "100_[5-100]"},
     {"job_id": 100, "array_job_id": 100, "array_task": None, "array_tasks": 96, "array_tasks_exact": True}),
    ("C02 throttle", NOT_STARTED | {"JobID": "100_[9201-10000%500]"}, {"array_tasks": 800, "array_throttle": 500}),
    ("C04 cut list", NOT_STARTED | {"JobID": "100_[1034,1150,1352,...]"}, {"array_tasks": 3, "array_tasks_exact": False}),
    ("C05 raw id", {"JobID": "91_7", "JobIDRaw": "100"}, {"job_id": 100, "job_id_text": "91_7", "array_job_id": 91,
                                                          "array_task": 7}),
    ("C07 het", {"JobID": "100+1", "JobIDRaw": "101"}, {"job_id": 101, "het_job_id": 100, "het_offset": 1}),
    ("D01 by uid", {"State": "CANCELLED by 1000"}, {"state": "CANCELLED", "cancelled_by": 1000}),
    ("D01 by root", {"State": "CANCELLED by 0"}, {"state": "CANCELLED", "cancelled_by": 0}),
    ("D01 by nobody told", {"State": "CANCELLED"}, {"state": "CANCELLED", "cancelled_by": None}),
    ("D01 cut", {"State": "CANCELLED+"}, {"state": "CANCELLED", "cancelled_by": None}),
    ("D04 out of memory", {"State": "OUT_OF_MEMORY", "ExitCode": "0:125"}, {"state": "OUT_OF_MEMORY", "exit_code": 0,
        "exit_signal": 125}),
    ("D10 reason with nodes", {"Reason": "(ReqNodeNotAvail, UnavailableNodes:gpu[01-03],cpu7)"}, {"reason": "ReqNodeNotAvail"}),
    ("D16 None", {"Reason": "None"}, {"reason": None}),
    ("D20 exit", {"ExitCode": "1:0", "DerivedExitCode": "143:0"},
     {"exit_code": 1, "exit_signal": 0, "derived_exit_code": 143, "derived_exit_signal": 0}),
    ("G05 multibyte", {"JobName": "训练_第1次 aàb 🚀"}, {"name": "训练_第1次 aàb 🚀"}),
    ("G10 null spellings", {"Account": "(null)", "Comment": "(null)", "JobName": "None"}, {"account": None, "comment": None,
        "name": "None"}),
    ("G16 escape", {"JobName": "esc\x1b[31mred\ttab"}, {"name": "esc\x1b[31mred\ttab"}),
    ("H14 no nodes", {"NodeList": "None assigned", "State": "RUNNING", "End": "Unknown"}, {"node_list": None, "completeness": 2}),
    ("I02 begin", {"Eligible": "2026-06-01T08:55:00"}, {"eligible": utc("2026-06-01T08:55:00")}),
    ("I05 not eligible", NOT_STARTED | {"Eligible": "Unknown"}, {"eligible": None, "completeness": 1}),
    ("I17 pending at the end", NOT_STARTED, {"state": "PENDING", "start": None}),
    ("flags main", {"Flags": "SchedMain,StartRecieved"}, {"scheduled_by": "main"}),
    ("flags backfill", {"Flags": "SchedBackfill,StartReceived"}, {"scheduled_by": "backfill"}),
    ("flags submit", {"Flags": "SchedSubmit"}, {"scheduled_by": "submit"}),
    ("flags none", {"Flags": "StartRecieved"}, {"scheduled_by": None}),
    ("DBIndex beyond 63 bits", {"DBIndex": "10968104258476505088"}, {"db_index": 10968104258476505088}),
    ("epoch times", {"Submit": "1780300800", "Start": "1780304400"}, {"submit": utc("2026-06-01T08:00:00"),
        "start": utc("2026-06-01T09:00:00")}),
]


@pytest.mark.parametrize(("fields", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_values(fields: dict[str, str], expected: dict[str, Any]) -> None:
    row = job(fields)
    assert {k: row[k] for k in expected} == expected


ANOMALIES: list[tuple[str, dict[str, str], set[str], dict[str, Any]]] = [
    ("A11 clamped end is kept", {"Start": "2026-06-01T12:00:05", "End": "2026-06-01T12:00:00", "Elapsed": "00:00:00",
                                 "ElapsedRaw": "0"},
     {"end_before_start"}, {"elapsed_s": 0}),
    ("A13 over the limit", {"TimelimitRaw": "1", "Timelimit": "00:01:00", "State": "TIMEOUT", "ElapsedRaw": "87"},
     {"limit_exceeded"},
     {"state": "TIMEOUT"}),
    ("C17 step before job", {"State": "PENDING", "Eligible": "Unknown", "Partition": "", "End": "Unknown"}, {"incomplete"},
     {"completeness": 1}),
    ("D02 old form", {"State": "CANCELLED by 1001", "Start": "2026-06-01T17:39:37", "End": "2026-06-01T17:39:37",
                      "Elapsed": "00:00:00",
                      "ElapsedRaw": "0", "NodeList": "None assigned", "AllocTRES": ""},
     {"never_started_old_form"}, {"start": None, "cpus_alloc": None, "end": utc("2026-06-01T17:39:37")}),
    ("D22 revoked", {"State": "REVOKED"}, {"revoked"}, {}),
    ("D23 repaired runaway", {"Start": "2026-06-01T09:00:00", "End": "2026-06-01T09:00:00", "Elapsed": "00:00:00",
                              "ElapsedRaw": "0", "TotalCPU": ""},
     {"runaway_repaired"}, {"state": "COMPLETED"}),
    ("I11 eligible after start", {"Eligible": "2026-06-01T09:00:05"}, {"eligible_after_start"}, {}),
    ("future", {"Submit": "2027-01-01T00:00:00", "Eligible": "2027-01-01T00:00:00", "Start": "2027-01-01T00:00:00",
                "End": "2027-01-01T01:00:00"},
     {"future"}, {}),
]


@pytest.mark.parametrize(("fields", "expected", "values"), [c[1:] for c in ANOMALIES], ids=[c[0] for c in ANOMALIES])
def test_anomalies(fields: dict[str, str], expected: set[str], values: dict[str, Any]) -> None:
    row = job(fields)
    assert marks(row) == expected
    assert {k: row[k] for k in values} == values


def test_usual_row_has_no_anomaly() -> None:
    row = job()
    assert row["anomalies"] is None
    assert row["completeness"] == 3
    assert row["gpu_type_req"] is None
    assert row["source"] == "sacct"


def test_B05_untracked_gpus_are_unknown() -> None:
    plain = {"ReqTRES": "cpu=4,mem=16G,node=1", "AllocTRES": "cpu=4,mem=16G,node=1"}
    row = job(plain)
    assert (row["gpus_req"], row["gpus_alloc"]) == (None, None)
    rows = read("sacct", sacct_text(plain, {"JobID": "101", "JobIDRaw": "101"})).rows("jobs")
    assert [r["gpus_alloc"] for r in rows] == [0, 1]
    assert job(plain, tracked=True)["gpus_req"] == 0


def test_B09_gres_columns_of_old_versions() -> None:
    row = job({"ReqGRES": "gpu:2", "AllocGRES": "gpu:k80:2", "ReqTRES": "cpu=8,node=2", "AllocTRES": "cpu=8,node=2",
               "ReqNodes": "2", "AllocNodes": "2"})
    assert (row["gpus_req"], row["gpus_alloc"]) == (4, 4)


@pytest.mark.parametrize(("text", "expected"), [("10000Mn", 2 * 10000 << 20), ("4Gc", 8 * 4 << 30), ("16G", 16 << 30)])
def test_B19_memory_per_node_or_cpu(text: str, expected: int) -> None:
    row = job({"ReqMem": text, "ReqTRES": "", "ReqNodes": "2", "ReqCPUS": "8"})
    assert row["mem_req_bytes"] == expected


def test_B19_steps_do_not_change_the_request() -> None:
    found = read("sacct", sacct_text({"ReqMem": "10000Mn", "ReqTRES": ""}, step("batch", ReqMem="10000Mn"), step("0", ReqMem="")))
    assert found.one("jobs")["mem_req_bytes"] == 10000 << 20


def test_A14_E05_E14_usage_of_steps() -> None:
    found = read("sacct", sacct_text(
        {"State": "TIMEOUT", "TotalCPU": "00:00:00"},
        step("batch", State="CANCELLED", End="2026-06-01T10:00:01", MaxRSS="6044K", TotalCPU="00:01.500"),
        step("extern", MaxRSS="0", TotalCPU="00:00:00"),
        step("0", MaxRSS="39503310K", TotalCPU="10:00.000"),
        step("1", MaxRSS="39538757K", TotalCPU="00:20:00")))
    row = found.one("jobs")
    assert (row["state"], row["end"]) == ("TIMEOUT", utc("2026-06-01T10:00:00"))
    assert row["max_rss_bytes"] == 39538757 * 1024
    assert row["total_cpu_s"] == pytest.approx(1.5 + 600 + 1200)
    steps = {s["step"]: s for s in found.rows("steps")}
    assert set(steps) == {"batch", "extern", "0", "1"}
    assert steps["extern"]["max_rss_bytes"] == 0
    assert {s["job_submit"] for s in steps.values()} == {utc("2026-06-01T08:00:00")}
    assert {s["job_id"] for s in steps.values()} == {100}


def test_E08_cpu_time_from_usage() -> None:
    found = read("sacct", sacct_text({"TotalCPU": "00:00:00"}, step("batch", TotalCPU="00:00:00",
        TRESUsageInTot="cpu=00:25:00,mem=10M")))
    assert found.one("jobs")["total_cpu_s"] == 1500.0
    assert found.one("steps")["total_cpu_s"] == 1500.0


def test_E07_not_measured_is_null() -> None:
    found = read("sacct", sacct_text({"TotalCPU": ""}, step("batch", MaxRSS="", TotalCPU="")))
    assert found.one("jobs")["max_rss_bytes"] is None
    assert found.one("jobs")["total_cpu_s"] is None


def test_C08_step_names() -> None:
    found = read("sacct", sacct_text({}, step("interactive"), step("extern"), step("4294967291"), step("0")))
    assert sorted(s["step"] for s in found.rows("steps")) == ["0", "batch", "extern", "interactive"]


def test_C10_C11_requeued_attempts_are_rows() -> None:
    first = {"State": "NODE_FAIL", "DBIndex": "1"}
    again = {"Submit": "2026-06-01T10:00:00", "Eligible": "2026-06-01T10:02:01", "Start": "2026-06-01T11:00:00",
             "End": "2026-06-01T12:00:00",
             "DBIndex": "2"}
    found = read("sacct", sacct_text(first, step("batch", DBIndex="1"), again, step("batch", DBIndex="2",
        Start="2026-06-01T11:00:00")))
    rows = found.rows("jobs")
    assert [(r["job_id"], r["submit"]) for r in rows] == [(100, utc("2026-06-01T08:00:00")), (100, utc("2026-06-01T10:00:00"))]
    assert [r["anomalies"] for r in rows] == [None, None]
    assert [s["job_submit"] for s in found.rows("steps")] == [r["submit"] for r in rows]


def test_C16_resized() -> None:
    first = {"ReqCPUS": "8", "AllocCPUS": "8"}
    second = {"Submit": "2026-06-01T10:00:00", "Eligible": "2026-06-01T10:00:00", "Start": "2026-06-01T10:00:00",
              "End": "2026-06-01T11:00:00"}
    rows = read("sacct", sacct_text(first, second)).rows("jobs")
    assert [marks(r) for r in rows] == [set(), {"resized"}]
    linked = job({"SLUID": "sB", "OriginalSLUID": "sA"})
    assert marks(linked) == {"resized"}


def test_C14_cluster_is_the_rows() -> None:
    rows = read("sacct", sacct_text({"Cluster": "mpp1"}, {"Cluster": "mpp2"}, {"Cluster": ""})).rows("jobs")
    assert [r["cluster"] for r in rows] == ["mpp1", "mpp2", "campus"]


@pytest.mark.parametrize("bad", [{"JobID": "0_0", "JobIDRaw": "0"}, {"JobID": "", "JobIDRaw": ""}], ids=["0_0", "blank"])
def test_C19_no_job_id(bad: dict[str, str]) -> None:
    found = read("sacct", sacct_text({}, bad, {"JobID": "102", "JobIDRaw": "102"}))
    assert [r["job_id"] for r in found.rows("jobs")] == [100, 102]
    assert found.causes == ["not a job id"]
    assert found.rows("rejects")[0]["line"] == 3
    assert found.all_lines_told()


def test_essential_values_reject_the_row() -> None:
    found = read("sacct", sacct_text({"Submit": "Unknown"}, {"State": "DREAMING"}))
    assert "jobs" not in found.tables or not found.rows("jobs")
    assert sorted(found.causes) == ["State: unknown job state", "no submit time", "unknown job state"]


def test_other_values_become_null_and_are_told() -> None:
    found = read("sacct", sacct_text({"ReqMem": "lots", "ReqTRES": "", "Start": "yesterday", "Priority": "-5", "ElapsedRaw": "x",
                                       "Elapsed": ""}))
    row = found.one("jobs")
    assert (row["mem_req_bytes"], row["start"], row["priority"], row["elapsed_s"]) == (None, None, None, None)
    assert found.report.nulled == 4
    assert {r["raw"] for r in found.rows("rejects")} == {"ReqMem=lots", "Start=yesterday", "Priority=-5", "ElapsedRaw=x"}
    assert all(r["line"] == 2 and r["kind"] == "jobs" for r in found.rows("rejects"))


def test_without_raw_ids() -> None:
    rows = read("sacct", sacct_text({"JobID": "57_3"}, {"JobID": "57_4"}, {"JobID": "66+1"}, {"JobID": "70"},
                                    without=("JobIDRaw",))).rows("jobs")
    ids = [r["job_id"] for r in rows]
    assert len(set(ids)) == 4
    assert ids[2:] == [67, 70]
    assert [("no_raw_id" in marks(r)) for r in rows] == [True, True, False, False]


def test_H11_all_null_columns_keep_their_types() -> None:
    assert read("sacct", sacct_text(NOT_STARTED)).tables["jobs"].num_rows == 1  # read() compares the schemas


def test_narrow_output_does_not_count_as_complete() -> None:
    row = job({}, fields=("JobID", "JobIDRaw", "Submit", "Start", "End", "State"))
    assert row["completeness"] == 1


@pytest.mark.parametrize("names", [("Reserved",), ("Planned",), ()])
def test_fields_of_any_version(names: tuple[str, ...]) -> None:
    row = job(dict.fromkeys(names, "00:10:00"))
    assert row["elapsed_s"] == 3600


def test_columns_in_any_order_and_case() -> None:
    names = tuple(sorted(SACCT, reverse=True))
    assert job({}, fields=names) == job()
    text = sacct_text({})
    header, rest = text.split("\n", 1)
    upper = "\x1f".join(f" {n.upper()} " for n in header.split("\x1f"))
    assert read("sacct", f"{upper}\n{rest}").one("jobs") == job()


def test_A08_autumn_clock_change() -> None:
    zone = {"zone": "America/New_York"}
    base = {"Submit": "2025-11-01T20:00:00", "Eligible": "2025-11-01T20:00:00", "Start": "2025-11-02T00:30:00",
            "End": "2025-11-02T01:15:00"}
    late = job(base | {"ElapsedRaw": "6300", "Elapsed": "01:45:00"}, **zone)
    early = job(base | {"ElapsedRaw": "2700", "Elapsed": "00:45:00"}, **zone)
    unsure = job(base | {"ElapsedRaw": "100", "Elapsed": "00:01:40"}, **zone)
    assert (late["end"], early["end"]) == (utc("2025-11-02T06:15:00"), utc("2025-11-02T05:15:00"))
    assert "ambiguous_hour" not in marks(late) | marks(early)
    assert "ambiguous_hour" in marks(unsure)
    assert late["start"] == utc("2025-11-02T04:30:00")
    back = job(base | {"Start": "2025-11-02T01:10:00", "End": "2025-11-02T03:10:00", "ElapsedRaw": "10800",
                       "Elapsed": "03:00:00"}, **zone)
    assert back["start"] == utc("2025-11-02T05:10:00")
    assert "ambiguous_hour" not in marks(back)


def test_A08_spring_gap_is_flagged() -> None:
    row = job({"Submit": "2026-03-29T01:00:00", "Eligible": "2026-03-29T01:00:00", "Start": "2026-03-29T02:30:00",
               "End": "2026-03-29T04:30:00"},
              zone="Europe/Berlin")
    assert "nonexistent_hour" in marks(row)


def test_A07_zone_of_the_capture() -> None:
    row = job({"Submit": "2026-06-01T10:00:00"}, zone="Europe/Berlin")
    assert row["submit"] == utc("2026-06-01T08:00:00")
