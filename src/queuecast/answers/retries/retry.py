"""A corrected copy of the script of a job that failed: flags changed by the cause, the parent named, nothing else touched."""

from __future__ import annotations

import os
import pwd
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from queuecast.answers.prechecks.precheck import Finding, precheck
from queuecast.answers.retries.answer import RetryAnswer
from queuecast.answers.retries.bounds import bound_of
from queuecast.answers.retries.cause import COMPLETED, Cause, causes_of
from queuecast.answers.retries.header import first_steps, header_lines, title
from queuecast.answers.retries.job import Ended, ended_job
from queuecast.answers.retries.lineage_mark import marked
from queuecast.answers.retries.lookup import successor_lookup
from queuecast.answers.retries.placing import against_preemption, away_from_nodes, dependency, failed_tasks
from queuecast.answers.retries.plan import Case, Change, Plan, request_of
from queuecast.answers.retries.resume import Resume, find_resume
from queuecast.answers.retries.script import Source, find_script
from queuecast.answers.retries.sizes import larger_gpu, more_memory, more_time
from queuecast.errors import UsageError
from queuecast.i18n import _
from queuecast.policy.request import from_options
from queuecast.policy.tables import Policy, policy_at
from queuecast.reasons.failureclasses import CLASSES
from queuecast.slurmtext.durations import format_limit
from queuecast.slurmtext.rewrite import EXCLUDING, diff_lines, is_shell, representable, rewrite, split_script
from queuecast.slurmtext.script import parse_script
from queuecast.slurmtext.sizes import format_size

if TYPE_CHECKING:
    from queuecast.answers.viewer import Viewer
    from queuecast.collect.run import Runner
    from queuecast.models.sizing_bound import Resource, SizeBound
    from queuecast.store.lake import Lake

NO_COPY: Final = frozenset({"user_code", "environment", COMPLETED})
"""Nothing that a flag could change."""
NO_RESUME: Final = frozenset({"user_code", "environment", "dependency", COMPLETED})


def retry(
    lake: Lake,
    cluster: str,
    job: str,
    at: datetime,
    viewer: Viewer,
    *,
    script_text: str | None = None,
    script_path: Path | None = None,
    checkpoint: Path | None = None,
    cause: str | None = None,
    force: bool = False,
    runner: Runner | None = None,
    local: bool = True,
) -> RetryAnswer:
    """The copy for ``job`` as it had ended by ``at``.

    ``script_text``: the script, where it is not to be looked for (``script_path`` names it then). ``checkpoint``: folder with
    manifests, before what the script names. ``cause``: a class of failure to take instead of the one found. ``force``: make the
    copy even if it would fail again. ``runner``: asks Slurm for the script; None: not asked. ``local``: files of this machine
    (script, checkpoint, paths in the script) may be read. Raises ``UsageError``, ``NoDataError``, ``NotPermitted``.
    """
    if cause is not None and cause not in CLASSES:
        raise UsageError(_("there is no cause {name}").format(name=cause), _("there are: {names}").format(names=", ".join(CLASSES)))
    ended = ended_job(lake, cluster, job, at, viewer)
    policy = policy_at(lake, cluster, at)
    flags = policy.settings.get("accountingstoreflags")
    words = None if flags is None else {w.strip().lower() for w in flags.split(",")}
    source = find_script(
        ended.row,
        ended.files,
        given=script_text,
        given_path=script_path,
        runner=runner,
        stores_scripts=None if words is None else "job_script" in words,
        local=local,
    )
    parsed = parse_script(source.text)
    options = effective(parsed.options, source.options)
    found = [
        (row, c if cause is None else replace(c, failure_class=cause, confidence=1.0))
        for row, c in causes_of(lake, cluster, ended, at, viewer, logs=local)
    ]
    counts = Counter(c.failure_class for _row, c in found)
    main = counts.most_common(1)[0][0]
    resume = find_resume(ended, source, options, checkpoint, local) if any(c not in NO_RESUME for c in counts) else Resume()
    plan = Plan()
    chosen: list[Mapping[str, Any]] = []
    for name in counts:
        rows = [(row, c) for row, c in found if c.failure_class == name]
        part = _plan(lake, cluster, at, policy, rows, options, resume, name)
        if part.blocked is None or not ended.is_array or len(counts) == 1:
            chosen += [row for row, _c in rows]
        else:
            plan.notes.append(_("{n} tasks are left out ({cause}): {why}").format(n=len(rows), cause=title(name), why=part.blocked))
            continue
        _merge(plan, part)
    if not chosen:
        plan.blocked = _("Each of the failed tasks would fail again.")
        chosen = [row for row, _c in found]
    case = _case(cluster, at, policy, ended.row, options, (), resume, ())
    if ended.is_array:
        failed_tasks(case, plan, chosen, source.text)
    if ended.waiting:
        plan.notes.append(_("{n} tasks of the array have not ended yet; they are not in the copy.").format(n=ended.waiting))
    if parsed.components or ended.row["het_job_id"] is not None:
        plan.notes.append(_("A heterogeneous job: only its first component was changed."))
    plan.notes += [*differences(ended.row, options), *resume.notes]
    carried = _carried(parsed.options, source, plan, ended.row, policy)
    draft = RetryAnswer(
        cluster=cluster,
        at=at,
        job=ended.base,
        name=ended.row["name"],
        user=ended.row["user"],
        state=ended.row["state"],
        ended_at=ended.row["end"],
        failure_class=main,
        confidence=min(c.confidence for _row, c in found if c.failure_class == main),
        classes=dict(counts.most_common()),
        tasks=tuple(sorted(r["array_task"] for r in chosen if r["array_task"] is not None)) if ended.is_array else None,
        origin=source.origin,
        path=str(source.path) if source.path else None,
        folder=(ended.files or {}).get("work_dir") or ended.row["work_dir"],
        arguments=source.arguments,
        changes=tuple(plan.changes),
        carried=carried,
        checkpoint=resume.search,
        blocked=plan.blocked,
        mend=tuple(dict.fromkeys(plan.mend)),
        notes=tuple(dict.fromkeys(plan.notes)),
        warnings=(*source.warnings, *resume.warnings),
        findings=(),
        diff=(),
        script=None,
        stored=None if words is None else "job_comment" in words,
    )
    return _written(lake, draft, source, options, resume, ended.row["comment"], force=force, local=local)


def effective(script: Mapping[str, str], line: Mapping[str, str]) -> dict[str, str]:
    """Options of script and command line together: the latter override, and take out what they exclude."""
    gone = {other for group in EXCLUDING for name in group & line.keys() for other in group - line.keys()}
    return {**{k: v for k, v in script.items() if k not in gone}, **line}


def differences(row: Mapping[str, Any], options: Mapping[str, str]) -> list[str]:
    """Where accounting knows another request than script and command line make: variables (SBATCH_...) or later changes."""
    out = []
    pairs = (("partition", "partition"), ("account", "account"), ("qos", "qos"), ("job-name", "name"))
    for option, column in pairs:
        asked, had = options.get(option), row[column]
        names = asked.split(",") if asked and option == "partition" else [asked]
        if asked and had and had not in names and not any((n or "").casefold() == had.casefold() for n in names):
            out.append(
                _("It ran with --{option}={had}, though {asked} is asked for: set by a variable (SBATCH_...) or changed later.").format(
                    option=option, had=had, asked=asked
                )
            )
    try:
        request = from_options(options)
    except UsageError:
        return out
    limit, memory = request.limit_s, request.mem_bytes
    if limit is not None and row["limit_s"] is not None and abs(limit - row["limit_s"]) >= 60:
        out.append(_other(_("time limit"), format_limit(row["limit_s"]), format_limit(limit)))
    if memory and row["mem_req_bytes"] and abs(memory - row["mem_req_bytes"]) > 0.02 * memory:
        out.append(_other(_("memory"), format_size(row["mem_req_bytes"]), format_size(memory)))
    if row["gpus_req"] is not None and request.gpus != row["gpus_req"]:
        out.append(_other(_("number of GPUs"), str(row["gpus_req"]), str(request.gpus)))
    return out


def _other(what: str, had: str, asked: str) -> str:
    text = _("Its {what} was {had}, though script and command line ask for {asked}: set by a variable (SBATCH_...) or changed later.")
    return text.format(what=what, had=had, asked=asked)


def _plan(
    lake: Lake,
    cluster: str,
    at: datetime,
    policy: Policy,
    rows: Sequence[tuple[Mapping[str, Any], Cause]],
    options: Mapping[str, str],
    resume: Resume,
    name: str,
) -> Plan:
    """What to change for jobs (tasks of one array) that failed for one cause."""
    plan = Plan()
    row = max((r for r, _c in rows), key=lambda r: (r["mem_req_bytes"] or 0, r["limit_s"] or 0))
    steps = [s for _r, c in rows for s in c.steps]
    nodes = tuple(dict.fromkeys(n for _r, c in rows for n in c.nodes))
    case = _case(cluster, at, policy, row, options, steps, resume, nodes)
    case = replace(case, bounds=_bounds(lake, cluster, at, case, name))
    if name in NO_COPY:
        plan.blocked = (
            _("It completed: there is nothing to correct.")
            if name == COMPLETED
            else _("No flag mends this ({cause}): the copy would fail in the same way.").format(cause=title(name))
        )
        plan.mend += next((c.advice for _r, c in rows if c.advice), ()) or first_steps(name)
    elif name == "oom_host":
        more_memory(case, plan)
    elif name == "oom_gpu":
        larger_gpu(case, plan)
    elif name == "time_limit":
        more_time(case, plan)
    elif name == "node":
        away_from_nodes(case, plan)
    elif name == "preempted":
        against_preemption(case, plan)
    elif name == "user_cancel":
        plan.notes.append(_("It was cancelled by hand: look whether that reason still holds."))
    elif name == "scheduler_cancel":
        plan.notes.append(_("Slurm cancelled it ({state}, {reason}).").format(state=row["state"], reason=row["reason"] or "-"))
    dependency(case, plan, successor_lookup(lake, cluster, at))
    return plan


def _case(
    cluster: str,
    at: datetime,
    policy: Policy,
    row: Mapping[str, Any],
    options: Mapping[str, str],
    steps: Sequence[Mapping[str, Any]],
    resume: Resume,
    nodes: tuple[str, ...],
) -> Case:
    return Case(cluster, at, row, options, request_of(row, options), policy, steps, {}, nodes, resume.path is not None)


def _bounds(lake: Lake, cluster: str, at: datetime, case: Case, name: str) -> dict[str, SizeBound]:
    """What jobs of the kind call for, of what ran out."""
    known: dict[str, tuple[Resource, float | None]] = {
        "oom_host": ("memory", case.request.mem_bytes),
        "time_limit": ("time", case.row["limit_s"]),
    }
    if name not in known or case.resumes:
        return {}
    resource, had = known[name]
    found = bound_of(lake, cluster, case.row, at, resource, had) if had else None
    return {} if found is None else {resource: found}


def _merge(plan: Plan, part: Plan) -> None:
    for change in part.changes:
        plan.change(change.option, change.before, change.after, change.why)
    plan.notes += part.notes
    plan.mend += part.mend
    plan.blocked = plan.blocked or part.blocked


def _carried(script: Mapping[str, str], source: Source, plan: Plan, row: Mapping[str, Any], policy: Policy) -> dict[str, str]:
    """Options of the command line that the copy needs as lines; name and folder of the job, which sbatch would take from
    the file and from where it is called; what only accounting knows, where it is not the cluster's default."""
    changed = {c.option for c in plan.changes} | {"comment"}
    out = {}
    for name, value in source.options.items():
        if name in changed or script.get(name) == value:
            continue
        if representable(value):
            out[name] = value
        else:
            plan.notes.append(_("--{name} of the command line cannot be written into a script: give it again.").format(name=name))
    given = {*script, *source.options, *changed}
    for name, value in (("job-name", row["name"]), ("partition", row["partition"]), ("time", row["limit_s"])):
        text = format_limit(value) if name == "time" and value is not None else value
        if text and name not in given and representable(text) and (name == "job-name" or _not_default(policy, row, name)):
            out[name] = text
            if name != "job-name":
                plan.notes.append(
                    _(
                        "--{name}={value} is neither in the script nor on the command line: a variable (SBATCH_...) or a later change."
                    ).format(name=name, value=text)
                )
    folder = row["work_dir"]
    if folder and folder.startswith("/") and representable(folder) and not ({"chdir"} & (script.keys() | out.keys())):
        out["chdir"] = folder
    return out


def _not_default(policy: Policy, row: Mapping[str, Any], name: str) -> bool:
    """Whether the job's partition or limit is another than it gets without asking; False where that is not known."""
    if name == "partition":
        default = policy.default_partition
        return default is not None and default.name.casefold() not in row["partition"].casefold().split(",")
    rule = policy.partition(row["partition"])
    default_s = None if rule is None else rule.default_time_s or rule.max_time_s
    return default_s is not None and row["limit_kind"] == "limit" and abs(default_s - row["limit_s"]) >= 60


def _written(
    lake: Lake,
    draft: RetryAnswer,
    source: Source,
    options: Mapping[str, str],
    resume: Resume,
    comment: str | None,
    *,
    force: bool,
    local: bool,
) -> RetryAnswer:
    """The draft with its script, unless it would fail again: checked as it would be submitted."""
    wanted: dict[str, str | None] = {**draft.carried, **{c.option: c.after for c in draft.changes}}
    wanted["comment"] = marked(options.get("comment") or comment, draft.cluster, draft.job)
    setup: list[str] = []
    shell = is_shell(source.text)
    if resume.path is not None:
        if shell:
            setup.append(f"export QUEUECAST_RESUME={shlex.quote(resume.path)}")
        else:
            wanted["export"] = ",".join([options.get("export") or "ALL", f"QUEUECAST_RESUME={resume.path}"])
    if draft.arguments and shell and all(representable(a) for a in draft.arguments):
        setup.append(f'[ "$#" -gt 0 ] || set -- {shlex.join(draft.arguments)}')
    # a copy of a copy keeps what the earlier one set, where nothing newer is known
    for line in split_script(source.text).setup:
        if not any(line.split("=")[0].split(" || ")[0] == new.split("=")[0].split(" || ")[0] for new in setup):
            setup.append(line)
    bare = rewrite(source.text, wanted, setup=setup)
    folder = Path(draft.folder) if draft.folder and local and os.path.isdir(draft.folder) else None
    checked = precheck(
        bare,
        at=draft.at,
        name=f"retry-{draft.job}.sh",
        lake=lake,
        cluster=draft.cluster,
        user=draft.user,
        folder=folder,
        env=_home(draft.user),
        arguments=draft.arguments,
        paths=folder is not None,
    )
    findings = tuple(f for f in checked.findings if f.severity != "note")
    answer = replace(draft, findings=findings, diff=tuple(diff_lines(source.text, bare)))
    if draft.blocked is not None and not force:
        return answer
    script = rewrite(source.text, wanted, header=header_lines(answer, source.text), setup=setup)
    more = script.count("\n") - bare.count("\n")
    return replace(answer, script=script, findings=tuple(_shifted(f, more) for f in findings))


def _shifted(finding: Finding, more: int) -> Finding:
    return finding if finding.line is None or finding.line <= 1 else replace(finding, line=finding.line + more)


def _home(user: str | None) -> dict[str, str]:
    """HOME of the job's owner, not of whoever asks."""
    try:
        return {"HOME": pwd.getpwnam(user).pw_dir} if user else {}
    except KeyError:
        return {}


__all__ = ["Change", "Ended", "RetryAnswer", "retry"]
