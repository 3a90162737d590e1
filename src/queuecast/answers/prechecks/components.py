"""The further components of a heterogeneous job: each has options of its own and is held against the rules by itself, and all together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from queuecast.answers.prechecks.request import check_options, check_request, completed
from queuecast.errors import UsageError
from queuecast.i18n import _
from queuecast.policy.counted import limit_verdicts
from queuecast.policy.request import Request, from_options

if TYPE_CHECKING:
    from queuecast.answers.prechecks.precheck import Script


_PASSED_ON = ("account", "qos")
"""What a component without its own takes over from the first (seen on 22.05); partition and time limit it does not."""


def check_components(script: Script, given: Sequence[Mapping[str, str]], options: Mapping[str, str]) -> tuple[Request, ...]:
    """Their requests with the cluster's defaults. ``given``: options of the command line for the second component and those after it;
    ``options``: those of a command line without colons, which hold for all components.

    The commands of the script run on the first component; what ``srun --het-group`` starts on others is not looked at.
    """
    count = max(len(script.parsed.components), len(given))
    if not count:
        return ()
    out: list[Request] = []
    for i in range(count):
        parsed = script.parsed.components[i] if i < len(script.parsed.components) else None
        more = (given[i] if i < len(given) else {}) if given else options
        own = {**(parsed.options if parsed is not None else {}), **more}
        taken = {k: script.options[k] for k in _PASSED_ON if k in script.options and k not in own}
        part = replace(
            script, parsed=parsed or replace(script.parsed, options={}, lines={}, problems=[], components=[]), found=[], unchecked=[],
            options={**taken, **own}, request=None,
        )  # fmt: skip
        check_options(part)
        try:
            part.request = from_options(part.options, part.user)
        except UsageError as error:
            option = str(error.message).partition("--")[2].partition("=")[0]
            part.say(part.line(option), "error", "option", error.message, error.hint)
        if part.request is not None and part.policy is not None:
            part.request = completed(part.policy, part.request)
        check_request(part)
        if part.request is not None:
            out.append(part.request)
        told = {f.code for f in script.found} & {"InvalidAccount", "InvalidQOS"} if taken else set()
        script.found += [
            replace(f, why=_("Component {number}: {text}").format(number=f"+{i + 1}", text=f.why)) for f in part.found if f.code not in told
        ]
    _arrays(script)
    if script.request is not None:
        _together(script, [script.request, *out])
    script.unchecked.append(_("What srun --het-group starts on the further components."))
    return tuple(out)


def _arrays(script: Script) -> None:
    line = next((p.lines["array"] for p in (script.parsed, *script.parsed.components) if "array" in p.lines), script.line("array"))
    if "array" in script.options or any("array" in p.options for p in script.parsed.components):
        why = _("A heterogeneous job cannot be an array; sbatch refuses it.")
        script.say(line, "error", "het-array", why, _("Leave --array out, or submit the components as jobs of their own."))


def _together(script: Script, requests: list[Request]) -> None:
    """All components start at once: their sum counts against what a user, an account or a QOS may hold."""
    policy, first = script.policy, requests[0]
    alike = all((r.account, r.qos) == (first.account, first.qos) for r in requests)
    if policy is None or not alike:
        return
    memory = [r.mem_bytes for r in requests]
    kinds = {r.gpu_type for r in requests if r.gpus}
    whole = replace(
        first, gpus=sum(r.gpus for r in requests), cpus=sum(r.cpus for r in requests), nodes=sum(max(1, r.nodes) for r in requests),
        gpu_type=kinds.pop() if len(kinds) == 1 else None, mem_bytes=None if None in memory else sum(m or 0 for m in memory),
        array_tasks=1, limit_s=None, limit_defaulted=True,
    )  # fmt: skip
    for verdict in limit_verdicts(policy, whole, None, None):
        shared = "Grp" in verdict.code or verdict.code.endswith(("PerUser", "PerUserLimit", "PerAccount"))
        if shared and verdict.kind != "waits" and not any((f.code, f.severity) == (verdict.code, "error") for f in script.found):
            text = _("All components together: {text}").format(text=verdict.text)
            script.say(None, "error", verdict.code, text + " " + _("They start at once or never."), verdict.fix)
