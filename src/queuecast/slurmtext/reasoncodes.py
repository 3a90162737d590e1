"""The reason codes of Slurm 17.11 to 25.11, and what the name of a limit says.

Source: ``enum job_state_reason`` and its table of texts (src/common/job_state_reason.c). The enum of 25.11 has
218 members but 216 different texts: ``PartitionDown`` is both a pending and an end reason, and the burst-buffer
minutes limit of a QOS prints the association's text, ``AssocMaxBBMinutesPerJob``.

Limit names are not regular (``AssocGrpCpuLimit`` but ``AssocGrpCPUMinutesLimit``, ``QOSGrpMemLimit`` but
``QOSMaxMemoryPerUser``), so they are read by parts rather than looked up: a code of a later Slurm is understood too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

Scope = Literal["assoc", "qos"]
Bound = Literal["grp", "max", "min"]
Per = Literal["group", "account", "user", "job", "node"]
Measure = Literal["use", "minutes", "run_minutes"]

_BASE = """
    None Priority Resources Dependency DependencyNeverSatisfied BeginTime JobArrayTaskLimit
    JobHeldUser JobHeldAdmin JobHoldMaxRequeue BadConstraints Constraints ReqNodeNotAvail Licenses
    Reservation ReservationDeleted ReservationInvalid
    PartitionDown PartitionInactive PartitionTimeLimit PartitionNodeLimit PartitionConfig
    AccountNotAllowed QOSNotAllowed MaxMemPerLimit QOSUsageThreshold InvalidAccount InvalidQOS
    BurstBufferResources BurstBufferStageIn BurstBufferOperation Cleaning Prolog DeadLine FedJobLock SchedDefer
    MaxPoweredUpNodes MpiPortsBusy NvidiaImexChannels
    NodeDown SystemFailure JobLaunchFailure NonZeroExitCode RaisedSignal TimeLimit OutOfMemory InactiveLimit
    AccountingPolicy AssociationJobLimit AssociationResourceLimit AssociationTimeLimit
    QOSJobLimit QOSResourceLimit QOSTimeLimit
"""
BASE_CODES: tuple[str, ...] = tuple(_BASE.split())
"""Codes that are not limits, and the old general ones."""

_COUNTS = """
    AssocGrpJobsLimit AssocGrpSubmitJobsLimit AssocGrpWallLimit AssocMaxJobsLimit AssocMaxSubmitJobLimit
    AssocMaxWallDurationPerJobLimit QOSGrpJobsLimit QOSGrpSubmitJobsLimit QOSGrpWallLimit QOSMaxJobsPerUserLimit
    MaxJobsPerAccount QOSMaxSubmitJobPerUserLimit MaxSubmitJobsPerAccount QOSMaxWallDurationPerJobLimit
"""
COUNT_CODES: tuple[str, ...] = tuple(_COUNTS.split())
"""Limits on numbers of jobs and on wall time."""

# Codes whose spelling departs from "<prefix><resource><suffix>", by that regular name.
_SPELT = {
    "AssocGrpCpu": "AssocGrpCpuLimit",
    "AssocGrpMem": "AssocGrpMemLimit",
    "AssocGrpNode": "AssocGrpNodeLimit",
    "AssocGrpCpuMinutes": "AssocGrpCPUMinutesLimit",
    "AssocGrpCpuRunMinutes": "AssocGrpCPURunMinutesLimit",
    "AssocMaxCpuPerJob": "AssocMaxCpuPerJobLimit",
    "AssocMaxNodePerJob": "AssocMaxNodePerJobLimit",
    "AssocMaxCpuMinutesPerJob": "AssocMaxCpuMinutesPerJobLimit",
    "QOSGrpCpu": "QOSGrpCpuLimit",
    "QOSGrpMemory": "QOSGrpMemLimit",
    "QOSGrpNode": "QOSGrpNodeLimit",
    "QOSGrpCpuMinutes": "QOSGrpCPUMinutesLimit",
    "QOSGrpCpuRunMinutes": "QOSGrpCPURunMinutesLimit",
    "QOSMaxCpuPerJob": "QOSMaxCpuPerJobLimit",
    "QOSMaxNodePerJob": "QOSMaxNodePerJobLimit",
    "QOSMaxCpuMinutesPerJob": "QOSMaxCpuMinutesPerJobLimit",
    "QOSMaxBBMinutesPerJob": "AssocMaxBBMinutesPerJob",
    "QOSMaxCpuPerUser": "QOSMaxCpuPerUserLimit",
    "QOSMaxNodePerUser": "QOSMaxNodePerUserLimit",
    "QOSMinCpu": "QOSMinCpuNotSatisfied",
}
_SHAPES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("AssocGrp", ("", "Minutes", "RunMinutes")),
    ("AssocMax", ("PerJob", "PerNode", "MinutesPerJob")),
    ("QOSGrp", ("", "Minutes", "RunMinutes")),
    ("QOSMax", ("PerJob", "PerNode", "MinutesPerJob", "PerUser")),
    ("Max", ("PerAccount", "RunMinsPerUser", "RunMinsPerAccount")),
    ("QOSMin", ("",)),
)
_RESOURCES = ("Cpu", "Memory", "Node", "GRES", "License", "BB", "Energy", "Billing", "Unknown")


def _tres_codes() -> tuple[str, ...]:
    codes: list[str] = []
    for prefix, suffixes in _SHAPES:
        for suffix in suffixes:
            for resource in _RESOURCES:
                if suffix == "PerNode" and resource in ("Node", "License"):
                    continue  # a node has one of itself, and licenses belong to no node
                name = "Mem" if resource == "Memory" and prefix.startswith("Assoc") else resource
                regular = f"{prefix}{name}{suffix}"
                codes.append(_SPELT.get(regular, regular))
    return tuple(dict.fromkeys(codes))


TRES_CODES: tuple[str, ...] = _tres_codes()

# Code -> first series in which it was gone.
REMOVED_IN: dict[str, str] = {
    "BlockMaxError": "23.02",
    "BlockFreeAction": "23.02",
    "PowerNotAvail": "24.05",
    "PowerReserved": "24.05",
    "FrontEndDown": "25.05",
}
# Code -> first series that has it; every other code was there in 17.11 already.
_ADDED_IN: dict[str, str] = {
    "SchedDefer": "20.02",
    "RaisedSignal": "23.02",
    "ReservationInvalid": "23.02",
    "Constraints": "23.11",
    "MaxPoweredUpNodes": "24.05",
    "MpiPortsBusy": "24.05",
    "NvidiaImexChannels": "25.11",
}

CODES: tuple[str, ...] = (*BASE_CODES, *COUNT_CODES, *TRES_CODES, *REMOVED_IN)
_CANONICAL = {code.lower(): code for code in CODES}


def known_code(text: str) -> str | None:
    """The code as Slurm spells it, whatever the case of ``text``; None if no release up to 25.11 has it."""
    return _CANONICAL.get(text.lower())


def since(code: str) -> str | None:
    """First release series with this code, ``17.11`` meaning that or earlier; None for an unknown code."""
    if code not in _CANONICAL.values():
        return None
    return _ADDED_IN.get(code, "24.05" if "RunMinsPer" in code else "17.11")


@dataclass(frozen=True)
class LimitCode:
    """What the name of a limit says.

    ``scope``: set on an association (a user in an account) or on a QOS. ``per``: what is counted together; ``group``
    is the whole QOS, or the account with everything below it. ``resource``: cpu, mem, node, gres, license, bb, energy,
    billing, unknown (a resource that Slurm has no name for here), jobs, submit (pending ones included), wall,
    or other (a resource of a later Slurm). ``measure``: in use now, minutes used up, or minutes still to run.
    """

    scope: Scope
    bound: Bound
    per: Per
    resource: str
    measure: Measure


_LIMIT = re.compile(
    r"(?P<scope>Assoc|QOS)?(?P<bound>Grp|Max|Min)(?P<resource>[A-Z][A-Za-z]*?)"
    r"(?P<measure>Run(?:Minutes|Mins)|Minutes|Mins)?(?P<per>Per(?:Job|Node|User|Account))?(?:Limit|NotSatisfied)?"
)
_NAMES = {
    "cpu": "cpu",
    "mem": "mem",
    "memory": "mem",
    "node": "node",
    "gres": "gres",
    "license": "license",
    "bb": "bb",
    "energy": "energy",
    "billing": "billing",
    "unknown": "unknown",
    "job": "jobs",
    "jobs": "jobs",
    "submitjob": "submit",
    "submitjobs": "submit",
    "wall": "wall",
    "wallduration": "wall",
}
_PER: dict[str, Per] = {"PerJob": "job", "PerNode": "node", "PerUser": "user", "PerAccount": "account"}


@lru_cache(maxsize=1024)
def parse_limit_code(code: str) -> LimitCode | None:
    """Read a limit's name by parts; None if it is not shaped like one.

    Codes that only look like a limit (``MaxMemPerLimit``, ``MaxPoweredUpNodes``) are None.
    """
    if code in BASE_CODES:
        return None
    found = _LIMIT.fullmatch(code)
    if found is None:
        return None
    bound: Bound = "grp" if found["bound"] == "Grp" else "max" if found["bound"] == "Max" else "min"
    if found["scope"] is None and (bound != "max" or found["per"] not in ("PerUser", "PerAccount")):
        return None  # without "Assoc" or "QOS" in front only a QOS's limits per user and per account are named
    scope: Scope = "assoc" if found["scope"] == "Assoc" else "qos"
    resource = _NAMES.get(found["resource"].lower(), "other")
    measure: Measure = "use"
    if found["measure"]:
        measure = "run_minutes" if found["measure"].startswith("Run") else "minutes"
    per = _PER.get(found["per"] or "")
    if per is None:
        # Only counts of jobs are limited without saying for whom: AssocMaxJobsLimit is the user's own.
        counted = resource in ("jobs", "submit")
        if bound == "max" and not counted:
            return None
        per = "group" if bound == "grp" else "user" if bound == "max" else "job"
    return LimitCode(scope, bound, per, resource, measure)
