"""What the queue would have been with smaller requests: waits and GPU use before and after, in the same replay."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from queuecast.answers.rightsizing.answer import rounded
from queuecast.answers.wait import iso


@dataclass(frozen=True)
class Moved:
    """Waits of a set of jobs in seconds, submitted in the window. ``before_s``, ``after_s``: medians (infinite: half did not start).

    ``mean_sooner_s``: mean of the start as recorded minus the start as changed, of jobs that start in both, in the first replay;
    ``low_s``, ``high_s``: its lowest and highest over the replays, which differ in when the scheduler acts.
    """

    name: str
    jobs: int
    before_s: float | None
    after_s: float | None
    mean_sooner_s: float | None
    low_s: float | None
    high_s: float | None
    in_one_only: int

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "name": self.name,
            "jobs": self.jobs,
            "median_wait_before_s": rounded(self.before_s, 0),
            "median_wait_after_s": rounded(self.after_s, 0),
            "mean_sooner_s": rounded(self.mean_sooner_s, 0),
            "mean_sooner_low_s": rounded(self.low_s, 0),
            "mean_sooner_high_s": rounded(self.high_s, 0),
            "started_in_one_only": self.in_one_only,
        }


@dataclass(frozen=True)
class Effect:
    """The recorded workload of ``begin`` to ``end`` (UTC) replayed as it was and with ``kinds`` proposals (``fixed`` jobs).

    ``occupied_before``, ``occupied_after``: share of all GPU time that is allocated. ``busy_before``, ``busy_after``: share of allocated
    GPU time that computes, of measured jobs, not from the replay. None: no GPUs, or not measured. ``replays``: pairs.
    ``twin_median_s``, ``real_median_s``, ``within_10min``: how near the replay's starts are to the recorded ones; ``doubtful`` if far off.
    """

    begin: datetime
    end: datetime
    kinds: int
    fixed: int
    moved: tuple[Moved, ...]
    occupied_before: float | None
    occupied_after: float | None
    busy_before: float | None
    busy_after: float | None
    replays: int
    real_median_s: float | None
    twin_median_s: float | None
    within_10min: float | None
    doubtful: bool
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "begin": iso(self.begin),
            "end": iso(self.end),
            "kinds_fixed": self.kinds,
            "jobs_fixed": self.fixed,
            "waits": [m.as_json() for m in self.moved],
            "gpus_allocated_before": rounded(self.occupied_before, 4),
            "gpus_allocated_after": rounded(self.occupied_after, 4),
            "gpus_busy_of_allocated_before": rounded(self.busy_before, 4),
            "gpus_busy_of_allocated_after": rounded(self.busy_after, 4),
            "replays": self.replays,
            "fidelity": {
                "median_wait_recorded_s": rounded(self.real_median_s, 0),
                "median_wait_replayed_s": rounded(self.twin_median_s, 0),
                "starts_within_10min": rounded(self.within_10min, 3),
                "doubtful": self.doubtful,
            },
            "notes": list(self.notes),
        }
