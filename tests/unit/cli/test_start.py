"""The command line starts at once: what is heavy is not imported on the way to an answer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.unit.synthetic import NOW, job_rows, make_lake

HEAVY = ("pandas", "duckdb", "streamlit", "matplotlib", "lightgbm", "pydantic", "babel")


def test_nothing_heavy_on_the_way_to_an_answer(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake", job_rows())
    code = f"""
import sys
sys.argv = "queuecast when -p gpu -G a100:4 -t 60 -A vision".split() + ["--at", {NOW.isoformat()!r}, "--lake", {str(lake.path)!r}]
from queuecast.cli.main import main
try:
    main()
except SystemExit as done:
    assert not done.code, done.code
print("imported:", *[m for m in {HEAVY!r} if m in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "8 in 10" in done.stdout
    assert done.stdout.splitlines()[-1] == "imported:"
