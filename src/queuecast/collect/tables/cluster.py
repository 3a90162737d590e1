"""What describes the cluster: partitions, reservations, settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import pyarrow as pa

from queuecast.collect.columns import Columns, Env
from queuecast.collect.framing import Frame, Section
from queuecast.collect.tables.keyvalue import Record, Values, in_batches
from queuecast.collect.tables.values import rows
from queuecast.schema import arrow_schema
from queuecast.slurmtext.durations import parse_limit
from queuecast.slurmtext.nulls import NODES, TEXT, parse_count
from queuecast.slurmtext.sizes import parse_size
from queuecast.slurmtext.times import parse_time

Result = Iterator[tuple[str, pa.Table]]

RESV_WANTED = frozenset(("cluster", "name", "tres", "timestart", "timeend", "nodename", "nodes", "nodelist", "flags", "assocs"))
_ALL = TEXT | {"ALL"}
_NONE = TEXT | {"NONE", "None", "none"}


def read_partitions(records: Iterable[Record], env: Env) -> Result:
    return in_batches("partitions", (_partition(r, env) for r in records))


def _partition(record: Record, env: Env) -> dict[str, Any]:
    v = Values(record, env)
    return {
        **v.where, "partition": record.fields["PartitionName"],
        "is_default": _yes(v.text("Default")), "state": v.text("State"), "max_time_s": v.of(_limit, "MaxTime"),
        "default_time_s": v.of(_limit, "DefaultTime"), "min_nodes": v.of(parse_count, "MinNodes"), "max_nodes": v.of(parse_count,
            "MaxNodes"),
        "max_cpus_per_node": v.of(parse_count, "MaxCPUsPerNode"), "def_mem_per_cpu_bytes": v.of(_memory, "DefMemPerCPU"),
        "def_mem_per_node_bytes": v.of(_memory, "DefMemPerNode"), "max_mem_per_cpu_bytes": v.of(_memory, "MaxMemPerCPU"),
        "max_mem_per_node_bytes": v.of(_memory, "MaxMemPerNode"), "priority_tier": v.of(parse_count, "PriorityTier"),
        "priority_job_factor": v.of(parse_count, "PriorityJobFactor"), "qos": v.text("QoS"),
        "allow_accounts": v.text("AllowAccounts", null=_ALL),
        "deny_accounts": v.text("DenyAccounts", null=_NONE), "allow_qos": v.text("AllowQos", null=_ALL),
        "deny_qos": v.text("DenyQos", null=_NONE),
        "allow_groups": v.text("AllowGroups", null=_ALL), "node_list": v.text("Nodes", null=NODES),
        "total_nodes": v.of(parse_count, "TotalNodes"),
        "total_cpus": v.of(parse_count, "TotalCPUs"), "tres": v.text("TRES"), "billing_weights": v.text("TRESBillingWeights"),
        "preempt_mode": v.text("PreemptMode"),
    }


def read_reservations(records: Iterable[Record], env: Env) -> Result:
    return in_batches("reservations", (_reservation(r, env) for r in records))


def _reservation(record: Record, env: Env) -> dict[str, Any]:
    v = Values(record, env)
    return {
        **v.where, "reservation": record.fields["ReservationName"],
        "start": v.of(lambda t: _time(t, env), "StartTime"), "end": v.of(lambda t: _time(t, env), "EndTime"),
        "state": v.text("State"), "flags": v.text("Flags"), "node_list": v.text("Nodes", null=NODES), "nodes": v.of(parse_count, "NodeCnt"),
        "partition": v.text("PartitionName"), "users": v.text("Users"), "accounts": v.text("Accounts"), "tres": v.text("TRES"),
    }


def read_resv_history(frames: Iterator[Frame], env: Env) -> Result:
    """Past reservations, from sacctmgr."""
    for frame in frames:
        c = Columns(frame, env)
        yield "reservations", rows("reservations", {
            "cluster": c.cluster(), "observed_at": c.observed(), "reservation": c.text("name"),
            "start": c.times("timestart").values,
            "end": c.times("timeend").values, "flags": c.text("flags"), "node_list": c.text("nodelist", "nodename", null=NODES),
            "tres": c.text("tres"),
        }, c.n)


def read_config(settings: Iterable[tuple[Section, str, str | None]], env: Env) -> Result:
    """``scontrol show config`` as the section ``config`` of ``settings``."""
    return in_batches("settings", ({"cluster": s.cluster or env.cluster, "observed_at": s.at or env.taken_at, "section": "config",
                                    "key": k, "value": v} for s, k, v in settings))


def read_weights(frames: Iterator[Frame], env: Env) -> Result:
    """``sprio -w`` as the section ``priority_weights``: one line under the header of the factors."""
    for frame in frames:
        c = Columns(frame, env)
        observed, cluster = c.observed().to_pylist(), c.cluster().to_pylist()
        out: list[dict[str, Any]] = []
        for row in range(c.n):
            had: set[str] = set()
            for j, column in sorted(frame.columns.items()):
                name, value = frame.dialect.header[j], column[row].as_py().strip()
                if name.upper() in ("JOBID", "USER", "PRIORITY") or not value or name in had:
                    continue
                had.add(name)
                out.append({"cluster": cluster[row], "observed_at": observed[row], "section": "priority_weights", "key": name,
                            "value": value})
        if out:
            yield "settings", pa.Table.from_pylist(out, arrow_schema("settings"))


def _yes(text: str | None) -> bool | None:
    return None if text is None else text.upper() == "YES"


def _limit(text: str) -> int | None:
    return None if text.strip().upper() == "NONE" else parse_limit(text).seconds


def _memory(text: str) -> int | None:
    """Partition memory is MiB; 0 is no limit."""
    return parse_size(text, "M") or None


def _time(text: str, env: Env) -> datetime | None:
    return parse_time(text, env.zone).value
