"""What the next job of a kind should ask for, from what jobs like it used (``docs/rightsizing.md``).

``sizes_of`` reads a table of uses; ``Sizes.bound`` answers for one kind and resource as of the table's moment. The model of a
resource is learned when it is first asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from queuecast.features.history import Floats, Ints
from queuecast.models.sizing_bound import Resource, SizeBound, Unit
from queuecast.models.sizing_chance import Trees, together
from queuecast.models.sizing_evidence import changed, floor_of, killed_lately, more_than, retry_of, used_of
from queuecast.models.sizing_kinds import RUNGS, Codes, kind_name
from queuecast.models.sizing_past import FEWEST, LATEST, SHARES, Jobs, Past
from queuecast.models.sizing_price import AIM, pick
from queuecast.models.sizing_replay import Replay, chances, floors, replay
from queuecast.models.sizing_rows import Kinds, Measured, measured, with_gpu
from queuecast.usage.uses import Uses

UNITS: dict[Resource, Unit] = {"memory": "bytes", "time": "s", "cpus": "CPUs", "gpu_memory": "bytes"}

LATEST_JOBS = 150_000
"""Models are made from so many of the latest jobs with a known use."""

FEW = 50
"""Below so many proposals made again the share that needed more is not told."""

KindKey = tuple[str | None, str, str | None, str | None]


def sizes_of(uses: Uses, *, risk: float = 0.01) -> Sizes:
    """Bounds as of ``uses.at`` from its final rows. ``risk``: share of next jobs that may need more, over all kinds together;
    0: never under any use seen. Raises ``ValueError`` for a risk below 0 or above one half."""
    if not 0.0 <= risk <= 0.5:
        raise ValueError(f"the risk must lie between 0 and 0.5: {risk}")
    return Sizes(uses, risk)


class Sizes:
    """Bounds of one table of uses at one risk."""

    def __init__(self, uses: Uses, risk: float) -> None:
        self.uses, self.risk = uses, risk
        self._kinds = Kinds(uses)
        self._models: dict[Resource, _Model | None] = {}

    @property
    def kind_keys(self) -> list[KindKey]:
        """For each row of the table: user, name without what differs from run to run, account, partition."""
        return self._kinds.keys()

    def bound(
        self,
        resource: Resource,
        *,
        user: str | None,
        name: str | None,
        account: str | None,
        partition: str | None,
        asked: float | None,
        gpu_type: str | None = None,
        submit_line: str | None = None,
    ) -> SizeBound | None:
        """What a job of this kind should ask for instead of ``asked`` (bytes of the whole job, seconds, CPUs; bytes of one GPU).

        ``value`` is at most ``asked``, unless ``needs_more``. None: no ended job tells, or what is asked is not known. For GPU
        memory only jobs on ``gpu_type`` count as of the same kind. ``submit_line`` helps where the name says nothing.
        """
        if resource not in self._models:
            found = measured(self.uses, resource)
            self._models[resource] = _Model.learn(found, self._kinds, self.risk, self.uses.at) if len(found.rows) else None
        model = self._models[resource]
        if model is None or asked is None or not np.isfinite(asked) or asked <= 0:
            return None
        known = {"user": user, "name": kind_name(name, submit_line), "account": account, "partition": partition}
        if resource == "gpu_memory":
            known |= {key: with_gpu(known[key], gpu_type) for key in ("name", "partition")}
        return model.bound(resource, known, float(asked))


@dataclass(frozen=True)
class _Model:
    """``jobs`` by submission; those from ``first`` on were proposed for again (``again``) to hold the price by."""

    jobs: Jobs
    hours: Floats
    codes: Codes
    past: Past
    trees: Trees | None
    again: Replay
    first: int
    risk: float
    at: datetime

    @classmethod
    def learn(cls, found: Measured, kinds: Kinds, risk: float, at: datetime) -> _Model:
        found = found.latest(LATEST_JOBS)
        codes = Codes(kinds.columns(found.rows, found.gpu_types), found.asked)
        jobs = Jobs(found.submit, found.end, found.use, found.asked, found.killed, found.weight, codes.codes)
        past = Past(jobs)
        seen = past.look(jobs.codes, jobs.submit, jobs.asked)
        trees = Trees.learn(jobs, seen)
        # The price is held by proposals made again for jobs that no model had seen; with few jobs that is by counts alone.
        first = len(jobs) // 3 if trees is None else len(jobs) * 2 // 3
        told = chances(jobs, seen, first, refits=1, trees=trees is not None)
        return cls(jobs, found.hours, codes, past, trees, replay(jobs, told, floors(seen), first, risk * AIM), first, risk, at)

    def bound(self, resource: Resource, known: dict[str, str | None], asked: float) -> SizeBound | None:
        moment = float(np.nextafter(self.at.timestamp(), np.inf))  # what ended at that very moment is known
        codes = self.codes.of(known, asked)
        rung, rows = self._kind(codes, moment)
        if not len(rows):
            return None
        jobs = self.jobs
        seen = self.past.look(codes, np.array([moment]), np.array([asked]))
        cost = np.array([float(np.mean(jobs.weight[rows])) * asked])
        share = float(SHARES[pick(together(self.trees, seen), cost, self.again.price)[0]])
        when = changed(jobs.use[rows])
        lately = rows[when:]
        floor = floor_of(jobs.use[lately], jobs.killed[lately], jobs.asked[lately], self.risk)
        value = min(asked, max(share * asked, floor, float(seen.most[0, rung]) * asked if when == 0 else 0.0))
        more = resource in ("memory", "time") and killed_lately(jobs.killed[rows], jobs.asked[rows], asked)
        if more:
            value = more_than(jobs.use[rows], jobs.killed[rows], jobs.asked[rows], asked)
        elif resource == "cpus":
            value = min(asked, max(1.0, float(np.ceil(value - 1e-9))))
        uses = jobs.use[lately]
        return SizeBound(
            resource=resource,
            value=value,
            unit=UNITS[resource],
            risk=self.risk,
            n=len(lately),
            kind=RUNGS[rung][0],
            used=used_of(uses),
            risk_seen=self._seen(rows),
            changed_at=datetime.fromtimestamp(float(jobs.end[lately[0]]), UTC) if when else None,
            needs_more=more,
            retry=None if more else retry_of(uses, np.ones(len(lately)) if resource == "time" else self.hours[lately], value, asked),
        )

    def _kind(self, codes: Ints, moment: float) -> tuple[int, Ints]:
        """The finest rung with enough jobs, and the latest of them; else the coarsest."""
        rows = np.zeros(0, np.int64)
        rung = 0
        for rung in range(len(codes)):
            rows = self.past.rows(rung, int(codes[rung, 0]), moment)
            if len(rows) >= FEWEST:
                break
        return rung, rows[-LATEST:]

    def _seen(self, rows: Ints) -> float | None:
        """Share of these jobs that needed more than was proposed when they were proposed for again."""
        again = rows[rows >= self.first]
        return float(np.mean(self.again.killed[again])) if len(again) >= FEW else None
