"""All benchmarks: ``make bench`` (ARGS="--quick" for a tenth of the size)."""

from __future__ import annotations

import argparse
import sys

from tests.benchmarks import ask, ingest


def main() -> None:
    """One JSON line per figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    sys.argv = ["ingest", *(["--rows", "100000", "--peer-rows", "20000"] if args.quick else ["--big", "10000000"])]
    ingest.main()
    sys.argv = ["ask", *(["--jobs", "100000", "--days", "36"] if args.quick else [])]
    ask.main()


if __name__ == "__main__":
    main()
