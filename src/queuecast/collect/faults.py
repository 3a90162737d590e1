"""What went wrong, told from a command's exit code, its stderr and its output together.

None of the three is enough: sacctmgr has ended with 0 while slurmdbd was away, sacct's exit codes mean little before
23.11.4, squeue answers 0 for an unknown cluster, and some errors leave an empty output behind.
"""

from __future__ import annotations

import re

from queuecast.collect.run import Finished, Runner, first_line
from queuecast.errors import CommandNotFound, CommandTimeout, NotPermitted, SlurmDown, SourceError

CONTROLLER, DATABASE = "slurmctld", "slurmdbd"
DATABASE_KINDS = frozenset(("sacct", "qos", "assoc", "events", "resv_history", "sreport"))
"""Kinds that slurmdbd answers; slurmctld answers the others."""

_DOWN = re.compile(
    r"unable to contact slurm controller|socket timed out|connection refused|connection reset|problem talking to the database|"
    r"unable to connect to (the )?database|failed to open persistent connection|sending persistinit|zero bytes were transmitted|"
    r"backup controller in standby|can't be reached now|unable to connect to slurm daemon|database connection|"
    r"resource temporarily unavailable|no route to host|connection timed out|slurmdbd.*not respond", re.IGNORECASE)
_DENIED = re.compile(
    r"access/permission denied|permission denied|operation not permitted|doesn't have (the )?(privilege|permission)|"
    r"must be an? (operator|admin)|only (admins|operators|coordinators)|insufficient privileges|not authorized", re.IGNORECASE)
_SSH = re.compile(
    r"^(ssh: |kex_exchange|host key verification failed|.*permission denied \(|connection closed by|connection timed out during)",
    re.IGNORECASE | re.MULTILINE)
_ERROR = re.compile(r"error|fatal|unable|denied|refused", re.IGNORECASE)
_NO_COMMAND = re.compile(r"command not found|no such file or directory|not found$", re.IGNORECASE | re.MULTILINE)
UNKNOWN_FIELD = re.compile(
    r"""Invalid\ job\ format\ specification:\s*(?P<squeue>\S+)|Invalid\ field\ requested:\s*"(?P<sacct>[^"]+)"|
        Unknown\ field\ '(?P<mgr>[^']+)'|fatal:\s*(?P<gone>\w+)\ has\ been\ removed""", re.VERBOSE)


def daemon_of(kind: str) -> str:
    """Which daemon answers this kind of command."""
    return DATABASE if kind in DATABASE_KINDS else CONTROLLER


def unknown_fields(stderr: str) -> tuple[str, ...]:
    """Fields that the command said it does not know, in the order in which it complained."""
    return tuple(dict.fromkeys(next(g for g in m.groups() if g) for m in UNKNOWN_FIELD.finditer(stderr)))


def transient(error: SourceError) -> bool:
    """Is another try worth it? Only where a daemon or the network did not answer."""
    return isinstance(error, SlurmDown)


def fault(kind: str, command: tuple[str, ...], done: Finished, head: str, runner: Runner) -> SourceError | None:
    """The error that this ending means, or None if the output may be used.

    ``head`` is the beginning of the output, decoded. A failing command that printed something is still a failure:
    half a queue must not pass for the queue.
    """
    name, where = command[0], runner.where
    said = done.stderr.strip()
    if done.timed_out:
        return CommandTimeout(f"{name} on {where} gave no answer within {done.seconds:.0f} s and was stopped",
                              "Raise its timeout, or ask for less at a time: a smaller window for sacct.")
    if done.missing or (done.exit_code in (126, 127) and _NO_COMMAND.search(said)):
        return CommandNotFound(f"{name} is not on {where} ({first_line(said)})",
                               "Run this on a login node, give the folder of Slurm's commands, or name a host to reach by ssh.")
    if runner.ssh is not None and done.exit_code == 255 and (_SSH.search(said) or not said):
        denied = "permission denied" in said.lower() or "host key" in said.lower()
        kind_of = NotPermitted if denied else SourceError
        return kind_of(f"ssh cannot run commands on {where}: {first_line(said) or 'no message'}",
                       f"Try: ssh -o BatchMode=yes {where} true (a key without passphrase, or an agent, is needed).")
    errors = [line.strip() for line in said.splitlines() if not UNKNOWN_FIELD.search(line) and line.strip()]
    joined = "\n".join(errors)
    told = next((line for line in errors if _ERROR.search(line)), first_line(joined))[:300]
    failed = done.exit_code != 0
    wanting = not looks_right(kind, head)
    if unknown := re.search(r"no cluster '(.*?)' known by database", joined, re.IGNORECASE):
        return SourceError(f"slurmdbd knows no cluster {unknown[1]!r}", "See: sacctmgr show cluster")
    if (failed or wanting) and _DOWN.search(joined):
        daemon = daemon_of(kind)
        if daemon == CONTROLLER and DATABASE in joined:
            daemon = DATABASE
        return SlurmDown(f"{daemon} does not answer: {told}", "What was collected before is kept; try again later.")
    if (failed or wanting) and _DENIED.search(joined):
        return NotPermitted(f"Slurm refuses this to the user who runs {name}: {told}",
                            "The rest is collected without it. `queuecast doctor` says what more rights would bring.")
    if failed:
        fields = unknown_fields(said)
        detail = f"it does not know the field {', '.join(fields)}" if fields and not errors else told or "it says nothing"
        return SourceError(f"{name} failed with exit code {done.exit_code}: {detail}", _hint(joined))
    if wanting:
        shown = first_line(head, 120)
        if shown and not _ERROR.search(joined):
            return SourceError(f"{name} on {where} prints what Slurm's does not: {shown!r}",
                               f"A wrapper script may stand in its place: give the path of Slurm's own {name}.")
        return SourceError(f"{name} printed nothing usable: {told or 'no output and no message'}", _hint(joined))
    return None


def _hint(stderr: str) -> str:
    text = stderr.lower()
    if "munge" in text or "authentication" in text or "credential" in text:
        return "Check that munged runs on that machine and has the cluster's key."
    if "dns srv" in text or "configuration source" in text or "slurm.conf" in text:
        return "That machine is not set up as a client of the cluster: run this on a login node, or set SLURM_CONF."
    if "incompatible" in text or "version" in text:
        return "Client and controller are of different Slurm releases: use the commands that belong to the cluster."
    if "accounting_storage" in text or "accounting storage" in text:
        return "The cluster keeps no job history in slurmdbd: only live commands can be used."
    if "priority" in text:
        return "The cluster does not use priority/multifactor: there are no priority factors to collect."
    return "Run the command by hand to see more."


_EMPTY = re.compile(r"No (reservations|nodes|partitions|jobs) in the system", re.IGNORECASE)
_LISTS = {"nodes": "NodeName=", "partitions": "PartitionName=", "reservations": "ReservationName=", "jobs_detail": "JobId="}
_TABLES: dict[str, tuple[str, str]] = {  # a word of the header line, and the delimiter that it must hold
    "sacct": ("JOBID", "\x1f"), "squeue": ("JOBID", "\x1f"), "squeue_start": ("JOBID", "\x1f"), "sprio": ("JOBID", "\x1f"),
    "sprio_weights": ("JOBID", " "), "sshare": ("ACCOUNT", "|"), "qos": ("NAME", "|"), "assoc": ("ACCOUNT", "|"),
    "events": ("TIMESTART", "|"), "resv_history": ("CLUSTER", "|"), "sinfo": ("NODELIST", "\x1f"),
}


def looks_right(kind: str, head: str) -> bool:
    """Does the output begin as Slurm's own command begins? Every table has a header line even if it has no rows."""
    lines = [line for line in head.splitlines() if line.strip() and not line.startswith("CLUSTER:")]
    if kind == "jobs_detail" and not lines:
        return True
    if not lines:
        return False
    if kind in _LISTS:
        return lines[0].startswith(_LISTS[kind]) or bool(_EMPTY.match(lines[0]))
    if kind == "config":
        return "Configuration data as of" in head
    if kind in _TABLES:
        word, delimiter = _TABLES[kind]
        return word in lines[0].upper() and delimiter in lines[0]
    return True
