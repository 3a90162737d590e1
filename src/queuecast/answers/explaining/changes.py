"""Which small change of the request would matter: by what keeps the job now, by the wait model, and if asked for by drawn futures.

Each allowed change is put in the job's place: what would keep it then (the same checks as for the job itself), and how long a new job
like that waits by the wait model against a new one as asked. The model has seen what such jobs waited; it does not know why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from queuecast.answers import alternatives_blend as blending
from queuecast.answers.alternatives_answer import Spread
from queuecast.answers.alternatives_flags import changed
from queuecast.answers.alternatives_offers import Offer, Told
from queuecast.answers.explaining.binding import Binding, binding
from queuecast.answers.explaining.budget import spent_of
from queuecast.answers.explaining.changes_answer import Change, ChangeKind, Changes, Effect
from queuecast.answers.explaining.queue import LEAST_LIKE, limit_shares, rows_ahead, snapshot_at, with_throttle
from queuecast.answers.explaining.tries import Try, tries
from queuecast.answers.viewer import Viewer
from queuecast.config import load_hardware
from queuecast.errors import QueuecastError
from queuecast.i18n import _
from queuecast.policy.tables import policy_at
from queuecast.policy.usage import usage_at

if TYPE_CHECKING:
    from queuecast.answers.explaining.explain import WhyAnswer
    from queuecast.answers.forecast import Forecaster
    from queuecast.answers.wait import WaitAnswer
    from queuecast.features.history import Floats
    from queuecast.policy.request import Request
    from queuecast.store.lake import Lake

FACTOR, LEAST_S, STEP = 1.5, 600.0, 0.10
"""A median that much shorter (in proportion and in seconds), or a start within 4 h that much likelier, is material."""
MOST = 8
"""Changes told; of each kind the smallest, and a larger one only if it does more."""
SOONER_S = 60.0
_NAMES = ("partition", "qos", "gpu_type")
_SEEN = {"partition": "partition", "qos": "qos", "gpu_type": "gpu_type", "limit": "limit", "fewer_gpus": "size", "nodes": "size"}
REFUTED = 0.5
"""What rests on the model alone is taken off where it starts sooner in fewer of the drawn futures."""
MOST_CUT = 0.5
"""A change whose limit would cut more of the like jobs than that is none."""
_RANK: dict[Effect, int] = {"allowed": 0, "fits": 1, "unblocks": 2, "sooner": 3}
_STUCK = ("Dependency", "DependencyNeverSatisfied", "BeginTime", "Reservation")


def changes(
    lake: Lake, answer: WhyAnswer, forecaster: Forecaster | None, viewer: Viewer | None = None, *, futures: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Changes:  # fmt: skip
    """Of a pending job. ``forecaster`` None: waits are not known. ``futures``: so many drawn futures are played for what is told (0: none,
    then it takes a second or two).

    Raises ``NotPermitted``; where there is no history or no model, the changes that free the job from what keeps it are still told.
    """
    viewer = viewer or Viewer()
    viewer.check(answer.job.user, answer.job.text)
    if not answer.pending or answer.binding is None:
        return _none(
            _("It does not wait.") if not answer.pending else _("What keeps it now is not known, so neither is what would change it.")
        )
    first = answer.binding.constraints[0] if answer.binding.constraints else None
    if first is not None and (first.standing == "held" or first.code in _STUCK):
        return _none(_("No change of what it asks for matters before that is over."))
    case = _case(lake, forecaster, answer, viewer)
    if case is None:
        return _none(_("The last snapshot does not show it as waiting."))
    tried = tries(case.told, answer.binding, case.row, rows_ahead(case.snapshot, case.told.policy, case.row), case.moment)
    never = first is not None and first.standing == "never"
    own, fresh = (_Wait(), _Wait()) if never else (_own_wait(case), _fresh_wait(case, case.told.request))
    found = [c for t in tried if (c := _judged(case, t, answer.binding, own, fresh, never)) is not None]
    kept = smallest(found)[:MOST]
    notes: tuple[str, ...] = () if fresh.wait is not None or never else (_("How long such jobs wait is not known: too little history."),)
    played = 0
    if futures and kept and not never:
        played, kept, more = _with_futures(case, kept, own.answer, futures, progress)
        notes += more
    if not played and any(c.effect == "sooner" for c in kept):
        notes += (_("What only the wait model says is not checked against the queue here: --futures 40 plays it."),)
    return Changes(tuple(kept), own.wait, own.p_4h, fresh.wait, fresh.p_4h, len(tried), played, notes)


def _none(why: str) -> Changes:
    return Changes((), None, None, None, None, 0, 0, (why,))


@dataclass(frozen=True)
class _Case:
    lake: Lake
    forecaster: Forecaster | None
    answer: WhyAnswer
    viewer: Viewer
    told: Told
    snapshot: Any
    row: dict[str, Any]
    moment: datetime
    lowest: int
    bind: Callable[[dict[str, Any], Request], Binding]


@dataclass(frozen=True)
class _Wait:
    """The model's answer in three points."""

    wait: Spread | None = None
    p_4h: float | None = None
    answer: WaitAnswer | None = None

    def known(self, kinds: tuple[ChangeKind, ...]) -> bool:
        """Whether enough jobs that had the very thing changed started, for a claim that rests on the model alone.

        A trained model tells limits, sizes and memory apart by itself; of a partition, QOS or GPU type it must have seen jobs.
        """
        if self.answer is None or self.answer.basis is None or self.answer.basis.started < LEAST_LIKE:
            return False
        trained = self.answer.freshness.model is not None
        return all(_SEEN.get(k) in self.answer.basis.same or (trained and k not in _NAMES) for k in kinds if k != "preemptible")


def _case(lake: Lake, forecaster: Forecaster | None, answer: WhyAnswer, viewer: Viewer) -> _Case | None:
    cluster, at, job = answer.cluster, answer.at, answer.job
    policy, usage, snapshot = policy_at(lake, cluster, at), usage_at(lake, cluster, at), snapshot_at(lake, cluster, at)
    row = snapshot.row(job.job_id, job.text)
    if row is None:
        return None
    row = with_throttle(lake, cluster, row, at)

    @cache
    def shares() -> list[tuple[str | None, str | None, float]]:
        return limit_shares(lake, cluster, at)

    spent = spent_of(lake, cluster, at, policy)

    def bind(changed_row: dict[str, Any], request: Request) -> Binding:
        return binding(policy, usage, snapshot, changed_row, request, lambda: [], viewer, spent)

    request = job.request.merged(constraint=row["constraints"], reservation=row["reservation"], licenses=row["licenses"])
    told = Told(policy, usage, request, job.job_id, _like(shares(), request), load_hardware(), None)
    lowest = min((r["priority"] for r in snapshot.rows if r["state"] == "PENDING" and r["priority"]), default=1)
    return _Case(lake, forecaster, answer, viewer, told, snapshot, row, snapshot.moment or at, lowest, bind)


def _like(shares: list[tuple[str | None, str | None, float]], request: Request) -> Floats:
    partition = request.partitions[0] if request.partitions else None
    for place, name in ((0, request.user), (1, partition)):
        found = [s[2] for s in shares if name is not None and s[place] == name]
        if len(found) >= LEAST_LIKE:
            return np.sort(np.array(found, np.float64))
    return np.zeros(0)


def _own_wait(case: _Case) -> _Wait:
    if case.forecaster is None:
        return _Wait()
    try:
        return _points(case.forecaster.when_job(case.answer.job.text, case.answer.at, case.viewer))
    except QueuecastError:
        return _Wait()


def _fresh_wait(case: _Case, request: Request) -> _Wait:
    if case.forecaster is None:
        return _Wait()
    try:
        return _points(case.forecaster.when(replace(request, assumed=()), case.answer.at, case.viewer))
    except QueuecastError:
        return _Wait()


def _points(answer: WaitAnswer) -> _Wait:
    points = blending.model_quantiles(answer, np.array([0.1, 0.5, 0.9]))
    wait = None if points is None else Spread(*(float(p) for p in points))
    return _Wait(wait, dict(answer.within).get(4.0), answer)


def _judged(case: _Case, one: Try, now: Binding, own: _Wait, fresh: _Wait, never: bool) -> Change | None:
    """The change with its effect; None if it does not matter."""
    request, offer = one.offer.request, one.offer
    then = case.bind(_row_of(case, offer), request)
    codes = [c.code for c in then.constraints]
    frees = tuple(c.code for c in now.constraints if c.code not in codes and c.code != "NextPass")
    binds = codes[0] if codes and codes[0] != "NextPass" else None
    cut = _cut(case.told, request)
    if any(c.standing == "never" for c in then.constraints) or (
        cut is not None and cut > MOST_CUT and not (never and one.kinds == ("limit",))
    ):
        return None
    wait = _fresh_wait(case, request)
    first = now.constraints[0].code if now.constraints else "NextPass"
    place = {"Priority", "Resources"}
    worse = binds is not None and binds not in place and binds not in [c.code for c in now.constraints]  # a limit that it runs into
    less = not worse and wait.known(one.kinds) and sooner(fresh, wait) and (offer.in_place or own.wait is None or sooner(own, wait))
    effect: Effect | None = None
    if never:
        effect = "allowed"
    elif binds is None and codes and first != "NextPass":
        effect = "fits"
    elif first not in codes and first not in (*place, "NextPass"):
        effect = "unblocks"
    elif less:
        effect = "sooner"
    if effect is None:
        return None
    conditions = offer.conditions
    if cut and "limit" not in one.kinds:
        conditions += (_("{share:.0f} % of like jobs ran longer than that limit").format(share=100 * cut),)
    if not offer.in_place:
        conditions += (_("submitted anew: it loses the time that it has waited"),)
    job = case.answer.job.text
    flags = changed(case.told.request, offer, offer.in_place, job)
    if offer.in_place and request.mem_bytes is not None and request.mem_bytes != case.told.request.mem_bytes:
        flags = (*flags, f"MinMemoryNode={request.mem_bytes >> 20}")
    return Change(
        offer.label, one.kinds, request, flags, offer.in_place, effect, frees, binds, wait.wait, wait.p_4h, conditions=conditions
    )  # fmt: skip


def _cut(told: Told, request: Request) -> float | None:
    """Share of like jobs that the limit would cut, where it is shorter than asked; None: not known."""
    if told.request.limit_s is None or request.limit_s is None or request.limit_s >= told.request.limit_s or not len(told.shares):
        return None
    return float((told.shares * told.request.limit_s > request.limit_s).mean())


def _row_of(case: _Case, offer: Offer) -> dict[str, Any]:
    """The job's record as it would be; submitted anew it stands at the end of the line."""
    r = offer.request
    row = case.row | {
        "partition": ",".join(r.partitions), "qos": r.qos, "gpus": r.gpus, "gpu_type": r.gpu_type, "nodes": r.nodes, "cpus": r.cpus,
        "limit_s": r.limit_s, "reason": None, "reason_text": None,
    }  # fmt: skip
    if not offer.in_place and row["priority"]:
        row |= {"priority": min(row["priority"], case.lowest), "submit": case.moment}
    return row


def sooner(before: _Wait, after: _Wait) -> bool:
    """Whether the wait is materially shorter."""
    if before.wait is None or after.wait is None:
        return False
    less = before.wait.median_s - after.wait.median_s
    if less >= LEAST_S and after.wait.median_s * FACTOR <= before.wait.median_s:
        return True
    return before.p_4h is not None and after.p_4h is not None and after.p_4h - before.p_4h >= STEP


def smallest(found: list[Change]) -> list[Change]:
    """Of each kind the smallest that matters, and a larger one only if it does more or halves the median once more."""
    kept: dict[tuple[str, ...], Change] = {}
    out: list[Change] = []
    for change in sorted(found, key=_size):
        before = kept.get(change.kinds)
        if before is not None and not _more(before, change):
            continue
        kept[change.kinds] = change
        out.append(change)
    return sorted(out, key=lambda c: (_RANK[c.effect], c.wait.median_s if c.wait is not None else float("inf"), not c.keeps_place))


def _size(change: Change) -> tuple[float, ...]:
    """The smaller the change, the smaller (the more it still asks for)."""
    r = change.request
    return (not change.keeps_place, -r.gpus, -(r.limit_s or 0), -(r.mem_bytes or 0), -r.nodes)


def _more(before: Change, after: Change) -> bool:
    if _RANK[after.effect] < _RANK[before.effect]:
        return True
    if before.wait is None or after.wait is None or _RANK[after.effect] > _RANK[before.effect]:
        return before.wait is None and after.wait is not None
    return after.wait.median_s * 2 <= before.wait.median_s


def _with_futures(
    case: _Case, kept: list[Change], model: WaitAnswer | None, futures: int, progress: Callable[[int, int], None] | None
) -> tuple[int, list[Change], tuple[str, ...]]:
    """Each change in the same drawn futures as the request itself."""
    from queuecast.answers.alternatives_play import HORIZON_S, Runner, playable
    from queuecast.twin.state import state_at

    state = state_at(case.lake, case.answer.cluster, case.answer.at)
    request = case.told.request
    if model is None or not playable(state, request):
        return 0, kept, (_("No future was played: the queue or the nodes were not read."),)
    everything = [Offer("", ("asked",), request, in_place=True)]
    everything += [Offer(c.label, (), c.request, in_place=c.keeps_place) for c in kept]
    runner = Runner(state, everything, case.answer.job, None, HORIZON_S, model, progress)
    played = runner.play(futures)
    out: list[Change] = []
    refuted: list[str] = []
    for change, one in zip(kept, played[1:], strict=True):
        gain = np.minimum(one.asked, HORIZON_S) - np.minimum(one.starts, HORIZON_S)
        p_sooner = float((gain > SOONER_S).mean())
        if change.effect == "sooner" and p_sooner < REFUTED:
            refuted.append(change.label)
        else:
            out.append(replace(change, sooner=blending.spread(gain), p_sooner=p_sooner))
    if not refuted:
        return futures, out, ()
    text = _("Such jobs started sooner so far, but in {n} drawn futures this one does not: {labels}.")
    return futures, out, (text.format(n=futures, labels="; ".join(refuted)),)
