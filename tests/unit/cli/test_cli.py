"""The command line: what is printed, exit codes, errors that say what to do."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from tests.unit.synthetic import NOW, job_rows, make_lake

from queuecast.cli.main import main
from queuecast.store.lake import Lake

AT = NOW.isoformat()


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return make_lake(tmp_path_factory.mktemp("toy") / "lake", job_rows())


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch, lake: Lake, tmp_path: Path) -> None:
    for name in [n for n in os.environ if n.startswith("QUEUECAST_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("QUEUECAST_LAKE", str(lake.path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("COLUMNS", "110")


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["queuecast", *words])
    with pytest.raises(SystemExit) as done:
        main()
    out, err = capsys.readouterr()
    code = done.value.code
    return (code if isinstance(code, int) else 0 if code is None else 1), out, err


def test_when_prints_an_interval_its_basis_and_no_single_time(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(monkeypatch, capsys, "when", "-p", "gpu", "--gres", "gpu:a100:4", "-t", "1:00:00", "-A", "vision", "--at", AT)
    assert code == 0
    for part in ("4 x a100 in gpu", "8 in 10 like this; half before", "within   1 h", "like", "jobs with the same partition"):
        assert part in out


def test_when_json_and_parsable_agree(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ["when", "-p", "gpu", "-G", "a100:4", "-t", "60", "-A", "vision", "-q", "normal", "--at", AT]
    _, out, _ = run(monkeypatch, capsys, *ask, "--json")
    answer = json.loads(out)
    _, out, _ = run(monkeypatch, capsys, *ask, "-P")
    row = dict(zip(*(line.split("|") for line in out.splitlines()), strict=True))
    assert row["median_wait_s"] == str(answer["median_wait_s"])
    assert row["low_80_s"] == str(answer["intervals"][1]["low_s"])
    assert row["job_id"] == ""
    assert answer["request"]["gpus"] == 4


def test_when_reads_a_script_and_flags_win(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text(
        "#!/bin/bash\n#SBATCH -p gpu --gres=gpu:a100:4\n#SBATCH --time=02:00:00\n#SBATCH --frobnicate=1\nsrun x\n#SBATCH -p cpu\n"
    )
    code, out, err = run(monkeypatch, capsys, "when", str(script), "-t", "3:00:00", "--json", "--at", AT)
    assert code == 0
    request = json.loads(out)["request"]
    assert (request["partitions"], request["gpus"], request["limit_s"]) == (["gpu"], 4, 10800)
    assert "frobnicate" in err


def test_why_and_when_of_a_job(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    job = str(next(r for r in job_rows() if r["state"] == "PENDING")["job_id"])
    _, out, _ = run(monkeypatch, capsys, "why", job, "--at", AT)
    assert "Other jobs come first (Priority)" in out
    assert "Of 1 nodes that fit, 0 can run jobs now" in out  # the only node with its GPUs is drained: Slurm's reason hides that
    assert "Slurm shows Priority" in out
    _, out, _ = run(monkeypatch, capsys, "why", job, "--json", "--at", AT)
    assert json.loads(out)["reason"]["code"] == "Priority"
    _, out, _ = run(monkeypatch, capsys, "when", job, "--at", AT)
    assert "so far" in out


@pytest.mark.parametrize(
    ("words", "code", "message", "hint"),
    [
        (("when",), 2, "nothing is asked for", "for example"),
        (("when", "-p", "nosuch"), 2, "there is no partition nosuch", "there are: gpu, cpu"),
        (("when", "-p", "gpu", "-t", "soon"), 2, "--time=soon", "D-HH:MM:SS"),
        (("when", "nosuch.sh"), 2, "nosuch.sh cannot be read", "batch script or a job id"),
        (("when", "1000", "-p", "gpu"), 2, "cannot be asked about together", "leave"),
        (("when", "99999999", "--at", AT), 1, "is not known", "queuecast collect"),
        (("when", "-p", "gpu", "--at", "yesterdayish"), 2, "not a time", "2026-06-10"),
        (("why", "abc"), 2, "not a job id", "squeue prints"),
        (("sql", "drop table jobs"), 2, "only one SELECT", "queuecast sql"),
        (("status", "--lake", "/nonexistent/lake"), 1, "there is no lake", "queuecast ingest"),
        (("when", "-p", "gpu", "-M", "other"), 2, "is not in this lake", "toy"),
        (("ingest", "/nonexistent/folder"), 1, "/nonexistent/folder", ""),
    ],
)
def test_errors_are_one_message_that_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, message: str, hint: str
) -> None:
    got, _, err = run(monkeypatch, capsys, *words)
    assert got == code
    assert message in err
    assert hint in err
    assert "Traceback" not in err


def test_status_sql_queue_train(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(monkeypatch, capsys, "status")
    assert "toy: read" in out
    assert "no rejects" in out
    _, out, _ = run(monkeypatch, capsys, "sql", "select state, count(*) n from jobs group by all order by n desc limit 1", "-P")
    assert out.splitlines()[0] == "state|n"
    _, out, _ = run(monkeypatch, capsys, "queue", "--at", AT)
    assert "largest block" in out
    assert "Other jobs come first" in out
    code, out, _ = run(monkeypatch, capsys, "train", "--json")
    assert code == 0
    assert {g["partition"] for g in json.loads(out)["groups"]} == {"*", "gpu", "cpu"}


def test_hostile_text_does_not_reach_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rows = job_rows()
    for row in rows:
        if row["state"] == "PENDING":
            row |= {"name": "\x1b[2J|=cmd()", "user": "eve\x1b]0;x\x07", "account": "a\nb"}
    made = make_lake(tmp_path / "lake", rows)
    job = str(next(r for r in rows if r["state"] == "PENDING")["job_id"])
    for words in (
        ("queue", "--all"),
        ("why", job),
        ("when", job),
        ("when", job, "-P"),
        ("sql", "select name, user from jobs limit 2000"),
        ("queue", "--json"),
    ):
        _, out, _ = run(monkeypatch, capsys, *words, *(() if words[0] == "sql" else ("--at", AT)), "--lake", str(made.path))
        assert "\x1b" not in out
        assert "\x07" not in out


def test_answers_about_now_are_logged_and_replays_are_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    made = make_lake(tmp_path / "lake", job_rows())
    ask = ("when", "-p", "gpu", "-G", "a100:4", "-t", "60", "-A", "vision", "--lake", str(made.path))
    run(monkeypatch, capsys, *ask, "--at", AT)
    assert not (made.path / "predictions.sqlite").exists()
    run(monkeypatch, capsys, *ask)  # no like job in the last weeks before the present: nothing was predicted
    assert not (made.path / "predictions.sqlite").exists()


def test_configuration_file(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, lake: Lake) -> None:
    monkeypatch.delenv("QUEUECAST_LAKE")
    folder = tmp_path / "queuecast"
    folder.mkdir()
    (folder / "config.toml").write_text(f'lake = "{lake.path}"\nzone = "Asia/Shanghai"\n')
    code, out, _ = run(monkeypatch, capsys, "when", "-p", "gpu", "-G", "a100:4", "--at", "2026-05-21T08:00")
    assert code == 0
    assert "today 08:00 (2026-05-21 00:00 UTC)" in out
    (folder / "config.toml").write_text("lakes = 1\n")
    code, _, err = run(monkeypatch, capsys, "status")
    assert code == 1
    assert "unknown settings: lakes" in err
    (folder / "config.toml").write_text("lake = [")
    assert "cannot be read" in run(monkeypatch, capsys, "status")[2]


def test_privacy_own_hides_others(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("QUEUECAST_PRIVACY", "own")
    job = str(next(r for r in job_rows() if r["state"] == "PENDING")["job_id"])
    for words in (("when", job, "-u", "alice"), ("why", job, "-u", "alice")):
        code, _, err = run(monkeypatch, capsys, *words, "--at", AT)
        assert code == 1
        assert "not yours" in err
    _, out, _ = run(monkeypatch, capsys, "queue", "--json", "--at", AT)
    assert all(p["user"] is None for p in json.loads(out)["pending"])


def test_the_sites_privacy_is_not_loosened_by_users(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    site = tmp_path / "site.toml"
    site.write_text('privacy = "own"\n')
    monkeypatch.setattr("queuecast.config.SYSTEM", site)
    monkeypatch.setenv("QUEUECAST_PRIVACY", "all")
    job = str(next(r for r in job_rows() if r["state"] == "PENDING")["job_id"])
    code, _, err = run(monkeypatch, capsys, "when", job, "--at", AT)
    assert code == 1
    assert "not yours" in err
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    code, _, err = run(monkeypatch, capsys, "sql", "select user from jobs")
    assert code == 1
    assert "only their own" in err
