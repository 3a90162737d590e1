"""The time limit against what like jobs of the past took."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from queuecast.i18n import _
from queuecast.slurmtext.durations import format_limit
from queuecast.store.files import instant

if TYPE_CHECKING:
    from queuecast.answers.prechecks.precheck import Script
    from queuecast.policy.request import Request

BACK = timedelta(days=60)
ENOUGH = 10
"""With fewer ended jobs nothing is said."""

OFTEN = 0.15
"""From that share of like jobs on that ran into such a limit, it is worth a warning."""

_COLUMNS = ("user", "partition", "name", "state", "gpus_req", "elapsed_s", "limit_s", "start", "end", "observed_at")


@dataclass(frozen=True)
class Like:
    """Ended jobs that ran: how many, how many needed longer than a limit or were cut by one no longer, times in seconds."""

    whose: str
    count: int
    reached: int
    p95_s: float


def check_history(script: Script) -> None:
    """Warns where like jobs often hit the limit, and notes where it is far above what they take."""
    request = script.request
    if request is None or script.lake is None or script.cluster is None or request.limit_s is None:
        return
    like = like_runs(script, request, request.limit_s)
    if like is None:
        script.unchecked.append(_("The time limit: fewer than {n} like jobs have ended in 60 days.").format(n=ENOUGH))
        return
    limit = format_limit(request.limit_s)
    line = script.line("time")
    if like.reached / like.count >= OFTEN:
        script.say(
            line,
            "warning",
            "limit-short",
            _("{reached} of {count} {whose} ran into a limit of {limit} or would have.").format(
                reached=like.reached, count=like.count, whose=like.whose, limit=limit
            ),
            _("Raise -t, or save checkpoints and requeue (queuecast template single)."),
        )
    elif like.p95_s * 4 < request.limit_s:
        enough = max(600, int(-(-like.p95_s * 1.5 // 600) * 600))
        if enough < request.limit_s / 2:
            script.say(
                line,
                "note",
                "limit-long",
                _("19 of 20 {whose} took less than {p95}; the limit is {limit}.").format(
                    whose=like.whose, p95=format_limit(int(like.p95_s)), limit=limit
                ),
                _("A shorter one, such as -t {enough}, can start earlier.").format(enough=format_limit(enough)),
            )


def like_runs(script: Script, request: Request, limit_s: int) -> Like | None:
    """The finest group with enough jobs: the user's of this name, the user's of this size, all of this partition and size."""
    assert script.lake is not None
    rows = script.lake.read("jobs", list(_COLUMNS), cluster=script.cluster, since=script.at - BACK, until=script.at)
    now = instant(script.at)
    rows = rows.filter(pc.less_equal(rows["end"], now))
    rows = rows.filter(pc.and_(pc.is_valid(rows["start"]), pc.is_valid(rows["elapsed_s"])))
    size = pc.equal(pc.fill_null(rows["gpus_req"], 0), request.gpus)
    partition = pc.is_in(pc.utf8_lower(rows["partition"]), value_set=pa.array([p.lower() for p in request.partitions], pa.string()))
    mine = pc.equal(rows["user"], request.user or "")
    name = pc.equal(rows["name"], script.options.get("job-name", ""))
    groups = (
        (_("of your jobs with this name"), pc.and_(mine, name)),
        (_("of your jobs of this size in the partition"), pc.and_(mine, pc.and_(size, partition))),
        (_("jobs of this size in the partition"), pc.and_(size, partition)),
    )
    for whose, mask in groups:
        chosen = rows.filter(pc.fill_null(mask, False))
        states = chosen["state"].to_pylist()
        # cancelled and failed ones say little of how long the work takes
        runs = [
            (float(e), s == "TIMEOUT", lim)
            for e, s, lim in zip(chosen["elapsed_s"].to_pylist(), states, chosen["limit_s"].to_pylist(), strict=True)
            if s in ("COMPLETED", "TIMEOUT")
        ]
        # a job that was cut by a longer limit than this one would have been cut by this one too
        judged = [(e, cut) for e, cut, lim in runs if not cut or e >= limit_s or (lim is not None and lim >= limit_s * 0.9)]
        short = sum(cut for _e, cut, lim in runs) - sum(cut for _e, cut in judged)  # cut by a shorter one: not known
        if len(judged) >= ENOUGH and short <= len(runs) / 2:
            times = sorted(e for e, _cut in judged)
            reached = sum(cut or e > limit_s for e, cut in judged)
            return Like(whose, len(judged), reached, times[min(len(times) - 1, int(0.95 * len(times)))])
    return None
