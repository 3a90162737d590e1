"""Hours by row, and their sums over groups of rows and over time. Sums over any partition of the rows are the same."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

import numpy as np

from queuecast.answers.rightsizing.overrequest_answer import Amounts, By, Group, Hours, Period
from queuecast.answers.rightsizing.rightsize import Judged
from queuecast.answers.rightsizing.rows import RESOURCES, measured
from queuecast.answers.viewer import Viewer
from queuecast.features.history import Flags, Floats, Ints
from queuecast.models.sizing_kinds import kind_name

FEW_USERS = 3
"""A group of fewer users is shown to nobody but those who may see them."""
DAYS = 31
"""The trend goes by day up to so many days, else by week."""


class Book:
    """Hours of each attempt by resource: asked, measured, used, reclaimable, by the site's default."""

    def __init__(self, judged: Judged) -> None:
        self.judged, self.sums = judged, judged.sums
        rows = self.rows = judged.sums.rows
        self.asked: dict[str, Floats] = {}
        self.measured: dict[str, Floats] = {}
        self.used: dict[str, Floats] = {}
        self.reclaimable: dict[str, Floats] = {}
        self.by_default: dict[str, Floats] = {}
        self.counts: dict[str, Flags] = {}
        self.known: dict[str, Flags] = {}
        for r in RESOURCES:
            asked, used = self.sums.asked[r], self.sums.used[r]
            known = np.isfinite(used) & np.isfinite(asked)
            self.known[r] = known
            self.counts[r] = np.nan_to_num(asked) > 0
            self.asked[r] = np.nan_to_num(asked * rows.hours)
            self.measured[r] = np.where(known, np.nan_to_num(measured(rows, r, asked) * rows.hours), 0.0)
            self.used[r] = np.where(known, np.nan_to_num(used * rows.hours), 0.0)
            saved = np.zeros(len(rows))
            for p in judged.items:
                if r in p.saves:
                    saved[p.rows] += p.saves[r]
            default = rows.default_memory if r == "memory" else np.zeros(len(rows), bool)
            self.reclaimable[r] = np.where(default, 0.0, saved)
            self.by_default[r] = np.where(default, saved, 0.0)

    def amounts(self, index: Ints, scale: Floats | None = None) -> Amounts:
        """Sums over ``index``; ``scale``: share of each row's hours that counts."""
        by = 1.0 if scale is None else scale[index]
        there = np.ones(len(index), bool) if scale is None else scale[index] > 0

        def hours(r: str) -> Hours:
            count = self.counts[r][index] & there
            return Hours(
                float((self.asked[r][index] * by).sum()),
                float((self.measured[r][index] * by).sum()),
                float((self.used[r][index] * by).sum()),
                float((self.reclaimable[r][index] * by).sum()),
                float((self.by_default[r][index] * by).sum()),
                int(count.sum()),
                int((count & ~self.known[r][index]).sum()),
            )

        return Amounts(*(hours(r) for r in RESOURCES))

    @property
    def whole(self) -> Ints:
        """All rows."""
        return np.arange(len(self.rows))

    def weight(self, amounts: Amounts) -> tuple[float, float]:
        """What groups are ordered by: the largest share of the cluster's hours that is reclaimable, then that asked for."""
        freed = {name: h.reclaimable + h.by_default for name, h in amounts.items()}
        return self.sums.weight(freed), self.sums.weight({name: h.asked for name, h in amounts.items()})

    def groups(self, by: By, viewer: Viewer, top: int) -> tuple[Group, ...]:
        """By one dimension, most reclaimable first. What the viewer may not see, and what is beyond ``top``, is in one last row."""
        text = self.rows.text
        names: Sequence[str | None]
        if by == "kind":
            names = [_kind_name(*told) for told in zip(text["user"], text["name"], text["submit_line"], strict=True)]
        else:
            names = text[by]
        members: dict[str | None, list[int]] = {}
        for i, name in enumerate(names):
            members.setdefault(name, []).append(i)
        shown: list[tuple[tuple[float, float], Group]] = []
        rest: list[int] = []
        hidden = 0
        for name, rows in members.items():
            if not self._may_show(by, rows, viewer):
                rest += rows
                hidden += 1
                continue
            index = np.array(rows, np.int64)
            amounts = self.amounts(index)
            user = text["user"][rows[0]] if by in ("user", "kind") else None
            shown.append((self.weight(amounts), Group(name, amounts, len(rows), user)))
        shown.sort(key=lambda s: (-s[0][0], -s[0][1], s[1].name or ""))
        for _weight, group in shown[top:]:
            rest += members[group.name]
        out = [g for _w, g in shown[:top]]
        if rest:
            count = hidden + max(0, len(shown) - top)
            out.append(Group(None, self.amounts(np.array(sorted(rest), np.int64)), len(rest), rest=count))
        return tuple(out)

    def _may_show(self, by: By, rows: list[int], viewer: Viewer) -> bool:
        if viewer.sees_all:
            return True
        users = {self.rows.text["user"][i] for i in rows}
        if by in ("user", "kind"):
            return all(viewer.may_see(u) for u in users)
        return len(users - {None}) >= FEW_USERS or all(viewer.may_see(u) for u in users)

    def trend(self, since: datetime, at: datetime) -> tuple[tuple[Period, ...], Literal["day", "week"]]:
        """Every day (or week) of the window, UTC; sums are those of the whole."""
        step: Literal["day", "week"] = "day" if at - since <= timedelta(days=DAYS) else "week"
        length = timedelta(days=1 if step == "day" else 7)
        whole = self.rows.overlap(since.timestamp(), at.timestamp())
        edge = since.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        if step == "week":
            edge -= timedelta(days=edge.weekday())
        periods = []
        while edge < at:
            begin, end = max(edge, since), min(edge + length, at)
            part = self.rows.overlap(begin.timestamp(), end.timestamp())
            scale = np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)
            periods.append(Period(begin, end, self.amounts(self.whole, scale)))
            edge += length
        return tuple(periods), step


def _kind_name(user: str | None, name: str | None, line: str | None) -> str | None:
    return None if user is None else f"{user}/{kind_name(name, line)}"
