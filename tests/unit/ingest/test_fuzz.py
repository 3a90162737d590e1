"""Recorded lines, mutated: nothing crashes, and every record is a row or a reject.

``QUEUECAST_FUZZ=100000`` sets how many lines are mutated (2,000 if it is not set).
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ingest_support import fixture, read

LINES = int(os.environ.get("QUEUECAST_FUZZ", "2000"))
PER_EXAMPLE = 12
FORMS = {
    "sacct": ("slurm-22.05/sacct.txt", "slurm-24.11/sacct-pipe.txt", "slurm-24.11/sacct-epoch.txt"),
    "squeue": ("slurm-22.05/squeue-o.txt", "slurm-24.11/squeue-O-all.txt", "slurm-22.05/squeue-default.txt"),
    "squeue_start": ("slurm-24.11/squeue-start.txt",),
    "nodes": ("slurm-22.05/scontrol-show-node.txt", "slurm-24.11/scontrol-show-node-d.txt"),
    "sinfo": ("slurm-24.11/sinfo-O-all.txt",), "sprio": ("slurm-24.11/sprio-l.txt",), "sshare": ("slurm-22.05/sshare-long.txt",),
    "events": ("slurm-22.05/sacctmgr-events.txt",), "qos": ("slurm-24.11/sacctmgr-qos.txt",),
    "assoc": ("slurm-22.05/sacctmgr-assoc.txt",),
    "partitions": ("slurm-24.11/scontrol-show-partition.txt",), "reservations": ("slurm-22.05/scontrol-show-reservation.txt",),
    "config": ("slurm-24.11/scontrol-show-config.txt",), "resv_history": ("slurm-22.05/sacctmgr-reservation.txt",),
}
WEIGHTED = [*["sacct"] * 8, *["squeue"] * 5, "squeue_start", "nodes", "sinfo", "sprio", "sshare", "events", "qos", "assoc",
            "partitions",
            "reservations", "config", "resv_history"]
TEXTS = [b"", b"\n", b"|", b"\x1f", b"\x00", b"\r", b"\xff\xfe", b"Unknown", b"None", b"N/A", b"-1", b"99999999999999999999",
         b"2026-13-45T99:99:99",
         b"2026-06-01T08:00:00", b"(null)", b"0_0", b"12_[1-", b"CANCELLED by", b"gres/gpu=", b"cpu=,mem=x", b"### ",
         b"CLUSTER: ", b'"', b"\xf0\x9f\x9a\x80",
         b"sacct: error: no", b"\n\n", b"||||", b" " * 30, b"4294967294", b"1e309", b"nan", b"16?", b"UNLIMITED", b"9" * 400,
         b"JobID|State\n"]

mutation = st.tuples(st.sampled_from(["insert", "replace", "delete", "cut", "double", "swap", "field"]), st.integers(0, 10**6),
                     st.integers(0, 10**6),
                     st.one_of(st.sampled_from(TEXTS), st.binary(max_size=12)))


def mutate(lines: list[bytes], what: tuple[str, int, int, bytes]) -> None:
    kind, which, where, text = what
    i = 1 + which % max(1, len(lines) - 1)
    if i >= len(lines):
        return
    line = lines[i]
    at = where % (len(line) + 1)
    if kind == "insert":
        lines[i] = line[:at] + text + line[at:]
    elif kind == "replace":
        lines[i] = line[:at] + text + line[at + len(text) :]
    elif kind == "delete":
        lines[i] = line[:at] + line[at + 1 + where % 9 :]
    elif kind == "cut":
        lines[i] = line[:at]
    elif kind == "double":
        lines.insert(i, line)
    elif kind == "swap":
        j = 1 + where % (len(lines) - 1)
        lines[i], lines[j] = lines[j], lines[i]
    else:
        delimiter = b"\x1f" if b"\x1f" in line else b"|" if b"|" in line else b" "
        cells = line.split(delimiter)
        cells[where % len(cells)] = text
        lines[i] = delimiter.join(cells)


@settings(max_examples=max(20, LINES // PER_EXAMPLE), deadline=None, suppress_health_check=[HealthCheck.too_slow],
          print_blob=True)
@given(st.sampled_from(WEIGHTED), st.integers(0, 9), st.lists(mutation, min_size=PER_EXAMPLE, max_size=PER_EXAMPLE))
def test_mutated_lines(kind: str, form: int, mutations: list[tuple[str, int, int, bytes]]) -> None:
    name = FORMS[kind][form % len(FORMS[kind])]
    lines = fixture(name).split(b"\n")[:45]
    for what in mutations:
        mutate(lines, what)
    raw = b"\n".join(lines)
    found = read(kind, raw, sampled=raw.startswith(b"### "))
    if any(note.startswith("nothing could be read") for note in found.report.notes):
        assert found.report.rejected >= 1
        return
    assert found.all_lines_told(), found.report.seen
    seen = found.report.seen
    if kind in ("sacct", "squeue", "squeue_start", "sprio", "sshare", "events", "qos", "assoc", "resv_history"):
        table = {"sacct": ("jobs", "steps"), "squeue": ("queue",), "squeue_start": ("estimates",), "sprio": ("priorities",),
                 "sshare": ("shares",),
                 "events": ("events",), "qos": ("qos",), "assoc": ("associations",), "resv_history": ("reservations",)}[kind]
        rows = sum(found.tables[t].num_rows for t in table if t in found.tables)
        assert rows + found.report.rejected - seen.refused == seen.records


@pytest.mark.parametrize("junk", [bytes(range(256)), b"\x1f" * 500 + b"\n" * 50, b"|\n" * 300, b"JobID" * 1000, b"\n" * 1000,
                                  b"JobID|State\n" * 200])
@pytest.mark.parametrize("kind", sorted(FORMS))
def test_junk(kind: str, junk: bytes) -> None:
    for raw in (junk, fixture(FORMS[kind][0])[:400] + junk):
        assert read(kind, raw).all_lines_told()
