"""What the tests need of the machine: packages, commands, ports, patience."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path


class ClusterError(Exception):
    """Something did not come up; the message holds the end of the log that tells why."""


def wait(seconds: float, what: str, every: float = 0.2) -> Iterator[None]:
    """Steps of a loop that ends by ``break`` or ``return``; raises `ClusterError` when the time is over."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
        time.sleep(every)
    raise ClusterError(f"{what} after {seconds:.0f} s")


def system(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise ClusterError(f"{' '.join(command)} failed: {(done.stderr or done.stdout)[-2000:]}")
    return done.stdout


def free_port() -> int:
    """A port of loopback that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def wait_for_port(port: int, seconds: float) -> None:
    """Until something listens there; raises `ClusterError` when the time is over."""
    for _ in wait(seconds, f"nothing listens at {port}"):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return


def install(packages: Sequence[str]) -> None:
    """Install the Debian packages that are missing, without letting them start anything."""

    def there(package: str) -> bool:
        done = subprocess.run(["dpkg-query", "-W", "-f=${db:Status-Abbrev}", package], capture_output=True, text=True)
        return done.stdout.startswith("ii")

    missing = [p for p in packages if not there(p)]
    if not missing:
        return
    policy = Path("/usr/sbin/policy-rc.d")
    made = not policy.exists()
    if made:
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
    try:
        system("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "update", "-q")
        system("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "-q", "--no-install-recommends", *missing)
    finally:
        if made:
            policy.unlink()
