"""Records of pending jobs in snapshots of squeue: one per snapshot and raw job id, whether squeue was asked for arrays as
one line or task by task."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from queuecast.features.history import Flags, Floats, Ints
from queuecast.features.snapshots_attempts import Attempts
from queuecast.features.snapshots_readings import Readings, Words, distinct_words, pick, seconds, whole
from queuecast.reasons import explain_reason
from queuecast.slurmtext.reasoncodes import parse_limit_code
from queuecast.slurmtext.reasons import parse_reason
from queuecast.store.files import floats

COLUMNS = (
    "observed_at job_id array_job_id array_task array_tasks user account partition state reason reason_text submit eligible "
    "start_estimate limit_s nodes cpus gpus gpu_type priority"
).split()

REASON_CLASSES = (
    "not seen",
    "not looked at yet",
    "priority",
    "resources",
    "QOS limit",
    "association limit",
    "array throttle",
    "dependency",
    "held",
    "reservation",
    "node not available",
    "begin time",
    "needs a change",
    "other",
)
"""What the numbers of the feature ``queue_reason`` stand for."""

NOT_SEEN = 0
OPEN = ("not looked at yet", "priority", "resources", "reservation", "node not available", "other")
"""Jobs with these compete for nodes; those with a limit, a dependency, a hold or a wrong request do not, for now."""


def reason_class(code: str | None, text: str | None = None) -> int:
    """Class of a pending job's reason, a number into ``REASON_CLASSES``; ``text`` is the reason as printed."""
    return REASON_CLASSES.index(_class_name(code, text))


def _class_name(code: str | None, text: str | None) -> str:
    if not code or code == "None":
        return "not looked at yet"
    told = parse_reason(text) if text else None
    if told is not None and told.kind == "nodes_down":
        return "node not available"
    info, limit = explain_reason(code), parse_limit_code(code)
    if info.wait_class == "hold":
        return "held"
    if info.permanence == "yes":
        return "needs a change"
    if code in ("JobArrayTaskLimit", "Reservation", "Resources"):
        return {"JobArrayTaskLimit": "array throttle", "Reservation": "reservation", "Resources": "resources"}[code]
    if code == "ReqNodeNotAvail" or code.startswith(("Partition", "NodeDown")):
        return "node not available"
    if info.wait_class == "limit":
        return "QOS limit" if (limit is not None and limit.scope == "qos") or code.startswith("QOS") else "association limit"
    return {"priority": "priority", "dependency": "dependency", "time": "begin time"}.get(info.wait_class, "other")


@dataclass(frozen=True)
class Pending:
    """Pending records, one per entry of ``readings``, sorted by (snapshot, job id).

    Times are epoch seconds, nan where not told. ``tasks`` is how many tasks the record stands for; ``nodes``, ``cpus`` and
    ``gpus`` are of one task, from accounting where it has the attempt (squeue derives a pending job's node count from its
    CPUs), else as squeue printed them. ``partition_text`` is a code into ``members``: the partitions named, as codes.
    """

    readings: Readings
    reading: Ints
    job_id: Ints
    array_job_id: Ints
    tasks: Floats
    reason: Ints
    priority: Floats
    submit: Floats
    eligible: Floats
    estimate: Floats
    limit_s: Floats
    nodes: Floats
    cpus: Floats
    gpus: Floats
    partition_text: Ints
    account: Ints
    user: Ints
    gpu_type: Ints
    members: tuple[Ints, ...]

    def __len__(self) -> int:
        return len(self.reading)

    @property
    def partition(self) -> Ints:
        """Code of the first partition named, -1 for none."""
        first = np.array([m[0] if len(m) else -1 for m in self.members], np.int64)
        return first[self.partition_text]

    def in_partitions(self) -> tuple[Ints, Ints]:
        """(entry, partition) pairs: a record that names several partitions stands in each of their queues."""
        sizes = np.array([len(m) for m in self.members], np.int64)[self.partition_text]
        entry = np.repeat(np.arange(len(self)), sizes)
        starts = np.cumsum(np.r_[0, [len(m) for m in self.members]])[:-1]
        within = np.arange(len(entry)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        flat = np.concatenate([*self.members, np.array([], np.int64)])
        return entry, flat[starts[self.partition_text][entry] + within]

    def is_open(self) -> Flags:
        """Records that compete for nodes."""
        return np.isin(self.reason, [REASON_CLASSES.index(name) for name in OPEN])


def pending_of(rows: pa.Table, attempts: Attempts, partitions: Words, accounts: Words, users: Words, gpu_types: Words) -> Pending:
    """Of rows of the table ``queue``. Snapshots without a pending job count as read too."""
    observed = seconds(rows["observed_at"])
    numbers, states = distinct_words(rows["state"])
    keep = np.flatnonzero(np.array([s == "PENDING" for s in states], bool)[numbers]) if len(observed) else np.array([], np.int64)
    job_id = whole(rows["job_id"])[keep]
    task = whole(rows["array_task"])[keep]
    index, order, begin = Readings.of(observed[keep], job_id, task)
    readings = _with_all_times(index, observed)
    rows_of = keep[order]
    first = rows_of[begin]

    def number(name: str) -> Floats:
        return floats(rows[name])[first]

    estimates = seconds(rows["start_estimate"])[rows_of]
    tasks = np.nan_to_num(floats(rows["array_tasks"])[rows_of], nan=1.0)
    text, members = _members(rows["partition"], partitions)
    raw, submit = job_id[order][begin], seconds(rows["submit"])[first]
    attempt = attempts.at(raw, np.where(np.isnan(submit), observed[first], submit))

    def request(name: str) -> Floats:
        told = pick(attempts.request[name], attempt)
        return np.where(np.isnan(told), number(name), told)

    return Pending(
        readings=readings,
        reading=readings.reading,
        job_id=raw,
        array_job_id=whole(rows["array_job_id"])[first],
        tasks=np.add.reduceat(tasks, begin) if len(begin) else tasks,
        reason=_reasons(rows, first),
        priority=number("priority"),
        submit=submit,
        eligible=seconds(rows["eligible"])[first],
        estimate=np.fmin.reduceat(estimates, begin) if len(begin) else estimates,
        limit_s=number("limit_s"),
        nodes=request("nodes"),
        cpus=request("cpus"),
        gpus=request("gpus"),
        partition_text=text[first],
        account=accounts.encode(rows["account"])[first],
        user=users.encode(rows["user"])[first],
        gpu_type=gpu_types.encode(rows["gpu_type"])[first],
        members=members,
    )


def _with_all_times(index: Readings, observed: Floats) -> Readings:
    """The same index, with the snapshots that hold no pending job among its readings."""
    times = np.unique(observed)
    width = max(1, len(index.ids))
    reading = np.searchsorted(times, index.times)[index.reading] if len(index.keys) else index.keys
    return Readings(times, index.ids, reading * width + index.keys % width)


def _members(column: pa.ChunkedArray, partitions: Words) -> tuple[Ints, tuple[Ints, ...]]:
    """Codes of the partition texts, and for each of them the partitions named."""
    numbers, words = distinct_words(column)
    return numbers, tuple(np.array([partitions.add(p) for p in (w or "").split(",") if p], np.int64) for w in words)


def _reasons(rows: pa.Table, first: Ints) -> Ints:
    """Class of each record's reason; each distinct pair of code and text is looked at once."""
    codes, code_words = distinct_words(rows["reason"])
    texts, text_words = distinct_words(rows["reason_text"])
    pair = codes[first] * len(text_words) + texts[first]
    pairs, which = np.unique(pair, return_inverse=True)
    classes = [reason_class(code_words[p // len(text_words)], text_words[p % len(text_words)]) for p in pairs.tolist()]
    return np.array(classes, np.int64)[which]
