"""A batch script looked at before it is submitted: what would be refused, never start, or fail after a long wait.

The script is read, never run; files are looked for, never opened for anything but their presence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from queuecast.answers.scriptlines import Body, read_body
from queuecast.errors import UsageError
from queuecast.i18n import _
from queuecast.policy.request import Request, from_options
from queuecast.policy.tables import Policy, policy_at
from queuecast.policy.usage import Usage, usage_at
from queuecast.slurmtext.script import ScriptRequest, parse_script

if TYPE_CHECKING:
    from queuecast.store.lake import Lake

Severity = Literal["error", "warning", "note"]
_ORDER = {"error": 0, "warning": 1, "note": 2}


@dataclass(frozen=True)
class Finding:
    """``line`` of the script from 1; None: it is about the whole script, or about an option of the command line.

    ``code`` is a constant name for programs. ``why`` and ``fix`` are sentences.
    """

    line: int | None
    severity: Severity
    code: str
    why: str
    fix: str


@dataclass(frozen=True)
class Precheck:
    """All findings, by line. ``request`` with the cluster's defaults; ``unchecked``: what could not be looked at, and why.

    ``components``: the further ones of a heterogeneous job.
    """

    script: str
    cluster: str | None
    at: datetime
    request: Request | None
    findings: tuple[Finding, ...]
    unchecked: tuple[str, ...] = ()
    components: tuple[Request, ...] = ()

    def count(self, severity: Severity) -> int:
        """How many findings of that severity there are."""
        return sum(f.severity == severity for f in self.findings)

    def status(self, *, strict: bool = False) -> int:
        """Exit status: 3 with an error, 1 with a warning if ``strict``, else 0."""
        return 3 if self.count("error") else 1 if strict and self.count("warning") else 0

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        requests = [None if r is None else {**asdict(r), "partitions": list(r.partitions)} for r in (self.request, *self.components)]
        return {
            "script": self.script,
            "cluster": self.cluster,
            "at": self.at.isoformat(),
            "errors": self.count("error"),
            "warnings": self.count("warning"),
            "request": requests[0],
            "components": requests[1:],
            "findings": [asdict(f) for f in self.findings],
            "unchecked": list(self.unchecked),
        }


@dataclass
class Script:
    """What the checks look at. ``policy``, ``usage`` and ``lake`` are None where no lake is at hand."""

    text: str
    parsed: ScriptRequest
    options: dict[str, str]
    body: Body
    at: datetime
    user: str | None
    folder: Path
    env: Mapping[str, str]
    cluster: str | None = None
    lake: Lake | None = None
    policy: Policy | None = None
    usage: Usage | None = None
    request: Request | None = None
    found: list[Finding] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)

    def say(self, line: int | None, severity: Severity, code: str, why: str, fix: str = "") -> None:
        """Add a finding."""
        self.found.append(Finding(line, severity, code, why, fix))

    def line(self, *options: str) -> int | None:
        """The line of the first of these options that the script sets."""
        return next((self.parsed.lines[o] for o in options if o in self.parsed.lines), None)

    @property
    def gpus(self) -> int:
        """GPUs of the whole job."""
        return self.request.gpus if self.request else 0

    @property
    def nodes(self) -> int:
        """Nodes asked for."""
        return max(1, self.request.nodes) if self.request else 1

    @property
    def gpus_per_node(self) -> int:
        """GPUs of one node's share, rounded up."""
        return -(-self.gpus // self.nodes)

    @property
    def tasks(self) -> int:
        """Tasks that srun starts without being told."""
        return (self.request.tasks or self.nodes) if self.request else 1


def precheck(
    text: str,
    *,
    at: datetime,
    name: str = "job.sh",
    options: Mapping[str, str] | None = None,
    arguments: Sequence[str] = (),
    lake: Lake | None = None,
    cluster: str | None = None,
    user: str | None = None,
    folder: Path | None = None,
    env: Mapping[str, str] | None = None,
    paths: bool = True,
    components: Sequence[Mapping[str, str]] = (),
) -> Precheck:
    """Check the text of a batch script as ``user`` would submit it from ``folder`` at ``at``.

    ``options`` are those of the command line: they override the script's. ``arguments`` follow the script;
    ``components`` are the options between colons of a heterogeneous job. Without
    ``folder`` or with ``paths`` False no file is looked for. ``env``: for MODULEPATH and HOME; nothing else is read of it.
    Never raises for what the script says.
    """
    from queuecast.answers.prechecks.components import check_components
    from queuecast.answers.prechecks.history import check_history
    from queuecast.answers.prechecks.launch import check_launch
    from queuecast.answers.prechecks.paths import check_paths
    from queuecast.answers.prechecks.request import check_request, check_text, completed
    from queuecast.answers.prechecks.signal import check_signal

    parsed = parse_script(text)
    merged = {**parsed.options, **(options or {})}
    known = {"HOME", "USER", "MODULEPATH", "SCRATCH", "WORK", "TMPDIR"}
    variables = {k: v for k, v in (env or {}).items() if k in known}
    script = Script(text, parsed, merged, Body(), at, user, folder or Path("/"), variables, cluster, lake)
    check_text(script, name)
    try:
        script.request = from_options(merged, user)
    except UsageError as error:
        option = str(error.message).partition("--")[2].partition("=")[0]
        script.say(script.line(option), "error", "option", error.message, error.hint)
    if lake is not None and cluster is not None:
        script.policy, script.usage = policy_at(lake, cluster, at), usage_at(lake, cluster, at)
        never = [t for t in script.policy.missing if t != "reservations"]  # most clusters have none
        script.unchecked += [_("Nothing was ever read of the cluster's {name}.").format(name=t) for t in never]
        if script.request is not None:
            script.request = completed(script.policy, script.request)
    else:
        script.unchecked.append(_("Nothing is known of a cluster here: its partitions, limits and nodes were not looked at (see --lake)."))
    script.body = read_body(text, {**variables, **_slurm_variables(script), **{str(i): a for i, a in enumerate(arguments, start=1)}})
    check_request(script)
    further = check_components(script, components, options or {})
    check_launch(script)
    check_signal(script)
    if paths and folder is not None:
        check_paths(script)
    if lake is not None:
        check_history(script)
    order = sorted(dict.fromkeys(script.found), key=lambda f: (f.line is None, f.line or 0, _ORDER[f.severity]))
    request = None if script.request is None else replace(script.request)
    return Precheck(name, cluster, at, request, tuple(order), tuple(script.unchecked), further)


def _slurm_variables(script: Script) -> dict[str, str]:
    """The variables of the job that its script may use, as far as the request fixes them."""
    out = {"SLURM_SUBMIT_DIR": str(script.folder)}
    if script.request is None:
        return out
    out |= {n: str(script.nodes) for n in ("SLURM_NNODES", "SLURM_JOB_NUM_NODES")}
    out |= {
        n: str(script.tasks) for n in ("SLURM_NTASKS", "SLURM_NPROCS") if "ntasks" in script.options or "ntasks-per-node" in script.options
    }
    if script.gpus:
        out |= {"SLURM_GPUS_ON_NODE": str(script.gpus_per_node), "SLURM_GPUS": str(script.gpus)}
        if "gpus-per-node" in script.options:
            out["SLURM_GPUS_PER_NODE"] = script.options["gpus-per-node"]
    for name, option in (("SLURM_CPUS_PER_TASK", "cpus-per-task"), ("SLURM_NTASKS_PER_NODE", "ntasks-per-node")):
        if option in script.options:
            out[name] = script.options[option]
    return out
