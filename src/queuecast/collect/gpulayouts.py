"""How readings of GPUs are laid out: nvidia-smi's CSV, DCGM's fields as CSV (a column or a row for each), dcgmi dmon's table.

Like Slurm's tables they are known by their header. nvidia-smi may be asked to print none: then only the order of
``timestamp,index,uuid,name,utilization.gpu,memory.used,memory.total,power.draw`` is understood.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from typing import Literal

Form = Literal["nvidia-smi", "wide", "long", "dmon"]
FIELDS = ("time", "node", "gpu", "uuid", "gpu_name", "job", "util", "mem_used", "mem_total", "mem_free", "power", "generated", "metric",
          "value")

_NAMES = {
    "timestamp": "time", "time": "time", "datetime": "time", "date": "time", "ts": "time",
    "host": "node", "hostname": "node", "node": "node", "nodename": "node", "instance": "node",
    "index": "gpu", "gpu": "gpu", "gpuindex": "gpu", "gpuid": "gpu", "minor": "gpu", "device": "gpu",
    "uuid": "uuid", "gpuuuid": "uuid",
    "name": "gpu_name", "gpuname": "gpu_name", "modelname": "gpu_name", "productname": "gpu_name",
    "jobid": "job", "hpcjob": "job", "slurmjobid": "job", "job": "job",
    "utilizationgpu": "util", "dcgmfidevgpuutil": "util", "dcgmgpuutilization": "util",
    "dcgmfiprofgrengineactive": "util_share",
    "memoryused": "mem_used", "dcgmfidevfbused": "mem_used", "dcgmfbused": "mem_used",
    "memorytotal": "mem_total", "dcgmfidevfbtotal": "mem_total",
    "memoryfree": "mem_free", "dcgmfidevfbfree": "mem_free", "dcgmfbfree": "mem_free",
    "powerdraw": "power", "dcgmfidevpowerusage": "power", "dcgmpowerusage": "power",
    "generated": "generated", "metric": "metric", "metricname": "metric", "value": "value",
}
_DMON = {"GPUTL": "util", "GRACT": "util_share", "FBUSD": "mem_used", "FBTTL": "mem_total", "FBFRE": "mem_free", "POWER": "power",
         "PMUSE": "power"}
METRICS = {name: field for name, field in _NAMES.items() if name.startswith("dcgm")}
"""DCGM's field names without case and underscores, for rows that name one each."""

_PLAIN = ("time", "gpu", "uuid", "gpu_name", "util", "mem_used", "mem_total", "power")
_NO_HEADER = re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(\.\d+)?, *\d+, *(GPU|MIG)-[^,]*,([^,]*,){4}[^,]*$")


@dataclass(frozen=True)
class GpuLayout:
    """``at``: position of each field in a row. ``units``: what a bare number counts, as the header says. ``count``: fields of a row."""

    form: Form
    at: dict[str, int]
    units: dict[str, str]
    count: int
    delimiter: str = ","
    header: str = ""

    @property
    def source(self) -> str:
        """As the table's column ``source`` says it."""
        return "nvidia-smi" if self.form == "nvidia-smi" else "dcgm"


def layout_of(line: str) -> GpuLayout | None:
    """The layout that a first line tells; None if it is none of GPU readings."""
    line = line.strip()
    if len(line) > 4096:
        return None
    if re.match(r"#\s*Entity\b", line):
        return _dmon(line)
    if _NO_HEADER.match(line):
        return GpuLayout("nvidia-smi", {name: i for i, name in enumerate(_PLAIN)}, {}, len(_PLAIN))
    for delimiter in (",", "\t", ";"):
        if delimiter in line and (found := _csv(line, delimiter)) is not None:
            return found
    return None


def _csv(line: str, delimiter: str) -> GpuLayout | None:
    names = cells(line, delimiter)
    at: dict[str, int] = {}
    units: dict[str, str] = {}
    for i, name in enumerate(names):
        match = re.fullmatch(r"([^\[\]]*)(?:\[([^\[\]]*)\])?", name)
        key = _key(match[1] if match else name)
        field = "metric" if name == "__name__" else _NAMES.get(key)
        if field is not None and field not in at:
            at[field] = i
            if match and match[2]:
                units[field] = match[2].strip()
    if "metric" in at or ("gpu_name" in at and "value" in at):
        at.setdefault("metric", at.get("gpu_name", -1))
        if at["metric"] == at.get("gpu_name"):
            del at["gpu_name"]  # ``name`` names the metric here
        return GpuLayout("long", at, units, len(names), delimiter, line) if {"time", "value"} <= at.keys() and _gpu(at) else None
    if not ({"time"} <= at.keys() and _gpu(at) and at.keys() & {"util", "util_share", "mem_used"}):
        return None
    dcgm = any(_key(n).startswith("dcgm") for n in names)
    return GpuLayout("wide" if dcgm else "nvidia-smi", at, units, len(names), delimiter, line)


def _gpu(at: dict[str, int]) -> bool:
    return "gpu" in at or "uuid" in at


def _dmon(line: str) -> GpuLayout | None:
    words = line.lstrip("#").split()[1:]
    at = {_DMON[word]: i + 2 for i, word in enumerate(words) if word in _DMON}
    return GpuLayout("dmon", {"gpu": 1} | at, {}, len(words) + 2, "", line) if at else None


def cells(line: str, delimiter: str) -> list[str]:
    """The fields of one line; quotes never reach over its end."""
    return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])]


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def metric_of(text: str) -> str | None:
    """The field that a metric's name stands for; None if it is not read."""
    return METRICS.get(_key(text))


_DROP = re.compile(r"(?i)(?:^|[-_. ])(?:nvidia[-_]?smi|dcgmi?|dmon|gpus?[-_]?(?:util|usage|samples?|stats|log)|samples?|usage|csv|log|txt"
                   r"|gz|zst|xz|bz2|\d{4}-?\d\d-?\d\d(?:[T_-]?\d{2,6})?)(?=[-_. ]|$)")


def node_of_path(path: str) -> str | None:
    """The node that a file's path names: ``gpu07.csv``, ``nvidia-smi_gpu07.csv.gz``, ``gpu07/nvidia-smi.csv``; None if none is left
    once the words for tools and dates are gone."""
    parts = [p for p in path.replace("\\", "/").split("/") if p]
    for part in reversed(parts[-2:]):
        left = part
        while (shorter := _DROP.sub("", left)) != left:
            left = shorter
        node = node_name(left.strip("-_. "))
        if node is not None:
            return node
    return None


def node_name(text: str) -> str | None:
    """A host's name as Slurm's nodes are called: without port and domain; None for what is no host's name."""
    text = text.strip()
    if re.fullmatch(r"\d+(\.\d+){3}(:\d+)?", text):
        return text.partition(":")[0]
    name = text.partition(":")[0].partition(".")[0]
    return name if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}", name) else None
