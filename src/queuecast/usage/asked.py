"""Who asked for the memory: the user, or the site's default where nobody did."""

from __future__ import annotations

import contextlib
import math
import shlex
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from queuecast.errors import ParseError
from queuecast.slurmtext.sizes import parse_size
from queuecast.store.files import instant
from queuecast.usage.attempts import Attempts

if TYPE_CHECKING:
    import pyarrow as pa

    from queuecast.store.lake import Lake

_OPTIONS = ("--mem", "--mem-per-cpu", "--mem-per-gpu")
_NO_VALUE = frozenset((
    "--parsable", "--exclusive", "--requeue", "--no-requeue", "--hold", "--wait", "--verbose", "--quiet", "--overcommit", "--pty",
    "--oversubscribe", "--contiguous", "--spread-job", "--ignore-pbs", "--use-min-nodes", "--test-only", "--reboot", "--immediate",
    "-H", "-W", "-v", "-Q", "-O", "-s", "-I", "-k", "--no-kill", "-X", "-u", "--unbuffered", "-l", "--label"))  # fmt: skip
"""Options of sbatch and srun that take no value of their own, so that what follows may be the script."""

CLOSE = 0.005
"""Printed sizes are rounded to two decimals of their unit."""


def asks_for_memory(submit_line: str) -> bool:
    """Whether the command line of a submission has ``--mem``, ``--mem-per-cpu`` or ``--mem-per-gpu`` as an option of its own:
    not what stands after ``--wrap`` or after the script."""
    if "--mem" not in submit_line:
        return False
    words = submit_line.split()
    if "'" in submit_line or '"' in submit_line or "\\" in submit_line:  # shlex takes a hundred times as long
        with contextlib.suppress(ValueError):
            words = shlex.split(submit_line)
    before = ""
    for word in words[1:]:
        if word == "--wrap" or word.startswith("--wrap="):
            return False
        if not word.startswith("-"):
            option = before.startswith("--") or (before.startswith("-") and len(before) == 2)
            if not option or "=" in before or before in _NO_VALUE:
                return False  # the script: its own arguments follow
        elif word.partition("=")[0] in _OPTIONS:
            return True
        before = word
    return False


def memory_asked_by(lake: Lake, attempts: Attempts, when: datetime) -> list[str | None]:
    """``user``, ``default`` (not in the command line, and just what the site's DefMem... gives), or None: not told.

    A script may ask in its ``#SBATCH`` lines for what happens to be the default; that cannot be told apart.
    """
    defaults = _Defaults(lake, attempts.cluster, when)
    amount = np.where(np.isnan(attempts.number("mem_alloc_bytes")), attempts.number("mem_req_bytes"), attempts.number("mem_alloc_bytes"))
    counts = zip(*(attempts.number(c).tolist() for c in ("cpus_alloc", "cpus_req", "nodes_alloc", "gpus_alloc")), strict=True)
    asks: dict[str, bool] = {}
    out: list[str | None] = []
    for line, partition, given, (cpus, wanted, nodes, gpus) in zip(
        attempts.texts("submit_line"), attempts.texts("partition"), amount.tolist(), counts, strict=True
    ):
        if line is None:
            out.append(None)
            continue
        if line not in asks:
            asks[line] = asks_for_memory(line)
        if asks[line]:
            out.append("user")
        else:
            out.append("default" if any(_close(given, d) for d in defaults.amounts(partition, (cpus, wanted), nodes, gpus)) else None)
    return out


def _close(given: float, default: float) -> bool:
    return default > 0 and abs(given - default) <= CLOSE * default


class _Defaults:
    """DefMemPerCPU, DefMemPerNode and DefMemPerGPU in bytes, of partitions and of the cluster, as last read by then (else first)."""

    def __init__(self, lake: Lake, cluster: str, when: datetime) -> None:
        rows = _reading(lake.read("partitions", cluster=cluster), when).to_pylist()
        self._partitions = {r["partition"].casefold(): (r["def_mem_per_cpu_bytes"], r["def_mem_per_node_bytes"]) for r in rows}
        settings = lake.read("settings", cluster=cluster)
        config = _reading(settings.filter(pc.equal(settings["section"], "config")), when).to_pylist()  # weights are read apart
        values = {r["key"].casefold(): r["value"] for r in config if r["key"]}
        self._cluster = (_megabytes(values.get("defmempercpu")), _megabytes(values.get("defmempernode")))
        jobs = dict(p.split("=", 1) for p in (values.get("jobdefaults") or "").split(",") if "=" in p)
        self._per_gpu = _megabytes(values.get("defmempergpu") or jobs.get("DefMemPerGPU"))

    def amounts(self, partition: str | None, cpus: tuple[float, ...], nodes: float, gpus: float) -> list[float]:
        per_cpu, per_node = self._partitions.get((partition or "").partition(",")[0].casefold(), (None, None))
        if per_cpu is None and per_node is None:
            per_cpu, per_node = self._cluster
        found = [per_cpu * c for c in cpus] if per_cpu else []
        found += [per_node * nodes] if per_node else []
        found += [self._per_gpu * gpus] if self._per_gpu and gpus > 0 else []
        return [f for f in found if not math.isnan(f)]


def _reading(table: pa.Table, when: datetime) -> pa.Table:
    """The rows of the last reading by ``when``; where all are later the first."""
    if not table.num_rows:
        return table
    early = table.filter(pc.less_equal(table["observed_at"], instant(when)))
    chosen = pc.max(early["observed_at"]) if early.num_rows else pc.min(table["observed_at"])
    return table.filter(pc.equal(table["observed_at"], chosen))


def _megabytes(text: str | None) -> int | None:
    try:
        return parse_size(text, "M") if text else None
    except ParseError:
        return None
