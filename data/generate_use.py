"""Makes up what the demo recording's jobs used: its GPUs are virtual and its steps carry no usage.

    python data/generate_use.py data/campus-22.05

reads sacct.txt.gz there and writes use.csv.gz (one row per ended job that had started) and gpu-samples.csv.gz (a reading of
every GPU each 15 minutes of the last two days). Everything is drawn from a hash of the job or of its kind (user and the word in
its name), so the same recording gives the same bytes. Both files have a column ``generated``; nothing in them was measured.

Only the kinds are meant to be like life: requests for memory that are mostly not used, several GPUs of which one works, little
memory on a large card, input that a CPU prepares too slowly while the GPU waits, and jobs that use what they were given.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

SEED = "campus-use-1"
GIB = 1 << 30
CARDS = {
    "v100": ("Tesla V100-SXM2-32GB", 32768, 300),
    "a100": ("NVIDIA A100-SXM4-80GB", 81920, 400),
    "h100": ("NVIDIA H100 80GB HBM3", 81559, 700),
}
"""By GPU type: name, MiB, watts at full load."""
NODES = {"v100": (6, 4), "a100": (8, 4), "h100": (4, 8)}
STEP = timedelta(minutes=15)
LAST = timedelta(days=2)
IDLE_AFTER = timedelta(hours=4)
"""Of the jobs that still run and have run so long, every second one stopped computing after a quarter of its time."""


@dataclass(frozen=True)
class Job:
    id: str
    submit: datetime
    start: datetime
    end: datetime | None
    user: str
    name: str
    state: str
    exit_code: int
    elapsed: int
    cpus: int
    memory: int
    gpus: int
    gpu_type: str | None
    node: str


@dataclass(frozen=True)
class Kind:
    """How jobs of one user with one word in the name behave. Shares of 1; memory of one GPU in GiB."""

    memory: float
    spread: float
    changes: float
    cpu: str
    gpu: str
    util: float
    gpu_gib: float


@dataclass(frozen=True)
class Use:
    cpu_s: float
    memory: int
    gpus_used: int
    utils: tuple[float, ...]
    gpu_memory: int


def draw(*key: object) -> random.Random:
    """A source of numbers that depends on the key alone."""
    digest = hashlib.sha256("\x1f".join([SEED, *map(str, key)]).encode()).digest()
    return random.Random(int.from_bytes(digest[:8], "big"))


def kind_of(job: Job) -> Kind:
    word = re.sub(r"[\d_-]+$", "", job.name)
    r = draw("kind", job.user, word)
    low, high = r.choices([(0.06, 0.25), (0.35, 0.6), (0.7, 0.88)], [0.45, 0.35, 0.2])[0]
    gpu = r.choices(["busy", "one", "small", "input"], [0.35, 0.25, 0.25, 0.15])[0]
    if word in ("preprocess", "align") and r.random() < 0.6:
        gpu = "input"
    util = {"busy": (0.72, 0.95), "one": (0.7, 0.95), "small": (0.3, 0.7), "input": (0.03, 0.14)}[gpu]
    gib = {"busy": (14.0, 29.0), "one": (8.0, 26.0), "small": (2.5, 9.0), "input": (2.0, 10.0)}[gpu]
    return Kind(
        r.uniform(low, high),
        r.uniform(0.04, 0.2),
        r.choice([1.0] * 6 + [1.6, 0.6]),
        r.choices(["all", "one", "part"], [0.5, 0.25, 0.25])[0],
        gpu,
        r.uniform(*util),
        r.uniform(*gib),
    )


def use_of(job: Job, middle: datetime) -> Use:
    """What a job used, as a share of what it was given, in keeping with how it ended."""
    kind, r = kind_of(job), draw("job", job.id, job.submit.isoformat())
    share = kind.memory * r.lognormvariate(0.0, kind.spread) * (kind.changes if job.start > middle else 1.0)
    memory = int(job.memory * min(0.985, max(0.002, share)))
    if job.gpus:
        cpu = r.uniform(0.9, 1.0) if kind.gpu == "input" else r.uniform(0.15, 0.55)
    elif kind.cpu == "all":
        cpu = r.uniform(0.86, 0.995)
    elif kind.cpu == "one":
        cpu = r.uniform(0.93, 0.995) / job.cpus
    else:
        cpu = r.uniform(0.4, 0.7)
    utils = [min(0.99, kind.util * r.lognormvariate(0.0, 0.08)) for _ in range(job.gpus)]
    if kind.gpu == "one":
        utils = utils[:1] + [0.0] * (job.gpus - 1)
    gpu_memory = kind.gpu_gib * r.lognormvariate(0.0, 0.07) * GIB
    if r.random() < 0.02:
        utils = [0.0] * job.gpus  # allocated and never touched
    if not any(utils):
        gpu_memory = 0.0
    total = CARDS[job.gpu_type][1] << 20 if job.gpu_type else 0
    if job.state == "FAILED" and job.exit_code == 9:
        memory = int(job.memory * r.uniform(0.99, 1.0))  # killed: it stood at the limit
    if job.state == "FAILED" and job.exit_code == 127 and job.elapsed < 900:
        memory, cpu, utils, gpu_memory = int(0.004 * job.memory), 0.01, [0.0] * job.gpus, 0.0  # its program was not found
    if job.state == "FAILED" and job.exit_code == 1 and any(utils) and kind.gpu == "busy" and r.random() < 0.5:
        gpu_memory = total * r.uniform(0.985, 0.995)  # the card was full
    return Use(round(cpu * job.cpus * job.elapsed, 1), memory, sum(u > 0 for u in utils), tuple(utils), int(min(gpu_memory, 0.995 * total)))


def jobs_of(folder: Path) -> tuple[list[Job], datetime]:
    """Started jobs of the recording, and the moment it was taken."""
    at = datetime.fromisoformat((folder / "taken-at.txt").read_text().split()[0].rstrip("Z")).replace(tzinfo=UTC)
    out = []
    with gzip.open(folder / "sacct.txt.gz", "rt", encoding="utf-8", errors="replace") as lines:
        names = next(lines).rstrip("\n").split("\x1f")
        for line in lines:
            row = dict(zip(names, line.rstrip("\n").split("\x1f"), strict=False))
            job = job_of(row, at) if "." not in row.get("JobID", ".") else None
            if job is not None:
                out.append(job)
    return out, at


def job_of(row: dict[str, str], at: datetime) -> Job | None:
    tres = dict(part.split("=", 1) for part in row["AllocTRES"].split(",") if "=" in part)
    start, end = when(row["Start"]), when(row["End"])
    if start is None or "cpu" not in tres:
        return None
    kind = next((key.partition(":")[2] for key in tres if key.startswith("gres/gpu:")), None)
    memory = re.fullmatch(r"([\d.]+)([KMGT])", tres.get("mem", "0M"))
    unit = 1 << {"K": 10, "M": 20, "G": 30, "T": 40}[memory[2]] if memory else 0
    state = row["State"].split()[0]
    elapsed = int((at - start).total_seconds()) if state == "RUNNING" else int(row["ElapsedRaw"] or 0)
    submit = when(row["Submit"])
    assert submit is not None
    return Job(
        row["JobIDRaw"],
        submit,
        start,
        end,
        row["User"],
        row["JobName"],
        state,
        int(row["ExitCode"].split(":")[0]),
        elapsed,
        int(tres["cpu"]),
        int(float(memory[1]) * unit) if memory else 0,
        int(tres.get("gres/gpu", 0)),
        kind,
        row["NodeList"],
    )


def when(text: str) -> datetime | None:
    return datetime.fromisoformat(text).replace(tzinfo=UTC) if text[:1].isdigit() else None


def use_rows(jobs: list[Job], middle: datetime) -> Iterator[str]:
    yield (
        "JobID,Submit,cpu_s,mem_peak_bytes,gpus_seen,gpus_used,gpu_util_mean,gpu_util_peak,gpu_mem_peak_bytes,gpu_mem_total_bytes,generated"
    )
    for job in jobs:
        if job.end is None or job.state == "RUNNING":
            continue
        use = use_of(job, middle)
        cells = [job.id, f"{job.submit:%Y-%m-%dT%H:%M:%S}", f"{use.cpu_s:.1f}", str(use.memory // (1 << 20) << 20)]
        if job.gpus and job.gpu_type:
            mean, peak = sum(use.utils) / job.gpus, min(1.0, max(use.utils) * 1.08)
            cells += [
                str(job.gpus),
                str(use.gpus_used),
                f"{mean:.3f}",
                f"{peak:.2f}",
                str(use.gpu_memory // (1 << 20) << 20),
                str(CARDS[job.gpu_type][1] << 20),
            ]
        else:
            cells += [""] * 6
        yield ",".join([*cells, "true"])


def places(jobs: list[Job]) -> Iterator[tuple[Job, tuple[int, ...]]]:
    """Which of a node's GPUs each job held: the lowest that were free, in the order of the starts."""
    held: dict[str, dict[int, datetime]] = {}
    for job in sorted((j for j in jobs if j.gpus and j.gpu_type), key=lambda j: (j.start, j.id)):
        node = held.setdefault(job.node, {})
        free = [i for i in range(NODES[job.gpu_type or ""][1]) if i not in node or node[i] <= job.start]
        chosen = tuple(free[: job.gpus])
        for i in chosen:
            node[i] = job.end or datetime.max.replace(tzinfo=UTC)
        yield job, chosen


def sample_rows(jobs: list[Job], at: datetime, middle: datetime) -> Iterator[str]:
    yield "timestamp, host, index, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw [W], job_id, generated"
    first = at.replace(minute=at.minute // 15 * 15, second=0) - LAST
    long = sorted((j.id for j in jobs if j.state == "RUNNING" and j.gpus and at - j.start >= IDLE_AFTER), key=int)
    idle = set(long[::2])
    by_gpu: dict[tuple[str, int], list[tuple[Job, int, Use]]] = {}
    for job, chosen in places(jobs):
        if (job.end or at) > first:
            use = use_of(job, middle)
            for place, index in enumerate(chosen):
                by_gpu.setdefault((job.node, index), []).append((job, place, use))
    moment = first
    while moment <= at:
        for kind, (count, gpus) in NODES.items():
            name, mib, watts = CARDS[kind]
            for node in (f"{kind}-{n:02d}" for n in range(1, count + 1)):
                for index in range(gpus):
                    held = next((h for h in by_gpu.get((node, index), ()) if h[0].start <= moment < (h[0].end or at + STEP)), None)
                    util, used = reading(held, moment, at, idle)
                    power = watts * (0.12 + 0.75 * util)
                    yield (
                        f"{moment:%Y/%m/%d %H:%M:%S}.000, {node}, {index}, {name}, {util * 100:.0f} %, {used >> 20} MiB, {mib} MiB, "
                        f"{power:.0f} W, {held[0].id if held else '[N/A]'}, true"
                    )
        moment += STEP


def reading(held: tuple[Job, int, Use] | None, moment: datetime, at: datetime, idle: set[str]) -> tuple[float, int]:
    """(share of 1, bytes) of a GPU at a moment."""
    if held is None:
        return 0.0, 0
    job, place, use = held
    level = use.utils[place]
    stopped = job.id in idle and moment > job.start + (at - job.start) / 4
    if level == 0.0:
        return 0.0, 0
    if stopped:
        return 0.0, use.gpu_memory
    r = draw("sample", job.id, place, moment.isoformat())
    return min(1.0, max(0.01, level * r.uniform(0.92, 1.08))), use.gpu_memory


def write(path: Path, lines: Iterator[str]) -> None:
    """Compressed, with nothing in it that differs from run to run."""
    raw = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=9, mtime=0) as out:
        for line in lines:
            out.write(line.encode() + b"\n")
    path.write_bytes(raw.getvalue())


def main(folder: Path, target: Path) -> None:
    jobs, at = jobs_of(folder)
    middle = at - timedelta(days=5)
    write(target / "use.csv.gz", use_rows(jobs, middle))
    write(target / "gpu-samples.csv.gz", sample_rows(jobs, at, middle))


if __name__ == "__main__":
    source = Path(sys.argv[1] if len(sys.argv) > 1 else "data/campus-22.05")
    main(source, Path(sys.argv[2]) if len(sys.argv) > 2 else source)
