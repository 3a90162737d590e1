"""The flags that tell a request, with sbatch's own letters: shared by the commands that take one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

_S = typer.Option
PartitionOption = Annotated[str | None, _S("-p", "--partition")]
AccountOption = Annotated[str | None, _S("-A", "--account")]
QosOption = Annotated[str | None, _S("-q", "--qos")]
TimeOption = Annotated[str | None, _S("-t", "--time", help="Time limit as for sbatch: 30, 12:00:00, 1-00:00:00.")]
GresOption = Annotated[str | None, _S("--gres", help="Per node: gpu:a100:4.")]
GpusOption = Annotated[str | None, _S("-G", "--gpus", help="Total: 8 or a100:8.")]
GpusPerNodeOption = Annotated[str | None, _S("--gpus-per-node")]
GpusPerTaskOption = Annotated[str | None, _S("--gpus-per-task")]
NodesOption = Annotated[str | None, _S("-N", "--nodes")]
TasksOption = Annotated[str | None, _S("-n", "--ntasks")]
CpusOption = Annotated[str | None, _S("-c", "--cpus-per-task")]
MemOption = Annotated[str | None, _S("--mem")]
MemPerCpuOption = Annotated[str | None, _S("--mem-per-cpu")]
ArrayOption = Annotated[str | None, _S("-a", "--array")]

NAMES = (
    *("partition", "account", "qos", "time", "gres", "gpus", "gpus_per_node", "gpus_per_task"),
    *("nodes", "ntasks", "cpus_per_task", "mem", "mem_per_cpu", "array"),
)


def request_flags(given: Mapping[str, Any]) -> dict[str, str]:
    """Of a command's arguments those that tell the request, by sbatch's long names; what was not given is left out."""
    return {name.replace("_", "-"): given[name] for name in NAMES if given[name] is not None}
