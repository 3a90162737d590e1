"""Which request would fit: for each kind of jobs, what it could ask for instead, with the evidence and what that saves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from queuecast.answers.rightsizing.answer import Change, Proposal, Proposals
from queuecast.answers.rightsizing.flags import flags
from queuecast.answers.rightsizing.gpus import Site, allowed, gpu_changes, site_of
from queuecast.answers.rightsizing.kinds import Kind, kinds_of
from queuecast.answers.rightsizing.rows import RESOURCES, rows_of
from queuecast.answers.rightsizing.saved import Sums, saved_of, saves
from queuecast.answers.rightsizing.sizes import SizeSource, cpus_change, memory_change, time_change
from queuecast.answers.viewer import Viewer
from queuecast.config import Hardware, load_hardware
from queuecast.errors import UsageError
from queuecast.features.history import Ints
from queuecast.i18n import _
from queuecast.policy.request import Request
from queuecast.policy.tables import Policy, policy_at
from queuecast.usage.uses import Uses

if TYPE_CHECKING:
    from queuecast.store.lake import Lake

RISK = 0.01
"""Share of next jobs that may need more than is proposed."""
MOST_KINDS = 600
"""So many kinds are looked at, those that left most unused first."""
SMALL = 1e-6
"""Below that share of the cluster's hours a saving is none."""


@dataclass(frozen=True)
class Judged:
    """All proposals, whoever may see them, and what was counted on the way. ``sums`` has the amounts of every row."""

    sums: Sums
    items: tuple[Proposal, ...]
    kinds: int
    kinds_left: int

    @property
    def gpu_jobs(self) -> int:
        """Ended jobs with GPUs."""
        return int((self.sums.rows.settled & (self.sums.rows.num["gpus_alloc"] > 0)).sum())

    @property
    def unmeasured_gpu_jobs(self) -> int:
        """Those of them of which not every GPU was measured."""
        n = self.sums.rows.num
        seen = np.isfinite(n["gpus_used"]) & (n["gpus_seen"] >= n["gpus_alloc"])
        return int((self.sums.rows.settled & (n["gpus_alloc"] > 0) & ~seen).sum())


def proposals(
    lake: Lake,
    cluster: str,
    at: datetime,
    viewer: Viewer | None = None,
    *,
    since: datetime,
    uses: Uses | None = None,
    sizes: SizeSource | None = None,
    risk: float = RISK,
    hardware: Hardware | None = None,
    policy: Policy | None = None,
) -> Proposals:
    """For the kinds of jobs that ran between ``since`` and ``at``, as known at ``at``.

    ``uses``, ``sizes``, ``policy``: where made already. A viewer without rights gets those of own jobs. Raises ``UsageError`` for a
    risk outside 0 to 0.5.
    """
    viewer = viewer or Viewer()
    uses = uses or uses_at(lake, cluster, since, at)
    found = judged(uses, sizes or sizes_at(uses, risk), policy or policy_at(lake, cluster, at), hardware or load_hardware(), risk)
    return shown_to(viewer, found, cluster, uses.since, uses.at, risk)


def shown_to(viewer: Viewer, found: Judged, cluster: str, since: datetime, at: datetime, risk: float) -> Proposals:
    """Of what was judged, the proposals that the viewer may see, with the number of the others."""
    shown = tuple(p for p in found.items if viewer.may_see(p.kind.user))
    return Proposals(
        cluster=cluster,
        since=since,
        at=at,
        risk=risk,
        items=shown,
        kinds=found.kinds,
        kinds_left=found.kinds_left,
        gpu_jobs=found.gpu_jobs,
        unmeasured_gpu_jobs=found.unmeasured_gpu_jobs,
        generated=bool(found.sums.rows.flag["generated"].any()),
        hidden=len(found.items) - len(shown),
        notes=notes_of(found),
    )


def uses_at(lake: Lake, cluster: str, since: datetime, at: datetime) -> Uses:
    """What the lake tells of use."""
    from queuecast.usage.measure import uses_of

    return uses_of(lake, cluster, since=since, at=at)


def sizes_at(uses: Uses, risk: float) -> SizeSource:
    """The bounds of ``models.sizing``. Raises ``UsageError`` for an impossible risk."""
    check_risk(risk)
    from queuecast.models.sizing import sizes_of

    return sizes_of(uses, risk=risk)


def check_risk(risk: float) -> None:
    """Raises ``UsageError`` outside 0 to 0.5."""
    if not 0 < risk <= 0.5:
        raise UsageError(_("a risk of {risk:g} makes no sense").format(risk=risk), _("give a share above 0 and up to 0.5, such as 0.01"))


def judged(uses: Uses, sizes: SizeSource, policy: Policy, hardware: Hardware, risk: float = RISK) -> Judged:
    """Every kind that left much unused or was killed for too little. A function of the table alone."""
    check_risk(risk)
    rows = rows_of(uses)
    sums = Sums(rows, policy)
    kinds = kinds_of(rows)
    site = site_of(policy, hardware)
    looked = _worth_a_look(sums, kinds)
    items = merged([p for kind in looked if (p := _proposal(kind, kinds[kind], sums, sizes, site, risk)) is not None])
    items.sort(key=lambda p: (-p.weight, not p.more, -p.jobs, p.kind.key))
    return Judged(sums, tuple(items), len(looked), len(kinds) - len(looked))


def _worth_a_look(sums: Sums, kinds: dict[Kind, Ints]) -> list[Kind]:
    """The kinds that left most unused, with those that were killed for too little."""
    unused = {r: sums.unused(r) for r in RESOURCES}
    planned = unused["limit"] * sums.part
    short = np.array([s in ("OUT_OF_MEMORY", "TIMEOUT") for s in sums.rows.text["state"]], bool) & sums.rows.settled

    def rank(kind: Kind) -> tuple[bool, float, str]:
        index = kinds[kind]
        return (
            not short[index].any(),
            -sums.weight({r: float(u[index].sum()) for r, u in unused.items()}, float(planned[index].sum())),
            kind.key,
        )

    if len(kinds) <= MOST_KINDS:
        return list(kinds)
    ranked = sorted(kinds, key=rank)
    killed = [k for k in ranked if short[kinds[k]].any()][: MOST_KINDS // 2]
    left = set(killed)
    rest = sorted((k for k in ranked if k not in left), key=lambda k: rank(k)[1:])
    return killed + rest[: MOST_KINDS - len(killed)]


def _proposal(kind: Kind, index: Ints, sums: Sums, sizes: SizeSource, site: Site, risk: float) -> Proposal | None:
    rows, policy = sums.rows, site.policy

    @cache
    def lawful() -> bool:  # else our knowledge of the rules is wanting, and nothing is held against them
        return allowed(policy, kind.request)

    def fits(request: Request) -> bool:
        return allowed(policy, request) or not lawful()

    changes, request = gpu_changes(kind, rows, index, sizes, site, risk)
    for name, found in (
        ("cpus", cpus_change(kind, rows, index, sizes, request.nodes)),
        ("mem_bytes", None),
        ("limit_s", time_change(kind, rows, index, sizes, policy)),
    ):
        change = memory_change(kind, rows, index, sizes, request.nodes, request.cpus) if name == "mem_bytes" else found
        if change is not None and change.what == "time" and not change.more and any(c.what in ("gpu_type", "mig") for c in changes):
            continue  # a run may take longer on another GPU
        if change is not None:
            tried = _with(request, name, change)
            if fits(tried):
                changes, request = [*changes, change], tried
    by_row = saves(sums, index, changes, request)
    planned = float((by_row["limit"] * sums.part[index]).sum()) if "limit" in by_row else 0.0
    weight = sums.weight({r: float(v.sum()) for r, v in by_row.items()}, planned)
    saved = saved_of(sums, kind, index, request, changes, by_row, policy, site.hardware)
    if not changes or (weight < SMALL and not saved.smaller_gpu_hours and not any(c.more for c in changes)):
        return None
    return Proposal(
        kind=kind,
        jobs=len(index),
        changes=tuple(changes),
        request=request,
        flags=flags(kind, request),
        saved=saved,
        weight=max(weight, sums.weight({"gpu": saved.smaller_gpu_hours}) / 2),  # a smaller card is worth half of one not asked for
        generated=bool(rows.flag["generated"][index].any()),
        rows=index,
        saves=by_row,
    )


def merged(found: list[Proposal]) -> list[Proposal]:
    """Kinds that differ in their limit only, with the same proposal, as one: that of the weightiest."""
    alike: dict[tuple[object, ...], list[Proposal]] = {}
    for p in found:
        alike.setdefault((replace(p.kind, limit_s=None), p.flags, tuple(c.what for c in p.changes)), []).append(p)
    return [_one(sorted(group, key=lambda p: -p.weight)) for group in alike.values()]


def _one(group: list[Proposal]) -> Proposal:
    first = group[0]
    if len(group) == 1:
        return first
    saved = first.saved
    for p in group[1:]:
        saved = saved + p.saved
    return replace(
        first,
        jobs=sum(p.jobs for p in group),
        saved=saved,
        weight=sum(p.weight for p in group),
        generated=any(p.generated for p in group),
        rows=np.concatenate([p.rows for p in group]),
        saves={r: np.concatenate([p.saves[r] for p in group]) for r in first.saves},
    )


def _with(request: Request, name: str, change: Change) -> Request:
    return replace(request, **{name: int(change.proposed)})  # type: ignore[arg-type]  # a field of the request


def notes_of(found: Judged) -> tuple[str, ...]:
    """What was not looked at, or cannot be known."""
    out = []
    if found.unmeasured_gpu_jobs:
        out.append(
            _("{n} of {all} GPU jobs were not measured: nothing is proposed about their GPUs.").format(
                n=found.unmeasured_gpu_jobs, all=found.gpu_jobs
            )
        )
    if found.kinds_left:
        out.append(_("{n} kinds that left little unused were not looked at.").format(n=found.kinds_left))
    return tuple(out)
