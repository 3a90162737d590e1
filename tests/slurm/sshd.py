"""A real sshd on loopback, for root with a key made for the test; everything below a temporary folder."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .machine import free_port, install, wait_for_port

PACKAGES = ("openssh-server", "openssh-client")


@dataclass(frozen=True)
class Sshd:
    """``options`` are those that ssh needs to reach it at 127.0.0.1."""

    options: tuple[str, ...]


@contextmanager
def running(folder: Path) -> Iterator[Sshd]:
    """Start sshd, stop it at the end. Raises ClusterError if it does not come up."""
    install(PACKAGES)
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    port = free_port()
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    (folder / "authorized").write_bytes((folder / "user.pub").read_bytes())
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\nPidFile none\n"
        "PermitRootLogin prohibit-password\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\nStrictModes no\n"
    )
    env = {"PATH": os.environ["PATH"]}
    with (folder / "log").open("wb") as log:
        daemon = subprocess.Popen(["/usr/sbin/sshd", "-D", "-e", "-f", str(folder / "sshd_config")], stderr=log, env=env)
    try:
        wait_for_port(port, 20)
        known = folder / "known_hosts"
        yield Sshd(("-F", "none", "-p", str(port), "-i", f"{folder}/user", "-o", "StrictHostKeyChecking=accept-new",
                    "-o", f"UserKnownHostsFile={known}", "-o", "IdentitiesOnly=yes"))
    finally:
        daemon.terminate()
        daemon.wait(10)
