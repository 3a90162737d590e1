"""``queuecast doctor``: what can be seen of the cluster from here, what limits the answers, and what to do about it.

`examine` asks Slurm (each command once or twice), `checks` judges what came back.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping
from datetime import datetime

from queuecast.collect.capabilities import ask_version
from queuecast.collect.checks import freshness, judge
from queuecast.collect.faults import fault
from queuecast.collect.findings import COMMANDS, Facts, Finding, Level
from queuecast.collect.live import LiveSource
from queuecast.collect.source import Capture, SourceFailure
from queuecast.errors import SourceError
from queuecast.i18n import _

__all__ = ["Facts", "Finding", "Level", "examine", "gather", "summary"]

_MAX = 64 << 20


def examine(source: LiveSource, *, newest: datetime | None = None, lake: str | None = None,
            cluster: str | None = None, now: Callable[[], datetime] | None = None) -> list[Finding]:
    """Look at one cluster and the lake. Never raises for what it finds; takes a dozen small calls.

    ``newest`` is the time (aware) of the newest queue snapshot in the lake, None if it has none; ``lake`` its path, None to
    leave the lake out. ``cluster`` is a name for ``-M``. ``now`` defaults to the source's clock.
    """
    facts = gather(source, cluster)
    findings = judge(facts)
    if lake is not None:
        findings.append(freshness(newest, (now or source.runner.now)(), lake))
    return findings


def gather(source: LiveSource, cluster: str | None = None) -> Facts:
    """Ask Slurm everything that the checks need."""
    runner = source.runner
    facts = Facts(ssh=runner.ssh)
    if runner.ssh is not None:
        reached = runner.output(("true",), 30.0, located=False)
        if reached is None:
            facts.failures["ssh"] = _ssh_error(source)
            return facts
        facts.ssh_offset = runner.sync_clock()
    for command in COMMANDS:
        try:
            facts.versions[command] = ask_version(runner, command)
        except SourceError as error:
            facts.version_errors[command] = error
    if "sinfo" in facts.version_errors:
        return facts
    one = LiveSource(runner=runner, clusters=(cluster,) if cluster else source.clusters[:1], retries=0, memory=source.memory)
    for result in one.captures(kinds=_KINDS):
        if isinstance(result, SourceFailure):
            facts.failures[result.kind] = result.error
            continue
        facts.cluster = result.cluster
        facts.texts[result.kind] = _text(result)
        if result.missing_fields:
            facts.missing_fields[result.kind] = result.missing_fields
        if result.kind == "sdiag" and (told := re.search(r"sdiag output at .*\((\d{9,11})\)", facts.texts["sdiag"])):
            facts.controller_offset_s = int(told[1]) - result.taken_at.timestamp()
    to = ("-M", facts.cluster) if (cluster or source.clusters) and facts.cluster else ()
    _owners(one, facts, to)
    facts.user = (runner.output(("id", "-un"), 30.0, located=False) or "").strip() or None
    if facts.user and re.fullmatch(r"[A-Za-z0-9._@\\-]+", facts.user):
        told_level = runner.output(("sacctmgr", "-n", "-P", "show", "user", facts.user, "format=AdminLevel"), 30.0)
        if told_level is not None:
            facts.admin_level = told_level.strip().splitlines()[0] if told_level.strip() else "None"
    return facts


_KINDS = ("config", "squeue", "nodes", "sprio", "sshare", "partitions", "sdiag")


def _owners(source: LiveSource, facts: Facts, to: tuple[str, ...]) -> None:
    """Whose jobs does accounting show? One day of names, which also tells whether slurmdbd answers."""
    command = ("sacct", *to, "-a", "-X", "-P", "-S", "now-1days", "-E", "now", "-o", "JobID,User")
    with tempfile.TemporaryFile() as out:
        done = source.runner.run(command, out, 120.0)
        out.seek(0)
        text = out.read(_MAX).decode("utf-8", "replace")
    error = fault("other", command, done, text, source.runner)
    if error is None and not text.startswith("JobID|"):
        error = SourceError("sacct printed nothing usable")
    if error is not None:
        # the kind decides which daemon is named
        facts.failures["sacct"] = fault("sacct", command, done, text, source.runner) or error
        return
    facts.job_owners = frozenset(user for line in text.splitlines()[1:] if (user := line.partition("|")[2]))


def _text(capture: Capture) -> str:
    with capture.raw() as stream:
        return stream.read(_MAX).decode("utf-8", "replace")


def _ssh_error(source: LiveSource) -> SourceError:
    runner = source.runner
    with tempfile.TemporaryFile() as out:
        done = runner.run(("true",), out, 30.0)
    error = fault("other", ("true",), done, "", runner)
    return error or SourceError(_("ssh cannot run commands on %(host)s") % {"host": runner.where})


def summary(findings: list[Finding]) -> Mapping[Level, int]:
    """How many of each level."""
    return {level: sum(f.level == level for f in findings) for level in ("ok", "warn", "fail")}
