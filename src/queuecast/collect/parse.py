"""A capture becomes rows: which reader takes what, and what is told about it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import pyarrow as pa

from queuecast.collect.ahead import ahead
from queuecast.collect.columns import Env
from queuecast.collect.dialect import Dialect
from queuecast.collect.framing import Frame, Framer, Seen
from queuecast.collect.identify import HEAD, identify
from queuecast.collect.rejects import FLUSH, MAX_RAW, Rejects
from queuecast.collect.source import Capture
from queuecast.collect.tables import cluster as cluster_tables
from queuecast.collect.tables import gpusamples, jobuse, keyvalue, nodes, policy, queue, sacct, showjob
from queuecast.errors import ParseError

UNKNOWN_CLUSTER = "unknown"
"""Stands in the rows where neither the data nor anybody tells the cluster."""

UNREAD = {
    "sdiag": "sdiag", "assoc_mgr": "scontrol show assoc_mgr", "sreport": "sreport",
    "other": "other output",
}
"""Kinds that are kept in the archive and not read into a table yet."""

_GPUS_IN_TRES = re.compile(rb"(?:^|\s)(?:Req|Alloc)?TRES=\S*gres/gpu")

_TABLE = {"sacct": "jobs", "jobs_detail": "jobs", "squeue": "queue", "squeue_start": "estimates", "nodes": "nodes", "sinfo": "nodes",
          "partitions": "partitions", "reservations": "reservations", "resv_history": "reservations", "sprio": "priorities",
          "sprio_weights": "settings", "sshare": "shares", "qos": "qos", "assoc": "associations", "events": "events", "config": "settings",
          "job_use": "job_use", "gpu_samples": "gpu_samples"}


@dataclass
class Report:
    """What one capture gave. ``kept`` says why it was not read into a table, if it was not."""

    source: str = ""
    kind: str = ""
    rows: Counter[str] = field(default_factory=Counter)
    rejected: int = 0
    nulled: int = 0
    causes: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    seen: Seen = field(default_factory=Seen)


def parse_capture(capture: Capture, report: Report | None = None, *, tracked: bool | None = None) -> Iterator[tuple[str,
    pa.Table]]:
    """Rows of a capture: (table, rows with exactly the schema's columns), streamed, rejects among them.

    ``tracked``: whether the cluster's TRES hold gres/gpu, so that a job without it has no GPU; None: by whether the
    capture mentions it anywhere. ``report`` is filled on the way. Never raises for what the text holds: text that
    cannot be read is a reject of the table ``rejects``. Raises OSError or `LakeDamaged` if the bytes cannot be had.
    """
    report = report if report is not None else Report()
    report.source, report.kind = capture.source_file, capture.kind
    if capture.exit_code:
        report.notes.append(f"the command ended with exit code {capture.exit_code}: this may not be all of it")
    if capture.stderr.strip():
        report.notes.append(f"Slurm said: {capture.stderr.strip()[:500]}")
    if capture.kind in UNREAD:
        report.kept.append(UNREAD[capture.kind] if capture.kind != "other" else _what(capture))
        return
    rejects = Rejects(_TABLE[capture.kind])
    env = Env(capture.zone, capture.cluster or UNKNOWN_CLUSTER, capture.taken_at, rejects)
    try:
        with capture.raw() as stream:
            for name, rows in _rows(capture, stream, env, report, tracked):
                if rows.num_rows:
                    report.rows[name] += rows.num_rows
                    yield name, rows
                if len(rejects) >= FLUSH:
                    yield from _flush(rejects, env, capture)
    except ParseError as error:
        if error.cause == "empty file":
            report.notes.append("empty: nothing was printed")
        else:
            with capture.raw() as stream:
                head = stream.read(MAX_RAW)
            rejects.record(1, error.cause, head)
            report.notes.append(f"nothing could be read: {error.cause}" + (f" ({error.text[:120]})" if error.text else ""))
    yield from _flush(rejects, env, capture)
    report.rejected, report.nulled, report.causes = rejects.records, rejects.values, rejects.causes
    report.notes += [text if n == 1 else f"{text} ({n} times)" for text, n in report.seen.notes.items()]
    report.kept += list(report.seen.kept)


def _flush(rejects: Rejects, env: Env, capture: Capture) -> Iterator[tuple[str, pa.Table]]:
    if len(rejects):
        yield "rejects", rejects.take(env.cluster, capture.source_file or f"{capture.taken_at:%Y%m%dT%H%M%S}Z-{capture.kind}",
                                      capture.taken_at)


def _rows(capture: Capture, stream: BinaryIO, env: Env, report: Report, tracked: bool | None) -> Iterator[tuple[str, pa.Table]]:
    kind = capture.kind
    if kind == "jobs_detail":
        found = keyvalue.job_records(stream, env.rejects, report.seen, capture.sampled)
        yield from showjob.read(found, env, _tres_of_jobs(capture) if tracked is None else tracked)
        return
    if kind in keyvalue.FIRST:
        records = keyvalue.records(stream, kind, env.rejects, report.seen, capture.sampled)
        reader = {"nodes": nodes.read_scontrol, "partitions": cluster_tables.read_partitions,
                  "reservations": cluster_tables.read_reservations}
        yield from reader[kind](records, env)
        return
    if kind == "config":
        yield from cluster_tables.read_config(keyvalue.settings(stream, report.seen, capture.sampled), env)
        return
    if kind == "gpu_samples":
        path = capture.command[-1] if capture.command else capture.source_file
        yield from gpusamples.read(stream, env, report.seen, sampled=capture.sampled, path=path)
        return
    framer = Framer(stream, env.rejects, _wanted, command=" ".join(capture.command), sampled=capture.sampled)
    report.seen = framer.seen
    frames = _of_kind(ahead(iter(framer)), kind, report)
    if kind == "sacct":
        yield from sacct.read(frames, env, _mentions(capture, b"gres/gpu") if tracked is None else tracked)
    elif kind == "squeue":
        yield from queue.read(frames, env, _mentions(capture, b"gres/gpu") if tracked is None else tracked)
    elif kind == "squeue_start":
        yield from queue.read_start(frames, env)
    elif kind == "sinfo":
        yield from nodes.read_sinfo(frames, env)
    elif kind == "job_use":
        yield from jobuse.read(frames, env)
    elif kind == "sprio_weights":
        yield from cluster_tables.read_weights(frames, env)
    elif kind == "resv_history":
        yield from cluster_tables.read_resv_history(frames, env)
    else:
        yield from policy.READERS[kind](frames, env)


def _wanted(dialect: Dialect) -> list[int]:
    """The columns that are read. Of small tables all, so that a reject shows the whole record."""
    some = {"sacct": sacct.WANTED, "squeue": queue.WANTED, "squeue_start": queue.WANTED, "sinfo": nodes.WANTED}.get(dialect.kind)
    return [j for j, key in enumerate(dialect.keys) if key and (some is None or key in some)]


def _of_kind(frames: Iterator[Frame], kind: str, report: Report) -> Iterator[Frame]:
    """Frames whose header is that of the kind; the others are kept and told."""
    squeue = ("squeue", "squeue_start")
    for frame in frames:
        dialect = frame.dialect
        why = None
        if dialect.kind != kind and not (kind in squeue and dialect.kind in squeue):
            why = f"{dialect.what} where {kind} was expected"
        elif kind == "sacct":
            why = sacct.missing(dialect)
        elif kind == "squeue_start" and "starttime" not in dialect.keys:
            why = "squeue --start without START_TIME"
        if why is None:
            report.seen.records += len(frame)
            yield frame
        else:
            report.seen.kept[why] += 1


def _what(capture: Capture) -> str:
    """What an output is that no table takes."""
    with capture.raw() as stream:
        guess = identify(stream.read(HEAD), capture.source_file.rsplit("/", 1)[-1], " ".join(capture.command))
    command = " ".join(capture.command)
    what = guess.what if guess is not None else "output that queuecast does not know"
    return f"{what}, from: {command}" if command and command != what else what


def _tres_of_jobs(capture: Capture) -> bool:
    """Do the TRES of any job hold GPUs? What was asked per node or task looks alike but does not tell."""
    with capture.raw() as stream:
        return any(_GPUS_IN_TRES.search(line) for line in stream)


def _mentions(capture: Capture, text: bytes) -> bool:
    """Does the capture hold these bytes anywhere? Stops at the first."""
    with capture.raw() as stream:
        before = b""
        while data := stream.read(1 << 20):
            if text in before + data:
                return True
            before = data[-len(text) :]
    return False
