"""Who asks: requests, each with the moment at which its wait is asked about."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from queuecast.features.history import TEXTS, Floats, History, Ints


@dataclass(frozen=True)
class Asking:
    """Requests, arrays of shape (m,). Times are epoch seconds (UTC); nan is unknown.

    ``asked`` is the moment asked about, ``eligible`` when the job could first have started (a new request: the same),
    ``submit`` when it was submitted. ``codes`` holds for each text of ``TEXTS`` the code into ``history.words``, -1
    for a word that never occurred. ``row`` is the job's row in the history, -1 for a new request. ``limit_s`` is nan
    if unlimited or unknown; ``mem`` is bytes.
    """

    asked: Floats
    eligible: Floats
    submit: Floats
    codes: dict[str, Ints]
    gpus: Floats
    cpus: Floats
    limit_s: Floats
    row: Ints
    nodes: Floats | None = None
    mem: Floats | None = None

    def __len__(self) -> int:
        return len(self.asked)

    @classmethod
    def of_rows(cls, history: History, rows: Ints, asked: Floats) -> Asking:
        """Jobs of the history, asked about at ``asked``."""
        return cls(
            np.asarray(asked, np.float64),
            history.eligible[rows],
            history.submit[rows],
            {text: history.codes[text][rows] for text in TEXTS},
            history.gpus[rows],
            history.cpus[rows],
            history.limit_s[rows],
            np.asarray(rows, np.int64),
            history.nodes[rows],
            history.mem[rows],
        )

    def take(self, which: Ints) -> Asking:
        """Some of them, by number."""
        return Asking(
            self.asked[which],
            self.eligible[which],
            self.submit[which],
            {text: codes[which] for text, codes in self.codes.items()},
            self.gpus[which],
            self.cpus[which],
            self.limit_s[which],
            self.row[which],
            None if self.nodes is None else self.nodes[which],
            None if self.mem is None else self.mem[which],
        )
