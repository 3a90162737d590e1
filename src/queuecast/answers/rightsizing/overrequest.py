"""What was asked for and not used: hours by user, account, partition and kind, the proposals, idle GPUs, and the trend.

A function of (lake, cluster, window, viewer); nothing later than ``at`` is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from queuecast.answers.rightsizing.overrequest_answer import DIMENSIONS, Amounts, By, OverRequests, Status
from queuecast.answers.rightsizing.overrequest_book import FEW_USERS, Book
from queuecast.answers.rightsizing.rightsize import RISK, Judged, check_risk, judged, shown_to, sizes_at, uses_at
from queuecast.answers.rightsizing.sizes import SizeSource
from queuecast.answers.viewer import Viewer
from queuecast.config import Hardware, load_hardware
from queuecast.errors import NotPermitted, UsageError
from queuecast.i18n import _
from queuecast.policy.tables import Policy, policy_at
from queuecast.usage.idle import IdleGpu, idle_now
from queuecast.usage.uses import Uses

if TYPE_CHECKING:
    from queuecast.store.lake import Lake

TOP = 10
IDLE_HOURS = 2.0


def overrequest(
    lake: Lake,
    cluster: str,
    *,
    since: datetime,
    at: datetime,
    viewer: Viewer | None = None,
    by: Sequence[By] = ("user",),
    partition: str | None = None,
    account: str | None = None,
    user: str | None = None,
    risk: float = RISK,
    top: int = TOP,
    idle_hours: float | None = IDLE_HOURS,
    uses: Uses | None = None,
    sizes: SizeSource | None = None,
    policy: Policy | None = None,
    hardware: Hardware | None = None,
) -> OverRequests:
    """Attempts that ran between ``since`` and ``at``. ``by``: each dimension gives a table of ``top`` rows and the rest.

    ``idle_hours`` None: idle allocations are not looked for. ``uses``, ``sizes``, ``policy``: where made already (``uses`` unfiltered).
    Raises ``UsageError`` for an unknown dimension or an impossible risk, ``NotPermitted`` for another's jobs.
    """
    viewer = viewer or Viewer()
    check_risk(risk)
    _check(by, since, at, top)
    if user is not None:
        viewer.check(user, user)
    uses = uses or uses_at(lake, cluster, since, at)
    sizes = sizes or sizes_at(uses, risk)
    filters = {k: v for k, v in (("user", user), ("account", account), ("partition", partition)) if v is not None}
    chosen = _filtered(uses, filters)
    _check_crowd(chosen, filters, viewer)
    found = judged(chosen, sizes, policy or policy_at(lake, cluster, at), hardware or load_hardware(), risk)
    book = Book(found)
    total = book.amounts(book.whole)
    trend, step = book.trend(since, at)
    idle, idle_hidden = (None, 0) if idle_hours is None else _idle(lake, cluster, at, idle_hours, viewer, filters)
    generated = bool(found.sums.rows.flag["generated"].any())
    return OverRequests(
        cluster=cluster,
        since=since,
        at=at,
        risk=risk,
        status=_status(found, total),
        total=total,
        jobs=len(found.sums.rows),
        groups={dimension: book.groups(dimension, viewer, top) for dimension in by},
        trend=trend,
        trend_step=step,
        proposals=shown_to(viewer, found, cluster, since, at, risk),
        idle_hours=idle_hours or 0.0,
        idle=idle,
        idle_hidden=idle_hidden,
        generated=generated or any(i.generated for i in idle or ()),
        top=top,
        filters=filters,
        notes=_notes(found, total),
    )


def _check(by: Sequence[str], since: datetime, at: datetime, top: int) -> None:
    for name in by:
        if name not in DIMENSIONS:
            raise UsageError(_("--by {name} is not known").format(name=name), _("give any of: {names}").format(names=", ".join(DIMENSIONS)))
    if since >= at:
        raise UsageError(_("the time to look at is empty"), _("let --since be before --at, for example --since 30d"))
    if top < 1:
        raise UsageError(_("--top {n} shows nothing").format(n=top), _("give a number above zero"))


def _filtered(uses: Uses, filters: dict[str, str]) -> Uses:
    """Rows of one user, account or partition; case is not looked at."""
    if not filters:
        return uses
    keep = np.ones(uses.rows.num_rows, bool)
    for column, wanted in filters.items():
        keep &= np.array([v is not None and v.casefold() == wanted.casefold() for v in uses.rows[column].to_pylist()], bool)
    return Uses(uses.cluster, uses.since, uses.at, uses.rows.filter(pa.array(keep.tolist(), pa.bool_())))


def _check_crowd(uses: Uses, filters: dict[str, str], viewer: Viewer) -> None:
    """A sum over one or two others would show their jobs."""
    if viewer.sees_all or not filters or "user" in filters:
        return
    others = {u for u in uses.rows["user"].to_pylist() if u is not None and not viewer.may_see(u)}
    if 0 < len(others) < FEW_USERS:
        raise NotPermitted(_("so few people are in it that sums would show their jobs"), _("leave out -A or -p, or name yourself: -u"))


def _status(found: Judged, total: Amounts) -> Status:
    if not len(found.sums.rows):
        return "no_jobs"
    return "ok" if any(total_hours.measured > 0 for name, total_hours in total.items() if name != "limit") else "nothing_measured"


def _notes(found: Judged, total: Amounts) -> tuple[str, ...]:
    out = []
    running = int((~found.sums.rows.settled).sum())
    if running:
        out.append(_("{n} attempts still run or are not booked: what they asked for counts, their use is not known yet.").format(n=running))
    if total.memory.by_default > 0:
        out.append(_("Memory that the site's default set is counted apart: users did not ask for it."))
    return tuple(out)


def _idle(
    lake: Lake, cluster: str, at: datetime, hours: float, viewer: Viewer, filters: dict[str, str]
) -> tuple[tuple[IdleGpu, ...] | None, int]:
    """Running jobs with idle GPUs that the viewer may see, the most GPU-hours first, and how many more there are."""
    if not lake.manifest.of("gpu_samples", cluster):
        return None, 0
    found = [
        i for i in idle_now(lake, cluster, at, hours) if all((getattr(i, k) or "").casefold() == v.casefold() for k, v in filters.items())
    ]
    mine = tuple(i for i in found if viewer.may_see(i.user))
    return mine, len(found) - len(mine)
