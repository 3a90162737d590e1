"""Running commands: environment, time, ssh."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecast.collect.run import MAX_STDERR, Finished, Runner
from queuecast.errors import ConfigError

from .conftest import Fake


def run(runner: Runner, *command: str, timeout: float = 20.0) -> tuple[Finished, bytes]:
    with tempfile.TemporaryFile() as out:
        done = runner.run(command, out, timeout)
        out.seek(0)
        return done, out.read()


def test_environment_cannot_change_the_output(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    """the zone is fixed; a user's own formats, filters and clusters are dropped, the configuration stays."""
    for name in (
        "SACCT_FORMAT",
        "SQUEUE_FORMAT2",
        "SQUEUE_USERS",
        "SINFO_FORMAT",
        "SPRIO_FORMAT",
        "SSHARE_X",
        "SLURM_CLUSTERS",
        "SLURM_JOB_ID",
        "SCONTROL_ALL",
    ):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("SLURM_CONF", "/etc/other.conf")
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    monkeypatch.setenv("SLURM_TIME_FORMAT", "%d.%m.")
    fake.rule("squeue")
    run(Runner(extra_env={"EXTRA": "1"}), "squeue")
    env = fake.calls[0][2]
    slurms = {k: v for k, v in env.items() if k.startswith(("SACCT", "SQUEUE", "SINFO", "SPRIO", "SSHARE", "SCONTROL", "SLURM"))}
    assert slurms == {"SLURM_CONF": "/etc/other.conf", "SLURM_TIME_FORMAT": "standard", "SLURM_BITSTR_LEN": "0"}
    assert (env["TZ"], env["LC_ALL"], env["EXTRA"]) == ("UTC", "C.UTF-8", "1")


def test_output_and_stderr_are_kept_apart(fake: Fake) -> None:
    fake.rule("squeue", stdout="a\udcff\n", stderr="careful\n", exit=3)
    done, out = run(Runner(), "squeue")
    assert (out, done.stderr, done.exit_code, done.timed_out, done.missing) == (b"a\xff\n", "careful\n", 3, False, False)
    assert abs(done.started - datetime.now(UTC)) < timedelta(seconds=30)


def test_timeout_ends_the_command_and_what_it_started(fake: Fake) -> None:
    fake.rule("sacct", stdout="half a li", sleep=60, child=True)
    begin = time.monotonic()
    done, out = run(Runner(), "sacct", timeout=0.7)
    assert done.timed_out
    assert done.exit_code == -1
    assert time.monotonic() - begin < 8
    assert out == b"half a li"
    assert gone(int((fake.folder / "child").read_text()))


def gone(pid: int) -> bool:
    """Within a few seconds: a killed process needs a moment."""
    for _ in range(100):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("Z", "X"):
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def test_child_that_keeps_stderr_open_cannot_outlive_the_timeout(fake: Fake) -> None:
    fake.rule("sacct", stdout="x", child=True)
    done, _ = run(Runner(), "sacct", timeout=0.7)
    assert done.timed_out
    assert gone(int((fake.folder / "child").read_text()))


def test_much_on_stderr_neither_blocks_nor_fills_memory(fake: Fake) -> None:
    fake.rule("squeue", stdout="ok", stderr="e" * 300_000)
    done, out = run(Runner(), "squeue")
    assert out == b"ok"
    assert len(done.stderr) == MAX_STDERR


@pytest.mark.parametrize("make", ["nothing", "not executable", "folder is a file"])
def test_missing_command(fake: Fake, make: str) -> None:
    if make == "not executable":
        fake.install("squeue").chmod(0o644)
        runner = Runner(directory=str(fake.folder))
    elif make == "folder is a file":
        runner = Runner(directory=str(fake.folder / "plan"))
    else:
        runner = Runner()
    done, _ = run(runner, "squeue")
    assert done.missing
    assert done.exit_code == 127


def test_paths_and_prefix() -> None:
    runner = Runner(directory="/opt/slurm/bin", paths={"squeue": "/opt/real/squeue"}, prefix=("sudo", "-n"))
    assert runner.located(("squeue", "-a")) == ("sudo", "-n", "/opt/real/squeue", "-a")
    assert runner.located(("sacct",)) == ("sudo", "-n", "/opt/slurm/bin/sacct")


@pytest.mark.parametrize("host", ["", "-oProxyCommand=touch /tmp/x", "two words", "a\nb"])
def test_host_cannot_be_an_option(host: str) -> None:
    with pytest.raises(ConfigError):
        Runner(ssh=host)


def far_side(argv: list[str]) -> list[str]:
    """What the remote login shell makes of the words that ssh joins with blanks."""
    return shlex.split(" ".join(argv[argv.index("login1") + 1 :]))


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")), min_size=1, max_size=5))
def test_ssh_quotes_every_argument(words: list[str]) -> None:
    argv = Runner(ssh="login1").argv(("sacct", *words), 5.0)
    assert argv[0] == "ssh"
    assert "BatchMode=yes" in argv
    assert "ConnectTimeout=10" in argv
    assert argv[argv.index("login1") - 1] == "--"
    assert far_side(argv)[-len(words) - 1 :] == ["sacct", *words]


def fake_ssh(fake: Fake, host: str = "login1") -> None:
    """Does what sshd does: joins the words and hands the line to a shell."""
    path = fake.folder / "ssh"
    path.write_text(f'#!/bin/sh\nwhile [ "$1" != "{host}" ]; do shift; done\nshift\nexec /bin/sh -c "$*"\n')
    path.chmod(0o755)


def test_ssh_runs_with_the_fixed_environment(fake: Fake) -> None:
    fake_ssh(fake)
    fake.rule("sacct", stdout="ok")
    # as if the remote login set them
    script = (fake.folder / "ssh").read_text()
    (fake.folder / "ssh").write_text(script.replace("exec", "export SQUEUE_FORMAT=%i SLURM_CLUSTERS=x\nexec"))
    runner = Runner(ssh="login1", extra_env={"SLURM_CONF": "/etc/a b.conf"})
    done, out = run(runner, "sacct", "--delimiter=\x1f", "-o", "a;b $(id) 'c'", "")
    assert (done.exit_code, out) == (0, b"ok")
    name, args, env = fake.calls[-1]
    assert (name, args) == ("sacct", ["--delimiter=\x1f", "-o", "a;b $(id) 'c'", ""])
    assert "SQUEUE_FORMAT" not in env
    assert "SLURM_CLUSTERS" not in env
    assert (env["TZ"], env["SLURM_CONF"]) == ("UTC", "/etc/a b.conf")


def test_ssh_times_out_on_the_far_side(fake: Fake) -> None:
    fake_ssh(fake)
    fake.rule("sacct", sleep=60)
    begin = time.monotonic()
    done, _ = run(Runner(ssh="login1"), "sacct", timeout=1.0)
    assert done.timed_out
    assert time.monotonic() - begin < 8


def test_remote_clock_is_used(fake: Fake) -> None:
    fake_ssh(fake)
    fake.rule("date", stdout=f"{int(time.time()) + 3600}\n")
    runner = Runner(ssh="login1")
    assert abs(runner.sync_clock() - timedelta(hours=1)) <= timedelta(seconds=3)
    assert abs(runner.now() - datetime.now(UTC) - timedelta(hours=1)) < timedelta(seconds=5)


def test_small_offsets_and_nonsense_are_no_offset(fake: Fake) -> None:
    fake_ssh(fake)
    fake.rule("date", stdout=f"{int(time.time())}\n")
    assert Runner(ssh="login1").sync_clock() == timedelta(0)
    fake.rule("date", stdout="Welcome!\n")
    assert Runner(ssh="login1").sync_clock() == timedelta(0)


def test_given_clock_is_used() -> None:
    fixed = datetime(2026, 6, 1, tzinfo=UTC)
    done, _ = run(Runner(clock=lambda: fixed), sys.executable, "-c", "pass")
    assert done.started == fixed


def test_no_shell_on_this_side(fake: Fake, tmp_path: Path) -> None:
    fake.rule("squeue")
    run(Runner(), "squeue", f"$(touch {tmp_path}/hit)", f"; touch {tmp_path}/hit")
    assert not (tmp_path / "hit").exists()
    assert fake.calls[0][1][0].startswith("$(touch")


def test_own_environment_is_untouched(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACCT_FORMAT", "x")
    Runner().environment()
    assert os.environ["SACCT_FORMAT"] == "x"
