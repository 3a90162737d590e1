"""Checks of the #SBATCH lines: their form, what contradicts, and what the site's rules say to them."""

from __future__ import annotations

import difflib
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from queuecast.i18n import _
from queuecast.policy.verdicts import Verdict, verdicts
from queuecast.slurmtext.durations import format_limit
from queuecast.slurmtext.tres import mig_of_type

if TYPE_CHECKING:
    from queuecast.answers.prechecks.precheck import Script, Severity
    from queuecast.policy.request import Request
    from queuecast.policy.tables import Policy

GPU_OPTIONS = ("gres", "gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket")
_MEMORY = ("mem", "mem-per-cpu", "mem-per-gpu")
_LINES: dict[str, tuple[str, ...]] = {
    "InvalidPartition": ("partition",),
    "PartitionDrain": ("partition",),
    "PartitionDown": ("partition",),
    "PartitionInactive": ("partition",),
    "InvalidAccount": ("account",),
    "AccountNotAllowed": ("account", "partition"),
    "InvalidQOS": ("qos",),
    "QOSNotAllowed": ("qos", "partition"),
}
_BY_TRES: dict[str, tuple[str, ...]] = {
    "wall": ("time",),
    "mem": _MEMORY,
    "cpu": ("cpus-per-task", "ntasks", "ntasks-per-node"),
    "node": ("nodes", "nodelist", "constraint"),
    "gres/gpu": GPU_OPTIONS,
    "submit": ("array",),
}
_LINE = re.compile(r"line (\d+): ")


def completed(policy: Policy, request: Request) -> Request:
    """The cluster's defaults filled in; what is unknown stays, so that the verdicts can tell."""
    if not request.partitions and policy.default_partition is not None:
        request = replace(request, partitions=(policy.default_partition.name,))
    rule = policy.partition(request.partitions[0]) if request.partitions else None
    if request.limit_s is None and not request.unlimited and rule is not None:
        limit = rule.default_time_s or rule.max_time_s
        request = replace(request, limit_s=limit, unlimited=limit is None, limit_defaulted=True)
    mine = policy.associations_of(request.user, request.account)
    if not request.account and len({a.account for a in mine}) == 1:
        request = replace(request, account=mine[0].account)
    if not request.qos:
        default = next((a.default_qos for a in mine if a.default_qos), "normal" if policy.qos_rule("normal") else None)
        request = replace(request, qos=default)
    return request


def check_text(script: Script, name: str) -> None:
    """What sbatch refuses or ignores, as the parser tells it; variables that sbatch does not fill in."""
    for problem in script.parsed.problems:
        if "--container-" in problem:
            continue  # pyxis
        found = _LINE.match(problem)
        text = problem[found.end() :] if found else problem
        refused = "refuses" in problem or "unknown option" in problem
        fix = (
            _("Move it above the first command.")
            if "after the first command" in problem
            else _("Correct or remove it; sbatch --help lists the options.")
        )
        if "DOS" in problem:
            fix = _("Convert it: sed -i 's/\\r$//' {name}").format(name=name)
        script.say(int(found[1]) if found else 1, "error" if refused else "warning", "script", text[:1].upper() + text[1:] + ".", fix)
    check_options(script)


def check_options(script: Script) -> None:
    """Values that sbatch takes literally."""
    for option, value in script.parsed.options.items():
        if option in ("output", "error", "chdir", "input") and ("$" in value or value.startswith("~")):
            script.say(
                script.line(option),
                "error",
                "not-expanded",
                _("sbatch does not fill in variables or ~ here: {value} is taken literally.").format(value=value),
                _("Write the whole path; %u, %x and %j stand for user, job name and job id."),
            )


def check_request(script: Script) -> None:
    """Contradictions first, then the verdicts of the site's rules."""
    _memory(script)
    _gpus(script)
    _tasks(script)
    if script.policy is None or script.request is None:
        return
    unknown_type = _gpu_type(script, script.policy, script.request)
    for verdict in verdicts(script.policy, script.request, script.usage):
        if not (unknown_type and verdict.code == "BadConstraints"):  # no node fits then: told already
            _tell(script, verdict)
    if "time" not in script.options and script.request.limit_s is not None:
        script.say(
            None,
            "note",
            "no-time",
            _("No time limit is given: the partition's default, {limit}, is taken.").format(limit=format_limit(script.request.limit_s)),
            _("Give -t; a short and true limit starts earlier."),
        )


def _tell(script: Script, verdict: Verdict) -> None:
    tres = (verdict.tres or "").removesuffix("_mins").partition(":")[0]
    options = _LINES.get(verdict.code) or _BY_TRES.get(tres, ())
    severity: Severity = "note" if verdict.kind == "waits" else "error"
    if verdict.code == "PartitionDown":
        severity = "warning"
    text = verdict.text
    if verdict.kind == "never":
        text += " " + _("Slurm takes the job, which then waits for ever ({code}).").format(code=verdict.code)
    elif verdict.kind == "refused":
        text += " " + _("sbatch refuses it.")
    else:
        text += " " + _("It will wait ({code}).").format(code=verdict.code)
    script.say(script.line(*options, "partition"), severity, verdict.code, text, verdict.fix)


def _gpu_type(script: Script, policy: Policy, request: Request) -> bool:
    kind = request.gpu_type
    known = {t for n in policy.nodes for t in n.gpus if t}
    if kind is None or not known or kind.casefold() in known or any("" in n.gpus for n in policy.nodes):
        return False
    near = difflib.get_close_matches(kind.casefold(), sorted(known), 1)
    if mig_of_type(kind):
        parts = sorted(t for t in known if mig_of_type(t))
        why = _("The cluster has no MIG device {name}.").format(name=kind)
        fix = (
            _("MIG devices here: {names}.").format(names=", ".join(parts))
            if parts
            else _("It has whole GPUs only: {names}.").format(names=", ".join(sorted(known)))
        )
    else:
        why = _("No node has GPUs of type {name}; sbatch refuses it.").format(name=kind)
        fix = _("There are: {names}.").format(names=", ".join(sorted(known)))
    script.say(
        script.line(*GPU_OPTIONS), "error", "gpu-type", why, fix + (" " + _("Did you mean {name}?").format(name=near[0]) if near else "")
    )
    return True


def _memory(script: Script) -> None:
    given = [o for o in _MEMORY if o in script.options]
    if len(given) > 1:
        script.say(
            max((script.line(o) or 0 for o in given), default=0) or None,
            "error",
            "memory-twice",
            _("{options} exclude each other.").format(options=", ".join(f"--{o}" for o in given)),
            _("Keep one: --mem is per node, --mem-per-cpu per CPU, --mem-per-gpu per GPU."),
        )
    for option in given:
        text = script.options[option].strip()
        if text.isdigit() and 0 < int(text) < 1024:
            script.say(
                script.line(option),
                "warning",
                "memory-unit",
                _("--{option}={text} means {text} MiB: without a unit Slurm counts MiB.").format(option=option, text=text),
                _("Write --{option}={text}G if GiB are meant.").format(option=option, text=text),
            )
    if given == ["mem"] and script.nodes > 1 and script.options["mem"].strip() not in ("0", ""):
        script.say(
            script.line("mem"),
            "note",
            "memory-per-node",
            _("--mem is per node: {nodes} nodes with {text} each.").format(nodes=script.nodes, text=script.options["mem"]),
            _("Nothing to do if that is meant."),
        )


def _gpus(script: Script) -> None:
    given = [o for o in ("gpus", "gpus-per-node", "gres", "gpus-per-task") if o in script.options and "gpu" in f"{o}{script.options[o]}"]
    if not script.request or len(given) < 2:
        return
    from queuecast.policy.request import from_options

    rest = {k: v for k, v in script.options.items() if k not in given}
    totals = {o: from_options({**rest, o: script.options[o]}).gpus for o in given}
    if len(set(totals.values())) > 1:
        script.say(
            max((script.line(o) or 0 for o in given), default=0) or None,
            "warning",
            "gpus-twice",
            _("GPUs are asked for in several ways that disagree: {what}.").format(
                what=", ".join(f"--{o} = {n}" for o, n in totals.items())
            ),
            _("Keep one of them."),
        )


def _tasks(script: Script) -> None:
    if script.request is None:
        return
    if script.gpus and script.gpus < script.nodes:
        script.say(
            script.line(*GPU_OPTIONS),
            "warning",
            "fewer-gpus-than-nodes",
            _("{gpus} GPUs cannot be on each of {nodes} nodes.").format(gpus=script.gpus, nodes=script.nodes),
            _("Use --gpus-per-node, or fewer nodes."),
        )
    elif script.gpus % script.nodes:
        script.say(
            script.line(*GPU_OPTIONS),
            "warning",
            "uneven-gpus",
            _("{gpus} GPUs do not divide over {nodes} nodes: the nodes get different numbers.").format(
                gpus=script.gpus, nodes=script.nodes
            ),
            _("Use --gpus-per-node."),
        )
    ntasks, per_node = script.options.get("ntasks", ""), script.options.get("ntasks-per-node", "")
    if ntasks.isdigit() and script.nodes > int(ntasks):
        script.say(
            script.line("ntasks", "nodes"),
            "warning",
            "fewer-tasks-than-nodes",
            _("{tasks} tasks cannot use {nodes} nodes.").format(tasks=ntasks, nodes=script.nodes),
            _("Raise -n, or lower -N."),
        )
    if ntasks.isdigit() and per_node.isdigit() and int(ntasks) > int(per_node) * script.nodes and "nodes" in script.options:
        script.say(
            script.line("ntasks-per-node", "ntasks"),
            "warning",
            "tasks-disagree",
            _("{tasks} tasks do not fit {nodes} nodes with {each} tasks each.").format(tasks=ntasks, nodes=script.nodes, each=per_node),
            _("Leave -n out where --ntasks-per-node is given."),
        )
