"""The command line as its users run it, and the lake that it writes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from queuecast.store.lake import Lake

from .cluster import Cluster

Row = dict[str, Any]
SEPARATED = "unit\x1fseparator"
"""A job name that holds queuecast's delimiter. sbatch takes it."""


@dataclass
class Queuecast:
    cluster: Cluster
    path: Path

    def run(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """``queuecast WORDS --lake ...`` in another process, in English and UTC."""
        code = "from queuecast.cli.main import main; main()"
        env = {
            **os.environ,
            "SLURM_CONF": str(self.cluster.conf),
            "LC_ALL": "C.UTF-8",
            "QUEUECAST_LANG": "en",
            "TZ": "UTC",
            "QUEUECAST_LAKE": str(self.path),
        }
        done = subprocess.run([sys.executable, "-c", code, *words], env=env, capture_output=True, text=True, timeout=120)
        assert "Traceback" not in done.stderr, done.stderr
        if check:
            assert done.returncode == 0, f"{words}: {done.stdout}\n{done.stderr}"
        return done

    def collect(self) -> Row:
        """Collect once; the counts. A failing kind is an error here, and a reject too."""
        told: Row = json.loads(self.run("collect", "--json").stdout)
        assert told["failures"] == [], told
        assert self.rows("rejects") == []
        return told

    def answer(self, *words: str) -> Any:
        return json.loads(self.run(*words, "--json").stdout)

    @property
    def lake(self) -> Lake:
        return Lake.open(self.path)

    def rows(self, table: str) -> list[Row]:
        found: list[Row] = self.lake.read(table).to_pylist()
        return found

    def newest(self, table: str) -> list[Row]:
        """The rows of the last snapshot."""
        rows = self.rows(table)
        last = max(row["observed_at"] for row in rows)
        return [row for row in rows if row["observed_at"] == last]
