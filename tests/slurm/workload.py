"""What users and admins do to the test cluster: jobs for as many states, reasons and odd texts as fit into a minute."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from .cluster import Cluster
from .machine import ClusterError, wait

ANN, BEN, CID = "qcann", "qcben", "qccid"
ACCOUNT = {ANN: "vision", BEN: "nlp", CID: "course"}

ODD_NAMES: dict[str, bytes] = {
    "pipe": b"a|b||c",
    "newline": b"two\nlines",
    "newlines": b"\n\nthree\n",
    "quotes": b"say \"hi\" and 'bye'",
    "chinese": "训练-模型 v2".encode(),
    "emoji": "café ☕ 🚀".encode(),
    "escape": b"esc\x1b[31mred\x1b[0m",
    "bad-utf8": b"f\xfcr\xff\xfe",
    "unit-separator": b"unit\x1fseparator",
    "record-separator": b"rec\x1eord",
    "tab": b"tab\there",
    "carriage-return": b"cr\r\nlf",
    "blanks": b"  leading and trailing  ",
    "markup": b"<b>bold</b> & <script>",
    "like-null": b"None",
    "like-array": b"12_[3-10%2]",
    "like-header": b"JobID|State",
    "long": b"x" * 300,
    "equals": b"JobState=RUNNING Reason=None",
    "backslash": b"back\\slash\\n",
    "formula": b"=cmd|'/c calc'!A1",
}
"""Names that users really give, or could."""


@dataclass
class Workload:
    """``ids`` by our own name for a job. ``names`` are the odd ones that sbatch took; ``expect`` maps a waiting job to the
    beginning of the reason it should show."""

    cluster: Cluster
    ids: dict[str, int] = field(default_factory=dict)
    odd: dict[str, bytes] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    expect: dict[str, str] = field(default_factory=dict)
    short: list[str] = field(default_factory=list)

    def submit(
        self,
        key: str,
        user: str,
        *args: str | bytes,
        wrap: str = "sleep 900",
        partition: str | None = "cpu",
        name: str | bytes | None = None,
    ) -> int | None:
        """sbatch as ``user``; the id, or None if Slurm refused (then ``refused`` tells why)."""
        place = ["-p", partition] if partition else []
        done = self.cluster.run(
            "sbatch",
            "--parsable",
            "-A",
            ACCOUNT[user],
            *place,
            "-o",
            "/dev/null",
            "-J",
            name or key,
            *args,
            "--wrap",
            wrap,
            user=user,
            check=False,
        )
        if done.returncode:
            self.refused[key] = done.stderr.decode(errors="replace")
            return None
        self.ids[key] = int(done.stdout.split(b";")[0])
        return self.ids[key]

    def need(self, key: str, user: str, *args: str | bytes, wrap: str = "sleep 900", partition: str | None = "cpu") -> int:
        number = self.submit(key, user, *args, wrap=wrap, partition=partition)
        if number is None:
            raise ClusterError(f"job {key} was refused: {self.refused[key]}")
        return number

    def waits(self, reason: str, key: str, user: str, *args: str, partition: str | None = "cpu") -> int:
        """A job that will wait with ``reason``."""
        self.expect[key] = reason
        return self.need(key, user, *args, partition=partition)

    def ends(self, key: str, user: str, *args: str | bytes, wrap: str = "true") -> int:
        """A job that ends soon."""
        self.short.append(key)
        return self.need(key, user, "-n1", "--mem=10", "-t", "5", *args, wrap=wrap)


def play(cluster: Cluster) -> Workload:
    """Submit everything, act on it, and wait until nothing moves any more but time."""
    w = Workload(cluster)
    _running(w)
    _until(w, "running", lambda: set(w.ids.values()) <= _shown(cluster, "R"))
    _nodes_and_reservations(cluster)  # over running jobs: their limits reach into both reservations
    _ending(w)
    _odd_texts(w)
    _waiting(w)
    _limits(w)
    _refused(w)
    _actions(w)
    settle(w)
    return w


def _nodes_and_reservations(c: Cluster) -> None:
    c.run(
        "scontrol",
        "create",
        "reservation",
        "ReservationName=workshop",
        "StartTime=now+2hours",
        "Duration=1:00:00",
        "Nodes=v100-1",
        f"Users={BEN}",
        "Flags=IGNORE_JOBS",
    )
    c.run(
        "scontrol",
        "create",
        "reservation",
        "ReservationName=maintenance",
        "StartTime=now+3days",
        "Duration=8:00:00",
        "Nodes=ALL",
        "Users=root",
        "Flags=MAINT,IGNORE_JOBS",
    )
    c.run("scontrol", "update", "NodeName=cpu-3", "State=DRAIN", 'Reason=bad DIMM | slot "3", see ticket')


def _running(w: Workload) -> None:
    w.need("run-a100", ANN, "-N1", "-n1", "-c8", "--gres=gpu:a100:4", "--mem=8G", "-t", "2:00:00", partition="gpu")
    w.need("run-generic", BEN, "-C", "a100", "-n1", "-c2", "--gpus=2", "--mem=4G", "-t", "2:00:00", partition="gpu")
    w.need("run-v100", ANN, "-N1", "-n1", "--gres=gpu:v100:3", "--mem=4G", "-t", "1-0", partition="gpu")
    w.need("run-high", ANN, "-q", "high", "-n1", "--gres=gpu:a100:2", "--mem=1G", "-t", "2:00:00", partition="gpu")
    w.need("run-unlimited", BEN, "-n2", "--mem=100", "-t", "UNLIMITED")
    w.need("run-hidden", ANN, "-n1", "--mem=10", "-t", "30", partition="hid")
    w.need("run-licence", ANN, "-n1", "--mem=10", "-t", "60", "-L", "matlab:3")
    w.need("timeout", BEN, "-n1", "--mem=10", "-t", "1")
    w.need("to-cancel", BEN, "-n1", "--mem=10", "-t", "60")
    w.need("to-requeue", BEN, "-n1", "--mem=10", "-t", "60", "--requeue")


def _ending(w: Workload) -> None:
    w.ends("done", ANN)
    w.ends("exit-7", ANN, wrap="exit 7")
    w.ends("killed", BEN, wrap="kill -KILL $$")
    w.ends("steps", ANN, "--mem=40", wrap="srun -n1 --mem=10 -J first sleep 1; srun -n1 --mem=10 -J second false; exit 0")
    w.ends("array-done", BEN, "--array=1-4", wrap="exit $((SLURM_ARRAY_TASK_ID % 3))")
    w.ends("requeue-once", ANN, wrap="[ ${SLURM_RESTART_COUNT:-0} -ge 1 ] || exit 98")
    w.need("requeue-held", ANN, "-n1", "--mem=10", "-t", "5", wrap="exit 99")
    w.short.append("het-done")
    w.need(
        "het-done",
        BEN,
        "-p",
        "cpu",
        "-n1",
        "--mem=10",
        "-t",
        "5",
        ":",
        "-p",
        "cpu",
        "-n2",
        "--mem=20",
        "-t",
        "5",
        partition=None,
        wrap="true",
    )
    w.cluster.run("srun", "-A", "vision", "-p", "cpu", "-n1", "--mem=10", "-t", "5", "-J", "interactive", "true", user=ANN)


def _odd_texts(w: Workload) -> None:
    for key, name in ODD_NAMES.items():
        number = w.submit(f"odd-{key}", ANN, "-n1", "--mem=10", "-t", "5", b"--comment=" + name[:60], wrap="true", name=name)
        if number is not None:
            w.odd[f"odd-{key}"] = name
            w.short.append(f"odd-{key}")
    for key in ("pipe", "newline", "chinese", "bad-utf8", "unit-separator"):
        if w.submit(f"odd-held-{key}", BEN, "-H", "-n1", "--mem=10", "-t", "5", name=ODD_NAMES[key]) is not None:
            w.odd[f"odd-held-{key}"] = ODD_NAMES[key]


def _waiting(w: Workload) -> None:
    w.waits("Resources", "wait-first", BEN, "-N1", "-n1", "--gres=gpu:a100:4", "-t", "1:00:00", partition="gpu")
    w.waits("Priority", "wait-behind", BEN, "-N1", "-n1", "--gres=gpu:a100:3", "--nice=200", "-t", "1:00:00", partition="gpu")
    w.need("wait-two-partitions", ANN, "-N1", "-n1", "--gres=gpu:a100:4", "--nice=300", "-t", "1:00:00", partition="gpu,long")
    w.need(
        "wait-het",
        ANN,
        "-p",
        "gpu",
        "-n1",
        "--gres=gpu:a100:4",
        "--mem=1G",
        "-t",
        "30",
        ":",
        "-p",
        "cpu",
        "-n2",
        "--mem=1G",
        "-t",
        "30",
        partition=None,
    )
    w.waits("JobHeldUser", "held-user", ANN, "-H", "-n1", "--mem=10", "-t", "5")
    w.waits("JobHeldAdmin", "held-admin", BEN, "--begin=now+1hour", "-n1", "--mem=10", "-t", "5")
    w.waits("BeginTime", "begin", BEN, "--begin=now+2hours", "-n1", "--mem=10", "-t", "5")
    w.waits("Dependency", "depends", ANN, "-d", f"afterok:{w.ids['run-a100']}", "-n1", "--mem=10", "-t", "5")
    w.waits("DependencyNeverSatisfied", "never", ANN, "-d", f"afterok:{w.ids['exit-7']}", "-n1", "--mem=10", "-t", "5")
    w.waits("JobArrayTaskLimit", "array-throttled", BEN, "--array=0-9%2", "-n1", "--mem=10", "-t", "30")
    w.waits("JobHeldUser", "array-large", BEN, "--array=0-49999", "-H", "-n1", "--mem=10", "-t", "5")
    w.waits("JobHeldUser", "array-gaps", ANN, "--array=" + ",".join(str(n) for n in range(1, 120, 3)), "-H", "-n1", "--mem=10", "-t", "5")
    # in a partition where nothing else waits: behind another job the reason would be Priority every other time
    w.waits("Licenses", "licence", BEN, "-n1", "--mem=10", "-t", "5", "-L", "matlab:2", partition="hid")
    w.waits("Licenses", "cancelled-waiting", BEN, "-n1", "--mem=10", "-t", "5", "-L", "matlab:4", partition="hid")
    w.waits("JobHeldUser", "cancelled-held", ANN, "-H", "-n1", "--mem=10", "-t", "5")
    w.waits("Reservation", "reservation", BEN, "--reservation=workshop", "-n1", "--gres=gpu:v100:1", "-t", "10", partition="gpu")
    w.waits("ReqNodeNotAvail", "drained", ANN, "-w", "cpu-3", "-n1", "--mem=10", "-t", "5")
    w.waits("ReqNodeNotAvail", "maintenance", ANN, "-n1", "--mem=10", "-t", "5-0")


def _limits(w: Workload) -> None:
    w.waits("QOSGrpGRES", "qos-group", BEN, "-q", "high", "-n1", "--gres=gpu:v100:1", "-t", "10", partition="gpu")
    w.need("debug-runs", ANN, "-n1", "--mem=10", "-t", "10", partition="debug")
    w.waits("QOSMaxJobsPerUserLimit", "debug-second", ANN, "-n1", "--mem=10", "-t", "10", partition="debug")
    w.waits("QOSMaxGRESPerUser", "debug-gpus", BEN, "-n1", "--gres=gpu:v100:3", "-t", "10", partition="debug")
    w.waits("PartitionTimeLimit", "debug-long", BEN, "-n1", "--mem=10", "-t", "3:00:00", partition="debug")
    w.waits("PartitionNodeLimit", "debug-nodes", BEN, "-N2", "--mem=10", "-t", "10", partition="debug")
    w.waits("MaxMemPerLimit", "debug-memory", BEN, "-n1", "--mem=20G", "-t", "10", partition="debug")
    w.waits("QOSMaxCpuPerJobLimit", "small-many", BEN, "-q", "small", "-n8", "--mem=10", "-t", "10")
    w.waits("QOSMinCpuNotSatisfied", "small-few", BEN, "-q", "small", "-n1", "--mem=10", "-t", "10")
    w.waits("QOSMaxWallDurationPerJobLimit", "small-wall", BEN, "-q", "small", "-n2", "--mem=10", "-t", "10:00:00")
    w.waits("QOSGrpCPUMinutesLimit", "spent", ANN, "-q", "spent", "-n4", "--mem=10", "-t", "5:00:00")
    w.waits("AssocGrpCpuLimit", "course-cpus", CID, "-n16", "--mem=10", "-t", "10")
    w.waits("AssocGrpGRES", "course-gpus", CID, "-n1", "--gres=gpu:v100:2", "-t", "10", partition="gpu")
    w.waits("AssocMaxWallDurationPerJobLimit", "course-wall", CID, "-n1", "--mem=10", "-t", "10:00:00")
    w.need("seminar-runs", CID, "-A", "seminar", "-n1", "--mem=10", "-t", "20")
    w.waits("AssocGrpJobsLimit", "seminar-second", CID, "-A", "seminar", "-n1", "--mem=10", "-t", "20")
    w.waits("PartitionDown", "down", ANN, "-n1", "--mem=10", "-t", "5", partition="down")
    w.waits("", "account", BEN, "-n1", "--gres=gpu:a100:1", "-t", "5", partition="long")  # a sentence, other in each release


def _refused(w: Workload) -> None:
    w.submit("refused-partition", ANN, "-n1", "-t", "5", partition="nosuch")
    w.submit("refused-gres", ANN, "-n1", "-t", "5", "--gres=gpu:b200:1", partition="gpu")


def _actions(w: Workload) -> None:
    c = w.cluster
    c.run("scontrol", "hold", str(w.ids["held-admin"]))
    c.run("scancel", str(w.ids["to-cancel"]), user=BEN)
    c.run("scontrol", "requeue", str(w.ids["to-requeue"]))
    _until(w, "eligible", lambda: reasons(c).get(w.ids["cancelled-waiting"]) in ("Licenses", "Priority"))
    c.run("scancel", str(w.ids["cancelled-waiting"]), user=BEN)
    c.run("scancel", str(w.ids["cancelled-held"]))
    for key in ("cancelled-waiting", "cancelled-held"):
        del w.expect[key]
    c.run("scancel", f"{w.ids['array-gaps']}_[7,10]", user=ANN)


def _shown(c: Cluster, states: str) -> set[int]:
    return {int(n) for n in c.text("squeue", "-h", "-a", "-t", states, "-o", "%A").split()}


def _until(w: Workload, what: str, ready: Callable[[], bool], seconds: float = 60) -> None:
    for _ in wait(seconds, f"jobs are not {what}", 0.5):
        if ready():
            return


def settle(w: Workload) -> None:
    """Wait until the short jobs have ended in accounting too, and every waiting job has the reason that it will keep."""
    c = w.cluster
    short = {w.ids[k] for k in w.short}

    def ended() -> bool:
        live = {int(n) for n in c.text("squeue", "-h", "-a", "-t", "PD,R,CG,CF,RQ", "-o", "%F").split()}
        if live & short:
            return False
        rows = (
            line.split("|")
            for line in c.text("sacct", "-a", "-X", "-n", "-P", "-S", "now-1hour", "-E", "now", "-o", "JobIDRaw,State").split()
        )
        open_ = {int(r[0]) for r in rows if len(r) > 1 and r[1] in ("PENDING", "RUNNING", "REQUEUED")}
        return not open_ & short

    def reasons_stand() -> bool:
        shown = reasons(c)
        return all(shown.get(w.ids[k], "").startswith(reason) for k, reason in w.expect.items())

    try:
        _until(w, "ended", ended, 90)
        _until(w, "explained", reasons_stand, 60)
    except ClusterError as error:
        shown = reasons(c)
        odd = {k: (reason, shown.get(w.ids[k])) for k, reason in w.expect.items() if not (shown.get(w.ids[k]) or "-").startswith(reason)}
        raise ClusterError(f"{error}; expected and shown: {odd}\n{c.text('squeue', '-a', check=False)}") from error


def reasons(c: Cluster) -> dict[int, str]:
    """Reason of each waiting record, by raw job id."""
    found = re.findall(r"^(\d+) (.*)$", c.text("squeue", "-h", "-a", "-t", "PD", "-o", "%A %r"), re.MULTILINE)
    return {int(number): reason for number, reason in found}
