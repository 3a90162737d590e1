"""sacct text to Parquet, against slurm2sql 0.9.9 (rows per second) and DuckDB's bare read_csv (seconds), same jobs.

python -m tests.benchmarks.ingest [--rows 1000000] [--peer-rows 100000] [--big 10000000]
"""

from __future__ import annotations

import argparse
import csv
import shutil
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.generate import FIELDS, records, write
from tests.benchmarks.measure import Cost, machine, median, python, report, run, show

OURS = """
import sys
from queuecast.store.lake import Lake
from queuecast.collect.ingest import ingest_folder
summary = ingest_folder(sys.argv[1], Lake.open(sys.argv[2], create=True), archive=False)
print(sum(summary.rows.values()), summary.rejected, summary.nulled)
"""
BARE = """
import sys, duckdb
con = duckdb.connect()
read = f"read_csv('{sys.argv[1]}', delim='\\x1f', header=true, quote='', escape='')"
con.execute(f"COPY (SELECT * FROM {read}) TO '{sys.argv[2]}' (FORMAT parquet, COMPRESSION zstd)")
"""
PEER = "import sys, slurm2sql; slurm2sql.main([sys.argv[2], '--csv-input', sys.argv[1], '--quiet'])"


def ours(text: Path, folder: Path, rows: int) -> Cost:
    """Read into an empty lake; every row must arrive."""
    lake = folder / "lake"
    shutil.rmtree(lake, ignore_errors=True)
    cost = python(OURS, str(text), str(lake))
    if cost.said.split() != [str(rows), "0", "0"]:
        raise RuntimeError(f"rows were lost: {cost.said}")
    return cost


def peer(folder: Path, rows: int) -> Cost:
    """slurm2sql on the same records as CSV, its own input format."""
    text, db = folder / "peer.csv", folder / "peer.sqlite"
    with text.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        writer.writerow(FIELDS)
        writer.writerows(records(rows))
    db.unlink(missing_ok=True)
    return python(PEER, str(text), str(db))


def main() -> None:
    """Print one JSON line per figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--peer-rows", type=int, default=100_000)
    parser.add_argument("--big", type=int, default=0, help="also read so many rows, for the memory bound")
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="queuecast-bench-") as name:
        folder = Path(name)
        text = folder / "sacct.txt"
        write(text, args.rows)
        mine, bare = [], []
        for _ in range(args.runs):  # in turn, so that a drifting machine is the same for both
            mine.append(ours(text, folder, args.rows))
            bare.append(python(BARE, str(text), str(folder / "bare.parquet")))
        me, duck, old = median(mine), median(bare), peer(folder, args.peer_rows)
        rate, peer_rate = args.rows / me.wall_s, args.peer_rows / old.wall_s
        shape = {"machine": machine(), "rows": args.rows, "bytes": text.stat().st_size}
        report(
            "ingest_rows_per_s_vs_slurm2sql",
            rate / peer_rate,
            "ratio",
            ">= 15",
            rate / peer_rate >= 15,
            rows_per_s=round(rate),
            peer_rows_per_s=round(peer_rate),
            **shape,
            ours=show(me),
        )
        ratios = sorted(a.wall_s / b.wall_s for a, b in zip(mine, bare, strict=True))
        ratio = ratios[len(ratios) // 2]
        report("ingest_seconds_vs_duckdb_read_csv", ratio, "ratio", "<= 4", ratio <= 4, ours=show(me), bare=show(duck), **shape)
        if args.big:
            text.unlink()
            run([sys.executable, "-m", "tests.benchmarks.generate", str(text), "--rows", str(args.big)])
            big = ours(text, folder, args.big)
            report(
                "ingest_peak_memory",
                big.peak_mib,
                "MiB",
                "< 2048",
                big.peak_mib < 2048,
                rows=args.big,
                bytes=text.stat().st_size,
                ours=show(big),
            )


if __name__ == "__main__":
    main()
