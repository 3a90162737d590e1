"""Every error that queuecast raises on purpose. Each message says what to do next.

::

    QueuecastError
    ├── ParseError          text that is not what Slurm prints (a row is rejected, never dropped)
    ├── UsageError          the question cannot be asked so: unknown partition, impossible count
    ├── ConfigError         a setting is missing or wrong
    ├── NoDataError         nothing is there to answer from
    ├── SourceError         Slurm could not be asked
    │   ├── CommandNotFound     no such command on this machine
    │   ├── CommandTimeout      no answer in time
    │   ├── SlurmDown           slurmctld or slurmdbd does not answer
    │   └── NotPermitted        Slurm refuses this user
    └── StoreError          the lake
        ├── LakeLocked          another collector writes
        ├── LakeDamaged         a file is missing or its checksum differs
        └── LakeTooNew          written by a later queuecast
"""

from __future__ import annotations


class QueuecastError(Exception):
    """Base. ``str(error)`` is one line for a person; ``hint`` says what to do next."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message


class ParseError(QueuecastError, ValueError):
    """Text that no rule understands. ``cause`` is short and constant, so that rejects can be counted by it."""

    def __init__(self, cause: str, text: str = "") -> None:
        shown = text if len(text) <= 80 else text[:77] + "..."
        super().__init__(f"{cause}: {shown!r}" if text else cause)
        self.cause = cause
        self.text = text


class UsageError(QueuecastError):
    """The request itself is wrong."""


class ConfigError(QueuecastError):
    """A setting is missing or wrong."""


class NoDataError(QueuecastError):
    """There is no history to answer from."""


class SourceError(QueuecastError):
    """Slurm could not be asked, or answered with an error."""


class CommandNotFound(SourceError):
    """The command is not on this machine."""


class CommandTimeout(SourceError):
    """The command did not answer in time."""


class SlurmDown(SourceError):
    """slurmctld or slurmdbd does not answer."""


class NotPermitted(SourceError):
    """Slurm refuses this user."""


class StoreError(QueuecastError):
    """The lake cannot be read or written."""


class LakeLocked(StoreError):
    """Another process writes to the lake."""


class LakeDamaged(StoreError):
    """A file of the lake is missing or is not what was written."""


class LakeTooNew(StoreError):
    """The lake was written by a later queuecast."""
