"""``queuecast check`` and ``queuecast template``."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

import typer

from queuecast import clock
from queuecast.cli.common import AtOption, ClusterOption, JsonOption, LakeOption, ParsableOption, UserOption, context, print_json, width
from queuecast.errors import StoreError, UsageError
from queuecast.i18n import _

_ENVIRONMENT = {"SBATCH_ACCOUNT": "account", "SBATCH_PARTITION": "partition", "SBATCH_QOS": "qos", "SBATCH_TIMELIMIT": "time"}
_MOST_BYTES = 4 << 20
_KINDS = ("single", "multi", "inference")


def check(
    words: Annotated[
        list[str],
        typer.Argument(metavar="SCRIPT", help="A batch script; or, after --, the words of an sbatch command: -- -p gpu job.sh arg."),
    ],
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if there are warnings.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print only if something is wrong.")] = False,
    no_paths: Annotated[bool, typer.Option("--no-paths", help="Look for no files.")] = False,
    user: UserOption = None,
    at: AtOption = None,
    as_json: JsonOption = False,
    parsable: ParsableOption = False,
    cluster: ClusterOption = None,
    lake: LakeOption = None,
) -> None:
    """Look at a batch script before it is submitted. Exit status: 0 fine, 1 warnings (--strict), 3 errors."""
    from queuecast.answers.prechecks.precheck import precheck
    from queuecast.slurmtext.script import parse_options

    given = parse_options(words)
    if not given.rest:
        raise UsageError(_("no script is named"), _("for example: queuecast check job.sh"))
    path = Path(given.rest[0])
    text = _read(path)
    ctx = context(lake, cluster)
    try:
        opened = ctx.lake()
        name = ctx.cluster or (opened.clusters[0] if len(opened.clusters) == 1 else None)
        if name is None and opened.clusters:
            raise UsageError(_("the lake holds several clusters"), _("name one: -M {names}").format(names=" | ".join(opened.clusters)))
    except StoreError:  # the script alone says enough to find most mistakes
        opened, name = None, None
    if opened is not None:
        moment = ctx.at(at, opened, name)
    else:
        moment = clock.parse_instant(at, ctx.zone) if at and at != "data" else clock.now()
    answer = precheck(
        text,
        at=moment,
        name=given.rest[0],
        options={**{o: os.environ[v] for v, o in _ENVIRONMENT.items() if v in os.environ}, **given.options},
        arguments=given.rest[1:],
        components=[c.options for c in given.components],
        lake=opened if name else None,
        cluster=name,
        user=ctx.viewer(user).user,
        folder=Path.cwd(),
        env=os.environ,
        paths=not no_paths,
    )
    status = answer.status(strict=strict)
    if as_json:
        print_json(answer.as_json())
    elif parsable:
        from queuecast.render.precheck import parsable as rows

        print(rows(answer))
    elif not quiet or answer.count("error") or answer.count("warning"):
        from queuecast.render.precheck import precheck_lines

        print("\n".join(precheck_lines(answer, width())))
    raise typer.Exit(status)


def template(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="single (one GPU), multi (several GPUs and nodes) or inference.")],
    partition: Annotated[str | None, typer.Option("-p", "--partition")] = None,
    account: Annotated[str | None, typer.Option("-A", "--account")] = None,
    qos: Annotated[str | None, typer.Option("-q", "--qos")] = None,
    time: Annotated[str | None, typer.Option("-t", "--time")] = None,
    gres: Annotated[str | None, typer.Option("--gres", help="Per node: gpu:a100:4.")] = None,
    nodes: Annotated[str | None, typer.Option("-N", "--nodes")] = None,
    cpus_per_task: Annotated[str | None, typer.Option("-c", "--cpus-per-task")] = None,
    mem: Annotated[str | None, typer.Option("--mem", help="Per node.")] = None,
) -> None:
    """Print a batch script to start from: it saves before the time limit, requeues itself and goes on."""
    from importlib.resources import files

    if kind not in _KINDS:
        raise UsageError(_("there is no template {name}").format(name=kind), _("there are: {names}").format(names=", ".join(_KINDS)))
    text = (files("queuecast") / "templates" / f"{kind}.sh").read_text(encoding="utf-8")
    given = {"partition": partition, "account": account, "qos": qos, "time": time, "gres": gres, "nodes": nodes}
    for option, value in {**given, "cpus-per-task": cpus_per_task, "mem": mem}.items():
        if value is not None:
            text = _with_option(text, option, value)
    print(text, end="")


def _with_option(text: str, option: str, value: str) -> str:
    """The script with an #SBATCH line of that option: replaced if it has one, else added after the first."""
    if re.search(r"\s", value):
        raise UsageError(_("--{option}: {value!r} holds a blank").format(option=option, value=value), _("write it without"))
    line = f"#SBATCH --{option}={value}"
    found = re.search(rf"^#SBATCH --{option}=\S*", text, re.MULTILINE)
    if found:
        return text[: found.start()] + line + text[found.end() :]
    return re.sub(r"^(#SBATCH .*\n)", lambda m: f"{m[1]}{line}\n", text, count=1, flags=re.MULTILINE)


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(
            _("cannot read {path}: {why}").format(path=path, why=error.strerror), _("give the path of a batch script")
        ) from error
    if len(raw) > _MOST_BYTES or b"\0" in raw:
        raise UsageError(_("{path} is no batch script").format(path=path), _("sbatch takes text of at most 4 MiB"))
    return raw.decode("utf-8", errors="replace")
