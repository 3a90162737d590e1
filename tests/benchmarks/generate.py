"""Text as ``sacct`` prints it for ``queuecast collect``: jobs with their steps, realistic columns and values.

python -m tests.benchmarks.generate FILE --rows 1000000 [--days 360]
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

FIELDS = (
    "JobIDRaw JobID User UID Account Partition QOS State ExitCode DerivedExitCode Reason Submit Eligible Start End Elapsed ElapsedRaw "
    "Suspended Planned Timelimit TimelimitRaw Priority ReqNodes NNodes AllocNodes ReqCPUS NCPUS AllocCPUS ReqMem ReqTRES AllocTRES "
    "NodeList NTasks TotalCPU MaxRSS AveRSS TRESUsageInTot TRESUsageInMax TRESUsageInAve ConsumedEnergyRaw Flags Restarts DBIndex "
    "SLUID QOSREQ Licenses Reservation Constraints JobName WorkDir Comment AdminComment SubmitLine Cluster"
).split()
DELIMITER = "\x1f"
START = datetime(2025, 1, 1, tzinfo=UTC)
PARTITIONS = (("gpu", "a100", 4), ("gpu", "v100", 1), ("h100", "h100", 8), ("cpu", "", 0), ("cpu", "", 0), ("debug", "v100", 1))
NAMES = ("train", "eval", "sweep", "preprocess", "finetune", "infer", "ablation", "align", "fold", "数据处理")


def _time(value: datetime | None) -> str:
    return "Unknown" if value is None else value.strftime("%Y-%m-%dT%H:%M:%S")


def _span(seconds: int) -> str:
    days, rest = divmod(seconds, 86400)
    clock = f"{rest // 3600:02d}:{rest % 3600 // 60:02d}:{rest % 60:02d}"
    return f"{days}-{clock}" if days else clock


def records(rows: int, days: float = 360.0, seed: int = 1, cluster: str = "bench") -> Iterator[list[str]]:
    """``rows`` records, each a list in the order of ``FIELDS``; about 2.6 steps a job."""
    rng = random.Random(seed)
    made, number = 0, 1000
    jobs = max(1, rows * 10 // 36)
    while made < rows:
        number += 1
        partition, kind, per_node = rng.choice(PARTITIONS)
        user = rng.randrange(400)
        submit = START + timedelta(seconds=int((number - 1000) / jobs * days * 86400))
        wait, run = int(rng.lognormvariate(6.5, 2.2)), int(rng.lognormvariate(7.5, 1.6)) + 5
        limit = rng.choice((60, 240, 720, 1440, 2880))
        cpus, nodes, mem = rng.choice((1, 4, 8, 16, 32)), rng.choice((1, 1, 1, 2, 4)), rng.choice((4, 16, 32, 64))
        roll = rng.random()
        state = "COMPLETED" if roll < 0.75 else "FAILED" if roll < 0.87 else "TIMEOUT" if roll < 0.92 else f"CANCELLED by {1000 + user}"
        started = not (state.startswith("CANCELLED") and rng.random() < 0.6)
        begin = submit + timedelta(seconds=wait) if started else None
        if not started:
            run = 0
        end = (begin or submit + timedelta(seconds=wait)) + timedelta(seconds=run)
        gres = f",gres/gpu:{kind}={per_node * nodes},gres/gpu={per_node * nodes}" if kind else ""
        tres = f"billing={cpus * nodes},cpu={cpus * nodes}{gres},mem={mem * nodes}G,node={nodes}"
        name = f"{rng.choice(NAMES)}-{rng.randrange(3000)}"
        hosts = (
            "None assigned"
            if not started
            else (
                f"{partition}-{rng.randrange(1, 120):03d}"
                if nodes == 1
                else f"{partition}-[{(first := rng.randrange(1, 110)):03d}-{first + nodes - 1:03d}]"
            )
        )
        raw, shown = str(number), str(number) if rng.random() < 0.7 else f"{number - number % 50}_{number % 50}"
        used = int(run * cpus * nodes * rng.random())
        yield [
            raw,
            shown,
            f"user{user:03d}",
            str(1000 + user),
            f"lab{user % 37}",
            partition,
            "normal",
            state,
            "0:0",
            "0:0",
            "None",
            _time(submit),
            _time(submit),
            _time(begin) if begin else "None",
            _time(end),
            _span(run),
            str(run),
            "00:00:00",
            _span(wait),
            _span(limit * 60),
            str(limit),
            str(rng.randrange(1, 20000)),
            str(nodes),
            str(nodes),
            str(nodes if started else 0),
            str(cpus * nodes),
            str(cpus * nodes),
            str(cpus * nodes if started else 0),
            f"{mem * nodes}G",
            tres,
            tres if started else "",
            hosts,
            "",
            _span(used),
            "",
            "",
            "",
            "",
            "",
            "",
            "SchedBackfill,StartReceived",
            "0",
            str(10968104258476505088 + number),
            f"s{number:013X}",
            "normal",
            "",
            "",
            "",
            name,
            f"/home/user{user:03d}/project/{name}",
            "",
            "",
            f"sbatch -p {partition} --gres=gpu:{kind}:{per_node} -t {limit} -J {name} job.sh",
            cluster,
        ]
        made += 1
        if not started:
            continue
        for step in ("batch", "extern", *map(str, range(rng.choice((0, 0, 1, 1, 2))))):
            if made >= rows:
                return
            rss = rng.randrange(1000, 60_000_000)
            usage = f"cpu={_span(used // 2)},energy=0,fs/disk={rss * 3},mem={rss}K,pages=0,vmem={rss + 9000}K"
            label = step if step in ("batch", "extern") else rng.choice(("python", "bash", "train.py"))
            yield [
                f"{raw}.{step}",
                f"{shown}.{step}",
                "",
                "",
                f"lab{user % 37}",
                "",
                "",
                state.split()[0],
                "0:0",
                "",
                "",
                _time(begin),
                _time(begin),
                _time(begin),
                _time(end),
                _span(run),
                str(run),
                "00:00:00",
                "",
                "",
                "",
                "",
                str(nodes),
                str(nodes),
                str(nodes),
                str(cpus),
                str(cpus),
                str(cpus),
                "",
                "",
                f"cpu={cpus},mem={mem}G,node={nodes}",
                hosts,
                str(nodes),
                _span(used // 2),
                f"{rss}K",
                f"{rss}K",
                usage,
                usage,
                usage,
                "0",
                "",
                "",
                str(10968104258476505088 + number),
                f"s{number:013X}",
                "",
                "",
                "",
                "",
                label,
                "",
                "",
                "",
                "",
                cluster,
            ]
            made += 1


def write(path: Path, rows: int, days: float = 360.0) -> None:
    """Write the file, with the header that names the columns."""
    with path.open("w", encoding="utf-8") as out:
        out.write(DELIMITER.join(FIELDS) + "\n")
        buffer = []
        for record in records(rows, days):
            buffer.append(DELIMITER.join(record))
            if len(buffer) == 20000:
                out.write("\n".join(buffer) + "\n")
                buffer.clear()
        if buffer:
            out.write("\n".join(buffer) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--days", type=float, default=360.0)
    args = parser.parse_args()
    write(args.file, args.rows, args.days)
