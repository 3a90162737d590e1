"""What this cluster's commands can tell: its name, its release, its columns. Asked once, then remembered."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from queuecast.collect.fields import (
    ASSOC,
    EVENTS,
    SSHARE,
    Chosen,
    Version,
    choose,
    choose_sacct,
    choose_sprio,
    choose_squeue,
    parse_helpformat,
    parse_version,
)
from queuecast.collect.run import Runner, first_line
from queuecast.errors import CommandNotFound, SlurmDown, SourceError


@dataclass(frozen=True)
class Capabilities:
    """cluster: ClusterName. version: of the clients. chosen: the columns to ask for, by kind."""

    cluster: str
    version: Version
    chosen: Mapping[str, Chosen]

    def without(self, kind: str, refused: tuple[str, ...]) -> Capabilities:
        """The same after a command refused columns."""
        return replace(self, chosen={**self.chosen, kind: self.chosen[kind].without(refused)})


def ask_version(runner: Runner, command: str = "sinfo", timeout: float = 30.0) -> Version:
    """The release of one command. Raises `CommandNotFound`, or `SourceError` if what answers is not Slurm's own."""
    with tempfile.TemporaryFile() as out:
        done = runner.run((command, "--version"), out, timeout)
        out.seek(0)
        text = out.read(65536).decode("utf-8", "replace")
    version = parse_version(text)
    if version is not None and done.exit_code == 0:
        return version
    from queuecast.collect.faults import fault

    error = fault("other", (command, "--version"), done, text, runner)
    # seen with 24.11: a client without its configuration does not even tell its version
    own = bool(re.search(rf"^{command}: (error|fatal):", done.stderr, re.MULTILINE))
    if error is not None and (own or isinstance(error, CommandNotFound) or done.timed_out or runner.ssh is not None):
        raise error
    says = first_line(text or done.stderr, 120)
    raise SourceError(f"{command} on {runner.where} is not Slurm's own: asked for its version it says {says!r}",
                      f"A wrapper script may stand in its place: give the path of Slurm's own {command}.")


def ask_cluster(runner: Runner, named: str | None = None, timeout: float = 60.0) -> str:
    """The ClusterName of the cluster that the clients ask by default, or of the one named (which proves that it exists:
    sacct answers for an unknown cluster with an empty list). Raises `SourceError`."""
    command = ("scontrol", *(("-M", named) if named else ()), "show", "config")
    with tempfile.TemporaryFile() as out:
        done = runner.run(command, out, timeout)
        out.seek(0)
        text = out.read(1 << 20).decode("utf-8", "replace")
    from queuecast.collect.faults import fault

    error = fault("config", command, done, text, runner)
    if error is not None:
        raise error
    match = re.search(r"^ClusterName\s*=\s*(\S+)\s*$", text, re.MULTILINE)
    if match is None or match[1] == "(null)":
        raise SourceError("scontrol does not tell the cluster's name", "Name the cluster with -M.")
    return match[1]


def negotiate(runner: Runner, cluster: str, version: Version, timeout: float = 30.0) -> Capabilities:
    """Choose the columns: what is wanted and, where the command lists what it knows, offered."""
    sacct = runner.output(("sacct", "--helpformat"), timeout) or ""
    sshare = runner.output(("sshare", "--helpformat"), timeout) or ""
    offered = parse_helpformat(sshare)
    return Capabilities(cluster, version, {
        "sacct": choose_sacct(parse_helpformat(sacct), version),
        "squeue": choose_squeue(version),
        "sprio": choose_sprio(version),
        # an old sshare lists nothing: then its own -l is asked for
        "sshare": choose(SSHARE, offered) if offered else Chosen((), SSHARE),
        "assoc": Chosen(ASSOC),
        "events": Chosen(EVENTS),
    })


class Memory:
    """Negotiations of earlier runs, by where, cluster and release, in a JSON file. A lost or odd file costs only time."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._data: dict[str, Any] = {}
        if path is not None:
            try:
                data = json.loads(path.read_text(encoding="utf-8"))
                self._data = data if isinstance(data, dict) else {}
            except (OSError, ValueError):
                self._data = {}

    def cluster(self, where: str) -> str | None:
        """The name of the default cluster as last seen."""
        name = self._data.get(f"{where}|cluster")
        return name if isinstance(name, str) else None

    def remember_cluster(self, where: str, cluster: str) -> None:
        if self.cluster(where) != cluster:
            self._data[f"{where}|cluster"] = cluster
            self._save()

    def get(self, where: str, cluster: str, version: Version) -> Capabilities | None:
        entry = self._data.get(f"{where}|{cluster}|{version}|{_WANTED}")
        if not isinstance(entry, dict):
            return None
        try:
            chosen = {str(kind): Chosen(tuple(c["fields"]), tuple(c["missing"])) for kind, c in entry.items()}
        except (KeyError, TypeError):
            return None
        return Capabilities(cluster, version, chosen) if chosen.keys() >= _KINDS else None

    def put(self, where: str, capabilities: Capabilities) -> None:
        key = f"{where}|{capabilities.cluster}|{capabilities.version}|{_WANTED}"
        self._data[key] = {kind: {"fields": c.fields, "missing": c.missing} for kind, c in capabilities.chosen.items()}
        self._save()

    def _save(self) -> None:
        if self._path is None:
            return
        temporary = self._path.with_name(f".{self._path.name}.{os.getpid()}.tmp")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps(self._data, indent=1, sort_keys=True), encoding="utf-8")
            os.replace(temporary, self._path)
        except OSError:  # a read-only place: the next run negotiates again
            temporary.unlink(missing_ok=True)


_KINDS = frozenset(("sacct", "squeue", "sprio", "sshare", "assoc", "events"))


def _fingerprint() -> str:
    import hashlib

    from queuecast.collect import fields

    wanted = repr((fields.SACCT, fields.SQUEUE_LONG, fields.SQUEUE_SHORT, fields.SPRIO, SSHARE, ASSOC, EVENTS))
    return hashlib.sha256(wanted.encode()).hexdigest()[:12]


_WANTED = _fingerprint()
"""Changes with the columns that queuecast wants, so that a newer queuecast asks anew."""


def place(runner: Runner) -> str:
    """Tells apart the Slurms that one machine can reach: host, path of the commands, configuration."""
    conf = os.environ.get("SLURM_CONF", "") if runner.ssh is None else ""
    return "|".join((runner.where, " ".join(runner.located(("sinfo",))), runner.extra_env.get("SLURM_CONF", conf)))


def know(runner: Runner, memory: Memory, named: str | None) -> Capabilities:
    """Everything needed before the first call: from memory where possible.

    ``named`` is the cluster to be asked by ``-M``; None for the default one. If slurmctld is away, the name is taken on
    trust, the default cluster's from memory, so that accounting can still be read. Raises `SourceError`.
    """
    version = ask_version(runner)
    where = place(runner)
    try:
        cluster = ask_cluster(runner, named)
        if named is None:
            memory.remember_cluster(where, cluster)
    except SlurmDown:
        trusted = named or memory.cluster(where)
        if trusted is None:
            raise
        cluster = trusted
    known = memory.get(where, cluster, version)
    if known is None:
        known = negotiate(runner, cluster, version)
        if known.chosen["sacct"].fields:
            memory.put(where, known)
    return known
