"""Who may use what, and who comes first: priorities, shares, QOS, associations, events."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queuecast.collect.columns import Columns, Env
from queuecast.collect.convert import cast_whole
from queuecast.collect.framing import Frame
from queuecast.collect.tables.values import rows, without
from queuecast.errors import ParseError
from queuecast.slurmtext.durations import parse_elapsed, parse_limit
from queuecast.slurmtext.nulls import NAMES, WORDS

Result = Iterator[tuple[str, pa.Table]]


def read_priorities(frames: Iterator[Frame], env: Env) -> Result:
    """sprio, weighted. Of the two columns PARTITION the second is the factor; a QOS by name stands in QOSNAME."""
    for frame in frames:
        c = Columns(frame, env)
        column = c.raw("jobid")
        ids = cast_whole(column) if column is not None else None
        if ids is None:
            ids = c.mapped(pc.utf8_trim_whitespace(column), "JOBID", "raw id", _raw_id, (pa.int64(),))[0]
        bad = ids.is_null().to_numpy(zero_copy_only=False)
        c.reject_rows(bad, "not a job id")
        partitions = c.every("partition")
        factor = c.mapped(partitions[1], "PARTITION", "signed", _signed,
                          (pa.int64(),))[0] if len(partitions) > 1 else pa.nulls(c.n, pa.int64())
        name = pc.utf8_trim_whitespace(partitions[0]) if partitions else pa.nulls(c.n, pa.string())
        table = rows("priorities", {
            "cluster": c.cluster(), "observed_at": c.observed(), "job_id": ids, "partition": name, "user": c.text("user"),
            "qos": c.text("qosname"), "priority": _int(c, "priority"), "site": _int(c, "site"), "age": _int(c, "age"),
            "assoc": _int(c, "assoc"), "fairshare": _int(c, "fairshare"), "job_size": _int(c, "jobsize"),
            "partition_factor": factor,
            "qos_factor": _int(c, "qos"), "nice": _int(c, "nice"), "tres": c.text("tres"),
        }, c.n)
        yield "priorities", without(table, bad)


def read_shares(frames: Iterator[Frame], env: Env) -> Result:
    """sshare. Leading blanks of the account tell its depth in the tree."""
    for frame in frames:
        c = Columns(frame, env)
        account = c.raw("account")
        if account is None:
            env.rejects.record(1, "sshare without accounts", ",".join(frame.dialect.header))
            continue
        name = pc.utf8_trim_whitespace(account)
        depth = pc.subtract(pc.utf8_length(account), pc.utf8_length(pc.utf8_ltrim_whitespace(account)))
        bad = pc.equal(name, "").to_numpy(zero_copy_only=False)
        c.reject_rows(bad, "share without an account")
        table = rows("shares", {
            "cluster": c.cluster(), "observed_at": c.observed(), "account": name, "user": c.text("user"),
            "partition": c.text("partition"),
            "depth": depth, "raw_shares": c.parsed("shares", _shares, (pa.int64(),), "rawshares")[0],
            "norm_shares": c.floats("normshares"),
            "raw_usage": c.parsed("usage count", _shares, (pa.int64(),), "rawusage")[0], "norm_usage": c.floats("normusage"),
            "effective_usage": c.floats("effectvusage"), "fairshare": c.floats("fairshare"), "level_fs": c.floats("levelfs"),
            "tres_run_mins": c.text("tresrunmins"), "grp_tres_mins": c.text("grptresmins"),
        }, c.n)
        yield "shares", without(table, bad)


_QOS = {
    "grp_tres": "grptres", "grp_tres_mins": "grptresmins", "grp_tres_run_mins": "grptresrunmins", "max_tres_per_job": "maxtres",
    "max_tres_per_node": "maxtrespernode", "max_tres_mins_per_job": "maxtresmins", "max_tres_per_user": "maxtrespu",
    "max_tres_per_account": "maxtrespa", "min_tres_per_job": "mintres",
}


def read_qos(frames: Iterator[Frame], env: Env) -> Result:
    for frame in frames:
        c = Columns(frame, env)
        name = c.text("name")
        bad = name.is_null().to_numpy(zero_copy_only=False)
        c.reject_rows(bad, "QOS without a name")
        counts = {"priority": "priority", "grp_jobs": "grpjobs", "grp_submit": "grpsubmit", "max_jobs_per_user": "maxjobspu",
                  "max_submit_per_user": "maxsubmitpu", "max_jobs_per_account": "maxjobspa",
                  "max_submit_per_account": "maxsubmitpa"}
        table = rows("qos", {
            "cluster": c.cluster(), "observed_at": c.observed(), "qos": name, "preempt": c.text("preempt"),
            "preempt_mode": c.text("preemptmode"),
            "flags": c.text("flags"), "usage_factor": c.floats("usagefactor"),
            "grace_time_s": c.parsed("grace", _seconds, (pa.int64(),), "gracetime")[0], **_walls(c),
            **{k: c.whole(v) for k, v in counts.items()}, **{k: c.text(v) for k, v in _QOS.items()},
        }, c.n)
        yield "qos", without(table, bad)


def read_associations(frames: Iterator[Frame], env: Env) -> Result:
    for frame in frames:
        c = Columns(frame, env)
        account = c.need("account")
        counts = {"grp_jobs": "grpjobs", "grp_submit": "grpsubmit", "max_jobs": "maxjobs", "max_submit": "maxsubmit"}
        texts = {"grp_tres": "grptres", "grp_tres_mins": "grptresmins", "grp_tres_run_mins": "grptresrunmins",
                 "max_tres_per_job": "maxtres",
                 "max_tres_per_node": "maxtrespernode", "max_tres_mins_per_job": "maxtresmins"}
        yield "associations", rows("associations", {
            "cluster": c.cluster(), "observed_at": c.observed(), "account": pc.utf8_trim_whitespace(account),
            "user": c.text("user"),
            "partition": c.text("partition"), "parent": c.text("parentname"), "shares": c.text("share"), "qos": c.text("qos"),
            "default_qos": c.text("defqos", "defaultqos"), **_walls(c), **{k: c.whole(v) for k, v in counts.items()},
            **{k: c.text(v) for k, v in texts.items()},
        }, c.n)


def read_events(frames: Iterator[Frame], env: Env) -> Result:
    for frame in frames:
        c = Columns(frame, env)
        start = c.times("timestart", "start").values
        bad = start.is_null().to_numpy(zero_copy_only=False)
        c.reject_rows(bad, "event without a start")
        table = rows("events", {
            "cluster": c.cluster(), "node": c.text("nodename"), "start": start, "end": c.times("timeend", "end").values,
            "state": pc.utf8_upper(c.text("state")), "reason": c.text("reason", null=NAMES | WORDS), "user": c.text("user"),
            "observed_at": c.observed(),
        }, c.n)
        yield "events", without(table, bad)


def _walls(c: Columns) -> dict[str, pa.Array]:
    return {"max_wall_s": c.parsed("wall", _wall, (pa.int64(),), "maxwall")[0], "grp_wall_s": c.parsed("wall", _wall,
        (pa.int64(),), "grpwall")[0]}


def _int(c: Columns, name: str) -> pa.Array:
    return c.parsed("signed", _signed, (pa.int64(),), name)[0]


def _signed(text: str) -> int | None:
    """A whole number that may be negative (nice, site)."""
    text = text.strip()
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise ParseError("not a whole number", text) from None


def _raw_id(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise ParseError("not a job id", text)
    return int(text)


def _shares(text: str) -> int | None:
    """RawShares and RawUsage; ``parent`` takes the parent's shares."""
    text = text.strip()
    if not text or text.lower() in ("parent", "n/a", "none"):
        return None
    try:
        return int(float(text)) if float(text) < float(1 << 62) else None
    except ValueError:
        raise ParseError("not a number", text) from None


def _seconds(text: str) -> int | None:
    found = parse_elapsed(text)
    return None if found is None else int(found)


def _wall(text: str) -> int | None:
    return parse_limit(text).seconds


READERS: dict[str, Callable[[Iterator[Frame], Env], Result]] = {
    "sprio": read_priorities, "sshare": read_shares, "qos": read_qos, "assoc": read_associations, "events": read_events,
}


def everything(keys: tuple[str, ...]) -> list[int]:
    """Small tables: all columns are kept, so that a reject shows the whole record."""
    return list(np.arange(len(keys)).tolist())
