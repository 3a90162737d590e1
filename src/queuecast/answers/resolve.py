"""A request completed with the cluster's defaults, and refused where the cluster does not know what it names."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from queuecast.errors import UsageError
from queuecast.i18n import _
from queuecast.models.likejobs import Key
from queuecast.policy.readings import latest_reading
from queuecast.policy.request import Request
from queuecast.slurmtext.durations import format_limit

if TYPE_CHECKING:
    from queuecast.store.lake import Lake


def like_key(request: Request) -> Key:
    """The request in the terms of the like-jobs model."""
    return Key(
        request.partitions,
        request.qos,
        request.account,
        request.gpu_type,
        float(request.gpus),
        float(request.cpus),
        float("nan") if request.limit_s is None else float(request.limit_s),
    )


def resolve(lake: Lake, cluster: str, request: Request, at: datetime) -> Request:
    """Fill in partition, limit, account and QOS as Slurm would; each assumption is told.

    Raises ``UsageError`` for a partition, QOS, account or GPU type that the cluster does not have (if its
    configuration is known), and for counts below one.
    """
    if request.gpus < 0 or request.nodes < 1 or request.cpus < 1:
        raise UsageError(_("a request needs at least one node and one CPU, and no negative count"), _("check -N, -n, -c and --gres"))
    partitions = {p["partition"].casefold(): p for p in latest_reading(lake, "partitions", cluster, at).to_pylist()}
    assumed = list(request.assumed)
    request = _partition(request, partitions, assumed)
    chosen = [partitions[p.casefold()] for p in request.partitions if p.casefold() in partitions]
    request = _limit(request, chosen, assumed)
    _gpu_type(lake, cluster, request, at)
    request = _account(lake, cluster, request, at, assumed)
    return replace(request, assumed=tuple(assumed))


def _partition(request: Request, known: dict[str, dict[str, Any]], assumed: list[str]) -> Request:
    for name in request.partitions:
        if known and name.casefold() not in known:
            raise UsageError(
                _("there is no partition {name}").format(name=name),
                _("there are: {names}").format(names=", ".join(p["partition"] for p in known.values())),
            )
    if not request.partitions:
        default = [p["partition"] for p in known.values() if p["is_default"]]
        if default:
            assumed.append(_("No partition was named: the default, {name}, is taken.").format(name=default[0]))
            return replace(request, partitions=(default[0],))
    return request


def _limit(request: Request, chosen: list[dict[str, Any]], assumed: list[str]) -> Request:
    if request.limit_s is not None or request.unlimited or not chosen:
        return request
    seconds = chosen[0]["default_time_s"] or chosen[0]["max_time_s"]
    if seconds is None:
        return replace(request, unlimited=True)
    assumed.append(_("No time limit was given: the partition's default, {limit}, is taken.").format(limit=format_limit(seconds)))
    return replace(request, limit_s=seconds, limit_defaulted=True)


def _gpu_type(lake: Lake, cluster: str, request: Request, at: datetime) -> None:
    if request.gpu_type is None:
        return
    types, texts = _gpu_words(lake, cluster)
    if types and request.gpu_type.casefold() not in types and request.gpu_type.casefold() not in texts:
        raise UsageError(
            _("no node has GPUs of type {name}").format(name=request.gpu_type),
            _("there are: {names}").format(names=", ".join(sorted(types))),
        )


_GPU_WORDS: dict[tuple[str, int, str], tuple[set[str], str]] = {}


def _gpu_words(lake: Lake, cluster: str) -> tuple[set[str], str]:
    """Types of the nodes' GPUs, and all gres texts: a node of mixed types is asked for by any of them."""
    key = (str(lake.path), lake.manifest.version, cluster)
    if key not in _GPU_WORDS:
        nodes = lake.read("nodes", ["gpu_type", "gres"], cluster=cluster)
        types = {t for t in pc.unique(nodes["gpu_type"]).to_pylist() if t}
        _GPU_WORDS.clear()
        _GPU_WORDS[key] = types, " ".join(t for t in pc.unique(nodes["gres"]).to_pylist() if t).casefold()
    return _GPU_WORDS[key]


def _account(lake: Lake, cluster: str, request: Request, at: datetime, assumed: list[str]) -> Request:
    associations = latest_reading(lake, "associations", cluster, at).to_pylist()
    accounts = {a["account"].casefold() for a in associations}
    if request.account and accounts and request.account.casefold() not in accounts:
        raise UsageError(
            _("there is no account {name}").format(name=request.account), _("there are: {names}").format(names=", ".join(sorted(accounts)))
        )
    qos = [q["qos"] for q in latest_reading(lake, "qos", cluster, at).to_pylist()]
    if request.qos and qos and request.qos.casefold() not in (q.casefold() for q in qos):
        raise UsageError(_("there is no QOS {name}").format(name=request.qos), _("there are: {names}").format(names=", ".join(qos)))
    mine = [
        a
        for a in associations
        if a["user"]
        and request.user
        and a["user"].casefold() == request.user.casefold()
        and (not request.account or a["account"].casefold() == request.account.casefold())
    ]
    if not request.account and len({a["account"] for a in mine}) == 1:
        request = replace(request, account=mine[0]["account"])
    if not request.qos:
        defaults = [a["default_qos"] for a in mine if a["default_qos"]]
        name = defaults[0] if defaults else "normal" if "normal" in qos else None
        if name:
            assumed.append(_("No QOS was named: {name} is taken.").format(name=name))
            request = replace(request, qos=name)
    return request
