"""What would start or end sooner? Allowed changes of a request, each played in the same drawn futures as the request itself.

The replay (``twin``) tells what a change gains, the wait model and the replay together how long the request as asked waits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from queuecast.answers import alternatives_blend as blending
from queuecast.answers.alternatives_answer import Alternatives, Option, Source, Spread, mark_pareto
from queuecast.answers.alternatives_offers import Offer, Told, offers
from queuecast.answers.alternatives_options import Asked, option_of
from queuecast.answers.alternatives_play import HORIZON_S, SCREEN, Played, Runner, playable, runs_of, work_of_request
from queuecast.answers.lookup import KnownJob
from queuecast.answers.resolve import resolve
from queuecast.answers.viewer import Viewer
from queuecast.answers.wait import WaitAnswer
from queuecast.config import Hardware, load_hardware
from queuecast.errors import UsageError
from queuecast.features.history import Floats
from queuecast.hardware.taskmemory import GIB
from queuecast.i18n import _
from queuecast.policy.request import Request
from queuecast.policy.usage import usage_at

if TYPE_CHECKING:
    from queuecast.answers.forecast import Forecaster
    from queuecast.twin.state import TwinState


def alternatives(
    forecaster: Forecaster,
    request: Request,
    at: datetime,
    viewer: Viewer | None = None,
    *,
    job: KnownJob | None = None,
    futures: int = 200,
    gpu_memory_gib: float | None = None,
    run_s: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    hardware: Hardware | None = None,
    horizon_s: float = HORIZON_S,
) -> Alternatives:
    """The request as asked and what else could be asked for, by the expected end.

    ``job``: the pending job that the request is of: it keeps its place unless it must be submitted anew. ``gpu_memory_gib``: needed on
    each GPU (None: not known, stated as a condition). ``run_s``: its run time if known, else drawn from like jobs. ``progress(done, all)``
    counts futures. Raises ``UsageError`` for a request the cluster does not know, a job that does not wait any more, ``NotPermitted``.
    """
    viewer = viewer or Viewer()
    hardware = hardware or load_hardware()
    model = _model(forecaster, request, at, viewer, job)
    request = replace(resolve(forecaster.lake, forecaster.cluster, request, at), assumed=())
    from queuecast.twin.state import state_at

    state = state_at(forecaster.lake, forecaster.cluster, at)
    shares = state.past.share(work_of_request(request))
    told = Told(
        state.policy,
        usage_at(forecaster.lake, forecaster.cluster, at),
        request,
        None if job is None else job.job_id,
        shares,
        hardware,
        None if gpu_memory_gib is None else gpu_memory_gib * GIB,
    )
    found, refused = offers(told)
    asked = Offer(_("as asked"), ("asked",), request, in_place=True)
    everything = [asked, *found]
    runner = Runner(state, everything, job, run_s, horizon_s, model, progress)
    skill = blending.load_skill(forecaster.lake, forecaster.cluster, at.timestamp())
    runner.weight = weight = blending.twin_weight(skill, 0 if model.basis is None else model.basis.started)
    played = runner.play(futures) if playable(state, request) else None
    quantiles = blending.model_quantiles(model, np.array([0.1, 0.5, 0.9]))
    said = None if quantiles is None else Spread(*(float(q) for q in quantiles))
    shared = Asked(told, model, job, forecaster, at, horizon_s, runs_of(state, request, 200, run_s))
    options = [option_of(shared, offer, None if played is None else played[i]) for i, offer in enumerate(everything)]
    options, same = _telling(options)
    flagged = mark_pareto(tuple(options))
    options = [replace(o, pareto=p) for o, p in zip(options, flagged, strict=True)]
    return Alternatives(
        cluster=forecaster.cluster,
        at=at,
        job_id=None if job is None else job.text,
        as_asked=options[0],
        options=tuple(sorted(options[1:], key=_rank)),
        agreement=blending.agreement(None if played is None else played[0].asked, said, weight, skill),
        source=_source(played, said, weight),
        futures=0 if played is None else futures,
        horizon_s=horizon_s,
        freshness=model.freshness,
        basis=_basis(state, played, said, weight, skill is not None, futures, run_s, shares),
        refused=tuple(refused),
        same=same,
        notes=(*model.notes, *_stranger(state, request)),
    )


def _stranger(state: TwinState, request: Request) -> tuple[str, ...]:
    """A request of nobody known gets no fairshare in the replay, and waits longer there than those of the cluster's users."""
    if not state.frame.tree.known or state.frame.tree.row(request.user, request.account) >= 0:
        return ()
    return (
        _("Nobody with a known share asks: the replay gives no fairshare, so its waits are too long. Name a user and an account (-u, -A)."),
    )


def _model(forecaster: Forecaster, request: Request, at: datetime, viewer: Viewer, job: KnownJob | None) -> WaitAnswer:
    if job is None:
        return forecaster.when(request, at, viewer)
    answer = forecaster.when_job(job.text, at, viewer)
    if answer.status in ("started", "ended"):
        raise UsageError(
            _("job {job} does not wait any more").format(job=job.text),
            _("ask about a request instead: queuecast alternatives -p PARTITION ..."),
        )
    return answer


def _telling(options: list[Option]) -> tuple[list[Option], tuple[str, ...]]:
    """Options that change something, and the labels of those that start and end as the request itself does, at no lower cost."""
    asked = options[0]
    kept, same = [asked], []
    for option in options[1:]:
        still = option.sooner is not None and option.sooner.low_s == option.sooner.high_s == 0.0
        dearer = option.price is None or asked.price is None or option.price[1] != asked.price[1] or option.price[0] >= asked.price[0]
        if still and dearer and option.run == asked.run and not option.delay_s and option.finish is not None:
            same.append(option.label)
        else:
            kept.append(option)
    return kept, tuple(same)


def _rank(option: Option) -> tuple[float, float, str]:
    return (
        math.inf if option.finish is None else option.finish.median_s,
        math.inf if option.wait is None else option.wait.median_s,
        option.label,
    )


def _source(played: list[Played] | None, said: Spread | None, weight: float) -> Source:
    if played is None:
        return "none" if said is None else "model"
    return "twin" if said is None or weight >= 1 else "both"


def _basis(
    state: TwinState,
    played: list[Played] | None,
    said: Spread | None,
    weight: float,
    measured: bool,
    futures: int,
    run_s: float | None,
    shares: Floats,
) -> tuple[str, ...]:
    out: list[str] = []
    if played is None:
        out.append(
            _(
                "The queue was not read before that moment, or its nodes are not known: no future was played, "
                "so gains are not known. Run queuecast collect."
            )
        )
    else:
        out.append(
            _(
                "{n} drawn futures (the first {few} only for those that promise little), the same for every request: "
                "a gain is the start as asked minus the other start in the same future."
            ).format(n=futures, few=min(SCREEN, futures))
        )
        if said is not None:
            how = _("by how both did so far") if measured else _("how both do here was not measured")
            out.append(
                _(
                    "The wait as asked is the replay's ({share:.0f} %) and the wait model's, {how}; the others follow by the replay's gain."
                ).format(share=100 * weight, how=how)
            )
        age = state.at - (state.queue_at or state.at)
        if age > 3600:
            out.append(_("The queue was read {hours:.0f} h before.").format(hours=age / 3600))
    if run_s is None:
        out.append(
            _("Run times: what {n} like jobs used of their limits.").format(n=len(shares))
            if len(shares)
            else _("Run times are not known: any part of the limit is taken as likely.")
        )
    return (*out, *(f"{u[:1].upper()}{u[1:]}." for u in state.unknown))
