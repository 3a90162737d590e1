"""The live cluster as a source: each kind is one bounded call, its output goes to a file, its failure stops no other."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO, cast

from queuecast.collect.capabilities import Capabilities, Memory, know, place
from queuecast.collect.commands import DEFAULT_KINDS, LIVE_KINDS, WINDOWED_KINDS, command_for
from queuecast.collect.faults import daemon_of, fault, transient, unknown_fields
from queuecast.collect.fields import SPRIO, SQUEUE_SHORT, long_squeue, refused_names
from queuecast.collect.run import Finished, Runner
from queuecast.collect.source import Capture, SourceFailure
from queuecast.errors import CommandNotFound, SlurmDown, SourceError, UsageError

TIMEOUTS: Mapping[str, float] = {"sacct": 600.0, "jobs_detail": 120.0, "assoc_mgr": 120.0}
"""Seconds that a call may take; all others 60."""

_HEAD = 8192
_MAX_REFUSALS = 4


@dataclass
class LiveSource:
    """Slurm's commands, on this machine or through ssh.

    runner           where and how commands run
    clusters         names for ``-M``; empty: the cluster that the clients ask by default
    timeouts         seconds by kind, stronger than `TIMEOUTS`
    retries          further tries where a daemon did not answer, after ``backoff_s``, then twice that, ...
    retry_within_s   no further try once so many seconds have gone by: Slurm's clients wait for long themselves
    overlap          sacct is asked from so long before ``since``: accounting lags behind the controller
    first_window     how far back sacct is asked if ``since`` is None
    max_window       the longest time that one call asks for; after a longer gap there are several calls
    memory           file that keeps the negotiated columns between runs; None: only within this object

    Not safe for use by several threads at once.
    """

    runner: Runner = field(default_factory=Runner)
    clusters: tuple[str, ...] = ()
    timeouts: Mapping[str, float] = field(default_factory=dict)
    retries: int = 2
    backoff_s: float = 2.0
    retry_within_s: float = 40.0
    overlap: timedelta = timedelta(hours=1)
    first_window: timedelta = timedelta(days=1)
    max_window: timedelta = timedelta(days=7)
    memory: Path | None = None
    sleep: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        self._memory = Memory(self.memory)
        self._known: dict[str | None, Capabilities] = {}
        for cluster in self.clusters:
            if not cluster or cluster.startswith("-") or "," in cluster or not cluster.isprintable():
                raise UsageError(f"not the name of a cluster: {cluster!r}")

    @property
    def name(self) -> str:
        """For messages: ``campus on login1``, ``this machine``."""
        return f"{', '.join(self.clusters)} on {self.runner.where}" if self.clusters else self.runner.where

    def capabilities(self, cluster: str | None = None) -> Capabilities:
        """Name, release and columns of a cluster (None: the default one). Raises `SourceError`."""
        if cluster not in self._known:
            self._known[cluster] = know(self.runner, self._memory, cluster)
        return self._known[cluster]

    def captures(self, since: datetime | None = None, kinds: Collection[str] | None = None) -> Iterator[Capture | SourceFailure]:
        """One cycle: each kind once per cluster, in a fixed order (after a long gap, sacct in several windows from the
        oldest on, up to the first that fails). See `source.Source`.

        Raises ``UsageError`` for a kind that no live command gives; everything else comes as `SourceFailure`.
        """
        wanted = DEFAULT_KINDS if kinds is None else tuple(k for k in LIVE_KINDS if k in kinds)
        if kinds is not None and len(wanted) != len(set(kinds)):
            odd = ", ".join(sorted(set(kinds) - set(wanted)))
            raise UsageError(f"no live command gives {odd}", f"Known: {', '.join(LIVE_KINDS)}.")
        return self._all(since, wanted)

    def history(self, start: datetime, end: datetime, step: timedelta = timedelta(days=1), pause_s: float = 1.0,
                kinds: Collection[str] = ("sacct", "events")) -> Iterator[Capture | SourceFailure]:
        """A longer past, in windows of ``step`` from the oldest on, with a pause between them for slurmdbd's sake.

        Windows overlap by Slurm's own rule (a job belongs to each window in which it lived); keys make that harmless.
        Ends early, after the failure, where a daemon or a command is not there: the next windows would fare no better.
        """
        windowed = tuple(k for k in LIVE_KINDS if k in kinds and k in WINDOWED_KINDS)
        if step <= timedelta(0):
            raise UsageError("a window must be longer than nothing")
        first = True
        for cluster in self.clusters or (None,):
            at = start
            while at < end:
                if not first:
                    self.sleep(pause_s)
                first = False
                for result in self._cycle(cluster, windowed, at, min(at + step, end)):
                    yield result
                    if isinstance(result, SourceFailure) and isinstance(result.error, (SlurmDown, CommandNotFound)):
                        return
                at += step

    def _all(self, since: datetime | None, kinds: tuple[str, ...]) -> Iterator[Capture | SourceFailure]:
        for cluster in self.clusters or (None,):
            self.runner.sync_clock()
            start = since - self.overlap if since is not None else self.runner.now() - self.first_window
            yield from self._cycle(cluster, kinds, start, None)

    def _cycle(self, named: str | None, kinds: tuple[str, ...], start: datetime,
               end: datetime | None) -> Iterator[Capture | SourceFailure]:
        try:
            self.capabilities(named)
        except SourceError as error:
            for kind in kinds:
                yield SourceFailure(kind, named, (), error, self.runner.now())
            return
        away: dict[str, SourceError] = {}
        with tempfile.TemporaryDirectory(prefix="queuecast-") as folder:
            for kind in kinds:
                daemon = daemon_of(kind)
                if daemon in away:  # its clients wait for half a minute each: once is enough
                    spared = SlurmDown(f"{kind} was not asked: {away[daemon].message}", away[daemon].hint)
                    yield SourceFailure(kind, self._known[named].cluster, (), spared, self.runner.now())
                    continue
                path = Path(folder) / kind
                for begin, until in self._windows(kind, start, end):
                    result = self._ask(kind, named, path, begin, until)
                    yield result
                    path.unlink(missing_ok=True)
                    if isinstance(result, SourceFailure):  # a gap would look like a time without jobs
                        if isinstance(result.error, SlurmDown):
                            away[daemon] = result.error
                        break

    def _windows(self, kind: str, start: datetime, end: datetime | None) -> Iterator[tuple[datetime, datetime | None]]:
        if kind in WINDOWED_KINDS:
            last = end or self.runner.now()
            while last - start > self.max_window:
                yield start, start + self.max_window
                start += self.max_window
        yield start, end

    def _ask(self, kind: str, named: str | None, path: Path, start: datetime, end: datetime | None) -> Capture | SourceFailure:
        timeout = self.timeouts.get(kind, TIMEOUTS.get(kind, 60.0))
        begin, tries, refusals = time.monotonic(), 0, 0
        while True:
            known = self._known[named]
            command = command_for(kind, known.chosen, known.version, cluster=known.cluster, named=named is not None,
                                  start=start if kind in WINDOWED_KINDS else None, end=end)
            try:
                done, head = self._run(command, path, timeout)
            except SourceError as error:
                return SourceFailure(kind, known.cluster, command, error, self.runner.now())
            trouble = fault(kind, command, done, head, self.runner)
            refused = self._refused(kind, known, done)
            if refused:
                self._known[named] = known.without(kind, refused)
                self._memory.put(place(self.runner), self._known[named])
            if trouble is None:
                missing = self._known[named].chosen[kind].missing if kind in known.chosen else ()
                return Capture(kind, done.started, known.cluster, "UTC", command, str(known.version), _opener(path), done.stderr,
                               done.exit_code, missing_fields=missing)
            if refused and refusals < _MAX_REFUSALS:  # ask again without those columns
                refusals += 1
                continue
            wait = self.backoff_s * 2**tries
            if tries >= self.retries or not transient(trouble) or time.monotonic() - begin + wait > self.retry_within_s:
                return SourceFailure(kind, known.cluster, command, trouble, self.runner.now())
            tries += 1
            self.sleep(wait)

    def _run(self, command: tuple[str, ...], path: Path, timeout: float) -> tuple[Finished, str]:
        with path.open("w+b") as out:
            done = self.runner.run(command, out, timeout)
            out.seek(0)
            return done, out.read(_HEAD).decode("utf-8", "replace")

    def _refused(self, kind: str, known: Capabilities, done: Finished) -> tuple[str, ...]:
        if kind not in known.chosen:
            return ()
        names = unknown_fields(done.stderr)
        if kind == "sprio":
            names = refused_names(SPRIO, names)
        elif kind == "squeue" and not long_squeue(known.version):
            names = refused_names(SQUEUE_SHORT, names)
        low = {f.casefold() for f in known.chosen[kind].fields}
        return tuple(n for n in names if n.casefold() in low)


def _opener(path: Path) -> Callable[[], BinaryIO]:
    return lambda: cast("BinaryIO", path.open("rb"))
