"""Answers made (again) at past moments, kept with what came of them: corrections of levels rest on them.

They outlive the model that made them: the next training adds to them instead of answering the past anew. On disk
probabilities are numbers of 16 bits, and users and accounts no more than numbers that tell bursts apart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from queuecast.features.cases import Cases
from queuecast.features.history import Flags, Floats, History, Ints
from queuecast.models.blend import mix
from queuecast.models.levelmaps import pits
from queuecast.models.waits import KNOTS_S, Waits

Cdfs = npt.NDArray[np.float32]
Arrays = dict[str, npt.NDArray[np.generic]]

STEPS = 65_534
"""A probability p is saved as the nearest of so many steps; one more stands for unknown."""

CDFS = ("model", "like", "corrected")
TIMES = ("asked", "eligible", "start", "last_pending")
NUMBERS = ("job_id", "gpus", "slurm_s", "luck", "like_share", "follow", "level")
CODES = ("pending", "partition", "size", "burst", "gpu")


@dataclass(frozen=True)
class Kept:
    """One entry per answer, sorted by ``asked``; arrays of shape (n,), or (n, K) for distributions on ``KNOTS_S``.

    Times are epoch seconds (UTC); ``start`` is infinite where no start is known, and ``last_pending`` the last moment the
    job was known to wait. ``model`` and ``like`` are what the learned model and like jobs told (nan: nothing), ``like_share``
    how they were mixed, ``corrected`` the mixture with its levels corrected and ``follow`` how far that was followed.
    ``level``: the probability that the mixture gave to a wait of at most what came; nan where no start is known. ``codes`` tell the
    kinds of ``levelmaps``; partitions are numbers of ``partitions``. ``job_id``, ``gpus`` and ``slurm_s`` (Slurm's estimate
    of the remaining wait) are nan where unknown. ``shown``: part of the track record; the others only taught corrections.
    """

    asked: Floats
    eligible: Floats
    start: Floats
    last_pending: Floats
    codes: dict[str, Ints]
    job_id: Floats
    gpus: Floats
    slurm_s: Floats
    luck: Floats
    like_share: Floats
    follow: Floats
    level: Floats
    model: Cdfs
    like: Cdfs
    corrected: Cdfs
    shown: Flags
    partitions: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.asked)

    def take(self, rows: Ints | Flags | slice) -> Kept:
        """Some of them; views where ``rows`` is a slice."""
        arrays: dict[str, Any] = {f.name: getattr(self, f.name)[rows] for f in fields(self) if f.name not in ("codes", "partitions")}
        return replace(self, **arrays, codes={n: c[rows] for n, c in self.codes.items()})

    @classmethod
    def joined(cls, first: Kept, second: Kept) -> Kept:
        """Those of ``second`` behind those of ``first``; the partitions are numbered as in ``second``."""
        first = first.numbered(second.partitions)
        names = [f.name for f in fields(cls) if f.name not in ("codes", "partitions")]
        arrays: dict[str, Any] = {n: np.concatenate([getattr(first, n), getattr(second, n)]) for n in names}
        return replace(first, **arrays, codes={n: np.concatenate([first.codes[n], second.codes[n]]) for n in CODES})

    def numbered(self, words: Sequence[str]) -> Kept:
        """The same with partitions numbered as in ``words``; those not among them come behind."""
        partitions = tuple(dict.fromkeys([*words, *self.partitions]))
        if partitions == self.partitions:
            return self
        places = {word: i for i, word in enumerate(partitions)}
        table = np.array([places[w] for w in self.partitions] + [-1], np.int64)
        return replace(self, codes={**self.codes, "partition": table[self.codes["partition"]]}, partitions=partitions)

    def outcomes(self, at: float) -> tuple[Floats, Flags]:
        """Remaining waits in seconds as known at ``at``, and which of them ended in a start by then."""
        started = self.start <= at
        until = np.where(started, self.start, np.minimum(self.last_pending, at))
        return np.maximum(0.0, until - self.asked), started

    def followed(self, at: float) -> Floats:
        """Seconds after its question for which each job had been watched at ``at``: whether it had started by then is known. Of
        one that left the queue without a start nothing is known afterwards."""
        waits, started = self.outcomes(at)
        return np.where(started, at - self.asked, waits)

    def mixture(self) -> Waits:
        """Model and like jobs as they were mixed."""
        share = np.where(np.isfinite(self.like).all(axis=1), self.like_share, 0.0)[:, None]
        model = self.model.astype(np.float64)
        return Waits((1 - share) * model + np.where(share > 0, share * np.nan_to_num(self.like), 0.0), KNOTS_S)

    def told(self) -> Waits:
        """The answers as they were given."""
        return Waits((1 - self.follow)[:, None] * self.mixture().cdf + self.follow[:, None] * self.corrected, KNOTS_S)

    def levelled(self) -> Kept:
        """With the levels of all starts that are known."""
        new = np.flatnonzero(np.isfinite(self.start) & np.isnan(self.level))
        if not len(new):
            return self
        some, level = self.take(new), self.level.copy()
        waits = np.maximum(0.0, some.start - some.asked)
        level[new] = pits(some.mixture(), waits, np.ones(len(new), bool), some.luck)
        return replace(self, level=level)

    def known(self, history: History) -> Kept:
        """With the outcomes that ``history`` tells of jobs whose start was not known. A job is found by its number and the
        moment it became eligible; one that is not found stays as it was."""
        open_ = np.flatnonzero(~np.isfinite(self.start) & np.isfinite(self.job_id))
        if not len(open_) or not len(history):
            return self
        order = np.lexsort((history.eligible, history.job_id))
        ids, eligible = history.job_id[order], history.eligible[order]
        low, high = (np.searchsorted(ids, self.job_id[open_], side=side) for side in ("left", "right"))
        start, last = self.start.copy(), self.last_pending.copy()
        for i, a, b in zip(open_, low, high, strict=True):
            same = a + np.flatnonzero(np.abs(eligible[a:b] - self.eligible[i]) < 1.0)
            if len(same):
                row = order[same[-1]]
                end = history.end[row] if np.isfinite(history.end[row]) else history.seen[row]
                start[i] = history.start[row]
                last[i] = max(history.start[row] if np.isfinite(history.start[row]) else end, history.eligible[row])
        return replace(self, start=start, last_pending=last).levelled()

    def arrays(self) -> Arrays:
        """What is saved."""
        return {
            **{n: getattr(self, n) for n in (*TIMES, *NUMBERS, "shown")},
            **{f"code_{n}": self.codes[n] for n in CODES},
            **{n: _packed(getattr(self, n)) for n in CDFS},
            "partitions": np.array(self.partitions, np.str_),
        }

    @classmethod
    def of_arrays(cls, arrays: Arrays) -> Kept:
        """From what was saved. Raises ``ValueError`` or ``KeyError`` if it is not whole."""
        asked = arrays["asked"].astype(np.float64)
        count, partitions = len(asked), tuple(str(p) for p in arrays["partitions"])
        codes = {n: arrays[f"code_{n}"].astype(np.int64) for n in CODES}
        numbers = {n: arrays[n].astype(np.float64) for n in (*TIMES, *NUMBERS)}
        cdfs = {n: _unpacked(arrays[n]) for n in CDFS}
        shown = arrays["shown"].astype(bool)
        if any(a.shape != (count,) for a in (*codes.values(), *numbers.values(), shown)):
            raise ValueError("kept answers are not whole")
        if any(a.shape != (count, len(KNOTS_S)) for a in cdfs.values()) or (np.diff(asked) < 0).any():
            raise ValueError("kept answers are not whole")
        if count and not -1 <= codes["partition"].min() <= codes["partition"].max() < len(partitions):
            raise ValueError("kept answers name unknown partitions")
        return cls(codes=codes, shown=shown, partitions=partitions, **numbers, **cdfs)  # type: ignore[arg-type]  # arrays by name


def blank(
    cases: Cases, codes: dict[str, Ints], luck: Floats, like: Cdfs | None, about: dict[str, Floats], partitions: tuple[str, ...]
) -> Kept:
    """Questions that are not answered yet."""
    count = len(cases)
    unknown = {n: about.get(n, np.full(count, np.nan)) for n in ("job_id", "gpus", "slurm_s")}
    cdfs: dict[str, Any] = {n: np.full((count, len(KNOTS_S)), np.nan, np.float32) for n in CDFS}
    if like is not None:
        cdfs["like"] = like
    return Kept(
        asked=cases.asked,
        eligible=cases.eligible,
        start=cases.start,
        last_pending=cases.last_pending,
        codes={**codes, "gpu": cases.groups["gpu"]},
        luck=luck,
        like_share=np.zeros(count),
        follow=np.zeros(count),
        level=np.full(count, np.nan),
        shown=np.ones(count, bool),
        partitions=partitions,
        **unknown,
        **cdfs,
    )


def mixed(model: Waits, like: Cdfs, shares: Floats, gpu: Ints) -> tuple[Waits, Floats]:
    """Model and like jobs, and the share of like jobs by case."""
    return mix(model, Waits(like.astype(np.float64), KNOTS_S), shares, gpu), shares[np.clip(gpu, 0, 1)]


def steady_numbers(words: Sequence[str]) -> Ints:
    """A number for each word, the same whenever and in whatever order words come."""
    digests = [hashlib.blake2b(w.encode("utf-8", "surrogatepass"), digest_size=8).digest() for w in words]
    return np.array([int.from_bytes(d, "little") >> 1 for d in digests], np.int64)


def _packed(cdf: Cdfs) -> npt.NDArray[np.uint16]:
    return np.where(np.isnan(cdf), STEPS + 1, np.rint(np.clip(np.nan_to_num(cdf), 0.0, 1.0) * STEPS)).astype(np.uint16)


def _unpacked(steps: npt.NDArray[np.generic]) -> Cdfs:
    if steps.dtype != np.uint16:
        raise ValueError("distributions are not saved so")
    return np.where(steps == STEPS + 1, np.nan, steps.astype(np.float32) / np.float32(STEPS)).astype(np.float32)
