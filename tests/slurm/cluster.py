"""A throwaway Slurm on loopback: real daemons, virtual nodes, GPUs that are plain files.

    python -m tests.slurm.cluster        bring it up, say how to use it, and take it down at the next Enter

Needs root on Debian (it installs the packages it lacks). Everything lies below one folder, each daemon is a child
process and is ended by its process id (or by the kernel, should this process die); no service of the system is touched.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .configuration import ACCOUNTS, CLUSTER, KINDS, SQL_PASSWORD, USERS, dbd_conf, gres_conf, my_cnf, slurm_conf
from .machine import ClusterError, install, system, wait

PACKAGES = (
    "munge",
    "mariadb-server",
    "slurmctld",
    "slurmd",
    "slurmdbd",
    "slurm-client",
    "slurm-wlm-basic-plugins",
    "slurm-wlm-mysql-plugin",
)


@dataclass
class Cluster:
    """A cluster below ``home``. `up`, then commands through `run`, then `down` (which removes ``home``)."""

    home: Path
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)
    _made_users: list[str] = field(default_factory=list)
    _hosts_line: str | None = None

    @classmethod
    def create(cls) -> Cluster:
        home = Path(tempfile.mkdtemp(prefix="qcslurm-", dir="/tmp"))  # short: a socket's path has at most 107 bytes
        home.chmod(0o755)
        return cls(home)

    # ------------------------------------------------------------------ use

    @property
    def conf(self) -> Path:
        return self.home / "etc" / "slurm.conf"

    @property
    def env(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "SACCT_", "SQUEUE_", "SINFO_"))}
        return {**kept, "SLURM_CONF": str(self.conf), "LC_ALL": "C.UTF-8", "TZ": "UTC", "SLURM_BITSTR_LEN": "0"}

    def run(
        self, *command: str | bytes, user: str | None = None, check: bool = True, cwd: Path | None = None, timeout: float = 60
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a client command, as ``user`` if named."""
        argv: list[str | bytes] = ["runuser", "-u", user, "--", *command] if user else list(command)
        done = subprocess.run(argv, env=self.env, cwd=cwd or self.home / "work", capture_output=True, timeout=timeout)
        if check and done.returncode:
            raise ClusterError(f"{argv!r} failed with {done.returncode}: {done.stderr.decode(errors='replace')}")
        return done

    def text(self, *command: str, user: str | None = None, check: bool = True) -> str:
        return self.run(*command, user=user, check=check).stdout.decode("utf-8", "replace")

    def log(self, daemon: str, lines: int = 15) -> str:
        path = self.home / "log" / f"{daemon}.log"
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.exists() else "(no log)"

    # ------------------------------------------------------------------ up

    def up(self) -> None:
        if os.geteuid() != 0:
            raise ClusterError("a real Slurm needs root: its daemons run jobs as their users")
        install(PACKAGES)
        self._people()
        self._folders()
        self._take_ports()
        self._configure()
        try:
            self._munge()
            self._mariadb()
            self.start_slurmdbd()
            self._register()
            self.start_slurmctld()
            self._accounts()
            self._slurmd()
        except BaseException:
            self.down(keep=True)
            raise

    def _people(self) -> None:
        for user in USERS:
            try:
                pwd.getpwnam(user)
            except KeyError:
                system("useradd", "--no-create-home", "--shell", "/bin/bash", user)
                self._made_users.append(user)
        host = socket.gethostname().split(".")[0]
        try:
            here = socket.gethostbyname(host)
        except OSError:
            here = ""
        if not here.startswith("127."):  # slurmctld and slurmd resolve their own name
            self._hosts_line = f"127.0.0.1 {host} # {self.home.name}\n"
            with open("/etc/hosts", "a", encoding="utf-8") as hosts:
                hosts.write(self._hosts_line)

    def _folders(self) -> None:
        for name, owner in (
            ("etc", None),
            ("log", "slurm"),
            ("run", "slurm"),
            ("state", "slurm"),
            ("spool", None),
            ("dev", None),
            ("munge", "munge"),
            ("sql", "mysql"),
            ("work", None),
            ("bin", None),
        ):
            folder = self.home / name
            folder.mkdir(exist_ok=True)
            if owner:
                shutil.chown(folder, owner, owner)
        (self.home / "munge").chmod(0o755)
        (self.home / "log").chmod(0o777)
        (self.home / "work").chmod(0o1777)
        # Daemons learn what they are from their own name; Debian's alternatives may point elsewhere.
        for name in ("slurmctld", "slurmd", "slurmstepd"):
            real = Path(f"/usr/sbin/{name}-wlm")
            (self.home / "bin" / name).symlink_to(real if real.exists() else f"/usr/sbin/{name}")
        for i in range(8):
            (self.home / "dev" / f"gpu{i}").touch()

    def _take_ports(self) -> None:
        names = ["sql", "dbd", "ctld", *(node for kind in KINDS for node in kind.nodes)]
        with contextlib.ExitStack() as stack:
            for name in names:
                probe = stack.enter_context(socket.socket())
                probe.bind(("127.0.0.1", 0))
                self.ports[name] = probe.getsockname()[1]

    def _configure(self) -> None:
        etc = self.home / "etc"
        (etc / "slurm.conf").write_text(slurm_conf(self.home, self.ports))
        (etc / "gres.conf").write_text(gres_conf(self.home))
        release = system(str(self.home / "bin" / "slurmctld"), "-V").split()[-1]
        (etc / "cgroup.conf").write_text("CgroupPlugin=disabled\n" if release >= "23.11" else "CgroupAutomount=no\n")
        self.write_dbd_conf()

    def write_dbd_conf(self, private: str = "") -> None:
        path = self.home / "etc" / "slurmdbd.conf"
        path.write_text(dbd_conf(self.home, self.ports, private))
        shutil.chown(path, "slurm", "slurm")
        path.chmod(0o600)

    # ------------------------------------------------------------------ daemons

    def start(self, name: str, argv: Sequence[str], *, ready: Callable[[], bool], seconds: float = 60, user: str | None = None) -> None:
        """Start a daemon in the foreground of its own session and wait until it is ready."""
        with (self.home / "log" / f"{name}.out").open("ab") as out:
            # should this process be killed, the kernel ends the daemon too; it must not change its user by itself after that
            self.daemons[name] = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", *argv],
                env=self.env,
                cwd=self.home / "log",
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                user=user,
                group=user,
                extra_groups=[] if user else None,
            )
        for _ in wait(seconds, f"{name} is not ready"):
            if self.daemons[name].poll() is not None:
                said = (self.home / "log" / f"{name}.out").read_text(errors="replace")[-2000:]
                raise ClusterError(f"{name} ended with {self.daemons[name].returncode}: {said}\n{self.log(name)}")
            if ready():
                return

    def stop(self, name: str, seconds: float = 20) -> None:
        """End a daemon by its process id and wait for it."""
        daemon = self.daemons.pop(name, None)
        if daemon is None or daemon.poll() is not None:
            return
        daemon.terminate()
        try:
            daemon.wait(seconds)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait(5)

    def _ok(self, *command: str) -> bool:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.run(*command, check=False, timeout=15).returncode == 0
        return False

    def _munge(self) -> None:
        folder = self.home / "munge"
        key = folder / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        shutil.chown(key, "munge", "munge")
        self.start(
            "munged",
            [
                "/usr/sbin/munged",
                "-F",
                f"--key-file={key}",
                f"--socket={folder}/socket",
                f"--pid-file={folder}/pid",
                f"--log-file={folder}/log",
                f"--seed-file={folder}/seed",
                "--num-threads=4",
            ],
            ready=lambda: self._ok("munge", f"--socket={folder}/socket", "-n"),
            user="munge",
        )

    def _mariadb(self) -> None:
        sql = self.home / "sql"
        conf = self.home / "etc" / "my.cnf"
        conf.write_text(my_cnf(self.home, self.ports))
        system(
            "mariadb-install-db", f"--defaults-file={conf}", "--user=mysql", "--auth-root-authentication-method=socket", "--skip-test-db"
        )
        client = ("mariadb", "--no-defaults", "-u", "root", "-S", f"{sql}/socket")
        self.start("mariadbd", ["mariadbd", f"--defaults-file={conf}"], ready=lambda: self._ok(*client, "-e", "SELECT 1"), user="mysql")
        self.run(
            *client,
            "-e",
            f"CREATE DATABASE slurm_acct CHARACTER SET utf8mb4; CREATE USER 'slurm'@'127.0.0.1' IDENTIFIED BY "
            f"'{SQL_PASSWORD}'; GRANT ALL ON slurm_acct.* TO 'slurm'@'127.0.0.1';",
        )

    def start_slurmdbd(self) -> None:
        self.start(
            "slurmdbd",
            ["/usr/sbin/slurmdbd", "-D"],
            user="slurm",
            ready=lambda: "cpu" in self.text("sacctmgr", "-n", "-P", "show", "tres", "format=type", check=False),
        )

    def start_slurmctld(self) -> None:
        self.start(
            "slurmctld",
            [str(self.home / "bin" / "slurmctld"), "-D", "-f", str(self.conf)],
            user="slurm",
            ready=lambda: "is UP" in self.text("scontrol", "ping", check=False),
        )

    def _slurmd(self) -> None:
        binaries = self.home / "bin"
        for kind in KINDS:
            for node in kind.nodes:
                (self.home / "spool" / node).mkdir(exist_ok=True)
                self.start(
                    f"slurmd-{node}",
                    [str(binaries / "slurmd"), "-D", "-N", node, "-f", str(self.conf), "-d", str(binaries / "slurmstepd")],
                    ready=lambda: True,
                )
        try:
            for _ in wait(60, "nodes are not up"):
                states = self.text("sinfo", "-h", "-N", "-o", "%N %T").split("\n")
                if len({s.split()[0] for s in states if s.endswith((" idle", " mixed"))}) == sum(k.count for k in KINDS):
                    return
        except ClusterError as error:
            raise ClusterError(f"{error}: {self.text('sinfo', '-N', check=False)}\n{self.log('slurmd-cpu-1')}") from None

    # ------------------------------------------------------------------ accounting

    def mgr(self, *words: str) -> None:
        """sacctmgr; its exit code is 1 for "nothing new" as well, so its words decide."""
        done = self.run("sacctmgr", "-i", *words, check=False)
        said = (done.stdout + done.stderr).decode(errors="replace")
        if done.returncode and "othing" not in said and "already" not in said:
            raise ClusterError(f"sacctmgr {' '.join(words)}: {said}")

    def _register(self) -> None:
        """What slurmctld needs to start: the cluster, and the QOS that partitions name."""
        self.mgr("add", "cluster", CLUSTER)
        self.mgr("add", "qos", "debug")

    def _accounts(self) -> None:
        for _ in wait(30, "gres/gpu is not registered"):  # limits on a TRES need it in the database
            if "gres|gpu:v100" in self.text("sacctmgr", "-n", "-P", "show", "tres", "format=type,name"):
                break
        self.mgr("modify", "qos", "normal", "set", "Priority=10")
        self.mgr("modify", "qos", "debug", "set", "Priority=100", "MaxJobsPU=1", "MaxTRESPU=gres/gpu=2", "MaxWall=00:20:00")
        self.mgr("add", "qos", "high", "Priority=50", "GrpTRES=gres/gpu=2")
        self.mgr("add", "qos", "small", "Priority=5", "MaxTRESPerJob=cpu=4", "MaxJobsPU=1", "MinTRES=cpu=2", "MaxWall=01:00:00")
        self.mgr("add", "qos", "spent", "GrpTRESMins=cpu=1")
        tree = self.home / "etc" / "accounts.cfg"
        tree.write_text(ACCOUNTS)
        self.run("sacctmgr", "-i", "load", f"file={tree}")
        for _ in wait(20, "associations are not known to slurmctld"):
            if "UserName=qccid(" in self.text("scontrol", "show", "assoc_mgr"):
                return

    # ------------------------------------------------------------------ down

    def down(self, keep: bool = False) -> None:
        """Cancel all jobs, end every process that belongs to this cluster, remove everything (save ``home`` with ``keep``)."""
        if "slurmctld" in self.daemons and self._ok("scontrol", "ping"):
            self.run("scancel", "--state=PENDING", *(f"--user={u}" for u in USERS[:1]), check=False)
            for user in USERS:
                self.run("scancel", "-u", user, check=False)
            with contextlib.suppress(ClusterError):
                for _ in wait(10, "jobs do not end"):
                    if not self.text("squeue", "-h", "-a", "-t", "R,CG", "-o", "%A", check=False).strip():
                        break
        for name in [n for n in self.daemons if n.startswith("slurmd-")] + ["slurmctld", "slurmdbd", "mariadbd", "munged"]:
            self.stop(name)
        for pid in self._left_over():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for user in self._made_users:
            system("userdel", user)
        self._made_users.clear()
        if self._hosts_line:
            hosts = Path("/etc/hosts")
            hosts.write_text(hosts.read_text().replace(self._hosts_line, ""))
            self._hosts_line = None
        if not keep:
            shutil.rmtree(self.home, ignore_errors=True)

    def _left_over(self) -> Iterator[int]:
        """Processes of jobs that outlived their daemon: each carries our configuration in its environment."""
        mark = f"SLURM_CONF={self.conf}".encode()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                with contextlib.suppress(OSError):
                    if mark in (entry / "environ").read_bytes().split(b"\0"):
                        yield int(entry.name)


def main() -> None:
    cluster = Cluster.create()
    try:
        cluster.up()
        print(f"export SLURM_CONF={cluster.conf}")
        input("Enter ends it: ")
    finally:
        cluster.down()


if __name__ == "__main__":
    main()
