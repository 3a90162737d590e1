"""Checks of the processes that a script starts against the GPUs, nodes and tasks that it asks for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from queuecast.i18n import _, ngettext

if TYPE_CHECKING:
    from queuecast.answers.prechecks.precheck import Script
    from queuecast.answers.scriptlines import Command

_PYTHONS = ("python", "python3", "ipython")
_SRUN_VALUED = frozenset("AcdDeEFgGiJKLmMnNopqrSTtwWxX")
_SPREADING = frozenset({"srun", "mpirun", "mpiexec", "pdsh", "clush", "ray", "ssh", "accelerate", "deepspeed", "horovodrun"})


@dataclass(frozen=True)
class Launch:
    """``tool``: torchrun, accelerate, deepspeed, or "" for a plain program; ``srun``: whether srun starts it."""

    line: int
    tool: str
    options: dict[str, str]
    srun: bool
    srun_options: dict[str, str]
    program: tuple[str, ...]
    background: bool = False


def launches(script: Script) -> list[Launch]:
    """What the script starts, by command."""
    return [found for command in script.body.commands if (found := launch_of(command)) is not None]


def launch_of(command: Command) -> Launch | None:
    """The launcher in a command, with its options by long name (``-`` for ``_``)."""
    words = list(command.words)
    srun: dict[str, str] | None = None
    if words and words[0].rsplit("/", 1)[-1] == "srun":
        srun, words = _options(words[1:], _SRUN_VALUED)
    while words and ("=" in words[0].split("/")[0] or words[0] in ("env", "numactl", "nice")):
        words = words[1:]
    if not words:
        return None
    words = _inside_container(words)
    tool, rest = _tool(words)
    if tool is None:
        if srun is None and words[0].rsplit("/", 1)[-1] not in _PYTHONS:
            return None
        return Launch(command.line, "", {}, srun is not None, srun or {}, tuple(words), command.background)
    options, program = _options(rest, frozenset())
    return Launch(command.line, tool, options, srun is not None, srun or {}, tuple(program))


def check_launch(script: Script) -> None:
    """Processes against GPUs; also CUDA_VISIBLE_DEVICES set by hand."""
    _visible(script)
    if script.request is None:
        return
    found = launches(script)
    for launch in found:
        {"torchrun": _torchrun, "accelerate": _accelerate, "deepspeed": _deepspeed, "": _plain}[launch.tool](script, launch)
        _srun(script, launch)
    spread = any(c.words[0].rsplit("/", 1)[-1] in _SPREADING for c in script.body.commands)
    if script.nodes > 1 and found and not spread:
        script.say(
            found[-1].line,
            "error",
            "one-node-only",
            ngettext(
                "The script runs on the first node only; the other {count} node would be idle.",
                "The script runs on the first node only; the other {count} nodes would be idle.",
                script.nodes - 1,
            ).format(count=script.nodes - 1),
            _("Start it with srun, one task per node for torchrun: --ntasks-per-node=1."),
        )


def _visible(script: Script) -> None:
    name = "CUDA_VISIBLE_DEVICES"
    # several programs in the background, each with its own GPUs, are what it is for
    apart = {c.line for c in script.body.commands if name in c.settings and c.background}
    place = script.body.variables.get(name)
    if place is None or place[0] in apart:
        return
    line, value = place
    count = len([v for v in value.split(",") if v.strip()])
    if script.request is not None and "$" not in value and value.strip() and count > script.gpus_per_node:
        why = _("CUDA_VISIBLE_DEVICES names {count} GPUs; the job has {gpus} on a node.").format(count=count, gpus=script.gpus_per_node)
        script.say(line, "error", "cuda-visible-devices", why, _("Remove it: Slurm sets it to the GPUs that the job gets."))
        return
    why = _("CUDA_VISIBLE_DEVICES is set by hand: it may hide GPUs that the job holds, or name those of others.")
    script.say(line, "warning", "cuda-visible-devices", why, _("Remove it: Slurm sets it to the GPUs that the job gets."))


def _torchrun(script: Script, launch: Launch) -> None:
    nodes = launch.options.get("nnodes", "1").split(":")[-1]
    if nodes.isdigit() and int(nodes) != script.nodes:
        script.say(
            launch.line,
            "error",
            "nnodes",
            _("torchrun is told {told} nodes; the job asks for {nodes}.").format(told=nodes, nodes=script.nodes),
            _("Use --nnodes=$SLURM_NNODES."),
        )
    each = launch.options.get("nproc-per-node", "1")
    per_node = script.tasks // script.nodes
    if launch.srun and per_node > 1 and "ntasks-per-node" not in launch.srun_options and "n" not in launch.srun_options:
        script.say(
            launch.line,
            "error",
            "torchrun-per-task",
            _("srun starts torchrun {count} times on each node, and each starts its own processes.").format(count=per_node),
            _("Use srun --ntasks-per-node=1 for torchrun."),
        )
    if each.isdigit():
        _against(
            script, launch.line, int(each), script.gpus_per_node, "torchrun --nproc-per-node", _("on each node"), "$SLURM_GPUS_ON_NODE"
        )


def _accelerate(script: Script, launch: Launch) -> None:
    machines = launch.options.get("num-machines", "")
    if machines.isdigit() and int(machines) != script.nodes:
        script.say(
            launch.line,
            "error",
            "nnodes",
            _("accelerate is told {told} machines; the job asks for {nodes} nodes.").format(told=machines, nodes=script.nodes),
            _("Use --num_machines=$SLURM_NNODES."),
        )
    count = launch.options.get("num-processes", "")
    if count.isdigit():
        _against(script, launch.line, int(count), script.gpus, "accelerate --num_processes", _("in all"), str(script.gpus))


def _deepspeed(script: Script, launch: Launch) -> None:
    nodes = launch.options.get("num-nodes", "")
    if nodes.isdigit() and int(nodes) != script.nodes:
        script.say(
            launch.line,
            "error",
            "nnodes",
            _("deepspeed is told {told} nodes; the job asks for {nodes}.").format(told=nodes, nodes=script.nodes),
            _("Use --num_nodes=$SLURM_NNODES."),
        )
    count = launch.options.get("num-gpus", "")
    if count.isdigit():
        _against(script, launch.line, int(count), script.gpus_per_node, "deepspeed --num_gpus", _("on each node"), "$SLURM_GPUS_ON_NODE")


def _plain(script: Script, launch: Launch) -> None:
    if not launch.program or launch.program[0].rsplit("/", 1)[-1] not in _PYTHONS or script.gpus_per_node < 2:
        return
    if launch.background or any(f.code == "one-process" for f in script.found) or (not launch.srun and _launched(script)):
        return  # said once; beside a launcher, or several at once, one process each is meant
    if len(launch.program) > 1 and launch.program[1] in ("-", "-c", "-V", "--version"):
        return
    tasks = _srun_tasks(script, launch) if launch.srun else 1
    if tasks <= script.nodes:
        script.say(
            launch.line,
            "warning",
            "one-process",
            _("One process per node is started and {gpus} GPUs are held on it.").format(gpus=script.gpus_per_node),
            _("Start one per GPU (torchrun, srun --ntasks-per-node), or ask for one GPU, unless the program uses all by itself."),
        )


def _launched(script: Script) -> bool:
    return any(launch.tool for launch in launches(script))


def _srun_tasks(script: Script, launch: Launch) -> int:
    for name in ("n", "ntasks"):
        if launch.srun_options.get(name, "").isdigit():
            return int(launch.srun_options[name])
    each = launch.srun_options.get("ntasks-per-node", "")
    return int(each) * script.nodes if each.isdigit() else script.tasks


def _srun(script: Script, launch: Launch) -> None:
    if not launch.srun or script.request is None:
        return
    tasks = _srun_tasks(script, launch)
    told = any(o in script.options for o in ("ntasks", "ntasks-per-node"))
    if tasks > script.tasks and (told or tasks > script.request.cpus) and "overcommit" not in launch.srun_options:
        script.say(
            launch.line,
            "error" if told else "warning",  # without -n the cluster may give more CPUs than one per task
            "srun-tasks",
            _("srun is told {told} tasks; the job asks for {tasks}.").format(told=tasks, tasks=script.tasks),
            _("Ask for -n {told}, or leave -n out of srun.").format(told=tasks),
        )
    nodes = launch.srun_options.get("N", launch.srun_options.get("nodes", ""))
    if nodes.isdigit() and int(nodes) > script.nodes:
        script.say(
            launch.line,
            "error",
            "srun-nodes",
            _("srun is told {told} nodes; the job asks for {nodes}.").format(told=nodes, nodes=script.nodes),
            _("Ask for -N {told}.").format(told=nodes),
        )


def _against(script: Script, line: int, told: int, gpus: int, what: str, where: str, value: str) -> None:
    if told > gpus > 0 or (gpus == 0 and told > 1 and not script.gpus):
        why = _("{what} is {told} and the job has {gpus} GPUs {where}: the processes beyond that fail.")
        script.say(
            line, "error", "processes", why.format(what=what, told=told, gpus=gpus, where=where), _("Use {value}.").format(value=value)
        )
    elif 0 < told < gpus:
        why = _("{what} is {told} and the job holds {gpus} GPUs {where}: {idle} would be idle.")
        script.say(
            line,
            "warning",
            "processes",
            why.format(what=what, told=told, gpus=gpus, where=where, idle=gpus - told),
            _("Use {value}, or ask for fewer GPUs.").format(value=value),
        )


def _tool(words: list[str]) -> tuple[str | None, list[str]]:
    name = words[0].rsplit("/", 1)[-1]
    if name == "torchrun":
        return "torchrun", words[1:]
    if name == "deepspeed":
        return "deepspeed", words[1:]
    if name == "accelerate" and words[1:2] == ["launch"]:
        return "accelerate", words[2:]
    if name in _PYTHONS and "-m" in words[1:4]:
        at = words.index("-m")
        module = words[at + 1] if at + 1 < len(words) else ""
        if module in ("torch.distributed.run", "torch.distributed.launch"):
            return "torchrun", words[at + 2 :]
        if module == "accelerate.commands.launch":
            return "accelerate", words[at + 2 :]
        if module == "deepspeed.launcher.runner":
            return "deepspeed", words[at + 2 :]
    return None, words


def _inside_container(words: list[str]) -> list[str]:
    if words[0].rsplit("/", 1)[-1] in ("apptainer", "singularity") and len(words) > 2:
        from queuecast.answers.prechecks.paths import image_place

        at = image_place(words)
        if at is not None and words[1] == "exec" and at + 1 < len(words):
            return words[at + 1 :]
    return words


def _options(words: Iterable[str], valued: frozenset[str]) -> tuple[dict[str, str], list[str]]:
    """Leading options by name, ``_`` as ``-``, and what follows. A long option without ``=`` takes the next word if that is
    no option and more words follow or the option is a known one."""
    rest = list(words)
    out: dict[str, str] = {}
    while rest and rest[0].startswith("-") and rest[0] != "--":
        word = rest.pop(0)
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            name = name.replace("_", "-")
            if not equals and name in _LONG_VALUED and rest:
                value = rest.pop(0)
            out[name] = value
        else:
            letter, value = word[1:2], word[2:]
            if letter in valued and not value and rest:
                value = rest.pop(0)
            out[letter] = value
    if rest[:1] == ["--"]:
        rest = rest[1:]
    return out, rest


_LONG_VALUED = frozenset(
    "nproc-per-node nnodes node-rank rdzv-backend rdzv-endpoint rdzv-id rdzv-conf master-addr master-port max-restarts role log-dir "
    "num-processes num-machines machine-rank main-process-ip main-process-port mixed-precision config-file dynamo-backend "
    "num-gpus num-nodes hostfile include exclude master-addr launcher num-cpu-threads-per-process "
    "ntasks nodes ntasks-per-node cpus-per-task gres gpus gpus-per-node gpus-per-task gpu-bind cpu-bind mem mem-per-cpu time partition "
    "job-name output error chdir export container-image container-mounts container-workdir container-name kill-on-bad-exit mpi nodelist "
    "distribution constraint jobid het-group signal wait".split()
)
