"""Running one Slurm command: here or through ssh, bounded in time, in an environment that cannot change its output.

No shell is involved on this side. ssh gives the remote login shell one line of text, so every remote argument is quoted.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from queuecast.errors import ConfigError, SourceError

FIXED_ENV: Mapping[str, str] = {
    "TZ": "UTC",  # Slurm's clients print local times
    "LC_ALL": "C.UTF-8",
    "SLURM_TIME_FORMAT": "standard",
    "SLURM_BITSTR_LEN": "0",  # else long lists of array tasks are cut
}
_KEPT = ("SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT")  # how the site is reached, nobody's taste in formats
_DROPPED = re.compile(r"(SACCT|SQUEUE|SINFO|SPRIO|SSHARE|SCONTROL|SACCTMGR|SDIAG|SREPORT|SLURM)_.*")
_REMOTE_DROPPED = (
    "SACCT_FEDERATION", "SACCT_FORMAT", "SACCT_LOCAL", "SCONTROL_ALL", "SCONTROL_FEDERATION", "SCONTROL_LOCAL", "SCONTROL_FUTURE",
    "SINFO_ALL", "SINFO_FEDERATION", "SINFO_FORMAT", "SINFO_LOCAL", "SINFO_PARTITION", "SINFO_SORT", "SLURM_CLUSTERS",
    "SLURM_DEBUG", "SLURM_DEBUG_FLAGS", "SPRIO_ALL", "SPRIO_CLUSTERS", "SPRIO_FEDERATION", "SPRIO_FORMAT", "SPRIO_LOCAL",
    "SQUEUE_ACCOUNT", "SQUEUE_ACCOUNTS", "SQUEUE_ALL", "SQUEUE_ARRAY", "SQUEUE_ARRAY_UNIQUE", "SQUEUE_FEDERATION",
    "SQUEUE_FORMAT", "SQUEUE_FORMAT2", "SQUEUE_LICENSES", "SQUEUE_LOCAL", "SQUEUE_NAMES", "SQUEUE_PARTITION", "SQUEUE_PRIORITY",
    "SQUEUE_QOS", "SQUEUE_SIBLING", "SQUEUE_SORT", "SQUEUE_STATES", "SQUEUE_USERS",
)
"""What a remote login may set and `env` cannot drop by pattern."""

MAX_STDERR = 64 * 1024
_GRACE_S = 2.0


@dataclass(frozen=True)
class Finished:
    """How a command ended. ``timed_out`` commands were killed with all their children; exit_code is then -1.

    ``stderr`` is cut at 64 KiB; bytes that are not UTF-8 stand as ``\\xNN``. ``seconds`` is the time it took.
    ``missing`` is true if the program itself could not be started. ``started`` is aware UTC by the clock of the machine
    that ran it.
    """

    exit_code: int
    stderr: str
    seconds: float
    started: datetime
    timed_out: bool = False
    missing: bool = False


@dataclass
class Runner:
    """Where and how commands run.

    ssh              host as ssh knows it; None runs on this machine
    ssh_options      further options of ssh, e.g. ``("-p", "2222")``
    connect_timeout  seconds for ssh to connect
    directory        folder that holds Slurm's commands; None searches PATH
    paths            command name -> path of its own, stronger than ``directory`` (to get around wrapper scripts)
    prefix           put before each command, e.g. ``("sudo", "-n", "-u", "monitor")``
    extra_env        further variables for the commands
    clock            the time on the machine that runs the commands; None: this machine's, or over ssh this machine's
                     corrected by an offset measured once by `sync_clock`
    """

    ssh: str | None = None
    ssh_options: tuple[str, ...] = ()
    connect_timeout: int = 10
    directory: str | None = None
    paths: Mapping[str, str] = field(default_factory=dict)
    prefix: tuple[str, ...] = ()
    extra_env: Mapping[str, str] = field(default_factory=dict)
    clock: Callable[[], datetime] | None = None
    offset: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        if self.ssh is not None and (not self.ssh or self.ssh.startswith("-") or re.search(r"\s", self.ssh)):
            raise ConfigError(f"not a host that ssh could reach: {self.ssh!r}", "Give it as HOST or USER@HOST.")

    @property
    def where(self) -> str:
        """For messages."""
        return self.ssh or "this machine"

    def now(self) -> datetime:
        """Aware UTC, by the clock of the machine that runs the commands."""
        return self.clock().astimezone(UTC) if self.clock else datetime.now(UTC) + self.offset

    def located(self, command: tuple[str, ...]) -> tuple[str, ...]:
        """The command with the path and prefix that the settings give it."""
        name = command[0]
        path = self.paths.get(name) or (str(Path(self.directory) / name) if self.directory else name)
        return (*self.prefix, path, *command[1:])

    def argv(self, command: tuple[str, ...], timeout: float) -> list[str]:
        """What is really executed on this machine."""
        located = self.located(command)
        if self.ssh is None:
            return list(located)
        env = {**FIXED_ENV, **self.extra_env}
        drop = [word for name in _REMOTE_DROPPED for word in ("-u", name)]
        # `timeout` on the far side: if the connection breaks, nothing may go on burdening the controller there
        limit = ("timeout", "-k", "5", str(max(1, round(timeout))))
        remote = ["env", *drop, *(f"{k}={v}" for k, v in env.items()), *limit, *located]
        # -T -x -a: no terminal, no X11, no agent for a command that only prints
        return ["ssh", "-T", "-x", "-a", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={self.connect_timeout}",
                "-o", "ServerAliveInterval=15", *self.ssh_options, "--", self.ssh, *map(shlex.quote, remote)]

    def environment(self) -> dict[str, str]:
        """Of the local process: this process's without whatever could change what Slurm's clients print."""
        kept = {k: v for k, v in os.environ.items() if k in _KEPT or not _DROPPED.fullmatch(k)}
        return {**kept, **FIXED_ENV, **(self.extra_env if self.ssh is None else {})}

    def run(self, command: tuple[str, ...], stdout: BinaryIO, timeout: float) -> Finished:
        """Run ``command`` with its output going to ``stdout`` (a real file) and wait at most ``timeout`` seconds.

        Never raises for what the command does; see `Finished`.
        """
        argv = self.argv(command, timeout)
        # over ssh the far side stops the command first; what remains is the time to connect
        patience = timeout if self.ssh is None else timeout + self.connect_timeout + 10
        started, begin = self.now(), time.monotonic()
        try:
            child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE,
                                     env=self.environment(), start_new_session=True)
        except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
            return Finished(127, f"{argv[0]}: {error.strerror}", 0.0, started, missing=True)
        except OSError as error:
            raise SourceError(f"{argv[0]} could not be started: {error}") from error
        timed_out = False
        try:
            stderr = _drain(child, patience)
        except subprocess.TimeoutExpired:
            timed_out = True
            _kill_group(child)
            stderr = b""
        except BaseException:
            _kill_group(child)
            raise
        seconds = time.monotonic() - begin
        code = child.returncode
        if self.ssh is not None and code in (124, 137) and seconds >= timeout:
            timed_out = True
        return Finished(-1 if timed_out else code, _text(stderr), seconds, started, timed_out)

    def sync_clock(self, timeout: float = 20.0) -> timedelta:
        """Measure how far the remote clock is ahead of this one (one call of ``date``) and use it from then on.

        0 on this machine, and where it cannot be told. Offsets under 2 seconds count as 0: ``date`` tells whole seconds.
        """
        if self.ssh is None or self.clock is not None:
            return self.offset
        before = time.time()
        text = self.output(("date", "+%s"), timeout, located=False)
        after = time.time()
        if text is not None and re.fullmatch(r"\d{9,11}", text.strip()):
            seconds = int(text) + 0.5 - (before + after) / 2
            self.offset = timedelta(seconds=round(seconds)) if abs(seconds) >= 2 else timedelta(0)
        return self.offset

    def output(self, command: tuple[str, ...], timeout: float, located: bool = True) -> str | None:
        """Output of a small command, or None if it failed. ``located`` is false for those that are not Slurm's (``date``)."""
        import tempfile

        runner = self if located else replace(self, directory=None, paths={}, clock=None)
        with tempfile.TemporaryFile() as out:
            done = runner.run(command, out, timeout)
            out.seek(0)
            return _text(out.read(MAX_STDERR)) if done.exit_code == 0 else None


def _drain(child: subprocess.Popen[bytes], timeout: float) -> bytes:
    """Wait for the end and return what was said on stderr, at most `MAX_STDERR` of it (all of it is read)."""
    import selectors

    pipe = child.stderr
    if pipe is None:
        raise ValueError("the command was started without a pipe for stderr")
    kept = bytearray()
    deadline = time.monotonic() + timeout
    with selectors.DefaultSelector() as selector, pipe:
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise subprocess.TimeoutExpired(child.args, timeout)
            if not selector.select(left):
                continue
            piece = os.read(pipe.fileno(), 65536)
            if not piece:
                break
            kept += piece[: max(0, MAX_STDERR - len(kept))]
    child.wait(max(0.0, deadline - time.monotonic()))
    return bytes(kept)


def _kill_group(child: subprocess.Popen[bytes]) -> None:
    """End the command with everything that it started: it leads a session of its own."""
    for number, patience in ((signal.SIGTERM, _GRACE_S), (signal.SIGKILL, _GRACE_S)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(patience)
            if number is signal.SIGKILL:
                return
    # after TERM the leader may be gone and a child of its still there: KILL was sent to the whole group as well


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace").replace("\0", "\\x00")


def first_line(text: str, limit: int = 300) -> str:
    """The first line that says something, shortened for a message."""
    for line in text.splitlines():
        if line.strip():
            return line.strip()[:limit]
    return ""
