"""Checks of what a script names on disk: looked for where this machine can see it, never opened, never run."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from queuecast.answers.prechecks.launch import launch_of
from queuecast.answers.prechecks.quota import NEAR, own_quotas
from queuecast.i18n import _
from queuecast.slurmtext.sizes import format_size

if TYPE_CHECKING:
    from queuecast.answers.prechecks.precheck import Script
    from queuecast.answers.scriptlines import Command

_RUNNERS = frozenset({"python", "python3", "bash", "sh", "zsh", "julia", "Rscript", "perl", "node"})
_CONTAINERS = ("apptainer", "singularity")
_PATH = re.compile(r"(?:--?[\w-]+=)?(/[\w./@+%-]+)")
_WRITES = re.compile(r"^--?(?:out|save|log|ckpt|check|dest|tmp|cache|result|work)", re.IGNORECASE)
_MAKERS = frozenset({"mkdir", "rm", "touch", "cp", "mv", "rsync", "tee", "test", "[", "[[", "ls", "ln", "echo", "tar", "export"})
_OWN = ("/dev/", "/proc/", "/sys/", "/tmp/", "/usr/", "/bin/", "/lib", "/etc/", "/var/", "/opt/")  # noqa: S108  # names, not files
LITTLE_BYTES = 5 << 30
"""Less free space than that, where output goes, is worth a warning."""


def check_paths(script: Script) -> None:
    """Folders of the job, then what the commands name, in the folder they run in."""
    folder = _folder(script)
    _interpreter(script)
    for option in ("output", "error"):
        _output(script, folder, option)
    _space(script, folder)
    _quota(script, folder)
    made: set[str] = {w for c in script.body.commands if c.words[0] in _MAKERS for w in c.words[1:]}
    here: Path | None = folder
    modulepath = [p for p in script.env.get("MODULEPATH", "").split(":") if p]
    for command in script.body.commands:
        words = command.words
        if words[0] == "cd" and len(words) > 1:
            here = _changed(script, here, command)
        elif words[0] in ("module", "ml"):
            _modules(script, command, modulepath)
        else:
            _command(script, here, command, made)


def reachable(path: Path) -> bool:
    """Whether this machine sees the file system of an absolute path: its first folder exists here."""
    parts = path.parts
    return len(parts) > 1 and Path(parts[0], parts[1]).exists()


def image_place(words: list[str] | tuple[str, ...]) -> int | None:
    """Where the image stands in ``apptainer exec ...``; None if it is not seen."""
    for i, word in enumerate(words[2:], start=2):
        if not word.startswith("-") and (word.endswith((".sif", ".simg", ".img", ".sqsh")) or "://" in word):
            return i
    return None


def _folder(script: Script) -> Path:
    text = script.options.get("chdir", "")
    if not text or "$" in text or text.startswith("~"):
        return script.folder
    path = script.folder / text
    if not reachable(path):
        _unseen(script, path)
    elif not path.is_dir():
        script.say(
            script.line("chdir"),
            "error",
            "no-folder",
            _("The working directory {path} does not exist.").format(path=path),
            _("Create it: mkdir -p {path}").format(path=path),
        )
    return path


def _interpreter(script: Script) -> None:
    first = script.text.split("\n", 1)[0].strip()
    if not first.startswith("#!"):
        return
    words = first[2:].split()
    if words and words[0].startswith("/") and reachable(Path(words[0])) and not Path(words[0]).exists():
        script.say(
            1,
            "error",
            "no-interpreter",
            _("The interpreter {path} does not exist.").format(path=words[0]),
            _("Begin with #!/bin/bash, or the path that `command -v` prints."),
        )


def _output(script: Script, folder: Path, option: str) -> None:
    text = script.options.get(option, "")
    if not text or "$" in text or text.startswith("~") or text == "/dev/null":
        return
    parent = (folder / text).parent
    fixed = Path(*[p for i, p in enumerate(parent.parts) if not any("%" in q for q in parent.parts[: i + 1])])
    if not reachable(fixed):
        _unseen(script, fixed)
        return
    if not fixed.is_dir() or fixed != parent:
        line = script.line(option)
        if fixed != parent and fixed.is_dir():
            why = _("Slurm does not create the directory {path} of the {option} file for each job.")
            script.say(line, "warning", "no-output-folder", why.format(path=parent, option=option), _("Use % in the file's name only."))
            return
        script.say(
            line,
            "error",
            "no-output-folder",
            _("The directory of the {option} file, {path}, does not exist: the job ends at once, without output (exit 0:53).").format(
                option=option, path=fixed
            ),
            _("Create it: mkdir -p {path}").format(path=fixed),
        )
    elif not os.access(fixed, os.W_OK):
        why = _("You cannot write to {path}, where the {option} file goes.").format(path=fixed, option=option)
        script.say(script.line(option), "error", "not-writable", why, _("Choose another directory with --{option}.").format(option=option))


def _space(script: Script, folder: Path) -> None:
    text = script.options.get("output", "")
    place = folder if "$" in text or not text else (folder / text.split("%")[0]).parent
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        free = shutil.disk_usage(place).free
    except OSError:
        return
    if free < LITTLE_BYTES:
        script.say(
            script.line("output", "chdir"),
            "error" if free < (1 << 20) else "warning",
            "little-space",
            _("{free} are free for you where the output goes, {path}.").format(free=format_size(free >> 20 << 20), path=place),
            _("Make room, or write elsewhere; see also: quota -s"),
        )


def _quota(script: Script, folder: Path) -> None:
    home = script.env.get("HOME", "")
    outputs = [(folder / script.options[o]).parent for o in ("output", "error") if o in script.options]
    for quota in own_quotas((folder, *outputs, *([Path(home)] if home.startswith("/") else []))):
        if quota.share >= NEAR:
            what = _("space") if quota.what == "space" else _("number of files")
            why = _("{share:.0%} of your quota of {what} on {place} is used.")
            script.say(
                None,
                "error" if quota.share >= 1 else "warning",
                "quota",
                why.format(share=quota.share, what=what, place=quota.place),
                _("Make room, or write to another file system."),
            )


def _changed(script: Script, here: Path | None, command: Command) -> Path | None:
    text = command.words[1]
    if "$" in text or text.startswith(("-", "~")) or here is None:
        return None
    path = here / text
    if not reachable(path):
        _unseen(script, path)
        return None
    if not path.is_dir() and not any(c.words[0] in ("mkdir", "git") for c in script.body.commands if c.line <= command.line):
        why = _("The directory {path} does not exist; the script goes on in another one.").format(path=path)
        script.say(command.line, "error", "no-folder", why, _("Correct the path, and use: set -e"))
        return None
    return path if path.is_dir() else None


def _modules(script: Script, command: Command, modulepath: list[str]) -> None:
    words = list(command.words[1:])
    if command.words[0] == "module":
        if words[:1] == ["use"]:
            modulepath[:0] = [w for w in words[1:] if not w.startswith("-")]
            return
        if words[:1] not in (["load"], ["add"]):
            return
        words = words[1:]
    names = [w for w in words if not w.startswith("-") and "$" not in w and w not in ("load", "purge", "list", "avail", "unload")]
    folders = [Path(p) for p in modulepath if Path(p).is_dir()]
    if names and not folders:
        text = _("Modules: MODULEPATH is not set here or its folders are not visible.")
        if text not in script.unchecked:
            script.unchecked.append(text)
        return
    for name in names:
        if not any((f / name).exists() or (f / f"{name}.lua").exists() for f in folders):
            short = name.partition("/")[0]
            others = sorted({p.stem if p.suffix == ".lua" else p.name for f in folders for p in (f / short).glob("*")} - {".version"})[:8]
            fix = _("There are: {names}.").format(names=", ".join(f"{short}/{o}" for o in others)) if others else _("See: module avail")
            why = _("There is no module {name} in MODULEPATH (it may need another one to be loaded first).").format(name=name)
            script.say(command.line, "warning", "no-module", why, fix)


def _command(script: Script, here: Path | None, command: Command, made: set[str]) -> None:
    words = command.words
    _container(script, here, command)
    if words[0] in ("source", ".") and len(words) > 1:
        _file(script, here, command, words[1], "no-file")
        return
    start = next((i for i, w in enumerate(words) if w.rsplit("/", 1)[-1] in _RUNNERS), None)
    at_torch = next((i for i, w in enumerate(words) if w.rsplit("/", 1)[-1] in ("torchrun", "accelerate", "deepspeed")), None)
    program = None
    inside = any(w.rsplit("/", 1)[-1] in _CONTAINERS for w in words) or any("--container-image" in w for w in words)
    if start is not None and start + 1 < len(words) and not words[start + 1].startswith("-") and words[0] != "module":
        program = words[start + 1]
    elif at_torch is not None:
        program = next((w for w in words[at_torch + 1 :] if w.endswith(".py")), None)
    if not inside:
        inner = launch_of(command)
        firsts = [words[0], *(inner.program[:1] if inner else ())]
        paths = [w for w in firsts if w.startswith(("./", "../", "/")) and not w.startswith(_OWN)]
        for name in dict.fromkeys([*paths, *([program] if program else [])]):
            if name not in made:
                _file(script, here, command, name, "no-program")
    if words[0] in _MAKERS or inside:
        return
    for i, word in enumerate(words[1:], start=1):
        found = _PATH.fullmatch(word)
        before = words[i - 1]
        if not found or word == program or found[1].startswith(_OWN) or _WRITES.match(word) or _WRITES.match(before):
            continue
        path = Path(found[1])
        if any(found[1] == m or found[1].startswith(m.rstrip("/") + "/") for m in made if m.startswith("/")):
            continue
        if not reachable(path):
            _unseen(script, path)
        elif not path.exists():
            why = _("{path} does not exist.").format(path=path)
            script.say(command.line, "warning", "no-path", why, _("Correct the path, or ignore this if the job makes it."))


def _container(script: Script, here: Path | None, command: Command) -> None:
    words = command.words
    image = None
    start = next((i for i, w in enumerate(words) if w.rsplit("/", 1)[-1] in _CONTAINERS), None)
    if start is not None:
        at = image_place(words[start:])
        image = words[start + at] if at is not None else None
    for i, word in enumerate(words):
        if word.startswith("--container-image"):
            image = word.partition("=")[2] or (words[i + 1] if i + 1 < len(words) else None)
    if image is None or "$" in image:
        return
    if "://" in image:
        why = _("The image {image} is fetched when the job starts: GPUs wait for it, and it fails without a network.")
        script.say(
            command.line,
            "note",
            "image-fetched",
            why.format(image=image),
            _("Fetch it before: apptainer pull image.sif {image}").format(image=image),
        )
    elif image.startswith(("/", "./", "../")) or image.endswith((".sif", ".simg", ".img", ".sqsh")):
        _file(script, here, command, image, "no-image")


def _file(script: Script, here: Path | None, command: Command, text: str, code: str) -> None:
    if "$" in text or "`" in text or "*" in text or text.startswith("~"):
        return
    if here is None and not text.startswith("/"):
        return
    path = Path(text) if here is None else here / text
    if not reachable(path):
        _unseen(script, path)
    elif not path.exists():
        if text.startswith("/"):
            fix = _("Correct the path.")
        else:
            fix = _("Submit from the folder that holds it, or use -D; it was looked for in {folder}.").format(folder=here)
        script.say(command.line, "error", code, _("{path} does not exist.").format(path=text), fix)


def _unseen(script: Script, path: Path) -> None:
    top = Path(*path.parts[:2])
    text = _("Paths below {path}: not visible from this machine.").format(path=top)
    if text not in script.unchecked:
        script.unchecked.append(text)
