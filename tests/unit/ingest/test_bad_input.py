"""Input that nobody promised: broken, cut, foreign, enormous. Nothing may crash and nothing may vanish."""

from __future__ import annotations

import io
from typing import Any

import pytest
from ingest_support import SACCT, fixture, job, read, sacct_text, step, utc

from queuecast.collect.framing import Framer
from queuecast.collect.rejects import MAX_RAW, Rejects

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01" + bytes(range(256)) * 40


def test_empty_file_gives_nothing_and_says_so() -> None:
    found = read("sacct", b"")
    assert found.tables == {}
    assert found.report.notes == ["empty: nothing was printed"]


def test_header_only() -> None:
    found = read("sacct", "\x1f".join(SACCT) + "\n")
    assert "jobs" not in found.tables
    assert found.report.notes == []
    assert found.all_lines_told()


@pytest.mark.parametrize(("raw", "cause"), [
    (PNG, "not text"), (b"usage: squeue [-u user] [-p part]\n  -t states\n", "usage text of a command"),
    (b"Hello,\nthis is a letter.\n", "no header line"), (b"100|train|COMPLETED|0:0\n",
                                                         "no header line (was it taken with -n or -h?)"),
    (b'{"jobs": []}\n', "no header line"), (b"JobID|Submit|State|Start\n" + b"1;2026-06-01T08:00:00;COMPLETED;None\n" * 5,
                                             "rows are not separated like the header"),
])
def test_a_file_that_is_no_table_is_one_reject(raw: bytes, cause: str) -> None:
    found = read("sacct", raw)
    assert found.causes == [cause]
    assert found.report.notes[0].startswith("nothing could be read: " + cause)
    assert found.rows("rejects")[0]["raw"]


def test_the_delimiter_that_the_rows_have_is_named() -> None:
    found = read("sacct", b"JobID|Submit|State|Start\n" + b"1;2026-06-01T08:00:00;COMPLETED;None\n" * 5)
    assert "b';' here" in found.report.notes[0]


@pytest.mark.parametrize("delimiter", ["\x1f", "|", "@@@", ";", "\t", "^", "||", "\x1e"])
def test_any_delimiter(delimiter: str) -> None:
    assert job({}, delimiter=delimiter) == job()


@pytest.mark.parametrize("form", [
    lambda t: "\ufeff" + t, lambda t: t.replace("\n", "\r\n"), lambda t: t.rstrip("\n"), lambda t: t.replace("\n", "\x1f\n"),
    lambda t: "\n" + t, lambda t: t.replace("\n", "\n\n"),
    lambda t: "\n".join(line + "\x1f" * bool(i) for i, line in enumerate(t.rstrip("\n").split("\n"))) + "\n",
    lambda t: "\n".join(line + "\x1f" * (not i) for i, line in enumerate(t.rstrip("\n").split("\n"))) + "\n",
], ids=["BOM", "CRLF", "no last newline", "-p", "blank first", "blank between", "G03 rows end with it",
        "G03 header ends with it"])
def test_forms_of_one_text(form: Any) -> None:
    text = sacct_text({}, step("batch"), {"JobID": "101", "JobIDRaw": "101"})
    plain, other = read("sacct", text), read("sacct", form(text))
    assert other.rows("jobs") == plain.rows("jobs")
    assert other.rows("steps") == plain.rows("steps")
    assert other.all_lines_told()


def test_last_line_cut_off_is_a_reject() -> None:
    text = sacct_text({}, {"JobID": "101", "JobIDRaw": "101"})
    found = read("sacct", text[: text.rindex("2026-06-01T09")])
    assert [r["job_id"] for r in found.rows("jobs")] == [100]
    assert found.causes == ["wrong number of fields"]
    assert found.rows("rejects")[0]["line"] == 3


@pytest.mark.parametrize("newline", ["two\nlines", "\n", "a\n\nb", "ends\n", "\nbegins", "one\ntwo\nthree\nfour"])
@pytest.mark.parametrize("delimiter", ["\x1f", "|"])
@pytest.mark.parametrize("field", ["JobName", "WorkDir", "Comment", "SubmitLine"])
def test_G02_newlines_in_user_text(field: str, newline: str, delimiter: str) -> None:
    rows = ({"JobID": "99", "JobIDRaw": "99"}, {field: newline}, {"JobID": "101", "JobIDRaw": "101"})
    names = {"JobName": "name", "WorkDir": "work_dir", "Comment": "comment", "SubmitLine": "submit_line"}
    found = read("sacct", sacct_text(*rows, delimiter=delimiter))
    assert [r["job_id"] for r in found.rows("jobs")] == [99, 100, 101]
    value = found.rows("jobs")[1][names[field]]
    if field == "WorkDir" and newline in ("\n", "ends\n"):
        assert value in (newline, newline.rstrip("\n"), None)  # a newline at the very end of a line shows as a blank line
    else:
        assert value == newline
    assert found.all_lines_told()


def test_G01_G02_everything_at_once() -> None:
    found = read("sacct", sacct_text({"JobName": "a|b\nc|d", "Comment": "x|y", "SubmitLine": "sbatch -J a|b\nc|d run.sh"},
                                     {"JobID": "101", "JobIDRaw": "101"}, delimiter="|"))
    row = found.rows("jobs")[0]
    assert (row["name"], row["comment"], row["submit_line"]) == ("a|b\nc|d", "x|y", "sbatch -J a|b\nc|d run.sh")
    assert [r["job_id"] for r in found.rows("jobs")] == [100, 101]


@pytest.mark.parametrize("text", ["unit\x1fseparator", "\x1f", "\x1fbegins", "ends\x1f", "a\x1fb\x1fc", "two\nlines\x1fand"])
def test_G01_even_the_unit_separator_in_a_name(text: str) -> None:
    """sbatch takes it, and the command line repeats it."""
    odd = {"JobName": text, "SubmitLine": f"sbatch -J {text} run.sh"}
    rows = ({"JobID": "99", "JobIDRaw": "99"}, odd, {"JobID": "101", "JobIDRaw": "101"})
    found = read("sacct", sacct_text(*rows))
    assert found.causes == []
    assert [(r["job_id"], r["name"], r["submit_line"], r["work_dir"]) for r in found.rows("jobs")] == [
        (99, "train", "sbatch run.sh", "/home/alice"), (100, text, f"sbatch -J {text} run.sh", "/home/alice"),
        (101, "train", "sbatch run.sh", "/home/alice")]
    assert found.all_lines_told()


def test_G01_unit_separator_in_the_last_name_of_squeue() -> None:
    lines = [["JOBID", "STATE", "SUBMIT_TIME", "NAME"], ["1", "PENDING", "2026-06-01T08:00:00", "unit\x1fseparator"],
             ["2", "PENDING", "2026-06-01T08:00:00", "train"]]
    found = read("squeue", "".join("\x1f".join([*line, ""]) + "\n" for line in lines))
    assert [(r["job_id"], r["name"]) for r in found.rows("queue")] == [(1, "unit\x1fseparator"), (2, "train")]
    assert found.causes == []


def test_constraints_with_alternatives() -> None:
    assert job({"Constraints": "a100|v100"}, delimiter="|")["constraints"] == "a100|v100"


def test_G04_not_utf8() -> None:
    raw = sacct_text({"JobName": "NAME"}, {"JobID": "101", "JobIDRaw": "101"}).encode().replace(b"NAME", b"f\xfcr")
    rows = read("sacct", raw).rows("jobs")
    assert [(r["name"], r["anomalies"]) for r in rows] == [("f\ufffdr", "not_utf8"), ("train", None)]


def test_G16_text_ends_at_nul_and_a_lone_carriage_return_stays() -> None:
    rows = read("sacct", sacct_text({"JobName": "a\x00b"}, {"JobName": "a\rb", "JobID": "101", "JobIDRaw": "101"})).rows("jobs")
    assert [r["name"] for r in rows] == ["a", "a\rb"]


def test_a_line_of_ten_megabytes_is_kept() -> None:
    found = read("sacct", sacct_text({"Comment": "x" * 10_000_000}, {"JobID": "101", "JobIDRaw": "101"}))
    assert [len(r["comment"] or "") for r in found.rows("jobs")] == [10_000_000, 0]


def test_a_line_of_ten_megabytes_that_is_no_record_is_cut_in_the_reject() -> None:
    found = read("sacct", sacct_text({}) + "y" * 10_000_000 + "\x1f\n" + sacct_text({"JobID": "101",
        "JobIDRaw": "101"}).split("\n", 1)[1])
    assert [r["job_id"] for r in found.rows("jobs")] == [100, 101]
    assert [len(r["raw"]) for r in found.rows("rejects")] == [MAX_RAW]


def test_G13_messages_between_rows_are_notes() -> None:
    text = sacct_text({}, {"JobID": "101", "JobIDRaw": "101"}).split("\n")
    text.insert(2, "sacct: error: Problem talking to the database: Connection refused")
    found = read("sacct", "\n".join(text))
    assert len(found.rows("jobs")) == 2
    assert found.report.notes == ["Slurm said: sacct: error: Problem talking to the database: Connection refused"]
    only = read("squeue", "slurm_load_jobs error: Socket timed out on send/recv operation\n")
    assert only.tables == {}
    assert "Socket timed out" in only.report.notes[0]


def test_G17_quoted_csv_with_blanks() -> None:
    names = [n for n in SACCT if n not in ("Comment", "AdminComment")]
    values = {**SACCT, "JobName": 'two\nlines, "quoted"', "JobID": "100"}

    def cell(text: str) -> str:
        return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\n') else text

    lines = [", ".join(names), ", ".join(cell(values[n]) for n in names), ", ".join(cell(SACCT[n]) for n in names)]
    text = "\n".join(lines) + "\n"
    found = read("sacct", text)
    assert [r["name"] for r in found.rows("jobs")] == ['two\nlines, "quoted"', "train"]
    assert found.rows("jobs")[0]["tres_alloc"] == SACCT["AllocTRES"]
    assert found.rows("jobs")[0]["submit"] == utc("2026-06-01T08:00:00")


def test_negative_and_backward_times() -> None:
    found = read("sacct", sacct_text({"Elapsed": "-00:00:05", "ElapsedRaw": "-5"}, {"Submit": "2026-06-01T12:00:00",
        "JobID": "101", "JobIDRaw": "101"}))
    first, second = found.rows("jobs")
    assert first["elapsed_s"] is None
    assert {r["cause"] for r in found.rows("rejects")} == {"ElapsedRaw: not a count", "Elapsed: not a duration"}
    assert second["submit"] > second["start"]


def test_two_tables_in_one_file() -> None:
    found = read("sacct", sacct_text({}) + sacct_text({"JobID": "101", "JobIDRaw": "101"}))
    assert [r["job_id"] for r in found.rows("jobs")] == [100, 101]


@pytest.mark.parametrize("block", [1000, 1500, 3000, 7001, 40_000])
@pytest.mark.parametrize("name", ["slurm-22.05/sacct.txt", "slurm-24.11/sacct-pipe.txt", "slurm-22.05/squeue-all.txt",
                                  "slurm-24.11/sprio-l.txt"])
def test_blocks_of_any_size_give_the_same(name: str, block: int) -> None:
    raw = fixture(name)

    def records(size: int) -> list[tuple[Any, ...]]:
        rejects = Rejects("x")
        framer = Framer(io.BytesIO(raw), rejects, lambda d: list(range(len(d.keys))), sampled=raw.startswith(b"###"), block=size)
        out = []
        for frame in framer:
            for i in range(len(frame)):
                at = frame.sections[frame.section[i]].at
                out.append((int(frame.lines[i]), at, tuple(c[i].as_py() for c in frame.columns.values())))
        assert rejects.records == 0
        return out

    assert records(block) == records(1 << 24)


def test_steps_cross_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[dict[str, str]] = []
    for n in range(100, 160):
        rows.append({"JobID": str(n), "JobIDRaw": str(n), "DBIndex": str(n)})
        rows += [step(s) | {"JobID": f"{n}.{s}", "JobIDRaw": f"{n}.{s}", "DBIndex": str(n), "MaxRSS": f"{n}K"} for s in ("batch",
            "extern", "0")]
    text = sacct_text(*rows)
    whole = read("sacct", text)
    monkeypatch.setattr(Framer.__init__, "__kwdefaults__", {**(Framer.__init__.__kwdefaults__ or {}), "block": 2048})
    small = read("sacct", text)
    assert small.rows("jobs") == whole.rows("jobs")
    assert small.rows("steps") == whole.rows("steps")
    assert [r["max_rss_bytes"] for r in small.rows("jobs")] == [n * 1024 for n in range(100, 160)]


def test_step_of_another_job_does_not_join_it() -> None:
    found = read("sacct", sacct_text({}, step("batch") | {"JobID": "555.batch", "JobIDRaw": "555.batch", "MaxRSS": "9G"}))
    assert found.one("jobs")["max_rss_bytes"] is None
    assert (found.one("steps")["job_id"], found.one("steps")["job_submit"]) == (555, utc("2026-06-01T09:00:00"))


def test_what_is_kept_unread_is_told() -> None:
    assert read("sdiag", "*******************\nsdiag output at ...\n").report.kept == ["sdiag"]
    no_submit = read("sacct", sacct_text({}, without=("Submit",)))
    assert no_submit.report.kept == ["sacct without Submit: its rows cannot be told apart as jobs"]
    assert read("sacct", "NODELIST|STATE\nn1|idle\n").report.kept == ["sinfo where sacct was expected"]
    assert read("other", fixture("slurm-24.11/sinfo-json.txt"), command=()).report.kept == ["JSON"]
