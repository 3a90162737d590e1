"""Offers in the replay: the same drawn futures for every one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from queuecast.answers import alternatives_blend as blending
from queuecast.answers.alternatives_offers import Offer
from queuecast.answers.lookup import KnownJob
from queuecast.answers.wait import WaitAnswer
from queuecast.features.history import Floats
from queuecast.policy.request import Request

if TYPE_CHECKING:
    from queuecast.twin.candidates import Candidate
    from queuecast.twin.state import TwinState
    from queuecast.twin.work import Work

HORIZON_S = 2 * 86400.0
"""Futures are played so far. Later starts are told as beyond it."""
SEED = 20


SCREEN, DEEP = 8, 4
"""All offers are played in so many futures first; in all futures then only so many that promise most, with the request itself."""


@dataclass(frozen=True)
class Played:
    """One offer in the replay, by future: starts as asked, the same after blending, the offer's starts, run times as asked."""

    asked: Floats
    blended: Floats
    starts: Floats
    base: Floats


def playable(state: TwinState, request: Request) -> bool:
    """Whether enough is known: a queue, nodes, the partition."""
    known = any(p.casefold() in state.frame.partitions for p in request.partitions)
    return state.queue_at is not None and bool(state.policy.nodes) and known


def work_of_request(request: Request) -> Work:
    """What the past of like jobs is looked up by."""
    from queuecast.twin.work import FOREVER, Work

    return Work(
        id=-1,
        submit=0.0,
        partitions=request.partitions,
        limit=float(request.limit_s or FOREVER),
        user=request.user,
        account=request.account,
    )


def runs_of(state: TwinState, request: Request, futures: int, run_s: float | None) -> Floats:
    """Run times as asked, one per future: what like jobs used of their limits, times this limit; not beyond it."""
    if run_s is not None:
        return np.full(futures, float(run_s))
    work = work_of_request(request)
    drawn: Floats = state.past.draw_runs([work], state.at, futures, np.random.default_rng([SEED, 4]))[0]
    out: Floats = np.minimum(drawn, work.limit)
    return out


class Runner:
    """Plays offers in the same futures: all in a few, the promising ones in all."""

    def __init__(
        self,
        state: TwinState,
        found: list[Offer],
        job: KnownJob | None,
        run_s: float | None,
        horizon_s: float,
        model: WaitAnswer,
        progress: Callable[[int, int], None] | None,
    ) -> None:
        self.state, self.found, self.job, self.run_s = state, found, job, run_s
        self.horizon_s, self.model, self.progress, self.weight = horizon_s, model, progress, 0.5
        self.waited = 0.0
        if job is not None and (job.eligible or job.submit):
            self.waited = max(0.0, state.at - (job.eligible or job.submit or model.at).timestamp())

    def play(self, futures: int) -> list[Played]:
        """One for each offer, the request as asked first."""
        few = min(SCREEN, futures)
        deep = min(len(self.found), DEEP + 1)
        both = futures > few and len(self.found) > deep
        total = few * len(self.found) + (futures * deep if both else 0) if both or futures <= few else futures * len(self.found)
        if not both:
            return self._run(list(range(len(self.found))), futures, 0, total)
        first = self._run(list(range(len(self.found))), few, 0, total)
        promising = sorted(range(1, len(self.found)), key=lambda i: self._promise(i, first[i]))[: deep - 1]
        second = self._run([0, *promising], futures, few * len(self.found), total)
        for place, result in zip((0, *promising), second, strict=True):
            first[place] = result
        return first

    def _promise(self, number: int, played: Played) -> tuple[bool, float]:
        """Those that start neither sooner nor end sooner come last."""
        offer = self.found[number]
        starts = np.minimum(played.starts, self.horizon_s)
        asked = np.minimum(played.asked, self.horizon_s)
        ends, before = np.median(starts + played.base * offer.factors[1]), np.median(asked + played.base)
        gain = float(np.median(asked - starts))
        return bool(gain <= 0 and ends >= before), float(ends - before) - gain

    def _run(self, which: list[int], futures: int, done: int, total: int) -> list[Played]:
        from queuecast.twin.forward import forward

        found = [self.found[i] for i in which]
        base = runs_of(self.state, self.found[0].request, futures, self.run_s)
        tries = [candidate_of(o, self.waited if o.in_place else 0.0) for o in found]
        runs = np.stack([np.minimum(base * o.factors[1], t.limit_s) for o, t in zip(found, tries, strict=True)])
        report = self.progress
        told = forward(
            self.state,
            tries,
            runs,
            futures=futures,
            seed=SEED,
            horizon_s=self.horizon_s,
            replaces=None if self.job is None else self.job.job_id,
            progress=None if report is None else lambda f, _all: report(done + f * len(found), total),
        )
        quantiles = blending.model_quantiles(self.model, blending.ranks(futures))
        blended = blending.blend(told.starts[0], quantiles, self.weight, self.horizon_s)
        return [Played(told.starts[0], blended, told.starts[i], base) for i in range(len(found))]


def candidate_of(offer: Offer, waited: float) -> Candidate:
    """As the replay takes it; a pending job changed in place has ``waited`` so many seconds already."""
    from queuecast.twin.candidates import Candidate
    from queuecast.twin.work import FOREVER

    r = offer.request
    return Candidate(
        partitions=r.partitions,
        gpus=r.gpus,
        gpu_type=r.gpu_type.casefold() if r.gpu_type else None,
        nodes=r.nodes,
        cpus=r.cpus,
        mem_bytes=r.mem_bytes,
        limit_s=float(r.limit_s or FOREVER),
        account=r.account,
        qos=r.qos,
        user=r.user,
        array_tasks=r.array_tasks,
        delay_s=offer.delay_s if offer.delay_s else -waited,
    )
