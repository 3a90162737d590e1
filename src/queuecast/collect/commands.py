"""The command line of each kind of capture. Each kind is one bounded call, whatever the number of jobs.

Arrays stay one record while they wait (no ``squeue -r``): an array of 100,000 tasks must not make 100,000 rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from queuecast.collect.fields import (
    DELIMITER,
    SPRIO,
    SQUEUE_SHORT,
    SQUEUE_START,
    Chosen,
    Version,
    long_squeue,
)
from queuecast.errors import UsageError

QUEUE_KINDS = ("squeue", "squeue_start", "nodes", "sprio")
"""What changes from minute to minute. ``squeue`` and ``squeue_start`` follow each other closely."""
SHARE_KINDS = ("sshare", "reservations", "events")
"""What changes from hour to hour."""
SETUP_KINDS = ("config", "partitions", "sprio_weights", "qos", "assoc")
"""What administrators change."""
DEFAULT_KINDS = ("config", "squeue", "squeue_start", "nodes", "sprio", "sacct", "jobs_detail", "sshare", "reservations", "partitions",
                 "sprio_weights", "qos", "assoc", "events")
"""Everything that queuecast reads, in the order of asking."""
LIVE_KINDS = (*DEFAULT_KINDS, "sinfo", "resv_history", "sdiag", "assoc_mgr")
"""Everything that can be asked for."""

WINDOWED_KINDS = frozenset(("sacct", "events", "resv_history"))
"""Kinds that take a beginning."""


def slurm_time(value: datetime) -> str:
    """As Slurm's options take it. The commands run with TZ=UTC. The epoch itself would count as 'not set' (A16)."""
    utc = value.astimezone(UTC)
    if utc.year < 1971:
        raise UsageError(f"{utc:%Y-%m-%d} is before Slurm", "Give a beginning from 1971 on.")
    return f"{utc:%Y-%m-%dT%H:%M:%S}"


def command_for(kind: str, chosen: Mapping[str, Chosen], version: Version | None, *, cluster: str | None = None,
                named: bool = False, start: datetime | None = None, end: datetime | None = None) -> tuple[str, ...]:
    """The arguments for one kind.

    ``chosen`` holds the columns by kind (`fields`). ``cluster`` is the ClusterName; with ``named`` the clients are told it
    by ``-M`` (else they ask the cluster of their own configuration). ``start`` and ``end`` bound the windowed kinds;
    ``end`` None is the command's own "now", so that a clock that is off cannot make an empty window.
    Raises ``UsageError`` for a kind that no live command gives, or an empty window.
    """
    if start is not None and end is not None and start >= end:
        raise UsageError(f"the window is empty: {start:%Y-%m-%dT%H:%M:%S} to {end:%Y-%m-%dT%H:%M:%S} UTC")
    to = ("-M", cluster) if named and cluster else ()
    if kind == "sacct":
        if start is None:
            raise UsageError("sacct needs a beginning")  # its own default is midnight, or now, or all time (A16)
        return ("sacct", *to, "-a", "-D", "-P", f"--delimiter={DELIMITER}", "--noconvert", "-S", slurm_time(start),
                "-E", slurm_time(end) if end else "now", "-o", ",".join(chosen["sacct"].fields))
    if kind == "squeue":
        if long_squeue(version):
            return ("squeue", *to, "-a", "-O", ",".join(f"{name}:{DELIMITER}" for name in chosen["squeue"].fields))
        return ("squeue", *to, "-a", "-o", _letters(SQUEUE_SHORT, chosen["squeue"]))
    if kind == "squeue_start":
        return ("squeue", *to, "-a", "--start", "-o", "".join(f"{code}{DELIMITER}" for _, code in SQUEUE_START))
    if kind == "sprio":
        return ("sprio", *to, "-o", DELIMITER.join(code for name, code in SPRIO if name in chosen["sprio"].fields))
    if kind == "sprio_weights":
        return ("sprio", *to, "-w")
    if kind == "sshare":
        return ("sshare", *to, "-a", "-P", *(("-o", ",".join(chosen["sshare"].fields)) if chosen["sshare"].fields else ("-l",)))
    if kind == "sinfo":
        return ("sinfo", *to, "-a", "-N", "-o", DELIMITER.join(("%N", "%P", "%T", "%C", "%e", "%m", "%G", "%f", "%w", "%E")))
    if kind in _SCONTROL:
        return ("scontrol", *to, "-a", *_SCONTROL[kind])
    if kind == "sdiag":
        return ("sdiag", *to)
    return _sacctmgr(kind, chosen, cluster, start, end)


_SCONTROL: dict[str, tuple[str, ...]] = {
    "nodes": ("-d", "-o", "show", "node"),  # -d tells GresUsed
    "partitions": ("-o", "show", "partition"),
    "reservations": ("-o", "show", "reservation"),
    "jobs_detail": ("-d", "-o", "show", "job"),
    "config": ("show", "config"),
    "assoc_mgr": ("show", "assoc_mgr"),
}


def _letters(table: tuple[tuple[str, str], ...], chosen: Chosen) -> str:
    return "".join(f"{code}{DELIMITER}" for name, code in table if name in chosen.fields)


def _sacctmgr(kind: str, chosen: Mapping[str, Chosen], cluster: str | None, start: datetime | None,
              end: datetime | None) -> tuple[str, ...]:
    since = (f"start={slurm_time(start)}",) if start else ()
    until = (f"end={slurm_time(end)}",) if end else ()
    if kind == "qos":
        return ("sacctmgr", "-P", "show", "qos")
    if kind == "assoc":
        # slurmdbd may serve other clusters as well
        of = (f"cluster={cluster}",) if cluster else ()
        return ("sacctmgr", "-P", "show", "assoc", *of, f"format={','.join(chosen['assoc'].fields)}")
    of = (f"clusters={cluster}",) if cluster else ()
    if kind == "events":
        return ("sacctmgr", "-P", "show", "event", *of, *since, *until, f"format={','.join(chosen['events'].fields)}")
    if kind == "resv_history":
        return ("sacctmgr", "-P", "show", "reservation", *of, *since, *until)
    raise UsageError(f"no live command gives {kind!r}", f"Known: {', '.join(LIVE_KINDS)}.")
