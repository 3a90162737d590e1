"""What is asked for, in the terms of ``sbatch``: from flags, from a script's #SBATCH lines, or from a job."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from queuecast.errors import ParseError, UsageError
from queuecast.i18n import _
from queuecast.slurmtext.durations import Limit, parse_typed_limit
from queuecast.slurmtext.jobids import count_array
from queuecast.slurmtext.sizes import parse_req_mem
from queuecast.slurmtext.tres import gpus_of_gres, parse_gres


@dataclass(frozen=True)
class Request:
    """A request for resources. Counts are for the whole job (of one array task); None is "not said".

    ``limit_s`` in seconds, None with ``unlimited`` or when not said. ``assumed`` tells which values were filled in
    from the cluster's defaults, as sentences. ``limit_defaulted``: the limit is the partition's, so Slurm cuts it to
    what QOS and association allow instead of refusing it. ``constraint``, ``nodelist``, ``exclude``, ``reservation``
    and ``licenses`` are as typed.
    """

    partitions: tuple[str, ...] = ()
    gpus: int = 0
    gpu_type: str | None = None
    nodes: int = 1
    cpus: int = 1
    mem_bytes: int | None = None
    limit_s: int | None = None
    unlimited: bool = False
    account: str | None = None
    qos: str | None = None
    user: str | None = None
    array_tasks: int = 1
    assumed: tuple[str, ...] = field(default=())
    limit_defaulted: bool = False
    tasks: int | None = None
    constraint: str | None = None
    nodelist: str | None = None
    exclude: str | None = None
    reservation: str | None = None
    licenses: str | None = None

    def merged(self, **given: object) -> Request:
        """A copy with the values that are not None replaced."""
        return replace(self, **{k: v for k, v in given.items() if v is not None})  # type: ignore[arg-type]  # keys are fields


def from_options(options: Mapping[str, str], user: str | None = None) -> Request:
    """Read sbatch options by their long names (``slurmtext.script`` yields them).

    Raises ``UsageError`` for text that sbatch would refuse, naming the option.
    """
    nodes = _first_number(options, "nodes", 1)
    tasks = _first_number(options, "ntasks", 0) or _first_number(options, "ntasks-per-node", 0) * nodes or nodes
    gpus, gpu_type = _gpus(options, nodes, tasks)
    cpus = tasks * _first_number(options, "cpus-per-task", 1)
    if "cpus-per-gpu" in options:
        cpus = max(cpus, gpus * _first_number(options, "cpus-per-gpu", 1))
    limit = _limit(options)
    array = options.get("array", "")
    return Request(
        partitions=tuple(p for p in options.get("partition", "").split(",") if p),
        gpus=gpus,
        gpu_type=gpu_type,
        nodes=nodes,
        cpus=cpus,
        mem_bytes=_memory(options, nodes, cpus, gpus),
        limit_s=limit.seconds,
        unlimited=limit.kind == "unlimited",
        account=options.get("account") or None,
        qos=options.get("qos") or None,
        user=user,
        array_tasks=_array_tasks(array),
        tasks=tasks,
        constraint=options.get("constraint") or None,
        nodelist=options.get("nodelist") or None,
        exclude=options.get("exclude") or None,
        reservation=options.get("reservation") or None,
        licenses=options.get("licenses") or None,
    )


def _array_tasks(array: str) -> int:
    try:
        return count_array(array.split("%")[0]) if array else 1
    except ParseError as error:
        raise UsageError(
            _("--array={text} is not a list of task numbers").format(text=array), _("write it like 0-99 or 1,3,5-9%4")
        ) from error


def _limit(options: Mapping[str, str]) -> Limit:
    text = options.get("time")
    if text is None:
        return Limit("unknown", None)
    try:
        return parse_typed_limit(text)
    except ParseError as error:
        raise UsageError(
            _("--time={text} is not a time limit").format(text=text), _("write minutes, HH:MM:SS or D-HH:MM:SS, for example -t 1-00:00:00")
        ) from error


def _first_number(options: Mapping[str, str], name: str, default: int) -> int:
    """``4``, ``2-4`` (the minimum counts), ``2k``; raises ``UsageError``."""
    text = options.get(name)
    if text is None:
        return default
    found = re.match(r"\s*(\d{1,9})(k?)\s*(?:[-,:].*)?\Z", text)
    if not found:
        raise UsageError(_("--{name}={text} is not a number").format(name=name, text=text), _("give a whole number"))
    return int(found[1]) * (1024 if found[2] else 1)


def _gpus(options: Mapping[str, str], nodes: int, tasks: int) -> tuple[int, str | None]:
    """GPUs of the whole job and their type. ``--gpus`` is a total; ``--gres`` and ``--gpus-per-node`` are per node."""
    for name, times in (("gpus", 1), ("gpus-per-node", nodes), ("gres", nodes), ("gpus-per-task", tasks)):
        text = options.get(name)
        if not text or text.lower() == "none":
            continue
        # --gpus=a100:2 and --gpus=2 leave "gpu" out
        full = text if name == "gres" else ",".join(f"gpu:{part}" for part in text.split(","))
        try:
            counted = gpus_of_gres(full)
            if name == "gres" and not any(g.name == "gpu" for g in parse_gres(full)):
                continue
        except ParseError as error:
            raise UsageError(
                _("--{name}={text} is not understood").format(name=name, text=text),
                _("write it like gpu:a100:4 (--gres) or a100:4 (--gpus)"),
            ) from error
        if counted.total is not None:
            return counted.total * times, None if counted.type == "mixed" else counted.type
    return 0, None


def _memory(options: Mapping[str, str], nodes: int, cpus: int, gpus: int) -> int | None:
    for name, times in (("mem", nodes), ("mem-per-cpu", cpus), ("mem-per-gpu", gpus)):
        if name in options:
            try:
                size = parse_req_mem(options[name])
            except ParseError as error:
                raise UsageError(
                    _("--{name}={text} is not an amount of memory").format(name=name, text=options[name]), _("write it like 64G")
                ) from error
            # --mem=0 is all of the node: not known here
            return size.bytes * times if size.bytes else None
    return None
