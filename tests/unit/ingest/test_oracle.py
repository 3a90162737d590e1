"""The fast path against a slow, plain reader: the same rows, the same values."""

from __future__ import annotations

import csv
from collections import Counter
from typing import Any

import pytest
from ingest_support import fixture, read, utc

VERSIONS = ("22.05", "24.11")


def naive(text: str, delimiter: str) -> list[dict[str, str]]:
    """Records as csv and plain rejoining give them: the delimiter 0x1f never stands in the data."""
    lines = text.split("\n")
    header = lines[0].split(delimiter)
    out, pending = [], ""
    for line in lines[1:]:
        pending = f"{pending}\n{line}" if pending else line
        if pending.count(delimiter) == len(header) - 1:
            out.append(dict(zip(header, pending.split(delimiter), strict=True)))
            pending = ""
    assert not pending
    return out


def naive_job(r: dict[str, str]) -> dict[str, Any]:
    tres = dict(p.split("=", 1) for p in r["AllocTRES"].split(",") if p)
    request = dict(p.split("=", 1) for p in r["ReqTRES"].split(",") if p)
    begun = r["Start"] not in ("Unknown", "None")
    return {
        "job_id": int(r["JobIDRaw"]), "job_id_text": r["JobID"], "user": r["User"] or None, "account": r["Account"] or None,
        "name": r["JobName"] or None, "partition": r["Partition"] or None, "state": r["State"].split()[0],
        "submit": utc(r["Submit"]), "start": utc(r["Start"]) if begun else None,
        "end": utc(r["End"]) if r["End"] not in ("Unknown", "None") else None,
        "eligible": utc(r["Eligible"]) if r["Eligible"] != "Unknown" else None,
        "elapsed_s": int(r["ElapsedRaw"]), "priority": int(r["Priority"] or 0) or None,
        "gpus_req": int(request.get("gres/gpu", 0)) if request else None,
        "gpus_alloc": int(tres.get("gres/gpu", 0)) if begun and tres else None,
        "work_dir": r["WorkDir"] or None, "submit_line": r["SubmitLine"] or None,
    }


def compare(raw: bytes, delimiter: str = "\x1f") -> None:
    found = read("sacct", raw)
    records = naive(raw.decode("utf-8", "replace"), delimiter)
    jobs = [naive_job(r) for r in records if "." not in r["JobID"].split("[")[0]]
    rows = [{k: row[k] for k in jobs[0]} for row in found.rows("jobs")]
    for mine, theirs in zip(rows, jobs, strict=True):
        mine["priority"] = mine["priority"] or None
        if mine["start"] is None and theirs["start"] == theirs["end"]:  # D02
            theirs["start"], theirs["gpus_alloc"] = None, None
        assert mine == theirs
    steps = [r for r in records if "." in r["JobID"].split("[")[0]]
    assert [(s["job_id_text"], s["step"]) for s in found.rows("steps")] == [tuple(r["JobID"].split(".", 1)) for r in steps]
    assert found.report.rejected == found.report.nulled == 0
    assert found.all_lines_told()


@pytest.mark.parametrize("version", VERSIONS)
def test_recorded_sacct(version: str) -> None:
    compare(fixture(f"slurm-{version}/sacct.txt"))


def test_campus_sacct_whole() -> None:
    compare(fixture("sacct.txt.gz"))


def same(a: list[dict[str, Any]], b: list[dict[str, Any]], but: tuple[str, ...] = ()) -> None:
    running = ("elapsed_s", "total_cpu_s", "max_rss_bytes", "ave_rss_bytes", "tres_usage_in_tot", "tres_usage_in_max",
               "tres_usage_in_ave")
    for x, y in zip(a, b, strict=True):
        skip = {*but, *(running if x["state"] in ("RUNNING", "SUSPENDED") else ())}  # the two were not printed in one second
        assert {k: v for k, v in x.items() if k not in skip} == {k: v for k, v in y.items() if k not in skip}


@pytest.mark.parametrize("version", VERSIONS)
def test_G01_pipes_and_newlines_in_names_change_nothing(version: str) -> None:
    """-P with | against 0x1f: names with | and newlines come out alike."""
    clean, pipes = (read("sacct", fixture(f"slurm-{version}/{n}")) for n in ("sacct.txt", "sacct-pipe.txt"))
    same(clean.rows("jobs"), pipes.rows("jobs"))
    same(clean.rows("steps"), pipes.rows("steps"))
    names = {r["name"] for r in pipes.rows("jobs")}
    assert {"a|b|c", "two\nlines"} <= names


@pytest.mark.parametrize("version", VERSIONS)
def test_convert_and_noconvert_agree(version: str) -> None:
    rounded, exact = (read("sacct", fixture(f"slurm-{version}/{n}")) for n in ("sacct-pipe.txt", "sacct-noconvert.txt"))
    texts = ("tres_req", "tres_alloc", "mem_alloc_bytes", "mem_req_bytes", "max_rss_bytes")
    same(rounded.rows("jobs"), exact.rows("jobs"), texts)
    for x, y in zip(rounded.rows("jobs"), exact.rows("jobs"), strict=True):
        for name in texts[2:]:
            assert x[name] == y[name] or abs(x[name] - y[name]) <= 0.01 * max(x[name], y[name])


@pytest.mark.parametrize("version", VERSIONS)
def test_epoch_form_agrees(version: str) -> None:
    times = {r["job_id_text"]: r for r in read("sacct", fixture(f"slurm-{version}/sacct.txt")).rows("jobs")}
    found = read("sacct", fixture(f"slurm-{version}/sacct-epoch.txt")).rows("jobs")
    both = [r for r in found if r["job_id_text"] in times]
    assert len(both) > 5
    for row in both:
        whole = times[row["job_id_text"]]
        assert {n: row[n] for n in ("job_id", "submit", "eligible", "limit_s", "limit_kind")} \
            == {n: whole[n] for n in ("job_id", "submit", "eligible", "limit_s", "limit_kind")}


@pytest.mark.parametrize("version", VERSIONS)
def test_duplicates_of_requeued_jobs(version: str) -> None:
    rows = read("sacct", fixture(f"slurm-{version}/sacct-pipe-D.txt")).rows("jobs")
    keys = Counter((r["job_id"], r["submit"]) for r in rows)
    assert max(keys.values()) == 1


def test_campus_squeue_whole() -> None:
    raw = fixture("squeue.txt.gz").decode("utf-8")
    found = read("squeue", raw, sampled=True)
    assert found.report.rejected == found.report.nulled == 0
    assert found.all_lines_told()
    samples, header = [], None
    for line in raw.split("\n"):
        if line.startswith("### "):
            samples.append([])
            header = None
        elif header is None:
            header = line.split("\x1f")
        elif line:
            samples[-1].append(line.split("\x1f"))
    table = found.tables["queue"]
    assert table.num_rows == sum(map(len, samples))
    states = Counter(row[header.index("STATE")] for sample in samples for row in sample) if header else Counter()
    assert Counter(table["state"].to_pylist()) == states
    pending = sum(row[9] == "PENDING" and row[20] != "N/A" for sample in samples for row in sample)
    assert table["start_estimate"].null_count == table.num_rows - pending
    assert len(set(table["observed_at"].to_pylist())) == sum(bool(s) for s in samples)


def test_campus_estimates_whole() -> None:
    found = read("squeue_start", fixture("squeue-start.txt.gz"), sampled=True)
    table = found.tables["estimates"]
    assert table.num_rows == 115_819
    assert 0.62 < table["start_estimate"].null_count / table.num_rows < 0.64  # 63 % N/A, as its README says
    assert found.all_lines_told()


@pytest.mark.parametrize(("kind", "name", "table", "rows"), [
    ("sinfo", "sinfo-nodes.txt.gz", "nodes", 589 * 24), ("sprio", "sprio.txt.gz", "priorities", 114_299), ("sshare",
        "sshare.txt.gz", "shares", 2_516),
    ("nodes", "scontrol-nodes.txt.gz", "nodes", 3_552), ("partitions", "scontrol-partitions.txt", "partitions", 9),
    ("qos", "sacctmgr-qos.txt", "qos", 10), ("assoc", "sacctmgr-assoc.txt", "associations", 17), ("events",
        "sacctmgr-events.txt", "events", 2),
    ("resv_history", "sacctmgr-reservation.txt", "reservations", 3), ("reservations", "scontrol-reservations.txt",
        "reservations", 1),
    ("sprio_weights", "sprio-weights.txt", "settings", 7), ("config", "scontrol-config.txt", "settings", 207)])
def test_campus_everything_else(kind: str, name: str, table: str, rows: int) -> None:
    found = read(kind, fixture(name), sampled=fixture(name).startswith(b"### "))
    assert found.tables[table].num_rows == rows
    assert found.report.rejected == found.report.nulled == 0
    assert found.all_lines_told()


def test_sinfo_against_csv() -> None:
    raw = fixture("slurm-22.05/sinfo-all.txt").decode()
    table = csv.DictReader(raw.splitlines(), delimiter="|")
    nodes = {r["HOSTNAMES"] for r in table}
    assert nodes == {"vm"}  # virtual nodes of one host: the node's name is NODELIST
    found = {r["node"]: r for r in read("sinfo", raw).rows("nodes")}
    assert found["a100-01"]["gpus"] == 4
    assert found["a100-01"]["partitions"].count(",") >= 1

