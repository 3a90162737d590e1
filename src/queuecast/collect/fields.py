"""Which columns are asked for, by release of Slurm. Pure data and choices: nothing is run here.

Slurm's commands refuse unknown columns in their own ways (sacct and sacctmgr end with an error, squeue and sprio
leave the column empty or out), and names come and go with releases. So queuecast asks for the columns that it wants
*and* that this Slurm offers, and notes the others.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

DELIMITER = "\x1f"
"""Unit separator: nobody types it into a job name by accident, and Slurm passes it on."""

SACCT = (
    "JobIDRaw", "JobID", "User", "UID", "Account", "Partition", "QOS", "State", "ExitCode", "DerivedExitCode", "Reason",
    "Submit", "Eligible", "Start", "End", "Elapsed", "ElapsedRaw", "Suspended", "Planned", "Reserved", "Timelimit",
    "TimelimitRaw", "Priority", "ReqNodes", "NNodes", "AllocNodes", "ReqCPUS", "NCPUS", "AllocCPUS", "ReqMem", "ReqTRES",
    "AllocTRES", "ReqGRES", "AllocGRES", "NodeList", "NTasks", "TotalCPU", "MaxRSS", "AveRSS", "TRESUsageInTot",
    "TRESUsageInMax", "TRESUsageInAve", "ConsumedEnergyRaw", "Flags", "Restarts", "DBIndex", "SLUID", "QOSREQ", "Licenses",
    "Reservation",
    # text that users write, in the order of how often it is odd; then a field that is the same in every row, so that a
    # row broken by a newline in the text before it can be told from a whole one
    "StdOut", "StdErr", "Constraints", "JobName", "WorkDir", "Comment", "AdminComment", "SubmitLine", "Cluster",
)
_SACCT_ALTERNATIVES = {"Planned": "Reserved", "Reserved": "Planned"}
_SACCT_EXTRA = ("StdOut", "StdErr")  # since 24.05; not missed elsewhere: scontrol tells them of the jobs it still knows
_SACCT_REMOVED = {"ReqGRES": (20, 11), "AllocGRES": (20, 11)}  # still parsed afterwards, only to say that they are gone
_SACCT_LEAST = ("JobIDRaw", "JobID", "User", "Account", "Partition", "State", "Submit", "Eligible", "Start", "End", "Timelimit",
                "JobName")
"""Without these there is no history: they are asked for even if the list of fields could not be read."""

SQUEUE_LONG = (
    "JobArrayID", "JobID", "ArrayJobID", "ArrayTaskID", "HetJobID", "HetJobOffset", "UserName", "Account", "Partition", "QOS",
    "State", "Reason", "SubmitTime", "EligibleTime", "AccrueTime", "StartTime", "EndTime", "TimeLimit", "TimeUsed",
    "NumNodes", "NumCPUs", "MinMemory", "tres-alloc", "tres-per-job", "tres-per-node", "tres-per-socket", "tres-per-task",
    "PriorityLong", "Dependency", "NodeList", "SchedNodes", "Reservation", "RestartCnt", "Licenses", "Feature", "Name",
)
"""For ``squeue -O``. The name comes last; its own delimiter closes the row."""

SQUEUE_SHORT: tuple[tuple[str, str], ...] = (
    ("JobArrayID", "%i"), ("JobID", "%A"), ("ArrayJobID", "%F"), ("ArrayTaskID", "%K"), ("UserName", "%u"), ("Account", "%a"),
    ("Partition", "%P"), ("QOS", "%q"), ("State", "%T"), ("Reason", "%r"), ("SubmitTime", "%V"), ("StartTime", "%S"),
    ("EndTime", "%e"), ("TimeLimit", "%l"), ("TimeUsed", "%M"), ("NumNodes", "%D"), ("NumCPUs", "%C"), ("MinMemory", "%m"),
    ("tres-per-node", "%b"), ("PriorityLong", "%Q"), ("Dependency", "%E"), ("NodeList", "%N"), ("SchedNodes", "%Y"),
    ("Reservation", "%v"), ("Licenses", "%W"), ("Feature", "%f"), ("Name", "%j"),
)
"""For ``squeue -o``, where ``-O`` cannot be told a delimiter (before 20.11)."""

SQUEUE_START: tuple[tuple[str, str], ...] = tuple(
    (name, code) for name, code in SQUEUE_SHORT
    if name in ("JobArrayID", "JobID", "ArrayJobID", "ArrayTaskID", "UserName", "Partition", "State", "StartTime", "NumNodes",
                "SchedNodes", "Reason"))
"""``squeue --start`` ignores ``-O`` and prints its own table, so it is asked with ``-o`` in every release."""

SPRIO: tuple[tuple[str, str], ...] = (
    ("JobID", "%i"), ("Partition", "%r"), ("User", "%u"), ("Account", "%o"), ("Priority", "%Y"), ("Site", "%S"), ("Age", "%A"),
    ("Assoc", "%B"), ("Fairshare", "%F"), ("JobSize", "%J"), ("PartitionFactor", "%P"), ("QOSName", "%n"), ("QOS", "%Q"),
    ("Nice", "%N"), ("TRES", "%T"),
)
"""Weighted factors. ``sprio -l`` cuts the TRES column; a format without widths does not."""
_SPRIO_SINCE = {"Account": (24, 5), "QOSName": (24, 5), "Site": (19, 5), "Assoc": (19, 5)}

SSHARE = ("Account", "User", "Partition", "RawShares", "NormShares", "RawUsage", "NormUsage", "EffectvUsage", "FairShare",
          "LevelFS", "GrpTRESMins", "TRESRunMins")

ASSOC = (
    "Cluster", "Account", "User", "Partition", "ParentName", "Share", "Priority", "GrpJobs", "GrpTRES", "GrpSubmit", "GrpWall",
    "GrpTRESMins", "GrpTRESRunMins", "MaxJobs", "MaxTRES", "MaxTRESPerNode", "MaxSubmit", "MaxWall", "MaxTRESMins", "QOS",
    "DefaultQOS",
)

EVENTS = ("Cluster", "NodeName", "Start", "End", "State", "User", "Reason")
"""The administrator's reason comes last: sacctmgr knows no delimiter but ``|``, which a reason may hold."""


@dataclass(frozen=True, order=True)
class Version:
    """A release of Slurm: ``Version(22, 5, 8)`` is 22.05.8."""

    year: int
    month: int
    patch: int = 0

    def __str__(self) -> str:
        return f"{self.year}.{self.month:02d}.{self.patch}"


def parse_version(text: str) -> Version | None:
    """From what ``--version`` prints (``slurm-wlm 22.05.8``, ``slurm 23.11.10-1``); None if that is not Slurm."""
    match = re.search(r"^\s*slurm\S*\s+v?(\d{2})\.(\d{2})(?:\.(\d+))?", text, re.IGNORECASE | re.MULTILINE)
    return Version(int(match[1]), int(match[2]), int(match[3] or 0)) if match else None


@dataclass(frozen=True)
class Chosen:
    """Columns to ask for, in order, and those that were wanted and are not offered."""

    fields: tuple[str, ...]
    missing: tuple[str, ...] = ()

    def without(self, refused: Collection[str]) -> Chosen:
        """The same after the command itself refused some (names without regard to case)."""
        low = {name.casefold() for name in refused}
        gone = tuple(f for f in self.fields if f.casefold() in low)
        return Chosen(tuple(f for f in self.fields if f.casefold() not in low), tuple(dict.fromkeys((*self.missing, *gone))))


def parse_helpformat(text: str) -> tuple[str, ...]:
    """The field names that ``--helpformat`` lists, in columns separated by blanks."""
    return tuple(word for word in text.split() if re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", word))


def choose(wanted: tuple[str, ...], offered: Collection[str], least: Collection[str] = ()) -> Chosen:
    """The wanted columns that are offered. An empty offer means that it is not known: ``least`` or all are asked for."""
    if not offered:
        fields = tuple(f for f in wanted if f in least) if least else wanted
        return Chosen(fields, tuple(f for f in wanted if f not in fields))
    low = {name.casefold() for name in offered}
    return Chosen(tuple(f for f in wanted if f.casefold() in low), tuple(f for f in wanted if f.casefold() not in low))


def choose_sacct(offered: Collection[str], version: Version | None) -> Chosen:
    """For ``sacct``: of Reserved and Planned (the same thing before and since 23.02) only one is ever missing."""
    removed = {f for f, since in _SACCT_REMOVED.items() if version is None or (version.year, version.month) >= since}
    low = {name.casefold() for name in offered}
    removed |= {f for f in _SACCT_EXTRA if f.casefold() not in low}
    chosen = choose(tuple(f for f in SACCT if f not in removed), offered, _SACCT_LEAST)
    missing = tuple(f for f in chosen.missing if _SACCT_ALTERNATIVES.get(f) not in chosen.fields)
    return Chosen(chosen.fields, missing)


def choose_sprio(version: Version | None) -> Chosen:
    """For ``sprio``, which does not tell what it knows: by release."""
    names = tuple(n for n, _ in SPRIO)
    if version is None:
        return Chosen(tuple(n for n in names if n not in _SPRIO_SINCE), tuple(_SPRIO_SINCE))
    late = tuple(n for n in names if (version.year, version.month) < _SPRIO_SINCE.get(n, (0, 0)))
    return Chosen(tuple(n for n in names if n not in late), late)


def long_squeue(version: Version | None) -> bool:
    """Does ``squeue -O`` take a delimiter after each field? Before 20.11 it took a width only, or repeated the last delimiter."""
    return version is not None and (version.year, version.month) >= (20, 11)


def choose_squeue(version: Version | None) -> Chosen:
    """For ``squeue``. ``--helpFormat`` (24.05) leaves out fields that work, such as tres-per-node, so it is not asked."""
    if long_squeue(version):
        return Chosen(SQUEUE_LONG)
    short = tuple(name for name, _ in SQUEUE_SHORT)
    return Chosen(short, tuple(f for f in SQUEUE_LONG if f not in short))


def refused_names(table: tuple[tuple[str, str], ...], refused: Collection[str]) -> tuple[str, ...]:
    """Names of our columns for the letters that a command complained about (``Invalid job format specification: o``)."""
    codes = {code: name for name, code in table}
    return tuple(codes.get(f"%{letter.lstrip('%')[:1]}", letter) for letter in refused)
