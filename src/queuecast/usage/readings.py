"""Readings of GPUs and whose they are: the job that the source names, else the only GPU job on that node at that moment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from queuecast.slurmtext.hostlist import expand_hostlist
from queuecast.store.files import floats
from queuecast.usage.attempts import Attempts, Everybody, Flags, Floats, Ints
from queuecast.usage.sums import NUMBERS, Sums

if TYPE_CHECKING:
    from queuecast.store.lake import Lake

COLUMNS = ("observed_at", "node", "gpu", "job_id", "util", "mem_used_bytes", "mem_total_bytes", "source", "generated")

LEAST = 3
"""Readings of a GPU without which there is no mean."""

COVERED = 0.5
"""Share of the run that they must span for one: a mean of the first hour is not the job's."""


@dataclass(frozen=True)
class Readings:
    """One entry per reading that belongs to one of the attempts. ``gpu`` is a code of node and GPU; nan is not measured."""

    owner: Ints
    time: Floats
    gpu: Ints
    util: Floats
    memory: Floats
    total: Floats
    dcgm: Flags
    generated: Flags


def readings_of(lake: Lake, attempts: Attempts) -> Readings:
    """All readings up to the attempts' moment of the GPUs that they held."""
    begin = float(attempts.start.min()) if len(attempts) else attempts.at
    since = datetime.fromtimestamp(begin, UTC)
    table = lake.read("gpu_samples", COLUMNS, cluster=attempts.cluster, since=since)
    time = floats(table["observed_at"]) / 1e6
    table = table.filter(pa.array(time <= attempts.at))
    time = time[time <= attempts.at]
    node, names = _codes(table["node"])
    gpu, _ = _codes(table["gpu"])
    job = floats(table["job_id"])
    told = ~np.isnan(job)
    owner = np.full(len(time), -1, np.int64)
    if len(time):
        owner[told] = _by_job(attempts.everybody, job[told], time[told])
        owner[~told] = _by_node(attempts.everybody, names, node[~told], time[~told])
    keep = np.flatnonzero(owner >= 0)
    source = np.array([s == "dcgm" for s in table["source"].to_pylist()], bool)
    made = np.array([bool(g) for g in table["generated"].to_pylist()], bool)
    codes = node * (int(gpu.max()) + 1 if len(gpu) else 1) + gpu
    return Readings(
        owner[keep], time[keep], codes[keep], floats(table["util"])[keep], floats(table["mem_used_bytes"])[keep],
        floats(table["mem_total_bytes"])[keep], source[keep], made[keep],
    )  # fmt: skip


def _by_job(all_of: Everybody, job: Floats, time: Floats) -> Ints:
    """The attempt of that job that ran then."""
    ids, codes = np.unique(all_of.job_id, return_inverse=True)
    place = np.minimum(np.searchsorted(ids, job), len(ids) - 1) if len(ids) else np.zeros(len(job), np.int64)
    known = ids[place] == job if len(ids) else np.zeros(len(job), bool)
    every = np.arange(len(all_of.start))
    return _rows(all_of, _only_one(codes, all_of.start, all_of.end, every, np.where(known, place, -1), time))


def _by_node(all_of: Everybody, names: list[str], node: Ints, time: Floats) -> Ints:
    """The attempt with GPUs that was alone with them on that node then."""
    place = {name.casefold(): i for i, name in enumerate(names)}
    hosts: dict[str, list[int]] = {}
    who: list[int] = []
    where: list[int] = []
    for i, (text, gpus) in enumerate(zip(all_of.nodes, all_of.gpus.tolist(), strict=True)):
        if text is None or gpus == 0:  # unknown is a GPU job: it may hold them
            continue
        if text not in hosts:
            hosts[text] = [place[h.casefold()] for h in expand_hostlist(text) or () if h.casefold() in place]
        who += [i] * len(hosts[text])
        where += hosts[text]
    jobs = np.array(who, np.int64)
    return _rows(all_of, _only_one(np.array(where, np.int64), all_of.start[jobs], all_of.end[jobs], jobs, node, time))


def _rows(all_of: Everybody, found: Ints) -> Ints:
    return np.where(found >= 0, all_of.row[np.maximum(found, 0)], -1) if len(all_of.row) else found


def _only_one(place: Ints, start: Floats, end: Floats, name: Ints, asked: Ints, time: Floats) -> Ints:
    """For each question (place, time) the name of the span that is the only one there then, -1 if there is none or more.

    Counts and sums of names run along each place: where the count is 1, the sum is the name.
    """
    n, m = len(place), len(asked)
    where = np.concatenate([place, place, asked])
    when = np.concatenate([start, np.maximum(start, end), time])
    kind = np.concatenate([np.ones(n), np.zeros(n), np.full(m, 2.0)])  # at one moment: ends, then starts, then questions
    # a span of no length begins and ends at once: left out, or its end would come first
    weight = np.where(end > start, 1, 0)
    count = np.concatenate([weight, -weight, np.zeros(m, np.int64)])
    total = np.concatenate([weight * (name + 1), -weight * (name + 1), np.zeros(m, np.int64)])
    order = np.lexsort((kind, when, where))
    counts, totals = np.cumsum(count[order]), np.cumsum(total[order])
    out = np.full(m, -1, np.int64)
    asks = order >= 2 * n
    out[order[asks] - 2 * n] = np.where(counts[asks] == 1, totals[asks] - 1, -1)
    return np.where(asked >= 0, out, -1)


def by_gpu(readings: Readings, chosen: Flags) -> dict[str, Floats]:
    """One entry per attempt and GPU: ``owner``, ``gpu``, ``n`` (readings of its use), ``mean``, ``peak``, ``memory``, ``total``,
    ``first``, ``last`` (epoch seconds)."""
    owner, gpu = readings.owner[chosen], readings.gpu[chosen]
    span = int(gpu.max()) + 1 if len(gpu) else 1
    keys, group = np.unique(owner * span + gpu, return_inverse=True)
    size = len(keys)
    util, time = readings.util[chosen], readings.time[chosen]
    known = ~np.isnan(util)
    n = np.bincount(group[known], minlength=size).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(group[known], weights=util[known], minlength=size) / n
    return {
        "owner": (keys // span).astype(np.float64), "gpu": (keys % span).astype(np.float64), "n": n, "mean": mean,
        "peak": _most(group, util, size), "memory": _most(group, readings.memory[chosen], size),
        "total": _most(group, readings.total[chosen], size), "first": -_most(group, -time, size), "last": _most(group, time, size),
    }  # fmt: skip


def _most(group: Ints, values: Floats, size: int) -> Floats:
    out = np.full(size, -np.inf)
    known = ~np.isnan(values)
    np.maximum.at(out, group[known], values[known])
    return np.where(np.isfinite(out), out, np.nan)


def held(gpus: dict[str, Floats], alloc: Floats) -> dict[str, Floats]:
    """Of the GPUs measured for each attempt as many as it was given, the busiest: on a node that it had not all of, the others were
    nobody's. An attempt whose number of GPUs is unknown keeps all."""
    owner = gpus["owner"].astype(np.int64)
    order = np.lexsort((-np.nan_to_num(gpus["memory"]), -np.nan_to_num(gpus["mean"], nan=-1.0), owner))
    sorted_owner = owner[order]
    first = np.searchsorted(sorted_owner, sorted_owner, side="left")
    rank = np.arange(len(order)) - first
    most = alloc[sorted_owner] if len(order) else np.zeros(0)
    kept = order[np.isnan(most) | (rank < most)]
    return {name: values[kept] for name, values in gpus.items()}


def sums_of(readings: Readings, attempts: Attempts, *, generated: bool) -> Sums:
    """What the readings say of each attempt.

    A mean, and the number of GPUs that never computed, need three readings of each GPU that span half of the run; peaks need one.
    """
    n = len(attempts)
    chosen = readings.generated == generated
    gpus = held(by_gpu(readings, chosen), attempts.number("gpus_alloc"))
    owner = gpus["owner"].astype(np.int64)
    seen = np.bincount(owner, minlength=n).astype(np.float64)
    gap = (gpus["last"] - gpus["first"]) / np.maximum(gpus["n"] - 1, 1)
    spans = (gpus["n"] >= LEAST) & (gpus["last"] - gpus["first"] + gap >= COVERED * attempts.elapsed[owner])
    covered = (np.bincount(owner[spans], minlength=n) == seen) & (seen > 0)
    busy = np.bincount(owner[gpus["peak"] > 0], minlength=n).astype(np.float64)
    known = np.bincount(owner[~np.isnan(gpus["peak"])], minlength=n) == seen
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(owner, weights=np.nan_to_num(gpus["mean"]), minlength=n) / seen
    numbers = {name: np.full(n, np.nan) for name in NUMBERS}
    numbers["gpus_seen"] = np.where(seen > 0, seen, np.nan)
    numbers["gpus_used"] = np.where(known & (covered | (busy == seen)) & (seen > 0), busy, np.nan)
    numbers["gpu_util_mean"] = np.where(covered & known, mean, np.nan)
    for name, column in (("gpu_util_peak", "peak"), ("gpu_mem_peak_bytes", "memory"), ("gpu_mem_total_bytes", "total")):
        numbers[name] = _most(owner, gpus[column], n)
    dcgm = np.zeros(n, bool)
    dcgm[readings.owner[chosen & readings.dcgm]] = True
    return Sums(numbers, ["" if s == 0 else "dcgm" if d else "samples" for s, d in zip(seen.tolist(), dcgm.tolist(), strict=True)],
                np.full(n, generated) & (seen > 0))  # fmt: skip


def _codes(column: pa.ChunkedArray) -> tuple[Ints, list[str]]:
    if not len(column):
        return np.zeros(0, np.int64), []
    encoded = column.combine_chunks().dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), encoded.dictionary.to_pylist()
