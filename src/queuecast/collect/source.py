"""What every source of Slurm's text hands over: captures, or failures, one per command.

A *capture* is the output of one command, untouched. Nothing here reads it: `framing` and `tables` do.
Sources are the live cluster (`live`), a folder of recorded files (`recorded`) and the archive (`archive`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import BinaryIO, Protocol

from queuecast.errors import SourceError

KINDS: tuple[str, ...] = (
    "sacct", "squeue", "squeue_start", "nodes", "sinfo", "partitions", "reservations", "sprio", "sprio_weights",
    "sshare", "qos", "assoc", "events", "resv_history", "config", "jobs_detail", "sdiag", "assoc_mgr", "sreport", "job_use", "gpu_samples",
    "other",
)
"""What a capture can be. ``other`` is kept in the archive and read by nothing."""


@dataclass(frozen=True)
class Capture:
    """The output of one command.

    kind            one of `KINDS`
    taken_at        when the command ran, aware UTC, by the clock of the machine that ran it
    cluster         Slurm's ClusterName; None if the output does not tell and nobody said
    zone            IANA name of the zone in which the output prints its local times ("UTC" for live captures)
    command         the command as run, one argument per element, without ``ssh``; empty if unknown
    slurm_version   "22.05.8"; None if unknown
    raw             opens the output as a new binary stream, from its beginning: ``with capture.raw() as stream``.
                    May be called any number of times while the source's iterator stands at this capture
                    (a live capture lies in a temporary file that goes when the iterator moves on)
    stderr          what the command said beside its output; bytes that are not UTF-8 as ``\\xNN``
    exit_code       as the command ended; an output with an exit code other than 0 may be incomplete
    sampled         the stream holds many samples, each after a line ``### <epoch> <iso time> <command>``;
                    taken_at is then the time of the first
    missing_fields  columns that queuecast wanted and this Slurm does not know, in Slurm's spelling
    source_file     where the bytes come from, for the rejects: a path relative to the archive or the recorded folder;
                    "" for a live capture that is not archived yet
    """

    kind: str
    taken_at: datetime
    cluster: str | None
    zone: str
    command: tuple[str, ...]
    slurm_version: str | None
    raw: Callable[[], BinaryIO]
    stderr: str = ""
    exit_code: int = 0
    sampled: bool = False
    missing_fields: tuple[str, ...] = ()
    source_file: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"unknown kind of capture: {self.kind!r}")
        if self.taken_at.tzinfo is None:
            raise ValueError("taken_at must be aware: local times cannot be compared")
        if self.taken_at.tzinfo is not UTC:
            object.__setattr__(self, "taken_at", self.taken_at.astimezone(UTC))


@dataclass(frozen=True)
class SourceFailure:
    """A command that gave nothing usable. The others of the same cycle go on; what the lake holds is kept.

    ``at`` is aware UTC, by the clock of this machine. ``kind`` and ``command`` are as in `Capture`.
    """

    kind: str
    cluster: str | None
    command: tuple[str, ...]
    error: SourceError
    at: datetime


class Source(Protocol):
    """Something that captures come from."""

    @property
    def name(self) -> str:
        """For messages: the cluster, the ssh host or the folder."""
        ...

    def captures(self, since: datetime | None = None, kinds: Collection[str] | None = None) -> Iterator[Capture | SourceFailure]:
        """Yield one capture or failure per command.

        ``since`` (aware) is the moment up to which the caller already knows: a live source asks sacct from then on,
        a recorded one leaves out what is older. None means: what the source thinks useful.
        ``kinds`` limits what is asked for; None means all.
        """
        ...
