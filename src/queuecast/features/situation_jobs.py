"""Jobs of a history in whole numbers, as the sums over them need it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from queuecast.features.history import Floats, History, Ints
from queuecast.features.intervals import HOUR, NEVER
from queuecast.features.situation_groups import DIMS, Groups, base_of, counted_cpus, counted_gpus, counted_limit, milliseconds
from queuecast.features.situation_runs import Runs


@dataclass
class Jobs:
    """Arrays of shape (n,), in the order of the history: by time of becoming eligible. Times are ms since ``base``."""

    base: float
    eligible: Ints
    leave: Ints
    """When the job left the queue: it started, or was cancelled."""
    start: Ints
    end: Ints
    """End of the run; ``NEVER`` for a job that never started."""
    tasks: Ints
    cpus: Ints
    gpus: Ints
    limit: Ints
    """ms, as counted."""
    predicted: Ints
    """Predicted run time, ms."""
    core: Ints
    """CPUs times limit, ms."""
    gpu: Ints
    """GPUs times limit, ms."""
    log_wait: Floats
    """log(1 + s) from becoming eligible to the start; meaningless for jobs that have not started."""
    single: bool
    """Every row is one job."""
    groups: dict[str, Groups]
    runs: Runs

    def __len__(self) -> int:
        return len(self.eligible)

    @classmethod
    def of(cls, history: History) -> Jobs:
        """All jobs of the history."""
        base = base_of(history)
        eligible = milliseconds(history.eligible, base)
        start = np.maximum(milliseconds(history.start, base), eligible)
        over = np.maximum(milliseconds(history.end, base), eligible)
        end = np.where(start < NEVER, np.maximum(over, start), NEVER)
        tasks = np.rint(history.tasks).astype(np.int64)
        groups = {dim: Groups(dim, history) for dim in DIMS}
        users = groups["user"]
        limit = (counted_limit(history.limit_s) * 1000).astype(np.int64)
        runs = Runs(start, end, history.limit_s, users.codes, users.size)
        cpus, gpus = counted_cpus(history.cpus).astype(np.int64) * tasks, counted_gpus(history.gpus).astype(np.int64) * tasks
        return cls(
            base,
            eligible,
            np.where(start < NEVER, start, over),
            start,
            end,
            tasks,
            cpus,
            gpus,
            limit,
            runs.predict(users.codes, eligible, history.limit_s),
            cpus * limit,
            gpus * limit,
            np.log1p((start - eligible) / 1000),
            bool((tasks == 1).all()),
            groups,
            runs,
        )

    def planned(self, by: str = "limit") -> Ints:
        """When runs end by their limit or predicted run time, ms."""
        return np.where(self.start < NEVER, self.start + (self.limit if by == "limit" else self.predicted), NEVER)

    def coming(self, by: str, hours: int) -> Ints:
        """From when on runs are due to end within ``hours``, ms. One less, so that "before t" means "at t or before"."""
        end = self.planned(by)
        return np.where(end < NEVER, np.maximum(self.start, end - hours * HOUR - 1), NEVER)
