"""The trained model of one cluster: the learned distribution, the share of like jobs, corrected levels, and what moves an answer."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from queuecast.features.asking import Asking
from queuecast.features.cases import Cases
from queuecast.features.history import Floats, History, Ints, size_class
from queuecast.features.lakecases import FEATURES
from queuecast.features.situation_names import COLUMN
from queuecast.models.blend import mix
from queuecast.models.levelmaps import LevelMaps
from queuecast.models.localtime import UTC, with_local_time
from queuecast.models.stacked import Stacked
from queuecast.models.trees import Values
from queuecast.models.waits import Waits

CODED = {"partition_code": "partition", "qos_code": "qos", "gpu_type_code": "gpu_type"}
"""Features that are numbers of words: their meaning is that of the words in training."""

WORDS = ("partition", "qos", "gpu_type", "account", "user")

NAMES = [f.name for f in FEATURES]
TOPICS = {topic: np.array([i for i, f in enumerate(FEATURES) if f.topic == topic]) for topic in sorted({f.topic for f in FEATURES})}
"""Columns by topic."""

USUAL_JOBS = 2000
"""A partition's usual values are the medians of so many of its latest cases."""


@dataclass(frozen=True)
class Moved:
    """What moved one answer. With the values usual in the partition instead of this job's for one topic of features,
    the median wait would be shorter by ``seconds[topic]`` (negative: longer). ``own`` and ``usual`` are by feature name."""

    seconds: dict[str, float]
    own: dict[str, float]
    usual: dict[str, float]


@dataclass(frozen=True)
class WaitModel:
    """``words`` are the codes' meaning in training; ``usual`` maps a partition's word to the medians of its cases
    (float32, shape (F,)), "" to those of all. ``cases`` outcomes were learned from. Hour and weekday
    are those in ``zone`` (IANA name)."""

    stacked: Stacked
    maps: LevelMaps
    shares: Floats
    words: dict[str, list[str]]
    usual: dict[str, Values] = field(default_factory=dict)
    cases: int = 0
    zone: str = UTC

    def predict(self, values: Values, asking: Asking, like: Waits, history: History) -> Waits:
        """Corrected distributions of the remaining wait of requests. ``like``: what like jobs waited, nan if unknown."""
        model = self.stacked.predict(self.recoded(values, asking, history))
        gpu = (np.nan_to_num(asking.gpus) > 0).astype(np.int64)
        codes = {
            "pending": (asking.asked - asking.eligible > 60).astype(np.int64),
            "partition": self._codes("partition", asking, history),
            "size": size_class(asking.gpus, asking.cpus),
        }
        return self.maps.correct(mix(model, like, self.shares, gpu), codes)

    def recoded(self, values: Values, asking: Asking, history: History) -> Values:
        """Features with words numbered as in training, and the hours of its zone."""
        out = with_local_time(values, asking.asked, self.zone).copy()
        for name, text in CODED.items():
            out[:, COLUMN[name]] = self._codes(text, asking, history)
        return out

    def moved(self, values: Values, asking: Asking, history: History) -> Moved | None:
        """What moved the answer to the first of the requests; None without a usual. One topic after another is set to
        what is usual in the partition, and the model is asked again: a measured contribution, not a guess."""
        own = self.recoded(values[:1], asking.take(np.array([0])), history)[0]
        words = history.words["partition"]
        code = int(asking.codes["partition"][0])
        usual = self.usual.get(words[code] if code >= 0 else "", self.usual.get(""))
        if usual is None:
            return None
        rows = np.repeat(own[None, :], len(TOPICS) + 1, axis=0)
        for number, where in enumerate(TOPICS.values()):
            rows[number, where] = usual[where]
        told = self.stacked.predict(rows).quantile(0.5)
        return Moved(
            {topic: float(told[-1] - told[number]) for number, topic in enumerate(TOPICS)},
            dict(zip(NAMES, own.tolist(), strict=True)),
            dict(zip(NAMES, usual.tolist(), strict=True)),
        )

    def _codes(self, text: str, asking: Asking, history: History) -> Ints:
        places = {w: i for i, w in enumerate(self.words[text])}
        table = np.array([places.get(w, -1) for w in history.words[text]] + [-1], np.int64)
        return table[asking.codes[text]]


def usual_values(cases: Cases, partitions: list[str]) -> dict[str, Values]:
    """Medians of the latest cases, per partition and for all (""); partitions with too few take those of all."""
    import warnings

    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a feature that nobody knows stays unknown
        for name, rows in [("", np.arange(len(cases)))] + [
            (p, np.flatnonzero(cases.groups["partition"] == i)) for i, p in enumerate(partitions)
        ]:
            if len(rows) >= 50 or name == "":
                found[name] = np.nanmedian(cases.values[rows[-USUAL_JOBS:]], axis=0).astype(np.float32)
    return found
