"""Do intervals hold everywhere? Coverage in slices of the answers: partition, GPUs, size, user's history, hour, month."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from queuecast.features.cases import Cases
from queuecast.features.history import Flags, Floats, History, Ints
from queuecast.models.bootstrap import DRAWS, Figure, days_of, interval
from queuecast.models.measures_distribution import quantiles
from queuecast.models.measures_intervals import SHARES, held
from queuecast.models.waits import Waits

FEWEST = 100
"""A slice with fewer answers whose jobs started is left out."""

Texts = npt.NDArray[np.str_]

HISTORIES = (("0", 1), ("1-9", 10), ("10-99", 100), ("100+", np.inf))
GPUS = {11: "1", 12: "2", 13: "3-4", 14: "5-8", 15: "9-16", 16: "17-32", 17: "33+"}
CPUS = {0: "1", 1: "2-4", 2: "5-16", 3: "17-64", 4: "65-256", 5: "257+"}
"""Size classes of ``features.history.size_class``."""


def groups_of(
    cases: Cases, partitions: list[str] | None = None, earlier: Floats | None = None, gpus: Floats | None = None
) -> dict[str, Texts]:
    """The slice of each case (n,) by partition, gpus, size, user_jobs, hour and month (UTC, of the moment asked); "" is
    in none. ``partitions`` names their codes, ``earlier`` counts jobs of the user (``earlier_jobs``; by default the
    user's cases with an earlier eligible time, nan in none), ``gpus`` asked for (by default known up to its class)."""
    names = partitions if partitions is not None else [f"p{i}" for i in range(int(cases.groups["partition"].max(initial=-1)) + 1)]
    size = cases.groups["size"]
    if gpus is None:
        count = np.array([GPUS.get(int(s), "0") for s in size], np.str_)
    else:
        count = np.array([f"{g:.0f}" for g in np.nan_to_num(gpus)], np.str_)
    moment = cases.asked.astype("datetime64[s]")
    return {
        "partition": np.array([*names, ""], np.str_)[cases.groups["partition"]],
        "gpus": count,
        "size": np.array([f"GPUs {GPUS[s]}" if s in GPUS else f"CPUs {CPUS.get(s, s)}" for s in size.tolist()], np.str_),
        "user_jobs": _history_bins(_earlier_cases(cases) if earlier is None else earlier),
        "hour": np.array([f"{h:02d}" for h in (cases.asked // 3600 % 24).astype(np.int64)], np.str_),
        "month": moment.astype("datetime64[M]").astype(np.str_),
    }


def earlier_jobs(history: History, rows: Ints, asked: Floats) -> Floats:
    """Other jobs of the same user submitted before ``asked`` (n,; epoch seconds) in the history, for jobs at ``rows``
    (n,): a job that is requeued counts once, an array that waits once. Nan where the user is not known."""
    known = np.where(np.isfinite(history.submit), history.submit, history.eligible)
    user = history.codes["user"]
    order = np.lexsort((known, history.job_id, user))
    new = np.r_[True, (np.diff(user[order]) != 0) | (np.diff(history.job_id[order]) != 0)][: len(order)]
    # A requeued attempt is the same job: it was first known when its first attempt was.
    begin = np.empty(len(known))
    begin[order] = known[order][new][np.cumsum(new) - 1]
    first = order[new]
    return _count(user[first], known[first], user[rows], asked, begin[rows], history.code("user", None))


def _earlier_cases(cases: Cases) -> Floats:
    """From the cases alone, where there is no history: each job is one of them at its first question."""
    known = np.where(np.isfinite(cases.eligible), cases.eligible, cases.asked)
    first = known == cases.asked
    if not first.any():
        known, first = cases.asked, np.ones(len(cases), bool)
    user = cases.groups["user"]
    return _count(user[first], known[first], user, cases.asked, known, -1)


def _count(user: Ints, known: Floats, of: Ints, asked: Floats, own: Floats, nobody: int) -> Floats:
    """Jobs (``user``, ``known``) with the user ``of`` and known before ``asked``, without the own one."""
    times = np.unique(known)
    span = len(times) + 1
    keys = np.sort(user * span + np.searchsorted(times, known))
    before = np.searchsorted(keys, of * span + np.searchsorted(times, asked)) - np.searchsorted(keys, of * span)
    return np.where(of == nobody, np.nan, (before - (own < asked)).astype(np.float64))


def _history_bins(earlier: Floats) -> Texts:
    edges = np.array([edge for _name, edge in HISTORIES])
    names = np.array([*(name for name, _edge in HISTORIES), ""], np.str_)
    return names[np.where(np.isnan(earlier), len(HISTORIES), np.searchsorted(edges, np.nan_to_num(earlier), side="right"))]


def coverage_slices(
    waits: Waits, wait: Floats, started: Flags, asked: Floats, groups: Mapping[str, Texts], *, draws: int = DRAWS, fewest: int = FEWEST
) -> Iterator[tuple[str, str, Figure]]:
    """(slice, measure, figure) of each slice with at least ``fewest`` answers whose jobs started: ``partition=gpu``,
    ``cases`` (such answers), ``coverage_50`` .. ``coverage_95``. Arguments as for ``measure_all``."""
    counted = np.flatnonzero(started & ~np.isnan(wait))
    told = quantiles(Waits(waits.cdf[counted], waits.knots_s))
    inside = {share: held(told, share, wait[counted], started[counted]) for share in SHARES}
    days = days_of(asked[counted])
    for group, values in groups.items():
        here = values[counted]
        for name in np.unique(here):
            rows = np.flatnonzero(here == name)
            if len(rows) < max(fewest, 1) or name == "":
                continue
            yield f"{group}={name}", "cases", Figure(float(len(rows)), float("nan"), float("nan"))
            for share, flags in inside.items():
                low, high = interval(flags[rows], days[rows], draws)
                yield f"{group}={name}", f"coverage_{round(100 * share)}", Figure(float(flags[rows].mean()), low, high)
