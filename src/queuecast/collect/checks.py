"""The judgements of ``doctor``: from what Slurm printed to findings. Nothing is run here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from queuecast.collect.fields import Version
from queuecast.collect.findings import COMMANDS, NEEDED, Facts, Finding
from queuecast.errors import CommandNotFound, ParseError
from queuecast.i18n import _, ngettext
from queuecast.slurmtext.durations import parse_limit
from queuecast.slurmtext.gres import gpus_of_gres

STALE = timedelta(minutes=15)
DEAD = timedelta(days=1)


def judge(facts: Facts) -> list[Finding]:
    """All findings about the cluster, in the order in which they should be read."""
    if "ssh" in facts.failures:
        error = facts.failures["ssh"]
        return [Finding("fail", error.message, _("Nothing can be collected."), error.hint, "ssh")]
    found = [*_commands(facts), *_clock(facts), *_daemons(facts)]
    if facts.texts.get("config"):
        settings = config_of(facts.texts["config"])
        for check in (_visibility, _gpus, _backfill, _priorities):
            found += check(facts, settings)
    return [*found, *_columns(facts)]


def config_of(text: str) -> dict[str, str]:
    """``scontrol show config`` as a mapping; ``(null)`` is left out."""
    pairs = (line.partition("=") for line in text.splitlines())
    return {k.strip(): v.strip() for k, eq, v in pairs if eq and v.strip() != "(null)"}


def _commands(facts: Facts) -> Iterator[Finding]:
    for command in COMMANDS:
        error = facts.version_errors.get(command)
        if error is None:
            continue
        needed = command in NEEDED
        why = _("Without it there is nothing to answer from.") if needed else _("What it tells is missing from the answers.")
        check = "command_missing" if isinstance(error, CommandNotFound) else "command_wrapped"
        yield Finding("fail" if needed else "warn", error.message, why, error.hint, check)
    releases = sorted(set(facts.versions.values()))
    if len(releases) > 1:
        yield Finding("warn", _("The commands are of different releases: %(list)s.") % {
            "list": ", ".join(f"{c} {v}" for c, v in sorted(facts.versions.items()))},
            _("A command older than its daemon may refuse to talk to it."),
            _("Give the folder of the commands that belong to the cluster."), "releases")
    elif releases:
        yield Finding("ok", _("Slurm %(version)s: %(n)s commands are here.") % {"version": releases[0], "n": len(facts.versions)},
                      check="commands")


def _clock(facts: Facts) -> Iterator[Finding]:
    seconds = abs(facts.ssh_offset.total_seconds())
    same_server = _("Let both machines follow the same time server.")
    if facts.ssh and seconds >= 60:
        what = _("The clock of %(host)s differs from this machine's by %(s)d s.") % {"host": facts.ssh, "s": seconds}
        why = _("Its clock is used for what is collected there, so waits stay right; forecasts shown here seem shifted.")
        yield Finding("warn", what, why, same_server, "clock")
    elif facts.controller_offset_s is not None and abs(facts.controller_offset_s) >= 60:
        what = _("The clock of slurmctld differs from the one here by %(s)d s.") % {"s": abs(facts.controller_offset_s)}
        why = _("The age of a snapshot and the waiting time so far are wrong by as much.")
        yield Finding("warn", what, why, same_server, "clock")
    elif facts.controller_offset_s is not None:
        yield Finding("ok", _("The clocks agree."), check="clock")


def _daemons(facts: Facts) -> Iterator[Finding]:
    controller = next((facts.failures[k] for k in ("config", "squeue", "nodes") if k in facts.failures), None)
    if controller is not None:
        yield Finding("fail", controller.message, _("The queue cannot be seen now: answers rest on the last snapshot."),
                      controller.hint,
                      "slurmctld")
    elif "squeue" in facts.texts:
        yield Finding("ok", _("slurmctld answers (cluster %(name)s).") % {"name": facts.cluster}, check="slurmctld")
    database = facts.failures.get("sacct")
    if database is not None:
        yield Finding("fail", database.message, _("Waits are learned from past jobs, and those are in slurmdbd."),
                      database.hint, "slurmdbd")
    elif facts.job_owners is not None:
        yield Finding("ok", _("slurmdbd answers."), check="slurmdbd")


def _visibility(facts: Facts, settings: dict[str, str]) -> Iterator[Finding]:
    private = {p.strip().lower() for p in settings.get("PrivateData", "none").split(",")} - {"none", ""}
    seen, me = facts.job_owners, facts.user
    operator = (facts.admin_level or "None").lower() not in ("none", "")
    raise_me = _("An operator account for collecting sees all jobs: sacctmgr modify user %(user)s set adminlevel=operator") % {
        "user": me or "NAME"}
    if seen is not None and me is not None and seen == {me}:
        yield Finding("warn", _("Only your own jobs are visible in accounting."),
                      _("Answers learned from one person's jobs do not hold for the cluster; rankings and shares are left out."),
                      raise_me, "own_jobs_only")
    elif seen is not None and not seen:
        yield Finding("warn", _("Accounting shows no job of the last 24 hours."),
                      _("It cannot be told whose jobs are visible, and there is nothing recent to learn from."),
                      _("Collect a longer past with `queuecast backfill`."), "no_jobs")
    elif seen is not None:
        yield Finding("ok", ngettext("Jobs of %(n)d user were seen in the last 24 hours.",
                                     "Jobs of %(n)d users were seen in the last 24 hours.",
                                     len(seen)) % {"n": len(seen)}, check="visibility")
    hidden = private & {"jobs", "users", "usage", "accounts", "nodes", "reservations", "partitions"}
    if hidden and not operator and me != "root":
        yield Finding("warn", _("PrivateData hides from ordinary users: %(list)s.") % {"list": ", ".join(sorted(hidden))},
                      _("Work ahead of you that cannot be seen cannot be counted."), raise_me, "private_data")
    if operator or me == "root":
        yield Finding("ok", _("You collect with the rights of %(level)s.") % {"level": facts.admin_level if operator else "root"},
                      check="rights")
    elif facts.admin_level is not None:
        more = _("An operator would also see what PrivateData hides, the limits of all accounts, and runaway jobs. "
                 "Nothing else needs rights.")
        yield Finding("ok", _("You collect as an ordinary user."), more, check="rights")


def _gpus(facts: Facts, settings: dict[str, str]) -> Iterator[Finding]:
    types: set[str] = set()
    total = 0
    for gres in re.findall(r"(?:^|\s)Gres=(\S+)", facts.texts.get("nodes", "")):
        try:
            gpus = gpus_of_gres(gres)
        except ParseError:
            continue
        total += gpus.total or 0
        types |= {name for name, _count in gpus.types}
    if not total:
        if "nodes" in facts.texts:
            yield Finding("ok", _("The nodes have no GPUs."), check="gpus")
        return
    tracked = {t.strip().lower() for t in settings.get("AccountingStorageTRES", "").split(",")}
    if not any(t == "gres/gpu" or t.startswith("gres/gpu:") for t in tracked):
        why = _("How many GPUs an ended job had is unknown (never taken as 0): waits of GPU jobs cannot be learned by size.")
        todo = _("An administrator adds to slurm.conf: AccountingStorageTRES=%(list)s, then restarts slurmctld.")
        yield Finding("warn", _("There are %(n)d GPUs, but AccountingStorageTRES lacks gres/gpu.") % {"n": total}, why,
                      todo % {"list": ",".join(("gres/gpu", *(f"gres/gpu:{t}" for t in sorted(types))))}, "gpu_accounting")
        return
    untyped = sorted(t for t in types if f"gres/gpu:{t}" not in tracked)
    if untyped:
        yield Finding("warn", _("GPU types without accounting: %(list)s.") % {"list": ", ".join(untyped)},
                      _("Which type an ended job had is then told by its nodes only."),
                      _("An administrator adds to AccountingStorageTRES: %(list)s") % {
                          "list": ",".join(f"gres/gpu:{t}" for t in untyped)}, "gpu_types")
    else:
        yield Finding("ok", _("%(n)d GPUs, accounted by type.") % {"n": total}, check="gpu_accounting")


def _backfill(facts: Facts, settings: dict[str, str]) -> Iterator[Finding]:
    if settings.get("SchedulerType", "sched/backfill") != "sched/backfill":
        yield Finding("warn", _("The scheduler is %(name)s.") % {"name": settings["SchedulerType"]},
                      _("Only sched/backfill makes estimates of the start; ours are then the only ones."), check="backfill")
        return
    parameters = dict(p.partition("=")[::2] for p in settings.get("SchedulerParameters", "").split(","))
    clean = True
    release = facts.versions.get("sinfo")
    depth = _number(parameters.get("bf_max_job_test")) or (100 if release is not None and release < Version(21, 8) else 500)
    pending = facts.texts.get("squeue", "").count("\x1fPENDING\x1f")
    if pending > depth:
        clean = False
        what = _("%(n)d job records wait, but backfill looks at %(depth)d (bf_max_job_test).") % {"n": pending, "depth": depth}
        yield Finding("warn", what, _("Jobs further down have no estimate of Slurm's and are not backfilled."),
                      _("An administrator may raise bf_max_job_test."), "bf_max_job_test")
    limits = sorted(k for k in parameters if re.fullmatch(r"bf_max_job_(user|part|assoc|user_part|start)",
                                                          k) and _number(parameters[k]))
    if limits:
        clean = False
        what = _("Backfill is limited by: %(list)s.") % {"list": ", ".join(f"{k}={parameters[k]}" for k in limits)}
        why = _("Jobs beyond these numbers have no estimate of Slurm's, whatever their priority.")
        yield Finding("warn", what, why, check="bf_max_job")
    window = (_number(parameters.get("bf_window")) or 1440) * 60
    longest, name = _longest(facts.texts.get("partitions", ""))
    if longest is not None and longest > window:
        clean = False
        yield Finding("warn", _("Backfill looks %(window).1f days ahead (bf_window), but %(name)s allows %(longest).1f days.") % {
            "window": window / 86400, "name": name, "longest": longest / 86400},
            _("Starts further ahead are N/A in squeue --start, and long jobs may be passed over."),
            _("An administrator may set bf_window (minutes) to the longest limit."), "bf_window")
    if clean:
        what = _("Backfill looks far enough: %(depth)d jobs, %(days).1f days.") % {"depth": depth, "days": window / 86400}
        yield Finding("ok", what, check="backfill")


def _longest(text: str) -> tuple[int | None, str]:
    best: tuple[int | None, str] = (None, "")
    for name, limit in re.findall(r"PartitionName=(\S+).*?\sMaxTime=(\S+)", text):
        try:
            seconds = parse_limit(limit).seconds
        except ParseError:
            continue
        if seconds is not None and (best[0] is None or seconds > best[0]):
            best = (seconds, name)
    return best


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"\d+", text) and int(text) > 0 else None


def _priorities(facts: Facts, settings: dict[str, str]) -> Iterator[Finding]:
    plugin = settings.get("PriorityType", "")
    if plugin and plugin != "priority/multifactor":
        yield Finding("ok", _("Jobs are ordered by %(plugin)s: there are no priority factors.") % {"plugin": plugin},
                      check="priority")
        return
    for kind, why in (("sprio", _("What makes up a priority cannot be explained.")),
                      ("sshare", _("How recent use lowers a priority cannot be explained."))):
        error = facts.failures.get(kind)
        if error is not None and "squeue" in facts.texts:
            yield Finding("warn", error.message, why, error.hint, kind)
        elif kind in facts.texts:
            yield Finding("ok", _("%(command)s is visible.") % {"command": kind}, check=kind)


def _columns(facts: Facts) -> Iterator[Finding]:
    for kind, names in sorted(facts.missing_fields.items()):
        what = _("%(command)s of this release does not tell: %(list)s.") % {"command": kind, "list": ", ".join(names)}
        yield Finding("ok", what, check="columns")


def freshness(newest: datetime | None, now: datetime, lake: str) -> Finding:
    """How old the newest queue snapshot is."""
    todo = _("Run `queuecast collect` every few minutes, from cron or a systemd timer (see the manual on collecting).")
    if newest is None:
        return Finding("fail", _("The lake %(path)s holds no snapshot of the queue yet.") % {"path": lake},
                       _("There is nothing to answer from."), todo, "freshness")
    age = now - newest
    if age < timedelta(minutes=-2):
        what = _("The newest snapshot is %(n)d min ahead of the clock.") % {"n": -age / timedelta(minutes=1)}
        clocks = _("Let both machines follow the same time server.")
        return Finding("warn", what, _("Times shown here are wrong by as much."), clocks, "freshness")
    if age > STALE:
        text = (_("The newest snapshot is %(n)d h old.") % {"n": age / timedelta(hours=1)} if age >= timedelta(hours=2)
                else _("The newest snapshot is %(n)d min old.") % {"n": age / timedelta(minutes=1)})
        return Finding("fail" if age > DEAD else "warn", text, _("Answers are about the queue as it was then."), todo,
                       "freshness")
    return Finding("ok", _("The newest snapshot is %(n)d min old.") % {"n": max(0, age / timedelta(minutes=1))},
                   check="freshness")
