"""Where a job that was interrupted can go on: the folder of its checkpoints, and the last whole one there."""

from __future__ import annotations

import contextlib
import os
import pwd
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from queuecast.answers.retries.checkpoints import Search, changed_since, find_checkpoint
from queuecast.answers.retries.lineage_mark import parent_of
from queuecast.answers.scriptlines import expand, read_body
from queuecast.i18n import _
from queuecast.slurmtext.rewrite import is_shell, representable, split_script
from queuecast.slurmtext.script import parse_script

if TYPE_CHECKING:
    from queuecast.answers.retries.job import Ended
    from queuecast.answers.retries.script import Source

VARIABLE = "QUEUECAST_CHECKPOINT_DIR"
_DESCENT = re.compile(r"# lineage: \S+/(\S+)")
_DIRECTIVE = re.compile(r"^#\s*queuecast:\s*checkpoint=(.+?)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Resume:
    """``path``: what QUEUECAST_RESUME is set to; None: begin anew."""

    path: str | None = None
    search: Search | None = None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def find_resume(ended: Ended, source: Source, options: Mapping[str, str], given: Path | None, local: bool) -> Resume:
    """The last whole checkpoint of the job. The folder: as given, else by the script's comment ``# queuecast: checkpoint=DIR``,
    else by QUEUECAST_CHECKPOINT_DIR as the script sets it; relative ones below the folder where the job ran."""
    if not local:
        return Resume()
    row = ended.row
    base = options.get("chdir") or row["work_dir"]
    folder, note = (given, None) if given is not None else _folder(ended, source.text, base)
    if folder is None:
        return Resume(notes=(note,) if note else ())
    if len(ended.failed) > 1:
        return Resume(notes=(_("Each task of the array has to find its own checkpoint: none is set."),))
    search = find_checkpoint(folder, jobs=None if given is not None else _line(ended, source.text))
    broken = [_("The checkpoint of {path} is not whole: {why}.").format(path=p, why=w) for p, w in search.broken[:5]]
    if search.cut:
        broken.append(_("{folder} holds so many files that not all were looked at.").format(folder=folder))
    if search.found is None:
        text = _("No whole checkpoint of it was found in {folder}: it begins anew.").format(folder=folder)
        return Resume(None, search, (text,), tuple(broken))
    path = search.found.resume
    if not representable(path) or (not is_shell(source.text) and "," in path):
        return Resume(None, search, (_("The path of the checkpoint cannot be written into the script."),), tuple(broken))
    work = Path(base) if base else None
    warnings = changed_since(search.found, commit=_commit(work), work_dir=work, script=source.text)
    at = search.found.step if search.found.step is not None else search.found.epoch
    text = _("It goes on from the checkpoint {path}, saved {time} UTC{step}.").format(
        path=path,
        time=f"{search.found.saved_at:%Y-%m-%d %H:%M}",
        step=_(" at step {n}").format(n=at) if search.found.step is not None else "",
    )
    if "QUEUECAST_RESUME" not in source.text:
        warnings = [*warnings, _("The script does not mention QUEUECAST_RESUME: let the program read it, or it begins anew.")]
    return Resume(path, search, (text,), (*broken, *warnings))


def _line(ended: Ended, text: str) -> set[str]:
    """Ids under which this work may have saved: the job, and those that its script and comment name as its line of descent."""
    row = ended.row
    out = {str(row["job_id"]), str(row["job_id_text"]), ended.base}
    named = [parent_of(row["comment"]), parent_of(parse_script(text).options.get("comment"))]
    out |= {found[1] for found in named if found is not None}
    return out | {m[1] for line in split_script(text).header if (m := _DESCENT.match(line)) is not None}


def _folder(ended: Ended, text: str, base: str | None) -> tuple[Path | None, str | None]:
    row = ended.row
    values = {
        "SLURM_JOB_ID": str(row["job_id"]),
        "SLURM_JOBID": str(row["job_id"]),
        "SLURM_JOB_NAME": row["name"] or "",
        "USER": row["user"] or "",
    }
    if base:
        values |= {"SLURM_SUBMIT_DIR": base, "PWD": base}
    if row["array_job_id"] is not None:
        values |= {"SLURM_ARRAY_JOB_ID": str(row["array_job_id"]), "SLURM_ARRAY_TASK_ID": str(row["array_task"])}
    if row["user"]:
        with contextlib.suppress(KeyError):
            values["HOME"] = pwd.getpwnam(row["user"]).pw_dir
    found = _DIRECTIVE.search(text)
    if found:
        name = expand(found[1], values)
    else:
        place = read_body(text, values).variables.get(VARIABLE)
        if place is None:
            return None, None
        name = expand(place[1], values)
    if "$" in name or "`" in name or "\0" in name:
        return None, _("Where its checkpoints lie is not known ({name}): give the folder with --checkpoint DIR.").format(name=name)
    if os.path.isabs(name):
        return Path(name), None
    return (Path(base) / name, None) if base else (None, None)


def _commit(folder: Path | None) -> str | None:
    """Commit of the code where the job ran; None where that is no git repository, or not ours to read."""
    if folder is None or not folder.is_dir():
        return None
    from queuecast.collect.run import Runner

    told = Runner().output(("git", "-C", str(folder), "rev-parse", "--verify", "HEAD"), 5.0, located=False)
    text = (told or "").strip()
    return text if re.fullmatch(r"[0-9a-f]{7,64}", text) else None
